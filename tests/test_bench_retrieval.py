"""The retrieval benchmark: what it reads, what it counts, what it asks the service, and what it writes."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT, RecallPolicy, RecallWeights, weighted
from scrubjay.settings import NO_MODEL
from scrubjay_bench import (
    chats,
    cli,
    configurations,
    fitting,
    locomo,
    longmemeval,
    measures,
    plots,
    protocols,
    retrieval,
    retrieval_cli,
    tables,
)
from scrubjay_bench.asking import ask
from scrubjay_bench.configurations import Configuration, Scored
from scrubjay_bench.conversations import Conversation, DataSet, Question, Turn
from scrubjay_bench.fillings import Documents, Filling, Keeper
from scrubjay_bench.measures import Score
from scrubjay_bench.retrieval import Run
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

ROOT = Path(__file__).parent.parent
LOCOMO = os.environ.get("SCRUBJAY_TEST_LOCOMO", "")
NOON = 1_704_888_000_000  # 2024-01-10T12:00Z

TURNS = [
    ("1", "a", "Ada", "I bought a red kayak in Lisbon"),
    ("1", "b", "Bo", ""),
    ("1", "c", "Bo", "a kayak? nice"),
    ("1", "d", "Bo", "my sister sails on Sundays"),
    ("2", "e", "Ada", "I moved to Porto in March because of the new job"),
    ("2", "f", "Bo", "and the kayak?"),
    ("2", "g", "Ada", "sold it to my neighbour Ines"),
]
QUESTIONS = [
    ("Where did Ada buy the kayak?", ["a"], "where"),
    ("Who bought the kayak of Ada?", ["g", "nowhere"], "who"),
    ("When does the sister of Bo sail?", ["d"], 3),
    ("What colour is the moon?", ["nowhere"], "who"),
]


def chats_in(folder: Path, *, conversations: int = 2) -> Path:
    """Write a folder of small chats."""
    folder.mkdir(exist_ok=True)
    turns = [
        {"conversation": number, "session": int(session), "id": id_, "speaker": speaker, "text": text, "time": time}
        for number in range(conversations)
        for place, (session, id_, speaker, text) in enumerate(TURNS)
        for time in [f"2024-0{session}-10T12:{place:02}:00"]
    ]
    questions = [
        {"conversation": number, "question": text, "evidence": evidence, "category": category}
        for number in range(conversations)
        for text, evidence, category in QUESTIONS
    ]
    for name, lines in (("turns.jsonl", turns), ("questions.jsonl", questions)):
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return folder


def locomo_in(path: Path) -> Path:
    """Write a file of LoCoMo's shape: two sessions, four facts, one of which names two turns."""
    said = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2_date_time": "2:00 pm on 9 June, 2023",
    }
    for session, _, speaker, text in TURNS:
        so_far: Any = said.setdefault(f"session_{session}", [])
        so_far.append({"speaker": speaker, "dia_id": f"D{session}:{len(so_far) + 1}", "text": text})
    observation = {
        "session_1_observation": {"Ada": [["Ada bought a red kayak in Lisbon.", "D1:1"]]},
        "session_2_observation": {
            "Ada": [["Ada lives in Porto.", "D2:1"], ["Ada sold her kayak to Ines.", "D2:3"]],
            "Bo": [["Bo asked about the kayak and its buyer.", ["D2:2", "D2:3"]]],
        },
    }
    questions = [
        {"question": "Where did Ada buy the kayak?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 4},
        {"question": "When does the sister of Bo sail?", "answer": "Sundays", "evidence": ["D1:4"], "category": 2},
        {"question": "Who bought the kayak of Ada?", "answer": "Ines", "evidence": ["D2:3", "D9:9"], "category": 1},
        {"question": "What is on the moon?", "answer": "dust", "evidence": ["D"], "category": 5},
    ]
    entry = {"sample_id": "talk", "conversation": said, "observation": observation, "qa": questions}
    path.write_text(json.dumps([entry]), encoding="utf-8")
    return path


def longmemeval_in(path: Path) -> Path:
    """Write a file of LongMemEval's shape: two questions of which one has no answer, sessions out of order."""

    def turn(role: str, content: str, **more: bool) -> dict[str, Any]:
        return {"role": role, "content": content, **more}

    entry = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What colour is my kayak?",
        "answer": "red",
        "question_date": "2023/06/30 (Fri) 10:00",
        "haystack_dates": ["2023/05/30 (Tue) 23:11", "2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["answer_1", "noise_1"],
        "haystack_sessions": [
            [
                turn("user", "I just bought a red kayak.", has_answer=True),
                turn("assistant", "How nice, a kayak!", has_answer=False),
            ],
            [turn("user", "What goes with green?"), turn("assistant", "White does.")],
        ],
        "answer_session_ids": ["answer_1"],
    }
    abstention = entry | {"question_id": "q2_abs", "question": "What colour is my car?"}
    path.write_text(json.dumps([entry, abstention]), encoding="utf-8")
    return path


def keeper(folder: Path) -> Keeper:
    """Return a keeper of stores without vectors."""
    return Keeper(folder=folder / "keep", models_dir=folder / "models", model=NO_MODEL)


def rows_of(data: DataSet, chosen: tuple[protocols.Protocol, ...], names: list[str], folder: Path) -> list[Any]:
    """Measure some configurations without a model."""
    run = Run(
        data=data, protocols=chosen, configurations=configurations.named(names), keeper=keeper(folder), scratch=folder
    )
    return list(retrieval.measured(run))


# --- the arithmetic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "relevant", "k", "recall", "ndcg"),
    [
        ("abc", "a", 1, 1.0, 1.0),
        ("abc", "c", 2, 0.0, 0.0),
        ("abc", "c", 3, 1.0, 1 / 2),  # log2(3 + 1)
        ("abc", "bx", 2, 0.5, (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("ab", "abc", 2, 2 / 3, 1.0),  # no more can be among two
        ("", "a", 5, 0.0, 0.0),
    ],
)
def test_recall_and_ndcg_are_those_of_the_textbook(
    found: str, relevant: str, k: int, recall: float, ndcg: float
) -> None:
    assert measures.recall_at(k, found, relevant) == pytest.approx(recall)
    assert measures.ndcg_at(k, found, relevant) == pytest.approx(ndcg)


@given(
    found=st.lists(st.integers(0, 20).map(str), unique=True),
    relevant=st.frozensets(st.integers(0, 20).map(str), min_size=1),
)
def test_recall_grows_with_k_and_a_perfect_ranking_has_all(found: list[str], relevant: frozenset[str]) -> None:
    recalls = [measures.recall_at(k, found, relevant) for k in range(1, 22)]
    perfect = [*sorted(relevant), *sorted(set(found) - relevant)]

    assert recalls == sorted(recalls)
    assert 0 <= measures.ndcg_at(5, found, relevant) <= 1
    assert measures.recall_at(21, perfect, relevant) == 1
    assert measures.ndcg_at(5, perfect, relevant) == pytest.approx(1)


def scored(conversation: str, category: str, value: float) -> Score:
    return Score(conversation=conversation, category=category, recall={5: value}, ndcg={5: value})


def test_a_macro_mean_gives_each_category_the_same_say() -> None:
    scores = [scored("one", "many", 1.0) for _ in range(9)] + [scored("two", "few", 0.0)]

    assert measures.summary(scores, 5, macro=False)["recall"]["5"] == 0.9
    assert measures.summary(scores, 5, macro=True)["recall"]["5"] == 0.5


def test_an_interval_holds_its_mean_and_needs_two_conversations() -> None:
    many = [scored(f"conversation {at % 7}", "any", at % 3 / 2) for at in range(70)]

    found = measures.summary(many, 5, macro=False)
    low, high = found["interval"]["recall"]["5"]

    assert low < found["recall"]["5"] < high
    assert measures.summary(many, 5, macro=False) == found
    assert measures.summary(many[:1], 5, macro=False)["interval"]["recall"]["5"] is None


# --- what is read -----------------------------------------------------------------------------------------------------


def test_chats_may_be_numbered_and_their_times_may_have_an_offset_or_none(tmp_path: Path) -> None:
    folder = chats_in(tmp_path, conversations=1)
    lines = (folder / "turns.jsonl").read_text().splitlines()
    lines[0] = lines[0].replace("2024-01-10T12:00:00", "2024-01-10T14:00:00+02:00")
    (folder / "turns.jsonl").write_text("\n".join([*lines, "", "  "]))

    (conversation,) = chats.load(folder).conversations

    assert conversation.name == "0"
    assert [turn.session for turn in conversation.turns] == ["1"] * 4 + ["2"] * 3
    assert (conversation.turns[0].ts, conversation.turns[0].utc_offset) == (NOON, 120)
    assert (conversation.turns[1].ts, conversation.turns[1].utc_offset) == (NOON + 60_000, 0)
    assert [question.category for question in conversation.questions] == ["where", "who", "3", "who"]


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("turns.jsonl", "{", "turns.jsonl, line 2: not JSON"),
        ("turns.jsonl", "[1]", "turns.jsonl, line 2: not an object"),
        ("turns.jsonl", '{"conversation": 0, "session": 1, "id": "z", "speaker": "Bo", "text": "hm"}', "line 2: time"),
        ("turns.jsonl", '{"conversation": 0, "session": 1, "id": "z", "speaker": "Bo", "text": 5}', "line 2: text"),
        ("turns.jsonl", '{"conversation": 0, "session": null, "id": "z", "speaker": "Bo", "text": "", "time": "2024-01-01"}', "session is neither"),
        ("turns.jsonl", '{"conversation": 0, "session": 1, "id": "a", "speaker": "Bo", "text": "", "time": "2024-01-01"}', "line 2: the id a stands there twice"),
        ("turns.jsonl", '{"conversation": 0, "session": 1, "id": "z", "speaker": " ", "text": "", "time": "2024-01-01"}', "speaker is empty"),
        ("turns.jsonl", '{"conversation": 0, "session": 1, "id": "z", "speaker": "Bo", "text": "", "time": "1924-01-01"}', "before 1970"),
        ("questions.jsonl", '{"conversation": 7, "question": "who?", "evidence": []}', "questions.jsonl, line 2: no turn is of"),
        ("questions.jsonl", '{"conversation": 0, "question": " ", "evidence": []}', "line 2: no question"),
        ("questions.jsonl", '{"conversation": 0, "question": "who?", "evidence": "a"}', "evidence is not a list"),
        ("questions.jsonl", '{"conversation": 0, "question": "who?", "evidence": [null]}', "evidence is neither"),
    ],
)  # fmt: skip
def test_a_bad_line_of_a_chat_is_named_by_file_and_number(tmp_path: Path, file: str, line: str, said: str) -> None:
    path = chats_in(tmp_path, conversations=1) / file
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[2:]]))

    with pytest.raises(InvalidError, match="line 2") as caught:
        chats.load(tmp_path)

    assert said in caught.value.message


