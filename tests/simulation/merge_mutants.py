"""The planted bugs of the merge core, the clock, and the rules by which a device writes, carries and comes back."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scrubjay_shared import clock, ops
from scrubjay_shared.ops import OpType, State
from scrubjay_shared.ops import state as folding
from scrubjay_shared.records import Op
from simulation.laws import ulid_text
from simulation.merge import Device, History, Place, Server
from simulation.mutants import Mutant, mutant

Apply = Callable[[State, Op], None]


def _applying(op_type: OpType, instead: Callable[[Apply, State, Op], None]) -> tuple[Any, str, Callable[[Any], Any]]:
    """Return the site of a bug in how ops of one type are folded."""

    def changed(original: Apply) -> Apply:
        def apply(state: State, op: Op) -> None:
            if op.type == op_type:
                instead(original, state, op)
            else:
                original(state, op)

        return apply

    return (folding, "_apply", changed)


def _forget_undone(original: Apply, state: State, op: Op) -> None:
    original(state, op)
    state.forgotten.discard(ulid_text(op.body[1]))


def _last_write_counts(original: Apply, state: State, op: Op) -> None:
    state.counters[ulid_text(op.body[1]), op.body[2], op.device] = (op.body[3], op.body[4])


def _one_counter_for_all(original: Apply, state: State, op: Op) -> None:
    key = (ulid_text(op.body[1]), op.body[2], "")
    state.counters[key] = max(state.counters.get(key, (0, 0)), (op.body[3], op.body[4]))


def _counter_adds(original: Apply, state: State, op: Op) -> None:
    key = (ulid_text(op.body[1]), op.body[2], op.device)
    before = state.counters.get(key, (0, 0))
    state.counters[key] = (max(before[0] + 1, op.body[3]), max(before[1], op.body[4]))


def _last_spans(original: Apply, state: State, op: Op) -> None:
    state.blanks[ulid_text(op.body[1])] = {(start, end) for start, end in op.body[2]}


def _blank_needs_its_event(original: Apply, state: State, op: Op) -> None:
    if ulid_text(op.body[1]) in state.events:
        original(state, op)


def _unclaim_ends_all(original: Apply, state: State, op: Op) -> None:
    original(state, op)
    entity = ulid_text(op.body[1])
    state.unclaimed.update(key for key, holder in state.claims.items() if (key[0], holder) == (op.body[2], entity))


def _unclaim_before_claim_lost(original: Apply, state: State, op: Op) -> None:
    known = {(op.body[2], (hlc, device.hex())) for hlc, device in op.body[3]} & state.claims.keys()
    state.unclaimed.update(known)


def _one_grip_a_memory(original: Apply, state: State, op: Op) -> None:
    memory_id = ulid_text(op.body[1])
    for grip_id in [one for one, grip in state.grips.items() if grip.memory_id == memory_id]:
        del state.grips[grip_id]
    original(state, op)


def _grip_needs_its_memory(original: Apply, state: State, op: Op) -> None:
    if any(entity == ulid_text(op.body[1]) for entity, _ in state.registers):
        original(state, op)


def _one_version(original: Apply, state: State, op: Op) -> None:
    original(state, op)
    for key in op.body[2]:
        versions = state.registers[ulid_text(op.body[1]), key]
        top = ops.winner(versions)
        state.registers[ulid_text(op.body[1]), key] = {top: versions[top]}


def _first_field_only(original: Apply, state: State, op: Op) -> None:
    first = next(iter(op.body[2]))
    state_before = {key: dict(versions) for key, versions in state.registers.items()}
    original(state, op)
    for key in [one for one in op.body[2] if one != first]:
        entity = ulid_text(op.body[1])
        if (entity, key) in state_before:
            state.registers[entity, key] = state_before[entity, key]


def _forget_needs_its_memory(original: Apply, state: State, op: Op) -> None:
    entity = ulid_text(op.body[1])
    if entity in state.events or entity in state.grips or any(one == entity for one, _ in state.registers):
        original(state, op)


def _merge_keeps_one_side(original: Callable[[State, State], State]) -> Callable[[State, State], State]:
    def merge(left: State, right: State) -> State:
        merged = original(left, right)
        merged.registers.update(left.registers)
        return merged

    return merge


def _merge_adds_totals(original: Callable[[State, State], State]) -> Callable[[State, State], State]:
    def merge(left: State, right: State) -> State:
        merged = original(left, right)
        for key in left.counters.keys() & right.counters.keys():
            merged.counters[key] = (left.counters[key][0] + right.counters[key][0], merged.counters[key][1])
        return merged

    return merge


def _names_by(order: Callable[[list[Any]], list[Any]], *, overwrite: bool = False) -> Callable[[Any], Any]:
    """Return a replacement of `ops.holders` with another order of the claims on a name."""

    def replaced(_original: Any) -> Any:
        def holders(state: State) -> dict[str, tuple[str, str]]:
            live: dict[str, list[Any]] = {}
            for (name, stamp), entity in state.claims.items():
                if (name, stamp) not in state.unclaimed and entity not in state.forgotten:
                    live.setdefault(name, []).append((stamp, entity))
            in_order = {name: list(dict.fromkeys(one for _, one in order(claims))) for name, claims in live.items()}
            names = {name: (found[0], name) for name, found in in_order.items()}
            for name in sorted(in_order):
                place = 2
                for entity in in_order[name][1:]:
                    while f"{name}~{place}" in names and not overwrite:
                        place += 1
                    names[f"{name}~{place}"] = (entity, name)
                    place += 1
            return names

        return holders

    return replaced


def _forgotten_claims_count(original: Any) -> Any:
    return lambda state: original(ops.merge(State(claims=state.claims, unclaimed=state.unclaimed), State()))


def _tie_by_arrival(versions: dict[Any, Any]) -> Any:
    greatest = max(hlc for hlc, _ in versions)
    return [stamp for stamp in versions if stamp[0] == greatest][-1]


def _oldest_of_page_skipped(original: Any) -> Any:
    def pull(self: Device, server: Server, limit: int, withheld: frozenset[str]) -> list[Place]:
        page = original(self, server, limit, withheld)
        for place in page[11:]:
            self.log.setdefault(place, None)
        return page[:11]

    return pull


def _clock_kept_from_floor(original: Any) -> Any:
    def write(self: Device, *args: Any) -> Op:
        op = original(self, *args)
        self.clock = max(self.clock, op.hlc)
        return op

    return write


def _grips_of_the_forgotten_show(original: Any) -> Any:
    def view(state: State) -> Any:
        shown = original(state)
        shown.grips.update({key: one for key, one in state.grips.items() if one.memory_id in shown.memories})
        return shown

    return view


def _spans_inclusive(original: Any) -> Any:
    return lambda text, spans: original(text, [(start, end + 1) for start, end in spans])


def _rebuild_without_tombstones(_original: Any) -> Any:
    def rebuild(self: Device, rng: random.Random) -> None:
        self.state = ops.fold([op for op in self.log.values() if op is not None and op.type != OpType.FORGET])

    return rebuild


def _all_counted_again(_original: Any) -> Any:
    return lambda self, device, op: op


def _stamps_left_behind(original: Any) -> Any:
    return lambda op, device, seq, moved: original(op, device, seq, ())


def _twins_by_arrival(_original: Any) -> Any:
    return lambda one, other: one


def _last_grip_counts(original: Apply, state: State, op: Op) -> None:
    state.grips.pop(ops.grip_of(op), None)
    original(state, op)


def _settles_nothing(original: Any) -> Any:
    return lambda memory_id, fields, bases=None, also=None: original(memory_id, fields, bases)


def _rebuild_from_own_ops_only(_original: Any) -> Any:
    def rebuild(self: Device, rng: random.Random) -> None:
        self.state = ops.fold([op for op in self.log.values() if op is not None and op.device == self.lane])

    return rebuild


def _acked_without_answer(original: Any) -> Any:
    def push(self: Device, server: Server | None, limit: int, *, answered: bool) -> int:
        sent: int = original(self, server, limit, answered=answered)
        self.acked = min(self.seq, self.sealed_seq) if not answered else self.acked
        return sent

    return push


def _acked_all(original: Any) -> Any:
    def push(self: Device, server: Server | None, limit: int, *, answered: bool) -> int:
        sent: int = original(self, server, limit, answered=answered)
        self.acked = self.sealed_seq = self.seq if answered else self.acked
        return sent

    return push


def _resealed(original: Any) -> Any:
    def push(self: Device, server: Server | None, limit: int, *, answered: bool) -> int:
        self.sealed_seq = self.acked
        return int(original(self, server, limit, answered=answered))

    return push


def _no_heal(_original: Any) -> Any:
    return lambda self, server: 0


def _heal_own_lane_only(_original: Any) -> Any:
    def heal(self: Device, server: Server) -> int:
        put = 0
        while (place := (self.lane, server.heads.get(self.lane, 0) + 1)) in self.sealed and place[1] <= self.acked:
            server.push(place, self.sealed[place])
            put += 1
        return put

    return heal


def _forgets_what_it_saw(original: Any) -> Any:
    def emptied(op: Op, keys: Any) -> Op:
        made: Op = original(op, keys)
        return made if made is op else replace(made, body={key: one for key, one in made.body.items() if key != 3})

    return emptied


def _also_what_shows(original: Any) -> Any:
    def to_empty(state: State, keep: int) -> Any:
        return original(state, keep) | {
            (entity, ops.winner(versions)): frozenset({key})
            for (entity, key), versions in state.registers.items()
            if key not in ops.LASTING
        }

    return to_empty


def _also_conflicts(original: Any) -> Any:
    def to_empty(state: State, keep: int) -> Any:
        return original(state, keep) | {
            (entity, stamp): frozenset({key})
            for (entity, key), versions in state.registers.items()
            for stamp in ops.unseen(versions)
            if key not in ops.LASTING
        }

    return to_empty


MERGE_MUTANTS: tuple[Mutant, ...] = (
    mutant("the last to arrive wins", (ops, "winner", lambda _: lambda versions: list(versions)[-1])),
    mutant("a tie goes to the last to arrive", (ops, "winner", lambda _: _tie_by_arrival)),
    mutant("the least stamp wins", (ops, "winner", lambda _: min)),
    mutant("an edit undoes a forget", _applying(OpType.MEMORY, _forget_undone)),
    mutant("an event undoes a forget", _applying(OpType.EVENT, _forget_undone)),
    mutant("a forget before its memory is lost", _applying(OpType.FORGET, _forget_needs_its_memory)),
    mutant("a counter is the last write", _applying(OpType.COUNT, _last_write_counts)),
    mutant("one counter for all devices", _applying(OpType.COUNT, _one_counter_for_all)),
    mutant("a repeated count counts again", _applying(OpType.COUNT, _counter_adds)),
    mutant("losing edits are dropped", _applying(OpType.MEMORY, _one_version)),
    mutant("a write of two fields keeps one", _applying(OpType.MEMORY, _first_field_only)),
    mutant("conflicts are not told", (ops, "unseen", lambda _: lambda versions: ())),
    mutant(
        "base links are ignored",
        (ops, "heads", lambda _: set),
    ),
    mutant("what is emptied forgets what it had seen", (ops, "emptied", _forgets_what_it_saw)),
    mutant("what shows is emptied", (ops, "to_empty", _also_what_shows)),
    mutant("what is in conflict is emptied", (ops, "to_empty", _also_conflicts)),
    mutant("no edit comes after a far stamp", (ops, "supersedes", lambda _: lambda stamp, seen: stamp > seen)),
    mutant("an edit may stand below what it saw", (clock, "field_stamp", lambda _: lambda now, *replaced: now)),
    mutant("the floor moves the clock", (Device, "write", _clock_kept_from_floor)),
    mutant("any stamp moves the clock", (clock, "receive", lambda _: lambda last, remote, now: max(last, remote))),
    mutant("a clock goes back with the wall", (clock, "tick", lambda _: lambda last, now: clock.Hlc(now << 16))),
    mutant("the last claim to arrive holds a name", (ops, "holders", _names_by(lambda claims: claims[::-1]))),
    mutant("the latest claim holds a name", (ops, "holders", _names_by(lambda claims: sorted(claims)[::-1]))),
    mutant("a second holder takes a ~2 that was given", (ops, "holders", _names_by(sorted, overwrite=True))),
    mutant("the forgotten hold names", (ops, "holders", _forgotten_claims_count)),
    mutant("an unclaim ends claims it never saw", _applying(OpType.UNCLAIM, _unclaim_ends_all)),
    mutant("an unclaim before its claim is lost", _applying(OpType.UNCLAIM, _unclaim_before_claim_lost)),
    mutant("the last blanking replaces the others", _applying(OpType.BLANK, _last_spans)),
    mutant("a blanking before its event is lost", _applying(OpType.BLANK, _blank_needs_its_event)),
    mutant("a blanking takes one character too many", (ops, "blanked", _spans_inclusive)),
    mutant("a memory keeps one grip", _applying(OpType.GRIP, _one_grip_a_memory)),
    mutant("a grip before its memory is lost", _applying(OpType.GRIP, _grip_needs_its_memory)),
    mutant("forgotten grips show", (ops, "view", _grips_of_the_forgotten_show)),
    mutant("a merge keeps one side's versions", (ops, "merge", _merge_keeps_one_side)),
    mutant("a merge adds totals up", (ops, "merge", _merge_adds_totals)),
    mutant("of two events with one id the last to arrive counts", (ops, "first_event", _twins_by_arrival)),
    mutant("of two grips with one id the last to arrive counts", _applying(OpType.GRIP, _last_grip_counts)),
    mutant("a decision settles nothing", (ops, "memory_body", _settles_nothing)),
    mutant("a new incarnation counts again", (History, "uncounted", _all_counted_again)),
    mutant("a new incarnation leaves its stamps behind", (ops, "readdressed", _stamps_left_behind)),
    mutant("the twelfth op of a page is skipped", (Device, "pull", _oldest_of_page_skipped)),
    mutant("a rebuild forgets what was forgotten", (Device, "rebuild", _rebuild_without_tombstones)),
    mutant("a rebuild reads own ops only", (Device, "rebuild", _rebuild_from_own_ops_only)),
    mutant("sent is taken for acknowledged", (Device, "push", _acked_all)),
    mutant("no answer is taken for yes", (Device, "push", _acked_without_answer)),
    mutant("ops are sealed again for a second try", (Device, "push", _resealed)),
    mutant("nobody heals", (Device, "heal", _no_heal)),
    mutant("only the owner heals a lane", (Device, "heal", _heal_own_lane_only)),
)
