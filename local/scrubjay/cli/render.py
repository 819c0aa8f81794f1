"""Records as people read them: short ids, local days, no banner. Decides nothing, and fetches nothing."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scrubjay.cli import reasons, times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult

    from scrubjay.api import (
        Conflict,
        ConflictsAnswer,
        ContextAnswer,
        Entry,
        ForgetAnswer,
        Hit,
        ModelsAnswer,
        Place,
        Quote,
        RecallAnswer,
        Skipped,
        Source,
        StatsAnswer,
        StatusAnswer,
        WhyAnswer,
    )
    from scrubjay.cli.doctor import DoctorReport
    from scrubjay.cli.files import AlwaysLoaded, ImportReport, RestoreReport
    from scrubjay.cli.models import InitReport
    from scrubjay_shared.clock import Millis
    from scrubjay_shared.records import Event, Memory, Session

SHORT_ID = 16
"""Characters of an id that are shown: its ten of time and six of chance, which a batch of one millisecond needs."""

WORDS = 240
"""Characters of a source line: two or three lines of a terminal; `why` shows all of it."""

TABLE_WIDTH = 90
"""Columns from which memories stand in a table: id, date and type take 40, and names are up to 40 long."""

COPIES = 10
"""Copies of the store that `forget` names; who has more has a folder of them to look into."""

_TAGS = range(0xE0000, 0xE0080)
_UNSEEN = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """Return text that cannot drive or deceive the terminal: controls, direction overrides and tags become `�`.

    Line breaks and tabs stay. What is remembered was said by someone, and may be written to do just that.
    """
    return "".join(character if _harmless(character) else "�" for character in text)


def _harmless(character: str) -> bool:
    if character in "\n\t":
        return True
    code = ord(character)
    return not (code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or character in _UNSEEN or code in _TAGS)


def one_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def short(id_: str) -> str:
    """Return the part of an id that people need."""
    return id_[:SHORT_ID]


def size(count: int) -> str:
    """Return "34.1 MB" (powers of ten, as disks are sold)."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return "1 memory", "1,204 memories"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def dim(*parts: str) -> Text:
    """Return the parts that are there, joined by a dot, in a low voice."""
    return Text(" · ".join(part for part in parts if part), style="dim")


def pairs(rows: Iterable[tuple[str, str]]) -> Text:
    """Return labels and values, a line each; a pair without a value is left out.

    Long lines are the terminal's to wrap: a path must stay in one piece.
    """
    kept = [(label, value) for label, value in rows if value]
    width = max((len(label) for label, _ in kept), default=0)
    lines = [Text.assemble((f"{label:<{width}}", "dim"), "  ", clean(value)) for label, value in kept]
    return Text("\n").join(lines)


def quote(said: Quote, limit: int = WORDS) -> Text:
    """Return a line of evidence: who, what, when, which event."""
    line = Text()
    line.append(f"{one_line(said.speaker, 40)}: ", style="cyan")
    line.append(f"“{one_line(said.text, limit)}”")
    line.append(f"  {times.moment(said.ts)} · {short(said.event_id)}", style="dim")
    return line


def hit(found: Hit, rank: int, *, why: bool = False, note: str = "") -> RenderableType:
    """Return one answer: what it says, when and what it is, and who said so. `note` stands beside it."""
    speaker = found.sources[0].speaker if found.kind == "event" and found.sources else ""
    head = Text(f"{rank:>2}  ", style="bold green")
    if speaker:
        head.append(f"{one_line(speaker, 40)}: ", style="cyan")
    head.append(clean(found.text) + ("…" if found.truncated else ""), style="bold" if found.kind == "memory" else "")
    parts: list[RenderableType] = [_hanging(head)]
    about = dim(
        times.day(found.ts),
        found.type.replace("_", " "),
        one_line(found.name or "", 60),
        "superseded" if found.superseded_by else "",
        "" if found.trust in {None, "user"} else f"trust: {found.trust}",
        short(found.id),
        f"{found.score:.3f}",
    )
    if note:
        about.append(f"  {note}", style="not dim green")
    parts.append(Padding(about, (0, 0, 0, 4)))
    said = [line for line in found.sources if not (found.kind == "event" and line.event_id == found.id)]
    parts.extend(Padding(Text("↳ ", style="dim").append_text(quote(line)), (0, 0, 0, 4)) for line in said)
    parts.extend(Padding(Text("· ").append_text(quote(line)), (0, 0, 0, 4), style="dim") for line in found.neighbours)
    if why and found.parts:
        parts.append(Padding(score(found.parts, found.score), (0, 0, 0, 4)))
    return Group(*parts)


