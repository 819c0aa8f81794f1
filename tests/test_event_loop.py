"""What large texts may cost whoever else asks: no request computes long in one go, on the event loop or beside it.

Work is counted here, not time: how much of a text is read, how much is decoded at once, in which thread it is done. How
long the loop is really held is measured by `scrubjay bench run event-loop`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay import api, redaction
from scrubjay.api import Hit, Quote
from scrubjay.api.caller import PERSON
from scrubjay.api.operations import OPERATIONS
from scrubjay.importers import export_format, notes, parsing
from scrubjay.index.index import Index
from scrubjay.ingest import intake
from scrubjay.policy import DEFAULT, LimitPolicy, MemoryPolicy
from scrubjay.redaction import windows
from scrubjay.retrieval import packing
from scrubjay.service.application import Application
from scrubjay.store.queries import documents
from scrubjay.store.rows import MAX_EMBEDDED_CHARS
from scrubjay.transports.http import piecewise
from scrubjay.transports.http.decoding import decoded, read
from scrubjay.transports.http.endpoint import _Streamed
from scrubjay.transports.http.routes import BY_OPERATION
from scrubjay_shared import records, text
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, TooLargeError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, content_hash

pytestmark = pytest.mark.anyio

Opener = Callable[..., AbstractAsyncContextManager[Application]]
LARGE = "The ferry in the harbour was painted copper. " * 20_000
INGEST = (OPERATIONS["ingest"], BY_OPERATION["ingest"])
IMPORT = (OPERATIONS["import"], BY_OPERATION["import"])


def said(words: str, session: str = "s1", **more: Any) -> EventDraft:
    return EventDraft(agent="test", session_id=session, type=EventType.TOOL_RESULT, text=words, **more)


async def ingest(service: Application, *drafts: EventDraft) -> tuple[str, ...]:
    return (await service.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=False))).ids


class Counted:
    """How many characters the estimator of tokens was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        real = text.estimate_tokens

        def counting(words: str) -> int:
            self.calls.append(len(words))
            return real(words)

        monkeypatch.setattr(text, "estimate_tokens", counting)
        monkeypatch.setattr(packing, "estimate_tokens", counting)


# --- rebuild ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 1_000])
async def test_a_rebuilt_index_is_filled_a_few_at_a_time_and_answers_as_before(
    service: Application, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    await ingest(service, *(said(f"The ferry number {n} left.", dedupe_key=str(n)) for n in range(20)))
    for n in range(7):
        await service.call(PERSON, "add", MemoryDraft(content=f"Ferry {n} is copper.", name=f"ferry-{n}"))
    asked = api.RecallRequest(query="copper ferry number", limit=50, max_tokens=100_000)
    before = await service.call(PERSON, "recall", asked)
    followed = service._maintainer.index
    sizes: list[int] = []
    replaced: list[int] = []

    def counting(name: str, seen: list[int]) -> None:
        real = getattr(Index, name)

        def counted(index: Index, docs: list[Any], **more: Any) -> None:
            seen.append(len(docs))
            real(index, docs, **more)

        monkeypatch.setattr(Index, name, counted)

    counting("load", sizes)
    for name in ("add", "remove"):
        counting(name, replaced)
    monkeypatch.setattr(documents, "PAGE", size)

    rebuilt = await service.call(PERSON, "rebuild", api.RebuildRequest())

    assert service._maintainer.index is not followed
    assert (sum(sizes), max(sizes)) == (27, min(size, 20))
    assert replaced == [], "the index that is thrown away is given nothing"
    assert (rebuilt.before, rebuilt.memories, rebuilt.events) == (rebuilt.after, 7, 20)
    assert (await service.call(PERSON, "recall", asked)).hits == before.hits


async def test_what_is_said_while_everything_is_made_again_is_in_the_index(service: Application) -> None:
    await ingest(service, said("The harbour was quiet.", dedupe_key="first"))

    async def talk() -> None:
        for n in range(30):
            await ingest(service, said(f"The ferry number {n} left.", dedupe_key=str(n)))
            await service.call(PERSON, "add", MemoryDraft(content=f"Ferry {n} is copper."))

    await asyncio.gather(talk(), *(service.call(PERSON, "rebuild", api.RebuildRequest()) for _ in range(3)))
    await service.indexed()

    assert (len(service._maintainer.index.events.rows), len(service._maintainer.index.memories.rows)) == (31, 30)


# --- recall -----------------------------------------------------------------------------------------------------------


def test_fit_reads_no_more_of_a_text_than_can_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    quote = Quote(event_id="e", session_id="s", ts=Millis(0), utc_offset=0, speaker="user", text=LARGE)
    small = Hit(id="m", kind="memory", text="The ferry left.", score=1.0, ts=Millis(0), type="fact")
    large = Hit(
        id="e",
        kind="event",
        text=LARGE,
        score=1.0,
        ts=Millis(0),
        type="ToolResult",
        sources=(quote,),
        neighbours=(quote,),
    )

    kept, tokens, left_out = packing.fit([small, large, large], 200)

    assert [hit.id for hit in kept] == ["m", "e"]
    assert kept[1].truncated
    assert LARGE.startswith(kept[1].text.removesuffix(" […]"))
    assert 190 <= tokens <= 200
    assert left_out == 1
    assert max(counted.calls) <= packing.chars_within(200) + 1


def test_a_context_reads_no_more_of_a_line_than_can_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)

    answer = packing.context({"a": "short"}, {"b": LARGE, "c": "short"}, identity_tokens=100, active_tokens=100)

    assert answer.cut == ("b",)
    assert max(counted.calls) <= 2 * packing.chars_within(100)


