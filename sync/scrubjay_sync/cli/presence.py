"""Somebody is there: asked before a command lets a device in or changes what rules over the account.

An agent with a shell can run every command. What it cannot do without anybody's noticing is type at a person's own
terminal, or know the password. Whoever goes around these commands is still told of on every device.
"""

from __future__ import annotations

import secrets

from scrubjay_shared.errors import CredentialsError, DeniedError
from scrubjay_sync import profile
from scrubjay_sync.api.account import ProofRequest
from scrubjay_sync.api.login import KdfResponse, ServerRequest
from scrubjay_sync.cli.command import Command
from scrubjay_sync.keys.password import auth_key
from scrubjay_sync.transport import Transport
from scrubjay_sync.words import wordlist


def require_person(command: Command, transport: Transport, what: str) -> None:
    """Have a person at this machine's terminal type a word, or the password where answers come from stdin.

    `what` says what is about to happen. Raises DeniedError when nobody is there, or the answer is wrong.
    """
    prompts = command.prompts
    if prompts.lines:
        _prove(command, transport, command.require_login())
    elif not prompts.at_terminal(what, secrets.choice(wordlist())):
        raise DeniedError(
            "nobody is at a terminal to confirm it: nothing was done",
            hint="run it in a terminal, or with --password-stdin and the account's password",
        )


def _prove(command: Command, transport: Transport, found: profile.Profile) -> None:
    before: KdfResponse = transport.call("prelogin", ServerRequest(origin=found.origin, username=found.username))
    password = command.prompts.secret("password")
    try:
        transport.call("prove", ProofRequest(auth_key=auth_key(password, before.kdf, found.origin, found.kdf)))
    except CredentialsError as error:
        raise DeniedError(
            "the password is wrong, or the account asks for a second factor: nothing was done",
            hint="try again, or run it in a terminal, which asks for a word instead",
        ) from error
