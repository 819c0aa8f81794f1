"""What is fuzzed: each decoder with what it is fed, and what must come of it whatever that is.

`take` raises nothing but a ScrubjayError that it answers for itself; anything else that leaves it is a crash. Where the
second decoder reads the same bytes, both have to agree, and a `DisagreementError` is a crash too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import mutators
from mutators import any_of, as_tree, msgpack, mutated, scrambled

from scrubjay.store import received, rows
from scrubjay_shared import account, envelope, ops, sealing, segment, snapshot, teams, wire
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Header, ObjectKind, Suite
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.records import Op
from scrubjay_sync import packing
from scrubjay_sync.keys.keypairs import RootKey
from scrubjay_sync.keys.keyring import digest_of, open_keyring


def _beside(name: str) -> ModuleType:
    called = f"scrubjay_protocol_{Path(name).stem}"
    if called not in sys.modules:
        spec = importlib.util.spec_from_file_location(called, Path(__file__).parent.parent / name)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(name)
        sys.modules[called] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[called])
    return sys.modules[called]


make, second = _beside("golden/make.py"), _beside("second_decoder.py")


class DisagreementError(AssertionError):
    """The two decoders say different things of the same bytes."""


@dataclass(frozen=True)
class Decoder:
    """Something that reads what others wrote. `draw` makes an input; `take` reads it and says what came of it."""

    draw: Callable[[Random], bytes]
    take: Callable[[bytes], str]


def _first(read: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "", read()
    except ScrubjayError as error:
        if not error.hint:
            raise DisagreementError("an error without a hint") from error
        return error.code, None


def _second(read: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "", read()
    except second.Refused as error:
        # Writers use no extensions and nest a few levels; what readers do with them is theirs.
        own = "MessagePack type" in str(error) or "nests too deeply" in str(error) or "no scalar" in str(error)
        return "either" if own else error.code, None


def _agreed(ours: tuple[str, Any], theirs: tuple[str, Any]) -> str:
    if theirs[0] != "either" and (ours[0] != theirs[0] or repr(ours[1]) != repr(theirs[1])):
        raise DisagreementError(f"{ours[0] or 'taken'} here, {theirs[0] or 'taken'} there")
    return ours[0] or "taken"


# --- objects ----------------------------------------------------------------------------------------------------------

_STANDING = make.committed("objects.json")
_SNAPSHOT = make.committed("snapshot.json")
_OBJECTS = [
    bytes.fromhex(one["bytes"])
    for one in (*_STANDING["objects"], *_SNAPSHOT["chunks"], _SNAPSHOT["manifest"], _SNAPSHOT["manifest"])
]
_FIELDS = [one.name for one in fields(Header)]
_KEYS = {0: make.KEY_0, 1: make.KEY_1}


def _header_changed(rng: Random) -> bytes:
    one = envelope.parse(rng.choice(_OBJECTS))
    changes: dict[str, Any] = {}
    for name in rng.sample(_FIELDS, rng.choice((1, 1, 2, 4))):
        held = getattr(one.header, name)
        if isinstance(held, bytes):
            changes[name] = rng.choice((bytes(len(held)), rng.randbytes(len(held)), mutators.flipped(held, rng)))
        else:
            width = {"suite": 8, "kind": 8, "flags": 16, "epoch": 32, "body_len": 32}.get(name, 64)
            changes[name] = rng.choice(
                (held + 1, held ^ 1 << rng.randrange(width), rng.choice(mutators.NUMBERS), rng.randrange(9))
            ) % (1 << width)
    body = one.body if rng.random() < 0.5 else scrambled(one.body, rng)
    if rng.random() < 0.7:
        changes["body_len"] = len(body)
    return envelope.assemble(
        replace(one.header, **changes), body, make.SIGN if rng.random() < 0.5 else lambda _: bytes(64)
    ).data


def _draw_objects(rng: Random) -> bytes:
    pages = [
        any_of(rng, lambda: rng.choice(_OBJECTS), lambda: _header_changed(rng)) for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    page = b"".join(pages)
    return page if rng.random() < 0.5 else scrambled(page, rng)


def _take_objects(data: bytes) -> str:
    ours = _first(lambda: [one.link for one in envelope.split(data)])
    said = _agreed(ours, _second(lambda: [one.link for one in second.objects(data)]))
    if said != "taken":
        return said
    run = list(envelope.split(data))
    if b"".join(one.data for one in run) != data:
        raise DisagreementError("an object is not the bytes it was read from")
    if not run:
        return "nothing"
    n, prev = run[0].header.n_from - 1, run[0].header.prev
    code, _ = _first(lambda: envelope.check_run(run, n=n, prev=prev, keys=lambda _: [make.PUBLIC]))
    for one in run:
        _first(lambda one=one: _read(one, _KEYS.get(one.header.epoch, make.KEY_0)))
    return code or "taken"


def _read(one: envelope.Envelope, key: bytes) -> Any:
    """Open an object as the engine does that asked for one of its kind."""
    if one.header.kind == ObjectKind.SNAPSHOT_MANIFEST:
        return packing.opened_manifest(one, key)
    if one.header.kind == ObjectKind.SNAPSHOT_CHUNK:
        return received.ready_chunk(snapshot.decode_chunk(sealing.unseal(one, key=key)))
    return packing.opened(one, key)


# --- payloads ---------------------------------------------------------------------------------------------------------

SLOW_BYTES = 20_000
"""Above this a payload is not given to the second decoder, which would take most of the time and count as slow."""
_PAYLOADS = [bytes.fromhex(one["payload"]) for one in _STANDING["objects"]]
_SQUEEZED = [segment.compress(one)[0] for one in [*_PAYLOADS, bytes(200_000), b"ab" * 300_000]]
_ENTRIES = [as_tree([list(entry) for entry in segment.decode(one)]) for one in _PAYLOADS]


def _draw_payload(rng: Random) -> bytes:
    if rng.random() < 0.01:
        return (
            b"\0\xdd"
            + rng.choice((10, 70_000, 100_000, 100_001, 10_000_000)).to_bytes(4, "big")
            + b"\x92\x01\xc0" * rng.choice((10, 100_000))
        )
    match rng.randrange(3):
        case 0:
            return b"\0" + any_of(
                rng, lambda: msgpack(mutated(rng.choice(_ENTRIES), rng)), lambda: scrambled(rng.choice(_PAYLOADS), rng)
            )
        case 1:
            return b"\1" + scrambled(rng.choice(_SQUEEZED), rng)
        case _:
            padded = segment.pad(rng.choice(_PAYLOADS)[: rng.choice((0, 1, 400, 2000))])
            return b"\2" + any_of(
                rng, lambda: padded, lambda: scrambled(padded, rng), lambda: rng.randbytes(4) + padded[4:]
            )


def _take_payload(data: bytes) -> str:
    kind, data = data[:1], data[1:]
    if kind == b"\0" and len(data) > SLOW_BYTES:
        return _first(lambda: segment.decode(data))[0] or "taken"
    if kind == b"\0":
        return _agreed(_first(lambda: segment.decode(data)), _second(lambda: second.entries(data)))
    if kind == b"\1":
        code, text = _first(lambda: segment.decompress(data, envelope.ZSTD))
        return code or _first(lambda: segment.decode(text))[0] or "taken"
    code, found = _first(lambda: segment.unpad(data))
    if not code and segment.pad(found) != data:
        raise DisagreementError("padding that is not what padding makes")
    return code or "taken"


_BEACON = as_tree(
    {
        1: make.START,
        2: [[make.SCOPE, make.DEVICE, 4, bytes(32)], [make.SCOPE, make.OTHER, 1, bytes(32)]],
        3: 7,
        4: bytes(32),
    }
)
_CHUNKS = [bytes.fromhex(one["payload"]) for one in (*_SNAPSHOT["chunks"], *_SNAPSHOT["refused"])]
_CHUNK_TREES = [as_tree(second.unpacked(one)) for one in _CHUNKS]
_MANIFEST = bytes.fromhex(_SNAPSHOT["manifest"]["payload"])
_MANIFEST_TREE = as_tree(second.unpacked(_MANIFEST))
_PART = as_tree([[5, (0).to_bytes(4, "big") + (2).to_bytes(4, "big") + b"abc"]])


def _draw_opened(rng: Random) -> bytes:
    kind, trees = rng.choice(
        (
            (ObjectKind.SEGMENT, (_BEACON, _PART, rng.choice(_ENTRIES))),
            (ObjectKind.PACK, (_BEACON, _PART, rng.choice(_ENTRIES))),
            (ObjectKind.BEACON, (_BEACON, _BEACON, _PART, rng.choice(_ENTRIES))),
            (ObjectKind.SNAPSHOT_CHUNK, (_BEACON, *_CHUNK_TREES, *_CHUNK_TREES)),
            (ObjectKind.SNAPSHOT_MANIFEST, (_BEACON, _MANIFEST_TREE, _MANIFEST_TREE)),
        )
    )
    tree = rng.choice(trees)
    body = any_of(rng, lambda: msgpack(mutated(tree, rng)), lambda: scrambled(msgpack(tree), rng))
    flags = rng.choice((0, 0, 1, 2, 2, 3, 4, 0x100, 0x200))
    if flags & 1 and rng.random() < 0.8:
        body = segment.compress(body)[0]
    header = Header(
        suite=Suite.OPEN, kind=kind, account=make.ACCOUNT, scope=make.SCOPE, device=make.DEVICE, n_from=1,
        n_to=1, prev=bytes(32), flags=flags, body_len=len(body),
    )  # fmt: skip
    return envelope.assemble(header, body, lambda _: bytes(64)).data


def _take_opened(data: bytes) -> str:
    return _first(lambda: _read(envelope.parse(data), b""))[0] or "taken"


# --- the account log --------------------------------------------------------------------------------------------------

_LOG = [bytes.fromhex(one["bytes"]) for one in make.committed("account.json")["entries"]]
_STATES = account.extended((), _LOG)
_SECOND_STATES: list[Any] = [second.Log()]
for _entry in _LOG:
    _SECOND_STATES.append(second.extended(_SECOND_STATES[-1], _entry))
_TREES = [as_tree(second.unpacked(one[:-128])) for one in _LOG]
_SIGNS = [sign for _, _, sign in (*make.ASK, *make.RSK)]


def _draw_account(rng: Random) -> bytes:
    place = rng.randrange(len(_LOG))
    if rng.random() < 0.15:
        return bytes([place]) + scrambled(_LOG[place], rng)
    tree = list(rng.choice(_TREES))
    if place:
        tree[0], tree[1] = place, _STATES[place - 1].head
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        at = rng.choice((2, 3, 3, 3, 3, 4, 5, rng.randrange(6)))
        tree[at] = mutated(tree[at], rng)
    text = msgpack(tree)
    if rng.random() < 0.05:
        text = scrambled(text, rng)
    state = _STATES[max(place - 1, 0)]
    fitting = {make.ASK[one][1]: make.ASK[one][2] for one in range(4)} | {
        make.RSK[one][1]: make.RSK[one][2] for one in range(3)
    }
    sign = rng.choice((fitting[state.ask], fitting[state.ask], fitting[state.rsk], rng.choice(_SIGNS)))
    cosign = rng.choice((make.SIGN, make.SIGN, make.OTHER_SIGN, make.RSK[0][2], sign))
    signed = sign(b"sjs/1/log" + make.ACCOUNT + text) + cosign(b"sjs/1/author" + make.ACCOUNT + text)
    return bytes([place]) + text + signed


def _take_account(data: bytes) -> str:
    place, data = data[0] % len(_LOG), data[1:]
    ours = _first(lambda: make.state_of(account.extended(_STATES[:place], [data], Millis(make.START))[-1]))
    theirs = _second(lambda: second.extended(_SECOND_STATES[place], data, make.START).shown())
    _first(lambda: account.extended(_STATES[:place], [data], Millis(make.START), fresh=True))
    return _agreed(ours, theirs)


# --- ops --------------------------------------------------------------------------------------------------------------

_OPS = [
    (one.device, one.seq, ops.encode(replace(one, body=ops.caused(one.body, cause))))
    for _, one in make.every_op()
    for cause in (None, make.CAUSE)
]
_OP_TREES = [as_tree(second.unpacked(data)) for _, _, data in _OPS]
_DEVICES = (make.DEVICE.hex(), make.OTHER.hex())


def _draw_ops(rng: Random) -> bytes:
    history = []
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        tree = list(rng.choice(_OP_TREES))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            at = rng.choice((0, 3, 4, 4, 4, 4, 4, rng.randrange(5)))
            tree[at] = mutated(tree[at], rng)
        data = msgpack(tree)
        history.append([rng.randrange(2), data if rng.random() < 0.9 else scrambled(data, rng)])
    return msgpack(history)


def _take_ops(data: bytes) -> str:
    history, codes = [], set()
    for seq, (device, one) in enumerate(second.unpacked(data), 1):
        code, read = _first(lambda one=one, device=device, seq=seq: ops.decode(one, device=_DEVICES[device], seq=seq))
        codes.add(code)
        theirs = _second(lambda one=one: second.op(one))
        if read is None:
            if theirs[0] == "":
                raise DisagreementError("an op is refused here and read there")
            continue
        if theirs[0] not in {"", "either"} or (
            theirs[0] == "" and repr(theirs[1]) != repr((read.type, read.version, read.op_id, read.hlc, read.body))
        ):
            raise DisagreementError("an op reads otherwise there")
        if theirs[0] == "" and second.cause(theirs[1][4]) != ops.cause_of(read):
            raise DisagreementError("an op has another cause there")
        if ops.problem(read):
            codes.add("kept")
        else:
            codes.add("applied")
            history.append(read)
    _apply(history)
    return " ".join(sorted(codes - {""})) or "taken"


def _apply(history: list[Op]) -> None:
    """Do with ops all that a store does with those it applies."""
    for one in history:
        ops.decode(ops.encode(one), device=one.device, seq=one.seq)
        ops.entity_of(one)
        ops.owner_of(one)
        if one.type == ops.OpType.MEMORY:
            ops.fields_of(one)
        stamps = ops.stamps_of(one)
        ops.readdressed(one, make.OTHER.hex(), 1, stamps)
    view = ops.view(ops.fold(history))
    for event in view.events.values():
        _storable(rows.event_row(event))
        rows.event_tokens(event)
    for memory in view.memories.values():
        _storable(rows.memory_row(memory))
        rows.memory_tokens(memory)
    for grip in view.grips.values():
        _storable(rows.grip_row(grip))
    if len({(one.hlc, one.device) for one in history}) == len(history):
        other = ops.view(ops.merge(ops.fold(history[::2]), ops.fold(history[1::2][::-1])))
        if _shown(view) != _shown(other):
            raise DisagreementError("the order of ops shows")


def _shown(view: ops.View) -> str:
    return repr(
        [
            sorted((str(key), repr(item)) for key, item in getattr(view, name).items())
            for name in ("events", "memories", "aliases", "grips", "conflicts")
        ]
    )


def _storable(row: tuple[Any, ...]) -> None:
    for one in row:
        if isinstance(one, str):
            one.encode()
        elif isinstance(one, int):
            one.to_bytes(8, "big", signed=True)
        elif not isinstance(one, float | bytes | None):
            raise DisagreementError(f"a column of type {type(one).__name__}")


# --- JSON -------------------------------------------------------------------------------------------------------------


def _sample(kind: Any, rng: Random) -> Any:
    """Return a value of a record's field, as JSON has it."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return mutators.Map((one.name, _sample(hints[one.name], rng)) for one in fields(kind))
    if get_origin(kind) is tuple:
        return [_sample(get_args(kind)[0], rng) for _ in range(rng.randrange(3))]
    simple: Mapping[Any, tuple[Any, ...]] = {
        bytes: ("", "AAAA", "q83vEjRWeJCrze8SNFZ4kA==", "AA", "A===", "☃"),
        str: mutators.TEXTS,
        int: (0, 1, 1_760_000_000_000, -1, 1 << 64),
        float: (0.5, 1, 1e300),
        bool: (True, False),
    }
    return rng.choice(simple.get(kind, (None, "x")))


