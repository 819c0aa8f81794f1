"""Accounts: signing up, proving a password, the account log, and leaving. A password opens no data here."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from scrubjay_cloud import materialise
from scrubjay_cloud.admission import IN_FORCE, PENDING_TOKEN
from scrubjay_cloud.credentials import (
    SALT_BYTES,
    check_auth_key,
    check_kdf,
    fake_kdf,
    folded,
    password_hash,
    token_hash,
    token_text,
    totp_step,
)
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Admits, Answer, Call, Endpoint, Query, Takes
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.reading import whole
from scrubjay_cloud.service import Service, log_entries
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import LANE_KINDS, ObjectKind, Suite, parse
from scrubjay_shared.errors import (
    ConflictError,
    CredentialsError,
    DeniedError,
    InvalidError,
    LogConflictError,
    MalformedError,
    NotFoundError,
    NotSearchableError,
)
from scrubjay_shared.wire import (
    LIMITED_WRAP,
    ROOT_WRAP,
    CheckSignUp,
    DeleteAccount,
    Deleted,
    Invite,
    Kdf,
    LogAppend,
    Login,
    LogPage,
    Pending,
    Prelogin,
    Register,
    SetPassword,
    SetTotp,
    Usage,
    Wrap,
)

AUTH_KEY = 1
"""`auth_method`: a derived key, hashed. Others may come."""
ACCOUNT_TABLES = (
    *("object", "blob", "wrap", "lane", "token", "enroll", "audit", "device", "account_log"),
    *materialise.TABLES,
)
"""Every table with rows of an account, besides `account` itself."""
LOG_PAGE_BYTES = 512 * 1024  # of entries; base64 makes 700 KB of it
MAX_WRAP_BYTES = 8 * 1024  # an HPKE wrap of a root key has 1,168 bytes, a limited device's extract one key a scope
MAX_INT = 2**31 - 1
TOTP_SECRET_BYTES = range(16, 65)
INVITE_BYTES = 15  # 120 bits: 24 base32 digits' worth, nobody guesses it

_SENDER = "the program that made it has a fault: update scrubjay there"
_WRONG = "user name, password or code is wrong"
_WRONG_HINT = "check all of them; an account with a second factor needs its code: scrubjay login --totp"


# --- signing up -------------------------------------------------------------------------------------------------------


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
    await service.limits.spend("register-check", call.address, service.policy.limits.register)
    name, invite = folded(given.username, service.policy), _invite_of(service, given.invite)

    def look(tx: Transaction) -> None:
        if invite is not None:
            _check_invite(tx, invite, service.now())
        if tx.row("select 1 from account where name = ?", (name,)) is not None:
            raise _taken()

    await service.database.read(look)
    return Answer()


async def register(service: Service, call: Call) -> Answer:
    """Make an account of a name, a key, and a log that begins at its genesis."""
    given: Register = call.body
    policy = service.policy
    await service.limits.spend("register", call.address, policy.limits.register)
    name = folded(given.username, policy)
    check_auth_key(given.auth_key)
    check_kdf(given.kdf, policy)
    invite = _invite_of(service, given.invite)
    if invite is not None:
        await service.database.read(lambda tx: _check_invite(tx, invite, service.now()))
    if given.log.head != bytes(32):
        raise InvalidError("the log of a new account must begin at its first entry", hint="head must be 32 zero bytes")
    now = service.now()
    state = await _checked(service, [], given.log, now)
    if not state.active():
        raise InvalidError("the log of a new account adds no device", hint="it must add the first device")
    if service.settings.origin and service.settings.origin not in state.origins:
        raise DeniedError(
            f"the address of this server is {service.settings.origin}, and the account was made for another",
            hint=f"scrubjay login --server {service.settings.origin}",
        )
    blobs = [read_blob(data) for data in given.log.blobs]
    salt = service.entropy(SALT_BYTES)
    digest = await _hashed(service, given.auth_key, salt)
    token, expires = token_text(service.entropy(32)), now + policy.pending_ms

    def make(tx: Transaction) -> None:
        if invite is not None:
            _check_invite(tx, invite, now)
            if not tx.execute("update invite set used_at = ? where hash = ? and used_at is null", (now, invite)):
                raise _no_invite()
        taken = tx.row("select 1 from account where name = ? or id = ?", (name, state.account))
        made = taken is None and tx.execute(
            "insert into account (id, name, auth_method, kdf, auth_hash, auth_salt, log_seq, log_head, keyring, status,"
            " created) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
            (
                *(state.account, name, AUTH_KEY, msgspec.msgpack.encode(given.kdf), digest, salt),
                *(state.seq, state.head, _keyring(state), IN_FORCE, now),
            ),
        )
        if not made:
            raise _taken()
        _store_log(tx, state, given.log, blobs, now)
        tx.execute(
            "insert into token (hash, account, kind, expires) values (?, ?, ?, ?)",
            (token_hash(token), state.account, PENDING_TOKEN, expires),
        )
        audit(tx, state.account, "register", now)

    await service.database.write(make)
    service.keep(state)
    return Answer(record=Pending(account=state.account, token=token, expires=expires))


def _invite_of(service: Service, code: str) -> bytes | None:
    """Return what an invitation is stored as, None where anybody may sign up."""
    return token_hash(code) if service.settings.registration == "invite" else None


def _taken() -> ConflictError:
    return ConflictError("that user name is taken", hint="choose another, or log in")


def _check_invite(tx: Transaction, digest: bytes, now: Millis) -> None:
    if tx.row("select 1 from invite where hash = ? and used_at is null and expires > ?", (digest, now)) is None:
        raise _no_invite()


def _no_invite() -> DeniedError:
    return DeniedError(
        "that invitation is not valid", hint="ask the server's operator for one; each works once, for some days"
    )


# --- proving a password -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secret:
    account: bytes
    digest: bytes
    salt: bytes
    totp: bytes | None
    totp_step: int


_SECRET = "select id, auth_hash, auth_salt, totp, totp_step from account"  # noqa: S105 - a statement, no secret


def _secret(row: Row | None) -> _Secret | None:
    if row is None:
        return None
    return _Secret(account=row[0], digest=row[1], salt=row[2], totp=row[3], totp_step=row[4])


async def prelogin(service: Service, call: Call) -> Answer:
    """Say how a name derives its key; a name nobody has gets parameters that look like anyone's."""
    await service.limits.spend("prelogin", call.address, service.policy.limits.prelogin)
    name = folded(call.query["username"], service.policy)
    row = await service.database.read(lambda tx: tx.row("select kdf from account where name = ?", (name,)))
    fake = fake_kdf(service.derived("salt"), name)
    return Answer(record=Prelogin(kdf=msgspec.msgpack.decode(row[0], type=Kdf) if row else fake))


