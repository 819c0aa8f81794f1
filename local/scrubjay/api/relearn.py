"""Reading sessions anew: what a run would read and end, and how far one has come."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RelearnRequest:
    """Read the sessions anew of which lesser readers learned something. `dry_run` counts them, and starts nothing."""

    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RelearnCost:
    """What the Writer would be asked: `destination` gets the sessions' turns, on another machine where it `leaves`.

    Calls and tokens are estimated from the sizes of what was said: nothing was asked. `left_today` is what a run may
    use of a day's cap, which is half of it; `days` are how many days of that it takes.
    """

    destination: str
    model: str
    leaves: bool
    calls: int
    input_tokens: int
    output_tokens: int
    left_today: int
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelearnResponse:
    """A run that is under way, or what one would do. `cause` is what `undo` takes back; null where none was started.

    `reader` is who reads: "writer", "reader" (the small model that ships) or "patterns". `done` of the `sessions` are
    read. `memories` are those that may end: what is learned again stays. `kept` counts what stays in any case, by why:
    `edited`, `pinned`, `confirmed` or `cited`. `cost` is null where no Writer is set, or the run is not its.
    """

    cause: str | None
    reader: str
    sessions: int
    done: int
    memories: int
    kept: dict[str, int] = field(default_factory=dict)
    cost: RelearnCost | None = None
