"""The job that reads the whole store once a week and tells of damage, while there are still good backups.

It runs in a process of its own at the lowest priority: it reads and derives everything once more, and nobody's question
should wait for that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from scrubjay.jobs.registry import Trigger
from scrubjay.policy import NightPolicy
from scrubjay.spawning import NO_WINDOW
from scrubjay.store import Store, check, find_damage
from scrubjay.store.replication_state import Alarm
from scrubjay_shared.errors import CorruptError, UnavailableError

log = logging.getLogger(__name__)

MOST = 20
"""Things that are told: with more, the store is to be restored whatever they are."""

ALARM = "damaged"
"""The code of the alarm, and the job's error."""


class Integrity:
    """Looks for damage in one store's file."""

    name = "integrity"

    def __init__(self, store: Store, policy: NightPolicy, stopping: asyncio.Event) -> None:
        self._store = store
        self._policy = policy
        self._stopping = stopping

    @property
    def trigger(self) -> Trigger:
        """Once a week, at night."""
        return Trigger.nightly(self._policy, every_days=self._policy.integrity_days)

    async def due(self) -> bool:
        """Say that there is something to read: disks rot without being written."""
        return True

    async def pending(self) -> int:
        """Return 0: nothing waits to be done."""
        return 0

    async def warnings(self) -> list[str]:
        """Return what the last run found."""
        return [f"{alarm.message}: {alarm.hint}" for alarm in await self._alarms()]

    async def run(self) -> int:
        """Read everything. Raises CorruptError with what is wrong first; `status` says it until a run finds nothing."""
        found = await self._found()
        if not found:
            log.info("read the whole store: nothing is damaged")
            if told := [alarm.id for alarm in await self._alarms()]:
                await self._store.write(lambda tx: tx.replication.acknowledge(told))
            return 0
        hint = "scrubjay doctor says everything that is wrong, and what brings it back"
        with suppress(CorruptError, UnavailableError):  # a store that failed is told of already
            await self._store.write(lambda tx: tx.replication.raise_alarm(ALARM, "store", found[0], hint))
        raise CorruptError(found[0], hint=hint)

    async def _alarms(self) -> list[Alarm]:
        return [alarm for alarm in await self._store.read(lambda q: q.replication.alarms()) if alarm.code == ALARM]

    async def _found(self) -> list[str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __name__, str(self._store.path)),
            stdout=asyncio.subprocess.PIPE,
            creationflags=NO_WINDOW,
        )
        reading = asyncio.create_task(process.communicate())
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not reading.done():
                with suppress(ProcessLookupError):
                    process.kill()
        out, _ = await reading
        if self._stopping.is_set() and process.returncode != 0:
            return []
        if process.returncode != 0:
            raise UnavailableError(
                f"the process that reads the store ended with {process.returncode}",
                hint="scrubjay doctor reads it here and now",
            )
        return msgspec.json.decode(out, type=list[str])


def main(path: Path) -> list[str]:
    """Return what is damaged in a store, in words, at most `MOST`; first what SQLite finds."""
    with suppress(OSError):  # not every system has priorities
        os.nice(19)
    found = check(path)
    if not found:
        for damage in find_damage(path, lambda _what, _done, _all: None):
            found.append(f"{damage.what}: {damage.wrong}")
            if len(found) == MOST:
                break
    return found


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(main(Path(sys.argv[1]))))
