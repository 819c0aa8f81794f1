"""Lanes of the cloud service, on both databases: what is taken, what is refused, in what order it goes out again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cloud_client import Client, Clock, Device, Key, RefusedError, World, opened, second_device, signed_up
from scrubjay_cloud.database import raise_generation
from scrubjay_cloud.policy import Bucket, CloudPolicy, LimitPolicy
from scrubjay_cloud.retention import sweep
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import (
    MAX_OBJECT_BYTES,
    MAX_PAGE_BYTES,
    Envelope,
    Header,
    ObjectKind,
    Suite,
    assemble,
    lane_root,
    split,
)
from scrubjay_shared.wire import MEDIA, PushAnswer, Usage

pytestmark = pytest.mark.anyio

WIDE = Bucket(burst=10**9, rate=10**6, draw=10**6)
LOOSE = CloudPolicy(
    limits=LimitPolicy(register=WIDE, push=WIDE, pull=WIDE, control=WIDE, traffic=WIDE, token=WIDE, challenge=WIDE),
    hash_memory_kib=64,
    hash_iterations=1,
    poll_s=0.05,
)


@pytest.fixture
async def world(cloud_store: str | Path) -> AsyncIterator[World]:
    async with opened(cloud_store, policy=LOOSE) as found:
        yield found


@pytest.fixture
async def file_world(tmp_path: Path) -> AsyncIterator[World]:
    """A service on a file: for what is refused before any database is asked."""
    async with opened(tmp_path / "server.db", policy=LOOSE) as found:
        yield found


@pytest.fixture
async def file_device(file_world: World) -> Device:
    return await signed_up(file_world.client, now=file_world.now)


@pytest.fixture
async def device(world: World) -> Device:
    return await signed_up(world.client, now=world.now)


async def refused(call: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        await call
    return caught.value.problem.status, caught.value.code


async def waited_for(world: World) -> None:
    """Until somebody waits for news."""
    while not len(world.service.notifier):  # noqa: ASYNC110 - the service has no event for a test's sake
        await asyncio.sleep(0.01)


def resigned(signer: Device, envelope: Envelope, *, body: bytes | None = None, **changed: Any) -> Envelope:
    """The same object with another header or body, properly signed: only the rule under test refuses it."""
    return assemble(replace(envelope.header, **changed), envelope.body if body is None else body, signer.key.sign)


# --- push -------------------------------------------------------------------------------------------------------------


async def test_what_is_pushed_comes_back_byte_for_byte_in_order(device: Device) -> None:
    sent = [device.segment(bytes([n]) * n) for n in range(5)]

    results = await device.push(*sent)
    got = await device.drain()

    assert [one.status for one in results] == ["ok"] * 5
    assert {(one.n, one.tip) for one in results} == {(5, sent[-1].link)}
    assert [one.data for one in got] == [one.data for one in sent]


async def test_what_is_pushed_again_is_a_dup_and_stored_once(device: Device) -> None:
    sent = [device.segment() for _ in range(3)]
    await device.push(*sent[:2])

    again = await device.statuses(*sent)
    twice_in_one = await device.statuses(sent[0], sent[0], sent[1])

    assert again == ["dup", "dup", "ok"]
    assert twice_in_one == ["dup", "dup", "dup"]
    assert len(await device.drain()) == 3


async def test_a_gap_names_where_the_lane_ends(device: Device) -> None:
    sent = [device.segment() for _ in range(3)]

    results = await device.push(sent[1], sent[2])

    assert [(one.status, one.n, one.tip) for one in results] == [
        ("gap", 0, lane_root(device.account.id, device.account.home, device.id))
    ] * 2
    assert await device.statuses(sent[0], sent[2]) == ["ok", "gap"]


async def test_another_object_at_a_place_is_a_fork(device: Device) -> None:
    first = device.segment(b"one", keep=False)
    await device.push(first)
    twin = device.segment(b"other")
    after = device.segment(b"next")

    assert await device.statuses(twin) == ["fork"]
    assert await device.statuses(twin, after) == ["fork", "fork"]
    assert await device.statuses(after) == ["fork"]  # it continues what was never stored
    assert [one.data for one in await device.drain()] == [first.data]


async def test_after_the_first_error_a_lane_takes_no_more_and_others_go_on(device: Device) -> None:
    scope = device.account.scope()
    await device.append(device.account.entries[-1])
    home = [device.segment() for _ in range(4)]
    other = [device.segment(scope=scope) for _ in range(2)]
    damaged = resigned(device, home[2], body=bytes(len(home[2].body)))

    statuses = await device.statuses(home[0], other[0], home[1], damaged, other[1], home[3])

    assert statuses == ["ok", "ok", "ok", "ok", "ok", "broken_chain"]
    assert [one.header.n_to for one in await device.drain(scopes=scope.hex())] == [1, 2]


async def test_a_damaged_object_in_a_run_is_named_and_those_before_it_are_kept(device: Device) -> None:
    sent = [device.segment() for _ in range(4)]
    bad = bytearray(sent[2].data)
    bad[300] ^= 1

    assert await device.statuses(*sent[:2], bytes(bad), sent[3]) == ["ok", "ok", "bad_signature", "bad_signature"]
    assert await device.statuses(*sent) == ["dup", "dup", "ok", "ok"]


async def test_every_single_byte_flip_of_an_object_is_refused(file_world: World, file_device: Device) -> None:
    data = file_device.segment(b"op" * 40).data

    taken = []
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        response = await file_device.client.http.post(
            "/v1/push", content=flipped, headers={"Authorization": f"Bearer {file_device.client.token}"}
        )
        assert response.status_code in {200, 400}
        if response.status_code == 200 and b'"ok"' in response.content:
            taken.append(at)

    assert len(data) == 800
    assert taken == []
    assert await file_world.rows("select count(*) from object") == [(0,)]
    assert await file_device.statuses(data) == ["ok"]


REFUSED: dict[str, tuple[Callable[[Device, Envelope], bytes], tuple[int, str] | str]] = {
    "nothing": (lambda _d, _e: b"", (400, "invalid")),
    "no object": (lambda _d, _e: b"x" * 500, (400, "malformed")),
    "a cut object": (lambda _d, e: e.data[:-1], (400, "malformed")),
    "half a header": (lambda _d, e: e.data + e.data[:100], (400, "malformed")),
    "another version": (lambda _d, e: b"SJS2" + e.data[4:], (400, "malformed")),
    "an unknown suite": (lambda d, e: resigned(d, e, suite=9).data, (400, "malformed")),
    "an unknown kind": (lambda d, e: resigned(d, e, kind=99).data, (400, "malformed")),
    "a place beyond counting": (lambda d, e: resigned(d, e, n_from=2**64 - 1, n_to=2**64 - 1).data, (400, "malformed")),
    "a blob in a lane": (lambda d, e: resigned(d, e, kind=ObjectKind.BLOB).data, "malformed"),
    "a pack by push": (lambda d, e: d.pack([e]).data, "malformed"),
    "another account": (lambda d, e: resigned(d, e, account=bytes(16)).data, "denied"),
    "another device": (lambda d, e: resigned(d, e, device=bytes(16)).data, "denied"),
    "an unknown scope": (lambda d, e: resigned(d, e, scope=bytes(16)).data, "not_found"),
    "an open object in a sealed scope": (
        lambda d, e: resigned(d, e, suite=Suite.OPEN, salt=bytes(32), commit=bytes(32)).data,
        "malformed",
    ),
    "an epoch to come": (lambda d, e: resigned(d, e, epoch=1).data, "malformed"),
    "another chain": (lambda d, e: resigned(d, e, prev=b"p" * 32).data, "fork"),
    "another signer": (lambda d, e: assemble(e.header, e.body, Key(d.account.entropy).sign).data, "bad_signature"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_may_not_be_pushed_is_refused_by_name(file_world: World, file_device: Device, case: str) -> None:
    make, expected = REFUSED[case]
    body = make(file_device, file_device.segment())

    if isinstance(expected, str):
        answer = await file_device.client.call("POST", "/v1/push", body, answer=PushAnswer)
        assert [one.status for one in answer.results] == [expected]
    else:
        assert await refused(file_device.client.call("POST", "/v1/push", body)) == expected
    assert await file_world.rows("select count(*) from object") == [(0,)]


async def test_an_open_scope_takes_open_objects_and_no_sealed_ones(device: Device) -> None:
    scope = device.account.scope(Suite.OPEN)
    await device.append(device.account.entries[-1])

    sealed = await device.statuses(device.segment(scope=scope, keep=False))
    plain = await device.statuses(device.segment(scope=scope, suite=Suite.OPEN))

    assert (sealed, plain) == (["malformed"], ["ok"])


async def test_a_body_over_the_limit_is_refused_whatever_its_headers_say(device: Device) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 64 * 1024

    whole = await refused(device.client.call("POST", "/v1/push", b"x" * (MAX_PAGE_BYTES + 1)))
    headers = {"Authorization": f"Bearer {device.client.token}", "Content-Type": MEDIA}
    streamed = await device.client.http.post("/v1/push", content=chunks(), headers=headers)
    huge = device.quick(MAX_OBJECT_BYTES)

    assert whole == (413, "too_large")
    assert streamed.status_code == 413
    assert await refused(device.push(huge)) == (400, "malformed")
    assert len(huge.data) < MAX_PAGE_BYTES


async def test_an_epoch_that_was_replaced_is_stale(device: Device) -> None:
    old = device.segment(keep=False)
    device.account.say(EntryType.EPOCH_ADD, {1: device.account.home, 2: 1})
    await device.append(device.account.entries[-1])

    assert await device.statuses(old) == ["stale_epoch"]
    assert await device.statuses(device.segment()) == ["ok"]


async def test_a_device_revoked_while_it_pushes_writes_nothing(world: World, device: Device) -> None:
    """The log moves on between the check of a push and its transaction: the push is checked again and refused."""
    other = await second_device(device)
    objects = b"".join(other.segment().data for _ in range(220))  # large enough to be checked in another thread
    device.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(other.id, {}))
    offload = world.service.offload
    raced = False

    async def racing(work: Callable[[], Any]) -> Any:
        nonlocal raced
        result = await offload(work)
        if not raced:
            raced = True
            await device.append(device.account.entries[-1])
        return result

    world.service.offload = racing
    found = await refused(other.client.call("POST", "/v1/push", objects))

    assert found == (403, "revoked")
    assert await world.rows("select count(*) from object") == [(0,)]


async def test_over_quota_only_new_objects_are_refused(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, quota_bytes=10_000) as world:
        device = await signed_up(world.client, now=world.now)
        first = [device.quick(2_000) for _ in range(4)]
        await device.push(*first)
        more = device.quick(2_000)

        full = await refused(device.push(more))
        warned = (await device.pull("")).response.headers["scrubjay-quota-warning"]
        again = await device.statuses(*first)
        packed = await device.statuses(device.pack(first), path="/v1/pack")
        room = await device.statuses(more)

        assert full == (507, "quota")
        assert warned == "90"
        assert again == ["dup"] * 4
        assert packed == ["ok"]
        assert room == ["ok"]


async def test_a_limited_device_leaves_room_for_the_full_ones(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, quota_bytes=20_000) as world:
        owner = await signed_up(world.client, now=world.now)
        limited = await second_device(owner, scopes=[owner.account.home])

        assert await limited.statuses(*(limited.quick(2_000) for _ in range(6))) == ["ok"] * 6
        warned = (await limited.pull("")).response.headers
        assert int(warned["scrubjay-quota-warning"]) >= 80
        assert await refused(limited.push(*(limited.quick(2_000) for _ in range(2)))) == (507, "quota")
        assert await owner.statuses(owner.quick(2_000), owner.quick(2_000)) == ["ok"] * 2


async def test_pushing_too_often_says_when_to_come_back(cloud_store: str | Path) -> None:
    policy = replace(LOOSE, limits=replace(LOOSE.limits, push=Bucket(burst=5, rate=1, draw=2)))
    async with opened(cloud_store, policy=policy) as world:
        device = await signed_up(world.client, now=world.now)

        statuses = [await device.statuses(device.segment()) for _ in range(5)]
        late = device.segment()
        with pytest.raises(RefusedError) as caught:
            await device.push(late)
        world.now.pass_(int(caught.value.response.headers["retry-after"]))

        assert statuses == [["ok"]] * 5
        assert (caught.value.problem.status, caught.value.code) == (429, "too_many")
        assert await device.statuses(late) == ["ok"]


async def test_a_bootstrap_of_a_million_events_fits_the_limits(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=CloudPolicy(hash_memory_kib=64, hash_iterations=1)) as world:
        device = await signed_up(world.client, now=world.now)
        limits, policy = world.service.limits, world.service.policy.limits

        for _ in range(85):
            await limits.spend("pull", device.account.id, policy.pull)
            await limits.spend("traffic", device.account.id, policy.traffic, 900 * 1024)


# --- pull -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 9])
async def test_pages_of_any_size_give_every_object_once(device: Device, count: int) -> None:
    sent = [device.quick(200 + 37 * n) for n in range(count)]
    if sent:
        await device.push(*sent)
    size = len(sent[0].data) if sent else 1

    for limit in {1, size - 1 or 1, size, size + 1, 2 * size, 3 * size, sum(len(one.data) for one in sent) or 1}:
        device.cursor = ""
        got = await device.drain(limit=limit)
        assert [one.data for one in got] == [one.data for one in sent], limit


@pytest.mark.parametrize("rows", [1, 2, 3])
async def test_pages_end_also_where_the_server_stops_looking(cloud_store: str | Path, rows: int) -> None:
    async with opened(cloud_store, policy=replace(LOOSE, page_objects=rows)) as world:
        device = await signed_up(world.client, now=world.now)
        sent = [device.quick() for _ in range(6)]
        await device.push(*sent)

        assert [one.data for one in await device.drain()] == [one.data for one in sent]
        assert await device.drain() == []


async def test_a_cursor_is_refused_unless_it_is_of_this_account_and_server(world: World, device: Device) -> None:
    await device.push(device.segment())
    other = await signed_up(world.client, "bob", now=world.now)
    cursor = (await device.pull("")).cursor
    forged = ("B" if cursor[0] != "B" else "C") + cursor[1:]

    for given in (forged, "x", "%", "ü", cursor[:-4], cursor + cursor, "AAAA"):
        assert await refused(device.pull(given)) == (400, "invalid"), given
    assert await refused(other.pull(cursor)) == (400, "invalid")


async def test_a_cursor_ahead_of_a_server_that_was_set_back_is_told_so(world: World, device: Device) -> None:
    await device.push(device.segment())
    await device.drain()

    await world.database.write(lambda tx: tx.execute("update account set gseq = 0"))

    assert await refused(device.pull()) == (409, "rolled_back")


async def test_after_a_new_generation_old_cursors_miss_nothing(world: World, device: Device) -> None:
    sent = [device.segment() for _ in range(3)]
    await device.push(*sent)
    await device.drain()
    # A restore that lost the last object: the device has it and gives it back.
    await world.database.write(lambda tx: tx.execute("delete from object where n_from = 3"))
    await world.database.write(lambda tx: tx.execute("update lane set n = 2, tip = ?", (sent[1].link,)))
    generation = await world.database.write(raise_generation)

    healed = await device.statuses(sent[2], path="/v1/heal")
    page = await device.pull()

    assert generation == 2
    assert healed == ["ok"]
    assert [one.data for one in page.objects] == [sent[2].data]
    assert page.response.headers["scrubjay-generation"] == "2"


async def test_a_long_poll_is_answered_by_another_devices_push(world: World, device: Device) -> None:
    other = await second_device(device)
    await device.push(device.segment())
    await other.drain()

    waiting = asyncio.create_task(other.pull(wait=25))
    await waited_for(world)
    sent = device.segment()
    await device.push(sent)
    page = await waiting

    assert [one.data for one in page.objects] == [sent.data]
    assert page.cursor == page.head


async def test_a_long_poll_ends_when_the_service_stops(world: World, device: Device) -> None:
    waiting = asyncio.create_task(device.pull(wait=25))
    await waited_for(world)

    world.service.stop()
    page = await waiting

    assert page.objects == []
    assert page.cursor == page.head
    assert (await device.pull(wait=25)).objects == []  # and nobody waits from now on


async def test_a_long_poll_without_news_ends_with_the_time(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=replace(LOOSE, max_wait_s=0.05)) as world:
        device = await signed_up(world.client, now=world.now)

        page = await device.pull(wait=25)

        assert (page.objects, page.cursor == page.head) == ([], True)
        assert len(world.service.notifier) == 0


async def test_a_device_revoked_while_it_waits_is_told_so(world: World, device: Device) -> None:
    other = await second_device(device)
    waiting = asyncio.create_task(refused(other.pull(wait=25)))
    await waited_for(world)

    device.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(other.id, {}))
    await device.append(device.account.entries[-1])

    assert await waiting == (403, "revoked")


async def test_a_device_waits_a_few_times_at_once_and_no_more(world: World, device: Device) -> None:
    """A thief of a token, or a loop gone wrong, does not take the places of everybody else."""
    policy = world.service.policy
    waiting = [asyncio.create_task(device.pull(wait=25)) for _ in range(policy.waits_per_device)]
    while len(world.service.notifier) < policy.waits_per_device:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)

    assert await refused(device.pull(wait=25)) == (429, "too_many")
    assert await refused(device.client.call("GET", "/v1/events")) == (429, "too_many")
    assert (await device.pull()).objects == []  # who does not wait takes no place

    await device.push(device.segment())
    pages = await asyncio.gather(*waiting)
    assert all(page.objects for page in pages)
    assert len(world.service.notifier) == 0
    assert (await device.pull(wait=1)).objects


async def test_what_is_under_way_is_bounded_and_the_rest_is_told_to_come_back(world: World, device: Device) -> None:
    segment = device.segment()
    policy, bodies = world.service.policy, world.service.bodies
    with contextlib.ExitStack() as others:
        for n in range(policy.bodies_bytes // policy.bodies_share):
            others.enter_context(bodies.held(bytes([n]) * 16))(policy.bodies_share)
        assert await refused(device.push(segment)) == (503, "unavailable")
        assert (await device.pull()).objects == []

    assert await device.statuses(segment) == ["ok"]


async def test_an_event_stream_tells_places_and_nothing_else(world: World, device: Device) -> None:
    """Driven at the ASGI level: the client's transport reads a whole answer before it gives any of it."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        if message.get("body"):
            lines.put_nowait(message["body"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/events",
        "raw_path": b"/v1/events",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {device.client.token}".encode())],
        "client": ("127.0.0.1", 1),
        "asgi": {"version": "3.0", "spec_version": "2.4"},
    }
    stream = asyncio.create_task(world.app(scope, receive, send))
    first = await lines.get()
    await device.push(device.segment(), device.segment())
    second = await lines.get()
    world.service.stop()
    await stream

    assert (first, second) == (b'data: {"gseq":0}\n\n', b'data: {"gseq":2}\n\n')


async def test_a_lane_is_read_from_the_object_that_covers_a_place(device: Device) -> None:
    sent = [device.quick() for _ in range(6)]
    await device.push(*sent)
    packed = device.pack(sent[:4])
    await device.send("/v1/pack", [packed])
    path = f"/v1/lanes/{device.account.home.hex()}/{device.id.hex()}"

    async def read(**params: Any) -> list[bytes]:
        response = await device.client.call("GET", path, **params)
        return [one.data for one in split(response.content)]

    assert await read() == [packed.data, sent[4].data, sent[5].data]
    assert await read(**{"from": 3, "limit": 1}) == [packed.data]
    assert await read(**{"from": 5}) == [sent[4].data, sent[5].data]
    assert await read(**{"from": 7}) == []
    heads = (await device.heads()).heads
    assert [(one.n, one.tip) for one in heads] == [(6, sent[-1].link)]


# --- packs and heals --------------------------------------------------------------------------------------------------


async def test_a_pack_takes_the_place_of_what_it_covers_for_new_readers_only(device: Device) -> None:
    other = await second_device(device)
    sent = [device.quick() for _ in range(5)]
    await device.push(*sent[:3])
    await other.drain()
    await device.push(*sent[3:])
    packed = device.pack(sent[:4])

    status = await device.statuses(packed, path="/v1/pack")
    again = await device.statuses(packed, path="/v1/pack")
    behind = await other.drain()
    late = await device.drain()

    assert (status, again) == (["ok"], ["dup"])
    assert [one.data for one in behind] == [packed.data, sent[4].data]  # it stands where the last covered one stood
    assert [one.data for one in late] == [packed.data, sent[4].data]
    assert await device.statuses(*sent) == ["dup"] * 5
    usage = await device.client.call("GET", "/v1/usage", answer=Usage)
    assert (usage.objects, usage.bytes) == (2, len(packed.data) + len(sent[4].data))


async def test_packs_of_packs_and_of_the_same_range_are_taken(device: Device) -> None:
    sent = [device.quick() for _ in range(6)]
    await device.push(*sent)
    low, high = device.pack(sent[:3]), device.pack(sent[3:])
    await device.send("/v1/pack", [low, high])

    whole = device.pack([low, high])
    smaller = device.pack([low, high], size=8)

    assert await device.statuses(whole, path="/v1/pack") == ["ok"]
    assert await device.statuses(smaller, path="/v1/pack") == ["ok"]
    assert [one.data for one in await device.drain()] == [smaller.data]
    assert await device.statuses(device.quick()) == ["ok"]


BAD_PACKS: dict[str, tuple[Callable[[Device, list[Envelope]], Envelope], str]] = {
    "beyond the end": (lambda d, s: d.pack([*s, d.segment(keep=False)]), "gap"),
    "across an edge of another pack": (lambda d, s: d.pack(s[1:3]), "gap"),
    "another end": (lambda d, s: resigned(d, d.pack(s[2:4]), tip=b"t" * 32), "broken_chain"),
    "another beginning": (lambda d, s: resigned(d, d.pack(s[2:4]), prev=b"p" * 32), "broken_chain"),
    "another signer": (lambda d, s: d.pack(s[2:4], sign=Key(d.account.entropy).sign), "bad_signature"),
    "a segment": (lambda _, s: s[3], "malformed"),
    "another account": (lambda d, s: resigned(d, d.pack(s[2:4]), account=bytes(16)), "denied"),
    "an old epoch to come": (lambda d, s: resigned(d, d.pack(s[2:4]), epoch=4), "malformed"),
}


@pytest.mark.parametrize("case", BAD_PACKS)
async def test_a_pack_that_is_not_what_it_covers_changes_nothing(device: Device, case: str) -> None:
    make, expected = BAD_PACKS[case]
    sent = [device.quick() for _ in range(4)]
    await device.push(*sent)
    await device.send("/v1/pack", [device.pack(sent[:2])])
    before = [one.data for one in await device.drain()]

    statuses = await device.statuses(make(device, sent), path="/v1/pack")
    device.cursor = ""

    assert statuses == [expected]
    assert [one.data for one in await device.drain()] == before


async def test_only_who_owns_a_lane_or_adopted_it_packs_it(device: Device) -> None:
    other = await second_device(device)
    sent = [other.quick() for _ in range(3)]
    await other.push(*sent)
    packed, account = device.pack(sent), device.account
    adoption = {1: account.home, 2: other.id, 3: device.id}

    stranger = await device.statuses(packed, path="/v1/pack")
    account.say(EntryType.LANE_ADOPT, adoption)
    with pytest.raises(RefusedError) as in_force:  # its words are its own as long as it is there
        await device.append(account.entries[-1])
    account.entries.pop()
    account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(other.id, {account.home: (3, sent[-1].link)}))
    account.say(EntryType.LANE_ADOPT, adoption)
    await device.append(*account.entries[-2:])

    assert stranger == ["denied"]
    assert in_force.value.code == "invalid"
    assert await device.statuses(packed, path="/v1/pack") == ["ok"]


