"""How background jobs have gone."""

from __future__ import annotations

import json
from collections.abc import Mapping

from scrubjay.store.queries.stats import JobRun
from scrubjay.store.write_context import WriteContext

STREAK = "malformed_reject_streak"
"""The count of commits in a row in which directives were malformed, as the specification names it."""


class JobHistory:
    """The tables `job`, with what is known of a job in all, and `job_run`, with its last runs."""

    def __init__(self, context: WriteContext) -> None:
        self._run = context.run
        self._fetch = context.queries.fetch

    def note(self, ran: JobRun, *, keep: int) -> None:
        """Note a run of a job, and keep no more than the last `keep` of them."""
        self._known(ran.job)
        self._run(
            "update job set runs = runs + 1, failures = failures + ?, last_start = ?, last_ms = ?, last_error = ?"
            " where name = ?",
            (int(ran.error is not None), ran.started, ran.ms, ran.error, ran.job),
        )
        self._run(
            "insert into job_run (job, started, ms, error) values (?, ?, ?, ?)",
            (ran.job, ran.started, ran.ms, ran.error),
        )
        self._run(
            "delete from job_run where job = ?"
            " and n <= (select n from job_run where job = ? order by n desc limit 1 offset ?)",
            (ran.job, ran.job, keep),
        )

    def pause(self, job: str, *, paused: bool) -> None:
        """Note whether a job is to be left alone."""
        self._known(job)
        self._run("update job set paused = ? where name = ?", (int(paused), job))

    def count(self, job: str, counts: Mapping[str, int], *, keeps_streak: bool = False) -> int:
        """Add to what a job has counted. Returns its `malformed_reject_streak` after that, 0 where it keeps none."""
        if not counts and not keeps_streak:
            return 0
        self._known(job)
        total: dict[str, int] = json.loads(self._fetch("select counts from job where name = ?", (job,))[0][0])
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
        streak = total.get(STREAK, 0) + 1 if counts.get("malformed_facts") else 0
        if keeps_streak:
            total[STREAK] = streak
        self._run("update job set counts = ? where name = ?", (json.dumps(total, sort_keys=True), job))
        return streak if keeps_streak else 0

    def _known(self, job: str) -> None:
        self._run("insert or ignore into job (name, runs, failures) values (?, 0, 0)", (job,))
