"""`scrubjay login | logout | sync | devices | recovery | account`: from a command line to verbs, and back to a person.

A password is turned into a key here, in the command's own process; a recovery code is made here. Neither stands in a
command line, a log or an error. Commands go through the daemon when it runs, else they open the store themselves.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec
from rich.table import Table
from rich.text import Text

from scrubjay import client, door
from scrubjay.cli import reach, render, times
from scrubjay.cli.output import Output, remarks, write_json
from scrubjay.cli.parser import Help, Parser, shared, text
from scrubjay.client import path_of
from scrubjay.service import Service
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
from scrubjay_sync import accounts, keys, profile, verbs
from scrubjay_sync.keys import RecoveryCode
from scrubjay_sync.policy import IDENTITY, SYNC
from scrubjay_sync.prompts import Prompts
from scrubjay_sync.verbs import VERBS, Nothing, Verbs, Who

if TYPE_CHECKING:
    import argparse
    from argparse import Namespace
    from collections.abc import Iterator

    from rich.console import RenderableType

    from scrubjay.settings import Settings

T = TypeVar("T")
SERVER = "https://"
SLOW_S = 24 * 3600.0
"""What a verb may take whose work grows with the store; it ends when the work does."""
POLL_S = 0.3
"""Between two looks at how far a round is."""

BETA = "Sync is beta: keep a backup (scrubjay backup) until it is not."
ALL_OF_IT = "All that this store holds goes to the account, sealed; --home FOLDER gives another account one of its own."


# --- the way to the verbs ---------------------------------------------------------------------------------------------


class Way(Protocol):
    """A way to the verbs of this store."""

    def call(self, verb: str, request: Any) -> Any:
        """Run a verb. Raises what it raises."""


class Inside:
    """The verbs, in this process, behind a thread with an event loop."""

    def __init__(self, chosen: Settings) -> None:
        """Open the store. Raises ConflictError when another process has it."""
        self._portal = door.Portal()
        try:
            self._service: Service = self._portal.run(Service.configured(chosen, os.environ))
            self._verbs = Verbs(
                self._service.store,
                chosen.data_dir,
                environ=os.environ,
                now=_now,
                entropy=os.urandom,
                sleep=asyncio.sleep,
                meaning=self._service.meaning,
            )
        except BaseException:
            self._portal.close()
            raise

    def call(self, verb: str, request: Any) -> Any:
        """Run a verb."""
        return msgspec.json.decode(
            self._portal.run(self._verbs.call(verb, msgspec.json.encode(request))), type=VERBS[verb][1]
        )

    def close(self) -> None:
        """Close the store."""
        try:
            self._portal.run(self._verbs.close())
            self._portal.run(self._service.close())
        finally:
            self._portal.close()


class Daemon:
    """The verbs, through the daemon that has the store. A call that is under way does not hold up another."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def call(self, verb: str, request: Any) -> Any:
        """Send a verb to the daemon."""
        speaker = client.discover(self._data_dir)
        if speaker is None:
            raise UnavailableError("the daemon has stopped", hint="the same command again works without it")
        with speaker:
            answer = speaker.call(
                "POST", path_of("/v1/workers/sync/{verb}", verb=verb), msgspec.to_builtins(request), timeout=SLOW_S
            )
        return msgspec.convert(answer, VERBS[verb][1])

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def way_of(chosen: Settings) -> Iterator[Inside | Daemon]:
    """Open the way to the verbs: through the daemon that has the store, else here. Waits for other commands."""

    def attempt() -> Inside | Daemon:
        running = client.discover(chosen.data_dir)
        if running is None:
            return Inside(chosen)
        running.close()
        reach.say_version(running.running)
        return Daemon(chosen.data_dir)

    found: Inside | Daemon = door.in_turn(attempt, wait_s=reach.WAIT_S, waiting=reach.waiting)
    try:
        yield found
    finally:
        found.close()


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


# --- the command line -------------------------------------------------------------------------------------------------


