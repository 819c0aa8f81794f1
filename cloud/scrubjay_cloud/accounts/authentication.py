"""Proving a password, and changing it or the second factor. A password opens no data here."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

import msgspec

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.networks import network_hash, note_network, seen_at
from scrubjay_cloud.admission import PENDING_TOKEN
from scrubjay_cloud.challenges import answer_once
from scrubjay_cloud.credentials import (
    SALT_BYTES,
    TOTP_NONCE_BYTES,
    check_auth_key,
    check_kdf,
    check_nonce,
    fake_kdf,
    folded,
    opened_totp,
    password_hash,
    sealed_totp,
    token_hash,
    token_text,
    totp_step,
)
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.limits import network_of
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    CorruptError,
    CredentialsError,
    InvalidError,
)
from scrubjay_shared.signatures import is_signed
from scrubjay_shared.wire import (
    RECOVERY_TARGET,
    Kdf,
    Login,
    Pending,
    Prelogin,
    SetPassword,
    SetTotp,
    code_login_message,
)

AUTH_KEY = 2
"""`auth_method`: a derived key, hashed under the service's pepper. Others may come."""
AUTH_KEY_FIRST = 1
"""The same from before every service had a pepper: hashed under it or under none. It is hashed again at a login."""
TOTP_SECRET_BYTES = range(16, 65)
ID_BYTES = 16
_WRONG = "user name, password or code is wrong"
_WRONG_HINT = "check all of them; an account with a second factor needs its code: scrubjay login --totp"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secret:
    account: bytes
    digest: bytes
    salt: bytes
    totp: bytes | None
    totp_step: int
    method: int


_SECRET = "select id, auth_hash, auth_salt, totp, totp_step, auth_method from account"  # noqa: S105 - a statement, no secret


def _secret(row: Row | None) -> _Secret | None:
    if row is None:
        return None
    return _Secret(account=row[0], digest=row[1], salt=row[2], totp=row[3], totp_step=row[4], method=row[5])


async def prelogin(service: Service, call: Call) -> Answer:
    """Say how a name derives its key; a name nobody has gets parameters that look like anyone's."""
    service.limits.spend_here("prelogin", call.address, service.policy.limits.prelogin)
    name = folded(call.query["username"], service.policy)
    row = await service.database.read(lambda tx: tx.row("select kdf from account where name = ?", (name,)))
    fake = fake_kdf(service.derived("salt"), name)
    return Answer(record=Prelogin(kdf=msgspec.msgpack.decode(row[0], type=Kdf) if row else fake))


async def login(service: Service, call: Call) -> Answer:
    """Exchange a password's key for a pending token. Every failure costs and says the same."""
    given: Login = call.body
    policy, now = service.policy, service.now()
    check_auth_key(given.auth_key)
    known = has_code = await _has_code(service, call, given)
    name = folded(given.username, policy)
    if not has_code:
        service.limits.spend_here("login", call.address, policy.limits.login_address)
        whose = name.encode() + b"/" + network_of(call.address)
        service.limits.spend_here("login-name", whose, policy.limits.login_name)
    stored, seen = await service.database.read(lambda tx: _looked_up(service, tx, name, call.address))
    if not has_code:
        # From a network that the account is known from, what others have tried from elsewhere does not count.
        known = seen > now - policy.known_network_ms
        if not known:
            service.limits.spend_here("login-names", name.encode(), policy.limits.login_names)
    async with service.hashing.taken(network_of(call.address), known=known):
        step = await _proved(service, stored, given.auth_key, given.code, now)
    if stored is None or step is None:
        raise CredentialsError(_WRONG, hint=_WRONG_HINT)
    if stored.method == AUTH_KEY_FIRST:
        async with service.hashing.taken(stored.account, known=True):
            await _hash_again(service, stored, given.auth_key)
    token, expires = token_text(service.entropy(32)), now + policy.pending_ms

    def admit(tx: Transaction) -> None:
        _use_step(tx, stored, step)
        # Whoever logs in again and again holds a few pending tokens, not thousands.
        tx.execute(
            "delete from token where account = ? and device is null and hash not in (select hash from token"
            " where account = ? and device is null order by expires desc limit ?)",
            (stored.account, stored.account, policy.max_tokens - 1),
        )
        tx.execute(
            "insert into token (hash, account, kind, expires) values (?, ?, ?, ?)",
            (token_hash(token), stored.account, PENDING_TOKEN, expires),
        )
        note_network(tx, stored.account, network_hash(service, stored.account, call.address), now, policy)
        audit(tx, stored.account, "login", now)

    await service.database.write(admit)
    return Answer(record=Pending(account=stored.account, token=token, expires=expires))


