"""Recall over a real store: every language, no query syntax, its limits, its budget and its counts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, ScrubjayError, TooLargeError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft
from scrubjay_shared.text import estimate_tokens
from service_calls import NOW, Opener, get, ingest, listed, recalled, said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日、東京駅で佐藤さんに会いました", "東京"),
        ("我们决定把数据库迁移到柏林", "柏林"),
        ("ฉันชอบกาแฟตอนเช้า", "กาแฟ"),
        ("اجتماعنا القادم في القاهرة يوم الخميس", "القاهرة"),
        ("우리는 부산에서 만났습니다", "부산"),
        ("Вчера мы были в Москве", "москве"),
        ("Das Rückgrat der Straße", "strasse"),
        ("the deploy went 🚀 today", "🚀"),
        ("İstanbul'da buluştuk", "istanbul"),
        ("Ο Γιώργος μένει στην Αθήνα", "Αθηνα"),
    ],
)
async def test_every_language_is_found_by_its_words_without_a_model(text: str, query: str, opened: Opener) -> None:
    async with opened() as service:
        await ingest(service, said(text), said("something else altogether", session="s2"))
        await service.call(PERSON, "add", MemoryDraft(content=text + " (noted)"))
        found = await recalled(service, query, mode=api.Mode.KEYWORD)
        hybrid = await recalled(service, query)
    async with opened() as service:
        assert await recalled(service, query, mode=api.Mode.KEYWORD) == found

    assert sorted(found) == sorted([text, text + " (noted)"])
    assert set(hybrid[:2]) == set(found)


@pytest.mark.parametrize(
    "query",
    [
        "", " ", '"', '""', "*", "zebra*", "-zebra", "NEAR(zebra", "a NEAR/2 b", "AND OR NOT", "tokens:zebra", "^zebra",
        "(((", "'; drop table memory; --", "\0", "\ud800", "%", "?", "{}", "zebra\n" * 500, "🦜" * 100, "\u202e",
    ],
)  # fmt: skip
async def test_no_question_is_a_syntax_error(query: str, service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes"))

    for mode in api.Mode:
        answer = await service.call(PERSON, "recall", api.RecallRequest(query=query, mode=mode))

        assert all("zebra" in hit.text for hit in answer.hits), mode
        if "zebra" in query:
            assert [hit.text for hit in answer.hits] == ["A zebra has stripes"], mode
    assert await listed(service) == ["A zebra has stripes"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"limit": 0}, InvalidError),
        ({"limit": -1}, InvalidError),
        ({"limit": 10**9}, InvalidError),
        ({"neighbours": -1}, InvalidError),
        ({"neighbours": 99}, InvalidError),
        ({"min_salience": math.nan}, InvalidError),
        ({"min_salience": 1.5}, InvalidError),
        ({"max_tokens": 0}, InvalidError),
        ({"kinds": ()}, InvalidError),
        ({"kinds": ("dream",)}, InvalidError),
        ({"since": -1}, InvalidError),
        ({"until": 1 << 70}, InvalidError),
        ({"query": "x" * (DEFAULT.limits.max_query_chars + 1)}, TooLargeError),
    ],
    ids=str,
)
async def test_a_question_out_of_range_is_refused(
    changes: dict[str, Any], kind: type[ScrubjayError], service: Application
) -> None:
    fields: dict[str, Any] = {"query": "zebra"}

    with pytest.raises(kind) as refused:
        await service.call(PERSON, "recall", api.RecallRequest(**(fields | changes)))

    assert refused.value.hint


@pytest.mark.parametrize("cursor", ["", "x", "1", "1-", "-1", "1-2-3", "1-x", "9" * 30 + "-1", "1-" + "9" * 30, "\0"])
async def test_a_cursor_that_is_not_ours_is_refused(cursor: str, service: Application) -> None:
    for call in (
        service.call(PERSON, "list", api.ListRequest(cursor=cursor)),
        service.call(PERSON, "events", api.EventsRequest(cursor=cursor)),
    ):
        with pytest.raises(InvalidError):
            await call


@pytest.mark.parametrize(
    "changes", [{"limit": 0}, {"limit": 10**6}, {"since": -1}, {"until": 1 << 64}, {"since": 1 << 70}], ids=str
)
async def test_a_page_out_of_range_is_refused(changes: dict[str, Any], service: Application) -> None:
    for call in (
        service.call(PERSON, "list", api.ListRequest(**changes)),
        service.call(PERSON, "events", api.EventsRequest(**changes)),
    ):
        with pytest.raises(InvalidError):
            await call


async def test_an_answer_never_costs_more_than_was_allowed(
    service: Application, conversation: tuple[EventDraft, ...]
) -> None:
    await ingest(service, *conversation)
    await service.call(PERSON, "settle", api.SettleRequest())

    for max_tokens in (1, 5, 17, 60, 250, 2_000):
        for question in ("harbour berths and bookings", "what does Maya prefer", "SQLite"):
            answer = await service.call(
                PERSON, "recall", api.RecallRequest(query=question, max_tokens=max_tokens, neighbours=2, limit=20)
            )
            cost = sum(
                estimate_tokens(text)
                for hit in answer.hits
                for text in (hit.text, *(quote.text for quote in (*hit.sources, *hit.neighbours)))
            )
            assert cost <= answer.tokens <= max_tokens


async def test_recall_counts_what_it_returned_and_writes_it_down_later(opened: Opener) -> None:
    async with opened() as service:
        await service.call(PERSON, "add", MemoryDraft(content="A zebra has stripes", name="zebra"))
        for _ in range(3):
            await service.call(PERSON, "recall", api.RecallRequest(query="stripes"))
        assert (await get(service, "zebra")).memory.access_count == 0
    async with opened() as service:
        memory = (await get(service, "zebra")).memory

    assert memory.access_count == 3
    assert memory.accessed_at is not None


async def test_the_same_question_gives_the_same_answer(
    service: Application, conversation: tuple[EventDraft, ...]
) -> None:
    await ingest(service, *conversation)
    await service.call(PERSON, "settle", api.SettleRequest())
    request = api.RecallRequest(query="when is the beta due", limit=20)

    answers = [await service.call(PERSON, "recall", request) for _ in range(4)]

    assert all(answer.hits == answers[0].hits for answer in answers)


NO_COUNTS = "create trigger no_counts before insert on access begin select raise(abort, 'no'); end"


async def test_counts_of_recalls_survive_a_write_that_fails(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="the harbour opens at six"))
    await service.call(PERSON, "recall", api.RecallRequest(query="harbour"))
    await service.store.write(lambda tx: tx.queries.fetch(NO_COUNTS))

    with pytest.raises(ScrubjayError):
        await service.recall_counts.run()
    await service.call(PERSON, "recall", api.RecallRequest(query="harbour"))
    await service.store.write(lambda tx: tx.queries.fetch("drop trigger no_counts"))
    await service.recall_counts.run()

    assert (await service.store.read(lambda q: q.memories.get(entry.memory.id))).access_count == 2


@pytest.mark.parametrize("mode", [api.Mode.HYBRID, api.Mode.KEYWORD])
async def test_an_exact_name_or_alias_comes_first_in_every_mode_that_goes_by_words(
    mode: api.Mode, service: Application
) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="pg pg pg: run pg_dump before every release"))
    draft = MemoryDraft(content="We use PostgreSQL 16", name="database", aliases=("pg",))
    await service.call(PERSON, "add", draft)

    assert (await recalled(service, "pg", mode=mode))[0] == "We use PostgreSQL 16"
    assert (await recalled(service, "database", mode=mode))[0] == "We use PostgreSQL 16"


async def test_an_alias_within_a_question_counts(service: Application) -> None:
    for n in range(12):
        await service.call(PERSON, "add", MemoryDraft(content=f"The backup number {n} of the night is kept"))
    draft = MemoryDraft(content="We use PostgreSQL 16", name="database", aliases=("big blue",))
    await service.call(PERSON, "add", draft)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="what about big blue, and its backup?"))

    assert answer.hits[0].text == "We use PostgreSQL 16"
    assert answer.hits[0].parts["mentioned"] > 0


async def test_a_topic_leaves_its_memories_alone_and_an_unknown_one_leaves_nothing(service: Application) -> None:
    await ingest(service, said("the deploy is on tuesday"), learn=False)
    await service.call(PERSON, "add", MemoryDraft(content="We deploy on Tuesdays", topic="release train"))
    await service.call(PERSON, "add", MemoryDraft(content="We deploy with care"))

    assert await recalled(service, "deploy", topic="release train") == ["We deploy on Tuesdays"]
    assert await recalled(service, "deploy", topic="unheard of") == []
    assert len(await recalled(service, "deploy")) == 3


async def test_a_topic_that_the_question_names_settles_near_ties(service: Application) -> None:
    await service.call(PERSON, "add", MemoryDraft(content="Vera signs the builds"))
    await service.call(PERSON, "add", MemoryDraft(content="Emil signs the builds", topic="windows"))

    assert (await recalled(service, "who signs the windows builds?"))[0] == "Emil signs the builds"


async def test_of_a_long_turn_the_passage_that_answers_is_returned_and_ten_hits_fit_the_usual_budget(
    service: Application,
) -> None:
    filler = "Nothing of note happened in this part of the log. " * 60
    texts = [f"{filler}The zebra {n} sleeps in stable {n}. {filler}" for n in range(10)]
    await ingest(service, *(said(text, session=f"s{n}") for n, text in enumerate(texts)), learn=False)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the zebra sleep?"))
    whole = await service.call(
        PERSON, "recall", api.RecallRequest(query="where does the zebra sleep?", max_tokens=1_000_000)
    )

    assert len(answer.hits) == 10
    assert answer.tokens <= DEFAULT.limits.recall_tokens
    for hit in answer.hits:
        assert hit.truncated
        assert "sleeps in stable" in hit.text
        assert hit.span is not None
        assert hit.text in {text[hit.span[0] : hit.span[1]] for text in texts}
    assert {hit.text for hit in whole.hits} == set(texts)
    assert {(hit.truncated, hit.span) for hit in whole.hits} == {(False, None)}


async def test_what_nothing_in_the_store_speaks_of_is_less_near_and_nothing_is_claimed_of_it(
    service: Application,
) -> None:
    await ingest(service, said("we moved the deploy to tuesday"), said("the harbour has 140 berths"), learn=False)

    known = await service.call(PERSON, "recall", api.RecallRequest(query="when is the deploy?"))
    unknown = await service.call(
        PERSON, "recall", api.RecallRequest(query="moved quantum chromodynamics lagrangian hypercharge isospin gluons")
    )

    assert (known.known, unknown.known) == (None, None)
    assert 0 <= unknown.confidence < known.confidence <= 1
    assert all(0 <= hit.confidence <= 1 for hit in (*known.hits, *unknown.hits))


async def test_an_agents_announcement_stands_below_what_was_found(service: Application) -> None:
    agent = {"type": EventType.ASSISTANT_MESSAGE}
    await ingest(
        service,
        said("Let me look at why the ingest service loses messages.", **agent),
        said("The ingest service loses messages when it acknowledges them early.", **agent, session="s2"),
        learn=False,
    )

    assert (await recalled(service, "why does the ingest service lose messages"))[0].startswith("The ingest service")


@pytest.mark.slow
async def test_a_memory_that_was_said_in_hundreds_of_sessions_is_recalled_with_its_first_and_its_last_places(
    service: Application,
) -> None:
    """Each of its quotes had a share of nothing, and cutting one to nothing never ended."""
    words = "We decided to use pnpm for the web shop, the admin pages and everything else that has a lock file."
    began = NOW - 400 * 86_400_000
    await ingest(service, *(said(words, session=f"s{n}", ts=Millis(began + 60_000 * n)) for n in range(240)))
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=60_000))

    request = api.RecallRequest(query="pnpm for the web shop?", kinds=("memory",), limit=100, max_tokens=10_000)
    [hit] = (await service.call(PERSON, "recall", request)).hits

    why = await service.call(PERSON, "why", api.RefRequest(ref=hit.id))
    assert hit.text == words
    assert 1 < len(hit.sources) <= 8
    assert (hit.sources[0].ts, hit.sources[-1].ts) == (began, began + 60_000 * 239)
    assert len(why.sources) == 240


async def test_a_memory_that_is_dropped_and_shown_again_in_one_transaction_is_found(service: Application) -> None:
    entry = await service.call(PERSON, "add", MemoryDraft(content="the jay hides acorns in the north wall"))
    stranger = "ff" * 16

    await service.store.write(lambda tx: tx.ingest.disown(entry.memory.id, [stranger]))
    found = await service.call(PERSON, "recall", api.RecallRequest(query="acorns"))

    assert [hit.id for hit in found.hits] == [entry.memory.id]


@pytest.mark.parametrize("speaker", [EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE], ids=["talk", "work"])
async def test_what_was_replaced_never_stands_before_what_holds_now(service: Application, speaker: EventType) -> None:
    turns = ["the parser", "the lexer", "the release", "the tests pass"]
    await ingest(service, *(said(turn, type=speaker) for turn in turns), learn=False)
    asked = "Which cluster does production run on?"
    chain = [
        "Production runs on the cluster in Frankfurt",
        "It is Dublin for production since May, not as it was",
        "It all went to Oslo, production too",
    ]
    ids = [(await service.call(PERSON, "add", MemoryDraft(content=text))).memory.id for text in chain]
    for old, new in itertools.pairwise(ids):
        await service.call(PERSON, "update", api.UpdateRequest(ref=old, superseded_by=new))

    found = (await service.call(PERSON, "recall", api.RecallRequest(query=asked))).hits

    assert found
    assert next(hit.id for hit in found if hit.id in ids) == ids[-1]
    replaced = [hit for hit in found if hit.id in ids[:-1]]
    assert replaced
    assert all(hit.superseded_by and hit.questioned_by is None for hit in replaced)
