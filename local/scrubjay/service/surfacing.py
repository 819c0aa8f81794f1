"""Surfacing: what sessions will need is predicted in the background, told with an agent's context, and judged.

Theory of operation. Recall is asked what answers the last words of a session, as an agent of that project would ask: so
nothing is predicted that this agent may not read. What it finds, the newest memories of the project and what was used
after similar beginnings are weighed (`surfacing.prediction`) and kept as predictions of this session, and of the
project's next one, which has said nothing yet: it goes on from the same last words, so recall is asked once for both.
They are bookkeeping of this device: no op says anything of them. What is told is looked up anew, and what does not hold
any more is left out. What became of it is seen in what the agent says and recalls afterwards (`surfacing.outcomes`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import View
from scrubjay.api.caller import Caller, Principal
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import handing
from scrubjay.store import MemoryFilter, Store, Transaction
from scrubjay.store.queries import Queries
from scrubjay.store.queries.surfacing import StoredPrediction, Surfaced
from scrubjay.surfacing import outcomes, prediction, situation
from scrubjay.surfacing.outcomes import Outcome, Told
from scrubjay.surfacing.prediction import Prediction, Record, Signals
from scrubjay.surfacing.situation import Situation
from scrubjay_shared.clock import DAY_MINUTES, Millis
from scrubjay_shared.records import ALWAYS_LOADED, Event, EventType, Memory, MemoryType

NEXT = ""
"""Stands for the session of a project that begins next."""

UNJUDGED = 200
"""Things that were told which one run judges: those of some days."""


TURN_CHARS = 2_000
"""Of one turn or memory: what it is about stands at its beginning."""
_HOUR_MS = 3_600_000
_DAY_MS = DAY_MINUTES * 60_000
_OPEN = {MemoryType.GOAL: 1.0, MemoryType.DECISION: 0.6}
_EVENT_SALIENCE = 0.4
"""Of a turn: below the least salient memory, for nobody chose to keep it."""

Asks = Callable[..., Awaitable[api.RecallResponse]]

Answers = dict[str, Sequence[api.Hit]]
"""What recall found for questions of one project, so that it is asked once for those who go on from the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A thing that may be needed: its words, its time, the turns and sessions it came from, and what its kind says."""

    text: str
    ts: Millis
    turns: Collection[str]
    sessions: Collection[str]
    open: float
    salience: float
    asked: float = 0.0
    like: float = 0.0


@dataclass(frozen=True, slots=True)
class _Use:
    """That a session of a project used a thing, and how."""

    session_id: str
    ref: str
    project: str
    how: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the store says of a session that is predicted for. `asks`: the last words are a prompt of its own."""

    at: Situation
    asks: bool
    turns: frozenset[str]
    memories: Mapping[str, Memory]
    turns_of: Mapping[str, set[str]]
    sessions: Mapping[str, set[str]]
    before: Sequence[tuple[Situation, Collection[str]]]
    newest: Millis
    record: Record


