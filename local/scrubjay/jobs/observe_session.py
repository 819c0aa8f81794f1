"""One session observed: its next turns go to the Writer, and what its answer promotes is stored in one transaction.

The Writer is asked outside of any transaction. What it answered is stored together with the mark of how far the session
was read: a crash before that asks again, a crash after it does not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from scrubjay import redaction
from scrubjay.distill.answer import Answered, Promoted, read_answer
from scrubjay.distill.directives import DIRECTIVE
from scrubjay.distill.observe import SOURCE, Observation, distill, was_said
from scrubjay.distill.observer_prompt import Question, fitting, question
from scrubjay.distill.reading import Reader
from scrubjay.ingest import intake
from scrubjay.jobs import successions
from scrubjay.jobs.alike import Alike
from scrubjay.jobs.distill_session import SessionDistiller
from scrubjay.jobs.relearn import put_away
from scrubjay.jobs.session_commit import Again, Reading, SessionCommit, Stored
from scrubjay.jobs.session_locks import SessionLocks
from scrubjay.lifecycle.relearning import By, lesser
from scrubjay.policy import MemoryPolicy
from scrubjay.store import Cause, Queries, Store, Transaction
from scrubjay.writer.budgeted import BudgetedWriter
from scrubjay.writer.port import Prompt
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, Memory, Scope

log = logging.getLogger(__name__)

JOB = "observe"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The next events of a session, the ids of those that are new, and the arrival number up to which they cover it."""

    events: Sequence[Event]
    new: frozenset[str]
    upto: int


