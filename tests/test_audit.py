"""The audit finds what was planted, tells it by ids alone, and an honest store has none of it."""

from __future__ import annotations

import pytest

from cli_shell import Shell
from hook_process import prompt
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.lifecycle.repetition import Repetitions
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite
from scrubjay_shared.clock import Millis
from scrubjay_shared.ops import Field
from scrubjay_shared.records import EventDraft, EventType, Kind, Memory, MemoryDraft, MemoryType, Scope, content_hash
from test_poison import SHOP, hook
from test_review import AGENT, settled, started

pytestmark = pytest.mark.anyio


async def audited(service: Application) -> dict[str, api.Finding]:
    answer: api.AuditResponse = await service.call(PERSON, "audit", api.Nothing())
    return {found.kind: found for found in answer.findings}


async def planted(service: Application, content: str, **fields: object) -> str:
    """Write a memory past everything that would refuse it, and return its id."""
    memory_id = await service.store.write(lambda tx: tx.new_id())
    said = {Field.CONTENT: content, Field.CREATED_AT: 1_767_225_600_000, Field.KIND: "stored"}
    said |= {Field[name.upper()]: value for name, value in fields.items()}
    await service.store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=memory_id, fields=said)]))
    return memory_id


async def test_an_honest_store_has_nothing_to_find(service: Application) -> None:
    await hook(service, prompt("one", "We decided to use SQLite in WAL mode for the cart store."))
    await settled(service)
    await started(service, "two")
    await hook(service, prompt("two", "We decided to use nginx in front of staging.", "p2"))
    await settled(service)

    found = await audited(service)

    assert {kind: one.count for kind, one in found.items() if one.count} == {}
    assert found["echo"].of >= 1, "the session that was handed something taught something"


async def test_what_is_planted_is_found_by_its_id(service: Application) -> None:
    project = {"scope": "project", "resource_id": SHOP}
    first = await planted(service, "The cart store is kept in SQLite in WAL mode on the second disk.", **project)
    twice = await planted(service, "The cart store is kept in SQLite in WAL mode on the second disk.", **project)
    near = await planted(service, "The cart store is kept in SQLite in WAL mode on the second disk now.", **project)
    beat = await planted(service, "HEARTBEAT_OK")
    back = await planted(service, "Recalled by scrubjay from earlier sessions. This is data.")
    tag = await planted(service, "@observe user: likes tea")
    secret = await planted(service, "The key is AKIAQ3EGRWZ7XKLM2NPV.")
    other = await planted(service, "Ledger is on Oracle.", metadata={"project": "/home/ana/bank"}, **project)
    waits = await planted(service, "Decided: the queue is NATS.", type="decision", trust="import", **project)
    await service.store.write(
        lambda tx: tx.handed.note("later", [waits], kept_days=90),
    )

    found = await audited(service)

    assert set(found["exact_duplicate"].ids) | set(found["near_duplicate"].ids) <= {first, twice, near}
    assert (found["exact_duplicate"].count, found["near_duplicate"].count) == (1, 1)
    for kind, memory_id in (
        ("junk_heartbeat", beat),
        ("junk_recalled", back),
        ("junk_directive", tag),
        ("secret", secret),
        ("other_project", other),
        ("untrusted_handed", waits),
    ):
        assert found[kind].ids == (memory_id,), kind


async def say(service: Application, session: str, kind: EventType, text: str) -> None:
    draft = EventDraft(agent="crow", session_id=session, type=kind, text=text)
    await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))
    await settled(service)


@pytest.mark.parametrize(("handed", "sources", "more"), [(True, 1, 0), (False, 2, 1)])
async def test_an_agent_that_tells_back_what_it_was_handed_teaches_nothing(
    service: Application, *, handed: bool, sources: int, more: int
) -> None:
    text = "We decided to use SQLite in WAL mode for the cart store on the second disk."
    await say(service, "one", EventType.USER_MESSAGE, text)
    [memory] = [one.memory for one in (await service.call(PERSON, "list", api.ListRequest())).entries]
    if handed:
        await service.store.write(lambda tx: tx.handed.note("two", [memory.id], kept_days=90))

    await say(service, "two", EventType.ASSISTANT_MESSAGE, text)
    await say(service, "two", EventType.ASSISTANT_MESSAGE, "We decided to use SQLite in WAL mode on the second disk.")

    why: api.WhyResponse = await service.call(PERSON, "why", api.RefRequest(ref=memory.id))
    assert len(why.sources) == sources, "an echo confirms nothing"
    assert len((await service.call(PERSON, "list", api.ListRequest())).entries) == 1 + more
    found = await audited(service)
    assert (found["echo"].count, found["echoed_source"].count) == (0, 0)


async def test_feedback_and_review_are_counted(service: Application) -> None:
    draft = MemoryDraft(content="Always run the formatter.", scope=Scope.PROJECT, resource_id=SHOP)
    ref = (await service.call(AGENT, "add", draft)).memory.id
    await service.call(AGENT, "feedback", api.FeedbackRequest(refs=(ref,), helped=False, wrong=True))

    answer: api.AuditResponse = await service.call(PERSON, "audit", api.Nothing())

    assert answer.feedback == {"helped": 0, "missed": 0, "wrong": 1}
    assert answer.review == {"waiting": 1}


def test_what_differs_in_a_number_of_a_short_statement_is_no_repetition() -> None:
    looked = Repetitions(DEFAULT.audit)
    for number, text in enumerate(
        ("The staging port is 8080.", "The staging port is 9090.", "the staging port is 8080")
    ):
        memory = Memory(
            id=str(number),
            content=text,
            kind=Kind.STORED,
            type=MemoryType.FACT,
            scope=Scope.USER,
            salience=0.5,
            created_at=Millis(0),
            updated_at=Millis(0),
            content_hash=content_hash(text),
        )
        looked.tell(memory)

    assert dict(looked.exact) == {}
    assert dict(looked.near) == {("user", None): ["2"]}


def test_the_person_audits_by_a_command(shell: Shell) -> None:
    shell.json("add", "HEARTBEAT_OK")
    found = {one["kind"]: one["count"] for one in shell.json("audit")["findings"]}
    assert found["junk_heartbeat"] == 1
    assert "signs of life" in shell.run("audit", "--text")[1]
