"""Folders that say what project they are of, and what the person says of that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFolder:
    """A checkout and the project that it claims. `state` is waiting, trusted or refused."""

    folder: str
    project: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsResponse:
    """Every checkout that claimed a project here, by its folder."""

    folders: tuple[ProjectFolder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFolderRequest:
    """Whether a folder (a checkout's top, or any below it) is what it says it is."""

    folder: str
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFolderResponse:
    """The folder's claims as they are now, and how much was moved from its own project into the claimed one."""

    folders: tuple[ProjectFolder, ...]
    events: int = 0
    memories: int = 0
