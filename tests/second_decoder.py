"""A second reader of SJS/1, written from docs/protocol.md alone: it shares no line and no codec with the product.

Its MessagePack, HKDF, padding, POLYVAL, AES-GCM-SIV and HPKE are its own; from libraries it takes SHA-256, HMAC, the AES
block, AES-GCM, ML-KEM, X25519, Ed25519 verification and zstd. It is slow and plain, and refuses with `Refused(code)`, code as docs/protocol.md names it.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import unicodedata
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import zstandard
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

TOP = 1 << 63
WEEK_MS = 7 * 24 * 3600 * 1000


class Refused(Exception):  # noqa: N818 - it is an answer here, not an error
    """What was read is not SJS/1, or may not be believed."""

    def __init__(self, code: str, why: str = "") -> None:
        super().__init__(f"{code}: {why}")
        self.code = code


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


# --- MessagePack ------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        got = self.data[self.at : self.at + count]
        if len(got) != count:
            raise Refused("malformed", "MessagePack ends too early")
        self.at += count
        return got

    def number(self, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(width), "big", signed=signed)

    def value(self, depth: int = 0) -> Any:
        if depth > 200:
            raise Refused("malformed", "MessagePack nests too deeply")
        tag = self.number(1)
        if tag < 0x80:
            return tag
        if tag >= 0xE0:
            return tag - 256
        if tag < 0x90:
            return self.map(tag & 15, depth)
        if tag < 0xA0:
            return self.list(tag & 15, depth)
        if tag < 0xC0:
            return self.text(tag & 31)
        if tag in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[tag]
        if 0xC4 <= tag <= 0xC6:
            return self.take(self.number(1 << tag - 0xC4))
        if tag == 0xCA:
            return struct.unpack(">f", self.take(4))[0]
        if tag == 0xCB:
            return struct.unpack(">d", self.take(8))[0]
        if 0xCC <= tag <= 0xCF:
            return self.number(1 << tag - 0xCC)
        if 0xD0 <= tag <= 0xD3:
            return self.number(1 << tag - 0xD0, signed=True)
        if 0xD9 <= tag <= 0xDB:
            return self.text(self.number(1 << tag - 0xD9))
        if tag in (0xDC, 0xDD):
            return self.list(self.number(2 if tag == 0xDC else 4), depth)
        if tag in (0xDE, 0xDF):
            return self.map(self.number(2 if tag == 0xDE else 4), depth)
        raise Refused("malformed", f"MessagePack type {tag:#x}")

    def text(self, count: int) -> str:
        try:
            return self.take(count).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused("malformed", "text that is no UTF-8") from error

    def list(self, count: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(count)]

    def map(self, count: int, depth: int) -> dict[Any, Any]:
        found = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if type(key) not in (int, str, bytes):
                raise Refused("malformed", "a map's key is no scalar")
            found[key] = self.value(depth + 1)
        return found


def unpacked(data: bytes) -> Any:
    reader = _Reader(data)
    value = reader.value()
    if reader.at != len(data):
        raise Refused("malformed", "bytes after MessagePack")
    return value


def whole(value: Any) -> bool:
    return type(value) is int


# --- HKDF and AES-256-GCM-SIV -----------------------------------------------------------------------------------------


def hkdf(secret: bytes, info: bytes, length: int = 32, salt: bytes = b"") -> bytes:
    pseudo = hmac.digest(salt or bytes(32), secret, "sha256")
    out, block = b"", b""
    for place in range(1, -(-length // 32) + 1):
        block = hmac.digest(pseudo, block + info + bytes([place]), "sha256")
        out += block
    return out[:length]


def _block(key: bytes) -> Callable[[bytes], bytes]:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update


_POLY = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1
"""x^128 + x^127 + x^126 + x^121 + 1; bit i of a block, read little-endian, is the coefficient of x^i (RFC 8452, 3)."""


def _times_x_inverse(value: int) -> int:
    return (value ^ _POLY) >> 1 if value & 1 else value >> 1


def polyval(key: bytes, data: bytes) -> bytes:
    """POLYVAL of whole blocks, through a table of the multiples of H by the 256 bytes: dot(a, b) = a · b · x^-128."""
    multiple = int.from_bytes(key, "little")
    for _ in range(128):
        multiple = _times_x_inverse(multiple)
    powers = []
    for _ in range(8):
        powers.append(multiple)
        multiple <<= 1
        if multiple >> 128:
            multiple ^= _POLY
    table = [0] * 256
    for byte in range(1, 256):
        low = byte & -byte
        table[byte] = table[byte ^ low] ^ powers[low.bit_length() - 1]
    shifted = []
    for high in range(256):
        value = high << 128
        for bit in range(135, 127, -1):
            if value >> bit & 1:
                value ^= _POLY << bit - 128
        shifted.append(value)
    total = 0
    for at in range(0, len(data), 16):
        total ^= int.from_bytes(data[at : at + 16], "little")
        product = 0
        for byte in total.to_bytes(16, "big"):
            product = (product << 8 & (1 << 128) - 1) ^ shifted[product >> 120] ^ table[byte]
        total = product
    return total.to_bytes(16, "little")


def _whole_blocks(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16)


def opened(key: bytes, nonce: bytes, sealed: bytes, aad: bytes) -> bytes:
    """AES-256-GCM-SIV decryption (RFC 8452, 4 and 5)."""
    if len(sealed) < 16:
        raise Refused("corrupt", "no tag")
    derive = _block(key)
    parts = [derive(place.to_bytes(4, "little") + nonce)[:8] for place in range(6)]
    auth, cipher = b"".join(parts[:2]), _block(b"".join(parts[2:]))
    body, tag = sealed[:-16], sealed[-16:]
    head = bytes([*tag[:15], tag[15] | 0x80])
    start = int.from_bytes(head[:4], "little")
    counters = b"".join(((start + i) % (1 << 32)).to_bytes(4, "little") + head[4:] for i in range(-(-len(body) // 16)))
    stream = cipher(counters) if counters else b""
    plain = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    lengths = (len(aad) * 8).to_bytes(8, "little") + (len(plain) * 8).to_bytes(8, "little")
    summed = polyval(auth, _whole_blocks(aad) + _whole_blocks(plain) + lengths)
    mixed = bytearray(a ^ b for a, b in zip(summed, nonce + bytes(4), strict=True))
    mixed[15] &= 0x7F
    if not hmac.compare_digest(cipher(bytes(mixed)), tag):
        raise Refused("corrupt", "the tag does not hold")
    return plain


def verified(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# --- objects (3) ------------------------------------------------------------------------------------------------------


@dataclass
class Object:
    suite: int
    kind: int
    flags: int
    account: bytes
    scope: bytes
    device: bytes
    epoch: int
    n_from: int
    n_to: int
    prev: bytes
    tip: bytes
    salt: bytes
    commit: bytes
    head: bytes
    body: bytes
    signature: bytes

    @property
    def link(self) -> bytes:
        return sha(b"sjs/1/link", self.head, sha(self.body))

    @property
    def end(self) -> bytes:
        return self.tip if self.kind == 2 else self.link


def lane_root(account: bytes, scope: bytes, device: bytes) -> bytes:
    return sha(b"sjs/1/lane", account, scope, device)


def objects(data: bytes) -> list[Object]:
    """Every object that stands in some bytes, checked for its form."""
    found, at = [], 0
    while at < len(data):
        head = data[at : at + 208]
        if len(head) < 208 or head[:4] != b"SJS1":
            raise Refused("malformed", "no header")

        def part(start: int, size: int, head: bytes = head) -> bytes:
            return head[start : start + size]

        def number(start: int, size: int, head: bytes = head) -> int:
            return int.from_bytes(head[start : start + size], "big")

        length = number(204, 4)
        end = at + 208 + length + 64
        if end > len(data) or end - at > 524_288:
            raise Refused("malformed", "too long")
        one = Object(
            number(4, 1), number(5, 1), number(6, 2), part(8, 16), part(24, 16), part(40, 16), number(56, 4),
            number(60, 8), number(68, 8), part(76, 32), part(108, 32), part(140, 32), part(172, 32),
            head, data[at + 208 : end - 64], data[end - 64 : end],
        )  # fmt: skip
        if one.suite not in (0, 1) or not 1 <= one.kind <= 7:
            raise Refused("malformed", "unknown suite or kind")
        if one.kind in (1, 2, 6) and not 1 <= one.n_from <= one.n_to < TOP:
            raise Refused("malformed", "places")
        if one.kind != 2 and (one.n_from != one.n_to or one.tip != bytes(32)):
            raise Refused("malformed", "only packs have two places and a tip")
        if one.suite == 0 and (one.salt != bytes(32) or one.commit != bytes(32)):
            raise Refused("malformed", "open, with salt or commitment")
        found.append(one)
        at = end
    return found


def check_run(
    run: Iterable[Object],
    lane: tuple[bytes, bytes, bytes],
    n: int,
    end: bytes,
    signers: Callable[[Object], Iterable[bytes]],
) -> None:
    """The run rule (3.2)."""
    listed = list(run)
    for place, one in enumerate(listed):
        if (one.account, one.scope, one.device) != lane or one.n_from != n + 1 or one.prev != end:
            raise Refused("broken_chain", f"place {one.n_from}")
        if one.kind == 2 or place == len(listed) - 1:
            message = b"sjs/1/sig" + sha(one.head, one.body)
            if not any(verified(key, message, one.signature) for key in signers(one)):
                raise Refused("bad_signature", f"place {one.n_from}")
        n, end = one.n_to, one.end


def padme(length: int) -> int:
    if length < 2:
        return length
    log = length.bit_length() - 1
    unit = 1 << log - log.bit_length()
    return -(-length // unit) * unit


def payload(one: Object, key: bytes) -> bytes:
    """The payload of an object whose chain and signature were checked."""
    if one.flags >> 8 > 1:
        raise Refused("update_needed")
    data = one.body
    if one.suite == 1:
        blank = one.head[:172] + bytes(32) + one.head[204:]
        okm = hkdf(key, b"sjs/1/obj" + sha(blank), 76, one.salt)
        if not hmac.compare_digest(okm[44:], one.commit):
            raise Refused("wrong_key")
        plain = opened(okm[:32], okm[32:44], one.body, one.head)
        length = int.from_bytes(plain[:4], "big")
        data = plain[4 : 4 + length]
        rest = plain[4 + length :]
        if len(plain) < 4 or len(data) != length or len(plain) != max(512, padme(4 + length)) or any(rest):
            raise Refused("malformed", "padding")
    return unzipped(data) if one.flags & 1 else data


def unzipped(data: bytes) -> bytes:
    """What one zstd frame holds, which says how much that is and has nothing behind it."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= 32 * 1024 * 1024:
            raise Refused("malformed", "too much to unpack")
        reader = zstandard.ZstdDecompressor().decompressobj()
        text = reader.decompress(data)
    except zstandard.ZstdError as error:
        raise Refused("malformed", "zstd") from error
    if not reader.eof or reader.unused_data or len(text) != size:
        raise Refused("malformed", "not one whole frame")
    return text


