"""The tools of MCP's reference memory server, by their names and results: a graph of entities, observations, relations.

Each entity, observation and relation is a memory of its own, found by `recall` like any other; what the importer of
such graphs stored is part of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from scrubjay import api
from scrubjay.transports.mcp.stored import with_metadata
from scrubjay.transports.mcp.tools import Answer, Arguments, Tool, ToolContext, Toolset
from scrubjay.transports.mcp.writing_tools import drafted, still_in_copies
from scrubjay_shared.errors import NotFoundError
from scrubjay_shared.records import Json, Memory, MemoryType


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """A node of the graph."""

    name: str
    entity_type: str = ""
    observations: Sequence[str] = ()


class Relation(msgspec.Struct, frozen=True):
    """An edge of the graph, in active voice."""

    from_: str = msgspec.field(name="from")
    to: str
    relation_type: str = msgspec.field(name="relationType")


class Observations(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be added to an entity."""

    entity_name: str
    contents: Sequence[str]


class Deletion(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be taken from an entity."""

    entity_name: str
    observations: Sequence[str]


@dataclass(slots=True)
class Node:
    """An entity as it is stored: the memory of itself, where there is one, and those of its observations."""

    entity: Entity
    own: list[str] = field(default_factory=list)
    observed: dict[str, list[str]] = field(default_factory=dict)

    def shown(self) -> Json:
        """Return it as the reference server does."""
        return {
            "name": self.entity.name,
            "entityType": self.entity.entity_type,
            "observations": list(self.observed),
        }


@dataclass(slots=True)
class Graph:
    """All that the caller sees: nodes by name, and relations with the memories that hold them."""

    nodes: dict[str, Node] = field(default_factory=dict)
    relations: dict[Relation, list[str]] = field(default_factory=dict)

    @classmethod
    async def read(cls, context: ToolContext) -> Graph:
        """Return the graph, the oldest first."""
        graph = cls()
        for memory in reversed([one async for one in with_metadata(context, "entity", "relation")]):
            graph._take(memory)
        return graph

    def _take(self, memory: Memory) -> None:
        about = {key: value for key, value in memory.metadata.items() if isinstance(value, str)}
        if "relation" in about:
            edge = Relation(about.get("from", ""), about.get("to", ""), about["relation"])
            self.relations.setdefault(edge, []).append(memory.id)
            return
        name = about.get("entity", "")
        node = self.nodes.setdefault(name, Node(Entity(name)))
        if "entity_type" in about:
            node.entity = Entity(name, about["entity_type"])
            node.own.append(memory.id)
        else:
            said = about.get("observation") or memory.content.removeprefix(_titled(node.entity) + ": ")
            node.observed.setdefault(said, []).append(memory.id)

    def part(self, names: Iterable[str]) -> Json:
        """Return some entities, with the relations that touch one of them."""
        chosen = {name for name in names if name in self.nodes}
        return {
            "entities": [node.shown() for name, node in self.nodes.items() if name in chosen],
            "relations": [_edge(one) for one in self.relations if one.from_ in chosen or one.to in chosen],
        }

    def whole(self) -> Json:
        """Return all of it."""
        return {
            "entities": [node.shown() for node in self.nodes.values()],
            "relations": [_edge(one) for one in self.relations],
        }


def _titled(entity: Entity) -> str:
    return f"{entity.name} ({entity.entity_type})" if entity.entity_type else entity.name


def _edge(relation: Relation) -> Json:
    return {"from": relation.from_, "to": relation.to, "relationType": relation.relation_type}


def _answer(value: Any, structured: Json) -> Answer:
    """Return a result as the reference server gives it: pretty JSON as text, and the same as a structure."""
    return Answer(text=msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), structured=structured)


async def _add(context: ToolContext, text: str, metadata: Json) -> None:
    draft = drafted(context, text, MemoryType.FACT, "")
    found: api.Entry = await context.operation("add", replace(draft, metadata=draft.metadata | metadata))
    if not found.created and not metadata.items() <= found.memory.metadata.items():
        # The words were known already: they become a part of the graph as well, where the agent may say so.
        whole = found.memory.metadata | metadata
        await context.operation("update", api.UpdateRequest(ref=found.memory.id, metadata=whole))


class CreateEntities(Arguments, frozen=True):
    """Arguments of create_entities."""

    entities: list[Entity]


async def create_entities(context: ToolContext, asked: CreateEntities) -> Answer:
    """Add entities that are not there yet, with their observations."""
    graph = await Graph.read(context)
    made = []
    for entity in asked.entities:
        if entity.name in graph.nodes:
            continue
        graph.nodes[entity.name] = Node(entity)
        about = {"entity": entity.name, "entity_type": entity.entity_type}
        await _add(context, _titled(entity), about)
        for said in dict.fromkeys(entity.observations):
            await _observe(context, entity, said)
        made.append(msgspec.to_builtins(entity))
    return _answer(made, {"entities": made})


async def _observe(context: ToolContext, entity: Entity, said: str) -> None:
    whole = said if entity.name.casefold() in said.casefold() else f"{_titled(entity)}: {said}"
    await _add(context, whole, {"entity": entity.name, "observation": said})


class CreateRelations(Arguments, frozen=True):
    """Arguments of create_relations."""

    relations: list[Relation]


async def create_relations(context: ToolContext, asked: CreateRelations) -> Answer:
    """Add relations that are not there yet."""
    graph = await Graph.read(context)
    made = []
    for one in asked.relations:
        if one in graph.relations:
            continue
        graph.relations[one] = []
        text = f"{one.from_} {one.relation_type.replace('_', ' ')} {one.to}"
        await _add(context, text, {"from": one.from_, "relation": one.relation_type, "to": one.to})
        made.append(_edge(one))
    return _answer(made, {"relations": made})


class AddObservations(Arguments, frozen=True):
    """Arguments of add_observations."""

    observations: list[Observations]


async def add_observations(context: ToolContext, asked: AddObservations) -> Answer:
    """Add to entities what they do not have yet. Raises NotFoundError for an entity that is not there."""
    graph = await Graph.read(context)
    results = []
    for one in asked.observations:
        node = graph.nodes.get(one.entity_name)
        if node is None:
            raise NotFoundError(f"Entity with name {one.entity_name[:80]} not found")
        fresh = [said for said in dict.fromkeys(one.contents) if said not in node.observed]
        for said in fresh:
            node.observed[said] = []
            await _observe(context, node.entity, said)
        results.append({"entityName": one.entity_name, "addedObservations": fresh})
    return _answer(results, {"results": results})


class DeleteEntities(Arguments, frozen=True):
    """Arguments of delete_entities."""

    entity_names: list[str] = msgspec.field(name="entityNames")


async def delete_entities(context: ToolContext, asked: DeleteEntities) -> Answer:
    """Forget entities, with their observations and relations."""
    graph = await Graph.read(context)
    names = set(asked.entity_names)
    gone = [ref for name in names & graph.nodes.keys() for ref in _refs(graph.nodes[name])]
    gone += [ref for one, refs in graph.relations.items() if {one.from_, one.to} & names for ref in refs]
    return await _forget(context, gone, "Entities")


def _refs(node: Node) -> list[str]:
    return [*node.own, *(ref for refs in node.observed.values() for ref in refs)]


async def _forget(context: ToolContext, refs: Iterable[str], what: str) -> Answer:
    done = [
        await context.operation("forget", api.ForgetRequest(ref=ref, for_good=False)) for ref in dict.fromkeys(refs)
    ]
    message = f"{what} deleted successfully{still_in_copies(done)}"
    return Answer(text=message, structured={"success": True, "message": message})


class DeleteObservations(Arguments, frozen=True):
    """Arguments of delete_observations."""

    deletions: list[Deletion]


async def delete_observations(context: ToolContext, asked: DeleteObservations) -> Answer:
    """Forget observations of entities."""
    graph = await Graph.read(context)
    nodes = ((graph.nodes.get(one.entity_name), one.observations) for one in asked.deletions)
    gone = [ref for node, said in nodes if node is not None for each in said for ref in node.observed.get(each, [])]
    return await _forget(context, gone, "Observations")


class DeleteRelations(Arguments, frozen=True):
    """Arguments of delete_relations."""

    relations: list[Relation]


async def delete_relations(context: ToolContext, asked: DeleteRelations) -> Answer:
    """Forget relations."""
    graph = await Graph.read(context)
    return await _forget(context, [ref for one in asked.relations for ref in graph.relations.get(one, [])], "Relations")


class ReadGraph(Arguments, frozen=True):
    """Arguments of read_graph: none."""


async def read_graph(context: ToolContext, _: ReadGraph) -> Answer:
    """Return the whole graph."""
    found = (await Graph.read(context)).whole()
    return _answer(found, found)


class SearchNodes(Arguments, frozen=True):
    """Arguments of search_nodes."""

    query: str


async def search_nodes(context: ToolContext, asked: SearchNodes) -> Answer:
    """Return the entities that have a text in their name, type or observations, in any case."""
    graph = await Graph.read(context)
    sought = asked.query.casefold()
    names = [
        name
        for name, node in graph.nodes.items()
        if any(sought in text.casefold() for text in (name, node.entity.entity_type, *node.observed))
    ]
    found = graph.part(names)
    return _answer(found, found)


class OpenNodes(Arguments, frozen=True):
    """Arguments of open_nodes."""

    names: list[str]


async def open_nodes(context: ToolContext, asked: OpenNodes) -> Answer:
    """Return entities by their names."""
    found = (await Graph.read(context)).part(asked.names)
    return _answer(found, found)


def _tool(
    name: str,
    description: str,
    arguments: type[Arguments],
    run: Callable[[ToolContext, Any], Awaitable[Answer]],
    *,
    reads: bool = False,
    deletes: bool = False,
) -> Tool:
    return Tool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        description=description,
        arguments=arguments,
        run=run,
        read_only=reads,
        destructive=deletes,
        idempotent=True,
    )


TOOLSET = Toolset(
    name="scrubjay-server-memory",
    instructions="A knowledge graph of entities, relations and observations that outlives this session.",
    tools=(
        _tool("create_entities", "Create new entities in the knowledge graph", CreateEntities, create_entities),
        _tool(
            "create_relations", "Create relations between entities, in active voice", CreateRelations, create_relations
        ),
        _tool("add_observations", "Add new observations to existing entities", AddObservations, add_observations),
        _tool(
            "delete_entities",
            "Delete entities with their observations and relations",
            DeleteEntities,
            delete_entities,
            deletes=True,
        ),
        _tool(
            "delete_observations",
            "Delete observations from entities",
            DeleteObservations,
            delete_observations,
            deletes=True,
        ),
        _tool("delete_relations", "Delete relations from the graph", DeleteRelations, delete_relations, deletes=True),
        _tool("read_graph", "Read the entire knowledge graph", ReadGraph, read_graph, reads=True),
        _tool("search_nodes", "Search names, types and observations for a text", SearchNodes, search_nodes, reads=True),
        _tool("open_nodes", "Open entities by their names", OpenNodes, open_nodes, reads=True),
    ),
)
