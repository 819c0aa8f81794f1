"""Why a memory is believed, and what is to be settled: devices' values, and memories that may replace others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scrubjay.api.memories import Entry
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, Grip, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A grip with the events it points at. Of a long event the text stands to the end of the passage, or further."""

    grip: Grip
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One op that touched a memory: when, on which device, what kind, which fields, and what wrote it.

    `cause` is the id of the run or request that wrote it, where it says; `label` what that was about, on the device
    where it ran.
    """

    ts: Millis
    device: str
    seq: int
    change: str
    fields: tuple[str, ...] = ()
    cause: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an imported text stands: its file (the whole path, where that is known) and the headings above it."""

    file: str
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a memory came to be, when, and on which device; `here` says whether that is the one that answers.

    `how` is "learned" (read from what was said: see `sources`), "imported" (from `places`) or "added"; `by` is how far
    who added it is trusted: "user" is the person, "agent" a program that acts for them. `reader` is what read it first:
    "writer" a language model, or an agent that noted it; "reader" the small model that ships; "patterns" no model; ""
    where nothing did.
    """

    how: str
    by: str
    ts: Millis
    device: str
    here: bool
    places: tuple[Place, ...] = ()
    reader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyResponse:
    """Why a memory is believed: where it came from, the passages it was read from, and what happened to it since.

    `supersedes` are the memories whose place it took, the last that ended first; `successor` is what took its own, None
    where nothing did or who asks may not see it. `helped`, `missed` and `wrong` count how often somebody said on this
    device that it helped, did not, or is wrong.
    """

    entry: Entry
    sources: tuple[Source, ...]
    history: tuple[Change, ...]
    origin: Origin
    supersedes: tuple[Memory, ...] = ()
    successor: Memory | None = None
    helped: int = 0
    missed: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsRequest:
    """Which memories' conflicts: all that who asks may see."""

    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What another device wrote into a field, at what time by its own clock. `version` is what `resolve` takes."""

    version: str
    ts: Millis
    device: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A field that devices wrote without having seen each other's: the value that is shown, and the others.

    `field` is its name, or its number where a newer version wrote it.
    """

    memory_id: str
    name: str | None
    field: str
    shown: Any
    others: tuple[Version, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A memory that may take the place of an earlier one. `supersede` says that it does, `resolve` that both hold."""

    new: Memory
    old: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsResponse:
    """The open conflicts, by memory and field, and the memories that may take the place of others, newest first."""

    conflicts: tuple[Conflict, ...]
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveRequest:
    """Which version of a memory's field is right: None is the one that is shown. Closed on every device, for good.

    With the field `may_supersede`, that the memory and the earlier one that `version` refers to both hold: None is
    every earlier one.
    """

    ref: str
    field: str
    version: str | None = None
    project: str | None = None
    session_id: str | None = None
