"""Checkpoints of the account log: a log without end, bounded reading, and nobody smuggled in by one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from adversary import Thief, device_draft, minted
from scrubjay_cloud import account_states
from scrubjay_cloud.policy import DEFAULT
from scrubjay_cloud.verify import repair, verify
from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    InvalidError,
    ScrubjayError,
    SplitError,
)
from scrubjay_shared.wire import LogAppend, LogCheckpoint, LogPage
from scrubjay_sync.account import account_devices, drafts, pairing
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.pinned_log import PinnedLog
from scrubjay_sync.keys.keypairs import signer
from scrubjay_sync.policy import IDENTITY
from sync_devices import GENEROUS, Answer, Device, Network, World, let_in, world_at

pytestmark = pytest.mark.anyio
OFTEN = 10
"""Entries between two checkpoints, in tests that cannot make thousands."""
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world in which checkpoints are frequent, and the server takes few entries without one."""
    monkeypatch.setattr(drafts, "IDENTITY", replace(IDENTITY, checkpoint_entries=OFTEN))
    monkeypatch.setattr(
        "sync_devices.GENEROUS", replace(GENEROUS, max_log_entries=3 * OFTEN, checkpoint_gap=5, checkpoints=3)
    )
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(world_at(tmp_path))


async def changed(device: Device, count: int, *, at_once: int = 5) -> None:
    """Have a device change the account so many times: epochs of a searchable scope, which has no keys."""
    scope = bytes.fromhex("5c" * 16)
    if scope not in device.member.state.scopes:
        made = account_log.scope_body(scope, suite=Suite.OPEN)
        await device.member.append(device.machine.cloud, lambda *_: Draft(entries=[(EntryType.SCOPE_CREATE, made)]))

    def draft(state: AccountState, _: Any) -> Draft:
        epoch = state.scopes[scope].epoch
        return Draft(entries=[(EntryType.EPOCH_ADD, {1: scope, 2: epoch + 1 + one}) for one in range(at_once)])

    for _ in range(0, count, at_once):
        await device.member.append(device.machine.cloud, draft)


async def revoked(world: World, owner: Device, lost: Device) -> None:
    await account_devices.revoke(
        owner.member, owner.machine.cloud, lost.member.device, ends={}, entropy=world.random.randbytes
    )


async def types_of(device: Device) -> list[int]:
    return [account_log.read(entry).type for entry in await device.log()]


# --- a log without end ------------------------------------------------------------------------------------------------


async def test_an_account_with_more_changes_than_the_server_takes_without_a_checkpoint_still_revokes(
    world: World,
) -> None:
    owner, lost = await world.device(), await world.device()

    await changed(owner, 8 * OFTEN)
    await revoked(world, owner, lost)

    assert owner.member.state.seq > 8 * OFTEN > 3 * OFTEN
    assert owner.member.state.devices[lost.member.device].revoked
    assert (await types_of(owner)).count(EntryType.CHECKPOINT) >= 7


async def test_a_log_without_checkpoints_ends_and_one_checkpoint_lets_it_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await world.device()
    with monkeypatch.context() as patch:
        patch.setattr(drafts, "IDENTITY", replace(IDENTITY, checkpoint_entries=10**6))
        with pytest.raises(InvalidError, match="after a checkpoint") as refused:
            await changed(owner, 4 * OFTEN)
    assert "makes a checkpoint" in refused.value.hint

    await changed(owner, OFTEN)

    assert EntryType.CHECKPOINT in await types_of(owner)


async def test_the_server_takes_no_checkpoint_so_soon_after_another(world: World) -> None:
    owner = await world.device()
    await changed(owner, 2 * OFTEN)

    with pytest.raises(InvalidError, match="entries after the last"):
        await owner.member.append(
            owner.machine.cloud,
            lambda state, _: Draft(entries=[(EntryType.CHECKPOINT, account_log.checkpoint_body(state))]),
        )


# --- bounded reading --------------------------------------------------------------------------------------------------


