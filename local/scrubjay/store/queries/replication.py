"""Reading the state of replication: the account, lanes, sealed objects, scopes, alarms.

Ids of accounts, scopes and devices are bytes here, as on the wire; the op log has devices in hex.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from scrubjay.store.replication_state import Alarm, Binding, Lane, Sealed, SyncState
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.ops import Field, OpType

_EDITS = frozenset({OpType.MEMORY, OpType.CLAIM, OpType.UNCLAIM, OpType.COUNT, OpType.GRIP})
"""What is written of a memory that is there."""

LEFT = "account_left"
LEFT_DEVICES = "account_left_devices"
REFUSALS_TOLD = "refusals_told"
SENT_HOME = "sent_home"
STATE = (
    "account, cursor, store_id, generation, sealed_seq, beacon_at, beacon_n, verified_at, round_at, error_at, error,"
    " snapshot, snapshot_maker"
)
LANE = "scope, device, n, tip, acked_n, low, low_prev, hw_n, hw_tip"
SEALED = "scope, device, n_from, n_to, seq_low, seq_high, size, tip"


class ReplicationQueries:
    """Where replication with an account stands."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def state(self) -> SyncState | None:
        """Return where replication stands; None while sync is off."""
        rows = self._fetch(f"select {STATE} from sync_state")
        return SyncState(**dict(zip(STATE.split(", "), rows[0], strict=True))) if rows else None

    def left(self) -> bytes | None:
        """Return the account that this store replicated last, now that it replicates none.

        Empty where the server showed this device another history than others: nobody knows then what the account
        still has.
        """
        found = self._fetch("select value from meta where key = ?", (LEFT,))
        return bytes.fromhex(found[0][0]) if found else None

    def left_devices(self) -> list[str]:
        """Return the devices of that account whose ops are held here, as its log was known here when it was left."""
        found = self._fetch("select value from meta where key = ?", (LEFT_DEVICES,))
        return msgspec.json.decode(found[0][0], type=list[str]) if found else []

    def account_log(self, start: int = 0) -> list[bytes]:
        """Return the account log from entry `start` on, as far as it is pinned.

        It begins at the entry at which this device began to read it: the genesis, or a checkpoint.
        """
        return [
            bytes(row[0]) for row in self._fetch("select entry from account_log where seq >= ? order by seq", (start,))
        ]

    def account_entry(self, seq: int) -> bytes | None:
        """Return one entry of the account log; None when it is not pinned."""
        rows = self._fetch("select entry from account_log where seq = ?", (seq,))
        return bytes(rows[0][0]) if rows else None

    def account_state(self) -> bytes | None:
        """Return what the account log adds up to after the last entry it was kept for; None when it was not kept."""
        rows = self._fetch("select state from account_state order by seq desc limit 1")
        return bytes(rows[0][0]) if rows else None

    def lanes(self) -> dict[tuple[bytes, bytes], Lane]:
        """Return every lane that is held or known of, by (scope, device)."""
        return {(row[0], row[1]): _lane(row) for row in self._fetch(f"select {LANE} from lane")}

    def lane(self, scope: bytes, device: bytes) -> Lane | None:
        """Return one lane, None when nothing is known of it."""
        rows = self._fetch(f"select {LANE} from lane where scope = ? and device = ?", (scope, device))
        return _lane(rows[0]) if rows else None

    def link(self, scope: bytes, device: bytes, n: int) -> bytes | None:
        """Return the link of a place; None when it is not kept."""
        rows = self._fetch("select tip from link where scope = ? and device = ? and n = ?", (scope, device, n))
        return bytes(rows[0][0]) if rows else None

    def sealed(self, scope: bytes, device: bytes, *, after: int = 0) -> list[Sealed]:
        """Return what objects of a lane are kept that reach beyond place `after`, in order, without their bytes."""
        rows = self._fetch(
            f"select {SEALED} from sealed where scope = ? and device = ? and n_to > ? order by n_from",
            (scope, device, after),
        )
        return [_sealed(row) for row in rows]

    def objects(self, found: Iterable[Sealed]) -> list[bytes]:
        """Return the bytes of some kept objects, in their order; those dropped meanwhile are left out."""
        given: list[bytes] = []
        for one in found:
            rows = self._fetch(
                "select obj from sealed where scope = ? and device = ? and n_from = ?",
                (one.scope, one.device, one.n_from),
            )
            given += [bytes(row[0]) for row in rows]
        return given

    def bindings(self) -> list[Binding]:
        """Return the projects that live in scopes of their own."""
        return [
            Binding(project=row[0], scope=row[1], seq=row[2])
            for row in self._fetch("select project, scope, seq from bound order by project")
        ]

    def places(self) -> bool:
        """Say whether anything lives outside the home scope: in most accounts nothing does."""
        return bool(self._fetch("select 1 from placed limit 1"))

    def placed(self, entities: Iterable[str]) -> dict[str, bytes]:
        """Return the scopes of those of some entities that do not live in the home scope."""
        if not self.places():
            return {}
        wanted = msgspec.json.encode(list(entities)).decode()
        return dict(
            self._fetch("select entity, scope from placed where entity in (select value from json_each(?))", (wanted,))
        )

    def lives(self, entities: Iterable[str], home: bytes) -> dict[str, bytes]:
        """Return the scopes of those of some entities that this store knows; a grip lives where its memory does.

        A memory of which edits are here and nothing that made it may live anywhere: an edit comes by the home scope,
        too, where it is about another project than those of the scope in which the memory lives.
        """
        wanted = msgspec.json.encode(list(entities)).decode()
        known = {
            str(entity): str(owner)
            for entity, owner in self._fetch(
                "select entity, entity from op where entity in (select value from json_each(?1))"
                " union select id, memory_id from grip where id in (select value from json_each(?1))",
                (wanted,),
            )
        }
        placed = self.placed(set(known.values()))
        edited = self._edited_only(set(known.values()) - placed.keys())
        return {entity: placed.get(owner, home) for entity, owner in known.items() if owner not in edited}

    def _edited_only(self, memories: Iterable[str]) -> set[str]:
        """Return which of some things are memories that no op here makes, forgets, or says when they were made."""
        made: dict[str, bool] = {}
        for entity, kind, device, seq, body in self._fetch(
            "select entity, type, device, seq, body from op where entity in (select value from json_each(?))",
            (msgspec.json.encode(sorted(memories)).decode(),),
        ):
            is_write = kind == OpType.MEMORY and body is not None
            says = ops.fields_of(ops.decode(body, device=device, seq=seq)) if is_write else ()
            makes = Field.CREATED_AT in says or kind not in _EDITS
            made[entity] = made.get(entity, False) or makes
        return {entity for entity, is_made in made.items() if not is_made}

    def erased(self, device: bytes) -> dict[int, int]:
        """Return the ops of a device whose content was erased after they may have been sent: when, by place."""
        rows = self._fetch("select seq, at from erased where device = ?", (device.hex(),))
        return {int(seq): int(at) for seq, at in rows}

    def erased_times(self) -> set[int]:
        """Return when a round first saw the ops of any device whose content was erased since they were sent."""
        return {int(row[0]) for row in self._fetch("select distinct at from erased where at > 0")}

    def seen(self) -> dict[bytes, Millis]:
        """Return when each device last said that it is there."""
        return {bytes(row[0]): Millis(row[1]) for row in self._fetch("select device, at from seen")}

    def active(self, device: bytes) -> Millis | None:
        """Return when a device was last active by its own clock: its newest change that is held, or its last beacon."""
        [(seen, hlc)] = self._fetch(
            "select (select at from seen where device = ?1),"
            " (select hlc from op where device = ?2 order by seq desc limit 1)",
            (device, device.hex()),
        )
        wrote = None if hlc is None else millis_of(Hlc(hlc))
        return max((at for at in (seen, wrote) if at is not None), default=None)

    def has_synced(self) -> bool:
        """Say whether a round has ended well since this device came into its account."""
        state = self.state()
        return state is not None and state.round_at is not None

    def sent_home(self, device: bytes) -> frozenset[int]:
        """Return the places of a device's ops that went by the home scope, though what they are about lives elsewhere.

        That was decided by what was known then: who asks again later might decide otherwise, and send an op twice, or
        never.
        """
        found = self._fetch("select value from meta where key = ?", (SENT_HOME,))
        whose, seqs = msgspec.json.decode(found[0][0]) if found else ("", ())
        return frozenset(seqs) if whose == device.hex() else frozenset()

    def refusals_told(self) -> int:
        """Return up to when refusals of devices have ended that the person was told of, 0 before the first."""
        found = self._fetch("select value from meta where key = ?", (REFUSALS_TOLD,))
        return int(found[0][0]) if found else 0

    def alarms(self) -> list[Alarm]:
        """Return the alarms that nobody has acknowledged, oldest first."""
        return [
            Alarm(id=row[0], at=Millis(row[1]), code=row[2], subject=row[3], message=row[4], hint=row[5])
            for row in self._fetch("select id, at, code, subject, message, hint from alarm order by id")
        ]


def _lane(row: tuple[Any, ...]) -> Lane:
    return Lane(**dict(zip(LANE.split(", "), row, strict=True)))


def _sealed(row: tuple[Any, ...]) -> Sealed:
    return Sealed(**dict(zip(SEALED.split(", "), row, strict=True)))
