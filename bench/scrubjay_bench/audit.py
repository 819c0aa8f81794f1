"""Draw memories at random from what the pattern distiller learns, for a person to read and mark.

`python -m scrubjay_bench.audit FILE` distils a source the product can import (a LoCoMo file, a transcript) or a file of
event drafts (JSON lines, as the sample conversation), draws with a seed, and prints each memory with the place it was
read from. `--marks` leaves the words out, for data whose licence does not allow them to be copied. Summary figures go
to stderr: memories per turn, and for LoCoMo the share of the turns named as evidence that some grip covers.

`python -m scrubjay_bench.audit devmem FILE` draws from the file that `scrubjay bench devmem --json FILE` wrote, so from
what the product itself kept, and prints the table of docs/distiller-audit.md with an empty mark and reason in each row.
Whether a memory matches a label is left out: who reads should judge the memory and not the label.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path

import msgspec

from scrubjay.distill import Observation, distill
from scrubjay.distill.observe import SAID
from scrubjay.importers import parse
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Event, EventDraft, EventType, Role

ROLES = {EventType.USER_MESSAGE: Role.USER, EventType.TOOL_RESULT: Role.TOOL, EventType.SESSION_END: Role.SYSTEM}


def drafts(path: Path) -> Sequence[EventDraft]:
    """Read the events of a file. Raises InvalidError when it is of no format the product imports."""
    data = path.read_bytes()
    lines = [line for line in data.splitlines() if line.strip()]
    try:
        return [msgspec.json.decode(line, type=EventDraft) for line in lines]
    except msgspec.MsgspecError:
        return parse(path.name, data).events


def events(of: Iterable[EventDraft]) -> Iterator[Event]:
    """Turn drafts into events as the daemon would, except for ids: those name the place in the source."""
    shared = {field.name for field in fields(Event)} & {field.name for field in fields(EventDraft)}
    for line, draft in enumerate(of, start=1):
        given = {name: getattr(draft, name) for name in shared}
        place = draft.metadata.get("dia_id")
        given |= {
            "id": f"{draft.session_id.split('/')[1]}/{place}" if isinstance(place, str) else f"line {line}",
            "ts": draft.ts if draft.ts is not None else Millis(0),
            "role": draft.role or ROLES.get(draft.type, Role.ASSISTANT),
            "dedupe_key": draft.dedupe_key or str(line),
        }
        yield Event(device="audit", **given)


def learned(of: Iterable[Event]) -> tuple[list[Observation], int]:
    """Distil session by session; return the memories, and how many turns were read."""
    made: list[Observation] = []
    turns = 0
    for _, session in groupby(of, key=lambda event: event.session_id):
        said = list(session)
        turns += sum(event.type in SAID for event in said)
        made += distill(said).observations
    return made, turns


def draw(made: Sequence[Observation], count: int, seed: int) -> list[Observation]:
    """Return `count` memories at random: those whose place hashes lowest under the seed.

    Unlike a shuffle, this draws nearly the same memories again after a change that adds or drops a few others.
    """
    ranked = sorted(made, key=lambda memory: _rank(memory, seed))
    return ranked[:count]


def _rank(memory: Observation, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {memory.event_id_start} {memory.span_start}".encode()).digest()


def evidence(path: Path) -> set[str]:
    """Return the turns that the questions of a LoCoMo file name as evidence, as `sample/dia_id`; empty for others."""
    try:
        samples = json.loads(path.read_bytes())
    except ValueError:
        return set()
    found = samples if isinstance(samples, list) else [samples]
    return {
        f"{sample['sample_id']}/{turn}"
        for sample in found
        if isinstance(sample, dict) and "qa" in sample
        for question in sample["qa"]
        for entry in question.get("evidence", ())
        for turn in str(entry).replace(";", " ").split()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A memory that a run over labelled sessions kept: its text, the turns it was read from, and its excerpt."""

    content: str
    type: str
    scope: str
    trust: str
    turns: tuple[str, ...]
    excerpt: str


