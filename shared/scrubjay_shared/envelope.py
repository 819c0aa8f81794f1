"""The SJS1 object: a signed, chained envelope around bytes that this module never opens. Pure.

Layout (big-endian): header 208 bytes, body, Ed25519 signature 64 bytes over "sjs/1/sig" and SHA-256(header, body).

    0 "SJS1"   4 suite u8   5 kind u8   6 flags u16   8 account 16   24 scope 16   40 device 16   56 epoch u32
    60 n_from u64   68 n_to u64   76 prev 32   108 tip 32   140 salt 32   172 commit 32   204 body_len u32

An object stands at place `n_from` of the lane (account, scope, device); a pack stands for the segments `n_from` to
`n_to`. `prev` is the link of the object before, so that a lane is a hash chain and its last signature vouches for all
of it. Specification: docs/protocol.md.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from scrubjay_shared import bounds
from scrubjay_shared.errors import BadSignatureError, BrokenChainError, MalformedError

MAGIC = b"SJS1"
HEADER_BYTES = 208
SIGNATURE_BYTES = 64
MAX_OBJECT_BYTES = 512 * 1024
"""The largest object: two of them fit a request that a proxy with a 1 MB limit lets through."""
MAX_PAGE_BYTES = 900 * 1024
"""The largest body of a push or pull: below the 1 MB that nginx allows unless told otherwise."""
LIMIT = bounds.LIMIT
"""Places are below this: databases count in 64 bits with a sign."""
ZERO = bytes(32)

_LAYOUT = struct.Struct(">4sBBH16s16s16sIQQ32s32s32s32sI")
_COMMIT = slice(172, 204)


class Suite(IntEnum):
    """How a body is protected. Numbers are wire format."""

    OPEN = 0
    """Signed and chained, not encrypted: searchable scopes, which the server may read."""
    SEALED = 1
    """AES-256-GCM-SIV under a key of the scope, with key commitment (`sealing`)."""


class ObjectKind(IntEnum):
    """What a body holds. Numbers are wire format."""

    SEGMENT = 1
    PACK = 2
    SNAPSHOT_CHUNK = 3
    SNAPSHOT_MANIFEST = 4
    KEYRING = 5
    BEACON = 6
    BLOB = 7


_SUITES = frozenset(int(suite) for suite in Suite)
_KINDS = frozenset(int(kind) for kind in ObjectKind)
_OPEN = int(Suite.OPEN)  # an enum's own members cost more to look up and to compare than the rest of a check
_PACK = int(ObjectKind.PACK)
LANE_KINDS = frozenset({ObjectKind.SEGMENT, ObjectKind.BEACON, ObjectKind.PACK})
"""The kinds that stand in lanes."""
SNAPSHOT_KINDS = frozenset({ObjectKind.SNAPSHOT_CHUNK, ObjectKind.SNAPSHOT_MANIFEST})
"""The kinds of which a scope has one set in force: a manifest, and the chunks that it names."""

ZSTD = 1
"""Flag: the payload was compressed."""
READER = 1
"""The version of payload that this code reads; the high byte of `flags` names the least that an object needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What everyone may see of an object. `prev` and `tip` are links, `commit` binds the key to this header."""

    suite: int
    kind: int
    account: bytes
    scope: bytes
    device: bytes
    n_from: int
    n_to: int
    prev: bytes
    epoch: int = 0
    flags: int = 0
    tip: bytes = ZERO
    salt: bytes = ZERO
    commit: bytes = ZERO
    body_len: int = 0

    @property
    def min_reader(self) -> int:
        """The least version of reader that this object needs; 0 and 1 are the first."""
        return self.flags >> 8

    def pack(self) -> bytes:
        """Return the 208 bytes."""
        return _LAYOUT.pack(
            MAGIC,
            self.suite,
            self.kind,
            self.flags,
            self.account,
            self.scope,
            self.device,
            self.epoch,
            self.n_from,
            self.n_to,
            self.prev,
            self.tip,
            self.salt,
            self.commit,
            self.body_len,
        )

    @classmethod
    def unpack(cls, data: bytes, at: int = 0) -> Header:
        """Return the header in the 208 bytes from an offset on. Raises MalformedError when they are not a header."""
        if len(data) < at + HEADER_BYTES or not data.startswith(MAGIC, at):
            raise MalformedError(
                "the bytes are not an SJS1 object", hint="the sender speaks another protocol, or a part is missing"
            )
        (_, suite, kind, flags, account, scope, device, epoch, n_from, n_to, prev, tip, salt, commit, body_len) = (
            _LAYOUT.unpack_from(data, at)
        )
        return cls(
            suite=suite,
            kind=kind,
            flags=flags,
            account=account,
            scope=scope,
            device=device,
            epoch=epoch,
            n_from=n_from,
            n_to=n_to,
            prev=prev,
            tip=tip,
            salt=salt,
            commit=commit,
            body_len=body_len,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One whole object: its header, read and as bytes, its body and its signature."""

    header: Header
    head: bytes
    body: bytes
    signature: bytes

    @property
    def data(self) -> bytes:
        """The object as it travels."""
        return self.head + self.body + self.signature

    @property
    def link(self) -> bytes:
        """The link of this object itself: what names it, and what the next segment's `prev` is."""
        return link(self.head, self.body)

    @property
    def end(self) -> bytes:
        """The link that the object after this one must name: a pack stands for its last segment."""
        return self.header.tip if self.header.kind == _PACK else self.link

    @property
    def lane(self) -> tuple[bytes, bytes]:
        """(scope, device)."""
        return self.header.scope, self.header.device


