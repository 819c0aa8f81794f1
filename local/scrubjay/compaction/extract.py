"""What an archive quotes: the words of a session that say most of it, each at its place, and how they read together.

Without a language model. A host that made a summary itself is quoted whole; else the prompts, what was settled, and the
last words before the compaction are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec

from scrubjay.dates import MONTHS
from scrubjay.distill import distill
from scrubjay.distill.prose import sentences
from scrubjay.distill.reading import Reader
from scrubjay.distill.worth import specifics
from scrubjay.policy import CompactionPolicy, DistillPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Json, Role, Trust

SOURCE = "compaction/1"
"""The extractor's name and version, the beginning of `Grip.source`."""

SAID = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP, EventType.NOTE)
"""The events that are quoted. What a tool printed is found by its words, and says little by itself."""


class Part(StrEnum):
    """The parts of an archive, in the order in which they are read."""

    SUMMARY = "summary"
    ASKED = "asked"
    SETTLED = "settled"
    LAST = "last"


HEADINGS = {
    Part.SUMMARY: "What the agent itself kept:",
    Part.ASKED: "Asked:",
    Part.SETTLED: "Settled:",
    Part.LAST: "Last said:",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One quotation: the words at `[start:end]` of an event's text. The lines of most `weight` are kept."""

    part: Part
    event_id: str
    start: int
    end: int
    text: str
    speaker: str
    trust: Trust
    ts: Millis
    weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the first line of an archive says. Times in UTC milliseconds; `utc_offset` is that of the last event."""

    session_id: str
    agent: str
    project: str | None
    events: int
    first: Millis
    last: Millis
    utc_offset: int

    def metadata(self) -> Json:
        """Return it as the metadata of the archive."""
        return {name: value for name, value in sorted(asdict(self).items()) if value is not None}

    @classmethod
    def of(cls, metadata: Json) -> About | None:
        """Return it as the metadata of an archive says it, None when that says something else."""
        try:
            return msgspec.convert({"project": None, **metadata}, cls)
        except msgspec.ValidationError:
            return None


def source_of(part: Part) -> str:
    """Return the `Grip.source` of a quotation."""
    return f"{SOURCE} {part.value}"


def part_of(source: str) -> Part:
    """Return the part that a quotation belongs to, by its grip's source."""
    name = source.rpartition(" ")[2]
    return next((part for part in Part if part.value == name), Part.LAST)


def candidates(
    events: Sequence[Event], policy: CompactionPolicy, distilling: DistillPolicy, reader: Reader
) -> list[Line]:
    """Return what may be quoted of some events of one session, in their order."""
    found: list[Line] = []
    for event in events:
        if event.role is Role.USER and (span := _opening(event.text, policy.asked_chars)) is not None:
            words = event.text[span[0] : span[1]]
            detail, marks = specifics(words)
            found.append(_line(Part.ASKED, event, *span, weight=detail + marks))
    by_id = {event.id: event for event in events}
    for observation in distill(events, policy=distilling, reader=reader).observations:
        if observation.event_id_start != observation.event_id_end:
            continue
        weight = observation.salience * observation.confidence
        event = by_id[observation.event_id_start]
        found.append(_line(Part.SETTLED, event, observation.span_start, observation.span_end, weight=weight))
    found += [
        _line(Part.LAST, event, *span)
        for event in events[-policy.last :]
        if (span := _opening(event.text, policy.last_chars)) is not None
    ]
    return found


def summary(event: Event) -> Line:
    """Return the quotation of the summary that a host made."""
    return _line(Part.SUMMARY, event, 0, len(event.text))


def chosen(found: Sequence[Line], policy: CompactionPolicy) -> list[Line]:
    """Return what is quoted of all that may be: of each part the lines of most weight, in their order.

    Where a host made a summary, the last of them is all that is quoted. Nothing is quoted twice.
    """
    summaries = [line for line in found if line.part is Part.SUMMARY]
    if summaries:
        return summaries[-1:]
    settled = _best([line for line in found if line.part is Part.SETTLED], policy.settled)
    taken = {(line.event_id, line.start) for line in settled}
    asked = _best([line for line in found if line.part is Part.ASKED and _free(line, taken)], policy.asked)
    taken |= {(line.event_id, line.start) for line in asked}
    last = [line for line in found if line.part is Part.LAST and _free(line, taken)][-policy.last :]
    return [*asked, *settled, *last]


def _free(line: Line, taken: Collection[tuple[str, int]]) -> bool:
    return (line.event_id, line.start) not in taken


def _best(lines: Sequence[Line], most: int) -> list[Line]:
    ranked = sorted(range(len(lines)), key=lambda at: (-lines[at].weight, at))
    return [lines[at] for at in sorted(ranked[:most])]


def rendered(about: About, lines: Iterable[Line]) -> str:
    """Return the text of an archive. Without lines, it says only what was compacted."""
    first, last = (_day(at, about.utc_offset) for at in (about.first, about.last))
    days = first if first == last else f"{first} to {last}"
    where = f" in {about.project}" if about.project else ""
    parts = [f"Session {about.session_id} of {about.agent}{where}, {days}, {about.events} events."]
    by_part: dict[Part, list[Line]] = {}
    for line in lines:
        by_part.setdefault(line.part, []).append(line)
    for part in Part:
        if part not in by_part:
            continue
        parts += ["", HEADINGS[part]]
        if part is Part.SUMMARY:
            parts += [line.text.strip() for line in by_part[part]]
        else:
            parts += [f"- {line.speaker}: {' '.join(line.text.split())}" for line in by_part[part]]
    return "\n".join(parts)


def _day(at: Millis, utc_offset: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC) + timedelta(minutes=utc_offset)
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def _line(part: Part, event: Event, start: int, end: int, *, weight: float = 0.0) -> Line:
    return Line(
        part=part,
        event_id=event.id,
        start=start,
        end=end,
        text=event.text[start:end],
        speaker=event.speaker,
        trust=event.trust,
        ts=event.ts,
        weight=weight,
    )


def _opening(text: str, most: int) -> tuple[int, int] | None:
    """Return where the first sentence of a text that says something stands, cut at a word; None where none does."""
    first = next(
        (span for span in sentences(text[: most * READ]) if len(text[span.start : span.end].split()) > 1), None
    )
    if first is None:
        return None
    end = first.end
    if end - first.start > most:
        cut = text.rfind(" ", first.start, first.start + most)
        end = cut if cut > first.start else first.start + most
    return first.start, end


READ = 8
"""A text is read for its first sentence so many times as far as that may be long: code may stand before it."""
