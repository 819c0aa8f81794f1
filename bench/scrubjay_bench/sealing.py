"""Sealing: how fast events become signed objects, and how many bytes of the server each then takes.

In this process, without a service: what is measured is processor time, and sizes. The ops are those of the corpus's
events, encoded as a store sends them.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

import zstandard
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from scrubjay.store.replication_state import Sealed
from scrubjay_bench import clouds
from scrubjay_bench.clouds import Author
from scrubjay_bench.corpus import Corpus
from scrubjay_bench.figures import Figure, Rounds
from scrubjay_bench.plan import Plan
from scrubjay_shared import ops, segment
from scrubjay_shared.clock import Hlc, Millis, tick, ulid
from scrubjay_shared.envelope import Envelope, signed_by
from scrubjay_shared.records import Event, EventType, Role, Trust
from scrubjay_sync import packing, planning
from scrubjay_sync.packing import Opened
from scrubjay_sync.policy import SYNC

SEED = 23
EVENTS = 20_000
ALONE = 1_000  # events sealed one by one a round: each takes what a thousandth of a large object takes
TURN = 4  # events that one debounced segment holds: question, two tools, answer
PACK_GOAL = 200_000
BYTES_GOAL = 110


def measure(plan: Plan) -> list[Figure]:
    """Measure all of it; half a minute."""
    return measured(plan.rounds, EVENTS)


def measured(count: int, events: int) -> list[Figure]:
    """Measure with so many events a round."""
    rounds = Rounds()
    encoded = list(event_ops(events, SEED))
    for _ in range(count):
        one_round(rounds, encoded)
    samples = len(encoded)
    return [
        rounds.figure("seal.upload", f"events sealed in objects of a first upload ({SYNC.seal_ops:,} ops at most)",
                      "events/s", samples=samples, floor="floor.seal", goal=PACK_GOAL),
        rounds.figure("seal.pack", "events of live segments opened, joined and sealed again in packs", "events/s",
                      samples=samples, floor="floor.seal"),
        rounds.figure("seal.live", f"events sealed in live segments of {TURN}", "events/s", samples=samples,
                      floor="floor.seal.live"),
        rounds.figure("seal.alone", "events sealed one by one", "events/s", samples=min(ALONE, samples),
                      floor="floor.seal.alone"),
        rounds.figure("open.pack", "events of packs checked, opened and decoded to ops", "events/s", samples=samples,
                      floor="floor.open"),
        rounds.figure("floor.seal", "bare zstd, AES-256-GCM-SIV and an Ed25519 signature over the uploads' payloads",
                      "events/s", samples=samples),
        rounds.figure("floor.seal.live", "the same over the live segments' payloads", "events/s", samples=samples),
        rounds.figure("floor.seal.alone", "the same over single events", "events/s", samples=min(ALONE, samples)),
        rounds.figure("floor.open", "bare verification, decryption and decompression of the packs", "events/s",
                      samples=samples),
        rounds.figure("size.op", "of an event's encoded op, nothing around it", "bytes", samples=samples),
        rounds.figure("size.alone", "of the server for an event sealed alone", "bytes", samples=min(ALONE, samples)),
        rounds.figure("size.live", f"of the server for an event in live segments of {TURN}", "bytes", samples=samples),
        rounds.figure("size.upload", "of the server for an event of a first upload", "bytes", samples=samples),
        rounds.figure("size.packed", "of the server for an event once the live segments are packed", "bytes",
                      samples=samples, goal=BYTES_GOAL),
    ]  # fmt: skip


def event_ops(count: int, seed: int) -> Iterator[bytes]:
    """Yield the encoded ops of the corpus's first events, as a store of theirs sends them."""
    texts, draw = Corpus(seed), random.Random(seed)
    stamp = Hlc(0)
    for number in range(count):
        event = event_of(texts, number, draw)
        stamp = tick(stamp, event.ts)
        yield ops.encode_event(event, draw.randbytes(16), stamp)


def event_of(texts: Corpus, number: int, draw: random.Random) -> Event:
    """Return the `number`-th event of a corpus as a store keeps it."""
    made = texts.event(number)
    user = made["type"] == "user_message"
    return Event(
        id=ulid(Millis(made["ts"]), draw.randbytes(10)),
        device="",
        agent=made["agent"],
        session_id=made["session_id"],
        type=EventType(made["type"]),
        role=Role.USER if user else Role.ASSISTANT,
        text=made["text"],
        ts=Millis(made["ts"]),
        dedupe_key=made["dedupe_key"],
        project=made["project"],
        metadata=made["metadata"],
        trust=Trust.USER if user else Trust.AGENT,  # as every way in sets it: else each row's op is kept beside it
    )


def gate(count: int) -> Rounds:
    """Measure only what the gate looks at."""
    rounds = Rounds()
    encoded = list(event_ops(SYNC.seal_ops, SEED))
    for _ in range(count):
        _bulk(rounds, encoded)
    return rounds


