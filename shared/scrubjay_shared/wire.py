"""What travels between client and cloud besides objects: the JSON bodies of the control plane, and the routes.

`bytes` fields are base64 in JSON. Ids are 16 bytes; in paths they are lower-case hex. Data-plane bodies are objects one
after another (`envelope.split`), media type `MEDIA`; what belongs to a page of them stands in headers. Errors are
problem documents (RFC 9457) with the stable `code` of `errors`, a `hint`, and a `request_id`. Unknown fields are
ignored, so that both sides may grow.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from scrubjay_shared.errors import MalformedError

Body = TypeVar("Body")

PROTOCOL = 1
MEDIA = "application/vnd.sjs1"
PROBLEM = "application/problem+json"
CURSOR = "Scrubjay-Cursor"
"""Opaque: where the next page begins."""
HEAD = "Scrubjay-Head"
"""The cursor a reader has when it has read everything; equal to `CURSOR` on the last page."""
STORE = "Scrubjay-Store"
GENERATION = "Scrubjay-Generation"
"""Raised by the operator after a restore that may have lost a tail: clients compare and repair."""
REFUSED = "Scrubjay-Refused"
"""With the account log, where a device was refused: when the newest refusal ends, as a number that only rises."""
WARNING = "Scrubjay-Quota-Warning"
"""Share of the quota used, in percent, from 80 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """GET /v1/caps: what this server speaks and allows. `time` is its clock, UTC milliseconds."""

    protocol: int
    store_id: str
    generation: int
    time: int
    max_body: int
    max_object: int
    registration: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kdf:
    """Argon2id parameters: salt of 16 bytes, memory in KiB, iterations, lanes."""

    salt: bytes
    memory_kib: int
    iterations: int
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelogin:
    """GET /v1/prelogin?username=: how this name derives its key; an unknown name gets a fake that stays the same."""

    kdf: Kdf


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrap:
    """A key sealed to one holder by HPKE. `target` is a device id, or 16 zero bytes for the recovery code.

    `kind` 1 holds the account's root key of `version`; 2 the keyring extract of a limited device.
    """

    target: bytes
    kind: int
    version: int
    sealed: bytes


