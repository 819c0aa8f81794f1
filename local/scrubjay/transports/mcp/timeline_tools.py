"""The tool that walks time: a node of the table of contents, or the nodes of a period, with the ways on from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from scrubjay import api
from scrubjay.transports.mcp import answers
from scrubjay.transports.mcp.answers import Page
from scrubjay.transports.mcp.reading_tools import ANSWER_TOKENS, NEXT_TOKENS, Tokens
from scrubjay.transports.mcp.tools import Arguments, ToolContext
from scrubjay_shared.records import TocNode

NODES = 30
"""Nodes of a page: a month of days."""

ROOT = "toc"


class Timeline(Arguments, frozen=True):
    """Arguments of memory_timeline."""

    at: Annotated[str, Meta(description='"last week", "March 2026" or a toc: id; empty: the years')] = ""
    level: Literal["", "year", "month", "week", "day", "segment"] = ""
    cursor: str = ""
    max_tokens: Tokens = ANSWER_TOKENS


async def timeline(context: ToolContext, asked: Timeline) -> str:
    """Return what happened at a time, as nodes that lead further."""
    at = asked.at.strip()
    page = Page(asked.max_tokens)
    if not at or at.startswith(ROOT):
        cursor = asked.cursor or None
        request = api.TocRequest(id=at or ROOT, limit=NODES, cursor=cursor)
        found: api.TocResponse = await context.operation("toc", request)
        _node(page, found, context.utc_offset)
        _children(page, found.children, context.utc_offset)
        _more(page, found.next)
        return page.text()
    since, until = answers.period(at, context.now, context.utc_offset)
    period = api.TimelineRequest(
        since=since, until=until, level=asked.level or None, limit=NODES, cursor=asked.cursor or None
    )
    told: api.TimelineResponse = await context.operation("timeline", period)
    if not told.nodes:
        page.add(f"nothing is remembered of {at[:60]}")
    _children(page, told.nodes, context.utc_offset)
    _more(page, told.next)
    return page.text()


def _node(page: Page, found: api.TocResponse, utc_offset: int) -> None:
    """Add a node with its bullets and the ways on from it."""
    node = found.node
    page.add(f"{_headed(node, utc_offset)} · {found.events} events in {found.sessions} sessions")
    ways = {"up": " ".join(found.parents), "before": found.previous, "after": found.following}
    on = " · ".join(f"{way}: {to}" for way, to in ways.items() if to)
    if on:
        page.add(on)
    if node.summary:
        page.add_cut(node.summary, reserve=NEXT_TOKENS)
    for bullet, grip in zip(node.bullets, node.grip_ids, strict=True):
        if not page.add(f"- {bullet} ({grip})", reserve=NEXT_TOKENS):
            return


def _children(page: Page, nodes: Iterable[TocNode], utc_offset: int) -> None:
    for node in nodes:
        lines = [_headed(node, utc_offset), *(f"- {bullet}" for bullet in node.bullets)]
        if not page.add("\n".join(lines), reserve=NEXT_TOKENS) and not page.add(lines[0], reserve=NEXT_TOKENS):
            page.add("cut to max_tokens: take one of these as at, or give max_tokens")
            return


def _headed(node: TocNode, utc_offset: int) -> str:
    days = dict.fromkeys(answers.day(moment, utc_offset) for moment in (node.start, node.end) if moment)
    return " · ".join(filter(None, (node.id, node.title, " to ".join(days), ", ".join(node.agents))))


def _more(page: Page, cursor: str | None) -> None:
    if cursor is not None:
        page.add(f"more: cursor={cursor}")


async def read_node(context: ToolContext, name: str) -> str:
    """Return a node of the table of contents."""
    node = name if name.startswith(ROOT) else f"{ROOT}:{name}"
    return await timeline(context, Timeline(at=node))
