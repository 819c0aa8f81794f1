"""What an agent reads, by every operation and tool and over every transport: its own found, another's absent, the shared found.

Everything in the store is named after whose it is: "own-…" of the agent's project, "other-…" of another one, "shared-…"
of the person or of no project. So an answer's text says what it lets through. A new operation or tool must be given a
row here: the tables are compared with the registries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec
import pytest

from scrubjay import api
from scrubjay import settings as options
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.api.operations import OPERATIONS
from scrubjay.daemon import control
from scrubjay.lifecycle.consolidation import MAY_SUPERSEDE
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.transports import local
from scrubjay.transports.mcp.toolsets import TOOLSETS
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, NotFoundError
from scrubjay_shared.records import EventDraft, EventType, Kind, Layer, MemoryDraft, Scope, Trust

AGENT = Caller(principal=Principal.AGENT, agent="own-agent", project="own-project")
WHOSE = ("own", "other", "shared")
NOTHING = api.Nothing()
SPOKEN = Millis(1_760_000_000_000)


@dataclass(frozen=True)
class World:
    """The ids of what was put into a store, by whose it is."""

    memories: dict[str, str]
    events: dict[str, str]


def planted(call: Callable[[str, Any], Any]) -> World:
    """Put the same things into a store three times: for the agent's project, for another, for everybody."""
    memories, events = {}, {}
    for whose in WHOSE:
        project = None if whose == "shared" else f"{whose}-project"
        place: dict[str, Any] = {} if project is None else {"scope": Scope.PROJECT, "resource_id": project}
        old = call("add", MemoryDraft(content=f"{whose}-old zebra stripes are white", name=f"{whose}-old", **place))
        doubted = {MAY_SUPERSEDE: [old.memory.id]}
        new = MemoryDraft(content=f"{whose}-new zebra habitat report", name=f"{whose}-new", metadata=doubted, **place)
        memories[whose] = call("add", new).memory.id
        call(
            "add", MemoryDraft(content=f"{whose}-line zebra", layer=Layer.ACTIVE, name=f"active/{whose}-line", **place)
        )
        drafts = tuple(
            EventDraft(
                agent=f"{whose}-agent",
                session_id=f"{whose}-session",
                type=EventType.USER_MESSAGE,
                text=f"{whose}-word {number}: we chose the zebra crossing for its stripes",
                project=project,
                ts=Millis(SPOKEN + number * 60_000),
            )
            for number in range(3)
        )
        for told in (
            MemoryDraft(
                content=f"{whose}-entity: likes zebra {whose}",
                metadata={"entity": f"{whose}-entity", "observation": f"likes zebra {whose}"},
                **place,
            ),
            MemoryDraft(
                content=f"/memories/{whose}-file\nzebra {whose}-text",
                kind=Kind.NOTE,
                metadata={"path_in_memories": f"/memories/{whose}-file"},
                **place,
            ),
        ):
            call("add", told)
        events[whose] = call("ingest", api.IngestRequest(events=drafts, learn=False)).ids[0]
    return World(memories=memories, events=events)


# The operations


@dataclass(frozen=True)
class Survey:
    """A read over all that the caller sees. `shows` are those whose things its answer must hold."""

    request: Callable[[], Any]
    shows: tuple[str, ...] = ("own", "shared")


@dataclass(frozen=True)
class ById:
    """A read of one thing: `request` makes it of a world and of whose the thing is."""

    request: Callable[[World, str], Any]


TELLS_NOTHING = "tells how the store is, without a word of what is in it"
WRITES = "writes: test_access tells what of"
PERSON_ONLY = "the person's alone"
OWN_FILES = "reads the caller's own vault alone: test_vault has two of them"

