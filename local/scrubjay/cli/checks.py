"""What `scrubjay doctor` looks at. Changes nothing."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from scrubjay import setting_values, spool
from scrubjay import settings as options
from scrubjay.cli import render
from scrubjay.cli.check import Check, State, fail, ok, warn
from scrubjay.cli.daemon_state import report_of
from scrubjay.cli.host_checks import FREE_SPACE, hosts, refused
from scrubjay.cli.model_files import choices
from scrubjay.daemon import control
from scrubjay.model_choice import Choice
from scrubjay.models import catalog, installed
from scrubjay.settings import Settings
from scrubjay.store import Damage, Remedy, find_damage, half_made, migrations, refused_in, remedy_of
from scrubjay.store import check as damage
from scrubjay.store.damage import Watch
from scrubjay.transports.client import skew
from scrubjay.trusted_folders import waiting_beside
from scrubjay_io.sqlite import SAFE_VERSION, is_mounted_read_only, version, version_info
from scrubjay_shared.errors import CorruptError, UnavailableError

if TYPE_CHECKING:
    from scrubjay.api import StatusResponse


GROUP = "scrubjay.checks"
"""The entry point group in which other packages announce checks: functions from settings to what they found."""


READ_ONLY = "its file system is read-only: mount it for writing; until then what is there can be read"


LOW_SPACE_BYTES = 500_000_000
"""Free space below which a warning is due: a migration and a backup each need room for one more copy of the store."""


NO_SPACE_BYTES = 50_000_000
"""Free space below which writing will fail soon: less than the write-ahead log may grow to."""


NETWORK_SYSTEMS = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smbfs",
        "smb3",
        "afpfs",
        "webdav",
        "davfs",
        "fuse.sshfs",
        "fuse.rclone",
        "9p",
        "virtiofs",
        "afs",
    )
)
"""File systems whose locks or shared memory SQLite's write-ahead log cannot rely on (sqlite.org/wal.html, point 2)."""


def examined(chosen: Settings, watch: Watch | None = None) -> Iterator[Check]:
    """Yield what each of `CHECKS` found, in that order, then with `watch` what `contents` did."""
    if watch is None:
        for check in CHECKS:
            yield from check(chosen)
        return
    found = [one for check in CHECKS for one in check(chosen)]
    inside = list(contents(chosen, watch))
    # Whatever is wrong with the file, one thing is to be done about it: what brings back the worst.
    told = [one.todo for one in (*found, *inside) if one.state is State.FAIL and one.todo in _REMEDIES.values()]
    worst = max(told, key=list(_REMEDIES.values()).index, default="")
    for one in (*found, *inside):
        yield replace(one, todo=worst) if one.todo in told else one


def folders(chosen: Settings) -> Iterator[Check]:
    """Look at the folders: there, ours, writable, and closed to others."""
    for name, folder in (("data folder", chosen.data_dir), ("logs", chosen.state_dir), ("models", chosen.models_dir)):
        if not folder.exists():
            yield _missing(name, folder)
        elif not folder.is_dir():
            yield fail(name, f"{folder} is not a folder", "move that file away, then scrubjay init")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            todo = READ_ONLY if is_mounted_read_only(folder) else f"chmod u+rwx {folder}, or give it back to its owner"
            yield fail(name, f"{folder} cannot be written", todo)
        elif name == "data folder" and (mode := open_to_others(folder)):
            yield warn(name, f"{folder} is open to other users ({mode:03o})", f"chmod 700 {folder}")
        else:
            yield ok(name, str(folder))


def settings_file(chosen: Settings) -> Iterator[Check]:
    """Say where the settings are read from; one that cannot be read has ended the command before."""
    there = chosen.config_path.exists()
    yield ok("settings", f"{chosen.config_path}" + ("" if there else ", not there: the defaults hold"))


def open_to_others(path: Path) -> int:
    """Return the mode when group or others may do anything with the path, else 0. Windows has no such modes."""
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if sys.platform != "win32" and mode & 0o077 else 0


