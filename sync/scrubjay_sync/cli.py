"""`scrubjay login | logout | sync | devices | recovery | account`: from a command line to verbs, and back to a person.

A password is turned into a key here, in the command's own process; a recovery code is made here. Neither stands in a
command line, a log or an error. Commands go through the daemon when it runs, else they open the store themselves.
"""

from __future__ import annotations

import base64
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from scrubjay.cli import invocation, render, times
from scrubjay.cli.output import Output, remarks, write_json
from scrubjay.cli.parser import Help, Parser, shared, text
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    AnotherAccountError,
    ConflictError,
    CorruptError,
    DeniedError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from scrubjay_sync import accounts, keys, profile
from scrubjay_sync.api.account import (
    DeleteRequest,
    PasswordRequest,
    RecoveryCheckRequest,
    RecoveryReplaceRequest,
    TotpRequest,
)
from scrubjay_sync.api.devices import ApproveRequest, DeviceCreateRequest, DevicesResponse, RenameRequest
from scrubjay_sync.api.identity import Nothing, Who, WhoResponse
from scrubjay_sync.api.login import (
    BundleRequest,
    JoiningResponse,
    KdfResponse,
    LogInRequest,
    LogOutRequest,
    RecoverRequest,
    ServerRequest,
    SignUpCheckRequest,
    SignUpRequest,
)
from scrubjay_sync.api.references import RefRequest, not_one_asking, one_of
from scrubjay_sync.api.rounds import Fault, QuietRequest, Renamed, StatusResponse, SyncRequest, SyncResponse
from scrubjay_sync.api.scopes import MODES, FindRequest, FoundResponse, ScopeCreateRequest, ScopesResponse
from scrubjay_sync.api.verification import CompareRequest, HeadsResponse, InspectResponse, LogResponse, VerifyResponse
from scrubjay_sync.keys import RecoveryCode
from scrubjay_sync.policy import IDENTITY, SYNC
from scrubjay_sync.prompts import Prompts
from scrubjay_sync.transport import Transport, connect
from scrubjay_sync.words import COUNT

if TYPE_CHECKING:
    import argparse
    from argparse import Namespace

    from rich.console import RenderableType

    from scrubjay.settings import Settings
    from scrubjay_shared.wire import Kdf

T = TypeVar("T")
SERVER = "https://"
POLL_S = 0.3
"""Between two looks at how far a round is."""

BETA = "Sync is beta: keep a backup (scrubjay backup)."
ALL_OF_IT = (
    "Everything that this store holds will go to the account, encrypted. For an account of its own, give another store:"
    " scrubjay --home FOLDER login."
)
MORE = "scrubjay sync inspect shows what the server holds; scrubjay logout leaves, and the memories stay here."