def part(one: Object, key: bytes) -> tuple[int, int, int, bytes]:
    """(seq, place, count, piece) of an object that holds a part of an op (10.3)."""
    found = entries(payload(one, key))
    if not one.flags & 2 or len(found) != 1 or found[0][1] is None or len(found[0][1]) < 8:
        raise Refused("malformed", "no part")
    seq, data = found[0]
    place, count = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    if not place < count <= 256:
        raise Refused("malformed", "a part beyond its count")
    return seq, place, count, data[8:]


def chunk(data: bytes) -> tuple[bytes, list[list[Any]], list[tuple[int, bytes]]]:
    """(device, events, [(seq, op)]) of a snapshot chunk's payload (10.9)."""
    found = unpacked(data)
    if type(found) is not dict or set(map(whole, found)) != {True} or set(found) != {1, 2, 3}:
        raise Refused("malformed", "no chunk")
    device, events, others = found[1], found[2], found[3]
    if type(device) is not bytes or len(device) != 16 or type(events) is not list or type(others) is not list:
        raise Refused("malformed", "no chunk")
    if len(events) + len(others) > 100_000:
        raise Refused("malformed", "too many ops")
    shapes = (
        *((int,), (bytes,), (int,), (str, type(None)), (bytes,), (str,), (str,), (str,), (str,), (str,)),
        *((int,), (str,), (str, type(None)), (int,), (str,), (dict, type(None))),
    )
    for one in events:
        if type(one) is not list or len(one) != len(shapes):
            raise Refused("malformed", "no event")
        if any(type(value) not in shape for value, shape in zip(one, shapes, strict=True)):
            raise Refused("malformed", "an event's field is of another type")
        if len(one[1]) != 16 or len(one[4]) != 16 or any(type(key) is not str for key in one[15] or ()):
            raise Refused("malformed", "an event's ids or metadata")
    for two in others:
        if type(two) is not list or len(two) != 2 or not whole(two[0]) or type(two[1]) is not bytes:
            raise Refused("malformed", "no op")
    for seqs in ([one[0] for one in events], [one[0] for one in others]):
        if any(not low < high for low, high in zip([0, *seqs], [*seqs, TOP], strict=True)):
            raise Refused("malformed", "ops out of order")
    if {one[0] for one in events} & {one[0] for one in others}:
        raise Refused("malformed", "an op twice")
    return device, events, [(seq, op) for seq, op in others]


