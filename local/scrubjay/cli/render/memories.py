"""Memories: one, a page of them, where one comes from, what was forgotten."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from scrubjay.api import (
    Entry,
    ForgetAllResponse,
    ForgetResponse,
    Place,
    Source,
    SupersedeResponse,
    WhyResponse,
)
from scrubjay.api.recall import REVIEWS
from scrubjay.cli import times
from scrubjay.cli.render.history import did, written_by
from scrubjay.cli.render.layout import dim, pairs, table_of
from scrubjay.cli.render.words import clean, counted, one_line, short
from scrubjay.intervals import said_at
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Memory, Scope, author_of

TABLE_WIDTH = 90
"""Columns from which memories stand in a table: id, date and type take 40, and names are up to 40 long."""

COPIES = 10
"""Copies of the store that `forget` names; who has more has a folder of them to look into."""


DOUBT = "may_supersede"
"""The metadata of a memory that may take the place of earlier ones: `scrubjay conflicts` lists these."""


def entry(found: Entry, labels: Mapping[str, str] = MappingProxyType({})) -> Text:
    """Return a memory with all that is known about it."""
    memory = found.memory
    belongs = f"{memory.scope.value} {_place_of(memory, labels)}".rstrip()
    rows = (
        ("id", memory.id),
        ("name", memory.name or ""),
        ("aliases", ", ".join(found.aliases)),
        ("type", f"{memory.type.value} · {memory.kind.value}"),
        ("topic", memory.topic or ""),
        ("scope", belongs),
        ("layer", memory.layer.value),
        ("salience", f"{memory.salience:.2f}"),
        ("confidence", f"{memory.confidence:.2f}"),
        ("trust", memory.trust.value),
        ("written by", author_of(memory) or ""),
        ("held", _held(memory)),
        ("created", times.moment(memory.created_at)),
        ("updated", times.moment(memory.updated_at) if memory.updated_at != memory.created_at else ""),
        ("superseded by", memory.superseded_by or ""),
        ("archived", "" if memory.archived_at is None else times.moment(memory.archived_at)),
        ("recalled", counted(memory.access_count, "time") if memory.access_count else ""),
    )
    return Text(clean(memory.content) + "\n", style="bold").append_text(pairs(rows))


def _held(memory: Memory) -> str:
    if memory.valid_from is None and memory.valid_to is None:
        return ""
    start = times.day(memory.valid_from) if memory.valid_from is not None else "…"
    end = times.day(_last(memory.valid_to)) if memory.valid_to is not None else "…"
    return start if start == end else f"{start} – {end}"


def _last(end: Millis) -> Millis:
    return type(end)(end - 1)


def changed(what: str, found: Entry) -> Text:
    """Return one line about a memory that was just written."""
    memory = found.memory
    line = Text(f"{what} ", style="green")
    line.append(short(memory.id), style="dim")
    if memory.name:
        line.append(f" {one_line(memory.name, 60)}", style="bold")
    line.append(f"  {memory.type.value}: ", style="dim")
    line.append(one_line(memory.content, 100))
    for old in found.supersedes:
        line.append_text(_in_place_of(old))
    if found.supersedes:
        line.append("\n  where both hold: scrubjay update ")
        line.append(f"{short(found.supersedes[0].id)} --clear superseded_by --clear valid_to")
    if found.created and memory.metadata.get(DOUBT):
        line.append("\nmay contradict an earlier memory: scrubjay conflicts", style="yellow")
    return line


def added(what: str, found: Entry, *, is_by_place: bool, labels: Mapping[str, str] = MappingProxyType({})) -> Text:
    """Return what was added, and for where; where the folder decided on that, how to say it otherwise."""
    memory, line = found.memory, changed(what, found)
    if memory.scope is Scope.PROJECT:
        line.append(f"\nfor the project {one_line(_place_of(memory, labels), 200)}")
        line.append("; for you everywhere: --everywhere" if is_by_place else "", style="dim")
    else:
        line.append("\nfor this session" if memory.scope is Scope.SESSION else "\nfor you, everywhere")
    return line


def _place_of(memory: Memory, labels: Mapping[str, str]) -> str:
    """Return what a memory belongs to as people are shown it, "" where that is the person."""
    return labels.get(memory.resource_id or "", memory.resource_id or "")


def superseded(answer: SupersedeResponse) -> Text:
    """Return what took a memory's place, what it was, and what had taken its place before and still holds."""
    line = changed("added" if answer.new.created else "now holds", answer.new)
    line.append_text(_in_place_of(answer.old.memory))
    still = answer.still_holds
    if still is not None:
        line.append("\nwhich had ended already. What took its place then still holds: ", style="yellow")
        line.append(short(still.id), style="dim").append(f" {one_line(still.content, 100)}")
        line.append(f"\n  where it holds no longer: scrubjay supersede {short(still.id)} {short(answer.new.memory.id)}")
    return line