def _looked_up(service: Service, tx: Transaction, name: str, address: bytes) -> tuple[_Secret | None, Millis]:
    """Return what proves a password, and when the account was last seen in the network of an address."""
    stored = _secret(tx.row(f"{_SECRET} where name = ?", (name,)))
    account = stored.account if stored is not None else bytes(ID_BYTES)  # asked for as well: it takes as long
    return stored, seen_at(tx, account, network_hash(service, account, address))


async def _has_code(service: Service, call: Call, given: Login) -> bool:
    """Say whether a login is signed with the account's recovery code: then nobody else's attempts keep it out.

    Costs a signature check, and is counted by address before, by account after. Raises as answering a challenge does.
    """
    policy, now = service.policy, service.now()
    if not given.proof:
        return False
    service.limits.spend_here("login-proof", call.address, policy.limits.login_proof)
    check_nonce(service.derived("nonce"), RECOVERY_TARGET, given.nonce, now, policy.challenge_ms)
    name = folded(given.username, policy)
    row = await service.database.read(lambda tx: tx.row("select id, log_head from account where name = ?", (name,)))
    if row is None:
        return False
    state = await service.state(row[0], row[1])
    origin = service.settings.origin or given.origin
    message = code_login_message(given.nonce, given.username, given.auth_key, origin)
    if origin not in state.origins or not is_signed(state.rsk, given.proof, message):
        return False
    await service.limits.spend("login-code", state.account, policy.limits.login_name)
    expires = Millis(now + policy.challenge_ms)
    await service.database.write(lambda tx: answer_once(tx, given.nonce, expires))
    return True


async def _proved(service: Service, stored: _Secret | None, auth_key: bytes, code: str, now: Millis) -> int | None:
    """Return the time step of the second factor's code, 0 without one; None when key or code is wrong."""
    right = await _is_right(service, stored, auth_key)
    secret = None
    if stored is not None and stored.totp is not None:
        secret = _totp(service, stored)
    step = totp_step(secret or bytes(20), code, now, stored.totp_step if stored else 0)
    if stored is None or not right:
        return None
    return 0 if secret is None else step


async def _is_right(service: Service, stored: _Secret | None, auth_key: bytes) -> bool:
    """Say whether a password's key is an account's; without an account, as slowly."""
    digest = await hashed(service, auth_key, stored.salt if stored else bytes(SALT_BYTES))
    if stored is None or hmac.compare_digest(digest, stored.digest) or stored.method != AUTH_KEY_FIRST:
        return stored is not None and hmac.compare_digest(digest, stored.digest)
    before = await hashed(service, auth_key, stored.salt, service.first_pepper)
    return hmac.compare_digest(before, stored.digest)


def _totp(service: Service, stored: _Secret) -> bytes:
    assert stored.totp is not None  # noqa: S101 - asked of accounts that have one
    try:
        return opened_totp(service.pepper, stored.account, stored.totp)
    except CorruptError:
        if stored.method != AUTH_KEY_FIRST:
            raise
        return opened_totp(service.first_pepper, stored.account, stored.totp)


async def _hash_again(service: Service, stored: _Secret, auth_key: bytes) -> None:
    """Put an account from before every service had a pepper under this one."""
    digest = await hashed(service, auth_key, stored.salt)
    sealed = None
    if stored.totp is not None:
        secret = _totp(service, stored)
        sealed = sealed_totp(service.pepper, stored.account, secret, service.entropy(TOTP_NONCE_BYTES))
    await service.database.write(
        lambda tx: tx.execute(
            "update account set auth_hash = ?, totp = ?, auth_method = ? where id = ? and auth_hash = ?",
            (digest, sealed, AUTH_KEY, stored.account, stored.digest),
        )
    )


