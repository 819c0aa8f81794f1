"""Whatever a device meets: a named error that says what to do, and its own work unharmed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from scrubjay_io.sqlite import driver
from scrubjay_shared import ops, sealing
from scrubjay_shared.clock import Hlc
from scrubjay_shared.envelope import Envelope, split
from scrubjay_shared.errors import (
    ConflictError,
    DeniedError,
    MalformedError,
    QuotaError,
    RevokedError,
    ScrubjayError,
    SplitError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
    WithheldError,
)
from scrubjay_shared.records import Op
from scrubjay_sync import packing
from scrubjay_sync.account import account_devices, leaving
from scrubjay_sync.cloud.origin import checked_origin
from scrubjay_sync.cloud.problems import Response, error_of
from scrubjay_sync.engine import apply, outbox
from scrubjay_sync.engine.results import Tally
from sync_devices import Device, Handler, Network, World, world_at

pytestmark = pytest.mark.anyio
Answer = Callable[[], Awaitable[httpx2.Response]]
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_at(tmp_path) as made:
        yield made


@pytest.fixture
async def pair(world: World) -> tuple[Device, Device]:
    """Two devices in step."""
    one, two = await world.device(), await world.device()
    await world.settle()
    return one, two


def on(path: str, respond: Callable[[httpx2.Request, httpx2.Response], httpx2.Response]) -> Handler:
    """Change the server's answers on one path."""

    async def fault(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        found = await answer()
        return respond(request, found) if request.url.path.startswith(path) else found

    return fault


def plain(status: int, **headers: str) -> httpx2.Response:
    """An answer as a proxy gives it: no problem document."""
    return httpx2.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()}, content=b"<html>")


async def pulled(device: Device) -> tuple[Envelope, ...]:
    """What the server would hand out to a device now."""
    state = await device.store.read(lambda q: q.replication.state())
    assert state is not None
    return (await device.machine.cloud.pull(state.cursor)).objects


# --- objects ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_no_flipped_byte_of_an_object_gets_in(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()
    (whole,) = await pulled(two)
    before = await two.digest()

    passed = []
    for at in range(len(whole.data)):
        damaged = bytearray(whole.data)
        damaged[at] ^= 1 << at % 8
        tally = Tally()
        try:
            await apply.receive_objects(two.engine.context, tuple(split(bytes(damaged))), tally, cursor=None)
        except MalformedError:
            continue
        if not tally.errors or tally.ops_received:
            passed.append(at)

    assert passed == []
    assert before == await two.digest()
    assert (await two.sync()).synced
    assert await one.digest() == await two.digest()


async def test_a_byte_flipped_on_the_way_is_named_and_read_again(pair: tuple[Device, Device]) -> None:
    one, two = pair
    for at in (3, 20, 61, 100, 150, 190, 206, 300, 730, 780):
        await one.note(f"{at}")
        await one.sync()
        two.network.fault = on("/v1/pull", lambda _, found, at=at: _flipped(found, at))
        errors = await _errors_of(two)
        assert errors
        assert all(error.hint for error in errors)
        two.network.fault = None

        assert (await two.sync()).synced
        assert await one.contents() == await two.contents()


async def _errors_of(device: Device) -> tuple[ScrubjayError, ...]:
    """What a round names, whether it ended it or only held a lane up."""
    try:
        return (await device.sync()).errors
    except ScrubjayError as error:
        return (error,)


def _flipped(found: httpx2.Response, at: int) -> httpx2.Response:
    body = bytearray(found.content)
    if len(body) > at:
        body[at] ^= 0x10
    return httpx2.Response(found.status_code, headers=found.headers, content=bytes(body))


Forge = Callable[[packing.SealContext, Device], list[packing.Opened]]