# --- the command line -------------------------------------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Run one command; `argv` begins with its name. Returns the exit code."""
    name, *rest = argv
    line = parser_of(name).parse_args(rest)
    command = Command(
        line=line,
        out=Output.of(line),
        prompts=Prompts(lines=getattr(line, "password_stdin", False)),
        chosen=invocation.settings_of(line),
    )
    return RUN[name](command) or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command line, and how it speaks and asks."""

    line: Namespace
    out: Output
    prompts: Prompts
    chosen: Settings

    def ask(self, verb: str, request: Any = None) -> Any:
        """Run one verb, and close the way again."""
        with connect(self.chosen) as transport:
            return transport.call(verb, Nothing() if request is None else request)

    def must_be_in(self) -> profile.Profile:
        """Return the login. Raises NotFoundError before anything is asked of a person."""
        return profile.required(self.chosen.data_dir)


def parser_of(name: str) -> Parser:
    """Return the parser of one command."""
    summary, configure, example = COMMANDS[name]
    parser = Parser(
        prog=f"scrubjay {name}",
        description=f"{summary} {BETA}",
        epilog=f"example:\n  {example}\n\n{MORE}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.set_defaults(verb=None)
    configure(parser)
    shared(parser, top=True)
    return parser


def _verbs(parser: Parser, *, required: bool = True) -> Callable[[str, str], Parser]:
    below = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser, required=required)

    def add(name: str, summary: str) -> Parser:
        made: Parser = below.add_parser(
            name, help=summary, description=summary, formatter_class=Help, allow_abbrev=False
        )
        shared(made, top=False)
        return made

    return add


def _stdin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--password-stdin",
        action="store_true",
        help="read passwords and codes from stdin, one a line, in the order they are asked for",
    )


def _login(parser: Parser) -> None:
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
    _stdin(parser)


def _logout(parser: Parser) -> None:
    parser.add_argument(
        "--force", action="store_true", help="leave even if changes wait to be sent, or the server cannot be reached"
    )


def _sync(parser: Parser) -> None:
    parser.add_argument("--watch", action="store_true", help="keep syncing until Ctrl-C")
    add = _verbs(parser, required=False)
    add("status", "show where sync stands, without asking the server")
    verify = add("verify", "read everything again from the server and check it; show words to compare")
    verify.add_argument(
        "--heads", metavar="FILE", help="instead, compare with the file that export-heads wrote on another device"
    )
    add("inspect", "fetch what the server holds and look in it for readable words of this store")
    add("export-heads", "write the ends of the account log and of every lane as JSON, to compare on another device")
    add("log", "list the account log: every change of devices, keys and scopes")
    add("acknowledge", "clear the alarms that you have read")
    quiet = add("quiet", "send once in a quarter of an hour only, so that the server learns less of when you work")
    quiet.add_argument("state", choices=("on", "off"), help="on or off")
    search = add("search", "search a searchable scope at the server (scrubjay recall searches on this machine only)")
    search.add_argument("ref", type=text, metavar="SCOPE", help="name or id, or the beginning of the id")
    search.add_argument("query", type=text, metavar="QUERY", help="the words to look for")
    search.add_argument("--limit", type=int, default=10, metavar="N", help="how many hits, at most 100")
    search.add_argument("--type", type=text, default="", help="only memories of this type")
    search.add_argument("--topic", type=text, default="", help="only memories of this topic")
    scopes = add("scopes", "list, make and delete scopes")
    below = _verbs_below(scopes)
    below("list", "list the scopes")
    create = below("create", "make a scope: new memories of its projects go there, existing ones stay where they are")
    create.add_argument("name", type=text, metavar="NAME", help="the name of the new scope")
    create.add_argument(
        "--project",
        dest="projects",
        action="append",
        default=[],
        type=text,
        metavar="ID",
        help="a project of this scope; repeatable",
    )
    create.add_argument(
        "--mode",
        choices=MODES,
        default="sealed",
        help="sealed (the default: the server cannot read it) or searchable (it can)",
    )
    create.add_argument(
        "--space",
        type=text,
        default="",
        metavar="ID",
        help="searchable: its embedding space, unless that of the model in use",
    )
    create.add_argument(
        "--confirm", type=text, metavar="NAME", help="searchable: the name again, instead of typing it when asked"
    )
    delete = below("delete", "delete a scope at the server and its keys on every device; memories stay on the devices")
    delete.add_argument("ref", type=text, metavar="SCOPE", help="name or id, or the beginning of the id")
    delete.add_argument("--confirm", type=text, metavar="SCOPE", help="the same again, instead of typing it when asked")


def _verbs_below(parser: Parser) -> Callable[[str, str], Parser]:
    parser.set_defaults(scope_verb="list")
    below = parser.add_subparsers(dest="scope_verb", metavar="VERB", parser_class=Parser)

    def add(name: str, summary: str) -> Parser:
        made: Parser = below.add_parser(
            name, help=summary, description=summary, formatter_class=Help, allow_abbrev=False
        )
        shared(made, top=False)
        return made

    return add


def _devices(parser: Parser) -> None:
    add = _verbs(parser)
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


def _recovery(parser: Parser) -> None:
    add = _verbs(parser)
    add("show", "say why the code cannot be shown again, and what to do")
    _stdin(add("verify", "check that the code you wrote down is the account's"))
    rotate = add("rotate", "make a new code, and replace all keys that the old one opened")
    rotate.add_argument(
        "--lost", action="store_true", help="the old code is lost: the new one is valid after seven days"
    )
    _stdin(rotate)


def _account(parser: Parser) -> None:
    add = _verbs(parser)
    _stdin(add("password", "change the password; it encrypts nothing, so nothing else changes"))
    totp = add("totp", "ask logins for the code of an authenticator app too, or stop asking")
    totp.add_argument("state", choices=("on", "off"), help="on or off")
    _stdin(totp)
    add("rotate", "replace the root key and every scope's key for what is written from now on")
    delete = add("delete", "delete the account and everything in it at the server; memories stay on your machines")
    delete.add_argument("--confirm", type=text, metavar="NAME", help="your user name, instead of typing it when asked")
    _stdin(delete)


# --- login, logout ----------------------------------------------------------------------------------------------------


def login(command: Command) -> None:
    """Sign up, or log in on another machine."""
    line, prompts = command.line, command.prompts
    known = profile.load(command.chosen.data_dir)
    if known is not None:
        raise ConflictError(
            f"this machine is logged in as {known.username or 'a limited device'} at {known.origin}",
            hint="scrubjay logout first",
        )
    if not command.out.json:  # a program has read it here, and wants one record on stderr when the login fails
        command.out.remark(f"{BETA}\n{ALL_OF_IT}")
    with connect(command.chosen) as transport:
        if line.bundle:
            bundle = prompts.secret("device bundle")
            answer = _bringing(
                command, lambda all_: transport.call("join_limited", BundleRequest(bundle=bundle, bring_all=all_))
            )
            _said(command, answer, "logged in as a limited device")
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
        bring_all = _may_mix(prompts, accounts.mixing(before.account_before))
    username, invite = _invited(command, transport, username, before)
    password = prompts.new_password()
    code = RecoveryCode.new(os.urandom)
    written_down = prompts.show_code(code, os.urandom)
    kdf = keys.new_kdf(os.urandom)
    answer = transport.call(
        "sign_up",
        SignUpRequest(
            origin=before.origin,
            username=username,
            auth_key=keys.auth_key(password, kdf, before.origin),
            kdf=kdf,
            recovery=code.public,
            device_name=_named(command),
            invite=invite,
            bring_all=bring_all,
        ),
    )
    if written_down:
        transport.call("recovery_check", RecoveryCheckRequest(rsk=code.rsk))
        _said(command, answer, "the account is made, and this is its first device")
    else:
        # Nobody could be asked: whoever runs this must keep the code, and it is nowhere else.
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(made, lambda: f"recovery code: {code.text}\n{_line(answer.who)}")
    _first_round(command, transport)


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
            if not left or not prompts.person:
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
    asked = LogInRequest(
        origin=before.origin,
        username=username,
        auth_key=keys.auth_key(password, before.kdf, before.origin),
        kdf=before.kdf,
        device_name=_named(command),
        code=prompts.secret("code of the authenticator app").strip() if line.totp else "",
    )
    joining = _bringing(command, lambda all_: transport.call("log_in", replace(asked, bring_all=all_)))
    if line.recovery or line.void_from is not None:
        code = prompts.secret("recovery code")
        RecoveryCode.parse(code)  # a typing error is told before anything is sent
        answer = transport.call("recover", RecoverRequest(code=code, void_from=line.void_from))
        _said(command, answer, "logged in with the recovery code")
    else:
        _said(command, WhoResponse(who=_let_in(transport, joining)), "logged in")
    _first_round(command, transport)


def _let_in(transport: Transport, joining: JoiningResponse) -> Who:
    """Wait until another device lets this one in, showing the words to compare."""
    console = remarks()
    shown: tuple[str, ...] = ()
    # Not by `joining.expires`: that is a time of the server's clock, and this machine's may be days off.
    give_up = time.monotonic() + IDENTITY.approval_wait_s
    while joining.who is None:
        if joining.words != shown:
            shown = joining.words
            console.print(f"\nthis machine's words:  [bold]{' '.join(shown)}[/]\n")
            console.print(
                "Now run scrubjay devices approve on a device that is logged in, and compare the words.\n"
                "No such device is left? Stop here (Ctrl-C) and run scrubjay login --recovery.",
                markup=False,
            )
        if time.monotonic() > give_up:
            raise UnavailableError(
                f"no other device approved this machine within {IDENTITY.approval_wait_s / 60:.0f} minutes",
                hint="run scrubjay login again, and scrubjay devices approve on a device that is logged in",
            )
        time.sleep(IDENTITY.approval_poll_s)
        joining = transport.call("poll", Nothing())
    return joining.who


def _first_round(command: Command, transport: Transport) -> None:
    """Sync once. The login stands, whatever becomes of it."""
    try:
        _round(command, transport)
    except (UnavailableError, CorruptError) as error:
        command.out.remark(f"you are logged in; the first sync failed: {error.message}\nscrubjay sync tries again")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUp:
    """A new account where nobody could be shown the recovery code: it stands here, and nowhere else."""

    who: Who
    recovery_code: str


def logout(command: Command) -> None:
    """Leave the account; memories stay."""
    found = command.must_be_in()
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
                    f"{render.counted(status.pending_ops, 'change')} of this device did not reach the server. What is"
                    " not sent stays here, and goes with the next login. Log out?"
                )
                if not force:
                    raise DeniedError(
                        "you did not say yes: this machine is still logged in",
                        hint="scrubjay sync status says what waits, and why",
                    )
        answer = transport.call("log_out", LogOutRequest(force=force))
    words = f"logged out of {found.origin}; the memories stay here"
    if not answer.told and not answer.revoked:
        words += (
            "\nthe account still lists this device: run scrubjay devices revoke on another one, or after the next login"
        )
    if answer.unsent:
        words += f"\n{render.counted(answer.unsent, 'change')} never reached the server: sent after the next login"
    command.out.answer(answer, lambda: words)


# --- sync -------------------------------------------------------------------------------------------------------------


def sync(command: Command) -> int:
    """Sync once, watch, or look."""
    command.must_be_in()
    verb = command.line.verb
    if verb is not None:
        return SYNC_VERBS[verb](command) or 0
    with connect(command.chosen) as transport:
        if command.line.watch:
            return _watch(command, transport)
        answer = _round(command, transport)
        command.out.answer(answer, lambda: _round_shown(answer))
    return 0 if answer.synced and not answer.faults else UnavailableError.exit_code


def _round(command: Command, transport: Transport) -> SyncResponse:
    """Run a round, with a bar for its long steps."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append(transport.call("sync", SyncRequest()))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            done.append(error)

    worker = threading.Thread(target=run, name="scrubjay-sync", daemon=True)
    worker.start()
    with command.out.progress() as bar:
        task = bar.add_task("sync", total=None)
        while worker.is_alive():
            worker.join(POLL_S)
            if worker.is_alive() and not command.out.hushed:
                step = transport.call("progress", Nothing())
                bar.update(task, description=step.step or "sync", completed=step.done, total=step.total or None)
    (result,) = done
    if isinstance(result, BaseException):
        raise result
    answer: SyncResponse = result
    return answer


