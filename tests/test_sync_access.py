"""Who is let in: attacks on an account by its own server, by a thief at an unlocked device, by one with the password."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, cast

import httpx2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary import EvilServer, Thief, device_draft, minted
from scrubjay.store import MemoryWrite
from scrubjay_shared import account as account_log
from scrubjay_shared import clock, ops
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Suite, lane_root
from scrubjay_shared.errors import (
    BadSignatureError,
    ConflictError,
    CredentialsError,
    DeniedError,
    InvalidError,
    MalformedError,
    PendingError,
    ScrubjayError,
    SplitError,
    WrongKeyError,
)
from scrubjay_shared.ops import Field, OpType, encode_wire
from scrubjay_shared.records import Layer, Memory, Trust
from scrubjay_shared.wire import RECOVERY_TARGET, Enrolment, Wrap
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, account_scopes, limited_devices, pairing, recovery, rotation
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.confinement import Outsider, confined
from scrubjay_sync.engine import validation
from scrubjay_sync.keys.digests import pairing_commitment, pairing_digest
from scrubjay_sync.keys.keypairs import DeviceKeys, signer
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root
from scrubjay_sync.words import COUNT, PROOF_COUNT, wordlist
from sync_devices import AUTH_KEY, KDF, Answer, Device, Network, World, answered, world_at

pytestmark = pytest.mark.anyio
WEEK_MS = 7 * 24 * 3600 * 1000
EVIL = RecoveryCode(secret=b"e" * 20)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(world_at(tmp_path))


async def wraps_for_code(machine: Machine) -> tuple[Wrap, ...]:
    return (await machine.cloud.log.wraps(RECOVERY_TARGET)).wraps


# --- C1: recovery knows the account by the code -----------------------------------------------------------------------


async def test_an_account_that_the_server_made_with_ones_public_recovery_keys_is_not_taken_for_ones_own(
    world: World,
) -> None:
    victim = (await world.device()).member.state
    false = minted(victim, random=world.random)
    server = EvilServer(false)
    with pytest.raises(BadSignatureError):
        account_log.replay(false.entries)
    machine = await world.machine(network=server)

    with pytest.raises(BadSignatureError, match="is not that of your account") as refused:
        await (await world.log_in(machine, "new")).recover(world.code)

    assert "do not trust that server" in refused.value.hint
    assert "at most the request of this machine to be let in" in refused.value.hint, "that went before its log was seen"
    assert "scrubjay sync" not in refused.value.hint, "nobody is logged in here"
    assert await machine.vault.load() is None
    assert server.appended == []
    # The real service does not keep such an account for anybody else either.
    with pytest.raises(BadSignatureError):
        await (await world.machine()).cloud.account.register(false.register(username="eve", auth_key=AUTH_KEY, kdf=KDF))


async def test_a_log_that_puts_the_victims_code_behind_a_genesis_of_the_servers_is_not_taken_either(
    world: World,
) -> None:
    victim = (await world.device()).member.state
    evil = RecoveryCode.new(world.random.randbytes)
    false = minted(victim, random=world.random, code=evil.sign)
    own = account_log.read(false.entries[0])
    body = own.body | {3: evil.rsk, 4: evil.wrap_pub}
    genesis = account_log.entry(
        false.account,
        seq=0,
        prev=bytes(32),
        type=EntryType.GENESIS,
        body=body,
        sign=false.root.sign,
        author=account_log.CODE_AUTHOR,
        cosign=evil.sign,
    )
    (state,) = account_log.extended((), [genesis])
    for sign in (evil.sign, false.root.sign, lambda _: bytes(64)):
        rotate = account_log.entry(
            false.account,
            seq=1,
            prev=state.head,
            type=EntryType.RECOVERY_ROTATE,
            body=account_log.recovery_body(
                false.account, state.head, rsk=victim.rsk, recovery_pub=victim.recovery_pub, at=1, sign=sign
            ),
            sign=evil.sign,
            signer=account_log.Signer.RSK,
            author=account_log.CODE_AUTHOR,
            cosign=evil.sign,
        )
        with pytest.raises(BadSignatureError):
            account_log.extended([state], [rotate])


async def test_what_a_new_code_signed_counts_at_its_own_place_of_its_own_account_only(world: World) -> None:
    one = await world.device()
    new = RecoveryCode.new(world.random.randbytes)
    await recovery.replace_recovery(
        one.member, one.machine.cloud, new, old=world.code, now=world.now, entropy=world.random.randbytes
    )
    thief = await Thief.at(one.machine, one.member)
    states = account_log.extended((), await one.log())
    bound = next(e for e in map(account_log.read, await one.log()) if e.type == EntryType.RECOVERY_ROTATE)

    for state in (states[-1], states[bound.seq - 2]):
        with pytest.raises(ScrubjayError):
            account_log.extended(states[: state.seq + 1], [thief.entry(bound.type, bound.body, state=state)])


# --- C2: nothing is wrapped to a code that is not in force ------------------------------------------------------------


async def test_a_code_that_waits_opens_nothing_and_a_revoke_ends_its_wait(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    thief = await Thief.at(stolen.machine, stolen.member)
    await thief.send(thief.own_code(EVIL, world.now()))
    await owner.sync()
    assert owner.member.state.waiting_recovery is not None
    assert any("another recovery code was asked for" in one for one in await owner.changes())

    for change in (
        lambda: rotation.rotate(owner.member, owner.machine.cloud, entropy=world.random.randbytes),
        lambda: revoked(world, owner, stolen),
    ):
        await change()
        for wrap in await wraps_for_code(owner.machine):
            with pytest.raises((WrongKeyError, MalformedError)):
                unwrap_root(wrap, account=owner.member.account, target=RECOVERY_TARGET, holder=EVIL)

    assert owner.member.state.waiting_recovery is None
    world.time += 2 * WEEK_MS
    await owner.sync()
    assert owner.member.state.rsk == world.code.rsk
    joining = await world.log_in(await world.machine(), "thief")
    with pytest.raises(CredentialsError):
        await joining.recover(EVIL)


async def revoked(world: World, owner: Device, lost: Device) -> None:
    await account_devices.revoke(
        owner.member, owner.machine.cloud, lost.member.device, ends={}, entropy=world.random.randbytes
    )


async def test_a_thief_who_has_a_new_root_key_and_no_device_in_force_appends_nothing(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    thief = await Thief.at(stolen.machine, stolen.member)
    await revoked(world, owner, stolen)
    joining = await world.log_in(await world.machine(), "thief")
    thief.states, thief.root = joining.states, owner.member.root  # as if the new key had leaked to him
    device, keys, draft = device_draft(world.random)
    _, body = draft.entries[0]

    for author, cosign in (
        (thief.device, signer(thief.keys.sign_seed)),  # revoked
        (device, signer(keys.sign_seed)),  # himself
        (owner.member.device, signer(keys.sign_seed)),  # in the owner's name
        (account_log.CODE_AUTHOR, thief.root.sign),
        (account_log.CODE_AUTHOR, EVIL.sign),
    ):
        entry = thief.entry(EntryType.DEVICE_ADD, body, author=author, cosign=cosign)
        with pytest.raises(BadSignatureError):
            account_log.extended(thief.states, [entry])
        thief.machine = joining.machine
        with pytest.raises(BadSignatureError):
            await thief.send(entry, pending=joining.pending.token)


async def test_a_code_made_without_the_old_one_counts_after_a_week_and_is_told_before(world: World) -> None:
    owner, other = await world.device(), await world.device()
    new = RecoveryCode.new(world.random.randbytes)
    await recovery.replace_recovery(
        owner.member, owner.machine.cloud, new, old=None, now=world.now, entropy=world.random.randbytes
    )
    world.time += WEEK_MS - 3_600_000
    await world.settle()
    assert owner.member.state.rsk == world.code.rsk
    assert any("counts after seven days" in one for one in await other.changes())
    await other.store.write(lambda tx: tx.replication.acknowledge())
    world.time += 3_600_000
    await world.settle()

    assert owner.member.state.rsk == other.member.state.rsk == new.rsk
    assert any("that waited counts now" in one for one in await other.changes())
    joined = await (await world.log_in(await world.machine(), "back")).recover(new)
    assert joined.root == owner.member.root
    with pytest.raises(WrongKeyError):
        unwrap_root(
            (await wraps_for_code(owner.machine))[0],
            account=owner.member.account,
            target=RECOVERY_TARGET,
            holder=world.code,
        )


async def test_a_code_confirmed_before_its_time_is_refused_by_clients_and_server(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    thief = await Thief.at(stolen.machine, stolen.member)
    at = world.now()
    await thief.send(thief.own_code(EVIL, at))
    for claimed in (at, at + WEEK_MS):
        entry = thief.entry(EntryType.RECOVERY_CONFIRM, {1: EVIL.rsk, 2: claimed})
        with pytest.raises(InvalidError):
            await thief.send(entry)
        with pytest.raises(InvalidError):
            account_log.extended(thief.states, [entry], world.now())
    assert owner.member.state.rsk == world.code.rsk


# --- H3: whoever changes who is in is named ---------------------------------------------------------------------------


async def test_every_change_of_who_is_in_is_told_on_every_device_with_its_author(world: World) -> None:
    one, two = await world.device(), await world.device()
    await two.sync()
    await one.engine.acknowledge()
    await two.engine.acknowledge()
    device, _, draft = device_draft(world.random)

    await two.member.append(two.machine.cloud, lambda *_: draft)
    await one.sync()

    for told in (await one.changes(), await two.changes()):
        (words,) = told
        assert device.hex()[:8] in words
        assert f"by device {two.member.device.hex()[:8]}" in words
    assert one.member.state.devices[device].added_by == two.member.device
    await one.reopen()
    assert len(await one.changes()) == 1
    await one.engine.acknowledge()
    await one.sync()
    assert await one.changes() == []


async def test_a_revoke_gives_no_key_to_a_device_that_was_added_meanwhile(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    device, _, draft = device_draft(world.random)
    raced: list[str] = []

    async def just_before(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.method == "POST" and request.url.path == "/v1/log" and not raced:
            raced.append("added")
            await stolen_append(draft)
        return await answer()

    async def stolen_append(change: Draft) -> None:
        await thief.send(thief.entry(*change.entries[0]))

    thief = await Thief.at(stolen.machine, stolen.member)
    joining = await world.log_in(await world.machine(), "thief")
    thief.machine = joining.machine
    send = thief.send
    thief.send = lambda *entries: send(*entries, pending=joining.pending.token)  # type: ignore[method-assign, misc]
    owner.network.fault = just_before

    with pytest.raises(
        ConflictError, match=f"{device.hex()[:8]} was added meanwhile, by {stolen.member.device.hex()[:8]}"
    ):
        await revoked(world, owner, stolen)
    assert raced
    assert [one.id for one in account_devices.let_in_by(owner.member.state, stolen.member.device)] == [device]
    assert owner.member.state.version == 1
    await account_devices.revoke(
        owner.member,
        owner.machine.cloud,
        stolen.member.device,
        ends={},
        entropy=world.random.randbytes,
        also={device: {}},
    )
    assert [one.id for one in owner.member.state.active()] == [owner.member.device]
    assert owner.member.state.version == 2
    assert not (await owner.machine.cloud.log.wraps(device)).wraps


async def test_who_was_let_in_by_a_device_is_known_through_others(world: World) -> None:
    one, two, three = await world.device(), await world.device(), await world.device()
    device, _, draft = device_draft(world.random)
    await three.member.append(three.machine.cloud, lambda *_: draft)
    await one.sync()

    assert [found.id for found in account_devices.let_in_by(one.member.state, three.member.device)] == [device]
    first = {found.id for found in account_devices.let_in_by(one.member.state, one.member.device)}
    assert first == {two.member.device, three.member.device, device}


async def test_a_change_is_kept_and_told_in_one_transaction_or_not_at_all(world: World) -> None:
    one, two = await world.device(), await world.device()
    await one.engine.acknowledge()
    _, _, draft = device_draft(world.random)
    await two.member.append(two.machine.cloud, lambda *_: draft)
    before = len(await one.log())
    write = one.store.write

    async def dies(_: object) -> None:
        raise InterruptedError

    one.store.write = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(InterruptedError):
        await one.member.refresh(one.machine.cloud)
    one.store.write = write  # type: ignore[method-assign]
    await one.reopen()
    assert (len(await one.log()), await one.changes()) == (before, [])
    await one.sync()
    assert len(await one.log()) > before
    assert len(await one.changes()) == 1


async def test_a_device_renews_its_own_key_and_nobody_elses(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    thief = await Thief.at(stolen.machine, stolen.member)
    keys = DeviceKeys.new(world.random.randbytes)
    entry = thief.entry(EntryType.DEVICE_REKEY, {1: owner.member.device, 2: keys.wrap_pub})

    with pytest.raises(BadSignatureError):
        account_log.extended(thief.states, [entry])
    with pytest.raises(BadSignatureError):
        await thief.send(entry)


async def test_an_account_of_the_first_format_is_named_and_nothing_of_it_is_taken() -> None:
    old = msgspec.msgpack.encode((0, bytes(32), 1, {1: bytes(16)}, 1)) + bytes(64)
    with pytest.raises(MalformedError, match="earlier beta") as told:
        account_log.read(old + bytes(0))
    assert "--sign-up" in told.value.hint


async def test_what_the_recovery_code_lets_in_is_told_as_that(world: World) -> None:
    one = await world.device()
    joined: Member = await (await world.log_in(await world.machine(), "back")).recover(world.code)
    await one.sync()

    (words,) = await one.changes()
    assert "by the recovery code" in words
    assert joined.state.devices[joined.device].added_by == account_log.CODE_AUTHOR


# --- H1: the words ----------------------------------------------------------------------------------------------------


async def test_a_server_that_lets_a_machine_into_an_account_of_its_own_gets_nothing_from_it(world: World) -> None:
    victim = (await world.device()).member.state
    false = minted(victim, random=world.random, code=world.code.sign)  # as if it could even sign for the code
    server = EvilServer(false)
    machine = await world.machine(network=server)
    joining = await world.log_in(machine, "new")
    server.let_in(joining.machine.device, joining.own)

    with pytest.raises(SplitError, match="nobody has compared"):
        await joining.poll()
    with pytest.raises(PendingError):
        await joining.join(("zoo", "zoo", "zoo"))
    assert await machine.vault.load() is None

    server = EvilServer(minted(victim, random=world.random, code=world.code.sign))
    machine = await world.machine(network=server)
    joining = await world.log_in(machine, "new")
    server.answer(world.random.randbytes(32))
    await joining.poll()
    assert len(joining.words) == 6  # which nobody can type anywhere: no device of the owner's has answered
    server.let_in(joining.machine.device, joining.own)
    await joining.poll()
    for guess in (joining.words[:3], ("zoo", "zoo", "zoo"), ()):
        with pytest.raises(DeniedError, match="not logged in"):
            await joining.join(guess)
    assert await machine.vault.load() is None


@pytest.mark.parametrize("change", ["keys", "keys and commitment", "device", "device and commitment", "nonce"])
async def test_a_server_that_changes_who_asks_is_found_out(world: World, change: str) -> None:
    one = await world.device()
    joining = await world.log_in(await world.machine(), "new")
    asked = await answered(joining, one.member, one.machine.cloud)
    other, nonce = DeviceKeys.new(world.random.randbytes), world.random.randbytes(32)
    forged = asked
    if "keys" in change:
        forged = replace(forged, sign_pub=other.sign_pub, wrap_pub=other.wrap_pub)
    if "device" in change:
        forged = replace(forged, device=world.random.randbytes(16))
    if "commitment" in change or change == "nonce":
        bound = pairing_commitment(nonce, forged.device, forged.sign_pub, forged.wrap_pub)
        forged = replace(forged, reveal=nonce, commitment=bound)
    if "commitment" in change or change == "nonce":  # a question of its own: it has to be answered for itself
        with pytest.raises(ConflictError, match="another device has answered"):
            await pairing.approve(one.member, one.machine.cloud, forged, joining.words)
        forged = replace(forged, answer=pairing._nonce(one.member, forged, one.member.state.head))
        with pytest.raises(DeniedError, match="not added"):
            await pairing.approve(one.member, one.machine.cloud, forged, joining.words)
    else:
        with pytest.raises(ScrubjayError):
            await pairing.approve(one.member, one.machine.cloud, forged, joining.words)
    assert len(one.member.state.active()) == 1


async def test_a_machine_takes_one_answer_to_one_nonce(world: World) -> None:
    one = await world.device()
    joining = await world.log_in(await world.machine(), "new")
    await answered(joining, one.member, one.machine.cloud)
    nonce, words, asked = joining.nonce, joining.words, joining.asked

    await joining.poll()
    assert (joining.nonce, joining.words) == (nonce, words)
    await joining.ask()
    assert joining.nonce != nonce
    assert joining.asked.id != asked.id
    assert joining.words == ()


BITS = 8
"""Of the scaled experiment. The real words have 66."""


def short(digest: bytes) -> int:
    return int.from_bytes(digest, "big") >> 256 - BITS


def digest_of(keys: bytes, head: bytes, asking: bytes, answering: bytes) -> int:
    return short(
        pairing_digest(
            genesis=b"g" * 32,
            head=head,
            device=keys[:16],
            sign_pub=keys,
            wrap_pub=b"w" * 1216,
            asking=asking,
            answering=answering,
        )
    )


def test_who_is_in_between_has_one_guess_at_the_words_however_much_it_computes() -> None:
    """The server tries many keys and many logs. Before, it chose them last, and found two that agree every time."""
    random, tries, budget = Random(11), 1_000, 1 << (BITS // 2 + 2)
    collided = sum(collides_without_nonces(random, budget) for _ in range(50))
    assert collided == 50

    for first in (True, False):
        agreed = sum(agrees(random, budget, answer_first=first) for _ in range(tries))
        # 1,000 tries at 2^-8: 3.9 are expected; more than 20 have a chance of 10^-9.
        assert agreed <= 20, (first, agreed)


def collides_without_nonces(random: Random, budget: int) -> bool:
    """The protocol before: one side's log and the other side's keys are chosen when all else is known."""
    real, zero = random.randbytes(32), bytes(32)
    shown = {digest_of(real, random.randbytes(32), zero, zero) for _ in range(budget)}
    head = random.randbytes(32)
    return any(digest_of(random.randbytes(32), head, zero, zero) in shown for _ in range(budget))


def agrees(random: Random, budget: int, *, answer_first: bool) -> bool:
    """One pairing with the server in between, which does what it can within its budget."""
    real, asking, answering, head = (random.randbytes(32) for _ in range(4))
    if answer_first:
        # It answers the machine itself, learns its nonce and its words, and only then asks the owner's device. There it
        # is bound before it sees the owner's nonce: the best it can do is to choose keys by what it guesses.
        target = digest_of(real, head, asking, random.randbytes(32))
        guess = random.randbytes(32)
        own = best(random, budget, lambda keys: digest_of(keys, head, keys, guess) == target)
        return digest_of(own, head, own, answering) == target
    # It asks the owner's device first, bound to keys of its own, and knows its words; then it answers the machine,
    # before that reveals its nonce: the best it can do is to choose the answer by what it guesses.
    own = random.randbytes(32)
    target = digest_of(own, head, own, answering)
    guess = random.randbytes(32)
    reply = best(random, budget, lambda nonce: digest_of(real, head, guess, nonce) == target)
    return digest_of(real, head, asking, reply) == target


def best(random: Random, budget: int, fits: Callable[[bytes], bool]) -> bytes:
    """The first of many that fits what is known so far, or the last."""
    made = b""
    for _ in range(budget):
        made = random.randbytes(32)
        if fits(made):
            break
    return made


def test_the_words_have_the_bits_that_the_specification_counts() -> None:
    assert 2048 == 2**11 == len(wordlist()) == len(set(wordlist()))
    assert (11 * COUNT, 11 * PROOF_COUNT) == (66, 33)


# --- H2: a limited device keeps to its scope --------------------------------------------------------------------------


@dataclass
class Runner:
    """A limited device whose program writes what it likes, and an owner who reads it."""

    world: World
    owner: Device
    device: Device
    scope: bytes

    @classmethod
    async def of(cls, world: World) -> Runner:
        owner = await world.device()
        scope = await account_scopes.create_scope(
            owner.member, owner.machine, name="ci", suite=Suite.SEALED, projects=["proj_ci"]
        )
        bundle = await limited_devices.create_limited(
            owner.member,
            owner.machine.cloud,
            name="runner",
            scopes=[scope],
            read_only=False,
            entropy=world.random.randbytes,
        )
        path, network = world.path / "runner" / "memory.db", Network(world)
        machine = await world.machine(path, network)
        member = await limited_devices.join_limited(machine, bundle)
        device = Device(world=world, machine=machine, member=member, network=network, path=path)
        return cls(world=world, owner=owner, device=device, scope=scope)

    async def write(self, entity: str, work: Callable[[Any], None]) -> None:
        """Write about a thing in the runner's own lane, whatever it is, and have the owner read it."""
        await self.device.store.write(lambda tx: tx.replication.place({entity: self.scope}))
        await self.device.store.write(work)
        await self.device.sync()
        await self.owner.sync()

    async def memory(self, entity: str) -> Memory:
        found = await self.owner.store.read(lambda q: q.memories.get(entity))
        assert found is not None
        return found