def under_another_key(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return packing.segments(replace(place, key=bytes(32)), [(900, b"op")], device.engine.context.signer)


def with_an_unknown_flag(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return _flagged(place, device, 64)


def for_a_newer_reader(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return _flagged(place, device, 9 << 8)


def holding_no_ops(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return [_object(place, device, packing._header(place, packing.ObjectKind.SEGMENT), b"\xc1 not messagepack")]


def readable_in_a_sealed_scope(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return packing.segments(replace(place, suite=0), [(900, b"op")], device.engine.context.signer)


def of_an_epoch_to_come(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return packing.segments(replace(place, epoch=7), [(900, b"op")], device.engine.context.signer)


def not_continuing(place: packing.SealContext, device: Device) -> list[packing.Opened]:
    return packing.segments(replace(place, prev=bytes(32)), [(900, b"op")], device.engine.context.signer)


def signed_by_a_stranger(place: packing.SealContext, _: Device) -> list[packing.Opened]:
    return packing.segments(place, [(900, b"op")], packing.Signer(sign=lambda _: bytes(64), entropy=os.urandom))


def _flagged(place: packing.SealContext, device: Device, flags: int) -> list[packing.Opened]:
    header = replace(packing._header(place, packing.ObjectKind.SEGMENT), flags=flags)
    return [_object(place, device, header, b"\x90")]


def _object(place: packing.SealContext, device: Device, header: Any, payload: bytes) -> packing.Opened:
    signer = device.engine.context.signer
    return packing.Opened(
        envelope=sealing.seal(header, payload, key=place.key, salt=signer.entropy(32), sign=signer.sign)
    )


FORGED: tuple[tuple[Forge, str], ...] = (
    (under_another_key, "wrong_key"),
    (with_an_unknown_flag, "update_needed"),
    (for_a_newer_reader, "update_needed"),
    (holding_no_ops, "malformed"),
    (readable_in_a_sealed_scope, "bad_signature"),
    (of_an_epoch_to_come, "wrong_key"),
    (not_continuing, "broken_chain"),
    (signed_by_a_stranger, "bad_signature"),
)


async def test_an_object_that_does_not_hold_stops_its_lane_and_no_other(pair: tuple[Device, Device]) -> None:
    one, two = pair
    home = two.member.home
    place = await two.store.write(lambda tx: outbox.next_seal_context(two.engine.context, tx, home))
    await two.note("sent at the end")
    await one.note("by the first, meanwhile")
    for forge, code in FORGED:
        tally = Tally()

        await apply.receive_objects(
            one.engine.context, [each.envelope for each in forge(place, two)], tally, cursor=None
        )

        assert [code] == [error.code for error in tally.errors] == await one.alarms(), forge.__name__
        assert all(error.hint for error in tally.errors)
        assert await one.contents() == ["by the first, meanwhile"]
        assert place.n - 1 == (await one.store.read(lambda q: q.replication.lanes()))[home, two.member.device].n
        await one.engine.acknowledge()
    await two.sync()
    assert (await one.sync()).synced


async def test_an_op_of_an_unknown_type_is_kept_and_the_lane_goes_on(pair: tuple[Device, Device]) -> None:
    one, two = pair
    home = two.member.home
    future = ops.encode(
        Op(device=two.store.device, seq=900, op_id=bytes(16), hlc=Hlc(1 << 40), type=99, body={1: bytes(16)}, version=1)
    )

    def seal(tx: Any) -> None:
        place = outbox.next_seal_context(two.engine.context, tx, home)
        outbox.keep_own(
            two.engine.context, tx, home, packing.segments(place, [(900, future)], two.engine.context.signer)
        )

    await two.store.write(seal)
    await two.sync()
    await two.note("an ordinary one after it")
    await two.sync()

    found = await one.sync()

    assert found.quarantined == 1
    assert found.synced
    assert await one.contents() == ["an ordinary one after it"]


# --- pages ------------------------------------------------------------------------------------------------------------


async def test_a_page_cut_within_an_object_is_refused_whole(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()

    def cut(_: httpx2.Request, found: httpx2.Response) -> httpx2.Response:
        headers = {k: v for k, v in found.headers.items() if k.lower() != "content-length"}
        return httpx2.Response(found.status_code, headers=headers, content=found.content[:-30])

    two.network.fault = on("/v1/pull", cut)
    with pytest.raises(MalformedError, match="ends after"):
        await two.sync()
    two.network.fault = None
    assert (await two.sync()).synced


async def test_a_page_shorter_than_it_says_is_asked_for_again(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()

    def cut(_: httpx2.Request, found: httpx2.Response) -> httpx2.Response:
        answer = httpx2.Response(found.status_code, headers=found.headers, content=b"")
        answer.headers["Content-Length"] = str(len(found.content) + 5)
        return answer

    two.network.fault = on("/v1/pull", cut)
    with pytest.raises(UnavailableError, match="cut short"):
        await two.sync()
    two.network.fault = None
    assert (await two.sync()).synced


async def test_a_page_that_lost_its_objects_is_filled_by_lane(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()

    def empty(_: httpx2.Request, found: httpx2.Response) -> httpx2.Response:
        headers = {k: v for k, v in found.headers.items() if k.lower() != "content-length"}
        return httpx2.Response(found.status_code, headers=headers, content=b"")

    two.network.fault = on("/v1/pull", empty)
    found = await two.sync()

    assert found.synced
    assert await two.contents() == ["x"]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("moves", [True, False])
async def test_pages_without_end_are_an_error_and_no_loop(
    pair: tuple[Device, Device], *, full: bool, moves: bool
) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()
    state = await two.store.read(lambda q: q.replication.state())
    assert state is not None
    objects = b"".join(envelope.data for envelope in await pulled(two))

    async def endless(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        if request.url.path != "/v1/pull":
            return await answer()
        cursor = state.cursor + request.url.params["after"][:5] * moves
        return httpx2.Response(
            200, headers={"Scrubjay-Cursor": cursor, "Scrubjay-Head": "further"}, content=objects * full
        )

    two.network.fault = endless
    with pytest.raises(WithheldError):
        await two.sync()
    two.network.fault = None
    assert (await two.sync()).synced


async def test_a_page_handed_out_twice_changes_nothing(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()
    objects = await pulled(two)
    await two.sync()
    before = await two.digest(), await two.store.read(lambda q: q.replication.lanes())

    tally = Tally()
    await apply.receive_objects(two.engine.context, objects, tally, cursor=None)

    assert tally.errors == []
    assert before == (await two.digest(), await two.store.read(lambda q: q.replication.lanes()))


# --- a server that lies ------------------------------------------------------------------------------------------------


async def test_a_withheld_lane_is_an_alarm_and_not_synced(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()

    def nothing(_: httpx2.Request, found: httpx2.Response) -> httpx2.Response:
        headers = {k: v for k, v in found.headers.items() if k.lower() != "content-length"}
        return httpx2.Response(200, headers=headers, content=b"")

    async def fault(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        found = await answer()
        return nothing(request, found) if request.url.path.startswith(("/v1/pull", "/v1/lanes")) else found

    two.network.fault = fault
    found = await two.sync()

    assert not found.synced
    assert ["withheld"] == [error.code for error in found.errors] == await two.alarms()
    two.network.fault = None
    assert (await two.sync()).synced


async def test_a_rollback_that_nobody_announced_is_reported_and_repaired(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await world.back_up()
    await one.note("the server will lose this")
    await world.settle()

    await world.restore(announced=False)
    found = await two.sync()

    assert found.repaired
    assert "rolled_back" in await two.alarms()
    assert (await one.sync()).synced
    three = await world.device()
    await three.sync()
    assert await three.contents() == ["the server will lose this"]


async def test_a_beacon_that_saw_another_history_is_an_alarm(pair: tuple[Device, Device]) -> None:
    one, two = pair
    home = two.member.home

    def lie(tx: Any) -> None:
        seen = packing.Checkpoint(
            at=tx.now,
            heads={(home, one.member.device): (1, b"\x07" * 32)},
            log_seq=two.member.state.seq,
            log_head=two.member.state.head,
        )
        outbox.keep_own(
            two.engine.context,
            tx,
            home,
            [
                packing.checkpoint(
                    outbox.next_seal_context(two.engine.context, tx, home), seen, two.engine.context.signer
                )
            ],
        )

    await two.store.write(lie)
    await two.sync()

    found = await one.sync()

    assert ["split"] == [error.code for error in found.errors] == await one.alarms()


async def test_a_beacon_that_saw_more_than_the_server_shows_is_an_alarm(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("shown to the second, then hidden")
    await one.sync()
    await two.sync()
    home, device = one.member.home, one.member.device
    tip = (await two.store.read(lambda q: q.replication.lanes()))[home, device]

    def tell(tx: Any) -> None:
        seen = packing.Checkpoint(
            at=tx.now,
            heads={(home, b"\x09" * 16): (4, b"\x07" * 32), (home, device): (tip.n, tip.tip)},
            log_seq=two.member.state.seq,
            log_head=two.member.state.head,
        )
        outbox.keep_own(
            two.engine.context,
            tx,
            home,
            [
                packing.checkpoint(
                    outbox.next_seal_context(two.engine.context, tx, home), seen, two.engine.context.signer
                )
            ],
        )

    await two.store.write(tell)
    await two.sync()

    found = await one.sync()

    assert not found.synced
    assert [error.code for error in found.errors] == ["withheld"]


async def test_a_server_that_claims_a_fork_must_show_one(pair: tuple[Device, Device]) -> None:
    one, _ = pair
    device = one.member.device

    def claim(_: httpx2.Request, found: httpx2.Response) -> httpx2.Response:
        body = found.content.replace(b'"ok"', b'"fork"')
        return httpx2.Response(200, headers={"Content-Type": "application/json"}, content=body)

    await one.note("x")
    one.network.fault = on("/v1/push", claim)
    with pytest.raises(ScrubjayError, match="does not show it") as raised:
        await one.sync()
    one.network.fault = None

    assert raised.value.code == "split"
    assert device == one.member.device
    assert (await one.sync()).synced


# --- what the network and the operator do -----------------------------------------------------------------------------


REFUSALS: tuple[tuple[httpx2.Response, type[ScrubjayError], float | None], ...] = (
    (plain(429, Retry_After="7"), TooManyError, 7),
    (plain(500), UnavailableError, 0),
    (plain(502), UnavailableError, 0),
    (plain(503, Retry_After="9"), UnavailableError, 9),
    (plain(302, Location="https://elsewhere.example.org/v1/pull"), DeniedError, None),
    (plain(507), UnavailableError, 0),
)


async def test_a_request_too_many_is_made_again_when_the_server_says_so_and_nothing_begins_anew(
    pair: tuple[Device, Device],
) -> None:
    one, two = pair
    await two.note("from the other")
    await two.sync()
    asked: Counter[str] = Counter()

    async def one_in_three(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        asked[request.url.path] += 1
        return plain(429, Retry_After="0.01") if asked[request.url.path] % 3 else await answer()

    one.network.fault = one_in_three
    assert (await one.sync()).synced

    one.network.fault = None
    assert "from the other" in await one.contents()
    assert set(asked.values()) == {3}  # each thing once, and twice too soon


@pytest.mark.parametrize(
    ("after", "hint"), [("1", "in 1 second"), ("7", "in 7 seconds"), ("91", "in 2 minutes"), ("3600", "in 60 minutes")]
)
def test_a_limit_says_when_to_try_again(after: str, hint: str) -> None:
    problem = b'{"type":"","title":"","status":429,"detail":"","code":"too_many","hint":"","request_id":""}'
    answer = Response(429, problem, {"Retry-After": after})

    assert error_of("https://jays.example.org", answer).hint == f"try again {hint}"


async def test_refusals_are_named_and_say_when_to_come_back(pair: tuple[Device, Device]) -> None:
    one, two = pair
    for path in ("/v1/log", "/v1/heads", "/v1/push", "/v1/pull"):
        for answer, kind, after in REFUSALS:
            await two.note("from the other")
            await two.sync()
            mine = await one.note("kept whatever happens")

            one.network.fault = on(path, lambda _, __, answer=answer: answer)
            with pytest.raises(kind) as raised:
                await one.sync()

            assert raised.value.hint
            assert after == getattr(raised.value, "retry_after", None)
            assert raised.value.code == (await one.engine.status()).error
            assert await one.store.read(lambda q: q.fetch("select count(*) from memory where id = ?", (mine,))) == [
                (1,)
            ]
            one.network.fault = None
    assert (await one.sync()).synced
    await two.sync()
    assert await one.digest() == await two.digest()


async def test_a_proxy_with_a_small_limit_gets_smaller_bodies(pair: tuple[Device, Device]) -> None:
    one, two = pair
    for number in range(8):
        await one.note(f"memory {number}")
        await one.store.write(partial(outbox.seal_next, one.engine.context))
    sizes = []

    async def narrow(request: httpx2.Request, answer: Answer) -> httpx2.Response:
        size = len(await request.aread())
        if request.url.path == "/v1/push" and size > 2_000:
            return plain(413)
        if request.url.path == "/v1/push":
            sizes.append(size)
        return await answer()

    one.network.fault = narrow
    assert (await one.sync()).synced
    await two.sync()
    assert len(await two.contents()) == 8
    assert len(sizes) >= 4


async def test_a_full_quota_stops_sending_and_nothing_else(world: World) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await two.note("sent while there was room")
    await two.sync()
    await world.database.write(lambda tx: tx.execute("update account set quota = 1"))
    await one.note("does not fit")

    with pytest.raises(QuotaError) as raised:
        await one.sync()

    assert raised.value.hint
    assert await one.contents() == ["does not fit"]
    await world.database.write(lambda tx: tx.execute("update account set quota = null"))
    await world.settle()
    assert await one.digest() == await two.digest()


async def test_a_revoked_device_is_told_and_keeps_its_memories(pair: tuple[Device, Device]) -> None:
    one, two = pair
    ends = await account_devices.ends_of(one.store, one.member.state, two.member.device)
    await account_devices.revoke(one.member, one.machine.cloud, two.member.device, ends=ends, entropy=os.urandom)
    await two.note("mine all the same")

    with pytest.raises(RevokedError) as raised:
        await two.sync()

    assert raised.value.hint
    assert await two.contents() == ["mine all the same"]
    assert (await one.sync()).synced


async def test_a_clock_ten_days_off_is_said_and_harms_nothing(world: World) -> None:
    one, two = await world.device(), await world.device(skew_ms=10 * DAY_MS)
    memory = await one.note("first")
    await world.settle()
    await two.edit(memory, "from the future")
    await world.settle()
    await one.edit(memory, "edited after having read it")
    await world.settle()

    assert (await two.engine.status()).clock_off
    assert not (await one.engine.status()).clock_off
    offset = (await two.engine.status()).clock_offset_ms
    assert offset is not None
    assert abs(offset + 10 * DAY_MS) < 5_000
    assert ["edited after having read it"] == await one.contents() == await two.contents()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://cloud.example.org", "this machine only"),
        ("ftp://cloud.example.org", "must be https"),
        ("cloud.example.org", "must be https"),
        ("https://cloud.example.org/path", "must be https"),
        ("https://user@cloud.example.org", "must be https"),
        ("https://cloud.example.org:99999999", "must be https"),
    ],
)
def test_what_is_not_an_origin_or_not_a_safe_one_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScrubjayError, match=said):
        checked_origin(text)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Cloud.example.org:443/", "https://cloud.example.org"),
        ("http://127.0.0.1:8377", "http://127.0.0.1:8377"),
        ("http://[::1]:8377", "http://[::1]:8377"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_an_origin_has_one_form(text: str, origin: str) -> None:
    assert origin == checked_origin(text)


# --- the device's own disk --------------------------------------------------------------------------------------------


async def test_little_free_disk_stops_reading_and_not_sending(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("to be read later")
    await one.sync()
    await two.note("sent all the same")
    two.free = 100 * 1024 * 1024

    with pytest.raises(UnavailableError, match="100 MB of the disk"):
        await two.sync()

    assert (await two.engine.status()).pending_ops == 0
    assert await two.contents() == ["sent all the same"]
    two.free = 1 << 40
    assert (await two.sync()).synced


async def test_a_full_disk_leaves_the_cursor_where_the_data_is(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.say(*(Random(number).randbytes(2_000).hex() for number in range(40)))
    await one.sync()
    state = await two.store.read(lambda q: q.replication.state())
    pages = (await two.store.read(lambda q: q.fetch("pragma page_count")))[0][0]
    await two.store.write(lambda tx: tx.queries.fetch(f"pragma max_page_count = {pages + 4}"))

    with pytest.raises(UnavailableError, match="no space"):
        await two.sync()

    after = await two.store.read(lambda q: q.replication.state())
    assert state is not None
    assert after is not None
    assert state.cursor == after.cursor
    assert await two.store.read(lambda q: q.fetch("select id from event")) == []
    await two.store.write(lambda tx: tx.queries.fetch("pragma max_page_count = 1000000"))
    assert (await two.sync()).synced
    assert await one.digest() == await two.digest()


async def test_a_locked_store_is_named_and_nothing_is_lost(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("x")
    await one.sync()
    await two.store.write(lambda tx: tx.queries.fetch("pragma busy_timeout = 20"))
    other = driver.connect(str(two.path), isolation_level=None)
    other.execute("begin immediate")
    try:
        with pytest.raises(ConflictError, match="locked"):
            await two.sync()
    finally:
        other.execute("rollback")
        other.close()

    assert (await two.sync()).synced
    assert await two.contents() == ["x"]


async def test_nothing_is_logged_but_ids(pair: tuple[Device, Device], caplog: pytest.LogCaptureFixture) -> None:
    one, two = pair
    caplog.set_level("DEBUG")
    await one.note("a canary sings")
    await one.sync()
    two.network.fault = on("/v1/pull", lambda _, found: httpx2.Response(200, headers=found.headers, content=b"x" * 900))
    with pytest.raises(ScrubjayError):
        await two.sync()

    assert "canary" not in caplog.text


async def test_a_machine_whose_account_log_was_split_gives_back_what_the_server_lost_once_it_is_in_again(
    world: World,
) -> None:
    one, two = await world.device(), await world.device()
    await world.settle()
    await world.back_up()
    await account_devices.rename_device(one.member, one.machine.cloud, one.machine.device, "laptop")
    await one.note("confirmed, then lost with the server's disk")
    await one.sync()
    await world.restore()
    await account_devices.rename_device(two.member, two.machine.cloud, two.machine.device, "desk")

    with pytest.raises(SplitError):
        await one.sync()
    await leaving.leave(one.store, one.machine.vault, one.machine.entropy)
    back = await world.rejoined(one, by=two)
    await world.settle(back, two)

    assert await two.contents() == ["confirmed, then lost with the server's disk"]
    assert await back.digest() == await two.digest()


async def recovered(world: World, name: str) -> Device:
    """Return a device that the recovery code let in: no other one knows of it."""
    path, network = world.path / name / "memory.db", Network(world)
    machine = await world.machine(path, network)
    member = await (await world.log_in(machine, name)).recover(world.code)
    return Device(world=world, machine=machine, member=member, network=network, path=path)


async def test_what_a_device_wrote_under_an_id_that_the_server_forgot_is_sent_under_its_new_one(world: World) -> None:
    one = await world.device()
    shared = await one.note("before")
    await one.sync()
    await world.back_up()
    two = await recovered(world, "forgotten")
    await two.sync()
    await two.edit(shared, "changed by who was forgotten")
    await two.note("confirmed, then forgotten with its device")
    await two.say("said there")
    await two.sync()
    await two.edit(shared, "changed once more, and never sent")
    former = two.store.device
    await world.restore()

    with pytest.raises(UnauthenticatedError):
        await two.sync()
    await leaving.leave(two.store, two.machine.vault, two.machine.entropy)
    back = await world.rejoined(two, by=one)
    await world.settle(back, one)

    expected = ["changed once more, and never sent", "confirmed, then forgotten with its device"]
    assert await one.contents() == await back.contents() == expected
    assert await one.digest() == await back.digest()
    for device in (one, back):
        assert await device.store.read(lambda q: q.conflicts.open()) == []
        assert await device.store.read(lambda q: q.fetch("select text from event")) == [("said there",)]
        assert former not in await device.store.read(lambda q: q.ops.writers(shared))


@pytest.mark.slow
async def test_what_came_from_a_device_that_the_server_forgot_is_sent_by_who_has_it(world: World) -> None:
    one = await world.device()
    await one.sync()
    await world.back_up()
    two, three = await recovered(world, "lost"), await recovered(world, "forgotten")
    await two.note("known to one other alone")
    await two.sync()
    await three.sync()
    await world.restore()  # and the machine of `two` is gone for ever

    with pytest.raises(UnauthenticatedError):
        await three.sync()
    await leaving.leave(three.store, three.machine.vault, three.machine.entropy)
    back = await world.rejoined(three, by=one)
    await world.settle(back, one)

    assert await one.contents() == ["known to one other alone"]
    assert await one.digest() == await back.digest()


@pytest.mark.parametrize("heals", [False, True], ids=["nobody else has it", "another machine gives it back later"])
async def test_what_the_server_lost_of_a_known_device_is_sent_by_who_logs_in_again(
    world: World, *, heals: bool
) -> None:
    one, two = await world.device(), await world.device()
    kept = await two.note("written first")
    await world.settle()
    await world.back_up()
    lost = await two.note("confirmed, then lost with the server's disk")
    await two.edit(kept, "changed before it was lost")
    await two.say("said there")
    await two.sync()
    if heals:
        await one.sync()
    former = two.store.device
    await leaving.leave(two.store, two.machine.vault, two.machine.entropy)
    await two.edit(lost, "changed by who has left")
    await two.edit(lost, "changed by who has left, again")
    await world.restore()

    back = await world.rejoined(two, by=one)
    await back.sync()
    assert former not in await back.store.read(lambda q: q.ops.writers(lost))
    await back.edit(kept, "changed since")
    await world.settle(one, back)

    for device in (one, back):
        assert await device.contents() == ["changed by who has left, again", "changed since"]
        assert await device.store.read(lambda q: q.conflicts.open()) == []
        assert await device.store.read(lambda q: q.fetch("select text from event")) == [("said there",)]
    assert await one.digest() == await back.digest()


async def test_who_logs_in_again_keeps_what_the_account_knows_under_who_wrote_it(pair: tuple[Device, Device]) -> None:
    one, two = pair
    await one.note("of one")
    await two.note("of two")
    await two.world.settle()
    former = two.store.device
    await leaving.leave(two.store, two.machine.vault, two.machine.entropy)
    back = await two.world.rejoined(two, by=one)
    await two.world.settle(back, one)

    written = {str(device) for (device,) in await back.store.read(lambda q: q.fetch("select distinct device from op"))}
    assert written == {one.store.device, former}
