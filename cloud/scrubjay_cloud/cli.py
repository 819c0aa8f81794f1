"""`scrubjay-cloud`: serve, check, and what an operator does. Results to stdout, everything else to stderr.

Exit codes are those of the errors (`scrubjay_shared.errors`): 0 done, 1 a fault of ours or a failed check, 2 wrong use,
3 not found, 4 not allowed, 5 in conflict (a service runs), 6 unavailable (disk, network, SQLite too old), 7 corrupt.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from scrubjay_cloud import admin, check, restore, serving, settings
from scrubjay_cloud.admin import Ways
from scrubjay_cloud.policy import OPERATIONS
from scrubjay_cloud.settings import OPTIONS, Settings
from scrubjay_cloud.verify import Verified
from scrubjay_cloud.workers import end_with_parent, supervised
from scrubjay_shared.errors import (
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
)

_EXIT_CODES = """exit codes: 0 done; 1 a fault of ours, or a check that failed; 2 wrong use; 3 not found; 4 not allowed;
  5 in conflict, for example with a running service; 6 unavailable: disk full, no database, SQLite too old; 7 corrupt"""
_OF_ERRNO: dict[int, tuple[type[ScrubjayError], str]] = {
    errno.ENOENT: (NotFoundError, "check the path"),
    errno.ENOTDIR: (NotFoundError, "check the path"),
    errno.EISDIR: (InvalidError, "name a file, not a folder"),
    errno.EACCES: (DeniedError, "check who owns it, and its permissions"),
    errno.EPERM: (DeniedError, "check who owns it, and its permissions"),
    errno.EROFS: (DeniedError, "that disk is read-only"),
    errno.EEXIST: (ConflictError, "name one that does not exist yet"),
    errno.ENOSPC: (UnavailableError, "free some disk space and try again"),
    errno.EDQUOT: (UnavailableError, "the disk quota is used up; free some space and try again"),
}
_MMAP_THRESHOLD = -3
"""glibc's name for the size from which a block is a mapping of its own (malloc.h)."""
_WAYS = Ways(now=serving.wall, entropy=os.urandom)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    line = _parser().parse_args(arguments)
    try:
        exit_code: int = line.run(line, _settings(line))
    except Exception as error:  # noqa: BLE001 - the edge of the process: everything ends as two lines and a code
        return _report(error, as_json=line.json)
    except KeyboardInterrupt:
        return 130
    return exit_code


def _settings(line: argparse.Namespace) -> Settings:
    given = {option.key: getattr(line, option.key) for option in OPTIONS}
    return settings.load(given, os.environ)


# --- the commands -----------------------------------------------------------------------------------------------------


def _serve(_line: argparse.Namespace, chosen: Settings) -> int:
    sys.stderr.write(f"scrubjay-cloud: data folder {chosen.data}\n")
    if chosen.registration == "invite" and not chosen.database_url and not chosen.database_path.exists():
        sys.stderr.write("      signing up needs an invitation: scrubjay-cloud admin create-invite, same settings\n")
    if chosen.workers > 1:
        serving.set_up_logging()
        return supervised(chosen, _work)
    run(chosen)
    return 0


def _work(chosen: Settings) -> None:
    """Be one of several processes of the service, for as long as the one that started it is there."""
    end_with_parent()
    try:
        run(chosen)
    except Exception as error:  # noqa: BLE001 - the edge of the process, as in `main`
        sys.exit(_report(error, as_json=False))


def run(chosen: Settings) -> None:
    """Be the service until a signal comes. Raises what keeps it from starting."""
    serving.set_up_logging()
    _give_memory_back()
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(serving.serve(chosen))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop's where it is installed, which is everywhere but on Windows."""
    try:
        make: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return make