class Surfacing:
    """Predicts what the sessions of one store will need. `recall` is asked without being counted."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, recall: Asks, now: Callable[[], Millis]) -> None:
        self._store = store
        self._policy = policy
        self._recall = recall
        self._now = now
        self._recalled: list[tuple[str | None, str | None, str]] = []

    async def recall(self, caller: Caller, request: api.RecallRequest) -> api.RecallResponse:
        """Answer a question, and note that an agent asked for what was found: it is of use where it was told before."""
        answer: api.RecallResponse = await self._recall(caller, request)
        if caller.principal is Principal.AGENT:
            project = request.project if request.project is not None else caller.project
            session_id = request.session_id if request.session_id is not None else caller.session_id
            self._recalled += [(session_id, project, hit.id) for hit in answer.hits]
            del self._recalled[: -self._policy.work.recalled_hits * self._policy.surfacing.judged]
        return answer

    async def is_behind(self) -> bool:
        """Say whether something was said or recalled that predictions and outcomes do not know of yet."""
        if self._recalled:
            return True
        return await self._store.read(lambda q: q.surfacing.arrived() != q.surfacing.covered())

    async def refresh(self) -> int:
        """Judge what was told, and predict for the sessions that went on. Returns for how many."""
        policy = self._policy.surfacing
        await self._judge()
        since = Millis(self._now() - policy.session_hours * _HOUR_MS)

        def read(q: Queries) -> tuple[tuple[int, int], list[tuple[str, str]]]:
            arrived, covered = q.surfacing.arrived(), q.surfacing.covered()
            upto = covered[0] if arrived[1] == covered[1] else 0  # what was learned may be of any of them
            return arrived, q.surfacing.changed(upto, since=since, limit=policy.sessions_a_run)

        arrived, changed = await self._store.read(read)
        answers: dict[str, Answers] = {project: {} for _, project in changed}
        for session_id, project in changed:
            await self._note_uses(session_id, project)
            await self.predict(project, session_id, answers=answers[project])
        for project, found in answers.items():
            await self.predict(project, None, answers=found)
        await self._store.write(lambda tx: tx.surfacing.cover(*arrived))
        return len(changed)

    async def predict(
        self, project: str, session_id: str | None, *, answers: Answers | None = None
    ) -> list[Prediction]:
        """Predict what a session needs, or with None the project's next one, and keep that. Returns all of it.

        What recall found already for a question is taken from `answers`, and what it finds is put there.
        """
        policy = self._policy.surfacing
        seen = access.view(Caller(principal=Principal.AGENT, project=project, session_id=session_id))
        looked = await self._store.read(partial(self._look, project=project, session_id=session_id, seen=seen))
        candidates = {
            ("memory", ref): _of_memory(memory, looked.turns_of.get(ref, ()), looked.sessions.get(ref, ()))
            for ref, memory in looked.memories.items()
        }
        for question in looked.at.questions:
            hits = await self._answered(project, question, {} if answers is None else answers)
            told = [hit for hit in hits if handing.tells(hit, session_id=session_id, now=self._now())]
            for place, hit in enumerate(told[: policy.hits]):
                found = _of_hit(hit, nearness=prediction.nearness(place, policy), looked=looked)
                known = candidates.get((hit.kind, hit.id))
                candidates[hit.kind, hit.id] = replace(known or found, asked=found.asked, like=found.like)
        made = await self._weighed(candidates, looked)
        stored = [
            StoredPrediction(
                ref=one.ref, kind=one.kind, probability=one.probability, because=one.because, at=self._now()
            )
            for one in made
        ]
        key = session_id or NEXT
        await self._store.write(lambda tx: tx.surfacing.predict(project, key, stored, kept_days=policy.kept_days))
        return made

    async def _answered(self, project: str, question: str, answers: Answers) -> Sequence[api.Hit]:
        """Return what recall finds for a question, as an agent of the project sees it, without what was kept out."""
        if question not in answers:
            request = api.RecallRequest(
                query=question,
                project=project,
                limit=self._policy.surfacing.hits + self._policy.surfacing.turns,  # its own turns are taken out later
                max_tokens=self._policy.limits.recall_tokens,
                rerank=False,
            )
            agent = Caller(principal=Principal.AGENT, project=project)
            hits = (await self._recall(agent, request, counted=False)).hits
            events = [hit.id for hit in hits if hit.kind == "event"]
            kept_out = await self._store.read(partial(_kept_out, event_ids=events))
            answers[question] = [hit for hit in hits if hit.id not in kept_out]
        return answers[question]

    async def due(self, seen: View, project: str, session_id: str | None, *, started: bool) -> list[handing.Entry]:
        """Return what an agent is to be told ahead, the most probable first, and how probable each is.

        At a start that is what was predicted for the project's next session; later, for this one.
        """
        policy, now = self._policy.surfacing, self._now()
        since = Millis(now - policy.kept_days * _DAY_MS)
        key = NEXT if started else session_id or NEXT

        def read(q: Queries) -> list[handing.Entry]:
            kept = [
                Prediction(ref=one.ref, kind=one.kind, probability=one.probability, because=one.because)
                for one in q.surfacing.predictions(project, key, since=since)
            ]
            sure = prediction.sure(kept, self._record(q), policy)
            chars = 2 * self._policy.handing.line_chars
            memories = q.memories.by_id([one.ref for one in sure if one.kind == "memory"], chars=chars)
            events = q.events.by_id([one.ref for one in sure if one.kind == "event"], chars=chars)
            entries: list[handing.Entry] = []
            for one in sure:
                memory, event = memories.get(one.ref), events.get(one.ref)
                if memory is not None and seen.shows(memory) and _may_be_told(memory, now):
                    entries.append(handing.Entry(memory, one.probability))
                if event is not None and seen.shows_event(event) and event.session_id != session_id:
                    entries.append(handing.Entry(event, one.probability))
            return entries

        return await self._store.read(read)

    async def stats(self) -> api.SurfacingStats:
        """Return how much was told ahead in the days that are kept, how much of it was used, and where the floor is."""
        totals, record = await self._store.read(lambda q: (q.surfacing.totals(), self._record(q)))
        judged = {name: found for name, found in totals.items() if name}
        told = sum(count for count, _ in judged.values())
        unused, wasted = judged.get(Outcome.UNUSED.value, (0, 0))
        tokens = sum(spent for _, spent in judged.values())
        return api.SurfacingStats(
            told=told,
            used=told - unused,
            waiting=totals.get("", (0, 0))[0],
            hit_rate=(told - unused) / told if told else None,
            tokens=tokens,
            wasted_tokens=wasted,
            waste=wasted / tokens if tokens else None,
            floor=record.floor(self._policy.surfacing),
            outcomes={name: count for name, (count, _) in sorted(judged.items())},
        )

    async def _judge(self) -> None:
        recalled, self._recalled = self._recalled, []
        now = self._now()

        def read(q: Queries) -> tuple[list[_Use], list[tuple[Surfaced, Outcome]]]:
            uses = _recalls(q, recalled)
            asked = {(use.session_id, use.ref) for use in uses}
            judged = []
            waiting = q.surfacing.unjudged(limit=UNJUDGED)
            turns = {session: self._turns(q, session, waiting) for session in {one.session_id for one in waiting}}
            for one in waiting:
                recalls = (one.session_id, one.ref) in asked
                found = self._outcome(q, one, turns[one.session_id], recalled=recalls, now=now)
                if found is not None:
                    judged.append((one, found))
            return uses, judged

        uses, judged = await self._store.read(read)
        if not judged and not uses:
            return
        uses += [
            _Use(one.session_id, one.ref, one.project, found) for one, found in judged if found is not Outcome.UNUSED
        ]

        def write(tx: Transaction) -> None:
            tx.surfacing.judge([(one.session_id, one.ref, found.value) for one, found in judged])
            tx.surfacing.use([(use.session_id, use.ref, use.project, use.how.value) for use in uses])

        await self._store.write(write)

    async def _note_uses(self, session_id: str, project: str) -> None:
        """Note what a session used of all that it was handed, so that what no session uses is told no more."""

        def read(q: Queries) -> list[tuple[str, Outcome]]:
            noted = q.surfacing.uses(session_id)
            handed = [(ref, at) for ref, at in q.handed.told(session_id) if ref not in noted]
            memories = q.memories.by_id([ref for ref, _ in handed], chars=TURN_CHARS)
            if not memories:
                return []
            since = Millis(min(at for ref, at in handed if ref in memories))
            most = 4 * self._policy.surfacing.unused_turns
            turns = [
                outcomes.turn(said.ts, said.text, is_answer=said.type is not EventType.USER_MESSAGE)
                for said in q.surfacing.answers(session_id, since, limit=most, chars=TURN_CHARS)
            ]
            helped = {ref for ref, at in handed if q.surfacing.helped_since([ref], Millis(at))}
            found: list[tuple[str, Outcome]] = []
            for ref, at in handed:
                if ref in memories:
                    told = Told(ref=ref, at=Millis(at), text=memories[ref].content)
                    uses = {Outcome.HELPED} if ref in helped else set()
                    how = outcomes.outcome(told, turns, uses, self._policy.surfacing, now=self._now())
                    if how is not None and how is not Outcome.UNUSED:
                        found.append((ref, how))
            return found

        used = await self._store.read(read)
        if used:
            await self._store.write(
                lambda tx: tx.surfacing.use([(session_id, ref, project, how.value) for ref, how in used])
            )

    def _turns(self, q: Queries, session_id: str, told: Sequence[Surfaced]) -> list[outcomes.Turn]:
        """Return the turns of a session since the first of what it was told that still waits, not all of them."""
        since = min(one.at for one in told if one.session_id == session_id)
        most = 4 * self._policy.surfacing.unused_turns
        return [
            outcomes.turn(said.ts, said.text, is_answer=said.type is not EventType.USER_MESSAGE)
            for said in q.surfacing.answers(session_id, since, limit=most, chars=TURN_CHARS)
        ]

    def _outcome(
        self, q: Queries, one: Surfaced, turns: Sequence[outcomes.Turn], *, recalled: bool, now: Millis
    ) -> Outcome | None:
        """Return what became of a thing that was told, None while that may still change."""
        uses = set()
        if recalled or one.ref in q.surfacing.uses(one.session_id):
            uses.add(Outcome.RECALLED)
        if one.kind == "memory" and q.surfacing.helped_since([one.ref], one.at):
            uses.add(Outcome.HELPED)
        read = q.memories.by_id if one.kind == "memory" else q.events.by_id
        found: Mapping[str, Memory | Event] = read([one.ref], chars=TURN_CHARS)
        thing = found.get(one.ref)
        text = "" if thing is None else thing.content if isinstance(thing, Memory) else thing.text
        told = Told(ref=one.ref, at=one.at, text=text)
        return outcomes.outcome(told, turns, uses, self._policy.surfacing, now=now)

    def _look(self, q: Queries, project: str, session_id: str | None, seen: View) -> _Seen:
        """Read what a prediction is made of, in one snapshot."""
        policy, now = self._policy.surfacing, self._now()
        last = session_id
        if last is None:
            before = q.handed.session_before(project, None)
            last = None if before is None or not seen.shows_session(before) else before.id
        turns = [] if last is None else q.surfacing.last_turns(last, limit=policy.turns, chars=TURN_CHARS)
        page, _ = q.memories.page(
            MemoryFilter(project=project, session_id=session_id),
            after=None,
            limit=policy.looked_at,
            chars=self._policy.limits.page_chars,
        )
        used = q.surfacing.used_in(project, without=session_id, sessions=policy.sessions_before)
        more = q.memories.by_id([ref for refs in used.values() for ref in refs])
        memories = {
            memory.id: memory for memory in (*page, *more.values()) if seen.shows(memory) and _may_be_told(memory, now)
        }
        sources = q.surfacing.sessions_of(memories)
        own = {ref for ref, sessions in sources.items() if session_id is not None and sessions == {session_id}}
        kept = {ref: memory for ref, memory in memories.items() if ref not in own}
        offset = self._utc_offset()
        beginnings = [
            (q.surfacing.beginning(session, limit=policy.beginnings, chars=policy.question_chars), refs)
            for session, refs in used.items()
        ]
        at = situation.situation(turns, now=now, utc_offset=offset, chars=policy.question_chars)
        return _Seen(
            at=at,
            asks=session_id is not None and any(turn.type is EventType.USER_MESSAGE for turn in turns),
            turns=frozenset(turn.id for turn in turns),
            memories=kept,
            turns_of=q.surfacing.turns_of(kept),
            sessions=sources,
            before=[(_beginning(began, policy.question_chars, offset), refs) for began, refs in beginnings if began],
            newest=q.surfacing.newest(project),
            record=self._record(q),
        )

    async def _weighed(self, candidates: Mapping[tuple[str, str], _Candidate], looked: _Seen) -> list[Prediction]:
        policy, at = self._policy.surfacing, looked.at
        sessions = {session for one in candidates.values() for session in one.sessions}
        refs = [ref for _, ref in candidates]
        branches, counts = await self._store.read(
            lambda q: (q.surfacing.branches(sessions), q.surfacing.use_counts(refs))
        )

        def work() -> list[Prediction]:
            follows = prediction.followed(at, looked.before)
            signals = {key: signals_of(key, one, follows) for key, one in candidates.items()}
            turns = {key: one.turns for key, one in candidates.items()}
            return prediction.predicted(signals, looked.record, policy, turns=turns)

        def signals_of(key: tuple[str, str], one: _Candidate, follows: Mapping[str, float]) -> Signals:
            return Signals(
                asked=one.asked,
                like=one.like,
                memory=float(key[0] == "memory"),
                paths=_share(situation.paths_of(one.text), at.paths),
                fresh=prediction.freshness(one.ts, looked.newest, policy),
                followed=follows.get(key[1], 0.0),
                used=min(1.0, counts.get(key[1], 0) / policy.used_full),
                open=one.open,
                branch=float(at.branch is not None and at.branch in {branches.get(each) for each in one.sessions}),
                salience=one.salience,
            )

        return await asyncio.to_thread(work)

    def _record(self, q: Queries) -> Record:
        policy = self._policy.surfacing
        since = Millis(self._now() - policy.judged_days * _DAY_MS)
        found = q.surfacing.outcomes(since=since, limit=policy.judged)
        return Record(
            told=len(found),
            used=sum(outcome != Outcome.UNUSED.value for _, outcome in found),
            expected=sum(probability for probability, _ in found),
        )

    def _utc_offset(self) -> int:
        return time.localtime(self._now() / 1000).tm_gmtoff // 60


def _kept_out(q: Queries, event_ids: Sequence[str]) -> set[str]:
    return q.surfacing.kept_out(event_ids)


def _recalls(q: Queries, recalled: Iterable[tuple[str | None, str | None, str]]) -> list[_Use]:
    """Return what agents recalled as uses; one that names no session was in the one of its project that spoke last."""
    found: list[_Use] = []
    latest: dict[str, str | None] = {}
    for session_id, project, ref in recalled:
        if project is None:
            continue
        if session_id is None and project not in latest:
            last = q.handed.session_before(project, None)
            latest[project] = None if last is None else last.id
        if (session := session_id or latest[project]) is not None:
            found.append(_Use(session, ref, project, Outcome.RECALLED))
    return found


def _may_be_told(memory: Memory, now: Millis) -> bool:
    """Say whether a memory holds, and is not loaded anyway."""
    return handing.holds(memory, now) and memory.layer not in ALWAYS_LOADED


def _beginning(turns: Sequence[Event], chars: int, utc_offset: int) -> Situation:
    """Return what a session was at when it began."""
    return situation.situation(turns, now=turns[-1].ts, utc_offset=utc_offset, chars=chars)


def _of_memory(memory: Memory, turns: Iterable[str], sessions: Iterable[str]) -> _Candidate:
    return _Candidate(
        text=memory.content[:TURN_CHARS],
        ts=memory.created_at,
        turns=frozenset(turns),
        sessions=frozenset(sessions),
        open=_OPEN.get(memory.type, 0.0),
        salience=memory.salience,
    )


def _of_hit(hit: api.Hit, *, nearness: float, looked: _Seen) -> _Candidate:
    """Return a hit as a candidate. That the last words answer themselves says nothing for them."""
    is_own = bool(hit.read_from) and {source.event_id for source in hit.read_from} <= looked.turns
    return _Candidate(
        text=hit.text[:TURN_CHARS],
        ts=hit.ts,
        turns=frozenset((hit.id,)) if hit.kind == "event" else frozenset(source.event_id for source in hit.read_from),
        sessions=frozenset(source.session_id for source in hit.read_from),
        open=_OPEN.get(MemoryType(hit.type), 0.0) if hit.kind == "memory" else 0.0,
        salience=_EVENT_SALIENCE if hit.salience is None else hit.salience,
        asked=nearness if looked.asks and not is_own else 0.0,
        like=nearness if not looked.asks and not is_own else 0.0,
    )


def _share(some: Collection[str], of: Collection[str]) -> float:
    """Return the share of what a thing names that was spoken of."""
    return len(set(some) & set(of)) / len(some) if some else 0.0
