"""The specification holds: what the code makes are the vectors, and a reader written from docs/protocol.md agrees."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import secrets
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay_shared import account, envelope, ops, parts, sealing, segment, snapshot, teams, tombstones, wire
from scrubjay_shared.account import AccountState, EntryType, Signer
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Envelope, Header, ObjectKind, Suite
from scrubjay_shared.errors import (
    BadSignatureError,
    BrokenChainError,
    CorruptError,
    InvalidError,
    MalformedError,
    ScrubjayError,
    UpdateNeededError,
    WrongKeyError,
)
from scrubjay_sync import packing, words
from scrubjay_sync.keys.keypairs import WrapKeys, public_of
from scrubjay_sync.keys.keyring import open_keyring, unwrap_limited_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root

HERE = Path(__file__).parent


def loaded(name: str) -> ModuleType:
    """Return a file beside the tests as a module."""
    spec = importlib.util.spec_from_file_location(f"scrubjay_protocol_{Path(name).stem}", HERE / name)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make, second = loaded("golden/make.py"), loaded("second_decoder.py")
OBJECTS, ACCOUNT, CHECKPOINTS, INSTANCES, ADOPTIONS, OPS, CAUSES, MERGES, EMPTIED, TEAMS, TOMBSTONES, SNAPSHOT = (
    make.committed(f"{name}.json")
    for name in (
        "objects",
        "account",
        "checkpoint",
        "instances",
        "adoptions",
        "ops",
        "causes",
        "merge",
        "emptied",
        "teams",
        "tombstones",
        "snapshot",
    )
)
KEYS = {int(epoch): bytes.fromhex(key) for epoch, key in OBJECTS["keys"].items()}
LANE = (make.ACCOUNT, make.SCOPE, make.DEVICE)
ALL_OBJECTS = [*OBJECTS["objects"], *OBJECTS["compressed"]]


def names(listed: list[Any]) -> list[str]:
    """Return what some vectors are called, for the test's id."""
    return [one.get("name", f"{one.get('suite')}-{one.get('kind')}-{one.get('n_from')}") for one in listed]


# --- the vectors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", make.FILES)
def test_the_code_makes_the_vectors_byte_for_byte(name: str) -> None:
    made = json.loads(json.dumps(make.vectors(name)))

    assert made == make.committed(name)


def test_a_vector_that_would_change_is_refused_without_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    monkeypatch.setattr(make, "FILES", {"ops.json": make.FILES["ops.json"]})

    assert make.main(["--check"]) == 1
    assert make.main([]) == 0
    stood = (tmp_path / "ops.json").read_text(encoding="utf-8")
    (tmp_path / "ops.json").write_text(stood.replace("0001", "0002", 1), encoding="utf-8")

    assert make.main([]) == 1
    assert "raise VERSION" in capsys.readouterr().out
    monkeypatch.setattr(make, "VERSION", make.VERSION + 1)
    assert make.main([]) == 0


def test_the_second_decoder_shares_nothing_with_the_product() -> None:
    tree = ast.parse((HERE / "second_decoder.py").read_text(encoding="utf-8"))
    imported = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    } | {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    ours = {"zstandard", "cryptography"}
    assert imported <= ours | set(sys.stdlib_module_names)


# --- objects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", ALL_OBJECTS, ids=names(ALL_OBJECTS))
def test_both_decoders_read_an_object_as_its_vector_says(one: dict[str, Any]) -> None:
    data, key = bytes.fromhex(one["bytes"]), KEYS[one["epoch"]]
    first = envelope.parse(data)
    (other,) = second.objects(data)

    for field in ("suite", "kind", "flags", "epoch", "n_from", "n_to"):
        assert one[field] == getattr(first.header, field) == getattr(other, field)
    for field in ("scope", "prev", "tip", "salt", "commit"):
        assert bytes.fromhex(one[field]) == getattr(first.header, field) == getattr(other, field)
    assert one["link"] == first.link.hex() == other.link.hex()
    assert one["end"] == first.end.hex() == other.end.hex()
    payload = bytes.fromhex(one["payload"])
    assert payload == sealing.unseal(first, key=key) == second.payload(other, key)
    entries = [(seq, None if found is None else bytes.fromhex(found)) for seq, found in one["entries"]]
    assert entries == segment.decode(payload) == second.entries(payload)


def test_both_decoders_take_a_whole_lane_and_the_pack_that_stands_for_its_beginning() -> None:
    for scope, root, suite in (
        (make.SCOPE, OBJECTS["lane_root"], Suite.SEALED),
        (make.OPEN_SCOPE, OBJECTS["open_lane_root"], Suite.OPEN),
    ):
        lane, start = (make.ACCOUNT, scope, make.DEVICE), bytes.fromhex(root)
        assert start == envelope.lane_root(*lane) == second.lane_root(*lane)
        segments = [
            bytes.fromhex(one["bytes"]) for one in OBJECTS["objects"] if one["suite"] == suite and one["kind"] == 1
        ]
        (pack,) = (
            bytes.fromhex(one["bytes"]) for one in OBJECTS["objects"] if one["suite"] == suite and one["kind"] == 2
        )
        for page in (b"".join(segments), pack + segments[3], segments[0]):
            run = list(envelope.split(page))
            envelope.check_run(run, n=0, prev=start, keys=lambda _: [make.PUBLIC])
            second.check_run(second.objects(page), lane, 0, start, lambda _: [make.PUBLIC])


def test_both_decoders_read_a_beacon_as_its_vector_says() -> None:
    one = OBJECTS["beacon"]
    first = packing.opened(envelope.parse(bytes.fromhex(one["bytes"])), KEYS[1]).checkpoint
    (other,) = second.objects(bytes.fromhex(one["bytes"]))
    said = second.unpacked(second.payload(other, KEYS[1]))

    assert first is not None
    assert other.kind == 6
    assert [one["at"], one["log_seq"]] == [first.at, first.log_seq] == [said[1], said[3]]
    assert bytes.fromhex(one["log_head"]) == first.log_head == said[4]
    heads = {
        (bytes.fromhex(scope), bytes.fromhex(device)): (n, bytes.fromhex(tip)) for scope, device, n, tip in one["heads"]
    }
    assert heads == first.heads == {(scope, device): (n, tip) for scope, device, n, tip in said[2]}


@pytest.mark.parametrize("place", range(len(SNAPSHOT["chunks"])))
def test_both_decoders_read_a_chunk_of_a_snapshot_as_its_vector_says(place: int) -> None:
    one = SNAPSHOT["chunks"][place]
    data, payload = bytes.fromhex(one["bytes"]), bytes.fromhex(one["payload"])
    ours, (theirs,) = envelope.parse(data), second.objects(data)
    found = snapshot.decode_chunk(payload)
    events = [list(msgspec.structs.astuple(event)) for event in found.events]

    assert theirs.kind == 3
    assert sealing.unseal(ours, key=KEYS[1]) == second.payload(theirs, KEYS[1]) == payload
    assert snapshot.salt_of(payload, KEYS[1]) == second.snapshot_salt(payload, KEYS[1]) == bytes.fromhex(one["salt"])
    assert theirs.salt == bytes.fromhex(one["salt"])
    assert (found.device, events, found.others) == second.chunk(payload)
    assert snapshot.encode_chunk(found) == payload


def test_both_decoders_read_the_manifest_of_a_snapshot_as_its_vector_says() -> None:
    one = SNAPSHOT["manifest"]
    ours = packing.opened_manifest(envelope.parse(bytes.fromhex(one["bytes"])), KEYS[1])
    (theirs,) = second.objects(bytes.fromhex(one["bytes"]))
    payload = second.payload(theirs, KEYS[1])
    named = [[bytes.fromhex(digest), bytes.fromhex(device), *counts] for digest, device, *counts in one["chunks"]]

    assert theirs.kind == 4
    assert payload == bytes.fromhex(one["payload"])
    assert [list(msgspec.structs.astuple(ref)) for ref in ours.chunks] == second.chunks_of(payload) == named
    seen = (ours.seen.at, ours.seen.heads, ours.seen.log_seq, ours.seen.log_head)
    assert (
        seen
        == second.manifest(payload)[:4]
        == (make.START, {(make.SCOPE, make.DEVICE): (9, bytes(range(32)))}, 7, bytes(32))
    )
    for digest, chunk in zip([row[0] for row in named], SNAPSHOT["chunks"], strict=True):
        assert hashlib.sha256(bytes.fromhex(chunk["bytes"])).digest() == digest


@pytest.mark.parametrize("one", SNAPSHOT["refused"], ids=names(SNAPSHOT["refused"]))
def test_both_decoders_refuse_a_chunk_that_is_none(one: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        snapshot.decode_chunk(bytes.fromhex(one["payload"]))
    with pytest.raises(second.Refused):
        second.chunk(bytes.fromhex(one["payload"]))


def test_both_decoders_join_an_op_that_came_in_parts() -> None:
    one = OBJECTS["parts"]
    data = bytes.fromhex("".join(one["bytes"]))
    first = [packing.opened(part, KEYS[1]).part for part in envelope.split(data)]
    other = [second.part(part, KEYS[1]) for part in second.objects(data)]

    assert first == other
    assert [part[:3] for part in other] == [(one["seq"], place, 3) for place in range(3)]
    pieces = b"".join(part[3] for part in other)
    assert bytes.fromhex(one["op"]) == parts.joined([pieces]) == second.unzipped(pieces)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (1, -1),
        (1, 2**63),
        (3, -1),
        (3, 2**63),
        (4, b""),
        (2, [[bytes(15), bytes(16), 1, bytes(32)]]),
        (2, [[bytes(16), bytes(16), 2**63, bytes(32)]]),
        (2, [[bytes(16), bytes(16), 1, b""]]),
        (2, 5),
    ],
)
def test_a_beacon_that_says_what_cannot_be_is_refused(key: int, value: object) -> None:
    body = {1: make.START, 2: [], 3: 7, 4: bytes(32)} | {key: value}
    header = replace(SPOKEN[0].header, kind=ObjectKind.BEACON)
    made = sealing.seal(header, msgspec.msgpack.encode(body), key=b"", salt=b"", sign=make.SIGN, squeeze=False)

    with pytest.raises(MalformedError):
        packing.opened(made, b"")


