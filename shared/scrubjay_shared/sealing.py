"""How a payload becomes the body of an object that only holders of the scope's key can open. Pure.

okm (76 bytes) = HKDF-SHA256(ikm = scope key, salt = the object's, info = "sjs/1/obj", SHA-256(header, commit blank))
key = okm[:32], nonce = okm[32:44], commit = okm[44:]
body = AES-256-GCM-SIV(key, nonce, padded payload, aad = header)

The commitment tells a wrong key from a damaged object, and binds key and header, which GCM-SIV alone does not. The
cloud never imports this module.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from scrubjay_shared import segment
from scrubjay_shared.envelope import READER, Envelope, Header, Suite, assemble, without_commit
from scrubjay_shared.errors import CorruptError, UpdateNeededError, WrongKeyError

TAG_BYTES = 16


def seal(
    header: Header, payload: bytes, *, key: bytes, salt: bytes, sign: Callable[[bytes], bytes], squeeze: bool = True
) -> Envelope:
    """Return the object of a payload, sealed or open as `header.suite` says; `salt` is 32 fresh random bytes.

    `squeeze` false leaves compression out, for scopes in which a stranger's text may stand beside a secret.
    """
    data, flag = segment.compress(payload) if squeeze else (payload, 0)
    header = replace(header, flags=header.flags | flag)
    if header.suite == Suite.OPEN:
        return assemble(replace(header, body_len=len(data)), data, sign)
    padded = segment.pad(data)
    bare = replace(header, salt=salt, commit=bytes(32), body_len=len(padded) + TAG_BYTES)
    secret, nonce, commit = _derived(key, salt, bare.pack())
    bound = replace(bare, commit=commit)
    return assemble(bound, AESGCMSIV(secret).encrypt(nonce, padded, bound.pack()), sign)


def unseal(envelope: Envelope, *, key: bytes) -> bytes:
    """Return the payload of an object. Its chain and signature are the caller's to check, before.

    Raises UpdateNeededError when it needs a newer reader, WrongKeyError when another key sealed it, CorruptError when
    the key is right and the bytes are not, MalformedError when what comes out is not a payload.
    """
    header = envelope.header
    if header.min_reader > READER:
        raise UpdateNeededError(
            f"an object of scope {header.scope.hex()[:8]} was written by a newer scrubjay",
            hint="update scrubjay on this device",
        )
    if header.suite == Suite.OPEN:
        return segment.decompress(envelope.body, header.flags)
    secret, nonce, commit = _derived(key, header.salt, without_commit(envelope.head))
    if not hmac.compare_digest(commit, header.commit):
        raise WrongKeyError(
            f"an object of scope {header.scope.hex()[:8]} was sealed with another key",
            hint="scrubjay sync fetches the keyring again; if it stays, scrubjay sync verify",
        )
    try:
        padded = AESGCMSIV(secret).decrypt(nonce, envelope.body, envelope.head)
    except InvalidTag as error:
        raise CorruptError(
            f"place {header.n_from} of lane {header.device.hex()[:8]} was altered", hint="scrubjay sync verify"
        ) from error
    return segment.decompress(segment.unpad(padded), header.flags)


def _derived(key: bytes, salt: bytes, bare_head: bytes) -> tuple[bytes, bytes, bytes]:
    info = b"sjs/1/obj" + sha256(bare_head).digest()
    okm = HKDF(algorithm=hashes.SHA256(), length=76, salt=salt, info=info).derive(key)
    return okm[:32], okm[32:44], okm[44:]
