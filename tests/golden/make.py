"""Makes the test vectors of SJS/1 from fixed keys, and refuses to change one without a new version.

    python tests/golden/make.py           write what is missing; stop if a vector that stands would change
    python tests/golden/make.py --check   write nothing, and say whether all stand as they are made

What the code draws at random comes from `entropy` here. HPKE and zstd cannot be held to exact bytes (the one draws its
own randomness, the other may compress better in its next release): such vectors are kept once made, and have to open
to what they were made of. Their sections are named in `KEPT`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scrubjay_shared import account, clock, envelope, ops, sealing, segment, snapshot, teams, tombstones, wire
from scrubjay_shared.account import EntryType, Signer
from scrubjay_shared.clock import Hlc, Millis
from scrubjay_shared.envelope import Envelope, Header, ObjectKind, Suite
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.ops import Counter, Field, OpType
from scrubjay_shared.parts import Part
from scrubjay_shared.records import Event, EventType, Grip, Op, Role, Trust
from scrubjay_sync import packing, words
from scrubjay_sync.keys.digests import heads_digest, pairing_commitment, pairing_digest
from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys, limited_keyring_of, seal_keyring, wrap_limited_keyring
from scrubjay_sync.keys.password import auth_key
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import wrap_root

FOLDER = Path(__file__).parent
VERSION = 2
"""Of the vectors. Raised with every change of a byte that stands, and told in docs/protocol.md."""
KEPT = {"objects.json": ("compressed", "beacon", "parts"), "keys.json": ("wraps",)}

Made = dict[str, Any]


def entropy(label: str) -> Callable[[int], bytes]:
    """Return a source of bytes that are the same every time: SHA-256 of a label and a counter."""
    place = 0

    def draw(count: int) -> bytes:
        nonlocal place
        place += 1
        return hashlib.shake_256(f"sjs/1/golden {label} {place}".encode()).digest(count)

    return draw


def fixed(label: str, count: int) -> bytes:
    """Return some bytes that are the same every time."""
    return entropy(label)(count)


def signing(label: str) -> tuple[bytes, bytes, Callable[[bytes], bytes]]:
    """Return the seed, the public key and the signature function of a name."""
    seed = fixed(label, 32)
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return seed, key.public_key().public_bytes_raw(), key.sign


ACCOUNT, SCOPE, OPEN_SCOPE = fixed("account", 16), fixed("scope", 16), fixed("open scope", 16)
DEVICE, OTHER = fixed("device", 16), fixed("other device", 16)
KEY_0, KEY_1 = fixed("scope key 0", 32), fixed("scope key 1", 32)
SEED, PUBLIC, SIGN = signing("device key")
OTHER_SEED, OTHER_PUBLIC, OTHER_SIGN = signing("other device key")
START = 1_760_000_000_000
IDS = [clock.ulid(Millis(START + place), fixed(f"id {place}", 10)) for place in range(6)]


# --- ops --------------------------------------------------------------------------------------------------------------


def op(seq: int, kind: OpType, body: dict[int, Any], device: bytes = DEVICE) -> Op:
    """Return an op of a device, stamped by its place."""
    hlc = Hlc((START + seq) << 16 | seq)
    return Op(
        device=device.hex(),
        seq=seq,
        op_id=clock.uuid7(clock.millis_of(hlc), fixed(f"op {seq}", 10)),
        hlc=hlc,
        type=int(kind),
        body=body,
    )


def event(place: int, text: str, **fields: Any) -> Event:
    """Return an event."""
    return Event(
        id=IDS[place],
        device=DEVICE.hex(),
        agent="claude-code",
        session_id="session-1",
        type=EventType.USER_MESSAGE,
        role=Role.USER,
        text=text,
        ts=Millis(START + place),
        dedupe_key=f"key-{place}",
        **fields,
    )


def every_op() -> list[tuple[str, Op]]:
    """Return one op of every type and shape, with a name each."""
    memory, source, other = IDS[2], IDS[0], IDS[1]
    stamp = ((START + 3) << 16 | 3, DEVICE.hex())
    foreign = ((START + 2) << 16, OTHER.hex())
    full: dict[Field, Any] = {
        Field.CONTENT: "Anna moved to Kraków in 2024. 🐦",
        Field.KIND: "observation",
        Field.TYPE: "fact",
        Field.SCOPE: "user",
        Field.RESOURCE_ID: None,
        Field.LAYER: "archive",
        Field.SALIENCE: 0.55,
        Field.CONFIDENCE: 1.0,
        Field.TOPIC: "people/anna",
        Field.TRUST: "user",
        Field.VALID_FROM: START - 1,
        Field.VALID_TO: None,
        Field.SUPERSEDED_BY: None,
        Field.CREATED_AT: START,
        Field.METADATA: {"n": [1, 2.5, None, True], "source_key": "a"},
        Field.NAME: "anna",
    }
    grip = Grip(
        id=IDS[3],
        memory_id=memory,
        event_id_start=source,
        event_id_end=other,
        span_start=0,
        span_end=12,
        excerpt="Anna moved…",
        source="rules/1",
        created_at=Millis(START),
    )
    return [
        (
            "event, every field",
            op(
                1,
                OpType.EVENT,
                ops.event_body(
                    event(
                        0,
                        "Anna moved to Kraków.",
                        project="proj_1",
                        utc_offset=-90,
                        trust=Trust.IMPORT,
                        metadata={"speaker": "Anna"},
                    )
                ),
            ),
        ),
        ("event, no optional field", op(2, OpType.EVENT, ops.event_body(event(1, "")))),
        ("memory, every field", op(3, OpType.MEMORY, ops.memory_body(memory, full))),
        (
            "memory, an edit that saw a value",
            op(
                4,
                OpType.MEMORY,
                ops.memory_body(
                    memory, {Field.CONTENT: "Anna lives in Gdańsk."}, {Field.CONTENT: stamp}, {Field.CONTENT: [foreign]}
                ),
            ),
        ),
        ("claim", op(5, OpType.CLAIM, ops.claim_body(memory, "anna"))),
        (
            "unclaim",
            op(6, OpType.UNCLAIM, ops.unclaim_body(memory, "anna", [((START + 5) << 16 | 5, DEVICE.hex()), foreign])),
        ),
        ("count", op(7, OpType.COUNT, ops.count_body(memory, Counter.ACCESS, 300, Millis(START + 7)))),
        ("grip", op(8, OpType.GRIP, ops.grip_body(grip))),
        ("blank", op(9, OpType.BLANK, ops.blank_body(source, [(5, 10), (0, 4)]))),
        ("forget, of a memory or an event", op(10, OpType.FORGET, ops.forget_body(other))),
        ("forget, of a grip", op(11, OpType.FORGET, ops.forget_body(IDS[3], memory))),
        (
            "a type that is not known yet",
            Op(
                device=DEVICE.hex(),
                seq=12,
                op_id=bytes(16),
                hlc=Hlc(1),
                type=200,
                version=3,
                body={1: bytes(16), 99: ["x"]},
            ),
        ),
    ]


def made_ops() -> Made:
    """Return the vectors of ops: their bytes, and what the bytes say."""
    return {
        "device": DEVICE.hex(),
        "ops": [
            {
                "name": name,
                "seq": one.seq,
                "bytes": ops.encode(one).hex(),
                "type": one.type,
                "version": one.version,
                "op_id": one.op_id.hex(),
                "hlc": str(one.hlc),
                "body": plain(one.body),
                "applies": ops.problem(one) == "",
            }
            for name, one in every_op()
        ],
        "stamps": [
            {"last": str(last), "now": now, "tick": str(clock.tick(Hlc(last), Millis(now)))}
            for last, now in (
                (0, 0),
                (5, 0),
                (START << 16, START),
                ((START << 16) + 0xFFFF, START),
                (START + 1 << 16, START),
            )
        ],
        "received": [
            {
                "last": str(last),
                "remote": str(remote),
                "now": now,
                "clock": str(clock.receive(Hlc(last), Hlc(remote), Millis(now))),
            }
            for last, remote, now in (
                (0, (START + 600_000) << 16, START),
                (0, (START + 600_001) << 16, START),
                (9, 8, START),
            )
        ],
        "ulids": [{"text": text, "bytes": clock.ulid_bytes(text).hex()} for text in IDS],
    }


CAUSE = f"import:{IDS[5]}"


def made_causes() -> Made:
    """Return ops of every type with a cause, ops under whose key 0 something else stands, and one of a later version.

    Each says what it would without: `same_as` is the name of the op of ops.json that folds to the same.
    """
    told = [
        (name, f"{name}, with a cause", replace(one, body=ops.caused(one.body, CAUSE)))
        for name, one in every_op()
        if one.version == ops.VERSION
    ]
    name, plain_op = every_op()[2]
    wrong: list[tuple[str, Any]] = [
        ("a number", 7),
        ("nil", None),
        ("a map", {1: CAUSE}),
        ("bytes", CAUSE.encode()),
        ("a text without a colon", "import"),
        ("a kind with a capital", CAUSE.capitalize()),
        ("a kind of 33 letters", "i" * 33 + CAUSE[6:]),
        ("no kind", CAUSE[6:]),
        ("an id with a letter too few", CAUSE[:-1]),
        ("an id with a U", CAUSE[:-1] + "U"),
        ("an id of 130 bits", "import:8" + CAUSE[8:]),
        ("a line end", CAUSE + "\n"),
    ]
    told += [(name, f"no cause: {why}", replace(plain_op, body={**plain_op.body, 0: value})) for why, value in wrong]
    told.append((name, "a cause that stands first", replace(plain_op, body={0: CAUSE, **plain_op.body})))
    told.append(("", "a version that is not known yet", replace(plain_op, version=2)))
    return {
        "device": DEVICE.hex(),
        "ops": [
            {
                "name": name,
                "same_as": same_as,
                "seq": one.seq,
                "bytes": ops.encode(one).hex(),
                "cause": ops.cause_of(one),
                "applies": ops.problem(one) == "",
            }
            for same_as, name, one in told
        ],
    }


def plain(value: Any) -> Any:
    """Return a value of a body as JSON can say it: bytes as {"hex": …}, maps as lists of pairs."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, dict):
        return {"map": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def made_merges() -> Made:
    """Return histories and what every device must show of them, whatever order their ops come in."""
    memory, source = IDS[2], IDS[0]
    born = {Field.CONTENT: "one", Field.CREATED_AT: START}
    first = op(1, OpType.MEMORY, ops.memory_body(memory, born))
    stamp = (int(first.hlc), first.device)
    ours = op(2, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "two"}, {Field.CONTENT: stamp}))
    theirs = op(3, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "three"}, {Field.CONTENT: stamp}), OTHER)
    settled = op(
        4,
        OpType.MEMORY,
        ops.memory_body(
            memory,
            {Field.CONTENT: "four"},
            {Field.CONTENT: (int(theirs.hlc), theirs.device)},
            {Field.CONTENT: [(int(ours.hlc), ours.device)]},
        ),
    )
    twin = op(5, OpType.MEMORY, ops.memory_body(IDS[4], born), OTHER)
    told = op(6, OpType.EVENT, ops.event_body(event(0, "my key is 1234, keep it")))
    cases: list[tuple[str, list[Op]]] = [
        ("an edit of what was seen replaces it", [first, ours]),
        ("two edits of one value: the later shows, the other is an open conflict", [first, ours, theirs]),
        ("an edit that saw both settles it", [first, ours, theirs, settled]),
        ("forget wins over a later edit", [first, op(5, OpType.FORGET, ops.forget_body(memory)), settled]),
        (
            "the older claim holds the name, the younger shows with a number",
            [
                first,
                twin,
                op(7, OpType.CLAIM, ops.claim_body(memory, "anna")),
                op(8, OpType.CLAIM, ops.claim_body(IDS[4], "anna"), OTHER),
            ],
        ),
        (
            "counters add up over devices",
            [
                first,
                op(7, OpType.COUNT, ops.count_body(memory, Counter.ACCESS, 3, Millis(START + 7))),
                op(8, OpType.COUNT, ops.count_body(memory, Counter.ACCESS, 2, Millis(START + 8))),
                op(9, OpType.COUNT, ops.count_body(memory, Counter.ACCESS, 4, Millis(START + 9)), OTHER),
            ],
        ),
        ("passages that were erased stay erased", [told, op(7, OpType.BLANK, ops.blank_body(source, [(10, 14)]))]),
    ]
    return {"cases": shown_cases(cases)}


