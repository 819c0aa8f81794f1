"""Which folders may speak for which projects: what a folder says of itself is two text files that anybody can write.

A folder that names another repository in its `.git` would be handed that project's memories, and write there. So the
first folder of a project is taken at its word, worktrees that its repository lists come with it, and any other that
claims a known project is asked about once; until the person says yes it is a project of its own.

Kept in a file beside the store and not in it: folders are of this machine. Without the file the projects that are
known take the first folder that claims each, as they did before folders were asked about.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from scrubjay import projects
from scrubjay_io import private_files
from scrubjay_shared.errors import CorruptError

SUFFIX = ".folders.json"
"""Of the file beside a store's, after the store's own name."""


class FolderState(StrEnum):
    """What became of a folder's claim: the person has yet to say, said no, or it is trusted."""

    WAITING = "waiting"
    REFUSED = "refused"
    TRUSTED = "trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One checkout that says what project it is of.

    `folder` is its top, `common` git's folder behind it, which worktrees share; links are followed in both. `told` is
    whether a session's start has asked the person.
    """

    folder: str
    common: str
    project: str
    state: FolderState = FolderState.WAITING
    told: bool = False


def judge(
    claim: Claim, claims: Iterable[Claim], *, is_known: bool, is_new: bool, is_listed: Callable[[], bool]
) -> FolderState:
    """Decide on a claim that was not decided yet. Pure.

    `is_known` is whether anything is stored under the project, `is_new` whether no folder of it was ever asked about;
    `is_listed` whether git's folder holds the checkout or lists it as a worktree.
    """
    if projects.is_folder(claim.project):  # a folder speaks for itself: only its own repository lets others in
        return FolderState.TRUSTED if _is_of(claim, claim.project) and is_listed() else FolderState.WAITING
    of_project = [one for one in claims if one.project == claim.project]
    if not of_project and (is_new or not is_known):
        return FolderState.TRUSTED
    beside = any(one.state is FolderState.TRUSTED and one.common == claim.common for one in of_project)
    return FolderState.TRUSTED if beside and is_listed() else FolderState.WAITING


def _is_of(claim: Claim, folder: str) -> bool:
    return os.path.dirname(claim.common) == folder  # noqa: PTH120 - strings, as in `checkouts`


class TrustedFolders:
    """The claims of one store's folders. Safe to use from several threads; one process has the store."""

    def __init__(self, path: Path, claims: Mapping[tuple[str, str], Claim], before: Collection[str]) -> None:
        self._path = path
        self._claims = dict(claims)
        self._before = frozenset(before)
        self._lock = threading.Lock()

    @classmethod
    def load(cls, store: Path, known: Collection[str]) -> TrustedFolders:
        """Read the file beside a store; without one, make it for the `known` projects. Raises CorruptError."""
        path = store.with_name(f"{store.name}{SUFFIX}")
        try:
            held = json.loads(path.read_bytes())
            claims = [Claim(**(one | {"state": FolderState(one["state"])})) for one in held["claims"]]
            return cls(path, {(one.folder, one.project): one for one in claims}, held["before"])
        except FileNotFoundError:
            made = cls(path, {}, known)
            made._save()
            return made
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptError(
                f"{path} is damaged: which folders you trust cannot be told",
                hint=f"delete {path}: each project then takes the first folder that claims it",
            ) from error

    def state_of(self, claim: Claim, *, is_known: bool, is_listed: Callable[[], bool]) -> FolderState:
        """Return what became of a claim, deciding on it when it is new."""
        key = (claim.folder, claim.project)
        with self._lock:
            if (found := self._claims.get(key)) is not None:
                return found.state
            state = judge(
                claim,
                self._claims.values(),
                is_known=is_known,
                is_new=claim.project in self._before,
                is_listed=is_listed,
            )
            self._put(replace(claim, state=state))
            return state

    def trusted(self, folder: str, names: Iterable[str]) -> str | None:
        """Return the first of some projects that a folder is trusted to be of, else None."""
        with self._lock:
            found = (self._claims.get((folder, name)) for name in names)
            return next((one.project for one in found if one and one.state is FolderState.TRUSTED), None)

    def is_asked_about(self, folder: str) -> bool:
        """Say whether a folder ever claimed a project."""
        with self._lock:
            return any(one.folder == folder for one in self._claims.values())

    def claims(self) -> tuple[Claim, ...]:
        """Return all claims, by folder."""
        with self._lock:
            return tuple(sorted(self._claims.values(), key=lambda one: (one.folder, one.project)))

    def of_projects(self) -> tuple[tuple[str, str], ...]:
        """Return every folder that may speak for a project, with the project, by folder."""
        return tuple((one.folder, one.project) for one in self.claims() if one.state is FolderState.TRUSTED)

    def decide(self, folder: str, state: FolderState, names: Collection[str] | None) -> tuple[Claim, ...]:
        """Set what becomes of a folder's claims. Returns those; none where the folder never claimed a project.

        A yes is for what the folder claims now, which is among `names`, and for no claim that it made before; of a
        folder that is gone (None) for all that wait. A no is for all.
        """

        def is_meant(claim: Claim) -> bool:
            if state is FolderState.REFUSED:
                return True
            return claim.state is FolderState.WAITING if names is None else claim.project in names

        with self._lock:
            found = [one for one in self._claims.values() if one.folder == folder and is_meant(one)]
            decided = tuple(replace(one, state=state) for one in found)
            for one in decided:
                self._put(one)
            return decided

    def tell(self, folder: str, project: str) -> bool:
        """Say whether the person is to be asked about a waiting claim now: at the first start there, and only then."""
        with self._lock:
            found = self._claims.get((folder, project))
            if found is None or found.told or found.state is not FolderState.WAITING:
                return False
            self._put(replace(found, told=True))
            return True

    def _put(self, claim: Claim) -> None:
        self._claims[claim.folder, claim.project] = claim
        self._save()

    def _save(self) -> None:
        held = {"before": sorted(self._before), "claims": [asdict(one) for one in self._claims.values()]}
        private_files.write(self._path, json.dumps(held, indent=1).encode() + b"\n")


def waiting_beside(store: Path) -> list[Claim]:
    """Return the claims that wait for the person, by the file beside a store. Writes nothing; raises CorruptError."""
    if not store.with_name(f"{store.name}{SUFFIX}").exists():
        return []
    return [one for one in TrustedFolders.load(store, ()).claims() if one.state is FolderState.WAITING]
