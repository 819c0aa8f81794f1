"""Devices: asking to be added, tokens for those that were, the keys wrapped for them, and being shut out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.networks import network_hash, note_network
from scrubjay_cloud.accounts.wraps import check_wrap, store_wrap
from scrubjay_cloud.admission import DEVICE_TOKEN
from scrubjay_cloud.challenges import answer_once
from scrubjay_cloud.credentials import NONCE_RANDOM_BYTES, check_nonce, nonce, token_hash, token_text
from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.decoding import hex_id
from scrubjay_cloud.endpoint import Admits, Answer, Call, Endpoint, Query, Takes
from scrubjay_cloud.refusals import device_revoked
from scrubjay_cloud.service import Service
from scrubjay_shared.account import is_wrap_pub
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    BadSignatureError,
    ConflictError,
    DeniedError,
    InvalidError,
    NotFoundError,
    PendingError,
    TooManyError,
    UnauthenticatedError,
)
from scrubjay_shared.signatures import is_signed
from scrubjay_shared.wire import (
    RECOVERY_TARGET,
    Challenge,
    Enroll,
    Enrolment,
    Enrolments,
    PairingAnswer,
    PairingReveal,
    Refusal,
    Refusals,
    RefuseDevice,
    Token,
    TokenRequest,
    Wrap,
    Wraps,
    auth_message,
    refusal_message,
)

ID_BYTES = 16
SIGN_PUB_BYTES = 32
HASH_BYTES = 32
MAX_ORIGIN = 256  # characters
SHOWN_REFUSALS = 100
"""The newest: an account has a hundred devices at most, and nobody refuses all of them for a good reason."""

_ENROLMENT = (
    "select id, device, sign_pub, wrap_pub, commitment, approved, expires, answer, answer_head, reveal from enroll"
)


# --- pairing ----------------------------------------------------------------------------------------------------------


async def enroll(service: Service, call: Call) -> Answer:
    """Ask to be added. The same device asking again renews its request."""
    given: Enroll = call.body
    caller, now = call.caller, service.now()
    if (
        len(given.device) != ID_BYTES
        or len(given.sign_pub) != SIGN_PUB_BYTES
        or not is_wrap_pub(given.wrap_pub)
        or len(given.commitment) != HASH_BYTES
    ):
        raise InvalidError(
            "the device that asks is not valid", hint="it has an id of 16 bytes, two public keys and a commitment"
        )
    identity, expires = service.entropy(ID_BYTES), now + service.policy.pending_ms

    def ask(tx: Transaction) -> None:
        tx.execute("update account set gseq = gseq where id = ?", (caller.account,))  # counts stay right under it
        tx.execute("delete from enroll where account = ? and expires <= ?", (caller.account, now))
        tx.execute("delete from enroll where account = ? and device = ?", (caller.account, given.device))
        waiting = tx.row("select count(*), min(expires) from enroll where account = ?", (caller.account,))
        if waiting is not None and waiting[0] >= service.policy.max_enrolments:
            raise TooManyError(
                "too many machines ask to be added to this account",
                hint="scrubjay devices approve adds one; requests expire by themselves",
                retry_after=(waiting[1] - now) / 1000,
            )
        tx.execute(
            "insert into enroll (id, account, device, sign_pub, wrap_pub, commitment, approved, expires)"
            " values (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(identity, caller.account, given.device, given.sign_pub, given.wrap_pub, given.commitment),
                *(0, expires),
            ),
        )
        audit(tx, caller.account, "enroll", now)

    await service.database.write(ask)
    service.notifier.wake(caller.account)
    return Answer(
        record=Enrolment(
            id=identity,
            device=given.device,
            sign_pub=given.sign_pub,
            wrap_pub=given.wrap_pub,
            commitment=given.commitment,
            approved=False,
            expires=expires,
        )
    )


async def enrolments(service: Service, call: Call) -> Answer:
    """List who asks."""
    caller, now = call.caller, service.now()
    rows = await service.database.read(
        lambda tx: tx.rows(
            f"{_ENROLMENT} where account = ? and expires > ? order by expires, id", (caller.account, now)
        )
    )
    return Answer(record=Enrolments(enrolments=tuple(_enrolment(row) for row in rows)))


async def approve(service: Service, call: Call) -> Answer:
    """Note that a request was granted: the log must certify the device already, with the keys it asked with."""
    caller, now, identity = call.caller, service.now(), call.path["id"]
    row = await service.database.read(
        lambda tx: tx.row(f"{_ENROLMENT} where id = ? and account = ? and expires > ?", (identity, caller.account, now))
    )
    if row is None:
        raise _nobody_asks()
    enrolment = _enrolment(row)
    state = await service.state(caller.account, caller.head)
    device = state.devices.get(enrolment.device)
    if device is None:
        raise PendingError("the account log does not add that device yet", hint="append a device_add entry first")
    if device.revoked or device.sign_pub != enrolment.sign_pub or device.wrap_pub != enrolment.wrap_pub:
        raise ConflictError(
            "the account log adds that device with other keys than it asked with", hint="run scrubjay login on it again"
        )
    await service.database.write(
        lambda tx: tx.execute("update enroll set approved = 1 where id = ? and account = ?", (identity, caller.account))
    )
    return Answer(record=replace(enrolment, approved=True))


async def answer(service: Service, call: Call) -> Answer:
    """Keep the answer of a device to one that asks. Another one in its place would change words that are shown."""
    given: PairingAnswer = call.body
    if len(given.nonce) != HASH_BYTES or len(given.head) != HASH_BYTES:
        raise InvalidError("the answer is not valid", hint="it has a nonce and a hash of 32 bytes each")
    held = await _kept_once(service, call, "answer", {"answer": given.nonce, "answer_head": given.head})
    if (held.answer, held.answer_head) != (given.nonce, given.head):
        raise ConflictError("another device answered that request", hint="approve it there, or begin its login again")
    return Answer(record=held)


async def reveal(service: Service, call: Call) -> Answer:
    """Keep the nonce that a device which asks has committed to. It must have been answered."""
    given: PairingReveal = call.body
    if len(given.nonce) != HASH_BYTES:
        raise InvalidError("what is revealed is not valid", hint="it is a nonce of 32 bytes")
    held = await _kept_once(service, call, "reveal", {"reveal": given.nonce})
    if held.reveal != given.nonce:
        raise ConflictError(
            "that request is not answered yet, or has revealed another nonce", hint="run scrubjay login again"
        )
    return Answer(record=held)


async def _kept_once(service: Service, call: Call, first: str, values: Mapping[str, bytes]) -> Enrolment:
    """Set columns of a request unless `first` is set; return it as it stands. Nothing is revealed before an answer."""
    caller, now, identity = call.caller, service.now(), call.path["id"]
    columns = ", ".join(f"{name} = ?" for name in values)
    answered = " and length(answer) > 0" * (first == "reveal")

    def keep(tx: Transaction) -> Enrolment:
        tx.execute(
            f"update enroll set {columns}"
            f" where id = ? and account = ? and expires > ? and length({first}) = 0{answered}",
            (*values.values(), identity, caller.account, now),
        )
        row = tx.row(f"{_ENROLMENT} where id = ? and account = ? and expires > ?", (identity, caller.account, now))
        if row is None:
            raise _nobody_asks()
        return _enrolment(row)

    kept = await service.database.write(keep)
    service.notifier.wake(caller.account)
    return kept


def _nobody_asks() -> NotFoundError:
    return NotFoundError("no device asks to be added under that id", hint="scrubjay devices list shows who asks")


def _enrolment(row: Row) -> Enrolment:
    return Enrolment(
        id=row[0],
        device=row[1],
        sign_pub=row[2],
        wrap_pub=row[3],
        commitment=row[4],
        approved=bool(row[5]),
        expires=row[6],
        answer=row[7],
        answer_head=row[8],
        reveal=row[9],
    )


# --- tokens -----------------------------------------------------------------------------------------------------------


async def challenge(service: Service, call: Call) -> Answer:
    """Give a nonce to sign. Whether there is such a device, the answer does not tell."""
    service.limits.spend_here("challenge", call.address, service.policy.limits.challenge)
    now = service.now()
    made = nonce(service.derived("nonce"), call.query["device"], now, service.entropy(NONCE_RANDOM_BYTES))
    return Answer(record=Challenge(nonce=made, expires=now + service.policy.challenge_ms))


async def token(service: Service, call: Call) -> Answer:
    """Exchange a signed nonce for a token of one hour."""
    given: TokenRequest = call.body
    policy, now = service.policy, service.now()
    service.limits.spend_here("token", call.address, policy.limits.token)
    if len(given.account) != ID_BYTES or len(given.device) != ID_BYTES or len(given.origin) > MAX_ORIGIN:
        raise InvalidError("account and device ids must have 16 bytes", hint="update scrubjay")
    check_nonce(service.derived("nonce"), given.device, given.nonce, now, policy.challenge_ms)

    def look(tx: Transaction) -> Row | None:
        return tx.row(
            "select d.sign_pub, d.revoked_at, a.log_head, d.limited, a.name"
            " from device d join account a on a.id = d.account where d.account = ? and d.id = ?",
            (given.account, given.device),
        )

    row = await service.database.read(look)
    message = auth_message(given.account, given.device, given.nonce, given.origin)
    if row is None or not is_signed(row[0], given.signature, message):
        raise UnauthenticatedError(
            "the server does not know this device, or its signature is wrong",
            hint="scrubjay logout --force, then scrubjay login; memories stay",
        )
    if row[1] is not None:
        raise device_revoked()
    state = await service.state(given.account, row[2])
    if given.origin not in state.origins or service.settings.origin not in {"", given.origin}:
        raise DeniedError(
            "the account was made for another address than this one", hint="scrubjay sync status shows which"
        )
    network = network_hash(service, given.account, call.address)
    made, expires, limited = token_text(service.entropy(32)), now + policy.token_ms, bool(row[3])

    def store(tx: Transaction) -> None:
        held = (given.account, given.device)
        answer_once(tx, given.nonce, Millis(now + policy.challenge_ms))
        tx.execute(
            "delete from token where account = ? and device = ? and hash not in (select hash from token"
            " where account = ? and device = ? and expires > ? order by expires desc limit ?)",
            (*held, *held, now, (policy.max_tokens_limited if limited else policy.max_tokens) - 1),
        )
        tx.execute(
            "insert into token (hash, account, device, kind, expires) values (?, ?, ?, ?, ?)",
            (token_hash(made), *held, DEVICE_TOKEN, expires),
        )
        tx.execute("update device set last_seen = ? where account = ? and id = ?", (now, *held))
        note_network(tx, given.account, network, now, policy)

    await service.database.write(store)
    return Answer(record=Token(token=made, expires=expires, username="" if limited else row[4]))


# --- wraps ------------------------------------------------------------------------------------------------------------


async def read_wraps(service: Service, call: Call) -> Answer:
    """Hand out the keys wrapped for a device or the recovery code, newest first. They open for nobody else."""
    caller, target = call.caller, call.path["target"]
    allowed = caller.full or target == (RECOVERY_TARGET if caller.device is None else caller.device)
    if not allowed:
        raise DeniedError("those keys are for another device", hint="a device may read its own only")
    rows = await service.database.read(
        lambda tx: tx.rows(
            "select kind, version, ct from wrap where account = ? and target = ? order by version desc, kind limit 64",
            (caller.account, target),
        )
    )
    wraps = tuple(Wrap(target=target, kind=kind, version=version, sealed=ct) for kind, version, ct in rows)
    return Answer(record=Wraps(wraps=wraps))


async def put_wrap(service: Service, call: Call) -> Answer:
    """Keep a wrap where there is none yet. Replacing one takes a signed entry: `POST /v1/log` carries wraps, too."""
    given: Wrap = call.body
    caller, policy = call.caller, service.policy
    check_wrap(given)
    if given.target != call.path["target"]:
        raise InvalidError("path and body name different targets", hint="name the same target in both")

    def store(tx: Transaction) -> None:
        tx.execute("update account set gseq = gseq where id = ?", (caller.account,))
        count = tx.row("select count(*) from wrap where account = ?", (caller.account,))
        if count is not None and count[0] >= policy.max_wraps:
            raise InvalidError(f"an account may have {policy.max_wraps} wrapped keys", hint="ask the server's operator")
        store_wrap(tx, caller.account, given, replace=False)

    await service.database.write(store)
    return Answer()


# --- shutting out -----------------------------------------------------------------------------------------------------


async def shut_out(service: Service, call: Call) -> Answer:
    """Refuse a device for a while, and end its tokens: what an entry of the log says for good, which follows.

    The device that asks signs it, is named to all others, and may do it once: without the entry the refusal lapses, and
    is not renewed. Meanwhile the other may read the log and append to it. Without a signature nobody is refused.
    """
    given: RefuseDevice | None = call.body
    caller, device, now = call.caller, call.path["device"], service.now()
    author = caller.device
    assert author is not None  # noqa: S101 - the route admits none but devices
    state = await service.state(caller.account, caller.head)
    if device not in state.devices:
        raise NotFoundError("the account has no such device", hint="scrubjay devices list shows them")
    if given is None:
        # Clients of before signatures ask so, and give up where they are refused: the entry that they append is what
        # counts, and it must come.
        return Answer()
    if device == author:
        raise InvalidError("a device cannot refuse itself", hint="scrubjay logout takes it out of the account")
    check_nonce(service.derived("nonce"), author, given.nonce, now, service.policy.challenge_ms)
    message = refusal_message(caller.account, device, author, given.nonce)
    if author not in state.devices or not is_signed(state.devices[author].sign_pub, given.signature, message):
        raise BadSignatureError("the refusal is not signed by the device that asks", hint="update scrubjay")
    until = Millis(now + service.policy.refusal_ms)

    def refuse(tx: Transaction) -> None:
        tx.execute(
            "update account set gseq = gseq where id = ?", (caller.account,)
        )  # one at a time, and no entry beside
        in_force = "select 1 from device where account = ? and id = ? and revoked_at is null"
        if tx.row(in_force, (caller.account, author)) is None:
            raise device_revoked()  # since it was admitted: that entry is the last word
        whose = (caller.account, device, author)
        held = tx.row("select until from refusal where account = ? and target = ? and author = ?", whose)
        if held is not None:
            if held[0] <= now:
                raise ConflictError(
                    "this device has refused that one before, and no entry of the account log followed",
                    hint="append the entry that revokes it: scrubjay devices revoke does",
                )
            return
        tx.execute(
            "insert into refusal (account, target, author, nonce, until, signature) values (?, ?, ?, ?, ?, ?)",
            (*whose, given.nonce, until, given.signature),
        )
        tx.execute("update device set refused_until = ? where account = ? and id = ?", (until, caller.account, device))
        tx.execute("delete from token where account = ? and device = ?", (caller.account, device))
        audit(tx, caller.account, "device refused", now)

    await service.database.write(refuse)
    service.notifier.wake(caller.account)  # if it waits for news, this is some
    return Answer()


async def refusals(service: Service, call: Call) -> Answer:
    """List who was refused by whom, as it was signed: what lapsed, too, until an entry of the log settles it."""
    rows = await service.database.read(
        lambda tx: tx.rows(
            "select target, author, nonce, until, signature from refusal where account = ?"
            " order by until desc, target, author limit ?",
            (call.caller.account, SHOWN_REFUSALS),
        )
    )
    found = [
        Refusal(device=device, author=author, nonce=signed, until=until, signature=signature)
        for device, author, signed, until, signature in reversed(rows)
    ]
    return Answer(record=Refusals(refusals=tuple(found)))


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/enroll",
        summary="Ask to be added as a device.",
        handler=enroll,
        admits=Admits.PENDING,
        takes=Takes.JSON,
        record=Enroll,
        answer=Enrolment,
        status=201,
    ),
    Endpoint(
        method="GET",
        path="/v1/enroll",
        summary="Who asks to be added.",
        handler=enrolments,
        admits=Admits.PENDING,
        refused=True,
        answer=Enrolments,
    ),
    Endpoint(
        method="POST",
        path="/v1/enroll/{id}/approve",
        summary="Note that a device was added to the log.",
        handler=approve,
        admits=Admits.FULL,
        answer=Enrolment,
    ),
    Endpoint(
        method="POST",
        path="/v1/enroll/{id}/answer",
        summary="Answer a device that asks, with a nonce: it then shows its words.",
        handler=answer,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=PairingAnswer,
        answer=Enrolment,
    ),
    Endpoint(
        method="POST",
        path="/v1/enroll/{id}/reveal",
        summary="Reveal the nonce that a request to be added has committed to.",
        handler=reveal,
        admits=Admits.PENDING,
        takes=Takes.JSON,
        record=PairingReveal,
        answer=Enrolment,
    ),
    Endpoint(
        method="GET",
        path="/v1/auth/challenge",
        summary="A nonce for a device to sign.",
        handler=challenge,
        admits=Admits.ANYONE,
        answer=Challenge,
        query=(
            Query(
                name="device",
                meaning="a device's id",
                read=hex_id,
                schema={"type": "string", "pattern": "^[0-9a-f]{32}$"},
                required=True,
            ),
        ),
    ),
    Endpoint(
        method="POST",
        path="/v1/auth/token",
        summary="Exchange a signed nonce for a token of one hour.",
        handler=token,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=TokenRequest,
        answer=Token,
    ),
    Endpoint(
        method="GET",
        path="/v1/wraps/{target}",
        summary="The keys wrapped for a device, or for the recovery code.",
        handler=read_wraps,
        admits=Admits.PENDING,
        refused=True,
        answer=Wraps,
    ),
    Endpoint(
        method="PUT",
        path="/v1/wraps/{target}",
        summary="Keep a wrapped key where there is none yet.",
        handler=put_wrap,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=Wrap,
        status=204,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/devices/{device}",
        summary="Refuse a device for 15 minutes, in which the signed entry that revokes it follows.",
        handler=shut_out,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=RefuseDevice,
        optional=True,
        refused=True,
        status=204,
    ),
    Endpoint(
        method="GET",
        path="/v1/refusals",
        summary="Which devices were refused, and by whom: as signed, with those that have lapsed.",
        handler=refusals,
        admits=Admits.DEVICE,
        refused=True,
        answer=Refusals,
    ),
)
