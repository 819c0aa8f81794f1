"""docs/cli.md, made of the parser, the error kinds and the records: it cannot say anything else than they do.

`python -m scrubjay.cli.reference > docs/cli.md` writes it; a test compares the two.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import typing
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib import import_module
from typing import Any

from scrubjay import api
from scrubjay.cli import INTERRUPTED, arguments, extensions, reports
from scrubjay.cli.table import COMMANDS, Command
from scrubjay_shared import errors

HEAD = """\
# The command line

<!-- Written by `python -m scrubjay.cli.reference`; a test compares. Change the parser, not this file. -->

`scrubjay [options] COMMAND ...`

The result goes to stdout, everything else (progress, remarks, errors) to stderr. For people the result is text; with
`--json`, or when stdout is not a terminal, it is one JSON object on one line (`--text` asks for text there). It is the
record named under the command, described [below](#records); records only gain fields. Times in JSON are UTC
milliseconds, ids are ULIDs. What people see is local time and the first 16 characters of an id.

A command uses the daemon when one runs; else it opens the store itself, learns and embeds what it brought in, and
leaves nothing running; a second command waits up to half a minute for it.

A `REF` is a memory's id, its first 6 or more characters if these are nobody else's, its name, or any alias.
A `WHEN` is a date (`2026-11-21`), a date and time (`2026-11-21T14:30`), or words: `now`, `today`, `yesterday`,
`3 hours ago`, `7 days ago`, `last week`, `May 2026`. Words and dates are days of the local calendar; `--since` means
their beginning and `--until` their end.
`-` as a text or a file is stdin, which must be UTF-8.
"""

EXITS = """\
## Exit codes and errors

An error is two lines on stderr, what is wrong and what to do about it. With JSON it is one object on one line:
`{"code": "not_found", "message": "…", "hint": "…"}`.

| exit code | `code` | meaning |
|--:|---|---|
| 0 | | done; also when what was asked for was so already |
"""

SHARED = ("form", "data_dir", "home", "account", "quiet")
SILENT = "nothing: it is text either way"


def document() -> str:
    """Return the whole of docs/cli.md."""
    return "\n".join(
        [
            HEAD,
            *_options(),
            *map(_section, COMMANDS.values()),
            *map(_elsewhere, extensions.names()),
            *_exits(),
            *_records(),
        ]
    )


def _options() -> Iterator[str]:
    shared = argparse.ArgumentParser(add_help=False)
    arguments.shared(shared, top=True)
    rows = table(shared._actions)  # noqa: SLF001  # argparse offers no other way to walk a parser
    yield f"## Options of every command\n\nThey stand before the command or after it.\n\n{rows}\n\n## Commands\n"


def _section(command: Command) -> str:
    of = argparse.ArgumentParser(prog=f"scrubjay {command.name}", add_help=False)
    import_module(command.module).configure(of)
    parts = [f"### {command.name}", f"{command.summary[0].upper()}{command.summary[1:]}.", usage(of)]
    parts.extend(part for part in (table(own(of)), *subcommands_of(of)) if part)
    parts.append(f"Example: `{command.example}`")
    parts.append(f"JSON: {f'[`{command.answer}`](#records)' if command.answer else SILENT}.")
    return "\n\n".join(parts) + "\n"


def _elsewhere(name: str) -> str:
    """Return the section of a command of another package."""
    summary, page = extensions.summary(name), extensions.of(name).page
    return f"### {name}\n\n{summary[0].upper()}{summary[1:]}: see [{page}]({page}).\n"


def subcommands_of(of: argparse.ArgumentParser) -> Iterator[str]:
    """Yield what each subcommand of a parser takes."""
    for action in of._actions:  # noqa: SLF001  # argparse offers no other way to walk a parser
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                rows = table(own(below))
                yield f"{usage(below)}: {below.description}." + (f"\n\n{rows}" if rows else "")
                yield from subcommands_of(below)


def own(of: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return a parser's own arguments: not its help, its subcommands, or the options of every command."""
    return [
        action
        for action in of._actions  # noqa: SLF001
        if action.dest not in {"help", *SHARED} and not isinstance(action.choices, dict)
    ]


def usage(of: argparse.ArgumentParser) -> str:
    """Return the line that shows what a parser takes."""
    words = [of.prog]
    if any(action.option_strings for action in own(of)):
        words.append("[options]")
    for action in of._actions:  # noqa: SLF001
        if action.option_strings:
            continue
        word = "SUBCOMMAND" if isinstance(action.choices, dict) else _metavar(action)
        repeated = f"{word} ..." if action.nargs in {"+", "*"} else word
        words.append(
            f"[{repeated}]"
            if action.nargs in {"?", "*"} or (word == "SUBCOMMAND" and not action.required)
            else repeated
        )
    return f"`{' '.join(words)}`"


def table(actions: Sequence[argparse.Action]) -> str:
    """Return the table of some arguments; "" where there are no arguments."""
    rows = [f"| {_escaped(_names(action))} | {_escaped(action.help or '')} |" for action in actions]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_metavar(action)}`"
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices is not None else action.dest.upper()


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _exits() -> Iterator[str]:
    rows = kinds((errors.ScrubjayError, *errors.KINDS))
    yield EXITS + "\n".join([*rows, f"| {INTERRUPTED} | | Ctrl-C; what was acknowledged is kept |"]) + "\n"


def kinds(of: Sequence[type[errors.ScrubjayError]]) -> list[str]:
    """Return the row of each kind of error: exit code, code, meaning."""
    rows = []
    for kind in sorted(of, key=lambda kind: (kind.exit_code, kind.code)):
        meaning = (kind.__doc__ or "").strip().partition("\n")[0]
        if kind is errors.ScrubjayError:
            meaning = "A bug of ours: `SCRUBJAY_DEBUG=1` shows where."
        rows.append(f"| {kind.exit_code} | `{kind.code}` | {meaning} |")
    return rows


def _records() -> Iterator[str]:
    """Yield every record that a command prints, and those that these hold."""
    names = sorted({command.answer for command in COMMANDS.values() if command.answer})
    yield from records_of([getattr(api if hasattr(api, name) else reports, name) for name in names])


def records_of(printed: Sequence[type[Any]]) -> Iterator[str]:
    """Yield the tables of some records, and of those that they hold."""
    queue, seen = list(printed), dict[str, type[Any]]()
    while queue:
        record = queue.pop(0)
        if record.__name__ not in seen:
            seen[record.__name__] = record
            queue.extend(_held(record))
    yield "## Records\n"
    for name in sorted(seen):
        yield _record(seen[name])


def _held(record: type[Any]) -> list[type[Any]]:
    return [
        inner
        for hint in typing.get_type_hints(record).values()
        for inner in _parts(hint)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type)
    ]


def _parts(hint: Any) -> list[Any]:
    inner = typing.get_args(hint)
    return [hint] if not inner else [part for each in inner for part in _parts(each)]


def _record(record: type[Any]) -> str:
    hints = typing.get_type_hints(record)
    rows = [f"| `{field.name}` | {_shape(hints[field.name])} |" for field in dataclasses.fields(record)]
    meaning = " ".join((record.__doc__ or "").split())
    return "\n".join([f"### {record.__name__}", "", meaning, "", "| field | value |", "|---|---|", *rows, ""])


def _shape(hint: Any) -> str:
    """Return what JSON holds for a type, in words."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if inner and type(None) in inner:
        rest = [each for each in inner if each is not type(None)]
        return " or ".join([*map(_shape, rest), "null"])
    if origin is tuple:
        return f"array of {_shape(inner[0])}"
    if origin is dict:
        return f"object of {_shape(inner[1])}" if inner[1] is not Any else "object"
    if dataclasses.is_dataclass(hint):
        return f"`{hint.__name__}`"  # type: ignore[union-attr]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(f'`"{member.value}"`' for member in hint)
    plain = getattr(hint, "__supertype__", hint)
    return {str: "string", int: "integer", float: "number", bool: "true or false", bytes: "base64 string"}.get(
        plain, "any"
    )


if __name__ == "__main__":
    sys.stdout.write(document())