async def _watched(service: Application, read: list[int]) -> None:
    """Note the lengths of all texts that the store reads from now on."""

    def seen(_cursor: Any, row: tuple[Any, ...]) -> tuple[Any, ...]:
        read.extend(len(value) for value in row if isinstance(value, str))
        return row

    for connection in service.store._open:
        await connection.call(lambda raw: setattr(raw, "row_factory", seen))


async def test_recall_reads_of_large_texts_what_can_fit(service: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await ingest(service, *(said(f"{n} {LARGE}") for n in range(5)))
    await service.call(PERSON, "add", MemoryDraft(content=f"A memory. {LARGE}"))
    counted = Counted(monkeypatch)
    read: list[int] = []
    await _watched(service, read)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="copper ferry", neighbours=2, limit=10))

    assert answer.hits[0].truncated
    assert answer.tokens <= DEFAULT.limits.recall_tokens
    most = packing.chars_within(DEFAULT.limits.recall_tokens)
    assert max(counted.calls) <= most + 1
    assert max(read) <= most + 1


async def test_a_hit_larger_than_anybody_reads_is_cut_whatever_the_budget(opened: Opener) -> None:
    async with opened(policy=MemoryPolicy(limits=LimitPolicy(hit_chars=1_000))) as service:
        await ingest(service, said(LARGE), said("The ferry is small."))

        hits = (await service.call(PERSON, "recall", api.RecallRequest(query="ferry", max_tokens=10**9))).hits

        assert {(len(hit.text), hit.truncated) for hit in hits} == {(1_000 + len(" […]"), True), (19, False)}


async def test_every_hit_that_fits_is_in_an_answer_of_many(service: Application) -> None:
    await ingest(service, *(said(f"The ferry number {n} left.", dedupe_key=str(n)) for n in range(60)))

    many = await service.call(PERSON, "recall", api.RecallRequest(query="ferry", limit=50, max_tokens=10_000))
    few = await service.call(PERSON, "recall", api.RecallRequest(query="ferry", limit=50, max_tokens=200))

    assert (len(many.hits), many.left_out) == (50, 0)
    assert len(few.hits) + few.left_out == 50
    assert few.hits == many.hits[: len(few.hits)]