async def test_any_device_gives_back_any_lane_that_the_server_lost(world: World, device: Device) -> None:
    other = await second_device(device)
    sent = [device.quick() for _ in range(4)]
    await device.push(*sent)
    held = await other.drain()
    await world.database.write(lambda tx: tx.execute("delete from object where n_from > 1"))
    await world.database.write(lambda tx: tx.execute("update lane set n = 1, tip = ?", (sent[0].link,)))

    damaged = resigned(other, held[1], body=b"x" * len(held[1].body))
    forged = await other.statuses(damaged, path="/v1/heal")
    healed = await other.statuses(*held, path="/v1/heal")

    assert forged == ["bad_signature"]
    assert healed == ["dup", "ok", "ok", "ok"]
    device.cursor = ""
    assert [one.data for one in await device.drain()] == [one.data for one in sent]


async def test_a_pack_heals_also_where_the_server_holds_its_beginning_in_pieces(device: Device) -> None:
    sent = [device.quick() for _ in range(4)]
    await device.push(*sent[:2])
    packed = device.pack(sent)

    assert await device.statuses(packed, path="/v1/heal") == ["ok"]
    assert [one.data for one in await device.drain()] == [packed.data]
    assert [(one.n, one.tip) for one in (await device.heads()).heads] == [(4, sent[3].link)]