def chunks_of(data: bytes) -> list[list[Any]]:
    """[[hash, device, first seq, last seq, ops], …] of a snapshot manifest's payload (10.9)."""
    found = unpacked(data)
    if type(found) is not dict or any(not whole(key) for key in found):
        raise Refused("malformed", "no manifest")
    named = found.get(5)
    if type(named) is not list or len(named) > 5_000:
        raise Refused("malformed", "no list of chunks")
    for one in named:
        if type(one) is not list or [type(value) for value in one] != [bytes, bytes, int, int, int]:
            raise Refused("malformed", "no chunk is named so")
        digest, device, low, high, count = one
        if len(digest) != 32 or len(device) != 16 or not 0 < low <= high < TOP or not 0 < count <= 100_000:
            raise Refused("malformed", "no chunk can be so")
    return named


def manifest(data: bytes) -> tuple[int, dict[tuple[bytes, bytes], tuple[int, bytes]], int, bytes, list[list[Any]]]:
    """(time, {(scope, device): (n, end)}, seq, hash, chunks) of a snapshot manifest's payload (10.9, 10.5)."""
    chunks = chunks_of(data)
    found = unpacked(data)
    at, heads, seq, log = (found.get(key) for key in (1, 2, 3, 4))
    if not whole(at) or not whole(seq) or type(log) is not bytes or len(log) != 32 or type(heads) is not list:
        raise Refused("malformed", "no checkpoint")
    seen = {}
    for one in heads:
        if type(one) is not list or [type(value) for value in one[:4]] != [bytes, bytes, int, bytes]:
            raise Refused("malformed", "no lane is named so")
        scope, device, n, end = one[:4]
        if (len(scope), len(device), len(end)) != (16, 16, 32) or not 0 <= n < TOP:
            raise Refused("malformed", "no lane can be so")
        seen[scope, device] = (n, end)
    if not 0 <= at < TOP or not 0 <= seq < TOP:
        raise Refused("malformed", "no checkpoint can be so")
    return at, seen, seq, log, chunks


def snapshot_salt(data: bytes, key: bytes) -> bytes:
    """The salt of a chunk with this payload (10.9)."""
    return hmac.digest(key, b"sjs/1/snapshot" + sha(data), "sha256")


def entries(data: bytes) -> list[tuple[int, bytes | None]]:
    """The ops of a segment's or pack's payload."""
    if data[:1] == b"\xdd" and int.from_bytes(data[1:5], "big") > 100_000:
        raise Refused("malformed", "too many entries")
    found = unpacked(data)
    if not isinstance(found, list) or len(found) > 100_000:
        raise Refused("malformed", "no list of ops")
    last, listed = 0, []
    for item in found:
        if (
            not isinstance(item, list)
            or len(item) != 2
            or not whole(item[0])
            or type(item[1]) not in (bytes, type(None))
        ):
            raise Refused("malformed", "an entry is no pair")
        if not last < item[0] < TOP:
            raise Refused("malformed", "ops out of order")
        last = item[0]
        listed.append((item[0], item[1]))
    return listed


def op(data: bytes) -> tuple[int, int, bytes, int, dict[int, Any]]:
    """(type, version, op_id, hlc, body) of an op."""
    found = unpacked(data)
    if (
        not isinstance(found, list)
        or len(found) != 5
        or not isinstance(found[2], bytes)
        or not isinstance(found[4], dict)
    ):
        raise Refused("corrupt", "no op")
    if not all(whole(found[place]) for place in (0, 1, 3)) or not all(whole(key) for key in found[4]):
        raise Refused("corrupt", "no op")
    return found[0], found[1], found[2], found[3], found[4]


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def emptied(body: dict[int, Any], registers: list[int]) -> dict[int, Any]:
    """Return the body of a write without its values for some registers (6.1)."""
    left = {key: value for key, value in body[2].items() if key not in registers}
    gone = sorted({*body.get(5, []), *(key for key in registers if key in body[2])})
    return {**{key: value for key, value in body.items() if key}, 2: left, 5: gone} | (
        {0: body[0]} if 0 in body else {}
    )


def cause(body: dict[int, Any]) -> str | None:
    """What wrote the op of a body (5.3); anything else under that key counts as nothing."""
    value = body.get(0)
    if not isinstance(value, str):
        return None
    kind, colon, place = value.partition(":")
    if not colon or not 1 <= len(kind) <= 32 or len(place) != 26 or place[0] not in "01234567":
        return None
    letters = "abcdefghijklmnopqrstuvwxyz"
    fine = kind[0] in letters and all(one in letters + "_" for one in kind) and all(one in CROCKFORD for one in place)
    return value if fine else None


# --- the account log (7) ----------------------------------------------------------------------------------------------


