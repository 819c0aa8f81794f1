"""What an object or a lane is refused for, in words."""

from __future__ import annotations

from scrubjay_shared.errors import (
    CorruptError,
    MalformedError,
    QuotaError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    UpdateNeededError,
    from_code,
)
from scrubjay_shared.wire import Pushed
from scrubjay_sync.cloud.problems import said

REFUSED = (CorruptError, MalformedError, UpdateNeededError, RevokedError)
"""What one object can be refused for; everything else ends the round."""
VERIFY = "scrubjay sync verify reads every lane again and says what is affected"


def split(device: bytes, n: int) -> SplitError:
    """Return the error of a place of which the server shows another object than before."""
    return SplitError(
        f"the server shows another place {n} of lane {short(device)} than it has shown before", hint=VERIFY
    )


def rolled_back(device: bytes, before: int, n: int) -> RolledBackError:
    """Return the error of a lane that has become shorter at the server."""
    return RolledBackError(
        f"the server shows lane {short(device)} up to place {n}, and has shown or confirmed place {before}",
        hint="if the server was restored from a backup, the devices that have the rest give it back; " + VERIFY,
    )


def not_taken_back(device: bytes, result: Pushed) -> ScrubjayError:
    """Return the error of an object that the server has lost and does not take back."""
    return from_code(
        result.status,
        f"the server does not take back place {result.n_from} of lane {short(device)}",
        VERIFY,
    )


def not_taken(result: Pushed) -> ScrubjayError:
    """Return the error of an object that the server does not take, and that sending again would not help."""
    if result.status == QuotaError.code:
        return QuotaError(
            "the account's storage on the server is used up",
            hint="nothing is lost: changes wait here. Ask the server's operator for more storage",
        )
    if result.status == RevokedError.code:
        return RevokedError(
            "this device was revoked: it syncs no more, and its memories stay here",
            hint="scrubjay logout, then scrubjay login asks to be added again",
        )
    return from_code(
        result.status,
        f"the server does not take place {result.n_from} of this device's lane ({said(result.status)})",
        "nothing is lost: changes wait here. Update scrubjay; scrubjay sync verify says more",
    )


def subject(scope: bytes, device: bytes) -> str:
    """Return what an alarm about a lane is kept under."""
    return f"{scope.hex()}/{device.hex()}"


def short(device: bytes) -> str:
    """Return the beginning of a device's id, for messages."""
    return device.hex()[:8]