def kept(path: Path) -> list[Kept]:
    """Read the memories of a run. Raises InvalidError when the file is of no such run."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Run)
    except msgspec.MsgspecError as error:
        raise InvalidError(
            f"{path.name} is no run over labelled sessions: {error}",
            hint="scrubjay bench devmem --data FOLDER --json FILE writes one",
        ) from error
    return [memory for of in found.details.values() for memory in of.memories]


class _Details(msgspec.Struct):
    memories: list[Kept]


class _Run(msgspec.Struct):
    details: dict[str, _Details]


def draw_kept(made: Sequence[Kept], count: int, seed: int) -> list[Kept]:
    """Return `count` memories at random, as `draw` does: a change of a few others leaves most of the draw as it was."""

    def rank(memory: Kept) -> bytes:
        return hashlib.sha256(f"{seed} {' '.join(memory.turns)} {memory.excerpt}".encode()).digest()

    return sorted(made, key=rank)[:count]


def marking_table(drawn: Sequence[Kept], *, places_only: bool) -> str:
    """Return a table in which somebody marks each memory; without the words, `places_only`, as it may be published."""
    words = () if places_only else ("memory", "read from")
    heads = ("#", "place", "type", "scope", "trust", *words, "mark", "reason")
    lines = [f"| {' | '.join(heads)} |", f"|--:|{'---|' * (len(heads) - 1)}"]
    for number, memory in enumerate(drawn, start=1):
        said = () if places_only else (_cell(memory.content), _cell(memory.excerpt))
        cells = (str(number), ", ".join(memory.turns), memory.type, memory.scope, memory.trust, *said, "", "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(said: str) -> str:
    """Return a text as the cell of a table: on one line, its bars escaped."""
    return " ".join(said.replace("\\", "\\\\").replace("|", "\\|").split())


def _devmem(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scrubjay_bench.audit devmem", description=__doc__)
    parser.add_argument("file", type=Path, help="what `scrubjay bench devmem --json FILE` wrote")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="how many (default 100; 0: all, in order)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--marks", action="store_true", help="print places, types and scopes, and no words")
    given = parser.parse_args(argv)
    made = kept(given.file)
    drawn = draw_kept(made, given.draw, given.seed) if given.draw else made
    print(marking_table(drawn, places_only=given.marks))
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(memory.type for memory in made).most_common())
    print(f"{len(drawn)} of {len(made)} memories, seed {given.seed}; in all: {kinds}", file=sys.stderr)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    line = sys.argv[1:] if argv is None else argv
    if line[:1] == ["devmem"]:
        return _devmem(line[1:])
    parser = argparse.ArgumentParser(prog="python -m scrubjay_bench.audit", description=__doc__)
    parser.add_argument("file", type=Path, help="a LoCoMo file, a transcript, or event drafts as JSON lines")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="how many (default 100; 0: all, in order)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--marks", action="store_true", help="print places, types and spans, and no words")
    given = parser.parse_args(line)
    said = list(events(drafts(given.file)))
    made, turns = learned(said)
    drawn = draw(made, given.draw, given.seed) if given.draw else made
    for number, memory in enumerate(drawn, start=1):
        place = (
            f"{number:3} {memory.event_id_start:16} {memory.span_start:4}:{memory.span_end:<4} {memory.type.value:10}"
        )
        print(place if given.marks else f"{place} {memory.confidence:.2f} {memory.content}")
    kinds = ", ".join(f"{kind.value} {n}" for kind, n in Counter(memory.type for memory in made).most_common())
    print(f"{len(made)} memories from {turns} turns ({len(made) / max(turns, 1):.3f} each): {kinds}", file=sys.stderr)
    named = evidence(given.file) & {event.id for event in said}
    if named:
        covered = len(named & {memory.event_id_start for memory in made})
        print(f"{covered} of {len(named)} evidence turns covered ({covered / len(named):.3f})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
