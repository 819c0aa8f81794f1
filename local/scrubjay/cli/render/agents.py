"""Agents, and what they did on which days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.console import RenderableType
from rich.text import Text

from scrubjay.api import ActivityResponse, Agent, Bucket
from scrubjay.cli import times
from scrubjay.cli.render.layout import table_of
from scrubjay.cli.render.words import one_line


def agents(found: Sequence[Agent], labels: Mapping[str, str] = MappingProxyType({})) -> RenderableType:
    """Return agents, a line each."""
    if not found:
        return Text("no agent has sent anything: scrubjay ingest, or scrubjay import")
    table = table_of("agent", "first", "last", "sessions", "events", "projects")
    for agent in found:
        shown = ", ".join(one_line(labels.get(project, project), 40) for project in agent.projects[:3])
        more = f" and {len(agent.projects) - 3} more" if len(agent.projects) > 3 else ""
        table.add_row(
            Text(one_line(agent.name, 30)),
            times.day(agent.first),
            times.day(agent.last),
            f"{agent.sessions:,}",
            f"{agent.events:,}",
            Text(shown + more),
        )
    return table


def activity(answer: ActivityResponse) -> RenderableType:
    """Return the days or weeks on which something happened, a line for each and each agent."""
    if not answer.activity:
        return Text("nothing happened in that time")
    table = table_of("week of" if answer.bucket is Bucket.WEEK else "day", "agent", "sessions", "prompts", "events")
    for one in answer.activity:
        table.add_row(
            one.day, Text(one_line(one.agent, 30)), f"{one.sessions:,}", f"{one.prompts:,}", f"{one.events:,}"
        )
    return table
