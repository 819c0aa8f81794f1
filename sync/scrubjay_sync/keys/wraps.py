"""Keys handed to the holder of another key pair: a root key, sealed to a device or to the recovery code."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    MLKEM768X25519PublicKey,
)

from scrubjay_shared.errors import (
    BadSignatureError,
    InvalidError,
    MalformedError,
)
from scrubjay_shared.wire import ROOT_WRAP, Wrap
from scrubjay_sync.keys.keypairs import HPKE, KEY_BYTES, MLKEM_PUB_BYTES, WRAP_PUB_BYTES, Opener, RootKey

ROOT_WRAP_BYTES = 1088 + 32 + 2 * KEY_BYTES + 16
"""A sealed root key: both encapsulations, the two secrets, the tag."""


def wrap_root(root: RootKey, *, account: bytes, target: bytes, wrap_pub: bytes) -> Wrap:
    """Return the account's root key, sealed to one holder. Raises InvalidError when the public key is not valid."""
    info = wrap_info(account, target, ROOT_WRAP, root.version)
    sealed = seal_to(root.secret + root.ask_seed, wrap_pub, info)
    return Wrap(target=target, kind=ROOT_WRAP, version=root.version, sealed=sealed)


def unwrap_root(wrap: Wrap, *, account: bytes, target: bytes, holder: Opener, ask: bytes | None = None) -> RootKey:
    """Return the root key of a wrap.

    Whoever knows a public key can wrap to it: `ask`, the account's signing key as the log names it, proves that it was
    one who held the account. Raises WrongKeyError, MalformedError, BadSignatureError.
    """
    check_wrap(wrap, ROOT_WRAP, target)
    info = wrap_info(account, target, ROOT_WRAP, wrap.version)
    if len(wrap.sealed) != ROOT_WRAP_BYTES:
        raise MalformedError(
            f"a wrapped root key has {ROOT_WRAP_BYTES} bytes, got {len(wrap.sealed)}", hint="update scrubjay"
        )
    opened = holder.opened(wrap.sealed, info)
    root = RootKey(version=wrap.version, secret=opened[:KEY_BYTES], ask_seed=opened[KEY_BYTES:])
    if ask is not None and root.ask != ask:
        raise BadSignatureError(
            "the root key from the server does not belong to this account", hint="scrubjay sync verify"
        )
    return root


def seal_to(secret: bytes, wrap_pub: bytes, info: bytes) -> bytes:
    """Return a secret sealed to the holder of a public key. Raises InvalidError when that key is not valid."""
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
    return HPKE.encrypt(secret, public, info=info)


def check_wrap(wrap: Wrap, kind: int, target: bytes) -> None:
    """Raise MalformedError when a wrap is of another kind, or for another holder, than was asked for."""
    if wrap.kind != kind or wrap.target != target:
        raise MalformedError(
            "the server handed out another wrapped key than was asked for", hint="scrubjay sync verify"
        )


def wrap_info(account: bytes, target: bytes, kind: int, version: int) -> bytes:
    """Return what binds a sealed text to its account, holder, kind and version."""
    return b"sjs/1/wrap" + account + target + kind.to_bytes(1, "big") + version.to_bytes(4, "big")
