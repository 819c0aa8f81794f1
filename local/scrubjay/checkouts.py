"""What a folder is a checkout of: its `.git` is read by hand, in less than a millisecond, and git is not started.

But for two cases. Without a remote, what two checkouts share is their first commit: the log of a repository that was
made on this machine begins with it; where that is gone, git is asked. And where a configuration includes others or
writes addresses anew (`insteadOf`), git is asked what they come to. Its answers are kept for as long as the files stay.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from scrubjay.projects import host_resolved, names_of, remote_name, remote_url
from scrubjay.spawning import NO_WINDOW

log = logging.getLogger(__name__)

MOST_PARENTS = 64
"""Folders above one that are looked into: a path has fewer."""

MOST_BYTES = 1_048_576
"""Of a file of git's that is read: a configuration has kilobytes, and whoever made it larger has another purpose."""

GIT_SECONDS = 2.0
"""For git to walk to the first commit: a hundred thousand commits take half a second, and a larger history without a
remote is a project by its path."""

_DRIVE = re.compile(r"(?P<letter>[A-Za-z]):[\\/](?P<rest>.*)", re.DOTALL)
_SHARE = re.compile(r"[\\/]{2}wsl(?:\$|\.localhost)[\\/][^\\/]+[\\/](?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_MOUNTED = re.compile(r"/mnt/(?P<letter>[a-z])/(?P<rest>.*)", re.DOTALL)
"""A folder on a drive of Windows, a folder of its Linux seen from Windows, and a drive seen from its Linux."""

_NEEDS_GIT = re.compile(r"^\s*\[include|insteadof\s*=", re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(r"\s*include\s+(?P<files>.*)", re.IGNORECASE)

FIRST = re.compile(r"0{40,64} (?P<commit>[0-9a-f]{40,64}) [^\n\t]*\tcommit \(initial\)")
"""The first line of the log of a branch that was made here, before any other commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What a folder is a checkout of.

    `top` is the folder of the checkout, `main` that of the repository that it is a worktree of (itself, usually);
    `common` is git's own folder, which worktrees share. Links are followed in all three.
    `remote` is the address of its remote, normalised (`projects.remote_name`), `spelled` what that was before a name of
    the person's for the host was looked up; `first` its first commit, looked for only where there is no remote.
    `branch` is None between branches.
    """

    top: str
    main: str
    common: str
    remote: str | None
    first: str | None
    branch: str | None
    spelled: str | None = None


def absolute(project: str | Path) -> str:
    """Return a project as it is sent: the whole path of one that is written as a path, any other name as it is."""
    name = str(project)
    if isinstance(project, Path) or name in {".", ".."} or name.startswith(("~", "/", "./", "../")):
        return os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111 - links are followed where it is read
    return name


class Found(NamedTuple):
    """A folder looked up: every name that its project may have, the best of a new one first, branch and checkout."""

    names: list[str]
    branch: str | None = None
    checkout: Checkout | None = None


def looked_up(folder: str) -> Found:
    """Return the names of a folder's project, and what it is a checkout of.

    A path where no folder is has itself for a name. Blocks on the disk.
    """
    try:
        path = Path(_native(folder))
        if not path.is_dir():
            return Found([folder])
        found = checkout(path)
        real = str(path.resolve())
    except (OSError, ValueError):  # not of this system, or not to be read: then it is a name like any other
        return Found([folder])
    names = names_of(
        real,
        top=found.top if found else None,
        main=found.main if found else None,
        remote=found.remote if found else None,
        first=found.first if found else None,
        spelled=found.spelled if found else None,
    )
    return Found([*names, folder], found.branch if found else None, found)


def holds(found: Checkout) -> bool:
    """Say whether git's folder owns up to a checkout: it lies in it, or lists it as a worktree. Blocks on the disk.

    A `.git` that only points there, by a file or a link, proves nothing.
    """
    if os.path.dirname(found.common) == found.top:  # noqa: PTH120 - strings, as everywhere here
        return True
    for listed in Path(found.common, "worktrees").glob("*/gitdir"):
        pointed = os.path.realpath(listed.parent / _text(listed).strip())
        if os.path.dirname(pointed) == found.top:  # noqa: PTH120
            return True
    return False


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
    url = _remote_url(common)
    spelled = None if url is None else remote_name(url)
    remote = spelled if url is None or spelled is None else host_resolved(spelled, url, _ssh_settings)
    return Checkout(
        top=top,
        common=common,
        main=os.path.dirname(common) if os.path.basename(common) == ".git" else top,  # noqa: PTH119, PTH120
        remote=remote,
        first=None if remote is not None else _first_commit(common),
        branch=head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None,
        spelled=spelled if spelled != remote else None,
    )


def _native(folder: str) -> str:
    """Return a path as this system has it: of a folder of Windows and of one in its Linux, either may be told."""
    drive = _DRIVE.fullmatch(folder)
    if drive and sys.platform != "win32":
        mounted = f"/mnt/{drive['letter'].lower()}/{drive['rest'].replace(chr(92), '/')}"
        return mounted if os.path.isdir(mounted) else folder  # noqa: PTH112 - strings, as everywhere here
    inside = _SHARE.fullmatch(folder)
    if inside and sys.platform != "win32":
        return "/" + inside["rest"].replace("\\", "/")
    mounted_drive = _MOUNTED.fullmatch(folder)
    if mounted_drive and sys.platform == "win32":
        return f"{mounted_drive['letter'].upper()}:\\" + mounted_drive["rest"].replace("/", "\\")
    return folder


def _remote_url(common: str) -> str | None:
    """Return the address of the remote that names a project, with includes and `insteadOf` as git applies them."""
    config = _text(Path(common) / "config")
    everybody = [path for path in _global_configs() if path.is_file()]
    texts = [config, *map(_text, everybody)]
    if not any(_NEEDS_GIT.search(text) for text in texts):
        return remote_url(config)
    try:
        stamps = tuple(path.stat().st_mtime_ns for path in (Path(common) / "config", *everybody))
        return remote_url(*_config_by_git(common, stamps))
    except (OSError, subprocess.SubprocessError) as error:
        log.info("no resolved remote: git %s", type(error).__name__)
        return remote_url(config)


def _global_configs() -> list[Path]:
    """Return where the person's own configuration of git may be."""
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    if named is not None:
        return [Path(named)]
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    return [Path("~/.gitconfig").expanduser(), base / "git" / "config"]


@lru_cache(maxsize=256)
def _config_by_git(common: str, stamps: tuple[int, ...]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a configuration of remotes alone, and (beginning, what stands for it) of addresses, all files included.

    `stamps` are the times of the files: git is asked again when one changes. Raises OSError, SubprocessError.
    """
    del stamps
    told = _git(common, "config", "--includes", "--null", "--get-regexp", r"^(remote\..*\.url|url\..*\.insteadof)$")
    remotes: list[str] = []
    instead: list[tuple[str, str]] = []
    for entry in filter(None, told.split("\0")):
        key, _, value = entry.partition("\n")
        kind, _, rest = key.partition(".")
        name = rest.rpartition(".")[0]
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        if kind == "remote":
            remotes.append(f'[remote "{name}"]\nurl = "{quoted}"')
        else:
            instead.append((value, name))
    return "\n".join(remotes), tuple(instead)


def _ssh_settings() -> str:
    """Return the person's settings of ssh, with the files that they include, one level deep."""
    folder = Path("~/.ssh").expanduser()
    lines: list[str] = []
    for line in _text(folder / "config").splitlines():
        included = _INCLUDE.match(line)
        if included is None:
            lines.append(line)
            continue
        for pattern in included["files"].split():
            path = Path(pattern.strip('"')).expanduser()
            lines += [_text(each) for each in sorted(folder.glob(str(path)) if not path.is_absolute() else [path])]
    return "\n".join(lines)


def _first_commit(common: str) -> str | None:
    """Return the first commit of a repository by its log, else by git; None for one without commits.

    Of a shallow clone the oldest commit that is there is where somebody cut it off, and says nothing.
    """
    if (Path(common) / "shallow").exists():
        return None
    logged = FIRST.match(_text(Path(common) / "logs" / "HEAD"))
    return logged["commit"] if logged else _asked(common)


def _asked(common: str) -> str | None:
    try:
        objects = Path(common, "objects").stat()
        return _root_by_git(common, (objects.st_dev, objects.st_ino, objects.st_mtime_ns))
    except (OSError, subprocess.SubprocessError) as error:
        log.info("no first commit: git %s", type(error).__name__)
        return None


@lru_cache(maxsize=256)
def _root_by_git(common: str, objects: tuple[int, int, int]) -> str:
    """Return the oldest commit without a parent, by git. Raises OSError or SubprocessError when git cannot tell.

    An error is not remembered: a repository without commits gets some. `objects` is which folder of objects that was,
    and when: another repository may stand at the same path tomorrow.
    """
    del objects
    return _git(common, "rev-list", "--max-parents=0", "HEAD").split()[-1]


def _git(common: str, *words: str) -> str:
    """Return what git prints. Raises OSError or SubprocessError.

    Nothing is fetched that a partial clone lacks: what it is fetched with stands in the repository's configuration,
    which may be anybody's.
    """
    told = subprocess.run(  # noqa: S603 - a list of words, of which one is a path; no shell
        ["git", f"--git-dir={common}", "-c", "protocol.allow=never", *words],  # noqa: S607 - the person's own git
        check=True,
        capture_output=True,
        timeout=GIT_SECONDS,
        stdin=subprocess.DEVNULL,
        creationflags=NO_WINDOW,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"},
    )
    return told.stdout.decode("utf-8", "replace")


def _text(path: Path) -> str:
    """Return the text of a small file; "" for one that is not there or cannot be read.

    A pipe or a device, which an archive may hold as well, would be waited for.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
