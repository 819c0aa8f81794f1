"""The keys of an account and of its devices, and how one is handed to the holder of another. Pure.

Randomness comes in as an argument, except what HPKE draws to encapsulate: the library offers no way to give it. What is
secret is left out of every `repr`, and never part of an error. Python cannot erase memory: a key that was used stays in
this process's memory until the system takes it back.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from scrubjay_shared import envelope, sealing
from scrubjay_shared.envelope import Envelope, Header, ObjectKind
from scrubjay_shared.errors import (
    BadSignatureError,
    CorruptError,
    InvalidError,
    MalformedError,
    UpdateNeededError,
    WrongKeyError,
)
from scrubjay_shared.wire import LIMITED_WRAP, ROOT_WRAP, Kdf, Wrap
from scrubjay_sync.api.account import RecoveryPublic
from scrubjay_sync.policy import IDENTITY

KEY_BYTES = 32
MLKEM_SEED_BYTES = 64
MLKEM_PUB_BYTES = 1184
WRAP_PUB_BYTES = MLKEM_PUB_BYTES + 32
ROOT_WRAP_BYTES = 1088 + 32 + 2 * KEY_BYTES + 16
"""A sealed root key: both encapsulations, the two secrets, the tag."""
KEYRING_FORMAT = 1
"""How a keyring or an extract looks inside; a higher number is refused, because rewriting it would lose fields."""

_NO_SCOPE = bytes(16)
_HPKE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
Entropy = Callable[[int], bytes]
"""Gives that many random bytes."""


# --- the password -----------------------------------------------------------------------------------------------------


def new_kdf(entropy: Entropy) -> Kdf:
    """Return the parameters that a new password is derived with, and a fresh salt."""
    return Kdf(
        salt=entropy(16),
        memory_kib=IDENTITY.kdf_memory_kib,
        iterations=IDENTITY.kdf_iterations,
        lanes=IDENTITY.kdf_lanes,
    )


def check_kdf(kdf: Kdf, pinned: Kdf | None = None) -> None:
    """Refuse parameters that would make guessing cheap, or deriving a denial of service.

    `pinned` are those that this device saw before: a server may name stronger ones (the password was changed
    elsewhere), never weaker ones. Raises InvalidError.
    """
    if (
        len(kdf.salt) != 16
        or kdf.memory_kib < IDENTITY.kdf_floor_memory_kib
        or kdf.iterations < IDENTITY.kdf_floor_rounds
    ):
        raise InvalidError(
            "the server asks for a weaker password derivation than is safe",
            hint="nothing was sent; ask its operator, or use another server",
        )
    if kdf.memory_kib > IDENTITY.kdf_ceiling_memory_kib or kdf.iterations > IDENTITY.kdf_ceiling_rounds:
        raise InvalidError(
            "the server asks for a password derivation that would take minutes",
            hint="nothing was sent; ask its operator",
        )
    if not 1 <= kdf.lanes <= IDENTITY.kdf_ceiling_lanes:
        raise InvalidError(
            "the server asks for a password derivation that does not exist", hint="nothing was sent; ask its operator"
        )
    if pinned is not None and (kdf.memory_kib < pinned.memory_kib or kdf.iterations < pinned.iterations):
        raise InvalidError(
            "the server asks for a weaker password derivation than before",
            hint="nothing was sent; if nobody changed the password, the server is not to be trusted",
        )


def auth_key(password: str, kdf: Kdf, origin: str, pinned: Kdf | None = None) -> bytes:
    """Return the 32 bytes that prove a password to one server; it opens no data. Slow on purpose (0.3 s).

    HKDF-SHA256(Argon2id(NFKC(password))), bound to the server's address, so that one server cannot use what another
    was shown. Raises as `check_kdf`; InvalidError for an empty password.
    """
    check_kdf(kdf, pinned)
    words = unicodedata.normalize("NFKC", password)
    if not words:
        raise InvalidError("the password is empty", hint="type the password of the account")
    stretched = Argon2id(
        salt=kdf.salt, length=KEY_BYTES, iterations=kdf.iterations, lanes=kdf.lanes, memory_cost=kdf.memory_kib
    ).derive(words.encode("utf-8", "surrogatepass"))
    return _derived(stretched, b"sjs/1/auth" + origin.encode())


# --- keys that hold others ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RootKey:
    """What full devices share, of one version: a random secret, and the key that signs the account log (ASK).

    The two are made, wrapped and replaced together. Whoever wraps a root key must know ASK's seed, so that the public
    half in the log proves a wrap before anything is opened with it.
    """

    version: int
    secret: bytes = field(repr=False)
    ask_seed: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy, version: int) -> RootKey:
        """Return a fresh one: at sign-up and at a rotation, and nowhere else."""
        return cls(version=version, secret=entropy(KEY_BYTES), ask_seed=entropy(KEY_BYTES))

    @property
    def wrap_key(self) -> bytes:
        """The key that the keyring is sealed with."""
        return _derived(self.secret, b"sjs/1/wrapkey")

    @property
    def ask(self) -> bytes:
        """The public half of the key that signs the account log."""
        return public_of(self.ask_seed)

    def sign(self, message: bytes) -> bytes:
        """Sign for the account."""
        return signer(self.ask_seed)(message)


class Opener(Protocol):
    """Whoever holds an HPKE key pair: a device, or the recovery code."""

    @property
    def wrap_pub(self) -> bytes:
        """The public half, 1,216 bytes: ML-KEM-768, then X25519."""

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to it. Raises WrongKeyError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapKeys:
    """An HPKE key pair (X-Wing: ML-KEM-768 and X25519), as the two seeds that it is made from."""

    mlkem_seed: bytes = field(repr=False)
    x25519_seed: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy) -> WrapKeys:
        """Return fresh ones."""
        return cls(mlkem_seed=entropy(MLKEM_SEED_BYTES), x25519_seed=entropy(KEY_BYTES))

    @property
    def wrap_pub(self) -> bytes:
        """The public half, 1,216 bytes."""
        mlkem, x25519 = self._halves()
        return mlkem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to these keys for this purpose. Raises WrongKeyError."""
        try:
            return _HPKE.decrypt(sealed, MLKEM768X25519PrivateKey(*self._halves()), info=info)
        except InvalidTag as error:
            raise WrongKeyError(
                "a key from the server was not encrypted for this device or code", hint="scrubjay sync verify"
            ) from error

    def _halves(self) -> tuple[MLKEM768PrivateKey, X25519PrivateKey]:
        return MLKEM768PrivateKey.from_seed_bytes(self.mlkem_seed), X25519PrivateKey.from_private_bytes(
            self.x25519_seed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKeys:
    """A device's own keys: one signs what it writes, the other opens what is wrapped for it."""

    sign_seed: bytes = field(repr=False)
    wrap: WrapKeys = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy) -> DeviceKeys:
        """Return fresh ones."""
        return cls(sign_seed=entropy(KEY_BYTES), wrap=WrapKeys.new(entropy))

    @property
    def sign_pub(self) -> bytes:
        """The Ed25519 public key, 32 bytes."""
        return public_of(self.sign_seed)

    @property
    def wrap_pub(self) -> bytes:
        """The HPKE public key, 1,216 bytes."""
        return self.wrap.wrap_pub

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to this device. Raises WrongKeyError."""
        return self.wrap.opened(sealed, info)


def signer(seed: bytes) -> Callable[[bytes], bytes]:
    """Return what signs messages with an Ed25519 seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).sign


