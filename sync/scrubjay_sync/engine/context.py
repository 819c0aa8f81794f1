"""What every step of a round works with: the store, the member, the server, and the lanes by name."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from scrubjay.store import Store
from scrubjay.store.replication_state import Lane, SyncState
from scrubjay_shared import envelope as wire_envelope
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Envelope, ObjectKind, lane_root
from scrubjay_shared.errors import (
    NotFoundError,
    ScrubjayError,
    UnavailableError,
    WrongKeyError,
)
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.confinement import Outsider
from scrubjay_sync.engine.refusals import subject
from scrubjay_sync.engine.results import Progress, Tally
from scrubjay_sync.packing import Signer
from scrubjay_sync.planning import LaneId
from scrubjay_sync.policy import SYNC
from scrubjay_sync.searching import Meaning

log = logging.getLogger(__name__)


class Context:
    """One store as one member of an account at one server, as all steps of its rounds see it.

    `signer` signs and salts objects; `sleep(0)` lets other tasks run between two objects; `free_bytes` tells the space
    left on the store's disk; `meaning` embeds the topics of searchable scopes.
    """

    def __init__(
        self,
        store: Store,
        member: Member,
        cloud: Cloud,
        *,
        now: Callable[[], Millis],
        entropy: Callable[[int], bytes],
        sleep: Callable[[float], Awaitable[None]],
        free_bytes: Callable[[], int],
        on_progress: Callable[[Progress], None],
        meaning: Meaning | None,
    ) -> None:
        self.store = store
        self.member = member
        self.cloud = cloud
        self.now = now
        self.entropy = entropy
        self.sleep = sleep
        self.free_bytes = free_bytes
        self.on_progress = on_progress
        self.meaning = meaning
        self.signer = Signer(sign=member.sign, entropy=entropy)
        self.push_bytes = SYNC.push_bytes
        """The largest body that the way to the server has let pass so far."""
        self.unembeddable: set[bytes] = set()
        """Searchable scopes whose vectors this device cannot make: they are not asked for again."""

    @property
    def device(self) -> bytes:
        """The store's device id, 16 bytes."""
        return bytes.fromhex(self.store.device)

    @property
    def scopes(self) -> tuple[bytes, ...]:
        """The scopes that this device takes part in, home first."""
        return self.member.scopes.ids

    @property
    def default_scope(self) -> bytes:
        """The scope of whatever is bound to no other: home, or the first that a limited device without it was given."""
        home = self.member.home
        return home if home in self.scopes or not self.scopes else self.scopes[0]

    def reads(self, scope: bytes) -> bool:
        """Say whether a scope is one of ours, or none that the account knows: that one is refused, not passed over."""
        return scope in self.scopes or scope not in self.member.state.scopes

    def outsider(self, scope: bytes, device: bytes) -> Outsider:
        """Return a limited device as somebody who writes in a scope, with the projects that are bound to that."""
        scopes, is_home = self.member.scopes, scope == self.member.home
        return Outsider(
            name=scopes.name(scope),
            id=device.hex()[:8],
            projects=None if is_home else scopes.projects_of(scope),
            elsewhere=frozenset(project for project, bound in scopes.projects.items() if is_home and bound != scope),
        )

    def counts_to(self, scope: bytes, device: bytes) -> int:
        """Return the last place of a lane that counts: where its device was when it was revoked, else the furthest."""
        known = self.member.state.device_of(device)
        end = None if known is None else known.end_of(scope, device)
        return wire_envelope.LIMIT if end is None else end[0]

    def ahead_of_log(self, envelope: Envelope) -> bool:
        """Say whether an object speaks of what the account log, as far as we have read it, does not know."""
        state, header = self.member.state, envelope.header
        scope = state.scopes.get(header.scope)
        return state.device_of(header.device) is None or scope is None or header.epoch > scope.epoch

    def server_changed(self, state: SyncState) -> bool:
        """Say whether this is another store than the one that our cursor is of: replaced, or restored from a backup."""
        return bool(state.store_id) and (state.store_id, state.generation) != (
            self.cloud.store_id,
            self.cloud.generation,
        )

    def empty_lane(self, scope: bytes, device: bytes) -> Lane:
        """Return a lane of which nothing is held."""
        root = lane_root(self.member.account, scope, device)
        return Lane(scope=scope, device=device, n=0, tip=root, acked_n=0, low=1, low_prev=root, hw_n=0, hw_tip=root)

    async def put_lane(self, lane: Lane) -> None:
        """Keep a lane."""
        await self.store.write(lambda tx: tx.replication.put_lane(lane))

    async def own_lane(self, scope: bytes) -> Lane:
        """Return this device's lane of a scope."""
        return (await self.store.read(lambda q: q.replication.lanes())).get((scope, self.device)) or self.empty_lane(
            scope, self.device
        )

    def key(self, envelope: Envelope) -> bytes:
        """Return the key that opens an object. Raises WrongKeyError when this device does not have it."""
        header = envelope.header
        try:
            return self.member.scopes.key(header.scope, header.epoch)
        except NotFoundError as error:
            raise WrongKeyError(error.message, hint=error.hint) from error

    def keys_of(self, envelope: Envelope) -> tuple[bytes, ...]:
        """Return the public keys that may have signed an object."""
        header = envelope.header
        return self.member.state.keys_of(header.scope, header.device, pack=header.kind == ObjectKind.PACK)

    def check_disk(self) -> None:
        """Raise UnavailableError when the disk is too full to read what other devices wrote."""
        free = self.free_bytes()
        if free < SYNC.free_bytes:
            raise UnavailableError(
                f"only {free // 1_048_576} MB of the disk are free: changes of other devices are not read",
                hint=f"free some space: from {SYNC.free_bytes // 1_048_576} MB on they are read. Local work goes on",
            )

    async def refuse(self, tally: Tally, lane_id: LaneId, error: ScrubjayError) -> None:
        """Hold a lane up for the rest of the round, and say why."""
        tally.held.add(lane_id)
        await self.alarm(tally, error, subject(*lane_id))

    async def alarm(self, tally: Tally, error: ScrubjayError, subject: str, *, holds: bool = True) -> None:
        """Keep an alarm; with `holds`, it is also among the round's errors."""
        if holds:
            tally.errors.append(error)
        new = await self.store.write(
            lambda tx: tx.replication.raise_alarm(error.code, subject, error.message, error.hint)
        )
        if new:
            log.warning("sync alarm code=%s subject=%s", error.code, subject[:16])
