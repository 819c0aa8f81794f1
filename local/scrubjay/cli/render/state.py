"""The state of the store, of the models, of the daemon, of the installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from scrubjay.api import (
    Job,
    JobRun,
    ModelsResponse,
    ProjectFolder,
    StatsResponse,
    StatusResponse,
    SurfacingStats,
    TraceResponse,
    TrustFolderResponse,
)
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, pairs, table_of
from scrubjay.cli.render.words import clean, counted, one_line, size
from scrubjay.cli.reports import DoctorReport, InitReport


def stats(found: StatsResponse) -> Text:
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
        ("not kept", counted(found.refused_reports, "report") + " of hooks" if found.refused_reports else ""),
        ("surfaced", surfaced(found.surfacing)),
        ("ops", f"{found.ops:,}"),
        ("file", f"{size(found.file_bytes)}, schema {found.schema_version}"),
    )
    return pairs(rows)


def surfaced(found: SurfacingStats | None) -> str:
    """Return how much was told to agents ahead and of use; "" where nothing was told yet."""
    if found is None or not found.told + found.waiting:
        return ""
    rate = "" if found.hit_rate is None else f", {found.hit_rate:.0%} used"
    waste = "" if found.waste is None else f", {found.waste:.0%} of {counted(found.tokens, 'token')} wasted"
    waiting = f", {found.waiting:,} not judged yet" if found.waiting else ""
    return f"{counted(found.told, 'thing')} told ahead{rate}{waste}{waiting}"


def models(found: ModelsResponse) -> RenderableType:
    """Return the models, a line each, and how far embedding has come."""
    table = table_of("", "model", "kind", "state", "on disk", "licence")
    for model in found.models:
        state = Text(model.state, style="red" if model.error else "")
        if model.error:
            state.append(f": {one_line(model.error, 100)}")
        table.add_row("●" if model.in_use else "", model.name, model.kind, state, size(model.bytes), model.licence)
    total = found.embedded + found.to_embed
    far = f"{found.embedded:,} of {total:,} embedded" if found.space else "recall by words only"
    return Group(table, dim(far, found.space or "", refused(found.refused)), *(Text(note) for note in found.notes))


def refused(texts: int) -> str:
    """Return how many texts the model refused; "" for 0."""
    return f"the model refused {counted(texts, 'text')}, found by their words alone" if texts else ""


def status(found: StatusResponse) -> RenderableType:
    """Return how the daemon is, and its jobs."""
    head = pairs(
        (
            ("running", f"process {found.pid} since {times.moment(found.started)}, scrubjay {found.version}"),
            ("file", found.file),
            ("SQLite", f"{found.sqlite_version}, schema {found.schema_version}"),
            ("model", f"{found.model}: {found.model_state}"),
            ("reranker", f"{found.reranker}: {found.reranker_state}"),
            ("surfaced", surfaced(found.surfacing)),
            *(("warning", warning) for warning in found.warnings),
            *(("note", note) for note in found.notes),
        )
    )
    return Group(head, jobs(found.jobs)) if found.jobs else head


JOBS_WIDTH = 80
"""Columns from which the runs of jobs are counted beside what they do now: in fewer every word would be cut."""


def jobs(found: Sequence[Job]) -> RenderableType:
    """Return how the background jobs are."""
    table = _Jobs(found)
    told = [Text(f"{job.name} counted: {_counts(job)}", style="dim") for job in found if job.counts]
    told += [Text(job_cost(job), style="dim") for job in found if job.cost is not None]
    return Group(table, *told) if told else table


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The jobs as a table; in a narrow window without how often they ran, and for how long."""

    found: Sequence[Job]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        wide = options.max_width >= JOBS_WIDTH
        table = table_of(*("job", "state", "last", "pending"), *(("runs", "failed", "took") if wide else ()))
        for job in self.found:
            last = times.moment(job.last_start) if job.last_start is not None else "never"
            took = f"{job.last_ms:,} ms" if job.last_ms is not None else ""
            more = (f"{job.runs:,}", f"{job.failures:,}", took) if wide else ()
            table.add_row(job.name, _job_state(job), last, f"{job.pending:,}", *more)
        yield table