def _use_step(tx: Transaction, stored: _Secret, step: int) -> None:
    """Note that a code was used. Raises CredentialsError when another login used it at the same moment."""
    if step and not tx.execute(
        "update account set totp_step = ? where id = ? and totp_step < ?", (step, stored.account, step)
    ):
        raise CredentialsError(_WRONG, hint=_WRONG_HINT)


async def hashed(service: Service, auth_key: bytes, salt: bytes, pepper: bytes | None = None) -> bytes:
    """Return the hash of a password's key, as it is stored. Whoever calls has taken a turn at `service.hashing`."""
    key = pepper or service.pepper
    digest: bytes = await service.offload(lambda: password_hash(auth_key, salt, key, service.policy))
    return digest


async def confirmed(service: Service, call: Call, auth_key: bytes) -> _Secret:
    """Check the password of the account that calls. Raises CredentialsError."""
    check_auth_key(auth_key)
    account = call.caller.account
    await service.limits.spend("password", account, service.policy.limits.login_name)
    stored = _secret(await service.database.read(lambda tx: tx.row(f"{_SECRET} where id = ?", (account,))))
    async with service.hashing.taken(account, known=True):
        right = stored is not None and await _is_right(service, stored, auth_key)
    if stored is None or not right:
        raise CredentialsError("the password is wrong", hint="nothing was changed; try again")
    return stored


async def set_password(service: Service, call: Call) -> Answer:
    """Replace salt and key. Tokens that only a password gave are void; devices have keys of their own."""
    given: SetPassword = call.body
    check_auth_key(given.new_auth_key)
    check_kdf(given.new_kdf, service.policy)
    stored = await confirmed(service, call, given.auth_key)
    salt, now = service.entropy(SALT_BYTES), service.now()
    async with service.hashing.taken(stored.account, known=True):
        digest = await hashed(service, given.new_auth_key, salt)
    sealed = stored.totp
    if stored.totp is not None and stored.method == AUTH_KEY_FIRST:
        secret = _totp(service, stored)
        sealed = sealed_totp(service.pepper, stored.account, secret, service.entropy(TOTP_NONCE_BYTES))

    def change(tx: Transaction) -> None:
        tx.execute(
            "update account set kdf = ?, auth_hash = ?, auth_salt = ?, totp = ?, auth_method = ? where id = ?",
            (msgspec.msgpack.encode(given.new_kdf), digest, salt, sealed, AUTH_KEY, stored.account),
        )
        tx.execute("delete from token where account = ? and device is null", (stored.account,))
        audit(tx, stored.account, "password", now)

    await service.database.write(change)
    return Answer()


async def set_totp(service: Service, call: Call) -> Answer:
    """Set or take away the second factor. To set it, a code of the new secret must be given."""
    given: SetTotp = call.body
    stored = await confirmed(service, call, given.auth_key)
    now, step = service.now(), 0
    if given.secret:
        if len(given.secret) not in TOTP_SECRET_BYTES:
            raise InvalidError(
                f"the secret of the second factor must have 16 to 64 bytes, got {len(given.secret)}",
                hint="20 random bytes are usual",
            )
        shown = totp_step(given.secret, given.code, now, 0)
        if shown is None:
            raise CredentialsError(
                "the code is not the one of the new secret",
                hint="check the clock of the device with the app, and try again",
            )
        step = shown

    sealed = None
    if given.secret:
        sealed = sealed_totp(service.pepper, stored.account, given.secret, service.entropy(TOTP_NONCE_BYTES))

    def change(tx: Transaction) -> None:
        tx.execute("update account set totp = ?, totp_step = ? where id = ?", (sealed, step, stored.account))
        audit(tx, stored.account, "totp on" if given.secret else "totp off", now)

    await service.database.write(change)
    return Answer()
