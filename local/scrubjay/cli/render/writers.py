"""The Writer: what is on, what could be, what it is sent and what a day of it would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from scrubjay.api import LastCall, WriterDay, WriterResponse, WriterTrial
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim, pairs, spaced
from scrubjay.cli.render.words import clean, counted
from scrubjay.cli.reports import WriterChoice, WriterReport

DATA = "what was said to your agents"
OFFER = "scrubjay writer lets a language model read along, yours or one you pay: more is learned. It is off"
PAID = {
    "nobody": "nothing to pay, this machine works",
    "plan": "counts against your plan",
    "key": "billed to your key by the token",
}
MOST_MODELS = 6
"""Of one server that are listed for people."""


def shown(report: WriterReport, *, looked: bool) -> RenderableType:
    """Return how the Writer is and, where they were looked for, what could be one."""
    parts: list[RenderableType] = [_status(report.status)]
    if looked:
        parts.append(_choices(report.choices, report.status.day))
    return spaced(parts)


def changed(report: WriterReport) -> RenderableType:
    """Return what was turned on or off, and what that means for the daemon."""
    status = report.status
    daemon = {
        "follows": "the daemon follows from now on",
        "restart": "the daemon's own environment says something else: scrubjay daemon restart",
        "stopped": "no daemon runs: it holds for the next one, and for commands",
    }[report.daemon]
    if status.writer == "none":
        return Text(f"the Writer is off; {daemon}")
    return Text(
        f"the Writer is on: {clean(_named(status))}; {daemon}\n"
        "scrubjay writer shows what it uses, scrubjay writer off ends it, scrubjay relearn has it read older sessions"
    )


def before(choice: WriterChoice, model: str, status: WriterResponse) -> Iterator[str]:
    """Yield what a person must know before a Writer is turned on, a line each."""
    yield f"Writer: {choice.name}" + (f", model {model}" if model else ", the model that it takes by itself")
    yield (
        f"It is sent {DATA}, what these answered and, in part, what their tools printed, session by session, with the"
        " memories that this may correct, and old memories to be shortened; scrubjay ask sends your question and what"
        " recall finds. Redaction took known secrets out of all of it before"
        " it was stored; a secret that redaction did not know is still in it."
    )
    yield f"It {_where(choice)}."
    yield f"It costs: {_cost(choice, status.day)}. {_caps(choice, status)}"
    yield "One test call now, about an invented sentence …"


def tried(trial: WriterTrial) -> str:
    """Return how the test went."""
    used = counted(trial.input_tokens + trial.output_tokens, "token") + (" at most" if trial.estimated else "")
    return f"{trial.model} answered in {trial.elapsed_ms / 1000:.1f} s ({used}): {trial.answer}"


def _cost(choice: WriterChoice, day: WriterDay) -> str:
    """Return what a day of one Writer would take, and who pays it."""
    if not day.days:
        return f"{PAID[choice.paid_by]}; nothing was said in the last {day.looked_at} days to estimate a day by"
    read = _read(choice, day)
    return (
        f"{PAID[choice.paid_by]}; a day like the last {day.looked_at} would take about {counted(day.calls, 'call')},"
        f" {_about(read)} tokens read and {_about(day.output_tokens)} written"
    )


def _about(tokens: int) -> str:
    """Return an estimated number without the digits that it does not have."""
    return f"{round(tokens, -3 if tokens >= 10_000 else -2):,}"


def _read(choice: WriterChoice, day: WriterDay) -> int:
    return day.input_tokens + day.calls * choice.own_tokens


def _caps(choice: WriterChoice, status: WriterResponse) -> str:
    over = _read(choice, status.day) + status.day.output_tokens > status.daily_tokens
    return (
        f"The caps are {status.daily_tokens:,} tokens a day and {status.monthly_tokens:,} a month"
        f"{', less than that: what does not fit is not asked' if over else ''}"
        " (writer_daily_tokens, writer_monthly_tokens)."
    )


def _named(status: WriterResponse) -> str:
    if status.url:
        return f"{status.model} at {status.destination}"
    return f"{status.writer} ({status.model})" if status.model != status.writer else status.writer


def _status(status: WriterResponse) -> RenderableType:
    off = status.writer == "none"
    return pairs(
        (
            ("writer", "off: no model reads what was said" if off else clean(_named(status))),
            ("prompts go to", clean(status.destination) + ("" if off or status.leaves else ", on this machine")),
            ("last call", _last(status.last)),
            ("today", f"{status.used_today:,} of {status.daily_tokens:,} tokens"),
            ("this month", f"{status.used_this_month:,} of {status.monthly_tokens:,} tokens"),
        )
    )


def _last(call: LastCall | None) -> str:
    if call is None:
        return "none yet"
    ended = {"done": "answered", "open": "under way"}.get(call.outcome, f"failed ({call.outcome})")
    return f"{times.moment(call.at)}, {call.job}, {clean(call.model)}: {ended}"


def _choices(choices: Sequence[WriterChoice], day: WriterDay) -> RenderableType:
    if not choices:
        return Text(
            "found here: nothing. Get Ollama with a model, or an agent (claude, codex, gemini, opencode),"
            " or set a provider's key in the environment; scrubjay docs writer says more"
        )
    parts: list[RenderableType] = [Text("found here", style="dim")]
    for choice in choices:
        listed = ", ".join(choice.models[:MOST_MODELS]) + (", …" if len(choice.models) > MOST_MODELS else "")
        parts.append(
            Text.assemble(
                (choice.name, "bold"), "  ", clean(listed or choice.key_env or "the model that it takes by itself")
            )
        )
        about = f"text {clean(_where(choice))}; {PAID[choice.paid_by]}"
        parts.append(Padding(Text(about, style="dim"), (0, 0, 0, 2)))
    parts.append(Text())
    parts.append(dim(_of_a_day(day)))
    first = choices[0]
    model = " --model NAME" if first.key_env else f" --model {first.models[0]}" if len(first.models) > 1 else ""
    parts.append(Text.assemble("turn one on: ", (f"scrubjay writer on {first.name}{clean(model)}", "bold")))
    return Group(*parts)


def _where(choice: WriterChoice) -> str:
    return f"goes to {choice.destination}" if choice.leaves else f"stays on this machine ({choice.destination})"


def _of_a_day(day: WriterDay) -> str:
    if not day.days:
        return f"nothing was said in the last {day.looked_at} days, so what a day would cost cannot be told"
    return (
        f"a day like the last {day.looked_at} ({day.days} with sessions, {day.sessions} each) would take about"
        f" {counted(day.calls, 'call')}, {_about(day.input_tokens)} tokens read and {_about(day.output_tokens)} written"
    )
