"""What people see: safe for the terminal, complete in a pipe."""

from __future__ import annotations

import io
import os
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cli_shell import Shell
from scrubjay import api
from scrubjay.cli.render import events, hits, state, words
from scrubjay.cli.render.layout import table_of
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Session


@given(st.text())
def test_what_is_shown_cannot_drive_the_terminal(text: str) -> None:
    shown = words.clean(text)

    assert len(shown) == len(text)
    assert all(character in "\n\t" or character.isprintable() or ord(character) >= 0xA0 for character in shown)
    assert not any(character in shown for character in "\x1b\x9b\x07\x08\r\u202e\u2066")


@given(st.text(min_size=1), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_of_at_most_that_length(text: str, limit: int) -> None:
    shown = words.one_line(text, limit)

    assert len(shown) <= limit
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (34_131_000, "34.1 MB"), (5 * 10**12, "5.0 TB")]
)
def test_sizes_are_powers_of_ten(count: int, shown: str) -> None:
    assert words.size(count) == shown


def hit(**fields: Any) -> api.Hit:
    said = api.Quote(
        event_id="01K9ZJ4S0B7Q3MEVENTEVENTEV",
        session_id="s",
        ts=Millis(1_764_000_000_000),
        utc_offset=60,
        speaker="Maya",
        text="we chose PostgreSQL [bold]",
    )
    plain: dict[str, Any] = {
        "id": "01K9ZJ4S0B7Q3MMEMORYMEMORY",
        "kind": "memory",
        "text": "Maya chose PostgreSQL.\x1b[31m",
        "score": 1.5,
        "ts": Millis(1_764_000_000_000),
        "type": "decision",
        "parts": {"dense": 1.0, "lexical": 0.5},
        "sources": (said,),
    }
    return api.Hit(**(plain | fields))


def shown(what: Any) -> str:
    console = Console(width=100, record=True, file=open(os.devnull, "w", encoding="utf-8"), color_system=None)  # noqa: PTH123, SIM115
    with console.file:
        console.print(what)
        return console.export_text()


def test_a_hit_shows_rank_words_day_type_and_who_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Stockholm")
    time.tzset()
    lines = shown(hits.hit(hit(), 1, why=True)).splitlines()
    monkeypatch.undo()
    time.tzset()

    assert lines[0].rstrip() == " 1  Maya chose PostgreSQL.�[31m"
    assert lines[1].strip() == "24 Nov 2025 · decision · 01K9ZJ4S0B7Q3MME"
    assert lines[2].strip() == "↳ Maya: “we chose PostgreSQL [bold]”  24 Nov 2025 17:00 · 01K9ZJ4S0B7Q3MEV"
    assert [line.split() for line in lines[3:]] == [["dense", "+1.000"], ["lexical", "+0.500"], ["score", "+1.500"]]


def test_a_hit_has_numbers_only_where_they_are_asked_for() -> None:
    sure = hit(confidence=0.02)

    assert "1.500" not in shown(hits.hit(sure, 1))
    assert "%" not in shown(hits.hit(sure, 1))
    assert [line.split() for line in shown(hits.hit(sure, 1, why=True)).splitlines()[-2:]] == [
        ["score", "+1.500"],
        ["confidence", "2.0%"],
    ]


def test_what_ended_is_said_and_what_happened_at_a_time_is_not() -> None:
    start = 1_700_000_000_000
    day = 24 * 3_600_000

    assert "until 19 Nov 2023" in shown(hits.hit(hit(valid_to=start + 5 * day), 1))
    assert "until 19 Nov 2023" in shown(hits.hit(hit(valid_from=start, valid_to=start + 5 * day, sources=()), 1))
    assert "until 19 Nov 2023" in shown(hits.hit(hit(valid_from=start, valid_to=start + 5 * day, ts=start + day), 1))
    assert "until" not in shown(hits.hit(hit(valid_from=start, valid_to=start + 5 * day), 1)), "said two years later"
    assert "until" not in shown(hits.hit(hit(valid_from=start, valid_to=start + day), 1))
    assert "until" not in shown(hits.hit(hit(valid_to=int(time.time() * 1000) + day), 1))


