"""Labelled coding sessions: what is read, what matches what, what is counted, and what a run writes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scrubjay.settings import NO_MODEL
from scrubjay_bench import audit, cli, devmem, devmem_asking, devmem_cli, devmem_scores, devmem_tables
from scrubjay_bench.devmem import Label, Project, Question, Tempting, Turn
from scrubjay_bench.devmem_asking import Memories, Run
from scrubjay_bench.devmem_scores import Asked, Learned, Values
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

ROOT = Path(__file__).parent.parent
OWN = ROOT / "bench" / "devmem"


def label(id_: str = "A-m1", **more: Any) -> Label:
    fields: dict[str, Any] = {
        "id": id_, "session": "one-01", "turn": "one-01:0", "quote": "we keep all logs for ninety days",
        "text": "Logs are kept for ninety days.", "type": "decision", "scope": "project", "importance": 3,
        "evidence": ("one-01:0",),
    }  # fmt: skip
    return Label(**fields | more)


def memory(content: str, *turns: str, excerpt: str = "", **more: Any) -> Learned:
    fields: dict[str, Any] = {
        "id": content,
        "content": content,
        "type": "decision",
        "scope": "project",
        "trust": "user",
    }
    return Learned(**fields | {"turns": frozenset(turns or ("one-01:0",)), "excerpt": excerpt or content} | more)


def project(*labels: Label, tempting: tuple[Tempting, ...] = ()) -> Project:
    turn = Turn(id="one-01:0", project="one", session="one-01", type="user_message", text="x" * 400)
    return Project(name="one", turns=(turn,), times=(Millis(1),), labels=labels, tempting=tempting, questions=())


def question(*evidence: str, stale: tuple[str, ...] = (), memories: tuple[str, ...] = ()) -> Question:
    return Question(id="A-q1", question="?", category="fact", evidence=evidence, stale=stale, memories=memories)


def asked(what: Question, *ranked: str, ids: str = "", confidence: float = 0.5) -> Asked:
    """Return an answer whose hits were each read from the turns that a word of letters names."""
    turns = tuple(frozenset(letters) for letters in ranked)
    return Asked(
        question=what, ids=tuple(ids), turns=turns, unbounded=turns[:1], tokens=100, ms=2.0, confidence=confidence
    )


# --- the arithmetic ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("Logs are kept for ninety days", "we keep all logs for ninety days", 2 * 3 / (4 + 6)),  # logs, ninety, days
        ("Postgres", "postgres", 1.0),
        ("the user uses it", "the user uses it", 0.0),  # nothing but stop words
        ("src/uplink.rs", "src uplink rs", 0.0),  # a path is one word
        ("", "logs", 0.0),
    ],
)
def test_overlap_is_the_share_of_words_with_content_that_two_texts_have_in_common(
    one: str, other: str, share: float
) -> None:
    assert devmem_scores.overlap(one, other) == pytest.approx(share)


@pytest.mark.parametrize(
    ("learned", "matches"),
    [
        (memory("Logs are kept for ninety days."), True),
        (memory("Decided.", excerpt="we keep all logs for ninety days"), True),
        (memory("we keep all logs for ninety days, said somebody", excerpt="."), True),
        (memory("Logs are kept for ninety days.", "one-01:9"), False),  # read from another turn
        (memory("Backups go to another country."), False),
    ],
)
def test_a_memory_matches_a_label_that_it_was_read_beside_in_similar_words(learned: Learned, *, matches: bool) -> None:
    found = devmem_scores.matched([learned], [label()])

    assert found.best == ({"A-m1": 0} if matches else {})
    assert found.memories == ({0} if matches else set())


def test_the_best_memory_stands_for_a_label_and_its_repetition_is_no_junk() -> None:
    learned = [
        memory("Logs are kept for ninety days, they say."),
        memory("Logs are kept for ninety days."),
        memory("Hm."),
    ]

    found = devmem_scores.matched(learned, [label()])

    assert found.best == {"A-m1": 1}
    assert found.memories == {0, 1}


def test_what_was_learned_is_counted_by_importance_type_scope_and_temptation() -> None:
    labels = [
        label("A-m1", type="howto"),
        label("A-m2", importance=2, quote="tests run on every push", text="Tests run on every push.", scope="user"),
        label("A-m3", importance=1, quote="lunch is at noon", text="Lunch is at noon."),
    ]
    tempting = (Tempting(turn="one-01:0", quote="maybe rust one day", reason="passing"),)
    learned = [
        memory("Logs are kept for ninety days.", type="insight"),
        memory("Tests run on every push.", type="fact"),
        memory("They like rust.", excerpt="maybe rust one day"),
        memory("The weather is fine."),
    ]
    of = project(*labels, tempting=tempting)

    row = devmem_scores.row(devmem_scores.learning(of, learned, devmem_scores.matched(learned, labels)))

    assert (row["memories"], row["precision"]) == (4, 0.5)
    assert row["coverage"] == {"1": 0.0, "2": 1.0, "3": 1.0, "2-3": 1.0}
    assert row["labels"] == {"1": 1, "2": 1, "3": 1}
    assert row["type_right"] == 0.5  # a how-to may be an insight; a decision is no fact
    assert row["scope_right"] == 0.5
    assert row["tempting_kept"] == 1.0
    assert row["token_share"] == pytest.approx(sum(len(one.content) // 4 for one in learned) / 100)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (asked(question("a"), "a", "b"), {"recall.1": 1, "recall.5": 1, "first_right": 1, "mrr_10": 1}),
        (asked(question("a"), "b", "ac"), {"recall.1": 0, "recall.5": 1, "first_right": 0, "mrr_10": 0.5}),
        (asked(question("a", "d"), "ad"), {"recall.1": 1, "recall_no_budget.5": 1, "among_three": 1}),
        (asked(question("a", "d"), "b", "b", "b", "a"), {"recall.5": 0.5, "recall_no_budget.5": 0, "among_three": 0}),
        (asked(question("a"), "b", "b", "b", "b", "b", "a"), {"recall.5": 0, "recall.10": 1, "mrr_10": 1 / 6}),
        (asked(question("a")), {"recall.10": 0, "first_right": 0, "mrr_10": 0, "hits": 0}),
        (asked(question("a", stale=("o",)), "a", "o"), {"current_first": 1}),
        (asked(question("a", stale=("o",)), "ao"), {"current_first": 0}),
        (asked(question("a", stale=("o",)), "o", "a"), {"current_first": 0}),
        (asked(question("a", stale=("o",)), "b"), {"current_first": 0}),
        (asked(question("a", stale=("a",)), "a"), {"current_first": None}),  # the evidence itself is not outdated
        (asked(question("a", memories=("A-m1",)), "a", ids="wxym"), {"memory_among_three": 0}),
        (asked(question("a", memories=("A-m2", "A-m1")), "a", ids="wxm"), {"memory_among_three": 1}),
        (asked(question("a", memories=("A-m2",)), "a", ids="wxm"), {"memory_among_three": None}),  # not learned
    ],
)
def test_an_answer_is_judged_by_what_its_hits_were_read_from(answer: Asked, expected: dict[str, float | None]) -> None:
    values = devmem_scores.asking([answer], {"A-m1": frozenset("m"), "A-m2": frozenset()})

    for name, value in expected.items():
        assert values.shares.get(name) == (None if value is None else [pytest.approx(value)]), name


@pytest.mark.parametrize(
    ("known", "unknown", "area"),
    [
        ([0.9, 0.8], [0.1], 1.0),
        ([0.5], [0.5], 0.5),
        ([0.9, 0.1], [0.5], 0.5),
        ([0.1], [0.2, 0.3], 0.0),
        ([0.1], [], None),
    ],
)
def test_auc_is_how_often_the_answerable_is_surer(known: list[float], unknown: list[float], area: float | None) -> None:
    pairs = [(True, one) for one in known] + [(False, one) for one in unknown]

    assert devmem_scores.auc(pairs) == area


def test_an_unanswerable_question_counts_for_confidence_alone() -> None:
    values = devmem_scores.asking([asked(question(), "a", confidence=0.2), asked(question("a"), "a")], {})

    row = devmem_scores.row(values)

    assert (row["questions"], row["unanswerable"], row["known_auc"]) == (1, 1, 1.0)


def test_all_pools_what_was_counted_and_the_mean_gives_each_project_the_same_say() -> None:
    many, few = Values(), Values()
    for _ in range(9):
        many.add("precision", 1)
    few.add("precision", 0)
    few.add("tempting_kept", 0.5)

    every = devmem_scores.row(devmem_scores.pooled([many, few]))
    mean = devmem_scores.averaged([devmem_scores.row(many), devmem_scores.row(few)])

    assert (every["memories"], every["precision"]) == (10, 0.9)
    assert (mean["memories"], mean["precision"], mean["tempting_kept"]) == (10, 0.5, 0.5)
    assert mean["coverage"] == {"1": None, "2": None, "3": None, "2-3": None}


# --- what is read -----------------------------------------------------------------------------------------------------


def copied(folder: Path) -> Path:
    """Copy our own set, to change it."""
    folder.mkdir()
    for file in OWN.glob("*.jsonl"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_our_own_set_has_what_its_page_says() -> None:
    data = devmem.load(OWN)
    page = (OWN / "README.md").read_text(encoding="utf-8")

    for of in data.projects:
        unanswerable = sum(not one.evidence for one in of.questions)
        sessions = len({turn.session for turn in of.turns})
        counts = (
            f"| {sessions} | {len(of.turns)} | {len(of.labels)} | {len(of.tempting)} | {len(of.questions)}"
            f" ({unanswerable}) |"
        )
        assert re.search(rf"\| {of.name} \|[^|]*{re.escape(counts)}", page), (of.name, counts)
    assert [of.name for of in data.projects] == ["tidewatch", "ledgerlane", "rezepte"]
    assert all(of.times == tuple(sorted(set(of.times))) for of in data.projects)


def test_a_session_that_nobody_labelled_is_left_out_and_times_always_rise(tmp_path: Path) -> None:
    folder = copied(tmp_path / "data")
    turn = {"project": "tidewatch", "type": "user_message", "text": "hm"}
    more = [
        turn | {"session": "tidewatch-02", "id": "tidewatch-02:90", "time": "1999-01-01 00:00:00Z"},
        turn | {"session": "tidewatch-02", "id": "tidewatch-02:91"},
        turn | {"session": "tidewatch-77", "id": "tidewatch-77:0"},
    ]
    with (folder / "sessions.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in more)

    (of,) = devmem.load(folder, ["tidewatch"]).projects

    assert [turn.id for turn in of.turns[-2:]] == ["tidewatch-02:90", "tidewatch-02:91"]
    assert list(of.times[-2:]) == [of.times[-3] + 1, of.times[-3] + 2]


def test_an_unanswerable_question_is_asked_of_its_project_or_where_its_labels_are(tmp_path: Path) -> None:
    folder = copied(tmp_path / "data")
    named = {"id": "X-q1", "question": "Who?", "category": "none", "project": "rezepte"}
    (folder / "questions.jsonl").write_text(f"{(OWN / 'questions.jsonl').read_text()}{json.dumps(named)}\n")

    asked_of = {of.name: [one.id for one in of.questions if not one.evidence] for of in devmem.load(folder).projects}

    assert asked_of == {
        "tidewatch": ["T-q9", "T-q10"],
        "ledgerlane": ["L-q9", "L-q10"],
        "rezepte": ["R-q8", "R-q9", "X-q1"],
    }


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("sessions.jsonl", "{", "sessions.jsonl, line 49"),
        ("sessions.jsonl", {"type": "system"}, "Invalid enum value 'system'"),
        ("sessions.jsonl", {"id": "new", "time": "yesterday"}, "line 49: Invalid isoformat string"),
        ("sessions.jsonl", {"id": "new", "time": "1899-01-01"}, "before 1970"),
        ("sessions.jsonl", {}, "the id tidewatch-01:0 stands there twice"),
        ("memories.jsonl", {"id": "new", "importance": 4}, "line 35"),
        ("memories.jsonl", {"id": "new", "quote": "we lost readings"}, "the quote is not in the text of tidewatch-01:3"),
        ("memories.jsonl", {"id": "new", "evidence": ["x"]}, "no turn has the id x"),
        ("not.jsonl", {"turn": "x"}, "no turn has the id x"),
        ("questions.jsonl", {"evidence": ["rezepte-01:0", "tidewatch-01:0"]}, "evidence of two projects"),
        ("questions.jsonl", {"memories": ["x"]}, "no memory has the id x"),
        ("questions.jsonl", {"stale": ["x"]}, "no turn has the id x"),
        ("questions.jsonl", {"evidence": [], "project": "beach"}, "asked of no project"),
        ("questions.jsonl", {"evidence": [], "id": "Z-q1"}, "asked of no project"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_by_file_and_number(
    tmp_path: Path, file: str, change: str | dict[str, Any], said: str
) -> None:
    path = copied(tmp_path / "data") / file
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    line = change if isinstance(change, str) else json.dumps(first | change)
    path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")

    with pytest.raises(InvalidError, match=r"jsonl") as caught:
        devmem.load(path.parent)

    assert said in caught.value.message


def test_a_missing_file_and_a_missing_project_are_named(tmp_path: Path) -> None:
    folder = copied(tmp_path / "data")

    with pytest.raises(InvalidError, match="no project is called beach"):
        devmem.load(folder, ["beach"])
    (folder / "not.jsonl").unlink()
    with pytest.raises(NotFoundError, match=r"not\.jsonl"):
        devmem.load(folder)


# --- a run ------------------------------------------------------------------------------------------------------------


def seen(memories: Memories, tmp_path: Path) -> list[devmem_asking.Seen]:
    """Fill and ask about our own set, without a model."""
    run = Run(data=devmem.load(OWN), memories=memories, models_dir=tmp_path, model=NO_MODEL, scratch=tmp_path)
    return list(devmem_asking.measured(run))


def test_what_is_learned_has_its_turns_and_the_same_run_gives_the_same_figures(tmp_path: Path) -> None:
    first, again = seen(Memories.LEARNED, tmp_path), seen(Memories.LEARNED, tmp_path)

    for one, other in zip(first, again, strict=True):
        turns = {turn.id: turn.text for turn in one.project.turns}
        assert one.learned, one.project.name
        assert all(memory.turns <= turns.keys() for memory in one.learned)
        for memory in one.learned:  # of several turns where one agrees to what another proposes
            said = " ".join(turns[turn] for turn in memory.turns)
            assert all(word in said for word in memory.excerpt.split())
        assert one.learned == other.learned
        assert one.values.shares == other.values.shares
    assert sum(len(one.matches.best) for one in first) >= 4


def test_labelled_memories_are_added_beside_the_turns_and_nothing_is_learned(tmp_path: Path) -> None:
    found = seen(Memories.LABELLED, tmp_path)

    rows = devmem_asking.rows(found, Memories.LABELLED)

    assert [row["project"] for row in rows] == ["tidewatch", "ledgerlane", "rezepte", "all", "mean"]
    assert {row["memories"] for row in rows} == {0}
    every = rows[3]
    assert every["precision"] is None
    assert every["learned_questions"] == every["questions"] == 23
    assert 0 < every["memory_among_three"] <= every["among_three"]


def test_what_an_answer_says_of_its_confidence_is_what_orders_answers(tmp_path: Path) -> None:
    for one in seen(Memories.LEARNED, tmp_path):
        assert all(0 <= answer.confidence <= 1 for answer in one.asked)
        assert len({answer.confidence for answer in one.asked}) > 1


def run(tmp_path: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Run the command on our own set without a model; return its code and what it wrote."""
    file = tmp_path / "rows.json"
    line = ["devmem", "--data", str(OWN), "--model", NO_MODEL, "--reranker", NO_MODEL, "--json", str(file)]
    code = cli.main([*line, *more])
    return code, json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def test_a_run_shows_its_rows_and_writes_them_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(tmp_path, "--out", str(tmp_path / "out"))
    shown = capsys.readouterr().out

    assert code == 0
    page = (ROOT / "docs" / "retrieval-format.md").read_text(encoding="utf-8")
    blocks = [json.loads(part) for part in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    (documented,) = [block for block in blocks if block.get("from") == "learned"]
    assert [row["project"] for row in found["rows"]] == ["tidewatch", "ledgerlane", "rezepte", "all", "mean"]
    for row in found["rows"]:
        assert set(row) == set(documented) - ({"by_category"} if row["project"] == "mean" else set())
        assert row["project"] in shown
        for name in ("labels", "coverage", "recall", "recall_no_budget", "latency_ms"):
            assert set(row[name]) == set(documented[name])
    assert all(name in shown for name in (*devmem_tables.LEARNING, *devmem_tables.ASKING))
    counts = Counter(one["matches"] for of in found["details"].values() for one in of["memories"])
    every = found["rows"][3]
    assert counts[True] / counts.total() == pytest.approx(every["precision"], abs=1e-4)
    for picture in (tmp_path / "out").iterdir():
        ET.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 our own pictures
    assert len(list((tmp_path / "out").iterdir())) == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "nowhere"], "the model nowhere is not there"),
        (["--projects", "beach"], "no project is called beach"),
        (["--projects", "rezepte", "--docs"], "--docs writes all projects down"),
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