@pytest.mark.parametrize("one", OBJECTS["refused"], ids=names(OBJECTS["refused"]))
def test_both_decoders_refuse_the_same_objects_for_the_same_reason(one: dict[str, Any]) -> None:
    data = bytes.fromhex(one["bytes"])

    with pytest.raises(ScrubjayError) as first:
        received(data)
    with pytest.raises(second.Refused) as other:
        received_by_second(data)

    assert one["error"] == first.value.code == other.value.code
    assert first.value.hint


def received(data: bytes, *, key: bytes = KEYS[0]) -> list[segment.Entry]:
    """Take some bytes as the first object of their lane, as a device does."""
    run = list(envelope.split(data))
    if len(run) != 1:
        raise InvalidError("one was expected", hint="-")
    header = run[0].header
    root = envelope.lane_root(make.ACCOUNT, make.OPEN_SCOPE if header.suite == Suite.OPEN else make.SCOPE, make.DEVICE)
    envelope.check_run(run, n=0, prev=root, keys=lambda _: [make.PUBLIC])
    return segment.decode(sealing.unseal(run[0], key=key))


def received_by_second(data: bytes) -> list[segment.Entry]:
    """Take some bytes as the first object of their lane, as docs/protocol.md says."""
    (one,) = second.objects(data)
    lane = (make.ACCOUNT, make.OPEN_SCOPE if one.suite == 0 else make.SCOPE, make.DEVICE)
    second.check_run([one], lane, 0, second.lane_root(*lane), lambda _: [make.PUBLIC])
    return second.entries(second.payload(one, KEYS[0]))


def test_padding_is_what_the_vectors_say() -> None:
    for length, padded in OBJECTS["padded"]:
        assert len(segment.pad(bytes(length))) == padded
        assert max(512, second.padme(4 + length)) == padded
        assert segment.unpad(segment.pad(bytes(length))) == bytes(length)
    for length, padded in OBJECTS["padme"]:
        assert segment.padme(length) == second.padme(length) == padded


@given(st.integers(0, 1 << 24))
def test_padding_costs_at_most_an_eighth_and_both_decoders_agree(length: int) -> None:
    assert segment.padme(length) == second.padme(length)
    assert length <= segment.padme(length) <= length * 1.125 + 1


entry_lists = st.lists(
    st.tuples(st.integers(1, 1000), st.one_of(st.none(), st.binary(max_size=300))),
    max_size=12,
    unique_by=lambda one: one[0],
).map(sorted)


@settings(max_examples=60)
@given(
    entries=entry_lists,
    suite=st.sampled_from(Suite),
    squeeze=st.booleans(),
    epoch=st.integers(0, 2**32 - 1),
    place=st.integers(1, 2**63 - 2),
    extra=st.integers(0, 3),
)
def test_both_decoders_read_any_object_alike(
    *, entries: list[segment.Entry], suite: Suite, squeeze: bool, epoch: int, place: int, extra: int
) -> None:
    key, prev = secrets.token_bytes(32), secrets.token_bytes(32)
    header = Header(
        suite=suite,
        kind=ObjectKind.PACK if extra else ObjectKind.SEGMENT,
        account=make.ACCOUNT,
        scope=make.SCOPE,
        device=make.DEVICE,
        epoch=epoch,
        n_from=place,
        n_to=min(place + extra, 2**63 - 1),
        prev=prev,
        tip=secrets.token_bytes(32) if extra else envelope.ZERO,
    )
    made = sealing.seal(
        header, segment.encode(entries), key=key, salt=secrets.token_bytes(32), sign=make.SIGN, squeeze=squeeze
    )

    first = envelope.parse(made.data)
    (other,) = second.objects(made.data)
    envelope.check_run([first], n=place - 1, prev=prev, keys=lambda _: [make.PUBLIC])
    second.check_run([other], LANE, place - 1, prev, lambda _: [make.PUBLIC])

    assert entries == segment.decode(sealing.unseal(first, key=key)) == second.entries(second.payload(other, key))
    assert (first.link, first.end) == (other.link, other.end)


