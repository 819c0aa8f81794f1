"""Requests and responses of the checks on the server: verify, inspect, compare, and the account log."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_sync.api.identity import Who


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneVerified:
    """One lane read again: how much of it, and what is wrong ("" when nothing is)."""

    scope: str
    device: str
    places: int
    objects: int
    bytes: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResponse:
    """What reading everything again has shown, and the words that other devices must show too."""

    who: Who
    whole: bool
    words: tuple[str, ...]
    lanes: tuple[LaneVerified, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectResponse:
    """What the server holds, and what in it is not as it must be; see `inspect.Inspection`."""

    who: Who
    blind: bool
    objects: int
    bytes: int
    readable: int
    texts: int
    grams: int
    sizes: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a lane ends, ids and link in hex."""

    scope: str
    device: str
    n: int
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsResponse:
    """Where the account log and every lane end as this device knows them: to be compared with another device's."""

    account: str
    device: str
    log_seq: int
    log_head: str
    heads: tuple[Head, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """What another device exported."""

    heads: HeadsResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResponse:
    """How many of the other's places are known here, and found the same. A difference is a SplitError."""

    who: Who
    same: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One entry of the account log, in words."""

    seq: int
    what: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogResponse:
    """The account log as this device holds it."""

    who: Who
    entries: tuple[LogLine, ...]
