"""OpenCode's database, as the objects that `opencode export` writes. Reads through a connection, and opens none.

Tables are read by the names of their columns, for migrations add some. Version 2 of the program is said to keep
messages in tables of its own, of a form that is nowhere published: a session that has them is refused rather than
guessed at.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from scrubjay.containers.rows import columns_of, encoded, has
from scrubjay_shared.errors import InvalidError

NEEDED = {"session": {"id", "directory"}, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}}
OPTIONAL = ("parent_id", "title", "revert", "time_created")


def is_opencode(database: sqlite3.Connection) -> bool:
    """Say whether a database is one of OpenCode: it has its tables, with the columns that are read."""
    return has(database, NEEDED)


def sessions(database: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each session and what `opencode export` would write of it, oldest first.

    Raises InvalidError for a database that is not OpenCode's, or one whose messages are kept in another form.
    """
    if not is_opencode(database):
        raise InvalidError(
            "the database is not one of OpenCode, or of a version that scrubjay does not know",
            hint="opencode export SESSION > FILE writes a session that scrubjay reads",
        )
    known = [name for name in OPTIONAL if name in columns_of(database, "session")]
    newer = columns_of(database, "session_message")
    for session_id, directory, *values in database.execute(
        f"select id, directory, {', '.join(known) or 'id'} from session order by id"
    ).fetchall():
        more = dict(zip(known, values, strict=False))
        messages = list(_messages(database, str(session_id)))
        kept_elsewhere = (
            newer
            and database.execute("select count(*) from session_message where session_id = ?", (session_id,)).fetchone()
        )
        if not messages and kept_elsewhere and kept_elsewhere[0]:
            raise InvalidError(
                "the database holds sessions of OpenCode 2, whose form scrubjay does not know",
                hint="opencode export SESSION > FILE writes a session that scrubjay reads",
            )
        info: dict[str, Any] = {"id": session_id, "directory": directory, "title": more.get("title")}
        if more.get("parent_id"):
            info["parentID"] = more["parent_id"]
        if revert := _object(more.get("revert")):
            info["revert"] = revert
        whole = {"info": info, "messages": messages}
        yield str(session_id), encoded(whole)


def _messages(database: sqlite3.Connection, session: str) -> Iterator[dict[str, Any]]:
    parts: dict[str, list[dict[str, Any]]] = {}
    for message, part, data in database.execute(
        "select message_id, id, data from part where message_id in (select id from message where session_id = ?)"
        " order by message_id, id",
        (session,),
    ):
        parts.setdefault(str(message), []).append({**_object(data), "id": part})
    for message, data in database.execute("select id, data from message where session_id = ? order by id", (session,)):
        yield {"info": {**_object(data), "id": message}, "parts": parts.get(str(message), [])}


def _object(data: Any) -> dict[str, Any]:
    try:
        found = json.loads(data) if isinstance(data, str | bytes) else data
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