def public_of(seed: bytes) -> bytes:
    """Return the Ed25519 public key of a seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


# --- wraps ------------------------------------------------------------------------------------------------------------


def wrap_root(root: RootKey, *, account: bytes, target: bytes, wrap_pubs: Sequence[bytes]) -> Wrap:
    """Return the account's root key, sealed to one holder.

    The recovery code may have two key pairs for a while, the one in force and the one that waits: then two sealed
    texts stand one after another. Raises InvalidError when a public key is not valid.
    """
    info = _info(account, target, ROOT_WRAP, root.version)
    sealed = b"".join(_sealed(root.secret + root.ask_seed, wrap_pub, info) for wrap_pub in wrap_pubs)
    return Wrap(target=target, kind=ROOT_WRAP, version=root.version, sealed=sealed)


def unwrap_root(wrap: Wrap, *, account: bytes, target: bytes, holder: Opener, ask: bytes | None = None) -> RootKey:
    """Return the root key of a wrap.

    Whoever knows a public key can wrap to it: `ask`, the account's signing key as the log names it, proves that it was
    one who held the account. Raises WrongKeyError, MalformedError, BadSignatureError.
    """
    _check_wrap(wrap, ROOT_WRAP, target)
    info = _info(account, target, ROOT_WRAP, wrap.version)
    if not wrap.sealed or len(wrap.sealed) % ROOT_WRAP_BYTES:
        raise MalformedError(
            f"a wrapped root key has {ROOT_WRAP_BYTES} bytes for each key of its holder, got {len(wrap.sealed)}",
            hint="update scrubjay",
        )
    parts = [wrap.sealed[at : at + ROOT_WRAP_BYTES] for at in range(0, len(wrap.sealed), ROOT_WRAP_BYTES)]
    opened = _first_opened(parts, info, holder)
    root = RootKey(version=wrap.version, secret=opened[:KEY_BYTES], ask_seed=opened[KEY_BYTES:])
    if ask is not None and root.ask != ask:
        raise BadSignatureError("the root key from the server does not belong to this account", hint=_VERIFY)
    return root


def _first_opened(parts: Sequence[bytes], info: bytes, holder: Opener) -> bytes:
    *others, last = parts
    for part in others:
        try:
            return holder.opened(part, info)
        except WrongKeyError:
            continue
    return holder.opened(last, info)


def _sealed(secret: bytes, wrap_pub: bytes, info: bytes) -> bytes:
    if len(wrap_pub) != WRAP_PUB_BYTES:
        raise InvalidError(
            "the other device's public key has the wrong length", hint="update scrubjay on the other device"
        )
    try:
        public = MLKEM768X25519PublicKey(
            MLKEM768PublicKey.from_public_bytes(wrap_pub[:MLKEM_PUB_BYTES]),
            X25519PublicKey.from_public_bytes(wrap_pub[MLKEM_PUB_BYTES:]),
        )
    except ValueError as error:
        raise InvalidError(
            "the other device's public key is not valid", hint="update scrubjay on the other device"
        ) from error
    return _HPKE.encrypt(secret, public, info=info)


def _check_wrap(wrap: Wrap, kind: int, target: bytes) -> None:
    if wrap.kind != kind or wrap.target != target:
        raise MalformedError("the server handed out another wrapped key than was asked for", hint=_VERIFY)


def _info(account: bytes, target: bytes, kind: int, version: int) -> bytes:
    return b"sjs/1/wrap" + account + target + kind.to_bytes(1, "big") + version.to_bytes(4, "big")


# --- the recovery code ------------------------------------------------------------------------------------------------

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_AS_TYPED = str.maketrans("OIL", "011", "-–— \t\r\n")
_GROUPS, _GROUP = 6, 6
_CODE_BYTES, _CHECK_BYTES = 20, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryCode:
    """The code on paper: 160 random bits that open the account when every device is lost."""

    secret: bytes = field(repr=False)

    @classmethod
    def new(cls, entropy: Entropy) -> RecoveryCode:
        """Return a fresh one."""
        return cls(secret=entropy(_CODE_BYTES))

    @classmethod
    def parse(cls, typed: str) -> RecoveryCode:
        """Read a code as people type it: any case, any dashes and spaces, o for 0, i and l for 1.

        Raises InvalidError, which says whether it is unfinished or mistyped and never repeats it.
        """
        letters = cls.letters(typed)
        if len(letters) != _GROUPS * _GROUP:
            raise InvalidError(
                f"a recovery code has {_GROUPS * _GROUP} characters, not {len(letters)}",
                hint=f"type all {_GROUPS} groups of {_GROUP} characters",
            )
        mistyped = InvalidError(
            "that recovery code has a typing error", hint="compare it with what you wrote down, group by group"
        )
        number = 0
        for letter in letters:
            place = _ALPHABET.find(letter)
            if place < 0:
                raise mistyped
            number = number << 5 | place
        spare = _GROUPS * _GROUP * 5 - (_CODE_BYTES + _CHECK_BYTES) * 8
        if number & ((1 << spare) - 1):
            raise mistyped
        whole = (number >> spare).to_bytes(_CODE_BYTES + _CHECK_BYTES, "big")
        code = cls(secret=whole[:_CODE_BYTES])
        if not hmac.compare_digest(code._check(), whole[_CODE_BYTES:]):
            raise mistyped
        return code

    @staticmethod
    def letters(typed: str) -> str:
        """Return what was typed as the letters that are meant."""
        return typed.upper().translate(_AS_TYPED)

    @property
    def text(self) -> str:
        """The code as it is shown: six groups of six characters."""
        spare = _GROUPS * _GROUP * 5 - (_CODE_BYTES + _CHECK_BYTES) * 8
        number = int.from_bytes(self.secret + self._check(), "big") << spare
        letters = "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_GROUPS * _GROUP)))
        return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the text, to ask some of them back."""
        return tuple(self.text.split("-"))

    @property
    def rsk(self) -> bytes:
        """The public half of the key that outranks every device, 32 bytes."""
        return public_of(self._sign_seed())

    @property
    def wrap_pub(self) -> bytes:
        """The public half of the key that root keys are wrapped to, 1,216 bytes."""
        return self._wrap_keys().wrap_pub

    @property
    def public(self) -> RecoveryPublic:
        """Both public halves."""
        return RecoveryPublic(rsk=self.rsk, wrap_pub=self.wrap_pub)

    def sign(self, message: bytes) -> bytes:
        """Sign with the key that outranks every device."""
        return signer(self._sign_seed())(message)

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to the code. Raises WrongKeyError."""
        return self._wrap_keys().opened(sealed, info)

    def _check(self) -> bytes:
        return hashlib.sha256(b"sjs/1/rec/check" + self.secret).digest()[:_CHECK_BYTES]

    def _sign_seed(self) -> bytes:
        return _derived(self.secret, b"sjs/1/rec/sign")

    def _wrap_keys(self) -> WrapKeys:
        seeds = _derived(self.secret, b"sjs/1/rec/enc", MLKEM_SEED_BYTES + KEY_BYTES)
        return WrapKeys(mlkem_seed=seeds[:MLKEM_SEED_BYTES], x25519_seed=seeds[MLKEM_SEED_BYTES:])


# --- the keyring ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeKeys:
    """What the keyring says of one scope: its name, its key of each epoch, and the projects bound to it.

    A searchable scope has no keys: its objects are not sealed.
    """

    name: str
    keys: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """What full devices share and the server may not see: the keys and names of scopes, and the names of devices."""

    scopes: Mapping[bytes, ScopeKeys] = field(default_factory=dict)
    devices: Mapping[bytes, str] = field(default_factory=dict)
    """Names of devices, by id."""
    format: int = KEYRING_FORMAT

    def with_scope(self, scope: bytes, keys: ScopeKeys) -> Keyring:
        """Return the keyring with a scope added or replaced."""
        return replace(self, scopes={**self.scopes, scope: keys})

    def without_scope(self, scope: bytes) -> Keyring:
        """Return the keyring without a scope: what was sealed in it opens no more."""
        return replace(self, scopes={one: keys for one, keys in self.scopes.items() if one != scope})

    def with_device(self, device: bytes, name: str) -> Keyring:
        """Return the keyring with a device's name."""
        return replace(self, devices={**self.devices, device: name})