@settings(max_examples=40)
@given(
    plain=st.binary(max_size=200),
    aad=st.binary(max_size=40),
    key=st.binary(min_size=32, max_size=32),
    nonce=st.binary(min_size=12, max_size=12),
)
def test_the_second_decoders_own_gcm_siv_is_that_of_the_library(
    plain: bytes, aad: bytes, key: bytes, nonce: bytes
) -> None:
    sealed = AESGCMSIV(key).encrypt(nonce, plain, aad) if plain else None
    if sealed is not None:
        assert second.opened(key, nonce, sealed, aad) == plain


def test_the_second_decoders_own_gcm_siv_is_that_of_the_rfc() -> None:
    # RFC 8452, appendix C.2: AES-256, the third and a later case.
    key, nonce = b"\x01" + bytes(31), b"\x03" + bytes(11)
    sealed = bytes.fromhex("c2ef328e5c71c83b843122130f7364b761e0b97427e3df28")
    assert second.opened(key, nonce, sealed, b"") == bytes.fromhex("0100000000000000")
    assert second.opened(key, nonce, bytes.fromhex("07f5f4169bbf55a8400cd47ea6fd400f"), b"") == b""


# --- ops --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", OPS["ops"], ids=names(OPS["ops"]))
def test_both_decoders_read_an_op_as_its_vector_says(one: dict[str, Any]) -> None:
    data = bytes.fromhex(one["bytes"])
    first = ops.decode(data, device=OPS["device"], seq=one["seq"])
    other = second.op(data)

    assert (first.type, first.version, first.op_id, first.hlc, first.body) == other
    assert (one["type"], one["version"], one["op_id"], one["hlc"]) == (
        first.type,
        first.version,
        first.op_id.hex(),
        str(first.hlc),
    )
    assert one["body"] == make.plain(first.body)
    assert ops.encode(first) == data
    assert one["applies"] == (ops.problem(first) == "")


@pytest.mark.parametrize("one", TOMBSTONES["ops"], ids=names(TOMBSTONES["ops"]))
def test_both_decoders_read_what_a_forget_says_of_words(one: dict[str, Any]) -> None:
    data = bytes.fromhex(one["bytes"])
    first = ops.decode(data, device=TOMBSTONES["device"], seq=one["seq"])
    assert first.body == second.op(data)[4]
    assert one["body"] == make.plain(first.body)
    assert ops.encode(first) == data
    assert ops.problem(first) == ""
    assert not ops.problem(replace(first, body=ops.of_id_alone(first.body)))


@pytest.mark.parametrize("one", TOMBSTONES["texts"], ids=[one["text"][:20] for one in TOMBSTONES["texts"]])
def test_both_decoders_make_the_same_digests_of_forgotten_words(one: dict[str, Any]) -> None:
    key = bytes.fromhex(TOMBSTONES["key"])
    assert [tombstones.digest(key, form).hex() for form in tombstones.forms(one["text"])] == one["said"]
    assert second.digests_of_words(key, one["text"]) == (one["said"], sorted(one["forgotten"]), one["event"])
    project = TOMBSTONES["project"]
    assert tombstones.project_digest(key, project["name"]).hex() == project["digest"]
    assert second.digest_of(key, ["project", project["name"]]) == project["digest"]


@pytest.mark.parametrize("one", CAUSES["ops"], ids=names(CAUSES["ops"]))
def test_both_decoders_read_a_cause_as_its_vector_says(one: dict[str, Any]) -> None:
    data = bytes.fromhex(one["bytes"])
    first = ops.decode(data, device=CAUSES["device"], seq=one["seq"])
    other = second.op(data)

    assert one["cause"] == ops.cause_of(first) == second.cause(other[4])
    assert (first.type, first.version, first.op_id, first.hlc, first.body) == other
    assert ops.encode(first) == data
    assert one["applies"] == (ops.problem(first) == "")


def test_both_decoders_empty_a_write_to_the_same_bytes() -> None:
    whole, emptied = (bytes.fromhex(EMPTIED[name]) for name in ("whole", "emptied"))

    read = ops.decode(whole, device=EMPTIED["device"], seq=2)
    assert ops.encode(ops.emptied(read, EMPTIED["registers"])) == emptied
    for key in EMPTIED["registers"]:
        read = ops.emptied(read, [key])
    assert ops.encode(read) == emptied
    before, after = second.op(whole), second.op(emptied)
    assert before[:4] == after[:4]
    assert second.emptied(before[4], EMPTIED["registers"]) == after[4]


@pytest.mark.parametrize("one", CAUSES["ops"], ids=names(CAUSES["ops"]))
def test_an_op_with_a_cause_says_what_it_would_without(one: dict[str, Any]) -> None:
    plain = {found["name"]: found for found in OPS["ops"]}.get(one["same_as"])
    read = ops.decode(bytes.fromhex(one["bytes"]), device=CAUSES["device"], seq=one["seq"])

    if plain is None:
        assert ops.fold([read]) == ops.State()
    else:
        same = ops.decode(bytes.fromhex(plain["bytes"]), device=OPS["device"], seq=plain["seq"])
        assert ops.fold([read]) == ops.fold([same]) != ops.State()


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": {1: 2}},
        {"a": [{None: 2}]},
        {"a": b"x"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": msgspec.msgpack.Ext(5, b"x")},
        {"a": json.loads("[" * 70 + "]" * 70)},
    ],
    ids=["number as key", "None as key", "bytes", "NaN", "infinity", "extension type", "70 deep"],
)
def test_metadata_that_json_cannot_say_is_kept_and_not_applied(metadata: dict[str, Any]) -> None:
    for kind, body in (
        (ops.OpType.EVENT, ops.event_body(make.event(0, "x")) | {12: metadata}),
        (ops.OpType.MEMORY, ops.memory_body(make.IDS[2], {ops.Field.METADATA: metadata})),
    ):
        one = make.op(1, kind, body)

        assert ops.problem(one)
        assert make.shown([one]) == make.shown([])


@pytest.mark.parametrize(
    "case", [*MERGES["cases"], *EMPTIED["cases"]], ids=names([*MERGES["cases"], *EMPTIED["cases"]])
)
def test_a_history_shows_what_its_vector_says_in_any_order(case: dict[str, Any]) -> None:
    history = [ops.decode(bytes.fromhex(data), device=device, seq=seq) for device, seq, data in case["ops"]]

    assert case["shows"] == make.shown(history) == make.shown(history[::-1]) == make.shown([*history, *history])