READS: dict[str, Survey | ById | str] = {
    "list": Survey(lambda: api.ListRequest(limit=200)),
    "recall": Survey(lambda: api.RecallRequest(query="zebra stripes", limit=50, max_tokens=20_000, neighbours=3)),
    "route": Survey(lambda: api.RouteRequest(query="zebra stripes", limit=20, max_tokens=20_000)),
    "teleport": Survey(lambda: api.TeleportRequest(query="zebra stripes", limit=50)),
    "events": Survey(api.EventsRequest),
    "sessions": Survey(lambda: NOTHING),
    "context": Survey(api.ContextRequest),
    "brief": Survey(api.BriefRequest, shows=("own",)),  # what holds everywhere is told beside it
    "active": Survey(api.ActiveRequest),
    "conflicts": Survey(api.ConflictsRequest),
    "agents": Survey(api.AgentsRequest),
    "agent_activity": Survey(lambda: api.ActivityRequest(since=Millis(SPOKEN - 1), until=Millis(SPOKEN + 10**9))),
    "get": ById(lambda world, whose: api.RefRequest(ref=world.memories[whose])),
    "why": ById(lambda world, whose: api.RefRequest(ref=world.memories[whose])),
    "toc": Survey(api.TocRequest),
    "timeline": Survey(lambda: api.TimelineRequest(level="segment")),
    "grip": ById(lambda world, whose: api.GripRequest(id=f"grip:{world.events[whose]}:0-4")),
    "replay": ById(lambda _, whose: api.ReplayRequest(session_id=f"{whose}-session")),
    **dict.fromkeys(("stats", "status", "models", "jobs", "job_runs", "settle", "layers"), TELLS_NOTHING),
    **dict.fromkeys(
        ("ingest", "add", "observe", "update", "supersede", "forget", "rename", "alias", "compact", "feedback"),
        WRITES,
    ),
    **dict.fromkeys(("vault_remember", "vault_recall", "vault_compact", "vault_reflect"), OWN_FILES),
    **dict.fromkeys(
        (
            *(
                "export",
                "history",
                "forgets",
                "forget_all",
                "trace",
                "undo",
                "resolve",
                "set_identity",
                "set_active",
                "import",
                "backup",
                "rebuild",
            ),
            *(
                "confirm_active",
                "dismiss_active",
                "run_job",
                "cost",
                "pause_job",
                "resume_job",
                "use_model",
                "writer",
                "try_writer",
                "use_writer",
                "learn",
                "relearn",
                "hook",
                "consolidate",
                "diff",
                "review",
                "decide",
                "audit",
                "ask",
                "projects",
                "trust_folder",
            ),
            *("vaults", "vault_init", "vault_sync", "vault_stop"),
        ),
        PERSON_ONLY,
    ),
}
REQUESTS: dict[str, Any] = {"settle": api.SettleRequest(timeout_ms=0), "job_runs": api.JobRunsRequest()}
SURVEYS = [name for name, row in READS.items() if isinstance(row, Survey)]
BY_ID = [name for name, row in READS.items() if isinstance(row, ById)]


def test_every_operation_is_in_the_table() -> None:
    assert set(READS) == set(OPERATIONS), "say what an agent reads by it: a Survey, ById, or why it reads nothing"


def test_the_persons_operations_are_no_agents() -> None:
    named = {name for name, row in READS.items() if row == PERSON_ONLY}
    assert named == {name for name, found in OPERATIONS.items() if Principal.AGENT not in found.principals}


