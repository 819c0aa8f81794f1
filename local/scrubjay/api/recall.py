"""Recall: a question, what may answer it, and the hits."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import MemoryType, Scope

REVIEWS = {"waiting": "not reviewed yet", "disputed": "disputed", "rejected": "rejected"}
"""What the state of a memory's review is called beside it; what was accepted needs no word."""

WHOSE = {"import": "from a file", "agent": "an agent's words", "untrusted": "a tool's output, not verified"}
"""What is said of a hit that is not the person's own words, by its trust."""


class Mode(StrEnum):
    """How recall ranks: the hand-set hybrid, pure BM25, or cosine plus weighted token overlap with a topic filter."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A question, and what may answer it.

    `since`/`until` bound the time of the candidates; dates in the question itself only favour candidates near them.
    `as_of` asks what was known and held just before that moment: what was learned later is left out, and what was
    replaced only later counts as current, in the words it has today. "Yesterday" is then the day before that moment.
    `kinds` is any of "memory" and "event". `neighbours` asks for that many events on either side of each hit.
    `topic` leaves only memories of that topic.
    `max_tokens` bounds the whole answer's texts and is never exceeded. `min_salience` applies to memories.
    `also` are up to three other phrasings of the question: what any of them finds becomes one list, which the reranking
    model reads once. One that is empty or said already counts for nothing.
    `scope` narrows; a scope wider than the caller's, or another project's `resource_id`, is refused. `rerank` false
    leaves the reranking model out of mode hybrid; true or not, it takes part only where it is installed and in use.
    """

    query: str
    also: tuple[str, ...] = ()
    limit: int = 20
    mode: Mode = Mode.HYBRID
    project: str | None = None
    session_id: str | None = None
    scope: Scope | None = None
    resource_id: str | None = None
    agent: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    as_of: Millis | None = None
    types: tuple[MemoryType, ...] = ()
    topic: str | None = None
    kinds: tuple[str, ...] = ("memory", "event")
    min_salience: float = 0.0
    max_tokens: int | None = None
    neighbours: int = 0
    rerank: bool = True


class Beside(StrEnum):
    """Which side of an exchange with an agent a quote is: what somebody asked, or the agent's last word on it."""

    ASKED = "asked"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A line of evidence: who said it, when, and the words: of a short turn all, of a long one what answers.

    `cited` is where in `text` ([start, end), characters) the words stand that a memory was read from. `text` is ""
    where the hit says the same words. `beside` says that nothing was read from it: it is the other side of the
    exchange. None for all others.
    """

    event_id: str
    session_id: str
    ts: Millis
    utc_offset: int
    speaker: str
    text: str
    beside: Beside | None = None
    cited: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One answer. `parts` add up to `score`. `truncated` is true when its text was cut, to the budget or as too long.

    `kind` is "memory" or "event"; for an event, `text` is its text and `type` its event type. Of a long one it is the
    passage that answers, which stands at `span` ([start, end), characters) of the whole text, without lines that say
    nothing, and of an agent's turn also its last words.
    `archive` is the archive that a memory was put away into: old detail, found by its own words.
    `confidence` is how likely this hit answers, in [0, 1]; None in a mode other than hybrid. `superseded_by` took the
    place of a memory, and `questioned_by` may have: a later one that may contradict it, in part or for a time. Of an
    event `questioned_by` is the memory that holds since all that was learned from it was replaced.
    `sources` are its evidence: of a memory the turns that it was read from, of an event that event without its text,
    and of work with an agent the other side of the exchange too (`Quote.beside`).
    `review` is that of the memory: "waiting" and why, for one that nobody has looked at yet. `author` is who wrote it,
    where that is another member of a team or a limited device.
    """

    id: str
    kind: str
    text: str
    score: float
    ts: Millis
    type: str
    parts: dict[str, float] = field(default_factory=dict)
    name: str | None = None
    scope: str | None = None
    resource_id: str | None = None
    salience: float | None = None
    trust: str | None = None
    review: str | None = None
    superseded_by: str | None = None
    questioned_by: str | None = None
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    sources: tuple[Quote, ...] = ()
    neighbours: tuple[Quote, ...] = ()
    truncated: bool = False
    span: tuple[int, int] | None = None
    confidence: float | None = None
    archive: str | None = None
    author: str | None = None

    @property
    def read_from(self) -> tuple[Quote, ...]:
        """The sources without the other sides of exchanges: what it says stands in them."""
        return tuple(quote for quote in self.sources if quote.beside is None)

    @property
    def told_in(self) -> tuple[Quote, ...]:
        """The turns that it is told with: one, or a question and its answer; none where it says all that they say."""
        return tuple(quote for quote in self.sources if quote.cited is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResponse:
    """Hits, best first. `mode` is what was really done.

    `confidence` is how near what is asked comes to what is stored, in [0, 1]: more likeness and more words in common
    never lower it. It compares questions, and does not tell what is known from what is not: a detail of a familiar
    matter that was never said comes as near as one that was. None in a mode other than hybrid, and without a question.
    `known`, which claimed to tell, is None; it stays for programs that read it.

    `notes` say what was missing: no model, texts not embedded yet, a project that nothing belongs to.
    `tokens` estimates what the texts cost a model's context; `left_out` counts hits the budget had no room for.
    `stages_ms` splits `elapsed_ms`: "embed" (the question's vector), "rank", "rerank" (0 where no model took part) and
    "read" (the texts of the hits); what is left is checking and counting.
    """

    hits: tuple[Hit, ...]
    mode: str
    tokens: int
    elapsed_ms: float
    left_out: int = 0
    notes: tuple[str, ...] = ()
    stages_ms: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    known: bool | None = None
