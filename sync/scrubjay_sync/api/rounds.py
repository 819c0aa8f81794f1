"""Requests and responses of rounds: running one, its progress, and where sync stands."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_sync.api.identity import Who


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error that did not end the round, or an alarm. `at` is 0 for one of just now."""

    code: str
    message: str
    hint: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """With nothing to do, wait this long for news of other devices."""

    wait_s: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A memory that is shown as `name`, because another memory was `claimed` by that name first, on another device."""

    memory_id: str
    name: str
    claimed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResponse:
    """What one round did; see `engine.Round`.

    `renamed`, looked for when something was received, are the memories whose name another memory had first.
    """

    who: Who
    synced: bool
    ops_sent: int
    ops_received: int
    conflicts: int
    healed: int
    packed: int
    reincarnated: bool
    faults: tuple[Fault, ...]
    renamed: tuple[Renamed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressResponse:
    """How far the round under way is; `step` empty when none is, or it is still at its beginning."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLine:
    """One lane, with names."""

    scope: str
    device: str
    own: bool
    n: int
    acked: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherStatus:
    """Where sync of another account of this home stands. `problem` says why it could not be asked, "" where it was."""

    name: str
    username: str
    origin: str
    pending_ops: int = 0
    last_round: int | None = None
    last_error: str | None = None
    faults: tuple[Fault, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusResponse:
    """Where sync stands. Times in UTC milliseconds, None for never.

    `code_unverified`: this is the only device and nobody has typed the recovery code back since it was shown.
    `unconfirmed_forgets` are forgets older than a week that a device in force has not said to have carried out.
    `quarantined` changes of other devices cannot be read by this version, and wait for a newer one. `renamed` are the
    memories whose name another memory had first. `revoked`: another device took this one out of the account.
    `rotations_left`: how often all keys can be replaced until the keyring is full; None on a limited device.
    `others` are the other accounts of this home that are logged in, unless one account was asked for by its name.
    """

    who: Who
    pending_ops: int
    last_round: int | None
    last_error: str | None
    last_error_at: int | None
    faults: tuple[Fault, ...]
    lanes: tuple[LaneLine, ...]
    devices: int
    limited: bool
    read_only: bool
    quiet: bool
    code_unverified: bool
    clock_offset_ms: int | None
    clock_off: bool
    quota_percent: int
    verified_at: int | None
    quarantined: int
    unconfirmed_forgets: int = 0
    renamed: tuple[Renamed, ...]
    revoked: bool
    rotations_left: int | None = None
    others: tuple[OtherStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotResponse:
    """A snapshot that was made: how many changes it holds, in how many objects, and how many of these were sent."""

    who: Who
    ops: int
    chunks: int
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietRequest:
    """Whether to send in quarters of an hour only."""

    on: bool
