"""What becomes of a file and of the store when either has changed since they agreed. Pure.

Each entry is merged by itself. Changed on one side, it follows there. Changed on both, the store's stays, and the
file's text is kept below it, marked, until somebody decides. An edit outlives a deletion. Nothing is forgotten: what
left the file is archived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scrubjay.policy.vault import VaultPolicy
from scrubjay.vault.markdown import Entry
from scrubjay.vault.matching import Known, digest, matched
from scrubjay.vault.rendering import Edits, Insertion, heading_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory of a vault as the store has it. One that is not `is_current` was archived, superseded or moved away."""

    content: str
    topic: str = ""
    is_current: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """An entry of the file that the store has not: by its place in the file."""

    place: int
    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an entry of the file says of a memory. None leaves that as it is; `revives` takes it out of the archive."""

    memory_id: str
    text: str | None = None
    section: str | None = None
    revives: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What is to be done with the store (`new`, `changed`, `archived`) and with the file (`edits`).

    `ids` are the memories of the file's entries by place. `gone` are memories whose entries are gone from the file and
    that wait to be confirmed; `known` are the places of what is known of these. `pairs` says which known entry an entry
    of the file is. `conflicts` counts texts kept in the file, new ones and old ones.
    """

    new: tuple[New, ...] = ()
    changed: tuple[Change, ...] = ()
    archived: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    edits: Edits = field(default_factory=lambda: Edits(replaced={}, removed=frozenset(), kept={}))
    ids: Mapping[int, str] = field(default_factory=dict)
    known: tuple[int, ...] = ()
    pairs: Mapping[int, int] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    conflicts: int = 0


def merged(
    known: Sequence[Known],
    found: Sequence[Entry],
    stored: Mapping[str, Stored],
    policy: VaultPolicy,
    *,
    is_there: bool = True,
    confirmed: bool = False,
    put_back: bool = False,
    is_whole: bool = False,
) -> Merge:
    """Return the merge of a file's entries with the memories of the store, given what both were.

    `is_there` says whether the file exists. `confirmed` archives what is gone from it however much that is; `put_back`
    writes it there again instead. `is_whole` says that the file is one entry, however much of it is rewritten.
    """
    if is_whole:
        return _whole(known, found, stored, is_there=is_there)
    pairs = matched(known, found, {key: one.content for key, one in stored.items()}, policy)
    pairs = {place: old for place, old in pairs.items() if not found[place].is_kept}
    step = _Step(known, found, stored)
    for place, entry in enumerate(found):
        if entry.is_kept:
            step.conflicts += 1
        elif place in pairs:
            step.seen(place, known[pairs[place]])
        else:
            step.added(place)
    standing = {known[old].memory_id for old in pairs.values()}
    left = [
        old
        for old, one in enumerate(known)
        if one.memory_id and old not in pairs.values() and one.memory_id not in standing
    ]
    mentioned = {one.memory_id for one in known}
    waits = [old for old in left if _is_current(stored, known[old].memory_id)]
    holds = not confirmed and (
        len(waits) > max(policy.gone_least - 1, policy.gone_share * sum(bool(one.memory_id) for one in known))
        or (waits and not is_there)
        or (waits and not any(not entry.is_kept for entry in found))
    )
    for old in waits:
        step.missing(known[old], put_back=put_back, holds=bool(holds))
    for memory_id, one in stored.items():
        if one.is_current and memory_id not in mentioned and memory_id not in step.adopted:
            step.insert(memory_id)
    held = set(step.gone)
    return step.result(tuple(old for old in waits if known[old].memory_id in held), pairs)


def _whole(known: Sequence[Known], found: Sequence[Entry], stored: Mapping[str, Stored], *, is_there: bool) -> Merge:
    """Merge a file that is one entry, which is the latest memory; earlier ones are archived.

    What is gone from the file while that exists is archived without being asked.
    """
    current = [memory_id for memory_id, one in stored.items() if one.is_current]
    before = next((one for one in known if one.memory_id or not current), None)
    if current and (before is None or before.memory_id != current[-1]):
        agreed = "" if before is None else before.text
        before = Known(memory_id=current[-1], section=digest(""), text=agreed, topic=digest(""), content="")
    step = _Step(known, found, stored)
    step.conflicts = sum(entry.is_kept for entry in found)
    places = [place for place, entry in enumerate(found) if not entry.is_kept]
    if places and before is not None:
        step.seen(places[0], before)
    elif places:
        step.added(places[0])
    elif before is not None and _is_current(stored, before.memory_id):
        step.missing(before, put_back=False, holds=not is_there and before in known)
    step.archive(current[:-1])
    return step.result((0,) if step.gone else (), dict.fromkeys(places[:1], 0) if known else {})


def _is_current(stored: Mapping[str, Stored], memory_id: str) -> bool:
    return memory_id in stored and stored[memory_id].is_current


