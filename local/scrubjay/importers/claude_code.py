r"""Claude Code transcripts: one session as a tree of lines, of which what the person took back is left out.

A line names its parent. A rewind is known by its shape alone: where one prompt stood, the person typed another one, and
nothing was added to the first any more. So of two prompts below the same message the earlier one was taken back, with
all that hangs on it, unless a line was added to it after the later one began: then two terminals wrote side by side.
Nothing else is left out: not what lies beside the path from the last message (tools that ran in parallel, hooks), nor
what a compaction cut off from it. A compaction writes rows of before again, or names those that it kept: what hangs
on them from then on follows the compaction, and takes nothing back. A line may stand before its parent, or have one
that is nowhere. What a line says is `claude_line`'s matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from scrubjay.importers.claude_line import LineMapper, MappedLine
from scrubjay.importers.parsing import (
    Parsed,
    SourceFormat,
    clean,
    counted,
    json_objects,
)
from scrubjay_shared.records import EventDraft, EventType


def parse_claude_code(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a transcript. Never fails: what cannot be read is counted in `skipped`."""
    mapper = LineMapper(name=name, project=project)
    read: list[MappedLine] = []
    seen: dict[str, MappedLine] = {}
    for found in json_objects(data, mapper.skipped):
        uuid = clean(found.get("uuid"))
        if uuid and uuid in seen:
            mapper.skipped["duplicate"] += 1
            read.append(replace(seen[uuid], parent=mapper.parent_of(found), drafts=()))
        elif found.get("isSidechain") is True:
            mapper.skipped["sidechain"] += 1
        else:
            read.append(mapper.map(found))
            seen[uuid] = read[-1]
    told_again = delivered(read)
    mapper.skipped["bookkeeping"] += len(told_again)
    read = [line for row, line in enumerate(read) if row not in told_again]
    left = taken_back(read)
    mapper.skipped["branch"] += sum(bool(read[row].drafts) for row in left)
    events = tuple(merged(line for row, line in enumerate(read) if row not in left))
    return Parsed(
        format=SourceFormat.CLAUDE_CODE,
        events=events,
        skipped=counted(mapper.skipped),
        taken_back=tuple(
            draft.text for row in sorted(left) for draft in read[row].drafts if draft.type is EventType.USER_MESSAGE
        ),
    )


def delivered(read: Sequence[MappedLine]) -> set[int]:
    """Return the rows of the queue whose words a later line tells, or that the person took out to edit them."""
    waiting: list[int] = []
    unread: dict[str, list[int]] = defaultdict(list)
    found: set[int] = set()
    for row, line in enumerate(read):
        if line.queue == "popAll":
            found.update(waiting)
            waiting.clear()
        elif line.queue in ("dequeue", "remove"):
            del waiting[:1]
        for draft in line.drafts:
            words = " ".join(draft.text.split())
            if line.queue:
                waiting.append(row)
                unread[words].append(row)
            elif draft.type is EventType.USER_MESSAGE and unread[words]:
                found.add(unread[words].pop(0))
    return found


UNNAMED = MappedLine(uuid="", parent="", talk=True)
"""A line that only others name."""


@dataclass(slots=True)
class _Place:
    """A line in the tree, or one that a compaction kept: where it stands, what is above it, what it is below.

    `begins` and `ends` are the first and the last row of all that hangs on it. `below` is the message that a prompt
    follows, whatever stands between them. A line that is named and is nowhere was likely below the one before it, which
    then was gone on with; but it is `guessed`, and taken back with nothing.
    """

    row: int
    line: MappedLine
    above: int | None = None
    children: list[int] = field(default_factory=list)
    below: int | None = None
    begins: int = 0
    ends: int = 0
    guessed: bool = False
    left: bool = False


