"""OpenCode's database, as the objects that `opencode export` writes. Reads through a connection, and opens none.

Tables are read by the names of their columns, for migrations add some. Version 1 keeps `session`, `message` and `part`;
version 2 `session_v2` and `session_message`, with a message's parts in its `data`, beside the tables of version 1 as
they were when it took them over, under the same ids. Its test versions used `session` for it. What a later version
keeps elsewhere is refused rather than passed over.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from scrubjay.containers.rows import columns_of, encoded, has
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Json

SESSION = {"id", "directory"}
VERSION_1 = {"session": SESSION, "message": {"id", "session_id", "data"}, "part": {"id", "message_id", "data"}}
VERSION_2 = {"session_message": {"id", "session_id", "type", "data"}}
OPTIONAL = ("parent_id", "title", "revert", "time_updated")
LATER = re.compile(r"session_v(\d+)")
TOLD = ("user", "assistant", "shell", "compaction")
"""Messages of version 2 that tell something; version 1 had begun to keep others in that table."""

HINT = "opencode export SESSION > FILE writes a session that scrubjay reads; a newer scrubjay may know the database"
UNAVAILABLE = "[Attachment unavailable"
"""What version 2 wrote in place of a file when it took over a message."""


def is_opencode(database: sqlite3.Connection) -> bool:
    """Say whether a database is one of OpenCode, of whatever version."""
    return has(database, VERSION_1) or bool(_later(database)) or has(database, {"session": SESSION} | VERSION_2)


def sessions(database: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield the id of each session and what `opencode export` would write of it, oldest first, each once.

    Raises InvalidError for a database that is not OpenCode's, and behind the last session that can be read where there
    are others, kept in another form.
    """
    if not is_opencode(database):
        raise InvalidError(
            "the database is not one of OpenCode, or of a version that scrubjay does not know", hint=HINT
        )
    first, second = (
        _rows(database, table) if has(database, {table: SESSION}) else {} for table in ("session", "session_v2")
    )
    is_first, is_second = has(database, VERSION_1), has(database, VERSION_2)
    for session in sorted({*first, *second}):
        old = list(_messages(database, session)) if is_first and session in first else []
        new = list(_messages_2(database, session)) if is_second else []
        if not any(message["type"] in TOLD for message in new):
            new = []
        row = second.get(session) or first[session]
        if old and (not new or session not in second or _updated(first[session]) > _updated(row)):
            row, messages = first[session], old
        else:
            messages = _under_ids_of_parts(new, old)
        yield session, encoded({"info": _info(session, row), "messages": messages})
    _require_no_others(database, {*first, *second}, is_second=is_second)


def _require_no_others(database: sqlite3.Connection, known: set[str], *, is_second: bool) -> None:
    """Raise InvalidError for sessions that are kept in a form that is not known."""
    unknown = [table for table in _later(database) if table != "session_v2"]
    if not is_second:
        unknown += [table for table in ("session_v2", "session_message") if columns_of(database, table)]
    elif not has(database, {"session_v2": SESSION}):
        unknown += [table for table in ("session_v2",) if columns_of(database, table)]
    held = {table for table in unknown if database.execute(f"select exists (select 1 from {table})").fetchone()[0]}
    if held:
        raise InvalidError(
            f"the database holds sessions of OpenCode 2 or later in a form that scrubjay does not know"
            f" (in {' and '.join(sorted(held))}); {len(known)} others could be read",
            hint=HINT,
        )


def _later(database: sqlite3.Connection) -> list[str]:
    names = [str(row[0]) for row in database.execute("select name from sqlite_master where type = 'table'")]
    return [name for name in names if LATER.fullmatch(name)]


def _rows(database: sqlite3.Connection, table: str) -> dict[str, Json]:
    known = ["id", "directory", *(name for name in OPTIONAL if name in columns_of(database, table))]
    found = database.execute(f"select {', '.join(known)} from {table}").fetchall()
    return {str(row[0]): dict(zip(known, row, strict=True)) for row in found}


def _updated(row: Json) -> float:
    updated = row.get("time_updated")
    return updated if isinstance(updated, int | float) else 0


def _info(session: str, row: Json) -> Json:
    info: Json = {"id": session, "directory": row["directory"], "title": row.get("title")}
    if row.get("parent_id"):
        info["parentID"] = row["parent_id"]
    if revert := _object(row.get("revert")):
        info["revert"] = revert
    return info


def _messages(database: sqlite3.Connection, session: str) -> Iterator[Json]:
    parts: dict[str, list[Json]] = {}
    for message, part, data in database.execute(
        "select message_id, id, data from part where message_id in (select id from message where session_id = ?)"
        " order by message_id, id",
        (session,),
    ):
        parts.setdefault(str(message), []).append({**_object(data), "id": part})
    for message, data in database.execute("select id, data from message where session_id = ? order by id", (session,)):
        yield {"info": {**_object(data), "id": message}, "parts": parts.get(str(message), [])}


def _messages_2(database: sqlite3.Connection, session: str) -> Iterator[Json]:
    known = columns_of(database, "session_message")
    order = ", ".join(name for name in ("seq", "time_created", "id") if name in known)
    created = "time_created" if "time_created" in known else "null"
    for message, kind, data, when in database.execute(
        f"select id, type, data, {created} from session_message where session_id = ? order by {order}", (session,)
    ):
        yield {"time": {"created": when}, **_object(data), "id": message, "type": str(kind)}


def _under_ids_of_parts(new: list[Json], old: list[Json]) -> list[Json]:
    """Return messages of version 2, those that it took over as they were: by the ids of their parts they are known."""
    before = {message["info"]["id"]: message for message in old}
    return [
        earlier if (earlier := before.get(message["id"])) and _says_the_same(earlier, message) else message
        for message in new
    ]


def _says_the_same(old: Json, new: Json) -> bool:
    said = [str(part.get("text")) for part in old["parts"] if part.get("type") == "text" and not part.get("ignored")]
    if new["type"] == "user":
        left = str(new.get("text") or "")
        for text in said:
            left = left.replace(text, "", 1)
        return all(line.startswith(UNAVAILABLE) for line in left.split("\n") if line.strip())
    if new["type"] != "assistant":
        return False
    content = [part for part in new.get("content") or [] if isinstance(part, dict)]
    calls = [part.get("callID") for part in old["parts"] if part.get("type") == "tool"]
    return said == [part.get("text") for part in content if part.get("type") == "text"] and calls == [
        part.get("id") for part in content if part.get("type") == "tool"
    ]


def _object(data: Any) -> Json:
    try:
        found = json.loads(data) if isinstance(data, str | bytes) else data
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
