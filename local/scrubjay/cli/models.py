"""`scrubjay init` and `scrubjay models`: the folders, the store, and the embedding model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from scrubjay import api, door
from scrubjay import models as embedders
from scrubjay import settings as options
from scrubjay.cli import reach
from scrubjay.cli.later import Later
from scrubjay.cli.output import Output, remarks

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli import render
    from scrubjay.models import ModelStatus
    from scrubjay.settings import Settings
else:
    render = Later("scrubjay.cli.render")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitReport:
    """What is in place now. `model_state` is the state of the model in use: ready, missing, damaged or none."""

    data_dir: str
    models_dir: str
    config: str
    file: str
    memories: int
    model: str
    model_state: str


def init(line: Namespace) -> None:
    """Make the folders and the store, and fetch the embedding model when that is wanted. Never asks into the void."""
    out = Output.of(line)
    chosen = reach.settings_of(line)
    options.ensure_dirs(chosen)
    with reach.store(line) as door:
        counts: api.StatsAnswer = door.call("stats", api.Nothing())
    name, state = _model_wanted(line, chosen, out)
    report = InitReport(
        data_dir=str(chosen.data_dir),
        models_dir=str(chosen.models_dir),
        config=str(chosen.config_path),
        file=str(chosen.store_path),
        memories=counts.memories,
        model=name,
        model_state=state,
    )
    out.answer(report, lambda: render.initialised(report))


def _model_wanted(line: Namespace, chosen: Settings, out: Output) -> tuple[str, str]:
    """Fetch the model if told to, or if a person says yes. Returns its name and its state."""
    name = line.model or chosen.model
    if name == options.NO_MODEL or name.startswith(options.HTTP_PREFIX):
        return name, "none" if name == options.NO_MODEL else "remote"
    found = _installed(chosen, name)
    if found.state == "ready" or line.no_model:
        return name, found.state
    if line.model is None and not _agreed(found, out):
        return name, found.state
    _pull(line, chosen, name, out)
    return name, "ready"


def _agreed(model: ModelStatus, out: Output) -> bool:
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(
        f"Recall by meaning needs the embedding model {model.name} ({render.size(model.size)}, {model.licence}).\n"
        "It is fetched once, and nothing is sent anywhere. Fetch it now? [Y/n] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"", "y", "yes"}


def _installed(chosen: Settings, name: str) -> ModelStatus:
    embedders.find(name)
    return next(each for each in embedders.installed(chosen.models_dir, in_use=chosen.model) if each.name == name)


def _pull(line: Namespace, chosen: Settings, name: str, out: Output) -> None:
    source = Path(line.source).expanduser().absolute() if line.source else None
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=remarks(), transient=True, disable=out.hushed) as bar:
        task = bar.add_task(name, total=None)
        embedders.pull(
            name,
            chosen.models_dir,
            source=source,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def models(line: Namespace) -> None:
    """List models, fetch one, or choose the one to embed with."""
    out = Output.of(line)
    chosen = reach.settings_of(line)
    if line.verb == "pull":
        name = line.name or chosen.model
        _pull(line, chosen, name, out)
        _told(chosen, name)
    elif line.verb == "use":
        _use(line, chosen)
    with reach.store(line) as door:
        answer: api.ModelsAnswer = door.call("models", api.Nothing())
    out.answer(answer, lambda: render.models(answer))


def _use(line: Namespace, chosen: Settings) -> None:
    """Choose a model for now, in the store, and for every later start, in the settings."""
    with reach.store(line) as door:
        door.call("use_model", api.ModelRequest(name=line.name))
    options.assign(chosen.config_path, "model", line.name)


def _told(chosen: Settings, name: str) -> None:
    """Let a running daemon that waits for this model load it."""
    daemon = door.through_daemon(chosen.store_path, chosen)
    if daemon is None:
        return
    try:
        if chosen.model == name:
            daemon.call("use_model", api.ModelRequest(name=name))
    finally:
        daemon.close()
