"""Traces: each stage that a memory or a request passed, with ids and times, and not one word of what they say.

Spans are kept in a file beside the store, a line of JSON each, and the oldest go as new ones come: what happened in the
last days can be followed, and nothing is to be paid for that by whoever asks a question. A thread of its own writes
them. What must be known for good is in the log of ops (`why`, `history`), not here. Where OpenTelemetry is set up in
the environment, it is told of every span as well (`scrubjay.telemetry`).
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from scrubjay.policy import TracePolicy
from scrubjay.store import Cause
from scrubjay_io import private_files
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ScrubjayError

log = logging.getLogger(__name__)

REQUEST: ContextVar[str] = ContextVar("request", default="")
"""The id of the request, or of the run of a job, that is being worked for; "" for none."""


def new_request() -> str:
    """Return a fresh id for a request."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One stage of one request: when it began (UTC milliseconds), how long it took, and what it was about.

    `stage` is "commit", "recall", "inject", the kind of a cause ("distill", "consolidate", "forget" …), "job", or
    "write" for a call of the Writer. `name` is the operation or the job; `ids` are of memories and events; `count` of
    all of them, where there are more than are kept; `cause` is the run or the request as ops name it; `error` is an
    error's code, or how a call ended. `model` is the Writer's as it is set, the tokens are what its call is counted as.
    """

    at: Millis
    ms: float
    stage: str
    request: str = ""
    name: str = ""
    session: str | None = None
    cause: str | None = None
    ids: tuple[str, ...] = ()
    count: int = 0
    error: str | None = None
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    def concerns(self, ref: str) -> bool:
        """Say whether it is about a memory, an event, a session, a request or a run of that id."""
        return ref in {self.request, self.session, self.cause} or ref in self.ids


@dataclass(slots=True)
class Noting:
    """What is filled in while a stage lasts."""

    ids: list[str] = field(default_factory=list)
    session: str | None = None
    cause: str | None = None
    error: str | None = None
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Tracer:
    """Keeps the spans of one store. `export` is told of each too, in the writing thread."""

    def __init__(self, path: Path, policy: TracePolicy, *, export: Callable[[Span], None] | None = None) -> None:
        """`path` is the newest file; one older one stands beside it."""
        self._path = path
        self._policy = policy
        self._export = export
        self._queue: queue.Queue[Span | threading.Event | None] = queue.Queue(policy.queued)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.lost = 0
        """Spans that were not kept, because more came than the disk took."""

    def note(self, span: Span) -> None:
        """Keep a span. Never waits: where too many wait already, it is counted as lost."""
        self._begin()
        try:
            self._queue.put_nowait(span)
        except queue.Full:
            self.lost += 1

    def wrote(self, cause: Cause, ids: Sequence[str], seconds: float) -> None:
        """Note what was written for a cause, which names the stage: "distill:01…" is "distill"."""
        kind = cause.id.partition(":")[0]
        ms = round(seconds * 1000, 3)
        self.note(
            Span(
                at=Millis(time.time_ns() // 1_000_000 - int(ms)),
                ms=ms,
                stage=kind,
                name="write",
                request=REQUEST.get(),
                cause=cause.id,
                ids=tuple(ids[: self._policy.ids]),
                count=len(ids),
            )
        )

    @contextmanager
    def span(self, stage: str, name: str = "") -> Iterator[Noting]:
        """Note a stage for as long as the block lasts, also when it raises."""
        noting, began, at = Noting(), time.perf_counter(), Millis(time.time_ns() // 1_000_000)
        error: str | None = None
        try:
            yield noting
        except BaseException as raised:
            error = raised.code if isinstance(raised, ScrubjayError) else type(raised).__name__
            raise
        finally:
            self.note(
                Span(
                    at=at,
                    ms=round((time.perf_counter() - began) * 1000, 3),
                    stage=stage,
                    request=REQUEST.get(),
                    name=name,
                    session=noting.session,
                    cause=noting.cause,
                    ids=tuple(noting.ids[: self._policy.ids]),
                    count=len(noting.ids),
                    error=noting.error or error,
                    model=noting.model,
                    input_tokens=noting.input_tokens,
                    output_tokens=noting.output_tokens,
                )
            )

    def find(self, ref: str, limit: int) -> list[Span]:
        """Return the last `limit` spans about an id, oldest first. Reads the files: call it in a thread."""
        self.flush()
        found = [span for span in self._kept(ref.encode()) if span.concerns(ref)]
        return sorted(found, key=lambda span: span.at)[-limit:]

    def flush(self) -> None:
        """Return when everything noted so far stands in the file."""
        if self._thread is None or not self._thread.is_alive():
            return
        done = threading.Event()
        self._queue.put(done)
        done.wait(self._policy.flush_seconds)

    def close(self) -> None:
        """Write what waits, and end the thread. A second close does nothing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(self._policy.flush_seconds)

    @property
    def _older(self) -> Path:
        return self._path.with_name(f"{self._path.name}.1")

    def _begin(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._write, name="trace", daemon=True)
                    self._thread.start()

    def _write(self) -> None:
        while True:
            waiting = [self._queue.get()]
            with suppress(queue.Empty):
                while True:
                    waiting.append(self._queue.get_nowait())
            spans = [one for one in waiting if isinstance(one, Span)]
            try:
                self._append(spans)
            except OSError as error:  # a trace is never worth an answer
                self.lost += len(spans)
                log.warning("spans not kept error=%s", type(error).__name__)
            if self._export is not None:
                for span in spans:
                    self._export(span)
            for one in waiting:
                if isinstance(one, threading.Event):
                    one.set()
            if None in waiting:
                return

    def _append(self, spans: Iterable[Span]) -> None:
        lines = b"".join(msgspec.json.encode(span) + b"\n" for span in spans)
        if not lines:
            return
        with suppress(FileNotFoundError):
            if self._path.stat().st_size + len(lines) > self._policy.file_bytes:
                self._path.replace(self._older)
        with open(self._path, "ab", opener=private_files.opener) as file:
            file.write(lines)

    def _kept(self, ref: bytes) -> Iterator[Span]:
        for path in (self._older, self._path):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            for line in data.splitlines():
                if ref in line:
                    with suppress(msgspec.MsgspecError):  # a crash may have cut a line off
                        yield msgspec.json.decode(line, type=Span)
