"""Reading what a snapshot of the home scope holds: the ops of a device that stand in this store as they were said."""

from __future__ import annotations

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops
from scrubjay_shared.clock import ulid_bytes
from scrubjay_shared.ops import OpType
from scrubjay_shared.snapshot import Chunk, ImagedEvent

_EVENT = int(OpType.EVENT)
_HOME = "not exists (select 1 from placed p where p.entity = o.entity)"
_COLUMNS = rows.prefixed(rows.EVENT_COLUMNS, "e")


class SnapshotQueries:
    """What may go into a snapshot.

    Left out is what was forgotten or had a passage erased, what could not be applied, and what lives in another scope:
    a reader finds all of it in the lanes.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def chunk(self, device: str, low: int, high: int) -> Chunk:
        """Return the ops of a device from one place to another, both included, as a chunk."""
        events = [
            ImagedEvent(
                *(seq, op_id, hlc, cause, ulid_bytes(row[0]), row[2], row[3], row[7], row[8], row[9]),
                *(row[5], row[11], row[4], row[6], row[12], None if row[10] == "{}" else rows.unjson(row[10])),
            )
            for seq, op_id, hlc, cause, *row in self._fetch(
                f"select o.seq, o.op_id, o.hlc, c.id, {_COLUMNS} from op o join event e on e.id = o.entity"
                " left join cause c on c.n = o.cause where o.device = ? and o.seq between ? and ? and o.type = ?"
                " and o.body is null and e.device = o.device and e.seq = o.seq and not e.forgotten and e.erased = 0"
                f" and {_HOME} order by o.seq",
                (device, low, high, _EVENT),
            )
        ]
        others = [
            (int(seq), bytes(body), int(op_type), str(entity))
            for seq, body, op_type, entity in self._fetch(
                "select o.seq, o.body, o.type, o.entity from op o where o.device = ? and o.seq between ? and ?"
                " and o.body is not null order by o.seq",
                (device, low, high),
            )
        ]
        about = {seq: self._about(device, seq, body, op_type, entity) for seq, body, op_type, entity in others}
        elsewhere = {
            str(row[0])
            for row in self._fetch(
                "select entity from placed where entity in (select value from json_each(?))",
                (rows.array(sorted(set(about.values()))),),
            )
        }
        said = [(seq, body) for seq, body, _, _ in others if about[seq] not in elsewhere]
        return Chunk(bytes.fromhex(device), events, said)

    def _about(self, device: str, seq: int, body: bytes, op_type: int, entity: str) -> str:
        """Return what decides the scope of an op: of a forget its memory, where it is about a part of one."""
        if op_type == OpType.FORGET:
            return ops.owner_of(ops.decode(body, device=device, seq=seq)) or entity
        return entity

    def count(self, device: str, high: int) -> int:
        """Return how many ops of a device are held up to a place."""
        return int(self._fetch("select count(*) from op where device = ? and seq <= ?", (device, high))[0][0])

    def latest(self, device: str, low: int, high: int) -> int:
        """Return the stamp of the last op of a device within some places; 0 when none is held."""
        found = self._fetch(
            "select hlc from op where device = ? and seq between ? and ? order by seq desc limit 1", (device, low, high)
        )
        return int(found[0][0]) if found else 0

    def unconfirmed(self, device: str = "") -> bool:
        """Say whether anything that came from a snapshot, of one device or of any, was in no lane yet."""
        if device:
            return bool(self._fetch("select 1 from unconfirmed where device = ? limit 1", (device,)))
        return bool(self._fetch("select 1 from unconfirmed limit 1"))

    def parked(self, device: str) -> bool:
        """Say whether ops of a device could not be applied here."""
        return bool(self._fetch("select 1 from parked where device = ? limit 1", (device,)))