@given(st.text(max_size=300), st.integers(1, 40))
def test_an_estimate_in_pieces_costs_at_most_one_more_a_cut(words: str, size: int) -> None:
    whole = text.estimate_tokens(words)
    pieces = [words[at : at + size] for at in range(0, len(words), size)]

    assert whole <= sum(map(text.estimate_tokens, pieces)) <= whole + len(pieces)


@given(st.text(max_size=200) | st.text("aA \n\u00a0\u0301\u00b4\u1e9b\u0323ﬁ東", max_size=200), st.integers(0, 9))
def test_the_hash_of_a_content_is_the_same_in_pieces(words: str, size: int) -> None:
    folded = " ".join(unicodedata.normalize("NFKC", words).casefold().split())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_FOLDED_CHARS", size + 1)
        assert content_hash(words) == hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()


# --- pages ------------------------------------------------------------------------------------------------------------


async def test_a_page_of_large_texts_ends_early_and_the_pages_hold_all(opened: Opener) -> None:
    async with opened(policy=MemoryPolicy(limits=LimitPolicy(page_chars=100))) as service:
        texts = [f"{n} " + "word " * length for n, length in enumerate((1, 2, 50, 3, 10, 1, 90, 5))]
        await ingest(service, *(said(words, dedupe_key=words) for words in texts))
        for words in texts:
            await service.call(PERSON, "add", MemoryDraft(content=words))

        events: list[list[str]] = []
        cursor = None
        while cursor is not None or not events:
            page = await service.call(PERSON, "events", api.EventsRequest(limit=3, cursor=cursor))
            events.append([event.text for event in page.events])
            cursor = page.next
        memories: list[list[str]] = []
        while cursor is not None or not memories:
            entries = await service.call(PERSON, "list", api.ListRequest(limit=3, cursor=cursor))
            memories.append([entry.memory.content for entry in entries.entries])
            cursor = entries.next

        assert [words for page in events for words in page] == texts
        assert [words for page in reversed(memories) for words in reversed(page)] == [words.strip() for words in texts]
        for pages in (events, memories):
            assert all(len(page) == 1 or sum(map(len, page)) <= 100 for page in pages)
        exported = [json.loads(line) async for line in service.stream(PERSON, "export", api.Nothing())]
        assert [line["event"]["text"] for line in exported if "event" in line] == texts
        assert sum("memory" in line for line in exported) == len(texts)


async def test_learning_takes_large_events_a_few_at_a_time_and_all_of_them(opened: Opener) -> None:
    async with opened(policy=MemoryPolicy(limits=LimitPolicy(page_chars=200))) as service:
        kinds = ("tea", "coffee", "cocoa", "milk", "juice")
        await service.call(
            PERSON,
            "ingest",
            api.IngestRequest(
                events=tuple(
                    EventDraft(
                        agent="test",
                        session_id="s1",
                        type=EventType.USER_MESSAGE,
                        text=f"I prefer {kind} in the morning. " + "And so on. " * 15,
                    )
                    for kind in kinds
                )
            ),
        )

        await service.call(PERSON, "settle", api.SettleRequest())

        learned = " ".join(
            entry.memory.content for entry in (await service.call(PERSON, "list", api.ListRequest())).entries
        )
        assert all(kind in learned for kind in kinds)
        assert await service.distill.pending() == 0


# --- in which thread --------------------------------------------------------------------------------------------------


async def test_large_texts_are_cleaned_and_indexed_beside_the_loop(
    service: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[int]] = {"clean": set(), "index": set()}
    clean, add = redaction.clean, Index.add

    def cleaning(words: str, *more: Any) -> redaction.Cleaned:
        if len(words) > 10_000:
            threads["clean"].add(threading.get_ident())
        return clean(words, *more)

    def noted(method: Callable[..., None]) -> Callable[..., None]:
        def indexing(index: Index, *args: Any, **more: Any) -> None:
            threads["index"].add(threading.get_ident())
            method(index, *args, **more)

        return indexing

    monkeypatch.setattr(intake.redaction, "clean", cleaning)
    monkeypatch.setattr(Index, "add", noted(add))

    await ingest(service, said(LARGE))
    entry = await service.call(PERSON, "add", MemoryDraft(content=LARGE))
    await service.call(PERSON, "update", api.UpdateRequest(ref=entry.memory.id, content=f"{LARGE} And then?"))
    await service.call(PERSON, "set_active", api.SlotRequest(key="now", value=LARGE))
    await service.call(
        PERSON, "import", api.ImportRequest(name="notes.md", data=f"# Notes\n\n{LARGE} indeed\n".encode())
    )
    await service.indexed()

    assert threads["clean"]
    assert threads["index"]
    assert threading.get_ident() not in threads["clean"] | threads["index"]