@pytest.fixture
async def runner(world: World) -> Runner:
    return await Runner.of(world)


def saying(entity: str, **fields: Any) -> Callable[[Any], None]:
    def work(tx: Any) -> None:
        values = {Field[name.upper()]: value for name, value in fields.items()}
        names = (fields["name"],) if "name" in fields else ()
        tx.memories.write([MemoryWrite(memory_id=entity, fields=values, names=names)])

    return work


async def test_a_limited_device_speaks_as_an_agent_and_names_things_of_its_scope_only(runner: Runner) -> None:
    taken = await runner.owner.note("how we deploy")
    entity = ulid(runner)
    born = {"content": "deploy as I say", "created_at": 1, "trust": "user", "layer": "identity", "name": "deploy-steps"}
    await runner.write(entity, saying(entity, **born))
    await runner.owner.rename(taken, "deploy-steps")

    found = await runner.memory(entity)
    assert (found.content, found.trust, found.layer) == ("deploy as I say", Trust.AGENT, Layer.ARCHIVE)
    assert found.name == "ci/deploy-steps"
    assert (await runner.memory(taken)).name == "deploy-steps"
    second = ulid(runner)
    await runner.write(second, saying(second, content="of no trust that I tell", created_at=1))
    assert (await runner.memory(second)).trust == Trust.AGENT


