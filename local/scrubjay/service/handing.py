"""What agents are handed without having asked: at a session's start and beside a prompt, to each session once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller
from scrubjay.handing import start
from scrubjay.lifecycle import proposals
from scrubjay.lifecycle.consolidation import GUESSED, MAY_SUPERSEDE
from scrubjay.lifecycle.trust import RULE_TYPES, is_held_back, may_hand, may_hand_text
from scrubjay.policy import HandingPolicy, MemoryPolicy
from scrubjay.retrieval import handing
from scrubjay.service.starts import Starts
from scrubjay.store import Store, Transaction
from scrubjay.store.queries import Queries
from scrubjay.store.queries.surfacing import Surfaced
from scrubjay.tracing import Tracer
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Memory, ReviewState, Trust, review_state
from scrubjay_shared.text import estimate_tokens

log = logging.getLogger(__name__)

LAST_TURNS = 12
"""Turns of the last session among which the last words of each side are looked for."""

LAST_CHARS = 4_000
"""Of each of them: what is left to do stands at the end of an answer, and most answers are shorter."""

ASK = "memory_search or `scrubjay recall` finds them; memory_get opens an [id]."
"""How an agent asks for more."""

Asks = Callable[[Caller, api.RecallRequest], Awaitable[api.RecallResponse]]
Bears = Callable[[str, Sequence[str]], Awaitable[Sequence[float] | None]]
"""How far each of some texts bears on a prompt, as logits; None without a model that is loaded."""
Predicted = Callable[..., Awaitable[list[handing.Entry]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Who is to be handed something, and beside which prompt: none at a session's start.

    `always` are the layers that are always loaded, and `had` those that the session was handed before: what either
    says is not told a second time.
    """

    project: str | None
    session_id: str | None
    prompt: str | None = None
    max_tokens: int | None = None
    always: str = ""
    had: str = ""
    given: frozenset[str] = field(default_factory=frozenset)


