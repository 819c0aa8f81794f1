"""What a folder is a checkout of: its `.git` is read by hand, in less than a millisecond, and git is not started.

But for one case: without a remote, what two checkouts share is their first commit. The log of a repository that was
made on this machine begins with it; where that is gone, git is asked once, and its answer kept for the process.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from scrubjay.projects import names_of, remote_name, remote_url
from scrubjay.spawning import NO_WINDOW

log = logging.getLogger(__name__)

MOST_PARENTS = 64
"""Folders above one that are looked into: a path has fewer."""

MOST_BYTES = 1_048_576
"""Of a file of git's that is read: a configuration has kilobytes, and whoever made it larger has another purpose."""

GIT_SECONDS = 2.0
"""For git to walk to the first commit: a hundred thousand commits take half a second, and a larger history without a
remote is a project by its path."""

FIRST = re.compile(r"0{40,64} (?P<commit>[0-9a-f]{40,64}) [^\n\t]*\tcommit \(initial\)")
"""The first line of the log of a branch that was made here, before any other commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What a folder is a checkout of.

    `top` is the folder of the checkout, `main` that of the repository that it is a worktree of (itself, usually).
    `remote` is the address of its remote, normalised (`projects.remote_name`); `first` its first commit, looked for
    only where there is no remote. `branch` is None between branches.
    """

    top: str
    main: str
    remote: str | None
    first: str | None
    branch: str | None


def absolute(project: str | Path) -> str:
    """Return a project as it is sent: the whole path of one that is written as a path, any other name as it is."""
    name = str(project)
    if isinstance(project, Path) or name in {".", ".."} or name.startswith(("~", "/", "./", "../")):
        return os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111 - links are followed where it is read
    return name


def looked_up(folder: str) -> tuple[list[str], str | None]:
    """Return every name that a folder's project may have, the best of a new one first, and the branch there.

    A path where no folder is has itself for a name. Blocks on the disk.
    """
    try:
        path = Path(folder)
        if not path.is_dir():
            return [folder], None
        found = checkout(path)
        real = str(path.resolve())
    except (OSError, ValueError):  # not of this system, or not to be read: then it is a name like any other
        return [folder], None
    names = names_of(
        real,
        top=found.top if found else None,
        main=found.main if found else None,
        remote=found.remote if found else None,
        first=found.first if found else None,
    )
    return [*names, folder], found.branch if found else None


def checkout(folder: Path) -> Checkout | None:
    """Return what a folder is a checkout of; None for none. Blocks on the disk, and for git at most `GIT_SECONDS`.

    A repository of the home folder itself holds settings: what lies below it is no part of it.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - a string, as the others here
    top = os.path.realpath(folder)
    for _ in range(MOST_PARENTS):
        git_dir = _git_dir(Path(top))
        if git_dir is not None:
            if top == os.path.realpath(home) and os.path.realpath(folder) != top:
                return None
            return _read(top, git_dir)
        above = os.path.dirname(top)  # noqa: PTH120 - likewise
        if above == top:
            return None
        top = above
    return None


def _git_dir(top: Path) -> Path | None:
    """Return git's folder of a checkout: `.git`, or what a file of that name points to."""
    found = top / ".git"
    try:
        if found.is_dir():
            return found if (found / "HEAD").exists() else None
        if not found.is_file():
            return None
    except OSError:
        return None
    pointed = _text(found).partition("gitdir:")[2].strip()
    folder = top / pointed if pointed else None
    return folder if folder is not None and (folder / "HEAD").is_file() else None


def _read(top: str, git_dir: Path) -> Checkout:
    shared = _text(git_dir / "commondir").strip()
    common = os.path.realpath(git_dir / shared) if shared else os.path.realpath(git_dir)
    head = _text(git_dir / "HEAD").strip()
    url = remote_url(_text(Path(common) / "config"))
    remote = None if url is None else remote_name(url)
    return Checkout(
        top=top,
        main=os.path.dirname(common) if os.path.basename(common) == ".git" else top,  # noqa: PTH119, PTH120
        remote=remote,
        first=None if remote is not None else _first_commit(common),
        branch=head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None,
    )


def _first_commit(common: str) -> str | None:
    """Return the first commit of a repository by its log, else by git; None for one without commits."""
    logged = FIRST.match(_text(Path(common) / "logs" / "HEAD"))
    return logged["commit"] if logged else _asked(common)


def _asked(common: str) -> str | None:
    try:
        return _root_by_git(common)
    except (OSError, subprocess.SubprocessError) as error:
        log.info("no first commit: git %s", type(error).__name__)
        return None


@lru_cache(maxsize=256)
def _root_by_git(common: str) -> str:
    """Return the oldest commit without a parent, by git. Raises OSError or SubprocessError when git cannot tell.

    An error is not remembered: a repository without commits gets some. Nothing is fetched that a partial clone lacks:
    what it is fetched with stands in the repository's configuration, which may be anybody's.
    """
    told = subprocess.run(  # noqa: S603 - a list of words, of which one is a path; no shell
        ["git", f"--git-dir={common}", "-c", "protocol.allow=never", "rev-list", "--max-parents=0", "HEAD"],  # noqa: S607 - the person's own git
        check=True,
        capture_output=True,
        timeout=GIT_SECONDS,
        stdin=subprocess.DEVNULL,
        creationflags=NO_WINDOW,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"},
    )
    return told.stdout.decode("ascii", "replace").split()[-1]


def _text(path: Path) -> str:
    """Return the text of a small file; "" for one that is not there or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
