"""`scrubjay init` and `scrubjay models`: the folders, the store, and the models."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from scrubjay import api
from scrubjay import settings as options
from scrubjay.cli import invocation
from scrubjay.cli.lazy import Later
from scrubjay.cli.output import Output, remarks
from scrubjay.model_choice import Choice, Origin
from scrubjay.model_choice import chosen as choose
from scrubjay.models import catalog, install, installed
from scrubjay.store import meta_of
from scrubjay.transports import local
from scrubjay_shared.errors import InvalidError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from scrubjay.cli import render
    from scrubjay.models.installed import ModelStatus
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
    chosen = invocation.settings_of(line)
    options.ensure_dirs(chosen)
    with invocation.store(line) as door:
        counts: api.StatsAnswer = door.call("stats", api.Nothing())
    embedder, reranker = (choice.name for choice in choices(chosen))
    model = line.model or embedder
    _fetch_wanted(line, chosen, _local(model, reranker), out)
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
    )
    out.answer(report, lambda: render.initialised(report))


def choices(chosen: Settings) -> tuple[Choice, Choice]:
    """Return which embedding and which reranking model are used with these settings, and why."""
    kept = meta_of(chosen.store_path)
    embedder, reranker = (
        choose(key, named, chosen.origins.get(key, Origin.DEFAULT), kept.get(key))
        for key, named in (("model", chosen.model), ("reranker", chosen.reranker))
    )
    return embedder, reranker


def _local(*names: str) -> list[str]:
    """Return those names that are of models kept here."""
    return [name for name in names if name != options.NO_MODEL and not name.startswith(options.HTTP_PREFIX)]


def _state(chosen: Settings, name: str) -> str:
    if not _local(name):
        return "none" if name == options.NO_MODEL else "remote"
    return _found(chosen, [name])[0].state.value


def _found(chosen: Settings, names: Sequence[str]) -> list[ModelStatus]:
    manifest = {name: catalog.find(name) for name in names}
    return installed.installed(chosen.models_dir, manifest=manifest)


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
        sys.stderr.write(f"{needs[model.kind]} {model.name} ({model.licence}).\n")
    download = render.size(catalog.download_size(model.name for model in missing))
    disk = render.size(sum(model.size for model in missing))
    sys.stderr.write(
        f"They are downloaded once: {download}, which take {disk} on disk. Nothing is sent anywhere. Fetch now? [Y/n] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"", "y", "yes"}


def _pull(line: Namespace, chosen: Settings, names: Sequence[str], out: Output) -> None:
    source = Path(line.source).expanduser().absolute() if line.source else None
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=remarks(), transient=True, disable=out.hushed) as bar:
        task = bar.add_task(", ".join(names), total=None)
        install.pull(
            names,
            chosen.models_dir,
            source=source,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def models(line: Namespace) -> None:
    """List models, fetch some, or choose the one to embed or to rerank with."""
    out = Output.of(line)
    chosen = invocation.settings_of(line)
    if line.verb == "pull":
        names = [line.name] if line.name else _local(*(choice.name for choice in choices(chosen)))
        if not names:
            raise InvalidError(
                "no model that scrubjay can fetch is in use", hint="scrubjay models pull NAME fetches the one you name"
            )
        options.ensure_dirs(chosen)  # or the data folder would be made on the way to the models, open to others
        _pull(line, chosen, names, out)
        _told(chosen, names)
    elif line.verb == "use":
        _use(line, chosen)
    with invocation.store(line) as door:
        answer: api.ModelsAnswer = door.call("models", api.Nothing())
    out.answer(answer, lambda: render.models(answer))


def _use(line: Namespace, chosen: Settings) -> None:
    """Choose a model in the store, which uses it from now on, and in the settings, for stores that are made later."""
    reranker = line.reranker or line.name in catalog.RERANKERS
    with invocation.store(line) as door:
        door.call("use_model", api.ModelRequest(name=line.name, reranker=reranker))
    options.assign(chosen.config_path, "reranker" if reranker else "model", line.name)


def _told(chosen: Settings, names: Sequence[str]) -> None:
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
