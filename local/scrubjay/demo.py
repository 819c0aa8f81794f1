"""`scrubjay demo`: the whole way on a throwaway store: a daemon, a conversation in, memories out, five questions."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, Group
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from scrubjay import api, client, settings
from scrubjay import door as doors
from scrubjay.cli import output, reach, render, times
from scrubjay.daemon import control
from scrubjay_shared.errors import InvalidError, NotFoundError, UnavailableError
from scrubjay_shared.records import EventDraft, MemoryType

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.console import RenderableType

    from scrubjay.settings import Settings

QUESTIONS = 5
HITS = 2
"""Hits shown per question: the answer, and one more to see what it was chosen over."""

BATCH = 50
"""Events per request: small enough that the bar is seen moving."""

SHOWN_TYPES = (MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.GOAL, MemoryType.INSIGHT, MemoryType.FACT)

LOCOMO_CATEGORIES = (2, 4, 1, 2, 4)
"""Which kinds of a LoCoMo file's questions are asked, in order: when, what, and what only several turns tell together.
Its fifth kind has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and what the one who wrote the question says the answer is."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What goes in: events or a file's bytes, and what is asked about it."""

    title: str
    questions: tuple[Question, ...]
    events: tuple[EventDraft, ...] = ()
    file: api.ImportRequest | None = None


def demo(line: Namespace) -> int:
    """Show it. Everything is removed at the end, also after a failure or Ctrl-C, unless told to keep it."""
    told = Console(highlight=False, emoji=False)
    conversation = of_locomo(Path(line.locomo), line.only) if line.locomo else sample()
    folder = Path(tempfile.mkdtemp(prefix="scrubjay-demo-"))
    chosen = settings_in(folder, line)
    try:
        _show(told, chosen, conversation)
    finally:
        stopped = control.stop(chosen)
        if line.keep:
            told.print(render.dim(f"kept: scrubjay --home {folder} stats"))
        else:
            shutil.rmtree(folder)
    if stopped.daemon is None or stopped.killed:
        raise UnavailableError("the daemon did not stop by itself", hint="run it again with --keep, and read the log")
    told.print(_step(5, "The daemon has stopped", "kept the folder" if line.keep else "nothing of it is left here"))
    told.print()
    told.print(Text("Now with yours:  scrubjay init  ·  scrubjay import ~/.claude/projects  ·  scrubjay recall “…”"))
    return 0


def settings_in(folder: Path, line: Namespace) -> Settings:
    """Return settings that keep everything in `folder`, except the model: that is read from where it is installed."""
    mine = reach.settings_of(line)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    flags = {"models_dir": mine.models_dir, "model": mine.model, "threads": mine.threads, "port": 0}
    return settings.load(flags, environ | {"SCRUBJAY_HOME": str(folder)})


def sample() -> Conversation:
    """Return the conversation that ships with scrubjay: a developer and her agent, over some weeks."""
    folder = resources.files("scrubjay") / "samples"
    lines = (folder / "conversation.jsonl").read_bytes().splitlines()
    asked = json.loads((folder / "questions.json").read_bytes())[:QUESTIONS]
    return Conversation(
        title="a developer and her coding agent",
        events=tuple(msgspec.json.decode(line, type=EventDraft) for line in lines),
        questions=tuple(Question(text=each["question"], answer=each["answer"]) for each in asked),
    )


def of_locomo(path: Path, only: str | None) -> Conversation:
    """Return one conversation of a LoCoMo file, by its sample id (the first), with questions of its own.

    Raises NotFoundError when it has no such conversation, InvalidError when it is no such file.
    """
    data = path.expanduser().read_bytes()
    try:
        samples = {str(each["sample_id"]): each for each in json.loads(data)}
        named = only or next(iter(samples), "")
        if only is not None and only not in samples:
            raise NotFoundError(f"{path.name} has no conversation {only}", hint=f"it has: {', '.join(samples)}")
        each = samples[named]
        questions = questions_of(each["qa"])
        speakers = f"{each['conversation']['speaker_a']} and {each['conversation']['speaker_b']}"
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidError(f"{path.name} is not a LoCoMo file", hint="give the path of locomo10.json") from error
    request = api.ImportRequest(name=path.name, data=data, format="locomo", only=named)
    return Conversation(title=f"{speakers} ({named} of {path.name})", questions=questions, file=request)


def questions_of(asked: Sequence[dict[str, Any]]) -> tuple[Question, ...]:
    """Return five questions of several kinds, always the same ones."""
    left = {category: [each for each in asked if each["category"] == category] for category in set(LOCOMO_CATEGORIES)}
    chosen = [left[category].pop(0) for category in LOCOMO_CATEGORIES if left[category]]
    return tuple(Question(text=str(each["question"]), answer=str(each["answer"])) for each in chosen)


def _show(told: Console, chosen: Settings, conversation: Conversation) -> None:
    told.print(Text("scrubjay", style="bold").append(f": {conversation.title}, on a throwaway store", style="not bold"))
    told.print()
    began = time.perf_counter()
    with _busy("starting the daemon"):
        running = control.start(chosen).daemon
    told.print(_step(1, "A daemon starts", f"process {running.pid}, {_seconds(began)}"))
    speaker = client.discover(chosen.data_dir)
    if speaker is None:
        raise UnavailableError("the daemon started and is gone", hint="run it again with --keep, and read the log")
    door = doors.Daemon(chosen.store_path, speaker)
    try:
        _take_in(told, door, conversation)
        _learn(told, door, chosen)
        _learned(told, door)
        _ask(told, door, conversation.questions)
    finally:
        door.close()


