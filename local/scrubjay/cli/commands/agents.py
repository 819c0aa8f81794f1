"""`scrubjay agents`: list the agents, and what they did on which days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import invocation, render, times
from scrubjay.cli.arguments import BUCKETS, Parser, add_subcommand, caller, shared, text
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from argparse import Namespace


def configure(parser: Parser) -> None:
    """Take what is asked about the agents."""
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", parser_class=Parser, required=False)
    listed = add_subcommand(subcommands, "list", "list the agents that events came from")
    activity = add_subcommand(subcommands, "activity", "show what agents did on each day or in each week")
    activity.add_argument("--agent", type=text, metavar="NAME", help="only this agent")
    activity.add_argument("--from", dest="since", type=text, metavar="WHEN", help="from this time on (30 days ago)")
    activity.add_argument("--to", dest="until", type=text, metavar="WHEN", help="up to this time, which is included")
    activity.add_argument("--bucket", choices=BUCKETS, default="day", help="by day, or by week from Monday on (day)")
    for subcommand in (listed, activity):
        caller(subcommand)
        shared(subcommand, top=False)


def run(line: Namespace) -> None:
    """List the agents, or what they did."""
    out = Output.of(line)
    project, session = getattr(line, "project", None), getattr(line, "session", None)
    with invocation.store(line) as store:
        if line.subcommand == "activity":
            today = invocation.now()
            request = api.ActivityRequest(
                agent=line.agent,
                since=times.since(line.since, today),
                until=times.until(line.until, today),
                bucket=api.Bucket(line.bucket),
                project=project,
                session_id=session,
            )
            active: api.ActivityResponse = store.call("agent_activity", request)
            out.answer(active, lambda: render.agents.activity(active))
            out.notes(active.notes)
            return
        answer: api.AgentsResponse = store.call("agents", api.AgentsRequest(project=project, session_id=session))
        labels = invocation.labels(store, [project for agent in answer.agents for project in agent.projects])
    out.answer(answer, lambda: render.agents.agents(answer.agents, labels))
    out.notes(answer.notes)
