"""The audit: what is wrong with what is remembered, in counts and ids, without a word of it."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.api.status import SurfacingStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked for: how many there are, of how many that were looked at, and the ids of the first.

    `kind` is `exact_duplicate`, `near_duplicate`, `echo` (an agent's memory that tells back what its session was
    handed), `echoed_source` (a passage that does), `untrusted_handed`, `held_back_handed`, `other_project`, `secret`,
    `secret_event`, `future` and `future_event` (dated later than tomorrow, of all that are held), or `junk_` and its
    kind.
    """

    kind: str
    count: int
    of: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeAudit:
    """How often the same is said twice in one scope: equal words, and nearly equal ones."""

    scope: str
    resource_id: str | None
    memories: int
    exact: int
    near: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResponse:
    """What was found. Of a large store the newest is looked at: so many memories, events and sessions were read.

    `feedback` counts what was said of memories on this device, `review` what is in which state. `state` is a digest
    (hex) of all that holds: the memories that are not put away, with their fields and names, but for when they were
    written and recalled. So it is the same before a run and after the undo of that run.
    """

    findings: tuple[Finding, ...]
    scopes: tuple[ScopeAudit, ...]
    memories: int
    memories_read: int
    events_read: int
    sessions_read: int
    feedback: dict[str, int]
    review: dict[str, int]
    surfacing: SurfacingStats | None = None
    state: str = ""