async def login(service: Service, call: Call) -> Answer:
    """Exchange a password's key for a pending token. Every failure costs and says the same."""
    given: Login = call.body
    policy, now = service.policy, service.now()
    await service.limits.spend("login", call.address, policy.limits.login_address)
    name = folded(given.username, policy)
    check_auth_key(given.auth_key)
    await service.limits.spend("login-name", name.encode(), policy.limits.login_name)
    found = _secret(await service.database.read(lambda tx: tx.row(f"{_SECRET} where name = ?", (name,))))
    step = await _proved(service, found, given.auth_key, given.code, now)
    if found is None or step is None:
        raise CredentialsError(_WRONG, hint=_WRONG_HINT)
    token, expires = token_text(service.entropy(32)), now + policy.pending_ms

    def admit(tx: Transaction) -> None:
        _use_step(tx, found, step)
        # Whoever logs in again and again holds a few pending tokens, not thousands.
        tx.execute(
            "delete from token where account = ? and device is null and hash not in (select hash from token"
            " where account = ? and device is null order by expires desc limit ?)",
            (found.account, found.account, policy.max_tokens - 1),
        )
        tx.execute(
            "insert into token (hash, account, kind, expires) values (?, ?, ?, ?)",
            (token_hash(token), found.account, PENDING_TOKEN, expires),
        )
        audit(tx, found.account, "login", now)

    await service.database.write(admit)
    return Answer(record=Pending(account=found.account, token=token, expires=expires))