# --- the account log --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", [ACCOUNT, INSTANCES, ADOPTIONS], ids=["account", "instances", "adoptions"])
def test_both_decoders_replay_the_log_to_the_same_states(vectors: dict[str, Any]) -> None:
    states: list[AccountState] = []
    log = second.Log()
    for one in vectors["entries"]:
        states = account.extended(states, [bytes.fromhex(one["bytes"])], Millis(one["at"]))
        log = second.extended(log, bytes.fromhex(one["bytes"]), one["at"])

        assert one["hash"] == states[-1].head.hex() == log.head.hex()
        assert one["after"] == make.state_of(states[-1]) == log.shown()


def test_both_decoders_replay_a_teams_log_to_the_same_states() -> None:
    state, log = None, second.Team()
    for one in TEAMS["entries"]:
        state = teams.extended(state, [bytes.fromhex(one["bytes"])])
        log = second.team_extended(log, bytes.fromhex(one["bytes"]))

        assert state is not None
        assert one["hash"] == state.head.hex() == log.head.hex()
        assert one["after"] == make.team_state_of(state) == log.shown()


@pytest.mark.parametrize("one", TEAMS["refused"], ids=lambda one: one["name"])
def test_both_decoders_refuse_what_a_teams_log_may_not_say(one: dict[str, Any]) -> None:
    standing = [bytes.fromhex(entry["bytes"]) for entry in TEAMS["entries"][: one["after"]]]
    log = second.Team()
    for entry in standing:
        log = second.team_extended(log, entry)

    with pytest.raises(ScrubjayError) as ours:
        teams.extended(teams.extended(None, standing), [bytes.fromhex(one["bytes"])])
    with pytest.raises(second.Refused) as theirs:
        second.team_extended(log, bytes.fromhex(one["bytes"]))

    assert one["error"] == ours.value.code == theirs.value.code


def test_a_log_replays_alike_at_any_later_time() -> None:
    entries = [bytes.fromhex(one["bytes"]) for one in ACCOUNT["entries"]]

    for days in (7, 8, 4000):
        state = account.extended((), entries, Millis(make.START + days * make.DAY))[-1]
        assert make.state_of(state) == ACCOUNT["entries"][-1]["after"]


def test_both_decoders_tell_whose_instance_wrote_a_lane_and_how_far_it_counts() -> None:
    entries = [bytes.fromhex(one["bytes"]) for one in INSTANCES["entries"]]
    device = account.replay(entries).devices[bytes.fromhex(INSTANCES["device"])]
    log = second.Log()
    for entry in entries:
        log = second.extended(log, entry)

    for writer, end in zip(map(bytes.fromhex, INSTANCES["writers"]), [7, 2, 0], strict=True):
        assert device.end_of(make.SCOPE, writer) == second.end_of(log, make.SCOPE, writer)
        assert device.end_of(make.SCOPE, writer)[0] == end
        assert account.replay(entries).keys_of(make.SCOPE, writer) == (bytes.fromhex(INSTANCES["sign_pub"]),)


@pytest.mark.parametrize("one", CHECKPOINTS["checkpoints"], ids=lambda one: str(one["after"]))
def test_both_decoders_state_the_account_in_the_same_bytes(one: dict[str, Any]) -> None:
    standing = [bytes.fromhex(entry["bytes"]) for entry in ACCOUNT["entries"][: one["after"]]]
    data, stated = bytes.fromhex(one["bytes"]), bytes.fromhex(one["state"])
    states = account.extended((), standing)
    log = second.Log()
    for entry in standing:
        log = second.extended(log, entry)

    assert stated == account.state_bytes(states[-1]) == second.stated(log)
    after = account.extended(states, [data])[-1]
    assert one["hash"] == after.head.hex() == second.extended(log, data).head.hex()
    assert after.checkpoint == second.extended(log, data).checkpoint == one["after"]
    begun = account.after_checkpoint(data, stated)
    assert account.state_bytes(begun) == account.state_bytes(after)


def test_both_decoders_state_the_instances_of_a_limited_device() -> None:
    standing = [bytes.fromhex(entry["bytes"]) for entry in INSTANCES["entries"]]
    log = second.Log()
    for entry in standing:
        log = second.extended(log, entry)
    stated = bytes.fromhex(CHECKPOINTS["of_instances"])

    assert stated == account.state_bytes(account.replay(standing)) == second.stated(log)
    assert account.state_bytes(account.state_of(stated)) == stated


@pytest.mark.parametrize("one", CHECKPOINTS["checkpoints"], ids=lambda one: str(one["after"]))
def test_a_log_read_from_a_checkpoint_on_goes_on_as_the_whole_one(one: dict[str, Any]) -> None:
    whole = [bytes.fromhex(entry["bytes"]) for entry in ACCOUNT["entries"]]
    stated = account.state_of(bytes.fromhex(one["state"]))
    later = whole[one["after"] :]
    undone = account.undone_from(later)
    _, earlier = account.replayed(whole, {seq for seq in undone if seq < stated.seq})

    assert account.state_bytes(account.extended([stated], later, earlier=earlier)[-1]) == account.state_bytes(
        account.replay(whole)
    )


def test_a_void_that_goes_back_further_than_what_is_held_is_refused_until_that_is_read() -> None:
    whole = [bytes.fromhex(entry["bytes"]) for entry in ACCOUNT["entries"]]
    place = next(seq for seq, data in enumerate(whole) if account.read(data).type == EntryType.VOID)
    _, kept = account.replayed(whole, {13})

    with pytest.raises(InvalidError, match="state before them is not known"):
        account.extended([kept[13]], whole[14 : place + 1])


@given(st.integers(0, 4), st.data())
def test_no_other_bytes_are_read_as_a_state(place: int, data: st.DataObject) -> None:
    stated = bytes.fromhex(CHECKPOINTS["checkpoints"][place]["state"])
    at, value = data.draw(st.integers(0, len(stated) - 1)), data.draw(st.integers(0, 255))
    changed = stated[:at] + bytes([value]) + stated[at + 1 + data.draw(st.integers(0, 2)) :]

    try:
        found = account.state_of(changed)
    except MalformedError:
        return
    assert account.state_bytes(found) == changed


@pytest.mark.parametrize("kind", [AccountState, account.Device, account.ScopeState])
def test_every_field_of_a_state_is_stated(kind: type) -> None:
    state = account.state_of(bytes.fromhex(CHECKPOINTS["checkpoints"][3]["state"]))
    holder: Any = {AccountState: state, account.Device: state.devices[make.DEVICE]}.get(kind, state.scopes[make.SCOPE])
    other: dict[type, Callable[[Any], Any]] = {
        bytes: lambda value: bytes(32) if len(value) == 32 else b"\1" * len(value),
        int: lambda value: value + 1,
        bool: lambda value: not value,
        str: lambda value: value + "x",
        tuple: lambda value: (*value, "x") if value and isinstance(value[0], str) else (9, bytes(32)),
        dict: lambda value: {} if value else {(make.OTHER, make.SCOPE): (1, bytes(32))},
        type(None): lambda _: {"scopes": (make.SCOPE,), "ends": {}, "waiting_recovery": (bytes(32), b"", 1)},
    }

    for one in fields(kind):
        value = getattr(holder, one.name)
        changed = other[type(value)](value)
        if value is None:
            changed = changed[one.name]
        moved = replace(holder, **{one.name: changed})
        if kind is account.Device:
            moved = replace(state, devices={**state.devices, make.DEVICE: moved})
        elif kind is account.ScopeState:
            moved = replace(state, scopes={**state.scopes, make.SCOPE: moved})
        assert account.state_digest(moved) != account.state_digest(state), one.name


