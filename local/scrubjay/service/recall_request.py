"""A request for recall becomes a plan: what is asked, by which stages it is answered, and what may be seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.index.documents import KINDS
from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval.filters import Filters
from scrubjay.retrieval.query import Query, mentions
from scrubjay.service.paging import check_times
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.text import query_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrasing:
    """The question in one wording. `query` has no vector yet.

    `name` is what a memory that it names is called, `mentions` what others may be called that it speaks of.
    """

    query: Query
    name: str
    mentions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one request is answered: in which phrasings, the question itself first.

    `embeds`, `reranks` and `hybrid` say which stages it goes through, `fuses` whether it asks for several kinds, which
    are ranked apart and become one order.
    """

    phrasings: tuple[Phrasing, ...]
    filters: Filters
    mode: str
    limit: int
    neighbours: int
    max_tokens: int
    hybrid: bool
    embeds: bool
    reranks: bool
    fuses: bool


def planned(request: api.RecallRequest, seen: View, policy: MemoryPolicy, now: Millis) -> Plan:
    """Return how a request is answered at a time, from what its caller sees. Raises as `checked`."""
    texts = checked(request, seen, policy)
    asks = bool(texts[0].strip())
    hybrid = request.mode is api.Mode.HYBRID
    today = now if request.as_of is None else request.as_of
    return Plan(
        phrasings=tuple(_phrasing(text, today, policy) for text in texts),
        filters=Filters(
            caller_project=seen.project,
            caller_session=seen.session_id,
            kinds=frozenset(request.kinds),
            types=frozenset(kind.value for kind in request.types) or None,
            min_salience=request.min_salience,
            agent=request.agent,
            scope=None if request.scope is None else request.scope.value,
            resource_id=request.resource_id,
            topic=request.topic,
            since=request.since,
            until=request.until,
            as_of=request.as_of,
        ),
        mode=request.mode.value,
        limit=request.limit,
        neighbours=request.neighbours,
        max_tokens=policy.limits.recall_tokens if request.max_tokens is None else request.max_tokens,
        hybrid=hybrid,
        embeds=asks and request.mode is not api.Mode.KEYWORD,
        reranks=asks and hybrid and request.rerank,
        fuses=asks and hybrid and len(set(request.kinds)) > 1,
    )


def _phrasing(text: str, today: Millis, policy: MemoryPolicy) -> Phrasing:
    from scrubjay.dates import find_dates  # noqa: PLC0415  # its patterns would be a sixtieth of the daemon's start

    name = " ".join(text.split())
    return Phrasing(
        query=Query(
            text=text,
            tokens=tuple(query_tokens(text)),
            dates=tuple((found.start, found.end) for found in find_dates(text, today, local_offset(today))),
        ),
        name=name if len(name) <= policy.limits.max_name_chars else "",
        mentions=mentions(name),
    )


def checked(request: api.RecallRequest, seen: View, policy: MemoryPolicy) -> tuple[str, ...]:
    """Return the phrasings. Raises InvalidError, TooLargeError or DeniedError for what cannot be answered."""
    work = policy.work
    if not 1 <= request.limit <= work.recalled_hits:
        raise InvalidError(
            f"limit must be between 1 and {work.recalled_hits}, got {request.limit}",
            hint="ask for fewer hits, or leave the limit out",
        )
    if not 0 <= request.neighbours <= work.neighbours:
        raise InvalidError(
            f"neighbours must be between 0 and {work.neighbours}, got {request.neighbours}",
            hint="0, the default, gives the hits alone",
        )
    intake.check_salience(request.min_salience)
    check_times(request.since, request.until)
    intake.check_time("as_of", request.as_of)
    if request.max_tokens is not None and request.max_tokens < 1:
        raise InvalidError(
            f"max_tokens must be 1 or more, got {request.max_tokens}", hint="leave it out for the usual budget"
        )
    longest = max(len(text) for text in (request.query, *request.also))
    if longest > policy.limits.max_query_chars:
        raise TooLargeError(
            f"a question must have at most {policy.limits.max_query_chars} characters, got {longest}",
            hint="ask for what you want to know in a few sentences",
        )
    if len(request.also) > policy.limits.also:
        raise InvalidError(
            f"also takes at most {policy.limits.also} further phrasings, got {len(request.also)}",
            hint="give those that differ most from each other",
        )
    if not request.kinds or not set(request.kinds) <= {kind.name for kind in KINDS}:
        raise InvalidError(
            f"kinds must be memory, event or both, got {', '.join(request.kinds)[:80] or 'an empty list'}",
            hint="leave it out to search both",
        )
    access.check_resource(seen, request.resource_id)
    return distinct([intake.valid(text) for text in (request.query, *request.also)])


def distinct(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that say something, each once; of none that do, the first.

    >>> distinct(["Which store?", "", "which  store?", "the shop's database"])
    ('Which store?', "the shop's database")
    """
    found: dict[str, str] = {}
    for text in texts:
        if key := " ".join(text.split()).casefold():
            found.setdefault(key, text)
    return tuple(found.values()) or (texts[0],)


def local_offset(now: Millis) -> int:
    """Return this machine's minutes east of UTC: "yesterday" in a question is the person's."""
    return time.localtime(now / 1000).tm_gmtoff // 60
