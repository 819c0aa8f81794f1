"""Counting what the store holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrubjay.store import rows
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a background job. `started` is in UTC milliseconds; `error` is a code, None when it went well.

    `waited_ms` is how long a run that was asked for waited for the one under way, `problem` what its error says; they
    are not kept.
    """

    job: str
    started: Millis
    ms: int
    error: str | None
    waited_ms: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatistics:
    """How a background job has gone. Times in UTC milliseconds; `last_error` is an error's code.

    `counts` is what it has counted in all its runs, by name.
    """

    runs: int
    failures: int
    last_start: Millis | None
    last_ms: int | None
    last_error: str | None
    paused: bool
    counts: Mapping[str, int] = field(default_factory=dict)


class StatsQueries:
    """Counts, bounds, and how jobs have gone."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def counts(self) -> dict[str, int]:
        """Return how many of each there are."""
        names = {
            "memories": f"select count(*) from memory where {rows.LISTED}",
            "identity_keys": "select count(*) from memory where layer = 'identity' and layer <> 'archive'",
            "active_keys": "select count(*) from memory where layer = 'active' and layer <> 'archive'",
            "events": "select coalesce(sum(events), 0) from session",
            "sessions": "select count(*) from session",
            "aliases": "select count(*) from name where not canonical",
            "grips": "select count(*) from grip where memory_id in (select id from memory)",
            "ops": "select count(*) from op",
        }
        row = (self._fetch("select " + ", ".join(f"({sql})" for sql in names.values())))[0]
        return dict(zip(names, row, strict=True))

    def grouped(self, column: str) -> dict[str, int]:
        """Return how many memories there are of each type or kind."""
        if column not in {"type", "kind"}:
            raise InvalidError(f"memories cannot be counted by {column!r}", hint="count them by type or kind")
        return {
            str(key): int(count)
            for key, count in self._fetch(
                f"select {column}, count(*) from memory where {rows.LISTED} group by 1 order by 1"
            )
        }

    def bounds(self) -> tuple[Millis | None, Millis | None]:
        """Return the times of the oldest and the newest event."""
        low, high = (self._fetch("select min(start), max(last) from session"))[0]
        return (None if low is None else Millis(low)), (None if high is None else Millis(high))

    def projects(self) -> set[str]:
        """Return the projects that events or memories belong to."""
        return {
            str(row[0])
            for column, table in (
                ("project", "session where project is not null"),
                ("resource_id", "memory where scope = 'project' and resource_id is not null"),
            )
            for row in self._fetch(
                # From one to the next by the index: there are many sessions and memories to a project.
                f"with recursive one (name) as (select min({column}) from {table} union all"
                f" select (select min({column}) from {table} and {column} > one.name) from one where one.name not null)"
                " select name from one where name not null"
            )
        }

    def jobs(self) -> dict[str, JobStatistics]:
        """Return how each job that ever ran, or was paused, has gone."""
        return {
            str(row[0]): JobStatistics(
                runs=row[1],
                failures=row[2],
                last_start=row[3],
                last_ms=row[4],
                last_error=row[5],
                paused=bool(row[6]),
                counts=json.loads(row[7]),
            )
            for row in self._fetch(
                "select name, runs, failures, last_start, last_ms, last_error, paused, counts from job"
            )
        }

    def job_runs(self, job: str | None, limit: int) -> list[JobRun]:
        """Return the last runs of a job, or of all, newest first."""
        found = self._fetch(
            "select job, started, ms, error from job_run where ?1 is null or job = ?1 order by n desc limit ?2",
            (job, limit),
        )
        return [JobRun(job=str(row[0]), started=Millis(row[1]), ms=row[2], error=row[3]) for row in found]

    def sample(self, limit: int) -> list[str]:
        """Return texts of every kind that the store holds, up to `limit` of each, without repeats."""
        found = (str(row[0]) for sql in _SAMPLES for row in self._fetch(sql, (limit,)) if row[0])
        return list(dict.fromkeys(found))


_SAMPLES = (
    "select content from memory order by n desc limit ?",
    "select content from memory order by n limit ?",
    "select text from event where erased = 0 order by n desc limit ?",
    "select text from event where erased = 0 order by n limit ?",
    "select metadata from event where metadata <> '{}' order by n desc limit ?",
    "select distinct project from event where project is not null limit ?",
    "select distinct agent from event limit ?",
    "select distinct session_id from event limit ?",
    "select title from session order by start desc limit ?",
    "select name from name limit ?",
    "select distinct topic from memory where topic is not null limit ?",
    "select distinct resource_id from memory where resource_id is not null limit ?",
    "select excerpt from grip limit ?",
)
"""Queries of one column, each with a limit: everything that holds words of the person."""
