"""`scrubjay login`: sign up, or log in on another machine."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from scrubjay import accounts
from scrubjay.accounts import MAIN
from scrubjay.cli.arguments import Parser, text
from scrubjay.cli.output import remarks
from scrubjay_shared.errors import (
    AnotherAccountError,
    ConflictError,
    DeniedError,
    UnavailableError,
)
from scrubjay_sync import profile
from scrubjay_sync.account import machine
from scrubjay_sync.api.account import RecoveryCheckRequest
from scrubjay_sync.api.identity import Nothing, Who, WhoResponse
from scrubjay_sync.api.login import (
    BundleRequest,
    JoiningResponse,
    JoinRequest,
    KdfResponse,
    LogInRequest,
    RecoverRequest,
    ServerRequest,
    SignUpCheckRequest,
    SignUpRequest,
)
from scrubjay_sync.cli.arguments import add_password_stdin
from scrubjay_sync.cli.command import Command
from scrubjay_sync.cli.prompts import Prompts
from scrubjay_sync.cli.recovery_code import show_and_check
from scrubjay_sync.cli.rendering import BETA, SignedUp, identity_line, say_done
from scrubjay_sync.cli.rounds import first_round
from scrubjay_sync.keys.password import auth_key, new_kdf
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import IDENTITY
from scrubjay_sync.transport import Transport, connect
from scrubjay_sync.words import PROOF_COUNT

T = TypeVar("T")


SERVER = "https://"


ALL_OF_IT = (
    "Everything that this store holds will go to the account, encrypted. scrubjay login --account NAME begins another"
    " account beside it, with a store and projects of its own."
)

ITS_OWN = (
    "The account {account} has a store of its own, and gets only what is in it. scrubjay sync projects add PROJECT"
    " --account {account} says which projects live there."
)


def configure(parser: Parser) -> None:
    """Add the arguments of `scrubjay login`."""
    parser.add_argument("--server", type=text, metavar="URL", help="the server's address")
    parser.add_argument("--username", type=text, metavar="NAME", help="your name there")
    parser.add_argument(
        "--device-name", type=text, metavar="NAME", help="the name of this device on your other devices"
    )
    parser.add_argument("--sign-up", action="store_true", help="make a new account")
    parser.add_argument(
        "--recovery", action="store_true", help="add this machine with the recovery code instead of another device"
    )
    parser.add_argument(
        "--void-from",
        type=int,
        metavar="SEQ",
        help="with the recovery code, cancel the entries of the account log from SEQ on (scrubjay sync log lists them)",
    )
    parser.add_argument(
        "--totp", action="store_true", help="ask for the code of the authenticator app (scrubjay account totp)"
    )
    parser.add_argument(
        "--bundle",
        action="store_true",
        help="log in as the limited device of a bundle (scrubjay devices create), which is asked for",
    )
    parser.add_argument(
        "--bring-all",
        action="store_true",
        help="let everything that this store had in another account go to this one, without being asked",
    )
    add_password_stdin(parser)


def run(command: Command) -> None:
    """Sign up, or log in on another machine."""
    line, prompts = command.line, command.prompts
    chosen = command.chosen
    known = profile.load(chosen.store_dir)
    if known is not None:
        raise ConflictError(
            f"this machine is logged in as {known.username or 'a limited device'} at {known.origin}",
            hint="scrubjay logout first; scrubjay login --account NAME begins another account beside it",
        )
    if chosen.account not in accounts.load(chosen.data_dir).names:
        accounts.change(chosen.data_dir, lambda known: known.with_account(chosen.account))
    if not command.out.json:  # a program has read it here, and wants one record on stderr when the login fails
        command.out.remark(f"{BETA}\n{ALL_OF_IT if chosen.account == MAIN else ITS_OWN.format(account=chosen.account)}")
    with connect(command.chosen) as transport:
        if line.bundle:
            bundle = prompts.secret("device bundle")
            answer = _bringing(
                command, lambda all_: transport.call("join_limited", BundleRequest(bundle=bundle, bring_all=all_))
            )
            say_done(command, answer, "logged in as a limited device")
            return
        server = _address(prompts.word("server", line.server))
        username = prompts.word("user name", line.username)
        before = transport.call("prelogin", ServerRequest(origin=server, username=username))
        if _wants_new(command):
            _signs_up(command, transport, username, before)
        else:
            _logs_in(command, transport, username, before)


def _bringing(command: Command, call: Callable[[bool], T]) -> T:
    """Log in, and ask first where that would take what one account holds to another."""
    try:
        return call(command.line.bring_all)
    except AnotherAccountError as error:
        return call(_may_mix(command.prompts, error))


def _may_mix(prompts: Prompts, refusal: AnotherAccountError) -> bool:
    if not prompts.means_it(f"{refusal.message}. Shall it?"):
        raise refusal
    return True


def _address(typed: str) -> str:
    return typed if "://" in typed else SERVER + typed


def _wants_new(command: Command) -> bool:
    line = command.line
    if line.sign_up or line.recovery or line.void_from is not None:
        return bool(line.sign_up)
    return command.prompts.means_it("make a new account? (no: log in to one that you have)")


def _named(command: Command) -> str:
    return str(command.line.device_name or socket.gethostname().partition(".")[0] or "this machine")


def _signs_up(command: Command, transport: Transport, username: str, before: KdfResponse) -> None:
    prompts = command.prompts
    if before.registration == "closed":
        raise DeniedError(f"{before.origin} takes no new accounts", hint="ask its operator, or use another server")
    bring_all = command.line.bring_all
    if before.account_before and not bring_all:
        # Before there is a recovery code to write down, not by the refusal that would come after it.
        bring_all = _may_mix(prompts, machine.another_account(before.account_before))
    username, invite = _invited(command, transport, username, before)
    password = prompts.new_password()
    code = RecoveryCode.new(os.urandom)
    written_down = show_and_check(prompts, code, os.urandom)
    kdf = new_kdf(os.urandom)
    answer = transport.call(
        "sign_up",
        SignUpRequest(
            origin=before.origin,
            username=username,
            auth_key=auth_key(password, kdf, before.origin),
            kdf=kdf,
            recovery=code.text,
            device_name=_named(command),
            invite=invite,
            bring_all=bring_all,
        ),
    )
    if written_down:
        transport.call("recovery_check", RecoveryCheckRequest(rsk=code.rsk))
        say_done(command, answer, "the account is made, and this is its first device")
    else:
        # Nobody could be asked: whoever runs this must keep the code, and it is nowhere else.
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(made, lambda: f"recovery code: {code.text}\n{identity_line(answer.who)}")
    first_round(command, transport)


def _invited(command: Command, transport: Transport, username: str, before: KdfResponse) -> tuple[str, str]:
    """Return a name that is free and an invitation that is valid, before a password is thought up and a code written.

    A person may correct either; whoever reads from stdin cannot.
    """
    prompts = command.prompts
    invite = prompts.secret("invitation") if before.registration == "invite" else ""
    for left in reversed(range(IDENTITY.tries)):
        try:
            transport.call("sign_up_check", SignUpCheckRequest(origin=before.origin, username=username, invite=invite))
            break
        except (ConflictError, DeniedError) as error:
            if not left or not prompts.person or profile.load(command.chosen.data_dir) is not None:
                raise
            remarks().print(f"{error.message}: {error.hint}", markup=False)
            if isinstance(error, ConflictError):
                username = prompts.word("user name", None)
            else:
                invite = prompts.secret("invitation")
    return username, invite


def _logs_in(command: Command, transport: Transport, username: str, before: KdfResponse) -> None:
    line, prompts = command.line, command.prompts
    password = prompts.secret("password")
    totp = prompts.secret("code of the authenticator app").strip() if line.totp else ""
    code = prompts.secret("recovery code") if line.recovery or line.void_from is not None else ""
    if code:
        RecoveryCode.parse(code)  # a typing error is told before anything is sent
    asked = LogInRequest(
        origin=before.origin,
        username=username,
        auth_key=auth_key(password, before.kdf, before.origin),
        kdf=before.kdf,
        device_name=_named(command),
        code=totp,
        recovery=code,
    )
    joining = _bringing(command, lambda all_: transport.call("log_in", replace(asked, bring_all=all_)))
    if code:
        answer = transport.call("recover", RecoverRequest(code=code, void_from=line.void_from))
        say_done(command, answer, "logged in with the recovery code")
    else:
        say_done(command, WhoResponse(who=_let_in(prompts, transport, joining)), "logged in")
    first_round(command, transport)


def _let_in(prompts: Prompts, transport: Transport, joining: JoiningResponse) -> Who:
    """Wait until another device lets this one in, showing the words to type there; then take those that it shows."""
    console = remarks()
    shown: tuple[str, ...] = ()
    console.print(
        "\nNow run scrubjay devices approve on a device that is logged in.\n"
        "No such device is left? Stop here (Ctrl-C) and run scrubjay login --recovery.",
        markup=False,
    )
    # Not by `joining.expires`: that is a time of the server's clock, and this machine's may be days off.
    give_up = time.monotonic() + IDENTITY.approval_wait_s
    while not joining.added:
        if joining.words != shown:
            shown = joining.words
            if shown:
                console.print(f"\nthis machine's words:  [bold]{' '.join(shown)}[/]\n")
                console.print("Type them on the other device, and nowhere else.", markup=False)
        if time.monotonic() > give_up:
            raise UnavailableError(
                f"no other device approved this machine within {IDENTITY.approval_wait_s / 60:.0f} minutes",
                hint="run scrubjay login again, and scrubjay devices approve on a device that is logged in",
            )
        time.sleep(IDENTITY.approval_poll_s)
        joining = transport.call("poll", Nothing())
    for left in reversed(range(IDENTITY.tries)):
        typed = prompts.typed(f"the {PROOF_COUNT} words that the other device shows now")
        try:
            answer: WhoResponse = transport.call("join", JoinRequest(proof=tuple(typed.lower().split())))
        except DeniedError as error:
            if not left or not prompts.person:
                raise
            console.print(f"{error.message}: {error.hint}", markup=False)
        else:
            return answer.who
    raise AssertionError  # the last try returns or raises
