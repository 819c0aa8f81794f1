"""Writing the state of replication."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scrubjay.store import tables
from scrubjay.store.queries.replication import LANE, LEFT, LEFT_DEVICES, REFUSALS_TOLD, SEALED, SENT_HOME
from scrubjay.store.replication_state import KEPT_LINKS, Lane, Sealed
from scrubjay.store.write_context import WriteContext
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import SplitError


class ReplicationWrites:
    """What sync keeps between its rounds."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def begin(self, account: bytes) -> None:
        """Turn replication with an account on. Doing it twice changes nothing."""
        self._run("insert or ignore into sync_state (account) values (?)", (account,))

    def set_state(self, **values: Any) -> None:
        """Change some fields of the state."""
        self._run(f"update sync_state set {', '.join(f'{name} = ?' for name in values)}", tuple(values.values()))

    def end(self, devices: Iterable[str] = ()) -> None:
        """Turn replication off: forget everything that was kept for the account, but which it was. Memories stay.

        `devices` are those of the account, as its log was known here, whose ops are held: this is kept too.
        """
        if state := self._context.queries.replication.state():
            split = state.error == SplitError.code or self._fetch(
                "select 1 from alarm where code = ?", (SplitError.code,)
            )
            self._context.set_meta(LEFT, "" if split else state.account.hex())
            self._context.set_meta(LEFT_DEVICES, json.dumps(list(devices)))
        self.tell_refusals(0)
        for table in tables.OF_REPLICATION:
            self._run(f"delete from {table}")

    def keep_log(self, seq: int, entries: Sequence[bytes]) -> None:
        """Pin entries of the account log from place `seq` on. What was pinned before is never replaced."""
        self._run_many("insert into account_log (seq, entry) values (?, ?)", list(enumerate(entries, seq)))

    def keep_account(self, seq: int, state: bytes) -> None:
        """Keep what the account log adds up to after entry `seq`, in the place of what was kept before."""
        self._run("delete from account_state where seq <> ?", (seq,))
        self._run("insert or replace into account_state (seq, state) values (?, ?)", (seq, state))

    def put_lane(self, lane: Lane, *, cut_back: bool = False) -> None:
        """Keep where a lane ends. Its high-water mark only rises, unless the lane was `cut_back`."""
        if cut_back:
            self._run("delete from lane where scope = ? and device = ?", (lane.scope, lane.device))
        marks = ", ".join("?" * 9)
        self._run(
            f"insert into lane ({LANE}) values ({marks}) on conflict (scope, device) do update set n = excluded.n,"
            " tip = excluded.tip, acked_n = excluded.acked_n, low = excluded.low, low_prev = excluded.low_prev,"
            " hw_tip = iif(excluded.hw_n > hw_n, excluded.hw_tip, hw_tip), hw_n = max(hw_n, excluded.hw_n)",
            (
                lane.scope,
                lane.device,
                lane.n,
                lane.tip,
                lane.acked_n,
                lane.low,
                lane.low_prev,
                lane.hw_n,
                lane.hw_tip,
            ),
        )

    def keep_link(self, scope: bytes, device: bytes, n: int, tip: bytes) -> None:
        """Keep the link of a place, and let go of those far behind it."""
        self._run("insert or replace into link (scope, device, n, tip) values (?, ?, ?, ?)", (scope, device, n, tip))
        self._run("delete from link where scope = ? and device = ? and n < ?", (scope, device, n - KEPT_LINKS))

    def drop_lane(self, scope: bytes, device: bytes) -> None:
        """Forget what is held of a lane, to read it again from the server. Its ops stay."""
        for table in ("lane", "sealed", "link"):
            self._run(f"delete from {table} where scope = ? and device = ?", (scope, device))

    def keep_sealed(self, new: Sealed, obj: bytes) -> None:
        """Keep an object, in the place of those that it covers."""
        self._run(
            "delete from sealed where scope = ? and device = ? and n_from >= ? and n_to <= ?",
            (new.scope, new.device, new.n_from, new.n_to),
        )
        self._run(
            f"insert into sealed ({SEALED}, obj) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.scope, new.device, new.n_from, new.n_to, new.seq_low, new.seq_high, new.size, new.tip, obj),
        )

    def drop_sealed(self, scope: bytes, device: bytes, *, after: int) -> list[bytes]:
        """Let go of the objects of a lane that reach beyond a place, and of their links. Returns their bytes."""
        rows = self._fetch(
            "select obj from sealed where scope = ? and device = ? and n_to > ? order by n_from", (scope, device, after)
        )
        self._run("delete from sealed where scope = ? and device = ? and n_to > ?", (scope, device, after))
        self._run("delete from link where scope = ? and device = ? and n > ?", (scope, device, after))
        return [bytes(row[0]) for row in rows]

    def trim_sealed(self, own: Sequence[bytes], limit: int) -> int:
        """Let go of other devices' oldest objects until they take at most `limit` bytes. Returns how many went."""
        marks = ", ".join("?" * len(own))
        total = self._fetch(f"select coalesce(sum(size), 0) from sealed where device not in ({marks})", own)[0][0]
        gone = 0
        while total > limit:
            rows = self._fetch(
                f"select scope, device, n_from, size from sealed where device not in ({marks})"
                " order by n_from, scope, device limit 256",
                own,
            )
            if not rows:
                break
            for scope, device, n_from, size in rows:
                if total <= limit:
                    break
                self._run("delete from sealed where scope = ? and device = ? and n_from = ?", (scope, device, n_from))
                total -= size
                gone += 1
        return gone

    def keep_part(self, device: str, seq: int, *, place: int, parts: int, data: bytes) -> bytes | None:
        """Keep a part of an op. Returns the whole op once all its parts are there, and lets go of them; else None."""
        self._run(
            "insert or replace into part (device, seq, place, parts, data) values (?, ?, ?, ?, ?)",
            (device, seq, place, parts, data),
        )
        found = self._fetch("select data from part where device = ? and seq = ? order by place", (device, seq))
        if len(found) < parts:
            return None
        self._run("delete from part where device = ? and seq = ?", (device, seq))
        return b"".join(bytes(row[0]) for row in found)

    def bind(self, project: str, scope: bytes, seq: int) -> None:
        """Let things first written about a project after op `seq` live in a scope."""
        self._run("insert or replace into bound (project, scope, seq) values (?, ?, ?)", (project, scope, seq))

    def unbind(self, project: str) -> None:
        """Let new things of a project live in the home scope again; those placed elsewhere stay there."""
        self._run("delete from bound where project = ?", (project,))

    def place(self, where: Mapping[str, bytes]) -> None:
        """Say where some entities live. Where one lives never changes."""
        self._run_many("insert or ignore into placed (entity, scope) values (?, ?)", list(where.items()))

    def unplace(self, entity: str) -> None:
        """Let an entity live in the home scope, or where it is placed next."""
        self._run("delete from placed where entity = ?", (entity,))

    def note_erased(self, now: Millis) -> None:
        """Stamp what was erased since the last time with the time it was noticed."""
        self._run("update erased set at = ? where at = 0", (now,))

    def wait_erased(self, device: bytes, seqs: Iterable[int], now: Millis) -> None:
        """Look at some erased ops again only after a while."""
        self._run_many(
            "update erased set at = ? where device = ? and seq = ?", [(now, device.hex(), seq) for seq in seqs]
        )

    def settle_erased(self, device: bytes, seqs: Iterable[int]) -> None:
        """Strike ops off: nothing that is kept or served holds their content any more."""
        if self._fetch("select 1 from erased where device = ? limit 1", (device.hex(),)):
            self._run_many("delete from erased where device = ? and seq = ?", [(device.hex(), seq) for seq in seqs])

    def saw(self, device: bytes, at: Millis) -> None:
        """Note that a device said, at a time of its own clock, that it is there."""
        self._run(
            "insert into seen (device, at) values (?1, ?2) on conflict do update set at = max(at, ?2)", (device, at)
        )

    def raise_alarm(self, code: str, subject: str, message: str, hint: str) -> bool:
        """Keep an alarm. Returns False when the same one is kept already."""
        known = self._fetch("select 1 from alarm where code = ? and subject = ?", (code, subject))
        if not known:
            self._run(
                "insert into alarm (at, code, subject, message, hint) values (?, ?, ?, ?, ?)",
                (self._context.now, code, subject, message, hint),
            )
        return not known

    def tell_refusals(self, until: int) -> None:
        """Note that the person was told of all refusals of devices that end by a time, the server's."""
        self._context.set_meta(REFUSALS_TOLD, str(until))

    def note_sent_home(self, device: bytes, seqs: Iterable[int]) -> None:
        """Note which of a device's ops go by the home scope, though what they are about lives elsewhere."""
        held = self._context.queries.replication.sent_home(device)
        if not held.issuperset(seqs):
            self._context.set_meta(SENT_HOME, json.dumps([device.hex(), sorted(held.union(seqs))]))

    def acknowledge(self, ids: Iterable[int] | None = None) -> None:
        """Let go of some alarms, or of all."""
        if ids is None:
            self._run("delete from alarm")
        else:
            self._run_many("delete from alarm where id = ?", [(one,) for one in ids])
