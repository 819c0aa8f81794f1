"""`scrubjay add`: remember something."""

from __future__ import annotations

from scrubjay.cli import direct, here
from scrubjay.cli.arguments import KINDS, LAYERS, TYPES, project, share, text
from scrubjay.cli.lazy import LazyModule

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    import msgspec

    from scrubjay import api
    from scrubjay.cli import invocation, output
    from scrubjay.cli.arguments import Parser
    from scrubjay.cli.render import memories
    from scrubjay_shared import records
else:  # through a running daemon, a program's memory needs none of them
    msgspec, records = LazyModule("msgspec"), LazyModule("scrubjay_shared.records")
    invocation, output = LazyModule("scrubjay.cli.invocation"), LazyModule("scrubjay.cli.output")
    memories = LazyModule("scrubjay.cli.render.memories")


def configure(parser: Parser) -> None:
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
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--project", type=project, metavar="ID", help="it belongs to this project (the repository that you are in)"
    )
    where.add_argument(
        "--everywhere", action="store_true", help="it belongs to you everywhere (outside of repositories)"
    )
    parser.add_argument("--session", type=text, metavar="ID", help="it belongs to this session only")


def run(line: Namespace) -> None:
    """Remember something."""
    if direct.run(line, "/v1/memories", line.text, fields, repeatable=False):
        return
    out = output.Output.of(line)
    draft = msgspec.convert(fields(line, invocation.words(line.text, "what to remember")), records.MemoryDraft)
    with invocation.store(line) as store:
        entry: api.Entry = store.call("add", draft)
        labels = invocation.labels(store, [entry.memory.resource_id])
        out.answer(entry, lambda: memories.added(_done(entry), entry, is_by_place=_is_by_place(line), labels=labels))
        invocation.embedded(store)


def _done(entry: api.Entry) -> str:
    if entry.lifted:
        return "added (it had been forgotten, and is refused no more)"
    return "added" if entry.created else "already there:"


def fields(line: Namespace, content: str) -> dict[str, Any]:
    """Return what to remember as the fields of a MemoryDraft."""
    scope, resource = _belongs(line)
    return direct.given(
        content=content,
        name=line.name,
        aliases=line.aliases,
        kind=line.kind,
        type=line.type,
        scope=scope,
        resource_id=resource,
        layer=line.layer,
        salience=line.salience,
        topic=line.topic,
    )


def _is_by_place(line: Namespace) -> bool:
    """Say whether where the command runs decides whose a memory is. What is always loaded is of you, wherever."""
    return not (line.everywhere or line.project or line.session or line.layer in LAYERS[:2])


def _belongs(line: Namespace) -> tuple[str, str | None]:
    if line.session is not None:
        return "session", line.session
    named = here.project_of(line) if line.project or _is_by_place(line) else None
    return ("user", None) if named is None else ("project", named)
