"""A memory is believed as the least of what its words were taken from, however often and by whomever it is repeated."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hook_process import prompt
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.records import (
    TRUST_ORDER,
    EventDraft,
    EventType,
    Kind,
    Memory,
    MemoryDraft,
    MemoryType,
    Role,
    Scope,
    Trust,
    least,
)
from test_poison import SHOP, hook
from test_review import get, settled, started

pytestmark = pytest.mark.anyio

SAID = (
    "We decided to use SQLite in WAL mode for the cart store.",
    "We decided to use SQLite in WAL mode for the cart store!",
    "I prefer tabs over spaces in every project.",
    "We decided to use Postgres 17 for the ledger.",
    "Shall we move the queue to Postgres?",
    "yes",
)
AGENT = Caller(principal=Principal.AGENT, agent="crow", project=SHOP)

turns = st.lists(
    st.tuples(
        st.sampled_from([(EventType.USER_MESSAGE, Role.USER), (EventType.ASSISTANT_MESSAGE, Role.ASSISTANT)]),
        st.sampled_from(Trust),
        st.sampled_from(SAID),
        st.sampled_from(["one", "two"]),
    ),
    min_size=1,
    max_size=8,
)


async def memories(service: Application) -> list[Memory]:
    return [one.memory for one in (await service.call(PERSON, "list", api.ListRequest(limit=200))).entries]


async def trust_of_sources(service: Application, memory_id: str) -> list[Trust]:
    """Return the least trust of the events of each passage of a memory."""
    why: api.WhyResponse = await service.call(PERSON, "why", api.RefRequest(ref=memory_id))
    return [least(*(event.trust for event in source.events)) for source in why.sources]


@given(turns)
@settings(max_examples=12, deadline=None)
def test_a_memory_is_trusted_as_the_least_of_what_its_words_were_taken_from(
    said: list[tuple[tuple[EventType, Role], Trust, str, str]],
) -> None:
    async def check(path: Path) -> None:
        service = await Application.open(path / "memory.db", models_dir=path, model="none")
        try:
            for number, ((kind, role), trust, text, session) in enumerate(said):
                draft = EventDraft(
                    agent="crow",
                    session_id=session,
                    type=kind,
                    role=role,
                    text=text,
                    trust=trust,
                    project=SHOP,
                    dedupe_key=str(number),
                )
                await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))
                if number % 3 == 2:
                    await settled(service)
            await settled(service)
            found = await memories(service)
            for memory in found:
                sources = await trust_of_sources(service, memory.id)
                # Each passage says it by itself: the one that is believed most vouches for it, and none for more.
                assert memory.trust is max(sources, key=TRUST_ORDER.index)
            live = [(one.content_hash, one.scope, one.resource_id) for one in found if one.superseded_by is None]
            assert len(set(live)) == len(live)
        finally:
            await service.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_an_archive_is_trusted_as_the_least_of_what_it_quotes(service: Application) -> None:
    for number, (kind, trust) in enumerate(
        ((EventType.USER_MESSAGE, Trust.USER), (EventType.ASSISTANT_MESSAGE, Trust.IMPORT))
    ):
        draft = EventDraft(agent="crow", session_id="s", type=kind, text=SAID[number], trust=trust, project=SHOP)
        await service.call(PERSON, "ingest", api.IngestRequest(events=(draft,)))

    answer: api.CompactResponse = await service.call(PERSON, "compact", api.CompactRequest(session_id="s"))

    assert answer.archive is not None
    archive = answer.archive.memory
    assert archive.kind is Kind.ARCHIVE
    assert archive.trust is least(*await trust_of_sources(service, archive.id))
    assert archive.trust is Trust.IMPORT


async def test_what_an_agent_said_first_becomes_the_persons_when_they_say_it(service: Application) -> None:
    text = "I prefer tabs over spaces in every project."
    draft = MemoryDraft(content="The user prefers tabs over spaces in every project.", type=MemoryType.PREFERENCE)
    theirs: api.Entry = await service.call(AGENT, "add", draft)
    assert "tabs over spaces" not in await started(service, "one")

    await hook(service, prompt("own", text))
    await settled(service)

    assert "tabs over spaces" in await started(service, "two")
    [mine] = [one for one in await memories(service) if one.superseded_by is None]
    assert mine.trust is Trust.USER
    assert (await get(service, theirs.memory.id)).superseded_by == mine.id


async def test_what_the_person_said_stays_theirs_when_an_agent_repeats_it(service: Application) -> None:
    await hook(service, prompt("own", "I prefer tabs over spaces in every project."))
    await settled(service)
    [mine] = await memories(service)

    again: api.Entry = await service.call(AGENT, "add", MemoryDraft(content=mine.content))

    assert not again.created
    assert (await get(service, mine.id)).trust is Trust.USER
    assert "tabs over spaces" in await started(service, "later")


async def test_a_memory_that_the_person_adds_takes_the_place_of_an_agents(service: Application) -> None:
    draft = MemoryDraft(content="Carts expire after 90 days.", scope=Scope.PROJECT, resource_id=SHOP)
    theirs: api.Entry = await service.call(AGENT, "add", draft)

    mine: api.Entry = await service.call(PERSON, "add", draft)
    again: api.Entry = await service.call(PERSON, "add", draft)

    assert mine.created
    assert not again.created
    assert (await get(service, theirs.memory.id)).superseded_by == mine.memory.id