def _take_in(told: Console, door: doors.Door, conversation: Conversation) -> None:
    began = time.perf_counter()
    redactions: Counter[str] = Counter()
    if conversation.file is not None:
        taken: api.ImportAnswer = door.call("import_", conversation.file)
        redactions.update(taken.redactions)
    for start in range(0, len(conversation.events), BATCH):
        request = api.IngestRequest(events=conversation.events[start : start + BATCH])
        answer: api.IngestAnswer = door.call("ingest", request)
        redactions.update(answer.redactions)
    took = _seconds(began)
    stats: api.StatsAnswer = door.call("stats", api.Nothing())
    said = f"{render.counted(stats.events, 'message')} in {render.counted(stats.sessions, 'session')}"
    if stats.oldest is not None and stats.newest is not None:
        said += f", {times.day(stats.oldest)} – {times.day(stats.newest)}"
    told.print(_step(2, "A conversation goes in", f"{said}, {took}"))
    if redactions:
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(redactions.items()))
        told.print(_under(Text(f"hidden before anything was written: {kinds}", style="yellow")))


def _learn(told: Console, door: doors.Door, chosen: Settings) -> None:
    began = time.perf_counter()
    with _busy("learning"):
        left: api.SettleAnswer = door.call("settle", api.SettleRequest(timeout_ms=600_000))
    if left.to_learn or left.to_embed:
        raise UnavailableError(
            f"still {left.to_learn} to learn and {left.to_embed} to embed after ten minutes",
            hint="try again, with --keep",
        )
    stats: api.StatsAnswer = door.call("stats", api.Nothing())
    if not stats.memories:
        raise UnavailableError("nothing was learned", hint="scrubjay demo without --locomo shows what should happen")
    types = ", ".join(f"{number} {name}" for name, number in sorted(stats.by_type.items(), key=lambda kv: -kv[1]))
    told.print(_step(3, "It learns, without a language model", f"{_seconds(began)}"))
    told.print(_under(Text(f"{render.counted(stats.memories, 'memory', 'memories')}: {types}")))
    if stats.space is None:
        absent = f"the embedding model {chosen.model} is not installed: recall by words only (scrubjay models pull)"
        told.print(_under(Text(absent, style="yellow")))
    else:
        told.print(_under(Text(f"{stats.embedded:,} texts embedded on this machine", style="dim")))


def _learned(told: Console, door: doors.Door) -> None:
    """Show the memory of each type that matters most, with the words it was read from."""
    for type_ in SHOWN_TYPES:
        page: api.ListAnswer = door.call("list", api.ListRequest(type=type_, limit=200))
        best = max(page.entries, key=lambda entry: (entry.memory.salience, entry.memory.id), default=None)
        if best is None:
            continue
        answer: api.WhyAnswer = door.call("why", api.RefRequest(ref=best.memory.id))
        told.print()
        head = Text(f"{type_.value}  ", style="green").append(render.one_line(best.memory.content, 300), style="bold")
        told.print(_under(head))
        for source in answer.sources[:1]:
            event = source.events[0]
            said = api.Quote(
                event_id=event.id,
                session_id=event.session_id,
                ts=event.ts,
                utc_offset=event.utc_offset,
                speaker=event.speaker,
                text=source.grip.excerpt,
            )
            told.print(_under(Text("↳ ", style="dim").append_text(render.quote(said))))
    told.print()


def _ask(told: Console, door: doors.Door, questions: Sequence[Question]) -> None:
    told.print(_step(4, "Five questions", "answered from what was said, on this machine"))
    door.call("recall", api.RecallRequest(query=questions[0].text, limit=1))  # the first embedding warms the model up
    for question in questions:
        began = time.perf_counter()
        answer: api.RecallAnswer = door.call("recall", api.RecallRequest(query=question.text, limit=HITS))
        took = (time.perf_counter() - began) * 1000
        if not answer.hits:
            raise UnavailableError(f"nothing was found for “{question.text}”", hint="run it again with --keep")
        told.print()
        told.print(_under(Rule(style="dim")) if told.is_terminal else "", end="")
        told.print(_under(Text(question.text, style="bold magenta").append(f"   {took:.0f} ms", style="dim not bold")))
        told.print(_under(Group(*(render.hit(hit, rank) for rank, hit in enumerate(answer.hits, 1)))))
        told.print(_under(render.dim(f"    whoever wrote the question would answer: {render.clean(question.answer)}")))
    told.print()


def _step(number: int, what: str, how: str) -> Text:
    return Text(f"{number} ", style="bold green").append(what, style="bold").append(f"  {how}", style="dim")


def _under(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))


def _seconds(began: float) -> str:
    return f"{time.perf_counter() - began:.1f} s"


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Show that something is going on, to people."""
    if not sys.stderr.isatty():
        yield
        return
    with output.remarks().status(what):
        yield
