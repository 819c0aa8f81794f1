"""Which models are in use and which are here, and fetching them: what `init`, `models` and `doctor` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from scrubjay import setting_values
from scrubjay import settings as options
from scrubjay.cli.output import Output, remarks
from scrubjay.model_choice import Choice, Origin
from scrubjay.model_choice import chosen as choose
from scrubjay.models import catalog, install, installed
from scrubjay.models.installed import ModelStatus
from scrubjay.store import meta_of

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.settings import Settings


def choices(chosen: Settings) -> tuple[Choice, Choice]:
    """Return which embedding and which reranking model are used with these settings, and why."""
    kept = meta_of(chosen.store_path)
    embedder, reranker = (
        choose(key, named, chosen.origins.get(key, Origin.DEFAULT), kept.get(key))
        for key, named in (("model", chosen.model), ("reranker", chosen.reranker))
    )
    return embedder, reranker


def kept_here(*names: str) -> list[str]:
    """Return those names that are of models kept here."""
    return [name for name in names if name != options.NO_MODEL and not name.startswith(setting_values.HTTP_PREFIX)]


def states(chosen: Settings, names: Sequence[str]) -> list[ModelStatus]:
    """Return the states of some models' files."""
    manifest = {name: catalog.find(name) for name in names}
    return installed.installed(chosen.models_dir, manifest=manifest)


def fetch(line: Namespace, chosen: Settings, names: Sequence[str], out: Output) -> None:
    """Fetch some models, and show how far that is."""
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
