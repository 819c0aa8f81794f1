"""What an import of notes changes in a store that holds some of them already. Pure: memories and drafts in, plan out.

A note is known by its place: who it is for, the file it stands in, and the headings above it (`source_key`). A memory
remembers every place its text stands in: one in its metadata (`source_key`, `source`, `path`, `heading`), others below
`also_from`. An import never changes who a memory is for, and overwrites a text only where that text came from this one
place and was not rewritten since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scrubjay.importers.notes import numbered
from scrubjay.importers.parsing import digest, path_of
from scrubjay_shared.records import Json, Memory, MemoryDraft, content_hash

PLACE = ("heading", "path", "source", "source_key")
"""The metadata that say where a text stands."""

ALSO = "also_from"
MAX_ALSO = 32
"""Places of one text beside the first that are kept: the licence of every checkout is one, and metadata are bounded."""

SHOWN_FOLDERS = 3
"""Folders of a file that may stand in a note's name, to tell it from another note of the same headings."""

EARLIER = ("markdown:", "mcp-memory:")
"""How keys began that held neither the project nor the folder: two files could have the same one. The memory of such a
key is taken over by the first place that says the same for the same project; a place that says something else cannot
be told from another file of that name, and gets a note of its own."""

SHOWN_CHARS = 100
"""Characters of a path in a note's name: half of a name's limit, so that the heading stays readable."""

Owner = tuple[str, str, str | None]
"""What tells two memories apart that say the same: content hash, scope, and whom they are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be written to a memory that is there: new words (None keeps them), and all of its metadata."""

    memory_id: str
    metadata: Json
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to store. `fresh` are new notes; `named` gives names of notes that are there to the memories that hold them.

    `updated` counts texts that change, `same` drafts that are there already, `rewritten` those whose text was rewritten
    in the store and in the file: they are left as they are.
    """

    fresh: tuple[MemoryDraft, ...]
    changes: tuple[Change, ...]
    named: tuple[tuple[str, tuple[str, ...]], ...]
    updated: int
    same: int
    rewritten: int


def places(metadata: Json) -> list[Json]:
    """Return the places that a memory's text stands in, the first one first; none for one that was not imported."""
    if not isinstance(metadata.get("source_key"), str):
        return []
    also = metadata.get(ALSO)
    return [
        {key: metadata[key] for key in PLACE if key in metadata},
        *(each for each in (also if isinstance(also, list) else []) if isinstance(each, dict)),
    ]


def planned(drafts: Sequence[MemoryDraft], known: Iterable[Memory], equal: Iterable[Memory]) -> Plan:
    """Decide what becomes of the drafts of one file. `known` came from their places, `equal` say what they say."""
    plan = _Planning()
    for memory in (*known, *equal):
        plan.memories.setdefault(memory.id, memory)
    holders = {
        str(place.get("source_key")): memory.id
        for memory in plan.memories.values()
        for place in places(memory.metadata)
    }
    rest = [draft for draft in drafts if not plan.is_settled(draft, holders.get(draft.metadata["source_key"]))]
    said: dict[Owner, str] = {}
    for memory in plan.memories.values():
        if memory.id not in plan.content:
            said.setdefault((memory.content_hash, memory.scope.value, memory.resource_id), memory.id)
    for draft in rest:
        plan.take(draft, said.get(_owner(draft)))
    return plan.result()