def _in_place_of(old: Memory) -> Text:
    line = Text("\nin the place of ", style="green").append(short(old.id), style="dim")
    return line.append(f" {one_line(old.content, 100)}")


def entries(found: Sequence[Entry]) -> RenderableType:
    """Return memories: a line each, or two where the window is narrow."""
    return _Entries(found) if found else Text("no memories")


def _mark(memory: Memory, now: Millis) -> str:
    """Return why a memory is not to be taken as it stands, "" where it is: what ended must not look current."""
    if memory.superseded_by is not None:
        return "replaced"
    waits = REVIEWS.get((memory.review or "").partition(" ")[0], "")
    return times.over(memory.valid_from, memory.valid_to, said_at(memory), now) or waits


@dataclass(frozen=True, slots=True)
class _Entries:
    """Memories as a table where it fits; in a narrow window the words stand below, so that no name is cut."""

    found: Sequence[Entry]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        wide = options.max_width >= TABLE_WIDTH
        table = table_of("id", "date", "type", "memory")
        now = Millis(time.time_ns() // 1_000_000)
        for each in self.found:
            memory = each.memory
            said = Text(f"{one_line(memory.name, 200)}  ", style="bold") if memory.name else Text()
            if marked := _mark(memory, now):
                said.append(f"({marked}) ", style="not bold yellow")
            said.append(one_line(memory.content, 300), style="not bold")
            about = (short(memory.id), f"{times.local(memory.created_at):%Y-%m-%d}", memory.type.value)
            if wide:
                table.add_row(Text(about[0], style="dim"), *about[1:], said)
            else:
                yield dim(*about)
                room = max(options.max_width * 2, len(memory.name or "") + options.max_width)
                yield Padding(Text(one_line(said.plain, room)), (0, 0, 0, 2))
        if wide:
            yield table


def why(answer: WhyResponse, labels: Mapping[str, str] = MappingProxyType({})) -> RenderableType:
    """Return where a memory comes from, and what happened to it. All times are of this machine's clock."""
    parts: list[RenderableType] = [entry(answer.entry, labels), Text("\nread from", style="bold")]
    parts.extend(source(each) for each in answer.sources)
    parts.extend(Text(f"  {clean(line)}") for line in origin(answer))
    if answer.helped or answer.missed or answer.wrong:
        wrong = f", called wrong {answer.wrong} times" if answer.wrong else ""
        parts.append(Text(f"\nhelped {answer.helped} times, did not {answer.missed} times{wrong}", style="bold"))
    if answer.successor is not None:
        parts.append(Text("\nreplaced by", style="bold"))
        now = Text(f"  {one_line(answer.successor.content, 300)}")
        parts.append(
            now.append(f"  {times.day(answer.successor.created_at)} · {short(answer.successor.id)}", style="dim")
        )
    if answer.supersedes:
        parts.append(Text("\ntook the place of", style="bold"))
    for old in answer.supersedes:
        ended = Text(f"  {one_line(old.content, 300)}")
        parts.append(ended.append(f"  {_held(old) or times.day(old.created_at)} · {short(old.id)}", style="dim"))
    parts.append(Text("\nhistory", style="bold"))
    several = len({change.device for change in answer.history}) > 1
    for change in answer.history:
        line = f"  {times.moment(change.ts)}  {clean(did(change.change, change.fields))}"
        wrote = "" if change.cause is None else f"  {written_by(change.cause, change.label)}"
        where = f"  on device {short(change.device)}" if several else ""
        parts.append(Text(line + wrote).append(where, style="dim"))
    return Group(*parts)


def origin(answer: WhyResponse) -> list[str]:
    """Return where a memory comes from that was not read from talk, a line each: from which files, or who added it."""
    found = answer.origin
    when = f"on {times.moment(found.ts)}" + (
        ", on this device" if found.here else f", on device {short(found.device)}" if found.device else ""
    )
    if found.how == "imported":
        first, *rest = found.places
        return [f"{_place(first)}, imported {when}", *(f"the same words: {_place(other)}" for other in rest)]
    if found.how == "learned":
        return [] if answer.sources else ["talk that is not in this store, or was forgotten"]
    who = {"user": "you", "agent": "an agent", "import": "an import"}.get(found.by, "a text that is not trusted")
    return [f"no talk and no file: {who} added it {when}"]


def _place(place: Place) -> str:
    file = "a text from stdin" if place.file.startswith("stdin") else place.file
    return f"{file}, under “{place.heading}”" if place.heading else file


def source(found: Source) -> RenderableType:
    """Return a passage in its events, the words that count marked."""
    grip = found.grip
    parts: list[RenderableType] = []
    position = 0
    for event in found.events:
        line = Text(f"{event.speaker}: ", style="cyan")
        shown = Text(clean(event.text), style="dim")
        start, end = grip.span_start - position, grip.span_end - position
        if end > 0 and start < len(event.text):
            shown.stylize("not dim bold", max(start, 0), min(end, len(event.text)))
        position += len(event.text) + 1
        when = f"  {times.moment(event.ts)} · {short(event.id)}"
        parts.append(Padding(line.append_text(shown).append(when, style="dim"), (0, 0, 0, 2)))
    if not found.events:
        parts.append(Padding(Text(f"“{clean(grip.excerpt)}”"), (0, 0, 0, 2)))
    parts.append(Padding(dim(f"by {_reader(grip.source)}"), (0, 0, 0, 2)))
    return Group(*parts)


def _reader(source: str) -> str:
    """Return what found a passage, with its version.

    >>> _reader("patterns/5"), _reader("reader/1"), _reader("observer/1")
    ('patterns/5, without a model', 'reader/1, the small model that ships', 'observer/1, a language model')
    """
    kinds = {
        "patterns": ", without a model",
        "reader": ", the small model that ships",
        "observer": ", a language model",
    }
    return clean(source) + kinds.get(source.partition("/")[0], "")


def _remaining(refs: Sequence[str]) -> list[Text]:
    few = refs[:COPIES]
    more = [f"  and {len(refs) - len(few):,} more"] if len(refs) > len(few) else []
    what = counted(len(refs), "memory or event", "memories and events")
    told = f"a part of it is still in {what}. To forget too:"
    return [Text(told), *(Text(f"  scrubjay forget {ref}") for ref in few), *map(Text, more)]


def forgotten(answer: ForgetResponse) -> Text:
    """Return what is gone, and what may still hold it."""
    parts = [counted(len(answer.forgotten), "memory", "memories")] if answer.forgotten or not answer.events else []
    if answer.events:
        parts.append(counted(len(answer.events), "event"))
    if answer.sources:
        parts.append(counted(answer.sources, "passage") + " blanked")
    is_gone = bool(answer.forgotten or answer.events)
    lines = [Text("forgotten: " + ", ".join(parts) if is_gone else "it was forgotten already", style="green")]
    lines += _of_copies(answer)
    if answer.remaining:
        lines += _remaining(answer.remaining)
    return Text("\n").join([*lines, *_kept_copies(answer.copies)])


def forgotten_all(answer: ForgetAllResponse) -> Text:
    """Return what of an import, a session or a project is gone, or would go."""
    what = f"{counted(answer.events, 'event')} of {counted(answer.sessions, 'session')}"
    what += f" and {counted(answer.memories, 'memory', 'memories')}"
    lines = [Text(f"{'would forget' if answer.dry_run else 'forgotten'} {what}, of {clean(answer.of)}")]
    if answer.dry_run:
        lines += [Text("among them:"), *(Text(f"  {clean(text)}", style="dim") for text in answer.examples)]
        lines.append(Text("what is forgotten never comes back, also when the same files are imported again"))
        return Text("\n").join(lines)
    lines += _of_copies(
        ForgetResponse(
            forgotten=(), blanked=answer.blanked, deleted=answer.deleted, holding=answer.holding, in_log=answer.in_log
        )
    )
    return Text("\n").join([*lines, *_kept_copies(answer.copies)])


def _kept_copies(copies: Sequence[str]) -> list[Text]:
    """Return which copies only the person deletes, and how."""
    if not copies:
        return []
    few = copies[:COPIES]
    lines = [f"{counted(len(copies), 'copy', 'copies')} made before may still hold the words. To delete:"]
    lines += [f"  {'del' if os.name == 'nt' else 'rm'} {shlex.quote(clean(path))}" for path in few]
    if len(copies) > len(few):
        lines.append(f"  and {len(copies) - len(few):,} more beside these")
    return [Text(line) for line in lines]


def _of_copies(answer: ForgetResponse) -> list[Text]:
    """Return what became of the copies that the store makes by itself, and of its log."""
    lines = []
    if answer.blanked:
        lines.append(f"blanked in {counted(answer.blanked, 'automatic copy', 'automatic copies')} too")
    lines += [f"deleted, since it could not be blanked: {clean(path)}" for path in answer.deleted]
    if answer.holding and answer.blanks:
        held = counted(answer.holding, "automatic copy", "automatic copies")
        lines.append(f"still in {held}; to blank it there too: {answer.blanks}")
    elif answer.holding:
        lines.append(f"{counted(answer.holding, 'automatic copy', 'automatic copies')} are still being blanked")
    if answer.in_log:
        lines.append(
            "a long read (an export?) still holds the words in the log of the file; it is cut back when that ends"
        )
    return [Text(line) for line in lines]
