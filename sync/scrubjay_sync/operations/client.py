"""One store's side of sync: its login, if there is one, and the rounds that run for it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2

from scrubjay.accounts import MAIN
from scrubjay.store import Store
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, NotFoundError
from scrubjay_sync import profile
from scrubjay_sync.account import leaving
from scrubjay_sync.account.admission import Joining
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.api.identity import Who
from scrubjay_sync.api.references import MAX_NAME
from scrubjay_sync.background import Background, Rounds
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.engine.results import Progress, Round
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keychain import Keychain
from scrubjay_sync.keys.keypairs import Entropy
from scrubjay_sync.policy import ACCOUNT_CHANGED
from scrubjay_sync.profile import Profile
from scrubjay_sync.searching import Meaning

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A login in use. All rounds of `engine` are run by `rounds`: in the daemon in the background too."""

    profile: Profile
    member: Member
    cloud: Cloud
    engine: Engine
    rounds: Rounds


class SyncClient:
    """A store and the login that its operations share. `close` when done.

    `joining` is a login that waits to be let in, with the profile to save once it is; `progress` how far the round
    under way is.
    """

    def __init__(
        self,
        store: Store,
        data_dir: Path,
        *,
        account: str = MAIN,
        environ: Mapping[str, str],
        now: Callable[[], Millis],
        entropy: Entropy,
        sleep: Callable[[float], Awaitable[None]],
        transport: httpx2.AsyncBaseTransport | None = None,
        background: Background | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        """With `background`, rounds run by themselves; `transport` takes the place of the network.

        `account` is what the home calls the account; `meaning` embeds what is asked of searchable scopes.
        """
        self.store = store
        self.data_dir = data_dir
        self.account = account
        self.vault = Keychain(data_dir, environ=environ)
        self.now = now
        self.entropy = entropy
        self.meaning = meaning
        self.joining: tuple[Joining, Profile] | None = None
        self.progress: Progress | None = None
        self._sleep = sleep
        self._transport = transport
        self._background = background
        self._session: Session | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """End what is under way; nothing is lost by it."""
        session, joining = self._session, self.joining
        await self.stop()
        self.joining = None
        if session is not None:
            await session.cloud.aclose()
        if joining is not None:
            await joining[0].machine.cloud.aclose()

    # --- the login ----------------------------------------------------------------------------------------------------

    async def session(self) -> Session | None:
        """Return the login in use, or None when sync is off; its background rounds begin here. Needs no network."""
        async with self._opening:
            if self._session is None:
                found = await asyncio.to_thread(profile.load, self.data_dir)
                if found is not None:
                    cloud = self.cloud_at(found.origin)
                    try:
                        member = await self.machine(cloud).member()
                    except BaseException:
                        await cloud.aclose()
                        raise
                    self.start(found, member, cloud)
            return self._session

    async def require_session(self) -> Session:
        """Return the login in use. Raises NotFoundError when sync is off."""
        session = await self.session()
        if session is None:
            raise profile.not_logged_in(self.account)
        return session

    async def require_logged_out(self) -> None:
        """Raise ConflictError when this store is logged in; clear what a login left that was cut off before its end."""
        found = await asyncio.to_thread(profile.load, self.data_dir)
        if found is not None:
            raise ConflictError(
                f"this machine is logged in as {found.username or 'a limited device'} at {found.origin}",
                hint="scrubjay logout first",
            )
        if await self.store.read(lambda q: q.replication.state()) is not None:
            await leaving.leave(self.store, self.vault, self.entropy)

    def require_joining(self) -> tuple[Joining, Profile]:
        """Return the login that waits to be let in. Raises NotFoundError when there is none."""
        if self.joining is None:
            raise NotFoundError("no login is under way", hint=profile.LOGIN_HINT)
        return self.joining

    async def begin(self, begun: Profile, member: Member, cloud: Cloud) -> Who:
        """Save a login that has just succeeded, and start its session."""
        await asyncio.to_thread(profile.save, self.data_dir, begun)
        return self.who(self.start(begun, member, cloud))

    async def save_profile(self, changed: Profile) -> None:
        """Replace the profile of the login in use."""
        await asyncio.to_thread(profile.save, self.data_dir, changed)
        if self._session is not None:
            self._session = replace(self._session, profile=changed)

    def start(self, found: Profile, member: Member, cloud: Cloud) -> Session:
        """Start the session of a login; in the daemon, its rounds run in the background from now on."""
        engine = Engine(
            self.store,
            member,
            cloud,
            now=self.now,
            entropy=self.entropy,
            sleep=self._sleep,
            free_bytes=lambda: shutil.disk_usage(self.data_dir).free,
            on_progress=self._note,
            meaning=self.meaning,
        )
        rounds = Rounds(engine, self.store, self._background, quiet=found.quiet, on_done=self._take_name)
        self._session = Session(profile=found, member=member, cloud=cloud, engine=engine, rounds=rounds)
        rounds.start()
        return self._session

    async def _take_name(self) -> None:
        """Follow a change of the account's name, which another device made, and tell the person of it."""
        session = self._session
        if session is None or not session.profile.username:
            return
        before, now = session.profile.username, session.cloud.username
        if now in {"", before}:
            return
        if len(now) > MAX_NAME or not now.isascii() or not now.isprintable():  # it is shown at a terminal
            log.warning("the server names the account by what cannot be a user name")
            return
        await self.store.write(
            lambda tx: tx.replication.raise_alarm(
                ACCOUNT_CHANGED,
                f"name/{now}",
                f"the account {before} is called {now} now: another device, and the password, changed its user name",
                "log in by the new name; if that was nobody you know: scrubjay account password, then scrubjay devices",
            )
        )
        await self.save_profile(replace(session.profile, username=now))

    async def stop(self) -> None:
        """End the session's work: its engine must not write after the login that it works for is erased."""
        session, self._session = self._session, None
        if session is not None:
            await session.rounds.close()

    # --- rounds -------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> Rounds | None:
        """The rounds of the login in use, None when there is none or it is not opened yet."""
        return None if self._session is None else self._session.rounds

    async def round(self, *, wait_s: float = 0) -> Round:
        """Run one round that was asked for. Raises UnavailableError when a logout, or the daemon's own end, ends it."""
        session = await self.require_session()
        try:
            return await session.rounds.run(wait_s=wait_s)
        finally:
            self.progress = None

    def _note(self, progress: Progress) -> None:
        self.progress = progress

    # --- what operations are made of ----------------------------------------------------------------------------------

    def cloud_at(self, origin: str) -> Cloud:
        """Return a connection to a server. Raises InvalidError for an unsafe address."""
        return Cloud(origin, now=self.now, transport=self._transport)

    def machine(self, cloud: Cloud) -> Machine:
        """Return what this machine brings to an account at a server."""
        return Machine(store=self.store, vault=self.vault, cloud=cloud, now=self.now, entropy=self.entropy)

    def who(self, session: Session) -> Who:
        """Return the identity that the responses of a session carry."""
        return self.who_of(session.profile)

    def who_of(self, found: Profile) -> Who:
        """Return the identity that a login stands for."""
        return Who(
            name=self.account,
            account=found.account.hex(),
            username=found.username,
            origin=found.origin,
            device=self.store.device,
            device_name=found.device_name,
            keys=self.vault.where,
        )
