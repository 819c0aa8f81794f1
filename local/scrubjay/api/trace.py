"""What happened to one memory, or for one request, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """A memory by its id or name, an event, a run or request that wrote, a session, or any other request, by its id.

    The beginning of an id will do, but for sessions and for requests that only asked.
    """

    id: str
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One stage. `ms` is None for what is known from the log of ops, which has no durations.

    `stage` is what was done ("commit", "distill", "recall", "inject" …) and `name` by which operation, job or kind of
    op; `ids` are memories and events that it was about, `count` how many those were in all. The stage "write" is a call
    of the Writer, with its model and the tokens that it is counted as; `error` says how it ended where it failed.
    """

    at: Millis
    stage: str
    name: str = ""
    ms: float | None = None
    request: str = ""
    session: str | None = None
    cause: str | None = None
    device: str = ""
    ids: tuple[str, ...] = ()
    count: int = 0
    error: str | None = None
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResponse:
    """The steps, oldest first. `id` is what was found under the reference; `lost` counts spans that were not kept."""

    id: str
    steps: tuple[TraceStep, ...]
    lost: int = 0
