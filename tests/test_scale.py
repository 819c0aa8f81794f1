"""What holds for many accounts: keys contain the account, nothing counts all of them often, and the arithmetic adds up."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from cloud_client import Clock, opened, signed_up
from cloud_operations import settings_of
from scrubjay_bench.arithmetic import inputs, recomputed
from scrubjay_cloud.jobs import Jobs
from scrubjay_cloud.metrics import Metrics
from scrubjay_cloud.policy import DEFAULT

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT.joinpath("docs", "scale.md")

NAMED_IN_THE_DOCUMENT = {"account_name_key", "former_name_pkey"}
"""Unique keys of tables with an account that do not contain it: docs/scale.md says what each of them needs."""


@pytest.mark.anyio
async def test_every_unique_key_of_an_accounts_rows_contains_the_account(postgres: str) -> None:
    async with opened(postgres) as world:
        keys = await world.rows(
            "select i.indexrelid::regclass::text, i.indrelid::regclass::text, array(select attname::text"
            " from pg_attribute where attrelid = i.indrelid and attnum = any(i.indkey)),"
            " exists (select 1 from pg_attribute where attrelid = i.indrelid and attname = 'account')"
            " from pg_index i join pg_class c on c.oid = i.indrelid"
            " where c.relnamespace = current_schema()::regnamespace and not c.relispartition and i.indisunique"
        )
    of_accounts = [(key, set(columns)) for key, _, columns, has in keys if has]
    of_the_account = [(key, set(columns)) for key, table, columns, _ in keys if table == "account"]

    assert len(of_accounts) >= 10
    apart = {key for key, columns in of_accounts if "account" not in columns}
    apart |= {key for key, columns in of_the_account if "id" not in columns}
    assert apart == NAMED_IN_THE_DOCUMENT
    for key in NAMED_IN_THE_DOCUMENT:
        assert key in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.anyio
async def test_accounts_are_counted_by_one_instance_for_all(postgres: str, tmp_path: Path) -> None:
    clock = Clock()
    async with opened(postgres, policy=replace(DEFAULT, hash_memory_kib=64, hash_iterations=1)) as world:
        device = await signed_up(world.client, now=world.now)
        await device.push(device.quick(100))
        settings = settings_of(tmp_path, database_url=postgres)
        metrics = [Metrics(now=clock, backups=False) for _ in range(2)]
        two = [Jobs(world.database, settings, one, holder=str(at), now=clock) for at, one in enumerate(metrics)]
        assert sorted(await asyncio.gather(*(jobs.run("count") for jobs in two))) == [False, True]
        for jobs in two:
            await jobs.measure()
        [(stored,)] = await world.rows("select bytes from account")

    for one in metrics:
        assert one.registry.get_sample_value("scrubjay_accounts") == 1
        assert one.registry.get_sample_value("scrubjay_stored_bytes") == stored


# --- the document -----------------------------------------------------------------------------------------------------


def test_every_step_of_the_arithmetic_is_what_it_says() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")

    assert recomputed(text) == text, "python -m scrubjay_bench.arithmetic docs/scale.md"
    assert text.count("```calc") >= 5


def test_the_figures_are_those_that_were_measured() -> None:
    measured = msgspec.json.decode(ROOT.joinpath("bench", "costs.json").read_bytes(), type=dict[str, float])
    given = inputs(DOCUMENT.read_text(encoding="utf-8"))

    assert measured.items() <= given.items()
    policy = {
        "body_least_bytes": DEFAULT.bodies.least_bytes,
        "connections_a_process": DEFAULT.pool,
        "waits_a_process": DEFAULT.waits,
        "token_seconds": DEFAULT.token_ms / 1000,
    }
    assert policy.items() <= given.items()


def test_a_step_that_is_wrong_is_put_right_and_one_that_cannot_be_is_named() -> None:
    block = "```calc\nrows = 2,000\nbytes_each = 1.5\nall_bytes = rows * bytes_each  -> 1\n```\n"

    assert recomputed(block) == block.replace("-> 1", "-> 3,000")
    assert recomputed(recomputed(block)) == recomputed(block)
    assert inputs(block) == {"rows": 2_000, "bytes_each": 1.5}
    with pytest.raises(ValueError, match="nobody"):
        recomputed("```calc\nall_bytes = nobody * 2 -> 1\n```\n")
    with pytest.raises(ValueError, match="import"):
        recomputed(f"```calc\nx = __import__('os').getpid() -> {os.getpid()}\n```\n")
