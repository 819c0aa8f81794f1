"""`from scrubjay import Memory`: the operations of scrubjay, synchronous, on a file. Holds no logic of its own.

mem = Memory("agent_memory.db")
mem.set_identity("name", "g1itchbot")
mem.add("We chose SQLite", memory_type="decision")
mem.search("which database?")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from scrubjay import api, checkouts, destination
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.retrieval import packing
from scrubjay.transports import local
from scrubjay.upkeep import Review, Vault
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventDraft, Json, Kind, Layer, MemoryDraft, MemoryType, Scope

EnumT = TypeVar("EnumT", bound=StrEnum)


class Memory:
    """One store, opened by its file, which is made if it is not there. Any thread may call it.

    It is closed by `close`, by `with`, when it is collected, or when the process ends. When a daemon has the file, the
    same operations run there, with the same results; when another process that is not a daemon has it, opening raises
    ConflictError and names it. Methods raise the errors of `scrubjay_shared.errors`; UnavailableError after `close`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        project: str | Path | None = None,
        session: str | None = None,
        agent: str | None = None,
    ) -> None:
        """Open the store in that file; without one, the store of this machine, which the commands use too.

        `project` and `session` narrow what is asked: see `scrubjay.api`. A project is named by a folder of it (a Path,
        or a string that begins like one: ".", "~/shop"), or by the name that `sessions` shows. With `agent`, the name
        of an agent, the calls are that agent's and not the person's: it sees the memories of the person and of its own
        project and session, what it adds is trusted as an agent's, and it cannot write identity. See
        `scrubjay.api.access`.
        """
        self._project = project = None if project is None else checkouts.absolute(project)
        self._session = session
        caller = PERSON
        if agent is not None:
            caller = Caller(principal=Principal.AGENT, agent=agent, project=project, session_id=session)
        self._transport = local.open_file(None if path is None else Path(path), caller=caller)

        self.review = Review(self.call)
        """What waits for the person, and what the person says of it."""
        self.vault = Vault(self.call)
        """Agents' memories as plain files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({str(self._transport.path)!r}, through={self._transport.through!r})"

    def close(self) -> None:
        """Finish what was begun, and let go of the file. A second close does nothing."""
        self._transport.close()

    def call(self, name: str, request: Any) -> Any:
        """Run any operation of `scrubjay.api.operations` and return its response. All methods below call it."""
        return self._transport.call(name, request)

    # Identity and active context: what an agent loads at its start.

    def set_identity(self, key: str, value: str) -> None:
        """Set one line of who this agent is and whom it works for; an empty value removes it."""
        self.call("set_identity", api.SlotRequest(key=key, value=value))

    def get_identity(self) -> dict[str, str]:
        """Return the identity layer, e.g. `{"name": "g1itchbot"}`."""
        return self._context().identity

    def get_identity_context(self) -> str:
        """Return the identity layer as text: a heading, and a line like `- name: g1itchbot` for each key; or ""."""
        return packing.layer_text(packing.IDENTITY_TITLE, self.get_identity())

    def set_active(self, key: str, value: str) -> None:
        """Set one line of what is going on now; an empty value removes it."""
        self.call("set_active", api.SlotRequest(key=key, value=value))

    def get_active(self) -> dict[str, str]:
        """Return the active layer, e.g. `{"task": "Building memory system"}`."""
        return self._context().active

    def get_active_context(self) -> str:
        """Return the active layer as text; "" when it is empty."""
        return packing.layer_text(packing.ACTIVE_TITLE, self.get_active())

    def active(self) -> api.ActiveResponse:
        """Return what is active, and what is proposed for it: open goals, last decisions, what was left unfinished."""
        answer: api.ActiveResponse = self.call(
            "active", api.ActiveRequest(project=self._project, session_id=self._session)
        )
        return answer

    def brief(self) -> api.BriefResponse:
        """Return the project's brief: the memories that its agents are handed first."""
        answer: api.BriefResponse = self.call(
            "brief", api.BriefRequest(project=self._project, session_id=self._session)
        )
        return answer

    def confirm_active(self, *refs: str, every: bool = False) -> api.ActiveResponse:
        """Put proposals into the active layer, by their ids or all of them. Raises NotFoundError."""
        answer: api.ActiveResponse = self.call("confirm_active", self._proposals(refs, every=every))
        return answer

    def dismiss_active(self, *refs: str, every: bool = False) -> api.ActiveResponse:
        """Propose these no more for the same reason; take active ones out of the layer. Raises NotFoundError."""
        answer: api.ActiveResponse = self.call("dismiss_active", self._proposals(refs, every=every))
        return answer

    def _proposals(self, refs: tuple[str, ...], *, every: bool) -> api.ProposalsRequest:
        return api.ProposalsRequest(refs=refs, every=every, project=self._project, session_id=self._session)

    def get_startup_context(self) -> str:
        """Return identity and active layer as text, within their budgets; it says so itself when it had to cut."""
        return self._context().text

    def _context(self) -> api.ContextResponse:
        answer: api.ContextResponse = self.call(
            "context", api.ContextRequest(project=self._project, session_id=self._session)
        )
        return answer

    # Memories.

    def add(
        self,
        content: str,
        memory_type: MemoryType | str = MemoryType.FACT,
        salience: float | None = None,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        kind: Kind | str = Kind.STORED,
        topic: str | None = None,
        layer: Layer | str = Layer.ARCHIVE,
        metadata: Json | None = None,
    ) -> api.Entry:
        """Remember a text and return it as stored; an equal one that is there already is returned instead.

        `salience` is in [0, 1]; None lets the type decide. In a Memory with a project or session, it belongs to that.
        """
        scope, resource = self._scope()
        draft = MemoryDraft(
            content=content,
            name=name,
            aliases=tuple(aliases),
            kind=_member(Kind, kind),
            type=_member(MemoryType, memory_type),
            scope=scope,
            resource_id=resource,
            layer=_member(Layer, layer),
            salience=salience,
            topic=topic,
            metadata=metadata or {},
        )
        answer: api.Entry = self.call("add", draft)
        return answer

    def learn(self, text: str, *, dry_run: bool = False) -> api.LearnResponse:
        """Learn from a text that the person says, and return what is kept of each sentence and why.

        `dry_run` stores nothing. `scrubjay.extract_memories` reads a text without any store.
        """
        answer: api.LearnResponse = self.call(
            "learn", api.LearnRequest(text=text, project=self._project, dry_run=dry_run)
        )
        return answer

    def search(self, query: str, limit: int = 5, min_salience: float = 0.0) -> list[api.Hit]:
        """Return the memories that answer a question, best first."""
        return list(self.recall(query, limit=limit, min_salience=min_salience, kinds=("memory",)).hits)

    def recall(
        self,
        query: str,
        *,
        also: Iterable[str] = (),
        limit: int = 20,
        mode: api.Mode | str = api.Mode.HYBRID,
        kinds: Iterable[str] = ("memory", "event"),
        types: Iterable[MemoryType | str] = (),
        topic: str | None = None,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
        as_of: Millis | datetime | None = None,
        min_salience: float = 0.0,
        max_tokens: int | None = None,
        neighbours: int = 0,
        rerank: bool = True,
        scope: Scope | str | None = None,
        agent: str | None = None,
    ) -> api.RecallResponse:
        """Return the memories and events that answer a question, each with where it was read. See `RecallRequest`.

        `also` are up to three other phrasings of it: what any of them finds becomes one list. `since` belongs to the
        period and `until` does not: a `datetime` (a naive one is local time), or UTC milliseconds. `as_of`, written
        alike, asks what was known and held just before that moment.
        """
        request = api.RecallRequest(
            query=query,
            also=(also,) if isinstance(also, str) else tuple(also),
            limit=limit,
            mode=_member(api.Mode, mode),
            project=self._project,
            session_id=self._session,
            scope=None if scope is None else _member(Scope, scope),
            agent=agent,
            since=_millis(since),
            until=_millis(until),
            as_of=_millis(as_of),
            types=tuple(_member(MemoryType, each) for each in types),
            topic=topic,
            kinds=tuple(kinds),
            min_salience=min_salience,
            max_tokens=max_tokens,
            neighbours=neighbours,
            rerank=rerank,
        )
        answer: api.RecallResponse = self.call("recall", request)
        return answer

    def ask(
        self,
        question: str,
        *,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
        as_of: Millis | datetime | None = None,
        scope: Scope | str | None = None,
        agent: str | None = None,
    ) -> api.AskResponse:
        """Have the Writer answer a question from what is remembered, with what each statement cites, or not known.

        Raises ConflictError where no Writer is set: `recall` needs none. Times are written as in `recall`.
        """
        request = api.AskRequest(
            question=question,
            project=self._project,
            session_id=self._session,
            scope=None if scope is None else _member(Scope, scope),
            agent=agent,
            since=_millis(since),
            until=_millis(until),
            as_of=_millis(as_of),
        )
        answer: api.AskResponse = self.call("ask", request)
        return answer

    def get(self, ref: str) -> api.Entry:
        """Return one memory by id, prefix of at least 6 characters, name, or alias."""
        answer: api.Entry = self.call("get", self._ref(ref))
        return answer

    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        memory_type: MemoryType | str | None = None,
        kind: Kind | str | None = None,
        layer: Layer | str | None = None,
    ) -> api.ListResponse:
        """Return a page of memories, newest first."""
        request = api.ListRequest(
            limit=limit,
            cursor=cursor,
            type=None if memory_type is None else _member(MemoryType, memory_type),
            kind=None if kind is None else _member(Kind, kind),
            layer=None if layer is None else _member(Layer, layer),
            project=self._project,
            session_id=self._session,
        )
        answer: api.ListResponse = self.call("list", request)
        return answer

    def update(
        self,
        ref: str,
        content: str | None = None,
        *,
        memory_type: MemoryType | str | None = None,
        salience: float | None = None,
        topic: str | None = None,
        layer: Layer | str | None = None,
        metadata: Json | None = None,
        valid_from: Millis | None = None,
        valid_to: Millis | None = None,
        superseded_by: str | None = None,
        archived: bool | None = None,
        clear: Sequence[str] = (),
    ) -> api.Entry:
        """Rewrite a memory's words or fields; None leaves a field as it is.

        `superseded_by` is the memory that takes its place, `clear` names fields that get no value. With `archived`, it
        is kept and no longer recalled or listed; with False, it comes back.
        """
        request = api.UpdateRequest(
            ref=ref,
            content=content,
            type=None if memory_type is None else _member(MemoryType, memory_type),
            salience=salience,
            topic=topic,
            layer=None if layer is None else _member(Layer, layer),
            metadata=metadata,
            valid_from=valid_from,
            valid_to=valid_to,
            superseded_by=superseded_by,
            archived=archived,
            clear=tuple(clear),
            project=self._project,
            session_id=self._session,
        )
        answer: api.Entry = self.call("update", request)
        return answer

    def supersede(self, ref: str, content: str | None = None, *, by: str | None = None) -> api.SupersedeResponse:
        """Let another memory take a memory's place: the one that `by` refers to, or a new one of `content`.

        The old one is kept: `why` of the new one shows it, and `undo` takes this back.
        """
        request = api.SupersedeRequest(ref=ref, by=by, content=content, project=self._project, session_id=self._session)
        answer: api.SupersedeResponse = self.call("supersede", request)
        return answer

    def trace(self, ref: str, *, limit: int = 100) -> api.TraceResponse:
        """Return the whole way of a memory, an event, a session, a request or a run: stages, ids and times."""
        answer: api.TraceResponse = self.call("trace", api.TraceRequest(id=ref, limit=limit))
        return answer

    def history(
        self, cause: str | None = None, *, kind: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> api.HistoryResponse:
        """Return the runs and requests that changed the memory, newest first; or what one of them did."""
        request = api.HistoryRequest(cause=cause, kind=kind, limit=limit, cursor=cursor)
        answer: api.HistoryResponse = self.call("history", request)
        return answer

    def undo(self, cause: str, *, dry_run: bool = False) -> api.UndoResponse:
        """Take back what a run or a request wrote, where nobody has changed it since."""
        answer: api.UndoResponse = self.call("undo", api.UndoRequest(cause=cause, dry_run=dry_run))
        return answer

    def consolidate(self, *, dry_run: bool = False) -> api.ConsolidateResponse:
        """Merge what is there twice, end what was outdated, compress old detail. `undo` of its cause takes it back."""
        answer: api.ConsolidateResponse = self.call("consolidate", api.ConsolidateRequest(dry_run=dry_run))
        return answer

    def relearn(self, *, dry_run: bool = False) -> api.RelearnResponse:
        """Have sessions read anew, in the background: what lesser readers made of them gives way. `undo` ends that.

        With `dry_run` only say what that would read and end.
        """
        answer: api.RelearnResponse = self.call("relearn", api.RelearnRequest(dry_run=dry_run))
        return answer

    def diff(
        self, cause: str | None = None, *, since: Millis | None = None, limit: int = 50, cursor: str | None = None
    ) -> api.DiffResponse:
        """Return what became of memories from a run or request on, or from a time on (UTC milliseconds)."""
        request = api.DiffRequest(cause=cause, since=since, limit=limit, cursor=cursor)
        answer: api.DiffResponse = self.call("diff", request)
        return answer

    def rename(self, ref: str, name: str) -> api.Entry:
        """Give a memory another name. The old one goes on resolving to it."""
        answer: api.Entry = self.call(
            "rename", api.RenameRequest(ref=ref, name=name, project=self._project, session_id=self._session)
        )
        return answer

    def alias(self, ref: str, alias: str, *, remove: bool = False) -> api.Entry:
        """Give a memory one more name, or take it away."""
        answer: api.Entry = self.call(
            "alias",
            api.AliasRequest(ref=ref, alias=alias, remove=remove, project=self._project, session_id=self._session),
        )
        return answer

    def forget(self, ref: str, *, keep_sources: bool = False) -> api.ForgetResponse:
        """Erase a memory, or an event by its id, and the words it was read from unless `keep_sources`."""
        answer: api.ForgetResponse = self.call(
            "forget",
            api.ForgetRequest(ref=ref, keep_sources=keep_sources, project=self._project, session_id=self._session),
        )
        return answer

    def forget_all(
        self,
        *,
        import_cause: str | None = None,
        session_id: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> api.ForgetAllResponse:
        """Erase all of an import, a session or a project, and what was learned from it; the person alone may."""
        request = api.ForgetAllRequest(
            import_cause=import_cause, session_id=session_id, project=project, dry_run=dry_run
        )
        answer: api.ForgetAllResponse = self.call("forget_all", request)
        return answer

    def feedback(
        self, *refs: str, helped: bool = True, wrong: bool = False, content: str | None = None
    ) -> api.FeedbackResponse:
        """Say that memories helped, did not, or are wrong; `content` is what holds instead of one that is wrong."""
        request = api.FeedbackRequest(
            refs=refs,
            helped=helped and not wrong,
            wrong=wrong,
            content=content,
            project=self._project,
            session_id=self._session,
        )
        answer: api.FeedbackResponse = self.call("feedback", request)
        return answer

    def why(self, ref: str) -> api.WhyResponse:
        """Return the passages a memory was read from, and everything that happened to it."""
        answer: api.WhyResponse = self.call("why", self._ref(ref))
        return answer

    # Events, files, and the store as a whole.

    def ingest(self, events: Iterable[EventDraft | Mapping[str, Any]], *, learn: bool = True) -> api.IngestResponse:
        """Append what was said; it is durable on return, and learned from in the background (`settle` waits)."""
        drafts = tuple(each if isinstance(each, EventDraft) else draft(each) for each in events)
        answer: api.IngestResponse = self.call("ingest", api.IngestRequest(events=drafts, learn=learn))
        return answer

    def import_file(
        self,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002  # the word of the command line and of the record
        only: str | None = None,
        dry_run: bool = False,
        restore: bool = False,
    ) -> api.ImportResponse:
        """Learn from a transcript, a conversation, notes or an export. Importing the same again adds nothing.

        With `restore`, the file is an export of your own, and its layers and trust are put back as they stand in it.
        """
        path = Path(path)
        request = api.ImportRequest(
            name=path.name,
            data=path.read_bytes(),
            format=format,
            only=only,
            project=self._project,
            dry_run=dry_run,
            place=str(path.resolve()),
            restore=restore,
        )
        answer: api.ImportResponse = self.call("import", request)
        return answer

    def settle(self, timeout_s: float = 60.0) -> api.SettleResponse:
        """Wait until everything is learned and embedded, for at most `timeout_s`; returns what is still waiting."""
        answer: api.SettleResponse = self.call("settle", api.SettleRequest(timeout_ms=round(timeout_s * 1000)))
        return answer

    def export(self, path: str | Path, *, force: bool = False) -> int:
        """Write everything to a file, one JSON record a line, as `import_file` reads it. Returns the lines.

        Raises InvalidError for a file of the store, ConflictError for another that is there, unless `force`.
        """
        lines = 0
        target = destination.check(Path(path), self._transport.path, force=force)
        with destination.written(target, force=force) as part, part.open("wb") as file:
            for line in self._transport.stream("export", api.Nothing()):
                file.write(line + b"\n")
                lines += 1
            file.flush()
        return lines

    def backup(self, path: str | Path, *, force: bool = False) -> api.PathResponse:
        """Write a checked copy of the store while it is in use. Raises as `export`."""
        request = api.PathRequest(path=str(Path(path).absolute()), force=force)
        answer: api.PathResponse = self.call("backup", request)
        return answer

    def audit(self) -> api.AuditResponse:
        """Return what is wrong with what is remembered (repetitions, echoes, junk, secrets), in counts and ids."""
        answer: api.AuditResponse = self.call("audit", api.Nothing())
        return answer

    def stats(self) -> dict[str, Any]:
        """Return counts and sizes: `{"memories": 324, "identity_keys": 3, ...}`, the fields of `StatsResponse`."""
        counts: dict[str, Any] = msgspec.to_builtins(self.call("stats", api.Nothing()))
        return counts

    def events(
        self,
        *,
        session_id: str | None = None,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> api.EventsResponse:
        """Return a page of events in time order, from `since` to before `until`: see `recall`."""
        request = api.EventsRequest(
            session_id=session_id,
            project=self._project,
            since=_millis(since),
            until=_millis(until),
            limit=limit,
            cursor=cursor,
        )
        answer: api.EventsResponse = self.call("events", request)
        return answer

    def toc(self, node: str | None = None, *, limit: int = 100, cursor: str | None = None) -> api.TocResponse:
        """Return a node of the table of contents by time, e.g. `toc:month:2026-11`, with its children.

        Without one, the root, whose children are the years. See `scrubjay.api.toc`.
        """
        request = api.TocRequest(id=node, project=self._project, session_id=self._session, limit=limit, cursor=cursor)
        answer: api.TocResponse = self.call("toc", request)
        return answer

    def timeline(
        self,
        *,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
        level: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> api.TimelineResponse:
        """Return what was talked of from `since` to before `until`, by year, month, week, day or segment (`level`)."""
        request = api.TimelineRequest(
            since=_millis(since),
            until=_millis(until),
            level=level,
            project=self._project,
            session_id=self._session,
            limit=limit,
            cursor=cursor,
        )
        answer: api.TimelineResponse = self.call("timeline", request)
        return answer

    def expand(self, grip_id: str, *, before: int = 2, after: int = 2) -> api.GripResponse:
        """Return the passage behind a bullet or a memory, with so many events before and after it."""
        request = api.GripRequest(
            id=grip_id, before=before, after=after, project=self._project, session_id=self._session
        )
        answer: api.GripResponse = self.call("grip", request)
        return answer

    def route(
        self,
        query: str,
        *,
        intent: api.Intent | str | None = None,
        limit: int = 3,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
        agent: str | None = None,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
    ) -> api.RouteResponse:
        """Return where a question's answer stands, by what it is after, and how that was found. See `RouteRequest`."""
        request = api.RouteRequest(
            query=query,
            intent=None if intent is None else _member(api.Intent, intent),
            limit=limit,
            max_tokens=max_tokens,
            timeout_ms=None if timeout_s is None else round(timeout_s * 1000),
            agent=agent,
            since=_millis(since),
            until=_millis(until),
            project=self._project,
            session_id=self._session,
        )
        answer: api.RouteResponse = self.call("route", request)
        return answer

    def teleport(
        self, query: str, *, mode: api.TeleportMode | str = api.TeleportMode.HYBRID, limit: int = 10
    ) -> api.TeleportResponse:
        """Return pointers into the table of contents that some words or their meaning lead to."""
        request = api.TeleportRequest(
            query=query,
            mode=_member(api.TeleportMode, mode),
            limit=limit,
            project=self._project,
            session_id=self._session,
        )
        answer: api.TeleportResponse = self.call("teleport", request)
        return answer

    def compact(self, session_id: str, *, upto: str | None = None) -> api.CompactResponse:
        """Put a session up to an event, or all of it, into an archive, and mark the place. Nothing is lost."""
        answer: api.CompactResponse = self.call("compact", api.CompactRequest(session_id=session_id, upto=upto))
        return answer

    def replay(
        self, session_id: str, *, archive: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> api.ReplayResponse:
        """Return a session's history from its latest marker on; or the events that one of its archives stands for."""
        request = api.ReplayRequest(session_id=session_id, archive=archive, limit=limit, cursor=cursor)
        answer: api.ReplayResponse = self.call("replay", request)
        return answer

    def agents(self) -> tuple[api.Agent, ...]:
        """Return the agents that events came from, the one that was there last first."""
        answer: api.AgentsResponse = self.call(
            "agents", api.AgentsRequest(project=self._project, session_id=self._session)
        )
        return answer.agents

    def agent_activity(
        self,
        agent: str | None = None,
        *,
        since: Millis | datetime | None = None,
        until: Millis | datetime | None = None,
        bucket: api.Bucket | str = api.Bucket.DAY,
    ) -> tuple[api.Activity, ...]:
        """Return what agents, or one, did on each day or in each week; without `since`, of the last 30 days."""
        request = api.ActivityRequest(
            agent=agent,
            since=_millis(since),
            until=_millis(until),
            bucket=_member(api.Bucket, bucket),
            project=self._project,
            session_id=self._session,
        )
        answer: api.ActivityResponse = self.call("agent_activity", request)
        return answer.activity

    def _ref(self, ref: str) -> api.RefRequest:
        return api.RefRequest(ref=ref, project=self._project, session_id=self._session)

    def _scope(self) -> tuple[Scope, str | None]:
        if self._session is not None:
            return Scope.SESSION, self._session
        if self._project is not None:
            return Scope.PROJECT, self._project
        return Scope.USER, None


def draft(fields: Mapping[str, Any]) -> EventDraft:
    """Return the event that a mapping describes. Raises InvalidError naming the field that is wrong."""
    try:
        return msgspec.convert(fields, EventDraft)
    except msgspec.ValidationError as error:
        raise InvalidError(f"not an event: {error}", hint="an event has agent, session_id, type and text") from error


def _millis(at: Millis | datetime | None) -> Millis | None:
    return Millis(round(at.timestamp() * 1000)) if isinstance(at, datetime) else at


def _member(closed: type[EnumT], value: str) -> EnumT:
    try:
        return closed(value)
    except ValueError:
        allowed = ", ".join(member.value for member in closed)
        word = closed.__name__.removeprefix("Memory").lower()
        raise InvalidError(f"{value!r} is not a {word}", hint=f"allowed: {allowed}") from None
