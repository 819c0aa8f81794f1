"""Keys without a server: what opens what, what is refused, and what people type."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import keyring.errors
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backends import fail, null

from scrubjay_shared import envelope
from scrubjay_shared.errors import (
    BadSignatureError,
    CorruptError,
    DeniedError,
    InvalidError,
    MalformedError,
    NotFoundError,
    ScrubjayError,
    UnavailableError,
    UpdateNeededError,
    WrongKeyError,
)
from scrubjay_shared.wire import RECOVERY_TARGET, Kdf, Wrap
from scrubjay_sync import profile
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.keychain import Keychain, _system
from scrubjay_sync.keys.digests import heads_digest, pairing_commitment, pairing_digest
from scrubjay_sync.keys.keypairs import WRAP_PUB_BYTES, DeviceKeys, Entropy, Opener, RootKey, signer
from scrubjay_sync.keys.keyring import (
    KEYRING_FORMAT,
    Keyring,
    LimitedKeyring,
    ScopeKeys,
    digest_of,
    limited_keyring_of,
    open_keyring,
    rotations_left,
    seal_keyring,
    unwrap_limited_keyring,
    wrap_limited_keyring,
)
from scrubjay_sync.keys.password import auth_key, check_kdf, new_kdf
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import ROOT_WRAP_BYTES, unwrap_root, wrap_root
from scrubjay_sync.policy import IDENTITY
from scrubjay_sync.words import wordlist, words_of

ACCOUNT, DEVICE, SCOPE = b"a" * 16, b"d" * 16, b"s" * 16
LEAST = Kdf(salt=b"s" * 16, memory_kib=IDENTITY.kdf_floor_memory_kib, iterations=2, lanes=1)
ORIGIN = "https://sync.example.org"


def entropy(seed: int = 7) -> Entropy:
    return Random(seed).randbytes


# --- the password -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weak",
    [
        replace(LEAST, memory_kib=IDENTITY.kdf_floor_memory_kib - 1),
        replace(LEAST, iterations=1),
        replace(LEAST, salt=b"s" * 15),
        replace(LEAST, salt=b""),
        replace(LEAST, lanes=0),
        replace(LEAST, lanes=99),
        replace(LEAST, memory_kib=1 << 30),
        replace(LEAST, iterations=1_000),
    ],
)
def test_a_server_cannot_choose_a_derivation_that_is_weak_or_endless(weak: Kdf) -> None:
    with pytest.raises(InvalidError):
        auth_key("a password", weak, ORIGIN)


def test_a_server_cannot_weaken_the_derivation_that_this_device_saw_before() -> None:
    pinned = replace(LEAST, memory_kib=64 * 1024, iterations=3)

    with pytest.raises(InvalidError, match="weaker password derivation than before"):
        check_kdf(replace(pinned, memory_kib=32 * 1024), pinned)
    with pytest.raises(InvalidError, match="weaker password derivation than before"):
        check_kdf(replace(pinned, iterations=2), pinned)
    check_kdf(replace(pinned, iterations=4, salt=b"t" * 16), pinned)


def test_the_same_password_proves_itself_however_it_is_typed_and_to_one_server_only() -> None:
    composed = auth_key("café, long enough", LEAST, ORIGIN)

    assert auth_key("café, long enough", LEAST, ORIGIN) == composed
    assert auth_key("café, long enough", LEAST, "https://other.example.org") != composed
    assert auth_key("café, long enougH", LEAST, ORIGIN) != composed
    with pytest.raises(InvalidError, match="empty"):
        auth_key("", LEAST, ORIGIN)


def test_a_new_password_is_derived_as_the_policy_says() -> None:
    kdf = new_kdf(entropy())

    assert (len(kdf.salt), kdf.memory_kib, kdf.iterations, kdf.lanes) == (16, 65_536, 3, 4)


# --- the recovery code ------------------------------------------------------------------------------------------------

CODE = RecoveryCode(secret=bytes(range(20)))


def test_a_recovery_code_looks_the_same_for_ever() -> None:
    assert CODE.text == "000G40-R40M30-E20918-5GR38E-1W8124-GKWBG0"


@given(st.binary(min_size=20, max_size=20))
def test_a_recovery_code_is_what_it_reads_back_as(secret: bytes) -> None:
    code = RecoveryCode(secret=secret)

    assert RecoveryCode.parse(code.text) == code
    assert [len(group) for group in code.groups] == [6] * 6


@pytest.mark.parametrize(
    "as_typed",
    [
        str.lower,
        lambda text: text.replace("-", " "),
        lambda text: text.replace("-", ""),
        lambda text: f"  {text}\n",
        lambda text: text.replace("0", "o"),
        lambda text: text.replace("0", "O").replace("1", "l"),
        lambda text: text.replace("1", "I"),
        lambda text: text.replace("1", "i").replace("-", "–"),
    ],
)
def test_a_recovery_code_is_read_as_people_type_it(as_typed: Callable[[str], str]) -> None:
    code = RecoveryCode(secret=b"\x08\x42\x10" * 6 + b"\x08\x42")
    assert {"0", "1"} <= set(code.text)

    assert RecoveryCode.parse(as_typed(code.text)) == code


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (CODE.text[:-1], "has 36 characters, not 35"),
        ("", "has 36 characters, not 0"),
        (CODE.text.replace(CODE.text[0], "U", 1), "typing error"),
        ("!" + CODE.text[1:], "typing error"),
        (CODE.text[:-1] + ("1" if CODE.text[-1] != "1" else "2"), "typing error"),
    ],
)
def test_a_mistyped_recovery_code_is_named_and_never_repeated(wrong: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says) as refused:
        RecoveryCode.parse(wrong)

    assert wrong[:6] not in str(refused.value) or not wrong


def test_one_wrong_character_of_a_recovery_code_is_found() -> None:
    text = CODE.text
    for place, letter in enumerate(text):
        if letter != "-":
            other = "Z" if letter != "Z" else "Y"
            with pytest.raises(InvalidError, match="typing error"):
                RecoveryCode.parse(text[:place] + other + text[place + 1 :])


# --- wraps ------------------------------------------------------------------------------------------------------------


def wrapped_root(holder: Opener) -> tuple[RootKey, Wrap]:
    root = RootKey.new(entropy(1), 3)
    return root, wrap_root(root, account=ACCOUNT, target=DEVICE, wrap_pub=holder.wrap_pub)


def test_a_root_key_opens_for_its_holder_and_nobody_else() -> None:
    own, other = DeviceKeys.new(entropy(2)), DeviceKeys.new(entropy(3))
    root, wrap = wrapped_root(own)

    assert unwrap_root(wrap, account=ACCOUNT, target=DEVICE, holder=own, ask=root.ask) == root
    with pytest.raises(WrongKeyError):
        unwrap_root(wrap, account=ACCOUNT, target=DEVICE, holder=other)


@pytest.mark.parametrize(
    ("changed", "account", "target", "error"),
    [
        ({"version": 4}, ACCOUNT, DEVICE, WrongKeyError),
        ({}, b"b" * 16, DEVICE, WrongKeyError),
        ({"target": b"e" * 16}, ACCOUNT, b"e" * 16, WrongKeyError),
        ({}, ACCOUNT, b"e" * 16, MalformedError),
        ({"kind": 2}, ACCOUNT, DEVICE, MalformedError),
        ({"sealed": b""}, ACCOUNT, DEVICE, MalformedError),
        ({"sealed": b"x" * 100}, ACCOUNT, DEVICE, MalformedError),
        ({"sealed": b"x" * ROOT_WRAP_BYTES}, ACCOUNT, DEVICE, WrongKeyError),
    ],
)
def test_a_wrap_is_bound_to_account_target_and_version(
    changed: dict, account: bytes, target: bytes, error: type[Exception]
) -> None:
    own = DeviceKeys.new(entropy(2))
    _, wrap = wrapped_root(own)

    with pytest.raises(error):
        unwrap_root(replace(wrap, **changed), account=account, target=target, holder=own)


def test_a_root_key_that_the_server_made_up_is_refused() -> None:
    own = DeviceKeys.new(entropy(2))
    _, wrap = wrapped_root(own)

    with pytest.raises(BadSignatureError):
        unwrap_root(wrap, account=ACCOUNT, target=DEVICE, holder=own, ask=RootKey.new(entropy(9), 3).ask)


def test_a_recovery_wrap_opens_with_its_code_and_with_no_other() -> None:
    code, other = RecoveryCode.new(entropy(4)), RecoveryCode.new(entropy(5))
    root = RootKey.new(entropy(1), 1)
    wrap = wrap_root(root, account=ACCOUNT, target=RECOVERY_TARGET, wrap_pub=code.wrap_pub)

    assert unwrap_root(wrap, account=ACCOUNT, target=RECOVERY_TARGET, holder=code, ask=root.ask) == root
    with pytest.raises(WrongKeyError):
        unwrap_root(wrap, account=ACCOUNT, target=RECOVERY_TARGET, holder=other, ask=root.ask)


def test_wrapping_to_what_is_no_key_says_so() -> None:
    for wrong in (b"", b"x" * 100, b"\xff" * WRAP_PUB_BYTES):
        with pytest.raises(InvalidError):
            wrap_root(RootKey.new(entropy(), 1), account=ACCOUNT, target=DEVICE, wrap_pub=wrong)


# --- keyrings ---------------------------------------------------------------------------------------------------------

RING = Keyring(
    scopes={SCOPE: ScopeKeys(name="home", keys={0: b"0" * 32, 1: b"1" * 32}, projects=("proj_a",))},
    devices={DEVICE: "laptop"},
)


def sealed_ring(root: RootKey, version: int = 2) -> bytes:
    own = DeviceKeys.new(entropy(2))
    return seal_keyring(
        RING,
        account=ACCOUNT,
        device=DEVICE,
        version=version,
        root=root,
        entropy=entropy(),
        sign=signer(own.sign_seed),
    ).data


def test_a_keyring_opens_with_the_root_key_that_sealed_it_and_only_as_the_log_names_it() -> None:
    root = RootKey.new(entropy(1), 1)
    data = sealed_ring(root)
    named = {"account": ACCOUNT, "version": 2, "digest": digest_of(data), "root": root}

    assert open_keyring(data, **named) == RING
    with pytest.raises(BadSignatureError):
        open_keyring(sealed_ring(root, 1), **named)
    with pytest.raises(WrongKeyError):
        open_keyring(data, **(named | {"root": RootKey.new(entropy(8), 1)}))
    with pytest.raises(WrongKeyError):
        open_keyring(data, **(named | {"root": replace(root, version=2)}))
    with pytest.raises(CorruptError):
        open_keyring(data, **(named | {"version": 3}))
    with pytest.raises(CorruptError):
        open_keyring(data, **(named | {"account": b"b" * 16}))


def grown(scopes: int, epochs: int) -> Keyring:
    return Keyring(
        scopes={
            n.to_bytes(16, "big"): ScopeKeys(
                name=f"scope {n}",
                keys={epoch: hashlib.sha256(b"%d of %d" % (epoch, n)).digest() for epoch in range(epochs)},
            )
            for n in range(scopes)
        }
    )


@pytest.mark.parametrize(("scopes", "epochs"), [(1, 2_000), (100, 90), (980, 1)])
def test_a_keyring_with_no_rotation_left_still_fits_its_object_and_one_more_is_said_to_be_too_much(
    scopes: int, epochs: int
) -> None:
    root, own = RootKey.new(entropy(1), 1), DeviceKeys.new(entropy(2))
    last = epochs + rotations_left(grown(scopes, epochs))
    full = grown(scopes, last)
    data = seal_keyring(
        full, account=ACCOUNT, device=DEVICE, version=1, root=root, entropy=entropy(), sign=signer(own.sign_seed)
    ).data

    assert last > epochs
    assert 0.7 * envelope.MAX_OBJECT_BYTES < len(data) <= envelope.MAX_OBJECT_BYTES
    assert rotations_left(grown(scopes, last + last // 10 + 3)) < 0


@pytest.mark.parametrize(("scopes", "epochs"), [(1, 5), (1, 5_000), (3, 400), (60, 7)])
def test_what_a_limited_device_gets_fits_its_wrap_and_has_the_newest_keys(scopes: int, epochs: int) -> None:
    ring, own, root = grown(scopes, epochs), DeviceKeys.new(entropy(2)), RootKey.new(entropy(1), 1)

    extract = limited_keyring_of(ring, DEVICE, tuple(ring.scopes))
    wrap = wrap_limited_keyring(extract, account=ACCOUNT, target=DEVICE, version=1, wrap_pub=own.wrap_pub, root=root)

    assert len(wrap.sealed) <= 8_192
    for scope in ring.scopes:
        kept = sorted(extract.scopes[scope].keys)
        assert kept == list(range(epochs - len(kept), epochs))
        assert kept
    assert scopes * epochs > 150 or extract.scopes == ring.scopes


def test_a_limited_device_with_more_scopes_than_its_wrap_holds_is_refused() -> None:
    ring = grown(400, 1)

    with pytest.raises(InvalidError, match="cannot hold the keys of 400 scopes"):
        limited_keyring_of(ring, DEVICE, tuple(ring.scopes))


def test_a_keyring_hides_what_it_says() -> None:
    data = sealed_ring(RootKey.new(entropy(1), 1))

    assert all(word not in data for word in (b"home", b"proj_a", b"laptop", b"0" * 32))


def test_a_keyring_of_a_newer_release_is_not_rewritten_by_this_one() -> None:
    root = RootKey.new(entropy(1), 1)
    own = DeviceKeys.new(entropy(2))
    newer = replace(RING, format=KEYRING_FORMAT + 1)
    data = seal_keyring(
        newer, account=ACCOUNT, device=DEVICE, version=1, root=root, entropy=entropy(), sign=signer(own.sign_seed)
    ).data

    with pytest.raises(UpdateNeededError):
        open_keyring(data, account=ACCOUNT, version=1, digest=digest_of(data), root=root)


def test_an_extract_holds_the_scopes_asked_for_and_counts_only_if_the_account_signed_it() -> None:
    own, root = DeviceKeys.new(entropy(2)), RootKey.new(entropy(1), 1)
    other = b"t" * 16
    extract = limited_keyring_of(RING.with_scope(other, ScopeKeys(name="b", keys={0: b"2" * 32})), DEVICE, (other,))
    wrap = wrap_limited_keyring(extract, account=ACCOUNT, target=DEVICE, version=4, wrap_pub=own.wrap_pub, root=root)
    opened = {"account": ACCOUNT, "target": DEVICE, "holder": own}

    assert unwrap_limited_keyring(wrap, ask=root.ask, **opened) == extract
    assert set(extract.scopes) == {other}
    with pytest.raises(BadSignatureError):
        unwrap_limited_keyring(wrap, ask=RootKey.new(entropy(5), 1).ask, **opened)
    forged = wrap_limited_keyring(
        LimitedKeyring(scopes={}),
        account=ACCOUNT,
        target=DEVICE,
        version=4,
        wrap_pub=own.wrap_pub,
        root=RootKey.new(entropy(6), 1),
    )
    with pytest.raises(BadSignatureError):
        unwrap_limited_keyring(forged, ask=root.ask, **opened)


def test_no_secret_shows_in_what_is_printed() -> None:
    own, root = DeviceKeys.new(entropy(2)), RootKey.new(entropy(1), 1)
    secrets = Secrets(account=ACCOUNT, device=DEVICE, keys=own, root=root, next_wrap=own.wrap)
    shown = " ".join(repr(one) for one in (own, own.wrap, root, secrets, CODE, RING))

    for secret in (own.sign_seed, own.wrap.mlkem_seed, own.wrap.x25519_seed, root.secret, root.ask_seed, CODE.secret):
        assert repr(secret) not in shown
    assert repr(b"0" * 32) not in shown


# --- words ------------------------------------------------------------------------------------------------------------


def test_the_word_list_is_the_one_of_bip_39() -> None:
    words = wordlist()

    assert (len(words), len(set(words)), words[0], words[-1]) == (2048, 2048, "abandon", "zoo")
    assert len({word[:4] for word in words}) == 2048  # the first four letters tell them apart


@given(st.binary(min_size=32, max_size=32))
def test_words_are_the_first_66_bits(digest: bytes) -> None:
    number = 0
    for word in words_of(digest):
        number = number << 11 | wordlist().index(word)

    assert number == int.from_bytes(digest, "big") >> 256 - 66


def test_pairing_words_depend_on_everything_both_machines_must_agree_on() -> None:
    right = {
        "genesis": b"g" * 32,
        "head": b"h" * 32,
        "device": b"d" * 16,
        "sign_pub": b"s" * 32,
        "wrap_pub": b"w" * 1216,
        "asking": b"a" * 32,
        "answering": b"b" * 32,
    }
    digests = {pairing_digest(**right)}
    for name, value in right.items():
        digests.add(pairing_digest(**right | {name: b"x" + value[1:]}))
    assert len(digests) == 8

    bound = [right[name] for name in ("asking", "device", "sign_pub", "wrap_pub")]
    commitments = {pairing_commitment(*bound)}
    for place, value in enumerate(bound):
        commitments.add(pairing_commitment(*[*bound[:place], b"x" + value[1:], *bound[place + 1 :]]))
    assert len(commitments) == 5
    assert not digests & commitments


def test_head_words_depend_on_every_lane() -> None:
    heads = {(SCOPE, DEVICE): (3, b"t" * 32)}
    same = heads_digest(ACCOUNT, b"l" * 32, dict(heads))

    assert heads_digest(ACCOUNT, b"l" * 32, heads) == same
    assert heads_digest(ACCOUNT, b"l" * 32, {(SCOPE, DEVICE): (4, b"t" * 32)}) != same
    assert heads_digest(ACCOUNT, b"m" * 32, heads) != same


# --- the keychain -----------------------------------------------------------------------------------------------------

SECRETS = Secrets(account=ACCOUNT, device=DEVICE, keys=DeviceKeys.new(entropy(2)), root=RootKey.new(entropy(1), 1))


def in_file(path: Path) -> Keychain:
    return Keychain(path, environ={"SCRUBJAY_KEYCHAIN": "file"})


def test_secrets_in_a_file_are_for_their_owner_alone(tmp_path: Path) -> None:
    vault = in_file(tmp_path)
    asyncio.run(vault.save(SECRETS))

    assert stat.S_IMODE((tmp_path / "sync.keys").stat().st_mode) == 0o600
    assert asyncio.run(in_file(tmp_path).load()) == SECRETS
    assert str(tmp_path / "sync.keys") in vault.where
    asyncio.run(vault.erase())
    assert asyncio.run(vault.load()) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_key_file_that_others_could_read_is_refused(tmp_path: Path) -> None:
    vault = in_file(tmp_path)
    asyncio.run(vault.save(SECRETS))
    vault.path.chmod(0o640)

    with pytest.raises(DeniedError, match="read by other users"):
        asyncio.run(vault.load())


def test_a_key_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"{}")
    (tmp_path / "sync.keys").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(DeniedError, match="not a regular file"):
        asyncio.run(in_file(tmp_path).load())


def test_damaged_keys_say_so_without_showing_themselves(tmp_path: Path) -> None:
    vault = in_file(tmp_path)
    asyncio.run(vault.save(SECRETS))
    vault.path.write_bytes(vault.path.read_bytes()[:-5])

    with pytest.raises(CorruptError) as refused:
        asyncio.run(vault.load())
    assert msgspec.json.encode(SECRETS.keys.sign_seed).decode().strip('"') not in str(refused.value)


class Chest:
    """A keychain in memory, as `keyring` backends are."""

    def __init__(self, *, locked: bool = False) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.locked = locked

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise keyring.errors.PasswordSetError
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


def test_a_keychain_keeps_the_secrets_and_no_file_does(tmp_path: Path) -> None:
    chest = Chest()
    vault = Keychain(tmp_path, environ={}, backend=chest)
    asyncio.run(vault.save(SECRETS))

    assert asyncio.run(vault.load()) == SECRETS
    assert list(tmp_path.iterdir()) == []
    assert len(next(iter(chest.held.values()))) < 1280  # characters: what Windows' credential manager takes
    other = Keychain(tmp_path / "copy", environ={}, backend=chest)
    assert asyncio.run(other.load()) is None
    asyncio.run(vault.erase())
    assert chest.held == {}


def test_a_locked_keychain_is_an_error_and_not_an_absence(tmp_path: Path) -> None:
    vault = Keychain(tmp_path, environ={}, backend=Chest(locked=True))

    with pytest.raises(UnavailableError, match="did not answer"):
        asyncio.run(vault.load())
    with pytest.raises(UnavailableError, match="refused to store"):
        asyncio.run(vault.save(SECRETS))


def test_keychains_that_are_plain_files_or_none_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class PlaintextKeyring(fail.Keyring):
        priority = 1

    PlaintextKeyring.__module__ = "keyrings.alt.file"
    for backend in (fail.Keyring(), null.Keyring(), PlaintextKeyring()):
        monkeypatch.setattr(keyring, "get_keyring", lambda backend=backend: backend)
        assert _system() is None


def test_an_unknown_wish_for_a_keychain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="SCRUBJAY_KEYCHAIN"):
        Keychain(tmp_path, environ={"SCRUBJAY_KEYCHAIN": "plain"})


# --- the profile ------------------------------------------------------------------------------------------------------

PROFILE = profile.Profile(origin=ORIGIN, account=ACCOUNT, username="ann", device_name="laptop", kdf=LEAST)


def test_a_profile_reads_back_is_private_and_its_absence_means_off(tmp_path: Path) -> None:
    assert profile.load(tmp_path) is None
    profile.save(tmp_path, PROFILE)

    assert profile.load(tmp_path) == PROFILE
    assert stat.S_IMODE(profile.path_in(tmp_path).stat().st_mode) == 0o600
    profile.erase(tmp_path)
    profile.erase(tmp_path)
    with pytest.raises(NotFoundError, match="not logged in"):
        profile.required(tmp_path)


def test_a_damaged_profile_is_named(tmp_path: Path) -> None:
    profile.path_in(tmp_path).write_text("{")

    with pytest.raises(ScrubjayError, match="does not say where"):
        profile.load(tmp_path)
