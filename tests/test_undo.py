"""What undoing a cause does to one memory: what it wrote goes back, unless somebody changed it since."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.lifecycle.replacement import check_successor, closes_circle
from scrubjay.lifecycle.undo import Undoing, undoing, without_circles
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, ulid, uuid7
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.ops import Field, OpType
from scrubjay_shared.records import Grip, Op

NOW = Millis(1_800_000_000_000)
LATER = Millis(NOW + 1_000)
MEMORY = ulid(NOW, bytes(10))
FIELDS = (Field.CONTENT, Field.TOPIC, Field.SALIENCE, Field.SUPERSEDED_BY, Field.LAYER)


def cause(kind: str, number: int) -> str:
    return f"{kind}:{ulid(NOW, bytes([number] * 10))}"


IMPORT, PERSON, UNDO, AGAIN = cause("import", 1), cause("update", 2), cause("undo", 3), cause("undo", 4)


@dataclass
class Log:
    """The ops of one memory, each written by one who knows those before."""

    ops: list[Op] = field(default_factory=list)

    def _add(self, op_type: OpType, body: dict[int, Any], by: str | None) -> None:
        seq = len(self.ops) + 1
        hlc = Hlc((NOW + seq) << 16)
        body = ops.caused(body, by)
        self.ops.append(
            Op(device="aa" * 16, seq=seq, op_id=uuid7(NOW, bytes(10)), hlc=hlc, type=int(op_type), body=body)
        )

    def write(self, fields: dict[Field, Any], by: str | None) -> Log:
        state = ops.fold(self.ops)
        bases = {
            key: ops.winner(found) for key in fields if (found := state.registers.get((MEMORY, int(key)))) is not None
        }
        self._add(OpType.MEMORY, ops.memory_body(MEMORY, fields, bases), by)
        return self

    def made(self, by: str | None, name: str | None = None) -> Log:
        self.write({Field.CONTENT: "one", Field.CREATED_AT: int(NOW), Field.NAME: name}, by)
        return self if name is None else self.named(name, by)

    def named(self, name: str, by: str | None) -> Log:
        self._add(OpType.CLAIM, ops.claim_body(MEMORY, name), by)
        return self

    def read(self, by: str | None, number: int) -> Log:
        grip = Grip(
            id=ulid(NOW, bytes([number] * 10)), memory_id=MEMORY, event_id_start=MEMORY, event_id_end=MEMORY,
            span_start=0, span_end=1, excerpt="o", source="rules/1", created_at=NOW,
        )  # fmt: skip
        self._add(OpType.GRIP, ops.grip_body(grip), by)
        return self

    def forget(self, by: str | None = None) -> Log:
        self._add(OpType.FORGET, ops.forget_body(MEMORY), by)
        return self

    def undo(self, which: str, by: str) -> Undoing:
        """Carry out what undoing says."""
        plan = undoing(MEMORY, self.ops, which, LATER)
        if plan.fields:
            self.write(dict(plan.fields), by)
        for name in plan.unclaimed:
            seen = [stamp for claimed, stamp, _ in ops.live_claims(ops.fold(self.ops)) if claimed == name]
            self._add(OpType.UNCLAIM, ops.unclaim_body(MEMORY, name, seen), by)
        for name in plan.claimed:
            self.named(name, by)
        return plan

    def shown(self) -> dict[str, Any]:
        memory = ops.view(ops.fold(self.ops)).memories[MEMORY]
        names = ("content", "topic", "salience", "superseded_by", "layer", "archived_at", "name", "valid_to")
        return {name: getattr(memory, name) for name in names}


def test_what_a_cause_wrote_goes_back_to_what_stood_there_before() -> None:
    log = Log().made(None).write({Field.CONTENT: "two", Field.TOPIC: "tea"}, IMPORT)

    assert undoing(MEMORY, log.ops, IMPORT, LATER) == Undoing(
        memory_id=MEMORY, fields={Field.CONTENT: "one", Field.TOPIC: None}
    )


def test_several_writes_of_one_cause_go_back_together() -> None:
    log = Log().made(None).write({Field.CONTENT: "two"}, IMPORT).write({Field.CONTENT: "three"}, IMPORT)

    assert undoing(MEMORY, log.ops, IMPORT, LATER).fields == {Field.CONTENT: "one"}


def test_what_was_changed_since_stays() -> None:
    log = (
        Log().made(None).write({Field.CONTENT: "two", Field.TOPIC: "tea"}, IMPORT).write({Field.CONTENT: "my"}, PERSON)
    )

    plan = undoing(MEMORY, log.ops, IMPORT, LATER)

    assert (plan.fields, plan.kept) == ({Field.TOPIC: None}, ("content",))


def test_a_memory_that_the_cause_made_is_archived_and_loses_its_name() -> None:
    log = Log().made(IMPORT, "tea")

    plan = log.undo(IMPORT, UNDO)

    assert plan == Undoing(memory_id=MEMORY, fields={Field.ARCHIVED_AT: int(LATER)}, unclaimed=("tea",))
    assert plan.archives
    assert log.shown()["archived_at"] == LATER
    assert ops.holders(ops.fold(log.ops)) == {}


def test_a_memory_that_somebody_changed_since_is_not_archived() -> None:
    log = Log().made(IMPORT).write({Field.CONTENT: "my own words"}, PERSON)

    plan = undoing(MEMORY, log.ops, IMPORT, LATER)

    assert (plan.changes, plan.kept) == (False, ("content",))


def test_a_memory_that_was_read_elsewhere_too_is_not_archived() -> None:
    log = Log().made(IMPORT).read(IMPORT, 7)
    assert undoing(MEMORY, log.ops, IMPORT, LATER).archives

    log.read(PERSON, 8)

    assert undoing(MEMORY, log.ops, IMPORT, LATER) == Undoing(memory_id=MEMORY, kept=("source",))


def test_a_superseded_memory_comes_back() -> None:
    log = Log().made(None).write({Field.SUPERSEDED_BY: "X"}, IMPORT)

    log.undo(IMPORT, UNDO)

    assert log.shown()["superseded_by"] is None


def test_what_was_forgotten_never_comes_back() -> None:
    log = Log().made(None).write({Field.CONTENT: "two"}, IMPORT).forget(IMPORT)

    assert undoing(MEMORY, log.ops, IMPORT, LATER) == Undoing(memory_id=MEMORY)


def test_trust_that_fell_stays_low() -> None:
    log = Log().made(None).write({Field.TRUST: "import"}, IMPORT)

    assert not undoing(MEMORY, log.ops, IMPORT, LATER).changes


def test_a_rename_goes_back_and_the_new_name_is_free_again() -> None:
    log = Log().made(None, "tea").write({Field.NAME: "green"}, PERSON).named("green", PERSON)

    log.undo(PERSON, UNDO)

    assert log.shown()["name"] == "tea"
    assert list(ops.holders(ops.fold(log.ops))) == ["tea"]


def test_undoing_the_same_cause_twice_changes_nothing_more() -> None:
    log = Log().made(IMPORT, "tea")
    log.undo(IMPORT, UNDO)

    assert not undoing(MEMORY, log.ops, IMPORT, LATER).changes


def test_a_change_that_was_undone_is_no_change_since() -> None:
    log = Log().made(IMPORT).write({Field.CONTENT: "two"}, PERSON)
    log.undo(PERSON, UNDO)

    assert undoing(MEMORY, log.ops, IMPORT, LATER).archives


writes = st.lists(
    st.tuples(st.sampled_from(FIELDS[:-1]), st.sampled_from(["a", "b", None]), st.sampled_from([IMPORT, PERSON, None])),
    max_size=8,
)


def value(key: Field, letter: str | None) -> Any:
    if key == Field.SALIENCE:
        return 0.25 if letter is None else 0.5
    return letter or "" if key == Field.CONTENT else letter


@given(writes, st.booleans(), st.booleans())
def test_undoing_an_undoing_shows_what_was_shown_before(steps: list[Any], made: bool, named: bool) -> None:  # noqa: FBT001
    log = Log().made(IMPORT if made else None, "tea" if named else None)
    for key, letter, by in steps:
        log.write({key: value(key, letter)}, by)
    before = log.shown()

    log.undo(IMPORT, UNDO)
    log.undo(UNDO, AGAIN)

    assert log.shown() == before


@given(writes)
def test_undoing_leaves_what_others_wrote_last(steps: list[Any]) -> None:
    log = Log().made(None)
    for key, letter, by in steps:
        log.write({key: value(key, letter)}, by)
    state = ops.fold(log.ops)
    foreign = {
        Field(key)
        for (_, key), versions in state.registers.items()
        if ops.cause_of(next(op for op in log.ops if op.hlc == ops.winner(versions)[0])) != IMPORT
    }

    assert not foreign & set(undoing(MEMORY, log.ops, IMPORT, LATER).fields)


def test_an_op_that_says_to_replace_itself_does_not_keep_undoing_for_ever() -> None:
    log = Log().made(None).write({Field.TOPIC: "tea"}, IMPORT)
    own = log.ops[-1]
    itself = (int(own.hlc), own.device)
    log.ops[-1] = replace(
        own, body=ops.caused(ops.memory_body(MEMORY, {Field.TOPIC: "tea"}, {Field.TOPIC: itself}), IMPORT)
    )

    assert undoing(MEMORY, log.ops, IMPORT, LATER).fields == {Field.TOPIC: None}


# --- what took a memory's place ---------------------------------------------------------------------------------------

some = st.sampled_from("abcdef")
successors = st.dictionaries(some, some, max_size=6)
"""What took whose place; in circles too, as two devices may have written them."""


def circles(successor: dict[str, str]) -> set[frozenset[str]]:
    """Return the circles in what took whose place, found by following each for as long as there are memories."""
    found = set()
    for start in successor:
        at, path = successor.get(start), [start]
        while at is not None and at not in path:
            path.append(at)
            at = successor.get(at)
        if at == start:
            found.add(frozenset(path))
    return found


@given(successors, some, some)
def test_a_successor_is_refused_exactly_when_it_closes_a_circle(stands: dict[str, str], one: str, two: str) -> None:
    closes = any(one in circle for circle in circles({**stands, one: two}))

    assert closes_circle(one, two, stands.get) is closes
    with pytest.raises(InvalidError, match="superseded by") if closes else nullcontext():
        check_successor(one, two, stands.get)


@given(successors, st.dictionaries(some, st.none() | some, max_size=6))
def test_undoing_closes_no_circle_and_says_what_it_kept(stands: dict[str, str], planned: dict[str, str | None]) -> None:
    plans = [Undoing(memory_id=key, fields={Field.SUPERSEDED_BY: value}) for key, value in planned.items()]

    found = without_circles(plans, stands.get)

    written = {plan.memory_id: plan.fields[Field.SUPERSEDED_BY] for plan in found if plan.fields}
    then = {key: value for key, value in {**stands, **written}.items() if value is not None}
    assert not any(circle & {key for key, value in written.items() if value} for circle in circles(then))
    assert {plan.memory_id for plan in found if plan.kept == ("superseded_by",)} == planned.keys() - written.keys()
    if not circles({key: value for key, value in {**stands, **planned}.items() if value is not None}):
        assert found == plans, "what closes no circle is undone as planned"