async def test_a_machine_that_is_let_in_reads_from_the_newest_checkpoint_and_holds_the_same(world: World) -> None:
    owner = await world.device()
    await changed(owner, 6 * OFTEN)
    two = await world.device()
    await owner.member.refresh(owner.machine.cloud)
    await two.member.refresh(two.machine.cloud)

    assert account_log.read((await two.log())[0]).type == EntryType.CHECKPOINT
    assert len(await two.log()) < 2 * OFTEN < len(await owner.log())
    assert two.member.state.head == owner.member.state.head
    assert account_log.state_bytes(two.member.state) == account_log.state_bytes(owner.member.state)
    await owner.note("said by the first")
    await world.settle(owner, two)
    assert await two.contents() == ["said by the first"]
    assert await two.alarms() == []


async def test_a_start_replays_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await world.device()
    await changed(owner, 2 * OFTEN)
    before = owner.member.state

    def replays(*_: Any, **__: Any) -> Any:
        raise AssertionError("it replayed the log")

    for name in ("extended", "replay", "replayed"):
        monkeypatch.setattr(account_log, name, replays)

    log = await PinnedLog.load(owner.store, owner.now)
    assert log is not None
    assert account_log.state_bytes(log.state) == account_log.state_bytes(before)


async def test_a_store_from_before_states_were_kept_replays_its_log_once(world: World) -> None:
    owner = await world.device()
    await owner.store.write(lambda tx: tx.replication._run("delete from account_state"))

    for _ in range(2):
        log = await PinnedLog.load(owner.store, owner.now)
        assert log is not None
        assert log.state.head == owner.member.state.head
        assert await owner.store.read(lambda q: q.replication.account_state()) is not None


async def test_the_server_answers_from_the_stored_state_and_replays_nothing(world: World) -> None:
    owner = await world.device()
    await changed(owner, 3 * OFTEN)

    state, entries = await world.database.read(lambda tx: account_states.since_stored(tx, owner.member.account))

    assert state is not None
    assert (state.head, entries) == (owner.member.state.head, [])
    await world.database.close()
    await world.serve()
    await changed(owner, 10)


async def test_an_account_whose_states_the_server_lost_goes_on(world: World) -> None:
    owner = await world.device()
    await changed(owner, 3 * OFTEN)
    await world.database.write(lambda tx: tx.execute("delete from account_state"))
    await world.database.close()
    await world.serve()

    two = await world.device()
    await changed(owner, 2 * OFTEN)
    await two.member.refresh(two.machine.cloud)
    await owner.member.refresh(owner.machine.cloud)

    assert account_log.read((await two.log())[0]).type == EntryType.GENESIS  # no checkpoint was stored: read whole
    assert two.member.state.head == owner.member.state.head


async def test_the_server_keeps_the_states_of_the_newest_checkpoints_only(world: World) -> None:
    owner = await world.device()
    await changed(owner, 6 * OFTEN)

    rows = await world.database.read(lambda tx: tx.rows("select seq from account_state"))

    assert len(rows) == 3 + 1


async def test_the_check_of_a_database_finds_a_stored_state_that_is_not_the_logs(world: World) -> None:
    owner = await world.device()
    await changed(owner, 2 * OFTEN)
    assert (await world.database.read(verify)).holds
    state = owner.member.state
    thief, _, _ = device_draft(world.random)
    lie = replace(state, devices={**state.devices, thief: replace(state.devices[owner.member.device], id=thief)})
    await world.database.write(
        lambda tx: tx.execute(
            "update account_state set state = ? where seq = ?", (account_log.state_bytes(lie), lie.seq)
        )
    )

    found = await world.database.read(verify)

    assert [one.words for one in found.findings] == [f"its stored state {lie.seq} is not what its log adds up to"]
    await world.database.write(repair)
    assert (await world.database.read(verify)).holds


# --- the recovery code and void ---------------------------------------------------------------------------------------


async def test_the_recovery_code_lets_a_machine_in_behind_checkpoints_and_reads_the_whole_log(world: World) -> None:
    owner = await world.device()
    await owner.note("said before")
    await owner.sync()
    await changed(owner, 3 * OFTEN)
    joining = await world.log_in(await world.machine(), "back")
    assert joining.states[0].seq > 0

    member = await joining.recover(world.code)

    assert member.device in member.state.devices