_keyring_decoder = msgspec.msgpack.Decoder(Keyring)


def seal_keyring(
    keyring: Keyring,
    *,
    account: bytes,
    device: bytes,
    version: int,
    root: RootKey,
    entropy: Entropy,
    sign: Callable[[bytes], bytes],
) -> Envelope:
    """Return the object of a keyring: sealed with the root's wrap key, `n` its version, `epoch` the root's."""
    header = Header(
        suite=envelope.Suite.SEALED,
        kind=ObjectKind.KEYRING,
        account=account,
        scope=_NO_SCOPE,
        device=device,
        n_from=version,
        n_to=version,
        prev=envelope.ZERO,
        epoch=root.version,
    )
    payload = msgspec.msgpack.encode(keyring)
    return sealing.seal(header, payload, key=root.wrap_key, salt=entropy(32), sign=sign)


def digest_of(data: bytes) -> bytes:
    """Return the SHA-256 under which the server keeps a keyring, and which the account log names."""
    return hashlib.sha256(data).digest()


def open_keyring(data: bytes, *, account: bytes, version: int, digest: bytes, root: RootKey) -> Keyring:
    """Return the keyring of an object: the very one that the account log names.

    Raises BadSignatureError when it is another one, WrongKeyError when the root key does not open it.
    """
    if not hmac.compare_digest(digest_of(data), digest):
        raise BadSignatureError("the server hands out another keyring than the account log names", hint=_VERIFY)
    sealed = envelope.parse(data)
    header = sealed.header
    if (header.kind, header.account, header.n_from) != (ObjectKind.KEYRING, account, version):
        raise CorruptError("the keyring from the server is of another account or version", hint=_VERIFY)
    if header.epoch != root.version:
        raise WrongKeyError(
            "the keyring was sealed with another root key",
            hint="scrubjay sync fetches it again; if this stays, scrubjay sync verify",
        )
    return _decoded(_keyring_decoder, sealing.unseal(sealed, key=root.wrap_key))


