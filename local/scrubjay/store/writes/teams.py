"""Writing what is kept of teams."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.replication_state import TeamOutbox, TeamSealed
from scrubjay.store.write_context import WriteContext


class TeamWrites:
    """What sync keeps of teams between its rounds."""

    def __init__(self, context: WriteContext) -> None:
        self._run = context.run
        self._run_many = context.run_many

    def keep_log(self, team: bytes, seq: int, entries: Sequence[bytes]) -> None:
        """Pin entries of a team's log from place `seq` on. What was pinned before is never replaced."""
        self._run_many(
            "insert into team_log (team, seq, entry) values (?, ?, ?)",
            [(team, place, entry) for place, entry in enumerate(entries, seq)],
        )

    def put_lane(self, team: bytes, device: bytes, n: int, tip: bytes) -> None:
        """Keep where a lane of a team ends."""
        self._run("insert or replace into team_lane (team, device, n, tip) values (?, ?, ?, ?)", (team, device, n, tip))

    def put_outbox(self, team: bytes, box: TeamOutbox) -> None:
        """Keep how far this device's changes are sealed for a team."""
        self._run(
            "insert or replace into team_outbox (team, device, sealed_seq, moved) values (?, ?, ?, ?)",
            (team, box.device, box.sealed_seq, box.moved),
        )

    def keep_sealed(self, team: bytes, new: TeamSealed) -> None:
        """Keep an object until the server has confirmed it."""
        self._run(
            "insert into team_sealed (team, n, after_seq, tip, obj) values (?, ?, ?, ?, ?)",
            (team, new.n, new.after_seq, new.tip, new.obj),
        )

    def confirm(self, team: bytes, n: int) -> None:
        """Let go of what the server has confirmed, up to a place."""
        self._run("delete from team_sealed where team = ? and n <= ?", (team, n))

    def drop_sealed(self, team: bytes) -> None:
        """Let go of what waits to be sent, to seal it anew."""
        self._run("delete from team_sealed where team = ?", (team,))

    def forget(self, team: bytes) -> None:
        """Forget a team. What came from it stays, and lives in the home scope from now on."""
        for table in ("team_log", "team_lane", "team_outbox", "team_sealed"):
            self._run(f"delete from {table} where team = ?", (team,))
        self._run("delete from placed where scope = ?", (team,))