async def test_a_void_goes_back_behind_a_checkpoint_and_every_device_follows(world: World) -> None:
    owner, stolen = await world.device(), await world.device()
    thief = await Thief.at(stolen.machine, stolen.member)
    device, _, draft = device_draft(world.random)
    await stolen.member.append(stolen.machine.cloud, lambda *_: draft)
    start = stolen.member.state.devices[device].added
    await changed(stolen, 3 * OFTEN)
    late = await world.device()
    assert account_log.read((await late.log())[0]).seq > start
    joining = await world.log_in(await world.machine(), "back")

    member = await joining.revert(world.code, start)

    for one in (owner, late, stolen):
        try:
            await one.member.refresh(one.machine.cloud)
        except ScrubjayError as error:
            assert one is late, error  # noqa: PT017 - it was added after the thief, so the void takes it out
    await stolen.member.refresh(stolen.machine.cloud)
    await member.refresh(joining.machine.cloud)
    await owner.member.refresh(owner.machine.cloud)
    assert device not in member.state.devices
    assert device not in owner.member.state.devices
    assert account_log.state_bytes(owner.member.state) == account_log.state_bytes(member.state)
    assert thief.device in owner.member.state.devices
    again = await let_in(await world.log_in(await world.machine(), "new"), owner.member, owner.machine.cloud)
    await owner.member.refresh(owner.machine.cloud)
    assert again.state.head == owner.member.state.head


# --- nobody is smuggled in --------------------------------------------------------------------------------------------


def lies(state: AccountState, extra: Any) -> dict[str, AccountState]:
    """False statements of an account: each would let somebody in, keep somebody out, or hide something."""
    mine = next(iter(state.devices.values()))
    gone = next(one for one in state.devices.values() if one.revoked)
    return {
        "adds a device": replace(state, devices={**state.devices, extra: replace(mine, id=extra)}),
        "drops a revoke": replace(
            state, devices={**state.devices, gone.id: replace(gone, ends=None, wrap_pub=mine.wrap_pub)}
        ),
        "another recovery key": replace(state, rsk=bytes(32)),
        "another account key": replace(state, ask=bytes(32)),
        "its place": replace(state, seq=state.seq - 1),
        "its link": replace(state, head=bytes(32)),
        "another genesis": replace(state, genesis=bytes(32)),
    }


async def test_a_checkpoint_that_lies_is_refused_by_the_server_and_by_every_client(world: World) -> None:
    owner, lost = await world.device(), await world.device()
    await revoked(world, owner, lost)
    await changed(owner, 10)
    thief = await Thief.at(owner.machine, owner.member)
    thief.states = [owner.member.state]
    extra, _, _ = device_draft(world.random)

    for name, lie in lies(owner.member.state, extra).items():
        data = thief.entry(EntryType.CHECKPOINT, account_log.checkpoint_body(lie))
        with pytest.raises(InvalidError, match="states another account"):
            await thief.machine.cloud.log.append(_append(owner.member.state, data))
        with pytest.raises(InvalidError, match="states another account"):
            account_log.extended([owner.member.state], [data])
        last = owner.member.state

        async def serve(request: httpx2.Request, answer: Answer, data: bytes = data) -> httpx2.Response:
            response = await answer()
            if request.method == "GET" and request.url.path == "/v1/log":
                page = msgspec.json.decode(response.content, type=LogPage)
                forged = replace(
                    page, entries=(*page.entries, data), seq=page.seq + 1, head=account_log.read(data).hash
                )
                return httpx2.Response(200, headers=JSON, content=msgspec.json.encode(forged))
            return response

        owner.network.fault = serve
        with pytest.raises(InvalidError, match="states another account"):
            await owner.member.refresh(owner.machine.cloud)
        owner.network.fault = None
        assert owner.member.state == last, name


def _append(state: AccountState, *entries: bytes) -> Any:
    return LogAppend(head=state.head, entries=entries)


