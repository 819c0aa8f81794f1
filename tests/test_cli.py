"""The command line: what it reads, what it writes, what it says when something is wrong, and how fast it starts."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from scrubjay import api
from scrubjay.cli import arguments, extensions, main, parser, reference, times
from scrubjay.cli.errors import of_os_error
from scrubjay.cli.render import hits, words
from scrubjay.cli.render.history import named, shortened
from scrubjay.cli.table import COMMANDS
from scrubjay_shared import errors, records
from scrubjay_shared.clock import Millis

ROOT = Path(__file__).parent.parent
STOCKHOLM = timezone(timedelta(hours=1))
NOW = datetime(2026, 11, 21, 15, 30, tzinfo=STOCKHOLM)


class Shell:
    """Runs command lines on a store of its own, in this process or in one of their own."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._capture = capture
        self._patch = patch

    def run(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr of one command line."""
        if stdin is not None:
            self._patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = main([*arguments])
        written = self._capture.readouterr()
        return code, written.out, written.err

    def json(self, *arguments: str, stdin: bytes | None = None) -> Any:
        """Return the JSON of a command line that must succeed."""
        code, out, err = self.run(*arguments, stdin=stdin)
        assert code == 0, err
        return json.loads(out)

    def error(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, dict[str, str]]:
        """Return exit code and error of a command line that must fail with JSON."""
        code, out, err = self.run(*arguments, stdin=stdin)
        assert out == ""
        assert err.count("\n") == 1, err
        return code, json.loads(err)

    def process(
        self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command line in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "scrubjay.cli", *arguments],
            input=stdin,
            capture_output=True,
            env=environment(self.home) | (env or {}),
            timeout=120,
            check=False,
        )


def environment(home: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    paths = os.pathsep.join(str(ROOT / part) for part in ("local", "shared", "bench"))
    return kept | {"SCRUBJAY_HOME": str(home), "SCRUBJAY_MODEL": "none", "SCRUBJAY_PORT": "0", "PYTHONPATH": paths}


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    home = tmp_path / "home"
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SCRUBJAY_HOME", str(home))
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_PORT", "0")
    return Shell(home, capsys, monkeypatch)


# The line.


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("TYPES", records.MemoryType),
        ("KINDS", records.Kind),
        ("LAYERS", records.Layer),
        ("SCOPES", records.Scope),
        ("MODES", api.Mode),
    ],
)
def test_the_words_of_the_line_are_the_words_of_the_records(name: str, members: Any) -> None:
    assert getattr(arguments, name) == tuple(member.value for member in members)


def test_docs_cli_md_is_what_the_parser_and_the_records_say() -> None:
    document = reference.document()

    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == document, (
        "python -m scrubjay.cli.reference > docs/cli.md"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([command, "--help"])

    shown = capsys.readouterr().out
    assert code == 0
    assert COMMANDS[command].example in shown
    assert "--json" in shown


def test_help_lists_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert all(f"  {name:<12} {summary}" in shown for name, summary in parser.summaries())
    assert {"sync", "bench"} < {name for name, _ in parser.summaries()}
    assert all(
        f"{kind.exit_code} {kind.code}".replace("_", " ") in shown for kind in errors.ScrubjayError.__subclasses__()
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [(["--json"], []), ([], ["--json"]), (["--home", "/x", "--json"], []), (["--home", "/x"], ["--json"])],
)
def test_options_of_every_command_stand_before_it_or_after_it(before: list[str], after: list[str]) -> None:
    line = parser.parse([*before, "stats", *after])

    assert line.form == "json"
    assert line.home == ("/x" if "/x" in before else None)


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("search", "did you mean: scrubjay recall"),
        ("recal", "did you mean: scrubjay recall"),
        ("delete", "did you mean: scrubjay forget"),
        ("xyzzy", "scrubjay --help lists the commands"),
    ],
)
def test_an_unknown_command_is_an_error_with_the_likely_one(shell: Shell, typed: str, hint: str) -> None:
    code, error = shell.error(typed)

    assert (code, error["code"], error["hint"]) == (2, "invalid", hint)


BAD_LINES = [
    ["add", "x", "--salience", "nan"],
    ["add", "x", "--salience", "inf"],
    ["add", "x", "--salience", "1.01"],
    ["add", "x", "--salience", "-0.1"],
    ["add", "x", "--salience", "much"],
    ["add", "x", "--type", "opinion"],
    ["add"],
    ["recall"],
    ["recall", "x", "--limit", "0"],
    ["recall", "x", "--limit", "-1"],
    ["recall", "x", "--limit", "99999999999999999999"],
    ["recall", "x", "--limit", "1e3"],
    ["recall", "x", "--mode", "vibes"],
    ["recall", "x", "--since", "the day after never"],
    ["recall", "x", "--since", ""],
    ["recall", "x", "--since", "99999-01-01"],
    ["recall", "x", "--min-salience", "2"],
    ["recall", "x", "--unknown"],
    ["context", "--identity", "name"],
    ["context", "--identity", "=x"],
    ["update", "x"],
    ["add", "caf\udce9"],
    ["recall", "caf\udce9"],
    ["daemon"],
    ["daemon", "dance"],
    ["completion", "elvish"],
    ["--data-dir"],
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: " ".join(line).encode("ascii", "replace").decode())
def test_a_bad_line_is_refused_with_a_hint_and_touches_nothing(shell: Shell, line: list[str]) -> None:
    code, error = shell.error(*line)

    assert (code, error["code"]) == (2, "invalid")
    assert error["message"]
    assert error["hint"]
    assert not shell.home.exists()


def test_an_error_for_people_is_two_lines(shell: Shell) -> None:
    code, out, err = shell.run("--text", "recal")

    assert (code, out) == (2, "")
    assert err == "scrubjay: there is no command 'recal'\n      did you mean: scrubjay recall\n"


def test_an_error_never_drives_the_terminal(shell: Shell) -> None:
    _, _, err = shell.run("--text", "get", "\x1b[31mred\n\nsecond")

    assert "\x1b" not in err
    assert err.count("\n") == 2


@given(st.lists(st.text(max_size=12), max_size=6))
def test_splitting_a_line_loses_nothing(words: list[str]) -> None:
    before, command, after = parser.split(words)

    assert [*before, *([] if command is None else [command]), *after] == words


# Times.


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("2026-11-20", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("2026-11-20T10:00", "2026-11-20T10:00+01:00", "2026-11-20T10:01+01:00"),
        ("2026-11-20 10:00", "2026-11-20T10:00+01:00", "2026-11-20T10:01+01:00"),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00+00:00", "2026-11-20T10:00:01+00:00"),
        ("today", "2026-11-21T00:00+01:00", "2026-11-22T00:00+01:00"),
        ("yesterday", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("  Yesterday ", "2026-11-20T00:00+01:00", "2026-11-21T00:00+01:00"),
        ("7 days ago", "2026-11-14T00:00+01:00", "2026-11-15T00:00+01:00"),
        ("2 weeks ago", None, None),
        ("last week", None, None),
        ("May 2026", "2026-05-01T00:00+01:00", "2026-06-01T00:00+01:00"),
        ("3 hours ago", "2026-11-21T12:30+01:00", "2026-11-21T12:30+01:00"),
        ("an hour ago", "2026-11-21T14:30+01:00", "2026-11-21T14:30+01:00"),
        ("now", "2026-11-21T15:30+01:00", "2026-11-21T15:30+01:00"),
    ],
)
def test_times_are_read_as_people_write_them(words: str, start: str | None, end: str | None) -> None:
    found = times.time_range(words, NOW)

    assert found.start <= found.end <= times.millis(NOW) + 86_400_000
    if start is not None and end is not None:
        assert found == (times.millis(datetime.fromisoformat(start)), times.millis(datetime.fromisoformat(end)))


def test_until_a_day_holds_the_whole_of_it() -> None:
    until = times.until("2026-11-20", NOW)

    assert until == times.millis(datetime.fromisoformat("2026-11-21T00:00+01:00"))


# What people see.


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
    assert lines[1].strip() == "24 Nov 2025 · decision · 01K9ZJ4S0B7Q3MME · 1.500"
    assert lines[2].strip() == "↳ Maya: “we chose PostgreSQL [bold]”  24 Nov 2025 17:00 · 01K9ZJ4S0B7Q3MEV"
    assert [line.split() for line in lines[3:]] == [["dense", "+1.000"], ["lexical", "+0.500"], ["score", "+1.500"]]


# Files and the system.


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(2, "No such file", "x"), errors.NotFoundError),
        (PermissionError(13, "Permission denied", "x"), errors.DeniedError),
        (IsADirectoryError(21, "Is a directory", "x"), errors.InvalidError),
        (OSError(28, "No space left on device"), errors.UnavailableError),
        (OSError(5, "Input/output error"), errors.UnavailableError),
    ],
)
def test_the_systems_errors_become_ours(error: OSError, kind: type[errors.ScrubjayError]) -> None:
    found = of_os_error(error)

    assert type(found) is kind
    assert found.hint
    assert mode_of(found) == kind.exit_code


def mode_of(error: errors.ScrubjayError) -> int:
    return error.exit_code


def test_help_loads_nothing_that_only_commands_need() -> None:
    heavy = ("numpy", "msgspec", "rich", "asyncio", "onnxruntime", "dataclasses", "sqlite3", "json", "starlette")
    program = f"import sys; from scrubjay.cli import main; main(['--help']); sys.exit(str([m for m in {heavy} if m in sys.modules]))"

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(ROOT), check=False
    )

    assert ended.stderr.strip() == "[]"


def test_importing_scrubjay_loads_nothing() -> None:
    program = "import sys; import scrubjay; sys.exit(str([m for m in sys.modules if m.startswith('scrubjay')]))"

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(ROOT), check=False
    )

    assert ended.stderr.strip() == "['scrubjay']"


@pytest.mark.parametrize("name", arguments.SHELLS)
def test_completion_knows_every_command_and_the_verbs_of_sync(shell: Shell, name: str) -> None:
    code, out, err = shell.run("completion", name)

    assert (code, err) == (0, "")
    assert all(name in out for name in (*COMMANDS, *extensions.names()))
    assert all(verb in out for verb in ("inspect", "approve", "revoke"))


# The commands, on a real store.


def test_a_memory_goes_through_its_life(shell: Shell) -> None:
    added = shell.json("add", "We chose", "SQLite", "--type", "decision", "--name", "database", "--alias", "db")
    memory_id = added["memory"]["id"]

    assert added["created"] is True
    assert added["memory"]["content"] == "We chose SQLite"
    assert shell.json("add", "We chose SQLite")["created"] is False
    assert shell.json("get", "db")["memory"]["id"] == memory_id
    assert shell.json("get", memory_id[:16])["memory"]["name"] == "database"
    assert shell.json("update", "database", "We chose PostgreSQL", "--salience", "0.9")["memory"]["salience"] == 0.9
    assert shell.json("rename", "database", "storage")["memory"]["name"] == "storage"
    assert "pg" in shell.json("alias", "storage", "pg")["aliases"]
    assert "pg" not in shell.json("alias", "storage", "pg", "--remove")["aliases"]
    assert [entry["memory"]["id"] for entry in shell.json("list", "--type", "decision")["entries"]] == [memory_id]
    assert shell.json("list", "--type", "goal")["entries"] == []
    assert shell.json("why", "storage")["history"]
    assert shell.json("recall", "what about PostgreSQL?")["hits"][0]["id"] == memory_id
    assert shell.json("stats")["memories"] == 1
    assert shell.json("forget", "storage")["forgotten"] == [memory_id]
    assert shell.error("get", "storage")[0] == 3
    assert shell.json("stats")["memories"] == 0


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


def test_people_get_text_with_rank_day_and_short_id(shell: Shell) -> None:
    added = shell.json("add", "The harbour has 140 berths")
    shell.json("add", "The café opens in May", "--type", "goal")

    code, out, err = shell.run("--text", "recall", "how many berths", "--why", "-n", "1")

    assert code == 0
    lines = out.splitlines()
    assert lines[0].rstrip() == " 1  The harbour has 140 berths"
    assert "fact" in lines[1]
    assert added["memory"]["id"][:16] in lines[1]
    assert lines[-1].split()[0] == "score"
    assert "1 hit" in err


def test_quiet_says_nothing_beside_the_result(shell: Shell) -> None:
    shell.json("add", "The harbour has 140 berths")

    _, _, err = shell.run("--text", "-q", "recall", "berths")

    assert err == ""


def test_a_text_comes_from_stdin_to_the_byte(shell: Shell) -> None:
    entry = shell.json("add", "-", stdin="\ufeffзаметка 🎉\nsecond line\n".encode())

    assert entry["memory"]["content"] == "заметка 🎉\nsecond line"


def test_five_megabytes_come_from_stdin(shell: Shell) -> None:
    text = b"harbour " * (5 * 1024 * 1024 // 8)

    entry = shell.json("add", "-", "--name", "big", stdin=text)

    assert len(entry["memory"]["content"]) == len(text) - 1
    assert shell.json("get", "big")["memory"]["id"] == entry["memory"]["id"]


BAD_INPUT: list[tuple[list[str], bytes | None, int]] = [
    (["add", ""], None, 2),
    (["add", "   "], None, 2),
    (["add", "-"], b"", 2),
    (["add", "-"], b"caf\xe9", 2),
    (["add", "-"], bytes(range(256)), 2),
    (["add", "x", "--name", ""], None, 2),
    (["add", "x", "--name", "n" * 1000], None, 2),
    (["get", "nobody"], None, 3),
    (["get", ""], None, 3),
    (["get", "01ARYZ6S410000000000000000"], None, 3),
    (["why", "../../etc/passwd"], None, 3),
    (["update", "nobody", "x"], None, 3),
    (["rename", "nobody", "x"], None, 3),
    (["alias", "nobody", "x"], None, 3),
    (["forget", "nobody"], None, 3),
    (["recall", "x" * 9000], None, 2),
    (["recall", "x", "--limit", "1000000"], None, 2),
    (["recall", "x", "--neighbours", "1000000"], None, 2),
    (["list", "--cursor", "garbage"], None, 2),
    (["list", "--limit", "1000000"], None, 2),
    (["events", "--cursor", "garbage"], None, 2),
    (["ingest"], b"", 2),
    (["ingest"], b"not json\n", 2),
    (["ingest"], b"{}\n", 2),
    (["ingest"], b'{"agent":"a","session_id":"s","type":"dream","text":"x"}\n', 2),
    (["ingest"], b'{"agent":"a","session_id":"s","type":"note","text":5}\n', 2),
    (["ingest"], b"[" * 100_000, 2),
    (["ingest"], b"\xff\xfe\n", 2),
    (["ingest", "/nowhere/at/all"], None, 3),
    (["import", "/nowhere/at/all"], None, 3),
    (["import", "/nowhere/*.jsonl"], None, 3),
    (["import", "-"], b"", 2),
    (["import", "-", "--format", "fortran"], b"x", 2),
    (["import", "-", "--format", "locomo"], b"{}", 2),
    (["export", "/nowhere/at/all"], None, 3),
    (["restore", "/nowhere/at/all"], None, 3),
    (["models", "use", "gpt-17"], None, 3),
    (["models", "pull", "gpt-17"], None, 3),
    (["context", "--identity", "=x"], None, 2),
    (["demo", "--locomo", "/nowhere/at/all"], None, 3),
]


@pytest.mark.parametrize(("line", "stdin", "expected"), BAD_INPUT, ids=range(len(BAD_INPUT)))
def test_bad_input_is_an_error_with_a_code_and_a_hint(
    shell: Shell, line: list[str], stdin: bytes | None, expected: int
) -> None:
    code, error = shell.error(*line, stdin=stdin)

    assert (code, errors.BY_CODE[error["code"]].exit_code) == (expected, expected)
    assert error["message"]
    assert error["hint"]


@pytest.mark.parametrize("query", ['"*NEAR-:', '"', "*", "a NEAR b", "-x", "col:on", "(", "'; drop table memories; --"])
def test_a_question_is_words_and_never_syntax(shell: Shell, query: str) -> None:
    shell.json("add", "the odd one is here")

    assert shell.run("recall", f"odd {query}")[0] == 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我们决定使用数据库", "数据库"),
        ("会議は東京で行われます", "東京"),
        ("เราเลือกฐานข้อมูล", "ฐานข้อมูล"),
        ("اخترنا قاعدة البيانات", "البيانات"),
        ("deploy day 🎉 is friday", "🎉"),
    ],
)
def test_every_language_goes_in_and_comes_out(shell: Shell, text: str, query: str) -> None:
    shell.json("add", text)

    assert [hit["text"] for hit in shell.json("recall", query)["hits"]] == [text]


def test_control_characters_are_kept_in_json_and_harmless_on_screen(shell: Shell) -> None:
    shell.json("add", "-", "--name", "odd", stdin=b"bell\x07 esc\x1b[31mred")

    assert shell.json("get", "odd")["memory"]["content"].startswith("bell")
    _, out, _ = shell.run("--text", "get", "odd")
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_name_that_is_taken_is_a_conflict(shell: Shell) -> None:
    shell.json("add", "one", "--name", "first")
    shell.json("add", "two", "--name", "second")

    assert shell.error("rename", "second", "first")[0] == 5
    assert shell.error("alias", "second", "first")[0] == 5
    assert shell.error("add", "three", "--name", "first")[0] == 5
    assert shell.json("stats")["memories"] == 2


def test_context_sets_shows_and_removes(shell: Shell) -> None:
    shell.run("context", "--identity", "name=Maya", "--active", "task=the = sign")

    answer = shell.json("context")

    assert answer["identity"] == {"name": "Maya"}
    assert answer["active"] == {"task": "the = sign"}
    assert shell.json("context", "--identity", "name=")["identity"] == {}


EVENTS = "\n".join(
    json.dumps({"agent": "a", "session_id": "s", "type": "user_message", "text": text, "ts": 1_764_000_000_000 + n})
    for n, text in enumerate(["We decided to use PostgreSQL for the bookings.", "ok", "I prefer tabs in Makefiles."])
).encode()


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


def test_one_bad_line_stores_nothing(shell: Shell) -> None:
    code, error = shell.error("ingest", stdin=EVENTS + b"\n{broken\n")

    assert code == 2
    assert "line 4" in error["message"]
    assert shell.json("stats")["events"] == 0


def test_pages_follow_one_another(shell: Shell) -> None:
    for n in range(5):
        shell.json("add", f"note number {n}", "--name", f"n{n}")

    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = shell.json("list", "-n", "2", *cursor)
        seen.extend(entry["memory"]["name"] for entry in page["entries"])
        if page["next"] is None:
            break
        cursor = ["--cursor", page["next"]]
    assert seen == ["n4", "n3", "n2", "n1", "n0"]


def test_a_folder_is_imported_file_by_file(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / ".hidden").mkdir()
    (notes / "a.md").write_text("# Harbour\n\nWe decided to open in May 2026.\n", encoding="utf-8")
    (notes / "deep" / "b.txt").write_text("I prefer tabs over spaces in Makefiles.\n", encoding="utf-8")
    (notes / "broken.txt").write_bytes(b"caf\xe9\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / ".hidden" / "c.md").write_text("secret", encoding="utf-8")

    code, out, _ = shell.run("import", str(notes))
    report = json.loads(out)

    assert code == 2
    assert report["files"] == 2
    assert [Path(failed["path"]).name for failed in report["failed"]] == ["broken.txt"]
    assert [(each["reason"], each["count"]) for each in report["skipped"] if "kind" in each["reason"]] == [
        ("not a kind of file to import (.png)", 1)
    ]
    again = json.loads(shell.run("import", str(notes))[1])
    assert (again["events"], again["memories"]) == (0, 0)
    assert again["duplicates"] > 0


def test_a_dry_run_stores_nothing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Harbour\n\nWe decided to open in May 2026.\n", encoding="utf-8")

    report = shell.json("import", str(tmp_path / "*.md"), "--dry-run")

    assert report["dry_run"] is True
    assert report["files"] == 1
    assert report["events"] + report["memories"] > 0
    stats = shell.json("stats")
    assert (stats["events"], stats["memories"]) == (0, 0)


def test_an_export_makes_the_same_store_again(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite", "--name", "database", "--alias", "db")
    shell.json("ingest", stdin=EVENTS)
    before = shell.json("list")
    report = shell.json("export", str(tmp_path / "all.ndjson"))
    _, streamed, _ = shell.run("export")

    assert streamed.count("\n") == report["lines"]
    assert stat.S_IMODE((tmp_path / "all.ndjson").stat().st_mode) == 0o600
    shell.json("--home", str(tmp_path / "other"), "import", "--restore", str(tmp_path / "all.ndjson"))
    after = shell.json("--home", str(tmp_path / "other"), "list")
    assert [plain(entry) for entry in after["entries"]] == [plain(entry) for entry in before["entries"]]


def test_an_import_says_what_it_did_not_believe_and_a_restore_what_is_always_loaded(
    shell: Shell, tmp_path: Path
) -> None:
    shell.json("add", "Jay", "--name", "identity/name", "--layer", "identity")
    shell.json("export", str(tmp_path / "all.ndjson"))
    other = ("--home", str(tmp_path / "other"))

    _, said, _ = shell.run("--text", *other, "import", str(tmp_path / "all.ndjson"))
    assert "trusted as an import" in said
    assert "scrubjay import --restore FILE" in said
    assert shell.json(*other, "context")["identity"] == {}

    report = shell.json(*other, "import", "--restore", str(tmp_path / "all.ndjson"))
    assert report["always_loaded"] == {"identity": {"identity/name": "Jay"}, "active": {}}
    assert shell.json(*other, "context")["identity"] == {"name": "Jay"}
    copy = shell.json(*other, "backup", str(tmp_path / "copy.db"))
    _, said, _ = shell.run("--text", "--home", str(tmp_path / "third"), "restore", copy["path"])
    assert "agents are always given 1 line:" in said
    assert "identity/name: Jay" in said


def test_a_folder_is_never_restored(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()

    code, error = shell.error("import", "--restore", str(tmp_path / "notes"))

    assert (code, error["code"]) == (2, "invalid")
    assert "not a file" in error["message"]


def plain(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: entry["memory"][key] for key in ("id", "content", "type", "name", "scope", "salience", "content_hash")
    } | {"aliases": entry["aliases"]}


def test_a_backup_is_restored_and_the_old_file_kept(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite", "--name", "database")
    copy = shell.json("backup", str(tmp_path / "copy.db"))
    shell.json("add", "a later thought", "--name", "later")

    report = shell.json("restore", copy["path"])

    assert shell.json("stats")["memories"] == 1
    assert Path(report["kept"]).exists()
    assert Path(shell.json("backup")["path"]).parent == shell.home / "data" / "backups"


def test_a_restore_of_something_else_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.json("add", "We chose SQLite")
    (tmp_path / "diary.txt").write_text("dear diary\n" * 100, encoding="utf-8")

    code, error = shell.error("restore", str(tmp_path / "diary.txt"))

    assert (code, error["code"]) == (7, "corrupt")
    assert shell.json("stats")["memories"] == 1


def test_a_rebuild_gives_the_same(shell: Shell) -> None:
    shell.json("add", "We chose SQLite", "--name", "database")
    shell.json("ingest", stdin=EVENTS)

    report = shell.json("rebuild")

    assert report["before"] == report["after"]
    assert shell.json("get", "database")["memory"]["content"] == "We chose SQLite"


def test_init_makes_private_folders_and_never_asks_into_the_void(shell: Shell) -> None:
    report = shell.json("init")

    assert report["model_state"] == "none"
    assert report["reranker_state"] == "absent"
    assert stat.S_IMODE((shell.home / "data").stat().st_mode) == 0o700
    assert shell.json("init")["memories"] == 0


def test_init_without_a_terminal_fetches_nothing(shell: Shell) -> None:
    ended = shell.process("--text", "init", env={"SCRUBJAY_MODEL": "bge-small-en-v1.5"})

    assert ended.returncode == 0, ended.stderr
    assert b"scrubjay models pull" in ended.stdout
    assert not any((shell.home / "models").iterdir())


def test_a_chosen_model_is_kept_in_the_settings(shell: Shell) -> None:
    shell.json("models", "use", "none")
    shell.json("models", "use", "--reranker", "none")

    assert (shell.home / "config.toml").read_text(encoding="utf-8") == 'model = "none"\nreranker = "none"\n'


def test_a_model_that_two_places_name_is_said_and_the_store_wins_over_the_settings_file(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_MODEL")
    shell.json("models", "use", "none")
    in_agreement = shell.json("models")["notes"]
    (shell.home / "config.toml").write_text('model = "e5-small-v2"\n', encoding="utf-8")

    (note,) = shell.json("models")["notes"]
    _, out, _ = shell.run("doctor")
    found = {check["found"]: check for check in json.loads(out)["checks"] if check["name"] == "model"}

    assert in_agreement == []
    assert "the settings file says e5-small-v2; the store uses none" in note
    assert "scrubjay models use e5-small-v2" in note
    assert [(check["state"], check["todo"]) for text, check in found.items() if "two places" in text] == [
        ("warn", "To use e5-small-v2, run: scrubjay models use e5-small-v2")
    ]
    assert any(text.startswith("none, because 'scrubjay models use none' was run") for text in found)


def test_a_model_named_for_one_process_wins_and_is_not_overridden_in_silence(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_MODEL")
    shell.json("models", "use", "none")
    monkeypatch.setenv("SCRUBJAY_MODEL", "e5-small-v2")

    answer = shell.json("models")
    code, _, err = shell.run("models", "use", "none")

    assert [model["name"] for model in answer["models"] if model["in_use"]] == [
        "e5-small-v2",
        "ms-marco-MiniLM-L-12-v2",
    ]
    assert "SCRUBJAY_MODEL says e5-small-v2, which is used; the store says none" in answer["notes"][0]
    assert code == 5
    assert "unset SCRUBJAY_MODEL" in err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the folders are not those of XDG")
def test_models_pull_leaves_no_folder_open_to_others(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    for part in ("CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{part}_HOME", raising=False)
    (tmp_path / "nothing").mkdir()

    code, _, _ = shell.run("models", "pull", "e5-small-v2", "--from", str(tmp_path / "nothing"))

    assert code != 0
    assert stat.S_IMODE((tmp_path / ".local" / "share" / "scrubjay").stat().st_mode) == 0o700


def test_pulling_without_a_name_needs_a_model_in_the_settings(shell: Shell) -> None:
    shell.json("models", "use", "--reranker", "none")

    code, _, err = shell.run("models", "pull")

    assert code == 2
    assert "models pull NAME" in err


# The doctor.


def checks(shell: Shell) -> tuple[int, dict[str, str]]:
    code, out, err = shell.run("doctor")
    assert out, err
    return code, {check["name"]: check["state"] for check in json.loads(out)["checks"]}


def test_the_doctor_finds_a_new_store_healthy(shell: Shell) -> None:
    shell.json("init")
    shell.json("add", "We chose SQLite")

    code, found = checks(shell)

    assert code == 0
    assert "fail" not in found.values()
    assert (found["integrity"], found["schema"], found["data folder"]) == ("ok", "ok", "ok")


def test_the_doctor_makes_nothing(shell: Shell) -> None:
    code, found = checks(shell)

    assert code == 0
    assert found["store"] == "warn"
    assert not shell.home.exists()


def test_the_doctor_finds_damage_and_says_what_to_do(shell: Shell) -> None:
    for n in range(50):
        shell.json("add", f"note number {n} about the harbour and its berths")
    path = shell.home / "data" / "memory.db"
    damaged = bytearray(path.read_bytes())
    damaged[8192:16384] = b"\xaa" * 8192
    path.write_bytes(damaged)

    code, found = checks(shell)

    assert code == 7
    assert found["integrity"] == "fail"
    assert path.read_bytes() == damaged
    assert shell.error("stats")[0] == 7


@pytest.mark.skipif(sys.platform == "win32", reason="no such modes there")
def test_the_doctor_finds_open_doors(shell: Shell) -> None:
    shell.json("init")
    (shell.home / "data").chmod(0o755)
    (shell.home / "data" / "token").write_text("x" * 43, encoding="ascii")
    (shell.home / "data" / "token").chmod(0o644)

    code, found = checks(shell)

    assert code == 6
    assert (found["data folder"], found["token"]) == ("warn", "fail")


# Processes of their own.


def test_a_reader_that_has_enough_is_no_error(shell: Shell) -> None:
    for n in range(3):
        shell.json("add", f"note number {n}")

    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m scrubjay.cli export | head -c 10"],
        capture_output=True,
        env=environment(shell.home),
        check=False,
        timeout=60,
    )

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(ended.stdout) == 10


def test_a_line_that_is_not_utf8_is_refused(shell: Shell) -> None:
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"scrubjay.cli", b"add", b"caf\xe9"],
        capture_output=True,
        env=environment(shell.home),
        check=False,
        timeout=60,
    )

    assert ended.returncode == 2
    assert "UTF-8" in json.loads(ended.stderr)["message"]


def test_ctrl_c_ends_quietly_with_130(shell: Shell) -> None:
    shell.json("init")
    process = subprocess.Popen(
        [sys.executable, "-m", "scrubjay.cli", "ingest"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(shell.home),
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()  # it is past its start when the pipe has been emptied
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"")


def test_commands_at_the_same_time_wait_for_one_another(shell: Shell) -> None:
    shell.json("init")
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "scrubjay.cli", "add", f"note number {n}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(shell.home),
        )
        for n in range(4)
    ]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in running]

    assert ended == [(b"", 0)] * 4
    assert shell.json("stats")["memories"] == 4


def test_commands_go_through_a_running_daemon(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment(shell.home)["PYTHONPATH"])
    assert shell.run("daemon", "status")[0] == 6
    started = shell.json("daemon", "start")
    try:
        again = shell.json("daemon", "start")
        added = shell.json("add", "We chose SQLite", "--name", "database")
        shell.json("ingest", "--wait", stdin=EVENTS)

        assert (started["already"], again["already"], again["pid"]) == (False, True, started["pid"])
        assert shell.json("daemon", "status")["status"]["pid"] == started["pid"]
        assert shell.json("get", "database")["memory"] == added["memory"]
        assert shell.json("recall", "database")["hits"][0]["id"] == added["memory"]["id"]
        records = Counter(next(iter(json.loads(line))) for line in shell.run("export")[1].splitlines())
        assert (records["event"], records["memory"]) == (3, shell.json("stats")["memories"])
        assert shell.error("get", "nobody")[0] == 3
        assert shell.error("restore", str(shell.home / "data" / "memory.db"))[0] == 5
        assert shell.run("daemon", "logs", "-n", "5")[0] == 0
        assert checks(shell)[0] == 0
    finally:
        stopped = shell.json("daemon", "stop")
    assert (stopped["state"], stopped["pid"], stopped["killed"]) == ("stopped", started["pid"], False)
    assert shell.json("daemon", "stop")["already"] is True
    assert shell.json("get", "database")["memory"]["id"] == added["memory"]["id"]


def test_an_import_is_undone_by_the_beginning_of_its_cause_as_history_shows_it(shell: Shell, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Drinks\n\nI prefer green tea.\n", encoding="utf-8")
    shell.run("import", str(notes))
    _, out, _ = shell.run("history", "--kind", "import", "--json")
    cause = json.loads(out)["causes"][0]

    code, out, err = shell.run("undo", cause["id"][: len("import:") + 12], "--json")

    assert (code, err) == (0, "")
    assert len(json.loads(out)["archived"]) == 1
    assert json.loads(shell.run("list", "--json")[1])["entries"] == []
    assert len(json.loads(shell.run("list", "--archived", "--json")[1])["entries"]) == 1
    assert shortened(cause["id"]) in named(cause["id"], cause["label"]) == f"{shortened(cause['id'])} of notes.md"
