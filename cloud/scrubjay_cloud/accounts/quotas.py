"""How many bytes an account may hold: the server's default, or what its operator has set for it."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What an account holds and may hold. `own_bytes` is what was set for it; None where the default counts."""

    name: str
    bytes: int
    objects: int
    superseded_bytes: int
    """Replaced by packs, and deleted within seven days: not counted in `bytes`."""
    own_bytes: int | None


def quota_of(tx: Transaction, name: str) -> Quota:
    """Return the quota of the account of a name, which is folded. Raises NotFoundError."""
    row = tx.row("select name, bytes, objects, superseded, quota from account where name = ?", (name,))
    if row is None:
        raise NotFoundError(f"no account is called {name!r}", hint="scrubjay-cloud admin users lists them")
    return Quota(name=row[0], bytes=row[1], objects=row[2], superseded_bytes=row[3], own_bytes=row[4])


def set_quota(tx: Transaction, name: str, own_bytes: int | None, now: Millis) -> Quota:
    """Let an account hold so many bytes, from its next request on; None lets the server's default count again.

    One that holds more already keeps it: it can read, pack, forget and delete, and add nothing. Raises NotFoundError.
    """
    row = tx.row("update account set quota = ? where name = ? returning id", (own_bytes, name))
    if row is not None:
        audit(tx, row[0], "quota", now)
    return quota_of(tx, name)