async def test_a_server_that_makes_up_a_checkpoint_lets_nobody_in_by_words_or_by_code(world: World) -> None:
    owner = await world.device()
    await changed(owner, 2 * OFTEN)
    true = owner.member.state
    made = minted(true, random=world.random, code=world.code.sign)
    evil = replace(
        account_log.replay(made.entries),
        account=true.account,
        genesis=true.genesis,
        rsk=true.rsk,
        recovery_pub=true.recovery_pub,
        origins=true.origins,
        seq=true.seq - 1,
    )
    entry = account_log.entry(
        true.account,
        seq=true.seq,
        prev=evil.head,
        type=EntryType.CHECKPOINT,
        body=account_log.checkpoint_body(evil),
        sign=made.root.sign,
        author=made.device,
        cosign=signer(made.keys.sign_seed),
    )
    shown = LogCheckpoint(entry=entry, state=account_log.state_bytes(evil))
    assert account_log.after_checkpoint(shown.entry, shown.state).devices  # it looks like one

    async def serve(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        response = await answer()
        if request.url.path == "/v1/log/checkpoint":
            return httpx2.Response(200, headers=JSON, content=msgspec.json.encode(shown))
        if request.method == "GET" and request.url.path == "/v1/log" and request.url.params.get("from") != "0":
            page = LogPage(entries=(entry,), seq=true.seq, head=account_log.read(entry).hash)
            return httpx2.Response(200, headers=JSON, content=msgspec.json.encode(page))
        return response

    network = Network(world)
    network.fault = serve
    by_words = await world.log_in(await world.machine(network=network), "new")
    (asked,) = (await owner.machine.cloud.account.enrolments()).enrolments
    await pairing.answer(owner.member, owner.machine.cloud, asked)
    with pytest.raises(SplitError, match="holds another account log"):
        await by_words.poll()
    with pytest.raises(SplitError, match="from its first entry on"):
        await by_words.recover(world.code)
    assert await by_words.machine.vault.load() is None


async def test_other_bytes_than_a_checkpoint_states_are_refused(world: World) -> None:
    owner = await world.device()
    await changed(owner, 2 * OFTEN)
    found = await owner.machine.cloud.log.checkpoint()
    state = account_log.state_of(found.state)
    extra, _, _ = device_draft(world.random)
    lie = replace(state, devices={**state.devices, extra: replace(state.devices[owner.member.device], id=extra)})

    for stated in (account_log.state_bytes(lie), account_log.state_bytes(replace(state, ask=bytes(32)))):
        with pytest.raises(InvalidError, match="is not the one that checkpoint"):
            account_log.after_checkpoint(found.entry, stated)
    with pytest.raises(InvalidError, match="is no checkpoint"):
        account_log.after_checkpoint((await owner.log())[-1], found.state)


async def test_a_device_that_began_at_a_checkpoint_gives_the_server_back_what_it_lost(world: World) -> None:
    owner = await world.device()
    await changed(owner, 3 * OFTEN)
    late = await world.device()
    await late.member.refresh(late.machine.cloud)
    await world.back_up()
    kept = late.member.state.seq
    await owner.member.refresh(owner.machine.cloud)
    await changed(owner, 2 * OFTEN)
    await late.member.refresh(late.machine.cloud)
    await world.restore()

    assert await late.member.repair_log(late.machine.cloud) == late.member.state.seq - kept
    await owner.member.refresh(owner.machine.cloud)
    assert owner.member.state.head == late.member.state.head


@pytest.mark.slow
async def test_an_account_with_more_than_twenty_thousand_changes_still_revokes(tmp_path: Path) -> None:
    async with world_at(tmp_path) as world:
        owner, lost = await world.device(), await world.device()
        await changed(owner, DEFAULT.max_log_entries + 500, at_once=500)

        await revoked(world, owner, lost)
        late = await world.device()
        await owner.member.refresh(owner.machine.cloud)

        assert owner.member.state.seq > DEFAULT.max_log_entries
        assert owner.member.state.devices[lost.member.device].revoked
        assert len(await late.log()) <= IDENTITY.checkpoint_entries + 510
        assert account_log.state_bytes(late.member.state) == account_log.state_bytes(owner.member.state)