@dataclass
class Log:
    """What a log adds up to. `history` has the state after each entry."""

    account: bytes = b""
    ask: bytes = b""
    version: int = 0
    rsk: bytes = b""
    waiting: tuple[bytes, int] | None = None
    origins: list[str] = field(default_factory=list)
    keyring: list[Any] | None = None
    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    scopes: dict[str, dict[str, Any]] = field(default_factory=dict)
    adopters: dict[str, list[str]] = field(default_factory=dict)
    wraps: dict[str, bytes] = field(default_factory=dict)
    recovery_pub: bytes = b""
    waiting_pub: bytes = b""
    checkpoint: int = 0
    seq: int = -1
    head: bytes = bytes(32)
    history: list[Log] = field(default_factory=list)

    def copy(self) -> Log:
        return Log(
            self.account, self.ask, self.version, self.rsk, self.waiting, list(self.origins), self.keyring,
            {key: dict(value) for key, value in self.devices.items()},
            {key: dict(value) for key, value in self.scopes.items()},
            {key: list(value) for key, value in self.adopters.items()},
            dict(self.wraps), self.recovery_pub, self.waiting_pub, self.checkpoint, self.seq, self.head, self.history,
        )  # fmt: skip

    def shown(self) -> dict[str, Any]:
        """The state as the vectors write it."""
        return {
            "version": self.version,
            "ask": self.ask.hex(),
            "rsk": self.rsk.hex(),
            "waiting": None if self.waiting is None else [self.waiting[0].hex(), self.waiting[1]],
            "origins": self.origins,
            "keyring": self.keyring,
            "devices": self.devices,
            "scopes": self.scopes,
            "adopters": self.adopters,
        }


At = tuple[int, int, bytes, bytes]
"""Where an entry stands and who made it: its seq, signer, author and prev."""


def _need(body: dict[int, Any], key: int, kind: type, length: int | None = None) -> Any:
    value = body.get(key)
    if type(value) is not kind or (length is not None and len(value) != length):
        raise Refused("invalid", f"field {key}")
    if kind is int and not 0 <= value < TOP:
        raise Refused("invalid", f"field {key}")
    return value


def _flag(body: dict[int, Any], key: int) -> bool:
    return _need(body, key, bool) if key in body else False


def extended(log: Log, data: bytes, now: int | None = None) -> Log:
    """The log after one more entry, its signature and its sense checked."""
    if not 128 < len(data) <= 65_536:
        raise Refused("malformed", "size")
    text, signature, cosignature = data[:-128], data[-128:-64], data[-64:]
    found = unpacked(text)
    if not isinstance(found, list) or len(found) != 6:
        raise Refused("malformed", "no entry")
    seq, prev, kind, body, signer, author = found
    if not all(map(whole, (seq, kind, signer))) or type(prev) is not bytes or not isinstance(body, dict):
        raise Refused("malformed", "no entry")
    if seq < 0 or len(prev) != 32 or not all(map(whole, body)) or type(author) is not bytes or len(author) != 16:
        raise Refused("malformed", "no entry")
    if now is not None and kind in (12, 15) and _need(body, 3 if kind == 12 else 2, int) - now > 600_000:
        raise Refused("invalid", "a time to come")
    if seq != log.seq + 1 or prev != log.head or (seq == 0) != (kind == 1 and log.seq < 0):
        raise Refused("invalid" if kind == 1 and seq == log.seq + 1 and prev == log.head else "broken_chain")

    def signed(key: bytes, account: bytes) -> None:
        if not verified(key, b"sjs/1/log" + account + text, signature):
            raise Refused("bad_signature")

    def made_by(key: bytes, account: bytes) -> None:
        if not verified(key, b"sjs/1/author" + account + text, cosignature):
            raise Refused("bad_signature", "author")

    if seq == 0:
        new = _genesis(body, signer, author)
        signed(new.ask, new.account)
        made_by(new.rsk, new.account)
    elif signer not in (1, 2):
        raise Refused("invalid", "signer")
    else:
        signed(log.ask if signer == 1 else log.rsk, log.account)
        made_by(_author_key(log, kind, body, signer, author), log.account)
        if kind == 14 if signer == 1 else kind not in (2, 12, 14):
            raise Refused("bad_signature", "not its to say")
        new = _void(log, body) if kind == 14 else log.copy()
        if kind != 14:
            _apply(new, kind, body, (seq, signer, author, prev))
    new.seq, new.head = seq, sha(b"sjs/1/entry", data)
    new.history = [*log.history, new]
    return new


def _author_key(log: Log, kind: int, body: dict[int, Any], signer: int, author: bytes) -> bytes:
    device = log.devices.get(author.hex())
    if author == bytes(16) and signer == 2:
        return log.rsk
    if device is not None and device["scopes"] is None and device["ends"] is None:
        return bytes.fromhex(device["sign_pub"])
    if not log.devices and kind == 2 and body.get(1) == author:
        return _need(body, 2, bytes)  # type: ignore[no-any-return]
    raise Refused("bad_signature", "author")


def _genesis(body: dict[int, Any], signer: int, author: bytes) -> Log:
    account, ask, rsk = _need(body, 1, bytes, 16), _need(body, 2, bytes), _need(body, 3, bytes, 32)
    wrap_pub = _need(body, 4, bytes, 1216)
    if signer != 1 or author != bytes(16):
        raise Refused("invalid", "signer")
    return Log(account=account, ask=ask, version=1, rsk=rsk, recovery_pub=wrap_pub, origins=[_need(body, 6, str)])


def _void(log: Log, body: dict[int, Any]) -> Log:
    start, version, ask = _need(body, 1, int), _need(body, 2, int), _need(body, 3, bytes, 32)
    if not 1 <= start <= log.seq or version != log.version + 1:
        raise Refused("invalid", "void")
    new = log.history[start - 1].copy()
    new.ask, new.version, new.rsk, new.waiting = ask, version, log.rsk, None
    new.recovery_pub = log.recovery_pub
    for name, device in new.devices.items():
        newest = log.devices.get(name, device)
        if newest["sign_pub"] == device["sign_pub"]:
            device["wrap_pub"] = newest["wrap_pub"]
    for scope, state in new.scopes.items():
        state["epoch"] = max(state["epoch"], log.scopes.get(scope, state)["epoch"])
    return new


