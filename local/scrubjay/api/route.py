"""Routing: a question finds its places in the table of contents, by layers that stand in for one another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scrubjay.api.recall import Hit
from scrubjay_shared.clock import Millis


class Intent(StrEnum):
    """What a question is after: what there is, an answer, the place where it was said, or what happened in a time."""

    EXPLORE = "explore"
    ANSWER = "answer"
    LOCATE = "locate"
    TIME_BOXED = "time_boxed"


class TeleportMode(StrEnum):
    """How places are looked for: by words, by meaning, or by both with what stands around a turn."""

    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"


class LayerState(StrEnum):
    """How a layer is: it works, in part (`degraded`), it is not there to be used, or it failed just now."""

    OK = "ok"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer and its health. `detail` says what is missing, and why; "" where nothing is."""

    name: str
    state: LayerState
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """A place in the table of contents, never its words: `toc` opens `node`, `grip` shows a passage with its context.

    `node` is a segment's id, or a period's where no segment was cut yet or a whole period is meant. `title` names it.
    `score` is comparable within one answer. `grips` are the passages that match best, `found_by` the layers.
    """

    node: str
    level: str
    title: str
    day: str
    score: float
    start: Millis
    end: Millis
    grips: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    session_id: str | None = None
    found_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeleportRequest:
    """Words to look for. `agent`, `since` and `until` narrow it, as those of `recall` do."""

    query: str
    mode: TeleportMode = TeleportMode.HYBRID
    limit: int = 10
    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeleportResponse:
    """Pointers, best first. `mode` is what was really done: by words where there is no meaning to go by."""

    pointers: tuple[Pointer, ...]
    mode: str
    elapsed_ms: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """A question. `intent` says what it is after where the asker knows better; without it, its words do.

    `limit` bounds the pointers, and the hits where it is above 5; `max_tokens` bounds the texts of the hits and
    `timeout_ms` the whole: layers for which
    no time is left are skipped. `since` and `until` take the place of the times that the question names.
    """

    query: str
    intent: Intent | None = None
    limit: int = 3
    max_tokens: int | None = None
    timeout_ms: int | None = None
    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTime:
    """A time that the question names, with the nodes that cover it; a bound that is None is open."""

    words: str
    since: Millis | None
    until: Millis | None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one layer did for the answer: how much it found, in how many milliseconds, and why the next one followed."""

    layer: str
    found: int
    ms: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteResponse:
    """Where the answer stands (`pointers`), and for what asks for an answer also what says it (`hits`).

    `confidence` is how sure the intent is, and `reasons` what in the question told it. `steps` are the layers that were
    asked, in their order; `layers` the health of all. `tokens` estimates what pointers and hits cost a model's context.
    """

    intent: Intent
    confidence: float
    reasons: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    hits: tuple[Hit, ...]
    steps: tuple[Step, ...]
    layers: tuple[Layer, ...]
    tokens: int
    elapsed_ms: float
    times: tuple[NamedTime, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersResponse:
    """The layers that a question can be routed to, and how each is. `tier` is the best of them that works.

    Tiers: `full` (meaning, words and the table of contents), `hybrid`, `keyword`, `contents`, `events`.
    """

    tier: str
    layers: tuple[Layer, ...]