def test_both_decoders_keep_the_wrap_key_that_a_device_renewed_before_a_void() -> None:
    log, ask = make.Log(), make.ASK[0][2]
    device = account.device_body(make.DEVICE, sign_pub=make.PUBLIC, wrap_pub=make.WRAP_PUB[1])
    home = account.scope_body(make.SCOPE, suite=Suite.SEALED, home=True)
    log.add("genesis", EntryType.GENESIS, make.genesis(), ask)
    log.add("device", EntryType.DEVICE_ADD, device, ask)
    log.add("home", EntryType.SCOPE_CREATE, home, ask)
    log.add("renewed", EntryType.DEVICE_REKEY, {1: make.DEVICE, 2: make.WRAP_PUB[4]}, ask)
    log.add("void", EntryType.VOID, {1: 3, 2: 2, 3: make.ASK[1][1]}, make.RSK[0][2], Signer.RSK)
    other = second.Log()
    for entry in log.entries:
        other = second.extended(other, entry)

    assert log.states[-1].devices[make.DEVICE].wrap_pub == make.WRAP_PUB[4]
    assert make.state_of(log.states[-1]) == other.shown()


@pytest.mark.parametrize(
    ("vectors", "one"),
    [(vectors, one) for vectors in (ACCOUNT, INSTANCES, ADOPTIONS) for one in vectors["refused"]]
    + [(ACCOUNT, one) for one in CHECKPOINTS["refused"]],
    ids=names([*ACCOUNT["refused"], *INSTANCES["refused"], *ADOPTIONS["refused"], *CHECKPOINTS["refused"]]),
)
def test_both_decoders_refuse_the_same_entries_for_the_same_reason(
    vectors: dict[str, Any], one: dict[str, Any]
) -> None:
    standing = [bytes.fromhex(entry["bytes"]) for entry in vectors["entries"][: one["after"]]]
    states = account.extended((), standing)
    log = second.Log()
    for entry in standing:
        log = second.extended(log, entry)

    with pytest.raises(ScrubjayError) as first:
        account.extended(states, [bytes.fromhex(one["bytes"])], Millis(make.START))
    with pytest.raises(second.Refused) as other:
        second.extended(log, bytes.fromhex(one["bytes"]), make.START)

    assert one["error"] == first.value.code == other.value.code
    assert first.value.hint


class Signed:
    """A log that tests extend: the fixed account, its first device and its home scope."""

    def __init__(self) -> None:
        self.log = make.Log()
        self.add(EntryType.GENESIS, make.genesis())
        self.add(
            EntryType.DEVICE_ADD, account.device_body(make.DEVICE, sign_pub=make.PUBLIC, wrap_pub=make.WRAP_PUB[1])
        )
        self.add(EntryType.SCOPE_CREATE, account.scope_body(make.SCOPE, suite=Suite.SEALED, home=True))

    def add(
        self, kind: EntryType, body: dict[int, Any], by: int = 0, *, code: int | None = None, at: int = make.START
    ) -> AccountState:
        """Append an entry signed by account key `by`, or by recovery key `code`."""
        sign: Callable[[bytes], bytes] = make.ASK[by][2] if code is None else make.RSK[code][2]
        self.log.add("", kind, body, sign, 1 if code is None else 2, at)
        return self.log.states[-1]

    def fresh(
        self, kind: EntryType, body: dict[int, Any], by: int = 0, *, code: int | None = None, now: int = make.START
    ) -> AccountState:
        """Say what a server would take at a time, without appending it."""
        sign = make.ASK[by][2] if code is None else make.RSK[code][2]
        data = self.log.next(kind, body, sign, 1 if code is None else 2)
        return account.extended(self.log.states, [data], Millis(now), fresh=True)[-1]


def recovery(signed: Signed, to: int, at: int = make.START) -> dict[int, Any]:
    return make.new_code(signed.log, to, make.WRAP_PUB[to], at)


def confirm(to: int, at: int) -> dict[int, Any]:
    return {1: make.RSK[to][1], 2: at}


def test_a_thief_cannot_set_back_the_time_from_which_another_recovery_code_counts() -> None:
    signed = Signed()

    with pytest.raises(InvalidError):
        signed.fresh(EntryType.RECOVERY_ROTATE, recovery(signed, 1, make.START - 8 * make.DAY))
    with pytest.raises(InvalidError):
        signed.fresh(EntryType.RECOVERY_ROTATE, recovery(signed, 1, make.START + make.DAY))

    assert signed.fresh(EntryType.RECOVERY_ROTATE, recovery(signed, 1)).rsk == make.RSK[0][1]


def test_a_waiting_recovery_code_is_voided_by_the_old_one_and_counts_only_once_it_is_confirmed() -> None:
    signed, week = Signed(), make.START + 7 * make.DAY
    signed.add(EntryType.RECOVERY_ROTATE, recovery(signed, 1))
    void = {1: 3, 2: 2, 3: make.ASK[1][1]}

    for now in (make.START + 6 * make.DAY, make.START + 9 * make.DAY):
        assert signed.fresh(EntryType.VOID, void, code=0, now=now).rsk == make.RSK[0][1]
        with pytest.raises(BadSignatureError):
            signed.fresh(EntryType.VOID, void, code=1, now=now)
    for now in (week - make.DAY, week - 1):
        with pytest.raises(InvalidError):
            signed.fresh(EntryType.RECOVERY_CONFIRM, confirm(1, now), now=now)
    with pytest.raises(InvalidError):  # dated ahead, to look as if the week were over
        signed.fresh(EntryType.RECOVERY_CONFIRM, confirm(1, week), now=week - make.DAY)
    state = signed.add(EntryType.RECOVERY_CONFIRM, confirm(1, week), at=week)
    assert (state.rsk, state.recovery_pub, state.waiting_recovery) == (make.RSK[1][1], make.WRAP_PUB[1], None)
    with pytest.raises(BadSignatureError):
        signed.fresh(EntryType.VOID, void, code=0, now=week)


def test_a_second_change_while_the_first_waits_takes_its_place_and_waits_anew() -> None:
    signed = Signed()
    signed.add(EntryType.RECOVERY_ROTATE, recovery(signed, 1))
    at = make.START + 6 * make.DAY
    state = signed.add(EntryType.RECOVERY_ROTATE, recovery(signed, 2, at), at=at)

    assert state.rsk == make.RSK[0][1]
    assert state.waiting_recovery == (make.RSK[2][1], make.WRAP_PUB[2], at + 7 * make.DAY)


