"""What the commands of sync ask for: one method a verb, records in and out, over one store and its account.

The same verbs run in the daemon, which holds the store, and in a command's own process when no daemon runs. Ids are hex
in these records; a device or scope may be named by its name, its id, or the beginning of its id. Passwords never reach
this module, only what was derived from them; of recovery codes, only those that must open something.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from scrubjay.store import Store, replica
from scrubjay_shared import account as log
from scrubjay_shared.account import EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    RevokedError,
    ScrubjayError,
    SplitError,
    UnavailableError,
)
from scrubjay_shared.wire import CheckSignUp, Kdf, SearchHit, SearchRequest, SetPassword, SetTotp
from scrubjay_sync import accounts, profile, searching
from scrubjay_sync.accounts import Bundle, Joining, Machine
from scrubjay_sync.cloud import Cloud
from scrubjay_sync.engine import Engine, Progress, Round
from scrubjay_sync.keychain import Keychain
from scrubjay_sync.keys import Entropy, RecoveryCode, RecoveryPublic, check_kdf, heads_digest
from scrubjay_sync.membership import Member
from scrubjay_sync.policy import SYNC
from scrubjay_sync.profile import Profile
from scrubjay_sync.searching import Meaning
from scrubjay_sync.watch import Watch
from scrubjay_sync.words import words_of

MIN_PREFIX = 4
"""Characters of an id that may stand for it."""
_SUITES = {"sealed": Suite.SEALED, "searchable": Suite.OPEN}
MODES = tuple(_SUITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A request that needs no more than its name, or an answer that says that it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Which account, where, as which device: what every command prints. `keys` says where the secrets are kept."""

    account: str
    username: str
    origin: str
    device: str
    device_name: str
    keys: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A name at a server."""

    origin: str
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KdfAnswer:
    """How to derive the key that proves the password; `origin` in the one way it is written.

    `account_before` is the account that this store was in last, in hex.
    """

    origin: str
    kdf: Kdf
    registration: str
    account_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpCheckRequest:
    """The name and the invitation of a new account, before there is more of it."""

    origin: str
    username: str
    invite: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignUpRequest:
    """A new account. `auth_key` and `kdf` come from the password, `recovery` is public."""

    origin: str
    username: str
    auth_key: bytes = field(repr=False)
    kdf: Kdf
    recovery: RecoveryPublic
    device_name: str
    invite: str = field(default="", repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInRequest:
    """Another machine of an account. `code` is the TOTP code.

    `bring_all`, here and below: everything that the store had in another account may go to this one.
    """

    origin: str
    username: str
    auth_key: bytes = field(repr=False)
    kdf: Kdf
    device_name: str
    code: str = field(default="", repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningAnswer:
    """How letting in stands: `words` are what the other machine must show; `who` is set once this one is in."""

    words: tuple[str, ...]
    device: str
    expires: int
    who: Who | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverRequest:
    """The recovery code; with `void_from`, everything that the account log says from that entry on is cancelled."""

    code: str = field(repr=False)
    void_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRequest:
    """What `devices create` printed."""

    bundle: str = field(repr=False)
    bring_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutRequest:
    """`force` leaves even with changes that the server has not confirmed, and without telling the account."""

    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutAnswer:
    """`unsent` changes were not confirmed: they go with the next login. `told`: the account log says so now.

    `revoked`: another device had taken this one out of the account before.
    """

    who: Who
    unsent: int
    told: bool
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error that did not end the round, or an alarm. `at` is 0 for one of just now."""

    code: str
    message: str
    hint: str
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """With nothing to do, wait this long for news of other devices."""

    wait_s: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A memory that is shown as `name`, because another memory was `claimed` by that name first, on another device."""

    memory_id: str
    name: str
    claimed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAnswer:
    """What one round did; see `engine.Round`.

    `renamed`, looked for when something was received, are the memories whose name another memory had first.
    """

    who: Who
    synced: bool
    ops_sent: int
    ops_received: int
    conflicts: int
    healed: int
    packed: int
    reincarnated: bool
    faults: tuple[Fault, ...]
    renamed: tuple[Renamed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressAnswer:
    """How far the round under way is; `step` empty when none is, or it is still at its beginning."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLine:
    """One lane, with names."""

    scope: str
    device: str
    own: bool
    n: int
    acked: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """Where sync stands. Times in UTC milliseconds, None for never.

    `code_unverified`: this is the only device and nobody has typed the recovery code back since it was shown.
    `parked` changes of other devices cannot be read by this version, and wait for a newer one. `renamed` are the
    memories whose name another memory had first. `revoked`: another device took this one out of the account.
    """

    who: Who
    pending_ops: int
    last_round: int | None
    last_error: str | None
    last_error_at: int | None
    faults: tuple[Fault, ...]
    lanes: tuple[LaneLine, ...]
    devices: int
    limited: bool
    read_only: bool
    quiet: bool
    code_unverified: bool
    clock_offset_ms: int | None
    clock_off: bool
    quota_percent: int
    verified_at: int | None
    parked: int
    renamed: tuple[Renamed, ...]
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietRequest:
    """Whether to send in quarters of an hour only."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneVerified:
    """One lane read again: how much of it, and what is wrong ("" when nothing is)."""

    scope: str
    device: str
    places: int
    objects: int
    bytes: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAnswer:
    """What reading everything again has shown, and the words that other devices must show too."""

    who: Who
    whole: bool
    words: tuple[str, ...]
    lanes: tuple[LaneVerified, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectAnswer:
    """What the server holds, and what in it is not as it must be; see `inspect.Inspection`."""

    who: Who
    blind: bool
    objects: int
    bytes: int
    readable: int
    texts: int
    grams: int
    sizes: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a lane ends, ids and link in hex."""

    scope: str
    device: str
    n: int
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsAnswer:
    """Where the account log and every lane end as this device knows them: to be compared with another device's."""

    account: str
    device: str
    log_seq: int
    log_head: str
    heads: tuple[Head, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest:
    """What another device exported."""

    heads: HeadsAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareAnswer:
    """How many of the other's places are known here, and found the same. A difference is a SplitError."""

    who: Who
    same: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLine:
    """A scope as people see it. `mode` is sealed or searchable."""

    id: str
    name: str
    mode: str
    home: bool
    projects: tuple[str, ...]
    epoch: int
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopesAnswer:
    """The scopes of the account."""

    who: Who
    scopes: tuple[ScopeLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCreateRequest:
    """A new scope; its mode is for ever."""

    name: str
    mode: str = "sealed"
    projects: tuple[str, ...] = ()
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRequest:
    """A question for the server, about one searchable scope. `type` and `topic` keep to memories of one."""

    ref: str
    text: str
    limit: int = 10
    type: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnswer:
    """What the server found, best first. `mode` is hybrid or keyword; `note` says why it is keyword."""

    who: Who
    scope: str
    mode: str
    note: str
    hits: tuple[SearchHit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRequest:
    """One device or scope."""

    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDeletedAnswer:
    """What the server deleted."""

    who: Who
    objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLine:
    """A device of the account. `seen` is when it was last active, by its own clock, as far as this device has read."""

    id: str
    name: str
    this: bool
    revoked: bool
    limited: bool
    read_only: bool
    scopes: tuple[str, ...]
    seen: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingLine:
    """A machine that asks to be let in, and the words that it must show."""

    id: str
    device: str
    words: tuple[str, ...]
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesAnswer:
    """The devices of the account, and the machines that ask."""

    who: Who
    devices: tuple[DeviceLine, ...]
    asking: tuple[AskingLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesAnswer:
    """What the devices of the account are called, by id. Those that were revoked keep their names."""

    names: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveRequest:
    """Which machine to add (the beginning of its id, or "" for the only one), and the words that it shows."""

    words: tuple[str, ...]
    ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest:
    """A device's new name."""

    ref: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCreateRequest:
    """A limited device: the scopes whose keys it gets."""

    name: str
    scopes: tuple[str, ...]
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleAnswer:
    """A limited device's keys: shown once, and a secret."""

    who: Who
    device: str
    bundle: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCheckRequest:
    """The public half of a code that a person typed."""

    rsk: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAnswer:
    """`valid`: that code is the account's. `from_at`: when a new one counts from; None for at once."""

    who: Who
    valid: bool
    from_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReplaceRequest:
    """A new code's public halves and, to make it count at once, the old code."""

    recovery: RecoveryPublic
    old: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordRequest:
    """The keys of the old and the new password."""

    auth_key: bytes = field(repr=False)
    new_kdf: Kdf
    new_auth_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotpRequest:
    """The second factor's secret and a code of it; both empty to take it away."""

    auth_key: bytes = field(repr=False)
    secret: bytes = field(default=b"", repr=False)
    code: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """The password's key: whoever deletes an account must know it."""

    auth_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedAnswer:
    """What the server deleted; `left` rows of the account are still there, and that is 0."""

    who: Who
    objects: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoAnswer:
    """It was done, by whom."""

    who: Who


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One entry of the account log, in words."""

    seq: int
    what: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAnswer:
    """The account log as this device holds it."""

    who: Who
    entries: tuple[LogLine, ...]


# --- the session ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A login in use; `watch` runs its rounds in the daemon, and is None where a command runs them itself."""

    profile: Profile
    member: Member
    cloud: Cloud
    engine: Engine
    watch: Watch | None = None


class Verbs:
    """The verbs over one store, and the login that they share. `close` when done."""

    def __init__(
        self,
        store: Store,
        data_dir: Path,
        *,
        environ: Mapping[str, str],
        now: Callable[[], Millis],
        entropy: Entropy,
        sleep: Callable[[float], Awaitable[None]],
        transport: httpx2.AsyncBaseTransport | None = None,
        roll: Callable[[], float] | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        """With `roll`, random in [0, 1), rounds run in the background; `transport` takes the place of the network.

        `meaning` embeds what is asked of searchable scopes.
        """
        self._store = store
        self._data_dir = data_dir
        self._vault = Keychain(data_dir, environ=environ)
        self._now = now
        self._entropy = entropy
        self._sleep = sleep
        self._transport = transport
        self._roll = roll
        self._meaning = meaning
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._joining: tuple[Joining, Profile] | None = None
        self._rounds: set[asyncio.Task[Round]] = set()
        self._progress: Progress | None = None

    async def close(self) -> None:
        """End what is under way; nothing is lost by it."""
        session, joining = self._session, self._joining
        await self._stop()
        self._joining = None
        if session is not None:
            await session.cloud.aclose()
        if joining is not None:
            await joining[0].machine.cloud.aclose()

    async def session(self) -> Session | None:
        """Return the login in use, or None when sync is off; its background rounds begin here. Needs no network."""
        async with self._opening:
            if self._session is None:
                found = await asyncio.to_thread(profile.load, self._data_dir)
                if found is not None:
                    cloud = self._cloud(found.origin)
                    try:
                        member = await self._machine(cloud).member()
                    except BaseException:
                        await cloud.aclose()
                        raise
                    self._session = self._started(found, member, cloud)
            return self._session

    async def round(self, *, wait_s: float = 0) -> Round:
        """Run one round, with those of the background held.

        Raises UnavailableError when a logout, or the daemon's own end, ends it.
        """
        session = await self._in()
        async with nullcontext() if session.watch is None else session.watch.hold():
            if self._session is None or self._session.engine is not session.engine:  # it ended while this one waited
                raise _ended()
            task = asyncio.create_task(session.engine.sync(wait_s=wait_s))
            self._rounds.add(task)
            try:
                return await task
            except asyncio.CancelledError:
                task.cancel()
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    raise
                raise _ended() from None
            finally:
                self._rounds.discard(task)
                self._progress = None

    async def call(self, verb: str, body: bytes) -> bytes:
        """Run a verb by its name, JSON in, JSON out. Raises NotFoundError, InvalidError, and what the verb raises."""
        route = VERBS.get(verb)
        if route is None:
            raise NotFoundError(f"sync has no verb {verb[:40]!r}", hint=f"its verbs are {', '.join(VERBS)}")
        request, _, method = route
        try:
            asked = msgspec.json.decode(body or b"{}", type=request)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # The message of msgspec names fields and types, never values.
            raise InvalidError(
                f"the request to {verb} is not valid: {error}",
                hint="if the daemon is of another version than the command: scrubjay daemon restart",
            ) from error
        return msgspec.json.encode(await method(self, asked))

    # --- logging in and out -------------------------------------------------------------------------------------------

    async def prelogin(self, asked: ServerRequest) -> KdfAnswer:
        """Say how a name derives its key at a server, and whether one may sign up there."""
        cloud = self._cloud(asked.origin)
        try:
            caps = await cloud.caps()
            found = await cloud.prelogin(asked.username)
        finally:
            await cloud.aclose()
        check_kdf(found.kdf)
        before = await accounts.account_before(self._store)
        return KdfAnswer(
            origin=cloud.origin, kdf=found.kdf, registration=caps.registration, account_before=before.hex()
        )

    async def sign_up_check(self, asked: SignUpCheckRequest) -> Nothing:
        """Have the server check a name and an invitation. Raises ConflictError, DeniedError; uses neither up."""
        cloud = self._cloud(asked.origin)
        try:
            await cloud.check_sign_up(CheckSignUp(username=asked.username, invite=asked.invite))
        except NotFoundError:
            pass  # an older server: `sign_up` finds out
        finally:
            await cloud.aclose()
        return Nothing()

    async def sign_up(self, asked: SignUpRequest) -> WhoAnswer:
        """Make an account with this machine as its first device."""
        await self._must_be_out()
        cloud = self._cloud(asked.origin)
        try:
            member = await accounts.sign_up(
                self._machine(cloud),
                username=asked.username,
                auth_key=asked.auth_key,
                kdf=asked.kdf,
                recovery=asked.recovery,
                name=asked.device_name,
                invite=asked.invite,
                bring_all=asked.bring_all,
            )
        except BaseException:
            await cloud.aclose()
            raise
        begun = Profile(
            origin=cloud.origin,
            account=member.account,
            username=asked.username,
            device_name=asked.device_name,
            kdf=asked.kdf,
        )
        return WhoAnswer(who=await self._begin(begun, member, cloud))

    async def log_in(self, asked: LogInRequest) -> JoiningAnswer:
        """Prove the password and ask to be let in. `poll` or `recover` go on from there."""
        await self._must_be_out()
        cloud = self._cloud(asked.origin)
        try:
            joining = await accounts.log_in(
                self._machine(cloud),
                username=asked.username,
                auth_key=asked.auth_key,
                name=asked.device_name,
                code=asked.code,
                bring_all=asked.bring_all,
            )
        except BaseException:
            await cloud.aclose()
            raise
        if self._joining is not None:
            await self._joining[0].machine.cloud.aclose()
        pending = Profile(
            origin=cloud.origin,
            account=joining.state.account,
            username=asked.username,
            device_name=asked.device_name,
            kdf=asked.kdf,
        )
        self._joining = joining, pending
        return _joining_answer(joining, None)

    async def poll(self, _: Nothing) -> JoiningAnswer:
        """Look whether another device has let this one in."""
        joining, pending = self._asked_in()
        member = await joining.poll()
        return _joining_answer(joining, None if member is None else await self._in_now(pending, member, joining))

    async def recover(self, asked: RecoverRequest) -> WhoAnswer:
        """Let this machine in with the recovery code; `void_from` also cancels entries of the account log."""
        joining, pending = self._asked_in()
        code = RecoveryCode.parse(asked.code)
        if asked.void_from is None:
            member = await joining.recover(code)
        else:
            member = await joining.void(code, asked.void_from)
        return WhoAnswer(who=await self._in_now(profile.checked_recovery(pending, self._now()), member, joining))

    async def join_limited(self, asked: BundleRequest) -> WhoAnswer:
        """Make this machine the limited device of a bundle."""
        await self._must_be_out()
        bundle = Bundle.parse(asked.bundle)
        cloud = self._cloud(bundle.origin)
        try:
            member = await accounts.join_limited(self._machine(cloud), bundle, bring_all=asked.bring_all)
        except BaseException:
            await cloud.aclose()
            raise
        name = member.device_name(member.device)
        begun = Profile(origin=cloud.origin, account=member.account, username="", device_name=name)
        return WhoAnswer(who=await self._begin(begun, member, cloud))

    async def log_out(self, asked: LogOutRequest) -> LogOutAnswer:
        """Leave the account; memories stay. Raises ConflictError for unconfirmed changes, unless forced.

        A login whose keys are lost, or whose device was revoked, can be left like any other.
        """
        found = await asyncio.to_thread(profile.required, self._data_dir)
        try:
            session = await self.session()
        except (NotFoundError, ScrubjayError):
            if not asked.force:
                raise
            session = None
        who = _who(found, self._store.device, self._vault.where)
        status = None if session is None else await session.engine.status()
        unsent = 0 if status is None else status.pending_ops
        revoked = status is not None and status.error == RevokedError.code
        if unsent and not asked.force:
            raise _unsent(unsent, revoked=revoked)
        await self._stop()
        machine = self._machine(self._cloud(found.origin) if session is None else session.cloud)
        told = session is not None and not session.member.limited
        try:
            try:
                await accounts.log_out(machine, None if session is None else session.member)
            except RevokedError:
                told, revoked = False, True
                await accounts.leave(self._store, self._vault, self._entropy)
            except UnavailableError as error:
                if not asked.force:
                    raise UnavailableError(
                        f"{error.message}: this machine is still logged in",
                        hint="try again when the server can be reached, or scrubjay logout --force: the account lists"
                        " this device then until another one revokes it",
                        retry_after=error.retry_after,
                    ) from error
                told = False
                await accounts.leave(self._store, self._vault, self._entropy)
            await asyncio.to_thread(profile.erase, self._data_dir)
        finally:
            await machine.cloud.aclose()
        return LogOutAnswer(who=who, unsent=unsent, told=told, revoked=revoked)

    # --- syncing ------------------------------------------------------------------------------------------------------

    async def sync(self, asked: SyncRequest) -> SyncAnswer:
        """Run one round."""
        done = await self.round(wait_s=min(max(asked.wait_s, 0), SYNC.wait_s))
        session = await self._in()
        return SyncAnswer(
            who=self._who(session),
            synced=done.synced,
            ops_sent=done.ops_sent,
            ops_received=done.ops_received,
            conflicts=done.conflicts,
            healed=done.healed,
            packed=done.packed,
            reincarnated=done.reincarnated,
            faults=tuple(Fault(code=one.code, message=one.message, hint=one.hint) for one in done.errors),
            renamed=await self._renamed() if done.ops_received else (),
        )

    async def progress(self, _: Nothing) -> ProgressAnswer:
        """Say how far the round under way is."""
        found = self._progress
        if found is None:
            return ProgressAnswer(step="", done=0, total=0)
        return ProgressAnswer(step=found.step, done=found.done, total=found.total)

    async def status(self, _: Nothing) -> StatusAnswer:
        """Say where sync stands. Needs no network."""
        session = await self._in()
        member, found = session.member, await session.engine.status()
        only = len([one for one in member.state.active() if one.full]) == 1 and not member.limited
        return StatusAnswer(
            who=self._who(session),
            pending_ops=found.pending_ops,
            last_round=found.round_at,
            last_error=found.error,
            last_error_at=found.error_at,
            faults=tuple(Fault(code=one.code, message=one.message, hint=one.hint, at=one.at) for one in found.alarms),
            lanes=tuple(
                LaneLine(
                    scope=member.scope_name(lane.scope),
                    device=member.device_name(lane.device),
                    own=lane.own,
                    n=lane.n,
                    acked=lane.acked,
                    missing=lane.missing,
                )
                for lane in found.lanes
            ),
            devices=len(member.state.active()),
            limited=member.limited,
            read_only=member.read_only,
            quiet=session.profile.quiet,
            code_unverified=only and session.profile.recovery_checked is None,
            clock_offset_ms=found.clock_offset_ms,
            clock_off=found.clock_off,
            quota_percent=found.quota_percent,
            verified_at=found.verified_at,
            parked=len(await self._store.parked()),
            renamed=await self._renamed(),
            revoked=found.error == RevokedError.code,
        )

    async def names(self, _: Nothing) -> NamesAnswer:
        """Say what the devices of the account are called. Needs no network."""
        member = (await self._in()).member
        return NamesAnswer(names={one.hex(): member.device_name(one) for one in member.state.devices})

    async def acknowledge(self, _: Nothing) -> WhoAnswer:
        """Clear all alarms: a person has read them."""
        session = await self._in()
        await session.engine.acknowledge()
        return WhoAnswer(who=self._who(session))

    async def quiet(self, asked: QuietRequest) -> WhoAnswer:
        """Send in quarters of an hour only, or soon after each write again. A `sync` asked for is not held back."""
        session = await self._in()
        chosen = replace(session.profile, quiet=asked.on)
        await asyncio.to_thread(profile.save, self._data_dir, chosen)
        who = self._who(session)
        await self._stop()  # the rounds begin anew, by the other rule
        await session.cloud.aclose()
        await self.session()
        return WhoAnswer(who=who)

    async def verify(self, _: Nothing) -> VerifyAnswer:
        """Read every lane again from the server and check it."""
        session = await self._in()
        found = await session.engine.verify()
        member = session.member
        return VerifyAnswer(
            who=self._who(session),
            whole=found.whole,
            words=found.words,
            lanes=tuple(
                LaneVerified(
                    scope=member.scope_name(lane.scope),
                    device=member.device_name(lane.device),
                    places=lane.n,
                    objects=lane.objects,
                    bytes=lane.bytes,
                    error="" if lane.error is None else lane.error.message,
                )
                for lane in found.lanes
            ),
        )

    async def inspect(self, _: Nothing) -> InspectAnswer:
        """Fetch what the server holds, and look in it for anything that it should not have."""
        session = await self._in()
        await self._admitted(session)
        found = await session.engine.inspect()
        return InspectAnswer(
            who=self._who(session),
            blind=found.blind,
            objects=found.objects,
            bytes=found.bytes,
            readable=found.readable,
            texts=found.texts,
            grams=found.grams,
            sizes=found.sizes,
            findings=found.findings,
        )

    async def export_heads(self, _: Nothing) -> HeadsAnswer:
        """Say where everything ends as this device knows it."""
        member = (await self._in()).member
        lanes = {lane_id: (lane.n, lane.tip) for lane_id, lane in (await replica.lanes(self._store)).items() if lane.n}
        return HeadsAnswer(
            account=member.account.hex(),
            device=member.device.hex(),
            log_seq=member.state.seq,
            log_head=member.state.head.hex(),
            heads=tuple(
                Head(scope=scope.hex(), device=device.hex(), n=n, tip=tip.hex())
                for (scope, device), (n, tip) in sorted(lanes.items())
            ),
            words=words_of(heads_digest(member.account, member.state.head, lanes)),
        )

    async def compare(self, asked: CompareRequest) -> CompareAnswer:
        """Compare with what another device exported. Raises SplitError when the server told it something else."""
        session = await self._in()
        theirs = asked.heads
        if theirs.account != session.member.account.hex():
            raise InvalidError(
                "that file is of another account", hint="run scrubjay sync export-heads on a device of this account"
            )
        same = unknown = 0
        entries = session.member.entries
        if theirs.log_seq < len(entries):
            if log.read(entries[theirs.log_seq]).hash.hex() != theirs.log_head:
                raise _split(f"entry {theirs.log_seq} of the account log")
            same += 1
        else:
            unknown += 1
        for head in theirs.heads:
            scope, device = _unhex(head.scope), _unhex(head.device)
            known = await replica.link(self._store, scope, device, head.n)
            if known is None:
                unknown += 1
            elif known.hex() != head.tip:
                raise _split(f"place {head.n} of lane {head.device[:8]}")
            else:
                same += 1
        return CompareAnswer(who=self._who(session), same=same, unknown=unknown)

    async def log(self, _: Nothing) -> LogAnswer:
        """List the account log as this device holds it."""
        session = await self._in()
        member = session.member
        return LogAnswer(who=self._who(session), entries=tuple(_line(member, data) for data in member.entries))

    # --- scopes -------------------------------------------------------------------------------------------------------

    async def scopes(self, _: Nothing) -> ScopesAnswer:
        """List the scopes of the account."""
        session = await self._in()
        member = session.member
        bound: dict[bytes, list[str]] = {}
        for project, scope in sorted(member.projects.items()):
            bound.setdefault(scope, []).append(project)
        return ScopesAnswer(
            who=self._who(session),
            scopes=tuple(
                ScopeLine(
                    id=one.id.hex(),
                    name=member.scope_name(one.id),
                    mode=_mode(one.suite),
                    home=one.home,
                    projects=tuple(bound.get(one.id, ())),
                    epoch=one.epoch,
                    held=one.id in member.scopes,
                )
                for one in member.state.scopes.values()
                if not one.deleted
            ),
        )

    async def scope_create(self, asked: ScopeCreateRequest) -> ScopesAnswer:
        """Make a scope, and bind projects to it."""
        session = await self._in()
        if asked.mode not in _SUITES:
            raise InvalidError(f"a scope's mode is {' or '.join(MODES)}, got {asked.mode[:40]!r}", hint="see --help")
        name = _named(asked.name)
        await accounts.create_scope(
            session.member,
            self._machine(session.cloud),
            name=name,
            suite=_SUITES[asked.mode],
            projects=asked.projects,
            space=asked.space or await searching.space_in_use(self._store) if asked.mode == "searchable" else "",
        )
        return await self.scopes(Nothing())

    async def search(self, asked: FindRequest) -> FoundAnswer:
        """Ask the server about a searchable scope; by meaning, too, if this machine has the scope's model."""
        session = await self._in()
        await self._admitted(session)
        scope = _scope(session.member, asked.ref)
        request = SearchRequest(text=asked.text, limit=asked.limit, type=asked.type, topic=asked.topic)
        found = await searching.asked(session.member, session.cloud, self._meaning, scope, request)
        return FoundAnswer(
            who=self._who(session),
            scope=session.member.scope_name(scope),
            mode=found.answer.mode,
            note=found.note,
            hits=found.answer.hits,
        )

    async def scope_delete(self, asked: RefRequest) -> ScopeDeletedAnswer:
        """Delete a scope at the server, and its keys everywhere."""
        session = await self._in()
        await session.member.refresh(session.cloud)
        deleted = await accounts.delete_scope(session.member, session.cloud, _scope(session.member, asked.ref))
        return ScopeDeletedAnswer(who=self._who(session), objects=deleted.objects)

    # --- devices ------------------------------------------------------------------------------------------------------

    async def devices(self, _: Nothing) -> DevicesAnswer:
        """List the devices of the account, and the machines that ask to be let in."""
        session = await self._in()
        member = session.member
        await member.refresh(session.cloud)
        seen = {one: at for one in member.state.devices if (at := await replica.active(self._store, one)) is not None}
        state = await replica.state(self._store)
        if state is not None and state.round_at is not None:  # nobody sends word that there was nothing to send
            seen[member.device] = Millis(max(state.round_at, seen.get(member.device, 0)))
        asking = () if member.limited else (await session.cloud.enrolments()).enrolments
        return DevicesAnswer(
            who=self._who(session),
            devices=tuple(
                DeviceLine(
                    id=one.id.hex(),
                    name=member.device_name(one.id),
                    this=one.id == member.device,
                    revoked=one.revoked,
                    limited=not one.full,
                    read_only=one.read_only,
                    scopes=tuple(member.scope_name(scope) for scope in one.scopes or ()),
                    seen=seen.get(one.id),
                )
                for one in sorted(member.state.devices.values(), key=lambda one: one.added)
            ),
            asking=tuple(
                AskingLine(
                    id=one.id.hex(),
                    device=one.device.hex(),
                    words=accounts.words_for(member, one),
                    expires=one.expires,
                )
                for one in asking
                if not one.approved and one.device not in member.state.devices
            ),
        )

    async def approve(self, asked: ApproveRequest) -> WhoAnswer:
        """Let in the machine that shows these words. Raises DeniedError when they are others."""
        session = await self._in()
        await session.member.refresh(session.cloud)
        waiting = [
            one
            for one in (await session.cloud.enrolments()).enrolments
            if not one.approved and one.device not in session.member.state.devices
        ]
        fitting = [one for one in waiting if asked.ref in {"", one.id.hex()[: len(asked.ref)]}]
        if len(fitting) != 1:
            raise not_one_asks(len(fitting))
        await accounts.approve(session.member, session.cloud, fitting[0], asked.words)
        return WhoAnswer(who=self._who(session))

    async def revoke(self, asked: RefRequest) -> DevicesAnswer:
        """Shut a device out, and replace every key that it knew. What it wrote up to now counts."""
        session = await self._in()
        await session.member.refresh(session.cloud)
        device = _device(session.member, asked.ref)
        if device != session.member.device:
            # First: what it pushed after our round would count for those who pulled it, and be missing here for ever.
            await session.cloud.delete_device(device)
        await self.round()  # what it has pushed is then held and verified here
        await accounts.revoke(
            session.member,
            session.cloud,
            device,
            ends=await accounts.ends_of(self._store, device),
            entropy=self._entropy,
        )
        return await self.devices(Nothing())

    async def rename(self, asked: RenameRequest) -> DevicesAnswer:
        """Give a device a name."""
        session = await self._in()
        await session.member.refresh(session.cloud)
        device, name = _device(session.member, asked.ref), _named(asked.name)
        await accounts.rename_device(session.member, session.cloud, device, name)
        if device == session.member.device:
            await self._put(replace(session.profile, device_name=name))
        return await self.devices(Nothing())

    async def device_create(self, asked: DeviceCreateRequest) -> BundleAnswer:
        """Make a limited device for a machine without a person. What it needs is shown once."""
        session = await self._in()
        await session.member.refresh(session.cloud)
        if not asked.scopes:
            raise InvalidError("a limited device needs at least one scope", hint="name it with --scope")
        bundle = await accounts.create_limited(
            session.member,
            session.cloud,
            name=_named(asked.name),
            scopes=[_scope(session.member, ref) for ref in asked.scopes],
            read_only=asked.read_only,
            entropy=self._entropy,
        )
        return BundleAnswer(who=self._who(session), device=bundle.device.hex(), bundle=bundle.text)

    # --- recovery, password -------------------------------------------------------------------------------------------

    async def recovery_check(self, asked: RecoveryCheckRequest) -> RecoveryAnswer:
        """Say whether a code that a person typed is the account's, and note that they have it."""
        session = await self._in()
        valid = accounts.is_recovery(session.member.state, asked.rsk, self._now())
        if valid:
            await self._put(profile.checked_recovery(session.profile, self._now()))
        return RecoveryAnswer(who=self._who(await self._in()), valid=valid)

    async def recovery_replace(self, asked: RecoveryReplaceRequest) -> RecoveryAnswer:
        """Put a new recovery code in the place of the old, and replace the keys that the old one opened."""
        session = await self._in()
        await accounts.replace_recovery(
            session.member,
            session.cloud,
            asked.recovery,
            old=RecoveryCode.parse(asked.old) if asked.old else None,
            now=self._now,
            entropy=self._entropy,
        )
        await self._put(profile.checked_recovery(session.profile, self._now()))
        waiting = session.member.state.waiting_recovery
        return RecoveryAnswer(
            who=self._who(await self._in()), valid=True, from_at=None if waiting is None else waiting[2]
        )

    async def rotate(self, _: Nothing) -> WhoAnswer:
        """Replace the root key and every scope's key for what is written from now on."""
        session = await self._in()
        await accounts.rotate(session.member, session.cloud, entropy=self._entropy)
        return WhoAnswer(who=self._who(session))

    async def password(self, asked: PasswordRequest) -> WhoAnswer:
        """Change the password. No data is touched."""
        session = await self._in()
        await self._admitted(session)
        await session.cloud.set_password(
            SetPassword(auth_key=asked.auth_key, new_kdf=asked.new_kdf, new_auth_key=asked.new_auth_key)
        )
        await self._put(replace(session.profile, kdf=asked.new_kdf))
        return WhoAnswer(who=self._who(await self._in()))

    async def totp(self, asked: TotpRequest) -> WhoAnswer:
        """Set or take away the second factor."""
        session = await self._in()
        await self._admitted(session)
        await session.cloud.set_totp(SetTotp(auth_key=asked.auth_key, secret=asked.secret, code=asked.code))
        return WhoAnswer(who=self._who(session))

    async def account_delete(self, asked: DeleteRequest) -> DeletedAnswer:
        """Delete the account at the server, and leave it. Memories stay here."""
        session = await self._in()
        await self._admitted(session)
        who = self._who(session)
        await self._stop()
        try:
            deleted = await accounts.delete_account(self._machine(session.cloud), asked.auth_key)
        except ScrubjayError:
            self._session = self._started(session.profile, session.member, session.cloud)
            raise
        await asyncio.to_thread(profile.erase, self._data_dir)
        await session.cloud.aclose()
        return DeletedAnswer(who=who, objects=deleted.objects, left=deleted.left)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _cloud(self, origin: str) -> Cloud:
        return Cloud(origin, now=self._now, transport=self._transport)

    def _machine(self, cloud: Cloud) -> Machine:
        return Machine(store=self._store, vault=self._vault, cloud=cloud, now=self._now, entropy=self._entropy)

    def _started(self, found: Profile, member: Member, cloud: Cloud) -> Session:
        engine = Engine(
            self._store,
            member,
            cloud,
            now=self._now,
            entropy=self._entropy,
            sleep=self._sleep,
            free_bytes=lambda: shutil.disk_usage(self._data_dir).free,
            on_progress=self._note,
            meaning=self._meaning,
        )
        watch = None
        if self._roll is not None:
            watch = Watch(engine, self._store, roll=self._roll, quiet=found.quiet)
            watch.start()
        return Session(profile=found, member=member, cloud=cloud, engine=engine, watch=watch)

    def _note(self, progress: Progress) -> None:
        self._progress = progress

    async def _in(self) -> Session:
        session = await self.session()
        if session is None:
            raise NotFoundError("this machine is not logged in: sync is off", hint=profile.LOGIN_HINT)
        return session

    async def _renamed(self) -> tuple[Renamed, ...]:
        """Return the memories whose name another memory had first."""
        found = await replica.clashes(self._store)
        return tuple(Renamed(memory_id=memory_id, name=name, claimed=claimed) for name, claimed, memory_id in found)

    async def _admitted(self, session: Session) -> None:
        """Have the account's server know who asks, for verbs that do not look at the log themselves."""
        await session.member.refresh(session.cloud)

    async def _must_be_out(self) -> None:
        found = await asyncio.to_thread(profile.load, self._data_dir)
        if found is not None:
            raise ConflictError(
                f"this machine is logged in as {found.username or 'a limited device'} at {found.origin}",
                hint="scrubjay logout first",
            )
        if await replica.state(self._store) is not None:  # a login that was cut off before its end
            await accounts.leave(self._store, self._vault, self._entropy)

    def _asked_in(self) -> tuple[Joining, Profile]:
        if self._joining is None:
            raise NotFoundError("no login is under way", hint=profile.LOGIN_HINT)
        return self._joining

    async def _in_now(self, pending: Profile, member: Member, joining: Joining) -> Who:
        self._joining = None
        return await self._begin(pending, member, joining.machine.cloud)

    async def _begin(self, begun: Profile, member: Member, cloud: Cloud) -> Who:
        await asyncio.to_thread(profile.save, self._data_dir, begun)
        self._session = self._started(begun, member, cloud)
        return self._who(self._session)

    async def _put(self, changed: Profile) -> None:
        await asyncio.to_thread(profile.save, self._data_dir, changed)
        if self._session is not None:
            self._session = replace(self._session, profile=changed)

    async def _stop(self) -> None:
        """End the session's work: its engine must not write once what it stands on is erased."""
        session, self._session = self._session, None
        rounds = list(self._rounds)  # first: the watch's last try would wait for them
        for task in rounds:
            task.cancel()
        await asyncio.gather(*rounds, return_exceptions=True)
        if session is not None and session.watch is not None:
            await session.watch.close()

    def _who(self, session: Session) -> Who:
        return _who(session.profile, self._store.device, self._vault.where)


def _ended() -> UnavailableError:
    return UnavailableError(
        "the round was ended: this machine logged out, or its daemon stopped", hint="scrubjay sync status shows which"
    )


def _unsent(count: int, *, revoked: bool) -> ConflictError:
    """Return what is said to a device that would leave with changes that nobody else has."""
    changes = f"{count} change{'s' * (count != 1)} of this device"
    if revoked:
        return ConflictError(
            f"this device was revoked, and {changes} never reached the server",
            hint="scrubjay logout --force leaves; what was not sent stays here, and goes with the next login",
        )
    return ConflictError(
        f"{changes} did not reach the server yet",
        hint="scrubjay sync sends them; scrubjay logout --force leaves them here for the next login",
    )


def not_one_asks(count: int) -> ScrubjayError:
    """Return what is said when no machine, or more than one, asks to be added."""
    if count:
        return ConflictError(
            f"{count} machines ask to be added", hint="scrubjay devices list shows them; then devices approve ID"
        )
    return NotFoundError("no machine asks to be added", hint="run scrubjay login on the new machine first")


def _who(found: Profile, device: str, where: str) -> Who:
    return Who(
        account=found.account.hex(),
        username=found.username,
        origin=found.origin,
        device=device,
        device_name=found.device_name,
        keys=where,
    )


def _joining_answer(joining: Joining, who: Who | None) -> JoiningAnswer:
    return JoiningAnswer(
        words=joining.words, device=joining.machine.device.hex(), expires=joining.pending.expires, who=who
    )


def _mode(suite: int) -> str:
    return next(mode for mode, known in _SUITES.items() if known == suite)


def _named(name: str) -> str:
    """Return a name for a device or scope. Raises InvalidError when it is empty, long or not printable."""
    cleaned = name.strip()
    if not cleaned or len(cleaned) > MAX_NAME or not cleaned.isprintable():
        raise InvalidError(
            f"a name has 1 to {MAX_NAME} printable characters, got {name[:MAX_NAME]!r} ({len(cleaned)} characters)",
            hint="choose another name",
        )
    return cleaned


MAX_NAME = 64
"""Characters of a device's or scope's name: what fits a line."""


def _device(member: Member, ref: str) -> bytes:
    """Return a device in force by its name or id. Raises NotFoundError, ConflictError."""
    found = {one.id.hex(): member.device_name(one.id) for one in member.state.active()}
    return bytes.fromhex(one_of(ref, found, "device", "devices list"))


def _scope(member: Member, ref: str) -> bytes:
    """Return a scope by its name or id. Raises NotFoundError, ConflictError."""
    found = {one.hex(): member.scope_name(one) for one in member.scopes}
    return bytes.fromhex(one_of(ref, found, "scope", "sync scopes list"))


def one_of(ref: str, names: Mapping[str, str], what: str, command: str) -> str:
    """Return which id a person means by a name, an id or its beginning. Raises NotFoundError, ConflictError.

    `names` are those of the ids; `what` they are, and the `command` that lists them, are for the error.
    """
    fitting = [one for one, name in names.items() if name == ref]
    if not fitting and len(ref) >= MIN_PREFIX:
        fitting = [one for one in names if one.startswith(ref.lower())]
    if not fitting:
        raise NotFoundError(f"the account has no {what} {ref[:60]!r}", hint=f"scrubjay {command} shows them")
    if len(fitting) > 1:
        raise ConflictError(
            f"{len(fitting)} {what}s are called {ref[:60]!r}",
            hint=f"give the beginning of the id instead; scrubjay {command} shows it",
        )
    return fitting[0]


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InvalidError(
            f"the file of the other device holds an id that is not hex: {text[:40]!r}",
            hint="write it again with scrubjay sync export-heads on that device",
        ) from error


def _split(what: str) -> SplitError:
    return SplitError(
        f"the server has shown your devices two different histories: they differ from {what} on",
        hint="do not trust this server: keep the stores of both devices, and find out which history is true",
    )


_WORDS_OF_ENTRY: dict[int, str] = {
    EntryType.GENESIS: "account made",
    EntryType.DEVICE_ADD: "device added",
    EntryType.DEVICE_REVOKE: "device revoked",
    EntryType.DEVICE_REKEY: "device renewed its keys",
    EntryType.ROTATE: "root key replaced",
    EntryType.KEYRING_SET: "keyring written",
    EntryType.SCOPE_CREATE: "scope made",
    EntryType.SCOPE_DELETE: "scope deleted",
    EntryType.EPOCH_ADD: "scope key replaced",
    EntryType.LANE_ADOPT: "lane adopted",
    EntryType.RECOVERY_ROTATE: "recovery code replaced",
    EntryType.ORIGIN_ADD: "address added",
    EntryType.VOID: "entries cancelled",
}
_OF_DEVICES = frozenset({EntryType.DEVICE_ADD, EntryType.DEVICE_REVOKE, EntryType.DEVICE_REKEY})
_OF_SCOPES = frozenset({EntryType.SCOPE_CREATE, EntryType.SCOPE_DELETE, EntryType.EPOCH_ADD, EntryType.LANE_ADOPT})


def _line(member: Member, data: bytes) -> LogLine:
    entry = log.read(data)
    about = entry.body.get(1)
    subject = ""
    if entry.type in _OF_DEVICES and isinstance(about, bytes):
        subject = member.device_name(about)
    elif entry.type in _OF_SCOPES and isinstance(about, bytes):
        subject = member.scope_name(about)
    elif entry.type == EntryType.VOID:
        subject = f"from entry {about} on"
    return LogLine(seq=entry.seq, what=_WORDS_OF_ENTRY.get(entry.type, f"entry of type {entry.type}"), subject=subject)


Method = Callable[[Verbs, Any], Awaitable[Any]]
VERBS: dict[str, tuple[type[Any], type[Any], Method]] = {
    "prelogin": (ServerRequest, KdfAnswer, Verbs.prelogin),
    "sign_up_check": (SignUpCheckRequest, Nothing, Verbs.sign_up_check),
    "sign_up": (SignUpRequest, WhoAnswer, Verbs.sign_up),
    "log_in": (LogInRequest, JoiningAnswer, Verbs.log_in),
    "poll": (Nothing, JoiningAnswer, Verbs.poll),
    "recover": (RecoverRequest, WhoAnswer, Verbs.recover),
    "join_limited": (BundleRequest, WhoAnswer, Verbs.join_limited),
    "log_out": (LogOutRequest, LogOutAnswer, Verbs.log_out),
    "sync": (SyncRequest, SyncAnswer, Verbs.sync),
    "progress": (Nothing, ProgressAnswer, Verbs.progress),
    "status": (Nothing, StatusAnswer, Verbs.status),
    "acknowledge": (Nothing, WhoAnswer, Verbs.acknowledge),
    "quiet": (QuietRequest, WhoAnswer, Verbs.quiet),
    "verify": (Nothing, VerifyAnswer, Verbs.verify),
    "inspect": (Nothing, InspectAnswer, Verbs.inspect),
    "export_heads": (Nothing, HeadsAnswer, Verbs.export_heads),
    "compare": (CompareRequest, CompareAnswer, Verbs.compare),
    "log": (Nothing, LogAnswer, Verbs.log),
    "names": (Nothing, NamesAnswer, Verbs.names),
    "scopes": (Nothing, ScopesAnswer, Verbs.scopes),
    "scope_create": (ScopeCreateRequest, ScopesAnswer, Verbs.scope_create),
    "search": (FindRequest, FoundAnswer, Verbs.search),
    "scope_delete": (RefRequest, ScopeDeletedAnswer, Verbs.scope_delete),
    "devices": (Nothing, DevicesAnswer, Verbs.devices),
    "approve": (ApproveRequest, WhoAnswer, Verbs.approve),
    "revoke": (RefRequest, DevicesAnswer, Verbs.revoke),
    "rename": (RenameRequest, DevicesAnswer, Verbs.rename),
    "device_create": (DeviceCreateRequest, BundleAnswer, Verbs.device_create),
    "recovery_check": (RecoveryCheckRequest, RecoveryAnswer, Verbs.recovery_check),
    "recovery_replace": (RecoveryReplaceRequest, RecoveryAnswer, Verbs.recovery_replace),
    "rotate": (Nothing, WhoAnswer, Verbs.rotate),
    "password": (PasswordRequest, WhoAnswer, Verbs.password),
    "totp": (TotpRequest, WhoAnswer, Verbs.totp),
    "account_delete": (DeleteRequest, DeletedAnswer, Verbs.account_delete),
}
"""Every verb: what it takes, what it answers, and what runs it. The daemon's route is POST /v1/workers/sync/{verb}."""