def _watch(command: Command, transport: Transport) -> int:
    """Sync until somebody has enough. What passes by itself (no network) is waited out."""
    command.out.remark("syncing until Ctrl-C")
    while True:
        try:
            answer = transport.call("sync", SyncRequest(wait_s=SYNC.wait_s))
        except UnavailableError as error:
            pause_s = max(SYNC.backoff_ms / 1000, error.retry_after)
            command.out.remark(f"{error.message}; trying again in {pause_s:.0f} s")
            time.sleep(pause_s)
            continue
        if answer.ops_sent or answer.ops_received or answer.faults:
            command.out.answer(answer, partial(_round_shown, answer))
            sys.stdout.flush()


def _round_shown(answer: SyncResponse) -> Text:
    parts = [
        "in sync" if answer.synced else "not in sync yet",
        f"sent {render.counted(answer.ops_sent, 'change')}",
        f"received {render.counted(answer.ops_received, 'change')}",
    ]
    if answer.conflicts:
        parts.append(f"{render.counted(answer.conflicts, 'conflict')} (scrubjay conflicts)")
    if answer.healed:
        parts.append(f"gave {render.counted(answer.healed, 'object')} back to the server")
    if answer.reincarnated:
        parts.append("this store is a new device now, because a copy of it wrote under the old id")
    lines = [", ".join(parts), *_faults(answer.faults), *_renamed(answer.renamed), _line(answer.who)]
    return Text("\n".join(lines))


