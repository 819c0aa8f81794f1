"""Requests and responses about the devices of the account, and the machines that ask to be added."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_sync.api.identity import Who


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLine:
    """A device of the account. `seen` is when it was last active, by its own clock, as far as this device has read.

    `added_by` is the id of the device that let it in, "" where that was the recovery code, its own for the first one.
    """

    id: str
    name: str
    this: bool
    revoked: bool
    limited: bool
    read_only: bool
    scopes: tuple[str, ...]
    seen: int | None
    added_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingLine:
    """A machine that asks to be let in. It shows its words once it is `answered`."""

    id: str
    device: str
    answered: bool
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesResponse:
    """The devices of the account, and the machines that ask."""

    who: Who
    devices: tuple[DeviceLine, ...]
    asking: tuple[AskingLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesResponse:
    """What the devices of the account are called, by id. Those that were revoked keep their names."""

    names: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """Which machine to answer: the beginning of its request's id, or "" for the only one.

    `again` asks after the one that was answered before, and answers no other.
    """

    ref: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResponse:
    """A machine that was answered; `shows` says whether it shows its words by now."""

    who: Who
    id: str
    device: str
    shows: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveRequest:
    """Which machine to add (the beginning of its request's id, or "" for the only one), and the words that it shows."""

    words: tuple[str, ...]
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveResponse:
    """A machine was added. `proof` are the words to type there: they prove to it that this was your device."""

    who: Who
    device: str
    proof: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRequest:
    """The device to shut out. Of the devices that it has let in, `also` go with it and `keep` stay: each is named.

    `cut`: also when not all of what it wrote can be followed here; what is missing does not count then.
    """

    ref: str
    also: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest:
    """A device's new name."""

    ref: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCreateRequest:
    """A limited device: the scopes whose keys it gets."""

    name: str
    scopes: tuple[str, ...]
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleResponse:
    """A limited device's keys: shown once, and a secret."""

    who: Who
    device: str
    bundle: str = field(repr=False)
