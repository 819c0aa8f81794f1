"""Bodies on their way: sent before the transaction that names them, fetched after the one that read their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from scrubjay_cloud.bodies.loose import announce
from scrubjay_cloud.bodies.store import BodyStore
from scrubjay_cloud.database.port import Database
from scrubjay_cloud.policy import BodyPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError, UnavailableError

T = TypeVar("T")
BodyRow = tuple[bytes, str | None]
"""`body` and `body_key` of a row."""
KEY_BYTES = 16  # random: no key is ever used twice


async def sent(
    database: Database,
    store: BodyStore,
    account: bytes,
    bodies: Sequence[bytes],
    *,
    now: Millis,
    entropy: Callable[[int], bytes],
    policy: BodyPolicy,
) -> list[str]:
    """Send bodies and return their keys, which a transaction must `take` before an hour is over.

    Raises UnavailableError when one of them could not be sent; the others are cleared away later.
    """
    keys = [f"{account.hex()}/{entropy(KEY_BYTES).hex()}" for _ in bodies]
    due = Millis(now + policy.loose_ms)
    await database.write(partial(announce, account=account, keys=keys, due=due))
    outcomes = await asyncio.gather(*map(store.put, keys, bodies), return_exceptions=True)
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
    return keys


async def whole(store: BodyStore | None, rows: Sequence[BodyRow]) -> tuple[bytes, ...]:
    """Return the objects of rows of `body` and `body_key`, in their order, those in the store fetched from it.

    Raises NotFoundError when the store lacks one, UnavailableError when it does not answer, or when none is set.
    """
    keys = [key for _, key in rows if key is not None]
    if not keys:
        return tuple(body for body, _ in rows)
    fetched = iter(await asyncio.gather(*map(set_store(store).get, keys)))
    return tuple(body if key is None else next(fetched) for body, key in rows)


async def with_bodies(
    store: BodyStore | None, read: Callable[[], Awaitable[tuple[T, Sequence[BodyRow]]]]
) -> tuple[T, tuple[bytes, ...]]:
    """Return what `read` read, and the objects of its rows.

    Between the two a row may have been deleted, and its body with it: then `read` reads once more. Raises CorruptError
    when the store lacks the body of a row that is there.
    """
    found, rows = await read()
    try:
        return found, await whole(store, rows)
    except NotFoundError:
        found, rows = await read()
    try:
        return found, await whole(store, rows)
    except NotFoundError as error:
        raise CorruptError(
            "the server has lost the body of an object",
            hint="its operator runs scrubjay-cloud admin restore; devices then send again what is missing",
        ) from error


def set_store(store: BodyStore | None) -> BodyStore:
    """Return a store. Raises UnavailableError where none is set and rows name one."""
    if store is None:
        raise UnavailableError(
            "this database's large objects stand in a store, and none is set",
            hint="its operator must set SCRUBJAY_CLOUD_BODIES as it was",
        )
    return store


async def refuse_without_store(database: Database, store: BodyStore | None) -> None:
    """Raise InvalidError when no store is set and rows name one: every read of them would fail."""
    if store is not None:
        return
    named = "select 1 from {} where body_key is not null limit 1"
    if await database.read(lambda tx: any(tx.row(named.format(table)) for table in ("object", "blob"))):
        raise InvalidError(
            "large objects of this database stand in a store, and none is set",
            hint="set SCRUBJAY_CLOUD_BODIES and its access key as they were",
        )
