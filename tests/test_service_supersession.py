"""What takes a memory's place: recognised when it is added, learned or imported, done by hand, listed, taken back."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import Memory, MemoryDraft, Scope, Trust
from service_calls import NOW as SOON
from service_calls import Opener, get, ingest, listed, recalled, said

NOW = Millis(SOON - 364 * 86_400_000)
"""In the past: what is dated in the future has no time."""

pytestmark = pytest.mark.anyio

AGENT = Caller(principal=Principal.AGENT, agent="crow", project="harbour", session_id="s1")
DAY = 86_400_000


async def add(service: Application, content: str, caller: Caller = PERSON, **more: Any) -> Memory:
    entry: api.Entry = await service.call(caller, "add", MemoryDraft(content=content, **more))
    return entry.memory


async def doubts(service: Application) -> list[tuple[str, str]]:
    answer = await service.call(PERSON, "conflicts", api.ConflictsRequest())
    return [(each.old.content, each.new.content) for each in answer.doubts]


async def supersede(service: Application, ref: str, **more: Any) -> api.SupersedeResponse:
    answer: api.SupersedeResponse = await service.call(PERSON, "supersede", api.SupersedeRequest(ref=ref, **more))
    return answer


async def last_cause(service: Application, kind: str) -> str:
    answer = await service.call(PERSON, "history", api.HistoryRequest(kind=kind))
    return str(answer.causes[0].id)


async def test_an_added_statement_ends_what_it_replaces(service: Application) -> None:
    old = await add(service, "We use Postgres 16 for the events table.", created_at=NOW)
    new = await add(service, "We moved from Postgres to MySQL 9.", created_at=Millis(NOW + DAY))

    ended = (await get(service, old.id)).memory
    assert (ended.superseded_by, ended.valid_to) == (new.id, NOW + DAY)
    why = await service.call(PERSON, "why", api.RefRequest(ref=new.id))
    assert [memory.id for memory in why.supersedes] == [old.id]
    assert (await recalled(service, "do we use Postgres for the events table"))[0] == new.content
    assert await doubts(service) == []


async def test_undoing_the_addition_brings_the_earlier_statement_back(service: Application) -> None:
    old = await add(service, "The port is 8080.")
    new = await add(service, "The port is 9090.")
    await service.call(PERSON, "undo", api.UndoRequest(cause=await last_cause(service, "add")))

    back = (await get(service, old.id)).memory
    assert (back.superseded_by, back.valid_to) == (None, None)
    assert await listed(service) == ["The port is 8080."]
    assert (await get(service, new.id)).memory.archived_at is not None


async def test_a_statement_told_late_is_the_earlier_one(service: Application) -> None:
    later = await add(service, "The port is 9090.", created_at=Millis(NOW + DAY))
    earlier = await add(service, "The port is 8080.", created_at=NOW)

    assert (await get(service, earlier.id)).memory.superseded_by == later.id
    assert (await get(service, later.id)).memory.superseded_by is None


async def test_a_session_that_changes_its_mind_teaches_what_holds(opened: Opener) -> None:
    async with opened(now=lambda: Millis(NOW + 2 * DAY)) as service:
        await ingest(service, said("We use Postgres 16 for the events table.", ts=NOW))
        await service.distill.run()
        await ingest(service, said("We moved from Postgres to MySQL 9.", session="s2", ts=Millis(NOW + DAY)))
        await service.distill.run()

        held = [entry.memory for entry in (await service.call(PERSON, "list", api.ListRequest())).entries]
        (old,) = [memory for memory in held if "16" in memory.content]
        (new,) = [memory for memory in held if "MySQL" in memory.content]
        assert (old.superseded_by, old.valid_to) == (new.id, NOW + DAY)

        await service.call(PERSON, "undo", api.UndoRequest(cause=await last_cause(service, "distill")))
        assert (await get(service, old.id)).memory.superseded_by is None


async def test_a_doubt_outlasts_the_days_on_which_what_raises_it_happened(opened: Opener) -> None:
    """What was told of a week that was over then is no less true a month later."""
    async with opened(now=lambda: Millis(NOW + 40 * DAY)) as service:
        old, new = (
            "Remember: the release branch is called main-release.",
            "Remember: the release branch was renamed to stable two weeks ago.",
        )
        await ingest(service, said(old, ts=NOW, project="/harbour"))
        await ingest(service, said(new, session="s2", ts=Millis(NOW + 9 * DAY), project="/harbour"))
        await service.distill.run()

        answer = await service.call(PERSON, "recall", api.RecallRequest(query="what is the release branch called?"))
        found = {hit.text: hit for hit in answer.hits if hit.kind == "memory"}
        (later,) = [hit for text, hit in found.items() if "renamed" in text]
        assert later.valid_to is not None
        assert later.valid_to < NOW + 9 * DAY
        (earlier,) = [hit for text, hit in found.items() if "main-release" in text]
        assert earlier.questioned_by == later.id


async def test_within_one_session_the_later_turn_holds(service: Application) -> None:
    first = said("We use Postgres 16 for the events table.", ts=NOW)
    await ingest(service, first, said("We moved from Postgres to MySQL 9.", ts=Millis(NOW + DAY)))
    await service.distill.run()

    held = [entry.memory for entry in (await service.call(PERSON, "list", api.ListRequest())).entries]
    assert {memory.content[:10]: memory.superseded_by is not None for memory in held} == {
        "We use Pos": True,
        "We moved f": False,
    }


async def test_an_import_replaces_nothing_that_a_person_said(service: Application) -> None:
    await add(service, "The port is 8080.")
    note = api.ImportRequest(name="notes.md", data=b"# Ports\n\nThe port is 9090.\n")
    await service.call(PERSON, "import", note)

    assert [old for old, _ in await doubts(service)] == ["The port is 8080."]
    assert all(
        entry.memory.superseded_by is None for entry in (await service.call(PERSON, "list", api.ListRequest())).entries
    )


async def test_a_finding_of_an_agent_does_not_replace_a_decision_of_the_person(service: Application) -> None:
    await add(service, "The port is 8080.", scope=Scope.PROJECT, resource_id="harbour")
    await add(service, "The port is 9090.", AGENT, scope=Scope.PROJECT, resource_id="harbour", trust=Trust.AGENT)

    assert await doubts(service) == [("The port is 8080.", "The port is 9090.")]


async def test_what_holds_in_one_project_replaces_nothing_in_another(service: Application) -> None:
    for project in ("harbour", "quay"):
        await add(service, "The port is 8080.", scope=Scope.PROJECT, resource_id=project)
    await add(service, "The port is 8080.")
    await add(service, "The port is 9090.", scope=Scope.PROJECT, resource_id="quay")

    entries = (await service.call(PERSON, "list", api.ListRequest())).entries
    assert [e.memory.resource_id for e in entries if e.memory.superseded_by is not None] == ["quay"]
    assert await doubts(service) == []


async def test_what_is_unsure_is_listed_until_somebody_decides(opened: Opener) -> None:
    async with opened() as service:
        old = await add(service, "We use tabs.")
        new = await add(service, "We use spaces now.")
    async with opened() as service:  # it survives a restart
        assert await doubts(service) == [("We use tabs.", "We use spaces now.")]
        assert (await get(service, old.id)).memory.superseded_by is None

        await supersede(service, old.id, by=new.id)

        assert await doubts(service) == []
        assert (await get(service, old.id)).memory.superseded_by == new.id


async def test_two_that_both_hold_are_listed_no_more(service: Application) -> None:
    old = await add(service, "We use tabs.")
    new = await add(service, "We use spaces now.", metadata={"file": "style"})
    both = api.ResolveRequest(ref=new.id, field="may_supersede", version=old.id)
    entry = await service.call(PERSON, "resolve", both)

    assert await doubts(service) == []
    assert entry.memory.metadata == {"file": "style"}
    with pytest.raises(NotFoundError, match="not one that may take"):
        await service.call(PERSON, "resolve", both)


async def test_a_new_text_takes_a_memorys_place(service: Application) -> None:
    old = await add(service, "Ask Petra about payroll.", scope=Scope.PROJECT, resource_id="harbour", topic="people")
    answer = await supersede(service, old.id, content="Payroll is with Jonas.")

    assert (answer.new.created, answer.new.memory.scope, answer.new.memory.resource_id) == (True, old.scope, "harbour")
    assert (answer.new.memory.topic, answer.new.memory.type) == ("people", old.type)
    assert answer.old.memory.superseded_by == answer.new.memory.id
    assert answer.old.memory.valid_to is not None
    again = await supersede(service, old.id, content="Payroll is with Jonas.")
    assert (again.new.created, again.new.memory.id) == (False, answer.new.memory.id)


async def test_superseding_by_hand_wants_one_successor_and_no_circle(service: Application) -> None:
    old, new = await add(service, "one"), await add(service, "two")
    await supersede(service, old.id, by=new.id)

    for more in ({}, {"by": new.id, "content": "three"}):
        with pytest.raises(InvalidError):
            await supersede(service, old.id, **more)
    with pytest.raises(InvalidError, match="itself"):
        await supersede(service, new.id, by=old.id)
    with pytest.raises(InvalidError):
        await supersede(service, new.id, by=new.id)


async def test_an_agent_supersedes_its_own_and_nothing_of_the_persons(service: Application) -> None:
    place: dict[str, Any] = {"scope": Scope.PROJECT, "resource_id": "harbour"}
    own, person = await add(service, "a finding", AGENT, **place), await add(service, "a decision", **place)
    answer = await service.call(AGENT, "supersede", api.SupersedeRequest(ref=own.id, content="a better finding"))

    assert answer.new.memory.trust is Trust.AGENT
    with pytest.raises(DeniedError):
        await service.call(AGENT, "supersede", api.SupersedeRequest(ref=person.id, content="another finding"))


async def test_what_says_the_same_in_another_order_is_one_memory(service: Application) -> None:
    first = await add(service, "We ship on 7 May.")
    entry = await service.call(PERSON, "add", MemoryDraft(content="on 7 May we ship", name="release"))

    assert (entry.created, entry.memory.id, entry.memory.name) == (False, first.id, "release")
    assert await listed(service) == ["We ship on 7 May."]


async def test_two_who_say_the_same_are_two_sources_of_one_memory(service: Application) -> None:
    await ingest(service, said("We use Postgres 16 for the events table.", ts=NOW))
    await ingest(service, said("we use Postgres 16 for the events table", session="s2", ts=Millis(NOW + DAY)))
    await service.distill.run()

    (entry,) = (await service.call(PERSON, "list", api.ListRequest())).entries
    assert len((await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id))).sources) == 2


async def test_a_time_before_the_change_finds_what_held_then(service: Application) -> None:
    await add(service, "The port is 8080.", created_at=NOW)
    await add(service, "The port is 9090.", created_at=Millis(NOW + 10 * DAY))

    then: dict[str, Any] = {"since": Millis(NOW + 4 * DAY), "until": Millis(NOW + 5 * DAY), "kinds": ("memory",)}
    assert await recalled(service, "which port", **then) == ["The port is 8080."]
    before = {"since": Millis(NOW - 5 * DAY), "until": Millis(NOW - 4 * DAY), "kinds": ("memory",)}
    assert await recalled(service, "which port", **before) == []


async def test_what_was_forgotten_stays_forgotten(service: Application) -> None:
    old = await add(service, "The port is 8080.")
    new = await add(service, "The port is 9090.")
    await service.call(PERSON, "forget", api.ForgetRequest(ref=old.id))
    await service.call(PERSON, "undo", api.UndoRequest(cause=await last_cause(service, "add")))

    with pytest.raises(NotFoundError):
        await get(service, old.id)
    assert (await get(service, new.id)).memory.archived_at is not None
    assert "8080" not in repr(await service.store.read(lambda q: q.fetch("select content from memory")))


STATEMENTS = st.sampled_from(
    [
        *(f"The {what} is {value}." for what in ("port", "limit") for value in (3, 8080, 9090)),
        *("We use Postgres.", "We moved from Postgres to MySQL.", "We no longer use MySQL.", "We use tabs."),
        *("We use spaces now.", "Always rebase.", "Never rebase.", "Tea is served at noon."),
    ]
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(told=st.lists(STATEMENTS, min_size=1, max_size=6, unique=True), by_hand=st.booleans())
def test_undoing_the_last_statement_restores_what_was_shown(told: list[str], *, by_hand: bool) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            service = await Application.open(path / "s.db", models_dir=path, model="none")
            try:
                for text in told[:-1]:
                    await add(service, text)
                before = await shown(service)
                if by_hand and before:
                    await supersede(service, before[0][0], content=told[-1])
                else:
                    await add(service, told[-1])
                assert await shown(service) != before
                cause = (await service.call(PERSON, "history", api.HistoryRequest())).causes[0].id
                await service.call(PERSON, "undo", api.UndoRequest(cause=cause))

                assert await shown(service) == before
            finally:
                await service.close()

    asyncio.run(run())


async def shown(service: Application) -> list[tuple[Any, ...]]:
    """Return all that is listed of memories, but for when they were written last."""
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=200))).entries
    return [
        (memory.id, memory.content, memory.superseded_by, memory.valid_from, memory.valid_to, memory.metadata)
        for memory in (entry.memory for entry in entries)
    ]


def test_the_commands_tell_how_to_settle_what_is_unsure(shell: Shell) -> None:
    def text(*arguments: str) -> str:
        code, out, err = shell.run("--text", *arguments)
        assert code == 0, err
        return out

    text("add", "We use tabs.", "--name", "indent")
    text("add", "We use spaces now.", "--name", "spaces")
    told = text("conflicts")

    assert "We use tabs." in told
    assert "scrubjay supersede" in told
    assert "scrubjay conflicts --both" in told
    assert "no conflicts" in text("conflicts", "--both", "indent", "spaces")
    assert "in the place of" in text("supersede", "indent", "spaces")
    assert "took the place of" in text("why", "spaces")
    assert "replaced by\n  We use spaces now." in text("why", "indent")
    assert text("supersede", "spaces", "We use", "tabs and spaces.").startswith("added")


async def test_as_of_a_time_what_was_replaced_later_is_current_and_what_was_learned_later_is_unknown(
    service: Application,
) -> None:
    old = await add(service, "We use Postgres 16 for the events table.", created_at=NOW)
    new = await add(service, "We moved from Postgres to MySQL 9.", created_at=Millis(NOW + 10 * DAY))
    await ingest(service, said("the events table is slow, says Petra", ts=Millis(NOW + 10 * DAY)), learn=False)

    question = "do we use Postgres for the events table"
    assert await recalled(service, question, as_of=NOW + 5 * DAY) == [old.content]
    assert (await recalled(service, question, as_of=NOW + 20 * DAY))[0] == new.content
    assert (await recalled(service, question))[0] == new.content
    assert await recalled(service, question, as_of=NOW) == []
    marked = [(5, None), (20, new.id)]  # and an answer calls it replaced only where it was by then
    for days, by in marked:
        request = api.RecallRequest(query=question, kinds=("memory",), as_of=Millis(NOW + days * DAY))
        hits = (await service.call(PERSON, "recall", request)).hits
        assert [hit.superseded_by for hit in hits if hit.id == old.id] == [by]


async def test_yesterday_in_a_question_as_of_a_time_is_the_day_before_it(service: Application) -> None:
    for day in range(4):
        await ingest(service, said(f"deploy number {day} is out", ts=Millis(NOW + day * DAY)), learn=False)

    for day in range(2, 5):
        found = await recalled(service, "which deploy went out yesterday?", as_of=NOW + day * DAY + 3_600_000)
        assert found[0] == f"deploy number {day - 1} is out"


async def test_an_as_of_that_is_no_time_is_refused(service: Application) -> None:
    with pytest.raises(InvalidError, match="as_of"):
        await recalled(service, "anything", as_of=-(10**18))


async def test_the_status_says_how_much_waits_for_the_person_to_settle(service: Application) -> None:
    async def notes() -> tuple[str, ...]:
        return tuple((await service.call(PERSON, "status", api.Nothing())).notes)

    old = await add(service, "We use tabs.")
    assert not any("to settle" in note for note in await notes())
    new = await add(service, "We use spaces now.")
    assert "for the person to settle: 1 (scrubjay conflicts)" in await notes()
    await supersede(service, old.id, by=new.id)
    assert not any("to settle" in note for note in await notes())
