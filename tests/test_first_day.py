"""The first day of a machine: what an account holds comes quickly, in any order of mishaps, and nothing else with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay import redaction
from scrubjay.ingest import receipt
from scrubjay.store import Store, checksums, damage
from scrubjay_shared import ops
from scrubjay_shared.clock import Millis, ulid, ulid_bytes, uuid7
from scrubjay_shared.ops import OpType

pytestmark = pytest.mark.anyio

NOW = Millis(1_800_000_000_000)
DEVICE = "0b" * 16


def event_op(
    seq: int, text: str = "a jay hides an acorn", body: Mapping[int, Any] = MappingProxyType({})
) -> tuple[int, bytes]:
    """Return an op of another device that appends an event, with its place."""
    made = {
        ops.ENTITY: ulid_bytes(ulid(Millis(NOW + seq), seq.to_bytes(10, "big"))),
        2: "test",
        3: f"s{seq % 7}",
        4: "user_message",
        5: "user",
        6: text,
        7: int(NOW) + seq,
        8: f"k{seq}",
        11: "user",
        **body,
    }
    op_id = uuid7(Millis(NOW + seq), seq.to_bytes(10, "big"))
    return seq, ops.encode_wire((int(OpType.EVENT), ops.VERSION, op_id, (int(NOW) + seq) << 16, made))


# --- screening a run at once --------------------------------------------------------------------------------------------

SIGNS = [
    "password: hunter2",
    "<private>x</private>",
    "AKIAQ3EGRWZ7XKLM2NPV",
    "4111 1111 1111 1111",
    "Ab1" * 9,
    "İ",
    "Σ",
]


@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(SIGNS), st.just("y" * 3_000)), max_size=40))
@settings(max_examples=60)
def test_what_a_run_calls_harmless_is_so_for_each_alone(texts: list[str]) -> None:
    for text, harmless in zip(texts, redaction.harmless(texts), strict=True):
        assert harmless == redaction.harmless([text])[0]
        if harmless:
            assert redaction.clean(text).text == text


def test_a_secret_among_many_harmless_texts_is_taken_out() -> None:
    wires = [ops.read(event_op(seq)[1], device=DEVICE, seq=seq) for seq in range(1, 40)]
    secret = ops.read(event_op(40, "my key is AKIA" + "Q3EGRWZ7XKLM2NPV")[1], device=DEVICE, seq=40)
    run = [*wires[:20], None, secret, *wires[20:]]

    harmless = receipt.harmless_words(run)

    assert [at for at, one in enumerate(harmless) if not one] == [20, 21]
    assert receipt.received(secret, harmless=False)[4][6] == "my key is ********************"


# --- rows that bring their check sums ---------------------------------------------------------------------------------


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    made = await Store.open(tmp_path / "memory.db", now=lambda: NOW, entropy=lambda n: b"e" * n)
    yield made
    await made.close()


async def test_a_large_run_of_events_carries_check_sums_as_single_ones_do(store: Store) -> None:
    run = [event_op(seq) for seq in range(1, 601)]

    await store.write(lambda tx: tx.ingest.receive(DEVICE, run[:590]))
    for one in run[590:]:
        await store.write(lambda tx, one=one: tx.ingest.receive(DEVICE, [one]))

    unsummed = await store.read(
        lambda q: [
            q.fetch(f"select count(*) from {table} where crc is null")[0][0] for table in ("event", "op", "unlearned")
        ]
    )
    assert unsummed == [0, 0, 0]
    await store.checkpoint(truncate=True)
    assert not list(damage.find(store.path, lambda *_: None))


async def test_what_fails_in_the_middle_leaves_the_triggers_that_add_check_sums(store: Store) -> None:
    def failing(tx: Any) -> None:
        connection = tx._context.connection
        connection.execute("savepoint here")
        with pytest.raises(LookupError), checksums.brought_along(connection, ("unlearned",)):
            raise LookupError
        connection.execute("rollback to here")
        connection.execute("insert into unlearned (n) values (7)")

    await store.write(failing)

    assert (await store.read(lambda q: q.fetch("select crc from unlearned")))[0][0] == checksums.checksum(7)