async def _proved(service: Service, found: _Secret | None, auth_key: bytes, code: str, now: Millis) -> int | None:
    """Return the time step of the second factor's code, 0 without one; None when key or code is wrong."""
    digest = await _hashed(service, auth_key, found.salt if found else bytes(SALT_BYTES))
    right = hmac.compare_digest(digest, found.digest if found else bytes(32))
    secret = found.totp if found else None
    step = totp_step(secret or bytes(20), code, now, found.totp_step if found else 0)
    if found is None or not right:
        return None
    return 0 if secret is None else step


def _use_step(tx: Transaction, found: _Secret, step: int) -> None:
    """Note that a code was used. Raises CredentialsError when another login used it at the same moment."""
    if step and not tx.execute(
        "update account set totp_step = ? where id = ? and totp_step < ?", (step, found.account, step)
    ):
        raise CredentialsError(_WRONG, hint=_WRONG_HINT)


async def _hashed(service: Service, auth_key: bytes, salt: bytes) -> bytes:
    async with service.hashing:
        digest: bytes = await service.offload(lambda: password_hash(auth_key, salt, service.pepper, service.policy))
    return digest


async def _confirmed(service: Service, call: Call, auth_key: bytes) -> _Secret:
    """Check the password of the account that calls. Raises CredentialsError."""
    check_auth_key(auth_key)
    account = call.caller.account
    await service.limits.spend("password", account, service.policy.limits.login_name)
    found = _secret(await service.database.read(lambda tx: tx.row(f"{_SECRET} where id = ?", (account,))))
    if found is None or not hmac.compare_digest(await _hashed(service, auth_key, found.salt), found.digest):
        raise CredentialsError("the password is wrong", hint="nothing was changed; try again")
    return found


async def set_password(service: Service, call: Call) -> Answer:
    """Replace salt and key. Tokens that only a password gave are void; devices have keys of their own."""
    given: SetPassword = call.body
    check_auth_key(given.new_auth_key)
    check_kdf(given.new_kdf, service.policy)
    found = await _confirmed(service, call, given.auth_key)
    salt, now = service.entropy(SALT_BYTES), service.now()
    digest = await _hashed(service, given.new_auth_key, salt)

    def change(tx: Transaction) -> None:
        tx.execute(
            "update account set kdf = ?, auth_hash = ?, auth_salt = ? where id = ?",
            (msgspec.msgpack.encode(given.new_kdf), digest, salt, found.account),
        )
        tx.execute("delete from token where account = ? and device is null", (found.account,))
        audit(tx, found.account, "password", now)

    await service.database.write(change)
    return Answer()


async def set_totp(service: Service, call: Call) -> Answer:
    """Set or take away the second factor. To set it, a code of the new secret must be given."""
    given: SetTotp = call.body
    found = await _confirmed(service, call, given.auth_key)
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

    def change(tx: Transaction) -> None:
        tx.execute(
            "update account set totp = ?, totp_step = ? where id = ?", (given.secret or None, step, found.account)
        )
        audit(tx, found.account, "totp on" if given.secret else "totp off", now)

    await service.database.write(change)
    return Answer()


# --- the account log --------------------------------------------------------------------------------------------------


async def read_log(service: Service, call: Call) -> Answer:
    """Hand out the entries from a place on, as many as a page holds."""
    account = call.caller.account

    def work(tx: Transaction) -> LogPage:
        row = tx.row("select log_seq, log_head from account where id = ?", (account,))
        if row is None:
            raise NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
        size = 0
        entries: list[bytes] = []
        for entry in log_entries(tx, account, call.query["from"], 4_096):
            size += len(entry)
            if entries and size > LOG_PAGE_BYTES:
                break
            entries.append(entry)
        return LogPage(entries=tuple(entries), seq=row[0], head=row[1])

    return Answer(record=await service.database.read(work))


async def append_log(service: Service, call: Call) -> Answer:
    """Append entries that follow `head`, with the wraps and blobs they speak of: all or nothing.

    A pending token may, too: an entry is signed with the account's key, which says more than a token does, and a device
    that recovers has nothing else yet.
    """
    given: LogAppend = call.body
    caller = call.caller
    if caller.device is not None and not caller.full:
        raise DeniedError(
            "this is a limited device, which may not change the account", hint="use a device that is not limited"
        )
    entries = await service.database.read(lambda tx: log_entries(tx, caller.account))
    if not entries or accountlog.read(entries[-1]).hash != given.head:
        raise _moved_on()
    now = service.now()
    state = await _checked(service, entries, given, now)
    blobs = [read_blob(data) for data in given.blobs]

    def append(tx: Transaction) -> None:
        changed = tx.execute(
            "update account set log_seq = ?, log_head = ?, keyring = ? where id = ? and log_head = ?",
            (state.seq, state.head, _keyring(state), caller.account, given.head),
        )
        if not changed:
            raise _moved_on()
        _store_log(tx, state, given, blobs, now)

    await service.database.write(append)
    service.keep(state)
    service.wakes.stir(caller.account)  # whoever waits learns of it: a new epoch, a new device
    return Answer(record=LogPage(entries=(), seq=state.seq, head=state.head))


