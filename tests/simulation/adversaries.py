"""Who attacks an account while its devices go on: a thief, somebody with the password, a server that lies, a limited device.

Each has what the threat model gives it, and no more. The server gives everybody whatever it stores. What must hold is
checked when a history has ended (`Adversaries.check`): nobody reads without having been let in by a person, nobody writes
outside of its scope or above its trust, and whoever changed who is in is named to every device.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adversary import EvilServer, Minted, minted
from scrubjay.store import MemoryWrite, Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared import account as account_log
from scrubjay_shared import wire
from scrubjay_shared.account import AccountState, EntryType, Signer
from scrubjay_shared.clock import ulid
from scrubjay_shared.envelope import Envelope, Suite, parse
from scrubjay_shared.errors import RevokedError, ScrubjayError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Layer, Trust
from scrubjay_sync.account import account_devices, account_scopes, admission, limited_devices
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.machine import Machine as Joiner
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.engine.rounds import Engine
from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import digest_of, open_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root, wrap_root
from scrubjay_sync.policy import ACCOUNT_CHANGED
from simulation.laws import require
from simulation.machine import CrashError
from simulation.network import Answer, Network

if TYPE_CHECKING:
    from simulation.engine import Station, World

HOUR_MS = 3_600_000
KINDS = ("thief", "password", "minted", "served log", "limited")
READS = "A1 nobody reads without having been let in"
WRITES = "A2 nobody writes outside of its scope or above its trust"
NAMED = "A3 whoever changed who is in is named"
HIDDEN = "the spare key"
"""Words of what a person writes at home for no limited device to read."""


def kinds_of(seed: int) -> frozenset[str]:
    """Return who attacks in the history of a seed: nobody in most."""
    rng = random.Random(f"adversaries {seed}")
    return frozenset(rng.sample(KINDS, rng.choice((0, 0, 0, 1, 1, 2))))


@dataclass(slots=True)
class Loot:
    """What a thief copied from an unlocked device, and what was got with it."""

    station: Station
    secrets: Secrets
    state: AccountState
    until: int
    holders: list[tuple[bytes, Any]] = field(default_factory=list)
    """(id, keys) of whom a root key may be wrapped to: the device itself, devices of the thief's, a code of the thief's."""
    shut_out: int | None = None
    """The newest object when the owner had shut all of it out; None while nobody has."""


class Adversaries:
    """The attackers of one history. `world` is what they attack."""

    def __init__(self, world: World, seed: int, kinds: frozenset[str]) -> None:
        self.world = world
        self.kinds = kinds
        self.rng = random.Random(f"attacks {seed}")
        self.loot: list[Loot] = []
        self.strangers: set[bytes] = set()
        """Devices that nobody let in, who tried."""
        self.runner: Runner | None = None

    # --- what they do -------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Let one of them do something, sometimes."""
        if not self.kinds or self.rng.random() >= min(0.9, 0.25 * self.world.bent):
            return
        moves: dict[str, Sequence[Callable[[Station], Any]]] = {
            "thief": (self.steal, self.add_device, self.ask_for_code, self.shut_thief_out),
            "password": (self.with_password,),
            "minted": (self.offer_minted,),
            "served log": (self.serve_log,),
            "limited": (self.overstep, self.write_at_home),
        }
        able = [
            one
            for one in self.world.stations
            if one.engine is not None and not one.revoked and one.server is None and one.member is not None
        ]
        if not able or self.world.under_way:
            return
        kind = self.rng.choice(sorted(self.kinds))
        move = self.rng.choice(moves[kind])
        station = self.rng.choice(able)
        self.world.note("attack", move.__name__, station.machine.name)
        self.world.tallies[f"attack: {move.__name__}"] += 1
        try:
            await move(station)
        except CrashError:
            await self.world.crashed(station)
        except ScrubjayError as error:
            self.world.tallies["attack: refused"] += 1
            self.world.note("refused", error.code, error.message)

    async def steal(self, station: Station) -> None:
        """Copy what an unlocked device holds, and have its keys for an hour."""
        assert station.member is not None
        secrets = station.safe.secrets
        if secrets is None or secrets.root is None or any(one.station is station for one in self.loot):
            return
        loot = Loot(
            station=station,
            secrets=secrets,
            state=station.member.state,
            until=self.world.clock + HOUR_MS,
            holders=[(secrets.device, secrets.keys)],
        )
        if secrets.next_wrap is not None:
            loot.holders.append((secrets.device, secrets.next_wrap))
        self.loot.append(loot)

    async def add_device(self, _station: Station) -> None:
        """Let a device of the thief's own in, with a stolen one's keys."""
        if (loot := self._at_work()) is None:
            return
        device, keys = self.rng.randbytes(16), DeviceKeys.new(self.rng.randbytes)
        body = account_log.device_body(device, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub)
        root = loot.secrets.root
        assert root is not None
        wrap = wrap_root(root, account=loot.secrets.account, target=device, wrap_pub=keys.wrap_pub)
        await self._append(loot, EntryType.DEVICE_ADD, body, [wrap])
        loot.holders.append((device, keys))

    async def ask_for_code(self, _station: Station) -> None:
        """Ask for a recovery code of the thief's own, as who has lost the old one does."""
        if (loot := self._at_work()) is None:
            return
        code = RecoveryCode.new(self.rng.randbytes)
        state = loot.state
        body = account_log.recovery_body(
            state.account, state.head, rsk=code.rsk, recovery_pub=code.wrap_pub, at=self.world.clock, sign=code.sign
        )
        await self._append(loot, EntryType.RECOVERY_ROTATE, body)
        loot.holders.append((wire.RECOVERY_TARGET, code))

    def _at_work(self) -> Loot | None:
        found = [one for one in self.loot if one.shut_out is None and self.world.clock < one.until]
        return self.rng.choice(found) if found else None

    async def _append(self, loot: Loot, kind: EntryType, body: dict[int, Any], wraps: Sequence[wire.Wrap] = ()) -> None:
        cloud = Cloud(self.world.origin, now=self._now, transport=self._way(), sleep=self.world.sleep)
        cloud.use(
            Credential(
                account=loot.secrets.account, device=loot.secrets.device, sign=signer(loot.secrets.keys.sign_seed)
            )
        )
        try:
            page = await cloud.log.page(loot.state.seq)
            state = loot.state = account_log.extended([loot.state], page.entries[1:], self._now())[-1]
            assert loot.secrets.root is not None
            entry = account_log.entry(
                state.account,
                seq=state.seq + 1,
                prev=state.head,
                type=kind,
                body=body,
                sign=loot.secrets.root.sign,
                signer=Signer.ASK,
                author=loot.secrets.device,
                cosign=signer(loot.secrets.keys.sign_seed),
            )
            await cloud.log.append(wire.LogAppend(head=state.head, entries=(entry,), wraps=tuple(wraps)))
            loot.state = account_log.extended([state], [entry], self._now())[-1]
        finally:
            await cloud.aclose()

    async def shut_thief_out(self, station: Station) -> None:
        """Have the owner, at another device, shut the stolen one out with all that it let in."""
        found = [one for one in self.loot if one.station is not station and one.shut_out is None]
        if not found or station.member is None or station.cloud is None:
            return
        loot = self.rng.choice(found)
        done = await self.world.sync(station)
        if done is None or not done.synced:
            return
        stolen = loot.secrets.device
        state = station.member.state
        store = station.machine.store
        also = {
            one.id: await account_devices.ends_of(store, state, one.id)
            for one in account_devices.let_in_by(state, stolen)
            if one.id != station.member.device
        }
        theirs = {bytes.fromhex(one.machine.store.device) for one in self.world.stations}
        if theirs & also.keys():
            return  # people's machines that the stolen one had let in: their owner would keep them
        ends = await account_devices.ends_of(store, state, stolen)
        await account_devices.revoke(
            station.member, station.cloud, stolen, ends=ends, also=also, entropy=station.machine.entropy
        )
        loot.station.revoked = True
        loot.shut_out = await self.world.server.newest()
        heads = await self.world.server.heads()
        self.world.ended |= {lane: n for lane, (n, _) in heads.items() if lane[1] in {stolen, *also}}

    async def with_password(self, station: Station) -> None:
        """Log in with the password alone: ask, guess at the code, and add oneself with whatever key is at hand."""
        assert station.member is not None
        async with self._joiner() as joiner:
            joining = await admission.log_in(joiner, username="maya", auth_key=self.world.auth_key, name="me")
            self.strangers.add(joiner.device)
            state = joining.state
            keys = DeviceKeys.new(self.rng.randbytes)
            own = RootKey.new(self.rng.randbytes, state.version)
            body = account_log.device_body(joiner.device, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub)
            for author in (joiner.device, account_log.CODE_AUTHOR, station.member.device):
                entry = account_log.entry(
                    state.account,
                    seq=state.seq + 1,
                    prev=state.head,
                    type=EntryType.DEVICE_ADD,
                    body=body,
                    sign=own.sign,
                    signer=Signer.ASK,
                    author=author,
                    cosign=signer(keys.sign_seed),
                )
                given = wire.LogAppend(head=state.head, entries=(entry,))
                refused = await _refused(joiner.cloud.log.append(given, pending=joining.pending.token))
                require(READS, "the server took an entry of a stranger's", holds=refused)
                self._lie_about_log(station, [entry])
            guessed = joining.recover(RecoveryCode.new(self.rng.randbytes))
            require(READS, "another recovery code was taken", holds=await _refused(guessed))

    async def offer_minted(self, station: Station) -> None:
        """Show an account of the server's own making to a machine that logs in with the right recovery code."""
        assert station.member is not None
        made = minted(station.member.state, random=self.rng)
        async with self._joiner(EvilServer(made)) as joiner:
            joining = await _or_none(
                admission.log_in(joiner, username="maya", auth_key=self.world.auth_key, name="new")
            )
            taken = joining is not None and not await _refused(joining.recover(self.world.code))
            require(READS, "the server's own account was taken for the person's", holds=not taken)
        entry = self._stranger(station.member.state, made)
        self._lie_about_log(station, [entry])

    def _stranger(self, state: AccountState, made: Minted) -> bytes:
        """Return an entry that adds a device of the server's, signed with what the server has."""
        device, keys = self.rng.randbytes(16), DeviceKeys.new(self.rng.randbytes)
        self.strangers.add(device)
        return account_log.entry(
            state.account,
            seq=state.seq + 1,
            prev=state.head,
            type=EntryType.DEVICE_ADD,
            body=account_log.device_body(device, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub),
            sign=made.root.sign,
            signer=Signer.ASK,
            author=self.rng.choice([made.device, *state.devices]),
            cosign=signer(made.keys.sign_seed),
        )

    async def serve_log(self, station: Station) -> None:
        """Serve a device another log than there is: shorter, or with an entry of the server's; or end that."""
        assert station.member is not None
        if station.lie is not None:
            station.lie = None
        elif self.rng.random() < 0.5:
            station.lie = _shorter
        else:
            made = minted(station.member.state, random=self.rng)
            self._lie_about_log(station, [self._stranger(station.member.state, made)])

    def _lie_about_log(self, station: Station, entries: Sequence[bytes]) -> None:
        station.lie = lambda path, answer: _longer(path, answer, entries)

    async def overstep(self, station: Station) -> None:
        """Have a limited device write what it may not: of home, as the person, under a name of everybody's."""
        if self.runner is None:
            self.runner = await Runner.hired(self, station)
            return
        await self.runner.overstep(self.rng)

    async def write_at_home(self, station: Station) -> None:
        """Have a person write something that no limited device may read, or change what is there."""
        if self.runner is None:
            return
        hidden, machine = self.runner.hidden, station.machine
        there = set(await machine.column("select id from memory"))
        known = [one for one in hidden if one in there]
        memory_id = self.rng.choice(known) if known and self.rng.random() < 0.5 else ""
        content = f"canary {HIDDEN} {self.rng.randrange(1_000)}"

        def work(tx: Transaction) -> str:
            entity = memory_id or str(tx.new_id())
            fields: dict[Field, Any] = {Field.CONTENT: content}
            if not memory_id:
                fields[Field.CREATED_AT] = int(tx.now)
            tx.memories.write([MemoryWrite(memory_id=entity, fields=fields)])
            return entity

        hidden.add(await machine.store.write(work))

    async def shared(self, ids: set[str]) -> list[str]:
        """Return the memories, of some, that two machines have: their ids may be known elsewhere too."""
        held: Counter[str] = Counter()
        for station in self.world.stations:
            if station.engine is not None:
                held.update(ids & set(await station.machine.column("select id from memory")))
        return sorted(one for one in ids if held[one] > 1)

    # --- helpers of theirs --------------------------------------------------------------------------------------------

    def _now(self) -> Any:
        return self.world.clock

    def _way(self) -> Network:
        async def nobody() -> None:
            return None

        return Network(
            fault=str, ask=lambda: self.world.server.answer, change=lambda _path, answer: answer, meanwhile=nobody
        )

    def _joiner(self, transport: Any = None) -> _Joining:
        folder = self.world.folder / f"attacker{self.world.tallies['attackers']}"
        self.world.tallies["attackers"] += 1
        return _Joining(self, folder, transport or self._way())

    async def settle(self) -> bool:
        """Let the limited device sync, as one that goes on does: it alone may hold what a server lost of its lane.

        Returns whether it had nothing to do.
        """
        if self.runner is None:
            return True
        try:
            done = await self.runner.engine.sync()
        except ScrubjayError as error:  # a person may have revoked it, or nobody has told the server of it again yet
            self.world.note("limited device refused", error.code, error.message)
            return True
        self.world.note("limited device", done.synced, done.ops_sent, done.ops_received, done.repaired)
        return not (done.ops_sent or done.ops_received or done.repaired)

    # --- what must hold -----------------------------------------------------------------------------------------------

    async def check(self, members: Sequence[Station]) -> None:
        """Check the laws about who is in, on every device that is in force."""
        for station in members:
            if station.member is None:
                continue
            state = station.member.state
            inside = self.strangers & state.devices.keys()
            require(READS, f"strangers are in at {station.machine.name}", holds=not inside)
            await self._check_named(station)
        for loot in self.loot:
            if loot.shut_out is not None:
                await self._check_blind(loot)
        if self.runner is not None:
            await self.runner.check(members)

    @property
    def unheard(self) -> set[str]:
        """Devices whose ops need not be kept: what a limited one says of things that are not its own."""
        return set() if self.runner is None else {self.runner.joiner.store.device}

    async def _check_named(self, station: Station) -> None:
        """A3: of each change of who is in that came since a device is in, it tells its person, with who made it."""
        assert station.member is not None
        alarms = await station.machine.store.read(lambda q: q.replication.alarms())
        told = {one.subject: one.message for one in alarms if one.code == ACCOUNT_CHANGED}
        thieves = {loot.secrets.device for loot in self.loot}
        entries = await station.machine.store.read(lambda q: q.replication.account_log())
        for entry in map(account_log.read, entries):
            if entry.author in thieves and entry.type in {EntryType.DEVICE_ADD, EntryType.RECOVERY_ROTATE}:
                since = station.member.state.devices.get(station.member.device)
                if since is not None and since.added < entry.seq:
                    named = entry.author.hex()[:8] in told.get(entry.hash.hex(), "")
                    require(NAMED, f"entry {entry.seq} at {station.machine.name}", holds=named)

    async def _check_blind(self, loot: Loot) -> None:
        """A1: with all that a thief copied, and all that the server has, nothing opens that came after the revocation."""
        keys = await self._keys_of(loot)
        rows = await self.world.server.database.read(
            lambda tx: tx.rows("select body from object where gseq > ? and kind <> 2", (loot.shut_out,))
        )
        for (body,) in rows:
            envelope: Envelope = parse(bytes(body))
            header = envelope.header
            known = (header.scope, header.epoch) in keys
            require(READS, f"a thief opens place {header.n_from} of epoch {header.epoch}", holds=not known)

    async def _keys_of(self, loot: Loot) -> set[tuple[bytes, int]]:
        """Return the scope keys (scope, epoch) that a thief can open with the server's help."""
        account = loot.secrets.account
        assert loot.secrets.root is not None
        roots = {loot.secrets.root.version: loot.secrets.root}
        rows = await self.world.server.database.read(
            lambda tx: tx.rows("select target, kind, version, ct from wrap where kind = 1")
        )
        for target, kind, version, sealed in rows:
            wrap = wire.Wrap(target=bytes(target), kind=kind, version=version, sealed=bytes(sealed))
            for holder_id, holder in loot.holders:
                if holder_id == wrap.target:
                    root = _or(lambda: unwrap_root(wrap, account=account, target=holder_id, holder=holder))
                    if root is not None:
                        roots[root.version] = root
        found: set[tuple[bytes, int]] = set()
        for (body,) in await self.world.server.database.read(lambda tx: tx.rows("select body from blob")):
            data = bytes(body)
            for version in range(1, 200):
                for root in roots.values():
                    ring = _or(
                        lambda: open_keyring(data, account=account, version=version, digest=digest_of(data), root=root)
                    )
                    if ring is not None:
                        found |= {(scope, epoch) for scope, keys in ring.scopes.items() for epoch in keys.keys}
        return found