def _hanging(text: Text) -> RenderableType:
    """Return the text with every line but its first set in, so that ranks stand out."""
    grid = Table.grid(padding=0)
    grid.add_column(width=4, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(text[:4], text[4:])
    return grid


def score(parts: Mapping[str, float], total: float) -> RenderableType:
    """Return the parts of a score, and what they add up to."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right")
    for name, value in sorted(parts.items(), key=lambda part: -abs(part[1])):
        table.add_row(Text(clean(name)), f"{value:+.3f}")
    table.add_row("score", Text(f"{total:+.3f}", style="bold"))
    return table


def recall(answer: RecallAnswer, *, why: bool = False) -> RenderableType:
    """Return the hits, best first."""
    if not answer.hits:
        return Text("nothing found")
    return _spaced(hit(found, rank, why=why) for rank, found in enumerate(answer.hits, 1))


def recalled(answer: RecallAnswer) -> str:
    """Return what is to be said about an answer, beside it."""
    parts = [counted(len(answer.hits), "hit"), answer.mode, f"{answer.elapsed_ms:.0f} ms"]
    if answer.left_out:
        parts.append(f"{answer.left_out} more did not fit")
    return " · ".join([*parts, *answer.notes])


def entry(found: Entry) -> Text:
    """Return a memory with all that is known about it."""
    memory = found.memory
    belongs = memory.scope.value + (f" {memory.resource_id}" if memory.resource_id else "")
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
        ("held", _held(memory)),
        ("created", times.moment(memory.created_at)),
        ("updated", times.moment(memory.updated_at) if memory.updated_at != memory.created_at else ""),
        ("superseded by", memory.superseded_by or ""),
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
    return line


def entries(found: Sequence[Entry]) -> RenderableType:
    """Return memories: a line each, or two where the window is narrow."""
    return _Entries(found) if found else Text("no memories")


@dataclass(frozen=True, slots=True)
class _Entries:
    """Memories as a table where it fits; in a narrow window the words stand below, so that no name is cut."""

    found: Sequence[Entry]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        wide = options.max_width >= TABLE_WIDTH
        table = _table("id", "date", "type", "memory")
        for each in self.found:
            memory = each.memory
            said = Text(f"{one_line(memory.name, 200)}  ", style="bold") if memory.name else Text()
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


def events(said: Iterable[Event]) -> RenderableType:
    """Return events, a line each."""
    lines = [
        Text.assemble(
            (f"{times.moment(event.ts)}  ", "dim"),
            (f"{short(event.id)}  ", "dim"),
            (f"{one_line(event.speaker, 40)}: ", "cyan"),
            one_line(event.text, 300) or event.type.value.replace("_", " "),
        )
        for event in said
    ]
    return Group(*lines) if lines else Text("no events")


def sessions(found: Sequence[Session]) -> RenderableType:
    """Return sessions, a line each."""
    if not found:
        return Text("no sessions")
    table = _table("session", "from", "to", "agent", "project", "events", "title")
    for session in found:
        table.add_row(
            Text(one_line(session.id, 40)),
            times.moment(session.start),
            times.moment(session.end) if session.end is not None else "open",
            Text(one_line(session.agent, 20)),
            Text(one_line(session.project or "", 30)),
            f"{session.events:,}",
            Text(one_line(session.title, 60)),
        )
    return table


def why(answer: WhyAnswer) -> RenderableType:
    """Return where a memory comes from, and what happened to it. All times are of this machine's clock."""
    parts: list[RenderableType] = [entry(answer.entry), Text("\nread from", style="bold")]
    parts.extend(source(each) for each in answer.sources)
    parts.extend(Text(f"  {clean(line)}") for line in origin(answer))
    parts.append(Text("\nhistory", style="bold"))
    for change in answer.history:
        fields = f" ({', '.join(change.fields)})" if change.fields else ""
        line = f"  {times.moment(change.ts)}  {change.change.replace('_', ' ')}{clean(fields)}"
        parts.append(Text(line).append(f"  {short(change.device)} #{change.seq}", style="dim"))
    return Group(*parts)


def origin(answer: WhyAnswer) -> list[str]:
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


def conflicts(answer: ConflictsAnswer, names: Mapping[str, str]) -> RenderableType:
    """Return the fields that devices disagree about: what is shown, and what each other version says.

    `names` are those of the devices, by id; one that has none is shown by its id.
    """
    if not answer.conflicts:
        return Text("no conflicts")
    return _spaced(conflict(each, names) for each in answer.conflicts)


def conflict(found: Conflict, names: Mapping[str, str]) -> RenderableType:
    """Return one disputed field. The version stands where `--keep` wants it."""
    title = Text(clean(found.name or short(found.memory_id)), style="bold").append(f"  {found.field}", style="cyan")
    parts: list[RenderableType] = [title, Text(f"  shown    {clean(str(found.shown))}")]
    for other in found.others:
        line = Text(f"  or       {clean(str(other.value))}")
        device = clean(names.get(other.device) or short(other.device))
        where = f"{times.moment(other.ts)} · {device} · {other.version}"
        parts.append(line.append(f"  {where}", style="dim"))
    return Group(*parts)


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
    parts.append(Padding(dim(f"by {clean(grip.source)}"), (0, 0, 0, 2)))
    return Group(*parts)


def stats(found: StatsAnswer) -> Text:
    """Return counts and sizes."""
    types = ", ".join(f"{number:,} {name}" for name, number in sorted(found.by_type.items(), key=lambda kv: -kv[1]))
    kinds = ", ".join(f"{number:,} {name}" for name, number in sorted(found.by_kind.items(), key=lambda kv: -kv[1]))
    period = ""
    if found.oldest is not None and found.newest is not None:
        period = f"{times.day(found.oldest)} – {times.day(found.newest)}"
    waiting = [counted(found.to_learn, "event") + " to learn from" if found.to_learn else ""]
    waiting.append(f"{found.to_embed:,} to embed" if found.to_embed else "")
    rows = (
        ("memories", f"{found.memories:,}" + (f" ({types})" if types else "")),
        ("kinds", kinds),
        ("events", f"{found.events:,} in {counted(found.sessions, 'session')}"),
        ("period", period),
        ("sources", counted(found.grips, "grip")),
        ("aliases", f"{found.aliases:,}"),
        ("layers", f"{found.identity_keys:,} identity, {found.active_keys:,} active"),
        ("embedded", f"{found.embedded:,}" + (f" in {found.space}" if found.space else "")),
        ("waiting", ", ".join(part for part in waiting if part)),
        ("refused", refused(found.refused)),
        ("ops", f"{found.ops:,}"),
        ("file", f"{size(found.file_bytes)}, schema {found.schema_version}"),
    )
    return pairs(rows)


def models(found: ModelsAnswer) -> RenderableType:
    """Return the models, a line each, and how far embedding has come."""
    table = _table("", "model", "kind", "state", "on disk", "licence")
    for model in found.models:
        state = Text(model.state, style="red" if model.error else "")
        if model.error:
            state.append(f": {one_line(model.error, 100)}")
        table.add_row("●" if model.in_use else "", model.name, model.kind, state, size(model.bytes), model.licence)
    total = found.embedded + found.to_embed
    far = f"{found.embedded:,} of {total:,} embedded" if found.space else "recall by words only"
    return Group(table, dim(far, found.space or "", refused(found.refused)), *(Text(note) for note in found.notes))


def refused(texts: int) -> str:
    """Return how many texts the model refused; "" for none."""
    return f"the model refused {counted(texts, 'text')}, found by their words alone" if texts else ""


def status(found: StatusAnswer) -> RenderableType:
    """Return how the daemon is, and its jobs."""
    head = pairs(
        (
            ("running", f"process {found.pid} since {times.moment(found.started)}, scrubjay {found.version}"),
            ("file", found.file),
            ("SQLite", f"{found.sqlite_version}, schema {found.schema_version}"),
            ("model", f"{found.model}: {found.model_state}"),
            ("reranker", f"{found.reranker}: {found.reranker_state}"),
            *(("warning", warning) for warning in found.warnings),
        )
    )
    jobs = _table("job", "state", "runs", "failed", "last", "took", "pending")
    for job in found.jobs:
        last = times.moment(job.last_start) if job.last_start is not None else "never"
        took = f"{job.last_ms:,} ms" if job.last_ms is not None else ""
        state = "running" if job.running else (one_line(job.last_error, 60) if job.last_error else "idle")
        jobs.add_row(job.name, state, f"{job.runs:,}", f"{job.failures:,}", last, took, f"{job.pending:,}")
    return Group(head, jobs) if found.jobs else head


def taken(
    events_: int, memories: int, duplicates: int, redactions: Mapping[str, int], skipped: Iterable[Skipped]
) -> str:
    """Return what came in and what did not, in words."""
    parts = [counted(events_, "event")] if events_ or not memories else []
    if memories:
        parts.append(counted(memories, "memory", "memories"))
    if duplicates:
        parts.append(f"{duplicates:,} already there")
    if hidden := sum(redactions.values()):
        parts.append(f"{counted(hidden, 'secret')} hidden ({', '.join(sorted(redactions))})")
    parts.extend(f"left out: {line}" for line in reasons.said(skipped))
    return " · ".join(parts)


def _spaced(parts: Iterable[RenderableType]) -> RenderableType:
    spaced: list[RenderableType] = []
    for part in parts:
        if spaced:
            spaced.append(Text())
        spaced.append(part)
    return Group(*spaced)


def _table(*columns: str) -> Table:
    long = {"memory", "title"}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, expand=bool(long & {*columns}))
    for column in columns:
        if column in long:
            table.add_column(column, overflow="ellipsis", no_wrap=True, ratio=1)
        else:
            side: JustifyMethod = "right" if column in {"events", "size", "runs", "failed", "pending"} else "left"
            table.add_column(column, no_wrap=True, justify=side)
    return table


