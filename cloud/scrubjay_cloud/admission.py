"""Who calls: the token of a request, looked up with all that decides whether it still counts. No cache."""

from __future__ import annotations

from scrubjay_cloud.credentials import token_hash
from scrubjay_cloud.endpoint import Admits, Caller
from scrubjay_cloud.refusals import device_refused, device_revoked
from scrubjay_cloud.service import Service
from scrubjay_shared.errors import DeniedError, ExpiredError, PendingError, UnauthenticatedError

PENDING_TOKEN = 1
DEVICE_TOKEN = 2
IN_FORCE = 0

_LOOKUP = {
    "postgres": "select * from callers_with(?)",
    "sqlite": """
select t.hash, t.account, t.device, t.expires, d.limited, d.revoked_at, d.refused_until, a.status, a.log_head, a.gseq,
  a.bytes, a.objects, a.quota, (select v from meta where k = 'generation')
from token t join account a on a.id = t.account left join device d on d.account = t.account and d.id = t.device
where t.hash = ?""",
}
"""The row of a token, with all that is asked of it; `callers_with` finds those of many, planned once a connection."""


async def admitted(service: Service, authorization: str, admits: Admits, *, refused: bool = False) -> Caller:
    """Return who calls; with `refused`, a device too that another one refuses for a while.

    Raises UnauthenticatedError, ExpiredError, RevokedError, PendingError, DeniedError, and UnavailableError for such a
    device.
    """
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "bearer" or not given.strip():
        raise UnauthenticatedError("the request has no bearer token", hint="ask for one at /v1/auth/token")
    return await admitted_token(service, token_hash(given.strip()), admits, refused=refused)


async def admitted_token(service: Service, digest: bytes, admits: Admits, *, refused: bool = False) -> Caller:
    """Return who calls with a token of this hash: again, for those who have waited."""
    row = await service.database.lookup(_LOOKUP[service.database.dialect], digest)
    if row is None:
        raise UnauthenticatedError(
            "the token is not valid: it was withdrawn, or is of another server",
            hint="ask for a new one at /v1/auth/token",
        )
    (
        _,
        account,
        device,
        expires,
        limited,
        revoked_at,
        refused_until,
        status,
        head,
        gseq,
        used,
        objects,
        quota,
        generation,
    ) = row
    service.generation = int(generation)
    if expires <= service.now():
        raise ExpiredError("the token has expired", hint="ask for a new one at /v1/auth/token")
    if status != IN_FORCE:
        raise DeniedError("the server's operator has locked the account", hint="ask the operator")
    if revoked_at is not None:
        raise device_revoked()
    if not refused and refused_until is not None and refused_until > service.now():
        raise device_refused(min(refused_until - service.now(), service.policy.refusal_retry_ms))
    if device is None and admits is not Admits.PENDING:
        raise PendingError(
            "this device was not approved yet",
            hint="scrubjay devices approve on another device, or scrubjay login --recovery here",
        )
    if admits is Admits.FULL and limited:
        raise DeniedError(
            "this is a limited device, which may not change the account", hint="use a device that is not limited"
        )
    allowed = service.settings.quota_bytes if quota is None else quota
    share = max(used / allowed if allowed else 1.0, objects / service.policy.quota_objects)
    if limited:
        share /= service.policy.quota_limited
    return Caller(
        account=account,
        device=device,
        token=digest,
        expires=expires,
        head=head,
        gseq=gseq,
        full=device is not None and not limited,
        warning=int(share * 100) if share >= service.policy.quota_warning else 0,
    )