def test_the_tables_of_the_page_are_those_of_the_committed_rows() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    begin, end = devmem_tables.BEGIN, devmem_tables.END
    block = begin + page.partition(begin)[2].partition(end)[0] + end

    assert devmem_tables.block(devmem_cli.figures()) == block


# --- memories to be marked by a reader --------------------------------------------------------------------------------


def test_a_draw_of_a_run_is_a_table_to_mark_and_the_same_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = run(tmp_path)
    memories = [one for of in found["details"].values() for one in of["memories"]]
    capsys.readouterr()
    line = ["devmem", str(tmp_path / "rows.json"), "--draw", "4", "--seed", "7"]

    tables = []
    for more in ([], [], ["--marks"], ["--draw", "0"]):
        assert audit.main([*line, *more]) == 0
        tables.append(capsys.readouterr().out.splitlines())
    drawn, again, places, _ = tables

    assert drawn == again
    assert [len(table) for table in tables] == [6, 6, 6, 2 + len(memories)]
    rows = [[cell.strip() for cell in row.split(" | ")] for row in drawn[2:]]
    for _, turns, type_, scope, trust, content, excerpt, *_ in rows:
        assert (turns, type_, scope, trust, content, excerpt) in {
            (", ".join(one["turns"]), one["type"], one["scope"], one["trust"], " ".join(one["content"].split()), " ".join(one["excerpt"].split()))
            for one in memories
        }  # fmt: skip
    assert [row.split(" | ")[1] for row in places[2:]] == [row[1] for row in rows]
    assert not any(one["content"] in "\n".join(places) for one in memories)


def test_a_memory_fewer_leaves_the_rest_of_the_draw_as_it_was() -> None:
    made = [
        audit.Kept(content=f"{at}", type="fact", scope="user", trust="user", turns=(f"one-01:{at}",), excerpt="x")
        for at in range(40)
    ]
    drawn = audit.draw_kept(made, 10, 3)

    fewer = audit.draw_kept([one for one in made if one is not drawn[4]], 10, 3)

    assert fewer[:9] == [*drawn[:4], *drawn[5:]]
    assert audit.draw_kept(made, 10, 4) != drawn


def test_words_with_bars_and_lines_stay_in_their_cell() -> None:
    kept = audit.Kept(content="a | b", type="fact", scope="user", trust="user", turns=("t",), excerpt="one\ntwo")

    table = audit.marking_table([kept], places_only=False)

    assert table.splitlines()[2] == r"| 1 | t | fact | user | user | a \| b | one two |  |  |"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"rows": []}')

    with pytest.raises(InvalidError, match="no run over labelled sessions"):
        audit.kept(tmp_path / "rows.json")
