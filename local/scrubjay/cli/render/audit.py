"""The audit as a table: what was looked for, how often it was found, and where to look first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scrubjay.api import AuditResponse
from scrubjay.cli.render.words import clean, one_line, short

WORDS = {
    "exact_duplicate": "said twice in one scope",
    "near_duplicate": "nearly said twice",
    "echo": "an agent told back what it was handed",
    "echoed_source": "passages that tell back",
    "untrusted_handed": "handed over, though not believed",
    "held_back_handed": "handed over, and waits or was rejected by now",
    "other_project": "learned in another project",
    "secret": "memories that hold a secret",
    "secret_event": "events that hold a secret",
    "junk_heartbeat": "signs of life",
    "junk_recalled": "our own block come back",
    "junk_directive": "directives as they stand",
    "future": "memories dated in the future",
    "future_event": "events dated in the future",
}
SHOWN = 3
"""Ids beside a finding; JSON has twenty."""

STATE_CHARS = 16
"""Of the digest of what holds: no two states share as many; JSON has all of it."""


def audit(answer: AuditResponse, labels: Mapping[str, str] = MappingProxyType({})) -> RenderableType:
    """Return the findings, then the counts of feedback and review."""
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify)
    for found in answer.findings:
        share = f"{found.count / found.of:.1%}" if found.of else ""
        style = "yellow" if found.count else "dim"
        ids = " ".join(short(one) for one in found.ids[:SHOWN])
        table.add_row(Text(WORDS.get(found.kind, clean(found.kind)), style=style), f"{found.count:,}", share, ids)
    read = f"{answer.memories_read:,} of {answer.memories:,} memories"
    lines = [Text(f"looked at {read}, {answer.events_read:,} events, {answer.sessions_read:,} sessions", style="dim")]
    for one in answer.scopes:
        if one.exact or one.near:
            whose = one_line(labels.get(one.resource_id or "", one.resource_id or one.scope), 60)
            lines.append(Text(f"  {whose}: {one.memories:,}, {one.exact} twice, {one.near} nearly"))
    for name, counts in (("feedback", answer.feedback), ("review", answer.review)):
        said = ", ".join(f"{clean(word)} {count:,}" for word, count in counts.items() if count)
        lines.append(Text(f"{name}: {said or 'none'}"))
    if answer.state:
        lines.append(
            Text(f"state {answer.state[:STATE_CHARS]}: the same again once what was done is undone", style="dim")
        )
    return Group(table, *lines)