def forgotten(answer: ForgetAnswer) -> Text:
    """Return what is gone, and the copies that may still hold it."""
    parts = [counted(len(answer.forgotten), "memory", "memories")]
    if answer.events:
        parts.append(counted(len(answer.events), "event"))
    if answer.sources:
        parts.append(counted(answer.sources, "passage") + " blanked")
    gone = Text("forgotten: " + ", ".join(parts), style="green")
    if not answer.copies:
        return gone
    few = answer.copies[:COPIES]
    more = [f"  and {len(answer.copies) - len(few):,} more beside these"] if len(answer.copies) > len(few) else []
    told = f"{counted(len(answer.copies), 'copy', 'copies')} made before may still hold the words. To delete:"
    delete = "del" if os.name == "nt" else "rm"
    return Text("\n").join(
        [gone, Text(told), *(Text(f"  {delete} {shlex.quote(clean(path))}") for path in few), *map(Text, more)]
    )


def context(answer: ContextAnswer) -> Text:
    """Return the startup context as an agent gets it."""
    return Text(clean(answer.text) or "nothing set: scrubjay context --identity name=…")


_LOWERED = {
    "trust": "trusted as an import, whatever the file says",
    "layer": "put into the archive: a file cannot say what is loaded always",
    "kind": "kept as stored, not as learned: what they were read from is not here",
    "name": "without a name that only you can give to a line that is loaded always",
}


