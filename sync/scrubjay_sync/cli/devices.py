"""`scrubjay devices`: list the devices of the account, add, shut out, name them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrubjay.cli.arguments import Parser, text
from scrubjay.cli.output import remarks
from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
    UnavailableError,
)
from scrubjay_sync.api.devices import (
    AnswerRequest,
    AnswerResponse,
    ApproveRequest,
    ApproveResponse,
    DeviceCreateRequest,
    DeviceLine,
    DevicesResponse,
    RenameRequest,
    RevokeRequest,
)
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import one_of
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.presence import require_person
from scrubjay_sync.cli.rendering import identity_line, table, when
from scrubjay_sync.policy import IDENTITY
from scrubjay_sync.transport import Transport, connect
from scrubjay_sync.words import COUNT

if TYPE_CHECKING:
    from rich.console import RenderableType


REVOKES = """
This will shut out {name}, and replace every key that it knew. What it has synced before stays in the account, and it
keeps what it has read. What it has not synced yet will never arrive.
"""


ADDS = "This adds another machine, which gets every key of the account: machine"


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay devices`."""
    add = subcommands(parser, "subcommand", default="list")
    add("list", "list the devices of the account, and the machines that ask to be added")
    approve = add("approve", "add the machine whose six words you type; it then asks for three that are shown here")
    approve.add_argument("ref", nargs="?", default="", type=text, metavar="ID", help="which, when several ask")
    approve.add_argument(
        "--words", nargs="+", type=text, metavar="WORD", help="the six words that the machine shows, quoted or not"
    )
    add_password_stdin(approve)
    revoke = add("revoke", "shut a device out, and replace every key that it knew")
    revoke.add_argument("ref", type=text, metavar="DEVICE", help="name or id, or the beginning of the id")
    revoke.add_argument(
        "--also",
        action="append",
        default=[],
        type=text,
        metavar="DEVICE",
        help="shut out this one too, which it has let in; repeatable",
    )
    revoke.add_argument(
        "--keep",
        action="append",
        default=[],
        type=text,
        metavar="DEVICE",
        help="leave this one in, which it has let in; repeatable",
    )
    revoke.add_argument(
        "--confirm", type=text, metavar="DEVICE", help="the same again, instead of typing it when asked"
    )
    revoke.add_argument(
        "--cut", action="store_true", help="also when the server does not show all that it wrote: the rest is lost"
    )
    rename = add("rename", "give a device another name (encrypted: the server does not see it)")
    rename.add_argument("ref", type=text, metavar="DEVICE", help="name or id, or the beginning of the id")
    rename.add_argument("name", type=text, metavar="NAME", help="its new name")
    create = add("create", "make a limited device, for a machine without a person; prints its keys once")
    create.add_argument("name", type=text, metavar="NAME", help="the name of the new device")
    create.add_argument(
        "--scope",
        dest="scopes",
        action="append",
        required=True,
        type=text,
        metavar="SCOPE",
        help="a scope that it may read; repeatable",
    )
    create.add_argument("--read-only", action="store_true", help="the device may read and not write")
    add_password_stdin(create)


def run(command: Command) -> None:
    """List the devices of the account, add one, shut one out, name one."""
    command.require_login()
    line = command.line
    match line.subcommand:
        case "approve":
            _approve(command)
            return
        case "revoke":
            answer = _revoke(command)
        case "rename":
            answer = command.call("rename", RenameRequest(ref=line.ref, name=line.name))
        case "create":
            _create(command)
            return
        case _:
            answer = command.call("devices")
    command.out.answer(answer, lambda: _show_devices(answer))


def _revoke(command: Command) -> DevicesResponse:
    line = command.line
    with connect(command.chosen) as transport:
        found: DevicesResponse = transport.call("devices", Nothing())
        active = {one.id: one for one in found.devices if not one.revoked}
        if not any(line.ref in {one.name, one.id} for one in active.values()) and any(
            line.ref in {one.name, one.id} for one in found.devices
        ):
            raise ConflictError(f"{line.ref} is revoked already", hint="scrubjay devices list shows all devices")
        device = active[one_of(line.ref, {one.id: one.name for one in active.values()}, "device", "devices list")]
        if device.this:
            raise ConflictError("that is this device", hint="scrubjay logout takes this device out of the account")
        name = f"{device.name} ({device.id[:8]})"
        command.prompts.must_mean(REVOKES.format(name=name), line.ref, line.confirm)
        also, keep = _about_those_let_in(command, found, device)
        asked = RevokeRequest(ref=device.id, also=also, keep=keep, cut=line.cut)
        answer: DevicesResponse = transport.call("revoke", asked)
    command.out.remark(f"{name} is shut out, and every key that it knew is replaced")
    return answer


