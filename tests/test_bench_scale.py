"""Stores made of copies of conversations: what a copy keeps, what a filled store holds, and what is measured on it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from scrubjay.api.operations import OPERATIONS, Kind
from scrubjay.settings import DEFAULT_MODEL
from scrubjay_bench import corpus, daemons, event_loop, held, recalling, scale, stores
from scrubjay_bench.conversations import DAY_MS, Conversation, Fact, Question, Turn
from scrubjay_bench.copies import Copies
from scrubjay_bench.figures import Figure
from scrubjay_bench.floors import BareVectors, BareWords
from scrubjay_bench.plan import Plan
from scrubjay_bench.scale import Size
from scrubjay_bench.stores import Filling, Source
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("SCRUBJAY_TEST_MODELS") or ROOT / ".models").resolve()
real = pytest.mark.skipif(not (REAL / DEFAULT_MODEL).is_dir(), reason="needs the model: make test pulls it")
LARGE_CHARS = int(os.environ.get("SCRUBJAY_TEST_LARGE_CHARS", "300000"))
MAY = Millis(int(datetime(2023, 5, 8, tzinfo=UTC).timestamp() * 1000))
SAID = (
    ("Mara", "I moved to Lisbon on 7 May 2023 with 12 boxes, and then Lisbon was hot."),
    ("Theo", "Was that before Mara sold the boat, in 2021?"),
    ("Mara", "It was. We painted the boat with Theo and Mara, and then Rex came."),
    ("Theo", "Good morning!"),
)
MONTHS = [datetime(2000, month, 1, tzinfo=UTC).strftime("%B") for month in range(1, 13)]


def talk() -> Conversation:
    """Two sessions of two turns."""
    turns = tuple(
        Turn(id=str(at), session=str(at // 2), speaker=speaker, text=text, ts=Millis(MAY + at // 2 * DAY_MS + at))
        for at, (speaker, text) in enumerate(SAID)
    )
    fact = Fact(session="0", speaker="Mara", text="Mara moved to Lisbon with 12 boxes.", source="0", ts=MAY)
    question = Question(text="When did Mara move to Lisbon?", evidence=frozenset({"0"}), category="when")
    return Conversation(name="talk", turns=turns, questions=(question,), facts=(fact,))


# What a copy keeps


def test_copies_are_the_same_whenever_they_are_made() -> None:
    first, again = (list(islice(Copies(corpus.conversations(2)).sessions(), 30)) for _ in range(2))

    assert first == again


def test_sessions_of_a_copy_are_as_long_and_in_the_order_of_the_originals() -> None:
    conversations = corpus.conversations(2)
    whole = 2 * corpus.TALK_TURNS // corpus.SESSION_TURNS

    sessions = list(islice(Copies(conversations).sessions(), 3 * whole))

    assert {len(session.turns) for session in sessions} == {corpus.SESSION_TURNS}
    assert len({session.id for session in sessions}) == len(sessions)
    for copy in range(3):
        starts = [session.turns[0].ts for session in sessions[copy * whole : (copy + 1) * whole]]
        assert starts == sorted(starts)


def test_a_copy_has_other_names_and_numbers_and_uses_them_alike() -> None:
    copies = Copies([talk()])

    for session in list(islice(copies.sessions(), 40))[::2]:
        moved, asked = (turn.text for turn in session.turns)
        speaker, other = (turn.speaker for turn in session.turns)
        (town, again) = re.findall(r"[tT]o (\w+) on|then (\w+) was", moved)[0][0], moved.split("then ")[1].split()[0]
        assert town == again
        assert speaker != other
        assert f"before {speaker} " in asked
        assert not {"Mara", "Theo", "Lisbon"} & set(re.findall(r"\w+", moved + asked))
        boxes = re.search(r"with (\d\d) ", moved)
        assert boxes is not None
        for fact in session.facts:
            assert {speaker, town, boxes[1]} <= set(re.findall(r"\w+", fact.text))


def test_a_copy_s_dates_move_with_the_time_it_was_said() -> None:
    for session in list(islice(Copies([talk()]).sessions(), 60))[::2]:
        at = datetime.fromtimestamp(session.turns[0].ts / 1000, UTC)

        assert f"on 7 {MONTHS[at.month - 1]} {at.year} " in session.turns[0].text


def test_a_question_asks_about_a_copy_that_stands_in_the_store() -> None:
    copies = Copies([talk()])
    sessions = list(islice(copies.sessions(), 20))
    items = sum(map(len, sessions))
    told = [session.turns[0].text for session in sessions[::2]]

    for question in islice(copies.questions(items, seed=1), 50):
        who, where = question.removesuffix("?").split()[2], question.removesuffix("?").split()[-1]
        assert any(f"to {where} on" in text for text in told)
        assert who in {session.turns[0].speaker for session in sessions}


def test_texts_of_copies_differ_and_names_recur_unevenly() -> None:
    copies = Copies(corpus.conversations(2))

    turns = [turn for session in islice(copies.sessions(), 300) for turn in session.turns]

    assert len({turn.text for turn in turns}) > 0.9 * len(turns)
    (_, often), *_, (_, seldom) = Counter(turn.speaker for turn in turns).most_common()
    assert often >= 10 * seldom


def test_what_is_varied_is_what_stands_in_a_copy() -> None:
    copies = Copies([talk()])
    said = {f"[{turn.speaker}] {turn.text}" for session in islice(copies.sessions(), 200) for turn in session.turns}

    varied = list(copies.varied(40))

    assert {base for base, _ in varied} == set(range(len(copies.texts)))
    assert {text for base, text in varied if base < len(SAID)} <= said


# The floors do the work they stand for


def test_each_bare_search_finds_the_nearest() -> None:
    vectors = np.random.default_rng(1).normal(size=(3_000, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bare = BareVectors(*scoring.quantise(vectors))

    for search in (bare.product, bare.quantised_product, bare.signs):
        found = search(vectors[123])
        assert 123 in found
        assert len(found) == 10


def test_bare_postings_find_what_bm25_finds() -> None:
    texts = corpus.Corpus(9)
    documents = [texts.statement().lower().rstrip(".").split() for _ in range(300)]
    bare = BareWords((n, " ".join(each)) for n, each in enumerate(documents, 1))

    for wanted in (["the"], documents[7][:4], [*documents[8][2:5], "nowhere"]):
        scores = scoring.bm25(wanted, documents, k1=0.9, b=0.0)
        best = sorted(scores, reverse=True)[:10]
        assert sorted((scores[row - 1] for row in bare.postings(wanted)), reverse=True) == pytest.approx(best)
    assert 8 in bare.full_text(documents[7][:4])


# With the real model


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """One round, and made-up conversations."""
    return Plan(models_dir=REAL, model=DEFAULT_MODEL, keep=tmp_path_factory.mktemp("keep"), rounds=1)


@pytest.fixture(scope="module")
def source(plan: Plan) -> Source:
    """One conversation, embedded once for all tests."""
    return Source(plan, talks=1)


@pytest.mark.slow
@real
def test_a_filled_store_holds_what_was_asked_for_and_has_nothing_left_to_do(
    plan: Plan, source: Source, tmp_path: Path
) -> None:
    store = stores.filled(Filling(items=230, talks=1), plan, source)
    stores.copied(store, tmp_path / "home")

    with daemons.serving(tmp_path / "home", models_dir=REAL, model=DEFAULT_MODEL) as daemon, daemon.client() as client:
        stats = client.call("GET", "/v1/stats")
        answer = recalling.recall(client, next(source.copies.questions(230, seed=2)))

    assert stats["events"] + stats["memories"] == 230
    assert 15 <= stats["memories"] == stats["grips"] <= 30
    assert (stats["embedded"], stats["to_embed"], stats["to_learn"]) == (230, 0, 0)
    assert {"dense", "bm25"} <= {part for hit in answer["hits"] for part in hit["parts"]}


@real
def test_a_filled_store_is_made_once_and_stays_as_it_was(plan: Plan, source: Source) -> None:
    first = stores.filled(Filling(items=20, talks=1), plan, source)
    stamp = first.stat().st_mtime_ns

    again = stores.filled(Filling(items=20, talks=1), plan, source)

    assert again == first
    assert again.stat().st_mtime_ns == stamp
    assert not list(first.parent.glob("*-wal"))
    assert stores.filled(Filling(items=21, talks=1), plan, source) != first


@real
def test_vectors_of_copies_lie_about_their_turn_s_and_no_two_are_alike(source: Source) -> None:
    draw = np.random.default_rng(3)

    copies = source.drawn([0] * 200, draw)
    others = source.drawn(range(1, 60), draw)

    assert np.allclose(np.linalg.norm(np.concatenate([copies, others]), axis=1), 1, atol=1e-5)
    assert len(np.unique(copies, axis=0)) == 200
    assert np.median(copies @ copies[0]) > np.median(others @ copies[0]) + 0.1


@pytest.mark.slow
@real
def test_a_small_store_is_asked_beside_its_floors(plan: Plan) -> None:
    rounds = recalling.asked(plan, Filling(items=230, talks=1), "tiny")

    for name in (*recalling.LEAST, "least", "float32", "signs", "fts5"):
        assert rounds.values(f"floor.tiny.{name}.p50")[0] > 0
    stages = [rounds.values(f"recall.tiny.{stage}.p50")[0] for stage in recalling.STAGES]
    assert 0 < sum(stages) < rounds.values("recall.tiny.p95")[0]


@real
@pytest.mark.slow
def test_every_figure_of_a_size_is_measured(plan: Plan) -> None:
    size = Size(filling=Filling(items=400, talks=1), goals={"recall.p50": 1e6})

    figures = {figure.name: figure for figure in scale.measured(plan, size, "tiny")}

    assert reached(figures["recall.tiny.p50"]) == reached(figures["agreement.tiny"]) == (True, 1)
    assert figures["agreement.tiny"].value == 1
    assert {figure.floor for figure in figures.values()} - {""} <= figures.keys()
    assert all(figure.value > 0 for name, figure in figures.items() if not name.startswith("cpu."))


def reached(figure: Figure) -> tuple[bool | None, int]:
    """Return whether a figure's goal is reached, and in how many rounds it was measured."""
    return figure.reached, figure.rounds


