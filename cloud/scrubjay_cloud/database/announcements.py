"""PostgreSQL's LISTEN, on a connection of its own: what other processes announce.

A session that listens must stay the same session, which a pooler in transaction mode does not keep: one that stands
between is found out, and refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import psycopg

from scrubjay_shared.errors import ConflictError, UnavailableError

CHANNEL = "scrubjay_news"
PAYLOAD_BYTES = 7_900  # of one announcement: PostgreSQL refuses 8,000
ALIVE_S = 30.0  # of silence after which the connection is asked whether it still stands
ANSWER_S = 10  # it answers in a millisecond, or it is gone
LISTENING = ""
"""What `heard` yields first. No announcement is empty."""


class PostgresChannel:
    """LISTEN and NOTIFY of one database: `address` must be PostgreSQL's own, `announce` may go through a pooler."""

    def __init__(self, address: str, announce: Callable[[str], Awaitable[None]]) -> None:
        self._announce = announce
        self._address = address
        self._open: set[psycopg.AsyncConnection[Any]] = set()

    async def announce(self, payload: str) -> None:
        """Notify; what is lost on the way to PostgreSQL is told again."""
        await self._announce(payload)

    async def heard(self) -> AsyncGenerator[str]:
        """Listen on a new connection, which nothing else is done with."""
        try:
            connection: psycopg.AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
                self._address, autocommit=True, connect_timeout=ANSWER_S, application_name="scrubjay-cloud-listen"
            )
        except psycopg.Error as error:
            raise _lost() from error
        self._open.add(connection)
        try:
            if await _is_pooled(connection):
                raise ConflictError(
                    "a pooler stands between this service and PostgreSQL, and LISTEN does not pass it",
                    hint="set SCRUBJAY_CLOUD_LISTEN_URL to PostgreSQL's own address",
                )
            await connection.execute(f"listen {CHANNEL}")
            yield LISTENING
            while True:
                async for told in connection.notifies(timeout=ALIVE_S):
                    yield told.payload
                await asyncio.wait_for(connection.execute("select 1"), ANSWER_S)
        except (psycopg.Error, TimeoutError) as error:
            raise _lost() from error
        finally:
            self._open.discard(connection)
            await connection.close()

    async def close(self) -> None:
        """Close what is still open."""
        for connection in tuple(self._open):
            await connection.close()


def notify(payload: str, connection: psycopg.Connection[Any]) -> None:
    """Announce in a transaction of its own, which holds PostgreSQL's lock for notifying as shortly as can be."""
    connection.execute("select set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)", (CHANNEL, payload))


async def _is_pooled(connection: psycopg.AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("select pg_backend_pid()")).fetchone()
    return row is None or row[0] != connection.info.backend_pid


def _lost() -> UnavailableError:
    return UnavailableError(
        "the connection on which other instances are heard was lost", hint="it is tried again; nothing is lost"
    )