def _apply(log: Log, kind: int, body: dict[int, Any], at: At) -> None:
    rules = {
        2: _device_add, 3: _device_revoke, 4: _device_rekey, 5: _rotate, 6: _keyring_set, 7: _scope_create,
        8: _scope_delete, 9: _epoch_add, 11: _lane_adopt, 12: _recovery_rotate, 13: _origin_add, 15: _recovery_confirm,
        20: _checkpoint,
    }  # fmt: skip
    if kind == 1:
        raise Refused("invalid", "a second genesis")
    if kind in rules:
        rules[kind](log, body, at)


def _device_add(log: Log, body: dict[int, Any], at: At) -> None:
    device, sign_pub, wrap_pub = _need(body, 1, bytes, 16), _need(body, 2, bytes, 32), _need(body, 3, bytes, 1216)
    scopes = body.get(4)
    if device.hex() in log.devices:
        raise Refused("invalid", "there already")
    for known, one in log.devices.items():
        if known[:16] == device.hex()[:16] and (scopes is not None or one["scopes"] is not None):
            raise Refused("invalid", "could be an instance")
    if scopes is not None:
        _need(body, 4, list)
        if not all(type(scope) is bytes and len(scope) == 16 for scope in scopes):
            raise Refused("invalid", "scopes")
        scopes = [scope.hex() for scope in scopes]
    log.wraps[device.hex()] = wrap_pub
    log.devices[device.hex()] = {
        "added": at[0],
        "added_by": at[2].hex(),
        "sign_pub": sign_pub.hex(),
        "wrap_pub": sha(wrap_pub).hex(),
        "scopes": scopes,
        "read_only": _flag(body, 5),
        "ends": None,
    }


def _active(log: Log, device: bytes) -> dict[str, Any]:
    found = log.devices.get(device.hex())
    if found is None:
        raise Refused("invalid", "no such device")
    if found["ends"] is not None:
        raise Refused("revoked")
    return found


def _device_revoke(log: Log, body: dict[int, Any], _at: At) -> None:
    name = _need(body, 1, bytes)
    device = log.devices.get(name.hex())
    if device is None or device["scopes"] is None:
        device = _active(log, name)
    ends, instances = dict(device["ends"] or {}), dict(device.get("instances", {}))
    for item in _need(body, 2, list):
        if not isinstance(item, list) or len(item) not in (3, 4) or not whole(item[1]) or not 0 <= item[1] < TOP:
            raise Refused("invalid", "ends")
        if any(type(one) is not bytes or len(one) != size for one, size in zip(item[::2], (16, 32), strict=True)):
            raise Refused("invalid", "ends")
        if len(item) == 3:
            ends.setdefault(item[0].hex(), [item[1], item[2].hex()])
            continue
        instance = item[3]
        if type(instance) is not bytes or len(instance) != 16 or instance.hex() in log.devices:
            raise Refused("invalid", "instance")
        if device["scopes"] is None or instance[:8] != name[:8]:
            raise Refused("invalid", "instance")
        instances.setdefault(f"{instance.hex()} {item[0].hex()}", [item[1], item[2].hex()])
    device["ends"] = ends
    if instances:
        device["instances"] = instances
    if device["scopes"] is None:
        log.waiting = None


def end_of(log: Log, scope: bytes, writer: bytes) -> tuple[int, bytes] | None:
    """How far a lane counts of a device that was revoked, or of an instance of it (7.4); None while it is in force."""
    found = log.devices.get(writer.hex())
    ends, key = (found or {}).get("ends"), scope.hex()
    if found is None:
        owner = next(
            one for name, one in log.devices.items() if name[:16] == writer.hex()[:16] and one["scopes"] is not None
        )
        ends, key = (
            owner["ends"] if owner["ends"] is None else owner.get("instances", {}),
            f"{writer.hex()} {scope.hex()}",
        )
    if ends is None:
        return None
    n, link = ends.get(key, [0, ""])
    return n, bytes.fromhex(link)


def _device_rekey(log: Log, body: dict[int, Any], at: At) -> None:
    device, wrap_pub = _active(log, _need(body, 1, bytes)), _need(body, 2, bytes, 1216)
    if body[1] != at[2]:
        raise Refused("bad_signature", "another device's key")
    device["wrap_pub"] = sha(wrap_pub).hex()
    log.wraps[body[1].hex()] = wrap_pub


def _rotate(log: Log, body: dict[int, Any], _at: At) -> None:
    if _need(body, 1, int) != log.version + 1:
        raise Refused("invalid", "version")
    log.version, log.ask = body[1], _need(body, 2, bytes, 32)


def _keyring_set(log: Log, body: dict[int, Any], _at: At) -> None:
    if _need(body, 1, int) != (log.keyring[0] if log.keyring else 0) + 1:
        raise Refused("invalid", "version")
    log.keyring = [body[1], _need(body, 2, bytes, 32).hex()]


def _scope_create(log: Log, body: dict[int, Any], _at: At) -> None:
    scope, suite, home = _need(body, 1, bytes, 16).hex(), _need(body, 2, int), _flag(body, 3)
    if scope in log.scopes or suite not in (0, 1) or (home and suite != 1):
        raise Refused("invalid", "scope")
    if home and any(one["home"] for one in log.scopes.values()):
        raise Refused("invalid", "a second home")
    log.scopes[scope] = {"suite": suite, "home": home, "epoch": 0, "deleted": False, "space": _need(body, 4, str)}


def _scope(log: Log, body: dict[int, Any]) -> dict[str, Any]:
    found = log.scopes.get(_need(body, 1, bytes).hex())
    if found is None or found["deleted"]:
        raise Refused("invalid", "no such scope")
    return found


def _scope_delete(log: Log, body: dict[int, Any], _at: At) -> None:
    scope = _scope(log, body)
    if scope["home"]:
        raise Refused("invalid", "home stays")
    scope["deleted"] = True


