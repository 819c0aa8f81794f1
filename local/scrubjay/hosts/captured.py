"""What became of one thing that a host told: the events to store, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scrubjay_shared.records import EventDraft


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One payload of a host, understood.

    `kind` is the host's own name of the event, and `cwd` the folder it happened in, where the payload tells.
    `context` says that the host takes text back into the model's context now. `dropped` is why nothing is stored.
    `transcript` is a file of the host that holds the words of this event, which the payload lacks: see `completed`.
    """

    host: str
    kind: str
    session_id: str
    cwd: str | None = None
    drafts: tuple[EventDraft, ...] = ()
    context: Literal["session_start", "prompt"] | None = None
    dropped: str | None = None
    transcript: str | None = None