_RECORDS = [one for one in vars(wire).values() if isinstance(one, type) and is_dataclass(one)]


def _draw_json(rng: Random) -> bytes:
    at = rng.randrange(len(_RECORDS))
    tree = _sample(_RECORDS[at], rng)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        tree = mutated(tree, rng)
    text = mutators.json_text(tree, rng)
    return bytes([at]) + (text if rng.random() < 0.8 else scrambled(text, rng))


def _take_json(data: bytes) -> str:
    code, found = _first(lambda: wire.read(data[1:], _RECORDS[data[0] % len(_RECORDS)]))
    if code not in {"", "malformed"}:
        raise DisagreementError(code)
    if found is not None and type(found) is not _RECORDS[data[0] % len(_RECORDS)]:
        raise DisagreementError("another record")
    return code or "taken"


# --- keyrings ---------------------------------------------------------------------------------------------------------

_ROOT = RootKey(version=2, secret=make.fixed("root", 32), ask_seed=make.ASK[1][0])
_KEYRING = as_tree(second.unpacked(bytes.fromhex(make.committed("keys.json")["keyring"]["payload"])))


def _draw_keyring(rng: Random) -> bytes:
    tree = _KEYRING
    for _ in range(rng.choice((0, 1, 2))):
        tree = mutated(tree, rng)
    return msgpack(tree) if rng.random() < 0.7 else scrambled(msgpack(tree), rng)


