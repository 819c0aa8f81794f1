"""Signing up: by invitation or by anybody, with a log that begins at its genesis."""

from __future__ import annotations

import msgspec

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.authentication import AUTH_KEY, hashed
from scrubjay_cloud.accounts.blobs import read_blob
from scrubjay_cloud.accounts.log import checked_states, keyring_hash, store_log
from scrubjay_cloud.accounts.names import is_taken, taken
from scrubjay_cloud.accounts.networks import network_hash, note_network
from scrubjay_cloud.admission import IN_FORCE, PENDING_TOKEN
from scrubjay_cloud.credentials import (
    SALT_BYTES,
    check_auth_key,
    check_kdf,
    folded,
    token_hash,
    token_text,
)
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.limits import network_of
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    DeniedError,
    InvalidError,
)
from scrubjay_shared.wire import (
    CheckSignUp,
    Invite,
    Pending,
    Register,
)

INVITE_BYTES = 15  # 120 bits: 24 base32 digits' worth, nobody guesses it


def create_invite(tx: Transaction, *, random: bytes, now: Millis, policy: CloudPolicy) -> Invite:
    """Make an invitation from 15 random bytes. What is stored does not tell it."""
    code = token_text(random)
    expires = now + policy.invite_ms
    tx.execute("insert into invite (hash, expires) values (?, ?)", (token_hash(code), expires))
    return Invite(code=code, expires=expires)


async def check_sign_up(service: Service, call: Call) -> Answer:
    """Say whether a name is free and an invitation valid. Neither is used up or kept for anybody.

    Tells no more than `register`, and no faster: it has the same limit, and a name is told about to the invited only.
    """
    given: CheckSignUp = call.body
    service.limits.spend_here("register-check", call.address, service.policy.limits.register)
    name, invite = folded(given.username, service.policy), _invite_of(service, given.invite)

    def look(tx: Transaction) -> None:
        if invite is not None:
            _check_invite(tx, invite, service.now())
        if is_taken(tx, name, service.now()):
            raise taken()

    await service.database.read(look)
    return Answer()


async def register(service: Service, call: Call) -> Answer:
    """Make an account of a name, a key, and a log that begins at its genesis."""
    given: Register = call.body
    policy = service.policy
    service.limits.spend_here("register", call.address, policy.limits.register)
    name = folded(given.username, policy)
    check_auth_key(given.auth_key)
    check_kdf(given.kdf, policy)
    invite = _invite_of(service, given.invite)
    if invite is not None:
        await service.database.read(lambda tx: _check_invite(tx, invite, service.now()))
    if given.log.head != bytes(32):
        raise InvalidError("the log of a new account must begin at its first entry", hint="head must be 32 zero bytes")
    now = service.now()
    states = await checked_states(service, None, given.log, now)
    state = states[-1]
    if not state.active():
        raise InvalidError("the log of a new account adds no device", hint="it must add the first device")
    if service.settings.origin and service.settings.origin not in state.origins:
        raise DeniedError(
            f"the address of this server is {service.settings.origin}, and the account was made for another",
            hint=f"scrubjay login --server {service.settings.origin}",
        )
    blobs = [read_blob(data) for data in given.log.blobs]
    salt = service.entropy(SALT_BYTES)
    async with service.hashing.taken(network_of(call.address)):
        digest = await hashed(service, given.auth_key, salt)
    token, expires = token_text(service.entropy(32)), now + policy.pending_ms

    def make(tx: Transaction) -> None:
        if invite is not None:
            _check_invite(tx, invite, now)
            if not tx.execute("update invite set used_at = ? where hash = ? and used_at is null", (now, invite)):
                raise _no_invite()
        exists = tx.row("select 1 from account where id = ?", (state.account,))
        free = exists is None and not is_taken(tx, name, now)
        made = free and tx.execute(
            "insert into account (id, name, auth_method, kdf, auth_hash, auth_salt, log_seq, log_head, keyring, status,"
            " created) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
            (
                *(state.account, name, AUTH_KEY, msgspec.msgpack.encode(given.kdf), digest, salt),
                *(state.seq, state.head, keyring_hash(state), IN_FORCE, now),
            ),
        )
        if not made:
            raise taken()
        store_log(tx, states, given.log, blobs, service)
        tx.execute(
            "insert into token (hash, account, kind, expires) values (?, ?, ?, ?)",
            (token_hash(token), state.account, PENDING_TOKEN, expires),
        )
        note_network(tx, state.account, network_hash(service, state.account, call.address), now, policy)
        audit(tx, state.account, "register", now)

    await service.database.write(make)
    service.keep(state)
    return Answer(record=Pending(account=state.account, token=token, expires=expires))


def _invite_of(service: Service, code: str) -> bytes | None:
    """Return what an invitation is stored as, None where anybody may sign up."""
    return token_hash(code) if service.settings.registration == "invite" else None


def _check_invite(tx: Transaction, digest: bytes, now: Millis) -> None:
    if tx.row("select 1 from invite where hash = ? and used_at is null and expires > ?", (digest, now)) is None:
        raise _no_invite()


def _no_invite() -> DeniedError:
    return DeniedError(
        "that invitation is not valid", hint="ask the server's operator for one; each works once, for some days"
    )