def one_round(rounds: Rounds, encoded: Sequence[bytes]) -> None:
    """Note one round of everything over some encoded ops."""
    count = len(encoded)
    rounds.add("size.op", sum(map(len, encoded)) / count)
    large = _bulk(rounds, encoded)
    rounds.add("size.upload", _bytes_of(large) / count)
    alone = _sealed(rounds, "seal.alone", "floor.seal.alone", [[one] for one in encoded[:ALONE]])
    rounds.add("size.alone", _bytes_of(alone) / min(ALONE, count))
    author = clouds.authors(1)[0][0]
    turns = [encoded[at : at + TURN] for at in range(0, count, TURN)]
    live = _sealed(rounds, "seal.live", "floor.seal.live", turns, author)
    rounds.add("size.live", _bytes_of(live) / count)
    began = time.process_time()
    packs = packed(author, [one.envelope for one in live])
    rounds.add("seal.pack", count / (time.process_time() - began))
    rounds.add("size.packed", sum(len(one.data) for one in packs) / count)
    _opened(rounds, author, packs, count)


def _bulk(rounds: Rounds, encoded: Sequence[bytes]) -> list[Opened]:
    runs = [encoded[at : at + SYNC.seal_ops] for at in range(0, len(encoded), SYNC.seal_ops)]
    return _sealed(rounds, "seal.upload", "floor.seal", runs)


def _sealed(
    rounds: Rounds, name: str, floor: str, runs: Sequence[Sequence[bytes]], author: Author | None = None
) -> list[Opened]:
    """Note how fast some runs of ops are sealed, and how fast the same payloads go through the bare primitives."""
    author = author or clouds.authors(1)[0][0]
    count = sum(map(len, runs))
    made: list[Opened] = []
    began = time.process_time()
    for run in runs:
        entries = [(author.seq + 1 + at, data) for at, data in enumerate(run)]
        author.seq += len(run)
        for part in planning.cut(entries):
            made += packing.segments(author.place(), part, author.signer)
            author.n, author.tip = made[-1].envelope.header.n_to, made[-1].envelope.end
    rounds.add(name, count / (time.process_time() - began))
    payloads = [(segment.encode(one.entries), one.envelope.head) for one in made]
    sign, cipher = author.key.sign, AESGCMSIV(os.urandom(32))
    began = time.process_time()
    for payload, head in payloads:
        body = cipher.encrypt(bytes(12), zstandard.ZstdCompressor(level=segment.LEVEL).compress(payload), head)
        sign(sha256(head + body).digest())
    rounds.add(floor, count / (time.process_time() - began))
    return made


def packed(author: Author, objects: Sequence[Envelope]) -> list[Envelope]:
    """Return what a lane's objects are on the server once its device has packed them, as its rounds do."""
    kept = list(objects)
    rows = [_row(one) for one in kept]
    while ranges := planning.packs(rows, ()):
        found = False
        for chosen in ranges:
            first = next(at for at, row in enumerate(rows) if row is chosen.rows[0])
            covered = kept[first : first + len(chosen.rows)]
            entries = [entry for one in covered for entry in packing.opened(one, author.secret).entries]
            place = replace(author.place(), n=covered[0].header.n_from, prev=covered[0].header.prev)
            made = packing.pack(place, covered, entries, author.signer)
            if made is not None:
                kept[first : first + len(covered)] = [made]
                rows[first : first + len(covered)] = [_row(made)]
                found = True
        if not found:
            break
    return kept


def _row(one: Envelope) -> Sealed:
    header = one.header
    return Sealed(
        scope=header.scope,
        device=header.device,
        n_from=header.n_from,
        n_to=header.n_to,
        seq_low=0,
        seq_high=0,
        size=len(one.data),
        tip=one.end,
    )


def _opened(rounds: Rounds, author: Author, packs: Sequence[Envelope], count: int) -> None:
    keys = (author.key.public,)
    began = time.process_time()
    for one in packs:
        if not signed_by(one, keys):
            raise AssertionError("a pack that its own device has not signed")
        entries = packing.opened(one, author.secret).entries
        any(map(partial(_decoded, author.device.hex()), entries))
    rounds.add("open.pack", count / (time.process_time() - began))
    cipher_of = [(AESGCMSIV(os.urandom(32)), one) for one in packs]
    sealed = [
        (cipher, one.head, cipher.encrypt(bytes(12), segment.compress(_payload(author, one))[0], one.head), one)
        for cipher, one in cipher_of
    ]
    began = time.process_time()
    for cipher, head, body, one in sealed:
        signed_by(one, keys)
        zstandard.ZstdDecompressor().decompress(cipher.decrypt(bytes(12), body, head))
    rounds.add("floor.open", count / (time.process_time() - began))


def _payload(author: Author, one: Envelope) -> bytes:
    return segment.encode(packing.opened(one, author.secret).entries)


def _decoded(device: str, entry: tuple[int, bytes | None]) -> bool:
    seq, data = entry
    return data is not None and ops.decode(data, device=device, seq=seq) is None


def _bytes_of(objects: Sequence[Opened]) -> int:
    return sum(len(one.envelope.data) for one in objects)