def _take_keyring(data: bytes) -> str:
    header = Header(
        suite=Suite.SEALED, kind=ObjectKind.KEYRING, account=make.ACCOUNT, scope=bytes(16), device=make.DEVICE,
        n_from=3, n_to=3, prev=envelope.ZERO, epoch=_ROOT.version,
    )  # fmt: skip
    sealed = sealing.seal(header, data, key=_ROOT.wrap_key, salt=bytes(32), sign=lambda _: bytes(64)).data
    return (
        _first(lambda: open_keyring(sealed, account=make.ACCOUNT, version=3, digest=digest_of(sealed), root=_ROOT))[0]
        or "taken"
    )


_CHECKPOINTS = make.committed("checkpoint.json")["checkpoints"]
_STATED = [bytes.fromhex(one["state"]) for one in _CHECKPOINTS]
_STATE_TREES = [as_tree(second.unpacked(one)) for one in _STATED]


def _draw_state(rng: Random) -> bytes:
    place = rng.randrange(len(_STATED))
    if rng.random() < 0.3:
        return bytes([place]) + scrambled(_STATED[place], rng)
    tree = _STATE_TREES[place]
    for _ in range(rng.choice((0, 1, 1, 2))):
        tree = mutated(tree, rng)
    return bytes([place]) + msgpack(tree)