def test_a_recovery_code_that_was_replaced_by_itself_can_void_nothing_and_a_void_does_not_bring_it_back() -> None:
    signed = Signed()
    signed.add(EntryType.RECOVERY_ROTATE, recovery(signed, 1), code=0)

    with pytest.raises(BadSignatureError):
        signed.add(EntryType.VOID, {1: 3, 2: 2, 3: make.ASK[1][1]}, code=0)

    assert signed.add(EntryType.VOID, {1: 3, 2: 2, 3: make.ASK[1][1]}, code=1).rsk == make.RSK[1][1]


def test_a_void_brings_back_a_revoked_device_and_never_a_used_version_or_epoch() -> None:
    signed = Signed()
    signed.add(EntryType.ROTATE, {1: 2, 2: make.ASK[1][1]})
    signed.add(EntryType.EPOCH_ADD, {1: make.SCOPE, 2: 1}, by=1)
    signed.add(EntryType.DEVICE_REVOKE, account.revoke_body(make.DEVICE, {}), by=1)

    with pytest.raises(InvalidError):
        signed.add(EntryType.VOID, {1: 3, 2: 2, 3: make.ASK[2][1]}, code=0)
    state = signed.add(EntryType.VOID, {1: 3, 2: 3, 3: make.ASK[2][1]}, code=0)

    assert (state.version, state.scopes[make.SCOPE].epoch) == (3, 1)
    assert [one.id for one in state.active()] == [make.DEVICE]
    with pytest.raises(BadSignatureError):
        signed.add(EntryType.EPOCH_ADD, {1: make.SCOPE, 2: 2}, by=1)


some_bytes = st.one_of(
    st.sampled_from([make.DEVICE, make.OTHER, make.SCOPE, make.OPEN_SCOPE, bytes(32), make.ASK[1][1], make.RSK[1][1]]),
    st.binary(max_size=33),
)
some_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 4),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=4),
        some_bytes,
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


ENTRIES = [bytes.fromhex(one["bytes"]) for one in ACCOUNT["entries"]]
STATES = account.extended((), ENTRIES)
SECOND_STATES: list[Any] = []
for _entry in ENTRIES:
    SECOND_STATES.append(second.extended(SECOND_STATES[-1] if SECOND_STATES else second.Log(), _entry))
FIRST = (make.DEVICE, make.SIGN)
BODIES = {read.type: read.body for read in map(account.read, ENTRIES)}


@settings(max_examples=100)
@given(
    kind=st.sampled_from([*map(int, EntryType), 10, 99]),
    body=st.dictionaries(st.integers(0, 5), some_values, max_size=5),
    good=st.booleans(),
    signer=st.sampled_from([1, 1, 1, 2, 3]),
    author=st.sampled_from([FIRST, FIRST, FIRST, (make.OTHER, make.OTHER_SIGN), (make.OTHER, make.SIGN), None]),
    after=st.integers(1, 11),
)
def test_both_decoders_judge_any_signed_entry_alike(
    *, kind: int, body: dict[int, Any], good: bool, signer: int, author: Any, after: int
) -> None:
    states, log = STATES[:after], SECOND_STATES[after - 1]
    if good:
        body = BODIES.get(kind, {}) | body
    sign = make.ASK[0][2] if signer == 1 else make.RSK[0][2]
    by_code = signer == 2 or author is None
    data = account.entry(
        make.ACCOUNT,
        seq=after,
        prev=states[-1].head,
        type=kind,
        body=body,
        sign=sign,
        signer=signer,  # type: ignore[arg-type]
        author=account.CODE_AUTHOR if by_code else author[0],
        cosign=make.RSK[0][2] if by_code else author[1],
    )

    first = judged(lambda: make.state_of(account.extended(states, [data], Millis(make.START))[-1]), ScrubjayError)
    other = judged(lambda: second.extended(log, data, make.START).shown(), second.Refused)

    assert first == other


def judged(take: Callable[[], Any], refusal: type[Exception]) -> Any:
    """Return what came of something: its value, or the code it was refused with."""
    try:
        return take()
    except refusal as error:
        return error.code  # type: ignore[attr-defined]


# --- keys -------------------------------------------------------------------------------------------------------------

SECRETS = make.committed("keys.json")
REFUSAL = make.committed("refusal.json")


def hexed(*names: str) -> list[bytes]:
    """Return some fields of the vectors of keys, each given as `section.field`."""
    return [bytes.fromhex(SECRETS[name.partition(".")[0]][name.partition(".")[2]]) for name in names]


def test_the_password_key_is_what_the_specification_derives() -> None:
    one = SECRETS["auth_key"]
    password = unicodedata.normalize("NFKC", one["password"]).encode()
    stretched = Argon2id(
        salt=bytes.fromhex(one["salt"]),
        length=32,
        iterations=one["iterations"],
        lanes=one["lanes"],
        memory_cost=one["memory_kib"],
    ).derive(password)

    assert one["key"] == second.hkdf(stretched, b"sjs/1/auth" + one["origin"].encode()).hex()


def test_the_recovery_code_reads_as_it_was_shown_and_however_it_is_typed() -> None:
    (secret, rsk) = hexed("recovery.secret", "recovery.rsk")
    text = SECRETS["recovery"]["text"]

    for typed in (text, text.lower(), text.replace("-", " "), text.replace("0", "o").replace("1", "l")):
        assert secret == second.recovery_secret(typed) == RecoveryCode.parse(typed).secret
    assert rsk == public_of(second.hkdf(secret, b"sjs/1/rec/sign"))
    letters = text.replace("-", "")
    for at in range(36):
        other = letters[:at] + ("7" if letters[at] != "7" else "8") + letters[at + 1 :]
        with pytest.raises(second.Refused):
            second.recovery_secret(other)
        with pytest.raises(InvalidError):
            RecoveryCode.parse(other)


def test_what_people_compare_is_what_the_specification_derives() -> None:
    genesis, head, device, asking, answering, commitment, digest = hexed(
        *(f"pairing.{name}" for name in ("genesis", "head", "device", "asking", "answering", "commitment", "digest"))
    )
    sign_pub, wrap_pub = hexed("device.sign_pub", "device.wrap_pub")
    lanes = b"".join(
        bytes.fromhex(scope) + bytes.fromhex(device) + n.to_bytes(8, "big") + bytes.fromhex(tip)
        for scope, device, n, tip in sorted(SECRETS["heads"]["lanes"])
    )
    account_id, log_head, heads = hexed("heads.account", "heads.log_head", "heads.digest")

    assert digest == second.sha(b"sjs/1/sas", genesis, head, device, asking, answering, sign_pub, wrap_pub)
    assert commitment == second.sha(b"sjs/1/pair/commit", asking, device, sign_pub, wrap_pub)
    assert heads == second.sha(b"sjs/1/heads", account_id, log_head, lanes)
    for section in ("pairing", "heads"):
        places = second.word_places(bytes.fromhex(SECRETS[section]["digest"]))
        assert SECRETS[section]["words"] == [words.wordlist()[place] for place in places]