def _about_those_let_in(
    command: Command, found: DevicesResponse, device: DeviceLine
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which of the devices that it has let in go too, and which stay. A person is asked about each."""
    line, names = command.line, {one.id: one.name for one in found.devices if not one.revoked}
    also = [one_of(ref, names, "device", "devices list") for ref in line.also]
    keep = [one_of(ref, names, "device", "devices list") for ref in line.keep]
    let_in = {device.id}
    for one in found.devices:  # in the order they were added
        if one.added_by not in let_in or one.revoked or one.this or one.id == device.id:
            continue
        let_in.add(one.id)
        if one.id not in {*also, *keep} and command.prompts.person:
            question = (
                f"{names.get(one.added_by, one.added_by[:8])} has let in {one.name} ({one.id[:8]}). Shut it out too?"
            )
            (also if command.prompts.means_it(question) else keep).append(one.id)
    return tuple(also), tuple(keep)


def _show_devices(answer: DevicesResponse) -> RenderableType:
    rows = []
    for one in answer.devices:
        kinds = [
            "this one" * one.this,
            "revoked" * one.revoked,
            "limited" * one.limited,
            "read-only" * one.read_only,
            f"only {', '.join(one.scopes)}" if one.scopes else "",
        ]
        rows.append((one.name, one.id[:8], when(one.seen), ", ".join(filter(None, kinds))))
    rows += [
        ("asks to be added", asks.id[:8], "", "it shows its words" if asks.answered else "scrubjay devices approve")
        for asks in answer.asking
    ]
    return table(answer.who, ("device", "id", "last active", ""), rows)


def _approve(command: Command) -> None:
    line = command.line
    words = tuple(" ".join(line.words or ()).lower().split())
    if words and len(words) != COUNT:
        raise InvalidError(
            f"--words takes the {COUNT} words that the machine shows, got {len(words)}",
            hint='scrubjay devices approve --words "one two three four five six"',
        )
    with connect(command.chosen) as transport:
        asked = _answered(command, transport)
        if not words and not command.prompts.person:
            command.out.answer(
                asked,
                lambda: (
                    f"machine {asked.device[:8]} shows its words now\n"
                    'scrubjay devices approve --words "…" takes them, and a terminal or the password'
                    f"\n{identity_line(asked.who)}"
                ),
            )
            return
        if words:
            require_person(command, transport, f"{ADDS} {asked.device[:8]}.")
            answer = transport.call("approve", ApproveRequest(ref=asked.id, words=words))
        else:
            answer = _typed(command, transport, asked)
    command.out.answer(
        answer,
        lambda: (
            "the machine is added. It takes the account for yours once you type there:  "
            + " ".join(answer.proof)
            + f"\n{identity_line(answer.who)}"
        ),
    )


def _answered(command: Command, transport: Transport) -> AnswerResponse:
    """Answer the machine that asks, and wait until it shows its words."""
    give_up = time.monotonic() + IDENTITY.reveal_wait_s
    asking = AnswerRequest(ref=command.line.ref)
    while True:
        asked: AnswerResponse = transport.call("answer", asking)
        asking = AnswerRequest(ref=asked.id, again=True)
        if asked.shows:
            return asked
        if time.monotonic() > give_up:
            raise UnavailableError(
                "the machine that asks does not show its words: it has not read the answer",
                hint="is scrubjay login still running there, and online? Then run this again",
            )
        time.sleep(IDENTITY.reveal_poll_s)


def _typed(command: Command, transport: Transport, asked: AnswerResponse) -> ApproveResponse:
    """Have a person type the words that the machine shows. Typing them is what shows that somebody is here."""
    for left in reversed(range(IDENTITY.tries)):
        typed = command.prompts.word(f"{ADDS} {asked.device[:8]}.\nType the {COUNT} words that it shows", None)
        try:
            answer: ApproveResponse = transport.call(
                "approve", ApproveRequest(ref=asked.id, words=tuple(typed.lower().split()))
            )
        except DeniedError as error:
            if not left:
                raise
            remarks().print(f"{error.message}: {error.hint}", markup=False)
        else:
            return answer
    raise AssertionError  # the last try returns or raises


def _create(command: Command) -> None:
    line = command.line
    with connect(command.chosen) as transport:
        require_person(command, transport, f"This makes a device {line.name} that can read {', '.join(line.scopes)}.")
        answer = transport.call(
            "device_create",
            DeviceCreateRequest(name=line.name, scopes=tuple(line.scopes), read_only=line.read_only),
        )
    command.out.remark(
        "This bundle is shown once, and whoever has it can read these scopes. On the other machine:"
        " scrubjay login --bundle"
    )
    command.out.answer(answer, lambda: answer.bundle)