def _moved_on() -> LogConflictError:
    return LogConflictError(
        "another device has changed the account meanwhile", hint="read the new entries of the log and try again"
    )


async def _checked(service: Service, before: Sequence[bytes], given: LogAppend, now: Millis) -> AccountState:
    """Return the state after the new entries, which follow, are signed by whoever may, and keep to the limits."""
    policy = service.policy
    if not given.entries:
        raise InvalidError(
            "the request appends no entry to the account log", hint="PUT /v1/wraps stores a wrap by itself"
        )
    if len(before) + len(given.entries) > policy.max_log_entries:
        raise InvalidError(
            f"the account log may have {policy.max_log_entries} entries, and these would be more",
            hint="ask the server's operator",
        )

    def replayed() -> AccountState:
        states = accountlog.extended([], before, now)
        return accountlog.extended(states, given.entries, now, fresh=True)[-1]

    state: AccountState = await service.offload(replayed)
    if len(state.active()) > policy.max_devices:
        raise InvalidError(
            f"an account may have {policy.max_devices} devices",
            hint="scrubjay devices revoke takes out one that is not used",
        )
    if len(state.scopes) > policy.max_scopes:
        raise InvalidError(f"an account may make {policy.max_scopes} scopes", hint="use one that exists")
    for wrap in given.wraps:
        check_wrap(wrap)
    if not service.database.searches and any(
        entry.type == EntryType.SCOPE_CREATE and entry.body.get(2) == Suite.OPEN
        for entry in map(accountlog.read, given.entries)
    ):
        raise NotSearchableError(
            "this server cannot keep searchable scopes: its PostgreSQL has no pgvector 0.8",
            hint="its operator installs the extension and restarts the service; sealed scopes work",
        )
    return state


def _keyring(state: AccountState) -> bytes | None:
    return state.keyring[1] if state.keyring else None


