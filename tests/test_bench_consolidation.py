"""The measurement of consolidation: a talk through simulated months, its table, and a run that goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scrubjay_bench import consolidation
from scrubjay_bench.cli import main
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, Role

DAY = 86_400_000
SAID = Millis(1_700_000_000_000)
TURNS = (
    "My sister Anna lives in Bergen since 2019.",
    "Our harbour master is Petra Holm.",
    "Yesterday I met Tom Marsh of Siemens.",
    "My cat Miso is 7 years old.",
    "My dentist is Dr. Okafor in Leith.",
    "Our office is at 12 Canal Street.",
)


def talk() -> consolidation.Talk:
    drafts = tuple(
        EventDraft(
            agent="bench",
            session_id="s",
            type=EventType.USER_MESSAGE,
            role=Role.USER,
            text=text,
            ts=Millis(SAID + at * 1000),
            dedupe_key=f"t{at}",
        )
        for at, text in enumerate(TURNS)
    )
    questions = (("how old is Miso?", frozenset({"t3"})), ("Who is the dentist?", frozenset({"t4"})))
    return consolidation.Talk(name="told", drafts=drafts, questions=questions, asked=Millis(SAID + DAY))


def test_months_halve_the_tokens_and_cost_no_evidence_and_no_specific(tmp_path: Path) -> None:
    [row] = consolidation.measured([talk()], models_dir=tmp_path, model="none", scratch=tmp_path)
    before, after = row["before"], row["after"]
    assert before["recall"] == after["recall"]
    assert before["recall"]["memories"] == 1.0
    assert 0 < after["memory_tokens"] <= 0.5 * before["memory_tokens"]
    assert (row["survival"], row["told"], row["undo_exact"]) == (1.0, 1.0, True)
    assert row["runs"] > 0


def row_of(name: str, questions: int, found: float, answer: float | None) -> dict[str, Any]:
    state = {
        "memories": 2,
        "memory_tokens": 100,
        "recall": dict.fromkeys(consolidation.KINDS, found),
        "answer_tokens": answer,
    }
    return {
        "name": name, "turns": 5, "questions": questions, "runs": 1, "specifics": 4, "survival": 1.0, "told": 0.5,
        "undo_exact": True, "before": state, "after": state,
    }  # fmt: skip


def test_the_table_ends_with_all_rows_as_one_weighed_by_their_questions() -> None:
    lines = consolidation.table([row_of("a", 1, 1.0, 10.0), row_of("b", 3, 0.0, 30.0)]).splitlines()
    assert lines[-1].startswith("| all | 10 | 4 | 4 → 4 | 200 → 200 | 1.00 | 25 → 25 | 0.250 → 0.250 |")
    assert "| – → – |" in consolidation.table([row_of("a", 1, 1.0, None)])
    assert len(consolidation.table([row_of("a", 1, 1.0, 10.0)]).splitlines()) == 3


def test_a_run_goes_on_with_what_is_measured_already(tmp_path: Path, capsys: Any) -> None:
    chat = {
        "sample_id": "c",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "1:00 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I live in Bergen."}],
        },
        "qa": [],
    }  # fmt: skip
    data, rows = tmp_path / "locomo.json", tmp_path / "rows.json"
    data.write_text(json.dumps([chat]), encoding="utf-8")
    measured = {"format": 1, "rows": [row_of("c", 1, 1.0, 10.0)], "run": {"model": "none", "sessions": None}}
    rows.write_text(json.dumps(measured), encoding="utf-8")
    line = ["consolidation", "--locomo", str(data), "--model", "none", "--json", str(rows), "--resume"]
    assert main(line) == 0
    assert "| c | 5 | 1 |" in capsys.readouterr().out
    measured["run"] = {"model": "another", "sessions": None}
    rows.write_text(json.dumps(measured), encoding="utf-8")
    assert main(line) != 0