def test_a_missing_file_of_a_chat_is_named(tmp_path: Path) -> None:
    (chats_in(tmp_path) / "questions.jsonl").unlink()

    with pytest.raises(NotFoundError, match=r"questions\.jsonl"):
        chats.load(tmp_path)


@pytest.mark.parametrize("load", [locomo.load, longmemeval.load])
@pytest.mark.parametrize("content", [None, "{", "[{}]", "[1]", '{"a": 1}'])
def test_a_file_that_is_not_the_data_set_is_refused(load: Any, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises((InvalidError, NotFoundError), match=r"data\.json"):
        load(path)


def test_locomo_has_turns_in_order_and_facts_with_the_one_turn_they_name(tmp_path: Path) -> None:
    (conversation,) = locomo.load(locomo_in(tmp_path / "locomo.json")).conversations

    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D1:3", "D1:4", "D2:1", "D2:2", "D2:3"]
    assert conversation.turns[1].ts - conversation.turns[0].ts == 60_000
    assert [fact.source for fact in conversation.facts] == ["D1:1", "D2:1", "D2:3", None]
    assert conversation.facts[0].document == "[Ada] Ada bought a red kayak in Lisbon."
    assert [question.category for question in conversation.questions] == [
        "single-hop", "temporal", "multi-hop", "adversarial"
    ]  # fmt: skip


def test_longmemeval_is_a_conversation_a_question_in_order_of_time(tmp_path: Path) -> None:
    first, second = longmemeval.load(longmemeval_in(tmp_path / "oracle.json")).conversations
    (question,) = first.questions

    assert [turn.id for turn in first.turns] == ["noise_1/1", "noise_1/2", "answer_1/1", "answer_1/2"]
    assert [turn.speaker for turn in first.turns[:2]] == ["user", "assistant"]
    assert (question.evidence, question.sessions) == ({"answer_1/1"}, {"answer_1"})
    assert question.asked == 1_688_119_200_000  # 2023-06-30T10:00Z
    assert (question.left_out, second.questions[0].left_out) == ("", "abstention")


# --- what counts ------------------------------------------------------------------------------------------------------

SAID = tuple(
    Turn(id=id_, session=session, speaker="Ada", text="", ts=Millis(at))
    for at, (id_, session) in enumerate([("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")])
)
HELD = Documents(
    turns={"ev-a": "a", "ev-b": "b", "ev-c": "c", "ev-d": "d"},
    covers={"mem-ab": ("a", "b"), "mem-none": (), "mem-c": ("c",)},
    texts={},
    bytes=0,
    turn_tokens=100,
    memory_tokens=25,
)


def asked(*evidence: str, sessions: tuple[str, ...] = ()) -> Question:
    return Question(text="?", evidence=frozenset(evidence), category="any", sessions=frozenset(sessions))


@pytest.mark.parametrize(
    ("protocol", "question", "hits", "units", "relevant"),
    [
        (protocols.P2, asked("a", "zz"), ["ev-c", "ev-a"], ["c", "a"], {"a"}),
        (protocols.P4_MEMORIES, asked("a"), ["mem-c", "mem-ab"], ["mem-c", "mem-ab"], {"mem-ab"}),
        (protocols.P4_BOTH, asked("b"), ["mem-none", "mem-ab", "ev-b", "ev-d"], ["a", "b", "d"], {"b"}),
        (protocols.P2_SESSIONS, asked("c", sessions=("2", "9")), ["ev-a", "ev-b", "ev-c"], ["1", "2"], {"2"}),
    ],
)
def test_a_hit_counts_as_what_it_stands_for_and_each_thing_once(
    protocol: protocols.Protocol, question: Question, hits: list[str], units: list[str], relevant: set[str]
) -> None:
    conversation = Conversation(name="one", turns=SAID, questions=(question,))

    assert protocol.units(conversation, HELD, hits) == units
    assert protocol.relevant(conversation, question, HELD) == relevant


@pytest.mark.parametrize(
    ("protocol", "question", "reason"),
    [
        (protocols.P2, asked("a"), ""),
        (protocols.P2, asked("zz"), protocols.UNRESOLVED),
        (protocols.P4_MEMORIES, asked("d"), protocols.UNCOVERED),
        (protocols.P2_CUT, asked("a"), protocols.OTHERS),
        (protocols.P2, replace(asked("a"), left_out="abstention"), "abstention"),
    ],
)
def test_a_question_that_is_not_counted_has_a_reason(
    protocol: protocols.Protocol, question: Question, reason: str
) -> None:
    conversation = Conversation(name="one", turns=SAID, questions=(question,))

    assert protocol.out(conversation, question, HELD) == reason


def test_coverage_tells_some_evidence_from_all_of_it() -> None:
    questions = (asked("a"), asked("a", "d"), asked("d"), asked("zz"))
    conversation = Conversation(name="one", turns=SAID, questions=questions)

    found = protocols.coverage([(conversation, HELD)])

    assert (found.any, found.all, found.turns) == (pytest.approx(2 / 3), pytest.approx(1 / 3), 0.5)
    assert (found.compression, found.memories) == (0.25, 3)


# --- configurations ---------------------------------------------------------------------------------------------------


def test_each_field_of_the_policy_is_a_feature_to_leave_out_or_known_to_be_none() -> None:
    off = [name for feature in configurations.FEATURES.values() for name in feature]

    assert sorted([*off, *configurations.PARAMETERS]) == sorted(field.name for field in fields(RecallPolicy))


def test_each_ablation_is_another_policy_than_the_default() -> None:
    prints = {one.name: one.fingerprint(()) for one in configurations.GROUPS["all"]}

    assert len(set(prints.values())) == len(prints)


def test_names_and_groups_are_found_once_each_and_others_refused() -> None:
    chosen = configurations.named(["dense", "baselines", "default"])

    assert [one.name for one in chosen][:2] == ["dense", "bm25"]
    assert len({one.name for one in chosen}) == len(chosen)
    with pytest.raises(InvalidError, match="no configuration is called densest"):
        configurations.named(["densest"])


def test_reciprocal_ranks_add_up() -> None:
    combine = configurations.reciprocal_ranks({})
    first, second = ([Scored(id=id_, score=0.0) for id_ in ids] for ids in ("ab", "cba"))

    fused = combine("?", [first, second])

    assert [one.id for one in fused] == ["a", "b", "c"]
    assert [one.score for one in fused] == pytest.approx([1 / 61 + 1 / 63, 2 / 62, 1 / 61])


def test_the_published_formula_weighs_what_is_rare_and_unknown_words_as_one() -> None:
    documents = {"x": "[Ada] Ada's red boat", "y": "[Bo] a boat", "z": "[Bo] nothing"}
    combine = configurations.published_formula(documents)

    fused = {
        one.id: one.score for one in combine("Which boat is red, Zoe?", [[Scored(id=id_, score=0.5) for id_ in "xyz"]])
    }

    boat, red, zoe = math.log(3 / 2) + 1, math.log(3) + 1, 1.0
    assert fused["x"] == pytest.approx(0.4 + 0.2 * (boat + red) / (boat + red + zoe))
    assert fused["y"] == pytest.approx(0.4 + 0.2 * boat / (boat + red + zoe))
    assert fused["z"] == pytest.approx(0.4)


def test_a_fitted_configuration_asks_each_conversation_with_its_own_policy(tmp_path: Path) -> None:
    data = chats.load(chats_in(tmp_path / "chats"))
    seen: list[str] = []

    def fitted(conversation: str) -> RecallPolicy:
        seen.append(conversation)
        return replace(DEFAULT.recall, event_bm25=float(conversation))

    configuration = Configuration(name="learned", meaning="", fitted=fitted)
    run = Run(data=data, protocols=(protocols.P2,), configurations=(configuration,), keeper=keeper(tmp_path))
    (row,) = retrieval.measured(run)

    assert set(seen) == {"0", "1"}
    assert row["policy"] == configuration.fingerprint(["0", "1"]) != configuration.fingerprint(["0"])


# --- stores and answers -----------------------------------------------------------------------------------------------


def test_a_filled_store_is_made_once_and_asking_leaves_it_as_it_was(tmp_path: Path) -> None:
    (conversation, _) = chats.load(chats_in(tmp_path / "chats")).conversations
    of = keeper(tmp_path)
    filled = of.filled(conversation, Filling.TURNS)
    before = filled.path.read_bytes()

    asyncio.run(ask(of, filled, conversation, configurations.MAIN[0], kinds=protocols.EVENTS, k=5, scratch=tmp_path))

    assert filled.path.read_bytes() == before
    assert of.filled(conversation, Filling.TURNS) == filled


def test_a_store_has_another_name_when_what_is_in_it_changes(tmp_path: Path) -> None:
    (conversation, _) = chats.load(chats_in(tmp_path / "chats")).conversations
    said = conversation.turns[0]
    other = replace(conversation, turns=(replace(said, text=said.text + "!"), *conversation.turns[1:]))
    of = keeper(tmp_path)

    names = {
        of.name(conversation, Filling.TURNS),
        of.name(other, Filling.TURNS),
        of.name(conversation, Filling.LEARNED),
        replace(of, model="bge-small-en-v1.5").name(conversation, Filling.TURNS),
    }

    assert len(names) == 4
    assert replace(of, reranker="another").name(conversation, Filling.TURNS) in names


def test_facts_have_a_grip_on_their_turn_where_turns_are_stored_too(tmp_path: Path) -> None:
    (conversation,) = locomo.load(locomo_in(tmp_path / "locomo.json")).conversations
    of = keeper(tmp_path)
    facts, linked = of.filled(conversation, Filling.FACTS), of.filled(conversation, Filling.LINKED)

    async def grips() -> int:
        async with of.opened(linked, lambda: conversation.end, tmp_path) as service:
            return (await service.call(PERSON, "stats", api.Nothing())).grips

    assert (len(facts.documents.turns), len(facts.documents.covers)) == (0, 4)
    assert (len(linked.documents.turns), len(linked.documents.covers)) == (7, 4)
    assert facts.documents.covers == linked.documents.covers
    assert asyncio.run(grips()) == 3


def test_fewer_hits_are_the_first_of_more(tmp_path: Path) -> None:
    (conversation, _) = chats.load(chats_in(tmp_path / "chats")).conversations
    of = keeper(tmp_path)
    filled = of.filled(conversation, Filling.TURNS)

    def hits(limit: int) -> list[tuple[str, ...]]:
        configuration = Configuration(name="some", meaning="", limit=limit)
        answers = asyncio.run(
            ask(of, filled, conversation, configuration, kinds=protocols.EVENTS, k=1, scratch=tmp_path)
        )
        return [answer.hits for answer in answers.values()]

    assert hits(2) == [found[:2] for found in hits(50)]


# --- rows -------------------------------------------------------------------------------------------------------------


def test_locomo_counts_what_each_protocol_says(tmp_path: Path) -> None:
    data = locomo.load(locomo_in(tmp_path / "locomo.json"))
    chosen = protocols.named(protocols.OF_LOCOMO, list(protocols.OF_LOCOMO))

    rows = {row["protocol"]: row for row in rows_of(data, chosen, ["bm25"], tmp_path)}

    counted = {name: (row["questions"], row["documents"], row["left_out"]) for name, row in rows.items()}
    unresolved = {protocols.UNRESOLVED: 1}
    assert counted["P1"] == (2, 4, {protocols.UNCOVERED: 1} | unresolved)
    assert counted["P1+provenance"] == (2, 11, {protocols.UNCOVERED: 1} | unresolved)
    assert counted["P2"] == (3, 7, unresolved)
    assert counted["P2, questions of P1"] == (2, 7, {protocols.OTHERS: 1} | unresolved)
    assert counted["P3"] == counted["P2"]
    assert rows["P1"]["recall"]["5"] == 1.0
    assert rows["P3"]["by_category"] == rows["P2"]["by_category"]
    assert set(rows["P2"]["by_category"]) == {"single-hop", "temporal", "multi-hop"}


def test_what_is_distilled_is_measured_with_its_coverage(tmp_path: Path) -> None:
    data = chats.load(chats_in(tmp_path / "chats"))

    rows = {
        row["protocol"]: row for row in rows_of(data, protocols.named(protocols.OF_CHATS, ["P4"]), ["bm25"], tmp_path)
    }

    covered = rows["P4, memories"]["coverage"]
    assert covered["memories"] > 0
    assert 0 < covered["all"] <= covered["any"] <= 1
    assert rows["P4, memories as turns"]["questions"] == rows["P4, memories and events"]["questions"] == 6
    assert rows["P4, memories"]["questions"] == round(6 * covered["any"])
    both, alone = rows["P4, memories and events"], rows["P4, memories as turns"]
    assert both["recall"]["5"] >= alone["recall"]["5"]


def test_longmemeval_is_judged_by_turns_and_by_sessions_apart(tmp_path: Path) -> None:
    data = longmemeval.load(longmemeval_in(tmp_path / "oracle.json"))

    turns, sessions = rows_of(data, protocols.named(protocols.OF_LONGMEMEVAL, ["P2"]), ["bm25"], tmp_path)

    assert (turns["protocol"], sessions["protocol"]) == ("P2", "P2, sessions")
    assert turns["left_out"] == sessions["left_out"] == {"abstention": 1}
    assert (turns["questions"], turns["recall"]["3"], sessions["recall"]["1"]) == (1, 1.0, 1.0)


def run(tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Run the command on small chats without a model; return its code and what it wrote."""
    file = tmp_path / "rows.json"
    line = ["chats", "--data", str(chats_in(tmp_path / "chats")), "--model", "none", "--keep", str(tmp_path / "keep")]
    code = cli.main([*line, "--protocols", "P2,P3", "--json", str(file), *more])
    return code, json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def test_a_run_shows_its_rows_and_writes_them_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(tmp_path, "--configurations", "main,bm25", "--out", str(tmp_path / "out"), "--reranker", NO_MODEL)
    shown = capsys.readouterr()

    assert code == 0
    assert [(row["protocol"], row["configuration"]) for row in found["rows"]] == [
        ("P2", "default"), ("P3", "default"), ("P2", "bm25"), ("P3", "bm25")
    ]  # fmt: skip
    assert "default + reranker: left out" in shown.err
    assert "6 questions, 2 left out" in shown.out
    page = (ROOT / "docs" / "retrieval-format.md").read_text(encoding="utf-8")
    blocks = [json.loads(part) for part in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    (documented,) = [block for block in blocks if "rows" in block]
    assert set(documented) == set(found)
    for row in found["rows"]:
        assert set(row) == set(documented["rows"][0])
        assert {"1", "3", "5", "10", "20", "50"} == set(row["recall"])
        assert set(row["latency_ms"]) == {"p50", "p95", "stages"}
    assert set(found["run"]) == set(documented["run"])
    assert found["run"]["data"]["sha256"] == chats.load(tmp_path / "chats").sha256
    pictures = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert pictures == ["chats-p2-categories.svg", "chats-p2-curves.svg", "chats-p3-categories.svg", "chats-p3-curves.svg"]  # fmt: skip
    for picture in pictures:
        ET.fromstring((tmp_path / "out" / picture).read_text(encoding="utf-8"))  # noqa: S314 our own pictures


def test_a_resumed_run_measures_only_what_is_not_there(tmp_path: Path) -> None:
    _, found = run(tmp_path, "--configurations", "bm25")
    found["rows"][0]["recall"]["5"] = 0.123  # a mark, to know the row by
    (tmp_path / "rows.json").write_text(json.dumps(found))

    _, resumed = run(tmp_path, "--configurations", "bm25,default", "--resume")
    _, again = run(tmp_path, "--configurations", "bm25")

    assert [row["configuration"] for row in resumed["rows"]] == ["bm25", "bm25", "default", "default"]
    assert resumed["rows"][0]["recall"]["5"] == 0.123
    assert again["rows"][0]["recall"]["5"] != 0.123


def test_the_same_run_gives_the_same_figures(tmp_path: Path) -> None:
    def figures() -> list[Any]:
        _, found = run(tmp_path, "--configurations", "default,rrf")
        return [
            {key: row[key] for key in ("recall", "ndcg", "by_category", "interval", "key")} for row in found["rows"]
        ]

    first = figures()
    for store in (tmp_path / "keep").iterdir():
        for file in store.iterdir():
            file.unlink()
        store.rmdir()

    assert figures() == first


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--protocols", "P9"], "no protocol is called P9"),
        (["--configurations", "best"], "no configuration is called best"),
        (["--conversations", "3"], "no conversation 3"),
        (["--k", "0"], "k 0 is out of range"),
        (["--model", "nowhere"], "the model nowhere is not there"),
    ],
)
def test_a_wrong_option_is_two_lines_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    code, _ = run(tmp_path, *more)

    shown = capsys.readouterr().err
    assert code > 1
    assert said in shown
    assert len(shown.splitlines()) == 2


# --- tables and pictures ----------------------------------------------------------------------------------------------


def test_the_tables_of_the_page_are_those_of_the_committed_rows() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    block = tables.BEGIN + page.partition(tables.BEGIN)[2].partition(tables.END)[0] + tables.END

    assert tables.block(retrieval_cli.figures()) == block


def test_a_picture_has_a_line_a_row_and_names_that_are_no_markup(tmp_path: Path) -> None:
    row = rows_of(chats.load(chats_in(tmp_path / "chats")), (protocols.P2,), ["bm25"], tmp_path)[0]
    rows = [row | {"configuration": f"<{at}> & co"} for at in range(12)]
    svg = "{http://www.w3.org/2000/svg}"

    curves = ET.fromstring(plots.curves("a < b", rows))  # noqa: S314 our own pictures
    bars = ET.fromstring(plots.bars("a < b", rows, 5))  # noqa: S314 our own pictures

    assert len(curves.findall(f"{svg}polyline")) == 12
    assert len(bars.findall(f"{svg}rect")) == 1 + 12 + 12 * len(row["by_category"])
    assert {"<0> & co", "<11> & co"} <= {text.text for text in curves.iter(f"{svg}text")}


# --- the data set itself, where it is given ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not LOCOMO, reason="needs LoCoMo: SCRUBJAY_TEST_LOCOMO=path/to/locomo10.json")
def test_locomo_has_1650_and_1977_questions(tmp_path: Path) -> None:
    data = locomo.load(Path(LOCOMO))

    rows = rows_of(data, protocols.named(protocols.OF_LOCOMO, ["P1", "P2"]), ["bm25"], tmp_path)

    counted = {row["protocol"]: (row["questions"], row["documents"]) for row in rows}
    assert counted == {"P1": (1_650, 2_541), "P2": (1_977, 5_882), "P2, questions of P1": (1_650, 5_882)}


# --- fitting ----------------------------------------------------------------------------------------------------------


def hits(questions: int, seed: int = 1) -> list[fitting.Hits]:
    """Questions whose right hit has a high first feature; the second is noise, the third always the same."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(questions):
        features = draw.standard_normal((20, 3))
        features[:, 2] = 7.0
        right = np.zeros(20, np.bool_)
        right[np.argmax(features[:, 0] + 0.1 * draw.standard_normal(20))] = True
        found.append(fitting.Hits(features=features, right=right, relevant=1))
    return found


def test_a_fit_finds_what_tells_right_from_wrong_and_leaves_out_what_does_not() -> None:
    signal, noise, constant = fitting.softmax_fit(hits(200))

    assert signal > 10 * abs(noise)
    assert constant == 0


def test_a_fit_without_any_right_hit_is_refused() -> None:
    wrong = [replace(one, right=np.zeros(20, np.bool_)) for one in hits(3)]

    with pytest.raises(InvalidError, match="no question has a right hit"):
        fitting.softmax_fit(wrong)


def test_a_conversation_is_scored_with_weights_that_never_saw_it(tmp_path: Path) -> None:
    data = chats.load(chats_in(tmp_path / "chats", conversations=3))
    without = replace(data, conversations=data.conversations[:2])

    found = fitting.fitted(fitting.Task(data=data, protocol=protocols.P2, keeper=keeper(tmp_path), scratch=None))
    other = fitting.fitted(fitting.Task(data=without, protocol=protocols.P2, keeper=keeper(tmp_path), scratch=None))

    assert set(found.folds) == {"0", "1", "2"}
    assert found.folds["2"] == other.weights
    assert fitting.policies(found, data)("2") == weighted(DEFAULT.recall, found.folds["2"])


def test_weights_are_for_the_data_they_were_fitted_to_and_for_one_kind_of_hit(tmp_path: Path) -> None:
    data = chats.load(chats_in(tmp_path / "chats"))
    found = RecallWeights(data="d", data_sha256="0", protocol="P2", model=NO_MODEL, weights={}, folds={})
    both = fitting.Task(data=data, protocol=protocols.P4_BOTH, keeper=keeper(tmp_path), scratch=None)
    single = replace(both, data=replace(data, conversations=data.conversations[:1]))

    with pytest.raises(InvalidError, match="other data"):
        fitting.policies(found, data)
    with pytest.raises(InvalidError, match="two kinds of hits"):
        fitting.fitted(both)
    with pytest.raises(InvalidError, match="two conversations"):
        fitting.fitted(single)


def test_a_fit_is_written_shown_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, weights = chats_in(tmp_path / "chats"), tmp_path / "weights.json"
    where = ["--model", NO_MODEL, "--reranker", NO_MODEL, "--keep", str(tmp_path / "keep")]

    assert cli.main(["fit", "chats", "--data", str(folder), "--weights", str(weights), *where]) == 0
    assert "event_bm25" in capsys.readouterr().out
    code, found = run(tmp_path, "--configurations", "default", "--weights", str(weights))

    assert code == 0
    assert {row["configuration"] for row in found["rows"]} == {"default", "learned"}


def test_a_protocol_that_counts_nothing_leaves_the_others_standing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = chats_in(tmp_path / "chats")
    lines = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    about_small_talk = [json.dumps(line | {"evidence": ["c"]}) for line in lines]  # no memory is read from "nice"
    (folder / "questions.jsonl").write_text("\n".join(about_small_talk), encoding="utf-8")
    figures = tmp_path / "figures.json"

    code = cli.main(
        ["chats", "--data", str(folder), "--configurations", "default", "--protocols", "P2,P4", "--model", NO_MODEL,
         "--reranker", NO_MODEL, "--keep", str(tmp_path / "keep"), "--json", str(figures)]
    )  # fmt: skip

    assert code == 0
    names = [row["protocol"] for row in json.loads(figures.read_text(encoding="utf-8"))["rows"]]
    assert names == ["P2", "P4, memories as turns", "P4, memories and events"]
    assert "P4, memories: left out, no question can be counted" in capsys.readouterr().err
