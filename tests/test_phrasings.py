"""A question in several phrasings: one list of what any of them finds, everywhere that a question can be asked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette

from cli_shell import Shell
from mcp_clients import over_http, refused, said
from scrubjay import Memory, api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.policy import DEFAULT
from scrubjay.retrieval.assemble import Hit
from scrubjay.retrieval.phrasings import together
from scrubjay.retrieval.ranking import Ranking
from scrubjay.service.application import Application
from scrubjay.service.recall_request import distinct
from scrubjay_shared.errors import InvalidError, ScrubjayError, TooLargeError
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, Scope
from service_calls import ingest
from service_calls import said as turn
from test_mcp import app, bare_app  # noqa: F401  # fixtures

pytestmark = pytest.mark.anyio


def ranking(*ids: str, **weights: float) -> Ranking:
    hits = tuple(hit(id_, float(-place)) for place, id_ in enumerate(ids))
    return Ranking(hits=hits, mode="hybrid", weights=weights, notes=(f"{len(ids)} found",))


def hit(id_: str, score: float, **more: Any) -> Hit:
    kind = "memory" if id_.startswith("m") else "event"
    return replace(Hit(id=id_, kind=kind, score=score, parts={"dense": score}, ts=0), **more)


def fused(orders: list[Ranking]) -> Ranking:
    return together(orders, DEFAULT.recall)


def ids(one: Ranking) -> list[str]:
    return [found.id for found in one.hits]


# How orders become one


def test_what_two_phrasings_find_stands_above_what_one_finds_alone() -> None:
    assert ids(fused([ranking("a", "both"), ranking("b", "both"), ranking("c", "d", "both")]))[0] == "both"


def test_words_of_every_phrasing_weigh_and_every_note_is_told_once() -> None:
    one = fused([ranking("a", red=1.0, blue=0.2), ranking("b", blue=0.9), ranking("a", "b")])

    assert one.weights == {"red": 1.0, "blue": 0.9}
    assert one.notes == ("1 found", "2 found")


def test_a_turn_and_what_was_read_from_it_found_by_different_phrasings_are_told_once() -> None:
    memory, event = hit("m", 1.0, also=("e",)), hit("e", 1.0, also=("m",))
    for first, second in ((memory, event), (event, memory)):
        orders = [replace(ranking(), hits=(first,)), replace(ranking("x"), hits=(hit("x", 2.0), second))]

        assert first.id in ids(fused(orders))
        assert second.id not in ids(fused(orders))


def test_a_hit_has_the_parts_of_the_phrasing_that_it_fits_best() -> None:
    orders = [replace(ranking(), hits=(hit("a", score, confidence=sure),)) for score, sure in ((9.0, 0.1), (2.0, 0.7))]
    [found] = fused(orders).hits

    assert (found.score, found.confidence) == (2.0, 0.7)


orders = st.lists(st.lists(st.sampled_from([*"abcdefgh", "m1", "m2"]), unique=True), min_size=1, max_size=4)


@given(orders)
def test_each_hit_stands_once_and_scores_fall_and_are_the_sum_of_their_parts(found: list[list[str]]) -> None:
    one = fused([ranking(*each) for each in found])

    assert sorted(ids(one)) == sorted({id_ for each in found for id_ in each})
    assert all(above.score >= below.score for above, below in zip(one.hits, one.hits[1:], strict=False))
    assert all(abs(hit.score - sum(hit.parts.values())) < 1e-9 for hit in one.hits)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.integers(1, 4))
def test_phrasings_that_agree_keep_their_order(order: list[str], times: int) -> None:
    assert ids(fused([ranking(*order)] * times)) == order


@given(orders, st.randoms(use_true_random=False))
def test_which_further_phrasing_comes_first_moves_no_hit_above_one_that_is_worth_more(
    found: list[list[str]], random: Any
) -> None:
    shuffled = random.sample(found, len(found))
    one, other = fused([ranking(*each) for each in found]), fused([ranking(*each) for each in shuffled])

    assert sorted(ids(one)) == sorted(ids(other))


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["a", "b"], ("a", "b")),
        (["which store?", " Which  STORE? ", "", "\n"], ("which store?",)),
        (["", "the store"], ("the store",)),
        ([" ", ""], (" ",)),
    ],
)
def test_a_phrasing_that_says_nothing_or_was_said_already_counts_for_nothing(
    texts: list[str], left: tuple[str, ...]
) -> None:
    assert distinct(texts) == left


# Asked of a store

STORES = (
    "The warehouse runs on PostgreSQL 16.",
    "Orders are kept in a relational database.",
    "The kiln is fired on Fridays.",
    "Deliveries leave at nine.",
)


@pytest.fixture
async def told(service: Application) -> Application:
    for content in STORES:
        await service.call(PERSON, "add", MemoryDraft(content=content))
    return service


async def asked(service: Application, query: str, caller: Caller = PERSON, **more: Any) -> api.RecallResponse:
    answer: api.RecallResponse = await service.call(caller, "recall", api.RecallRequest(query=query, **more))
    return answer


@pytest.mark.parametrize("mode", api.Mode)
async def test_what_any_phrasing_finds_is_in_the_list_once(told: Application, mode: api.Mode) -> None:
    alone = await asked(told, "PostgreSQL", mode=mode)
    both = await asked(told, "PostgreSQL", also=("relational database", "PostgreSQL warehouse"), mode=mode)

    assert [hit.text for hit in alone.hits] == [STORES[0]]
    assert [hit.text for hit in both.hits] == [STORES[0], STORES[1]]
    assert all(abs(hit.score - sum(hit.parts.values())) < 1e-9 for hit in both.hits)


@pytest.mark.parametrize("also", [(), ("", " "), ("WHEN do deliveries  leave?",)])
async def test_one_phrasing_gives_the_list_that_it_always_gave(told: Application, also: tuple[str, ...]) -> None:
    first = await asked(told, "when do deliveries leave?")
    again = await asked(told, "when do deliveries leave?", also=also)

    assert again.hits == first.hits
    assert (again.confidence, again.known, again.mode) == (first.confidence, first.known, first.mode)


async def test_without_a_question_its_other_phrasing_is_asked(told: Application) -> None:
    assert (await asked(told, "", also=("the kiln",))).hits == (await asked(told, "the kiln")).hits


async def test_a_further_phrasing_sees_no_more_than_the_question(service: Application) -> None:
    ours = MemoryDraft(content="zebra of ours", scope=Scope.PROJECT, resource_id="own")
    theirs = MemoryDraft(content="zebra of theirs", scope=Scope.PROJECT, resource_id="other")
    for draft in (ours, theirs):
        await service.call(PERSON, "add", draft)
    agent = Caller(principal=Principal.AGENT, agent="codex", project="own", session_id="s")

    found = await asked(service, "stripes", caller=agent, also=("zebra", "zebra of theirs"))

    assert [hit.text for hit in found.hits] == ["zebra of ours"]


async def test_filters_and_moments_hold_for_every_phrasing(service: Application) -> None:
    early, late = (
        turn(f"the zebra crossing opened {when}", ts=ts) for when, ts in (("early", 10**12), ("late", 15 * 10**11))
    )
    await ingest(service, early, late, learn=False)
    phrasings: dict[str, Any] = {"also": ("zebra crossing",)}

    until = await asked(service, "crossing", until=12 * 10**11, **phrasings)
    as_of = await asked(service, "crossing", as_of=12 * 10**11, **phrasings)
    memories = await asked(service, "crossing", kinds=("memory",), **phrasings)

    assert [hit.text for hit in until.hits] == [early.text]
    assert [hit.text for hit in as_of.hits] == [early.text]
    assert memories.hits == ()


@pytest.mark.parametrize(
    ("also", "kind"),
    [
        (("a", "b", "c", "d"), InvalidError),
        (("x" * (DEFAULT.limits.max_query_chars + 1),), TooLargeError),
    ],
    ids=["too many", "too long"],
)
async def test_phrasings_out_of_bounds_are_refused(
    also: tuple[str, ...], kind: type[ScrubjayError], service: Application
) -> None:
    with pytest.raises(kind) as error:
        await asked(service, "zebra", also=also)

    assert error.value.hint


# The same everywhere


def test_python_asks_in_several_phrasings(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as mem:
        for content in STORES:
            mem.add(content)

        for also in (["relational database"], "relational database"):
            found = mem.recall("PostgreSQL", also=also, mode="keyword").hits
            assert {hit.text for hit in found} == {*STORES[:2]}


def test_the_command_line_asks_in_several_phrasings(shell: Shell) -> None:
    for content in STORES:
        shell.json("add", content)

    found = shell.json("recall", "PostgreSQL", "--also", "relational database", "--also", "the kiln")["hits"]
    assert {hit["text"] for hit in found} == {*STORES[:3]}
    code, error = shell.error("recall", "a", *(word for n in range(4) for word in ("--also", f"b{n}")))
    assert (code, error["code"]) == (2, "invalid")
    assert "at most 3" in error["message"]


@pytest.mark.parametrize("also", [["relational database"], "relational database"])
async def test_an_agent_asks_in_several_phrasings(
    app: Starlette,  # noqa: F811
    service: Application,
    also: list[str] | str,
) -> None:
    for content in STORES:
        await service.call(PERSON, "add", MemoryDraft(content=content))
    async with over_http(app) as client:
        found = await said(client, "memory_search", query="PostgreSQL", also=also)
        assert STORES[0] in found
        assert STORES[1] in found
        assert "also" in await refused(client, "memory_search", query="a", also=["b", "c", "d", "e"])


async def test_a_search_shows_three_hits_in_full_and_a_line_of_each_other(
    app: Starlette,  # noqa: F811
    service: Application,
) -> None:
    long = "It was a long day. " * 20
    drafts = [
        EventDraft(
            agent="codex",
            session_id=f"s{n}",
            type=EventType.USER_MESSAGE,
            text=f"{long}The zebra number {n} is striped. {long}",
            ts=1_760_000_000_000 + n,
        )
        for n in range(20)
    ]
    await ingest(service, *drafts, learn=False)
    async with over_http(app) as client:
        found = await said(client, "memory_search", query="striped zebra")
    whole = re.findall(r"^e_\w{26} · 2025-10-09$", found, re.MULTILINE)
    lines = re.findall(r"^e_\w{26} · 2025-10-09 · user: (.*) \[…\]$", found, re.MULTILINE)

    assert len(whole) == 3
    assert len(lines) >= 13  # an id's cost is estimated from its letters, which are drawn: so more or fewer fit
    assert all(re.search(r"The zebra number \d+ is striped\.", line) for line in lines)
