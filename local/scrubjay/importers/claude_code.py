r"""Claude Code transcripts: one session as a tree of lines, read along the branch that was kept.

A line names its parent. A rewind makes a second child, and what hangs on the older one was taken back by the person;
so from the last message we walk up, and leave out every prompt beside that path with all that answers it (`branch`).
Tool calls that ran in parallel also lie beside the path; they hold no prompt and stay. A line whose parent is unknown
(resumed, compacted, or an older format) follows the line before it. What a line says is `claude_line`'s matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scrubjay.importers.claude_line import LineMapper, MappedLine
from scrubjay.importers.parsing import (
    Parsed,
    SourceFormat,
    clean,
    counted,
    json_objects,
)
from scrubjay_shared.records import EventDraft


def parse_claude_code(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a transcript. Never fails: what cannot be read is counted in `skipped`."""
    mapper = LineMapper(name=name, project=project)
    read: list[MappedLine] = []
    seen: set[str] = set()
    for found in json_objects(data, mapper.skipped):
        uuid = clean(found.get("uuid"))
        if uuid and uuid in seen:
            mapper.skipped["duplicate"] += 1
        elif found.get("isSidechain") is True:
            mapper.skipped["sidechain"] += 1
        else:
            seen.add(uuid)
            read.append(mapper.map(found))
    taken_back = abandoned(read)
    mapper.skipped["branch"] += sum(bool(line.drafts) for line in taken_back.values())
    events = tuple(merged(line for index, line in enumerate(read) if index not in taken_back))
    return Parsed(format=SourceFormat.CLAUDE_CODE, events=events, skipped=counted(mapper.skipped))


def abandoned(read: list[MappedLine]) -> dict[int, MappedLine]:
    """Return the lines, by index, that lie on a branch the person left: at or below a prompt beside the kept path."""
    indexes: dict[str, int] = {}
    parents: dict[int, int | None] = {}
    last: int | None = None
    for i, line in enumerate(read):
        if line.uuid:
            parents[i] = indexes.get(line.parent, last)
            indexes[line.uuid] = last = i
    kept: set[int] = set()
    step = max((i for i in parents if read[i].talk), default=None)
    while step is not None:
        kept.add(step)
        step = parents[step]
    left: set[int] = set()
    for i, parent in parents.items():
        if i not in kept and (read[i].prompt or parent in left):
            left.add(i)
    return {i: read[i] for i in sorted(left)}


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