def test_a_token_is_asked_for_with_the_signature_that_the_specification_says() -> None:
    nonce, message, signature = hexed("auth.nonce", "auth.message", "auth.signature")

    assert message == b"sjs/1/auth" + make.ACCOUNT + make.DEVICE + nonce + SECRETS["auth"]["origin"].encode()
    assert second.verified(make.PUBLIC, message, signature)


def test_a_refusal_is_signed_as_the_specification_says() -> None:
    account_id, device, author, nonce, message, signature = (
        bytes.fromhex(REFUSAL[name]) for name in ("account", "device", "author", "nonce", "message", "signature")
    )

    assert message == b"sjs/1/refuse" + account_id + device + author + nonce
    assert second.verified(make.PUBLIC, message, signature)


def test_both_decoders_open_the_wraps_and_the_keyring() -> None:
    mlkem, x25519, root_secret, ask_seed, wrap_key = hexed(
        "device.mlkem_seed", "device.x25519_seed", "root.secret", "root.ask_seed", "root.wrap_key"
    )
    recovery = hexed("recovery.secret")[0]
    holder = WrapKeys(mlkem_seed=mlkem, x25519_seed=x25519)
    seeds = second.hkdf(recovery, b"sjs/1/rec/enc", 96)

    for name, opener, own in (
        ("root", holder, (mlkem, x25519)),
        ("recovery", RecoveryCode(secret=recovery), (seeds[:64], seeds[64:])),
    ):
        one = SECRETS["wraps"][name]
        target, sealed = bytes.fromhex(one["target"]), bytes.fromhex(one["sealed"])
        info = b"sjs/1/wrap" + make.ACCOUNT + target + bytes([one["kind"]]) + one["version"].to_bytes(4, "big")
        wrap = wire.Wrap(target=target, kind=one["kind"], version=one["version"], sealed=sealed)
        root = unwrap_root(wrap, account=make.ACCOUNT, target=target, holder=opener, ask=hexed("root.ask")[0])
        assert root_secret + ask_seed == root.secret + root.ask_seed == second.hpke_opened(*own, sealed[-1200:], info)
    assert wrap_key == root.wrap_key == second.hkdf(root_secret, b"sjs/1/wrapkey")

    data = bytes.fromhex(SECRETS["wraps"]["keyring"])
    (ring,) = second.objects(data)
    payload = bytes.fromhex(SECRETS["keyring"]["payload"])
    assert payload == second.payload(ring, wrap_key)
    opened = open_keyring(data, account=make.ACCOUNT, version=3, digest=second.sha(data), root=root)
    said = second.unpacked(payload)
    assert said["scopes"][make.SCOPE] == {"name": "home", "keys": KEYS, "projects": []}
    assert said["devices"] == opened.devices == {make.DEVICE: "laptop"}
    assert said["scopes"].keys() == opened.scopes.keys() == {make.SCOPE, make.OPEN_SCOPE}

    one = SECRETS["wraps"]["extract"]
    info = b"sjs/1/wrap" + make.ACCOUNT + make.DEVICE + bytes([2]) + (3).to_bytes(4, "big")
    inside = second.hpke_opened(mlkem, x25519, bytes.fromhex(one["sealed"]), info)
    assert inside[64:].hex() == SECRETS["wraps"]["extract_payload"]
    assert second.verified(
        hexed("root.ask")[0],
        b"sjs/1/extract" + make.ACCOUNT + make.DEVICE + (3).to_bytes(4, "big") + inside[64:],
        inside[:64],
    )


@pytest.mark.parametrize("name", ["root", "extract"])
def test_every_flipped_byte_of_a_wrap_is_refused(name: str) -> None:
    mlkem, x25519 = hexed("device.mlkem_seed", "device.x25519_seed")
    holder = WrapKeys(mlkem_seed=mlkem, x25519_seed=x25519)
    one = SECRETS["wraps"][name]
    target, ask = bytes.fromhex(one["target"]), hexed("root.ask")[0]

    def unwrapped(sealed: bytes, account_id: bytes = make.ACCOUNT) -> object:
        wrap = wire.Wrap(target=target, kind=one["kind"], version=one["version"], sealed=sealed)
        open_one = unwrap_root if name == "root" else unwrap_limited_keyring
        return open_one(wrap, account=account_id, target=target, holder=holder, ask=ask)

    sealed = bytes.fromhex(one["sealed"])
    unwrapped(sealed)
    for at in range(0, len(sealed), 3):
        with pytest.raises(WrongKeyError):
            unwrapped(sealed[:at] + bytes([sealed[at] ^ 1 << at % 8]) + sealed[at + 1 :])
    for length in range(0, len(sealed), 97):
        with pytest.raises(ScrubjayError):
            unwrapped(sealed[:length])
    with pytest.raises(WrongKeyError):
        unwrapped(sealed, bytes(16))


# --- damage -----------------------------------------------------------------------------------------------------------