async def test_a_pack_whose_pieces_are_there_is_a_dup_when_it_heals(device: Device) -> None:
    sent = [device.quick() for _ in range(4)]
    await device.push(*sent)

    assert await device.statuses(device.pack(sent[:3]), path="/v1/heal") == ["dup"]


async def test_of_a_revoked_device_only_what_counted_is_given_back(device: Device) -> None:
    other = await second_device(device)
    sent = [other.quick() for _ in range(3)]
    ends = {device.account.home: (2, sent[1].link)}
    device.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(other.id, ends))
    await device.append(device.account.entries[-1])

    assert await device.statuses(*sent, path="/v1/heal") == ["ok", "ok", "revoked"]


async def test_a_device_set_back_to_an_old_state_is_told_of_the_fork_also_after_packs(
    world: World, device: Device
) -> None:
    sent = [device.quick() for _ in range(4)]
    await device.push(*sent)
    await device.send("/v1/pack", [device.pack(sent)])
    device.lanes[device.account.home] = sent[:1]  # a backup from then
    twin = device.quick()
    world.now.at += LOOSE.superseded_ms
    await sweep(world.database, world.now(), LOOSE)
    await device.authenticate()

    assert await device.statuses(twin) == ["fork"]


async def test_healing_is_no_way_around_the_quota_or_a_devices_rights(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, quota_bytes=10_000) as world:
        device = await signed_up(world.client, now=world.now)
        reader = await second_device(device, scopes=[device.account.home], read_only=True)

        assert await reader.statuses(reader.segment(), path="/v1/heal") == ["denied"]
        assert await refused(device.send("/v1/heal", [device.quick(12_000)])) == (507, "quota")


