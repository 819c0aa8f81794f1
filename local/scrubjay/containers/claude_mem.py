"""claude-mem's database, as parts of what its export writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from scrubjay.containers.rows import encoded, has, objects

NEEDED = {
    "sdk_sessions": {"content_session_id", "project"},
    "observations": {"memory_session_id", "project", "created_at_epoch"},
}
TABLES = (
    ("user_prompts", "prompts", {"content_session_id", "prompt_text"}),
    ("observations", "observations", {"memory_session_id"}),
    ("session_summaries", "summaries", {"memory_session_id"}),
)


def is_claude_mem(database: sqlite3.Connection) -> bool:
    """Say whether a database is claude-mem's."""
    return has(database, NEEDED)


def parts(database: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield the prompts, observations and summaries, some at a time; prompts with the sessions they belong to."""
    sessions = {
        each["content_session_id"]: {
            key: each.get(key) for key in ("content_session_id", "memory_session_id", "project", "platform_source")
        }
        for some in objects(database, "sdk_sessions", "id")
        for each in some
    }
    for table, called, needed in TABLES:
        if not has(database, {table: needed}):
            continue
        for number, some in enumerate(objects(database, table, "id"), start=1):
            about = {each.get("content_session_id") for each in some}
            whole = {called: some, "sessions": [sessions[key] for key in sorted(about & sessions.keys(), key=str)]}
            yield f"{called}/{number}", encoded(whole)