def shown_cases(cases: list[tuple[str, list[Op]]]) -> list[Made]:
    """Return histories with what they show, as JSON."""
    return [
        {
            "name": name,
            "ops": [[one.device, one.seq, ops.encode(one).hex()] for one in history],
            "shows": shown(history),
        }
        for name, history in cases
    ]


def made_emptied() -> Made:
    """Return a write whose values were emptied, and histories with such writes, far stamps and clocks that were not set."""
    memory = IDS[2]
    born = {Field.CONTENT: "one", Field.CREATED_AT: START}
    first = op(1, OpType.MEMORY, ops.memory_body(memory, born))
    stamp = (int(first.hlc), first.device)
    values = {Field.CONTENT: "two", Field.SALIENCE: 0.5, Field.TOPIC: "Anna"}
    second = op(2, OpType.MEMORY, ops.caused(ops.memory_body(memory, values, {Field.CONTENT: stamp}), CAUSE))
    late = op(3, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "three"}, {Field.CONTENT: stamp}), OTHER)
    seen = {Field.CONTENT: (int(second.hlc), second.device), Field.TOPIC: (int(second.hlc), second.device)}
    third = op(4, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "four", Field.TOPIC: None}, seen))
    empty = ops.emptied(second, {Field.TOPIC, Field.CONTENT})
    far = replace(op(3, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "far"}), OTHER), hlc=Hlc(ops.MAX_HLC))
    above = {Field.CONTENT: (ops.MAX_HLC, OTHER.hex())}
    near = op(5, OpType.MEMORY, ops.memory_body(memory, {Field.CONTENT: "near"}, above))
    twin = op(5, OpType.MEMORY, ops.memory_body(IDS[4], born), OTHER)
    unset = replace(op(8, OpType.CLAIM, ops.claim_body(IDS[4], "anna"), OTHER), hlc=Hlc(65_536))
    claim = op(9, OpType.CLAIM, ops.claim_body(memory, "anna"))
    return {
        "device": DEVICE.hex(),
        "whole": ops.encode(second).hex(),
        "emptied": ops.encode(empty).hex(),
        "registers": [int(Field.CONTENT), int(Field.TOPIC)],
        "cases": shown_cases(
            [
                ("an emptied write and what it had seen show no more", [first, empty, third]),
                ("what it had seen is no conflict without what replaced it", [first, empty]),
                ("what it had not seen is one", [first, empty, late, third]),
                ("an edit comes after a stamp that no clock has", [first, far, near]),
                ("what did not see it stays below", [first, far, late]),
                ("a claim of a clock that was not set comes last", [first, twin, unset, claim]),
            ]
        ),
    }


def shown(history: list[Op]) -> Made:
    """Return what a set of ops shows, as JSON."""
    view = ops.view(ops.fold(history))
    return {
        "memories": {one.id: [one.content, one.access_count] for one in view.memories.values()},
        "conflicts": {
            f"{entity} {key}": [str(hlc) + " " + device for hlc, device in open_]
            for (entity, key), open_ in view.conflicts.items()
        },
        "names": {name: entity for name, (entity, _) in sorted(ops.holders(ops.fold(history)).items())},
        "events": {one.id: one.text for one in view.events.values()},
    }


# --- objects ----------------------------------------------------------------------------------------------------------


def made_objects() -> Made:
    """Return the vectors of objects: two lanes, packs, and objects that must be refused."""
    entries = [(one.seq, ops.encode(one)) for _, one in every_op()]
    sealed = lane(SCOPE, Suite.SEALED, entries, squeeze=False)
    spoken = lane(OPEN_SCOPE, Suite.OPEN, entries, squeeze=False)
    packs = [pack(sealed[:3], entries[:8]), pack(spoken[:3], entries[:8])]
    return {
        "account": ACCOUNT.hex(),
        "scope": SCOPE.hex(),
        "open_scope": OPEN_SCOPE.hex(),
        "device": DEVICE.hex(),
        "sign_seed": SEED.hex(),
        "sign_pub": PUBLIC.hex(),
        "keys": {"0": KEY_0.hex(), "1": KEY_1.hex()},
        "lane_root": envelope.lane_root(ACCOUNT, SCOPE, DEVICE).hex(),
        "open_lane_root": envelope.lane_root(ACCOUNT, OPEN_SCOPE, DEVICE).hex(),
        "objects": [described(one) for one in (*sealed, *spoken, *packs)],
        "compressed": [described(one) for one in lane(SCOPE, Suite.SEALED, entries, squeeze=True)],
        "refused": refused_objects(sealed, spoken),
        **made_beacon_and_parts(),
        "padded": [
            [length, len(segment.pad(bytes(length)))]
            for length in (0, 1, 507, 508, 509, 600, 1000, 1020, 1021, 4092, 4093, 65_532, 65_533, 100_000, 500_000)
        ],
        "padme": [
            [length, segment.padme(length)]
            for length in (0, 1, 2, 3, 9, 100, 511, 512, 513, 1000, 65_537, 100_000, 1_000_000)
        ],
    }


def lane(scope: bytes, suite: Suite, entries: list[segment.Entry], *, squeeze: bool) -> list[Envelope]:
    """Return a lane of four objects: a full segment, one with an erased op, an empty one of another epoch, a long one."""
    long = (20, ops.encode(op(20, OpType.EVENT, ops.event_body(event(5, "The bird hides seeds. " * 80)))))
    payloads: list[tuple[int, list[segment.Entry]]] = [
        (0, entries[:8]),
        (0, [(9, None), *entries[9:]]),
        (1, []),
        (1, [long]),
    ]
    prev, made = envelope.lane_root(ACCOUNT, scope, DEVICE), []
    for n, (epoch, payload) in enumerate(payloads, 1):
        header = Header(
            suite=suite,
            kind=ObjectKind.SEGMENT,
            account=ACCOUNT,
            scope=scope,
            device=DEVICE,
            epoch=epoch if suite == Suite.SEALED else 0,
            n_from=n,
            n_to=n,
            prev=prev,
        )
        one = sealing.seal(
            header,
            segment.encode(payload),
            key=(KEY_0, KEY_1)[epoch],
            salt=fixed(f"salt {n} {squeeze}", 32),
            sign=SIGN,
            squeeze=squeeze,
        )
        made.append(one)
        prev = one.link
    return made


def pack(covered: list[Envelope], entries: list[segment.Entry]) -> Envelope:
    """Return the pack that stands for some segments."""
    first, last = covered[0].header, covered[-1].header
    header = Header(
        suite=first.suite,
        kind=ObjectKind.PACK,
        account=ACCOUNT,
        scope=first.scope,
        device=DEVICE,
        n_from=first.n_from,
        n_to=last.n_to,
        prev=first.prev,
        tip=covered[-1].end,
    )
    return sealing.seal(
        header, segment.encode(entries), key=KEY_0, salt=fixed("salt of the pack", 32), sign=SIGN, squeeze=False
    )


