"""What a store keeps of its replication with an account: lanes, sealed objects, scopes, alarms. It opens nothing.

Ids of accounts, scopes and devices are bytes here, as on the wire; the op log has devices in hex.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis

KEPT_LINKS = 4_096
"""Places a lane whose links are kept: a checkpoint comes at least every 1,000, and names the end it has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncState:
    """Where replication stands. Times in UTC milliseconds, 0 for never.

    `cursor` "" is the beginning; `sealed_seq` is the last op of this device that stands in a sealed object.
    `snapshot` is what a first reading did with one: "" nothing yet, "loading", "loaded", or "refused", because
    the lanes said otherwise. `snapshot_maker` made it.
    """

    account: bytes
    cursor: str = ""
    store_id: str = ""
    generation: int = 0
    sealed_seq: int = 0
    beacon_at: int = 0
    beacon_n: int = 0
    verified_at: int = 0
    round_at: int | None = None
    error_at: int | None = None
    error: str | None = None
    snapshot: str = ""
    snapshot_maker: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A lane as far as it is held: places `low` to `n`, whose last link is `tip`.

    `low_prev` is what the object before `low` must link to; `low` 1 means that nothing is missing. `acked_n` is how far
    the server has confirmed a lane of our own. `hw_n` and `hw_tip` are the furthest end that anybody has shown.
    """

    scope: bytes
    device: bytes
    n: int
    tip: bytes
    acked_n: int
    low: int
    low_prev: bytes
    hw_n: int
    hw_tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An object as it was sent, without its bytes: what it covers, the ops in it, its size, the link after it."""

    scope: bytes
    device: bytes
    n_from: int
    n_to: int
    seq_low: int
    seq_high: int
    size: int
    tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A project whose things, first written after op `seq` of this device, live in a scope of their own."""

    project: str
    scope: bytes
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What a person must be told. `code` is the error's, `subject` what it is about (an id in hex, or "")."""

    id: int
    at: Millis
    code: str
    subject: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamOutbox:
    """How far a device's changes are sealed for a team, and the server's count of pushes when all was read last."""

    device: bytes
    sealed_seq: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSealed:
    """An object that waits to be confirmed. `after_seq` and `tip` are where its lane and its ops stood before it."""

    n: int
    after_seq: int
    tip: bytes
    obj: bytes