SEALED, SPOKEN = (
    [
        envelope.parse(bytes.fromhex(one["bytes"]))
        for one in OBJECTS["objects"]
        if one["suite"] == suite and one["kind"] == 1
    ]
    for suite in (1, 0)
)
PACKS = [envelope.parse(bytes.fromhex(one["bytes"])) for one in OBJECTS["objects"] if one["kind"] == 2]
WHOLE = [SEALED[0], *PACKS, SPOKEN[0]]
DAMAGE = (
    MalformedError,
    BrokenChainError,
    BadSignatureError,
    WrongKeyError,
    CorruptError,
    UpdateNeededError,
)


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield some bytes with one changed, for each place: one bit of it, and all of them."""
    for at in range(len(data)):
        for mask in (1 << at % 8, 0xFF):
            yield at, data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@pytest.mark.parametrize("one", WHOLE, ids=["segment", "pack", "open pack", "open segment"])
def test_every_flipped_byte_of_an_object_is_refused(one: Envelope) -> None:
    received(one.data)
    taken = []
    for at, data in flips(one.data):
        try:
            received(data)
        except DAMAGE:
            continue
        taken.append(at)

    assert taken == []


@pytest.mark.parametrize("one", [SEALED[0], PACKS[0]], ids=["segment", "pack"])
def test_every_flipped_byte_that_its_device_signed_again_is_refused_by_what_stands_behind_the_signature(
    one: Envelope,
) -> None:
    kinds: dict[str, set[int]] = {}
    for at, data in flips(one.data[: -envelope.SIGNATURE_BYTES]):
        head, body = data[: envelope.HEADER_BYTES], data[envelope.HEADER_BYTES :]
        with pytest.raises(ScrubjayError) as refused:
            received(head + body + make.SIGN(envelope.signed_message(head, body)))
        kinds.setdefault(refused.value.code, set()).add(at)

    assert set(range(208, len(one.data) - 64)) <= kinds["corrupt"]
    assert kinds["corrupt"] <= set(range(208, len(one.data) - 64))  # a header is never taken for a damaged body
    assert set(range(76, 108)) <= kinds["broken_chain"]
    assert set(range(8, 24)) | set(range(140, 204)) <= kinds["wrong_key"]


@pytest.mark.parametrize("one", WHOLE, ids=["segment", "pack", "open pack", "open segment"])
def test_an_object_cut_at_any_place_is_refused(one: Envelope) -> None:
    for length in range(len(one.data)):
        with pytest.raises(MalformedError):
            envelope.parse(one.data[:length])
    for length in range(1, len(one.data)):
        page = SEALED[0].data + one.data[:length]
        with pytest.raises(MalformedError):
            list(envelope.split(page))


def test_a_page_that_was_repeated_reordered_or_thinned_is_refused() -> None:
    first, then, third, last = SEALED
    for run in ([first, first], [then, first], [first, third], [then], [first, then, then], [first, PACKS[0]]):
        with pytest.raises(BrokenChainError):
            envelope.check_run(run, n=0, prev=envelope.lane_root(*LANE), keys=lambda _: [make.PUBLIC])
        with pytest.raises(second.Refused) as refused:
            second.check_run(
                second.objects(b"".join(one.data for one in run)),
                LANE,
                0,
                second.lane_root(*LANE),
                lambda _: [make.PUBLIC],
            )
        assert refused.value.code == "broken_chain"
    with pytest.raises(MalformedError):
        envelope.parse(first.data + then.data)
    envelope.check_run([third, last], n=2, prev=then.link, keys=lambda _: [make.PUBLIC])


def test_a_damaged_object_in_the_middle_of_a_run_is_refused_though_only_the_last_signature_is_checked() -> None:
    damaged = replace(SEALED[1], body=SEALED[1].body[:-1] + bytes([SEALED[1].body[-1] ^ 1]))

    with pytest.raises(BrokenChainError):
        envelope.check_run(
            [SEALED[0], damaged, *SEALED[2:]], n=0, prev=envelope.lane_root(*LANE), keys=lambda _: [make.PUBLIC]
        )


def test_a_pack_whose_body_its_device_did_not_sign_is_refused_in_the_middle_of_a_run() -> None:
    forged = replace(PACKS[0], body=bytes(len(PACKS[0].body)))

    with pytest.raises(BadSignatureError):
        envelope.check_run([forged, SEALED[3]], n=0, prev=envelope.lane_root(*LANE), keys=lambda _: [make.PUBLIC])


@pytest.mark.parametrize("field", ["account", "scope", "device"])
def test_an_object_moved_to_another_lane_is_refused_even_by_its_own_signer(field: str) -> None:
    moved = envelope.assemble(replace(SEALED[0].header, **{field: bytes(16)}), SEALED[0].body, make.SIGN)
    lane = (moved.header.account, moved.header.scope, moved.header.device)

    with pytest.raises(BrokenChainError):
        envelope.check_run([moved], n=0, prev=envelope.lane_root(*lane), keys=lambda _: [make.PUBLIC])
    rooted = envelope.assemble(replace(moved.header, prev=envelope.lane_root(*lane)), moved.body, make.SIGN)
    envelope.check_run([rooted], n=0, prev=envelope.lane_root(*lane), keys=lambda _: [make.PUBLIC])
    with pytest.raises(WrongKeyError):
        sealing.unseal(rooted, key=KEYS[0])


@pytest.mark.parametrize("field", ["account", "scope", "device"])
def test_an_object_of_another_lane_among_those_of_one_is_refused(field: str) -> None:
    stranger = envelope.assemble(replace(SEALED[1].header, **{field: bytes(16)}), SEALED[1].body, make.OTHER_SIGN)

    with pytest.raises(BrokenChainError):
        envelope.check_run(
            [SEALED[0], stranger], n=0, prev=envelope.lane_root(*LANE), keys=lambda _: [make.PUBLIC, make.OTHER_PUBLIC]
        )


def test_a_body_moved_under_another_header_of_the_same_lane_is_refused() -> None:
    spliced = envelope.assemble(
        SEALED[0].header, SEALED[1].body[: len(SEALED[0].body)].ljust(len(SEALED[0].body), b"\0"), make.SIGN
    )

    with pytest.raises(CorruptError) as refused:
        received(spliced.data)
    assert refused.value.code == "corrupt"


def test_a_sealed_object_cannot_be_passed_off_as_open_nor_an_open_one_as_sealed() -> None:
    bare = replace(SEALED[0].header, suite=Suite.OPEN, salt=envelope.ZERO, commit=envelope.ZERO)
    for forged in (envelope.assemble(bare, SEALED[0].body, make.OTHER_SIGN), replace(SPOKEN[0], signature=bytes(64))):
        with pytest.raises(CorruptError):
            received(forged.data)
    with pytest.raises(WrongKeyError):
        sealing.unseal(
            envelope.assemble(replace(SPOKEN[0].header, suite=Suite.SEALED), SPOKEN[0].body, make.SIGN), key=KEYS[0]
        )


@given(st.binary(min_size=32, max_size=32))
def test_a_wrong_key_says_wrong_key_and_never_corrupt(key: bytes) -> None:
    for one in (*SEALED, PACKS[0]):
        with pytest.raises(WrongKeyError):
            sealing.unseal(one, key=key)


def test_the_key_of_another_epoch_says_wrong_key() -> None:
    for one in SEALED:
        with pytest.raises(WrongKeyError):
            sealing.unseal(one, key=KEYS[1 - one.header.epoch])


def test_the_keyring_kind_cannot_stand_in_a_lane_by_changing_its_number() -> None:
    for kind in set(ObjectKind) - {ObjectKind.SEGMENT}:
        with pytest.raises(ScrubjayError):
            received(envelope.assemble(replace(SEALED[0].header, kind=kind), SEALED[0].body, make.SIGN).data)


@pytest.mark.slow
def test_every_flipped_byte_of_an_account_log_entry_is_refused() -> None:
    entries = [bytes.fromhex(one["bytes"]) for one in ACCOUNT["entries"]]
    states = account.extended((), entries)
    taken = []
    for place, entry in enumerate(entries):
        for at, data in flips(entry):
            if at % 3 and len(entry) > 400 and 64 < at < len(entry) - 128:
                continue  # the inside of a key of 1,216 bytes: a third of it says the same
            try:
                account.extended(states[:place], [data])
            except ScrubjayError:
                continue
            taken.append((place, at))

    assert taken == []


def test_an_account_log_cut_at_any_place_of_an_entry_or_of_another_account_is_refused() -> None:
    entries = [bytes.fromhex(one["bytes"]) for one in ACCOUNT["entries"]]
    states = account.extended((), entries)
    for length in range(len(entries[2])):
        with pytest.raises(ScrubjayError):
            account.extended(states[:2], [entries[2][:length]], Millis(make.START))
    with pytest.raises(ScrubjayError):
        account.extended(states[:2], [entries[2] + b"\0"], Millis(make.START))
    foreign = account.entry(
        bytes(16),
        seq=2,
        prev=states[1].head,
        type=EntryType.ORIGIN_ADD,
        body={1: "x"},
        sign=make.ASK[0][2],
        author=make.DEVICE,
        cosign=make.SIGN,
    )
    with pytest.raises(BadSignatureError):
        account.extended(states[:2], [foreign], Millis(make.START))
