"""`scrubjay vault`: keep an agent's memory as plain files, write into them, and ask them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay import api
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, count, shared, text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace

FILES = ("episodic", "semantic", "self", "social", "working")


def configure(parser: Parser) -> None:
    """Take what to do with which vault."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    status = add_subcommand(subcommands, "status", "show the vaults, and how each file is")
    init = add_subcommand(subcommands, "init", "keep an agent's memory as files in a folder")
    init.add_argument("folder", type=text, metavar="FOLDER", help="made if need be; what is in it is taken in")
    sync = add_subcommand(subcommands, "sync", "merge files and memories now; the daemon does it by itself")
    stop = add_subcommand(subcommands, "stop", "keep an agent's files no longer; files and memories stay")
    confirm = add_subcommand(subcommands, "confirm", "archive what is gone from the files, however much that is")
    confirm.add_argument("--file", choices=FILES, help="only what is gone from this file")
    confirm.add_argument("--put-back", action="store_true", help="write it there again instead")
    remember = add_subcommand(subcommands, "remember", "append to episodic.md")
    remember.add_argument("text", type=text, metavar="TEXT", help="what to remember")
    remember.add_argument("--section", type=text, metavar="NAME", help="below this heading (today's date)")
    remember.add_argument("--working", action="store_true", help="write working.md anew instead: 500 tokens at most")
    remember.add_argument("--source", type=text, metavar="NAME", help="who said it: it goes to social.md")
    remember.add_argument("--claim", choices=("confirmed", "contradicted"), help="whether what they said proved right")
    recall = add_subcommand(subcommands, "recall", "find sections by their words (BM25)")
    recall.add_argument("query", type=text, metavar="QUESTION", help="words to look for")
    recall.add_argument("-n", "--limit", type=count, default=5, help="at most this many sections (5)")
    recall.add_argument(
        "--by-source", action="store_true", help="let sources of social.md count by how often they proved right"
    )
    compact = add_subcommand(subcommands, "compact", "carry what episodic.md says over to semantic.md, word for word")
    reflect = add_subcommand(subcommands, "reflect", "carry what the agent says of itself over to self.md")
    for subcommand in (compact, reflect):
        subcommand.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    for subcommand in (status, init, sync, stop, confirm, remember, recall, compact, reflect):
        subcommand.add_argument("--agent", type=text, metavar="NAME", help="whose vault", required=subcommand is init)
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """Do it, and show what came of it. Without `--agent`, where there is one vault, that one is meant."""
    out = Output.of(line)
    with invocation.store(line) as store:
        name = line.subcommand or "status"
        agent = getattr(line, "agent", None)
        if agent is None and name not in {"status", "sync"}:
            agent = _only(store)
        operation, made = _REQUESTS[name]
        answer = store.call(operation, made(line, agent))
        if name not in {"status", "stop", "recall"}:
            invocation.embedded(store)
    if name == "stop":
        out.answer(answer, lambda: f"{agent}: stopped; its memories stay, and the files stay as they are")
    else:
        out.answer(answer, lambda: render.vaults.shown(answer))


def _only(store: Any) -> str:
    """Return the agent of the only vault. Raises InvalidError where there are several, or none."""
    found: api.VaultsResponse = store.call("vaults", api.VaultsRequest())
    if len(found.vaults) != 1:
        raise InvalidError(
            "there is no vault" if not found.vaults else "there are several vaults",
            hint="scrubjay vault init FOLDER --agent NAME makes one" if not found.vaults else "say whose: --agent NAME",
        )
    return found.vaults[0].agent


def _remember(line: Namespace, agent: str) -> api.VaultRememberRequest:
    return api.VaultRememberRequest(
        agent=agent, text=line.text, section=line.section, working=line.working, source=line.source, claim=line.claim
    )


def _recall(line: Namespace, agent: str) -> api.VaultRecallRequest:
    return api.VaultRecallRequest(agent=agent, query=line.query, limit=line.limit, by_source=line.by_source)


def _init(line: Namespace, agent: str) -> api.VaultInitRequest:
    return api.VaultInitRequest(agent=agent, folder=str(Path(line.folder).expanduser().absolute()))


def _confirm(line: Namespace, agent: str) -> api.VaultSyncRequest:
    return api.VaultSyncRequest(agent=agent, file=line.file, confirm=not line.put_back, put_back=line.put_back)


def _condense(line: Namespace, agent: str) -> api.VaultCondenseRequest:
    return api.VaultCondenseRequest(agent=agent, dry_run=line.dry_run)


_REQUESTS: dict[str, tuple[str, Callable[[Namespace, Any], Any]]] = {
    "status": ("vaults", lambda _, agent: api.VaultsRequest(agent=agent)),
    "init": ("vault_init", _init),
    "sync": ("vault_sync", lambda _, agent: api.VaultSyncRequest(agent=agent)),
    "stop": ("vault_stop", lambda _, agent: api.VaultStopRequest(agent=agent)),
    "confirm": ("vault_sync", _confirm),
    "remember": ("vault_remember", _remember),
    "recall": ("vault_recall", _recall),
    "compact": ("vault_compact", _condense),
    "reflect": ("vault_reflect", _condense),
}
"""The operation of each subcommand, and what makes its request."""