@dataclass(slots=True)
class _Planning:
    """The plan while it is made: `metadata` and `content` are what memories will have."""

    memories: dict[str, Memory] = field(default_factory=dict)
    metadata: dict[str, Json] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)
    fresh: dict[Owner, MemoryDraft] = field(default_factory=dict)
    named: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    same: int = 0
    rewritten: int = 0

    def is_settled(self, draft: MemoryDraft, memory_id: str | None) -> bool:
        """Say whether the memory that came from this very place takes the draft, and if so, let it."""
        memory = self.memories.get(memory_id or "")
        if memory is None or (memory.scope, memory.resource_id) != (draft.scope, draft.resource_id):
            return False
        about = self.about(memory)
        said, imported = content_hash(draft.content), about.get("source_hash", memory.content_hash)
        if said in {memory.content_hash, imported}:  # the file is unchanged, or says what the memory was rewritten to
            self.same += 1
            if said != imported:
                self.metadata[memory.id] = {**about, "source_hash": said}
            return True
        if len(places(about)) > 1:  # the text still stands elsewhere: this place gets a note of its own
            kept = [place for place in places(about) if place.get("source_key") != draft.metadata["source_key"]]
            self.metadata[memory.id] = _placed(about, kept)
            return False
        if imported != memory.content_hash:
            self.rewritten += 1
            return True
        self.content[memory.id] = draft.content
        self.metadata[memory.id] = {**about, **self.imported(draft)}
        return True

    def take(self, draft: MemoryDraft, memory_id: str | None) -> None:
        """Note that a memory says this already, or that it is new."""
        place = places(draft.metadata)[0]
        names = tuple(name for name in (draft.name, *draft.aliases) if name is not None)
        if memory_id is not None:
            self.same += 1
            about = self.about(self.memories[memory_id])
            held = places(about)
            new = place["source_key"] not in {each.get("source_key") for each in held}
            if held and str(held[0]["source_key"]).startswith(EARLIER):
                self.metadata[memory_id] = {**about, **self.imported(draft)}
            elif held and new and len(held) <= MAX_ALSO:
                self.metadata[memory_id] = _placed(about, [*held, place])
            if names and new:
                self.named.append((memory_id, names))
        elif (owner := _owner(draft)) in self.fresh:
            first = self.fresh[owner]
            self.same += 1
            held = places(first.metadata)
            if len(held) <= MAX_ALSO:
                metadata = _placed(first.metadata, [*held, place])
                self.fresh[owner] = replace(first, aliases=(*first.aliases, *names), metadata=metadata)
        else:
            self.fresh[owner] = replace(draft, metadata=_sorted(self.imported(draft)))

    def about(self, memory: Memory) -> Json:
        """Return the metadata that a memory will have, as far as is decided."""
        return self.metadata.get(memory.id, memory.metadata)

    def imported(self, draft: MemoryDraft) -> Json:
        """Return a draft's metadata with what it says now, by which a later rewriting is told."""
        return {**draft.metadata, "source_hash": content_hash(draft.content)}

    def result(self) -> Plan:
        """Return the plan."""
        return Plan(
            fresh=tuple(self.fresh.values()),
            changes=tuple(
                Change(memory_id=memory_id, metadata=_sorted(metadata), content=self.content.get(memory_id))
                for memory_id, metadata in self.metadata.items()
            ),
            named=tuple(self.named),
            updated=len(self.content),
            same=self.same,
            rewritten=self.rewritten,
        )


def departed(memories: Iterable[Memory], gone: Collection[str]) -> tuple[list[str], list[Change]]:
    """Return what becomes of memories that stood in places which are gone: which end, and which still stand elsewhere.

    One that was rewritten in the store since stays: it is no longer what the file said.
    """
    ended: list[str] = []
    moved: list[Change] = []
    for memory in memories:
        left = [place for place in places(memory.metadata) if place.get("source_key") not in gone]
        if left:
            moved.append(Change(memory_id=memory.id, metadata=_placed(memory.metadata, left)))
        elif memory.metadata.get("source_hash", memory.content_hash) == memory.content_hash:
            ended.append(memory.id)
    return ended, moved


def differ_in_places(versions: Iterable[Json]) -> bool:
    """Say whether versions of a memory's metadata tell the same but for where its text stands.

    Two devices that import the same folder write such versions, and there is nothing in them to decide.
    """
    told = [{key: each[key] for key in each if key not in (*PLACE, ALSO, "source_hash")} for each in versions]
    return all(each == told[0] for each in told)


def names_for(draft: MemoryDraft) -> Iterator[str]:
    """Yield the names that a note may have, the best first: its own, then with more and more of the file's path."""
    if draft.name is None:
        return
    yield draft.name
    path = path_of(str(draft.metadata.get("path") or draft.metadata.get("source") or ""))
    parts = [part for part in path.parts if part != "/"]
    for folders in range(1, SHOWN_FOLDERS + 1):
        if folders < len(parts):
            shown = "".join(each if each.isprintable() else " " for each in "/".join(parts[-1 - folders :]))
            short = shown if len(shown) <= SHOWN_CHARS else f"…{shown[-SHOWN_CHARS:]}"
            yield numbered(draft.name, f" ({' '.join(short.split())})")
    yield numbered(draft.name, f" ({digest(str(draft.metadata.get('source_key')))[:8]})")


def with_free_names(draft: MemoryDraft, taken: set[str]) -> tuple[MemoryDraft, bool, int]:
    """Return a note with names that no other memory has, adding them to `taken`.

    Also returns whether its name had to be another one, and how many of its aliases belong to other memories.
    """
    name = next((name for name in names_for(draft) if name not in taken), None)
    free = tuple(alias for alias in dict.fromkeys(draft.aliases) if alias not in taken and alias != name)
    taken.update(free if name is None else (name, *free))
    lost = len(set(draft.aliases) - {draft.name, name}) - len(free)
    return replace(draft, name=name, aliases=free), name != draft.name, max(lost, 0)


def _owner(draft: MemoryDraft) -> Owner:
    return content_hash(draft.content), draft.scope.value, draft.resource_id


def _placed(metadata: Json, found: Sequence[Json]) -> Json:
    """Return metadata with these places, the first one as its own."""
    rest = {key: value for key, value in metadata.items() if key not in PLACE and key != ALSO}
    return _sorted({**rest, **found[0], **({ALSO: [*found[1:]]} if len(found) > 1 else {})})


def _sorted(metadata: Json) -> Json:
    """Return metadata with its keys in order, as they are stored."""
    return {key: _in_order(metadata[key]) for key in sorted(metadata)}


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return _sorted(value)
    return [_in_order(each) for each in value] if isinstance(value, list | tuple) else value