def taken_back(read: Sequence[MappedLine]) -> set[int]:
    """Return the rows that the person took back. Of a line that stands there twice, its last place says so."""
    places = _tree(read)
    order = _downwards(places)
    for at in reversed(order):
        place = places[at]
        place.begins = min([place.row, *(places[child].begins for child in place.children)])
        place.ends = max([place.row, *(places[child].ends for child in place.children)])
    # A compaction that does not say what it follows may follow any branch that was there.
    compacted = [place for place in places if place.guessed and place.line.boundary]
    rivals: dict[int, list[_Place]] = defaultdict(list)
    for at in order:
        place = places[at]
        if place.above is not None:
            parent = places[place.above]
            place.below = place.above if parent.line.stays or parent.above is None else parent.below
            if place.line.prompt and place.below is not None:
                rivals[place.below].append(place)
    for prompts in rivals.values():
        prompts.sort(key=lambda place: place.begins)
        for number, place in enumerate(prompts):
            rival = next((other for other in prompts[number + 1 :] if other.line.uuid != place.line.uuid), None)
            place.left = (
                rival is not None
                and place.ends < rival.begins
                and not any(place.row < each.row and each.ends > rival.begins for each in compacted)
            )
    for at in order:
        place = places[at]
        place.left |= place.above is not None and not place.guessed and places[place.above].left
    last = {place.line.uuid: place.left for place in places if place.line.uuid}
    return {row for row, line in enumerate(read) if last.get(line.uuid)}


def _tree(read: Sequence[MappedLine]) -> list[_Place]:
    """Return the places of the lines, each below its parent: the last line of that name before it, else the next."""
    places: list[_Place] = []
    named: dict[str, int] = {}
    early: dict[str, list[int]] = defaultdict(list)
    for row, line in enumerate(read):
        if not line.uuid:
            continue
        at = len(places)
        above = named.get(line.parent)
        guessed = above is None and line.boundary
        if guessed:
            above = at - 1 if at else None
        elif above is None and line.parent:
            early[line.parent].append(at)
        places.append(_Place(row=row, line=line, above=above, guessed=guessed))
        for child in early.pop(line.uuid, ()):
            places[child].above = at if child != at else None
        named[line.uuid] = at
        for kept in _kept(line, places, named):
            named[kept] = len(places)
            places.append(_Place(row=row, line=UNNAMED, above=at))
    for waiting in early.values():
        first = waiting[0]
        for child in waiting:
            places[child].above = len(places)
        places.append(_Place(row=places[first].row, line=UNNAMED, above=first - 1 if first else None, guessed=True))
    return places


def _kept(line: MappedLine, places: list[_Place], named: dict[str, int]) -> list[str]:
    """Return the lines that a compaction says it kept: the one it follows, and those from one that it names upwards."""
    found = [line.parent] if line.boundary and line.parent in named else []
    first, last = line.preserved
    at = named.get(last)
    segment: list[str] = []
    while at is not None and len(segment) < len(places):
        segment.append(places[at].line.uuid)
        if segment[-1] == first:
            return [uuid for uuid in dict.fromkeys([*found, *segment]) if uuid]
        at = places[at].above
    return list(dict.fromkeys([*found, *segment[:1]]))


def _downwards(places: list[_Place]) -> list[int]:
    """Return the places so that each comes after the one above it, and tie them together; a circle is cut open."""
    for at, place in enumerate(places):
        if place.above is not None:
            places[place.above].children.append(at)
    order: list[int] = []
    met = [False] * len(places)
    for start in [*(at for at, place in enumerate(places) if place.above is None), *range(len(places))]:
        if met[start]:
            continue
        if (above := places[start].above) is not None:
            places[above].children.remove(start)
            places[start].above = None
        waiting = [start]
        while waiting:
            at = waiting.pop()
            met[at] = True
            order.append(at)
            waiting += places[at].children
    return order


def merged(read: Iterator[MappedLine]) -> Iterator[EventDraft]:
    """Yield the events in order, the text lines of one assistant message as one event under its last line's key.

    The last, because a transcript that was still being written is imported again later, and its new words must not
    be taken for the ones already known.
    """
    held: EventDraft | None = None
    held_id = ""
    for line in read:
        for draft in line.drafts:
            if held and held_id and line.message_id == held_id:
                held = replace(draft, text=f"{held.text}\n{draft.text}", ts=held.ts)
                continue
            if held:
                yield held
            held, held_id = draft, line.message_id
    if held:
        yield held