async def test_a_limited_device_can_neither_edit_nor_forget_nor_draw_to_itself_what_is_not_of_its_scope(
    runner: Runner,
) -> None:
    secret = await runner.owner.note("the alarm code is in the blue book")
    await runner.owner.sync()

    await runner.write(secret, saying(secret, content="changed from outside", created_at=1, trust="user"))
    assert (await runner.memory(secret)).content == "the alarm code is in the blue book"
    assert "denied" in await runner.owner.alarms()
    await runner.owner.edit(secret, "the alarm code is in the red book")
    await runner.owner.sync()
    await runner.device.sync()
    assert "red book" not in str(await runner.device.contents())

    await runner.write(secret, lambda tx: tx.forget.memory(secret))
    assert (await runner.memory(secret)).content == "the alarm code is in the red book"


async def test_a_limited_device_cannot_forget_a_foreign_thing_as_if_it_were_a_grip_of_its_own(runner: Runner) -> None:
    secret = await runner.owner.note("the alarm code is in the blue book")
    await runner.owner.sync()
    own = ulid(runner)
    await runner.write(own, saying(own, content="mine", created_at=1))

    await runner.write(secret, lambda tx: tx.forget._forget(secret, owner=own))

    assert (await runner.memory(secret)).content == "the alarm code is in the blue book"