def _epoch_add(log: Log, body: dict[int, Any], _at: At) -> None:
    scope = _scope(log, body)
    if _need(body, 2, int) != scope["epoch"] + 1:
        raise Refused("invalid", "epoch")
    scope["epoch"] = body[2]


def _lane_adopt(log: Log, body: dict[int, Any], at: At) -> None:
    scope, device, adopter = (_need(body, key, bytes) for key in (1, 2, 3))
    if scope.hex() not in log.scopes or device.hex() not in log.devices:
        raise Refused("invalid", "no such lane")
    _active(log, adopter)
    if adopter != at[2]:
        raise Refused("bad_signature", "for another")
    if log.devices[device.hex()]["ends"] is None and log.devices[device.hex()]["scopes"] is None:
        raise Refused("invalid", "in force")
    log.adopters.setdefault(f"{scope.hex()} {device.hex()}", []).append(adopter.hex())


def _recovery_rotate(log: Log, body: dict[int, Any], at: At) -> None:
    _, signer, _, prev = at
    rsk, wrap_pub, proof = _need(body, 1, bytes, 32), _need(body, 2, bytes, 1216), _need(body, 4, bytes)
    time = _need(body, 3, int)
    if not verified(rsk, b"sjs/1/rec/bind" + log.account + prev + rsk + wrap_pub + time.to_bytes(8, "big"), proof):
        raise Refused("bad_signature", "the new code")
    if signer == 2:
        log.rsk, log.recovery_pub, log.waiting = rsk, wrap_pub, None
    else:
        log.waiting, log.waiting_pub = (rsk, time + WEEK_MS), wrap_pub


def _recovery_confirm(log: Log, body: dict[int, Any], _at: At) -> None:
    rsk, time = _need(body, 1, bytes), _need(body, 2, int)
    if log.waiting is None or log.waiting[0] != rsk or time < log.waiting[1]:
        raise Refused("invalid", "nothing to confirm")
    log.rsk, log.recovery_pub, log.waiting = rsk, log.waiting_pub, None


def _checkpoint(log: Log, body: dict[int, Any], at: At) -> None:
    if _need(body, 1, int) > 1:
        return
    if _need(body, 2, bytes, 32) != sha(b"sjs/1/state", stated(log)):
        raise Refused("invalid", "another account")
    log.checkpoint = at[0]


def stated(log: Log) -> bytes:
    """The bytes of a state (7.5)."""
    state: dict[int, Any] = {
        1: log.account, 2: log.history[0].head, 3: log.seq, 4: log.head, 5: log.ask, 6: log.version, 7: log.rsk,
        8: log.recovery_pub, 9: log.origins,
    }  # fmt: skip
    state[10] = []
    for name, one in sorted(log.devices.items()):
        device: dict[int, Any] = {1: bytes.fromhex(name), 2: bytes.fromhex(one["sign_pub"])}
        if one["ends"] is None:
            device[3] = log.wraps[name]
        device |= {4: one["added"], 5: bytes.fromhex(one["added_by"])}
        if one["scopes"] is not None:
            device[6] = [bytes.fromhex(scope) for scope in one["scopes"]]
        if one["read_only"]:
            device[7] = True
        if one["ends"] is not None:
            device[8] = [
                [bytes.fromhex(scope), n, bytes.fromhex(tip)] for scope, (n, tip) in sorted(one["ends"].items())
            ]
        if one.get("instances"):
            named = sorted((*map(bytes.fromhex, lane.split()), end) for lane, end in one["instances"].items())
            device[9] = [[scope, n, bytes.fromhex(tip), writer] for writer, scope, (n, tip) in named]
        state[10].append(device)
    state[11] = []
    for name, one in sorted(log.scopes.items()):
        fields = {1: bytes.fromhex(name), 2: one["suite"], 3: one["home"], 4: one["epoch"], 5: one["deleted"]}
        fields[6] = one["space"]
        state[11].append({key: value for key, value in fields.items() if key in (1, 2, 4) or value})
    state[12] = [
        [*map(bytes.fromhex, lane.split()), [bytes.fromhex(one) for one in adopters]]
        for lane, adopters in sorted(log.adopters.items())
    ]
    if log.keyring is not None:
        state[13] = [log.keyring[0], bytes.fromhex(log.keyring[1])]
    if log.waiting is not None:
        state[14] = [log.waiting[0], log.waiting_pub, log.waiting[1]]
    if log.checkpoint:
        state[15] = log.checkpoint
    return _packed(state)


