"""Models that run on this machine's processor, by onnxruntime.

Theory of operation. The models are quantised *dynamically*: their graphs take the scale of each activation from the
whole tensor they are given. In a batch, a text's vector therefore depends on the texts beside it (measured: cosine
0.989 to 0.999 with itself), so a rebuild would not give the same answers. Texts, and pairs of question and text, are
run one at a time instead, on a session with one thread, and several of them at once in threads of ours. That is as fast
as batches of 16 on two cores, needs less memory, and lets a query pass while a long list is being embedded.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scrubjay.models.catalog import EmbeddingModel, RerankingModel
from scrubjay.models.installed import PULL_HINT
from scrubjay.models.ports import Vectors, unit
from scrubjay_shared.errors import CorruptError, UnavailableError

CHARS_PER_TOKEN = 16  # English has 4 to 5; a 5 MB text untrimmed costs the tokenizer 6 s and 300 MB for nothing
Result = TypeVar("Result")


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
        self._network = Network(model.name, folder / model.files[0].name, folder / "tokenizer.json", threads=threads)
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
        self._network = Network(model.name, folder / model.files[0].name, folder / "tokenizer.json", threads=threads)
        self._one([], "")

    def score(self, query: str, texts: Sequence[str]) -> Vectors:
        """Return float32 [n], the logits of the pairs; each pair alone, so that its score is always the same.

        The question keeps its first `query_window` tokens, the text as many as the window then has room for.
        """
        question = self._network.tokens(query, self._model.query_window)
        # The longest first: no thread is left alone with one at the end.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        scores = np.empty(len(texts), np.float32)
        scores[order] = self._network.each(partial(self._one, question), [texts[index] for index in order])
        return scores

    def close(self) -> None:
        """Let go of the model, after the pairs in hand."""
        self._network.close()

    def _one(self, question: Sequence[int], text: str) -> np.float32:
        start, end = self._network.frame
        answer = self._network.tokens(text, self._model.window - len(question) - 3)
        logits = self._network.run([start, *question, end, *answer, end], second=slice(len(question) + 2, None))
        if logits.shape != (1, 1):
            raise CorruptError(
                f"{self.name}: the model returned an array of shape {logits.shape} where one score was expected",
                hint=f"{PULL_HINT} {self.name} fetches the model again",
            )
        logit: np.float32 = logits[0, 0]
        if not np.isfinite(logit):
            raise CorruptError(f"{self.name}: the model gave a score that is not finite", hint=PULL_HINT)
        return logit


class Network:
    """A network and its tokenizer, run by onnxruntime: one input at a time, several in threads of ours.

    The tokenizer is BERT's. `frame` holds the tokens that begin an input and end each part of it.
    """

    def __init__(self, name: str, network: Path, tokenizer: Path, *, threads: int) -> None:
        """Load the files. Raises CorruptError when they cannot be run, UnavailableError without the two libraries."""
        self.name = name
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
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
            self._tokenizer.no_padding()
            self._tokenizer.no_truncation()
            start, _, end = self._tokenizer.encode("", "").ids  # one end for each part of a pair, which are empty here
            self.frame: tuple[int, int] = (start, end)
            self._session = onnxruntime.InferenceSession(str(network), options, providers=["CPUExecutionProvider"])
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

    def run(self, tokens: Sequence[int], *, second: slice = slice(0)) -> NDArray[np.float32]:
        """Return the network's first output for one input; `second` is where the second part of a pair stands."""
        session = self._session
        if session is None:
            raise UnavailableError("the model is closed")
        ids = np.array([tokens], np.int64)
        parts = np.zeros_like(ids)
        parts[:, second] = 1
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