def link(head: bytes, body: bytes) -> bytes:
    """Return the link of an object: SHA-256("sjs/1/link", header, SHA-256(body))."""
    return hashlib.sha256(b"sjs/1/link" + head + hashlib.sha256(body).digest()).digest()


def lane_root(account: bytes, scope: bytes, device: bytes) -> bytes:
    """Return the `prev` of a lane's first object: SHA-256("sjs/1/lane", account, scope, device)."""
    return hashlib.sha256(b"sjs/1/lane" + account + scope + device).digest()


def without_commit(head: bytes) -> bytes:
    """Return a header's bytes with the commitment blanked: what the commitment itself is made over."""
    return head[: _COMMIT.start] + bytes(32) + head[_COMMIT.stop :]


def signed_message(head: bytes, body: bytes) -> bytes:
    """Return the bytes that an object's signature is over."""
    return b"sjs/1/sig" + hashlib.sha256(head + body).digest()


def assemble(header: Header, body: bytes, sign: Callable[[bytes], bytes]) -> Envelope:
    """Return the object of a header and a body; `sign` makes the Ed25519 signature of a message."""
    head = header.pack()
    return Envelope(header=header, head=head, body=body, signature=sign(signed_message(head, body)))


_SENDER = "the program that made it has a fault: update scrubjay there"


def parse(data: bytes) -> Envelope:
    """Return the one object that some bytes are. Raises MalformedError, for bytes left over too."""
    found = list(split(data))
    if len(found) != 1:
        raise MalformedError(f"expected one object, got {len(found)}", hint="send one object")
    return found[0]


def split(data: bytes) -> Iterator[Envelope]:
    """Yield the objects that stand one after another in some bytes.

    Checks the format only: magic, lengths, known suite and kind, places in order. Raises MalformedError.
    """
    data, at = bytes(data), 0
    while at < len(data):
        header = Header.unpack(data, at)
        body = at + HEADER_BYTES
        signature = body + header.body_len
        end = signature + SIGNATURE_BYTES
        if end - at > MAX_OBJECT_BYTES:
            raise MalformedError(f"an object may have {MAX_OBJECT_BYTES} bytes, got {end - at}", hint=_SENDER)
        if end > len(data):
            raise MalformedError(
                f"an object ends after {len(data) - at} of its {end - at} bytes", hint="fetch it again"
            )
        _check_shape(header)
        yield Envelope(
            header=header,
            head=data[at:body],
            body=data[body:signature],
            signature=data[signature:end],
        )
        at = end


def _check_shape(header: Header) -> None:
    suite, kind = header.suite, header.kind
    if suite not in _SUITES:
        raise MalformedError(
            f"an object has encryption suite {suite}, which this version does not know", hint="update scrubjay"
        )
    if kind not in _KINDS:
        raise MalformedError(f"an object is of kind {kind}, which this version does not know", hint="update scrubjay")
    if kind in LANE_KINDS and not 1 <= header.n_from <= header.n_to < LIMIT:
        raise MalformedError(
            f"an object stands for places {header.n_from} to {header.n_to}, which is not a range of places",
            hint=_SENDER,
        )
    if kind != _PACK and (header.n_from != header.n_to or header.tip != ZERO):
        raise MalformedError("an object that is not a pack stands for several places", hint=_SENDER)
    if suite == _OPEN and (header.salt != ZERO or header.commit != ZERO):
        raise MalformedError("an object that is not encrypted has a salt or a commitment", hint=_SENDER)


def signed_by(envelope: Envelope, keys: Sequence[bytes]) -> bool:
    """Say whether one of some Ed25519 public keys (32 bytes each) signed an object."""
    message = signed_message(envelope.head, envelope.body)
    for key in keys:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(envelope.signature, message)
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def check_signatures(run: Sequence[Envelope], keys: Callable[[Envelope], Sequence[bytes]]) -> None:
    """Check that its owner wrote a run, whose chain was checked: the second half of `check_run`.

    Raises BadSignatureError, naming the first place that fails.
    """
    for number, envelope in enumerate(run, 1):
        if (number == len(run) or envelope.header.kind == _PACK) and not signed_by(envelope, keys(envelope)):
            raise _unsigned(envelope.header)


def _unsigned(header: Header) -> BadSignatureError:
    return BadSignatureError(
        f"place {header.n_from} of lane {header.device.hex()[:8]} is not signed by its device",
        hint="it was altered at the server or on its way; scrubjay sync verify says what is affected",
    )


def check_run(run: Sequence[Envelope], *, n: int, prev: bytes, keys: Callable[[Envelope], Sequence[bytes]]) -> None:
    """Check that objects continue one lane after place `n`, whose link is `prev`, and that its owner wrote them.

    Only the signatures of packs and of the last object are verified: each `prev` binds everything before it, but a
    pack's `tip` says nothing of its body. `keys` gives the public keys that may have signed an object. Raises
    BrokenChainError or BadSignatureError, naming the first place that fails.
    """
    for index, envelope in enumerate(run):
        header = envelope.header
        if header.account != run[0].header.account or envelope.lane != run[0].lane:
            raise BrokenChainError(
                f"place {header.n_from} of lane {header.device.hex()[:8]} stands among those of another lane",
                hint="scrubjay sync verify reads the lane again and says from where on it differs",
            )
        if header.n_from != n + 1 or header.prev != prev:
            raise BrokenChainError(
                f"place {header.n_from} of lane {header.device.hex()[:8]} does not continue place {n}",
                hint="scrubjay sync verify reads the lane again and says from where on it differs",
            )
        last = index == len(run) - 1
        if (last or header.kind == _PACK) and not signed_by(envelope, keys(envelope)):
            raise _unsigned(header)
        if not last:
            n, prev = header.n_to, envelope.end
