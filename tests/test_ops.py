"""The laws of the op log: any order, any repetition, any grouping of the same ops shows the same view."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, field_stamp, tick, ulid, uuid7
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.ops import Counter, Field, OpType, Stamp
from scrubjay_shared.records import Event, EventType, Grip, MemoryType, Op, Role, Trust

NOW = Millis(1_800_000_000_000)
DEVICES = ("aa" * 16, "bb" * 16, "cc" * 16)
MEMORIES = tuple(ulid(NOW, bytes([n] * 10)) for n in range(1, 4))
EVENTS = tuple(ulid(NOW, bytes([n] * 10)) for n in range(11, 13))
GRIPS = tuple(ulid(NOW, bytes([n] * 10)) for n in range(21, 23))
NAMES = ("a", "b", "a~2", "a~3")


def event(event_id: str = EVENTS[0], device: str = DEVICES[0]) -> Event:
    return Event(
        id=event_id,
        device=device,
        agent="claude-code",
        session_id="s1",
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text="we moved the café to Oslo 🦜",
        ts=NOW,
        dedupe_key="k1",
        project="p",
        utc_offset=-60,
        trust=Trust.USER,
        metadata={"a": [1, None, True], "z": {"speaker": "Maya"}},
    )


def grip(grip_id: str, memory_id: str) -> Grip:
    return Grip(
        id=grip_id,
        memory_id=memory_id,
        event_id_start=EVENTS[0],
        event_id_end=EVENTS[1],
        span_start=3,
        span_end=9,
        excerpt="moved!",
        source="patterns/1",
        created_at=NOW,
    )


# --- histories ----------------------------------------------------------------------------------------------------------


@dataclass
class Replica:
    """A device that writes as the store does: knowing what it has seen so far, by a clock of its own."""

    device: str
    skew_ms: int
    last: int = 0
    seq: int = 0
    seen: list[Op] = field(default_factory=list)

    def write(self, now: int, op_type: OpType, body: dict[int, Any], floor: int = 0) -> Op:
        self.last = tick(Hlc(self.last), Millis(max(0, now + self.skew_ms)))
        self.seq += 1
        op = Op(
            device=self.device,
            seq=self.seq,
            op_id=uuid7(NOW, bytes(10)),
            hlc=field_stamp(Hlc(self.last), Hlc(floor)),
            type=int(op_type),
            body=body,
        )
        self.seen.append(op)
        return op


def written(replica: Replica, now: int, kind: str, entity: int, choice: int) -> Op:  # noqa: C901, PLR0911 - a table
    """Return one op of a kind, about things that `replica` knows."""
    memory_id, state = MEMORIES[entity % len(MEMORIES)], ops.fold(replica.seen)
    name = NAMES[choice % len(NAMES)]
    if kind == "edit":
        fields: dict[Field, Any] = {Field.CONTENT: f"text {choice}", Field.CREATED_AT: NOW}
        if choice % 2:
            fields |= {Field.NAME: name, Field.TYPE: list(MemoryType)[choice % 5].value}
        bases: dict[Field, Stamp] = {}
        for key in fields:
            if versions := state.registers.get((memory_id, int(key))):
                bases[key] = ops.winner(versions)
        floor = max((hlc for hlc, _ in bases.values()), default=0)
        return replica.write(now, OpType.MEMORY, ops.memory_body(memory_id, fields, bases), floor)
    if kind == "forget":
        gone = (*MEMORIES, *EVENTS, *GRIPS)[choice % 7]
        return replica.write(now, OpType.FORGET, ops.forget_body(gone))
    if kind == "claim":
        return replica.write(now, OpType.CLAIM, ops.claim_body(memory_id, name))
    if kind == "unclaim":
        seen = [stamp for (claimed, stamp), holder in state.claims.items() if (claimed, holder) == (name, memory_id)]
        return replica.write(now, OpType.UNCLAIM, ops.unclaim_body(memory_id, name, seen))
    if kind == "count":
        before = state.counters.get((memory_id, Counter.ACCESS, replica.device), (0, 0))[0]
        body = ops.count_body(memory_id, Counter.ACCESS, before + 1 + choice, Millis(NOW + choice))
        return replica.write(now, OpType.COUNT, body)
    if kind == "grip":
        made = grip(GRIPS[choice % len(GRIPS)], MEMORIES[choice % len(GRIPS)])
        return replica.write(now, OpType.GRIP, ops.grip_body(made))
    if kind == "blank":
        body = ops.blank_body(EVENTS[choice % len(EVENTS)], [(choice, choice + 3)])
        return replica.write(now, OpType.BLANK, body)
    # An id belongs to one event of one device.
    place = DEVICES.index(replica.device) % len(EVENTS)
    return replica.write(now, OpType.EVENT, ops.event_body(event(EVENTS[place])))


KINDS = ("edit", "edit", "edit", "forget", "claim", "claim", "unclaim", "count", "grip", "blank", "event", "sync")
steps = st.tuples(
    st.integers(0, 2),
    st.sampled_from(KINDS),
    st.integers(0, 2),
    st.integers(0, 9),
    st.integers(-5_000, 5_000),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Op]:
    """Ops of three devices with skewed, jumping clocks that now and then hear of each other."""
    skews = draw(st.lists(st.integers(-10_000_000, 10_000_000), min_size=3, max_size=3))
    replicas = [Replica(device=device, skew_ms=skew) for device, skew in zip(DEVICES, skews, strict=True)]
    made: list[Op] = []
    # Only the first and second device write events, so that each event id has one author.
    for who, kind, entity, choice, jump in draw(st.lists(steps, max_size=40)):
        replica = replicas[who]
        if kind == "sync":
            other = replicas[choice % 3]
            known = {(op.device, op.seq) for op in replica.seen}
            replica.seen += [op for op in other.seen if (op.device, op.seq) not in known]
        elif kind != "event" or who < len(EVENTS):
            made.append(written(replica, NOW + jump, kind, entity, choice))
    return made


def shuffled(items: list[Op], seed: int) -> list[Op]:
    return random.Random(seed).sample(items, len(items))


@given(histories(), st.integers())
def test_ops_may_come_in_any_order(history: list[Op], seed: int) -> None:
    in_order, mixed = ops.fold(history), ops.fold(shuffled(history, seed))

    assert mixed == in_order
    assert ops.view(mixed) == ops.view(in_order)


@given(histories(), st.integers())
def test_ops_may_come_more_than_once(history: list[Op], seed: int) -> None:
    assert ops.fold(history + shuffled(history, seed)) == ops.fold(history)


@given(histories(), st.integers(0, 40), st.integers(0, 40), st.integers())
def test_merge_is_commutative_associative_and_idempotent(history: list[Op], one: int, two: int, seed: int) -> None:
    low, high = sorted((one, two))
    mixed = shuffled(history, seed)
    a, b, c = (ops.fold(part) for part in (mixed[:low], mixed[low:high], mixed[high:]))

    assert ops.merge(a, b) == ops.merge(b, a)
    assert ops.merge(ops.merge(a, b), c) == ops.merge(a, ops.merge(b, c)) == ops.fold(history)
    assert ops.merge(a, a) == a
    assert ops.view(ops.merge(ops.merge(a, b), c)) == ops.view(ops.merge(c, ops.merge(b, a)))


@given(histories(), st.integers(0, 40))
def test_folding_on_top_of_a_state_leaves_that_state_alone(history: list[Op], place: int) -> None:
    start = ops.fold(history[:place])
    before = ops.merge(start, ops.State())

    after = ops.fold(history[place:], start)

    assert start == before
    assert after == ops.fold(history)


@given(histories(), st.sampled_from(MEMORIES + EVENTS + GRIPS), st.integers(0, 40))
def test_forget_wins_over_every_edit_earlier_or_later(history: list[Op], gone: str, place: int) -> None:
    forget = Replica(device="dd" * 16, skew_ms=0).write(0, OpType.FORGET, ops.forget_body(gone))

    view = ops.view(ops.fold([*history[:place], forget, *history[place:]]))

    assert gone not in view.memories | view.events | view.grips
    assert gone not in {alias.memory_id for alias in view.aliases.values()}
    assert gone not in {made.memory_id for made in view.grips.values()}
    assert not [key for key in view.conflicts if key[0] == gone]


@given(histories())
def test_an_edit_always_wins_over_what_its_writer_had_seen(history: list[Op]) -> None:
    for versions in ops.fold(history).registers.values():
        shown = ops.winner(versions)
        replaced = {base for _, seen in versions.values() for base in seen}

        assert shown not in replaced
        assert all(base < stamp for stamp, (_, seen) in versions.items() for base in seen)


@given(histories())
def test_no_version_is_lost_it_is_shown_or_replaced_or_an_open_conflict(history: list[Op]) -> None:
    for versions in ops.fold(history).registers.values():
        replaced = {base for _, seen in versions.values() for base in seen}

        assert {ops.winner(versions), *ops.unseen(versions)} == set(versions) - replaced
        assert set(ops.to_settle(versions)) <= set(ops.unseen(versions))


@given(histories(), st.data())
def test_emptying_superseded_writes_changes_nothing_that_shows(history: list[Op], data: st.DataObject) -> None:
    state = ops.fold(history)
    places = ops.to_empty(state, data.draw(st.integers(0, 2)))
    emptied = [
        ops.emptied(op, places.get((ops.entity_of(op), (int(op.hlc), op.device)), frozenset()))
        if op.type == OpType.MEMORY and data.draw(st.booleans())
        else op
        for op in history
    ]

    assert not [op for op in emptied if ops.problem(op)]
    assert [(op.op_id, op.hlc) for op in emptied] == [(op.op_id, op.hlc) for op in history]
    assert ops.view(ops.fold(data.draw(st.permutations(emptied)))) == ops.view(state)
    assert ops.view(ops.merge(ops.fold(emptied), state)) == ops.view(state)


@given(histories())
def test_every_live_claim_shows_under_exactly_one_name_and_the_earliest_holds_it(history: list[Op]) -> None:
    state = ops.fold(history)
    live: dict[str, list[tuple[Stamp, str]]] = {}
    for (name, stamp), entity in state.claims.items():
        if (name, stamp) not in state.unclaimed and entity not in state.forgotten:
            live.setdefault(name, []).append((stamp, entity))

    shown = ops.holders(state)

    assert sorted((claimed, entity) for entity, claimed in shown.values()) == sorted(
        {(name, entity) for name, claims in live.items() for _, entity in claims}
    )
    assert all(shown[name][0] == min(claims)[1] for name, claims in live.items())


@given(histories())
def test_every_op_survives_the_wire(history: list[Op]) -> None:
    for op in history:
        data = ops.encode(op)

        again = ops.decode(data, device=op.device, seq=op.seq)

        assert ops.encode(again) == data
        assert ops.fold([again]) == ops.fold([op])


causes = st.builds(
    lambda kind, at, entropy: f"{kind}:{ulid(Millis(at), entropy)}",
    st.from_regex(r"[a-z][a-z_]{0,31}", fullmatch=True),
    st.integers(0, NOW),
    st.binary(min_size=10, max_size=10),
)
under_key_0 = st.one_of(causes, st.none(), st.integers(), st.binary(max_size=40), st.text(max_size=40))


@given(histories(), st.lists(under_key_0, min_size=1, max_size=4), st.integers(0, 40))
def test_causes_change_nothing_of_what_a_history_shows(history: list[Op], said: list[Any], place: int) -> None:
    told = [replace(op, body={**op.body, ops.CAUSE: said[at % len(said)]}) for at, op in enumerate(history)]

    assert [ops.problem(op) for op in told] == [ops.problem(op) for op in history]
    assert ops.fold(told) == ops.fold(history)
    assert ops.merge(ops.fold(told[:place]), ops.fold(history[place:])) == ops.fold(history)
    assert ops.view(ops.fold(told)) == ops.view(ops.fold(history))


@given(histories(), causes, causes)
def test_a_cause_survives_the_wire_and_a_change_of_hands(history: list[Op], cause: str, other: str) -> None:
    for op in history:
        told = replace(op, body=ops.caused(ops.caused(op.body, other), cause))

        again = ops.decode(ops.encode(told), device=op.device, seq=op.seq)

        assert ops.cause_of(again) == cause
        assert list(again.body)[-1] == ops.CAUSE
        assert ops.encode(again) == ops.encode(told)
        assert ops.cause_of(ops.readdressed(again, DEVICES[2], 1, ops.stamps_of(again))) == cause
        assert ops.cause_of(ops.adopted(again, DEVICES[2], 1)) == cause
        assert ops.caused(op.body, None) is op.body


@settings(max_examples=100)
@given(st.binary(max_size=80))
def test_bytes_that_are_no_op_are_refused_as_damage(data: bytes) -> None:
    try:
        op = ops.decode(data, device=DEVICES[0], seq=1)
    except CorruptError:
        return
    assert isinstance(op.body, dict)


# --- the single rules ---------------------------------------------------------------------------------------------------


def edit(replica: Replica, text: str, base: Op | None = None, **more: Any) -> Op:
    fields: dict[Field, Any] = {Field.CONTENT: text, Field.CREATED_AT: NOW, **{Field[k]: v for k, v in more.items()}}
    bases = {} if base is None else dict.fromkeys(fields, (int(base.hlc), base.device))
    floor = 0 if base is None else base.hlc
    return replica.write(NOW, OpType.MEMORY, ops.memory_body(MEMORIES[0], fields, bases), floor)


def test_an_informed_edit_of_a_device_whose_clock_is_an_hour_behind_wins() -> None:
    ahead, behind = Replica(DEVICES[0], 0), Replica(DEVICES[1], -3_600_000)
    first = edit(ahead, "old")
    second = edit(behind, "new", base=first)

    view = ops.view(ops.fold([second, first]))

    assert view.memories[MEMORIES[0]].content == "new"
    assert view.conflicts == {}


def test_two_edits_that_knew_nothing_of_each_other_are_a_conflict() -> None:
    one, other = Replica(DEVICES[0], 0), Replica(DEVICES[1], 5)
    first = edit(one, "in the beginning")
    left, right = edit(one, "left", base=first), edit(other, "right", base=first)

    view = ops.view(ops.fold([first, left, right]))

    assert view.memories[MEMORIES[0]].content == "right"
    assert view.conflicts[MEMORIES[0], Field.CONTENT] == ((int(left.hlc), DEVICES[0]),)


def test_a_tie_between_devices_is_broken_by_the_device() -> None:
    one, other = edit(Replica(DEVICES[0], 0), "a"), edit(Replica(DEVICES[1], 0), "b")

    assert one.hlc == other.hlc
    assert ops.view(ops.fold([other, one])).memories[MEMORIES[0]].content == "b"


def test_the_second_holder_of_a_name_shows_beside_a_name_that_was_really_given() -> None:
    claims = [
        Replica(DEVICES[0], at).write(NOW, OpType.CLAIM, ops.claim_body(MEMORIES[at], name))
        for at, name in enumerate(("a", "a", "a~2"))
    ]

    shown = ops.holders(ops.fold(claims))

    assert {name: MEMORIES.index(entity) for name, (entity, _) in shown.items()} == {"a": 0, "a~2": 2, "a~3": 1}


def test_an_alias_taken_away_stays_away_unless_it_was_claimed_elsewhere_meanwhile() -> None:
    here, there = Replica(DEVICES[0], 0), Replica(DEVICES[1], 1)
    first = here.write(NOW, OpType.CLAIM, ops.claim_body(MEMORIES[0], "a"))
    away = here.write(NOW, OpType.UNCLAIM, ops.unclaim_body(MEMORIES[0], "a", [(int(first.hlc), first.device)]))
    again = there.write(NOW, OpType.CLAIM, ops.claim_body(MEMORIES[0], "a"))

    assert ops.holders(ops.fold([away, first])) == {}
    assert ops.holders(ops.fold([away, again, first])) == {"a": (MEMORIES[0], "a")}


def test_counts_of_devices_add_up_and_an_old_total_adds_nothing() -> None:
    one, other = Replica(DEVICES[0], 0), Replica(DEVICES[1], 0)
    history = [
        edit(one, "x"),
        *(one.write(NOW, OpType.COUNT, ops.count_body(MEMORIES[0], Counter.ACCESS, n, NOW)) for n in (3, 2, 5)),
        other.write(NOW, OpType.COUNT, ops.count_body(MEMORIES[0], Counter.ACCESS, 4, Millis(NOW + 1))),
    ]

    memory = ops.view(ops.fold(history)).memories[MEMORIES[0]]

    assert (memory.access_count, memory.accessed_at) == (9, NOW + 1)


def test_blanked_passages_keep_every_other_character_in_its_place() -> None:
    writer = Replica(DEVICES[0], 0)
    history = [
        writer.write(NOW, OpType.EVENT, ops.event_body(event())),
        writer.write(NOW, OpType.BLANK, ops.blank_body(EVENTS[0], [(3, 8), (26, 99)])),
    ]

    assert ops.view(ops.fold(history)).events[EVENTS[0]].text == "we ░░░░░ the café to Oslo ░"


@given(st.text(max_size=20), st.lists(st.tuples(st.integers(-3, 25), st.integers(-3, 25)), max_size=5), st.integers())
def test_blanking_is_a_union_that_keeps_the_length(text: str, spans: list[tuple[int, int]], seed: int) -> None:
    once = ops.blanked(text, spans)

    assert len(once) == len(text)
    assert ops.blanked(once, random.Random(seed).sample(spans, len(spans))) == once
    covered = {at for start, end in spans for at in range(max(start, 0), end)}
    assert once == "".join("░" if at in covered else char for at, char in enumerate(text))


@pytest.mark.parametrize("what", [{"type": 99}, {"version": 2}, {"version": 0}], ids=str)
def test_an_op_of_a_type_or_version_that_is_not_known_folds_to_nothing_and_is_kept(what: dict[str, int]) -> None:
    later = replace(edit(Replica(DEVICES[0], 0), "x"), **what)

    assert ops.fold([later]) == ops.State()
    assert ops.decode(ops.encode(later), device=later.device, seq=later.seq) == later


def test_a_memory_whose_content_has_not_come_yet_does_not_show() -> None:
    writer = Replica(DEVICES[0], 0)
    history = [
        writer.write(NOW, OpType.MEMORY, ops.memory_body(MEMORIES[0], {Field.SALIENCE: 0.5})),
        writer.write(NOW, OpType.CLAIM, ops.claim_body(MEMORIES[0], "a")),
        writer.write(NOW, OpType.GRIP, ops.grip_body(grip(GRIPS[0], MEMORIES[0]))),
    ]

    view = ops.view(ops.fold(history))

    assert (view.memories, view.aliases, view.grips) == ({}, {}, {})


def test_an_event_comes_back_from_its_op_as_it_was() -> None:
    op = Replica(DEVICES[0], 0).write(NOW, OpType.EVENT, ops.event_body(event()))

    assert ops.fold([ops.decode(ops.encode(op), device=op.device, seq=1)]).events == {EVENTS[0]: event()}


# --- the wire format: a promise -----------------------------------------------------------------------------------------

STAMP = (int(tick(Hlc(0), NOW)), DEVICES[1])
BODIES: dict[OpType, dict[int, Any]] = {
    OpType.EVENT: ops.event_body(event()),
    OpType.MEMORY: ops.memory_body(
        MEMORIES[0], {Field.CONTENT: "tea, not coffee", Field.SALIENCE: 0.7}, {Field.CONTENT: STAMP}
    ),
    OpType.FORGET: ops.forget_body(MEMORIES[0]),
    OpType.CLAIM: ops.claim_body(MEMORIES[0], "drinks"),
    OpType.UNCLAIM: ops.unclaim_body(MEMORIES[0], "drinks", [STAMP]),
    OpType.COUNT: ops.count_body(MEMORIES[0], Counter.ACCESS, 7, NOW),
    OpType.GRIP: ops.grip_body(grip(GRIPS[0], MEMORIES[0])),
    OpType.BLANK: ops.blank_body(EVENTS[0], [(9, 12), (0, 4)]),
}
GOLDEN: dict[OpType, str] = {
    OpType.EVENT: (
        "950101c41001a3185c500070018203040506070809cf01a3185c500000008c01c41001a3185c50000b0b0b0b0b0b0b0b0b0b"
        "02ab636c617564652d636f646503a2733104ac757365725f6d65737361676505a47573657206bf7765206d6f766564207468"
        "6520636166c3a920746f204f736c6f20f09fa69c07cf000001a3185c500008a26b3109a1700ad0c40ba4757365720c82a161"
        "9301c0c3a17a81a7737065616b6572a44d617961"
    ),
    OpType.MEMORY: (
        "950201c41001a3185c500070018203040506070809cf01a3185c500000008301c41001a3185c500001010101010101010101"
        "028201af7465612c206e6f7420636f6666656507cb3fe666666666666603810192cf01a3185c50000000c410bbbbbbbbbbbb"
        "bbbbbbbbbbbbbbbbbbbb"
    ),
    OpType.FORGET: (
        "950301c41001a3185c500070018203040506070809cf01a3185c500000008101c41001a3185c500001010101010101010101"
    ),
    OpType.CLAIM: (
        "950401c41001a3185c500070018203040506070809cf01a3185c500000008201c41001a3185c500001010101010101010101"
        "02a66472696e6b73"
    ),
    OpType.UNCLAIM: (
        "950501c41001a3185c500070018203040506070809cf01a3185c500000008301c41001a3185c500001010101010101010101"
        "02a66472696e6b73039192cf01a3185c50000000c410bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    ),
    OpType.COUNT: (
        "950601c41001a3185c500070018203040506070809cf01a3185c500000008401c41001a3185c500001010101010101010101"
        "0201030704cf000001a3185c5000"
    ),
    OpType.GRIP: (
        "950701c41001a3185c500070018203040506070809cf01a3185c500000008901c41001a3185c500001010101010101010101"
        "02c41001a3185c50001515151515151515151503c41001a3185c50000b0b0b0b0b0b0b0b0b0b04c41001a3185c50000c0c0c"
        "0c0c0c0c0c0c0c0503060907a66d6f7665642108aa7061747465726e732f3109cf000001a3185c5000"
    ),
    OpType.BLANK: (
        "950801c41001a3185c500070018203040506070809cf01a3185c500000008201c41001a3185c50000b0b0b0b0b0b0b0b0b0b"
        "029292000492090c"
    ),
}


@pytest.mark.parametrize("op_type", list(OpType), ids=lambda op_type: op_type.name)
def test_the_bytes_of_an_op_never_change(op_type: OpType) -> None:
    op = Op(
        device=DEVICES[0],
        seq=1,
        op_id=uuid7(NOW, bytes(range(10))),
        hlc=tick(Hlc(0), NOW),
        type=int(op_type),
        body=BODIES[op_type],
    )

    assert ops.encode(op).hex() == GOLDEN[op_type]
    assert ops.decode(bytes.fromhex(GOLDEN[op_type]), device=DEVICES[0], seq=1).type == op_type
