"""`scrubjay recovery`: check or replace the recovery code."""

from __future__ import annotations

import os

from scrubjay.cli.arguments import Parser
from scrubjay_shared.errors import (
    DeniedError,
    NotFoundError,
)
from scrubjay_sync.api.account import RecoveryCheckRequest, RecoveryReplaceRequest, RecoveryVoidRequest
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.presence import require_person
from scrubjay_sync.cli.recovery_code import show_and_check
from scrubjay_sync.cli.rendering import SignedUp, identity_line, say_done, when
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.transport import connect

VOIDS = (
    "This will undo every change of the account from entry {start} of its log on: devices that were let in since are"
    " out, those that were shut out since are in again, scopes that were made since are gone. All keys are replaced."
)


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay recovery`."""
    add = subcommands(parser, "subcommand")
    add("show", "say why the code cannot be shown again, and what to do")
    add_password_stdin(add("verify", "check that the code you wrote down is the account's"))
    rotate = add("rotate", "make a new code, and replace all keys that the old one opened")
    rotate.add_argument(
        "--lost", action="store_true", help="the old code is lost: the new one is valid after seven days"
    )
    add_password_stdin(rotate)
    void = add("void", "undo every change of the account since a thief began, with the recovery code")
    void.add_argument(
        "--from",
        dest="start",
        type=int,
        required=True,
        metavar="SEQ",
        help="the first entry to undo (scrubjay sync log)",
    )
    add_password_stdin(void)


def run(command: Command) -> None:
    """Check or replace the recovery code."""
    command.require_login()
    match command.line.subcommand:
        case "verify":
            code = RecoveryCode.parse(command.prompts.secret("recovery code"))
            answer = command.call("recovery_check", RecoveryCheckRequest(rsk=code.rsk))
            if not answer.valid:
                raise DeniedError(
                    "that is not the recovery code of this account",
                    hint="it may be one from before; scrubjay recovery rotate --lost makes a new one",
                )
            say_done(command, answer, "that is the account's recovery code")
        case "rotate":
            _rotate_code(command)
        case "void":
            _void(command)
        case _:
            raise NotFoundError(
                "the recovery code was shown once, when it was made, and is stored nowhere",
                hint="scrubjay recovery verify checks what you wrote down; scrubjay recovery rotate makes a new code",
            )


def _void(command: Command) -> None:
    line, prompts = command.line, command.prompts
    command.out.remark(VOIDS.format(start=line.start))
    code = prompts.secret("recovery code")  # whoever has it is no agent that came by
    RecoveryCode.parse(code)
    answer = command.call("recovery_void", RecoveryVoidRequest(code=code, start=line.start))
    say_done(command, answer, f"everything from entry {line.start} of the account log on is undone")
    command.out.remark("Shut out whoever did it now: scrubjay devices list, scrubjay devices revoke")


def _rotate_code(command: Command) -> None:
    prompts = command.prompts
    old = ""
    if command.line.lost:
        with connect(command.chosen) as transport:
            require_person(command, transport, "This replaces the recovery code of the account, without the old one.")
    else:  # whoever has it is no agent that came by
        old = prompts.secret("old recovery code")
        RecoveryCode.parse(old)
    code = RecoveryCode.new(os.urandom)
    written_down = show_and_check(prompts, code, os.urandom)
    answer = command.call("recovery_replace", RecoveryReplaceRequest(new=code.text, old=old))
    since = (
        "is valid now, and the old one no longer"
        if answer.from_at is None
        else f"is valid from {when(answer.from_at)}; until then the old one is"
    )
    if written_down:
        say_done(command, answer, f"the new code {since}")
    else:
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(
            made, lambda: f"recovery code: {code.text}\nthe new code {since}\n{identity_line(answer.who)}"
        )