def test_a_memory_in_the_words_of_its_source_is_not_said_twice() -> None:
    plain = hit()
    silent = replace(plain, sources=(replace(plain.sources[0], text=""),))

    assert shown(hits.hit(silent, 1)).count("PostgreSQL") == 1
    assert "↳ Maya said so" in shown(hits.hit(silent, 1))


def told(**fields: Any) -> api.Hit:
    """Return a memory that a turn says all of, with what else was said in it."""
    turn = "It was late.\n\nMaya chose PostgreSQL. SQLite was too small."
    plain = hit(text="Maya chose PostgreSQL.", **fields)
    return replace(plain, sources=(replace(plain.sources[0], text=turn, cited=(14, 36)),))


def test_a_memory_is_told_by_its_turn_with_its_words_marked() -> None:
    lines = shown(hits.hit(told(), 1)).splitlines()

    assert lines[0].rstrip() == " 1  Maya: It was late. «Maya chose PostgreSQL.» SQLite was too small."
    assert len(lines) == 2  # and what it is: nothing is said twice


def test_a_memory_that_says_more_than_its_turn_stands_before_it() -> None:
    dated = replace(told(), text="Maya chose PostgreSQL on 24 November 2025.")

    first, _, *evidence = [line.strip() for line in shown(hits.hit(dated, 1)).splitlines()]
    assert first == "1  Maya chose PostgreSQL on 24 November 2025."
    assert " ".join(evidence).startswith("↳ Maya: “It was late. «Maya chose PostgreSQL.» SQLite was too small.”")


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_the_first_hits_are_shown_at_length_and_each_other_one_on_two_lines(columns: int) -> None:
    found = tuple(told(id=f"{n:026}", name=f"name {n}") for n in range(8))
    answer = api.RecallResponse(hits=found, mode="hybrid", tokens=1, elapsed_ms=1.0)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        console = Console(width=columns, record=True, file=nowhere, color_system=None)
        console.print(hits.recall(answer))
        text = console.export_text()

    rest = text[text.index(" 4  ") :].splitlines()
    assert [line[:4].strip() for line in rest if line[:4].strip()] == ["4", "5", "6", "7", "8"]
    assert len(rest) <= (3 if columns == 40 else 2) * 5  # what it is has a line of its own where it fits on no other
    assert all(f"name {n}" in text and f"{n:026}"[:16] in text.replace("\n    ", "") for n in range(8))


def test_a_long_hit_says_how_much_more_there_is_and_what_shows_it() -> None:
    code = hit(kind="event", text="\n".join(f"line {n}" for n in range(40)), id="01K9ZJ4S0B7Q3MEVENTEVENTEV")

    said = shown(hits.hit(code, 1))

    assert "line 9" in said
    assert "line 10" not in said
    assert "… 30 more lines: scrubjay grip expand 01K9ZJ4S0B7Q3MEV" in said


def test_what_waits_for_review_is_said_in_words() -> None:
    assert "not reviewed yet" in shown(hits.hit(hit(review="waiting instruction"), 1))
    assert "accepted" not in shown(hits.hit(hit(review="accepted"), 1))


@pytest.mark.parametrize(
    ("trust", "speaker", "said"),
    [
        ("import", "user", "your words, imported"),
        ("import", "Caroline", "Caroline's, imported"),
        ("import", "", "from a file"),
        ("agent", "assistant", "an agent's words"),
        ("untrusted", "tool", "not verified"),
    ],
)
def test_a_hit_says_whose_words_it_is(trust: str, speaker: str, said: str) -> None:
    [quote] = hit().sources
    told = shown(hits.hit(hit(trust=trust, sources=(replace(quote, speaker=speaker),) if speaker else ()), 1))

    assert said in told
    assert "trust:" not in told