def made_beacon_and_parts() -> Made:
    """Return a beacon at place 5 of the sealed lane, and after it an op in three parts."""
    signer = packing.Signer(sign=SIGN, entropy=entropy("beacon and parts"))
    seen = packing.Checkpoint(
        at=Millis(START),
        heads={(SCOPE, DEVICE): (4, fixed("end", 32)), (SCOPE, OTHER): (1, fixed("end 2", 32))},
        log_seq=7,
        log_head=fixed("log head", 32),
    )
    place = packing.SealContext(
        account=ACCOUNT, scope=SCOPE, device=DEVICE, n=5, prev=fixed("end", 32), suite=Suite.SEALED, epoch=1, key=KEY_1
    )
    beacon = packing.checkpoint(place, seen, signer).envelope
    one = op(21, OpType.EVENT, ops.event_body(event(5, "The bird hides seeds. " * 80)))
    frame, _ = segment.compress(ops.encode(one))
    parts, place = [], place.after(beacon)
    for number in range(3):
        parts.append(
            packing._part(
                place, Part(21, number, 3, frame[number * 50 : (number + 1) * 50 if number < 2 else None]), signer
            ).envelope
        )
        place = place.after(parts[-1])
    return {
        "beacon": {
            "bytes": beacon.data.hex(),
            "at": START,
            "heads": [
                [scope.hex(), device.hex(), n, tip.hex()] for (scope, device), (n, tip) in sorted(seen.heads.items())
            ],
            "log_seq": 7,
            "log_head": seen.log_head.hex(),
        },
        "parts": {"bytes": [part.data.hex() for part in parts], "seq": 21, "op": ops.encode(one).hex()},
    }


def described(one: Envelope) -> Made:
    """Return an object and all that can be told of it."""
    header = one.header
    payload = sealing.unseal(one, key=(KEY_0, KEY_1)[header.epoch])
    return {
        "bytes": one.data.hex(),
        "suite": header.suite,
        "kind": header.kind,
        "flags": header.flags,
        "scope": header.scope.hex(),
        "epoch": header.epoch,
        "n_from": header.n_from,
        "n_to": header.n_to,
        "prev": header.prev.hex(),
        "tip": header.tip.hex(),
        "salt": header.salt.hex(),
        "commit": header.commit.hex(),
        "body_len": header.body_len,
        "link": one.link.hex(),
        "end": one.end.hex(),
        "payload": payload.hex(),
        "entries": [[seq, None if data is None else data.hex()] for seq, data in segment.decode(payload)],
    }


def refused_objects(sealed: list[Envelope], spoken: list[Envelope]) -> list[Made]:
    """Return objects that a certified device signed and that are wrong all the same, each with the code of its refusal.

    Each stands as the first object of its lane, and is opened with the key of epoch 0.
    """
    first, said = sealed[0].header, spoken[0].header

    def sealed_by(padded: bytes, flags: int = 0, key: bytes = KEY_0) -> Envelope:
        bare = Header(
            suite=1,
            kind=1,
            account=ACCOUNT,
            scope=SCOPE,
            device=DEVICE,
            n_from=1,
            n_to=1,
            prev=first.prev,
            flags=flags,
            salt=fixed("salt of what is refused", 32),
            body_len=len(padded) + sealing.TAG_BYTES,
        )
        secret, nonce, commit = sealing._derived(key, bare.salt, bare.pack())
        bound = sealing.replace(bare, commit=commit)
        return envelope.assemble(bound, sealing.AESGCMSIV(secret).encrypt(nonce, padded, bound.pack()), SIGN)

    def with_header(**changes: Any) -> bytes:
        return envelope.assemble(sealing.replace(first, **changes), sealed[0].body, SIGN).data

    def open_body(body: bytes, flags: int = 0) -> bytes:
        return envelope.assemble(sealing.replace(said, body_len=len(body), flags=flags), body, SIGN).data

    good = segment.pad(segment.encode([(1, None)]))
    return [
        {"name": name, "bytes": data.hex(), "error": code}
        for name, data, code in (
            ("nothing but the header", sealed[0].head, "malformed"),
            ("the last byte is missing", sealed[0].data[:-1], "malformed"),
            ("a byte too many", sealed[0].data + b"S", "malformed"),
            ("another magic", b"SJS2" + sealed[0].data[4:], "malformed"),
            ("a suite that is not known", with_header(suite=2), "malformed"),
            ("a kind that is not known", with_header(kind=8), "malformed"),
            ("place 0", with_header(n_from=0, n_to=0), "malformed"),
            ("a segment of two places", with_header(n_to=2), "malformed"),
            ("a place beyond 2^63", with_header(n_from=1 << 63, n_to=1 << 63), "malformed"),
            ("a segment with a tip", with_header(tip=bytes([1]) * 32), "malformed"),
            (
                "an open object with a salt",
                envelope.assemble(sealing.replace(said, salt=bytes([1]) * 32), spoken[0].body, SIGN).data,
                "malformed",
            ),
            ("a body of more than half a megabyte", with_header(body_len=envelope.MAX_OBJECT_BYTES), "malformed"),
            ("place 2 where place 1 belongs", sealed[1].data, "broken_chain"),
            ("the root of another lane", with_header(prev=said.prev), "broken_chain"),
            ("signed by another device", envelope.assemble(first, sealed[0].body, OTHER_SIGN).data, "bad_signature"),
            ("signed with nothing", sealed[0].data[:-64] + bytes(64), "bad_signature"),
            ("a reader of version 2 is needed", sealed_by(good, flags=2 << 8).data, "update_needed"),
            ("sealed with another key", sealed_by(good, key=KEY_1).data, "wrong_key"),
            ("the commitment of another object", with_header(commit=sealed[1].header.commit), "wrong_key"),
            (
                "a body that was changed and signed again",
                envelope.assemble(first, sealed[0].body[:-1] + bytes([sealed[0].body[-1] ^ 1]), SIGN).data,
                "corrupt",
            ),
            ("no padding at all", sealed_by(b"").data, "malformed"),
            ("a length beyond the padding", sealed_by(bytes([255] * 4) + bytes(508)).data, "malformed"),
            ("less padding than the least", sealed_by(good[:100]).data, "malformed"),
            ("more padding than needed", sealed_by(good + bytes(512)).data, "malformed"),
            ("padding that is not zeros", sealed_by(good[:-1] + b"x").data, "malformed"),
            ("said to be compressed, and is not", sealed_by(good, flags=1).data, "malformed"),
            ("an op at place 0", open_body(segment.encode([(0, None)])), "malformed"),
            ("ops out of order", open_body(segment.encode([(2, None), (1, None)])), "malformed"),
            ("two ops of one place", open_body(segment.encode([(1, None), (1, b"")])), "malformed"),
            ("an op at a place beyond 2^63", open_body(b"\x91\x92\xcf\x80" + bytes(7) + b"\xc0"), "malformed"),
            ("an entry of three", open_body(b"\x91\x93\x01\xc0\xc0"), "malformed"),
            ("an op that is text", open_body(b"\x91\x92\x01\xa1x"), "malformed"),
            ("a payload that is a map", open_body(b"\x80"), "malformed"),
            ("a payload with bytes left over", open_body(b"\x90\x00"), "malformed"),
            ("a payload that ends too early", open_body(b"\x92\x92\x01\xc0"), "malformed"),
            (
                "more entries than an object may have",
                open_body(b"\xdd" + (segment.MAX_ENTRIES + 1).to_bytes(4, "big")),
                "malformed",
            ),
            ("compressed to more than an object may hold", open_body(bomb(), flags=1), "malformed"),
        )
    ]


def bomb() -> bytes:
    """Return the head of a zstd frame that says it unpacks to a little more than a payload may."""
    return b"\x28\xb5\x2f\xfd\xa0" + (segment.MAX_PAYLOAD_BYTES + 1).to_bytes(4, "little") + b"\x01\x00\x00"


# --- the account log --------------------------------------------------------------------------------------------------

ASK = [signing(f"account key {version}") for version in range(4)]
_, LIMITED_PUBLIC, LIMITED_SIGN = signing("limited key")
_, SECOND_PUBLIC, SECOND_SIGN = signing("second key")
RSK = [signing(f"recovery key {version}") for version in range(3)]
WRAP_PUB = [hashlib.shake_256(f"wrap key {place}".encode()).digest(1216) for place in range(5)]
DAY = 24 * 3600 * 1000
ORIGIN = "https://memory.example"


class Log:
    """An account log in the making."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.states: list[account.AccountState] = []
        self.described: list[Made] = []

    def at(self, place: int) -> Log:
        """Return the log as it was after an entry."""
        found = Log()
        found.entries, found.states = self.entries[: place + 1], self.states[: place + 1]
        return found

    def next(
        self,
        kind: int,
        body: dict[int, Any],
        sign: Callable[[bytes], bytes],
        signer: int = Signer.ASK,
        author: tuple[bytes, Callable[[bytes], bytes]] | None = None,
    ) -> bytes:
        """Return an entry that follows, without appending it. `author` made it: else the first device, or the code."""
        code = (account.CODE_AUTHOR, sign if self.states else RSK[0][2])
        by, cosign = author or (code if signer == Signer.RSK or not self.states else (DEVICE, SIGN))
        prev = self.states[-1].head if self.states else bytes(32)
        return account.entry(
            ACCOUNT,
            seq=len(self.entries),
            prev=prev,
            type=kind,
            body=body,
            sign=sign,
            signer=signer,  # type: ignore[arg-type]
            author=by,
            cosign=cosign,
        )

    def add(
        self,
        name: str,
        kind: int,
        body: dict[int, Any],
        sign: Callable[[bytes], bytes],
        signer: int = Signer.ASK,
        at: int = START,
        author: tuple[bytes, Callable[[bytes], bytes]] | None = None,
    ) -> None:
        """Append an entry."""
        data = self.next(kind, body, sign, signer, author)
        self.states = account.extended(self.states, [data], Millis(at))
        self.entries.append(data)
        state = self.states[-1]
        self.described.append(
            {
                "name": name,
                "bytes": data.hex(),
                "hash": state.head.hex(),
                "type": int(kind),
                "signer": int(signer),
                "author": account.read(data).author.hex(),
                "at": at,
                "body": short(plain(body)),
                "after": state_of(state),
            }
        )


def short(value: Any) -> Any:
    """Return a value with long bytes as their hash: the entry itself holds them."""
    if isinstance(value, dict):
        if len(value.get("hex", "")) > 128:
            return {"sha256": hashlib.sha256(bytes.fromhex(value["hex"])).hexdigest()}
        return {key: short(item) for key, item in value.items()}
    return [short(item) for item in value] if isinstance(value, list) else value


def state_of(state: account.AccountState) -> Made:
    """Return what a log adds up to, as JSON."""
    return {
        "version": state.version,
        "ask": state.ask.hex(),
        "rsk": state.rsk.hex(),
        "waiting": None
        if state.waiting_recovery is None
        else [state.waiting_recovery[0].hex(), state.waiting_recovery[2]],
        "origins": list(state.origins),
        "keyring": None if state.keyring is None else [state.keyring[0], state.keyring[1].hex()],
        "devices": {
            one.id.hex(): {
                "added": one.added,
                "added_by": one.added_by.hex(),
                "sign_pub": one.sign_pub.hex(),
                "wrap_pub": hashlib.sha256(one.wrap_pub).hexdigest(),
                "scopes": None if one.scopes is None else [scope.hex() for scope in one.scopes],
                "read_only": one.read_only,
                "ends": None
                if one.ends is None
                else {scope.hex(): [n, tip.hex()] for scope, (n, tip) in one.ends.items()},
                **instances_of(one),
            }
            for one in state.devices.values()
        },
        "scopes": {
            one.id.hex(): {
                "suite": one.suite,
                "home": one.home,
                "epoch": one.epoch,
                "deleted": one.deleted,
                "space": one.space,
            }
            for one in state.scopes.values()
        },
        "adopters": {
            f"{scope.hex()} {device.hex()}": [one.hex() for one in adopters]
            for (scope, device), adopters in state.adopters.items()
        },
    }


def instances_of(device: account.Device) -> Made:
    """Return how far the lanes of a device's instances count, where any were named."""
    ends = {f"{one.hex()} {scope.hex()}": [n, tip.hex()] for (one, scope), (n, tip) in device.instance_ends.items()}
    return {"instances": ends} if ends else {}