@pytest.mark.parametrize("forgets", [False, True])
async def test_what_a_limited_device_said_of_a_thing_first_is_taken_back_by_its_owner(
    world: World, runner: Runner, *, forgets: bool
) -> None:
    other = await world.device()
    secret = await runner.owner.note("the spare key is under the pot")  # not sent yet
    await runner.device.store.write(lambda tx: tx.replication.place({secret: runner.scope}))
    await runner.device.store.write(saying(secret, content="bait", created_at=1, name="bait"))
    if forgets:
        await runner.device.store.write(lambda tx: tx.forget.memory(secret))
    await runner.device.sync()
    await other.sync()
    assert await other.contents() == ([] if forgets else ["bait"])

    await world.settle(runner.owner, other)

    assert await other.contents() == await runner.owner.contents() == ["the spare key is under the pot"]
    assert await other.digest() == await runner.owner.digest()
    await other.edit(secret, "the spare key is under the mat")
    await world.settle(runner.owner, other)
    await runner.device.sync()
    assert "spare key" not in str(await runner.device.contents())


async def test_a_device_whose_clock_is_off_syncs_while_a_recovery_code_waits(world: World) -> None:
    one, ahead = await world.device(), await world.device(skew_ms=10 * 24 * 3600 * 1000)
    await recovery.replace_recovery(
        one.member, one.machine.cloud, EVIL, old=None, now=one.now, entropy=one.machine.entropy
    )
    await one.note("words")
    await one.sync()
    await ahead.sync()
    await ahead.store.write(lambda tx: tx.replication.acknowledge())

    done = await ahead.sync()

    assert (done.synced, await ahead.contents()) == (True, ["words"])
    assert "invalid" in await ahead.alarms()