@pytest.mark.parametrize("columns", ["40", "60", "100"])
def test_text_in_a_pipe_is_not_padded_and_never_loses_a_name(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    name = "database-choice-of-the-booking-app-2026"
    shell.json("add", "We chose PostgreSQL for its exclusion constraints, which SQLite does not have", "--name", name)

    listed, recalled = (shell.run("--text", *words)[1] for words in (["list"], ["recall", "which database"]))

    assert name in "".join(line.strip() for line in listed.splitlines())
    assert [line for line in (listed + recalled).splitlines() if line != line.rstrip()] == []
    assert {word for word in ("exclusion", "constraints,", "PostgreSQL") if word not in recalled.split()} == set()


@pytest.mark.parametrize(("columns", "runs"), [(60, False), (100, True)])
def test_jobs_are_shown_whole_words_in_any_window(columns: int, *, runs: bool) -> None:
    job = api.Job(
        name="consolidate", running=False, runs=12, failures=0, last_start=Millis(1_764_000_000_000), last_ms=15_980,
        last_error=None, next_run=None, pending=209, paused=False, waiting="the night",
    )  # fmt: skip
    console = Console(width=columns, record=True, file=io.StringIO(), color_system=None)
    console.print(state.jobs([job]))
    said = console.export_text()

    assert "…" not in said
    assert "waits: the night" in said
    assert ("15,980 ms" in said) == runs


def test_a_list_says_of_what_ended_that_it_did(shell: Shell) -> None:
    shell.json("add", "The billing service listens on port 8080")
    shell.json("add", "The billing service listens on port 9090")
    office = shell.json("add", "The office is open on Mondays")["memory"]["id"]
    shell.json("update", office, "--valid-to", "2026-01-31")

    _, told, _ = shell.run("list", "--text")

    assert "(replaced) The billing service listens on port 8080" in told
    assert "(until 31 Jan 2026) The office is open" in told
    assert ") The billing service listens on port 9090" not in told


def test_people_get_text_with_rank_day_and_short_id(shell: Shell) -> None:
    added = shell.json("add", "The harbour has 140 berths")
    shell.json("add", "The café opens in May", "--type", "goal")

    code, out, err = shell.run("--text", "recall", "how many berths", "--why", "-n", "1")

    assert code == 0
    lines = out.splitlines()
    assert lines[0].rstrip() == " 1  The harbour has 140 berths"
    assert "fact" in lines[1]
    assert added["memory"]["id"][:16] in lines[1]
    assert "score" in {line.split()[0] for line in lines[-2:]}
    assert "1 hit" in err


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_no_cell_of_a_table_is_cut_but_the_words_of_memories_and_titles(width: int) -> None:
    table = table_of("session", "from", "agent", "events", "title")
    rows = [
        (f"cf12e06f-{number:04}", "18 Nov 2026 10:03", "claude-code", f"{number}", "a title") for number in range(3)
    ]
    for row in rows:
        table.add_row(*row)
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(table)
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]

    assert all(word in shown for row in rows for cell in row[:4] for word in cell.split())


def test_a_mark_stands_beside_what_it_marks_in_a_narrow_window() -> None:
    table = table_of("", "model", "licence")
    table.add_row("●", "bge-small-en-v1.5", "MIT")
    console = Console(width=20, file=io.StringIO(), highlight=False)
    console.print(table)

    assert console.file.getvalue().splitlines()[0].strip() == "● bge-small-en-v1.5"  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [34, 40, 47, 60, 120])
def test_no_date_is_cut_in_two_in_a_narrow_window(width: int) -> None:
    long = hit(text="We chose PostgreSQL for the bookings. " * 9, name="the database of the bookings")
    answer = api.RecallResponse(hits=(long,) * 5, mode="hybrid", tokens=9, elapsed_ms=1.0)
    sessions = [
        Session(
            id=f"9ee25ee8-77aa-{n}",
            agent="claude-code",
            project=None,
            start=Millis(1_764_000_000_000),
            end=None,
            events=3,
            title="A title",
        )
        for n in range(2)
    ]
    console = Console(width=width, record=True, file=open(os.devnull, "w", encoding="utf-8"), color_system=None)  # noqa: PTH123, SIM115
    with console.file:
        console.print(hits.recall(answer))
        console.print(events.sessions(sessions))
        lines = console.export_text().splitlines()

    assert all("Nov 2025" in line for line in lines if re.search(r"\bNov\b|\b2025\b", line) and "↳" not in line)
    assert all(len(line.rstrip()) <= width for line in lines)
    assert any("now" in line for line in lines)
