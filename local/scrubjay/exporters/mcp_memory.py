"""The MCP reference memory server's graph: entities with observations, and relations, a JSON object a line.

A memory of a name is an entity, and its words the observation. What has none is observed of what it is about: its
topic, its project, or the person. Notes, observations and relations that were imported from such a graph become again
what they were. A graph knows no time: only what holds now is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scrubjay.importers.export_format import MemoryRecord
from scrubjay_shared.records import Json, Memory

PERSON = "user"
"""The entity of what is known of the person."""


@dataclass(slots=True)
class Entity:
    """An entity while the graph is made."""

    kind: str = ""
    observations: dict[str, None] = field(default_factory=dict)


def lines(records: Iterable[MemoryRecord]) -> Iterator[bytes]:
    """Yield the lines of the graph: entities first, then relations."""
    entities: dict[str, Entity] = {}
    relations: dict[tuple[str, str, str], None] = {}
    for record in records:
        memory = record.memory
        if memory.superseded_by is not None or memory.archived_at is not None or memory.valid_to is not None:
            continue
        about = memory.metadata
        if all(isinstance(about.get(key), str) for key in ("from", "relation", "to")):
            relations[about["from"], about["relation"], about["to"]] = None
            continue
        name, kind, said = placed(memory)
        entity = entities.setdefault(name, Entity())
        entity.kind = entity.kind or kind
        if said:
            entity.observations[said] = None
    for name, entity in entities.items():
        observations = list(entity.observations)
        yield _line({"type": "entity", "name": name, "entityType": entity.kind, "observations": observations})
    for source, relation, target in relations:
        yield _line({"type": "relation", "from": source, "to": target, "relationType": relation})


def placed(memory: Memory) -> tuple[str, str, str]:
    """Return what a memory is observed of, of what kind that is, and the words."""
    about = memory.metadata
    entity, kind = about.get("entity"), about.get("entity_type")
    if isinstance(entity, str) and entity:
        titled = f"{entity} ({kind})" if isinstance(kind, str) and kind else entity
        if memory.content == titled:
            return entity, str(kind or ""), ""
        said = memory.content
        if said.startswith(f"{entity} (") and "): " in said:
            said = said.partition("): ")[2]
        return entity, "", said.removeprefix(f"{entity}: ")
    if memory.name:
        return memory.name, memory.type.value, memory.content
    if memory.topic:
        return memory.topic, "topic", memory.content
    return (memory.resource_id, "project", memory.content) if memory.resource_id else (PERSON, "person", memory.content)


def _line(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