def restored(report: RestoreReport) -> RenderableType:
    """Return what was put back, where the old store is, and what agents are given from now on."""
    parts: list[RenderableType] = [Text(f"restored {report.file} from {report.source}")]
    if report.kept:
        parts.append(Text(f"the old file: {report.kept}"))
    return Group(*parts, always_loaded(report.always_loaded))


def always_loaded(loaded: AlwaysLoaded) -> RenderableType:
    """Return every line that agents are given in each session."""
    count = len(loaded.identity) + len(loaded.active)
    if not count:
        return Text("no line is loaded always")
    lines = [f"  {clean(name)}: {clean(text)}" for name, text in (*loaded.identity.items(), *loaded.active.items())]
    return Text("\n".join([f"agents are always given {counted(count, 'line')}:", *lines]))


def imported(report: ImportReport) -> RenderableType:
    """Return what an import took, what it left out and why, and the files that gave nothing."""
    head = "would take" if report.dry_run else "took"
    formats = ", ".join(f"{count} {name}" for name, count in sorted(report.formats.items()))
    said = taken(report.events, report.memories, report.duplicates, report.redactions, ())
    parts: list[RenderableType] = [Text(f"{head} {said}")]
    if formats:
        parts.append(dim(f"from {counted(report.files, 'file')}: {formats}"))
    if report.renamed:
        theirs = "its name was taken, and got" if report.renamed == 1 else "their names were taken, and got"
        parts.append(Text(f"{counted(report.renamed, 'note')}: {theirs} the file's path added"))
    if report.aliases_taken:
        have = "belongs to another memory and was" if report.aliases_taken == 1 else "belong to other memories and were"
        parts.append(Text(f"{counted(report.aliases_taken, 'alias', 'aliases')} {have} not added"))
    if report.skipped:
        parts += [Text("left out:"), *(Text(f"  {clean(line)}") for line in reasons.said(report.skipped))]
    parts.extend(Text(f"{each.count:,} {_LOWERED.get(each.reason, clean(each.reason))}") for each in report.changed)
    if report.changed and not report.dry_run and "scrubjay" in report.formats:
        parts.append(dim("if this is your own export: scrubjay import --restore FILE puts back what it says"))
    if report.always_loaded is not None:
        parts.append(always_loaded(report.always_loaded))
    parts.extend(Text(f"failed: {clean(_of_file(each.path, each.message))}", style="red") for each in report.failed)
    return Group(*parts)