def _or(work: Callable[[], Any]) -> Any:
    """Return what comes of an attempt, None where it is refused."""
    try:
        return work()
    except ScrubjayError:
        return None


async def _or_none(work: Any) -> Any:
    try:
        return await work
    except ScrubjayError:
        return None


async def _refused(work: Any) -> bool:
    """Say whether an attempt is refused."""
    try:
        await work
    except ScrubjayError:
        return True
    return False


def _page(path: str, answer: Answer, change: Callable[[wire.LogPage], wire.LogPage]) -> Answer:
    if path != "/v1/log" or answer.status != 200:
        return answer
    try:
        page = change(msgspec.json.decode(answer.body, type=wire.LogPage))
    except (msgspec.MsgspecError, ScrubjayError):
        return answer
    body = msgspec.json.encode(page)
    headers = tuple(
        (key, str(len(body)) if key.lower() == "content-length" else value) for key, value in answer.headers
    )
    return Answer(status=200, headers=headers, body=body)


def _longer(path: str, answer: Answer, entries: Sequence[bytes]) -> Answer:
    """Return a page of the account log with more entries at its end, as if they had been appended."""
    last = account_log.read(entries[-1])

    def change(page: wire.LogPage) -> wire.LogPage:
        return wire.LogPage(entries=(*page.entries, *entries), seq=last.seq, head=last.hash)

    return _page(path, answer, change)