# --- objects by hash --------------------------------------------------------------------------------------------------


def blob(device: Device, **changed: Any) -> bytes:
    """A sealed blob of the home scope."""
    account = device.account
    header = Header(
        suite=Suite.SEALED,
        kind=ObjectKind.BLOB,
        account=account.id,
        scope=account.home,
        device=device.id,
        n_from=0,
        n_to=0,
        prev=bytes(32),
        salt=account.entropy(32),
        commit=account.entropy(32),
        body_len=100,
    )
    return assemble(replace(header, **changed), account.entropy(100), device.key.sign).data


async def test_an_object_is_kept_under_its_hash(device: Device) -> None:
    data = blob(device)
    path = f"/v1/objects/{sha256(data).hexdigest()}"

    missing = await refused(device.client.call("GET", path))
    await device.client.call("PUT", path, data)
    await device.client.call("PUT", path, data)
    response = await device.client.call("GET", path)

    assert missing == (404, "not_found")
    assert response.content == data
    assert (await device.client.call("GET", "/v1/usage", answer=Usage)).objects == 1


BAD_BLOBS: dict[str, tuple[Callable[[Device], bytes], tuple[int, str]]] = {
    "another hash": (blob, (400, "invalid")),
    "no object": (lambda _: b"x" * 400, (400, "malformed")),
    "of a lane": (lambda d: d.segment().data, (400, "malformed")),
    "two": (lambda d: blob(d) + blob(d), (400, "malformed")),
    "a keyring": (lambda d: blob(d, kind=ObjectKind.KEYRING), (400, "invalid")),
    "of another account": (lambda d: blob(d, account=bytes(16)), (403, "denied")),
    "open": (lambda d: blob(d, suite=Suite.OPEN, salt=bytes(32), commit=bytes(32)), (400, "malformed")),
}