def _take_state(data: bytes) -> str:
    place, data = data[0] % len(_STATED), data[1:]
    code, state = _first(lambda: account.state_of(data))
    if state is not None and account.state_bytes(state) != data:
        raise DisagreementError("a state is read from bytes that are not its own")
    entry = bytes.fromhex(_CHECKPOINTS[place]["bytes"])
    taken, _ = _first(lambda: account.after_checkpoint(entry, data))
    if not taken and data != _STATED[place]:
        raise DisagreementError("a checkpoint takes another state than it states")
    return str(code or taken or "taken")


# --- teams ------------------------------------------------------------------------------------------------------------

_TEAM_LOG = [bytes.fromhex(one["bytes"]) for one in make.committed("teams.json")["entries"]]
_TEAM_STATES: list[Any] = [None]
_SECOND_TEAMS: list[Any] = [second.Team()]
for _entry in _TEAM_LOG:
    _TEAM_STATES.append(teams.extended(_TEAM_STATES[-1], [_entry]))
    _SECOND_TEAMS.append(second.team_extended(_SECOND_TEAMS[-1], _entry))
_TEAM_TREES = [as_tree(second.unpacked(one[:-64])) for one in _TEAM_LOG]
_PEOPLE = {account_id: sign for account_id, (_, _, sign) in make.PEOPLE.values()}