def _packed(value: Any) -> bytes:
    """MessagePack in its shortest forms."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if value < 128:
            return bytes([value])
        size = next(size for size in range(4) if value < 1 << 8 * (1 << size))
        return bytes([0xCC + size]) + value.to_bytes(1 << size, "big")
    if isinstance(value, bytes):
        return _sized(len(value), None, 0, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, str):
        data = value.encode()
        return _sized(len(data), 0xA0, 32, (0xD9, 0xDA, 0xDB)) + data
    if isinstance(value, list):
        return _sized(len(value), 0x90, 16, (None, 0xDC, 0xDD)) + b"".join(map(_packed, value))
    pairs = b"".join(_packed(key) + _packed(item) for key, item in value.items())
    return _sized(len(value), 0x80, 16, (None, 0xDE, 0xDF)) + pairs


def _sized(count: int, short: int | None, below: int, wider: tuple[int | None, int, int]) -> bytes:
    if short is not None and count < below:
        return bytes([short + count])
    for place, code in enumerate(wider):
        if code is not None and count < 1 << 8 * (1 << place):
            return bytes([code]) + count.to_bytes(1 << place, "big")
    raise ValueError(count)


def _origin_add(log: Log, body: dict[int, Any], _at: At) -> None:
    log.origins.append(_need(body, 1, str))


# --- what is derived and shown (8) ------------------------------------------------------------------------------------


def recovery_secret(typed: str) -> bytes:
    """The 20 bytes of a recovery code as it is typed."""
    letters = [letter for letter in typed.upper() if letter not in " -"]
    digits = [CROCKFORD.find({"O": "0", "I": "1", "L": "1"}.get(letter, letter)) for letter in letters]
    if len(digits) != 36 or -1 in digits:
        raise Refused("invalid", "no recovery code")
    number = 0
    for digit in digits:
        number = number * 32 + digit
    whole_code = (number >> 4).to_bytes(22, "big")
    if number & 15 or sha(b"sjs/1/rec/check", whole_code[:20])[:2] != whole_code[20:]:
        raise Refused("invalid", "a typing error")
    return whole_code[:20]


def word_places(digest: bytes) -> list[int]:
    """The places, in the word list, of the six words of a digest."""
    bits = "".join(f"{byte:08b}" for byte in digest)
    return [int(bits[at : at + 11], 2) for at in range(0, 66, 11)]


def hpke_opened(mlkem_seed: bytes, x25519_key: bytes, sealed: bytes, info: bytes) -> bytes:
    """What was sealed to a wrap key (8.3): X-Wing, then the key schedule of RFC 9180, mode base."""
    enc_m, enc_x, text = sealed[:1088], sealed[1088:1120], sealed[1120:]
    own = X25519PrivateKey.from_private_bytes(x25519_key)
    shared = hashlib.sha3_256(
        MLKEM768PrivateKey.from_seed_bytes(mlkem_seed).decapsulate(enc_m)
        + own.exchange(X25519PublicKey.from_public_bytes(enc_x))
        + enc_x
        + own.public_key().public_bytes_raw()
        + rb"\.//^"
        + b"\\"
    ).digest()
    suite = b"HPKE" + b"\x64\x7a" + b"\x00\x01" + b"\x00\x02"

    def extract(salt: bytes, label: bytes, secret: bytes) -> bytes:
        return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")

    def expand(secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
        labelled = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + context
        out, block, place = b"", b"", 1
        while len(out) < length:
            block = hmac.digest(secret, block + labelled + bytes([place]), "sha256")
            out, place = out + block, place + 1
        return out[:length]

    context = b"\x00" + extract(b"", b"psk_id_hash", b"") + extract(b"", b"info_hash", info)
    secret = extract(shared, b"secret", b"")
    try:
        return AESGCM(expand(secret, b"key", context, 32)).decrypt(
            expand(secret, b"base_nonce", context, 12), text, b""
        )
    except InvalidTag as error:
        raise Refused("wrong_key") from error


# --- teams (16) -------------------------------------------------------------------------------------------------------


@dataclass
class Team:
    """A team's log as it adds up."""

    team: bytes = b""
    seq: int = -1
    head: bytes = bytes(32)
    epoch: int = 0
    commits: dict[int, str] = field(default_factory=dict)
    members: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    devices: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    due: bool = False

    def shown(self) -> dict[str, Any]:
        return {
            "team": self.team.hex(),
            "epoch": self.epoch,
            "due": self.due,
            "commits": [self.commits[one] for one in sorted(self.commits)],
            "members": {account.hex(): one for account, one in sorted(self.members.items())},
            "devices": {device.hex(): one for device, one in sorted(self.devices.items())},
        }


def team_extended(log: Team, data: bytes) -> Team:
    """The team's log after one more entry."""
    if not 64 < len(data) <= 65_536:
        raise Refused("malformed", "size")
    text, signature = data[:-64], data[-64:]
    found = unpacked(text)
    if not isinstance(found, list) or len(found) != 5:
        raise Refused("malformed", "no entry")
    seq, prev, kind, body, author = found
    if not all(map(whole, (seq, kind))) or type(prev) is not bytes or not isinstance(body, dict):
        raise Refused("malformed", "no entry")
    if seq < 0 or len(prev) != 32 or not all(map(whole, body)) or type(author) is not bytes or len(author) != 16:
        raise Refused("malformed", "no entry")
    if seq != log.seq + 1 or prev != log.head or (seq == 0 and kind != 1):
        raise Refused("broken_chain")
    new = deepcopy(log)
    if seq == 0:
        _need(body, 1, bytes, 16)
        account, sign_pub, wrap_pub = (_need(body, key, bytes) for key in (2, 3, 4))
        commit = _need(body, 5, bytes)
        if [len(one) for one in (account, commit, sign_pub, wrap_pub)] != [16, 32, 32, 1216]:
            raise Refused("invalid", "length")
        if author != account:
            raise Refused("bad_signature", "author")
        new.team = sha(b"sjs/1/team/id", text)[:16]
        new.commits[0] = commit.hex()
        new.members[account] = _team_member(sign_pub, wrap_pub, 3, 0)
        if not verified(sign_pub, b"sjs/1/team/log" + new.team + text, signature):
            raise Refused("bad_signature")
    else:
        me = log.members.get(author)
        if me is None or not me["in"]:
            raise Refused("bad_signature", "author")
        if not verified(bytes.fromhex(me["sign_pub"]), b"sjs/1/team/log" + log.team + text, signature):
            raise Refused("bad_signature")
        if kind in (2, 3, 4) and me["role"] != 3:
            raise Refused("bad_signature", "not its to say")
        rules = {
            2: _team_add, 3: _team_remove, 4: _team_role, 5: _team_leave, 6: _team_rekey, 7: _team_epoch,
            8: _team_device,
        }  # fmt: skip
        if kind in rules:
            rules[kind](new, body, author, seq)
    new.seq, new.head = seq, sha(b"sjs/1/team/entry", data)
    return new


def _team_member(sign_pub: bytes, wrap_pub: bytes, role: int, added: int) -> dict[str, Any]:
    if len(sign_pub) != 32 or len(wrap_pub) != 1216:
        raise Refused("invalid", "key")
    wrap = sha(wrap_pub).hex()
    return {"sign_pub": sign_pub.hex(), "wrap_pub": wrap, "role": role, "added": added, "in": True}


def _team_role_of(body: dict[int, Any], key: int) -> int:
    role: int = _need(body, key, int)
    if role not in (1, 2, 3):
        raise Refused("invalid", "role")
    return role


