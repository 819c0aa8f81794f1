"""Events go in: redacted, once, in any language, of any size, and a session opens and closes with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import LimitPolicy, MemoryPolicy
from scrubjay.service.application import Application
from scrubjay.store import check
from scrubjay_shared.clock import MAX_EVENT_MILLIS
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft
from service_calls import NOTHING, Opener, ingest, listed, recalled, said

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


async def test_a_secret_is_in_no_file_at_any_time(service: Application, store_path: Path) -> None:
    await ingest(service, said(f"export GITHUB_TOKEN={TOKEN}", metadata={"env": [TOKEN]}))
    await service.call(
        PERSON, "add", MemoryDraft(content=f"I always use the token {TOKEN} here", metadata={"t": TOKEN})
    )
    await service.call(
        PERSON, "import", api.ImportRequest(name="notes.md", data=f"# Notes\n\nThe key is {TOKEN}\n".encode())
    )

    before = [path.read_bytes() for path in store_path.parent.iterdir()]
    await service.call(PERSON, "settle", api.SettleRequest())
    await service.store.checkpoint(truncate=True)
    after = [path.read_bytes() for path in store_path.parent.iterdir()]

    assert any(b"REDACTED" in data for data in before)
    assert not any(TOKEN.encode() in data for data in before + after)


async def test_private_words_are_never_stored(service: Application, store_path: Path) -> None:
    answer = await ingest(
        service, said("<private>my pin is 4711</private>"), said("The cat <private>Schnurrbert</private> sleeps")
    )

    assert (answer.accepted, answer.ids[0]) == (1, "")
    assert answer.skipped == (api.Skipped(reason="private", count=1),)
    stored = b"".join(path.read_bytes() for path in store_path.parent.iterdir())
    assert b"sleeps" in stored
    assert b"4711" not in stored
    assert b"Schnurrbert" not in stored
    assert b"schnurrbert" not in stored


async def test_what_we_told_an_agent_is_not_learned_from_it_again(service: Application) -> None:
    block = '<memory source="scrubjay" id="1">I prefer tea to coffee in the morning.</memory>'

    answer = await ingest(service, said(block), said(f"{block} Thank you for that!"))
    await service.call(PERSON, "settle", api.SettleRequest())

    assert answer.skipped == (api.Skipped(reason="injected", count=1),)
    assert await listed(service) == []
    assert await recalled(service, "tea coffee") == []


async def test_a_batch_delivered_again_adds_nothing_and_gives_the_same_ids(
    service: Application, conversation: tuple[EventDraft, ...]
) -> None:
    first = await ingest(service, *conversation)

    again = await ingest(service, *conversation)

    assert (first.accepted, first.duplicates) == (len(conversation), 0)
    assert (again.accepted, again.duplicates, again.ids) == (0, len(conversation), first.ids)
    assert (await service.call(PERSON, "stats", NOTHING)).events == len(conversation)


async def test_deliveries_at_the_same_moment_make_one_event(service: Application) -> None:
    drafts = [said("the same words", dedupe_key=f"k{n % 3}") for n in range(60)]

    answers = await asyncio.gather(*(ingest(service, draft, draft) for draft in drafts))

    assert sum(answer.accepted for answer in answers) == 3
    assert len({answer.ids[0] for answer in answers}) == 3
    assert all(answer.ids[0] == answer.ids[1] for answer in answers)


async def test_what_is_sent_at_the_same_moment_is_distilled_only_where_that_was_asked_for(service: Application) -> None:
    wanted, unwanted = said("I moved to Lisbon.", session_id="s1"), said("I moved to Porto.", session_id="s2")

    await asyncio.gather(
        *(ingest(service, wanted, dedupe) for dedupe in (said("one", session_id="s1"), said("two", session_id="s1"))),
        ingest(service, unwanted, learn=False),
        ingest(service, said("three", session_id="s1")),
    )

    waiting = await service.store.read(lambda q: q.events.undistilled_sessions())
    assert waiting == [("s1", 4)]


async def test_a_batch_with_one_bad_event_stores_none_of_it(service: Application) -> None:
    with pytest.raises(InvalidError, match="event 2"):
        await ingest(service, said("a"), said("b"), said("c", ts=-1))

    assert (await service.call(PERSON, "stats", NOTHING)).ops == 0


async def test_an_empty_batch_is_no_error(service: Application) -> None:
    assert await ingest(service) == api.IngestResponse(accepted=0, duplicates=0, ids=())


async def test_a_batch_beyond_the_limit_is_refused(opened: Opener) -> None:
    async with opened(policy=MemoryPolicy(limits=LimitPolicy(max_batch=2))) as service:
        with pytest.raises(TooLargeError):
            await ingest(service, said("a"), said("b"), said("c"))


async def test_five_megabytes_are_stored_whole_and_found_by_their_beginning(opened: Opener) -> None:
    text = "The quarterly zebra report begins. " + "lorem ipsum dolor " * 290_000
    async with opened() as service:
        await ingest(service, said(text, type=EventType.TOOL_RESULT))
        await service.call(PERSON, "settle", api.SettleRequest())
    async with opened() as service:
        (event,) = (await service.call(PERSON, "events", api.EventsRequest())).events
        answer = await service.call(PERSON, "recall", api.RecallRequest(query="zebra report", max_tokens=100))

    assert event.text == text
    assert answer.hits[0].id == event.id
    assert answer.hits[0].truncated
    assert answer.tokens <= 100


STRANGE = {
    "control characters": "\x01\x07\x08\x0b\x1b[31m zebra \x7f\x9f",
    "nul": "before\0zebra\0after",
    "lone surrogates": "\ud83d zebra \udc00",
    "a byte order mark": "\ufeffzebra",
    "bidirectional marks": "\u202ezebra\u202c \u2066x\u2069",
    "binary as text": bytes(range(256)).decode("latin-1") + " zebra",
    "many marks": "zebra z" + "\u0301" * 5_000,
    "brackets": "zebra " + "[" * 20_000,
    "tags": "zebra " + "<a>" * 10_000,
    "open private": "zebra <private " * 1_000,
    "one long word": "zebra " + "x" * 300_000,
    "lines": "zebra\n" + "\n" * 50_000,
    "quotes": "zebra '; drop table event; -- \" NEAR(",
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE.keys())
async def test_strange_text_is_stored_learned_from_and_found(text: str, opened: Opener, store_path: Path) -> None:
    async with opened() as service:
        await ingest(
            service, said(text, session=f"s{text[:20]}", dedupe_key=text[:50], metadata={text[:40]: text[:40]})
        )
        await service.call(PERSON, "add", MemoryDraft(content=f"stored {text}"))
        await service.call(PERSON, "settle", api.SettleRequest())
        found = await recalled(service, "zebra", max_tokens=1_000_000)
        rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())
        assert len(found) >= 2
        assert rebuilt.before == rebuilt.after
        assert len((await service.call(PERSON, "sessions", NOTHING)).sessions) == 1
        await ingest(service, said(text, session=f"s{text[:20]}", dedupe_key=text[:50]))
        assert (await service.call(PERSON, "stats", NOTHING)).events == 1
    async with opened() as service:
        assert await recalled(service, "zebra", max_tokens=1_000_000) == found
    assert check(store_path) == []


@pytest.mark.parametrize("speaker", [5, ["Maya"], {"a": 1}, None, "", "Maya"], ids=str)
async def test_a_speaker_that_is_no_name_is_taken_for_none(speaker: object, opened: Opener) -> None:
    async with opened() as service:
        await ingest(service, said("The harbour is full", metadata={"speaker": speaker}))
        (hit,) = (await service.call(PERSON, "recall", api.RecallRequest(query="harbour"))).hits
    async with opened() as service:
        (again,) = (await service.call(PERSON, "recall", api.RecallRequest(query="harbour"))).hits

    assert again == hit
    assert hit.sources[0].speaker == (speaker if speaker == "Maya" else "user")


async def test_the_earliest_and_latest_times_are_kept_and_found(opened: Opener) -> None:
    async with opened(now=lambda: MAX_EVENT_MILLIS) as service:  # what is dated in the future came now
        await ingest(service, said("zebra first", ts=0), said("zebra last", ts=MAX_EVENT_MILLIS))
        with pytest.raises(InvalidError):
            await ingest(service, said("beyond", ts=MAX_EVENT_MILLIS + 1))
        await service.call(PERSON, "settle", api.SettleRequest())
    async with opened() as service:
        assert sorted(await recalled(service, "zebra")) == ["zebra first", "zebra last"]
        assert (await service.call(PERSON, "stats", NOTHING)).newest == MAX_EVENT_MILLIS


async def test_sessions_open_with_their_first_event_and_close_with_their_end(service: Application) -> None:
    await ingest(service, said("hello there", ts=1_000), said("more", ts=3_000))
    await ingest(service, said("", type=EventType.SESSION_END, ts=4_000))
    await ingest(service, said("another one", session="s2", ts=9_000, project="p"))

    newest, oldest = (await service.call(PERSON, "sessions", NOTHING)).sessions

    assert (oldest.start, oldest.end, oldest.title, oldest.events) == (1_000, 4_000, "hello there", 3)
    assert (newest.start, newest.end, newest.project) == (9_000, None, "p")


async def test_a_session_that_goes_on_after_its_end_is_open_again(service: Application) -> None:
    await ingest(service, said("hello", ts=1_000), said("", type=EventType.SESSION_END, ts=2_000))
    await ingest(service, said("one more thing", ts=3_000))

    assert (await service.call(PERSON, "sessions", NOTHING)).sessions[0].end is None
