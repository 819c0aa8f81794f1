"""What every route stands on: the database, the settings, the clock, and the little that a process keeps in memory."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from scrubjay_cloud.account_states import keep_state, replayed_since, since_stored
from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.database.port import Database
from scrubjay_cloud.limits import Limits
from scrubjay_cloud.materialise import Offload
from scrubjay_cloud.materialise_queue import MaterialiseQueue
from scrubjay_cloud.notifier import Notifier
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.settings import Settings
from scrubjay_cloud.turns import Turns
from scrubjay_shared.account import AccountState
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError, UnavailableError
from scrubjay_shared.teams import TeamState

T = TypeVar("T")


class Bodies:
    """The bytes that came of requests under way: they wait in queues, and so their sum is bounded, and each share."""

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._held = 0
        self._by_whose: dict[bytes, int] = {}

    @contextmanager
    def held(self, whose: bytes) -> Iterator[Callable[[int], None]]:
        """Give what counts the bytes of a body as they come, for as long as its request takes.

        It raises UnavailableError where there is no room for them, in all or in the share of whose they are.
        """
        size = 0

        def count(came: int) -> None:
            nonlocal size
            if self._held + came > self._most or self._by_whose.get(whose, 0) + came > self._share:
                raise UnavailableError("the server has more under way than it holds", hint="try again in a moment")
            size += came
            self._held += came
            self._by_whose[whose] = self._by_whose.get(whose, 0) + came

        try:
            yield count
        finally:
            self._held -= size
            left = self._by_whose.get(whose, 0) - size
            if left > 0:
                self._by_whose[whose] = left
            else:
                self._by_whose.pop(whose, None)


@dataclass(slots=True, kw_only=True)
class Service:
    """One process of the service. `stop` ends what waits; opening and closing the database is the caller's."""

    database: Database
    settings: Settings
    policy: CloudPolicy
    now: Callable[[], Millis]
    entropy: Callable[[int], bytes]
    offload: Offload
    store_id: str
    secret: bytes
    generation: int
    limits: Limits
    notifier: Notifier
    materialising: MaterialiseQueue
    bodies: Bodies
    sign_ups: Bodies
    hashing: Turns
    body_store: BodyStore | None = None
    """Where the bodies of large sealed objects stand, None for the database."""
    ready: bool = True
    _states: OrderedDict[bytes, AccountState] = field(default_factory=OrderedDict)
    _teams: OrderedDict[bytes, TeamState] = field(default_factory=OrderedDict)

    def stop(self) -> None:
        """Begin to stop: not ready any more, and whoever waits for news is answered at once."""
        self.ready = False
        self.notifier.close()
        self.materialising.close()

    def derived(self, purpose: str) -> bytes:
        """Return a key for one purpose, made from the server's secret."""
        return hmac.digest(self.secret, purpose.encode(), "sha256")

    @property
    def pepper(self) -> bytes:
        """What password hashes are keyed with: half of it stands outside the database, where the operator set it."""
        return self._peppered(self.settings.pepper)

    @property
    def first_pepper(self) -> bytes:
        """What they were keyed with by a service that was given no pepper, as once could be."""
        return self._peppered("")

    def _peppered(self, pepper: str) -> bytes:
        return hmac.digest(self.derived("pepper"), pepper.encode(), "sha256")

    async def state(self, account: bytes, head: bytes) -> AccountState:
        """Return the account's state at a head of its log. Raises NotFoundError when the account is gone.

        When the log has moved on meanwhile, the newer state: who depends on the head compares it in the transaction.
        """
        known = self._states.get(account)
        if known is not None and known.head == head:
            self._states.move_to_end(account)
            return known
        stored, entries = await self.database.read(lambda tx: since_stored(tx, account))
        if stored is None and not entries:
            raise NotFoundError("the account is gone", hint="sign up again")
        state: AccountState = await self.offload(lambda: replayed_since(stored, entries))
        if stored is None:  # an account from before states were stored
            await self.database.write(lambda tx: keep_state(tx, state))
        self.keep(state)
        return state

    def team(self, team: bytes, head: bytes) -> TeamState | None:
        """Return a team's state at a head of its log, None where it must be replayed."""
        known = self._teams.get(team)
        return known if known is not None and known.head == head else None

    def keep_team(self, state: TeamState) -> None:
        """Remember a team's state."""
        self._teams[state.team] = state
        self._teams.move_to_end(state.team)
        while len(self._teams) > self.policy.states:
            self._teams.popitem(last=False)

    def keep(self, state: AccountState) -> None:
        """Remember a state."""
        self._states[state.account] = state
        self._states.move_to_end(state.account)
        while len(self._states) > self.policy.states:
            self._states.popitem(last=False)