async def test_a_commit_is_in_the_index_though_the_question_that_waited_for_it_was_given_up(
    service: Application,
) -> None:
    # An event: what is added as a memory is compared with what the index knows, and would wait for the lock itself.
    ferry = EventDraft(agent="a", session_id="s", type=EventType.USER_MESSAGE, text="The ferry is copper.")
    with service._maintainer.index.lock:
        stored = await service.call(PERSON, "ingest", api.IngestRequest(events=(ferry,), learn=False))
        question = asyncio.create_task(service.call(PERSON, "recall", api.RecallRequest(query="ferry")))
        await asyncio.sleep(0.05)
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)

    hits = (await service.call(PERSON, "recall", api.RecallRequest(query="ferry"))).hits
    assert [hit.id for hit in hits] == list(stored.ids)


@pytest.mark.parametrize(
    "draft",
    [
        MemoryDraft(content="x", name=LARGE),
        MemoryDraft(content="x", aliases=(LARGE,)),
        MemoryDraft(content="x", metadata={"a": LARGE}),
        MemoryDraft(content="x", metadata={"a": [[]] * 1_000_000}),
        MemoryDraft(content="x", metadata={LARGE: 1}),
    ],
)
async def test_what_is_far_too_large_is_refused_before_it_is_cleaned(
    service: Application, monkeypatch: pytest.MonkeyPatch, draft: MemoryDraft
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("cleaned what is refused")

    monkeypatch.setattr(redaction, "clean_json", fail)

    with pytest.raises((InvalidError, TooLargeError)):
        await service.call(PERSON, "add", draft)


# --- bodies -----------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(["events", "a", "b", '"', "\\", "東"]), values)


def outcome(decode: Callable[[], Any]) -> Any:
    try:
        return decode()
    except InvalidError:
        return InvalidError


def in_pieces(body: bytes, *, max_items: int = 5_000) -> Any:
    return piecewise.fields(body, lists={"events"}, files=set(), max_items=max_items, decode=decoded)


@given(objects, st.booleans(), st.sampled_from([None, 1]))
def test_a_body_in_pieces_is_what_it_is_as_a_whole(given: dict[str, Any], ascii_: bool, indent: int | None) -> None:  # noqa: FBT001
    body = json.dumps(given, ensure_ascii=ascii_, indent=indent).encode()

    assert in_pieces(body) == decoded(body) == given


@given(objects, st.randoms())
def test_a_damaged_body_is_refused_in_pieces_as_it_is_as_a_whole(given: dict[str, Any], random: Any) -> None:
    body = bytearray(json.dumps(given).encode())
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(body))
        body[at : at + random.randrange(2)] = bytes([random.choice(b'"\\{}[],:0a \xff')])

    whole = outcome(lambda: decoded(bytes(body)))

    assert outcome(lambda: in_pieces(bytes(body))) == (whole if isinstance(whole, dict) else InvalidError)


