"""Reading what is kept of teams. Ids are bytes, as on the wire."""

from __future__ import annotations

from scrubjay.store.replication_state import TeamOutbox, TeamSealed
from scrubjay.store.sqlite import Fetch


class TeamQueries:
    """Where the teams stand that this store's person is in."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def log(self, team: bytes) -> list[bytes]:
        """Return a team's log as far as it is pinned, from its genesis on."""
        return [bytes(row[0]) for row in self._fetch("select entry from team_log where team = ? order by seq", (team,))]

    def lanes(self, team: bytes) -> dict[bytes, tuple[int, bytes]]:
        """Return where each lane of a team ends that is held, by device: (n, link)."""
        rows = self._fetch("select device, n, tip from team_lane where team = ?", (team,))
        return {bytes(device): (int(n), bytes(tip)) for device, n, tip in rows}

    def outbox(self, team: bytes) -> TeamOutbox | None:
        """Return how far this device's changes are sealed for a team; None before the first time."""
        rows = self._fetch("select device, sealed_seq, moved from team_outbox where team = ?", (team,))
        return TeamOutbox(device=rows[0][0], sealed_seq=rows[0][1], moved=rows[0][2]) if rows else None

    def sealed(self, team: bytes) -> list[TeamSealed]:
        """Return what is sealed for a team and not confirmed, in lane order."""
        rows = self._fetch("select n, after_seq, tip, obj from team_sealed where team = ? order by n", (team,))
        return [TeamSealed(n=n, after_seq=seq, tip=tip, obj=obj) for n, seq, tip, obj in rows]

    def touched(self, team: bytes, device: str, after_seq: int) -> bool:
        """Say whether a device wrote about a team's things after an op of its own."""
        return bool(
            self._fetch(
                "select 1 from placed p join op o on o.entity = p.entity"
                " where p.scope = ? and o.device = ? and o.seq > ? limit 1",
                (team, device, after_seq),
            )
        )

    def in_scope(self, team: bytes) -> bool:
        """Say whether anything lives in a team's scope."""
        return bool(self._fetch("select 1 from placed where scope = ? limit 1", (team,)))
