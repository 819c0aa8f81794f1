"""`scrubjay demo`: the whole way on a throwaway store: a daemon, a conversation in, memories out, five questions."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from scrubjay import api, settings
from scrubjay.cli import draining, invocation, output, times
from scrubjay.cli.arguments import Parser, text
from scrubjay.cli.render import hits, layout, words
from scrubjay.daemon import control
from scrubjay.transports import client
from scrubjay.transports import local as transports
from scrubjay_shared.errors import InvalidError, NotFoundError, UnavailableError
from scrubjay_shared.records import Event, EventDraft, MemoryType

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.console import RenderableType

    from scrubjay.settings import Settings

QUESTIONS = 5
KEEP_HINT = "scrubjay demo --keep keeps its folder, where the daemon's log shows why"
HITS = 3
"""Hits looked at per question. They are shown up to the first that rests on a line known to answer it."""

EVENTS_PAGE = 500
"""Events per page when all of them are looked at: the most a page holds."""

BATCH = 50
"""Events per request: small enough that the bar is seen moving."""

SHOWN_TYPES = (
    *(MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.GOAL),
    *(MemoryType.INSIGHT, MemoryType.HOWTO, MemoryType.FACT),
)

LOCOMO_CATEGORIES = (2, 4, 1, 2, 4)
"""Which kinds of a LoCoMo file's questions are asked, in order: when, what, and what only several turns tell together.
Its fifth kind has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, what the one who wrote the question says the answer is, and which lines say so.

    A line is its number in the sample, from 1, or its `dia_id` in a LoCoMo file.
    """

    text: str
    answer: str
    lines: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What goes in: events or a file's bytes, and what is asked about it."""

    title: str
    questions: tuple[Question, ...]
    events: tuple[EventDraft, ...] = ()
    file: api.ImportRequest | None = None


def configure(parser: Parser) -> None:
    """Take which conversation to show."""
    parser.add_argument("--locomo", metavar="FILE", help="a LoCoMo file instead of the conversation that ships with it")
    parser.add_argument("--only", type=text, metavar="ID", help="which conversation of that file (the first)")
    parser.add_argument("--keep", action="store_true", help="keep the folder, to look around in it")


def run(line: Namespace) -> int:
    """Show it. Everything is removed at the end, also after a failure or Ctrl-C, unless told to keep it."""
    console = Console(highlight=False, emoji=False)
    conversation = of_locomo(Path(line.locomo), line.only) if line.locomo else sample()
    folder = Path(tempfile.mkdtemp(prefix="scrubjay-demo-"))
    try:
        chosen = settings_in(folder, line)
        try:
            _show(console, chosen, conversation)
        finally:
            stopped = control.stop(chosen)
    finally:
        if line.keep:
            console.print(layout.dim(f"kept: scrubjay --home {folder} stats"), soft_wrap=True)
        else:
            shutil.rmtree(folder)
    if stopped.daemon is None or stopped.killed:
        raise UnavailableError("the demo's daemon did not stop when asked", hint=KEEP_HINT)
    console.print(_step(5, "The daemon has stopped", "" if line.keep else "nothing is left behind"))
    console.print()
    console.print(Text("Now with your own:", style="bold"))
    console.print(_under(Text("\n".join(NEXT))))
    return 0


NEXT = (
    "scrubjay init",
    "scrubjay daemon start",
    "scrubjay import ~/.claude/projects",
    "scrubjay setup",
    'scrubjay recall "why did we drop X?"',
)
"""What to do after the demo, as it can be typed."""


def settings_in(folder: Path, line: Namespace) -> Settings:
    """Return settings that keep everything in `folder`, except the models: they are read from where they are."""
    mine = invocation.settings_of(line)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    models = {"models_dir": mine.models_dir, "model": mine.model, "reranker": mine.reranker, "threads": mine.threads}
    return settings.load(models | {"port": 0}, environ | {"SCRUBJAY_HOME": str(folder)})