def genesis() -> dict[int, Any]:
    """Return the body of entry 0."""
    return account.genesis_body(ACCOUNT, ask=ASK[0][1], rsk=RSK[0][1], recovery_pub=WRAP_PUB[0], origin=ORIGIN)


def new_code(log: Log, place: int, wrap_pub: bytes, at: int = START, sign: int | None = None) -> dict[int, Any]:
    """Return the body that puts another recovery code in place; `sign` signs for it, else the code itself."""
    return account.recovery_body(
        ACCOUNT,
        log.states[-1].head,
        rsk=RSK[place][1],
        recovery_pub=wrap_pub,
        at=at,
        sign=RSK[place if sign is None else sign][2],
    )


def made_account() -> Made:
    """Return the vectors of an account log: every type of entry, and entries that must be refused."""
    log = Log()
    ask, rsk = [sign for _, _, sign in ASK], [sign for _, _, sign in RSK]
    device = account.device_body(DEVICE, sign_pub=PUBLIC, wrap_pub=WRAP_PUB[1])
    limited = account.device_body(
        fixed("limited", 16), sign_pub=LIMITED_PUBLIC, wrap_pub=WRAP_PUB[3], scopes=[SCOPE], read_only=True
    )
    log.add("genesis", EntryType.GENESIS, genesis(), ask[0])
    log.add("the first device", EntryType.DEVICE_ADD, device, ask[0])
    log.add("the home scope", EntryType.SCOPE_CREATE, account.scope_body(SCOPE, suite=Suite.SEALED, home=True), ask[0])
    log.add("the keyring", EntryType.KEYRING_SET, {1: 1, 2: fixed("keyring 1", 32)}, ask[0])
    log.add(
        "another device",
        EntryType.DEVICE_ADD,
        account.device_body(OTHER, sign_pub=OTHER_PUBLIC, wrap_pub=WRAP_PUB[2]),
        ask[0],
    )
    log.add("a limited device", EntryType.DEVICE_ADD, limited, ask[0])
    log.add(
        "a searchable scope",
        EntryType.SCOPE_CREATE,
        account.scope_body(OPEN_SCOPE, suite=Suite.OPEN, space="small/384"),
        ask[0],
    )
    log.add("another address", EntryType.ORIGIN_ADD, {1: "https://memory.example:8443"}, ask[0])
    log.add(
        "a device takes another wrap key",
        EntryType.DEVICE_REKEY,
        {1: OTHER, 2: WRAP_PUB[4]},
        ask[0],
        author=(OTHER, OTHER_SIGN),
    )
    log.add(
        "a device is revoked",
        EntryType.DEVICE_REVOKE,
        account.revoke_body(OTHER, {SCOPE: (7, fixed("tip", 32))}),
        ask[0],
    )
    log.add("a device adopts a lane", EntryType.LANE_ADOPT, {1: SCOPE, 2: OTHER, 3: DEVICE}, ask[0])
    log.add("the root key is changed", EntryType.ROTATE, {1: 2, 2: ASK[1][1]}, ask[0])
    log.add("a new epoch", EntryType.EPOCH_ADD, {1: SCOPE, 2: 1}, ask[1])
    log.add("a type that is not known yet", 99, {1: [1, "x"]}, ask[1])
    log.add("a scope is deleted", EntryType.SCOPE_DELETE, {1: OPEN_SCOPE}, ask[1])
    log.add(
        "another recovery code, without the old one",
        EntryType.RECOVERY_ROTATE,
        new_code(log, 1, WRAP_PUB[2]),
        ask[1],
    )
    log.add(
        "the old code voids it and all since the new epoch",
        EntryType.VOID,
        {1: 12, 2: 3, 3: ASK[2][1]},
        rsk[0],
        Signer.RSK,
        START + DAY,
    )
    log.add(
        "another recovery code, with the old one",
        EntryType.RECOVERY_ROTATE,
        new_code(log, 2, WRAP_PUB[3]),
        rsk[0],
        Signer.RSK,
    )
    third = account.device_body(fixed("recovered", 16), sign_pub=SECOND_PUBLIC, wrap_pub=WRAP_PUB[0])
    log.add("the code adds a device", EntryType.DEVICE_ADD, third, rsk[2], Signer.RSK)
    log.add("another code waits", EntryType.RECOVERY_ROTATE, new_code(log, 0, WRAP_PUB[1]), ask[2])
    log.add(
        "it is confirmed when its time has come",
        EntryType.RECOVERY_CONFIRM,
        {1: RSK[0][1], 2: START + 7 * DAY},
        ask[2],
        at=START + 7 * DAY,
    )
    log.add(
        "another code waits again",
        EntryType.RECOVERY_ROTATE,
        new_code(log, 1, WRAP_PUB[2], START + 7 * DAY),
        ask[2],
        at=START + 7 * DAY,
        author=(fixed("recovered", 16), SECOND_SIGN),
    )
    log.add(
        "with the device it is gone",
        EntryType.DEVICE_REVOKE,
        account.revoke_body(fixed("recovered", 16), {}),
        ask[2],
        at=START + 7 * DAY,
    )
    return {
        "account": ACCOUNT.hex(),
        "ask_seeds": [seed.hex() for seed, _, _ in ASK],
        "rsk_seeds": [seed.hex() for seed, _, _ in RSK],
        "entries": log.described,
        "refused": refused_entries(log),
    }


def made_adoptions() -> Made:
    """Return the vectors of who may pack the lane of another: a log in which devices adopt lanes, and what is refused."""
    log, ask = Log(), ASK[0][2]
    runner = fixed("limited", 16)
    device = account.device_body(DEVICE, sign_pub=PUBLIC, wrap_pub=WRAP_PUB[1])
    other = account.device_body(OTHER, sign_pub=OTHER_PUBLIC, wrap_pub=WRAP_PUB[2])
    limited = account.device_body(runner, sign_pub=LIMITED_PUBLIC, wrap_pub=WRAP_PUB[3], scopes=[SCOPE])
    gone = account.revoke_body(OTHER, {SCOPE: (7, fixed("tip", 32))})
    log.add("genesis", EntryType.GENESIS, genesis(), ask)
    log.add("the first device", EntryType.DEVICE_ADD, device, ask)
    log.add("the home scope", EntryType.SCOPE_CREATE, account.scope_body(SCOPE, suite=Suite.SEALED, home=True), ask)
    log.add("another device", EntryType.DEVICE_ADD, other, ask)
    log.add("a limited device", EntryType.DEVICE_ADD, limited, ask)
    in_force = len(log.entries)
    log.add("it adopts the lanes of a limited device", EntryType.LANE_ADOPT, {1: SCOPE, 2: runner, 3: DEVICE}, ask)
    log.add("another device is revoked", EntryType.DEVICE_REVOKE, gone, ask)
    log.add("it adopts the lane of that one", EntryType.LANE_ADOPT, {1: SCOPE, 2: OTHER, 3: DEVICE}, ask)
    early = Log()
    early.entries, early.states = log.entries[:in_force], log.states[:in_force]
    refused = [
        ("the lane of a device in force", early, {1: SCOPE, 2: OTHER, 3: DEVICE}, "invalid"),
        ("its own lane", early, {1: SCOPE, 2: DEVICE, 3: DEVICE}, "invalid"),
        ("for another device", early, {1: SCOPE, 2: runner, 3: OTHER}, "bad_signature"),
        ("for a limited device", early, {1: SCOPE, 2: runner, 3: runner}, "bad_signature"),
        ("for a device that was revoked", log, {1: SCOPE, 2: runner, 3: OTHER}, "revoked"),
        ("in a scope that is not there", log, {1: OPEN_SCOPE, 2: OTHER, 3: DEVICE}, "invalid"),
        ("of a device that is not there", log, {1: SCOPE, 2: fixed("third", 16), 3: DEVICE}, "invalid"),
    ]
    return {
        "account": ACCOUNT.hex(),
        "entries": log.described,
        "refused": [
            {
                "name": name,
                "after": len(after.entries),
                "bytes": after.next(EntryType.LANE_ADOPT, body, ask).hex(),
                "error": code,
            }
            for name, after, body, code in refused
        ],
    }