class SessionObserver:
    """Observes the sessions of one store."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        stopping: asyncio.Event,
        *,
        writer: BudgetedWriter,
        alike: Alike,
        locks: SessionLocks,
        reader: Callable[[], Awaitable[Reader]],
    ) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping
        self._writer = writer
        self._alike = alike
        self._locks = locks
        self._commit = SessionCommit(store, policy, stopping, alike)
        self.answered = 0
        """How many questions the Writer has answered."""
        self._patterns = SessionDistiller(store, policy, stopping, alike, locks=locks, reader=reader)

    async def observe(
        self, session_id: str, names: Mapping[str, str], cause: Cause, *, halvings: int = 0
    ) -> int | None:
        """Read the next turns of one session. Returns how many memories are new, None where nothing is left to read.

        With `halvings` a question shows half as many turns, and half of these. Raises what the Writer raises: then
        nothing is stored, and the turns wait as before.
        """
        async with self._locks.of(session_id):
            step = await self._next(session_id, halvings=halvings)
            if step is None:
                return None
            stored = await self._observed(session_id, step, cause, person_of(names))
        if stored is not None:
            return len(stored.new)
        if self._stopping.is_set():
            return None
        return await self._patterns.distill(session_id, names, cause)

    async def again(
        self, session_id: str, names: Mapping[str, str], cause: Cause, again: Again, *, halvings: int = 0
    ) -> Stored | None:
        """Read the next turns once more; None where none is left, or nothing was written. Raises as `observe`.

        Raises InvalidError where the answer holds no directive: patterns have read these turns before.
        """
        async with self._locks.of(session_id):
            step = await self._next(session_id, again.after, halvings=halvings, again=again.upto)
            if step is None:
                return None
            return await self._observed(session_id, step, cause, person_of(names), again)

    async def from_the_beginning(
        self, session_id: str, names: Mapping[str, str], cause: Cause, upto: int, told: Collection[str]
    ) -> int:
        """Read the beginning of a session, up to an arrival number, where lesser readers read it and it is not long.

        What they made of it ends where the Writer has read all of that and does not say it again. Returns how many
        memories are new. Raises as `again`, and then what they made stays.
        """

        def ending(queries: Queries) -> set[str]:
            found = queries.relearning.of_session(session_id, told, lesser(By.WRITER))
            return {
                one
                for one, (learned, kept) in found.items()
                if kept is None and learned.sessions.keys() == {session_id} and learned.sessions[session_id] <= upto
            }

        replaced = await self._store.read(ending)
        if not replaced:
            return 0
        if await self._store.read(lambda q: q.relearning.chars(session_id, upto)) > self._policy.observer.again_chars:
            return 0
        after = made = 0
        stands: set[str] = set()

        def mark(_: Transaction, n: int, said: Collection[str]) -> None:
            nonlocal after
            after = n
            stands.update(said)

        while await self._store.read(lambda q: q.relearning.has_left(session_id, after, upto)):
            again = Again(after=after, upto=upto, job=JOB, ending=replaced, holds=lambda _: True, mark=mark)
            stored = await self.again(session_id, names, cause, again)
            if stored is None:
                return made
            made += len(stored.new)
        await self._store.write(lambda tx: put_away(tx, sorted((replaced - stands) & ending(tx.queries))), cause=cause)
        return made

    async def prompts(self, session_id: str, names: Mapping[str, str], most: int) -> list[Prompt]:
        """Return what would be asked about a session now, at most so many; nothing is asked, and nothing is marked.

        What the first answers add to the memories that the later prompts carry is not in them yet.
        """
        found: list[Prompt] = []
        after = 0
        while len(found) < most:
            step = await self._next(session_id, after)
            if step is None:
                break
            if _is_asked_about(step):
                found.append(self._prompt(await self._question(step, person_of(names))))
            after = step.upto
        return found

    async def _next(
        self, session_id: str, after: int = 0, *, halvings: int = 0, again: int | None = None
    ) -> _Step | None:
        """Return the next turns, of those that arrived later than `after`, that one question can show."""
        policy = self._policy.observer
        limit = policy.new_events
        while True:
            size = limit
            events, new, upto = await self._store.read(
                lambda q: q.events.undistilled(
                    session_id,
                    context=policy.context_turns,
                    limit=size,
                    after=after,
                    again=again,
                    chars=self._policy.limits.page_chars,
                )
            )
            if not events:
                return None
            fresh = [event for event in events if event.id in new]
            limit = fitting(fresh, policy)
            if limit >= len(fresh):
                if not halvings or len(fresh) == 1:
                    break
                limit, halvings = len(fresh) // 2, halvings - 1
        before = [event.id for event in events if event.id not in new]
        hidden = await self._store.read(lambda q: q.events.unlearned(before, again=again is not None))
        shown = [event for event in events if event.id not in hidden]
        return _Step(events=shown, new=frozenset(new), upto=upto)

    async def _observed(
        self, session_id: str, step: _Step, cause: Cause, person: str | None, again: Again | None = None
    ) -> Stored | None:
        """Ask about a step and store the answer; None where patterns are to read it, or nothing was stored.

        Raises what the Writer raises; of what is read again also InvalidError, where patterns would read it.
        """
        began = time.perf_counter()
        job = again.job if again else JOB
        asked: Question | None = None
        answered = Answered(promoted=(), counts={}, is_unusable=False)
        if _is_asked_about(step):
            asked = await self._question(step, person, again.ending if again else ())
            written = await self._writer.write(self._prompt(asked), job=job, cause=cause.id, session=session_id)
            self.answered += 1
            answered = await asyncio.to_thread(_read, written.text, asked, self._policy)
            if answered.is_unusable:
                await self._refused(answered, job)
                if again:
                    raise InvalidError("the Writer's answer holds no directive", hint="another model may do better")
                return None
        reading = Reading(
            session_id=session_id,
            events=step.events,
            upto=step.upto,
            job=job,
            promoted=(*answered.promoted, *await self._own_directives(step)),
            counts=answered.counts,
            keeps_streak=asked is not None,
            again=again,
            titled=answered.titled,
            fresh=step.new,
        )
        stored = await self._commit.store_at_last(reading, cause)
        if stored is not None:
            self._tell(stored, len(step.new), began)
        return stored

    async def _question(self, step: _Step, person: str | None, ending: Collection[str] = ()) -> Question:
        memories = [memory for memory in await self._memories(step) if memory.id not in ending]
        return await asyncio.to_thread(question, step.events, step.new, memories, self._policy.observer, person=person)

    def _prompt(self, asked: Question) -> Prompt:
        return Prompt(system=asked.system, text=asked.text, max_output_tokens=self._policy.observer.output_tokens)

    async def _own_directives(self, step: _Step) -> tuple[Promoted, ...]:
        """Return what agents with an observer of their own wrote as directives into their turns."""
        found = await asyncio.to_thread(_written_as_directives, step.events, step.new, self._policy)
        return tuple(Promoted(observation=one, source=SOURCE) for one in found)

    async def _memories(self, step: _Step) -> list[Memory]:
        """Return the memories of these turns' project, person or session that share most words with them."""
        policy = self._policy.observer
        said = [event for event in step.events if event.id in step.new and was_said(event)]
        projects = {event.project for event in said}
        resources: dict[Scope, set[str | None] | None] = {
            Scope.PROJECT: projects - {None},
            Scope.SESSION: {event.session_id for event in said},
            Scope.USER: None,
        }
        found: dict[str, Memory] = {}
        for event in reversed(said):
            words = event.text[: policy.turn_chars]
            for memory in await self._alike.to(words, chars=policy.memory_chars, most=policy.memories):
                allowed = resources[memory.scope]
                if successions.replaceable(memory) and (allowed is None or memory.resource_id in allowed):
                    found.setdefault(memory.id, memory)
            if len(found) >= policy.memories:
                break
        return list(found.values())[: policy.memories]

    async def _refused(self, answered: Answered, job: str) -> None:
        """Count an answer that holds no directive at all: the step is read without the Writer."""
        streak = await self._store.write(lambda tx: tx.jobs.count(job, answered.counts, keeps_streak=True))
        log.info("lifecycle.memory.commit_fallback reason=no_directives")
        self._warn(answered.counts, streak)

    def _tell(self, stored: Stored, events: int, began: float) -> None:
        counts = stored.counts
        log.info(
            "lifecycle.memory.commit_done events=%d memories=%d merged=%d project_promoted_facts=%d"
            " user_promoted_facts=%d session_scoped_facts=%d dropped_untagged_facts=%d unsupported_facts=%d ms=%d",
            events,
            len(stored.new),
            len(stored.confirmed),
            counts.get("project_promoted_facts", 0),
            counts.get("user_promoted_facts", 0),
            counts.get("session_scoped_facts", 0),
            counts.get("dropped_untagged_facts", 0),
            counts.get("unsupported_facts", 0),
            (time.perf_counter() - began) * 1000,
        )
        self._warn(counts, stored.streak)

    def _warn(self, counts: Mapping[str, int], streak: int) -> None:
        if malformed := counts.get("malformed_facts"):
            log.warning("observer: malformed directives were dropped count=%d", malformed)
        if streak >= self._policy.observer.streak:
            log.warning("lifecycle.memory.quality_warning malformed_reject_streak=%d", streak)


def person_of(names: Mapping[str, str]) -> str | None:
    """Return the person's name among the lines of the identity layer, where there is one."""
    return names.get("human") or names.get("user")


def _is_asked_about(step: _Step) -> bool:
    return any(event.id in step.new and was_said(event) and event.text.strip() for event in step.events)


def _read(answer: str, asked: Question, policy: MemoryPolicy) -> Answered:
    """Read what the Writer answered, once secrets are out of it as out of everything that comes in."""
    clean = redaction.clean(intake.valid(answer), policy.redact).text
    return read_answer(clean, asked, policy=policy.observer, distill_policy=policy.distill)


def _written_as_directives(
    events: Sequence[Event], new: frozenset[str], policy: MemoryPolicy
) -> tuple[Observation, ...]:
    written = {event.id for event in events if event.id in new and was_said(event) and DIRECTIVE.search(event.text)}
    return distill(events, written, policy=policy.distill).observations if written else ()
