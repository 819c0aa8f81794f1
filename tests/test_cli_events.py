"""Events over the command line."""

from __future__ import annotations

from pathlib import Path

from cli_shell import EVENTS, Shell


def test_events_are_taken_in_once_and_learned_from(shell: Shell) -> None:
    first = shell.json("ingest", stdin=EVENTS)
    again = shell.json("ingest", stdin=EVENTS)

    assert (first["lines"], first["accepted"], first["duplicates"]) == (3, 3, 0)
    assert (again["accepted"], again["duplicates"]) == (0, 3)
    assert len(shell.json("events")["events"]) == 3
    assert len(shell.json("sessions")["sessions"]) == 1
    stats = shell.json("stats")
    assert stats["to_learn"] == 0
    assert stats["by_type"]["decision"] == 1
    memory = shell.json("list", "--type", "decision")["entries"][0]["memory"]
    assert "PostgreSQL" in shell.json("why", memory["id"])["sources"][0]["grip"]["excerpt"]


def test_a_file_that_is_given_as_the_text_to_learn_from_is_named_with_what_to_do(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("We decided to use PostgreSQL for the events table.")

    code, error = shell.error("learn", str(notes))

    assert code == 2
    assert "is a file" in error["message"]
    assert f"learn - < {notes}" in error["hint"]
    assert shell.json("stats")["events"] == 0


def test_one_bad_line_stores_nothing(shell: Shell) -> None:
    code, error = shell.error("ingest", stdin=EVENTS + b"\n{broken\n")

    assert code == 2
    assert "line 4" in error["message"]
    assert shell.json("stats")["events"] == 0