def _team_ends(body: dict[int, Any], key: int) -> dict[bytes, list[Any]]:
    ends = {}
    for item in _need(body, key, list):
        if type(item) is not list or len(item) != 3 or type(item[0]) is not bytes or len(item[0]) != 16:
            raise Refused("invalid", "ends")
        device, n, link = item
        if not whole(n) or not 0 <= n < TOP or type(link) is not bytes or len(link) != 32:
            raise Refused("invalid", "ends")
        ends[device] = [n, link.hex()]
    return ends


_NONE = [0, bytes(32).hex()]


def _team_next(log: Team, body: dict[int, Any], key: int) -> None:
    epoch, commit = _need(body, key, int), _need(body, key + 1, bytes, 32)
    if epoch != log.epoch + 1:
        raise Refused("invalid", "epoch")
    log.epoch, log.due = epoch, False
    log.commits[epoch] = commit.hex()


def _team_out(log: Team, account: bytes, ends: dict[bytes, list[Any]]) -> None:
    log.members[account]["in"] = False
    for device, one in log.devices.items():
        if one["account"] == account.hex() and one["in"]:
            one["in"], one["end"] = False, one["end"] or ends.get(device, _NONE)


def _is_in(log: Team, account: bytes) -> bool:
    return account in log.members and bool(log.members[account]["in"])


def _team_ruled(log: Team) -> bool:
    return any(one["in"] and one["role"] == 3 for one in log.members.values())


def _team_add(log: Team, body: dict[int, Any], _author: bytes, seq: int) -> None:
    account = _need(body, 1, bytes, 16)
    if _is_in(log, account):
        raise Refused("invalid", "in")
    sign_pub, wrap_pub = _need(body, 2, bytes), _need(body, 3, bytes)
    log.members[account] = _team_member(sign_pub, wrap_pub, _team_role_of(body, 4), seq)


def _team_remove(log: Team, body: dict[int, Any], author: bytes, _seq: int) -> None:
    account = _need(body, 1, bytes, 16)
    if account == author or not _is_in(log, account):
        raise Refused("invalid", "not in")
    _team_out(log, account, _team_ends(body, 2))
    _team_next(log, body, 3)


def _team_role(log: Team, body: dict[int, Any], _author: bytes, _seq: int) -> None:
    account, role, ends = _need(body, 1, bytes, 16), _team_role_of(body, 2), _team_ends(body, 3)
    if not _is_in(log, account):
        raise Refused("invalid", "not in")
    log.members[account]["role"] = role
    if not _team_ruled(log):
        raise Refused("invalid", "no admin")
    for device, one in log.devices.items():
        if one["account"] == account.hex() and one["in"]:
            one["end"] = None if role > 1 else one["end"] or ends.get(device, _NONE)


def _team_leave(log: Team, body: dict[int, Any], author: bytes, _seq: int) -> None:
    _team_out(log, author, _team_ends(body, 1))
    if any(one["in"] for one in log.members.values()) and not _team_ruled(log):
        raise Refused("invalid", "the last admin")
    log.due = True


def _team_rekey(log: Team, body: dict[int, Any], author: bytes, _seq: int) -> None:
    me, sign_pub, wrap_pub = log.members[author], _need(body, 1, bytes), _need(body, 2, bytes)
    log.members[author] = _team_member(sign_pub, wrap_pub, me["role"], me["added"])
    for device, end in _team_ends(body, 3).items():
        one = log.devices.get(device)
        if one is None or one["account"] != author.hex():
            raise Refused("invalid", "another's device")
        one["in"], one["end"] = False, one["end"] or end
    _team_next(log, body, 4)


def _team_epoch(log: Team, body: dict[int, Any], _author: bytes, _seq: int) -> None:
    _team_next(log, body, 1)


def _team_device(log: Team, body: dict[int, Any], author: bytes, _seq: int) -> None:
    device, sign_pub, proof = _need(body, 1, bytes, 16), _need(body, 2, bytes), _need(body, 3, bytes)
    known = log.devices.get(device)
    if len(sign_pub) != 32:
        raise Refused("invalid", "key")
    if known and (known["in"] or known["account"] != author.hex() or known["sign_pub"] != sign_pub.hex()):
        raise Refused("invalid", "in")
    if not verified(sign_pub, b"sjs/1/team/device" + log.team + author + device, proof):
        raise Refused("bad_signature", "proof")
    writes = log.members[author]["role"] > 1
    end = None if writes else known["end"] if known else _NONE
    log.devices[device] = {"account": author.hex(), "sign_pub": sign_pub.hex(), "end": end, "in": True}


# --- forgotten words --------------------------------------------------------------------------------------------------


def digest_of(key: bytes, parts: list[str]) -> str:
    return hmac.new(key, "\x1f".join(parts).encode(), hashlib.sha256).digest()[:16].hex()


def digests_of_words(key: bytes, text: str) -> tuple[list[str], list[str], str | None]:
    """Return the digests by which a text is compared, those kept when it is forgotten (sorted), and that of an event."""
    edges = ".,;:!\"'()“”‘’`*_[]{}<>«»„"
    said = []
    for spelled in unicodedata.normalize("NFKC", text).casefold().split():
        word = spelled.strip(edges)
        if any(character.isalnum() for character in word):
            said.append(word)
    event = digest_of(key, ["event", *said]) if len(said) >= 4 else None
    if not said:
        return [], [], None
    if len(text) > 1000:
        only = [digest_of(key, ["words", *said])]
        return only, only, event

    def turned(words: list[str]) -> str:
        every = [words[at:] + words[:at] for at in range(len(words))]
        return digest_of(key, ["words", *min(every)])

    compared = [turned(said)]
    marked = [word for word in said if len(word) > 3 and ("@" in word or any(one.isdigit() for one in word))]
    little = "the our my your a an is are was were be this that these those it its his her their".split()  # noqa: SIM905
    others = {word for word in said if word not in little and word not in marked}
    if marked and others:
        compared.append(digest_of(key, ["particular", *sorted(others), "", *marked]))
    swapped = set()
    for at, word in enumerate(said):
        sides = {said[0], *said[at + 1 : at + 2]}
        if word in ("is", "are") and sides & {"the", "our", "my", "your"}:
            swapped.add(turned([*said[at + 1 :], word, *said[:at]]))
    return compared, sorted({*compared, *swapped}), event