@pytest.mark.parametrize("words", ['say "no" \\ or\n\u2028', "東京🦜", "\ud83d alone", "a" * 50, "\\\\\\" * 9])
def test_a_large_text_in_pieces_is_the_same_text(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(piecewise, "TEXT_BYTES", 40)
    body = json.dumps({"text": words * 100}).encode()

    assert in_pieces(body) == {"text": (words * 100).encode("utf-16", "surrogatepass").decode("utf-16", "replace")}


ESCAPES = [*"au08é東🦜", "\\n", "\\\\", '\\"', "\\/", "\\u0041", "\\ud83d", "\\udd9c", "\\ud83d\\udd9c", "\\\\\\ud83d"]
WRONG = ["\\x", "\\u12", "\\ud", "\\"]


@given(st.lists(st.sampled_from(ESCAPES), max_size=60), st.lists(st.sampled_from(WRONG), max_size=1), st.randoms())
def test_a_text_dense_with_escapes_is_cut_where_it_means_the_same(parts: list[str], wrong: list[str], r: Any) -> None:
    mixed = parts + wrong
    r.shuffle(mixed)
    body = f'{{"text": "{"".join(mixed)}"}}'.encode()

    whole = outcome(lambda: decoded(body))
    with pytest.MonkeyPatch.context() as patch:
        for size in range(9, 20):
            patch.setattr(piecewise, "TEXT_BYTES", size)
            assert outcome(lambda: in_pieces(body)) == whole


@pytest.mark.parametrize("escape", ["\\ud83d", "x\\ud83d\\n", "\\\\", "\\ud83d\\udd9c", "é", "東", "\\u00e9"])
def test_a_text_of_escapes_alone_is_never_decoded_at_once(escape: str) -> None:
    sizes: list[int] = []

    def counting(part: bytes) -> Any:
        sizes.append(len(part))
        return decoded(part)

    body = f'{{"text": "{escape * (1_000_000 // len(escape.encode()))}"}}'.encode()

    assert piecewise.fields(body, lists=set(), files=set(), max_items=9, decode=counting) == decoded(body)
    assert max(sizes) <= piecewise.TEXT_BYTES + 8


def test_no_large_piece_is_decoded_at_once() -> None:
    sizes: list[int] = []

    def counting(part: bytes) -> Any:
        sizes.append(len(part))
        return decoded(part)

    drafts = [{"text": LARGE * 9, "metadata": {"a": list(range(9_000))}}] * 3
    body = json.dumps({"events": drafts}).encode()

    found = piecewise.fields(body, lists={"events"}, files=set(), max_items=9, decode=counting)

    assert found == {"events": drafts}
    assert max(sizes) <= 2 * piecewise.TEXT_BYTES


@pytest.mark.parametrize(
    "body",
    [
        b'{"events": [' + b"{}," * 100_000 + b"{}]}",
        b'{"events": [' + b"1," * 100_000 + b"1]}",
        b'{"events": [{"metadata": {"a": [' + b"[]," * 100_000 + b"[]]}}]}",
        b'{"events": [{"metadata": ' + b"[" * 300_000,
        b'{"learn": [' + b"1," * 300_000 + b"1]}",
    ],
)
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(body: bytes) -> None:
    sizes: list[int] = []

    def counting(part: bytes) -> Any:
        sizes.append(len(part))
        return decoded(part)

    with pytest.raises((TooLargeError, InvalidError)):
        piecewise.fields(body, lists={"events"}, files=set(), max_items=5_000, decode=counting)

    assert sum(sizes) <= 20_000


def test_a_file_in_json_is_decoded_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "TEXT_BYTES", 16)
    data = bytes(range(256)) * 400
    body = json.dumps({"name": "a.md", "data": base64.b64encode(data).decode(), "dry_run": True}).encode()

    request = read(*IMPORT, path={}, query="", body=body, media_type="application/json")

    assert request == api.ImportRequest(name="a.md", data=data, dry_run=True)
    with pytest.raises(InvalidError, match="data is not base64"):
        read(*IMPORT, path={}, query="", body=body.replace(b"AAEC", b"A=EC"), media_type="application/json")