def _job_state(job: Job) -> str:
    if job.running:
        return "running"
    if job.waiting and not job.paused:
        return f"waits: {job.waiting}"
    return "paused" if job.paused else one_line(job.last_error, 60) if job.last_error else "idle"


def job_cost(job: Job) -> str:
    """Return what a run would ask the Writer, and what is left for it."""
    cost = job.cost
    if cost is None:
        return f"{job.name} asks no Writer"
    if cost.calls == 0:
        return f"{job.name} would ask the Writer nothing now"
    most = cost.input_tokens + cost.output_tokens
    about = "" if cost.about is None else f" (about {cost.about:,} by its calls so far)"
    calls = counted(cost.calls, "call") if cost.whole else f"more than {counted(cost.calls, 'call')}"
    left = f"{cost.left_today:,} are left today, {cost.left_this_month:,} this month"
    beyond = "" if cost.fits else "; what does not fit is not asked"
    more = "" if cost.whole else " for these"
    return f"{job.name} would make {calls} to the Writer, at most {most:,} tokens{more}{about}: {left}{beyond}"


def _counts(job: Job) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(job.counts.items()))


def job_runs(found: Sequence[JobRun]) -> RenderableType:
    """Return how the last runs of jobs went."""
    table = table_of("started", "job", "took", "result")
    for ran in found:
        waited = f" after {ran.waited_ms:,} ms for the run before" if ran.waited_ms > ran.ms else ""
        table.add_row(times.moment(ran.started), ran.job, f"{ran.ms:,} ms{waited}", ran.error or "ok")
    return table if found else Text("no job has run yet")


def trace(found: TraceResponse) -> RenderableType:
    """Return the steps of a memory or a request."""
    table = table_of("when", "stage", "by", "took", "about", "request or run")
    for step in found.steps:
        took = "" if step.ms is None else f"{step.ms:,.1f} ms"
        about = counted(step.count, "id") if step.count != 1 else step.ids[0]
        if step.model:
            about = f"{one_line(step.model, 60)}: {step.input_tokens:,} tokens in, {step.output_tokens:,} out"
        failed = f"{step.stage}: {step.error}" if step.error else step.stage
        table.add_row(times.moment(step.at), failed, step.name, took, about, step.cause or step.request)
    lost = f"{counted(found.lost, 'span')} could not be kept: the disk was too slow"
    return Group(table, dim(lost)) if found.lost else table


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
    off = report.writer == "none"
    after = (
        ("scrubjay daemon start", "learn in the background, answer in milliseconds"),
        ("scrubjay import ~/.claude/projects", "learn from what was said already"),
        ("scrubjay setup", "let your agents remember from now on"),
        ('scrubjay recall "why did we drop X?"', "ask"),
        *((("scrubjay writer", "let a language model read along, yours or one you pay: more is learned"),) * off),
    )
    width = max(len(command) for command, _ in after) + 2
    lines = [Text.assemble((f"{command:<{width}}", "bold"), (what, "dim")) for command, what in after]
    return Text("\n").join([done, Text(), Text("next", style="dim"), *lines])


def folders(found: Sequence[ProjectFolder]) -> RenderableType:
    """Return the folders that claim a project, and what is left to say of them."""
    if not found:
        return Text("no folder of a repository has been seen yet")
    table = table_of("folder", "state", "project")
    for one in found:
        table.add_row(Text(clean(one.folder)), one.state, Text(clean(one.project)))
    waits = any(one.state == "waiting" for one in found)
    return Group(table, *([Text("scrubjay projects trust FOLDER says that it is what it claims", style="dim")] * waits))


def folder_trusted(done: TrustFolderResponse) -> Text:
    """Return what became of a folder's claims, and what was moved."""
    lines = [f"{one.folder} is {one.state} for {one.project}" for one in done.folders]
    if done.events or done.memories:
        moved = f"{counted(done.events, 'event')} and {counted(done.memories, 'memory', 'memories')}"
        lines.append(f"moved there: {moved}")
    return Text(clean("\n".join(lines)))


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
