"""Public keys that something is wrapped for: which are none, and that such a one holds nothing up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType, is_wrap_pub
from scrubjay_shared.errors import InvalidError
from scrubjay_sync.account import rotation
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.keys.keypairs import DeviceKeys
from sync_devices import World, world_at

pytestmark = pytest.mark.anyio

GOOD = DeviceKeys.new(Random(1).randbytes).wrap_pub
BOGUS = {
    "too short": GOOD[:-1],
    "too long": GOOD + b"x",
    "random bytes": Random(2).randbytes(1216),
    "a number that is not below the modulus": b"\xff\x0f" + GOOD[2:],
    "the last number too large": GOOD[:1151] + b"\xff" + GOOD[1152:],
    "a point of order 1": GOOD[:-32] + bytes(32),
    "a point of order 2": GOOD[:-32] + b"\1" + bytes(31),
    "a point of order 4": GOOD[:-32] + ((1 << 255) - 20).to_bytes(32, "little"),
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


@pytest.mark.parametrize("key", BOGUS.values(), ids=BOGUS)
def test_what_nothing_can_be_wrapped_for_is_no_key(key: bytes) -> None:
    assert not is_wrap_pub(key)


def test_every_key_of_ours_is_one() -> None:
    for seed in range(20):
        assert is_wrap_pub(DeviceKeys.new(Random(seed).randbytes).wrap_pub)


async def test_a_bogus_key_gets_in_by_no_honest_way_and_holds_nothing_up_where_it_stands(world: World) -> None:
    """A thief with an unlocked device adds one with a key of no meaning, so that no new root key can be made."""
    one, two = await world.device(), await world.device()
    await world.settle()
    own = DeviceKeys.new(world.random.randbytes)
    body = account_log.device_body(b"b" * 16, sign_pub=own.sign_pub, wrap_pub=BOGUS["random bytes"])
    with pytest.raises(InvalidError, match="wrap key"):
        await one.member.append(one.machine.cloud, lambda *_: Draft(entries=[(EntryType.DEVICE_ADD, body)]))
    entry = account_log.entry(
        one.member.account,
        seq=one.member.state.seq + 1,
        prev=one.member.state.head,
        type=EntryType.DEVICE_ADD,
        body=body,
        sign=one.member.root.sign,
        author=one.member.device,
        cosign=one.member.sign,
    )
    with pytest.raises(InvalidError, match="wrap key"):
        account_log.check_wrap_keys([entry])
    after = account_log.extended([one.member.state], [entry], world.now())  # a server that lets it through
    await one.member._log.extend(after, [entry])
    await two.member._log.extend(after, [entry])
    await world.database.write(lambda tx: _let_through(tx, after[-1], entry))

    await rotation.rotate(one.member, one.machine.cloud, entropy=world.random.randbytes)
    await one.note("under the new key")
    await world.settle()
    assert await two.contents() == ["under the new key"]


def _let_through(tx: object, state: account_log.AccountState, entry: bytes) -> None:
    tx.execute(
        "insert into account_log (account, seq, hash, entry) values (?, ?, ?, ?)",
        (state.account, state.seq, state.head, entry),
    )
    tx.execute("update account set log_seq = ?, log_head = ? where id = ?", (state.seq, state.head, state.account))