async def test_a_code_that_waited_counts_once_somebody_has_acknowledged_that_it_was_asked_for(world: World) -> None:
    one, two = await world.device(), await world.device()
    await recovery.replace_recovery(
        one.member, one.machine.cloud, EVIL, old=None, now=one.now, entropy=one.machine.entropy
    )
    await world.settle(one, two)
    world.time += 2 * WEEK_MS
    late = await world.device()
    await world.settle(one, two, late)
    assert {device.member.state.rsk for device in (one, two, late)} == {world.code.rsk}, "nobody has looked"

    await two.store.write(lambda tx: tx.replication.acknowledge())
    await two.sync()
    await one.sync()

    assert one.member.state.rsk == EVIL.rsk


async def test_a_run_answers_one_machine_however_many_the_server_shows(world: World) -> None:
    """Each answer is a guess at the words: a server that shows another machine at each look had sixty in a run."""
    owner = await world.device()
    answered = 0

    class Showing:
        account: Any
        shown: Any

        async def answer(self, _: bytes, given: Any) -> Any:
            nonlocal answered
            answered += 1
            return replace(self.shown, answer=given.nonce, answer_head=given.head)

    server = Showing()
    server.account = server

    def asking() -> Enrolment:
        keys, nonce, device = (
            DeviceKeys.new(world.random.randbytes),
            world.random.randbytes(32),
            world.random.randbytes(16),
        )
        commitment = pairing_commitment(nonce, device, keys.sign_pub, keys.wrap_pub)
        return Enrolment(
            id=bytes(16),
            device=device,
            sign_pub=keys.sign_pub,
            wrap_pub=keys.wrap_pub,
            commitment=commitment,
            approved=False,
            expires=1 << 50,
        )

    first = server.shown = asking()
    await pairing.answer(owner.member, cast("Any", server), first)
    await pairing.answer(owner.member, cast("Any", server), first)
    for _ in range(5):
        server.shown = asking()
        with pytest.raises(ConflictError, match="another machine asks now"):
            await pairing.answer(owner.member, cast("Any", server), server.shown)
    assert answered == 2

    await pairing.answer(owner.member, cast("Any", server), server.shown, anew=True)
    with pytest.raises(ConflictError):
        await pairing.answer(owner.member, cast("Any", server), first)