def made_instances() -> Made:
    """Return the vectors of a limited device's instances: whose a lane is, how its end is named, and what is refused."""
    log, ask = Log(), ASK[0][2]
    device = account.device_body(DEVICE, sign_pub=PUBLIC, wrap_pub=WRAP_PUB[1])
    runner, writers = (
        fixed("limited", 16),
        [account.instance_of(fixed("limited", 16), fixed(f"instance {n}", 8)) for n in range(3)],
    )
    limited = account.device_body(runner, sign_pub=LIMITED_PUBLIC, wrap_pub=WRAP_PUB[3], scopes=[SCOPE])
    log.add("genesis", EntryType.GENESIS, genesis(), ask)
    log.add("the first device", EntryType.DEVICE_ADD, device, ask)
    log.add("the home scope", EntryType.SCOPE_CREATE, account.scope_body(SCOPE, suite=Suite.SEALED, home=True), ask)
    log.add("a limited device", EntryType.DEVICE_ADD, limited, ask)
    ends = {(SCOPE, runner): (1, fixed("tip", 32)), (SCOPE, writers[0]): (7, fixed("tip 0", 32))}
    (body,) = account.revoke_bodies(runner, ends)
    log.add("it is revoked, and its instances with it", EntryType.DEVICE_REVOKE, body, ask)
    more = {1: runner, 2: [[SCOPE, 2, fixed("tip 1", 32), writers[1]], [SCOPE, 9, fixed("tip 2", 32), writers[0]]]}
    log.add(
        "a lane that the first entry did not name; the first word of the other stays",
        EntryType.DEVICE_REVOKE,
        more,
        ask,
    )
    related = account.instance_of(runner, fixed("related", 8))
    third = account.device_body(related, sign_pub=SECOND_PUBLIC, wrap_pub=WRAP_PUB[0])
    foreign = {1: runner, 2: [[SCOPE, 1, fixed("tip", 32), fixed("third", 16)]]}
    of_full = {1: DEVICE, 2: [[SCOPE, 1, fixed("tip", 32), account.instance_of(DEVICE, bytes(8))]]}
    of_itself = {1: runner, 2: [[SCOPE, 1, fixed("tip", 32), runner]]}
    refused = [
        ("a device with an id that an instance may have", EntryType.DEVICE_ADD, third),
        ("a limited device related to a device", EntryType.DEVICE_ADD, {**limited, 1: account.instance_of(DEVICE, bytes(8))}),
        ("an instance of nobody", EntryType.DEVICE_REVOKE, foreign),
        ("an instance of a full device", EntryType.DEVICE_REVOKE, of_full),
        ("a device as its own instance", EntryType.DEVICE_REVOKE, of_itself),
        ("an instance whose id is too short", EntryType.DEVICE_REVOKE, {1: runner, 2: [[SCOPE, 1, bytes(32), bytes(15)]]}),
    ]  # fmt: skip
    return {
        "account": ACCOUNT.hex(),
        "device": runner.hex(),
        "writers": [one.hex() for one in writers],
        "sign_pub": LIMITED_PUBLIC.hex(),
        "entries": log.described,
        "refused": [
            {"name": name, "after": len(log.entries), "bytes": log.next(kind, body, ask).hex(), "error": "invalid"}
            for name, kind, body in refused
        ],
    }


def made_checkpoints() -> Made:
    """Return checkpoints at several places of the log of account.json, what they state, and lies to be refused."""
    standing = committed("account.json")
    if standing is None:
        raise FileNotFoundError("account.json comes first")
    log = Log()
    log.entries = [bytes.fromhex(one["bytes"]) for one in standing["entries"]]
    log.states = account.extended((), log.entries)
    found, refused = [], []
    for place, ask in ((5, 0), (10, 0), (12, 1), (19, 2), (22, 2)):
        data = log.at(place).next(EntryType.CHECKPOINT, account.checkpoint_body(log.states[place]), ASK[ask][2])
        found.append(
            {
                "after": place + 1,
                "bytes": data.hex(),
                "hash": account.read(data).hash.hex(),
                "state": account.state_bytes(log.states[place]).hex(),
                "digest": account.state_digest(log.states[place]).hex(),
            }
        )
    short, state = log.at(10), log.states[10]
    thief = account.Device(id=fixed("thief", 16), sign_pub=SECOND_PUBLIC, wrap_pub=WRAP_PUB[0], added=10)
    lies = {
        "a device is added": replace(state, devices={**state.devices, thief.id: thief}),
        "a device is left out": replace(state, devices={DEVICE: state.devices[DEVICE]}),
        "a revoke is left out": replace(
            state, devices={**state.devices, OTHER: replace(state.devices[OTHER], ends=None)}
        ),
        "a limited device has all scopes": replace(
            state,
            devices={
                **state.devices,
                fixed("limited", 16): replace(state.devices[fixed("limited", 16)], scopes=None),
            },
        ),
        "another account key": replace(state, ask=ASK[1][1]),
        "another recovery code": replace(state, rsk=RSK[1][1]),
        "another wrap key of the code": replace(state, recovery_pub=WRAP_PUB[1]),
        "a code that waits": replace(state, waiting_recovery=(RSK[1][1], WRAP_PUB[1], START)),
        "another genesis": replace(state, genesis=fixed("genesis", 32)),
        "another place": replace(state, seq=9),
        "another head": replace(state, head=fixed("head", 32)),
        "a scope back at its first epoch": replace(log.at(12).states[-1], seq=10, head=state.head),
        "another keyring": replace(state, keyring=(1, fixed("keyring 2", 32))),
        "another address": replace(state, origins=("https://evil.example",)),
        "a checkpoint that was not": replace(state, checkpoint=4),
    }
    for name, lie in lies.items():
        data = short.next(EntryType.CHECKPOINT, account.checkpoint_body(lie), ASK[0][2])
        refused.append({"name": name, "after": 11, "bytes": data.hex(), "error": "invalid"})
    body = account.checkpoint_body(state)
    for name, data, error in (
        ("no hash", short.next(EntryType.CHECKPOINT, {1: 1}, ASK[0][2]), "invalid"),
        ("a short hash", short.next(EntryType.CHECKPOINT, {1: 1, 2: bytes(31)}, ASK[0][2]), "invalid"),
        ("no format", short.next(EntryType.CHECKPOINT, {2: body[2]}, ASK[0][2]), "invalid"),
        ("signed by the code", short.next(EntryType.CHECKPOINT, body, RSK[0][2], Signer.RSK), "bad_signature"),
        (
            "by a limited device",
            short.next(EntryType.CHECKPOINT, body, ASK[0][2], author=(fixed("limited", 16), LIMITED_SIGN)),
            "bad_signature",
        ),
        (
            "by a revoked device",
            short.next(EntryType.CHECKPOINT, body, ASK[0][2], author=(OTHER, OTHER_SIGN)),
            "bad_signature",
        ),
        ("by another account key", short.next(EntryType.CHECKPOINT, body, ASK[1][2]), "bad_signature"),
    ):
        refused.append({"name": name, "after": 11, "bytes": data.hex(), "error": error})
    instances = committed("instances.json")
    if instances is None:
        raise FileNotFoundError("instances.json comes first")
    whole = account.replay([bytes.fromhex(one["bytes"]) for one in instances["entries"]])
    return {"checkpoints": found, "refused": refused, "of_instances": account.state_bytes(whole).hex()}


