"""`scrubjay account`: name, password, second factor, keys, deletion."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from scrubjay.cli import render
from scrubjay.cli.arguments import Parser, text
from scrubjay.cli.output import remarks
from scrubjay_sync import profile
from scrubjay_sync.api.account import AccountRenameRequest, DeleteRequest, PasswordRequest, TotpRequest
from scrubjay_sync.api.login import KdfResponse, ServerRequest
from scrubjay_sync.cli.arguments import add_password_stdin, subcommands
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.rendering import say_done
from scrubjay_sync.keys.password import auth_key, new_kdf
from scrubjay_sync.transport import Transport, connect

if TYPE_CHECKING:
    from scrubjay_shared.wire import Kdf


DELETES = """
This will delete the account at {origin} with everything in it, for good. Your other devices will stop syncing. Memories
stay on the machines that have them. The server's backups are deleted on their own schedule.
"""


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay account`."""
    add = subcommands(parser, "subcommand")
    add_password_stdin(add("password", "change the password; it encrypts nothing, so nothing else changes"))
    renamed = add("rename", "give the account another user name; the old one is kept from others for 90 days")
    renamed.add_argument("username", type=text, metavar="NAME", help="the new name")
    add_password_stdin(renamed)
    totp = add("totp", "ask logins for the code of an authenticator app too, or stop asking")
    totp.add_argument("state", choices=("on", "off"), help="on or off")
    add_password_stdin(totp)
    add("rotate", "replace the root key and every scope's key for what is written from now on")
    delete = add("delete", "delete the account and everything in it at the server; memories stay on your machines")
    delete.add_argument("--confirm", type=text, metavar="NAME", help="your user name, instead of typing it when asked")
    add_password_stdin(delete)


def run(command: Command) -> None:
    """Change the name, the password or the second factor, replace keys, delete the account."""
    found = command.require_login()
    match command.line.subcommand:
        case "password":
            _password(command, found)
        case "rename":
            _rename(command, found)
        case "totp":
            _totp(command, found)
        case "rotate":
            say_done(command, command.call("rotate"), "every key is replaced for what is written from now on")
        case _:
            with connect(command.chosen) as transport:
                kdf = _kdf(transport, found)  # first: whoever cannot reach the server need not be asked
                command.prompts.must_mean(DELETES.format(origin=found.origin), found.username, command.line.confirm)
                gone = transport.call("account_delete", DeleteRequest(auth_key=_proof(command, kdf, found)))
            words = (
                f"the account is deleted with {render.words.counted(gone.objects, 'object')};"
                f" nothing of it is left at {found.origin}"
            )
            command.out.answer(gone, lambda: words)


def _kdf(transport: Transport, found: profile.Profile) -> Kdf:
    """Return how the account's password is derived, as the server says now."""
    before: KdfResponse = transport.call("prelogin", ServerRequest(origin=found.origin, username=found.username))
    return before.kdf


def _proof(command: Command, kdf: Kdf, found: profile.Profile) -> bytes:
    """Return the key of the password in force, asked for now."""
    return auth_key(command.prompts.secret("password"), kdf, found.origin, found.kdf)


def _password(command: Command, found: profile.Profile) -> None:
    with connect(command.chosen) as transport:
        old = _proof(command, _kdf(transport, found), found)
        kdf = new_kdf(os.urandom)
        new = auth_key(command.prompts.new_password(), kdf, found.origin)
        answer = transport.call("password", PasswordRequest(auth_key=old, new_kdf=kdf, new_auth_key=new))
    say_done(command, answer, "the password is changed; devices that are logged in stay logged in")


def _rename(command: Command, found: profile.Profile) -> None:
    with connect(command.chosen) as transport:
        proof = _proof(command, _kdf(transport, found), found)
        answer = transport.call("account_rename", AccountRenameRequest(auth_key=proof, username=command.line.username))
    say_done(command, answer, f"the account is called {answer.who.username} now; your other devices take the name over")


def _totp(command: Command, found: profile.Profile) -> None:
    with connect(command.chosen) as transport:
        proof = _proof(command, _kdf(transport, found), found)
        if command.line.state == "off":
            say_done(command, transport.call("totp", TotpRequest(auth_key=proof)), "logins ask for the password only")
            return
        secret = os.urandom(20)
        shown = base64.b32encode(secret).decode()
        label = quote(f"scrubjay:{found.username}")
        remarks().print(f"otpauth://totp/{label}?secret={shown}&issuer=scrubjay", markup=False, soft_wrap=True)
        code = command.prompts.secret("code that your authenticator app shows for it").strip()
        answer = transport.call("totp", TotpRequest(auth_key=proof, secret=secret, code=code))
    say_done(command, answer, "logins ask for the app's code too: scrubjay login --totp")