@pytest.mark.parametrize("case", BAD_BLOBS)
async def test_what_is_no_blob_is_not_kept(file_world: World, file_device: Device, case: str) -> None:
    make, expected = BAD_BLOBS[case]
    data = make(file_device)
    name = "00" * 32 if case == "another hash" else sha256(data).hexdigest()

    assert await refused(file_device.client.call("PUT", f"/v1/objects/{name}", data)) == expected
    assert await file_world.rows("select count(*) from blob") == [(0,)]


# --- several instances ------------------------------------------------------------------------------------------------


async def test_two_instances_lose_no_row_under_concurrent_pushes(postgres: str) -> None:
    """A reader that follows the cursor all the while sees every object exactly once, and each lane in order."""
    now = Clock()
    async with opened(postgres, policy=LOOSE, now=now) as one, opened(postgres, policy=LOOSE, now=now) as two:
        first = await signed_up(one.client, now=now)
        devices = [first] + [await second_device(first) for _ in range(5)]
        for place, device in enumerate(devices):
            device.client = Client((one if place % 2 else two).client.http, device.client.token)
        reader = await second_device(first)
        reader.client = Client(two.client.http, reader.client.token)
        seen: list[Envelope] = []
        writing = True

        async def write(device: Device) -> None:
            for size in range(25):
                sent = [device.quick(50 + size) for _ in range(1 + size % 3)]
                assert await device.statuses(*sent) == ["ok"] * len(sent)

        async def read() -> None:
            while writing:
                seen.extend(await reader.drain(wait=1))

        reading = asyncio.create_task(read())
        await asyncio.gather(*(write(device) for device in devices))
        writing = False
        await reading
        seen += await reader.drain()

        sent = [one.data for device in devices for one in device.lanes[device.account.home]]
        assert len(sent) == 6 * 49
        assert sorted(one.data for one in seen) == sorted(sent)
        for device in devices:
            mine = [one.header.n_from for one in seen if one.header.device == device.id]
            assert mine == sorted(mine)