async def test_an_id_that_a_limited_device_named_first_lives_where_a_full_device_writes_it(
    world: World, runner: Runner
) -> None:
    secret = ulid(runner)
    await runner.write(secret, saying(secret, content="bait", created_at=1))
    other = await world.device()
    await world.settle(runner.owner, other)
    assert (await other.store.read(lambda q: q.replication.placed({secret})))[secret] == runner.scope
    # A third device that had it before anybody heard of the runner sends it from home.
    third = await world.device()
    await third.store.write(lambda tx: tx.replication.unplace(secret))
    await third.store.write(saying(secret, content="the spare key is under the pot", created_at=1))
    await third.store.write(lambda tx: tx.replication.unplace(secret))
    await third.sync()
    await runner.owner.sync()
    assert await runner.owner.store.read(lambda q: q.replication.placed({secret})) == {}
    await runner.owner.edit(secret, "the spare key is under the mat")
    await runner.owner.sync()
    await runner.device.sync()
    assert "spare key" not in str(await runner.device.contents())


async def test_objects_in_a_scope_that_the_log_does_not_give_are_refused_by_every_client(
    world: World, runner: Runner
) -> None:
    """A server that lets them through, and the key of a scope that somebody else handed over."""
    home, owner = runner.owner.member.home, runner.owner
    context = owner.engine.context
    key = owner.member.scopes.key(home, owner.member.scopes.epoch(home))
    seal = packing.SealContext(
        account=owner.member.account,
        scope=home,
        device=runner.device.member.device,
        n=1,
        prev=lane_root(owner.member.account, home, runner.device.member.device),
        suite=Suite.SEALED,
        epoch=owner.member.scopes.epoch(home),
        key=key,
    )
    sender = packing.Signer(sign=runner.device.member.sign, entropy=world.random.randbytes)
    (made,) = packing.segments(seal, [], sender)
    with pytest.raises(BadSignatureError, match="may not write"):
        validation.check_header(context, made.envelope)

    state = owner.member.state
    certified = runner.device.member.certified
    assert certified is not None
    reader = replace(certified, read_only=True)
    context.member._log.state = replace(state, devices={**state.devices, reader.id: reader})
    with pytest.raises(BadSignatureError, match="may not write"):
        validation.check_header(
            context, replace(made.envelope, header=replace(made.envelope.header, scope=runner.scope))
        )


