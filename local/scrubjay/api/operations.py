"""The registry of operations: what scrubjay can be asked, as data. Free of any transport.

Every transport, every client and every plugin looks an operation up here by its name. What an operation is over HTTP
(method, path, status) is `transports.http.routes`; what runs it is bound where the application is composed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scrubjay import api
from scrubjay.api.caller import Principal
from scrubjay_shared.records import MemoryDraft


class Kind(StrEnum):
    """Whether an operation gives one response, or a stream of lines."""

    UNARY = "unary"
    STREAM = "stream"


PERSON_ONLY = frozenset({Principal.PERSON})
HOSTS_TOO = frozenset({Principal.PERSON, Principal.HOST})
EVERYONE = frozenset({Principal.PERSON, Principal.AGENT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: its name, the records it takes and gives, and who may call it.

    Of a stream, `response` is the type of one line.
    """

    name: str
    request: type[Any]
    response: type[Any]
    summary: str = ""
    kind: Kind = Kind.UNARY
    principals: frozenset[Principal] = EVERYONE


def _named(operations: Iterable[Operation]) -> dict[str, Operation]:
    return {operation.name: operation for operation in operations}


OPERATIONS: dict[str, Operation] = _named(
    (
        Operation(
            name="ingest",
            request=api.IngestRequest,
            response=api.IngestResponse,
            summary="Append events; durable when answered, learned from in the background.",
        ),
        Operation(
            name="hook",
            request=api.HookRequest,
            response=api.HookResponse,
            summary="Store what an agent's host reports, and answer with what the agent is to be handed.",
            principals=HOSTS_TOO,
        ),
        Operation(
            name="events",
            request=api.EventsRequest,
            response=api.EventsResponse,
            summary="Page through events in time order.",
        ),
        Operation(
            name="sessions", request=api.Nothing, response=api.SessionsResponse, summary="All sessions, newest first."
        ),
        Operation(
            name="compact",
            request=api.CompactRequest,
            response=api.CompactResponse,
            summary="Compact a session up to an event: an archive stands for what came before, a marker says so.",
        ),
        Operation(
            name="replay",
            request=api.ReplayRequest,
            response=api.ReplayResponse,
            summary="A session's history from its latest marker on, or what one of its archives stands for.",
        ),
        Operation(
            name="agents",
            request=api.AgentsRequest,
            response=api.AgentsResponse,
            summary="The agents that events came from, the one that was there last first.",
        ),
        Operation(
            name="agent_activity",
            request=api.ActivityRequest,
            response=api.ActivityResponse,
            summary="What agents did on each day or in each week of the person's calendar.",
        ),
        Operation(
            name="toc",
            request=api.TocRequest,
            response=api.TocResponse,
            summary="A node of the table of contents by time, with its children: years, months, weeks, days, segments.",
        ),
        Operation(
            name="timeline",
            request=api.TimelineRequest,
            response=api.TimelineResponse,
            summary="The nodes of one level of the table of contents with events between two times.",
        ),
        Operation(
            name="grip",
            request=api.GripRequest,
            response=api.GripResponse,
            summary="The passage behind a bullet or a memory, with what was said before and after it.",
        ),
        Operation(
            name="add",
            request=MemoryDraft,
            response=api.Entry,
            summary="Add a memory; an equal one in the same scope is returned instead of stored twice.",
        ),
        Operation(
            name="observe",
            request=api.ObserveRequest,
            response=api.ObserveResponse,
            summary="Store one fact where the last turns of a session say it, with the passages; else nothing.",
        ),
        Operation(
            name="learn",
            request=api.LearnRequest,
            response=api.LearnResponse,
            summary="Learn from a text that the person says, and show what is kept of each sentence and why.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="relearn",
            request=api.RelearnRequest,
            response=api.RelearnResponse,
            summary="Read sessions anew that lesser readers learned from, in the background; or say what it would do.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="list",
            request=api.ListRequest,
            response=api.ListResponse,
            summary="Page through memories, newest first.",
        ),
        Operation(
            name="get", request=api.RefRequest, response=api.Entry, summary="One memory by id, prefix, name or alias."
        ),
        Operation(
            name="update",
            request=api.UpdateRequest,
            response=api.Entry,
            summary="Rewrite a memory's content or fields.",
        ),
        Operation(
            name="supersede",
            request=api.SupersedeRequest,
            response=api.SupersedeResponse,
            summary="Let another memory, or a new text, take a memory's place; the old one is kept as history.",
        ),
        Operation(
            name="forget",
            request=api.ForgetRequest,
            response=api.ForgetResponse,
            summary="Erase a memory (or an event, by its id) and the words it was read from.",
        ),
        Operation(
            name="forget_all",
            request=api.ForgetAllRequest,
            response=api.ForgetAllResponse,
            summary="Erase all of an import, a session or a project, and what was learned from it.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="forgets",
            request=api.ForgetsRequest,
            response=api.ForgetsResponse,
            summary="What was forgotten, and which devices say that they have carried it out.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="rename",
            request=api.RenameRequest,
            response=api.Entry,
            summary="Give a memory another canonical name.",
        ),
        Operation(
            name="alias", request=api.AliasRequest, response=api.Entry, summary="Bind or remove an additional name."
        ),
        Operation(
            name="why",
            request=api.RefRequest,
            response=api.WhyResponse,
            summary="The passages a memory was read from, and its history.",
        ),
        Operation(
            name="trace",
            request=api.TraceRequest,
            response=api.TraceResponse,
            summary="The whole way of a memory, an event, a session, a request or a run: stages, ids and times.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="projects",
            request=api.Nothing,
            response=api.ProjectsResponse,
            summary="List the folders that say which project they are of, and which of them wait for your yes.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="trust_folder",
            request=api.TrustFolderRequest,
            response=api.TrustFolderResponse,
            summary="Let a folder be of the project that it claims, or not; what it had stored by itself moves there.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="feedback",
            request=api.FeedbackRequest,
            response=api.FeedbackResponse,
            summary="Say that memories helped whoever recalled them, did not, or are wrong.",
        ),
        Operation(
            name="history",
            request=api.HistoryRequest,
            response=api.HistoryResponse,
            summary="What changed the memory: runs and requests, newest first; or what one of them did.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="undo",
            request=api.UndoRequest,
            response=api.UndoResponse,
            summary="Take back what a run or a request wrote, where nobody has changed it since.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="consolidate",
            request=api.ConsolidateRequest,
            response=api.ConsolidateResponse,
            summary="Merge what is there twice, end what was outdated, compress old detail; or say what that would do.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="diff",
            request=api.DiffRequest,
            response=api.DiffResponse,
            summary="What became of memories since a run or a time: each field before and after.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="review",
            request=api.ReviewRequest,
            response=api.ReviewResponse,
            summary="Memories that wait for the person, why, and the words that they were read from.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="audit",
            request=api.Nothing,
            response=api.AuditResponse,
            summary="How much of what is remembered is said twice, an echo, junk, or stands where it should not.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="decide",
            request=api.DecideRequest,
            response=api.DecideResponse,
            summary="Accept or reject memories; what is rejected is not learned again from the same words.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="conflicts",
            request=api.ConflictsRequest,
            response=api.ConflictsResponse,
            summary="What devices wrote without having seen each other's, and memories that may replace earlier ones.",
        ),
        Operation(
            name="resolve",
            request=api.ResolveRequest,
            response=api.Entry,
            summary="Settle a conflict: keep the value that is shown, another device's, or both of two memories.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="recall",
            request=api.RecallRequest,
            response=api.RecallResponse,
            summary="Memories and events that answer a question, best first.",
        ),
        Operation(
            name="ask",
            request=api.AskRequest,
            response=api.AskResponse,
            summary="An answer of the Writer from what recall finds, each statement with what it cites; or not known.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="route",
            request=api.RouteRequest,
            response=api.RouteResponse,
            summary="Where a question's answer stands in the table of contents, and how that was found.",
        ),
        Operation(
            name="teleport",
            request=api.TeleportRequest,
            response=api.TeleportResponse,
            summary="Pointers into the table of contents, by words, by meaning or by both.",
        ),
        Operation(
            name="layers",
            request=api.Nothing,
            response=api.LayersResponse,
            summary="The layers that a question can be routed to, and how each is.",
        ),
        Operation(
            name="context",
            request=api.ContextRequest,
            response=api.ContextResponse,
            summary="What an agent loads at its start: identity and active layer.",
        ),
        Operation(
            name="brief",
            request=api.BriefRequest,
            response=api.BriefResponse,
            summary="A project's brief: what it is, how to work there, what was decided, what to beware of.",
        ),
        Operation(
            name="set_identity",
            request=api.SlotRequest,
            response=api.ContextResponse,
            summary="Set one line of the identity layer.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="set_active",
            request=api.SlotRequest,
            response=api.ContextResponse,
            summary="Set one line of the active layer.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="active",
            request=api.ActiveRequest,
            response=api.ActiveResponse,
            summary="What is active, and what is proposed: open goals, last decisions, what was left unfinished.",
        ),
        Operation(
            name="confirm_active",
            request=api.ProposalsRequest,
            response=api.ActiveResponse,
            summary="Put proposals into the active layer.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="dismiss_active",
            request=api.ProposalsRequest,
            response=api.ActiveResponse,
            summary="Propose lines no more for that reason; take active ones out of the layer.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="import",
            request=api.ImportRequest,
            response=api.ImportResponse,
            summary="Import a file's bytes (base64 in JSON); idempotent.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="export",
            request=api.Nothing,
            response=bytes,
            kind=Kind.STREAM,
            summary="Everything that is not derived, one JSON object a line.",
            principals=PERSON_ONLY,
        ),
        Operation(name="stats", request=api.Nothing, response=api.StatsResponse, summary="Counts and sizes."),
        Operation(
            name="status", request=api.Nothing, response=api.StatusResponse, summary="Process, store, models and jobs."
        ),
        Operation(
            name="settle",
            request=api.SettleRequest,
            response=api.SettleResponse,
            summary="Wait until everything received has been learned and embedded.",
        ),
        Operation(
            name="backup",
            request=api.PathRequest,
            response=api.PathResponse,
            summary="Write a checked copy of the store while it runs.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="rebuild",
            request=api.RebuildRequest,
            response=api.RebuildResponse,
            summary="Derive everything again from events and ops.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="models",
            request=api.Nothing,
            response=api.ModelsResponse,
            summary="Embedding and reranking models, and progress.",
        ),
        Operation(
            name="jobs",
            request=api.Nothing,
            response=api.JobsResponse,
            summary="The background jobs, and how they are.",
        ),
        Operation(
            name="run_job",
            request=api.JobRequest,
            response=api.JobRun,
            summary="Run a background job now, and say how that went.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="pause_job",
            request=api.JobRequest,
            response=api.JobsResponse,
            summary="Leave a background job alone until it is resumed.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="resume_job",
            request=api.JobRequest,
            response=api.JobsResponse,
            summary="Have a paused background job look for work again.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="job_runs",
            request=api.JobRunsRequest,
            response=api.JobRunsResponse,
            summary="The last runs of background jobs, newest first.",
        ),
        Operation(
            name="vaults",
            request=api.VaultsRequest,
            response=api.VaultsResponse,
            summary="The folders in which agents' memories are kept as plain files, and how each file is.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="vault_init",
            request=api.VaultInitRequest,
            response=api.VaultsResponse,
            summary="Keep an agent's memory as plain files in a folder, and take in what stands there.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="vault_sync",
            request=api.VaultSyncRequest,
            response=api.VaultsResponse,
            summary="Merge plain files and store now; confirm or put back what is gone from the files.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="vault_stop",
            request=api.VaultStopRequest,
            response=api.VaultsResponse,
            summary="Keep an agent's plain files no longer; the files and the memories stay.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="vault_remember",
            request=api.VaultRememberRequest,
            response=api.VaultRememberResponse,
            summary="Append to an agent's episodic.md or social.md, or write its working.md anew.",
        ),
        Operation(
            name="vault_recall",
            request=api.VaultRecallRequest,
            response=api.VaultRecallResponse,
            summary="Sections of an agent's plain files that share words with a question, by BM25.",
        ),
        Operation(
            name="vault_compact",
            request=api.VaultCondenseRequest,
            response=api.VaultCondenseResponse,
            summary="Carry what an agent's episodic.md says again and again over to semantic.md, word for word.",
        ),
        Operation(
            name="vault_reflect",
            request=api.VaultCondenseRequest,
            response=api.VaultCondenseResponse,
            summary="Carry what an agent says of its own ways over to self.md, word for word.",
        ),
        Operation(
            name="cost",
            request=api.CostRequest,
            response=api.CostResponse,
            summary="What the Writer used, by day, job and model, and what is left of its caps.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="writer",
            request=api.Nothing,
            response=api.WriterResponse,
            summary="The Writer that is set, what is used of its caps, its last call, and what a day would take.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="try_writer",
            request=api.WriterRequest,
            response=api.WriterTrial,
            summary="Ask a Writer once about an invented sentence; it is counted, and nothing is set.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="use_writer",
            request=api.UseWriterRequest,
            response=api.WriterResponse,
            summary="Read the settings of the Writer again, and ask that one from now on, or none.",
            principals=PERSON_ONLY,
        ),
        Operation(
            name="use_model",
            request=api.ModelRequest,
            response=api.ModelsResponse,
            summary="Embed or rerank with another model from now on.",
            principals=PERSON_ONLY,
        ),
    )
)
"""Every operation of the core, by name."""
