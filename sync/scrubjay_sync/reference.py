"""docs/sync-cli.md, made of the parsers, the error kinds and the records: it cannot say anything else than they do.

`python -m scrubjay_sync.reference > docs/sync-cli.md` writes it; a test compares the two, and the tests of the command
line hold what each command prints against `PRINTS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from scrubjay.cli import reference
from scrubjay_shared import errors
from scrubjay_sync import cli
from scrubjay_sync.api.account import DeletedResponse, RecoveryResponse
from scrubjay_sync.api.devices import AnswerResponse, ApproveResponse, BundleResponse, DevicesResponse
from scrubjay_sync.api.identity import WhoResponse
from scrubjay_sync.api.login import LogOutResponse
from scrubjay_sync.api.rounds import SnapshotResponse, StatusResponse, SyncResponse
from scrubjay_sync.api.scopes import FoundResponse, ScopeDeletedResponse, ScopesResponse
from scrubjay_sync.api.teams import TeamsResponse, TeamWordsResponse
from scrubjay_sync.api.verification import CompareResponse, HeadsResponse, InspectResponse, LogResponse, VerifyResponse
from scrubjay_sync.cli.projects import AccountsReport
from scrubjay_sync.cli.rendering import SignedUp

HEAD = """\
# The command line of sync

<!-- Written by `python -m scrubjay_sync.reference`; a test compares. Change the parser, not this file. -->

These commands need the extra `sync`: in a checkout, `pip install '.[sync]'`. What holds for every command (options,
JSON, exit codes) is in [cli.md](cli.md); what sync is and how to use it, in [sync.md](sync.md).

With `--password-stdin` nothing is asked: passwords and codes are read from stdin, one a line, in the order in which
they would be asked for. Nothing secret is ever an argument.
"""

EXITS = """\
## Errors of sync

Beside those of [every command](cli.md#exit-codes-and-errors):

| exit code | `code` | meaning |
|--:|---|---|
"""

PRINTS: dict[tuple[str, str], tuple[type[Any], ...]] = {
    ("login", ""): (WhoResponse, SignedUp),
    ("logout", ""): (LogOutResponse,),
    ("sync", ""): (SyncResponse,),
    ("sync", "status"): (StatusResponse,),
    ("sync", "verify"): (VerifyResponse, CompareResponse),
    ("sync", "snapshot"): (SnapshotResponse,),
    ("sync", "inspect"): (InspectResponse,),
    ("sync", "export-heads"): (HeadsResponse,),
    ("sync", "log"): (LogResponse,),
    ("sync", "acknowledge"): (WhoResponse,),
    ("sync", "quiet"): (WhoResponse,),
    ("sync", "search"): (FoundResponse,),
    ("sync", "accounts"): (AccountsReport,),
    ("sync", "projects"): (AccountsReport,),
    ("sync", "scopes"): (ScopesResponse, ScopeDeletedResponse),
    ("devices", ""): (DevicesResponse,),
    ("devices", "approve"): (ApproveResponse, AnswerResponse),
    ("devices", "revoke"): (DevicesResponse,),
    ("devices", "rename"): (DevicesResponse,),
    ("devices", "create"): (BundleResponse,),
    ("teams", ""): (TeamsResponse,),
    ("teams", "card"): (TeamWordsResponse,),
    ("teams", "create"): (TeamsResponse,),
    ("teams", "invite"): (TeamWordsResponse,),
    ("teams", "join"): (TeamsResponse,),
    ("teams", "role"): (TeamsResponse,),
    ("teams", "remove"): (TeamsResponse,),
    ("teams", "leave"): (TeamsResponse,),
    ("recovery", "verify"): (RecoveryResponse,),
    ("recovery", "rotate"): (RecoveryResponse, SignedUp),
    ("recovery", "void"): (WhoResponse,),
    ("account", "password"): (WhoResponse,),
    ("account", "rename"): (WhoResponse,),
    ("account", "totp"): (WhoResponse,),
    ("account", "rotate"): (WhoResponse,),
    ("account", "delete"): (DeletedResponse,),
}
"""What a command prints as JSON, by command and subcommand.
`recovery show` prints nothing: there is nothing to show."""


def prints(words: Sequence[str]) -> tuple[type[Any], ...]:
    """Return what a command line prints; `words` begin with the command."""
    return PRINTS.get((words[0], words[1] if len(words) > 1 else ""), ()) or PRINTS[words[0], ""]


def document() -> str:
    """Return the whole of docs/sync-cli.md."""
    every = {record.__name__: record for records in PRINTS.values() for record in records}
    return "\n".join(
        [
            HEAD,
            *(_section(name) for name in cli.COMMANDS),
            EXITS + "\n".join(reference.kinds(errors.SYNC_KINDS)) + "\n",
            *reference.records_of([every[name] for name in sorted(every)]),
        ]
    )


def _section(name: str) -> str:
    summary = cli.COMMANDS[name]
    of = cli.parser_of(name)
    parts = [f"## scrubjay {name}", summary.text, reference.usage(of), reference.table(reference.own(of))]
    parts.extend(reference.subcommands_of(of))
    parts.append(f"Example: `{summary.example}`")
    parts.append("\n".join(_prints(name)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _prints(name: str) -> Iterator[str]:
    yield "JSON:\n"
    for (command, subcommand), records in PRINTS.items():
        if command == name:
            named = " or ".join(f"[`{record.__name__}`](#records)" for record in records)
            yield f"- `{f'scrubjay {command} {subcommand}'.rstrip()}`: {named}"


if __name__ == "__main__":
    sys.stdout.write(document())
