"""Portable AI Memory 1.0: one JSON document, with a checksum over its memories (RFC 8785 and SHA-256).

PAM knows types, times and confidence of a memory, and where it came from. What scrubjay knows besides stands in each
memory's `metadata.scrubjay`, which the specification leaves to whoever writes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from scrubjay.importers.export_format import MemoryRecord
from scrubjay.version import __version__
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Json, Layer, MemoryType, Scope, Trust

SCHEMA = "portable-ai-memory"
VERSION = "1.0"
TYPES = {
    MemoryType.PREFERENCE: "preference",
    MemoryType.GOAL: "goal",
    MemoryType.SOCIAL: "relationship",
    MemoryType.SELF: "identity",
    MemoryType.DAILY: "context",
    MemoryType.HOWTO: "instruction",
}
"""PAM's types; the others of ours are facts."""

METHODS = {Trust.USER: "explicit_user_input", Trust.IMPORT: "api_export"}
SPACES = re.compile(" {2,}")
TAG = re.compile(r"[^a-z0-9_-]+")
DIGITS = 6
"""Decimals of a share: Python and ECMAScript write such numbers alike, as the checksum needs."""


def document(records: Iterable[MemoryRecord], *, owner: str, now: Millis) -> bytes:
    """Return all memories as a PAM document. `owner` is an id of whose they are."""
    kept = list(records)
    known = {record.memory.id for record in kept}
    memories = sorted((memory(record, known) for record in kept), key=lambda each: str(each["id"]))
    relations = [
        {
            "id": f"{each['temporal']['superseded_by']}-supersedes-{each['id']}",
            "from": each["temporal"]["superseded_by"],
            "to": each["id"],
            "type": "supersedes",
            "created_at": each["temporal"]["updated_at"],
        }
        for each in memories
        if each["temporal"]["superseded_by"]
    ]
    whole: Json = {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "spec_uri": "https://portable-ai-memory.org/spec/v1.0",
        "exported_by": f"scrubjay/{__version__}",
        "export_date": iso(now),
        "owner": {"id": owner},
        "memories": memories,
        "relations": relations,
        "integrity": {
            "canonicalization": "RFC8785",
            "checksum": checksum(memories),
            "total_memories": len(memories),
        },
        "export_type": "full",
    }
    return json.dumps(whole, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


def memory(record: MemoryRecord, known: set[str]) -> Json:
    """Return one memory. `known` are the ids in the document: what superseded it may have been forgotten."""
    found = record.memory
    above = found.superseded_by if found.superseded_by in known else None
    status = "superseded" if found.superseded_by else "archived" if found.archived_at is not None else "active"
    return {
        "id": found.id,
        "type": "project" if found.scope is Scope.PROJECT and found.type is MemoryType.FACT else pam_type(found.type),
        "custom_type": None,
        "status": status,
        "content": found.content,
        "content_hash": content_hash(found.content),
        "summary": found.name,
        "tags": [tag] if found.topic and (tag := TAG.sub("-", found.topic.casefold()).strip("-_")) else [],
        "confidence": {"initial": share(found.confidence), "current": share(found.confidence), "decay_model": None},
        "temporal": {
            "created_at": iso(found.created_at),
            "updated_at": iso(found.updated_at),
            "valid_from": iso(found.valid_from),
            "valid_until": iso(found.valid_to),
            "superseded_by": above,
        },
        "provenance": {
            "platform": "scrubjay",
            "conversation_ref": None,
            "message_ref": None,
            "extraction_method": METHODS.get(found.trust),
            "extractor": record.grips[0].source if record.grips else None,
        },
        "access": {"visibility": "private", "exportable": True, "shared_with": []},
        "embedding_ref": None,
        "metadata": {
            "scrubjay": {
                "name": found.name,
                "aliases": list(record.aliases),
                "kind": found.kind.value,
                "type": found.type.value,
                "scope": found.scope.value,
                "resource_id": found.resource_id,
                "layer": found.layer.value if found.layer is not Layer.SURFACED else Layer.ARCHIVE.value,
                "topic": found.topic,
                "trust": found.trust.value,
                "salience": share(found.salience),
            }
        },
    }


def pam_type(found: MemoryType) -> str:
    """Return PAM's word for a type."""
    return TYPES.get(found, "fact")


def content_hash(text: str) -> str:
    """Return the hash of a text by which PAM tells that two memories say the same (its section 6)."""
    plain = SPACES.sub(" ", unicodedata.normalize("NFC", text.strip().lower()))
    return f"sha256:{hashlib.sha256(plain.encode('utf-8', 'replace')).hexdigest()}"


def checksum(memories: list[Json]) -> str:
    """Return the checksum of memories that are sorted by id (its section 15)."""
    return f"sha256:{hashlib.sha256(canonical(memories)).hexdigest()}"


def canonical(value: Any) -> bytes:
    """Return JSON as RFC 8785 writes it, of values whose keys are ASCII and whose numbers come from `share`."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")


def share(number: float) -> float | int:
    """Return a number from 0 to 1 with few decimals; a whole one as an integer, as ECMAScript writes it."""
    short = round(number, DIGITS)
    if short.is_integer():
        return int(short)
    return short if short >= 10**-4 else 0


def iso(at: Millis | None) -> str | None:
    """Return a time as PAM has it."""
    if at is None:
        return None
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