# What is measured of the event loop


@real
@pytest.mark.slow
def test_no_request_with_a_large_text_computes_long_in_the_loop(tmp_path: Path) -> None:
    plan = Plan(models_dir=REAL, model=DEFAULT_MODEL, keep=tmp_path / "keep", rounds=1)
    filling = Filling(items=600, talks=2)
    store = stores.filled(filling, plan, Source(plan, filling.talks))
    with daemons.scratch(None) as folder:
        stores.copied(store, folder / "home")
        records = folder / "delays"
        with event_loop.serving(folder / "home", plan, records) as client:
            asking = event_loop.Asking(client=client, folder=folder, chars=LARGE_CHARS, model=DEFAULT_MODEL)

            found = event_loop.asked(asking, records, lambda _: None)

    assert {name: worst.own for name, worst in found.items() if worst.own > event_loop.GOAL_MS} == {}
    assert {name for name, operation in OPERATIONS.items() if operation.kind is Kind.UNARY} - {
        "ingest",
        "import",
        "resolve",
        "ask",  # waits for a Writer, of which that home has none
    } <= {name.partition(",")[0].partition(":")[0] for name in found}


def test_a_probe_sees_who_holds_the_loop_and_how_long(tmp_path: Path) -> None:
    def busy() -> None:
        until = time.thread_time() + 0.06
        while time.thread_time() < until:
            pass

    async def held_once() -> None:
        with held.probing(tmp_path / "delays"):
            await asyncio.sleep(0.02)
            busy()
            await asyncio.sleep(0.02)

    asyncio.run(held_once())

    worst = max(held.delays(tmp_path / "delays"), key=lambda one: one.own)
    assert 55 <= worst.own <= worst.late + 1
    assert worst.held <= worst.late
