"""The command line as it is read: its words, its options, its help, and what a bad line gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_shell import ROOT, Shell
from scrubjay import api
from scrubjay.cli import arguments, extensions, main, parser, reference
from scrubjay.cli.table import COMMANDS
from scrubjay.toc import periods
from scrubjay_shared import errors, records


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("TYPES", records.MemoryType),
        ("KINDS", records.Kind),
        ("LAYERS", records.Layer),
        ("SCOPES", records.Scope),
        ("MODES", api.Mode),
        ("BUCKETS", api.Bucket),
        ("LEVELS", (*periods.PERIODS, periods.Level.SEGMENT)),
        ("INTENTS", api.Intent),
        ("TELEPORTS", api.TeleportMode),
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


@pytest.mark.parametrize("name", arguments.SHELLS)
def test_completion_knows_every_command_and_the_subcommands_of_sync(shell: Shell, name: str) -> None:
    code, out, err = shell.run("completion", name)

    assert (code, err) == (0, "")
    assert all(name in out for name in (*COMMANDS, *extensions.names()))
    assert all(subcommand in out for subcommand in ("inspect", "approve", "revoke"))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["list", "--limt", "3"], "did you mean: --limit"),
        (["recall", "x", "--explain"], "did you mean: --why"),
        (["recall", "x", "--sience=yesterday"], "did you mean: --since"),
        (["jobs", "history", "--limti", "3"], "did you mean: --limit"),
        (["recall", "x", "--zebra"], "scrubjay recall --help shows what it takes"),
        (["undo"], "CAUSE is a run or request: its id, or the beginning of it (scrubjay history)"),
        (["daemon"], "one of: start, stop, restart, status, logs, run"),
    ],
)
def test_a_wrong_line_is_answered_with_what_was_probably_meant(words: list[str], hint: str) -> None:
    with pytest.raises(errors.InvalidError) as caught:
        parser.parse(words)

    assert caught.value.hint == hint
