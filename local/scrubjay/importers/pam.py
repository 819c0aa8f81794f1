"""Portable AI Memory 1.0 (portable-ai-memory.org): memories as one JSON document.

A memory is known by its platform and its id there, so that a later export of the same store updates it. What the person
retracted there is not read. Conversations and embeddings are files of their own, and are not read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from scrubjay.importers.notes import imported, short_name, source_key
from scrubjay.importers.parsing import Parsed, SourceFormat, clean, counted, first, millis
from scrubjay.importers.talk import listed, part_of, whole_json
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Json, Kind, MemoryDraft, MemoryType

SCHEMA = "portable-ai-memory"
TYPES = {
    "preference": MemoryType.PREFERENCE,
    "instruction": MemoryType.PREFERENCE,
    "goal": MemoryType.GOAL,
    "relationship": MemoryType.SOCIAL,
    "identity": MemoryType.SELF,
    "fact": MemoryType.FACT,
}
PUT_AWAY = ("retracted",)
"""States of memories that are not read: what was taken back there is not to be known here."""


def parse_pam(name: str, data: bytes, *, project: str | None) -> Parsed:
    """Read a document. Raises InvalidError for another one, or another version; damage within it is counted."""
    whole = whole_json(name, data)
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA or not isinstance(whole.get("memories"), list):
        raise InvalidError(
            f"{name} is not a memory store of Portable AI Memory", hint="the file to import is memory-store.json"
        )
    version = clean(whole.get("schema_version"))
    if version.partition(".")[0] != "1":
        raise InvalidError(
            f"{name} is of version {version[:20]!r} of Portable AI Memory; scrubjay reads version 1",
            hint="export it as version 1",
        )
    skipped: Counter[str] = Counter()
    memories: dict[str, MemoryDraft] = {}
    for found in whole["memories"]:
        if not isinstance(found, dict):
            skipped["not_object"] += 1
        elif clean(found.get("status")) in PUT_AWAY:
            skipped["deleted"] += 1
        elif not clean(found.get("content")):
            skipped["empty"] += 1
        else:
            draft = memory(found, project)
            skipped["duplicate"] += draft.metadata["source_key"] in memories
            memories[draft.metadata["source_key"]] = draft
    return Parsed(format=SourceFormat.PAM, memories=tuple(memories.values()), skipped=counted(skipped))


def memory(found: Json, project: str | None) -> MemoryDraft:
    """Return a memory. What scrubjay wrote beside it is taken where it is scrubjay's own export."""
    own = part_of(part_of(found, "metadata"), "scrubjay")
    when, origin = part_of(found, "temporal"), part_of(found, "provenance")
    owner = project or clean(own.get("resource_id")) or None
    platform, key = clean(origin.get("platform")), clean(found.get("id")) or clean(found.get("content"))
    called = clean(own.get("name"))
    draft = imported(
        clean(found.get("content")),
        name=short_name(called) if called else None,
        aliases=tuple(short_name(alias) for each in listed(own.get("aliases") or []) if (alias := clean(each))),
        kind=Kind.NOTE if own.get("kind") == Kind.NOTE.value else Kind.STORED,
        project=owner,
        created_at=millis(when.get("created_at")),
        metadata={
            "source_key": source_key(SourceFormat.PAM, owner, "", platform, key),
            "source": platform or SourceFormat.PAM.value,
            "tags": [tag for each in listed(found.get("tags") or []) if (tag := clean(each))],
            "status": clean(found.get("status")) if clean(found.get("status")) != "active" else "",
        },
    )
    return with_times(draft, found, when, own)


def with_times(draft: MemoryDraft, found: Json, when: Json, own: Json) -> MemoryDraft:
    """Return a memory with its type, its topic, and from when until when it held."""
    return replace(
        draft,
        type=type_of(own.get("type"), first(found, "type")),
        topic=clean(own.get("topic")) or None,
        valid_from=millis(when.get("valid_from")),
        valid_to=millis(when.get("valid_until")),
    )


def type_of(own: Any, pam: str) -> MemoryType:
    """Return our word for a type."""
    return MemoryType(own) if own in [each.value for each in MemoryType] else TYPES.get(pam, MemoryType.FACT)