def test_a_large_request_is_the_request_that_a_small_one_is() -> None:
    drafts = [
        {"agent": "a", "session_id": "s", "type": "user_message", "text": "w" * 10_000, "metadata": {"a": {"b": [1]}}}
    ] * 20
    body = json.dumps({"events": drafts, "learn": False}).encode()

    request = read(*INGEST, path={}, query="", body=body, media_type="application/json")

    assert request == msgspec.json.decode(body, type=api.IngestRequest)
    with pytest.raises(InvalidError, match="has no field 'texts'"):
        read(*INGEST, path={}, query="", body=body.replace(b'"text"', b'"texts"'), media_type="application/json")


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_an_answer_in_pieces_is_the_answer(service: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    await ingest(service, said(LARGE), said("The ferry left."))
    await service.call(
        PERSON,
        "ingest",
        api.IngestRequest(
            events=(
                EventDraft(agent="t", session_id="u", type=EventType.USER_MESSAGE, text="I prefer the copper ferry."),
            )
        ),
    )
    await service.call(PERSON, "settle", api.SettleRequest())
    (entry,) = (await service.call(PERSON, "list", api.ListRequest())).entries
    answers: list[Any] = [
        await service.call(PERSON, "recall", api.RecallRequest(query="ferry", neighbours=2)),
        await service.call(PERSON, "why", api.RefRequest(ref=entry.memory.id)),
        await service.call(PERSON, "list", api.ListRequest()),
        await service.call(PERSON, "events", api.EventsRequest()),
        await service.call(PERSON, "stats", api.Nothing()),
        await service.call(PERSON, "context", api.ContextRequest()),
        api.Nothing(),
        {"ok": True},
    ]
    monkeypatch.setattr(piecewise, "SENT_BYTES", 100)

    for answer in answers:
        pieces = list(piecewise.encoded(answer))
        assert b"".join(pieces) == msgspec.json.encode(answer)
        assert len(pieces) == 1 or len(msgspec.json.encode(answer)) > 100


# --- files and answers, in pieces -------------------------------------------------------------------------------------

WORDS = st.text(alphabet=st.sampled_from("aZ é東😀İΣ#-=` \t\r\n\0\u00a0\v\ud83d\ude00"), max_size=40)
UNICODE = WORDS.map(lambda words: words.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "PIECE", 3)
    monkeypatch.setattr(parsing, "LARGE_JSON", 8)
    monkeypatch.setattr(intake, "VALID_CHARS", 3)
    monkeypatch.setattr(notes, "JOINED_LINES", 2)
    monkeypatch.setattr(windows, "WINDOW", 3)
    monkeypatch.setattr(windows, "FIND_WINDOW", 3)
    monkeypatch.setattr(piecewise, "SENT_CHARS", 3)


NOT_RESET = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def whole_prose(data: bytes) -> str | None:
    """What `prose` returns, made at once; None for what it refuses."""
    try:
        found = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in found else found.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(st.one_of(UNICODE.map(str.encode), st.binary(max_size=24)))
def test_a_file_read_in_pieces_says_what_it_says_at_once(data: bytes) -> None:
    try:
        found: str | None = parsing.prose("a.txt", data)
    except InvalidError:
        found = None

    assert found == whole_prose(data)
    assert parsing.decoded(data, errors="replace") == data.decode(errors="replace")
    assert list(export_format._lines(data)) == data.splitlines()


@pytest.mark.usefixtures("small_pieces")
def test_a_file_that_is_not_utf8_is_refused_with_the_place_of_the_first_wrong_byte() -> None:
    with pytest.raises(InvalidError, match="its byte 9 cannot be read"):
        parsing.prose("a.txt", "aé東b".encode() + b"cd\xff d")


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(UNICODE)
def test_a_file_of_utf16_is_read_in_pieces(words: str) -> None:
    assert parsing.as_utf8("a.txt", b"\xff\xfe" + words.encode("utf-16-le"), whole=True) == words.encode()


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(WORDS)
def test_a_text_worked_on_in_pieces_becomes_what_it_becomes_at_once(words: str) -> None:
    between = re.compile(r"\n[ \t]*\n\s*")

    assert list(parsing.rows(words)) == words.split("\n")
    assert [*filter(None, map(parsing.clean, notes.paragraphs(words)))] == [
        *filter(None, map(parsing.clean, between.split(words)))
    ]
    assert parsing.clean(words) == re.sub("[\ud800-\udfff]", "\ufffd", words).strip()
    assert parsing.digest(words, "x") == hashlib.sha256(f"{words}\0x".encode(errors="replace")).hexdigest()[:32]
    assert notes.Section(0, (), words.split("\n")).text == words.strip()
    plain = words.replace("\0", "\ufffd")
    assert intake.valid(words) == plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(st.text(alphabet="ab", max_size=20), st.text(alphabet="ab", min_size=1, max_size=6), st.integers(0, 20))
def test_what_is_searched_a_stretch_at_a_time_is_found_where_it_stands(text_: str, needle: str, start: int) -> None:
    assert windows.find(text_, needle, start) == text_.find(needle, start)
    assert windows.holds(text_, needle) is (needle in text_)
    assert [*windows.hits(text_, needle)] == [at for at in range(len(text_)) if text_.startswith(needle, at)]


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
)


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(VALUES)
def test_large_json_is_read_in_turns_and_says_the_same(value: Any) -> None:
    data = json.dumps(value, indent=1).encode()

    assert parsing.json_value(data) == json.loads(data)


