"""Writing down what is predicted for sessions, what they were told ahead, and what they used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.store.queries.surfacing import COVERED, StoredPrediction, Surfaced
from scrubjay.store.write_context import WriteContext
from scrubjay_shared.clock import DAY_MINUTES

_DAY_MS = DAY_MINUTES * 60_000


class SurfacingWrites:
    """Predictions and their outcomes. They are of this device alone, where the agents run."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def predict(
        self, project: str, session_id: str, predictions: Sequence[StoredPrediction], *, kept_days: int
    ) -> None:
        """Put predictions in place of those that a session had; those older than `kept_days` are let go."""
        now = self._context.now
        self._context.run("delete from prediction where project = ? and session_id = ?", (project, session_id))
        self._context.run_many(
            "insert into prediction (project, session_id, ref, kind, probability, because, at)"
            " values (?, ?, ?, ?, ?, ?, ?)",
            [(project, session_id, one.ref, one.kind, one.probability, one.because, now) for one in predictions],
        )
        self._context.run("delete from prediction where at < ?", (now - kept_days * _DAY_MS,))

    def tell(self, told: Iterable[Surfaced], *, kept_days: int) -> None:
        """Note what a session is told ahead now; what is older than `kept_days` is let go."""
        now = self._context.now
        self._context.run_many(
            "insert into surfaced (session_id, ref, project, kind, probability, tokens, at)"
            " values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
            [(one.session_id, one.ref, one.project, one.kind, one.probability, one.tokens, now) for one in told],
        )
        for table in ("surfaced", "used"):
            self._context.run(f"delete from {table} where at < ?", (now - kept_days * _DAY_MS,))

    def judge(self, outcomes: Iterable[tuple[str, str, str]]) -> None:
        """Note what became of things that were told, as (session, ref, outcome)."""
        self._context.run_many(
            "update surfaced set outcome = ?3, judged = ?4 where session_id = ?1 and ref = ?2 and outcome is null",
            [(*one, self._context.now) for one in outcomes],
        )

    def use(self, uses: Iterable[tuple[str, str, str, str]]) -> None:
        """Note what sessions used, as (session, ref, project, how)."""
        self._context.run_many(
            "insert into used (session_id, ref, project, how, at) values (?, ?, ?, ?, ?) on conflict do nothing",
            [(*one, self._context.now) for one in uses],
        )

    def cover(self, events: int, memories: int) -> None:
        """Note up to which arriving event and memory predictions were made."""
        self._context.set_meta(COVERED, f"{events} {memories}")