def _shorter(path: str, answer: Answer) -> Answer:
    """Return a page of the account log without its last entry, as if it had never been appended."""

    def change(page: wire.LogPage) -> wire.LogPage:
        if len(page.entries) < 2:
            return page
        last = account_log.read(page.entries[-2])
        return wire.LogPage(entries=page.entries[:-1], seq=last.seq, head=last.hash)

    return _page(path, answer, change)


class _Joining:
    """A machine of an attacker's, or of a person's who is attacked, with a store of its own while it is used."""

    def __init__(self, of: Adversaries, folder: Path, transport: Any) -> None:
        self._of = of
        self._folder = folder
        self._transport = transport
        self._joiner: Joiner

    async def __aenter__(self) -> Joiner:
        from simulation.engine import Safe  # noqa: PLC0415 - the world is made of these

        of = self._of
        store = await Store.open(self._folder / "memory.db", now=of._now, entropy=of.rng.randbytes)
        cloud = Cloud(of.world.origin, now=of._now, transport=self._transport, sleep=of.world.sleep)
        self._joiner = Joiner(store=store, vault=Safe(), cloud=cloud, now=of._now, entropy=of.rng.randbytes)
        return self._joiner

    async def __aexit__(self, *_: object) -> None:
        await self._joiner.cloud.aclose()
        await self._joiner.store.close()


