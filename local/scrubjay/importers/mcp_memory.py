"""The MCP reference memory server's graph: entities, observations and relations, as JSON lines, an object or a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrubjay import redaction
from scrubjay.importers.notes import imported, short_name, source_key
from scrubjay.importers.parsing import (
    Parsed,
    SourceFormat,
    clean,
    counted,
    first,
    json_objects,
    json_value,
    millis,
    path_of,
)
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Json, Kind, MemoryDraft

SAYS = ("name", "entityName", "entity_name", "id")
TYPES = ("entityType", "entity_type")
FROM = ("from", "from_id", "fromId", "source")
TO = ("to", "to_id", "toId", "target")
RELATION = ("relationType", "relation_type", "relation")
TIMES = ("created_at", "createdAt", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Which graph it is: whom its notes are for, its file's name, and where that lies, None when not known."""

    project: str | None
    source: str
    place: str | None

    def about(self, *parts: str, heading: str = "", **more: str) -> Json:
        """Return the metadata of what stands at a place of the graph."""
        key = source_key(SourceFormat.MCP_MEMORY, self.project, self.place or self.source, *parts)
        return {"source_key": key, "source": self.source, "path": self.place, "heading": heading, **more}


def parse_mcp_memory(name: str, data: bytes, *, project: str | None, place: str | None = None) -> Parsed:
    """Read a memory graph. An entity gives a note under its name; each observation and relation a fact of its own.

    A note says only what the entity is: an observation lives in one place, so that forgetting it forgets it.
    Broken lines are counted in `skipped`.

    Secrets are taken out here, before words are put together and names are cut: beside other words, a line of
    PostgreSQL's password file is no longer recognised, and half a key is not recognised as a key.
    """
    skipped: Counter[str] = Counter()
    entities: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    for record in records(data, skipped):
        try:
            found = redaction.clean_json(record).value
        except InvalidError:
            skipped["nested"] += 1
            continue
        if found.get("type") == "relation" or (first(found, *FROM) and first(found, *TO)):
            relations.append(found)
        elif found.get("type") == "entity" or "observations" in found or first(found, *TYPES):
            entities.append(found)
        else:
            skipped["unknown"] += 1
    names = {clean(found.get("id")): first(found, *SAYS) for found in entities if clean(found.get("id"))}
    memories: list[MemoryDraft] = []
    seen: set[str] = set()
    graph = Graph(project=project, source=path_of(name).as_posix(), place=place)
    for draft in (*entity_notes(entities, skipped, graph), *relation_facts(relations, names, skipped, graph)):
        key = draft.metadata["source_key"]
        if key in seen:
            skipped["duplicate"] += 1
            continue
        seen.add(key)
        memories.append(draft)
    return Parsed(format=SourceFormat.MCP_MEMORY, memories=tuple(memories), skipped=counted(skipped))


def records(data: bytes, skipped: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield entities and relations: the lines of the file, a list, or those of an object (what `read_graph` prints)."""
    try:
        whole = json_value(data)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and ("entities" in whole or "relations" in whole):
        for key, kind in (("entities", "entity"), ("relations", "relation")):
            listed = whole.get(key)
            for found in listed if isinstance(listed, list) else []:
                if isinstance(found, dict):
                    yield {**found, "type": kind}
                else:
                    skipped["not_object"] += 1
    elif isinstance(whole, list):
        skipped["not_object"] += sum(not isinstance(found, dict) for found in whole)
        yield from (found for found in whole if isinstance(found, dict))
    else:
        yield from json_objects(data, skipped)


def entity_notes(entities: list[dict[str, Any]], skipped: Counter[str], graph: Graph) -> Iterator[MemoryDraft]:
    """Yield, for each entity, its note and the facts of its observations."""
    for found in entities:
        name = first(found, *SAYS)
        if not name:
            skipped["no_name"] += 1
            continue
        kind = first(found, *TYPES)
        titled = f"{name} ({kind})" if kind else name
        created = next((when for key in TIMES if (when := millis(found.get(key))) is not None), None)
        yield imported(
            titled,
            name=short_name(name),
            kind=Kind.NOTE,
            project=graph.project,
            created_at=created,
            metadata=graph.about("entity", name, heading=name, entity=name, entity_type=kind),
        )
        listed = found.get("observations")
        for observation in listed if isinstance(listed, list) else [listed]:
            said = observation_text(observation)
            if not said:
                skipped["empty"] += observation is not None
                continue
            yield imported(
                said if name.casefold() in said.casefold() else f"{titled}: {said}",
                project=graph.project,
                created_at=created,
                metadata=graph.about("observation", name, said, heading=name, entity=name),
            )


def observation_text(observation: Any) -> str:
    """Return an observation's words: a string, or an object that holds them."""
    return first(observation, "content", "text", "observation") if isinstance(observation, dict) else clean(observation)


def relation_facts(
    relations: list[dict[str, Any]], names: dict[str, str], skipped: Counter[str], graph: Graph
) -> Iterator[MemoryDraft]:
    """Yield each relation as a sentence of its own: "Ada works at Acme"."""
    for found in relations:
        source, target, relation = first(found, *FROM), first(found, *TO), first(found, *RELATION)
        if not (source and target and relation):
            skipped["no_name"] += 1
            continue
        source, target = names.get(source, source), names.get(target, target)
        yield imported(
            f"{source} {relation.replace('_', ' ')} {target}",
            project=graph.project,
            metadata={
                **graph.about("relation", source, relation, target),
                "from": source,
                "relation": relation,
                "to": target,
            },
        )
