"""Hooks: what a coding agent's host reports as it happens, and what is handed to the agent in answer."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest:
    """One event of a host, its payload as it came. `event` is the host's name for it, where the payload lacks one.

    `sent` is when the hook ran, `project` the folder that it ran in, `process` the process that started it. `inject`
    asks for what the agent is to be handed with this event. `trial` stores it and finds it in a transaction that is
    rolled back: so doctor sees whether events arrive, and changes nothing. With `use_memory` false nothing of its
    session is stored from now on, and nothing handed over, until an event of the session comes without.
    """

    host: str
    data: bytes
    event: str = ""
    sent: Millis | None = None
    project: str | None = None
    process: int | None = None
    inject: bool = False
    trial: bool = False
    use_memory: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResponse:
    """What became of an event: how much of it is stored, durable when this is returned, and how much was there already.

    `dropped` says why nothing is to be stored of it. `output` is what the hook prints, in the host's own form; "" where
    nothing is handed over.
    """

    accepted: int = 0
    duplicates: int = 0
    dropped: str | None = None
    output: str = ""