class _Step:
    """The merge under way."""

    def __init__(self, known: Sequence[Known], found: Sequence[Entry], stored: Mapping[str, Stored]) -> None:
        self._found = found
        self._stored = stored
        self._new: list[New] = []
        self._changed: dict[str, Change] = {}
        self._archived: list[str] = []
        self._replaced: dict[int, str] = {}
        self._removed: set[int] = set()
        self._kept: dict[int, str] = {}
        self._inserted: list[Insertion] = []
        self._ids: dict[int, str] = {}
        self._refused: dict[int, str] = {}
        self._mentioned = {one.memory_id for one in known}
        self.gone: list[str] = []
        self.adopted: set[str] = set()
        self.conflicts = 0
        self._by_text: dict[tuple[str, str], list[str]] = {}
        for memory_id, one in stored.items():
            if memory_id not in self._mentioned:
                self._by_text.setdefault((digest(one.content), digest(one.topic)), []).append(memory_id)

    def seen(self, place: int, known: Known) -> None:
        """Merge an entry that was there before."""
        entry = self._found[place]
        is_edited = digest(entry.text) != known.text
        if known.refused and not is_edited:
            self._refused[place] = known.refused
        if not known.memory_id:
            if is_edited:
                self.added(place)
            return
        memory = self._stored.get(known.memory_id)
        if memory is None or not memory.is_current:
            self._ended(place, known, memory, is_edited=is_edited)
            return
        self._ids[place] = known.memory_id
        is_moved = digest(entry.section) != known.section
        if digest(memory.topic) != known.topic and not (is_edited or is_moved):
            self._removed.add(place)
            self.insert(known.memory_id)
            return
        text = self._of_both(place, known, memory) if is_edited or digest(memory.content) != known.content else None
        section = entry.section if is_moved else None
        if text is not None or section is not None:
            self._changed.setdefault(known.memory_id, Change(memory_id=known.memory_id, text=text, section=section))

    def _of_both(self, place: int, known: Known, memory: Stored) -> str | None:
        """Merge the text of an entry that changed on a side or on both. Returns what the store is to take."""
        entry = self._found[place]
        is_edited = digest(entry.text) != known.text
        if digest(memory.content) == known.content:
            return entry.text
        if digest(entry.text) != digest(memory.content):
            self._replaced[place] = memory.content
            if is_edited:
                self._kept[place] = entry.text
                self.conflicts += 1
        return None

    def _ended(self, place: int, known: Known, memory: Stored | None, *, is_edited: bool) -> None:
        """Take an entry out of the file whose memory is gone from the store; an edited one holds again."""
        if not is_edited:
            self._removed.add(place)
        elif memory is None or known.memory_id in self._changed:
            self._new.append(_new(place, self._found[place]))
        else:
            entry = self._found[place]
            self._ids[place] = known.memory_id
            self._changed[known.memory_id] = Change(
                memory_id=known.memory_id, text=entry.text, section=entry.section, revives=True
            )

    def added(self, place: int) -> None:
        """Take an entry of the file for a memory of the same words that no entry stands for, else for a new one."""
        entry = self._found[place]
        same = self._by_text.get((digest(entry.text), digest(entry.section)))
        if not same:
            self._new.append(_new(place, entry))
            return
        memory_id = same.pop()
        self.adopted.add(memory_id)
        self._ids[place] = memory_id
        if not self._stored[memory_id].is_current:
            self._changed[memory_id] = Change(memory_id=memory_id, revives=True)

    def missing(self, known: Known, *, put_back: bool, holds: bool) -> None:
        """Archive a memory whose entry is gone from the file, unless it has another text by now or many are gone."""
        memory = self._stored[known.memory_id]
        if holds and not put_back:
            self.gone.append(known.memory_id)
        elif put_back or digest(memory.content) != known.content:
            self.insert(known.memory_id)
        elif known.memory_id not in self._archived:
            self._archived.append(known.memory_id)

    def archive(self, memory_ids: Sequence[str]) -> None:
        """Archive memories that the file is not about any more."""
        self._archived += [one for one in memory_ids if one not in self._archived]

    def insert(self, memory_id: str) -> None:
        """Write a memory into the file that has no entry there."""
        memory = self._stored[memory_id]
        if all(one.key != memory_id for one in self._inserted):
            section = heading_text(memory.topic, 200)
            self._inserted.append(Insertion(key=memory_id, section=section, text=memory.content))

    def result(self, held: tuple[int, ...], pairs: Mapping[int, int]) -> Merge:
        """Return the merge."""
        return Merge(
            new=tuple(self._new),
            changed=tuple(self._changed.values()),
            archived=tuple(self._archived),
            gone=tuple(self.gone),
            edits=Edits(
                replaced=self._replaced,
                removed=frozenset(self._removed),
                kept=self._kept,
                inserted=tuple(self._inserted),
            ),
            ids=self._ids,
            known=held,
            pairs=pairs,
            refused=self._refused,
            conflicts=self.conflicts,
        )


def _new(place: int, entry: Entry) -> New:
    return New(place=place, section=entry.section, text=entry.text)
