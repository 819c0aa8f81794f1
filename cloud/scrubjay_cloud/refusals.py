"""Refusals that several endpoints give: the same words wherever a client meets them."""

from __future__ import annotations

from scrubjay_shared.errors import DeniedError, NotFoundError, RevokedError, UnavailableError


def device_revoked() -> RevokedError:
    """Return the error for a device that the account log revokes."""
    return RevokedError(
        "this device was revoked: it syncs no more",
        hint="scrubjay logout, then scrubjay login asks to be added again",
    )


def device_refused(retry_ms: int) -> UnavailableError:
    """Return the error for a device that another one is about to shut out, and has not yet: it may ask again then."""
    return UnavailableError(
        "another device of the account is about to shut this one out",
        hint="wait: if no revocation follows, it sends again within a quarter of an hour. If that was not you, somebody"
        " else has a device of yours: scrubjay sync status names it, and scrubjay devices revoke works here meanwhile",
        retry_after=retry_ms / 1000,
    )


def scope_not_given() -> DeniedError:
    """Return the error for a limited device that asks for a scope it was not given."""
    return DeniedError(
        "this device was not given that scope", hint="scrubjay sync scopes list shows the scopes of this device"
    )


def account_deleted() -> NotFoundError:
    """Return the error for an account that was deleted since the request was admitted."""
    return NotFoundError("the account was deleted", hint="scrubjay logout --force leaves it here; memories stay")
