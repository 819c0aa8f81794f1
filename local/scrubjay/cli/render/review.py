"""What waits for the person's review: the words, why they wait, and where they came from."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from scrubjay.api import DecideResponse, Reviewed, ReviewResponse
from scrubjay.cli import times
from scrubjay.cli.render.hits import quote
from scrubjay.cli.render.layout import spaced
from scrubjay.cli.render.words import clean, counted, one_line, short

REASONS = {
    "untrusted": "read from a tool's output",
    "override": "tells an agent to set aside its instructions, or to hide something",
    "command": "holds a command that runs what it fetches, or destroys",
    "credential": "asks for a secret to be shown or sent",
    "hidden": "holds characters that show nothing, or look like others",
    "markup": "holds the marks of a prompt or of recalled data",
    "instruction": "tells an agent what to do, and you did not type it here yourself",
    "fetch": "sends an agent to an address",
    "user_scope": "an agent says it of you, for all projects",
    "contradicts": "contradicts what you said",
    "disputed": "an agent said that it is wrong",
    "unreviewed": "review is set to all",
    "limited": "accepted on a device that reviews nothing",
}
"""Why a memory waits, in a person's words."""


def queue(answer: ReviewResponse) -> RenderableType:
    """Return the memories of a page, newest first, and how to go on."""
    if not answer.entries:
        return Text("nothing waits for review")
    last = Text("scrubjay review accept REF … | reject REF … | accept all", style="dim")
    if answer.next:
        last.append(f"\nmore: --cursor {answer.next}")
    return spaced([*map(_entry, answer.entries), last])


def _entry(found: Reviewed) -> RenderableType:
    memory = found.memory
    head = Text(one_line(memory.content, 300), style="bold")
    about = [found.state.value, memory.type.value, memory.scope.value, f"trust: {memory.trust.value}"]
    head.append(f"  {' · '.join([*about, times.day(memory.created_at), short(memory.id)])}", style="not bold dim")
    parts: list[RenderableType] = [head]
    if found.reasons:
        parts.append(Text("  " + "; ".join(REASONS.get(word, clean(word)) for word in found.reasons), style="yellow"))
    parts += [Text("  ").append_text(quote(said)) for said in found.sources]
    parts += [Text(f"  from {clean(place.file)}", style="dim") for place in found.places]
    return Group(*parts)


def decided(answer: DecideResponse, *, every: bool) -> str:
    """Return what was decided, of `every` one that waits or of some, and how to take it back."""
    if every and not answer.memories:
        return "nothing waits for review"
    if not answer.memories:
        return "nothing changed: it was decided so before"
    word = "accepted" if answer.accepted else "rejected"
    return f"{word} {counted(len(answer.memories), 'memory', 'memories')}; scrubjay undo {answer.cause} takes it back"
