"""What the index takes: documents of several kinds, each with a table of its own.

A kind is one entry of `KINDS`: what its documents say, in which columns, and how fields become numbers. The index, its
saved copy and its upkeep go by that list; how a kind is filtered and scored is `retrieval.kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scrubjay.index.vocabulary import Names, SpeakerNames
from scrubjay_shared.clock import Millis

FOREVER = np.iinfo(np.int64).max
"""`valid_to` of a memory whose end is not known; its negation is the unknown `valid_from`."""


class EventDoc(NamedTuple):
    """One event as recall sees it. `order` is its position key within the session, ascending; ties go by id.

    `tokens` are the analysed tokens of "[speaker] text", joined by single spaces (`text.analyse`). A tuple, because a
    million of them are made when a store is opened, and turned into columns.
    """

    id: str
    session_id: str
    agent: str
    ts: Millis
    order: int
    speaker: str
    type: str
    tokens: str
    project: str | None = None


class MemoryDoc(NamedTuple):
    """One memory as recall sees it.

    `tokens` are those of content and name, not of aliases. `sources` are the ids of the events its grips cover.
    `session_id`, `project` and `agent` say where it was learned, None when nowhere; `resource_id` whom it is for. One
    with an `archived_at` is searched for moments before that alone, unless `is_member`: it was put away into another,
    which is found by its words. An archive that `has_members` is found by theirs, and not by its own.
    """

    id: str
    scope: str
    type: str
    kind: str
    layer: str
    salience: float
    created_at: Millis
    updated_at: Millis
    tokens: str
    resource_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    agent: str | None = None
    topic: str | None = None
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    superseded: bool = False
    archived_at: Millis | None = None
    is_member: bool = False
    has_members: bool = False
    sources: tuple[str, ...] = ()


class NameTables:
    """The numbers of recurring strings, by what they name; all kinds of documents share them."""

    def __init__(self) -> None:
        self.sessions, self.projects, self.agents, self.types = Names(), Names(), Names(), Names()
        self.scopes, self.resources, self.topics = Names(), Names(), Names()
        self.kinds, self.layers = Names(), Names()
        self.speakers = SpeakerNames()

    def pack(self) -> dict[str, list[str]]:
        """Return all strings, by what they name."""
        return {name: names.strings.copy() for name, names in vars(self).items()}

    @classmethod
    def unpacked(cls, strings: Mapping[str, Sequence[str]]) -> NameTables:
        """Return what was packed. Raises KeyError for something else."""
        made = cls()
        for name, names in vars(made).items():
            names.codes(strings[name])
        return made


Fields = Mapping[str, Sequence[Any]]
"""The values of some documents by field name, side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKind:
    """A kind of document that can be recalled.

    `document` is its class, a NamedTuple with at least `id` and `tokens`; with `sources`, the ids of events, it is
    linked to them. `columns` are what its table has beside the columns of every table, with their types; `encode` makes
    their values. Of the `counted` columns it is known how many rows carry a number. `sequenced` documents follow one
    another within a session, by `order`, then id.
    """

    name: str
    document: type[Any]
    columns: Mapping[str, Any]
    encode: Callable[[NameTables, Fields], Mapping[str, Sequence[Any]]]
    counted: tuple[str, ...] = ()
    sequenced: bool = False

    @property
    def sourced(self) -> bool:
        """Whether its documents were read from events."""
        return "sources" in self.document._fields


def _event_columns(names: NameTables, fields: Fields) -> Mapping[str, Sequence[Any]]:
    return {
        "ts": fields["ts"],
        "order": fields["order"],
        "session": names.sessions.codes(fields["session_id"]),
        "project": names.projects.codes(fields["project"]),
        "agent": names.agents.codes(fields["agent"]),
        "speaker": names.speakers.codes(fields["speaker"]),
        "type": names.types.codes(fields["type"]),
    }


def _memory_columns(names: NameTables, fields: Fields) -> Mapping[str, Sequence[Any]]:
    return {
        "ts": fields["updated_at"],
        "created": fields["created_at"],
        "valid_from": [-FOREVER if start is None else start for start in fields["valid_from"]],
        "valid_to": [FOREVER if end is None else end for end in fields["valid_to"]],
        "scope": names.scopes.codes(fields["scope"]),
        "resource": names.resources.codes(fields["resource_id"]),
        "session": names.sessions.codes(fields["session_id"]),
        "project": names.projects.codes(fields["project"]),
        "agent": names.agents.codes(fields["agent"]),
        "type": names.types.codes(fields["type"]),
        "kind": names.kinds.codes(fields["kind"]),
        "layer": names.layers.codes(fields["layer"]),
        "topic": names.topics.codes(fields["topic"]),
        "salience": fields["salience"],
        "superseded": fields["superseded"],
        "archived": [FOREVER if at is None else at for at in fields["archived_at"]],
        "is_member": fields["is_member"],
        "has_members": fields["has_members"],
    }


EVENT = DocumentKind(
    name="event",
    document=EventDoc,
    columns={"ts": np.int64, "order": np.int64, "session": np.int32, "project": np.int32, "agent": np.int32,
             "speaker": np.int32, "type": np.int32, "prev": np.int32, "next": np.int32},
    encode=_event_columns,
    counted=("type", "speaker"),
    sequenced=True,
)  # fmt: skip
MEMORY = DocumentKind(
    name="memory",
    document=MemoryDoc,
    columns={"ts": np.int64, "created": np.int64, "valid_from": np.int64, "valid_to": np.int64, "scope": np.int16,
             "resource": np.int32, "session": np.int32, "project": np.int32, "agent": np.int32, "type": np.int32,
             "kind": np.int32, "layer": np.int32, "topic": np.int32, "salience": np.float32, "superseded": np.bool_,
             "archived": np.int64, "is_member": np.bool_, "has_members": np.bool_},
    encode=_memory_columns,
    counted=("type",),
)  # fmt: skip
KINDS = (EVENT, MEMORY)
"""All kinds, events first: the others are linked to them."""

KIND_OF: Mapping[type[Any], DocumentKind] = {kind.document: kind for kind in KINDS}