def epoch_of_keyring(data: bytes) -> int:
    """Return the version of the root key that a sealed keyring needs. Raises MalformedError."""
    return envelope.parse(data).header.epoch


# --- what a limited device is given -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The part of a keyring that a limited device gets: no signing key, only the scopes it was made for."""

    scopes: Mapping[bytes, ScopeKeys]
    name: str = ""
    format: int = KEYRING_FORMAT


_extract_decoder = msgspec.msgpack.Decoder(Extract)
_SIGNATURE_BYTES = 64


def extract_of(keyring: Keyring, device: bytes, scopes: tuple[bytes, ...]) -> Extract:
    """Return what a limited device may have of a keyring."""
    return Extract(
        scopes={scope: keyring.scopes[scope] for scope in scopes if scope in keyring.scopes},
        name=keyring.devices.get(device, ""),
    )


def wrap_extract(
    extract: Extract, *, account: bytes, target: bytes, version: int, wrap_pub: bytes, root: RootKey
) -> Wrap:
    """Return an extract of keyring `version`, signed by the account and sealed to a limited device.

    The signature stands inside: without it, whoever knows the device's public key could give it keys of his own.
    """
    payload = msgspec.msgpack.encode(extract)
    signature = root.sign(_extract_message(account, target, version, payload))
    sealed = _sealed(signature + payload, wrap_pub, _info(account, target, LIMITED_WRAP, version))
    return Wrap(target=target, kind=LIMITED_WRAP, version=version, sealed=sealed)


