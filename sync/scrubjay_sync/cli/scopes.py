"""`scrubjay sync scopes | search`: the scopes of the account, and searching those that the server can read."""

from __future__ import annotations

from scrubjay.cli import render
from scrubjay.cli.arguments import Parser, text
from scrubjay_sync.api.references import RefRequest, one_of
from scrubjay_sync.api.scopes import MODES, FindRequest, FoundResponse, ScopeCreateRequest, ScopesResponse
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.presence import require_person
from scrubjay_sync.cli.rendering import identity_line, table
from scrubjay_sync.transport import Transport, connect

SEARCHABLE = """
A searchable scope is NOT encrypted: {origin}, whoever runs it, and whoever steals its backups can read every memory and
event in it, with times and names, and every question that you ask about it. That is what lets the server search for
you. A searchable scope can never be made sealed, only deleted.
"""


SHREDS = """
This will delete every object of the scope {name} at the server, and its keys on every device. If the server has kept a
copy in secret, that can no longer be opened once you have replaced the root key too (scrubjay account rotate).
Memories stay on the devices that have them.
"""


def configure_scopes(parser: Parser) -> None:
    """Add the arguments of `scrubjay sync scopes`."""
    add = subcommands(parser, "scope_command", default="list")
    add("list", "list the scopes")
    create = add("create", "make a scope: new memories of its projects go there, existing ones stay where they are")
    create.add_argument("name", type=text, metavar="NAME", help="the name of the new scope")
    create.add_argument(
        "--project",
        dest="projects",
        action="append",
        default=[],
        type=text,
        metavar="ID",
        help="a project of this scope; repeatable",
    )
    create.add_argument(
        "--mode",
        choices=MODES,
        default="sealed",
        help="sealed (the default: the server cannot read it) or searchable (it can)",
    )
    create.add_argument(
        "--space",
        type=text,
        default="",
        metavar="ID",
        help="searchable: its embedding space, unless that of the model in use",
    )
    create.add_argument(
        "--confirm", type=text, metavar="NAME", help="searchable: the name again, instead of typing it when asked"
    )
    add_password_stdin(create)
    delete = add("delete", "delete a scope at the server and its keys on every device; memories stay on the devices")
    delete.add_argument("ref", type=text, metavar="SCOPE", help="name or id, or the beginning of the id")
    delete.add_argument("--confirm", type=text, metavar="SCOPE", help="the same again, instead of typing it when asked")


def configure_search(parser: Parser) -> None:
    """Add the arguments of `scrubjay sync search`."""
    parser.add_argument("ref", type=text, metavar="SCOPE", help="name or id, or the beginning of the id")
    parser.add_argument("query", type=text, metavar="QUERY", help="the words to look for")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many hits, at most 100")
    parser.add_argument("--type", type=text, default="", help="only memories of this type")
    parser.add_argument("--topic", type=text, default="", help="only memories of this topic")


def scopes(command: Command) -> None:
    """List, make or delete scopes."""
    line = command.line
    if line.scope_command == "create":
        request = ScopeCreateRequest(name=line.name, mode=line.mode, projects=tuple(line.projects), space=line.space)
        with connect(command.chosen) as transport:
            if line.mode == "searchable":
                _open_to_server(command, transport)
            answer = transport.call("scope_create", request)
    elif line.scope_command == "delete":
        known = {one.id: one.name for one in command.call("scopes").scopes}
        scope = one_of(line.ref, known, "scope", "sync scopes list")
        command.prompts.must_mean(SHREDS.format(name=known[scope]), line.ref, line.confirm)
        gone = command.call("scope_delete", RefRequest(ref=scope))
        command.out.answer(
            gone, lambda: f"deleted {render.words.counted(gone.objects, 'object')}\n{identity_line(gone.who)}"
        )
        return
    else:
        answer = command.call("scopes")
    command.out.answer(answer, lambda: table(answer.who, ("scope", "id", "mode", "projects"), _scope_rows(answer)))


def _open_to_server(command: Command, transport: Transport) -> None:
    """Have a person say that they know what a searchable scope is: from then on the server reads what goes there."""
    line = command.line
    command.prompts.must_mean(SEARCHABLE.format(origin=command.require_login().origin), line.name, line.confirm)
    if line.confirm is not None:  # else it was typed just now, by somebody who is there
        require_person(command, transport, f"This makes a scope {line.name} that the server can read.")


def _scope_rows(answer: ScopesResponse) -> list[tuple[str, ...]]:
    return [
        (one.name, one.id[:8], one.mode, ", ".join(one.projects) or ("everything else" if one.home else "-"))
        for one in answer.scopes
    ]


def search(command: Command) -> None:
    """Search a searchable scope at the server."""
    line = command.line
    answer: FoundResponse = command.call(
        "search",
        FindRequest(ref=line.ref, text=line.query, limit=line.limit, type=line.type, topic=line.topic),
    )
    if answer.note:
        command.out.remark(answer.note)
    rows = [(f"{hit.score:.2f}", hit.id, hit.type, hit.content) for hit in answer.hits]
    command.out.answer(
        answer, lambda: table(answer.who, ("score", "id", "type", "memory"), rows) if rows else "nothing found"
    )
