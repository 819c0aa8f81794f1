"""The name of an account: whether it is free, and its change.

A name opens nothing and is signed by nobody: it only says which account a login means. What a change could do is put
somebody else in its place, for people who know the old one (in a team, say). So a name that was given up stays kept
for a while, and every full device is told the name with its next token.
"""

from __future__ import annotations

from scrubjay_cloud.accounts.audit import audit
from scrubjay_cloud.accounts.authentication import confirmed
from scrubjay_cloud.credentials import folded
from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_cloud.service import Service
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError
from scrubjay_shared.wire import AccountName, SetName


def is_taken(tx: Transaction, name: str, now: Millis, account: bytes = b"") -> bool:
    """Say whether a folded name is another account's, or was until lately. `account` may have its own back."""
    return (
        tx.row("select 1 from account where name = ? and id <> ?", (name, account)) is not None
        or tx.row("select 1 from former_name where name = ? and account <> ? and expires > ?", (name, account, now))
        is not None
    )


def taken() -> ConflictError:
    """Return what is said of a name that somebody else has or had lately."""
    return ConflictError("that user name is taken", hint="choose another, or log in")


async def set_name(service: Service, call: Call) -> Answer:
    """Give the caller's account another name. No data, no key and no log entry changes."""
    given: SetName = call.body
    policy, now = service.policy, service.now()
    name = folded(given.username, policy)
    stored = await confirmed(service, call, given.auth_key)
    # Asking tells whether a name is somebody's, as signing up does.
    service.limits.spend_here("name", stored.account, policy.limits.register)
    await service.database.write(lambda tx: _change(tx, stored.account, name, now, policy))
    return Answer(record=AccountName(username=name))


def _change(tx: Transaction, account: bytes, name: str, now: Millis, policy: CloudPolicy) -> None:
    row = tx.row(f"select name from account where id = ?{tx.for_update}", (account,))
    if row is None or row[0] == name:
        return
    if is_taken(tx, name, now, account):
        raise taken()
    tx.execute("delete from former_name where name = ?", (name,))
    kept = tx.row("select count(*) from former_name where account = ? and expires > ?", (account, now))
    if kept is not None and kept[0] >= policy.former_names:
        raise ConflictError(
            f"this account has given up {kept[0]} names lately, which are kept for it",
            hint="go back to one of them, or wait until the first is free again",
        )
    tx.execute(
        "insert into former_name (name, account, expires) values (?, ?, ?) on conflict (name) do update"
        " set account = excluded.account, expires = excluded.expires",
        (row[0], account, now + policy.former_name_ms),
    )
    # Somebody may take the same name at the same moment: the table's own rule decides.
    if not tx.execute(
        "update account set name = ? where id = ? and not exists (select 1 from account where name = ?)",
        (name, account, name),
    ):
        raise taken()
    audit(tx, account, "name", now)