def refused_entries(log: Log) -> list[Made]:
    """Return entries that must be refused at the end of that log, each with the code of its refusal.

    `after` says how many entries stand before it.
    """
    ask, rsk = [sign for _, _, sign in ASK], [sign for _, _, sign in RSK]
    end = len(log.entries)
    revoked, limited = (OTHER, OTHER_SIGN), (fixed("limited", 16), LIMITED_SIGN)
    new = account.device_body(fixed("third", 16), sign_pub=fixed("third key", 32), wrap_pub=WRAP_PUB[0])

    def cut(count: int) -> Log:
        short = Log()
        short.entries, short.states = log.entries[:count], log.states[:count]
        return short

    def one(
        name: str,
        kind: int,
        body: dict[int, Any],
        sign: Callable[[bytes], bytes],
        code: str,
        signer: int = Signer.ASK,
        after: int = end,
        author: tuple[bytes, Callable[[bytes], bytes]] | None = None,
    ) -> Made:
        data = cut(after).next(kind, body, sign, signer, author)
        return {"name": name, "after": after, "bytes": data.hex(), "error": code}

    def raw(name: str, data: bytes, code: str, after: int = end) -> Made:
        return {"name": name, "after": after, "bytes": data.hex(), "error": code}

    def text(data: bytes) -> bytes:
        data += b"\xc4\x10" + DEVICE
        return data + ask[2](b"sjs/1/log" + ACCOUNT + data) + SIGN(b"sjs/1/author" + ACCOUNT + data)

    head = b"\x96" + bytes([end]) + b"\xc4\x20" + log.states[-1].head
    return [
        one("signed by the key before the rotation", EntryType.DEVICE_ADD, new, ask[0], "bad_signature"),
        one("signed by a key that was voided", EntryType.DEVICE_ADD, new, ask[1], "bad_signature"),
        one("signed by the device itself", EntryType.DEVICE_ADD, new, SIGN, "bad_signature"),
        one(
            "a recovery code that was replaced adds a device",
            EntryType.DEVICE_ADD,
            new,
            rsk[2],
            "bad_signature",
            Signer.RSK,
        ),
        one(
            "the code replaces the root key",
            EntryType.ROTATE,
            {1: 4, 2: ASK[3][1]},
            rsk[0],
            "bad_signature",
            Signer.RSK,
        ),
        one("made by nobody", EntryType.DEVICE_ADD, new, ask[2], "bad_signature", author=(account.CODE_AUTHOR, SIGN)),
        one(
            "made by nobody, the account's key twice",
            EntryType.DEVICE_ADD,
            new,
            ask[2],
            "bad_signature",
            author=(account.CODE_AUTHOR, ask[2]),
        ),
        one("made by a device that was revoked", EntryType.DEVICE_ADD, new, ask[2], "bad_signature", author=revoked),
        one("made by a limited device", EntryType.DEVICE_ADD, new, ask[0], "bad_signature", after=6, author=limited),
        one(
            "made by the device that it adds",
            EntryType.DEVICE_ADD,
            new,
            ask[2],
            "bad_signature",
            author=(fixed("third", 16), signing("third key")[2]),
        ),
        one(
            "made by another than it says",
            EntryType.DEVICE_ADD,
            new,
            ask[2],
            "bad_signature",
            author=(DEVICE, OTHER_SIGN),
        ),
        one(
            "a device gives another one a wrap key",
            EntryType.DEVICE_REKEY,
            {1: OTHER, 2: WRAP_PUB[0]},
            ask[0],
            "bad_signature",
            after=6,
        ),
        one(
            "a genesis that the code did not sign",
            EntryType.GENESIS,
            genesis(),
            ask[0],
            "bad_signature",
            after=0,
            author=(account.CODE_AUTHOR, ask[0]),
        ),
        one("a genesis of a device", EntryType.GENESIS, genesis(), ask[0], "invalid", after=0, author=(DEVICE, SIGN)),
        one(
            "a recovery code that did not sign for itself",
            EntryType.RECOVERY_ROTATE,
            new_code(log, 1, WRAP_PUB[2], START, 2),
            ask[2],
            "bad_signature",
        ),
        one(
            "a recovery code that signed for another place",
            EntryType.RECOVERY_ROTATE,
            new_code(cut(end - 1), 1, WRAP_PUB[2]),
            ask[2],
            "bad_signature",
        ),
        one(
            "a recovery code dated a day ahead",
            EntryType.RECOVERY_ROTATE,
            new_code(log, 1, WRAP_PUB[2], START + DAY),
            ask[2],
            "invalid",
        ),
        one(
            "a code confirmed before its time",
            EntryType.RECOVERY_CONFIRM,
            {1: RSK[0][1], 2: START + 6 * DAY},
            ask[2],
            "invalid",
            after=20,
        ),
        one(
            "another code confirmed than waits",
            EntryType.RECOVERY_CONFIRM,
            {1: RSK[1][1], 2: START},
            ask[2],
            "invalid",
            after=20,
        ),
        one(
            "a code confirmed that was cancelled",
            EntryType.RECOVERY_CONFIRM,
            {1: RSK[1][1], 2: START},
            ask[2],
            "invalid",
        ),
        one("a device with a short wrap key", EntryType.DEVICE_ADD, new | {3: bytes(1215)}, ask[2], "invalid"),
        one("the account key voids", EntryType.VOID, {1: 1, 2: 4, 3: ASK[3][1]}, ask[2], "bad_signature"),
        one(
            "the account key voids under a signer that does not exist",
            EntryType.VOID,
            {1: 1, 2: 4, 3: ASK[3][1]},
            ask[2],
            "invalid",
            3,
        ),
        one(
            "a code that was replaced voids its replacement",
            EntryType.VOID,
            {1: 17, 2: 4, 3: ASK[3][1]},
            rsk[2],
            "bad_signature",
            Signer.RSK,
        ),
        one("a void of the genesis", EntryType.VOID, {1: 0, 2: 4, 3: ASK[3][1]}, rsk[0], "invalid", Signer.RSK),
        one("a void of itself", EntryType.VOID, {1: end, 2: 4, 3: ASK[3][1]}, rsk[0], "invalid", Signer.RSK),
        one(
            "a void that takes up a voided version",
            EntryType.VOID,
            {1: 1, 2: 3, 3: ASK[3][1]},
            rsk[0],
            "invalid",
            Signer.RSK,
        ),
        one("a second genesis", EntryType.GENESIS, genesis(), ask[2], "invalid"),
        one(
            "a device that is there",
            EntryType.DEVICE_ADD,
            account.device_body(DEVICE, sign_pub=PUBLIC, wrap_pub=b""),
            ask[2],
            "invalid",
        ),
        one("a device of 15 bytes", EntryType.DEVICE_ADD, new | {1: bytes(15)}, ask[2], "invalid"),
        one("a device whose key is text", EntryType.DEVICE_ADD, new | {2: "x" * 32}, ask[2], "invalid"),
        one("a device limited to a number", EntryType.DEVICE_ADD, new | {4: 1 << 40}, ask[2], "invalid"),
        one("a device limited to numbers", EntryType.DEVICE_ADD, new | {4: [1 << 40]}, ask[2], "invalid"),
        one("a device that is read-only by a number", EntryType.DEVICE_ADD, new | {4: [], 5: 1}, ask[2], "invalid"),
        one("revoked twice", EntryType.DEVICE_REVOKE, account.revoke_body(OTHER, {}), ask[2], "revoked"),
        one("a revocation of nobody", EntryType.DEVICE_REVOKE, account.revoke_body(bytes(16), {}), ask[2], "invalid"),
        one(
            "a revocation that ends at a text",
            EntryType.DEVICE_REVOKE,
            {1: DEVICE, 2: [[SCOPE, "7", bytes(32)]]},
            ask[2],
            "invalid",
        ),
        one(
            "a revocation that ends at a negative place",
            EntryType.DEVICE_REVOKE,
            {1: DEVICE, 2: [[SCOPE, -1, bytes(32)]]},
            ask[2],
            "invalid",
        ),
        one("a revocation without ends", EntryType.DEVICE_REVOKE, {1: DEVICE}, ask[2], "invalid"),
        one("a revoked device adopts", EntryType.LANE_ADOPT, {1: SCOPE, 2: DEVICE, 3: OTHER}, ask[2], "revoked"),
        one("a rotation that skips a version", EntryType.ROTATE, {1: 5, 2: ASK[3][1]}, ask[2], "invalid"),
        one("a rotation to a version that is a fraction", EntryType.ROTATE, {1: 4.0, 2: ASK[3][1]}, ask[2], "invalid"),
        one("a rotation to a key of 31 bytes", EntryType.ROTATE, {1: 4, 2: bytes(31)}, ask[2], "invalid"),
        one("a keyring that goes back", EntryType.KEYRING_SET, {1: 1, 2: bytes(32)}, ask[2], "invalid"),
        one(
            "a keyring whose version is true",
            EntryType.KEYRING_SET,
            {1: True, 2: bytes(32)},
            ask[0],
            "invalid",
            after=3,
        ),
        one(
            "a second home",
            EntryType.SCOPE_CREATE,
            account.scope_body(bytes(16), suite=Suite.SEALED, home=True),
            ask[2],
            "invalid",
        ),
        one(
            "a home that the server may read",
            EntryType.SCOPE_CREATE,
            account.scope_body(bytes(16), suite=Suite.OPEN, home=True),
            ask[0],
            "invalid",
            after=2,
        ),
        one(
            "a scope that is there",
            EntryType.SCOPE_CREATE,
            account.scope_body(SCOPE, suite=Suite.SEALED),
            ask[2],
            "invalid",
        ),
        one(
            "a scope that was deleted",
            EntryType.SCOPE_CREATE,
            account.scope_body(OPEN_SCOPE, suite=Suite.SEALED),
            ask[1],
            "invalid",
            after=15,
        ),
        one(
            "a scope of an unknown suite",
            EntryType.SCOPE_CREATE,
            {1: bytes(16), 2: 2, 3: False, 4: ""},
            ask[2],
            "invalid",
        ),
        one(
            "a scope whose suite is a list",
            EntryType.SCOPE_CREATE,
            {1: bytes(16), 2: [1], 3: False, 4: ""},
            ask[2],
            "invalid",
        ),
        one("the home is deleted", EntryType.SCOPE_DELETE, {1: SCOPE}, ask[2], "invalid"),
        one("an epoch that was used before the void", EntryType.EPOCH_ADD, {1: SCOPE, 2: 1}, ask[2], "invalid"),
        one(
            "a recovery code from a time that is text",
            EntryType.RECOVERY_ROTATE,
            {1: RSK[1][1], 2: b"", 3: "now"},
            ask[2],
            "invalid",
        ),
        one("an address that is a number", EntryType.ORIGIN_ADD, {1: 5}, ask[2], "invalid"),
        raw("an entry again", log.entries[-1], "broken_chain"),
        raw("an entry of the middle", log.entries[4], "broken_chain"),
        raw("nothing", b"", "malformed"),
        raw("a signature alone", bytes(64), "malformed"),
        raw("an entry of more than 64 KiB", bytes(64 * 1024 + 1), "malformed"),
        raw("a body that is a list", text(head + b"\x07\x90\x01"), "malformed"),
        raw("a body with a key of text", text(head + b"\x07\x81\xa1x\x01\x01"), "malformed"),
        raw("a text that is no UTF-8", text(head + b"\x0d\x81\x01\xa1\xff\x01"), "malformed"),
        raw(
            "a body of a thousand lists in lists",
            text(head + b"\x63\x81\x01" + b"\x91" * 1000 + b"\xc0\x01"),
            "malformed",
        ),
        raw("an entry with bytes left over", text(head + b"\x63\x80\x01\x01"), "malformed"),
        raw("a place below 0", text(b"\x96\xff\xc4\x20" + bytes(32) + b"\x63\x80\x01"), "malformed"),
    ]


# --- keys -------------------------------------------------------------------------------------------------------------