class Handing:
    """What the agents of one store are handed."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        recall: Asks,
        predicted: Predicted,
        starts: Starts,
        warm: Callable[[], Awaitable[None]],
        bears: Bears,
        now: Callable[[], Millis],
        tracer: Tracer,
    ) -> None:
        self._store = store
        self._policy = policy
        self._recall = recall
        self._predicted = predicted
        self._starts = starts
        self._warm = warm
        self._bears = bears
        self._now = now
        self._tracer = tracer
        self._late: set[asyncio.Future[Any]] = set()

    async def chosen(self, caller: Caller, wish: Wish) -> tuple[tuple[api.ContextItem, ...], str]:
        """Return what an agent is to be handed, and the block that holds it; nothing and "" where it is nothing."""
        policy, now = self._policy.handing, self._now()
        utc_offset = time.localtime(now / 1000).tm_gmtoff // 60
        if wish.prompt is None:
            items, known = await self._at_start(caller, wish, policy, now=now, utc_offset=utc_offset)
            most = wish.max_tokens or policy.start_tokens
            more = _more(known, items) if items else ""
            return handing.fitting(items, wish.given, policy, always=wish.always, max_tokens=most, more=more)
        answer, guessed = await self._answer(caller, wish, policy) or (None, {})
        items = []
        if answer is not None:
            items = handing.recalled(
                answer, policy, session_id=wish.session_id, now=now, utc_offset=utc_offset, guessed=guessed
            )
        items += await self._surfaced(caller, wish, items, utc_offset=utc_offset)
        most = wish.max_tokens or policy.prompt_tokens
        return handing.fitting(items, wish.given, policy, always=wish.always, max_tokens=most)

    async def deliver(self, caller: Caller, wish: Wish, *, anew: bool = False) -> str:
        """Return what a session is to be handed and was not handed before, and note that it was.

        `anew`: the session's context is gone, and what it was handed with it.
        """
        session_id = wish.session_id or ""
        if wish.prompt is None:
            self._later(asyncio.ensure_future(self._warm()))
        given = set() if anew else await self._store.read(lambda q: q.handed.refs(session_id))
        layers = hashlib.sha256(wish.always.encode()).hexdigest()[:26] if wish.always else ""
        wish = Wish(
            project=wish.project,
            session_id=wish.session_id,
            prompt=wish.prompt,
            max_tokens=wish.max_tokens,
            always="" if layers in given else wish.always,
            had=wish.always if layers in given else "",
            given=frozenset(given),
        )
        with self._tracer.span("inject", "start" if wish.prompt is None else "prompt") as noting:
            items, block = await self.chosen(caller, wish)
            noting.session, noting.ids = wish.session_id, [item.ref for item in items]
        refs = [item.ref for item in items] + ([layers] if wish.always else [])
        ahead = [_told(item, wish.project or "", session_id) for item in items if item.probability is not None]

        def note(tx: Transaction) -> None:
            _noted(tx, session_id, refs, self._policy.handing, anew=anew)
            if ahead:
                tx.surfacing.tell(ahead, kept_days=self._policy.surfacing.outcome_days)

        if refs or (anew and session_id):
            await self._store.write(note)
        return block

    async def _at_start(
        self, caller: Caller, wish: Wish, policy: HandingPolicy, *, now: Millis, utc_offset: int
    ) -> tuple[list[api.ContextItem], int]:
        """Return what a start may hold, first things first, and how many memories there are to choose from."""
        if wish.project is None:
            return [], 0
        seen = access.view(caller, project=wish.project, session_id=wish.session_id)
        project, layers = wish.project, wish.always or wish.had
        predicted = await self._predicted(seen, project, wish.session_id, started=True)
        first = [one for one in predicted if isinstance(one.thing, Memory)][: self._policy.surfacing.at_start]
        probable = {one.thing.id: one.probability for one in first}
        best = await self._starts.best(seen, project, layers=layers, probable=probable)
        items = self._starts.lines(start.brief(best.known, project), max_tokens=policy.brief_tokens)
        items += await self._left_open(seen, project, wish.session_id, layers, now=now, utc_offset=utc_offset)
        in_brief = {item.ref for item in items}
        return items + self._starts.lines(one for one in best.known if one.memory.id not in in_brief), best.among

    async def _left_open(
        self, seen: View, project: str, session_id: str | None, layers: str, *, now: Millis, utc_offset: int
    ) -> list[api.ContextItem]:
        """Return what the last session of a project left open, as one line; nothing where it came to an end."""
        policy = self._policy.handing
        before = await self._store.read(lambda q: q.handed.session_before(project, session_id))
        if before is None or not seen.shows_session(before):
            return []
        turns = await self._store.read(lambda q: q.handed.last_words(before.id, limit=LAST_TURNS, chars=LAST_CHARS))

        def read() -> list[api.ContextItem]:
            said = [own for one in turns if (own := self._said(one)) is not None]
            end = proposals.unfinished(said, self._policy.layers, now=now)
            if end is None or handing.stands_in(end.text, layers):
                return []
            newer = {one.id for one in takewhile(lambda one: one.id != end.event.id, turns)}
            if newer - {one.id for one in said}:  # what may not be told came after it
                return []
            if end.event.type is EventType.USER_MESSAGE and not handing.asks_enough(end.text, policy):
                return []
            return [handing.left_open(before, end.event, end.text, policy, now=now, utc_offset=utc_offset)]

        return await asyncio.to_thread(read)

    async def _surfaced(
        self, caller: Caller, wish: Wish, items: Sequence[api.ContextItem], *, utc_offset: int
    ) -> list[api.ContextItem]:
        """Return what will probably be needed and is told neither now for another reason, nor was before."""
        if wish.project is None:
            return []
        seen = access.view(caller, project=wish.project, session_id=wish.session_id)
        predicted = await self._predicted(seen, wish.project, wish.session_id, started=False)
        layers = wish.always or wish.had
        entries = await asyncio.to_thread(
            lambda: [one for one in predicted if self._may_surface(one.thing) and not _is_loaded(one.thing, layers)]
        )
        ids = [entry.thing.id for entry in entries]
        guessed, withheld = await self._questioned(ids)
        told = {item.ref for item in items} | withheld
        most = self._policy.surfacing.at_prompt
        # Of these, what was told before is left out later, and nothing lesser comes in its place.
        first = [entry for entry in entries if entry.thing.id not in told][:most]
        return handing.surfaced(first, self._policy.handing, utc_offset=utc_offset, guessed=guessed)

    async def _questioned(self, ids: Sequence[str]) -> tuple[Mapping[str, str], AbstractSet[str]]:
        """Return which of some memories are questioned by a guess, and by what, and which are by a rule too."""

        def read(q: Queries) -> tuple[Mapping[str, str], AbstractSet[str]]:
            questioned = q.conflicts.questioned(MAY_SUPERSEDE, ids, self._now())
            withheld = q.conflicts.questioned(MAY_SUPERSEDE, list(questioned), self._now(), but=GUESSED).keys()
            return {old: new for old, new in questioned.items() if old not in withheld}, withheld

        return await self._store.read(read) if ids else ({}, set())

    async def _answer(
        self, caller: Caller, wish: Wish, policy: HandingPolicy
    ) -> tuple[api.RecallResponse, Mapping[str, str]] | None:
        """Return what recall finds for a prompt in the time that a hook waits; None where it takes longer.

        With it comes what of it a guess questions. It goes on then, and what it loads is there for the next prompt.
        """
        prompt = (wish.prompt or "")[: self._policy.limits.max_query_chars]
        if not handing.asks_enough(prompt, policy):
            return None
        request = api.RecallRequest(
            query=prompt,
            project=wish.project,
            session_id=wish.session_id,
            limit=policy.considered,
            max_tokens=self._policy.limits.recall_tokens,
            rerank=False,
        )
        began = time.monotonic()
        asking = asyncio.ensure_future(self._recall(caller, request))
        done, _ = await asyncio.wait({asking}, timeout=policy.wait_seconds)
        if not done:
            log.info("handing: recall took longer than ms=%d", policy.wait_seconds * 1000)
            self._later(asking)
            return None
        found = asking.result()
        left = policy.wait_seconds - (time.monotonic() - began)
        # A session of no project is in none that is shared with who wrote it.
        shared = [hit for hit in found.hits if wish.project is not None or hit.author is None]
        now = self._now()
        guessed, _ = await self._questioned([hit.id for hit in shared if hit.questioned_by is not None])
        hits = await asyncio.to_thread(
            lambda: [
                hit
                for hit in shared
                if self._may_tell(hit) and handing.tells(hit, session_id=wish.session_id, now=now, guessed=guessed)
            ]
        )
        return replace(found, hits=tuple(await self._bearing(prompt, hits, policy, seconds=left))), guessed

    async def _bearing(
        self, prompt: str, hits: Sequence[api.Hit], policy: HandingPolicy, *, seconds: float
    ) -> list[api.Hit]:
        """Return the hits that bear on a prompt, best first: the reranking model reads the first, where it is loaded.

        Recall says how likely a hit answers a question; most prompts are no question. Where the model is not there, or
        takes longer than a hook waits, recall's word has to do.
        """
        telling = await asyncio.to_thread(lambda: [hit for hit in hits if handing.is_telling(hit, policy)])
        likely = [hit for hit in telling if (hit.confidence or 0.0) >= policy.read_floor]
        read = [hit for hit in likely if len(hit.text) <= policy.read_chars][: policy.read]
        if not read or seconds <= 0:
            return telling
        scoring = asyncio.ensure_future(self._bears(prompt, [hit.text for hit in read]))
        done, _ = await asyncio.wait({scoring}, timeout=seconds)
        if not done:
            self._later(scoring)
            return telling
        logits = scoring.result()
        return telling if logits is None else handing.bearing(telling, read, logits, policy)

    def _may_tell(self, hit: api.Hit) -> bool:
        """Say whether a hit may be told to who did not ask for it: not as a rule of somebody else's."""
        trust = Trust(hit.trust or Trust.UNTRUSTED.value)
        if is_held_back(hit.review):
            return False
        if review_state(hit.review) is ReviewState.ACCEPTED:
            return True
        if hit.kind == "event":
            return self._may_quote(hit.text, trust)
        return may_hand_text(
            hit.text, trust, self._policy.review, is_rule=hit.type in RULE_TYPES, is_own=hit.author is None
        )

    def _may_surface(self, thing: Memory | Event) -> bool:
        """Say whether what was predicted may be told: as what recall finds for a prompt."""
        if isinstance(thing, Event):
            return self._may_quote(thing.text, thing.trust)
        return may_hand(thing, self._policy.review)

    def _may_quote(self, text: str, trust: Trust) -> bool:
        """Say whether a turn may be quoted unasked. Of a person's turn that holds a paste, nobody knows whose it is."""
        is_pasted = trust is Trust.USER and _own_words(text) != " ".join(text.split())
        return may_hand_text(text, Trust.IMPORT if is_pasted else trust, self._policy.review)

    def _said(self, event: Event) -> Event | None:
        """Return an event with what was said in it, without what was pasted; None where that is not to be told."""
        told = replace(event, text=_own_words(event.text)) if event.trust is Trust.USER else event
        return told if may_hand_text(told.text, told.trust, self._policy.review) else None

    async def close(self) -> None:
        """Let go of what still goes on."""
        for work in tuple(self._late):
            work.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    def _later(self, work: asyncio.Future[Any]) -> None:
        """Let something go on that nobody waits for."""
        self._late.add(work)
        work.add_done_callback(self._late.discard)
        work.add_done_callback(_end)