def ulid(runner: Runner) -> str:
    return clock.ulid(runner.world.now(), runner.world.random.randbytes(10))


@settings(max_examples=60, deadline=None)
@given(name=st.text("abc/~", min_size=1, max_size=6), trust=st.sampled_from([*Trust, "divine", None]))
def test_what_was_confined_once_stays_as_it_is(name: str, trust: str | None) -> None:
    by = Outsider(name="ci", id="0badc0de", projects=("proj_ci",))
    fields: dict[int, Any] = {Field.CONTENT: "x", Field.NAME: name}
    if trust is not None:
        fields[Field.TRUST] = str(trust)
    for kind, body in (
        (OpType.MEMORY, {1: bytes(16), 2: fields}),
        (OpType.CLAIM, {1: bytes(16), 2: name}),
    ):
        data = encode_wire((int(kind), 1, bytes(16), 1 << 20, dict(body)))
        once = confined(data, device="00" * 16, seq=1, by=by)
        if once is None:
            continue
        assert confined(once, device="00" * 16, seq=1, by=by) == once
        said = ops.read(once, device="00" * 16, seq=1)[4]
        assert (said[2] if kind == OpType.CLAIM else said[2][Field.NAME]).startswith("ci/")
        if kind == OpType.MEMORY:
            assert said[2][Field.TRUST] in {"untrusted", "import", "agent"}
