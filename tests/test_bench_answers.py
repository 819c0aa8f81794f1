"""What a reader sees, what a judge sees, and what their marks add up to."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrubjay.settings import NO_MODEL
from scrubjay_bench import answers, cli
from scrubjay_bench.answers import Asked, Mark
from scrubjay_shared.errors import InvalidError

ROOT = Path(__file__).parent.parent
DEVMEM = ROOT / "bench" / "devmem"


def asked(number: int = 1, *, category: str = "why", answer: str = "blue") -> Asked:
    return Asked(
        qid=f"Q{number:03}", id=f"q{number}", group="one", question=f"{number}?", category=category, answer=answer
    )


# Which questions


def test_of_sessions_some_with_an_answer_are_drawn_and_all_without_one() -> None:
    known, unknown = [asked(n) for n in range(60)], [asked(n, answer="") for n in range(60, 68)]

    drawn = answers.drawn([*known, *unknown], 40, 7, strata={})

    assert Counter(one.is_answerable for one in drawn) == {True: 40, False: 8}
    assert [one.qid for one in drawn] == [f"Q{n:03}" for n in range(1, 49)]
    assert drawn == answers.drawn([*known, *unknown], 40, 7, strata={})
    assert drawn != answers.drawn([*known, *unknown], 40, 8, strata={})


def test_categories_have_their_shares_and_a_small_one_enough() -> None:
    sizes = {"multi": 282, "time": 321, "open": 96, "single": 841}
    questions = [asked(n, category=category) for category, size in sizes.items() for n in range(size)]
    questions += [asked(n, category="wrong person", answer="") for n in range(446)]

    strata = {category: category == "open" for category in sizes}
    drawn = answers.drawn(questions, 150, 7, strata=strata)

    assert Counter(one.category for one in drawn) == {
        "multi": 25, "time": 29, "open": 20, "single": 76, "wrong person": 30,
    }  # fmt: skip


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60), min_size=1),
    st.integers(1, 200),
    st.sets(st.sampled_from("abcd")),
)
@example({"a": 20, "b": 20, "c": 20, "d": 20}, 1, {"a", "b", "c"})
def test_never_more_are_drawn_than_there_are_or_than_asked_for(
    sizes: dict[str, int], count: int, small: set[str]
) -> None:
    questions = [asked(n, category=category) for category, size in sizes.items() for n in range(size)]

    drawn = answers.drawn(questions, count, 7, strata={category: category in small for category in sizes})

    assert len(drawn) <= max(count, answers.LEAST * len(small))
    assert all(number <= sizes[category] for category, number in Counter(one.category for one in drawn).items())
    assert len({(one.category, one.id) for one in drawn}) == len(drawn)


# What a judge sees


def test_a_judge_sees_answers_mixed_and_not_whose_they_are() -> None:
    questions = [asked(n, answer="" if n > 8 else "blue") for n in range(1, 11)]
    given_ = {name: {one.qid: f"{name[::-1]} {one.qid}" for one in questions} for name in ("before", "after")}

    shown, whose = answers.sheet(dict.fromkeys(given_, questions), given_, 7)

    assert len(shown) == len(whose) == 20
    assert {line["judged"] for line in shown} == whose.keys()
    for line in shown:
        name, qid = whose[line["judged"]]
        assert line["answer"] == given_[name][qid]
        assert not {"configuration", "name", "qid", "category"} & line.keys()
        assert (line["right_answer"] == answers.NOT_KNOWN) == (int(qid[1:]) > 8)
    order = [whose[line["judged"]] for line in shown]
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_an_answer_that_is_missing_or_of_no_question_is_named() -> None:
    with pytest.raises(InvalidError, match="1 questions have no answer, the first is Q001"):
        answers.sheet({"a": [asked()]}, {"a": {}}, 7)
    with pytest.raises(InvalidError, match="'Q9', which is no question"):
        answers.sheet({"a": [asked()]}, {"a": {"Q001": "x", "Q9": "y"}}, 7)


# What is counted


def test_marks_are_counted_by_configuration_and_category_and_what_nothing_answers_apart() -> None:
    questions = [asked(1), asked(2, category="fact"), asked(3, category="fact"), asked(4, answer="")]
    whose = {f"J{n}": ("a", f"Q{n:03}") for n in range(1, 5)}
    marks = [
        Mark(judged="J1", right=True, strict=False),
        Mark(judged="J2", right=True, strict=True),
        Mark(judged="J3", right=False, strict=True),  # strict without right is not right
        Mark(judged="J4", right=True, strict=True),
    ]

    [row] = answers.rows({"a": questions}, whose, marks)

    assert (row["lenient"]["right"], row["lenient"]["of"]) == (2, 3)
    assert row["strict"]["right"] == 1
    assert (row["unanswerable"]["right"], row["unanswerable"]["of"]) == (1, 1)
    assert {name: one["share"] for name, one in row["by_category"].items()} == {"why": 1.0, "fact": 0.5}
    with pytest.raises(InvalidError, match="1 answers have no mark, the first is J4"):
        answers.rows({"a": questions}, whose, marks[:3])


@given(st.integers(0, 300), st.integers(1, 300))
def test_an_interval_holds_its_share_and_narrows_with_the_number(right: int, total: int) -> None:
    right = min(right, total)

    low, high = answers.wilson(right, total)
    lower, higher = answers.wilson(right * 4, total * 4)

    assert 0 <= low <= right / total + 1e-9
    assert right / total - 1e-9 <= high <= 1
    assert higher - lower < high - low


# Whole runs


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(path: Path, found: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in found))


def packets(out: Path, name: str, *more: str) -> Path:
    words = ["packets", "--out", str(out), "--name", name, "--model", NO_MODEL, "--reranker", NO_MODEL, *more]
    assert cli.main(["answers", *words]) == 0
    return out / name


def test_a_reader_sees_what_an_agent_sees_and_nothing_of_the_answers(tmp_path: Path) -> None:
    folder = packets(tmp_path, "plain", "--data", str(DEVMEM), "--projects", "tidewatch", "--questions", "4")

    key, questions = lines(tmp_path / "plain.key.jsonl"), lines(folder / "questions.jsonl")
    assert [one["qid"] for one in key] == [one["qid"] for one in questions]
    assert {one["answer"] == "" for one in key} == {True, False}
    [packet] = [(folder / "packets" / "01.txt").read_text()]
    assert all(f"##### {one['qid']}  {one['question']}\n" in packet for one in questions)
    assert packet.count('<memory source="scrubjay">') == len(questions)
    opened = lines(folder / "opened.jsonl")
    assert opened
    assert all(one["id"] in packet and one["text"].startswith("<memory") for one in opened)
    assert any(len(re.findall(r"\(e_\w{26}\)", one["text"])) > 2 for one in opened), "with the turns around it"
    assert not list(folder.glob("*key*"))


def test_a_model_may_give_the_search_more_than_the_question(tmp_path: Path) -> None:
    given_ = tmp_path / "given.jsonl"
    written(given_, [{"qid": f"Q00{n}", "arguments": {"limit": 1}} for n in range(1, 5)])
    shared = ("--data", str(DEVMEM), "--projects", "tidewatch", "--questions", "2")

    one = packets(tmp_path / "out", "one", *shared, "--arguments", str(given_))
    five = packets(tmp_path / "out", "five", *shared)

    assert len(lines(one / "opened.jsonl")) < len(lines(five / "opened.jsonl"))


def test_answers_become_a_sheet_and_marks_become_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, more in (("learned", ()), ("labelled", ("--gold",))):
        folder = packets(tmp_path, name, "--data", str(DEVMEM), "--projects", "tidewatch", "--questions", "3", *more)
        written(
            folder / "answers.jsonl",
            [{"qid": one["qid"], "answer": "not known"} for one in lines(folder / "questions.jsonl")],
        )

    assert cli.main(["answers", "sheet", str(tmp_path)]) == 0
    sheet = lines(tmp_path / "sheet.jsonl")
    marks = [
        {"judged": one["judged"], "right": one["right_answer"] == answers.NOT_KNOWN, "strict": False} for one in sheet
    ]
    written(tmp_path / "marks.jsonl", marks)
    capsys.readouterr()
    assert cli.main(["answers", "score", str(tmp_path), "--json", str(tmp_path / "rows.json")]) == 0

    table = capsys.readouterr().out
    assert "| labelled | 3 | 0.000 | 0.000–0.562 | 0.000 | 2 of 2 |" in table
    assert [row["configuration"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]] == [
        "labelled",
        "learned",
    ]
    again = ["packets", "--data", str(DEVMEM), "--out", str(tmp_path), "--name", "learned"]
    assert cli.main(["answers", *again]) == InvalidError.exit_code, "answers are never written over"


@pytest.mark.parametrize(
    "key",
    ["xx", "", "[]", "null", '{"j1": 5}', '{"j1": ["a"]}', '{"j1": ["a", 1]}', '{"j1": ["a", "Q001", "x"]}', "\udcff"],
)
def test_a_sheets_key_that_is_broken_is_named(tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a.key.jsonl", [asdict(asked())])
    written(tmp_path / "marks.jsonl", [{"judged": "j1", "right": True, "strict": True}])
    (tmp_path / "sheet.key.json").write_bytes(key.encode(errors="surrogateescape"))

    assert cli.main(["answers", "score", str(tmp_path)]) == InvalidError.exit_code
    assert "sheet.key.json" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["{}", '{"j1": ["b", "Q001"]}', '{"j1": ["a", "Q002"]}'])
def test_a_sheets_key_of_other_questions_is_named(tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a.key.jsonl", [asdict(asked())])
    written(tmp_path / "marks.jsonl", [{"judged": "j1", "right": True, "strict": True}])
    (tmp_path / "sheet.key.json").write_text(key)

    assert cli.main(["answers", "score", str(tmp_path)]) == InvalidError.exit_code
    assert "is of other questions" in capsys.readouterr().err


def test_conversations_of_people_are_asked_too_and_a_wrong_persons_question_has_no_answer(tmp_path: Path) -> None:
    said = {"Ana": "I adopted a grey cat in March.", "Ben": "My boat is called Heron."}
    turns = [{"speaker": who, "dia_id": f"D1:{n}", "text": text} for n, (who, text) in enumerate(said.items(), start=1)]
    asked_ = [
        {"question": "What is Ben's boat called?", "answer": "Heron", "evidence": ["D1:2"], "category": 4},
        {"question": "What is Ana's boat called?", "adversarial_answer": "Heron", "evidence": ["D1:2"], "category": 5},
        {"question": "How many cats has Ana?", "answer": 1, "evidence": ["D1:1"], "category": 3},
    ]
    entry = {"sample_id": "talk-1", "qa": asked_, "conversation": {"session_1": turns}}
    entry["conversation"] |= {"session_1_date_time": "1:56 pm on 8 May, 2023"}
    (tmp_path / "locomo.json").write_text(json.dumps([entry]))

    folder = packets(tmp_path, "talk", "--locomo", str(tmp_path / "locomo.json"), "--questions", "5")

    key = {one["question"]: one["answer"] for one in lines(tmp_path / "talk.key.jsonl")}
    assert key == {
        "What is Ben's boat called?": "Heron",
        "What is Ana's boat called?": "",
        "How many cats has Ana?": "1",
    }
    packet = (folder / "packets" / "01.txt").read_text()
    assert packet.count("#####") == 3
    assert "Ben" in packet
    assert "Heron" in packet


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("packets", "--locomo", "x", "--gold", "--out", "o", "--name", "n"), "neither projects nor labelled"),
        (("packets", "--data", "x", "--questions", "0", "--out", "o", "--name", "n"), "less than one question"),
        (("sheet", "absent"), "holds no configuration"),
        (("score", "absent"), "sheet.key.json is not in the folder"),
    ],
)
def test_what_cannot_be_done_says_why(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["answers", *words]) != 0
    assert said in capsys.readouterr().err
