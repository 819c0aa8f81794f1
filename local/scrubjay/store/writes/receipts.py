"""Writing what other devices say that they have read, and so carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scrubjay.store.write_context import WriteContext
from scrubjay_shared.clock import Millis


class Receipts:
    """What the devices of the account claim, and which of them are in force."""

    def __init__(self, context: WriteContext) -> None:
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def keep(self, device: str, at: Millis, read: Mapping[tuple[bytes, bytes], int]) -> None:
        """Keep up to where a device says that it has read each lane (scope, device). What it said later stays."""
        self._run_many(
            "insert into receipt (device, scope, lane, n, at) values (?, ?, ?, ?, ?)"
            " on conflict do update set n = excluded.n, at = excluded.at where excluded.n > n",
            [(device, scope, lane.hex(), n, int(at)) for (scope, lane), n in read.items()],
        )

    def wait_for(self, devices: Iterable[str]) -> None:
        """Keep which devices of the account are in force; of others no receipt is waited for."""
        wanted = set(devices)
        if wanted != {str(row[0]) for row in self._fetch("select device from account_device")}:
            self._run("delete from account_device")
            self._run_many("insert into account_device (device) values (?)", [(one,) for one in sorted(wanted)])
