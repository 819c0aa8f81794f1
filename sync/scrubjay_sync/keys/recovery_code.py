"""The recovery code: 160 random bits on paper, and the keys derived from them."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_sync.keys.keypairs import KEY_BYTES, MLKEM_SEED_BYTES, Entropy, WrapKeys, derived, public_of, signer

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

    def sign(self, message: bytes) -> bytes:
        """Sign with the key that outranks every device."""
        return signer(self._sign_seed())(message)

    def opened(self, sealed: bytes, info: bytes) -> bytes:
        """Return what was sealed to the code. Raises WrongKeyError."""
        return self._wrap_keys().opened(sealed, info)

    def _check(self) -> bytes:
        return hashlib.sha256(b"sjs/1/rec/check" + self.secret).digest()[:_CHECK_BYTES]

    def _sign_seed(self) -> bytes:
        return derived(self.secret, b"sjs/1/rec/sign")

    def _wrap_keys(self) -> WrapKeys:
        seeds = derived(self.secret, b"sjs/1/rec/enc", MLKEM_SEED_BYTES + KEY_BYTES)
        return WrapKeys(mlkem_seed=seeds[:MLKEM_SEED_BYTES], x25519_seed=seeds[MLKEM_SEED_BYTES:])
