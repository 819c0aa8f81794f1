"""The command line: what it reads, what it writes, what it says when something is wrong, and how fast it starts."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from scrubjay import api
from scrubjay.cli import main, of_os_error, parser, reference, render, times
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
            self._patch.setattr("sys.stdin", _stdin(self.home, stdin))
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


def _stdin(home: Path, data: bytes) -> Any:
    path = home.with_name("stdin")
    path.write_bytes(data)
    return path.open(encoding="utf-8")


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
    assert getattr(parser, name) == tuple(member.value for member in members)


def test_docs_cli_md_is_what_the_parser_and_the_records_say() -> None:
    document = reference.document()

    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == document, (
        "python -m scrubjay.cli.reference > docs/cli.md"
    )


@pytest.mark.parametrize("command", [command.name for command in parser.COMMANDS if command.name != "bench"])
def test_every_command_has_help_with_its_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([command, "--help"])

    shown = capsys.readouterr().out
    assert code == 0
    assert parser.BY_NAME[command].example in shown
    assert "--json" in shown


def test_help_lists_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert all(f"  {command.name:<12} {command.summary}" in shown for command in parser.COMMANDS)
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
    ["completion", "powershell"],
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
    assert err == "scrubjay: no command 'recal'\n      did you mean: scrubjay recall\n"


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
    found = times.stretch(words, NOW)

    assert found.start <= found.end <= times.millis(NOW) + 86_400_000
    if start is not None and end is not None:
        assert found == (times.millis(datetime.fromisoformat(start)), times.millis(datetime.fromisoformat(end)))


def test_until_a_day_holds_the_whole_of_it() -> None:
    until = times.until("2026-11-20", NOW)

    assert until == times.millis(datetime.fromisoformat("2026-11-21T00:00+01:00"))


# What people see.


@given(st.text())
def test_what_is_shown_cannot_drive_the_terminal(text: str) -> None:
    shown = render.clean(text)

    assert len(shown) == len(text)
    assert all(character in "\n\t" or character.isprintable() or ord(character) >= 0xA0 for character in shown)
    assert not any(character in shown for character in "\x1b\x9b\x07\x08\r‮⁦")


@given(st.text(min_size=1), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_of_at_most_that_length(text: str, limit: int) -> None:
    shown = render.one_line(text, limit)

    assert len(shown) <= limit
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (34_131_000, "34.1 MB"), (5 * 10**12, "5.0 TB")]
)
def test_sizes_are_powers_of_ten(count: int, shown: str) -> None:
    assert render.size(count) == shown


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


def test_a_hit_shows_rank_words_day_type_and_who_said_so() -> None:
    lines = shown(render.hit(hit(), 1, why=True)).splitlines()

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


@pytest.mark.parametrize("name", ["bash", "zsh", "tcsh"])
def test_completion_knows_every_command(shell: Shell, name: str) -> None:
    code, out, _ = shell.run("completion", name)

    assert code == 0
    assert all(command.name in out for command in parser.COMMANDS)


def test_mode_bits_of_what_leaves_the_store_are_private(tmp_path: Path) -> None:
    from scrubjay.door import private  # noqa: PLC0415

    with open(tmp_path / "out", "wb", opener=private):
        pass

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) & 0o077 == 0
