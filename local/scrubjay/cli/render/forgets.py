"""What was forgotten, and what each device says of it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from scrubjay.api import ForgetReceipt, ForgetsResponse, ForgottenThing
from scrubjay.cli import times
from scrubjay.cli.render.layout import dim
from scrubjay.cli.render.words import counted


def forgets(answer: ForgetsResponse) -> RenderableType:
    """Return what was forgotten, newest first."""
    if not answer.forgets:
        return dim("nothing was forgotten here")
    parts: list[RenderableType] = []
    for one in answer.forgets:
        what = "event" if one.is_event else "memory"
        parts.append(Text(f"{one.id}  {what}, forgotten {times.moment(one.at)}"))
        parts += [Padding(dim(line), (0, 0, 0, 2)) for line in _lines(one, synced=answer.synced)]
    if answer.synced:
        parts.append(dim("what another device says is its own claim: nobody can check that it has erased"))
    return Group(*parts)


def _lines(one: ForgottenThing, *, synced: bool) -> list[str]:
    lines = ["this machine: erased"]
    if one.lifted:
        lines.append("its words were added again by hand, and are refused no more")
    elif one.refuses:
        often = f", {counted(one.refused, 'time')} so far" if one.refused else ""
        last = "" if one.refused_at is None else f", last {times.moment(one.refused_at)}"
        lines.append(f"its words are refused when they come again{often}{last}")
    if not synced:
        return lines
    lines += [f"device {receipt.device[:8]}: {_said(receipt)}" for receipt in one.receipts]
    if one.waiting:
        lines.append("server: what holds it is packed anew without it within a day, and gone 7 days later")
    else:
        lines.append("server: nothing that this machine knows of holds it, but for backups of up to 37 days")
    return lines


def _said(receipt: ForgetReceipt) -> str:
    if receipt.at is not None:
        return f"says that it had erased it at {times.moment(receipt.at)}"
    if receipt.seen is not None:
        return f"has not said so yet; last heard of {times.moment(receipt.seen)}"
    return "has not said so yet"