def _draw_teams(rng: Random) -> bytes:
    place = rng.randrange(len(_TEAM_LOG))
    if rng.random() < 0.15:
        return bytes([place]) + scrambled(_TEAM_LOG[place], rng)
    tree = list(rng.choice(_TEAM_TREES))
    if place:
        tree[0], tree[1] = place, _TEAM_STATES[place].head
    author = rng.choice(list(_PEOPLE))
    tree[4] = author
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        at = rng.choice((2, 3, 3, 3, 3, 4, rng.randrange(5)))
        tree[at] = mutated(tree[at], rng)
    text = msgpack(tree)
    if rng.random() < 0.05:
        text = scrambled(text, rng)
    team = _TEAM_STATES[place].team if place else teams.team_id(text)
    sign = rng.choice((_PEOPLE[author], _PEOPLE[author], _PEOPLE[author], make.RENEWED[2]))
    return bytes([place]) + text + sign(b"sjs/1/team/log" + team + text)


def _take_teams(data: bytes) -> str:
    place, data = data[0] % len(_TEAM_LOG), data[1:]
    ours = _first(lambda: make.team_state_of(teams.extended(_TEAM_STATES[place], [data])))
    theirs = _second(lambda: second.team_extended(_SECOND_TEAMS[place], data).shown())
    return _agreed(ours, theirs)


