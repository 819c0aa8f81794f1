"""Digests of what the tables say, to compare two stores, or one before and after a rebuild."""

from __future__ import annotations

import hashlib
import logging

import msgspec

from scrubjay.store import tables
from scrubjay.store.sqlite import Fetch
from scrubjay_io.sqlite import driver

log = logging.getLogger(__name__)


class DigestQueries:
    """Digests of everything that is derived."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def view(self) -> str:
        """Return a digest (hex) of everything that is derived: what `state` reads, and the full text.

        Of tables that cannot be read, which a rebuild makes again, it is "unreadable".
        """
        try:
            return self._digest(
                *tables.SHOWN,
                "select m.id, f.tokens from memory_fts f join memory m on m.n = f.rowid order by m.id",
            )
        except driver.DatabaseError as error:
            log.warning("before the rebuild: %s", type(error).__name__)
            return "unreadable"

    def state(self) -> str:
        """Return a digest (hex) of what every device shows that holds the same ops."""
        return self._digest(*tables.SHOWN)

    def held(self, after: str, limit: int) -> tuple[bytes, str | None]:
        """Return the digest of a page of what holds, after an id, and the id to read on after; None at the end.

        That is each memory that is not put away, with its names, but for when it was written and how often recalled.
        """
        found = self._fetch(
            "select id, content, kind, type, name, scope, resource_id, layer, salience, confidence, topic, trust,"
            " valid_from, valid_to, superseded_by, created_at, metadata, review,"
            " (select group_concat(name, char(10)) from (select name from name where memory_id = m.id order by name))"
            " from memory m where archived_at is null and id > ? order by id limit ?",
            (after, limit),
        )
        page = hashlib.sha256()
        for row in found:
            page.update(msgspec.msgpack.encode(row))
        return page.digest(), str(found[-1][0]) if len(found) == limit else None

    def _digest(self, *queries: str) -> str:
        total = hashlib.sha256()
        for sql in queries:
            for row in self._fetch(sql):
                total.update(msgspec.msgpack.encode(row))
        return total.hexdigest()
