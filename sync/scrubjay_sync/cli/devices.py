"""`scrubjay devices`: list the devices of the account, add, shut out, name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.cli.arguments import Parser, text
from scrubjay.cli.output import remarks
from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    InvalidError,
)
from scrubjay_sync.api.devices import ApproveRequest, DeviceCreateRequest, DevicesResponse, RenameRequest
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.references import RefRequest, not_one_asking, one_of
from scrubjay_sync.cli.arguments import subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.rendering import say_done, table, when
from scrubjay_sync.transport import connect
from scrubjay_sync.words import COUNT

if TYPE_CHECKING:
    from rich.console import RenderableType


REVOKES = """
This will shut out {name}, and replace every key that it knew. What it has synced before stays in the account, and it
keeps what it has read. What it has not synced yet will never arrive.
"""


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay devices`."""
    add = subcommands(parser, "subcommand")
    add("list", "list the devices of the account, and the machines that ask to be added")
    approve = add("approve", "add the machine that shows the same six words")
    approve.add_argument("ref", nargs="?", default="", type=text, metavar="ID", help="which, when several ask")
    approve.add_argument(
        "--words", nargs="+", type=text, metavar="WORD", help="the six words that the machine shows, quoted or not"
    )
    revoke = add("revoke", "shut a device out, and replace every key that it knew")
    revoke.add_argument("ref", type=text, metavar="DEVICE", help="name or id, or the beginning of the id")
    revoke.add_argument(
        "--confirm", type=text, metavar="DEVICE", help="the same again, instead of typing it when asked"
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
        answer: DevicesResponse = transport.call("revoke", RefRequest(ref=device.id))
    command.out.remark(f"{name} is shut out, and every key that it knew is replaced")
    return answer


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
    rows += [("asks to be added", asks.id[:8], "", " ".join(asks.words)) for asks in answer.asking]
    return table(answer.who, ("device", "id", "last active", ""), rows)


def _approve(command: Command) -> None:
    line = command.line
    with connect(command.chosen) as transport:
        words = tuple(" ".join(line.words or ()).lower().split())
        if words and len(words) != COUNT:
            raise InvalidError(
                f"--words takes the {COUNT} words that the machine shows, got {len(words)}",
                hint='scrubjay devices approve --words "one two three four five six"',
            )
        if not words:
            found = transport.call("devices", Nothing())
            asking = [one for one in found.asking if one.id.startswith(line.ref)]
            if len(asking) != 1:
                raise not_one_asking(len(asking))
            words = asking[0].words
            remarks().print(f"\nthe machine that asks must show:  [bold]{' '.join(words)}[/]\n")
            if not command.prompts.means_it("does it show exactly these six words?"):
                raise DeniedError(
                    "you did not say yes: the machine was not added",
                    hint="if its words differ, somebody may be in between: stop its login, and begin it again",
                )
        answer = transport.call("approve", ApproveRequest(ref=line.ref, words=words))
    say_done(command, answer, "the machine is added, and has all keys of the account")


def _create(command: Command) -> None:
    line = command.line
    answer = command.call(
        "device_create",
        DeviceCreateRequest(name=line.name, scopes=tuple(line.scopes), read_only=line.read_only),
    )
    command.out.remark(
        "This bundle is shown once, and whoever has it can read these scopes. On the other machine:"
        " scrubjay login --bundle"
    )
    command.out.answer(answer, lambda: answer.bundle)
