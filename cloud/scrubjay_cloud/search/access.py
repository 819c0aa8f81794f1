"""Which scopes a caller may search, and that what they hold has been read."""

from __future__ import annotations

from scrubjay_cloud.endpoint import Call
from scrubjay_cloud.refusals import device_revoked, scope_not_given
from scrubjay_cloud.service import Service
from scrubjay_shared.account import ScopeState
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    DeniedError,
    NotFoundError,
    NotSearchableError,
)


async def searchable_scope(service: Service, call: Call, *, writes: bool = False) -> ScopeState:
    """Return the scope of a call, which the caller may read and the server may search. Raises what forbids it."""
    caller, scope = call.caller, call.path["scope"]
    state = await service.state(caller.account, caller.head)
    device, declared = state.devices.get(caller.device or b""), state.scopes.get(scope)
    if device is None or device.revoked:
        raise device_revoked()
    if device.scopes is not None and scope not in device.scopes:
        raise scope_not_given()
    if writes and device.read_only:
        raise DeniedError(
            "this is a read-only device, which may not send vectors", hint="devices that may write send them"
        )
    if declared is None or declared.deleted:
        raise NotFoundError("the account has no such scope", hint="scrubjay sync scopes list shows them")
    if declared.suite != Suite.OPEN:
        raise NotSearchableError(
            "the scope is sealed: this server cannot read it", hint="scrubjay recall searches it on your device"
        )
    if not service.database.searches:
        raise NotSearchableError(
            "this server cannot search: its PostgreSQL has no pgvector 0.8",
            hint="its operator installs the extension and restarts it; scrubjay recall searches on your device",
        )
    return declared


async def catch_up(service: Service, account: bytes, scope: bytes) -> None:
    """Have the rows of a scope show what its lanes hold."""
    await service.materialising.caught_up(account, scope)