async def test_of_appends_that_go_together_a_refused_one_does_not_disturb_the_others(world: World) -> None:
    """A fork, a second try, a lane that went on and one without room: each has its own answer, and its own rows."""
    devices = [await signed_up(world.client, now=world.now, name=f"user{number}") for number in range(8)]
    first = devices[0].segment(b"one", keep=False)
    await devices[0].push(first)
    fork = devices[0].segment(b"other")
    for device in devices[1:]:
        await device.push(device.segment())
    again = devices[1].lanes[devices[1].account.home][-1]
    await world.database.write(lambda tx: tx.execute("update account set quota = 1 where name = ?", ("user2",)))

    answers = await asyncio.gather(
        devices[0].statuses(fork),
        devices[1].statuses(again),
        refused(devices[2].push(devices[2].segment())),
        *(device.statuses(device.segment(), device.segment()) for device in devices[3:]),
    )

    assert answers == [["fork"], ["dup"], (507, "quota"), *([["ok", "ok"]] * 5)]
    rows = await world.rows(
        "select a.name, a.gseq, a.objects, a.bytes, count(*), sum(o.size), max(o.gseq) from account a"
        " join object o on o.account = a.id group by a.name, a.gseq, a.objects, a.bytes order by a.name"
    )
    assert [row[0] for row in rows] == [f"user{number}" for number in range(8)]
    for name, gseq, objects, used, counted, size, last in rows:
        assert (gseq, objects, used) == (counted, counted, size), name
        assert last == gseq