def disk(chosen: Settings) -> Iterator[Check]:
    """Look at the disk the store lies on."""
    nearest = next(
        (folder for folder in (chosen.data_dir, *chosen.data_dir.parents) if folder.exists()), chosen.data_dir
    )
    free = shutil.disk_usage(nearest).free
    size = chosen.store_path.stat().st_size if chosen.store_path.exists() else 0
    if free < max(NO_SPACE_BYTES, size // 10):
        yield fail("disk space", f"{render.words.size(free)} free", "free some space: writing will fail soon")
    elif free < spool.LEAST_FREE_BYTES:
        yield warn("disk space", f"{render.words.size(free)} free", FREE_SPACE)
    elif free < max(LOW_SPACE_BYTES, 2 * size):
        yield warn("disk space", f"{render.words.size(free)} free", "free some space before a backup or an upgrade")
    else:
        yield ok("disk space", f"{render.words.size(free)} free")
    if left := half_made(chosen.store_path):
        taken = sum(each.lstat().st_size for each in left)
        yield warn(
            "copies",
            f"{len(left)} half made, of a process that was killed: {render.words.size(taken)}",
            "the next scrubjay backup deletes them",
        )
    system = file_system(nearest)
    if system in NETWORK_SYSTEMS:
        yield warn(
            "file system", f"{system}, a network or shared one", "move the store to a local disk: set data_dir there"
        )
    elif system:
        yield ok("file system", system)


def file_system(path: Path) -> str:
    """Return the kind of file system a path lies on, "" where the system does not tell."""
    try:
        mounts = psutil.disk_partitions(all=True)
    except (OSError, PermissionError):
        return ""
    real = path.resolve()
    under = [mount for mount in mounts if real.is_relative_to(mount.mountpoint)]
    return max(under, key=lambda mount: len(mount.mountpoint)).fstype.lower() if under else ""


def sqlite(_: Settings) -> Iterator[Check]:
    """Look at the SQLite that is used."""
    if version_info >= SAFE_VERSION:
        yield ok("SQLite", version)
        return
    safe = ".".join(map(str, SAFE_VERSION))
    yield warn(
        "SQLite",
        f"{version}: older than {safe}, in which a rare corruption of the log was fixed",
        "pip install pysqlite3",
    )


def _missing(name: str, path: Path) -> Check:
    """Say of what is not there yet who makes it, or that nobody can."""
    there = next(above for above in path.absolute().parents if above.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return warn(name, f"{path} does not exist yet", "scrubjay init makes it")
    hint = "SCRUBJAY_HOME moves everything to another folder"
    return fail(name, f"{path} cannot be made: {there} cannot be written", hint)


def store(chosen: Settings) -> Iterator[Check]:
    """Look at the store's file: ours, whole, of a schema we know, its full-text index in step with its tables."""
    path = chosen.store_path
    if not path.exists():
        yield _missing("store", path)
        return
    if not os.access(path, os.R_OK | os.W_OK):
        todo = READ_ONLY if is_mounted_read_only(path.parent) else f"chmod u+rw {path}"
        yield fail("store", f"{path} cannot be written", todo)
    if mode := open_to_others(path):
        yield warn("store", f"{path} is open to other users ({mode:03o})", f"chmod 600 {path}")
    try:
        wrong = damage(path)
    except UnavailableError as error:
        yield fail("store", error.message, error.hint)
        return
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield fail("integrity", f"{wrong[0]}{more}", _REMEDIES[remedy_of(path, wrong)], CorruptError)
        return
    yield ok("integrity", f"tables and full-text index whole, {render.words.size(path.stat().st_size)}")
    newest, found = migrations()[-1].version, version_of(path)
    if found > newest:
        yield fail("schema", f"{found}, written by a newer scrubjay", "upgrade scrubjay")
    elif found < newest:
        yield warn("schema", f"{found}, this scrubjay has {newest}", "the next start upgrades it, after a snapshot")
    else:
        yield ok("schema", str(found))


TOLD = 3
"""How many of the damaged things are named: enough to see what kind they are of."""


_REMEDIES = {
    Remedy.REBUILD: "scrubjay rebuild derives it again; nothing is lost",
    Remedy.VECTORS: "scrubjay rebuild --vectors computes it again; nothing is lost",
    Remedy.SALVAGE: "scrubjay salvage makes a new store of all that can be read, and says what is lost",
    Remedy.RESTORE: "scrubjay restore FILE brings back a backup from before; nothing else holds it",
}
"""What is to be done, from the least to the most: each does what those before it do."""


def contents(chosen: Settings, watch: Watch) -> Iterator[Check]:
    """Look at every row of the store: against its check sum, or against what it is derived from."""
    path = chosen.store_path
    if not path.exists() or version_of(path) != migrations()[-1].version:
        yield warn(
            "contents",
            "not checked, because an older scrubjay wrote the store",
            "scrubjay stats upgrades the store; then run scrubjay doctor again",
        )
        return
    found: dict[Remedy, list[Damage]] = {}
    for one in find_damage(path, watch):
        found.setdefault(one.remedy, []).append(one)
    for remedy, damages in found.items():
        said = "; ".join(f"{one.what}: {one.wrong}" for one in damages[:TOLD])
        more = f"; and {len(damages) - TOLD:,} more" if len(damages) > TOLD else ""
        if remedy is Remedy.NOTHING:
            yield warn("contents", f"{said}{more}", "nothing: the next start makes it anew")
        else:
            yield fail("contents", f"{said}{more}", _REMEDIES[remedy], CorruptError)
    if not found:
        yield ok("contents", "every row is as it was written, and what is derived is as its ops say")


def version_of(path: Path) -> int:
    """Return a store's schema version, from the header of the file (sqlite.org/fileformat.html, offset 60)."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(64)[60:64], "big")


def model(chosen: Settings) -> Iterator[Check]:
    """Look at the embedding model in use, each of its files against its checksum."""
    choice, _ = choices(chosen)
    name = choice.name
    yield from named_twice("model", choice)
    if refused := refused_in(chosen.store_path):
        yield warn("model", render.state.refused(refused), f"scrubjay models use {name} tries them again")
    if name == options.NO_MODEL:
        yield ok("model", f"none, because {choice.because}: recall by words only")
        return
    if name.startswith(setting_values.HTTP_PREFIX):
        yield ok("model", f"{name} at {chosen.embed_url}")
        return
    absent = warn("model", f"{name} is not installed: recall goes by words alone", "scrubjay models pull")
    yield files("model", name, chosen, catalog.EMBEDDERS, absent)


def reranker(chosen: Settings) -> Iterator[Check]:
    """Look at the reranking model in use likewise. It is optional: its absence is not a fault."""
    _, choice = choices(chosen)
    name = choice.name
    yield from named_twice("reranker", choice)
    if name == options.NO_MODEL:
        yield ok("reranker", f"none, because {choice.because}")
        return
    absent = ok("reranker", f"{name} is not here; scrubjay models pull {name} brings it")
    yield files("reranker", name, chosen, catalog.RERANKERS, absent)


def named_twice(what: str, choice: Choice) -> Iterator[Check]:
    """Say when another place names another model than the one that is used."""
    if choice.remark:
        found, _, todo = choice.remark.partition(". ")
        yield warn(what, found, todo)


def files(what: str, name: str, chosen: Settings, known: Mapping[str, catalog.Model], absent: Check) -> Check:
    """Return what the files of a model are like, each checked against its checksum."""
    if name not in known:
        return fail(what, f"{name} is not a model we know for that", "scrubjay models lists them")
    [found] = installed.installed(chosen.models_dir, verify=True, manifest={name: known[name]})
    if found.state is installed.ModelState.ABSENT:
        return absent
    if found.state is installed.ModelState.DAMAGED:
        return fail(what, f"{name} is {found.state.value}", f"scrubjay models pull {name}")
    return ok(what, f"{name}, whole, {render.words.size(found.size)}")


def daemon(chosen: Settings) -> Iterator[Check]:
    """Look at the daemon, and at its jobs."""
    report = report_of(control.status(chosen))
    if report.state == "stale":
        yield warn(
            "daemon",
            f"process {report.pid} ended without stopping properly (killed, or the power failed)",
            "scrubjay daemon start starts it again; nothing that was stored is lost",
        )
    elif report.state == "silent":
        yield fail("daemon", f"process {report.pid} does not answer", "scrubjay daemon logs; scrubjay daemon stop")
    elif report.status is None:
        yield ok("daemon", "not running; commands open the store themselves")
    else:
        yield ok("daemon", f"process {report.pid} on {report.address}")
        for used, choice in zip((report.status.model, report.status.reranker), choices(chosen), strict=True):
            if used != choice.name:
                yield warn(
                    "daemon",
                    f"it uses {used}; started from here it would use {choice.name}, because {choice.because}",
                    "scrubjay daemon stop, then scrubjay daemon start",
                )
        for warning in report.status.warnings:
            yield warn("daemon", warning, "scrubjay daemon logs may say more")
        for note in report.status.notes:
            yield ok("daemon", note)
        yield from jobs(report.status)


def jobs(status: StatusResponse) -> Iterator[Check]:
    """Look at the background jobs of the daemon."""
    for job in status.jobs:
        if job.last_error:
            yield warn(
                "jobs",
                f"{job.name}: {job.last_error}",
                "scrubjay tries it again by itself; scrubjay daemon logs shows more",
            )
        if job.paused:
            yield warn("jobs", f"{job.name} is paused", f"scrubjay jobs resume {job.name}")


def version_of_daemon(chosen: Settings) -> Iterator[Check]:
    """Look whether the daemon runs the same version as this command; an upgrade does not change what runs."""
    running = control.status(chosen).daemon
    apart = None if running is None else skew(running.version)
    if apart is not None:
        yield warn("daemon's version", *apart)


def projects(chosen: Settings) -> Iterator[Check]:
    """Name the folders that claim a known project by their own word alone."""
    try:
        waiting = waiting_beside(chosen.store_path)
    except CorruptError as error:
        yield fail("projects", error.message, error.hint, CorruptError)
        return
    for one in waiting:
        folder = shlex.quote(one.folder)
        yield warn(
            "projects",
            f"{one.folder} says that it is of {one.project}; till you say so it is a project of its own",
            f"scrubjay projects trust {folder}, or scrubjay projects refuse {folder}",
        )


def token(chosen: Settings) -> Iterator[Check]:
    """Look at who can read the tokens that the daemon lets in."""
    paths = [path for path in (chosen.token_path, chosen.agent_token_path, chosen.hook_door_path) if path.exists()]
    open_ones = [(path, mode) for path in paths if (mode := open_to_others(path))]
    for path, mode in open_ones:
        yield fail("token", f"{path} is open to other users ({mode:03o})", f"chmod 600 {path}")
    if paths and not open_ones:
        yield ok("token", "readable by you alone")


def extensions(chosen: Settings) -> Iterator[Check]:
    """Look at what other packages have to say: sync, where it is logged in."""
    for found in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda found: found.name):
        check: Callable[[Settings], Iterator[Check]] = found.load()
        yield from check(chosen)


CHECKS: tuple[Callable[[Settings], Iterator[Check]], ...] = (
    folders,
    settings_file,
    disk,
    sqlite,
    store,
    model,
    reranker,
    daemon,
    version_of_daemon,
    token,
    projects,
    hosts,
    refused,
    extensions,
)
"""What `doctor` looks at, in the order in which one thing needs another. Each yields `ok`, `warn` or `fail`."""
