"""The hybrid logical clock's laws, and the order of ids."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay_shared.clock import (
    COUNTER_BITS,
    MAX_EVENT_MILLIS,
    MAX_LEAD_MS,
    MAX_MILLIS,
    REACH,
    Hlc,
    Millis,
    field_stamp,
    millis_of,
    receive,
    tick,
    ulid,
    ulid_bytes,
    ulid_text,
    uuid7,
)
from scrubjay_shared.ops import MAX_HLC, supersedes

millis = st.integers(0, MAX_MILLIS).map(Millis)
stamps = st.integers(0, (1 << 64) - 1).map(Hlc)
entropy = st.binary(min_size=10, max_size=10)


@given(stamps, st.lists(millis, min_size=1, max_size=30))
def test_stamps_of_a_device_only_ever_rise_however_its_clock_jumps(last: Hlc, readings: list[Millis]) -> None:
    for now in readings:
        following = tick(last, now)

        assert following > last
        assert millis_of(following) >= min(now, MAX_EVENT_MILLIS)
        last = following


@given(millis)
def test_a_clock_that_advanced_gives_its_own_time(now: Millis) -> None:
    assert tick(Hlc(0), now) == max(1, min(now, MAX_EVENT_MILLIS) << COUNTER_BITS)


def test_a_counter_that_overflows_carries_into_the_milliseconds() -> None:
    last = tick(Hlc(0), Millis(1000))
    for _ in range(1 << COUNTER_BITS):
        last = tick(last, Millis(1000))

    assert millis_of(last) == 1001
    assert tick(last, Millis(1000)) == last + 1


@given(stamps, stamps, millis)
def test_a_remote_stamp_moves_the_clock_forward_only_and_only_within_the_lead(
    last: Hlc, remote: Hlc, now: Millis
) -> None:
    after = receive(last, remote, now)

    assert after == (remote if remote > last and millis_of(remote) - now <= MAX_LEAD_MS else last)
    assert after >= last


@pytest.mark.parametrize(("lead_ms", "moves"), [(-1, True), (0, True), (MAX_LEAD_MS, True), (MAX_LEAD_MS + 1, False)])
def test_a_remote_clock_that_leads_too_far_is_not_believed(lead_ms: int, *, moves: bool) -> None:
    now = Millis(1_800_000_000_000)
    remote = Hlc((now + lead_ms) << COUNTER_BITS)

    assert (receive(Hlc(1), remote, now) == remote) is moves


@given(stamps, stamps)
def test_a_field_stamp_is_above_what_it_replaces_and_not_below_the_clock(clock: Hlc, replaced: Hlc) -> None:
    stamp = field_stamp(clock, replaced)

    assert stamp > replaced or replaced - clock >= REACH
    assert stamp >= clock


@given(millis, st.integers(1, MAX_HLC).map(Hlc))
def test_no_stamp_is_so_great_that_an_edit_could_not_come_after_it(now: Millis, replaced: Hlc) -> None:
    stamp = field_stamp(tick(Hlc(0), now), replaced)

    assert 0 < stamp <= MAX_HLC
    assert supersedes((stamp, "a"), (replaced, "b")) or stamp - replaced >= REACH  # the other is of before 1970


@given(st.tuples(stamps, st.sampled_from("ab")), st.tuples(stamps, st.sampled_from("ab")))
def test_of_two_writes_never_does_each_come_after_the_other(one: tuple[Hlc, str], other: tuple[Hlc, str]) -> None:
    assert [supersedes(one, other), supersedes(other, one)].count(True) == (one != other)


@given(st.tuples(millis, entropy), st.tuples(millis, entropy))
def test_ulids_sort_as_their_time_and_entropy_do(one: tuple[Millis, bytes], other: tuple[Millis, bytes]) -> None:
    assert (ulid(*one) < ulid(*other)) == (one < other)


@given(millis, entropy)
def test_a_ulid_goes_to_bytes_and_back(ms: Millis, random: bytes) -> None:
    text = ulid(ms, random)

    assert ulid_text(ulid_bytes(text)) == text
    assert ulid_bytes(text) == ms.to_bytes(6, "big") + random


@given(st.binary(min_size=16, max_size=16))
def test_sixteen_bytes_go_to_a_ulid_and_back(data: bytes) -> None:
    assert ulid_bytes(ulid_text(data)) == data


@pytest.mark.parametrize(
    "text", ["", "0" * 25, "0" * 27, "8" + "0" * 25, "0" * 25 + "I", "0" * 25 + "u", "0" * 25 + "é", "z" * 26]
)
def test_what_is_no_ulid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a ULID"):
        ulid_bytes(text)


@pytest.mark.parametrize("ms", [-1, MAX_MILLIS + 1, 1 << 70])
def test_a_nonsense_time_still_gives_a_valid_ulid(ms: int) -> None:
    assert len(ulid_bytes(ulid(Millis(ms), bytes(10)))) == 16


def test_a_ulid_takes_ten_bytes_of_entropy() -> None:
    with pytest.raises(ValueError, match="10 bytes"):
        ulid(Millis(0), bytes(9))


@given(millis, entropy, entropy)
def test_a_uuid7_has_its_version_and_variant_and_sorts_by_time(ms: Millis, one: bytes, other: bytes) -> None:
    made = uuid.UUID(bytes=uuid7(ms, one))

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert int.from_bytes(made.bytes[:6], "big") == ms
    if ms < MAX_MILLIS:
        assert made.bytes < uuid7(Millis(ms + 1), other)