@pytest.mark.usefixtures("small_pieces")
@NOT_RESET
@given(UNICODE, st.lists(UNICODE, max_size=3))
def test_an_answer_with_large_texts_is_sent_as_the_json_it_is(words: str, more: list[str]) -> None:
    quotes = tuple(
        Quote(event_id="e", session_id="s", ts=Millis(0), utc_offset=0, speaker="user", text=text_) for text_ in more
    )
    hit = Hit(id="m", kind="memory", text=words, score=1.0, ts=Millis(0), type="fact", sources=quotes)
    answer = api.RecallResponse(hits=(hit, hit), mode="keyword", tokens=1, elapsed_ms=0.5)

    assert b"".join(piecewise.encoded(answer)) == msgspec.json.encode(answer)


def test_no_piece_of_an_answer_is_much_larger_than_what_is_encoded_at_a_time() -> None:
    hit = Hit(id="m", kind="memory", text=LARGE * 2, score=1.0, ts=Millis(0), type="fact")
    answer = api.RecallResponse(hits=(hit,), mode="keyword", tokens=1, elapsed_ms=0.5)

    assert max(map(len, piecewise.encoded(answer))) <= 2 * piecewise.SENT_BYTES


async def test_what_waits_to_be_embedded_is_read_no_further_than_the_model_reads(
    service: Application,
) -> None:
    await service.store.write(lambda tx: tx.vectors.queue.enter(1))
    event = EventDraft(agent="test", session_id="s1", type=EventType.USER_MESSAGE, text=LARGE)
    await service.call(PERSON, "ingest", api.IngestRequest(events=(event,), learn=False))
    read: list[int] = []
    await _watched(service, read)

    (waiting,) = await service.store.read(lambda q: q.embed_queue.first(1))

    assert waiting.text == f"[user] {LARGE[:MAX_EMBEDDED_CHARS]}"
    assert max(read) <= MAX_EMBEDDED_CHARS


async def test_an_answer_is_given_up_when_whoever_asked_has_gone() -> None:
    made: list[int] = []
    begun, closed = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            for number in range(1_000_000):
                made.append(number)
                begun.set()
                yield b"x"
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def receive() -> dict[str, Any]:
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(0)

    await _Streamed(pieces())({"type": "http"}, receive, send)

    await asyncio.wait_for(closed.wait(), 5)
    assert 1 <= len(made) < 100


def test_the_daemon_answers_in_pieces_without_loading_what_anyio_loads_at_its_first_use(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from scrubjay.transports.http.endpoint import _Streamed\n"
        "async def pieces():\n"
        "    yield b'x'\n"
        "async def receive():\n"
        "    await asyncio.sleep(60)\n"
        "async def send(message):\n"
        "    print(message['type'])\n"
        "asyncio.run(_Streamed(pieces())({'type': 'http'}, receive, send))\n"
        "print('anyio._backends._asyncio' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert done.stdout.split() == ["http.response.start", *["http.response.body"] * 2, "False"]
