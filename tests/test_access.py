"""Every operation by every caller on what belongs to everybody: through this process, and through a daemon over HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scrubjay import Memory, api
from scrubjay import settings as options
from scrubjay.api import access
from scrubjay.api.caller import IMPORTER, PERSON, Caller, Principal
from scrubjay.api.operations import OPERATIONS, Kind
from scrubjay.daemon import control
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings
from scrubjay.transports import local
from scrubjay.transports.client import Client, discover
from scrubjay.transports.http.routes import ROUTES
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, DeniedError, NotFoundError, UnauthenticatedError, UnavailableError
from scrubjay_shared.records import Event, EventDraft, EventType, Layer, MemoryDraft, Scope, Trust

BOUND = Caller(principal=Principal.AGENT, agent="crow", project="own", session_id="own session")
UNBOUND = Caller(principal=Principal.AGENT, agent="crow")
CALLERS = {"person": PERSON, "agent": BOUND, "agent of no project": UNBOUND, "importer": IMPORTER}

AGENTS = {"trust": Trust.AGENT}
WHOSE: dict[str, dict[str, Any]] = {
    "the person's": {},
    "an agent's": AGENTS,
    "an identity line": AGENTS | {"layer": Layer.IDENTITY},
    "the own project's": AGENTS | {"scope": Scope.PROJECT, "resource_id": "own"},
    "the own session's": AGENTS | {"scope": Scope.SESSION, "resource_id": "own session"},
    "another project's": AGENTS | {"scope": Scope.PROJECT, "resource_id": "other"},
    "another session's": AGENTS | {"scope": Scope.SESSION, "resource_id": "other session"},
}
"""Whose a memory is, as the person adds it."""

EVERYBODYS = {"the person's", "an agent's", "an identity line"}
SEEN = {
    "person": set(WHOSE),
    "agent": EVERYBODYS | {"the own project's", "the own session's"},
    "agent of no project": EVERYBODYS,
}
"""What each caller sees; to the others nothing is open at all."""

EVENTS_OF = {"none": (None, "a session"), "own": ("own", "a session"), "session": ("other", "own session")}
EVENTS_SEEN = {"person": {"none", "own", "session", "other"}, "agent": {"none", "own", "session"}}
EVENTS_SEEN |= {"agent of no project": {"none"}}


def outcome(call: Callable[[], Any]) -> str:
    """Return what became of a call: done, denied, or missing, as if what was asked for were not there."""
    try:
        call()
    except DeniedError:
        return "denied"
    except NotFoundError as error:
        there = "has no such conflict" in error.message or "there is no cause" in error.message
        there = there or "claims no project" in error.message
        return "done" if there else "missing"
    except ConflictError as error:
        # A fact that no turn supports was looked for; a question for a Writer would have been asked.
        if "nothing was stored" not in error.message and "no Writer is set" not in error.message:
            raise
        return "done"
    except UnavailableError as error:
        if "cannot be reached" not in error.message:  # a Writer that is tried, and is not there
            raise
        return "done"
    return "done"


@dataclass(frozen=True)
class Row:
    """How an operation is called on a memory (or on nothing), and what an agent may do with a memory that it sees."""

    request: Callable[[str], Any]
    effect: str


def anew(text: str) -> str:
    return f"{text} {next(_numbers)}"


_numbers = itertools.count()
NOTHING = api.Nothing()
HOOK = b'{"session_id": "own session", "turn_id": "1", "last_assistant_message": "It runs."}'
ROWS: dict[str, Row] = {
    # On one memory.
    "get": Row(lambda ref: api.RefRequest(ref=ref), "read"),
    "why": Row(lambda ref: api.RefRequest(ref=ref), "read"),
    "feedback": Row(lambda ref: api.FeedbackRequest(refs=(ref,), helped=True), "read"),
    "update": Row(lambda ref: api.UpdateRequest(ref=ref, content=anew("changed")), "change"),
    "rename": Row(lambda ref: api.RenameRequest(ref=ref, name=anew("renamed")), "change"),
    "alias": Row(lambda ref: api.AliasRequest(ref=ref, alias=anew("alias")), "change"),
    "supersede": Row(lambda ref: api.SupersedeRequest(ref=ref, content=anew("a later note")), "change"),
    "forget": Row(lambda ref: api.ForgetRequest(ref=ref), "forget"),
    # On all that the caller sees.
    "list": Row(lambda _: api.ListRequest(limit=200), "survey"),
    "recall": Row(lambda _: api.RecallRequest(query="zebra", kinds=("memory",), limit=50), "survey"),
    "events": Row(lambda _: api.EventsRequest(), "survey"),
    "sessions": Row(lambda _: NOTHING, "survey"),
    "route": Row(lambda _: api.RouteRequest(query="zebra"), "open"),
    "teleport": Row(lambda _: api.TeleportRequest(query="zebra"), "open"),
    "layers": Row(lambda _: NOTHING, "open"),
    "compact": Row(lambda _: api.CompactRequest(session_id="other session"), "session"),
    "replay": Row(lambda _: api.ReplayRequest(session_id="other session"), "session"),
    "agents": Row(lambda _: api.AgentsRequest(), "open"),
    "agent_activity": Row(lambda _: api.ActivityRequest(), "open"),
    "toc": Row(lambda _: api.TocRequest(), "survey"),
    "timeline": Row(lambda _: api.TimelineRequest(level="segment", limit=500), "survey"),
    "grip": Row(lambda ref: api.GripRequest(id=ref), "passage"),
    "conflicts": Row(lambda _: api.ConflictsRequest(), "open"),
    "context": Row(lambda _: api.ContextRequest(), "open"),
    "brief": Row(lambda _: api.BriefRequest(), "open"),
    "active": Row(lambda _: api.ActiveRequest(), "open"),
    # What is added belongs to who adds it.
    "add": Row(lambda _: MemoryDraft(content=anew("a note")), "open"),
    "observe": Row(
        lambda _: api.ObserveRequest(scope=Scope.PROJECT, content="stripes", session_id="other session"), "session"
    ),
    "ingest": Row(lambda _: api.IngestRequest(events=(event(anew("said"), None, "own session"),)), "open"),
    "hook": Row(
        lambda _: api.HookRequest(host="codex", data=HOOK, event="Stop"), "person"
    ),  # and the host's: test_hooks
    # How the store is.
    "stats": Row(lambda _: NOTHING, "open"),
    "status": Row(lambda _: NOTHING, "open"),
    "models": Row(lambda _: NOTHING, "open"),
    "settle": Row(lambda _: api.SettleRequest(timeout_ms=0), "open"),
    "jobs": Row(lambda _: NOTHING, "open"),
    "job_runs": Row(lambda _: api.JobRunsRequest(), "open"),
    # An agent's own plain files: test_vault tells that it sees no other's.
    "vault_remember": Row(lambda _: api.VaultRememberRequest(text=anew("seen"), agent="somebody"), "vault"),
    "vault_recall": Row(lambda _: api.VaultRecallRequest(query="zebra", agent="somebody"), "vault"),
    "vault_compact": Row(lambda _: api.VaultCondenseRequest(agent="somebody"), "vault"),
    "vault_reflect": Row(lambda _: api.VaultCondenseRequest(agent="somebody"), "vault"),
    # The person's alone.
    "vaults": Row(lambda _: api.VaultsRequest(), "person"),
    "vault_init": Row(lambda ref: api.VaultInitRequest(agent=anew("somebody"), folder=anew(f"{ref}-vault")), "person"),
    "vault_sync": Row(lambda _: api.VaultSyncRequest(), "person"),
    "vault_stop": Row(lambda _: api.VaultStopRequest(agent="somebody"), "vault"),
    "review": Row(lambda _: api.ReviewRequest(), "person"),
    "audit": Row(lambda _: NOTHING, "person"),
    "ask": Row(lambda _: api.AskRequest(question="zebra"), "person"),
    "projects": Row(lambda _: NOTHING, "person"),
    "trust_folder": Row(lambda _: api.TrustFolderRequest(folder="/nowhere"), "person"),
    "decide": Row(lambda ref: api.DecideRequest(accept=True, refs=(ref,)), "person"),
    "resolve": Row(lambda ref: api.ResolveRequest(ref=ref, field="content"), "person"),
    "forget_all": Row(lambda _: api.ForgetAllRequest(session_id="other session", dry_run=True), "person"),
    "forgets": Row(lambda _: api.ForgetsRequest(), "person"),
    "history": Row(lambda _: api.HistoryRequest(), "person"),
    "trace": Row(lambda ref: api.TraceRequest(id=ref), "person"),
    "undo": Row(lambda _: api.UndoRequest(cause="nothing"), "person"),
    "consolidate": Row(lambda _: api.ConsolidateRequest(dry_run=True), "person"),
    "diff": Row(lambda _: api.DiffRequest(since=Millis(0)), "person"),
    "set_identity": Row(lambda _: api.SlotRequest(key="name", value="crow"), "person"),
    "learn": Row(lambda _: api.LearnRequest(text=anew("We chose SQLite.")), "person"),
    "confirm_active": Row(lambda _: api.ProposalsRequest(every=True), "person"),
    "dismiss_active": Row(lambda _: api.ProposalsRequest(every=True), "person"),
    "set_active": Row(lambda _: api.SlotRequest(key="task", value="none"), "person"),
    "import": Row(lambda _: api.ImportRequest(name="a.md", data=anew("# Title\n\nA note").encode()), "person"),
    "export": Row(lambda _: NOTHING, "person"),
    "backup": Row(lambda folder: api.PathRequest(path=f"{folder}/{anew('copy')}.db"), "person"),
    "rebuild": Row(lambda _: api.RebuildRequest(), "person"),
    "cost": Row(lambda _: api.CostRequest(), "person"),
    "relearn": Row(lambda _: api.RelearnRequest(dry_run=True), "person"),
    "writer": Row(lambda _: NOTHING, "person"),
    "try_writer": Row(lambda _: api.WriterRequest(writer="openai", url="http://127.0.0.1:9/v1", model="m"), "person"),
    "use_writer": Row(lambda _: api.UseWriterRequest(), "person"),
    "use_model": Row(lambda _: api.ModelRequest(name="none"), "person"),
    "run_job": Row(lambda _: api.JobRequest(name="count"), "person"),
    "pause_job": Row(lambda _: api.JobRequest(name="count"), "person"),
    "resume_job": Row(lambda _: api.JobRequest(name="count"), "person"),
}


def test_the_table_has_a_row_for_every_operation_and_no_other() -> None:
    assert set(ROWS) == set(OPERATIONS)


def test_every_operation_has_one_route() -> None:
    assert sorted(OPERATIONS) == sorted(route.operation for route in ROUTES)


def event(text: str, project: str | None, session: str) -> EventDraft:
    return EventDraft(
        agent="crow", session_id=session, type=EventType.USER_MESSAGE, text=text, project=project, dedupe_key=text
    )


class Calls:
    """A store, called through one transport by whoever is named."""

    def __init__(self, transport_of: Callable[[Caller], local.Transport], folder: Path) -> None:
        self.transport_of = transport_of
        self.folder = folder

    def call(self, caller: Caller, name: str, request: Any) -> Any:
        transport = self.transport_of(caller)
        if OPERATIONS[name].kind is Kind.STREAM:
            return list(transport.stream(name, request))
        return transport.call(name, request)

    def memories(self) -> dict[str, str]:
        """Return the ids of fresh memories, by whose they are."""
        return {
            whose: self.call(PERSON, "add", MemoryDraft(content=anew("zebra"), name=anew("zebra"), **fields)).memory.id
            for whose, fields in WHOSE.items()
        }

    def seen(self, caller: Caller) -> list[Event]:
        """Return all events that a caller sees."""
        found: list[Event] = []
        cursor = None
        while True:
            page = self.call(caller, "events", api.EventsRequest(limit=500, cursor=cursor))
            found += page.events
            if (cursor := page.next) is None:
                return found

    def event(self, event_id: str) -> Event:
        """Return an event as the person sees it."""
        cursor = None
        while True:
            page = self.call(PERSON, "events", api.EventsRequest(limit=500, cursor=cursor))
            if found := [each for each in page.events if each.id == event_id]:
                return found[0]
            cursor = page.next or pytest.fail("there is no such event")

    def events(self) -> dict[str, str]:
        """Return the ids of fresh events, by whose they are."""
        places = EVENTS_OF | {"other": ("other", "other session")}
        drafts = tuple(event(anew("zebra"), project, session) for project, session in places.values())
        response = self.call(PERSON, "ingest", api.IngestRequest(events=drafts, learn=False))
        return dict(zip(places, response.ids, strict=True))


@pytest.fixture(scope="module")
def settings_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Settings]:
    def made(name: str) -> Settings:
        home = tmp_path_factory.mktemp(name)
        chosen = options.load(environ={"SCRUBJAY_HOME": str(home), "SCRUBJAY_PORT": "0", "SCRUBJAY_MODEL": "none"})
        options.ensure_dirs(chosen)
        return chosen

    return made


@pytest.fixture(scope="module")
def in_process(settings_of: Callable[[str], Settings]) -> Iterator[Calls]:
    """A store in this process."""
    chosen = settings_of("local")
    transport = local.LocalTransport(chosen.store_path, chosen, background=False)

    def called_by(caller: Caller) -> local.Transport:
        transport._caller = caller  # as if opened by that caller: two cannot open one file
        return transport

    yield Calls(called_by, chosen.data_dir)
    transport.close()


@pytest.fixture(scope="module")
def daemon(settings_of: Callable[[str], Settings]) -> Iterator[Settings]:
    chosen = settings_of("daemon")
    control.start(chosen, policy=DaemonPolicy(start_seconds=90.0))
    yield chosen
    control.stop(chosen)


@pytest.fixture(scope="module")
def over_http(daemon: Settings) -> Iterator[Calls]:
    """A store behind a daemon."""
    opened: dict[Caller, local.DaemonTransport] = {}

    def called_by(caller: Caller) -> local.Transport:
        if caller not in opened:
            opened[caller] = local.through_daemon(daemon.store_path, daemon, caller) or pytest.fail("no daemon")
        return opened[caller]

    yield Calls(called_by, daemon.data_dir)
    for transport in opened.values():
        transport.close()


def expected(name: str, who: str, whose: str) -> str:
    """Return what becomes of an operation on a memory: the rule, told again."""
    effect = ROWS[name].effect
    if who not in SEEN or (effect in {"person", "vault"} and who != "person"):
        return "denied"  # of vaults: an agent asks for no other's
    if effect in {"passage", "vault"}:
        return "missing"  # a memory is none, and nobody has the vault
    if who == "person" or effect in {"survey", "open"}:
        return "done"
    if effect == "session":  # another's: to one that has a session, it is another's; to the rest it is not there
        return "denied" if name == "observe" or (name == "compact" and who == "agent") else "missing"
    if whose not in SEEN[who]:
        return "missing"
    guarded = whose == "an identity line" or (effect == "change" and whose == "the person's")
    return "denied" if guarded and effect != "read" else "done"


def check(calls: Calls, name: str, who: str) -> None:
    caller, row = CALLERS[who], ROWS[name]
    memories, events = calls.memories(), calls.events()
    for whose, ref in memories.items():
        target = str(calls.folder) if name in {"backup", "vault_init"} else ref

        found = outcome(lambda target=target: calls.call(caller, name, row.request(target)))  # type: ignore[misc]

        assert found == expected(name, who, whose), whose
        if row.effect != "read" and found != "done":
            held = calls.call(PERSON, "get", api.RefRequest(ref=ref))
            assert held.memory.content.startswith("zebra"), "what is refused changes nothing"
            assert set(held.aliases) <= {held.memory.name}
    if row.effect in {"survey", "passage"} and who in SEEN:
        survey(calls, name, who, memories, events)


def survey(calls: Calls, name: str, who: str, memories: dict[str, str], events: dict[str, str]) -> None:
    """Check that what is listed is what the caller sees, and all of it."""
    if name == "grip":
        asked = {whose: api.GripRequest(id=f"grip:{ref}:0-5", before=50) for whose, ref in events.items()}
        found = {whose: outcome(partial(calls.call, CALLERS[who], "grip", each)) for whose, each in asked.items()}
        assert {whose for whose, became in found.items() if became == "done"} == EVENTS_SEEN[who]
        shown = [calls.call(CALLERS[who], "grip", asked[whose]) for whose in EVENTS_SEEN[who]]
        assert all(access.view(CALLERS[who]).shows_event(event) for each in shown for event in each.events)
        return
    if name in {"toc", "timeline"}:
        calls.call(PERSON, "run_job", api.JobRequest(name="toc"))
    response = calls.call(CALLERS[who], name, ROWS[name].request(""))
    if name == "list":
        found = {entry.memory.id for entry in response.entries}
        assert {whose for whose, ref in memories.items() if ref in found} == SEEN[who]
    elif name == "recall":
        found = {hit.id for hit in response.hits}
        assert {whose for whose, ref in memories.items() if ref in found} <= SEEN[who]
        assert found
    elif name == "events":
        found = {each.id for each in response.events}
        assert {whose for whose, ref in events.items() if ref in found} <= EVENTS_SEEN[who]
        assert all(access.view(CALLERS[who]).shows_event(each) for each in response.events), (
            "on every page, of every event"
        )
    elif name == "toc":
        assert response.events == len(calls.seen(CALLERS[who])) > 0
        assert response.following is response.previous is None
    elif name == "timeline":
        shown = {each.id: each for each in calls.seen(CALLERS[who])}
        begins = {node.id.removeprefix("toc:segment:") for node in response.nodes}
        assert begins <= set(shown)
        assert {whose for whose, ref in events.items() if ref in begins} <= EVENTS_SEEN[who]
    else:
        found = {session.id for session in response.sessions}
        assert ("other session" in found) is (who == "person")


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_in_this_process(in_process: Calls, name: str, who: str) -> None:
    check(in_process, name, who)


@pytest.mark.slow
@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_over_http(over_http: Calls, name: str, who: str) -> None:
    check(over_http, name, who)


# What update changes, field by field

FIELDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "valid_from": lambda _: {"valid_from": Millis(1_000)},
    "valid_to": lambda _: {"valid_to": Millis(1_000)},
    "superseded_by": lambda other: {"superseded_by": other},
    "layer": lambda _: {"layer": Layer.SURFACED},
    "archived": lambda _: {"archived": True},
    "clear": lambda _: {"clear": ("valid_from", "valid_to", "superseded_by", "topic")},
}
"""Changes of one field each, given a memory that everybody sees."""


def test_the_fields_of_update_that_say_when_what_and_where_have_rows() -> None:
    others = {"ref", "project", "session_id", "content", "type", "salience", "topic", "metadata"}
    assert {field.name for field in fields(api.UpdateRequest)} == set(FIELDS) | others


def check_field(calls: Calls, name: str, who: str) -> None:
    memories = calls.memories()
    for whose, ref in memories.items():
        other = calls.call(PERSON, "add", MemoryDraft(content=anew("newer"), **AGENTS)).memory.id
        before = calls.call(PERSON, "get", api.RefRequest(ref=ref)).memory
        request = api.UpdateRequest(ref=ref, **FIELDS[name](other))

        found = outcome(lambda request=request: calls.call(CALLERS[who], "update", request))  # type: ignore[misc]

        wanted = expected("update", who, whose)
        is_pin = name == "layer" and who != "person" and wanted == "done"
        assert found == ("denied" if is_pin else wanted), "only the person pins" if is_pin else whose
        after = calls.call(PERSON, "get", api.RefRequest(ref=ref)).memory
        assert (after == before) is (found != "done"), "what is refused changes nothing"


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_update_in_this_process(in_process: Calls, name: str, who: str) -> None:
    check_field(in_process, name, who)


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_update_over_http(over_http: Calls, name: str, who: str) -> None:
    check_field(over_http, name, who)


@pytest.mark.parametrize(
    ("successor", "found"),
    [
        ("the person's", "done"),
        ("the own project's", "done"),
        ("another project's", "missing"),
        ("another session's", "missing"),
    ],
)
def test_an_agent_names_no_successor_that_it_does_not_see(calls: Calls, successor: str, found: str) -> None:
    memories = calls.memories()
    request = api.UpdateRequest(ref=memories["an agent's"], superseded_by=memories[successor])

    assert outcome(lambda: calls.call(BOUND, "update", request)) == found


# What an agent adds


@pytest.fixture(params=["in_process", "over_http"])
def calls(request: pytest.FixtureRequest) -> Calls:
    found: Calls = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("claimed", Trust)
def test_what_an_agent_adds_is_trusted_as_an_agents_whatever_it_claims(calls: Calls, claimed: Trust) -> None:
    entry = calls.call(BOUND, "add", MemoryDraft(content=anew("told"), trust=claimed))
    said = replace(event(anew("told"), None, "own session"), trust=claimed)
    response = calls.call(BOUND, "ingest", api.IngestRequest(events=(said,), learn=False))

    held = calls.event(response.ids[0])
    assert entry.memory.trust is held.trust is min(claimed, Trust.AGENT, key=list(Trust).index)


@pytest.mark.parametrize(
    ("who", "spoken", "trust"),
    [
        ("person", EventType.USER_MESSAGE, Trust.USER),
        ("person", EventType.ASSISTANT_MESSAGE, Trust.AGENT),
        ("agent", EventType.USER_MESSAGE, Trust.AGENT),
        ("agent", EventType.ASSISTANT_MESSAGE, Trust.AGENT),
    ],
)
def test_what_the_job_distils_is_trusted_as_the_event_that_it_was_read_from(
    calls: Calls, who: str, spoken: EventType, trust: Trust
) -> None:
    words = anew("We decided to keep the lock file in the cache folder of floor")
    said = replace(event(words, None, "own session"), type=spoken)
    if spoken is EventType.ASSISTANT_MESSAGE:  # of what agents say at work only directives are learned
        said = replace(said, text=f"@observe project\n{words}")
    calls.call(CALLERS[who], "ingest", api.IngestRequest(events=(said,)))

    calls.call(PERSON, "settle", api.SettleRequest(timeout_ms=20_000))

    entries = calls.call(PERSON, "list", api.ListRequest(limit=500)).entries
    made = [entry.memory for entry in entries if words[-20:] in entry.memory.content]
    assert [memory.trust for memory in made] == [trust]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, "done"),
        ({"scope": Scope.PROJECT, "resource_id": "own"}, "done"),
        ({"scope": Scope.SESSION, "resource_id": "own session"}, "done"),
        ({"scope": Scope.PROJECT, "resource_id": "other"}, "denied"),
        ({"scope": Scope.SESSION, "resource_id": "other session"}, "denied"),
        ({"layer": Layer.IDENTITY}, "denied"),
        ({"layer": Layer.ACTIVE}, "denied"),
        ({"layer": Layer.SURFACED}, "denied"),
        ({"name": "identity/name"}, "denied"),
        ({"name": "  identity/name"}, "denied"),
        ({"name": "harmless", "aliases": ("active/task",)}, "denied"),
    ],
)
def test_an_agent_adds_to_its_own_scopes_and_never_to_what_is_always_loaded(
    calls: Calls, changes: dict[str, Any], found: str
) -> None:
    draft = MemoryDraft(content=anew("a note of an agent"), **changes)

    assert outcome(lambda: calls.call(BOUND, "add", draft)) == found
    if found == "done":
        assert outcome(lambda: calls.call(PERSON, "add", draft)) == "done"


def test_an_agent_does_not_lift_its_own_memory_into_a_layer_or_a_reserved_name(calls: Calls) -> None:
    own = calls.call(BOUND, "add", MemoryDraft(content=anew("a note"))).memory.id

    for name, request in (
        ("update", api.UpdateRequest(ref=own, layer=Layer.IDENTITY)),
        ("update", api.UpdateRequest(ref=own, layer=Layer.ACTIVE)),
        ("update", api.UpdateRequest(ref=own, layer=Layer.SURFACED)),
        ("rename", api.RenameRequest(ref=own, name="identity/name")),
        ("alias", api.AliasRequest(ref=own, alias="active/task")),
    ):
        assert outcome(lambda name=name, request=request: calls.call(BOUND, name, request)) == "denied"  # type: ignore[misc]


def test_the_words_of_the_person_get_no_new_name_from_an_agent_that_adds_them_again(calls: Calls) -> None:
    words = anew("The bicycle is green")
    theirs = calls.call(PERSON, "add", MemoryDraft(content=words)).memory.id

    again = calls.call(BOUND, "add", MemoryDraft(content=words, name=anew("bicycle")))

    assert (again.memory.id, again.created, again.memory.name, again.aliases) == (theirs, False, None, ())


@pytest.mark.parametrize(
    ("project", "session", "found"),
    [
        (None, "own session", "done"),
        ("own", "own session", "done"),
        ("other", "own session", "denied"),
        ("own", "other session", "denied"),
    ],
)
def test_an_agent_sends_events_of_its_own_project_and_session(
    calls: Calls, project: str | None, session: str, found: str
) -> None:
    sent = event(anew("heard"), project, session)

    if found == "denied":
        assert outcome(lambda: calls.call(BOUND, "ingest", api.IngestRequest(events=(sent,), learn=False))) == found
    else:
        (stored,) = calls.call(BOUND, "ingest", api.IngestRequest(events=(sent,), learn=False)).ids
        assert calls.event(stored).project == "own"


@pytest.mark.parametrize("asked", [{"project": "other"}, {"session_id": "other session"}])
@pytest.mark.parametrize("name", ["list", "recall", "get", "context", "forget"])
def test_a_request_narrows_what_an_agent_sees_and_never_widens_it(
    calls: Calls, name: str, asked: dict[str, str]
) -> None:
    ref = calls.memories()["the own project's"]

    assert outcome(lambda: calls.call(BOUND, name, replace(ROWS[name].request(ref), **asked))) == "denied"
    assert outcome(lambda: calls.call(BOUND, name, replace(ROWS[name].request(ref), project="own"))) == "done"


def test_a_session_and_a_project_that_nothing_belongs_to_yet_show_nothing_of_others(calls: Calls) -> None:
    memories = calls.memories()
    newcomer = Caller(principal=Principal.AGENT, agent="crow", project="new project", session_id="new session")

    response = calls.call(newcomer, "recall", ROWS["recall"].request(""))

    found = {hit.id for hit in response.hits}
    assert {whose for whose, ref in memories.items() if ref in found} <= EVERYBODYS


def test_an_event_of_another_project_is_not_there_to_be_forgotten_by_an_agent(calls: Calls) -> None:
    events = calls.events()

    for whose, ref in events.items():
        found = outcome(lambda ref=ref: calls.call(BOUND, "forget", api.ForgetRequest(ref=ref)))  # type: ignore[misc]
        assert found == ("missing" if whose == "other" else "done"), whose


# Who calls


def test_a_memory_opened_for_an_agent_calls_as_that_agent(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", project="own") as person:
        person.set_identity("name", "g1itchbot")
        theirs = person.add("The person's note").memory.id

    with Memory(tmp_path / "memory.db", project="own", agent="crow") as agent:
        assert agent.get_identity() == {"name": "g1itchbot"}
        assert agent.add("The agent's note").memory.trust is Trust.AGENT
        with pytest.raises(DeniedError):
            agent.set_identity("name", "somebody else")
        with pytest.raises(DeniedError):
            agent.update(theirs, "Another note")


def test_headers_bind_an_agent_alone_and_the_persons_token_is_the_persons(daemon: Settings, over_http: Calls) -> None:
    memories = over_http.memories()
    other = memories["another project's"]
    token, agents = (path.read_text(encoding="ascii").strip() for path in (daemon.token_path, daemon.agent_token_path))
    running = (discover(daemon.data_dir) or pytest.fail("no daemon")).running
    assert running is not None
    assert token != agents
    assert daemon.agent_token_path.stat().st_mode & 0o077 == 0

    def status(token: str, **headers: str) -> str:
        client = Client(token=token, address=(running.host, running.port))
        client._caller_headers = headers
        with client:
            return outcome(lambda: client.call("GET", f"/v1/memories/{other}"))

    assert status(token) == "done"
    assert status(token, **{"Scrubjay-Project": "own"}) == "done", "the person is not bound"
    assert status(agents) == "missing"
    assert status(agents, **{"Scrubjay-Project": "own"}) == "missing"
    assert status(agents, **{"Scrubjay-Project": "%6Fther"}) == "done", "headers are percent-encoded"
    with pytest.raises(UnauthenticatedError), Client(token="x" * 43, address=(running.host, running.port)) as stranger:
        stranger.call("GET", "/v1/stats")


def test_a_file_is_believed_no_more_than_an_import() -> None:
    assert access.TRUST_CEILING[IMPORTER.principal] is Trust.IMPORT
