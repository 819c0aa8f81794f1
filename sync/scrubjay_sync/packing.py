"""How ops become objects and objects become ops again: segments, parts, checkpoints, packs. Pure, but for its keys.

A checkpoint, which the protocol calls a beacon, has the payload {1: when, 2: [[scope, device, n, link], …], 3: seq,
4: hash} as MessagePack: every lane's end, and the account log's, as its sender saw them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from scrubjay_shared import parts, sealing, segment, snapshot
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import (
    HEADER_BYTES,
    LIMIT,
    MAX_OBJECT_BYTES,
    SIGNATURE_BYTES,
    ZERO,
    ZSTD,
    Envelope,
    Header,
    ObjectKind,
)
from scrubjay_shared.errors import MalformedError, TooLargeError, UpdateNeededError
from scrubjay_shared.parts import PART, Part
from scrubjay_shared.segment import Entry
from scrubjay_shared.snapshot import ChunkRef
from scrubjay_sync.policy import SYNC

_KNOWN_FLAGS = ZSTD | PART
_ROOM = MAX_OBJECT_BYTES - HEADER_BYTES - SIGNATURE_BYTES - sealing.TAG_BYTES
"""Bytes of a padded payload that fit an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealContext:
    """Where the next object of a lane goes, and what it is sealed with. `suite` and `epoch` are the scope's."""

    account: bytes
    scope: bytes
    device: bytes
    n: int
    prev: bytes
    suite: int
    epoch: int
    key: bytes

    def after(self, envelope: Envelope) -> SealContext:
        """Return the place behind an object."""
        return replace(self, n=envelope.header.n_to + 1, prev=envelope.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """What signs for a device and salts its objects."""

    sign: Callable[[bytes], bytes]
    entropy: Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a device had seen at a time of its own clock: lanes' ends by (scope, device), and the account log's."""

    at: Millis
    heads: Mapping[tuple[bytes, bytes], tuple[int, bytes]]
    log_seq: int
    log_head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An object that was opened: its ops, or the one part of an op, or a checkpoint."""

    envelope: Envelope
    entries: tuple[Entry, ...] = ()
    part: Part | None = None
    checkpoint: Checkpoint | None = None


# --- sealing ----------------------------------------------------------------------------------------------------------


_SENDER = "the program that made it has a fault: update scrubjay there"


def segments(seal: SealContext, entries: Sequence[Entry], signer: Signer) -> list[Opened]:
    """Return the objects of some ops, in lane order: one, unless the ops are too many or one is too large."""
    envelope = _sealed(seal, ObjectKind.SEGMENT, segment.encode(entries), signer)
    if envelope is not None:
        return [Opened(envelope=envelope, entries=tuple(entries))]
    if len(entries) == 1:
        return _parts(seal, entries[0], signer)
    half = len(entries) // 2
    first = segments(seal, entries[:half], signer)
    return first + segments(seal.after(first[-1].envelope), entries[half:], signer)


def checkpoint(seal: SealContext, seen: Checkpoint, signer: Signer) -> Opened:
    """Return the object that tells other devices what this one has seen."""
    envelope = _sealed(seal, ObjectKind.BEACON, msgspec.msgpack.encode(_said(seen)), signer)
    if envelope is None:
        raise TooLargeError(
            "the account has too many lanes for one checkpoint",
            hint="scrubjay sync scopes list shows the scopes; delete what is not used",
        )
    return Opened(envelope=envelope, checkpoint=seen)


def _said(seen: Checkpoint) -> dict[int, object]:
    heads = [[scope, device, n, tip] for (scope, device), (n, tip) in sorted(seen.heads.items())]
    return {1: seen.at, 2: heads, 3: seen.log_seq, 4: seen.log_head}


def chunk(seal: SealContext, payload: bytes, signer: Signer) -> Envelope | None:
    """Return the object of a chunk of a snapshot, the same for the same content; None when it does not fit one."""
    header = _header(seal, ObjectKind.SNAPSHOT_CHUNK)
    salt = snapshot.salt_of(payload, seal.key)
    try:
        return _fitting(sealing.seal(header, payload, key=seal.key, salt=salt, sign=signer.sign))
    except TooLargeError:
        return None


def manifest(seal: SealContext, seen: Checkpoint, chunks: Sequence[ChunkRef], signer: Signer) -> Envelope:
    """Return the object of a snapshot's manifest. Raises TooLargeError when it names too much for one."""
    payload = msgspec.msgpack.encode(_said(seen) | {5: snapshot.encode_refs(chunks)})
    envelope = _sealed(seal, ObjectKind.SNAPSHOT_MANIFEST, payload, signer)
    if envelope is None or len(chunks) > snapshot.MAX_CHUNKS:
        raise TooLargeError("the account is too large for one snapshot", hint="new machines read its lanes instead")
    return envelope


def pack(seal: SealContext, covered: Sequence[Envelope], entries: Sequence[Entry], signer: Signer) -> Envelope | None:
    """Return the pack that stands for neighbouring objects, holding `entries`; None when they do not fit one."""
    header = replace(
        _header(seal, ObjectKind.PACK),
        n_from=covered[0].header.n_from,
        n_to=covered[-1].header.n_to,
        prev=covered[0].header.prev,
        tip=covered[-1].end,
    )
    try:
        payload = segment.encode(entries)
        return _fitting(sealing.seal(header, payload, key=seal.key, salt=signer.entropy(32), sign=signer.sign))
    except TooLargeError:  # what compresses a hundredfold: few bytes, and more than a reader unpacks
        return None


def resealed(seal: SealContext, opened: Opened, signer: Signer) -> list[Opened]:
    """Return the objects that say at a new place, or under a new epoch, what an object of this device said."""
    if opened.checkpoint is not None:
        return [checkpoint(seal, opened.checkpoint, signer)]
    if opened.part is not None:
        return [_part(seal, opened.part, signer)]
    return segments(seal, opened.entries, signer)


def _header(seal: SealContext, kind: ObjectKind) -> Header:
    return Header(
        suite=seal.suite,
        kind=kind,
        account=seal.account,
        scope=seal.scope,
        device=seal.device,
        n_from=seal.n,
        n_to=seal.n,
        prev=seal.prev,
        epoch=seal.epoch,
        tip=ZERO,
    )


def _sealed(seal: SealContext, kind: ObjectKind, payload: bytes, signer: Signer) -> Envelope | None:
    return _fitting(sealing.seal(_header(seal, kind), payload, key=seal.key, salt=signer.entropy(32), sign=signer.sign))


def _fitting(envelope: Envelope) -> Envelope | None:
    return envelope if len(envelope.body) <= _ROOM + sealing.TAG_BYTES else None


def _parts(seal: SealContext, entry: Entry, signer: Signer) -> list[Opened]:
    found: list[Opened] = []
    for part in parts.split(entry, SYNC.part_bytes):
        found.append(_part(seal, part, signer))
        seal = seal.after(found[-1].envelope)
    return found


def _part(seal: SealContext, part: Part, signer: Signer) -> Opened:
    header = replace(_header(seal, ObjectKind.SEGMENT), flags=PART)
    payload = segment.encode([parts.entry_of(part)])
    envelope = sealing.seal(header, payload, key=seal.key, salt=signer.entropy(32), sign=signer.sign, squeeze=False)
    return Opened(envelope=envelope, part=part)


# --- opening ----------------------------------------------------------------------------------------------------------


def opened(envelope: Envelope, key: bytes) -> Opened:
    """Return what an object holds. Chain and signature are checked before.

    Raises UpdateNeededError, WrongKeyError, CorruptError, MalformedError.
    """
    header = envelope.header
    if header.flags & 0xFF & ~_KNOWN_FLAGS:
        raise UpdateNeededError(
            f"an object of scope {header.scope.hex()[:8]} was written by a newer scrubjay",
            hint="update scrubjay on this device",
        )
    payload = sealing.unseal(envelope, key=key)
    if header.kind == ObjectKind.BEACON:
        return Opened(envelope=envelope, checkpoint=_checkpoint(payload))
    entries = segment.decode(payload)
    if not header.flags & PART:
        return Opened(envelope=envelope, entries=tuple(entries))
    return Opened(envelope=envelope, part=parts.part_of(entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A snapshot as its manifest tells of it: who made it, what that device had seen, and its chunks, newest first."""

    maker: bytes
    seen: Checkpoint
    chunks: tuple[ChunkRef, ...]


def opened_manifest(envelope: Envelope, key: bytes) -> Manifest:
    """Return what a snapshot's manifest says. Its signature is checked before. Raises what `opened` does."""
    payload = sealing.unseal(envelope, key=key)
    chunks = snapshot.decode_refs(payload)
    return Manifest(maker=envelope.header.device, seen=_checkpoint(payload), chunks=tuple(chunks))


class _Heads(msgspec.Struct, array_like=True, frozen=True):
    scope: bytes
    device: bytes
    n: int
    tip: bytes


class _CheckpointBody(msgspec.Struct, frozen=True):
    at: int = msgspec.field(name="1")
    heads: list[_Heads] = msgspec.field(name="2")
    log_seq: int = msgspec.field(name="3")
    log_head: bytes = msgspec.field(name="4")


def _checkpoint(payload: bytes) -> Checkpoint:
    try:
        body = msgspec.convert(
            {str(key): value for key, value in msgspec.msgpack.decode(payload, type=dict[int, object]).items()},
            _CheckpointBody,
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("a checkpoint is not in the format of this version", hint="update scrubjay") from error
    ids = [one for head in body.heads for one in (head.scope, head.device)]
    links = [body.log_head, *(head.tip for head in body.heads)]
    counts = [body.at, body.log_seq, *(head.n for head in body.heads)]
    if (
        any(len(one) != 16 for one in ids)
        or any(len(one) != len(ZERO) for one in links)
        or not all(0 <= one < LIMIT for one in counts)
    ):
        raise MalformedError("a checkpoint names more places than there can be", hint=_SENDER)
    return Checkpoint(
        at=Millis(body.at),
        heads={(one.scope, one.device): (one.n, one.tip) for one in body.heads},
        log_seq=body.log_seq,
        log_head=body.log_head,
    )


def seqs(found: Sequence[Opened]) -> tuple[int, int]:
    """Return the lowest and highest place of the ops in some objects; (0, 0) when there is none."""
    places = [seq for one in found for seq, _ in one.entries] + [one.part[0] for one in found if one.part]
    return (min(places), max(places)) if places else (0, 0)
