"""`scrubjay logout`: leave the account; memories stay."""

from __future__ import annotations

from scrubjay.cli import render
from scrubjay.cli.arguments import Parser
from scrubjay_shared.errors import (
    DeniedError,
)
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.api.login import LogOutRequest
from scrubjay_sync.cli.command import Command
from scrubjay_sync.transport import connect


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay logout`."""
    parser.add_argument(
        "--force", action="store_true", help="leave even if changes wait to be sent, or the server cannot be reached"
    )


def run(command: Command) -> None:
    """Leave the account; memories stay."""
    found = command.require_login()
    force = command.line.force
    with connect(command.chosen) as transport:
        if not force and command.prompts.person:
            status = transport.call("status", Nothing())
            if status.devices == 1 and not command.prompts.means_it(
                "This is the account's only device: once it has left, nothing on the server can be read again without"
                " the recovery code. Log out?"
            ):
                raise DeniedError(
                    "you did not say yes: this machine is still logged in",
                    hint="scrubjay recovery verify checks the code that you wrote down",
                )
            if status.pending_ops:
                force = command.prompts.means_it(
                    f"{render.words.counted(status.pending_ops, 'change')} of this device did not reach the server."
                    " What is not sent stays here, and goes with the next login. Log out?"
                )
                if not force:
                    raise DeniedError(
                        "you did not say yes: this machine is still logged in",
                        hint="scrubjay sync status says what waits, and why",
                    )
        answer = transport.call("log_out", LogOutRequest(force=force))
    words = f"logged out of {found.origin}; the memories stay here"
    if not answer.notified and not answer.revoked:
        words += (
            "\nthe account still lists this device: run scrubjay devices revoke on another one, or after the next login"
        )
    if answer.unsent:
        words += (
            f"\n{render.words.counted(answer.unsent, 'change')} never reached the server: sent after the next login"
        )
    command.out.answer(answer, lambda: words)