def main(argv: Sequence[str]) -> int:
    """Run one command; `argv` begins with its name. Returns the exit code."""
    name, *rest = argv
    line = parser_of(name).parse_args(rest)
    command = Command(
        line=line,
        out=Output.of(line),
        prompts=Prompts(lines=getattr(line, "password_stdin", False)),
        chosen=reach.settings_of(line),
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
        with way_of(self.chosen) as way:
            return way.call(verb, Nothing() if request is None else request)

    def must_be_in(self) -> profile.Profile:
        """Return the login. Raises NotFoundError before anything is asked of a person."""
        return profile.required(self.chosen.data_dir)


def parser_of(name: str) -> Parser:
    """Return the parser of one command."""
    summary, configure, example = COMMANDS[name]
    parser = Parser(
        prog=f"scrubjay {name}",
        description=f"{summary} {BETA}",
        epilog=f"example:\n  {example}\n\nscrubjay docs sync says what the server can see, and how to leave.",
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
    parser.add_argument("--device-name", type=text, metavar="NAME", help="what your other devices call this one")
    parser.add_argument("--sign-up", action="store_true", help="make a new account")
    parser.add_argument("--recovery", action="store_true", help="let this machine in with the recovery code")
    parser.add_argument(
        "--void-from",
        type=int,
        metavar="SEQ",
        help="with the recovery code, cancel what the account log says from entry SEQ on (scrubjay sync log)",
    )
    parser.add_argument("--totp", action="store_true", help="ask for the code of the second factor")
    parser.add_argument("--bundle", action="store_true", help="be the limited device of a bundle, which is asked for")
    parser.add_argument(
        "--bring-all",
        action="store_true",
        help="let all that this store had in another account go to this one, without being asked",
    )
    _stdin(parser)


def _logout(parser: Parser) -> None:
    parser.add_argument("--force", action="store_true", help="leave even if changes wait, or the server is away")


def _sync(parser: Parser) -> None:
    parser.add_argument("--watch", action="store_true", help="go on until Ctrl-C")
    add = _verbs(parser, required=False)
    add("status", "where sync stands; asks no server")
    verify = add("verify", "read everything again from the server and check it; show words to compare")
    verify.add_argument("--heads", metavar="FILE", help="compare with what another device exported instead")
    add("inspect", "look at exactly what the server holds, for anything that it should not have")
    add("export-heads", "write where everything ends, to compare on another device")
    add("log", "list the account log")
    add("acknowledge", "let go of alarms that you have seen")
    quiet = add("quiet", "send every quarter of an hour only, so that the server learns less of when you work")
    quiet.add_argument("state", choices=("on", "off"), help="whether it is")
    search = add("search", "ask the server about a searchable scope; scrubjay recall asks nobody")
    search.add_argument("ref", type=text, metavar="SCOPE", help="its name, or its id")
    search.add_argument("query", type=text, metavar="QUERY", help="what to look for")
    search.add_argument("--limit", type=int, default=10, metavar="N", help="how many, up to 100")
    search.add_argument("--type", type=text, default="", help="only memories of this type")
    search.add_argument("--topic", type=text, default="", help="only memories of this topic")
    scopes = add("scopes", "list, make and delete scopes")
    below = _verbs_below(scopes)
    below("list", "list the scopes")
    create = below("create", "make a scope; what is first written about its projects from then on goes to it")
    create.add_argument("name", type=text, metavar="NAME", help="what to call it")
    create.add_argument(
        "--project", dest="projects", action="append", default=[], type=text, metavar="ID", help="bind it; repeatable"
    )
    create.add_argument(
        "--mode",
        choices=verbs.MODES,
        default="sealed",
        help="sealed (the default: the server cannot read it) or searchable (it can)",
    )
    create.add_argument("--space", type=text, default="", metavar="ID", help="searchable: its embedding space")
    create.add_argument("--confirm", type=text, metavar="NAME", help="searchable: the name again, to confirm")
    delete = below("delete", "delete a scope at the server, and its keys everywhere; local memories stay")
    delete.add_argument("ref", type=text, metavar="SCOPE", help="its name, or its id")
    delete.add_argument("--confirm", type=text, metavar="SCOPE", help="the same again, to confirm")


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
    add("list", "list the devices of the account, and the machines that ask to be let in")
    approve = add("approve", "let a machine in that shows the same words")
    approve.add_argument("ref", nargs="?", default="", type=text, metavar="ID", help="which, when several ask")
    approve.add_argument("--words", nargs=6, type=text, metavar="WORD", help="the words that machine shows")
    revoke = add("revoke", "shut a device out, and replace every key that it knew")
    revoke.add_argument("ref", type=text, metavar="DEVICE", help="its name, or its id")
    revoke.add_argument("--confirm", type=text, metavar="DEVICE", help="the same again, to confirm")
    rename = add("rename", "give a device another name; the server does not see it")
    rename.add_argument("ref", type=text, metavar="DEVICE", help="its name, or its id")
    rename.add_argument("name", type=text, metavar="NAME", help="its new name")
    create = add("create", "make a limited device for a machine without a person; prints its keys once")
    create.add_argument("name", type=text, metavar="NAME", help="what to call it")
    create.add_argument(
        "--scope", dest="scopes", action="append", required=True, type=text, metavar="SCOPE", help="repeatable"
    )
    create.add_argument("--read-only", action="store_true", help="it may not write")


def _recovery(parser: Parser) -> None:
    add = _verbs(parser)
    add("show", "say where the code is")
    _stdin(add("verify", "type the code, to know that it is the right one"))
    rotate = add("rotate", "make a new code; the old one and all keys that it opened are replaced")
    rotate.add_argument("--lost", action="store_true", help="the old code is lost: the new one counts in a week")
    _stdin(rotate)


def _account(parser: Parser) -> None:
    add = _verbs(parser)
    _stdin(add("password", "change the password; it opens no data, so nothing else changes"))
    totp = add("totp", "set or take away the second factor of logins")
    totp.add_argument("state", choices=("on", "off"), help="whether it is")
    _stdin(totp)
    add("rotate", "replace the root key and every scope's key for what is written from now on")
    delete = add("delete", "delete the account and all of it at the server; memories stay on your machines")
    delete.add_argument("--confirm", type=text, metavar="NAME", help="your user name, to confirm")
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
    command.out.remark(f"{BETA}\n{ALL_OF_IT}")
    with way_of(command.chosen) as way:
        if line.bundle:
            bundle = prompts.secret("device bundle")
            answer = _bringing(
                command, lambda all_: way.call("join_limited", verbs.BundleRequest(bundle=bundle, bring_all=all_))
            )
            _said(command, answer, f"in as a limited device of {answer.who.origin}")
            return
        server = _address(prompts.word("server", line.server))
        username = prompts.word("user name", line.username)
        before = way.call("prelogin", verbs.ServerRequest(origin=server, username=username))
        if _wants_new(command):
            _signs_up(command, way, username, before)
        else:
            _logs_in(command, way, username, before)


def _bringing(command: Command, call: Callable[[bool], T]) -> T:
    """Log in, and ask first where that would take what one account holds to another."""
    try:
        return call(command.line.bring_all)
    except AnotherAccountError as error:
        return call(_may_mix(command.prompts, error))


def _may_mix(prompts: Prompts, refusal: AnotherAccountError) -> bool:
    if not prompts.means_it(f"{refusal.message}. May it?"):
        raise refusal
    return True


def _address(typed: str) -> str:
    return typed if "://" in typed else SERVER + typed


def _wants_new(command: Command) -> bool:
    line = command.line
    if line.sign_up or line.recovery or line.void_from is not None:
        return bool(line.sign_up)
    return command.prompts.means_it("is this a new account? (no: you have one, on another machine)")


def _named(command: Command) -> str:
    return str(command.line.device_name or socket.gethostname().partition(".")[0] or "this machine")


def _signs_up(command: Command, way: Way, username: str, before: verbs.KdfAnswer) -> None:
    prompts = command.prompts
    if before.registration == "closed":
        raise DeniedError(f"{before.origin} takes no new accounts", hint="ask its operator")
    bring_all = command.line.bring_all
    if before.account_before and not bring_all:
        # Before there is a recovery code to write down, not by the refusal that would come after it.
        bring_all = _may_mix(prompts, accounts.mixing(before.account_before))
    password = prompts.new_password()
    invite = prompts.secret("invitation") if before.registration == "invite" else ""
    code = RecoveryCode.new(os.urandom)
    written_down = prompts.show_code(code, os.urandom)
    kdf = keys.new_kdf(os.urandom)
    answer = way.call(
        "sign_up",
        verbs.SignUpRequest(
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
        way.call("recovery_check", verbs.RecoveryCheckRequest(rsk=code.rsk))
        _said(command, answer, "the account is made; this is its first device")
    else:
        # Nobody could be asked: whoever runs this must keep the code, and it is nowhere else.
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(made, lambda: f"recovery code: {code.text}\n{_line(answer.who)}")
    _first_round(command, way)


def _logs_in(command: Command, way: Way, username: str, before: verbs.KdfAnswer) -> None:
    line, prompts = command.line, command.prompts
    password = prompts.secret("password")
    asked = verbs.LogInRequest(
        origin=before.origin,
        username=username,
        auth_key=keys.auth_key(password, before.kdf, before.origin),
        kdf=before.kdf,
        device_name=_named(command),
        code=prompts.secret("code of the second factor").strip() if line.totp else "",
    )
    joining = _bringing(command, lambda all_: way.call("log_in", replace(asked, bring_all=all_)))
    if line.recovery or line.void_from is not None:
        code = prompts.secret("recovery code")
        RecoveryCode.parse(code)  # a typing error is told before anything is sent
        answer = way.call("recover", verbs.RecoverRequest(code=code, void_from=line.void_from))
        _said(command, answer, "in, by the recovery code")
    else:
        _said(command, verbs.WhoAnswer(who=_let_in(way, joining)), "in")
    _first_round(command, way)


def _let_in(way: Way, joining: verbs.JoiningAnswer) -> Who:
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
                "on a device that is in: scrubjay devices approve\n"
                "without one: stop here (Ctrl-C), then scrubjay login --recovery",
                markup=False,
            )
        if time.monotonic() > give_up:
            raise UnavailableError("nobody let this machine in", hint="scrubjay login asks again")
        time.sleep(IDENTITY.approval_poll_s)
        joining = way.call("poll", Nothing())
    return joining.who


def _first_round(command: Command, way: Way) -> None:
    """Sync once. The login stands, whatever becomes of it."""
    try:
        _round(command, way)
    except (UnavailableError, CorruptError) as error:
        command.out.remark(f"the first sync did not end: {error.message}\nscrubjay sync goes on with it")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUp:
    """A new account where nobody could be shown the recovery code: it stands here, and nowhere else."""

    who: Who
    recovery_code: str


def logout(command: Command) -> None:
    """Leave the account; memories stay."""
    found = command.must_be_in()
    force = command.line.force
    with way_of(command.chosen) as way:
        if not force and command.prompts.person:
            status = way.call("status", Nothing())
            if status.devices == 1 and not command.prompts.means_it(
                "this is the account's only device: without the recovery code nothing on the server can be read"
                " again. Go on?"
            ):
                raise DeniedError("not confirmed: nothing was done", hint="scrubjay recovery verify checks the code")
            if status.pending_ops:
                force = command.prompts.means_it(
                    f"{render.counted(status.pending_ops, 'change')} have not reached the server; they stay here, and"
                    " go with the next login. Leave?"
                )
        answer = way.call("log_out", verbs.LogOutRequest(force=force))
    words = f"logged out of {found.origin}; the memories stay here"
    if not answer.told:
        words += "\nthe account still lists this device: scrubjay devices revoke on another one takes it out"
    command.out.answer(answer, lambda: words)


# --- sync -------------------------------------------------------------------------------------------------------------


def sync(command: Command) -> int:
    """Sync once, watch, or look."""
    command.must_be_in()
    verb = command.line.verb
    if verb is not None:
        return SYNC_VERBS[verb](command) or 0
    with way_of(command.chosen) as way:
        if command.line.watch:
            return _watch(command, way)
        answer = _round(command, way)
        command.out.answer(answer, lambda: _round_shown(answer))
    return 0 if answer.synced and not answer.faults else UnavailableError.exit_code


def _round(command: Command, way: Way) -> verbs.SyncAnswer:
    """Run a round, with a bar for its long steps."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append(way.call("sync", verbs.SyncRequest()))
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            done.append(error)

    worker = threading.Thread(target=run, name="scrubjay-sync", daemon=True)
    worker.start()
    with command.out.progress() as bar:
        task = bar.add_task("sync", total=None)
        while worker.is_alive():
            worker.join(POLL_S)
            if worker.is_alive() and not command.out.hushed:
                step = way.call("progress", Nothing())
                bar.update(task, description=step.step or "sync", completed=step.done, total=step.total or None)
    (result,) = done
    if isinstance(result, BaseException):
        raise result
    answer: verbs.SyncAnswer = result
    return answer


def _watch(command: Command, way: Way) -> int:
    """Sync until somebody has enough. What passes by itself (no network) is waited out."""
    command.out.remark("Ctrl-C ends it")
    while True:
        try:
            answer = way.call("sync", verbs.SyncRequest(wait_s=SYNC.wait_s))
        except UnavailableError as error:
            command.out.remark(f"{error.message}; {error.hint}")
            time.sleep(max(SYNC.backoff_ms / 1000, getattr(error, "retry_after", 0)))
            continue
        if answer.ops_sent or answer.ops_received or answer.faults:
            command.out.answer(answer, partial(_round_shown, answer))
            sys.stdout.flush()


def _round_shown(answer: verbs.SyncAnswer) -> Text:
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
        parts.append("this store goes on as a new device: a copy of it was at work")
    return Text("\n".join([", ".join(parts), *_faults(answer.faults), _line(answer.who)]))


def _faults(faults: Sequence[verbs.Fault]) -> list[str]:
    return [render.clean(f"! {one.message}\n  {one.hint}") for one in faults]


def _status(command: Command) -> None:
    answer: verbs.StatusAnswer = command.ask("status")
    command.out.answer(answer, lambda: _status_shown(answer))


def _status_shown(found: verbs.StatusAnswer) -> Text:
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
        rows.append(("clock", f"{abs(found.clock_offset_ms or 0) // 60_000} minutes off the server's"))
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
    lines = _faults(found.faults)
    if found.code_unverified:
        lines.append(
            "! the recovery code was never typed back, and this is the only device\n  scrubjay recovery verify"
        )
    return shown if not lines else Text("\n").join([shown, *(Text(line) for line in lines)])


def _when(at: int | None) -> str:
    return times.moment(Millis(at)) if at else "never"


def _verify(command: Command) -> int:
    if command.line.heads is not None:
        return _compare(command)
    answer: verbs.VerifyAnswer = command.ask("verify")
    command.out.answer(answer, lambda: _verified_shown(answer))
    return 0 if answer.whole else CorruptError.exit_code


def _verified_shown(answer: verbs.VerifyAnswer) -> Text:
    lines = [
        f"{lane.scope} / {lane.device}: {render.counted(lane.places, 'place')}, {render.size(lane.bytes)}: "
        + (lane.error or "whole")
        for lane in answer.lanes
    ]
    lines.append("everything the server holds is what was sent" if answer.whole else "not everything is as it must be")
    lines.append(f"words: {' '.join(answer.words)}")
    lines.append("a device that is in step shows the same words; others mean that the server tells them other things")
    return Text(render.clean("\n".join([*lines, _line(answer.who)])))


def _compare(command: Command) -> int:
    path = Path(command.line.heads)
    try:
        theirs = msgspec.json.decode(path.read_bytes(), type=verbs.HeadsAnswer)
    except msgspec.MsgspecError as error:
        raise InvalidError(f"{path}: not what scrubjay sync export-heads writes", hint=str(error)) from error
    answer = command.ask("compare", verbs.CompareRequest(heads=theirs))
    words = f"{answer.same} places are the same on both devices"
    if answer.unknown:
        words += f"; {answer.unknown} are not known here yet (scrubjay sync)"
    command.out.answer(answer, lambda: f"{words}\n{_line(answer.who)}")
    return 0


def _inspect(command: Command) -> int:
    answer: verbs.InspectAnswer = command.ask("inspect")
    words = [
        f"the server holds {render.counted(answer.objects, 'object')} ({render.size(answer.bytes)})",
        f"looked for {answer.grams} pieces of {render.counted(answer.texts, 'text')} of this store",
    ]
    if answer.readable:
        words.append(f"{render.counted(answer.readable, 'object')} are of searchable scopes, which it may read")
    words += [f"! {one}" for one in answer.findings] or ["nothing that it could read was found"]
    command.out.answer(answer, lambda: "\n".join([*words, _line(answer.who)]))
    return 0 if answer.blind else CorruptError.exit_code


def _export_heads(command: Command) -> None:
    """Write JSON in either case: it is for the other device's `verify --heads`."""
    write_json(command.ask("export_heads"))


def _log(command: Command) -> None:
    answer: verbs.LogAnswer = command.ask("log")
    command.out.answer(
        answer,
        lambda: "\n".join(
            [*(f"{one.seq:>5}  {one.what}  {one.subject}".rstrip() for one in answer.entries), _line(answer.who)]
        ),
    )


def _acknowledge(command: Command) -> None:
    _said(command, command.ask("acknowledge"), "alarms let go of")


def _quiet(command: Command) -> None:
    on = command.line.state == "on"
    words = "what is written goes out every quarter of an hour" if on else "what is written goes out within seconds"
    _said(command, command.ask("quiet", verbs.QuietRequest(on=on)), words)


def _scopes(command: Command) -> None:
    line = command.line
    if line.scope_verb == "create":
        if line.mode == "searchable":
            command.prompts.must_mean(SEARCHABLE.format(origin=command.must_be_in().origin), line.name, line.confirm)
        request = verbs.ScopeCreateRequest(
            name=line.name, mode=line.mode, projects=tuple(line.projects), space=line.space
        )
        answer = command.ask("scope_create", request)
    elif line.scope_verb == "delete":
        command.prompts.must_mean(SHREDS, line.ref, line.confirm)
        gone = command.ask("scope_delete", verbs.RefRequest(ref=line.ref))
        command.out.answer(gone, lambda: f"deleted {render.counted(gone.objects, 'object')}\n{_line(gone.who)}")
        return
    else:
        answer = command.ask("scopes")
    command.out.answer(answer, lambda: _table(answer.who, ("scope", "id", "mode", "projects"), _scope_rows(answer)))


def _search(command: Command) -> None:
    line = command.line
    answer: verbs.FoundAnswer = command.ask(
        "search",
        verbs.FindRequest(ref=line.ref, text=line.query, limit=line.limit, type=line.type, topic=line.topic),
    )
    if answer.note:
        command.out.remark(answer.note)
    rows = [(f"{hit.score:.2f}", hit.id, hit.type, hit.content) for hit in answer.hits]
    command.out.answer(
        answer, lambda: _table(answer.who, ("score", "id", "type", "memory"), rows) if rows else "nothing found"
    )


SEARCHABLE = """
A searchable scope is NOT encrypted. {origin}, whoever runs it, and whoever steals its backups can read every memory and
event in it, with times and names, and what you ask of it. That is what lets it search for you. It can never be made
sealed, only deleted.
"""
SHREDS = """
Every object of this scope is deleted at the server, and every device throws away its keys. What the server may have
kept in secret opens no more once the root key is replaced too (scrubjay account rotate). Local memories stay.
"""


def _scope_rows(answer: verbs.ScopesAnswer) -> list[tuple[str, ...]]:
    return [
        (one.name, one.id[:8], one.mode, ", ".join(one.projects) or ("everything else" if one.home else "-"))
        for one in answer.scopes
    ]


# --- devices ----------------------------------------------------------------------------------------------------------


def devices(command: Command) -> None:
    """List, let in, shut out, name."""
    command.must_be_in()
    line = command.line
    match line.verb:
        case "approve":
            _approve(command)
            return
        case "revoke":
            command.prompts.must_mean(REVOKES, line.ref, line.confirm)
            answer = command.ask("revoke", verbs.RefRequest(ref=line.ref))
        case "rename":
            answer = command.ask("rename", verbs.RenameRequest(ref=line.ref, name=line.name))
        case "create":
            _create(command)
            return
        case _:
            answer = command.ask("devices")
    command.out.answer(answer, lambda: _devices_shown(answer))


REVOKES = """
That device is shut out at once, and every key it knew is replaced. What it has synced before stays, and it keeps what
it has read. What it has not synced yet will never arrive.
"""


def _devices_shown(answer: verbs.DevicesAnswer) -> RenderableType:
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
    rows += [("asks to be let in", asks.id[:8], "", " ".join(asks.words)) for asks in answer.asking]
    return _table(answer.who, ("device", "id", "last seen", ""), rows)


def _approve(command: Command) -> None:
    line = command.line
    with way_of(command.chosen) as way:
        words = tuple(line.words or ())
        if not words:
            found = way.call("devices", Nothing())
            asking = [one for one in found.asking if one.id.startswith(line.ref)]
            if len(asking) != 1:
                kind = ConflictError if asking else NotFoundError
                raise kind(f"{len(asking) or 'no'} machines ask to be let in", hint="scrubjay devices list shows them")
            words = asking[0].words
            remarks().print(f"\nthe machine that asks must show:  [bold]{' '.join(words)}[/]\n")
            if not command.prompts.means_it("does it show exactly these six words?"):
                raise DeniedError("it was not let in", hint="if the words differ, somebody is in between: do not go on")
        answer = way.call("approve", verbs.ApproveRequest(ref=line.ref, words=words))
    _said(command, answer, "it is in, with all keys of the account")


def _create(command: Command) -> None:
    line = command.line
    answer = command.ask(
        "device_create",
        verbs.DeviceCreateRequest(name=line.name, scopes=tuple(line.scopes), read_only=line.read_only),
    )
    command.out.remark("this is shown once; whoever has it reads these scopes. There: scrubjay login --bundle")
    command.out.answer(answer, lambda: answer.bundle)


# --- recovery ---------------------------------------------------------------------------------------------------------


def recovery(command: Command) -> None:
    """Check or replace the recovery code."""
    command.must_be_in()
    match command.line.verb:
        case "verify":
            code = RecoveryCode.parse(command.prompts.secret("recovery code"))
            answer = command.ask("recovery_check", verbs.RecoveryCheckRequest(rsk=code.rsk))
            if not answer.valid:
                raise DeniedError(
                    "that is not the recovery code of this account", hint="scrubjay recovery rotate makes a new one"
                )
            _said(command, answer, "that is the code")
        case "rotate":
            _rotate_code(command)
        case _:
            raise NotFoundError(
                "the recovery code was shown once and is kept nowhere", hint="scrubjay recovery rotate makes a new one"
            )


def _rotate_code(command: Command) -> None:
    prompts = command.prompts
    old = "" if command.line.lost else prompts.secret("old recovery code")
    if old:
        RecoveryCode.parse(old)
    code = RecoveryCode.new(os.urandom)
    written_down = prompts.show_code(code, os.urandom)
    answer = command.ask("recovery_replace", verbs.RecoveryReplaceRequest(recovery=code.public, old=old))
    since = (
        "counts now" if answer.from_at is None else f"counts from {_when(answer.from_at)}; until then the old one does"
    )
    if written_down:
        _said(command, answer, f"the new code {since}")
    else:
        made = SignedUp(who=answer.who, recovery_code=code.text)
        command.out.answer(made, lambda: f"recovery code: {code.text}\nit {since}\n{_line(answer.who)}")


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
            _said(command, command.ask("rotate"), "every key is new for what is written from now on")
        case _:
            command.prompts.must_mean(DELETES.format(origin=found.origin), found.username, command.line.confirm)
            with way_of(command.chosen) as way:
                key = _proof(command, way, found)
                gone = way.call("account_delete", verbs.DeleteRequest(auth_key=key))
            words = (
                f"deleted {render.counted(gone.objects, 'object')}; nothing of the account is left at {found.origin}"
            )
            command.out.answer(gone, lambda: words)


DELETES = """
The account at {origin} is deleted with everything in it. Memories stay on the machines that have them; your other
devices stop syncing. The server's backups run out on their own schedule.
"""


def _proof(command: Command, way: Way, found: profile.Profile) -> bytes:
    """Return the key of the password in force, asked for now."""
    before = way.call("prelogin", verbs.ServerRequest(origin=found.origin, username=found.username))
    return keys.auth_key(command.prompts.secret("password"), before.kdf, found.origin, found.kdf)


def _password(command: Command, found: profile.Profile) -> None:
    with way_of(command.chosen) as way:
        old = _proof(command, way, found)
        kdf = keys.new_kdf(os.urandom)
        new = keys.auth_key(command.prompts.new_password(), kdf, found.origin)
        answer = way.call("password", verbs.PasswordRequest(auth_key=old, new_kdf=kdf, new_auth_key=new))
    _said(command, answer, "the password is changed; devices that are in stay in")


def _totp(command: Command, found: profile.Profile) -> None:
    with way_of(command.chosen) as way:
        proof = _proof(command, way, found)
        if command.line.state == "off":
            _said(command, way.call("totp", verbs.TotpRequest(auth_key=proof)), "logins need the password only")
            return
        secret = os.urandom(20)
        shown = base64.b32encode(secret).decode()
        label = quote(f"scrubjay:{found.username}")
        remarks().print(f"otpauth://totp/{label}?secret={shown}&issuer=scrubjay", markup=False, soft_wrap=True)
        code = command.prompts.secret("the code that your app shows for it").strip()
        answer = way.call("totp", verbs.TotpRequest(auth_key=proof, secret=secret, code=code))
    _said(command, answer, "logins need the app's code too: scrubjay login --totp")


# --- saying it --------------------------------------------------------------------------------------------------------


def _line(who: Who) -> str:
    """Return the line that every command ends with: which account, where, as which device."""
    name = f"{who.username} ({who.account[:8]})" if who.username else who.account[:8]
    return render.clean(f"{name} at {who.origin}, {who.device_name} ({who.device[:8]})")


def _said(command: Command, answer: Any, words: str) -> None:
    command.out.answer(answer, lambda: f"{words}\n{_line(answer.who)}")


def _table(who: Who, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, caption=_line(who), caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(render.clean(cell)) for cell in row))
    return table


COMMANDS: dict[str, tuple[str, Callable[[Parser], None], str]] = {
    "login": ("Sign up for sync, or log in on another machine.", _login, "scrubjay login --server sync.example.org"),
    "logout": ("Stop syncing. The memories stay here.", _logout, "scrubjay logout"),
    "sync": ("Sync now, watch, check what the server holds.", _sync, "scrubjay sync status"),
    "devices": ("List devices, let them in, shut them out.", _devices, "scrubjay devices approve"),
    "recovery": ("Check or replace the recovery code.", _recovery, "scrubjay recovery verify"),
    "account": ("Password, second factor, keys, deletion.", _account, "scrubjay account password"),
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