def sample() -> Conversation:
    """Return the conversation that ships with scrubjay: a developer and her agent, over some weeks."""
    folder = resources.files("scrubjay") / "samples"
    lines = (folder / "conversation.jsonl").read_bytes().splitlines()
    asked = json.loads((folder / "questions.json").read_bytes())[:QUESTIONS]
    return Conversation(
        title="a developer and her coding agent",
        events=tuple(msgspec.json.decode(line, type=EventDraft) for line in lines),
        questions=tuple(
            Question(text=each["question"], answer=each["answer"], lines=frozenset(map(str, each["lines"])))
            for each in asked
        ),
    )


def of_locomo(path: Path, only: str | None) -> Conversation:
    """Return one conversation of a LoCoMo file, by its sample id (the first), with questions of its own.

    Raises NotFoundError when it has no such conversation, InvalidError when it is not a LoCoMo file.
    """
    data = path.expanduser().read_bytes()
    try:
        samples = {str(each["sample_id"]): each for each in json.loads(data)}
        named = only or next(iter(samples), "")
        if only is not None and only not in samples:
            raise NotFoundError(f"{path.name} has no conversation {only}", hint=f"choose one of: {', '.join(samples)}")
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
    return tuple(
        Question(text=str(each["question"]), answer=str(each["answer"]), lines=frozenset(map(str, each["evidence"])))
        for each in chosen
    )


def _show(console: Console, chosen: Settings, conversation: Conversation) -> None:
    console.print(
        Text("scrubjay", style="bold").append(f": {conversation.title}, on a throwaway store", style="not bold")
    )
    console.print()
    began = time.perf_counter()
    with _busy("starting the daemon"):
        running = control.start(chosen).daemon
    console.print(_step(1, "A daemon starts", _seconds(began)))
    console.print(_under(Text(f"process {running.pid}, http://{running.host}:{running.port}")))
    console.print()
    speaker = client.discover(chosen.data_dir)
    if speaker is None:
        raise UnavailableError("the demo's daemon started, then ended by itself", hint=KEEP_HINT)
    transport = transports.DaemonTransport(chosen.store_path, speaker)
    try:
        line_of = _take_in(console, transport, conversation)
        _learn(console, transport, chosen)
        _learned(console, transport)
        _ask(console, transport, conversation.questions, line_of)
    finally:
        transport.close()


def _take_in(console: Console, transport: transports.Transport, conversation: Conversation) -> dict[str, str]:
    """Send the conversation in. Returns the line that each event was, by the event's id."""
    began = time.perf_counter()
    redactions: Counter[str] = Counter()
    line_of: dict[str, str] = {}
    if conversation.file is not None:
        taken: api.ImportResponse = transport.call("import", conversation.file)
        redactions.update(taken.redactions)
    for start in range(0, len(conversation.events), BATCH):
        request = api.IngestRequest(events=conversation.events[start : start + BATCH])
        answer: api.IngestResponse = transport.call("ingest", request)
        redactions.update(answer.redactions)
        line_of |= {event_id: str(number) for number, event_id in enumerate(answer.ids, start + 1) if event_id}
    took = _seconds(began)
    if conversation.file is not None:
        line_of |= {event.id: str(event.metadata.get("dia_id", "")) for event in _all_events(transport)}
    stats: api.StatsResponse = transport.call("stats", api.Nothing())
    said = f"{words.counted(stats.events, 'message')} in {words.counted(stats.sessions, 'session')}"
    if stats.oldest is not None and stats.newest is not None:
        said += f", {times.day(stats.oldest)} – {times.day(stats.newest)}"
    console.print(_step(2, "A conversation goes in", took))
    console.print(_under(Text(said)))
    if redactions:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(redactions.items()))
        console.print(_under(Text(f"hidden before anything was written: {kinds}", style="yellow")))
    console.print()
    return line_of


