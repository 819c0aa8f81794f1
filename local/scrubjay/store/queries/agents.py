"""Counting what each agent contributed."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.store.queries.events import EventFilter
from scrubjay.store.sqlite import Fetch
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounts:
    """What one agent contributed. Times in UTC milliseconds."""

    name: str
    events: int
    sessions: int
    projects: tuple[str, ...]
    first: Millis
    last: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCounts:
    """What one agent did from one civil day on; `day` counts from 1970-01-01. Times in UTC milliseconds."""

    day: int
    agent: str
    events: int
    prompts: int
    sessions: int
    first: Millis
    last: Millis


DAY = "((ts + utc_offset * 60000 + 86400000) / 86400000 - 1)"
"""The civil day of an event on the clock where it happened. 1970-01-01 is day 0, a Thursday."""

DAYS = {"day": DAY, "week": f"({DAY} + 3) / 7 * 7 - 3"}
"""The first day of the day or week of an event; weeks begin on Monday."""


class AgentQueries:
    """Events counted by agent, and by day."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def counts(self, project: str | None, own_session: str | None) -> list[AgentCounts]:
        """Return what each agent contributed, the one that was there last first.

        Of a project, what belongs to none counts too, and the asking session, `own_session`.
        """
        clause = "?1 is null and ?2 is null or project = ?1 or project = '' or session_id = ?2"
        values = (project, own_session)
        projects: dict[str, list[str]] = {}
        for agent, one in self._fetch(
            f"select distinct agent, project from session_agent where ({clause}) and project <> '' order by project",
            values,
        ):
            projects.setdefault(agent, []).append(one)
        return [
            AgentCounts(
                name=str(row[0]),
                events=row[1],
                sessions=row[2],
                projects=tuple(projects.get(row[0], ())),
                first=Millis(row[3]),
                last=Millis(row[4]),
            )
            for row in self._fetch(
                "select agent, sum(events), count(distinct session_id), min(start), max(last) from session_agent"
                f" where {clause} group by agent order by max(last) desc, agent",
                values,
            )
        ]

    def activity(self, chosen: EventFilter, *, agent: str | None, bucket: str) -> list[DayCounts]:
        """Return what each agent, or one, did on each day (`bucket` "day") or in each week ("week"), in order.

        Only days on which something happened are among them.
        """
        clause, values = chosen.clause()
        prompt = EventType.USER_MESSAGE.value
        return [
            DayCounts(
                day=row[0],
                agent=str(row[1]),
                events=row[2],
                prompts=row[3],
                sessions=row[4],
                first=Millis(row[5]),
                last=Millis(row[6]),
            )
            for row in self._fetch(
                f"select {DAYS[bucket]}, agent, count(*), sum(type = ?), count(distinct session_id), min(ts), max(ts)"
                f" from event indexed by event_ts where {clause} and not forgotten and (? is null or agent = ?)"
                " group by 1, 2 order by 1, 2",
                (prompt, *values, agent, agent),
            )
        ]
