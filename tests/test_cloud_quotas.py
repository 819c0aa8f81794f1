"""What an operator lets an account hold."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cloud_client import RefusedError, opened, signed_up
from scrubjay_cloud import database
from scrubjay_cloud.accounts.quotas import quota_of, set_quota
from scrubjay_cloud.cli import _size, main
from scrubjay_cloud.policy import DEFAULT, Bucket
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.wire import Usage

pytestmark = pytest.mark.anyio
LOOSE = replace(DEFAULT, hash_memory_kib=64, limits=replace(DEFAULT.limits, register=Bucket(burst=100, rate=1)))
NOW = Millis(1_800_000_000_000)


async def refused(call: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        await call
    return caught.value.problem.status, caught.value.code


async def test_a_quota_of_ones_own_counts_from_the_next_push_on_and_for_nobody_else(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, quota_bytes=10_000) as world:
        device, other = [await signed_up(world.client, name, now=world.now) for name in ("ann", "bob")]

        def give(own: int | None) -> Any:
            return world.database.write(lambda tx: set_quota(tx, device.account.name, own, world.now()))

        large = device.quick(11_000)
        full = await refused(device.push(large))
        given = await give(30_000)
        more = await device.statuses(large)
        usage = await device.client.call("GET", "/v1/usage", answer=Usage)
        theirs = await refused(other.push(other.quick(11_000)))
        less = await give(5_000)
        over = await refused(device.push(device.quick(100)))
        back = await give(None)

        assert (full, theirs, over) == ((507, "quota"),) * 3
        assert more == ["ok"]
        assert (given.own_bytes, usage.quota_bytes, less.own_bytes, back.own_bytes) == (30_000, 30_000, 5_000, None)
        assert less.bytes == usage.bytes > 11_000  # what it holds stays
        with pytest.raises(NotFoundError, match="no account is called 'nobody'"):
            await world.database.read(lambda tx: quota_of(tx, "nobody"))


def test_an_operator_shows_and_sets_quotas_beside_the_running_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"

    async def make() -> None:
        found = await database.open(Settings(data=data), now=lambda: NOW, entropy=bytes)
        await found.write(
            lambda tx: tx.execute(
                "insert into account (id, name, auth_method, kdf, auth_hash, auth_salt, log_seq, log_head, bytes, created)"
                " values (?, 'ann', 1, ?, ?, ?, 0, ?, 3000000, 1)",
                (b"a" * 16, b"", b"", b"", bytes(32)),
            )
        )
        await found.close()

    asyncio.run(make())

    def said(*words: str) -> str:
        assert main(["admin", "quota", *words, "--data", str(data)]) == 0
        return capsys.readouterr().out

    assert "holds 2.9 MiB in 0 objects of 2048.0 MiB (the default)" in said("ann")
    assert "of 5120.0 MiB (set for this account)" in said("ANN", "--set", "5GiB")
    assert msgspec.json.decode(said("ann", "--json"))["quota_bytes"] == 5 * 2**30
    assert "nothing new is taken" in said("ann", "--set", "1MB")
    assert main(["admin", "users", "--json", "--data", str(data)]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["users"][0]["quota"] == 10**6
    assert "(the default)" in said("ann", "--default")
    assert main(["admin", "quota", "bob", "--data", str(data)]) == 3
    assert "admin users lists them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500MB", 500 * 10**6), ("2 GiB", 2 * 2**30), ("3k", 3000), ("0", 0)]
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert _size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5 apples", "1.5GB", "9999999TB", "GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        _size(text)