def unwrap_extract(wrap: Wrap, *, account: bytes, target: bytes, ask: bytes, holder: Opener) -> Extract:
    """Return the extract of a wrap, if the account's key `ask` signed it. Raises BadSignatureError, WrongKeyError."""
    _check_wrap(wrap, LIMITED_WRAP, target)
    opened = holder.opened(wrap.sealed, _info(account, target, LIMITED_WRAP, wrap.version))
    signature, payload = opened[:_SIGNATURE_BYTES], opened[_SIGNATURE_BYTES:]
    try:
        Ed25519PublicKey.from_public_bytes(ask).verify(
            signature, _extract_message(account, target, wrap.version, payload)
        )
    except InvalidSignature as error:
        raise BadSignatureError("this device's keys were not signed by the account", hint=_VERIFY) from error
    return _decoded(_extract_decoder, payload)


def _extract_message(account: bytes, target: bytes, version: int, payload: bytes) -> bytes:
    return b"sjs/1/extract" + account + target + version.to_bytes(4, "big") + payload


# --- what people compare ----------------------------------------------------------------------------------------------


def pairing_digest(genesis: bytes, sign_pub: bytes, wrap_pub: bytes, head: bytes) -> bytes:
    """Return what both machines show as words while one lets the other in: account, keys and log must be the same."""
    return hashlib.sha256(b"sjs/1/sas" + genesis + sign_pub + wrap_pub + head).digest()


def heads_digest(account: bytes, log_head: bytes, heads: Mapping[tuple[bytes, bytes], tuple[int, bytes]]) -> bytes:
    """Return what `sync verify` shows as words: where the account log and every lane (scope, device) end, (n, link)."""
    summed = hashlib.sha256(b"sjs/1/heads" + account + log_head)
    for (scope, device), (n, tip) in sorted(heads.items()):
        summed.update(scope + device + n.to_bytes(8, "big") + tip)
    return summed.digest()


_VERIFY = "scrubjay sync verify"
Shape = TypeVar("Shape", Keyring, Extract)


def _decoded(decoder: msgspec.msgpack.Decoder[Shape], payload: bytes) -> Shape:
    try:
        found = decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError("the keyring is not in the format of this version", hint="update scrubjay") from error
    if found.format > KEYRING_FORMAT:
        raise UpdateNeededError("the keyring was written by a newer scrubjay", hint="update scrubjay on this device")
    return found


def _derived(secret: bytes, info: bytes, length: int = KEY_BYTES) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=info).derive(secret)
