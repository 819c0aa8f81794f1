"""What was forgotten for good does not come back: not under another id, in another format, nor from another machine."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay.store import MemoryWrite, Statement, forgotten_since, migrations, restore
from scrubjay_shared import ops, tombstones
from scrubjay_shared.clock import Millis, ulid, ulid_bytes
from scrubjay_shared.errors import DeniedError, NotFoundError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, Op, Scope

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
SAID_AT = Millis(1_700_000_000_000)
AGENT = Caller(principal=Principal.AGENT, agent="test", session_id="agent")


def said(text: str, session: str, **more: Any) -> EventDraft:
    draft = {"agent": "test", "session_id": session, "type": EventType.USER_MESSAGE, "text": text, "ts": SAID_AT}
    return EventDraft(**(draft | more))


def transcript(text: str, session: str, at: str = "2023-01-02T03:04:05.000Z") -> bytes:
    """One message of a person, as Claude Code keeps it."""
    line = {
        "type": "user",
        "uuid": f"{session}-0001",
        "sessionId": session,
        "timestamp": at,
        "cwd": "/work/site",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(line).encode() + b"\n"


async def settle(service: Application) -> None:
    await service.call(PERSON, "settle", api.SettleRequest())


async def contents(service: Application) -> list[str]:
    return [entry.memory.content for entry in (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries]


async def found(service: Application, word: str) -> bool:
    """Whether anything that a person can ask for holds a word."""
    shown = [await contents(service)]
    for mode in api.Mode:
        answer = await service.call(PERSON, "recall", api.RecallRequest(query=word, mode=mode, limit=50, neighbours=2))
        shown.append(list(answer.hits))
    shown.append(list((await service.call(PERSON, "events", api.EventsRequest(limit=500))).events))
    shown.append(list((await service.call(PERSON, "sessions", api.Nothing())).sessions))
    return word.casefold() in repr(shown).casefold()


async def forget_word(service: Application, word: str, **more: Any) -> api.ForgetResponse:
    entries = (await service.call(PERSON, "list", api.ListRequest(limit=500))).entries
    refs = [entry.memory.id for entry in entries if word.casefold() in entry.memory.content.casefold()]
    return await service.call(PERSON, "forget", api.ForgetRequest(ref=refs[0], **more))


def run_of(rows: list[Any]) -> list[tuple[int, bytes | None]]:
    return [(one.seq, one.data) for one in rows]


async def send(one: Application, other: Application) -> None:
    """Give what one store wrote to another, as sync does."""
    rows = await one.store.read(lambda q: q.ops.unsent(one.store.device, 0, 100_000))
    await other.store.write(lambda tx: tx.ingest.receive(one.store.device, run_of(rows)))
    await other.sweep.run()


# --- twenty ways back ------------------------------------------------------------------------------------------------

Way = Callable[[Application, Application, str], Awaitable[object]]


async def transcript_again(service: Application, _: Application, text: str) -> object:
    return await service.call(
        PERSON, "import", api.ImportRequest(name="old.jsonl", format="claude-code", data=transcript(text, "old"))
    )


async def other_session(service: Application, _: Application, text: str) -> object:
    data = transcript(f"Good morning! {text} Shall we begin?", "another", "2024-05-06T07:08:09.000Z")
    return await service.call(
        PERSON, "import", api.ImportRequest(name="another.jsonl", format="claude-code", data=data)
    )


async def note(service: Application, _: Application, text: str) -> object:
    return await service.call(PERSON, "import", api.ImportRequest(name="note.txt", data=text.encode()))


async def markdown(service: Application, _: Application, text: str) -> object:
    data = f"# About us\n\n- {text}\n- We meet on Mondays.\n".encode()
    return await service.call(PERSON, "import", api.ImportRequest(name="notes.md", data=data))


async def instructions(service: Application, _: Application, text: str) -> object:
    data = f"# Rules\n\nBe brief.\n\n## Facts\n\n* {text}\n".encode()
    return await service.call(
        PERSON, "import", api.ImportRequest(name="CLAUDE.md", data=data, place="/work/site/CLAUDE.md")
    )


async def spooled(service: Application, _: Application, text: str) -> object:
    return await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "spooled"),)))


async def among_others(service: Application, _: Application, text: str) -> object:
    whole = f"Thanks, that works. {text}\nWhat is next?"
    return await service.call(PERSON, "ingest", api.IngestRequest(events=(said(whole, "others"),)))


async def distilled_elsewhere(service: Application, other: Application, text: str) -> object:
    now = Millis(SAID_AT + 10_000)
    await other.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "elsewhere", ts=now),)))
    await settle(other)
    return await send(other, service)


async def imported_elsewhere(service: Application, other: Application, text: str) -> object:
    await other.call(
        PERSON, "import", api.ImportRequest(name="old.jsonl", format="claude-code", data=transcript(text, "there"))
    )
    await settle(other)
    return await send(other, service)


async def tool(service: Application, _: Application, text: str) -> object:
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.call(AGENT, "add", MemoryDraft(content=text))
    return None


async def tool_of_session(service: Application, _: Application, text: str) -> object:
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.call(AGENT, "add", MemoryDraft(content=text, scope=Scope.SESSION, resource_id="agent"))
    return None


async def rewritten_by_agent(service: Application, _: Application, text: str) -> object:
    entry = await service.call(AGENT, "add", MemoryDraft(content=f"Something harmless {len(text)}."))
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.call(AGENT, "update", api.UpdateRequest(ref=entry.memory.id, content=text))
    return None


async def exported(service: Application, other: Application, text: str) -> object:
    entry = await other.call(PERSON, "add", MemoryDraft(content=text))
    data = b"".join([line async for line in other.stream(PERSON, "export", api.Nothing())])
    await other.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id, for_good=False))
    return await service.call(PERSON, "import", api.ImportRequest(name="export.jsonl", data=data))


async def said_and_distilled(service: Application, _: Application, text: str) -> object:
    """Said anew after it was forgotten: the talk is what happened, but no memory is made of it."""
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "anew", ts=None),)))
    await settle(service)
    event = (await service.call(PERSON, "events", api.EventsRequest(session_id="anew"))).events[-1]
    return await service.call(PERSON, "forget", api.ForgetRequest(ref=event.id))


@dataclass(frozen=True)
class Case:
    """Words that were said, a word that is in nothing else, and how they are said again by some way."""

    said: str
    word: str
    way: Way
    again: str = ""


CASES = (
    Case("I prefer quvexa gondolas to ferries in the morning.", "quvexa", transcript_again),
    Case("I prefer quvexb gondolas to ferries in the morning.", "quvexb", other_session),
    Case("Our quvexc server is at 10.20.30.40.", "quvexc", note),
    Case("I am allergic to quvexdnuts.", "quvexd", markdown),
    Case("We use quvexe for all our database migrations.", "quvexe", instructions),
    Case("I live in Quvexfstadt since 2019.", "quvexf", spooled),
    Case("We decided to deploy quvexg on db-17.example.com.", "quvexg", among_others),
    Case("My sister Quvexha lives in Gravenzand.", "quvexh", distilled_elsewhere),
    Case("My e-mail is petra.quvexi@example.org.", "quvexi", imported_elsewhere),
    Case("I prefer quvexj tea to coffee in the evening.", "quvexj", tool),
    Case("I am allergic to quvexkseeds.", "quvexk", tool_of_session),
    Case("We use quvexl for all our release notes.", "quvexl", rewritten_by_agent),
    Case("My brother Quvexm lives in Harlingen.", "quvexm", exported),
    Case("Our quvexn server is at 10.20.30.41.", "quvexn", said_and_distilled),
    Case("We use quvexo for all our schemas.", "quvexo", tool, "we use QUVEXO  for all our schemas"),
    Case("I live in Quvexpberg since 2020.", "quvexp", other_session, "Since 2020 I live in Quvexpberg!"),
    Case("The user's badge is quvexq77.", "quvexq", tool, "quvexq77 is the user's badge"),
    Case("Our build server is quvexr-9.example.com.", "quvexr", note, "Build server: `quvexr-9.example.com`"),
    Case("I prefer quvexs maps to globes.", "quvexs", markdown, "**I prefer quvexs maps to globes**"),
    Case(
        "We decided to paint boat quvext blue in June.",
        "quvext",
        imported_elsewhere,
        "In June we decided to paint boat quvext blue.",
    ),
)


async def test_twenty_ways_back_are_closed_after_forget_rebuild_and_restart(opened: Opener, tmp_path: Path) -> None:
    assert len(CASES) == 20
    async with opened() as service, opened(tmp_path / "other" / "memory.db") as other:
        events = tuple(said(case.said, f"s{place}") for place, case in enumerate(CASES))
        await service.call(PERSON, "ingest", api.IngestRequest(events=events))
        await settle(service)
        for case in CASES:
            if not any(case.word in text.casefold() for text in await contents(service)):
                await service.call(PERSON, "add", MemoryDraft(content=case.said))
            assert await found(service, case.word), case.word
            await forget_word(service, case.word)
            if await found(service, case.word):  # what only quoted it, and is no source of the memory
                raise AssertionError(case.word)
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert rebuilt.before == rebuilt.after
    async with opened() as service, opened(tmp_path / "other" / "memory.db") as other:
        for case in CASES:
            await case.way(service, other, case.again or case.said)
            await settle(service)
            assert not await found(service, case.word), case.way.__name__ + " " + case.word
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        for case in CASES:
            assert not await found(service, case.word), case.word
        hits = await service.store.read(lambda q: q.fetch("select sum(times) from tombstone_hit"))
        assert hits[0][0] >= 10
        await send(service, other)  # and the machine that had them keeps them no longer
        for case in CASES:
            assert not await found(other, case.word), case.word


async def _restored(opened: Opener, path: Path, copy: Path) -> None:
    """Put an older copy in place of a store, as `scrubjay restore` does, and have it forget again."""
    kept = restore(path, copy, migrations())
    assert kept is not None
    async with opened(path) as service:
        erasures = forgotten_since(kept, path)
        await service.store.write(lambda tx: tx.forget.again(erasures))


async def _left(service: Application) -> list[str]:
    """Return which of the twenty words are found."""
    await settle(service)
    return [case.word for case in CASES if await found(service, case.word)]


async def _rebuilt(service: Application, _: Application) -> None:
    await service.call(PERSON, "rebuild", api.RebuildRequest())


async def _imported_again(service: Application, _: Application) -> None:
    for place, case in enumerate(CASES):
        data = transcript(case.said, f"again{place}")
        request = api.ImportRequest(name=f"{place}.jsonl", format="claude-code", data=data)
        await service.call(PERSON, "import", request)


async def _synced(service: Application, other: Application) -> None:
    await send(other, service)
    await send(service, other)
    assert await _left(other) == []


STEPS: dict[str, Callable[[Application, Application], Awaitable[None]] | None] = {
    "rebuild": _rebuilt,
    "restart": None,
    "import": _imported_again,
    "sync": _synced,
    "backup": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("how", STEPS)
async def test_each_of_twenty_words_stays_away(opened: Opener, tmp_path: Path, how: str) -> None:
    path, copy = tmp_path / "one" / "memory.db", tmp_path / "copy.db"
    async with opened(path) as service, opened(tmp_path / "other" / "memory.db") as other:
        events = tuple(said(case.said, f"s{place}") for place, case in enumerate(CASES))
        for each in (service, other):
            await each.call(PERSON, "ingest", api.IngestRequest(events=events))
            await settle(each)
            held = " ".join(await contents(each)).casefold()
            for case in CASES:
                if case.word not in held:
                    await each.call(PERSON, "add", MemoryDraft(content=case.said))
        await service.call(PERSON, "backup", api.PathRequest(path=str(copy)))
        for case in CASES:
            await forget_word(service, case.word)
        if (step := STEPS[how]) is not None:
            await step(service, other)
            assert await _left(service) == []
    if how == "backup":
        await _restored(opened, path, copy)
    async with opened(path) as service:
        assert await _left(service) == []
        for place, case in enumerate(CASES):
            await service.call(PERSON, "import", api.ImportRequest(name=f"n{place}.txt", data=case.said.encode()))
        assert await _left(service) == []


# --- the rules ---------------------------------------------------------------------------------------------------------

TOKEN = "The deploy token is zq81-hunter-44."


async def test_the_person_brings_words_back_by_adding_them_and_is_told(opened: Opener, tmp_path: Path) -> None:
    async with opened() as service, opened(tmp_path / "other" / "memory.db") as other:
        first = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))
        assert not first.lifted
        await service.call(PERSON, "forget", api.ForgetRequest(ref=first.memory.id))
        with pytest.raises(DeniedError, match="forgotten for good"):
            await service.call(AGENT, "add", MemoryDraft(content=TOKEN))

        again = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))

        assert (again.created, again.lifted) == (True, True)
        assert again.memory.id != first.memory.id
        second = await service.call(AGENT, "add", MemoryDraft(content=TOKEN))
        assert second.memory.id == again.memory.id
        await service.call(PERSON, "rebuild", api.RebuildRequest())
        await send(service, other)
        assert await contents(other) == [TOKEN]
        await service.call(PERSON, "forget", api.ForgetRequest(ref=again.memory.id))  # and for good once more
        with pytest.raises(DeniedError, match="forgotten for good"):
            await service.call(AGENT, "add", MemoryDraft(content=TOKEN))


async def test_what_was_forgotten_of_one_project_is_learned_of_another(service: Application) -> None:
    def of(project: str) -> MemoryDraft:
        return MemoryDraft(content="Tests run with make check.", scope=Scope.PROJECT, resource_id=project)

    site = await service.call(PERSON, "add", of("/work/site"))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=site.memory.id))

    builder = Caller(principal=Principal.AGENT, agent="test", project="/work/shop", session_id="1")
    added = await service.call(builder, "add", of("/work/shop"))
    assert added.created
    here = Caller(principal=Principal.AGENT, agent="test", project="/work/site", session_id="2")
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.call(here, "add", of("/work/site"))
    with pytest.raises(DeniedError, match="forgotten for good"):  # it would be seen in the project too
        await service.call(here, "add", MemoryDraft(content="Tests run with make check."))


async def test_forgetting_says_what_still_holds_a_part_of_it_and_takes_what_says_the_same(service: Application) -> None:
    kept = await service.call(PERSON, "add", MemoryDraft(content="Renew zq81-hunter-44 every spring."))
    twin = await service.call(
        PERSON, "add", MemoryDraft(content=TOKEN, scope=Scope.PROJECT, resource_id="/work/site", name="token")
    )
    talk = said(f"Look. {TOKEN} Use it well, and zq81-hunter-44 only there.", "talk")
    await service.call(PERSON, "ingest", api.IngestRequest(events=(talk,), learn=False))
    first = await service.call(PERSON, "add", MemoryDraft(content="zq81-hunter-44 is the deploy token"))

    answer = await service.call(PERSON, "forget", api.ForgetRequest(ref=first.memory.id))

    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    assert event.text.startswith("Look. ░")
    assert event.text.endswith("░ Use it well, and zq81-hunter-44 only there.")
    assert set(answer.forgotten) == {first.memory.id, twin.memory.id}
    assert set(answer.remaining) == {kept.memory.id, event.id}


async def test_a_forgotten_event_is_not_imported_again_and_may_be_said_again(service: Application) -> None:
    text = "Please call Ottoline about the boat tomorrow"
    await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "one"),)))
    [event] = (await service.call(PERSON, "events", api.EventsRequest())).events
    await service.call(PERSON, "forget", api.ForgetRequest(ref=event.id))

    spooled = await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "two"),)))
    assert spooled.accepted == 0
    assert [(line.reason, line.count) for line in spooled.skipped] == [("forgotten", 1)]
    request = api.ImportRequest(name="a.jsonl", format="claude-code", data=transcript(text, "three"))
    imported = await service.call(PERSON, "import", request)
    assert imported.events == 0
    assert ("forgotten", 1) in [(line.reason, line.count) for line in imported.skipped]

    now = await service.call(PERSON, "ingest", api.IngestRequest(events=(said(text, "four", ts=None),)))
    assert now.accepted == 1


async def test_a_tombstone_names_nothing_that_the_words_could_be_guessed_by(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))
    bodies = await service.store.read(
        lambda q: [ops.decode(row[0], device="", seq=0) for row in q.fetch("select body from op where type = 3")]
    )
    given = [op for op in bodies if ops.new_key_of(op) is not None]
    [words] = [found for op in bodies if (found := ops.words_of(op)) is not None]
    key = ops.new_key_of(given[0]) or b""
    assert words.key == ops.entity_of(given[0])
    assert tombstones.digest(key, tombstones.forms(TOKEN)[0]) in words.digests
    assert tombstones.digest(bytes(32), tombstones.forms(TOKEN)[0]) not in words.digests


async def test_a_long_text_of_thousands_of_words_is_forgotten_too(service: Application) -> None:
    lines = "\n".join(f"The pump {n} stands at berth-{n}.harbour.example behind gate {n * 7}." for n in range(3_000))
    kept = (await service.call(PERSON, "add", MemoryDraft(content=lines))).memory
    await service.call(
        PERSON, "add", MemoryDraft(content="The pump 1 stands at berth-1.harbour.example behind gate 7.")
    )

    answer = await service.call(PERSON, "forget", api.ForgetRequest(ref=kept.id))

    assert kept.id in answer.forgotten
    assert not await found(service, "berth-2999")


async def test_another_key_of_another_device_counts_too_and_a_malformed_digest_does_nothing(
    opened: Opener, tmp_path: Path
) -> None:
    async with opened() as service, opened(tmp_path / "other" / "memory.db") as other:
        for one, text in ((service, TOKEN), (other, "We use flimzort for all our schemas.")):
            entry = await one.call(PERSON, "add", MemoryDraft(content=text))
            await one.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))
        await send(service, other)
        await send(other, service)
        for one in (service, other):
            assert len(await one.store.read(lambda q: q.tombstones.keys())) == 2
            left = await one.store.read(
                lambda q: q.tombstones.left_of(
                    [Statement(text=TOKEN), Statement(text="we use flimzort for all our schemas"), Statement(text="x")]
                )
            )
            assert left == [None, None, "x"]
    key, entity = ulid(Millis(1), bytes(10)), ulid(Millis(2), bytes(10))
    body = ops.forget_body(entity, words=ops.ForgottenWords(key=key, digests=(bytes(16),)))
    for wrong in ({3: b"short"}, {4: "text"}, {4: [b"short"]}, {4: None}, {5: 7}, {5: b"abc"}):
        op = Op(device="d" * 32, seq=1, op_id=bytes(16), hlc=1, type=int(OpType.FORGET), body={**body, **wrong})
        assert ops.words_of(op) is None
        assert not ops.problem(op)  # it forgets its id all the same, as older readers do
        assert ulid_bytes(entity) == op.body[1]


async def test_nothing_writes_forgotten_words_around_the_services(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))
    fields = {Field.CONTENT: f"Note: all is well. {TOKEN}", Field.CREATED_AT: int(SAID_AT)}
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=tx.new_id(), fields=fields)]))
    with pytest.raises(DeniedError, match="forgotten for good"):
        await service.call(AGENT, "add", MemoryDraft(content=f"Note: all is well. {TOKEN}"))


async def test_what_was_forgotten_is_listed_with_how_often_it_came_again(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=entry.memory.id))
    await service.call(PERSON, "import", api.ImportRequest(name="note.txt", data=TOKEN.encode()))
    await service.call(PERSON, "import", api.ImportRequest(name="other.txt", data=TOKEN.encode()))

    answer = await service.call(PERSON, "forgets", api.ForgetsRequest())

    [one] = answer.forgets
    assert (one.id, one.is_event, one.refuses, one.lifted, one.refused) == (entry.memory.id, False, True, False, 2)
    with pytest.raises(DeniedError):
        await service.call(AGENT, "add", MemoryDraft(content=TOKEN))
    [one] = (await service.call(PERSON, "forgets", api.ForgetsRequest())).forgets
    assert one.refused == 3, "an agent's note, of which the write itself is refused"
    assert not answer.synced
    assert one.receipts == ()
    again = await service.call(PERSON, "add", MemoryDraft(content=TOKEN))
    await service.call(PERSON, "forget", api.ForgetRequest(ref=again.memory.id, for_good=False))
    found = (await service.call(PERSON, "forgets", api.ForgetsRequest())).forgets
    assert [(line.refuses, line.lifted) for line in found] == [(False, False), (False, True)]
    with pytest.raises(NotFoundError, match="nothing with the id"):
        await service.call(PERSON, "forgets", api.ForgetsRequest(id="0" * 26))


# --- forms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forgotten", "said_again", "is_same"),
    [
        ("We ship on 7 May.", "on 7 May we ship", True),
        ("The reviewer is Petra.", "Petra is the reviewer", True),
        ("Petra is the reviewer", "THE reviewer is “Petra”!", True),
        ("Ann told Ben.", "Ben told Ann.", False),
        ("We do not ship.", "We do ship.", False),
        ("Is it Petra?", "It is Petra.", False),
        ("The token is zq81x.", "zq81x: my token", True),
        ("The token is zq81x.", "The token is zq82x.", False),
        ("The token is zq81x.", "The token is not zq81x.", False),
        ("The token is zq81x.", "Use zq81x to log in.", False),
        ("Move from 10.0.0.1 to 10.0.0.2", "Move from 10.0.0.2 to 10.0.0.1", False),
        ("Ｆｕｌｌ width text 1234", "full width text 1234", True),
    ],
)
def test_what_counts_as_the_same_words(forgotten: str, said_again: str, *, is_same: bool) -> None:
    assert bool({*tombstones.forgotten_forms(forgotten)} & {*tombstones.forms(said_again)}) is is_same


def test_sentences_are_found_in_lists_and_lines() -> None:
    text = "# Facts\n- We use flimzort here. Ok.\n  2. The token is zq81x!\nYes.\n"
    assert [text[start:end] for start, end in tombstones.sentences(text)] == [
        "We use flimzort here.",
        "The token is zq81x!",
    ]