# --- snapshots --------------------------------------------------------------------------------------------------------


def _draw_snapshot(rng: Random) -> bytes:
    kind = rng.randrange(2)
    place = rng.randrange(len(_CHUNKS))
    whole, tree = (_CHUNKS[place], _CHUNK_TREES[place]) if kind else (_MANIFEST, _MANIFEST_TREE)
    return bytes([kind]) + any_of(rng, lambda: msgpack(mutated(tree, rng)), lambda: scrambled(whole, rng))


def _take_snapshot(data: bytes) -> str:
    kind, data = data[0], data[1:]
    if not kind:
        return _agreed(_first(lambda: _manifest_of(data)), _second(lambda: second.manifest(data)))
    code, found = _first(lambda: snapshot.decode_chunk(data))
    plain = None if found is None else (found.device, [list(fields_of(one)) for one in found.events], found.others)
    said = _agreed((code, plain), _second(lambda: second.chunk(data)))
    if found is not None:
        received.ready_chunk(found)  # whatever it says, it is made ready or left out
    return said


def _manifest_of(payload: bytes) -> tuple[Any, ...]:
    header = make.snapshot_header(ObjectKind.SNAPSHOT_MANIFEST)
    sealed = sealing.seal(header, payload, key=make.KEY_1, salt=bytes(32), sign=lambda _: bytes(64), squeeze=False)
    found = packing.opened_manifest(sealed, make.KEY_1)
    chunks = [list(fields_of(one)) for one in found.chunks]
    return int(found.seen.at), found.seen.heads, found.seen.log_seq, found.seen.log_head, chunks


def fields_of(one: Any) -> tuple[Any, ...]:
    """Return the values of a record that stands as an array."""
    values: tuple[Any, ...] = msgspec.structs.astuple(one)
    return values


DECODERS: dict[str, Decoder] = {
    "objects": Decoder(_draw_objects, _take_objects),
    "payloads": Decoder(_draw_payload, _take_payload),
    "opened": Decoder(_draw_opened, _take_opened),
    "account": Decoder(_draw_account, _take_account),
    "state": Decoder(_draw_state, _take_state),
    "ops": Decoder(_draw_ops, _take_ops),
    "json": Decoder(_draw_json, _take_json),
    "teams": Decoder(_draw_teams, _take_teams),
    "snapshot": Decoder(_draw_snapshot, _take_snapshot),
    "keyring": Decoder(_draw_keyring, _take_keyring),
}