def check_wrap(wrap: Wrap) -> None:
    """Raise InvalidError when a wrapped key is not valid."""
    if (
        len(wrap.target) != 16
        or wrap.kind not in {ROOT_WRAP, LIMITED_WRAP}
        or not 1 <= wrap.version <= MAX_INT
        or not 1 <= len(wrap.sealed) <= MAX_WRAP_BYTES
    ):
        raise InvalidError(
            "the wrapped key is not valid",
            hint=f"it has a target of 16 bytes, kind 1 or 2, a version from 1 and 1 to {MAX_WRAP_BYTES} bytes",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An object that stands in no lane, read."""

    hash: bytes
    scope: bytes
    kind: int
    suite: int
    account: bytes
    data: bytes


def read_blob(data: bytes) -> Blob:
    """Return an object that stands in no lane. Raises MalformedError."""
    found = parse(data)
    if found.header.kind in LANE_KINDS:
        raise MalformedError("the object belongs into a lane", hint="POST /v1/push takes it")
    header = found.header
    return Blob(
        hash=sha256(data).digest(),
        scope=header.scope,
        kind=header.kind,
        suite=header.suite,
        account=header.account,
        data=data,
    )


def check_blob(blob: Blob, state: AccountState) -> None:
    """Raise DeniedError or MalformedError when a blob is not the account's, or open where it must be sealed."""
    if blob.account != state.account:
        raise DeniedError("the object names another account than the one of the request", hint=_SENDER)
    scope = state.scopes.get(blob.scope)
    if blob.suite != (scope.suite if scope is not None else Suite.SEALED):
        raise MalformedError("the object has another encryption than its scope has", hint=_SENDER)


def _store_log(tx: Transaction, state: AccountState, given: LogAppend, blobs: Sequence[Blob], now: Millis) -> None:
    """Write new entries, and make everything that mirrors the log say the same."""
    account, read = state.account, [accountlog.read(data) for data in given.entries]
    tx.many(
        "insert into account_log (account, seq, hash, entry) values (?, ?, ?, ?)",
        [(account, entry.seq, entry.hash, entry.data) for entry in read],
    )
    for blob in blobs:
        check_blob(blob, state)
        store_blob(tx, blob, account, now)
    keyring = _keyring(state)
    if keyring is not None:
        if any(entry.type == EntryType.KEYRING_SET for entry in read) and (
            tx.row("select 1 from blob where account = ? and hash = ?", (account, keyring)) is None
        ):
            raise InvalidError("the log names a keyring that was not sent", hint="send it among the blobs")
        tx.execute(
            "update blob set replaced_at = ? where account = ? and kind = ? and replaced_at is null and hash <> ?",
            (now, account, int(ObjectKind.KEYRING), keyring),
        )
        # Entries that the recovery code voided: the keyring from before them is in force again.
        tx.execute("update blob set replaced_at = null where account = ? and hash = ?", (account, keyring))
    for wrap in given.wraps:
        store_wrap(tx, account, wrap, replace=True)
    _mirror_devices(tx, state, now, voided=any(entry.type == EntryType.VOID for entry in read))
    for entry in read:
        audit(tx, account, f"log {entry.type}", now)


def _mirror_devices(tx: Transaction, state: AccountState, now: Millis, *, voided: bool) -> None:
    account = state.account
    if voided:
        # What was added or revoked since is as if it had never been, but a certified id must not come back unnoticed.
        tx.execute("delete from device where account = ?", (account,))
    for device in state.devices.values():
        tx.execute(
            "insert into device (account, id, sign_pub, hpke_pub, limited, revoked_at, last_seen)"
            " values (?, ?, ?, ?, ?, ?, ?) on conflict (account, id) do update set sign_pub = excluded.sign_pub,"
            " hpke_pub = excluded.hpke_pub, limited = excluded.limited,"
            " revoked_at = coalesce(device.revoked_at, excluded.revoked_at)",
            (
                *(account, device.id, device.sign_pub, device.wrap_pub, int(not device.full)),
                *(now if device.revoked else None, 0),
            ),
        )
    if voided:
        tx.execute(
            "delete from token where account = ? and device is not null and device not in"
            " (select id from device where account = ?)",
            (account, account),
        )


def store_blob(tx: Transaction, blob: Blob, account: bytes, now: Millis) -> int:
    """Keep a blob under its hash; return how many bytes that added."""
    added = tx.execute(
        "insert into blob (account, hash, scope, kind, size, received, body) values (?, ?, ?, ?, ?, ?, ?)"
        " on conflict (account, hash) do nothing",
        (account, blob.hash, blob.scope, blob.kind, len(blob.data), now, blob.data),
    )
    if not added:
        return 0
    tx.execute("update account set bytes = bytes + ?, objects = objects + 1 where id = ?", (len(blob.data), account))
    return len(blob.data)


def store_wrap(tx: Transaction, account: bytes, wrap: Wrap, *, replace: bool) -> None:
    """Keep a wrap. Without `replace`, another in its place is a ConflictError: a token alone destroys no key."""
    key = (account, wrap.target, wrap.kind, wrap.version)
    if replace:
        tx.execute(
            "insert into wrap (account, target, kind, version, ct) values (?, ?, ?, ?, ?)"
            " on conflict (account, target, kind, version) do update set ct = excluded.ct",
            (*key, wrap.sealed),
        )
        return
    tx.execute(
        "insert into wrap (account, target, kind, version, ct) values (?, ?, ?, ?, ?) on conflict do nothing",
        (*key, wrap.sealed),
    )
    row = tx.row("select ct from wrap where account = ? and target = ? and kind = ? and version = ?", key)
    if row is not None and row[0] != wrap.sealed:
        raise ConflictError(
            "another wrapped key is stored for that version already", hint="POST /v1/log can replace it"
        )


def audit(tx: Transaction, account: bytes, what: str, now: Millis) -> None:
    """Note what happened to an account: kept for 90 days."""
    tx.execute("insert into audit (account, at, what) values (?, ?, ?)", (account, now, what))


# --- what there is, and leaving ---------------------------------------------------------------------------------------


async def usage(service: Service, call: Call) -> Answer:
    """Say what the account holds and may hold."""
    caller = call.caller
    state = await service.state(caller.account, caller.head)
    row = await service.database.read(
        lambda tx: tx.row("select bytes, objects, quota from account where id = ?", (caller.account,))
    )
    if row is None:
        raise NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
    return Answer(
        record=Usage(
            bytes=row[0],
            objects=row[1],
            devices=len(state.active()),
            scopes=sum(not scope.deleted for scope in state.scopes.values()),
            quota_bytes=service.settings.quota_bytes if row[2] is None else row[2],
            quota_objects=service.policy.quota_objects,
        )
    )


async def leave(service: Service, call: Call) -> Answer:
    """Delete the account and everything of it, in one transaction."""
    given: DeleteAccount = call.body
    found = await _confirmed(service, call, given.auth_key)
    return Answer(record=await service.database.write(lambda tx: delete_account(tx, found.account)))


def delete_account(tx: Transaction, account: bytes) -> Deleted:
    """Delete every row of an account and count what is left, which must be nothing."""
    tx.execute("update account set gseq = gseq where id = ?", (account,))  # the lock that pushes take first
    objects = sum(tx.execute(f"delete from {table} where account = ?", (account,)) for table in ("object", "blob"))
    for table in ACCOUNT_TABLES:
        tx.execute(f"delete from {table} where account = ?", (account,))
    tx.execute("delete from account where id = ?", (account,))
    return Deleted(objects=objects, left=rows_of(tx, account))


def rows_of(tx: Transaction, account: bytes) -> int:
    """Return how many rows any table has of an account."""
    left = tx.row("select count(*) from account where id = ?", (account,))
    counts = [
        left,
        *(tx.row(f"select count(*) from {table} where account = ?", (account,)) for table in ACCOUNT_TABLES),
    ]
    return sum(row[0] for row in counts if row)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/register/check",
        summary="Before signing up: whether the name is free and the invitation valid.",
        handler=check_sign_up,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=CheckSignUp,
        status=204,
    ),
    Endpoint(
        method="POST",
        path="/v1/register",
        summary="Sign up: a name, a derived key, and an account log that certifies the first device.",
        handler=register,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=Register,
        answer=Pending,
        status=201,
    ),
    Endpoint(
        method="GET",
        path="/v1/prelogin",
        summary="How a name derives its key.",
        handler=prelogin,
        admits=Admits.ANYONE,
        answer=Prelogin,
        query=(Query(name="username", meaning="a user name", read=str, schema={"type": "string"}, required=True),),
    ),
    Endpoint(
        method="POST",
        path="/v1/login",
        summary="Prove the password: a token for enrolling a device.",
        handler=login,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=Login,
        answer=Pending,
    ),
    Endpoint(
        method="GET",
        path="/v1/log",
        summary="The account log from a place on.",
        handler=read_log,
        admits=Admits.PENDING,
        answer=LogPage,
        query=(
            Query(
                name="from",
                meaning="a place in the log",
                read=whole(0, MAX_INT),
                schema={"type": "integer", "minimum": 0, "maximum": MAX_INT},
                default=0,
            ),
        ),
    ),
    Endpoint(
        method="POST",
        path="/v1/log",
        summary="Append signed entries, if the log still ends where the caller thinks it does.",
        handler=append_log,
        admits=Admits.PENDING,
        takes=Takes.JSON,
        record=LogAppend,
        answer=LogPage,
    ),
    Endpoint(
        method="PUT",
        path="/v1/account/password",
        summary="Change the password. No data changes.",
        handler=set_password,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=SetPassword,
        status=204,
    ),
    Endpoint(
        method="PUT",
        path="/v1/account/totp",
        summary="Set or take away the second factor.",
        handler=set_totp,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=SetTotp,
        status=204,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/account",
        summary="Delete the account and everything it holds.",
        handler=leave,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=DeleteAccount,
        answer=Deleted,
    ),
    Endpoint(
        method="GET",
        path="/v1/usage",
        summary="What the account holds, and what it may hold.",
        handler=usage,
        admits=Admits.DEVICE,
        answer=Usage,
    ),
)