def made_keys() -> Made:
    """Return the vectors of keys: what is derived, what is shown to people, what is wrapped."""
    kdf = wire.Kdf(salt=fixed("salt", 16), memory_kib=19 * 1024, iterations=2, lanes=1)
    code = RecoveryCode.new(entropy("recovery code"))
    root = RootKey(version=2, secret=fixed("root", 32), ask_seed=ASK[1][0])
    holder = DeviceKeys.new(entropy("device keys"))
    scope = ScopeKeys(name="home", keys={0: KEY_0, 1: KEY_1}, projects=())
    keyring = Keyring(
        scopes={SCOPE: scope, OPEN_SCOPE: ScopeKeys(name="team", projects=("proj_1",))},
        devices={DEVICE: "laptop"},
    )
    sealed = seal_keyring(
        keyring, account=ACCOUNT, device=DEVICE, version=3, root=root, entropy=entropy("keyring"), sign=SIGN
    )
    pairing = pairing_digest(
        genesis=fixed("genesis", 32),
        head=fixed("head", 32),
        device=DEVICE,
        sign_pub=holder.sign_pub,
        wrap_pub=holder.wrap_pub,
        asking=fixed("asking nonce", 32),
        answering=fixed("answering nonce", 32),
    )
    heads = heads_digest(
        ACCOUNT, fixed("head", 32), {(SCOPE, DEVICE): (4, fixed("tip", 32)), (SCOPE, OTHER): (1, fixed("tip 2", 32))}
    )
    nonce = fixed("nonce", 32)
    message = wire.auth_message(ACCOUNT, DEVICE, nonce, ORIGIN)
    extract = limited_keyring_of(keyring, DEVICE, (SCOPE,))
    return {
        "auth_key": {
            "password": "Grün bird ﬁve",
            "salt": kdf.salt.hex(),
            "memory_kib": kdf.memory_kib,
            "iterations": kdf.iterations,
            "lanes": kdf.lanes,
            "origin": ORIGIN,
            "key": auth_key("Grün bird ﬁve", kdf, ORIGIN).hex(),
        },
        "recovery": {
            "secret": code.secret.hex(),
            "text": code.text,
            "rsk": code.rsk.hex(),
            "wrap_pub": code.wrap_pub.hex(),
        },
        "root": {
            "version": root.version,
            "secret": root.secret.hex(),
            "ask_seed": root.ask_seed.hex(),
            "ask": root.ask.hex(),
            "wrap_key": root.wrap_key.hex(),
        },
        "device": {
            "sign_seed": holder.sign_seed.hex(),
            "sign_pub": holder.sign_pub.hex(),
            "mlkem_seed": holder.wrap.mlkem_seed.hex(),
            "x25519_seed": holder.wrap.x25519_seed.hex(),
            "wrap_pub": holder.wrap_pub.hex(),
        },
        "pairing": {
            "genesis": fixed("genesis", 32).hex(),
            "head": fixed("head", 32).hex(),
            "device": DEVICE.hex(),
            "asking": fixed("asking nonce", 32).hex(),
            "answering": fixed("answering nonce", 32).hex(),
            "commitment": pairing_commitment(fixed("asking nonce", 32), DEVICE, holder.sign_pub, holder.wrap_pub).hex(),
            "digest": pairing.hex(),
            "words": list(words.pairing_words(pairing).shown),
            "proof": list(words.pairing_words(pairing).proof),
        },
        "heads": {
            "account": ACCOUNT.hex(),
            "log_head": fixed("head", 32).hex(),
            "lanes": [
                [SCOPE.hex(), DEVICE.hex(), 4, fixed("tip", 32).hex()],
                [SCOPE.hex(), OTHER.hex(), 1, fixed("tip 2", 32).hex()],
            ],
            "digest": heads.hex(),
            "words": list(words.words_of(heads)),
        },
        "auth": {"nonce": nonce.hex(), "origin": ORIGIN, "message": message.hex(), "signature": SIGN(message).hex()},
        "keyring": {"version": 3, "payload": msgspec.msgpack.encode(keyring).hex()},
        "wraps": {
            "keyring": sealed.data.hex(),
            "root": wrapped(wrap_root(root, account=ACCOUNT, target=DEVICE, wrap_pub=holder.wrap_pub)),
            "recovery": wrapped(wrap_root(root, account=ACCOUNT, target=wire.RECOVERY_TARGET, wrap_pub=code.wrap_pub)),
            "extract": wrapped(
                wrap_limited_keyring(
                    extract, account=ACCOUNT, target=DEVICE, version=3, wrap_pub=holder.wrap_pub, root=root
                )
            ),
            "extract_payload": msgspec.msgpack.encode(extract).hex(),
        },
    }


def made_refusal() -> Made:
    """Return the vectors of refusals: what the device that asks for one signs."""
    nonce = fixed("challenge", 40)
    message = wire.refusal_message(ACCOUNT, OTHER, DEVICE, nonce)
    return {
        "account": ACCOUNT.hex(),
        "device": OTHER.hex(),
        "author": DEVICE.hex(),
        "nonce": nonce.hex(),
        "message": message.hex(),
        "sign_pub": PUBLIC.hex(),
        "signature": SIGN(message).hex(),
    }


def wrapped(wrap: wire.Wrap) -> Made:
    """Return a wrap as JSON."""
    return {"target": wrap.target.hex(), "kind": wrap.kind, "version": wrap.version, "sealed": wrap.sealed.hex()}


# --- teams ------------------------------------------------------------------------------------------------------------

PEOPLE = {name: (fixed(f"{name}'s account", 16), signing(f"{name} in teams")) for name in ("ann", "bob", "eve")}
TEAM_DEVICES = {name: (fixed(f"{name}'s device", 16), signing(f"{name}'s device")) for name in PEOPLE}
RENEWED = signing("bob in teams, renewed")


def team_commit(epoch: int) -> bytes:
    """Return the commitment of an epoch's key."""
    return teams.epoch_commit(epoch, fixed(f"team key {epoch}", 32))


class TeamLog:
    """A team's log in the making."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.states: list[teams.TeamState] = []
        self.described: list[Made] = []

    def next(self, who: str, kind: int, body: dict[int, Any], sign: Callable[[bytes], bytes] | None = None) -> bytes:
        """Return an entry that follows, without appending it."""
        account_id, (_, public, own) = PEOPLE[who]
        if not self.states:
            return teams.genesis(
                account_id,
                nonce=fixed("team", 16),
                sign_pub=public,
                wrap_pub=WRAP_PUB[0],
                commit=team_commit(0),
                sign=sign or own,
            )
        last = self.states[-1]
        return teams.entry(
            last.team,
            seq=last.seq + 1,
            prev=last.head,
            type=kind,  # type: ignore[arg-type]
            body=body,
            author=account_id,
            sign=sign or own,
        )

    def add(self, name: str, data: bytes) -> None:
        """Append an entry."""
        after = teams.extended(self.states[-1] if self.states else None, [data])
        assert after is not None
        self.states.append(after)
        self.entries.append(data)
        self.described.append(
            {"name": name, "bytes": data.hex(), "hash": after.head.hex(), "after": team_state_of(after)}
        )


def team_state_of(state: teams.TeamState) -> Made:
    """Return what a team's log adds up to, as JSON."""
    return {
        "team": state.team.hex(),
        "epoch": state.epoch,
        "due": state.key_due,
        "commits": [state.commits[one].hex() for one in sorted(state.commits)],
        "members": {
            one.account.hex(): {
                "sign_pub": one.sign_pub.hex(),
                "wrap_pub": hashlib.sha256(one.wrap_pub).hexdigest(),
                "role": int(one.role),
                "added": one.added,
                "in": one.in_force,
            }
            for one in sorted(state.members.values(), key=lambda one: one.account)
        },
        "devices": {
            one.id.hex(): {
                "account": one.account.hex(),
                "sign_pub": one.sign_pub.hex(),
                "end": None if one.end is None else [one.end[0], one.end[1].hex()],
                "in": one.in_force,
            }
            for one in sorted(state.devices.values(), key=lambda one: one.id)
        },
    }


def team_member(who: str, role: int) -> dict[int, Any]:
    """Return the body that lets somebody in."""
    place = list(PEOPLE).index(who)
    return {1: PEOPLE[who][0], 2: PEOPLE[who][1][1], 3: WRAP_PUB[place], 4: role}


def team_device(log: TeamLog, who: str, *, device: str = "", sign: str = "") -> dict[int, Any]:
    """Return the body by which somebody names their device."""
    device_id, (_, public, _) = TEAM_DEVICES[device or who]
    proof = TEAM_DEVICES[sign or device or who][1][2](
        teams.device_proof(log.states[-1].team, PEOPLE[who][0], device_id)
    )
    return {1: device_id, 2: public, 3: proof}


def made_teams() -> Made:
    """Return a team's log with every entry type and the state after each, and entries to refuse after some of them."""
    log, refused = TeamLog(), list[Made]()
    ids = {name: one[0] for name, one in PEOPLE.items()}
    devices = {name: one[0] for name, one in TEAM_DEVICES.items()}
    end = [[devices["bob"], 7, fixed("bob's end", 32)]]

    def refuse(name: str, data: bytes, code: str) -> None:
        found = ""
        try:
            teams.extended(log.states[-1] if log.states else None, [data])
        except ScrubjayError as error:
            found = error.code
        if found != code:
            raise AssertionError(f"{name}: {found or 'taken'}, not {code}")
        refused.append({"name": name, "after": len(log.entries), "bytes": data.hex(), "error": code})

    evil = signing("nobody")[2]
    refuse("a genesis that another key signed", log.next("ann", 1, {}, evil), "bad_signature")
    log.add("genesis", log.next("ann", 1, {}))
    refuse("a stranger lets themselves in", log.next("eve", 2, team_member("eve", 3)), "bad_signature")
    refuse("the server lets somebody in", log.next("ann", 2, team_member("eve", 3), evil), "bad_signature")
    refuse("a role that is not known", log.next("ann", 2, team_member("bob", 4)), "invalid")
    log.add("a writer comes in", log.next("ann", 2, team_member("bob", 2)))
    refuse("somebody comes in twice", log.next("ann", 2, team_member("bob", 3)), "invalid")
    refuse("a writer lets somebody in", log.next("bob", 2, team_member("eve", 1)), "bad_signature")
    refuse("a writer becomes an admin", log.next("bob", 4, {1: ids["bob"], 2: 3, 3: []}), "bad_signature")
    log.add("a reader comes in", log.next("ann", 2, team_member("eve", 1)))
    refuse(
        "a device that did not sign for it", log.next("bob", 8, team_device(log, "bob", sign="ann")), "bad_signature"
    )
    log.add("a device of a writer", log.next("bob", 8, team_device(log, "bob")))
    refuse("another's device", log.next("eve", 8, team_device(log, "eve", device="bob")), "invalid")
    log.add("a device of a reader", log.next("eve", 8, team_device(log, "eve")))
    refuse("an epoch too far", log.next("bob", 7, {1: 2, 2: team_commit(2)}), "invalid")
    log.add("an epoch", log.next("bob", 7, {1: 1, 2: team_commit(1)}))
    log.add("a writer becomes a reader", log.next("ann", 4, {1: ids["bob"], 2: 1, 3: end}))
    log.add("and a writer again", log.next("ann", 4, {1: ids["bob"], 2: 2, 3: []}))
    refuse("the last admin becomes a writer", log.next("ann", 4, {1: ids["ann"], 2: 2, 3: []}), "invalid")
    refuse("the last admin leaves", log.next("ann", 5, {1: []}), "invalid")
    rekey = {1: RENEWED[1], 2: WRAP_PUB[3], 3: end, 4: 2, 5: team_commit(2)}
    refuse("keys that shut out another's device", log.next("eve", 6, rekey), "invalid")
    log.add("new keys, and a device shut out", log.next("bob", 6, rekey))
    refuse("the keys from before", log.next("bob", 5, {1: []}), "bad_signature")
    log.add("an entry of a later version", log.next("eve", 99, {1: b"later"}))
    gone = {1: ids["eve"], 2: [], 3: 3, 4: team_commit(3)}
    refuse("somebody taken out without a new key", log.next("ann", 3, {1: ids["eve"], 2: []}), "invalid")
    refuse("an admin takes themselves out", log.next("ann", 3, gone | {1: ids["ann"]}), "invalid")
    before = log.next("ann", 3, gone)
    log.add("a reader is taken out", before)
    refuse("the same entry again", before, "broken_chain")
    refuse("who was taken out says something", log.next("eve", 7, {1: 4, 2: team_commit(4)}), "bad_signature")
    log.add("a writer leaves", log.next("bob", 5, {1: []}, RENEWED[2]))
    log.add("the key that is due", log.next("ann", 7, {1: 4, 2: team_commit(4)}))
    log.add("who left comes in again", log.next("ann", 2, team_member("bob", 3)))
    log.add("with the device of before", log.next("bob", 8, team_device(log, "bob")))
    log.add("another admin leaves", log.next("ann", 5, {1: []}))
    return {"entries": log.described, "refused": refused}


