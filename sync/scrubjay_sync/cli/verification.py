"""`scrubjay sync verify | inspect | export-heads | log`: checks on what the server holds."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.text import Text

from scrubjay.cli import render
from scrubjay.cli.output import write_json
from scrubjay_shared.errors import (
    CorruptError,
    InvalidError,
)
from scrubjay_sync.api.verification import CompareRequest, HeadsResponse, InspectResponse, LogResponse, VerifyResponse
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.rendering import identity_line


def verify(command: Command) -> int:
    """Read everything again from the server and check it, or compare with another device's file."""
    if command.line.heads is not None:
        return _compare(command)
    answer: VerifyResponse = command.call("verify")
    command.out.answer(answer, lambda: _show_verified(answer))
    return 0 if answer.whole else CorruptError.exit_code


def _show_verified(answer: VerifyResponse) -> Text:
    lines = [
        f"{lane.scope} / {lane.device}: {render.words.counted(lane.places, 'place')}, {render.words.size(lane.bytes)}: "
        + (lane.error or "whole")
        for lane in answer.lanes
    ]
    lines.append(
        "the server holds exactly what was sent"
        if answer.whole
        else "the server does not hold exactly what was sent: see the lines above"
    )
    lines.append(f"words: {' '.join(answer.words)}")
    lines.append(
        "Compare them on your other devices. Other words there: run scrubjay sync on both and compare again; if they"
        " still differ, the server tells your devices different things."
    )
    return Text(render.words.clean("\n".join([*lines, identity_line(answer.who)])))


def _compare(command: Command) -> int:
    path = Path(command.line.heads)
    try:
        theirs = msgspec.json.decode(path.read_bytes(), type=HeadsResponse)
    except msgspec.MsgspecError as error:
        raise InvalidError(
            f"{path} is not a file of scrubjay sync export-heads: {error}",
            hint="run scrubjay sync export-heads > FILE on the other device",
        ) from error
    answer = command.call("compare", CompareRequest(heads=theirs))
    words = f"{render.words.counted(answer.same, 'place')} compared, all the same on both devices"
    if answer.unknown:
        words += f"; {answer.unknown} more not read here yet (run scrubjay sync, then compare again)"
    command.out.answer(answer, lambda: f"{words}\n{identity_line(answer.who)}")
    return 0


def inspect(command: Command) -> int:
    """Look in what the server holds for readable words of this store."""
    answer: InspectResponse = command.call("inspect")
    words = [
        f"the server holds {render.words.counted(answer.objects, 'object')} ({render.words.size(answer.bytes)})",
        f"looked in them for {answer.grams} pieces of {render.words.counted(answer.texts, 'text')} of this store",
    ]
    if answer.readable:
        words.append(
            f"{render.words.counted(answer.readable, 'object')} are of searchable scopes, which the server can read"
        )
    words += [f"! {one}" for one in answer.findings] or ["found nothing that the server can read"]
    command.out.answer(answer, lambda: "\n".join([*words, identity_line(answer.who)]))
    return 0 if answer.blind else CorruptError.exit_code


def export_heads(command: Command) -> None:
    """Write JSON in either case: it is for the other device's `verify --heads`."""
    write_json(command.call("export_heads"))


def list_log(command: Command) -> None:
    """List the account log."""
    answer: LogResponse = command.call("log")
    command.out.answer(
        answer,
        lambda: "\n".join(
            [
                *(f"{one.seq:>5}  {one.what}  {one.subject}".rstrip() for one in answer.entries),
                identity_line(answer.who),
            ]
        ),
    )