@dataclass(slots=True)
class Runner:
    """A limited device whose program writes what it likes. `hidden` are memories of home that it must not read."""

    of: Adversaries
    joining: _Joining
    joiner: Joiner
    engine: Engine
    scope: bytes
    hidden: set[str] = field(default_factory=set)

    @classmethod
    async def hired(cls, of: Adversaries, station: Station) -> Runner:
        """Let one in, by a person."""
        assert station.member is not None
        assert station.cloud is not None
        machine = Joiner(
            store=station.machine.store,
            vault=station.safe,
            cloud=station.cloud,
            now=station.machine.now,
            entropy=station.machine.entropy,
        )
        scope = await account_scopes.create_scope(station.member, machine, name="ci", suite=Suite.SEALED)
        bundle = await limited_devices.create_limited(
            station.member, station.cloud, name="runner", scopes=[scope], read_only=False, entropy=of.rng.randbytes
        )
        joining = of._joiner()
        joiner = await joining.__aenter__()
        member = await limited_devices.join_limited(joiner, bundle)

        async def sleep(_: float) -> None:
            return None

        engine = Engine(
            joiner.store,
            member,
            joiner.cloud,
            now=of._now,
            entropy=of.rng.randbytes,
            sleep=sleep,
            free_bytes=lambda: 1 << 40,
        )
        return cls(of=of, joining=joining, joiner=joiner, engine=engine, scope=scope)

    async def overstep(self, rng: random.Random) -> None:
        """Write what it may not, in its own lane, and send it."""
        store = self.joiner.store
        known = await self.of.shared(self.hidden)
        entity = rng.choice(known) if known and rng.random() < 0.6 else ulid(self.of._now(), rng.randbytes(10))
        await store.write(lambda tx: tx.replication.place({entity: self.scope}))
        if entity in self.hidden and rng.random() < 0.4:
            await store.write(lambda tx: tx.forget.memory(entity))
        elif not await store.read(lambda q: q.ops.forgotten([entity])):
            name = rng.choice(("alpha", "beta"))
            fields = {
                Field.CONTENT: f"canary overstepped {rng.randrange(1_000)}",
                Field.CREATED_AT: 1,
                Field.TRUST: Trust.USER.value,
                Field.LAYER: Layer.IDENTITY.value,
                Field.NAME: name,
            }

            held = await store.read(lambda q: q.names.holders([name]))
            names = (name,) if held.get(name, entity) == entity else ()
            await store.write(lambda tx: tx.memories.write([MemoryWrite(memory_id=entity, fields=fields, names=names)]))
        await self.engine.sync()

    async def check(self, members: Sequence[Station]) -> None:
        """A1 and A2 of what a limited device wrote and read, on every device that is in force."""
        with suppress(RevokedError):  # a person may have revoked it
            await self.engine.sync()
        read = await self.joiner.store.read(lambda q: q.fetch("select content from memory"))
        require(READS, "a limited device reads what is of home", holds=not [one for (one,) in read if HIDDEN in one])
        own = self.joiner.store.device
        for station in members:
            store = station.machine.store
            for memory_id in self.hidden:
                wrote = own in await store.read(lambda q: q.ops.writers(memory_id))
                require(WRITES, f"a limited device wrote of {memory_id}", holds=not wrote)
            claimed = await store.read(lambda q: q.fetch("select name from claim where device = ?", (own,)))
            outside = [name for (name,) in claimed if not name.startswith("ci/")]
            require(WRITES, f"a limited device claims {outside}", holds=not outside)
            rows = await store.read(lambda q: q.fetch("select id, content, trust, layer from memory"))
            for memory_id, content, trust, layer in rows:
                if "overstepped" in content:
                    low = trust != Trust.USER.value and layer != Layer.IDENTITY.value
                    require(WRITES, f"{memory_id} is trusted as {trust} in {layer}", holds=low)

    async def close(self) -> None:
        """Close its store."""
        await self.joining.__aexit__()
