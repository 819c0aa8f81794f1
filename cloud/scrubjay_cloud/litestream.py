"""litestream beside the service: its configuration, its life, and how far its replica lags. Knows no table of ours.

litestream copies what SQLite writes to a folder or bucket, about once a second. Either it runs already (deploy/ starts
the service with `litestream replicate -exec`), which shows at its control socket beside the database, and then it is
only watched; or the service starts one, restarts it when it dies, and ends it. A litestream that is dead never stops
the service: what it would have protected from has not happened yet. It is named in /readyz, in the metrics and in the
log.

While a litestream runs, nobody else empties SQLite's log. Its read lock is not what prevents that: it is lost when the
request ends in which litestream took it, and our asking how far it is (`/sync`) is such a request. And when somebody
has emptied the log once, litestream takes that for its own doing, goes on behind it, and leaves out what it had not
read yet: a restored file then is torn, old pages among new ones.

How a child dies with a parent that was killed: litestream ends when its `-exec` command does, and that command is a
`cat` of a named pipe whose only writer is the service. The system closes it, whatever the service died of.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import msgspec

from scrubjay_cloud.policy import LitestreamPolicy
from scrubjay_io import private_files
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError, ScrubjayError, UnavailableError
from scrubjay_shared.extras import install_command

log = logging.getLogger(__name__)

SAFE_VERSION = (0, 5, 17)
"""Older ones stopped replicating without a word (benbjohnson/litestream#1083), or write another format."""

_SOCKET = "litestream.sock"
_LEASH = "litestream.leash"
_CONFIG = "litestream.yml"
_SOCKET_BYTES = 103
"""The longest path of a Unix socket on macOS, less its final zero; Linux takes four more."""


class State(StrEnum):
    """How replication stands."""

    OFF = "off"
    STARTING = "starting"
    REPLICATING = "replicating"
    DEAD = "dead"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How replication stands, in a word and in words; `lag_seconds` is how old the newest certain replica is.

    The lag is an upper bound: all that was committed before then is in the replica. None before the first proof.
    """

    state: State
    words: str
    lag_seconds: float | None = None
    restarts: int = 0

    @property
    def healthy(self) -> bool:
        """Whether nothing need be done about it."""
        return self.state in {State.OFF, State.STARTING, State.REPLICATING}


# --- the program ------------------------------------------------------------------------------------------------------


def program() -> Path:
    """Return the litestream of this environment, or else the one on the PATH. Raises NotFoundError."""
    beside = Path(sys.executable).parent / "litestream"
    path = str(beside) if beside.is_file() else shutil.which("litestream")
    if path is None:
        raise NotFoundError(
            "SCRUBJAY_CLOUD_REPLICA is set, and litestream is not installed",
            hint=install_command("litestream", distribution("scrubjay"), Path(sys.prefix)),
        )
    return Path(path)


def version(binary: Path) -> tuple[int, ...]:
    """Return the version of a litestream, as (0, 5, 17). Raises InvalidError when it does not tell."""
    answer = subprocess.run([binary, "version"], capture_output=True, timeout=10, check=False, env=environment())  # noqa: S603
    text = answer.stdout.decode(errors="replace").strip().removeprefix("v")
    try:
        return tuple(int(part) for part in text.split("-")[0].split("."))
    except ValueError as error:
        raise InvalidError(
            f"{binary} does not say which litestream it is", hint="install litestream 0.5.17 or newer"
        ) from error


def checked_program() -> Path:
    """Return a litestream that is new enough to trust. Raises NotFoundError or InvalidError."""
    binary = program()
    running = version(binary)
    if running < SAFE_VERSION:
        raise InvalidError(
            f"litestream {'.'.join(map(str, running))} is too old: it can stop replicating without a word",
            hint="install litestream 0.5.17 or newer",
        )
    return binary


def environment() -> dict[str, str]:
    """Return the environment litestream gets. With AWS_CA_BUNDLE set every S3 command of it fails."""
    return {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}


def replica_url(replica: str) -> str:
    """Return a replica's address as litestream wants it; a folder may be given as its path."""
    return replica if "://" in replica else Path(replica).absolute().as_uri()


def configuration(database: Path, replica: str, policy: LitestreamPolicy) -> bytes:
    """Return the configuration file for one database, as JSON, which is YAML.

    Keys of S3 stay in the environment, where litestream finds them by itself.
    """
    target: dict[str, object] = {"url": replica_url(replica), "sync-interval": f"{policy.sync_interval_s}s"}
    if key := os.environ.get("LITESTREAM_SSE_KMS_KEY_ID"):
        target["sse-kms-key-id"] = key
    document = {
        "socket": {"enabled": True, "path": str(socket_of(database)), "permissions": 0o600},
        "snapshot": {"interval": f"{policy.snapshot_hours}h", "retention": f"{policy.retention_hours}h"},
        "verify-compaction": True,
        "dbs": [
            {
                "path": str(database),
                "busy-timeout": f"{policy.busy_s}s",
                "checkpoint-interval": f"{policy.checkpoint_s}s",
                "replica": target,
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def socket_of(database: Path) -> Path:
    """Return where the litestream of a database listens. Raises InvalidError when the path is too long for a socket."""
    path = database.parent / _SOCKET
    if len(os.fsencode(path)) > _SOCKET_BYTES:
        raise InvalidError(
            f"{path} is too long a path for a socket", hint="choose a shorter SCRUBJAY_CLOUD_DATA, below 80 characters"
        )
    return path


def restore(replica: str, out: Path, *, timestamp: str = "", timeout_s: float) -> None:
    """Write the newest state that a replica holds, or its state at `timestamp` (RFC 3339), to a new file.

    Whether the file is whole is the caller's to check. Raises NotFoundError when the replica is empty,
    CorruptError when litestream cannot make a file of it.
    """
    line = [str(checked_program()), "restore", "-o", str(out)]
    if timestamp:
        line += ["-timestamp", timestamp]
    try:
        answer = subprocess.run(  # noqa: S603
            [*line, replica_url(replica)], capture_output=True, timeout=timeout_s, check=False, env=environment()
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"the replica was not restored within {timeout_s:.0f} s", hint="check the replica's address and network"
        ) from error
    if answer.returncode == 0 and out.is_file():
        return
    said = (answer.stderr + answer.stdout).decode(errors="replace").strip().splitlines()
    words = said[-1] if said else f"exit code {answer.returncode}"
    if "no matching backup" in words or "cannot calc restore plan" in words or "no snapshot" in words:
        raise NotFoundError(f"the replica holds nothing to restore: {words}", hint="check SCRUBJAY_CLOUD_REPLICA")
    raise CorruptError(f"litestream could not restore the replica: {words}", hint="scrubjay-cloud admin restore --from")


# --- its control socket -----------------------------------------------------------------------------------------------


class _Managed(msgspec.Struct):
    path: str
    status: str


class _Listing(msgspec.Struct):
    databases: list[_Managed] = []


async def _ask(database: Path, method: str, target: str, body: bytes, timeout_s: float) -> bytes:
    """Return litestream's answer. Raises OSError or TimeoutError when none comes, UnavailableError when it refuses."""
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_unix_connection(socket_of(database))
        try:
            writer.write(
                f"{method} {target} HTTP/1.0\r\nHost: litestream\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(OSError):  # it has answered, or died: closing tells nothing more
                await writer.wait_closed()
    head, _, content = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n")[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        words = content.decode(errors="replace").strip() or head.decode(errors="replace")[:80] or "no answer"
        raise UnavailableError(f"litestream says: {words}", hint="see its log lines")
    return content


async def serves(database: Path, timeout_s: float) -> bool:
    """Say whether a litestream that replicates this database is running."""
    try:
        content = await _ask(database, "GET", "/list", b"", timeout_s)
        listing = msgspec.json.decode(content, type=_Listing)
    except (OSError, TimeoutError, UnavailableError, msgspec.MsgspecError):
        return False
    return any(Path(one.path) == database for one in listing.databases)


async def synced(database: Path, timeout_s: float) -> None:
    """Wait until everything committed before this call is in the replica.

    Raises UnavailableError when litestream says that it is not, OSError or TimeoutError when it says nothing.
    """
    request = msgspec.json.encode({"path": str(database), "wait": True, "timeout": max(1, int(timeout_s))})
    await _ask(database, "POST", "/sync", request, timeout_s + 1)


# --- its life ---------------------------------------------------------------------------------------------------------


class Replication:
    """Keeps one database replicated, and knows how well.

    `replicating(True)` is awaited before a litestream may run: from then on it alone empties the log.
    `replicating(False)` is awaited when none runs.
    """

    def __init__(
        self,
        database: Path,
        replica: str,
        policy: LitestreamPolicy,
        *,
        monotonic: Callable[[], float],
        replicating: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._database = database
        self._replica = replica
        self._policy = policy
        self._monotonic = monotonic
        self._replicating = replicating
        self._state = State.STARTING
        self._words = "litestream is starting"
        self._proved: float | None = None
        self._began = monotonic()
        self._restarts = 0
        self._ended_well = False
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def condition(self) -> Condition:
        """How replication stands now."""
        lag = None if self._proved is None else self._monotonic() - self._proved
        state, words = self._state, self._words
        quiet = self._monotonic() - (self._began if self._proved is None else self._proved)
        if state in {State.REPLICATING, State.STARTING} and quiet > self._policy.lag_alarm_s:
            state, words = State.FAILING, f"the replica lags {quiet:.0f} s behind; see the log lines of litestream"
        return Condition(state=state, words=words, lag_seconds=lag, restarts=self._restarts)

    async def start(self) -> None:
        """Begin, in the background. Raises NotFoundError or InvalidError when there is no litestream to trust."""
        socket_of(self._database)
        await asyncio.to_thread(checked_program)
        await self._replicating(True)
        self._task = asyncio.create_task(self._run(), name="litestream")

    async def stop(self) -> None:
        """End a litestream of ours; it sends what is left first. Call it when nothing is written any more."""
        self._stopping.set()
        if self._task is None:
            return
        await self._task
        self._task = None
        if self._ended_well:
            log.info("ended litestream")
        elif not await serves(self._database, self._policy.answer_s):
            # Whoever stops a whole group of processes has stopped it before our last write.
            await self._once()
        self._state, self._words = State.OFF, "replication has ended"

    async def _once(self) -> None:
        child = await asyncio.create_subprocess_exec(
            program(),
            *("replicate", "-config", str(self._database.parent / _CONFIG), "-no-expand-env", "-once"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        logs = asyncio.create_task(_logged(child))
        await _ended(child, self._policy.stop_s)
        await logs
        log.log(logging.ERROR if child.returncode else logging.INFO, "sent the rest exit=%d", child.returncode or 0)

    async def _run(self) -> None:
        backoff = self._policy.backoff_s
        while not self._stopping.is_set():
            began = self._monotonic()
            try:
                if await serves(self._database, self._policy.answer_s):
                    await self._watched(None)
                else:
                    async with self._started() as child:
                        await self._watched(child)
            except (ScrubjayError, OSError) as error:
                self._fails(State.DEAD, f"litestream could not be started: {_words(error)}")
            if self._stopping.is_set():
                break
            await self._replicating(False)
            if self._monotonic() - began > self._policy.steady_s:
                backoff = self._policy.backoff_s
            await self._pause(backoff)
            await self._replicating(True)
            backoff = min(backoff * 2, self._policy.backoff_most_s)
            self._restarts += 1

    @contextlib.asynccontextmanager
    async def _started(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run a litestream of our own, and end it."""
        folder = self._database.parent
        config, leash = folder / _CONFIG, folder / _LEASH
        private_files.write(config, configuration(self._database, self._replica, self._policy))
        leash.unlink(missing_ok=True)
        os.mkfifo(leash, 0o600)
        # Opened for reading too, or opening it for writing would wait for a reader that has not been started.
        held = os.open(leash, os.O_RDWR | os.O_CLOEXEC)
        line = ["replicate", "-config", str(config), "-no-expand-env", "-exec", f"cat {shlex.quote(str(leash))}"]
        child = await asyncio.create_subprocess_exec(
            program(),
            *line,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a terminal is for us: it would end before the last write
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
        )
        logs = asyncio.create_task(_logged(child))
        try:
            log.info("started litestream pid=%d", child.pid)
            yield child
        finally:
            os.close(held)  # `cat` reads the end, and litestream ends with it
            alive = child.returncode is None
            await _ended(child, self._policy.stop_s)
            self._ended_well = alive and child.returncode == 0
            await logs
            leash.unlink(missing_ok=True)

    async def _watched(self, child: asyncio.subprocess.Process | None) -> None:
        """Ask it how far it is until it is gone or we stop. `child` None is a litestream that somebody else runs."""
        answered = False
        silent_since = self._monotonic()
        while not self._stopping.is_set():
            asked = self._monotonic()
            try:
                await synced(self._database, self._policy.answer_s)
            except (OSError, TimeoutError, UnavailableError) as error:
                if child is not None and child.returncode is not None:
                    self._fails(State.DEAD, f"litestream died with exit code {child.returncode}; it is started again")
                    return
                if child is None and isinstance(error, OSError):
                    self._fails(State.DEAD, "the litestream beside the service is gone; start it again")
                    return
                if self._monotonic() - silent_since > self._policy.lag_alarm_s:
                    self._fails(State.FAILING, f"litestream does not replicate: {_words(error)}")
            else:
                silent_since = self._proved = asked
                if self._state is not State.REPLICATING:
                    log.info("replicating pid=%s", "other" if child is None else child.pid)
                self._state, self._words = State.REPLICATING, "litestream replicates"
                answered = True
            await self._pause(self._policy.watch_s if answered else self._policy.first_watch_s, child)
            if child is not None and child.returncode is not None and not self._stopping.is_set():
                self._fails(State.DEAD, f"litestream died with exit code {child.returncode}; it is started again")
                return

    def _fails(self, state: State, words: str) -> None:
        if (state, words) != (self._state, self._words):
            log.error("replication failed state=%s why=%s", state, words)
        self._state, self._words = state, words

    async def _pause(self, seconds: float, child: asyncio.subprocess.Process | None = None) -> None:
        """Wait, but no longer than until we stop or the child ends."""
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._stopping.wait())}
        if child is not None:
            waits.add(asyncio.create_task(child.wait()))
        _, pending = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _ended(child: asyncio.subprocess.Process, stop_s: float) -> None:
    try:
        async with asyncio.timeout(stop_s):
            await child.wait()
    except TimeoutError:
        log.warning("killed litestream pid=%d: it did not end within %.0f s", child.pid, stop_s)
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def _logged(child: asyncio.subprocess.Process) -> None:
    """Pass on what litestream logs; it holds paths and transaction numbers only."""
    assert child.stderr is not None  # noqa: S101 - it was started with a pipe
    while line := await child.stderr.readline():
        text = line.decode(errors="replace").strip()
        level = logging.ERROR if "level=ERROR" in text else logging.WARNING if "level=WARN" in text else logging.DEBUG
        log.log(level, "litestream: %s", text)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def as_record(condition: Condition) -> Mapping[str, object]:
    """Return a condition as /readyz and `check` show it."""
    return {
        "degraded": not condition.healthy,
        "state": str(condition.state),
        "words": condition.words,
        "lag_seconds": None if condition.lag_seconds is None else round(condition.lag_seconds, 1),
        "restarts": condition.restarts,
    }
