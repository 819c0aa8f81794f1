"""What no row names any more is deleted from the store."""

from __future__ import annotations

import logging
from functools import partial

from scrubjay_cloud.bodies.loose import forget, mark
from scrubjay_cloud.bodies.store import BodyStore
from scrubjay_cloud.database.port import Database
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import UnavailableError

log = logging.getLogger(__name__)


async def collect(database: Database, store: BodyStore, now: Millis, *, rows: int) -> int:
    """Delete every body that is due, `rows` at a time; return how many. Raises UnavailableError; then the rest waits.

    What was marked and not deleted, because the store or this process went away, is deleted the next time: deleting
    twice does no harm, and no row takes a marked key.
    """
    total = 0
    while marked := await database.write(partial(mark, now=now, count=rows)):
        await store.delete([key for _, key in marked])
        await database.write(partial(forget, marked=marked))
        total += len(marked)
    return total


async def collect_now(database: Database, store: BodyStore | None, now: Millis, *, rows: int) -> None:
    """Delete what is due as part of a request that deleted its rows; what fails is left to the job."""
    if store is None:
        return
    try:
        await collect(database, store, now, rows=rows)
    except UnavailableError as error:
        log.warning("left bodies to the job code=%s why=%s", error.code, error.message)
