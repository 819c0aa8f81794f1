"""What stands between this service and PostgreSQL: nothing, or a pooler, and what that lets pass."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import ExecStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way to PostgreSQL. `pooled`: each transaction may run in another session.

    `prepares`: statements may be prepared. Else a name might stand for what another client prepared under it.
    """

    pooled: bool
    prepares: bool


def way(connection: psycopg.Connection[Any]) -> Way:
    """Return what the way of a connection in autocommit is."""
    row = connection.execute("select pg_backend_pid()").fetchone()
    if row is not None and row[0] == connection.info.backend_pid:
        return Way(pooled=False, prepares=True)
    return Way(pooled=True, prepares=_is_kept_track_of(connection))


def _is_kept_track_of(connection: psycopg.Connection[Any]) -> bool:
    """Say whether the pooler keeps track of prepared statements: then it gives them names of its own."""
    name = f"scrubjay_{secrets.token_hex(8)}"
    with connection.transaction(force_rollback=True):
        if connection.pgconn.prepare(name.encode(), b"select 1").status != ExecStatus.COMMAND_OK:
            return False
        ours = connection.execute("select 1 from pg_prepared_statements where name = %s", (name,)).fetchone()
        if ours is not None:
            connection.execute(f"deallocate {name}")
    return ours is None