def _give_memory_back() -> None:
    """Have large blocks of memory returned to the system when they are freed (glibc; others do so by themselves).

    Left alone, glibc takes the first freed block of an Argon2 hash for a size to keep at hand from then on, in every
    thread that ever hashed: 20 sign-ups made a service of 80 MB one of 160 MB for good.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, OPERATIONS.large_block_bytes)


def _check(line: argparse.Namespace, chosen: Settings) -> int:
    if line.ready:
        words = check.ready(chosen)
        _answer(line, {"ready": True, "words": words}, lambda: words)
        return 0
    lines = list(check.checked(chosen, now=serving.wall))
    failed = any(one.level is check.Level.FAIL for one in lines)
    _answer(line, {"ok": not failed, "lines": lines}, lambda: "\n".join(map(_shown, lines)))
    return 1 if failed else 0


def _shown(line: check.Line) -> str:
    todo = f"\n{'':6}{'':14}{line.todo}" if line.todo else ""
    return f"{line.level:<6}{line.name:<14}{line.words}{todo}"


def _invite(line: argparse.Namespace, chosen: Settings) -> int:
    made = asyncio.run(admin.invite(chosen, _WAYS))
    _answer(line, made, lambda: f"{made.code}\n  registers one account until {_day(made.expires)}")
    return 0


def _users(line: argparse.Namespace, chosen: Settings) -> int:
    accounts = asyncio.run(admin.users(chosen, _WAYS))

    def people() -> str:
        if not accounts:
            return "no accounts yet; scrubjay-cloud admin create-invite"
        rows = [("name", "devices", "objects", "MiB", "of", "since", "last seen")]
        for one in accounts:
            name = one.name + (" (locked)" if one.locked else "")
            seen = _day(one.last_seen) if one.last_seen else "never"
            size = f"{one.bytes / 2**20:.1f}"
            most = f"{(chosen.quota_bytes if one.quota is None else one.quota) / 2**20:.0f}"
            rows.append((name, str(one.devices), str(one.objects), size, most, _day(one.created), seen))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)

    _answer(line, {"users": accounts}, people)
    return 0


def _quota(line: argparse.Namespace, chosen: Settings) -> int:
    change = None
    if line.default:
        change = admin.Change(bytes=None)
    elif line.set is not None:
        change = admin.Change(bytes=line.set)
    found = asyncio.run(admin.quota(chosen, _WAYS, line.name, change))
    allowed = chosen.quota_bytes if found.own_bytes is None else found.own_bytes

    def people() -> str:
        whose = "the default" if found.own_bytes is None else "set for this account"
        full = "\n  nothing new is taken: it can still read, pack, forget and delete" if found.bytes > allowed else ""
        return (
            f"{found.name} holds {_mib(found.bytes)} in {found.objects} objects of {_mib(allowed)} ({whose});"
            f" {_mib(found.superseded_bytes)} more wait for their deletion{full}"
        )

    _answer(line, {**msgspec.to_builtins(found), "quota_bytes": allowed}, people)
    return 0


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def _size(text: str) -> int:
    """Return the bytes of a size as people write it: 500MB, 2 GiB, 1000000."""
    found = re.fullmatch(r"([0-9]+) ?([KMGT]i?)?B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 500MB, 2GiB or a number of bytes")
    prefix = (found[2] or "").lower()
    size: int = int(found[1]) * (1024 if prefix.endswith("i") else 1000) ** " kmgt".index(prefix[:1] or " ")
    if size >= 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is more than any account can hold")
    return size


def _backup(line: argparse.Namespace, chosen: Settings) -> int:
    made = asyncio.run(admin.backup(chosen, _WAYS))
    gone = f"; {len(made.removed)} older removed" if made.removed else ""
    _answer(
        line, made, lambda: f"{made.path}\n  {made.bytes / 2**20:.1f} MiB in {made.ms} ms, sha256 {made.sha256}{gone}"
    )
    return 0


def _restore(line: argparse.Namespace, chosen: Settings) -> int:
    source = Path(line.source).expanduser().absolute() if line.source else None
    if source is not None and line.timestamp:
        raise InvalidError(
            "--from and --timestamp cannot be given together",
            hint="a backup is of one moment; --timestamp is for the replica",
        )
    done = asyncio.run(
        restore.restore(chosen, source=source, timestamp=line.timestamp, now=_WAYS.now, entropy=_WAYS.entropy)
    )

    def people() -> str:
        kept = f"\n  what was there before is in {done.kept}: delete it when it is not needed" if done.kept else ""
        return (
            f"restored {done.source}\n  {_checked(done.verified)} in {done.fetch_ms + done.verify_ms} ms"
            f"\n  generation {done.generation}: clients send again what is missing{kept}"
        )

    _answer(line, done, people)
    return 0


def _migrate(line: argparse.Namespace, chosen: Settings) -> int:
    done = asyncio.run(admin.moved(chosen, _WAYS, to_sqlite=line.to_sqlite))
    to = "SQLite" if line.to_sqlite else "PostgreSQL"
    _answer(
        line, done, lambda: f"copied to {to}; the source is as it was\n  {_checked(done.verified)}, all heads the same"
    )
    return 0


def _drill(line: argparse.Namespace, chosen: Settings) -> int:
    done = asyncio.run(admin.drilled(chosen, _WAYS))

    def people() -> str:
        return "\n".join(
            f"{'held' if one.held else 'FAILED':<8}{one.source}: "
            + (one.error or f"restored in {one.restore_ms} ms, {_checked(one.verified)} in {one.verify_ms} ms")
            for one in done
        )

    _answer(line, {"held": all(one.held for one in done), "drills": done}, people)
    return 0 if all(one.held for one in done) else CorruptError.exit_code


def _checked(verified: Verified) -> str:
    words = (
        f"checked {verified.objects} objects in {verified.lanes} lanes and {verified.entries} log entries of"
        f" {verified.accounts} accounts"
    )
    return words + "".join(f"\n  account {one.account}: {one.words}" for one in verified.findings)


# --- the line ---------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scrubjay-cloud",
        description="The sync service of scrubjay (beta). It stores end-to-end encrypted objects and cannot read them.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"scrubjay-cloud {version('scrubjay')}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="answer in JSON; errors too, on stderr")
    group = common.add_argument_group("settings", "each also an environment variable")
    for option in OPTIONS:
        group.add_argument(
            "--" + option.key.replace("_", "-"), metavar="VALUE", help=f"{option.meaning} ({option.variable})"
        )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        under: Any, name: str, run: Callable[[argparse.Namespace, Settings], int], meaning: str
    ) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = under.add_parser(name, parents=[common], help=meaning, description=meaning)
        made.set_defaults(run=run)
        return made

    command(commands, "serve", _serve, "run the service")
    made = command(commands, "check", _check, "check whether this machine and these settings can run the service")
    made.add_argument("--ready", action="store_true", help="only ask the running service whether it is ready")
    under = commands.add_parser("admin", help="commands for the operator").add_subparsers(
        required=True, metavar="COMMAND"
    )
    command(under, "create-invite", _invite, "make an invitation that registers one account")
    command(under, "users", _users, "list the accounts: names, sizes and times, which is all there is to see")
    made = command(under, "quota", _quota, "show how much an account holds and may hold, or set it")
    made.add_argument("name", metavar="NAME", help="the account's user name")
    either = made.add_mutually_exclusive_group()
    either.add_argument("--set", type=_size, metavar="SIZE", help="it may hold so much: 500MB, 2GiB, a number of bytes")
    either.add_argument("--default", action="store_true", help="the default of the server counts for it again")
    command(under, "backup", _backup, "write an independent backup (SQLite), beside the running service or without it")
    made = command(under, "restore", _restore, "bring the database back; the service must be stopped")
    made.add_argument("--from", dest="source", metavar="FILE", help="a backup; without it, the replica is restored")
    made.add_argument("--timestamp", default="", metavar="TIME", help="the replica as of then, as 2026-11-22T05:00:00Z")
    made = command(under, "migrate", _migrate, "copy everything from SQLite to PostgreSQL (DATABASE_URL)")
    made.add_argument("--to-sqlite", action="store_true", help="copy from PostgreSQL to SQLite instead")
    command(under, "drill", _drill, "restore replica and newest backup to a temporary folder and check them")
    return parser


def _answer(line: argparse.Namespace, record: Any, people: Callable[[], str]) -> None:
    if line.json:
        sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
    else:
        sys.stdout.write(people() + "\n")
    sys.stdout.flush()


def _report(error: Exception, *, as_json: bool) -> int:
    ours = _ours(error)
    if "SCRUBJAY_DEBUG" in os.environ:
        traceback.print_exception(error)
    if as_json:
        record = {"code": ours.code, "message": ours.message, "hint": ours.hint}
        sys.stderr.write(msgspec.json.encode(record).decode() + "\n")
    else:
        hint = ours.hint or "scrubjay-cloud check looks for the cause"
        sys.stderr.write(f"scrubjay-cloud: {_line(ours.message)}\n      {_line(hint)}\n")
    return ours.exit_code


def _ours(error: Exception) -> ScrubjayError:
    if isinstance(error, ScrubjayError):
        return error
    if isinstance(error, OSError):
        kind, hint = _OF_ERRNO.get(error.errno or 0, (UnavailableError, "check the disk, and try again"))
        words = (error.strerror or type(error).__name__).lower()
        return kind(f"{error.filename}: {words}" if isinstance(error.filename, str) else words, hint=hint)
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    where = f" in {Path(innermost.tb_frame.f_code.co_filename).name}:{innermost.tb_lineno}" if innermost else ""
    return ScrubjayError(
        f"unexpected {type(error).__name__}{where}", hint="SCRUBJAY_DEBUG=1 shows where; please report it"
    )


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


if __name__ == "__main__":
    sys.exit(main())
