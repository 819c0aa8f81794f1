"""Whether the server still holds what it was given: every lane read again, from its first place to its last."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay.store import Store
from scrubjay_shared import sealing
from scrubjay_shared.envelope import Envelope, ObjectKind, check_run, lane_root
from scrubjay_shared.errors import CorruptError, MalformedError, NotFoundError, ScrubjayError, UpdateNeededError
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.digests import heads_digest
from scrubjay_sync.words import words_of

_REFUSED = (CorruptError, MalformedError, UpdateNeededError, NotFoundError)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLane:
    """One lane: `n` is where the server says that it ends, `held` where it ends here; `error` is what is wrong."""

    scope: bytes
    device: bytes
    n: int
    held: int
    objects: int
    bytes: int
    error: ScrubjayError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What reading everything again has shown.

    `words` stand for the ends of all lanes as this device knows them: two devices that are in step show the same six
    words, whatever the server tells either of them.
    """

    lanes: tuple[VerifiedLane, ...]
    words: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return all(lane.error is None for lane in self.lanes)


async def verify(store: Store, member: Member, cloud: Cloud) -> Verified:
    """Read every lane again and check its chain, its signatures, that it opens, and that it is the one held here."""
    await member.refresh(cloud)
    heads = {(head.scope, head.device): head for head in (await cloud.heads()).heads}
    known = await store.read(lambda q: q.replication.lanes())
    found = []
    for scope, device in sorted(heads.keys() | known.keys()):
        if scope not in member.scopes.ids:
            continue
        lane = known.get((scope, device))
        head = heads.get((scope, device))
        n, tip = (head.n, head.tip) if head is not None else (0, b"")
        author = member.state.device_of(device)
        end = None if author is None else author.end_of(scope, device)
        if end is not None and n > end[0]:
            n, tip = end if end[0] else (0, tip)  # what came after its device was revoked does not count
        reader = _Reader(store, member, cloud, scope, device)
        error: ScrubjayError | None = None
        try:
            await reader.read(n)
            if n and reader.tip != tip:
                raise CorruptError(
                    "the server names another end of the lane than it hands out", hint="tell the server's operator"
                )
            if lane is not None and lane.n > n and (head is None or n == head.n):
                raise CorruptError(
                    f"the server lacks places {n + 1} to {lane.n}", hint="scrubjay sync gives it what this device has"
                )
            if lane is not None and lane.n == n and n and lane.tip != reader.tip:
                raise CorruptError("the server holds another lane than this device", hint="do not trust this server")
        except _REFUSED as refusal:
            error = refusal
        found.append(
            VerifiedLane(
                scope=scope,
                device=device,
                n=n,
                held=lane.n if lane is not None else 0,
                objects=reader.objects,
                bytes=reader.bytes,
                error=error,
            )
        )
    now_known = {lane_id: (lane.n, lane.tip) for lane_id, lane in known.items() if lane.n}
    if all(lane.error is None for lane in found):
        await store.write(lambda tx: tx.replication.set_state(verified_at=tx.now))
    return Verified(lanes=tuple(found), words=words_of(heads_digest(member.account, member.state.head, now_known)))


class _Reader:
    """One lane, read from its beginning."""

    def __init__(self, store: Store, member: Member, cloud: Cloud, scope: bytes, device: bytes) -> None:
        self._store, self._member, self._cloud = store, member, cloud
        self._scope, self._device = scope, device
        self.tip = lane_root(member.account, scope, device)
        self.objects = 0
        self.bytes = 0

    async def read(self, end: int) -> None:
        """Read and check up to a place. Raises what is wrong with the first object that does not hold."""
        n = 0
        while n < end:
            page = await self._cloud.lane(self._scope, self._device, start=n + 1)
            if not page:
                raise CorruptError(f"the server does not hand out place {n + 1}", hint="tell the server's operator")
            check_run(page, n=n, prev=self.tip, keys=self._keys)
            for envelope in page:
                await self._check(envelope)
            n, self.tip = page[-1].header.n_to, page[-1].end

    async def _check(self, envelope: Envelope) -> None:
        header = envelope.header
        if header.suite != self._member.scopes.suite(header.scope):
            raise CorruptError(
                f"the server holds place {header.n_from} with another encryption than its scope has",
                hint="do not trust this server",
            )
        sealing.unseal(envelope, key=self._member.scopes.key(header.scope, header.epoch))
        known = await self._store.read(lambda q: q.replication.link(header.scope, header.device, header.n_to))
        if known is not None and known != envelope.end:
            raise CorruptError(
                f"the server holds another place {header.n_to} than this device", hint="do not trust this server"
            )
        self.objects += 1
        self.bytes += len(envelope.data)

    def _keys(self, envelope: Envelope) -> tuple[bytes, ...]:
        header = envelope.header
        return self._member.state.keys_of(header.scope, header.device, pack=header.kind == ObjectKind.PACK)