# --- forgotten words --------------------------------------------------------------------------------------------------


def made_tombstones() -> Made:
    """Return the vectors of what is left of forgotten words: ops that carry it, and the digests of texts."""
    key_id, key = IDS[2], fixed("tombstones", tombstones.KEY_BYTES)
    texts = (
        "The reviewer is Petra.",
        "On 7 May we ship to Gdańsk",
        "My token is zq81-Hunter, “really”!",
        "We moved from 10.0.0.1 to 10.0.0.2 (finally)",
        "Ｆｕｌｌ ｗｉｄｔｈ １２３４",
        "— … —",
        "long " * 300,
    )
    digests = [tombstones.digest(key, form) for form in tombstones.forgotten_forms(texts[0])]
    project = tombstones.project_digest(key, "/work/site")
    words = ops.ForgottenWords(key=key_id, digests=tuple(digests), project=project)
    named = [
        ("a key", op(1, OpType.FORGET, ops.new_key_body(key_id, key))),
        ("a forget with what is left of the words", op(2, OpType.FORGET, ops.forget_body(IDS[1], words=words))),
        ("the words are refused no more", op(3, OpType.FORGET, ops.forget_body(IDS[1], IDS[3], lifted=True))),
    ]
    return {
        "device": DEVICE.hex(),
        "ops": [
            {"name": name, "seq": one.seq, "bytes": ops.encode(one).hex(), "body": plain(one.body)}
            for name, one in named
        ],
        "key": key.hex(),
        "project": {"name": "/work/site", "digest": project.hex()},
        "texts": [
            {
                "text": text,
                "said": [tombstones.digest(key, form).hex() for form in tombstones.forms(text)],
                "forgotten": [tombstones.digest(key, form).hex() for form in tombstones.forgotten_forms(text)],
                "event": None if (form := tombstones.event_form(text)) is None else tombstones.digest(key, form).hex(),
            }
            for text in texts
        ],
    }


# --- snapshots --------------------------------------------------------------------------------------------------------


def made_snapshot() -> Made:
    """Return the vectors of a snapshot: two chunks and their manifest, and payloads that must be refused."""
    others = [(one.seq, ops.encode(one)) for _, one in every_op() if one.type != OpType.EVENT]
    chunks = [
        snapshot.Chunk(DEVICE, [imaged(place) for place in (1, 2, 3)], []),
        snapshot.Chunk(
            DEVICE, [imaged(400, cause="import:01KXK2Y3A8M3N5P9R2T4V6W8Y0", metadata={"file": "a.py"})], others
        ),
    ]
    made, refs = [], []
    for one in chunks:
        payload = snapshot.encode_chunk(one)
        salt = snapshot.salt_of(payload, KEY_1)
        header = snapshot_header(ObjectKind.SNAPSHOT_CHUNK)
        sealed = sealing.seal(header, payload, key=KEY_1, salt=salt, sign=SIGN, squeeze=False)
        seqs = [*(event.seq for event in one.events), *(seq for seq, _ in one.others)]
        refs.append(snapshot.ChunkRef(hashlib.sha256(sealed.data).digest(), DEVICE, min(seqs), max(seqs), len(seqs)))
        made.append({"payload": payload.hex(), "salt": salt.hex(), "bytes": sealed.data.hex()})
    said = {1: START, 2: [[SCOPE, DEVICE, 9, bytes(range(32))]], 3: 7, 4: bytes(32), 5: snapshot.encode_refs(refs)}
    payload = msgspec.msgpack.encode(said)
    header = snapshot_header(ObjectKind.SNAPSHOT_MANIFEST)
    manifest = sealing.seal(header, payload, key=KEY_1, salt=bytes(32), sign=SIGN, squeeze=False)
    return {
        "chunks": made,
        "manifest": {
            "payload": payload.hex(),
            "bytes": manifest.data.hex(),
            "chunks": [[ref.hash.hex(), ref.device.hex(), ref.low, ref.high, ref.ops] for ref in refs],
        },
        "refused": refused_snapshots(chunks),
    }


def imaged(seq: int, *, cause: str | None = None, metadata: dict[str, Any] | None = None) -> snapshot.ImagedEvent:
    """Return an event as a chunk has it."""
    return snapshot.ImagedEvent(
        *(seq, bytes([seq % 256]) * 16, (START + seq) << 16, cause, bytes([seq % 251]) * 16, "claude-code", "s1"),
        *(
            "user_message",
            "user",
            f"The bird hides seed {seq}.",
            START + seq,
            f"key-{seq}",
            "seeds",
            60,
            "user",
            metadata,
        ),
    )


def snapshot_header(kind: ObjectKind) -> Header:
    """Return the header of an object of a snapshot."""
    return Header(
        suite=Suite.SEALED, kind=kind, account=ACCOUNT, scope=SCOPE, device=DEVICE, epoch=1, n_from=0, n_to=0,
        prev=bytes(32),
    )  # fmt: skip


def refused_snapshots(chunks: list[snapshot.Chunk]) -> list[Made]:
    """Return payloads of chunks that no reader takes."""
    first, second = chunks
    cases: dict[str, object] = {
        "a part more": {1: DEVICE, 2: [], 3: [], 4: 0},
        "a part less": {1: DEVICE, 2: []},
        "a device of 15 bytes": {1: DEVICE[:15], 2: [], 3: []},
        "events out of order": {1: DEVICE, 2: first.events[::-1], 3: []},
        "an op twice": {1: DEVICE, 2: first.events, 3: [(1, b"x")]},
        "a place of 0": {1: DEVICE, 2: [], 3: [(0, b"x")]},
        "a place of 2^63": {1: DEVICE, 2: [], 3: [(1 << 63, b"x")]},
        "an op that is nil": {1: DEVICE, 2: [], 3: [(1, None)]},
        "a value more": {1: DEVICE, 2: [[*msgspec.structs.astuple(second.events[0]), 1]], 3: []},
        "no map": [DEVICE, [], []],
    }
    return [{"name": name, "payload": msgspec.msgpack.encode(value).hex()} for name, value in cases.items()]


# --- files ------------------------------------------------------------------------------------------------------------

FILES: dict[str, Callable[[], Made]] = {
    "ops.json": made_ops,
    "causes.json": made_causes,
    "merge.json": made_merges,
    "emptied.json": made_emptied,
    "objects.json": made_objects,
    "account.json": made_account,
    "keys.json": made_keys,
    "refusal.json": made_refusal,
    "instances.json": made_instances,
    "adoptions.json": made_adoptions,
    "checkpoint.json": made_checkpoints,
    "teams.json": made_teams,
    "tombstones.json": made_tombstones,
    "snapshot.json": made_snapshot,
}


def vectors(name: str) -> Made:
    """Return the vectors of a file as they are made now, with what is kept taken from the file that stands."""
    made = {"protocol": "SJS/1", "version": VERSION, **FILES[name]()}
    standing = committed(name)
    for section in KEPT.get(name, ()):
        if standing is not None and standing["version"] == VERSION and section in standing:
            made[section] = standing[section]
    return made


def committed(name: str) -> Made | None:
    """Return the vectors of a file that stands, None where there is none."""
    path = FOLDER / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def main(arguments: list[str]) -> int:
    """Write or check every file. 1 when a vector would change without a new version."""
    changed = 0
    for name in FILES:
        standing, made = committed(name), vectors(name)
        if standing == json.loads(json.dumps(made)):
            print(f"{name}: as it stands")
        elif standing is not None and standing["version"] == VERSION:
            changed = 1
            different = [key for key in made if standing.get(key) != json.loads(json.dumps(made[key]))]
            print(
                f"{name}: {', '.join(different)} would change: raise VERSION if that is meant, and tell it in docs/protocol.md"
            )
        elif "--check" in arguments:
            changed = 1
            print(f"{name}: is not there")
        else:
            (FOLDER / name).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"{name}: written, version {VERSION}")
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
