"""Consolidation: one run merges, ends, compresses and puts away under one cause, loses nothing, and is taken back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.jobs.consolidation_run import ConsolidationRun
from scrubjay.lifecycle import decay
from scrubjay.lifecycle.specifics import lost, specifics
from scrubjay.policy import DEFAULT
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.folding import Told, folded
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, UnavailableError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Layer, Memory, MemoryDraft, MemoryType, Trust
from service_calls import NOW, Opener, get, ingest, listed, recalled, said

pytestmark = pytest.mark.anyio

DAY = 86_400_000
LATER = Millis(NOW + 120 * DAY)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> Millis:
        return self.now


TOLD = (
    "My sister Anna lives in Bergen since 2019.",
    "Our harbour master is Petra Holm.",
    "My cat Miso is 7 years old.",
    "My dentist is Dr. Okafor in Leith.",
    "Our office is at 12 Canal Street.",
    "My brother Tom works at Siemens in Munich.",
)


TOLD_LATER = (
    "My aunt Carla lives in Lyon since 2011.",
    "My dog Rex is 9 years old.",
    "My uncle Leo works at Bosch in Graz.",
    "My cousin Ida lives in Gent since 2015.",
)
"""What is said in the next quarter of a year: another archive, and so another step."""


async def teach(service: Application, *texts: str, at: int = NOW) -> None:
    """Have texts said and learned."""
    await ingest(service, *(said(text, ts=at + n * 1000) for n, text in enumerate(texts)))
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=20_000))


async def consolidate(service: Application, *, dry_run: bool = False) -> api.ConsolidateResponse:
    answer: api.ConsolidateResponse = await service.call(PERSON, "consolidate", api.ConsolidateRequest(dry_run=dry_run))
    return answer


async def shown(service: Application) -> list[tuple[Any, ...]]:
    """Return all that is shown of memories, without the times at which they were written."""
    found = await service.call(PERSON, "list", api.ListRequest(limit=500))
    return sorted(
        (m.id, m.content, m.salience, m.valid_from, m.valid_to, m.superseded_by, m.archived_at, m.layer, m.name)
        for m in (entry.memory for entry in found.entries)
    )


async def test_old_detail_becomes_an_archive_that_is_found_and_leads_to_what_was_said(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        before = await shown(service)
        assert len(before) == len(TOLD)
        clock.now = LATER

        answer = await consolidate(service)

        [step] = answer.steps
        assert (step.action, len(step.members), answer.left) == ("compress", len(TOLD), 0)
        assert answer.tokens_after < 0.5 * answer.tokens_before
        [archive] = await shown(service)
        assert archive[0] == step.into
        why = await service.call(PERSON, "why", api.RefRequest(ref=archive[0]))
        assert {source.grip.excerpt for source in why.sources} >= {"My cat Miso is 7 years old."}
        hits = await recalled(service, "how old is Miso?")
        assert any("Miso" in hit for hit in hits)
        gone = await get(service, step.members[0].id)
        assert (gone.memory.superseded_by, gone.memory.archived_at) == (archive[0], LATER)


async def test_no_specific_of_a_compressed_memory_is_lost(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        assert step.into is not None
        why = await service.call(PERSON, "why", api.RefRequest(ref=step.into))
        held = [str(step.content).partition("\n")[2], *(source.grip.excerpt for source in why.sources)]
        for member in step.members:
            assert not lost(specifics(member.content), held)


async def test_what_has_no_source_of_its_own_keeps_its_own_words(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        texts = [f"Host h{n} answers on port {8000 + n} behind relay r{n}." for n in range(6)]
        for text in texts:
            await service.call(PERSON, "add", MemoryDraft(content=text, trust=Trust.AGENT))
        clock.now = LATER
        assert (await consolidate(service)).steps == ()
        assert sorted(await listed(service)) == sorted(texts)


async def test_undo_of_a_run_shows_what_was_shown_and_the_next_run_leaves_it_alone(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        before, words = await shown(service), await recalled(service, "how old is Miso?")
        clock.now = LATER
        answer = await consolidate(service)
        assert answer.cause is not None
        assert await shown(service) != before

        await service.call(PERSON, "undo", api.UndoRequest(cause=answer.cause))

        assert await shown(service) == before
        assert await recalled(service, "how old is Miso?") == words
        assert (await consolidate(service)).steps == ()


async def test_a_dry_run_shows_the_plan_that_the_run_carries_out_and_changes_nothing(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        state = await service.store.read(lambda q: q.digests.state())
        plan = await consolidate(service, dry_run=True)
        assert plan.cause is None
        assert await service.store.read(lambda q: q.digests.state()) == state
        assert (await consolidate(service)).steps == plan.steps


async def test_as_of_a_time_before_the_run_the_memories_are_there_as_they_were(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        question: dict[str, Any] = {"query": "how old is Miso?", "kinds": ("memory",), "limit": 20}
        before = await recalled(service, **question)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        assert await recalled(service, **question, as_of=Millis(LATER - DAY)) == before
        told = await recalled(service, **question)
        assert told == before
        assert step.content not in told
        assert await recalled(service, **question, as_of=Millis(LATER + DAY)) == told
    async with opened(now=clock) as service:  # the index is read from the file
        assert await recalled(service, **question, as_of=Millis(LATER - DAY)) == before
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert await recalled(service, **question, as_of=Millis(LATER - DAY)) == before
        assert await recalled(service, **question) == told


async def test_what_is_there_twice_becomes_one_with_the_sources_of_both(opened: Opener) -> None:
    async with opened() as service:
        await teach(service, "Our harbour master is Petra Holm.")
        other = await service.call(
            PERSON, "add", MemoryDraft(content="A note to be changed.", trust=Trust.USER, kind=Kind.STORED)
        )
        await service.call(
            PERSON, "update", api.UpdateRequest(ref=other.memory.id, content="our harbour master is Petra Holm")
        )
        assert len(await listed(service)) == 2
        [step] = (await consolidate(service)).steps
        assert step.action == "merge"
        assert step.into is not None
        assert len(await listed(service)) == 1
        why = await service.call(PERSON, "why", api.RefRequest(ref=step.into))
        assert [source.grip.excerpt for source in why.sources] == ["Our harbour master is Petra Holm."]


async def test_what_another_device_said_later_ends_what_held_before(opened: Opener) -> None:
    async with opened(now=lambda: Millis(NOW + 2 * DAY)) as service:
        old = await service.call(PERSON, "add", MemoryDraft(content="The port is 8080.", created_at=NOW))
        new = await service.call(
            PERSON, "add", MemoryDraft(content="A note to be changed.", created_at=Millis(NOW + DAY))
        )
        await service.call(PERSON, "update", api.UpdateRequest(ref=new.memory.id, content="The port is 9090."))
        [step] = (await consolidate(service)).steps
        assert (step.action, step.members[0].id, step.into) == ("supersede", old.memory.id, new.memory.id)
        assert (await get(service, old.memory.id)).memory.valid_to == NOW + DAY


async def test_what_the_person_wrote_or_named_or_pinned_stays(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        named = (await service.call(PERSON, "list", api.ListRequest())).entries[0].memory
        await service.call(PERSON, "rename", api.RenameRequest(ref=named.id, name="kept"))
        written = await service.call(PERSON, "add", MemoryDraft(content="The door code is in the blue book."))
        await service.call(PERSON, "set_active", api.SlotRequest(key="task", value="the ferry plan"))
        clock.now = Millis(NOW + 1000 * DAY)
        await consolidate(service)
        left = {row[0] for row in await shown(service)}
        assert {named.id, written.memory.id} <= left
        assert (await get(service, "active/task")).memory.archived_at is None


async def test_a_run_touches_its_share_and_says_what_it_left(opened: Opener) -> None:
    clock = Clock()
    policy = DEFAULT
    async with opened(now=clock) as service:
        await teach(service, *(f"My friend Kim{n} lives in Town{n} since {1950 + n}." for n in range(70)))
        clock.now = LATER
        total = len(await listed(service, limit=500))
        assert total >= 60
        answer = await consolidate(service)
        assert 0 < answer.touched <= policy.consolidation.least
        assert answer.touched + answer.left == total
        again = await consolidate(service)
        assert (again.touched, again.left) == (answer.left, 0)
        assert (await consolidate(service)).steps == ()


async def test_forgetting_a_compressed_memory_leaves_its_words_in_no_archive(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        member = next(one for one in step.members if "Okafor" in one.content)

        await service.call(PERSON, "forget", api.ForgetRequest(ref=member.id))

        rows = await service.store.read(lambda q: q.fetch("select content from memory"))
        assert len(rows) == len(TOLD) - 1
        assert not any("Okafor" in row[0] for row in rows)
        assert len(await listed(service)) == len(TOLD) - 1, "the others are back, for the next run to compress"


async def test_forgetting_an_archive_forgets_what_it_holds(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        await service.call(PERSON, "forget", api.ForgetRequest(ref=str(step.into)))
        assert await service.store.read(lambda q: q.fetch("select content from memory")) == []
        assert not any("Okafor" in hit for hit in await recalled(service, "who is the dentist?"))


async def test_diff_shows_each_field_before_and_after_and_the_cause(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        answer = await consolidate(service)
        assert answer.cause is not None
        found = await service.call(PERSON, "diff", api.DiffRequest(cause=answer.cause, limit=500))
        by_change = {change: [one for one in found.changes if one.change == change] for change in ("made", "archived")}
        assert [one.id for one in by_change["made"]] == [answer.steps[0].into]
        assert len(by_change["archived"]) == len(TOLD)
        assert all(one.causes == (answer.cause,) for one in found.changes)
        fields = {field.field: (field.before, field.after) for field in by_change["archived"][0].fields}
        assert fields == {"archived_at": (None, LATER), "superseded_by": (None, answer.steps[0].into)}
        since = await service.call(PERSON, "diff", api.DiffRequest(since=Millis(LATER - 1), limit=500))
        assert since.changes == found.changes
        first = await service.call(PERSON, "diff", api.DiffRequest(cause=answer.cause, limit=4))
        rest = await service.call(PERSON, "diff", api.DiffRequest(cause=answer.cause, limit=500, cursor=first.next))
        assert first.changes + rest.changes == found.changes


async def test_diff_says_of_what_is_new_whether_it_ended_since(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        ids = []
        for text in ("The relay listens on port 8080", "The relay listens on port 9090", "The gate is green."):
            ids.append((await service.call(PERSON, "add", MemoryDraft(content=text))).memory.id)
            clock.now = Millis(clock.now + DAY)
        old, new, gone = ids
        await service.call(PERSON, "update", api.UpdateRequest(ref=gone, archived=True))
        found = (await service.call(PERSON, "diff", api.DiffRequest(since=Millis(NOW - 1)))).changes

    ended = {one.id: {field.field: (field.before, field.after) for field in one.fields} for one in found}
    assert {one.change for one in found} == {"made"}
    assert ended == {old: {"superseded_by": (None, new)}, new: {}, gone: {"archived_at": (None, clock.now)}}


async def run_with(service: Application, wording: Callable[[str, str, int], Awaitable[str]]) -> Sequence[Any]:
    run = ConsolidationRun(service.store, DEFAULT, wording=lambda: wording)
    return (await run.plan(LATER)).plan.steps


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("{lines}", True),
        ("Relays: h1 of line 1.", False),
        ("{lines} Zenobia owns 99 boats.", False),
        ("", False),
        ("\x00" * 50, False),
        ("{lines}" * 5, False),
    ],
)
async def test_a_writers_words_are_taken_only_where_they_lose_and_add_nothing(
    opened: Opener, words: str, *, taken: bool
) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        texts = [f"The host h{n} is the relay of line {n} and it answers there to whoever asks it." for n in range(6)]
        for text in texts:
            await service.call(PERSON, "add", MemoryDraft(content=text, trust=Trust.AGENT))
        lines = "The host relays: " + "; ".join(f"h{n} of line {n}" for n in range(6)) + "."

        async def wording(_system: str, _text: str, _most: int) -> str:
            return words.format(lines=lines)

        steps = await run_with(service, wording)
        assert bool(steps) is taken
        if taken:
            assert lines in steps[0].archive.content


async def test_words_of_a_writer_that_were_forgotten_for_good_are_not_written(opened: Opener) -> None:
    lines = "The host relays: " + "; ".join(f"h{n} of line {n}" for n in range(6)) + "."
    async with opened(now=Clock()) as service:
        told: api.Entry = await service.call(PERSON, "add", MemoryDraft(content=lines))
        await service.call(PERSON, "forget", api.ForgetRequest(ref=told.memory.id))
        for n in range(6):
            text = f"The host h{n} is the relay of line {n} and it answers there to whoever asks it."
            await service.call(PERSON, "add", MemoryDraft(content=text, trust=Trust.AGENT))

        async def wording(_system: str, _text: str, _most: int) -> str:
            return lines

        run = ConsolidationRun(service.store, DEFAULT, wording=lambda: wording)
        planned = await run.plan(LATER)
        done = await run.carry_out(planned, service.store.new_cause("consolidate"))

        assert any(step.archive is not None and lines in step.archive.content for step in planned.plan.steps)
        assert done == []
        assert not any(lines in content for _, content, *_ in await shown(service))


async def test_a_writer_that_fails_changes_nothing_of_the_plan(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)

        async def wording(_system: str, _text: str, _most: int) -> str:
            raise UnavailableError("the writer did not answer", hint="try again")

        plain = (await ConsolidationRun(service.store, DEFAULT).plan(LATER)).plan
        assert await run_with(service, wording) == plain.steps
        assert len(plain.steps) == 1


def memory(**fields: Any) -> Memory:
    given = {
        "id": "m", "content": "x", "kind": Kind.OBSERVATION, "type": MemoryType.FACT, "salience": 0.55,
        "created_at": NOW, "updated_at": NOW, "content_hash": "", "scope": "user",
    }  # fmt: skip
    return Memory(**(given | fields))


def test_salience_halves_with_each_half_life_and_lives_longer_when_used() -> None:
    policy = DEFAULT.consolidation
    at = Millis(NOW + 45 * DAY)
    assert decay.standing(memory(), NOW, policy) == 0.55
    assert decay.standing(memory(), at, policy) == pytest.approx(0.275)
    assert decay.standing(memory(access_count=1), at, policy) == 0.55
    assert decay.standing(memory(), at, policy, helped=1) == 0.55
    assert decay.standing(memory(accessed_at=at), at, policy) == 0.55
    assert decay.standing(memory(type=MemoryType.PREFERENCE), Millis(NOW + 9999 * DAY), policy) == 0.55
    assert decay.standing(memory(layer=Layer.IDENTITY), Millis(NOW + 9999 * DAY), policy) == 0.55
    written = memory(kind=Kind.STORED, trust=Trust.USER)
    assert decay.standing(written, Millis(NOW + 9999 * DAY), policy) == policy.person_floor


async def test_the_job_runs_once_a_night_and_is_counted(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        ran = await service.call(PERSON, "run_job", api.JobRequest(name="consolidate"))
        assert ran.error is None
        assert len(await listed(service)) == 1
        runs = await service.call(PERSON, "job_runs", api.JobRunsRequest(name="consolidate"))
        assert [run.job for run in runs.runs] == ["consolidate"]
        causes = await service.call(PERSON, "history", api.HistoryRequest(kind="consolidate"))
        assert len(causes.causes) == 1


LONERS = (
    "My niece Ruth lives in Turin since 2008.",
    "My nephew Olaf works at Philips in Delft.",
    "My friend Mina lives in Porto since 2013.",
)
"""Said in quarters of a year of their own: each is too little for an archive."""


async def teach_what_decays(service: Application, clock: Clock) -> None:
    """Have an archive made, and what joins it once next to nothing is left of it."""
    await teach(service, *TOLD)
    for quarter, text in enumerate(LONERS, 1):
        clock.now = Millis(NOW + quarter * 92 * DAY)
        await teach(service, text, at=clock.now)
    clock.now = Millis(NOW + 800 * DAY)
    await run_job(service, "consolidate")


async def loners(service: Application) -> int:
    """Return how many of them are not put away."""
    found = " ".join(await listed(service, limit=500))
    return sum(town in found for town in ("Turin", "Delft", "Porto"))


async def run_job(service: Application, name: str) -> str | None:
    """Run a job. Returns the cause that it wrote under, None where it wrote nothing."""
    before = await causes(service, name)
    assert (await service.call(PERSON, "run_job", api.JobRequest(name=name))).error is None
    new = [cause for cause in await causes(service, name) if cause not in before]
    return new[0] if new else None


async def causes(service: Application, kind: str) -> list[str]:
    found = await service.call(PERSON, "history", api.HistoryRequest(kind=kind))
    return [cause.id for cause in found.causes]


async def test_what_decayed_is_put_away_by_a_job_of_its_own_and_taken_back_by_itself(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach_what_decays(service, clock)
        assert await run_job(service, "consolidate") is None, "it compresses, and puts nothing away of what decayed"
        before, state = await shown(service), await service.store.read(lambda q: q.digests.state())
        assert await loners(service) == 3

        run = await run_job(service, "prune")

        assert run is not None
        assert await loners(service) == 0
        changes = (await service.call(PERSON, "diff", api.DiffRequest(cause=run, limit=500))).changes
        assert [(one.change, one.causes) for one in changes] == [("archived", (run,))] * len(LONERS)
        runs = await service.call(PERSON, "job_runs", api.JobRunsRequest(name="prune"))
        assert [(one.job, one.error) for one in runs.runs] == [("prune", None)]
        assert await service.store.read(lambda q: q.digests.state()) != state

        await service.call(PERSON, "undo", api.UndoRequest(cause=run))

        assert await shown(service) == before
        assert await run_job(service, "prune") is None, "what a person took back is not done again"
        await service.call(PERSON, "pause_job", api.JobRequest(name="prune"))
        jobs = {job.name: job.paused for job in (await service.call(PERSON, "jobs", api.Nothing())).jobs}
        assert (jobs["prune"], jobs["consolidate"]) == (True, False)


async def test_a_run_and_its_undo_end_in_the_state_that_was_there_before(opened: Opener) -> None:
    clock = Clock()

    async def state(service: Application) -> str:
        return (await service.call(PERSON, "audit", api.Nothing())).state

    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = Millis(NOW + 92 * DAY)
        await teach(service, LONERS[0], at=clock.now)
        clock.now = Millis(NOW + 800 * DAY)
        begin = await state(service)
        assert len(begin) == 64
        runs = [await run_job(service, name) for name in ("consolidate", "prune")]
        assert await state(service) != begin
        for run in reversed(runs):
            await service.call(PERSON, "undo", api.UndoRequest(cause=str(run)))
        assert await state(service) == begin
        await recalled(service, "how old is Miso?")
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert await state(service) == begin
        [first, *_] = (await service.call(PERSON, "list", api.ListRequest())).entries
        await service.call(PERSON, "alias", api.AliasRequest(ref=first.memory.id, alias="another name"))
        assert await state(service) != begin


async def test_each_run_of_prune_touches_its_share(opened: Opener) -> None:
    clock = Clock()
    policy = replace(DEFAULT, consolidation=replace(DEFAULT.consolidation, least=len(TOLD)))
    async with opened(now=clock, policy=policy) as service:
        await teach_what_decays(service, clock)
    policy = replace(DEFAULT, consolidation=replace(DEFAULT.consolidation, least=2))
    async with opened(now=clock, policy=policy) as service:
        left = []
        while await run_job(service, "prune") is not None:
            left.append(await loners(service))
        assert left == [1, 0]


async def test_by_hand_both_are_done_and_what_can_be_compressed_is_not_put_away(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach_what_decays(service, clock)
        await teach(service, *TOLD_LATER, at=clock.now)
        clock.now = Millis(clock.now + 800 * DAY)
        plan = await consolidate(service, dry_run=True)
        assert [step.action for step in plan.steps] == ["compress", *["prune"] * len(LONERS)]
        await run_job(service, "prune")
        assert await loners(service) == 0
        assert any("Lyon" in text for text in await listed(service, limit=500))
        assert [step.action for step in (await consolidate(service)).steps] == ["compress"]


STORE_FAULTS = ("before", "inside", "after")
"""Where a write is cut off: before it, in the middle of it, or once it is durable."""


@contextmanager
def cut_off(store: Any, at: str) -> Iterator[None]:
    """Have the writes of a real store end in an error, as where the process dies or the disk goes away."""
    real = store.write

    async def failing(work: Any, *, cause: Any = None) -> None:
        def cut(tx: Any) -> None:
            work(tx)
            if at == "inside":
                raise UnavailableError("cut off", hint="start again")

        if at != "before":
            await real(cut, cause=cause)
        raise UnavailableError("cut off", hint="start again")

    store.write = failing
    try:
        yield
    finally:
        store.write = real


async def faulty_writes(service: Application, random: Random, rounds: int) -> int:
    """Cut runs off at random, in steps of random size. Returns how many were; the last one ended, and is undone."""
    policy = replace(DEFAULT, consolidation=replace(DEFAULT.consolidation, batch=random.choice((1, 10, 200))))
    run = ConsolidationRun(service.store, policy)
    before, whole = await shown(service), await run.plan(LATER)
    assert len(whole.plan.steps) > 1
    gone = {member for step in whole.plan.steps for member in step.members}
    expected = {row[0] for row in before} - gone | {str(step.into) for step in whole.plan.steps}
    for done in range(1, rounds + 1):
        [at] = random.choices(STORE_FAULTS, weights=(20, 20, 1))
        with cut_off(service.store, at), pytest.raises(UnavailableError):
            await run.carry_out(whole, service.store.new_cause("consolidate"))
        if at != "after":
            assert await shown(service) == before
            continue
        await run.carry_out(await run.plan(LATER), service.store.new_cause("consolidate"))
        assert {row[0] for row in await shown(service)} == expected
        return done
    return rounds


async def faulty_answers(service: Application, random: Random, rounds: int) -> int:
    """Have a Writer fail in random ways. Returns how often; nothing wrong is ever in a plan, and nothing is written."""
    before = await shown(service)
    plain = (await ConsolidationRun(service.store, DEFAULT).plan(LATER)).plan.steps
    for _ in range(rounds):

        async def wording(_system: str, text: str, _most: int) -> str:
            if random.random() < 0.3:
                raise UnavailableError("timed out", hint="try again")
            at = random.randrange(len(text))
            return random.choice(
                ("", "{}", "[[", f"{text} Also 424242.", f"{text}\n- Zoltan.", text[:at] + "9" + text[at:])
            )

        assert (await ConsolidationRun(service.store, DEFAULT, wording=lambda: wording).plan(LATER)).plan.steps == plain
    assert await shown(service) == before
    return rounds


async def faults(opened: Opener, folder: Path, most: int, *, seed: int) -> None:
    """Inject at least so many faults into stores that each hold a little old detail."""
    random, count, number = Random(seed), 0, 0
    while count < most:
        number += 1
        clock = Clock()
        async with opened(now=clock, path=folder / str(number) / "memory.db") as service:
            await teach(service, *TOLD)
            clock.now = Millis(NOW + 80 * DAY)
            await teach(service, *TOLD_LATER, at=clock.now)
            clock.now = LATER
            count += await faulty_answers(service, random, 6)
            count += await faulty_writes(service, random, 60)


async def test_a_run_that_is_cut_off_changes_nothing_or_is_done_again_alike(opened: Opener, tmp_path: Path) -> None:
    await faults(opened, tmp_path, 40, seed=1)


@pytest.mark.slow
async def test_a_thousand_faults_change_nothing(opened: Opener, tmp_path: Path) -> None:
    await faults(opened, tmp_path, 1_000, seed=2)


def test_the_commands_show_the_plan_the_run_and_what_changed(shell: Shell) -> None:
    shell.run("add", "Our harbour master is Petra Holm.")
    shell.run("add", "A note to be changed.", "--name", "changed")
    assert shell.run("update", "changed", "our harbour master is Petra Holm")[0] == 0

    code, out, _ = shell.run("consolidate", "--dry-run", "--text")
    assert code == 0
    assert "merged 1 memory" in out
    assert "would change 1 of 2 memories" in out
    ran = json.loads(shell.run("consolidate", "--json")[1])
    assert [step["action"] for step in ran["steps"]] == ["merge"]
    code, out, _ = shell.run("diff", "--since", ran["cause"], "--text")
    assert code == 0
    assert "archived at: none" in out
    assert json.loads(shell.run("diff", "--since", "yesterday", "--json")[1])["changes"]
    assert shell.run("undo", ran["cause"])[0] == 0
    assert len(json.loads(shell.run("list", "--json")[1])["entries"]) == 2


@pytest.mark.parametrize("asked", ["how old is Miso?", "Who is our harbour master?", "Where does Tom work?"])
async def test_what_was_compressed_is_found_by_its_own_words_and_told_with_its_own_source(
    opened: Opener, asked: str
) -> None:
    clock = Clock()
    request = api.RecallRequest(query=asked, kinds=("memory",), limit=1)
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        [before] = (await service.call(PERSON, "recall", request)).hits
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        [after] = (await service.call(PERSON, "recall", request)).hits
        assert (after.id, after.text, after.sources) == (before.id, before.text, before.sources)
        assert (before.archive, after.archive, after.superseded_by) == (None, step.into, None)


@pytest.mark.parametrize("mode", list(api.Mode))
async def test_an_answer_tells_as_much_after_consolidation_as_before_it(opened: Opener, mode: api.Mode) -> None:
    clock = Clock()
    request = api.RecallRequest(query="my cat, my dentist and my brother", kinds=("memory",), limit=3, mode=mode)
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        before = (await service.call(PERSON, "recall", request)).hits
        clock.now = LATER
        await consolidate(service)
        after = (await service.call(PERSON, "recall", request)).hits
        assert [hit.id for hit in after] == [hit.id for hit in before]


async def test_without_a_question_the_newest_are_the_archives_and_not_what_is_in_them(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        assert await recalled(service, "", kinds=("memory",)) == [step.content]


async def test_what_is_in_an_archive_is_for_whom_the_archive_is(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        asked = {"query": "how old is Miso?", "kinds": ("memory",), "project": "harbour"}
        assert "Miso" in str(await recalled(service, **asked))
        tx = {Field.SCOPE: "project", Field.RESOURCE_ID: "quay"}
        write = MemoryWrite(memory_id=str(step.into), fields=tx)
        await service.store.write(lambda t: t.memories.write([write]), cause=service.store.new_cause("test"))
        assert await recalled(service, **asked) == []
    async with opened(now=clock) as service:  # the index is read from the file
        assert await recalled(service, **asked) == []
        assert "Miso" in str(await recalled(service, **(asked | {"project": "quay"})))


async def test_what_the_person_rejected_is_found_in_nothing(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        write = MemoryWrite(memory_id=step.members[2].id, fields={Field.REVIEW: "rejected"})
        await service.store.write(lambda t: t.memories.write([write]), cause=service.store.new_cause("test"))
        told = await recalled(service, "how old is Miso?", kinds=("memory",), limit=20)
        assert not any(step.members[2].content in text for text in told)


async def test_what_was_too_little_for_an_archive_joins_one_and_comes_back_when_that_is_undone(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = Millis(NOW + 80 * DAY)
        await teach(service, TOLD_LATER[0], at=clock.now)
        clock.now = Millis(NOW + 400 * DAY)
        first = await consolidate(service)
        assert [step.action for step in first.steps] == ["compress"]
        second = await consolidate(service)
        [joined] = second.steps
        assert (joined.action, joined.into) == ("prune", first.steps[0].into)
        asked = {"query": "Where does aunt Carla live?", "kinds": ("memory",), "limit": 1}
        assert ["Lyon" in text for text in await recalled(service, **asked)] == [True]

        await service.call(PERSON, "undo", api.UndoRequest(cause=str(first.cause)))

        assert len(await listed(service)) == len(TOLD) + 1
        assert await recalled(service, **asked) == [joined.members[0].content]


async def test_a_date_that_was_worked_out_is_said_by_the_source_and_the_day_of_saying(opened: Opener) -> None:
    clock = Clock()
    async with opened(now=clock) as service:
        await teach(service, "Yesterday I met Petra Holm at the quay.", "In 2 days my sister Anna moves to Bergen.")
        found = (await service.call(PERSON, "list", api.ListRequest())).entries
        sources = await service.store.read(lambda q: q.consolidation.sources([one.memory.id for one in found]))
        assert found
        for one in found:
            assert not lost(specifics(one.memory.content), sources[one.memory.id])
            assert lost({"2019"}, sources[one.memory.id]) == {"2019"}


def test_a_hit_that_was_put_away_is_told_once_by_itself_or_by_what_it_was_merged_into() -> None:
    def hit(id_: str) -> Hit:
        return Hit(id=id_, kind="memory", score=1.0, parts={}, ts=0)

    put_away = {
        "m": Told(id="m", archive="a"), "twin": Told(id="m", archive="a"), "t": Told(id="w", archive=None), "gone": None
    }  # fmt: skip
    hits = [hit(one) for one in ("twin", "x", "gone", "m", "t", "w", "y", "z")]
    told = folded(hits, put_away, limit=4)
    assert [(one.id, one.archive) for one in told] == [("m", "a"), ("x", None), ("w", None), ("y", None)]


def supersede(ref: str) -> tuple[str, Any]:
    return "supersede", api.SupersedeRequest(ref=ref, content="The user's cat Miso is 8 years old.")


def put_away(ref: str) -> tuple[str, Any]:
    return "update", api.UpdateRequest(ref=ref, archived=True)


def reject(ref: str) -> tuple[str, Any]:
    return "feedback", api.FeedbackRequest(refs=(ref,), helped=False, wrong=True)


@pytest.mark.parametrize("asked", [supersede, put_away, reject])
async def test_one_memory_of_an_archive_is_corrected_and_never_all_of_it(
    opened: Opener, asked: Callable[[str], tuple[str, Any]]
) -> None:
    clock = Clock()
    question: dict[str, Any] = {"query": "how old is Miso?", "kinds": ("memory",), "limit": 10}
    async with opened(now=clock) as service:
        await teach(service, *TOLD)
        clock.now = LATER
        [step] = (await consolidate(service)).steps
        hits = (await service.call(PERSON, "recall", api.RecallRequest(**question))).hits
        assert {hit.archive for hit in hits} == {step.into}
        before = await shown(service)
        with pytest.raises(ConflictError, match=f"archive of {len(TOLD)} memories"):
            await service.call(PERSON, *asked(str(step.into)))
        assert await shown(service) == before

        name, request = asked(hits[0].id)
        await service.call(PERSON, name, request)

        left = await listed(service)
        assert {one.content for one in step.members} - set(left) <= {"The user's cat Miso is 7 years old."}
        again = await service.call(PERSON, "recall", api.RecallRequest(**question))
        current = [one.text for one in again.hits if one.superseded_by is None]
        assert not any("7 years" in text for text in current)
        assert len(current) >= len(hits) - 1, "the others are told as before"
        causes = (await service.call(PERSON, "history", api.HistoryRequest(kind=name))).causes
        await service.call(PERSON, "undo", api.UndoRequest(cause=causes[0].id))
        assert [row[0] for row in await shown(service) if row[5] is None] == [step.into]
        assert await recalled(service, **question) == [hit.text for hit in hits]