@pytest.fixture(scope="module")
def settings_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Settings]:
    def made(name: str) -> Settings:
        home = tmp_path_factory.mktemp(name)
        chosen = options.load(environ={"SCRUBJAY_HOME": str(home), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"})
        options.ensure_dirs(chosen)
        return chosen

    return made


@dataclass(frozen=True)
class Store:
    """A store that is reached in one way, as the agent."""

    call: Callable[[str, Any], Any]
    world: World


@pytest.fixture(scope="module")
def in_process(settings_of: Callable[[str], Settings]) -> Iterator[Store]:
    chosen = settings_of("local")
    transport = local.LocalTransport(chosen.store_path, chosen, background=False)
    world = planted(transport.call)
    transport.call("run_job", api.JobRequest(name="toc"))
    transport._caller = AGENT  # as if opened by the agent: two cannot open one file
    yield Store(transport.call, world)
    transport._caller = PERSON
    transport.close()


@pytest.fixture(scope="module")
def daemon(settings_of: Callable[[str], Settings]) -> Iterator[tuple[Settings, World]]:
    chosen = settings_of("daemon")
    control.start(chosen, policy=DaemonPolicy(start_seconds=90.0))
    person = local.through_daemon(chosen.store_path, chosen) or pytest.fail("no daemon")
    world = planted(person.call)
    person.call("run_job", api.JobRequest(name="toc"))
    yield chosen, world
    person.close()
    control.stop(chosen)


@pytest.fixture(scope="module")
def over_http(daemon: tuple[Settings, World]) -> Iterator[Store]:
    chosen, world = daemon
    agent = local.through_daemon(chosen.store_path, chosen, AGENT) or pytest.fail("no daemon")
    yield Store(agent.call, world)
    agent.close()


@pytest.fixture(params=["in_process", "over_http"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found


def whose_are_in(text: str) -> set[str]:
    """Return whose things a text tells of."""
    return set(re.findall(rf"\b({'|'.join(WHOSE)})-\w", text))


def told(response: Any) -> set[str]:
    return whose_are_in(msgspec.json.encode(response).decode())


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_shows_the_own_and_the_shared_and_nothing_of_another(store: Store, name: str) -> None:
    row = READS[name]
    assert isinstance(row, Survey)
    found = told(store.call(name, row.request()))

    assert "own" in found or "own" not in row.shows
    assert "other" not in found
    assert "shared" in found or "shared" not in row.shows


@pytest.mark.parametrize("name", BY_ID)
def test_a_read_by_id_finds_the_own_and_the_shared_and_not_anothers(store: Store, name: str) -> None:
    row = READS[name]
    assert isinstance(row, ById)

    assert told(store.call(name, row.request(store.world, "own"))) == {"own"}
    with pytest.raises(NotFoundError) as missing:
        store.call(name, row.request(store.world, "other"))
    assert "zebra" not in missing.value.message
    assert told(store.call(name, row.request(store.world, "shared"))) == {"shared"}


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("narrowed", ["project", "session_id"])
def test_naming_another_project_or_session_in_a_request_is_denied(store: Store, name: str, narrowed: str) -> None:
    row = READS[name]
    assert isinstance(row, Survey)
    asked = row.request()
    if narrowed not in asked.__dataclass_fields__:
        return  # it cannot be named
    value = {"project": "other-project", "session_id": "other-session"}[narrowed]
    if name == "events" and narrowed == "session_id":  # a session is asked for, of those that are seen
        assert told(store.call(name, api.EventsRequest(session_id=value))) == set()
        return
    with pytest.raises(DeniedError):
        store.call(name, type(asked)(**(msgspec.to_builtins(asked) | {narrowed: value})))


@pytest.mark.parametrize("name", [name for name, row in READS.items() if row == TELLS_NOTHING])
def test_how_the_store_is_says_nothing_of_what_is_in_it(store: Store, name: str) -> None:
    assert told(store.call(name, REQUESTS.get(name, NOTHING))) == set()


@pytest.mark.parametrize("whose", WHOSE)
def test_an_event_of_another_project_cannot_be_forgotten_by_its_id(store: Store, whose: str) -> None:
    if whose == "other":
        with pytest.raises(NotFoundError):
            store.call("forget", api.ForgetRequest(ref=store.world.events[whose]))
    else:
        assert whose in told(store.call("events", api.EventsRequest(session_id=f"{whose}-session")))


@pytest.mark.parametrize("layer", [Layer.IDENTITY, Layer.ACTIVE])
def test_an_agent_writes_no_always_loaded_line_and_gives_no_name_of_one(store: Store, layer: Layer) -> None:
    for draft in (
        MemoryDraft(content="I am root", layer=layer),
        MemoryDraft(content="I am root", name=f"{layer.value}/name"),
        MemoryDraft(content="I am root", aliases=(f"{layer.value}/name",)),
    ):
        with pytest.raises(DeniedError):
            store.call("add", draft)


def test_an_agent_is_believed_as_an_agent_whatever_it_says(store: Store) -> None:
    added = store.call("add", MemoryDraft(content="shared-claim: trust me", trust=Trust.USER))
    assert added.memory.trust is Trust.AGENT


# The tools


@dataclass(frozen=True)
class Asked:
    """How a tool is called, and what its answer holds: `arguments` of a world and of whose thing it is about."""

    arguments: Callable[[World, str], dict[str, Any]]
    survey: bool = False


TOOLS: dict[str, Asked | str] = {
    "/memory_search": Asked(lambda *_: {"query": "zebra stripes", "limit": 20, "max_tokens": 20_000}, survey=True),
    "/memory_get": Asked(lambda world, whose: {"ids": [f"m_{world.memories[whose]}"], "detail": "full"}),
    "/memory_timeline": Asked(lambda *_: {"at": "October 2025", "level": "segment", "max_tokens": 5_000}, survey=True),
    "/memory_status": TELLS_NOTHING,
    "/server-memory/read_graph": Asked(lambda *_: {}, survey=True),
    "/server-memory/search_nodes": Asked(lambda *_: {"query": "zebra"}, survey=True),
    "/server-memory/open_nodes": Asked(lambda _, whose: {"names": [f"{whose}-entity"]}),
    "/memories/memory": Asked(lambda _, whose: {"command": "view", "path": f"/memories/{whose}-file"}),
    "/search-add-remove/memory-search": Asked(lambda *_: {"query": "zebra stripes"}, survey=True),
    "/search-fetch/search": Asked(lambda *_: {"query": "zebra stripes"}, survey=True),
    "/search-fetch/fetch": Asked(lambda world, whose: {"id": f"m_{world.memories[whose]}"}),
    **dict.fromkeys((f"/vault/{name}" for name in ("remember", "recall", "compact", "reflect")), OWN_FILES),
    **dict.fromkeys(("/memory_add", "/memory_correct", "/memory_forget", "/memory_feedback"), WRITES),
    **dict.fromkeys(
        ("/search-add-remove/memory-add", "/search-add-remove/memory-remove", "/search-add-remove/memory-observe"),
        WRITES,
    ),
    **dict.fromkeys(
        (
            *("/server-memory/create_entities", "/server-memory/create_relations", "/server-memory/add_observations"),
            *("/server-memory/delete_entities", "/server-memory/delete_observations"),
            "/server-memory/delete_relations",
        ),
        WRITES,
    ),
}
"""The tools of every toolset, by its path and their names."""


def test_every_tool_of_every_toolset_is_in_the_table() -> None:
    assert set(TOOLS) == {f"{path}/{tool.name}" for path, one in TOOLSETS.items() for tool in one.tools}


@dataclass(frozen=True)
class Tools:
    """The tools of a running daemon, called as the agent."""

    http: httpx2.Client
    world: World

    def call(self, where: str, arguments: dict[str, Any], **headers: str) -> tuple[bool, str]:
        """Call a tool. Returns whether it answered, and its text."""
        path, _, name = where.rpartition("/")
        return self.ask(path, "tools/call", {"name": name, "arguments": arguments}, **headers)

    def ask(self, path: str, method: str, params: dict[str, Any], **headers: str) -> tuple[bool, str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.http.post(f"/mcp{path}", json=message, headers=headers).json()
        result = answer.get("result", {})
        return "error" not in answer and not result.get("isError"), json.dumps(result or answer).replace("\\n", "\n")


@pytest.fixture(scope="module")
def tools(daemon: tuple[Settings, World]) -> Iterator[Tools]:
    chosen, world = daemon
    token = (chosen.data_dir / "agent_token").read_text()
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        "Scrubjay-Project": "own-project",
    }
    running = control.status(chosen).daemon or pytest.fail("no daemon")
    with httpx2.Client(base_url=f"http://{running.host}:{running.port}", headers=headers, timeout=90) as http:
        yield Tools(http, world)


@pytest.mark.parametrize("where", [where for where, row in TOOLS.items() if isinstance(row, Asked) and row.survey])
def test_a_search_by_a_tool_shows_the_own_and_the_shared_and_nothing_of_another(tools: Tools, where: str) -> None:
    row = TOOLS[where]
    assert isinstance(row, Asked)
    done, text = tools.call(where, row.arguments(tools.world, "own"))

    assert done, text
    assert "own" in whose_are_in(text)
    assert "other" not in whose_are_in(text)
    assert "shared" in whose_are_in(text)


@pytest.mark.parametrize("where", [where for where, row in TOOLS.items() if isinstance(row, Asked) and not row.survey])
def test_a_read_by_a_tool_finds_the_own_and_the_shared_and_not_anothers(tools: Tools, where: str) -> None:
    row = TOOLS[where]
    assert isinstance(row, Asked)
    answers = {whose: tools.call(where, row.arguments(tools.world, whose)) for whose in WHOSE}

    assert answers["own"][0]
    assert whose_are_in(answers["own"][1]) == {"own"}
    assert "zebra" not in answers["other"][1]
    assert answers["shared"][0]
    assert whose_are_in(answers["shared"][1]) == {"shared"}


@pytest.mark.parametrize("kind", ["m", "session"])
def test_a_resource_of_another_project_is_not_there(tools: Tools, kind: str) -> None:
    names = tools.world.memories if kind == "m" else {whose: f"{whose}-session" for whose in WHOSE}
    answers = {
        whose: tools.ask("", "resources/read", {"uri": f"memory://{kind}/{name}"}) for whose, name in names.items()
    }

    assert whose_are_in(answers["own"][1]) >= {"own"}
    assert not answers["other"][0]
    assert "zebra" not in answers["other"][1]
    assert answers["shared"][0]


def test_what_another_project_has_cannot_be_corrected_or_forgotten_by_its_id(tools: Tools) -> None:
    ref = f"m_{tools.world.memories['other']}"
    for where, arguments in (
        ("/memory_correct", {"id": ref, "text": "other-planted: all is well"}),
        ("/memory_correct", {"id": ref, "text": "wrong"}),
        ("/memory_forget", {"id": ref}),
        ("/memory_forget", {"id": f"e_{tools.world.events['other']}"}),
    ):
        tools.call(where, arguments)
    done, text = tools.call("/memory_get", {"ids": [ref]}, **{"Scrubjay-Project": "other-project"})
    assert done
    assert "other-new zebra habitat report" in text
    assert "put away" not in text


def test_a_directory_lists_no_file_of_another_project(tools: Tools) -> None:
    done, text = tools.call("/memories/memory", {"command": "view", "path": "/memories"})
    assert done
    assert whose_are_in(text) == {"own", "shared"}


def test_what_another_project_has_cannot_be_deleted_by_its_name(tools: Tools) -> None:
    for where, arguments in (
        ("/server-memory/delete_entities", {"entityNames": ["other-entity"]}),
        ("/memories/memory", {"command": "delete", "path": "/memories/other-file"}),
        ("/memories/memory", {"command": "rename", "old_path": "/memories/other-file", "new_path": "/memories/x"}),
        ("/search-add-remove/memory-remove", {"id": f"m_{tools.world.memories['other']}"}),
    ):
        tools.call(where, arguments)
    theirs = {"Scrubjay-Project": "other-project"}
    assert "other-entity" in tools.call("/server-memory/read_graph", {}, **theirs)[1]
    assert (
        "other-text" in tools.call("/memories/memory", {"command": "view", "path": "/memories/other-file"}, **theirs)[1]
    )
    assert tools.call("/memory_get", {"ids": [tools.world.memories["other"]]}, **theirs)[0]


def test_without_a_project_only_what_is_the_persons_is_seen(tools: Tools) -> None:
    done, text = tools.call("/memory_search", {"query": "zebra", "limit": 20}, **{"Scrubjay-Project": ""})
    assert done
    assert whose_are_in(text) == {"shared"}