def _all_events(transport: transports.Transport) -> Iterator[Event]:
    cursor = None
    while True:
        page: api.EventsResponse = transport.call("events", api.EventsRequest(limit=EVENTS_PAGE, cursor=cursor))
        yield from page.events
        cursor = page.next
        if cursor is None:
            return


def _learn(console: Console, transport: transports.Transport, chosen: Settings) -> None:
    began = time.perf_counter()
    left = draining.settled(transport, output.Output(json=False, quiet=False))
    if left.to_learn or left.to_embed:
        raise UnavailableError(
            f"after ten minutes there are still {left.to_learn} events to learn from, {left.to_embed} texts to embed",
            hint=KEEP_HINT,
        )
    stats: api.StatsResponse = transport.call("stats", api.Nothing())
    if not stats.memories:
        raise UnavailableError(
            "scrubjay learned nothing from this conversation",
            hint="scrubjay demo without --locomo shows what should happen",
        )
    types = ", ".join(f"{number} {name}" for name, number in sorted(stats.by_type.items(), key=lambda kv: -kv[1]))
    console.print(_step(3, "It learns, without a language model", f"{_seconds(began)}"))
    console.print(_under(Text(f"{words.counted(stats.memories, 'memory', 'memories')}: {types}")))
    if stats.space is None:
        absent = f"the embedding model {chosen.model} is not installed: recall by words only (scrubjay models pull)"
        console.print(_under(Text(absent, style="yellow")))
    else:
        console.print(_under(Text(f"{stats.embedded:,} texts embedded on this machine", style="dim")))


def _learned(console: Console, transport: transports.Transport) -> None:
    """Show the memory of each type that matters most, with the words it was read from."""
    for type_ in SHOWN_TYPES:
        page: api.ListResponse = transport.call("list", api.ListRequest(type=type_, limit=200))
        best = max(page.entries, key=lambda entry: (entry.memory.salience, entry.memory.id), default=None)
        if best is None:
            continue
        answer: api.WhyResponse = transport.call("why", api.RefRequest(ref=best.memory.id))
        console.print()
        head = Text(f"{type_.value}  ", style="green").append(words.one_line(best.memory.content, 300), style="bold")
        console.print(_under(head))
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
            console.print(_under(Text("↳ ", style="dim").append_text(hits.quote(said))))
    console.print()


def _ask(
    console: Console, transport: transports.Transport, questions: Sequence[Question], line_of: Mapping[str, str]
) -> None:
    console.print(_step(4, "Five questions", "answered from what was said, on this machine"))
    transport.call("recall", api.RecallRequest(query=questions[0].text, limit=1))  # it warms the models up
    proved = 0
    for question in questions:
        began = time.perf_counter()
        answer: api.RecallResponse = transport.call("recall", api.RecallRequest(query=question.text, limit=HITS))
        took = (time.perf_counter() - began) * 1000
        if not answer.hits:
            raise UnavailableError(f"recall found nothing for “{question.text}”", hint=KEEP_HINT)
        right = next((rank for rank, hit in enumerate(answer.hits) if rests_on(hit, question.lines, line_of)), None)
        proved += right is not None
        console.print()
        console.print(
            _under(Text(question.text, style="bold magenta").append(f"   {took:.0f} ms", style="dim not bold"))
        )
        for rank, hit in enumerate(answer.hits[: 1 if right is None else right + 1]):
            console.print(_under(hits.hit(hit, rank + 1, note="✓ answers it" if rank == right else "")))
        if right is None:
            console.print(
                _under(Padding(layout.dim(f"not found; the answer: {words.clean(question.answer)}"), (0, 0, 0, 4)))
            )
    console.print()
    console.print(_under(Text(f"{proved} of {len(questions)} found among the first {HITS}", style="dim")))
    console.print()


def rests_on(hit: api.Hit, lines: Collection[str], line_of: Mapping[str, str]) -> bool:
    """Tell whether a hit is, or was read from, one of these lines."""
    return any(line_of.get(event_id) in lines for event_id in (hit.id, *(said.event_id for said in hit.sources)))


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