def _renamed(found: Sequence[Renamed]) -> list[str]:
    """Return a line for each memory whose name another one had first: it shows under another."""
    return [
        render.clean(f"! two memories were named {one.claimed}; the later one is shown as {one.name}")
        + "\n  "
        + render.clean(f"scrubjay rename {one.name} NEW gives it a name of its own")
        for one in found
    ]


def _faults(faults: Sequence[Fault]) -> list[str]:
    return [render.clean(f"! {one.message}\n  {one.hint}") for one in faults]


def _status(command: Command) -> None:
    answer: StatusResponse = command.ask("status")
    command.out.answer(answer, lambda: _status_shown(answer))


def _status_shown(found: StatusResponse) -> Text:
    rows = [
        ("account", f"{found.who.username or '-'} ({found.who.account[:8]}) at {found.who.origin}"),
        ("device", f"{found.who.device_name} ({found.who.device[:8]})" + (", limited" if found.limited else "")),
        ("keys", f"in {found.who.keys}"),
        ("waiting", render.counted(found.pending_ops, "change") if found.pending_ops else "nothing"),
        ("last sync", _when(found.last_round)),
        ("last verified", _when(found.verified_at)),
        ("devices", str(found.devices)),
    ]
    if found.quiet:
        rows.append(("sends", "every quarter of an hour"))
    if found.last_error:
        rows.append(("last error", f"{found.last_error}, {_when(found.last_error_at)}"))
    if found.clock_off:
        rows.append(("clock", clock_shown(found.clock_offset_ms or 0)))
    if found.quota_percent:
        rows.append(("storage", f"{found.quota_percent} % used"))
    rows += [
        (
            f"{lane.scope} / {lane.device}",
            f"{lane.n}"
            + (f", confirmed {lane.acked}" if lane.own else "")
            + (f", {lane.missing} missing" * bool(lane.missing)),
        )
        for lane in found.lanes
    ]
    shown = render.pairs([(name, render.clean(value)) for name, value in rows])
    lines = [*_faults(found.faults), *_renamed(found.renamed)]
    if found.code_unverified:
        lines.append(
            "! this is the only device, and nobody has checked yet that the recovery code was written down right\n"
            "  scrubjay recovery verify"
        )
    return shown if not lines else Text("\n").join([shown, *(Text(line) for line in lines)])