async def test_of_an_append_that_one_lane_refuses_the_others_are_stored_once(world: World, device: Device) -> None:
    """A lane that goes on and one that begins, before one that forked: what was moved for them is put back first."""
    new, forked = device.account.scope(), device.account.scope()
    await device.append(*device.account.entries[-2:])
    await device.push(device.segment(), device.segment(b"one", scope=forked, keep=False))

    statuses = await device.statuses(
        device.segment(), device.segment(scope=new), device.segment(b"other", scope=forked)
    )

    assert statuses == ["ok", "ok", "fork"]
    assert await device.statuses(device.segment(), device.segment(scope=new)) == ["ok", "ok"]
    assert sorted(await world.rows("select n from lane")) == [(1,), (2,), (3,)]
    assert await world.rows(
        "select a.gseq = count(*), a.objects = count(*), a.bytes = sum(o.size), a.gseq = max(o.gseq)"
        " from account a join object o on o.account = a.id group by a.gseq, a.objects, a.bytes"
    ) == [(True,) * 4]


async def test_limits_hold_over_all_instances(postgres: str) -> None:
    policy = replace(LOOSE, limits=replace(LOOSE.limits, push=Bucket(burst=10, rate=0.001, draw=3)))
    now = Clock()
    async with opened(postgres, policy=policy, now=now) as one, opened(postgres, policy=policy, now=now) as two:
        device = await signed_up(one.client, now=now)
        clients = (device.client, Client(two.client.http, device.client.token))
        sent, answers = device.segment(), []

        for turn in range(30):
            device.client = clients[turn % 2]
            response = await device.client.http.post(
                "/v1/push", content=sent.data, headers={"Authorization": f"Bearer {device.client.token}"}
            )
            answers.append(response.status_code)

        assert (answers.count(200), answers.count(429)) == (10, 20)