def _of_file(path: str, message: str) -> str:
    """Return an error's message with its file before it, where it does not begin with that."""
    return message if message.startswith(path) else f"{path}: {message}"


def initialised(report: InitReport) -> Text:
    """Return what is in place, and what to do next."""
    model = {
        "ready": f"{report.model}, ready",
        "none": "none: recall by words only",
        "remote": f"{report.model}, on its server",
    }.get(
        report.model_state, f"{report.model} is {report.model_state}: recall by words only, until scrubjay models pull"
    )
    reranker = {"ready": f"{report.reranker}, ready", "none": "none"}.get(
        report.reranker_state, f"{report.reranker} is {report.reranker_state}: scrubjay models pull"
    )
    store = f"{report.file} ({counted(report.memories, 'memory', 'memories')})"
    done = pairs((("store", store), ("model", model), ("reranker", reranker)))
    after = (
        ("scrubjay daemon start", "learn in the background, answer in milliseconds"),
        ("scrubjay import ~/.claude/projects", "learn from what was said already"),
        ('scrubjay recall "…"', "ask"),
    )
    lines = [Text.assemble((f"{command:<36}", "bold"), (what, "dim")) for command, what in after]
    return Text("\n").join([done, Text(), Text("next", style="dim"), *lines])


def examined(report: DoctorReport) -> RenderableType:
    """Return the checks, a line each, and what to do under those that need it."""
    marks = {"ok": Text("ok", style="green"), "warn": Text("warn", style="yellow"), "fail": Text("fail", style="red")}
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in report.checks:
        found = Text(clean(check.found))
        if check.todo:
            found.append(f"\n→ {clean(check.todo)}", style="bold")
        table.add_row(marks[check.state.value], Text(check.name), found)
    return table