def clock_shown(offset_ms: int) -> str:
    """Return how far this machine's clock is off the server's; `offset_ms` is what to add to this one's."""
    return f"{abs(offset_ms) // 60_000} minutes {'behind' if offset_ms > 0 else 'ahead of'} the server's"


def _when(at: int | None) -> str:
    return times.moment(Millis(at)) if at else "never"


def _verify(command: Command) -> int:
    if command.line.heads is not None:
        return _compare(command)
    answer: VerifyResponse = command.ask("verify")
    command.out.answer(answer, lambda: _verified_shown(answer))
    return 0 if answer.whole else CorruptError.exit_code


def _verified_shown(answer: VerifyResponse) -> Text:
    lines = [
        f"{lane.scope} / {lane.device}: {render.counted(lane.places, 'place')}, {render.size(lane.bytes)}: "
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
    return Text(render.clean("\n".join([*lines, _line(answer.who)])))


def _compare(command: Command) -> int:
    path = Path(command.line.heads)
    try:
        theirs = msgspec.json.decode(path.read_bytes(), type=HeadsResponse)
    except msgspec.MsgspecError as error:
        raise InvalidError(
            f"{path} is not a file of scrubjay sync export-heads: {error}",
            hint="run scrubjay sync export-heads > FILE on the other device",
        ) from error
    answer = command.ask("compare", CompareRequest(heads=theirs))
    words = f"{render.counted(answer.same, 'place')} compared, all the same on both devices"
    if answer.unknown:
        words += f"; {answer.unknown} more not read here yet (run scrubjay sync, then compare again)"
    command.out.answer(answer, lambda: f"{words}\n{_line(answer.who)}")
    return 0


def _inspect(command: Command) -> int:
    answer: InspectResponse = command.ask("inspect")
    words = [
        f"the server holds {render.counted(answer.objects, 'object')} ({render.size(answer.bytes)})",
        f"looked in them for {answer.grams} pieces of {render.counted(answer.texts, 'text')} of this store",
    ]
    if answer.readable:
        words.append(f"{render.counted(answer.readable, 'object')} are of searchable scopes, which the server can read")
    words += [f"! {one}" for one in answer.findings] or ["found nothing that the server can read"]
    command.out.answer(answer, lambda: "\n".join([*words, _line(answer.who)]))
    return 0 if answer.blind else CorruptError.exit_code


def _export_heads(command: Command) -> None:
    """Write JSON in either case: it is for the other device's `verify --heads`."""
    write_json(command.ask("export_heads"))


def _log(command: Command) -> None:
    answer: LogResponse = command.ask("log")
    command.out.answer(
        answer,
        lambda: "\n".join(
            [*(f"{one.seq:>5}  {one.what}  {one.subject}".rstrip() for one in answer.entries), _line(answer.who)]
        ),
    )


def _acknowledge(command: Command) -> None:
    _said(command, command.ask("acknowledge"), "alarms cleared")


def _quiet(command: Command) -> None:
    on = command.line.state == "on"
    words = "changes are sent once in a quarter of an hour" if on else "changes are sent within seconds"
    _said(command, command.ask("quiet", QuietRequest(on=on)), words)


def _scopes(command: Command) -> None:
    line = command.line
    if line.scope_verb == "create":
        if line.mode == "searchable":
            command.prompts.must_mean(SEARCHABLE.format(origin=command.must_be_in().origin), line.name, line.confirm)
        request = ScopeCreateRequest(name=line.name, mode=line.mode, projects=tuple(line.projects), space=line.space)
        answer = command.ask("scope_create", request)
    elif line.scope_verb == "delete":
        known = {one.id: one.name for one in command.ask("scopes").scopes}
        scope = one_of(line.ref, known, "scope", "sync scopes list")
        command.prompts.must_mean(SHREDS.format(name=known[scope]), line.ref, line.confirm)
        gone = command.ask("scope_delete", RefRequest(ref=scope))
        command.out.answer(gone, lambda: f"deleted {render.counted(gone.objects, 'object')}\n{_line(gone.who)}")
        return
    else:
        answer = command.ask("scopes")
    command.out.answer(answer, lambda: _table(answer.who, ("scope", "id", "mode", "projects"), _scope_rows(answer)))


def _search(command: Command) -> None:
    line = command.line
    answer: FoundResponse = command.ask(
        "search",
        FindRequest(ref=line.ref, text=line.query, limit=line.limit, type=line.type, topic=line.topic),
    )
    if answer.note:
        command.out.remark(answer.note)
    rows = [(f"{hit.score:.2f}", hit.id, hit.type, hit.content) for hit in answer.hits]
    command.out.answer(
        answer, lambda: _table(answer.who, ("score", "id", "type", "memory"), rows) if rows else "nothing found"
    )


SEARCHABLE = """
A searchable scope is NOT encrypted: {origin}, whoever runs it, and whoever steals its backups can read every memory and
event in it, with times and names, and every question that you ask about it. That is what lets the server search for
you. A searchable scope can never be made sealed, only deleted.
"""
SHREDS = """
This will delete every object of the scope {name} at the server, and its keys on every device. If the server has kept a
copy in secret, that can no longer be opened once you have replaced the root key too (scrubjay account rotate).
Memories stay on the devices that have them.
"""


def _scope_rows(answer: ScopesResponse) -> list[tuple[str, ...]]:
    return [
        (one.name, one.id[:8], one.mode, ", ".join(one.projects) or ("everything else" if one.home else "-"))
        for one in answer.scopes
    ]


# --- devices ----------------------------------------------------------------------------------------------------------


def devices(command: Command) -> None:
    """List the devices of the account, add one, shut one out, name one."""
    command.must_be_in()
    line = command.line
    match line.verb:
        case "approve":
            _approve(command)
            return
        case "revoke":
            answer = _revoke(command)
        case "rename":
            answer = command.ask("rename", RenameRequest(ref=line.ref, name=line.name))
        case "create":
            _create(command)
            return
        case _:
            answer = command.ask("devices")
    command.out.answer(answer, lambda: _devices_shown(answer))


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


REVOKES = """
This will shut out {name}, and replace every key that it knew. What it has synced before stays in the account, and it
keeps what it has read. What it has not synced yet will never arrive.
"""


def _devices_shown(answer: DevicesResponse) -> RenderableType:
    rows = []
    for one in answer.devices:
        kinds = [
            "this one" * one.this,
            "revoked" * one.revoked,
            "limited" * one.limited,
            "read-only" * one.read_only,
            f"only {', '.join(one.scopes)}" if one.scopes else "",
        ]
        rows.append((one.name, one.id[:8], _when(one.seen), ", ".join(filter(None, kinds))))
    rows += [("asks to be added", asks.id[:8], "", " ".join(asks.words)) for asks in answer.asking]
    return _table(answer.who, ("device", "id", "last active", ""), rows)


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
    _said(command, answer, "the machine is added, and has all keys of the account")


def _create(command: Command) -> None:
    line = command.line
    answer = command.ask(
        "device_create",
        DeviceCreateRequest(name=line.name, scopes=tuple(line.scopes), read_only=line.read_only),
    )
    command.out.remark(
        "This bundle is shown once, and whoever has it can read these scopes. On the other machine:"
        " scrubjay login --bundle"
    )
    command.out.answer(answer, lambda: answer.bundle)


# --- recovery ---------------------------------------------------------------------------------------------------------


def recovery(command: Command) -> None:
    """Check or replace the recovery code."""
    command.must_be_in()
    match command.line.verb:
        case "verify":
            code = RecoveryCode.parse(command.prompts.secret("recovery code"))
            answer = command.ask("recovery_check", RecoveryCheckRequest(rsk=code.rsk))
            if not answer.valid:
                raise DeniedError(
                    "that is not the recovery code of this account",
                    hint="it may be one from before; scrubjay recovery rotate --lost makes a new one",
                )
            _said(command, answer, "that is the account's recovery code")
        case "rotate":
            _rotate_code(command)
        case _:
            raise NotFoundError(
                "the recovery code was shown once, when it was made, and is stored nowhere",
                hint="scrubjay recovery verify checks what you wrote down; scrubjay recovery rotate makes a new code",
            )


def _rotate_code(command: Command) -> None:
    prompts = command.prompts
    old = "" if command.line.lost else prompts.secret("old recovery code")
    if old:
        RecoveryCode.parse(old)
    code = RecoveryCode.new(os.urandom)
    written_down = prompts.show_code(code, os.urandom)
    answer = command.ask("recovery_replace", RecoveryReplaceRequest(recovery=code.public, old=old))
    since = (
        "is valid now, and the old one no longer"
        if answer.from_at is None
        else f"is valid from {_when(answer.from_at)}; until then the old one is"
    )
    if written_down:
        _said(command, answer, f"the new code {since}")
    else:
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(made, lambda: f"recovery code: {code.text}\nthe new code {since}\n{_line(answer.who)}")


# --- account ----------------------------------------------------------------------------------------------------------


def account(command: Command) -> None:
    """Change the password or the second factor, replace keys, delete the account."""
    found = command.must_be_in()
    match command.line.verb:
        case "password":
            _password(command, found)
        case "totp":
            _totp(command, found)
        case "rotate":
            _said(command, command.ask("rotate"), "every key is replaced for what is written from now on")
        case _:
            with connect(command.chosen) as transport:
                kdf = _kdf(transport, found)  # first: whoever cannot reach the server need not be asked
                command.prompts.must_mean(DELETES.format(origin=found.origin), found.username, command.line.confirm)
                gone = transport.call("account_delete", DeleteRequest(auth_key=_proof(command, kdf, found)))
            words = (
                f"the account is deleted with {render.counted(gone.objects, 'object')};"
                f" nothing of it is left at {found.origin}"
            )
            command.out.answer(gone, lambda: words)


DELETES = """
This will delete the account at {origin} with everything in it, for good. Your other devices will stop syncing. Memories
stay on the machines that have them. The server's backups are deleted on their own schedule.
"""


def _kdf(transport: Transport, found: profile.Profile) -> Kdf:
    """Return how the account's password is derived, as the server says now."""
    before: KdfResponse = transport.call("prelogin", ServerRequest(origin=found.origin, username=found.username))
    return before.kdf


def _proof(command: Command, kdf: Kdf, found: profile.Profile) -> bytes:
    """Return the key of the password in force, asked for now."""
    return keys.auth_key(command.prompts.secret("password"), kdf, found.origin, found.kdf)


def _password(command: Command, found: profile.Profile) -> None:
    with connect(command.chosen) as transport:
        old = _proof(command, _kdf(transport, found), found)
        kdf = keys.new_kdf(os.urandom)
        new = keys.auth_key(command.prompts.new_password(), kdf, found.origin)
        answer = transport.call("password", PasswordRequest(auth_key=old, new_kdf=kdf, new_auth_key=new))
    _said(command, answer, "the password is changed; devices that are logged in stay logged in")


def _totp(command: Command, found: profile.Profile) -> None:
    with connect(command.chosen) as transport:
        proof = _proof(command, _kdf(transport, found), found)
        if command.line.state == "off":
            _said(command, transport.call("totp", TotpRequest(auth_key=proof)), "logins ask for the password only")
            return
        secret = os.urandom(20)
        shown = base64.b32encode(secret).decode()
        label = quote(f"scrubjay:{found.username}")
        remarks().print(f"otpauth://totp/{label}?secret={shown}&issuer=scrubjay", markup=False, soft_wrap=True)
        code = command.prompts.secret("code that your authenticator app shows for it").strip()
        answer = transport.call("totp", TotpRequest(auth_key=proof, secret=secret, code=code))
    _said(command, answer, "logins ask for the app's code too: scrubjay login --totp")


# --- saying it --------------------------------------------------------------------------------------------------------


def _line(who: Who) -> str:
    """Return the line that every command ends with: which account, where, as which device."""
    name = f"{who.username} ({who.account[:8]})" if who.username else who.account[:8]
    return render.clean(f"{name} at {who.origin}, {who.device_name} ({who.device[:8]})")


def _said(command: Command, answer: Any, words: str) -> None:
    command.out.answer(answer, lambda: f"{words}\n{_line(answer.who)}")


def _table(who: Who, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(render.clean(cell)) for cell in row))
    return Group(table, Text(_line(who)))


COMMANDS: dict[str, tuple[str, Callable[[Parser], None], str]] = {
    "login": (
        "Sign up for sync, or add this machine to an account.",
        _login,
        "scrubjay login --server sync.example.org",
    ),
    "logout": ("Stop syncing; the memories stay here.", _logout, "scrubjay logout"),
    "sync": ("Sync now, watch, check what the server holds.", _sync, "scrubjay sync status"),
    "devices": ("List the devices of the account, add them, shut them out.", _devices, "scrubjay devices approve"),
    "recovery": ("Check or replace the recovery code.", _recovery, "scrubjay recovery verify"),
    "account": (
        "Change the password, the second factor or the keys; delete the account.",
        _account,
        "scrubjay account password",
    ),
}
RUN: dict[str, Callable[[Command], int | None]] = {
    "login": login,
    "logout": logout,
    "sync": sync,
    "devices": devices,
    "recovery": recovery,
    "account": account,
}
SYNC_VERBS: dict[str, Callable[[Command], int | None]] = {
    "status": _status,
    "verify": _verify,
    "inspect": _inspect,
    "export-heads": _export_heads,
    "log": _log,
    "acknowledge": _acknowledge,
    "quiet": _quiet,
    "scopes": _scopes,
    "search": _search,
}
