"""Which device or scope of the account a request names."""

from __future__ import annotations

from scrubjay_sync.account.member import Member
from scrubjay_sync.api.references import one_of


def device_id(member: Member, ref: str) -> bytes:
    """Return the id of a device in force by its name or id. Raises NotFoundError, ConflictError."""
    found = {one.id.hex(): member.device_name(one.id) for one in member.state.active()}
    return bytes.fromhex(one_of(ref, found, "device", "devices list"))


def scope_id(member: Member, ref: str) -> bytes:
    """Return the id of a scope by its name or id. Raises NotFoundError, ConflictError."""
    found = {one.hex(): member.scopes.name(one) for one in member.scopes.ids}
    return bytes.fromhex(one_of(ref, found, "scope", "sync scopes list"))
