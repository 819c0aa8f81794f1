"""Which models are on this machine, and whether their files are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from scrubjay.models.catalog import MODELS, Model, ModelKind

PULL_HINT = "scrubjay models pull"


class ModelState(StrEnum):
    """Whether a model's files are here. `damaged`: there, but not the files the manifest names."""

    ABSENT = "absent"
    READY = "ready"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One line of `scrubjay models list`. `size` in bytes, as it is or would be on disk."""

    name: str
    kind: ModelKind
    state: ModelState
    size: int
    licence: str
    in_use: bool


def installed(
    folder: Path, *, in_use: Iterable[str] = (), verify: bool = False, manifest: Mapping[str, Model] = MODELS
) -> list[ModelStatus]:
    """Return the state of every known model under `folder`. Sizes are always checked, checksums with `verify`."""
    used = set(in_use)
    return [
        ModelStatus(
            name=model.name,
            kind=model.kind,
            state=state_of(model, folder / model.name, verify=verify),
            size=model.size,
            licence=model.licence,
            in_use=model.name in used,
        )
        for model in manifest.values()
    ]


def is_absent(folder: Path, name: str) -> bool:
    """Return whether a model that is known has no files under `folder`. Costs one look at the file system."""
    return name in MODELS and not (folder / name).is_dir()


def state_of(model: Model, folder: Path, *, verify: bool) -> ModelState:
    """Return the state of the files in `folder`, by their sizes, with `verify` by their checksums too."""
    if not folder.is_dir():
        return ModelState.ABSENT
    for file in model.files:
        try:
            if (folder / file.name).stat().st_size != file.size:
                return ModelState.DAMAGED
            if verify:
                with (folder / file.name).open("rb") as opened:
                    if hashlib.file_digest(opened, "sha256").hexdigest() != file.sha256:
                        return ModelState.DAMAGED
        except OSError:
            return ModelState.DAMAGED
    return ModelState.READY