def _more(known: int, items: Sequence[api.ContextItem]) -> str:
    """Return the line that says how much more is known, and how to ask for it; "" where that is nothing."""
    more = known - sum(item.kind == "memory" for item in items)
    if more <= 0:
        return ""
    return f"{more} more {'memory' if more == 1 else 'memories'}: {ASK}"


def _is_loaded(thing: Memory | Event, layers: str) -> bool:
    return handing.stands_in(thing.content if isinstance(thing, Memory) else thing.text, layers)


def _own_words(text: str) -> str:
    """Return what a person said in a turn, without what they pasted, with plain white space."""
    # What tells the two apart is an eighth of the daemon's start.
    from scrubjay.distill.pasted import own_words  # noqa: PLC0415

    return " ".join(" ".join(text[span.start : span.end].split()) for span in own_words(text)).strip()


def _end(work: asyncio.Future[Any]) -> None:
    """Look at how it ended, so that nobody misses its error."""
    if not work.cancelled() and (error := work.exception()) is not None:
        log.warning("handing: what went on failed error=%s", type(error).__qualname__)


def _told(item: api.ContextItem, project: str, session_id: str) -> Surfaced:
    return Surfaced(
        session_id=session_id,
        ref=item.ref,
        project=project,
        kind=item.kind,
        probability=item.probability or 0.0,
        tokens=estimate_tokens(item.text),
        at=item.ts,
    )


def _noted(tx: Transaction, session_id: str, refs: Sequence[str], policy: HandingPolicy, *, anew: bool) -> None:
    if anew:
        tx.handed.clear(session_id)
    tx.handed.note(session_id, refs, kept_days=policy.kept_days)