RECOVERY_TARGET = bytes(16)
ROOT_WRAP = 1
LIMITED_WRAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAppend:
    """POST /v1/log: entries that follow `head`, with the wraps and blobs they speak of, all or nothing."""

    head: bytes
    entries: tuple[bytes, ...]
    wraps: tuple[Wrap, ...] = ()
    blobs: tuple[bytes, ...] = ()
    """Objects stored under their SHA-256: the keyring that a keyring_set entry names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """GET /v1/log?from=seq: the entries from a number on, and where the log ends."""

    entries: tuple[bytes, ...]
    seq: int
    head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheckpoint:
    """GET /v1/log/checkpoint: a checkpoint entry of the account log, and the bytes of the state that it states."""

    entry: bytes
    state: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """POST /v1/register: a new account. `log` begins at the genesis, and must certify the first device."""

    username: str
    kdf: Kdf
    auth_key: bytes
    log: LogAppend
    invite: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSignUp:
    """POST /v1/register/check: whether a name is free and an invitation valid, before a person is asked for more."""

    username: str
    invite: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """POST /v1/login: proves the password. `code` is the TOTP code, where the account has one.

    `proof` is the recovery code's signature over `code_login_message`, with a challenge's `nonce` and the `origin`
    asked: who has it is not kept out by what others have tried.
    """

    username: str
    auth_key: bytes
    code: str = ""
    nonce: bytes = b""
    origin: str = ""
    proof: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A token that may only enrol a device and read the account log. `expires` in UTC milliseconds."""

    account: bytes
    token: str
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Enroll:
    """POST /v1/enroll (pending token): the device that asks to be added.

    `commitment` is to its keys and to a nonce that it reveals once it is answered.
    """

    device: bytes
    sign_pub: bytes
    wrap_pub: bytes
    commitment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """One device that asks, as GET /v1/enroll lists them to devices and to the one that asked.

    `answer` and `answer_head` are the nonce and the log's end of the device that answered, `reveal` the nonce of the
    one that asks: empty until they are there.
    """

    id: bytes
    device: bytes
    sign_pub: bytes
    wrap_pub: bytes
    commitment: bytes
    approved: bool
    expires: int
    answer: bytes = b""
    answer_head: bytes = b""
    reveal: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingAnswer:
    """POST /v1/enroll/{id}/answer: a nonce of the device that will approve, and where the log ends that it holds."""

    nonce: bytes
    head: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingReveal:
    """POST /v1/enroll/{id}/reveal (pending token): the nonce that the device that asks has committed to."""

    nonce: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolments:
    """GET /v1/enroll."""

    enrolments: tuple[Enrolment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """GET /v1/auth/challenge?device=: what the device signs: "sjs/1/auth", account, device, nonce, origin."""

    nonce: bytes
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """POST /v1/auth/token. `origin` is the server's address as the client reaches it; the account must list it."""

    account: bytes
    device: bytes
    nonce: bytes
    origin: str
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An access token of one hour. To a full device, `username` is what the account is called now."""

    token: str
    expires: int
    username: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseDevice:
    """DELETE /v1/devices/{device}: the asking device's signature over `refusal_message`, with a challenge's `nonce`."""

    nonce: bytes
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal as it was signed: of which device, by whom. It has held until `until`, and holds no more after."""

    device: bytes
    author: bytes
    nonce: bytes
    until: int
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """GET /v1/refusals: those that no entry of the log has settled, oldest first."""

    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wraps:
    """GET /v1/wraps/{target}: newest version first."""

    wraps: tuple[Wrap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneHead:
    """Where a lane ends: the number of its last op, and its link."""

    scope: bytes
    device: bytes
    n: int
    tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """GET /v1/heads: every lane of the account."""

    heads: tuple[LaneHead, ...]
    cursor: str


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one pushed object.

    `status`: ok, dup, or an error code: gap, fork, stale_epoch, revoked, bad_signature, broken_chain, malformed, quota.
    `n` and `tip` are the lane's end as the server now has it; the client compares them with its own.
    """

    scope: bytes
    device: bytes
    n_from: int
    n_to: int
    status: str
    n: int
    tip: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAnswer:
    """POST /v1/push, /v1/pack, /v1/heal. After the first error in a lane its later objects are not taken."""

    results: tuple[Pushed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """GET /v1/usage: bytes and objects held, and what is allowed."""

    bytes: int
    objects: int
    devices: int
    scopes: int
    quota_bytes: int
    quota_objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPassword:
    """PUT /v1/account/password: a new salt and key; the old key proves the right to. No data changes."""

    auth_key: bytes
    new_kdf: Kdf
    new_auth_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SetName:
    """PUT /v1/account/name: another user name; the password's key proves the right to. No data changes."""

    auth_key: bytes
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountName:
    """What an account is called, as logins look it up."""

    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTotp:
    """PUT /v1/account/totp: `secret` empty takes the second factor away; `code` proves that the app has it."""

    auth_key: bytes
    secret: bytes = b""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAccount:
    """DELETE /v1/account."""

    auth_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What a deletion removed; `left` counts rows of the account that are still there, and is 0."""

    objects: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutSnapshot:
    """PUT /v1/snapshots/{scope}: the manifest's object, and the hashes of the chunks' objects, sent before."""

    manifest: bytes
    chunks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """POST /v1/snapshots/{scope}/missing: hashes of objects; of the answer, those that the server does not have."""

    chunks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVector:
    """One memory's vector, given by a client: float32 little-endian, unit length.

    `content_hash` is that of the content it was made of: a vector of other words than the server has is not taken.
    """

    id: str
    content_hash: str
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVector:
    """The vector of a topic's label, made as a memory's is."""

    topic: str
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PutVectors:
    """PUT /v1/search/{scope}/vectors: vectors in `space`, which must be the one that the scope was created with."""

    space: str
    vectors: tuple[SearchVector, ...] = ()
    topics: tuple[TopicVector, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedVector:
    """A memory that has no vector, and the hash of what it says."""

    id: str
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedVectors:
    """GET /v1/search/{scope}/vectors?after=id: memories and topics without a vector, in order of id.

    `next` is where the next page begins; "" on the last. Topics stand on the first page.
    """

    wanted: tuple[WantedVector, ...]
    topics: tuple[str, ...] = ()
    next: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """POST /v1/search/{scope}: the words and, when the client has a model, their vector (float32 little-endian).

    `space` is the vector's. `type` and `topic` keep to memories of one.
    """

    text: str
    vector: bytes = b""
    space: str = ""
    limit: int = 10
    type: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One memory of a searchable scope, best first."""

    id: str
    content: str
    score: float
    cosine: float
    overlap: float
    type: str
    topic: str | None
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The hits, and whether vectors took part (`hybrid`) or only words did (`keyword`)."""

    hits: tuple[SearchHit, ...]
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invite:
    """An invitation that registers one account."""

    code: str
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error: RFC 9457, with the code to act on."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    request_id: str


_OTHER_VERSION = "device and server may be of different versions: update the older one"


def read(data: bytes, kind: type[Body]) -> Body:
    """Return the record of a JSON body. Raises MalformedError, which names the field, for anything else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedError(f"the body is not a valid {kind.__name__}: {error}", hint=_OTHER_VERSION) from error
    except RecursionError as error:  # thousands of brackets, also where no field is
        raise MalformedError(
            f"the body is not a valid {kind.__name__}: it is nested too deeply", hint=_OTHER_VERSION
        ) from error


def code_login_message(nonce: bytes, username: str, auth_key: bytes, origin: str) -> bytes:
    """Return what a recovery code signs to log in: a challenge for `RECOVERY_TARGET`, whose login, at which server."""
    who = hashlib.sha256(username.encode()).digest() + hashlib.sha256(auth_key).digest()
    return b"sjs/1/rec/login" + nonce + who + origin.encode()


def refusal_message(account: bytes, device: bytes, author: bytes, nonce: bytes) -> bytes:
    """Return what device `author` signs to have `device` refused: a challenge of its own, so that it is of now."""
    return b"sjs/1/refuse" + account + device + author + nonce


def auth_message(account: bytes, device: bytes, nonce: bytes, origin: str) -> bytes:
    """Return what a device signs to get a token: bound to the server's address, so that no other can relay it."""
    return b"sjs/1/auth" + account + device + nonce + origin.encode()
