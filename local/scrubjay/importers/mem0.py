"""mem0: what `get_all` and `search` return, and the history that its open-source version keeps.

`{"results": [{"id", "memory", "created_at", …}]}` or the bare list; of the history, the last word on each memory. The
`relations` of its graph were drawn from the memories, and are counted.
"""

from __future__ import annotations

from collections import Counter

from scrubjay.importers.notes import imported, source_key
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis
from scrubjay.importers.talk import listed, whole_json
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Json, MemoryDraft

OWNERS = ("user_id", "agent_id", "run_id", "app_id")


def parse_mem0(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read memories. Raises InvalidError for what holds none; what cannot be read is counted in `skipped`."""
    whole = whole_json(name, data)
    found = (
        next((whole[key] for key in ("results", "memories", "history") if key in whole), whole)
        if isinstance(whole, dict)
        else whole
    )
    relations = whole.get("relations") if isinstance(whole, dict) else None
    skipped: Counter[str] = Counter(relation=len(relations) if isinstance(relations, list) else 0)
    kept: dict[str, Json] = {}
    for each in listed(found):
        if not isinstance(each, dict):
            skipped["not_object"] += 1
        elif "new_memory" in each:
            follow(each, kept, skipped)
        elif text := first(each, "memory", "data", "text"):
            kept[clean(each.get("id")) or text] = each
        else:
            skipped["unknown"] += 1
    if not kept and not skipped["deleted"] and (found or not isinstance(found, list)):
        raise InvalidError(f"{name} holds no memories of mem0", hint="write what get_all() returns to a file as JSON")
    memories = tuple(memory(key, each, project) for key, each in kept.items())
    return Parsed(format=SourceFormat.MEM0, memories=memories, skipped=counted(skipped))


def follow(row: Json, kept: dict[str, Json], skipped: Counter[str]) -> None:
    """Take in one row of the history, which is in order of time: the last one on a memory counts."""
    key, text = clean(row.get("memory_id")), clean(row.get("new_memory"))
    earlier = kept.pop(key, None)
    if clean(row.get("event")) == "DELETE" or row.get("is_deleted") or not text:
        skipped["deleted"] += 1
        return
    skipped["duplicate"] += earlier is not None
    created = earlier["created_at"] if earlier else row.get("created_at")
    kept[key] = {"id": key, "memory": text, "created_at": created, "actor_id": row.get("actor_id")}


def memory(key: str, found: Json, project: str | None) -> MemoryDraft:
    """Return a memory. Its key is mem0's id, which stays when the text is edited."""
    about: Json = {name: clean(found.get(name)) for name in (*OWNERS, "actor_id")}
    more = found.get("metadata")
    return imported(
        first(found, "memory", "data", "text"),
        project=project,
        created_at=millis(found.get("created_at")),
        metadata={
            "source_key": source_key(SourceFormat.MEM0, project, "", key),
            "source": SourceFormat.MEM0.value,
            "mem0": {name: value for name, value in about.items() if value},
            "about": more if isinstance(more, dict) else {},
        },
    )
