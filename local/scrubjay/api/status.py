"""How the store and the daemon are, and which models are in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """A request without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacingStats:
    """What was told to agents ahead, in the days that are kept, and what became of it.

    Of what is judged, `told` and `used` count things, `outcomes` by what became of them; `waiting` may still be used.
    `hit_rate` is the share that was used, `waste` the share of the `tokens` that was not (`wasted_tokens`); None where
    nothing is judged yet. `floor` is how probable a thing must be now to be told.
    """

    told: int
    used: int
    waiting: int
    tokens: int
    wasted_tokens: int
    floor: float
    hit_rate: float | None = None
    waste: float | None = None
    outcomes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsResponse:
    """Counts and sizes of the store. `refused` texts are those that the model refused to embed.

    `refused_reports` counts what hosts' hooks reported in the last 30 days and nobody could keep.
    """

    memories: int
    events: int
    sessions: int
    aliases: int
    grips: int
    ops: int
    identity_keys: int
    active_keys: int
    by_type: dict[str, int]
    by_kind: dict[str, int]
    file_bytes: int
    schema_version: int
    embedded: int
    to_embed: int
    to_learn: int
    space: str | None
    refused: int = 0
    oldest: Millis | None = None
    newest: Millis | None = None
    surfacing: SurfacingStats | None = None
    refused_reports: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCost:
    """What a run of a job would cost now: calls of the Writer, each answered at the first try, and their tokens.

    `input_tokens` and `output_tokens` are at most; `about` is what so many calls of this job cost on average in the
    last 30 days, read and written together, null before its first. `left_today` and `left_this_month` are what the
    caps leave; what does not fit (`fits`) is done without the Writer. Where `whole` is false more waits than was
    looked at.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    left_today: int
    left_this_month: int
    fits: bool
    whole: bool = True
    about: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A background job: when it ran, how it went, when it runs next. A paused one waits to be resumed.

    `waiting` says why work of the night has not begun though it is time for it; None where nothing keeps it.
    `counts` is what it has counted in all its runs, by name: of `observe`, the facts that it stored and dropped.
    `cost` is what a run would cost now, null where it asks no Writer; `jobs` alone tells it, and not `status`.
    """

    name: str
    running: bool
    runs: int
    failures: int
    last_start: Millis | None = None
    last_ms: int | None = None
    last_error: str | None = None
    next_run: Millis | None = None
    pending: int = 0
    paused: bool = False
    waiting: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    cost: JobCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsResponse:
    """The background jobs."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Run, pause or resume the job of this name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job. `error` is the code of the error that ended it, null when it went well.

    `waited_ms` is how long a run that was asked for waited for the one under way, which may have done its work.
    `problem` is what that error says and what to do about it; a history tells the code alone.
    """

    job: str
    started: Millis
    ms: int
    error: str | None = None
    waited_ms: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunsRequest:
    """The last runs of the job of this name, or of all jobs."""

    name: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunsResponse:
    """Runs, newest first. Only the last 50 of each job are kept."""

    runs: tuple[JobRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusResponse:
    """How the daemon is: process, store, models, jobs.

    A model's state is "loaded", "idle" (loaded when it is next needed), "none", "absent" (a reranker that is not
    installed, which is no fault), or the code of the error that it met. `warnings` need somebody to act,
    `notes` do not.
    """

    version: str
    pid: int
    started: Millis
    file: str
    sqlite_version: str
    schema_version: int
    device: str
    model: str
    model_state: str
    reranker: str
    reranker_state: str
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...] = ()
    surfacing: SurfacingStats | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleRequest:
    """Wait until nothing is left to learn or embed, for at most `timeout_ms`; 0 only looks."""

    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleResponse:
    """What is still waiting; zeros when all is done.

    `problem` is why a language model that is set could not be asked, null where it could or none is set.
    """

    to_learn: int
    to_embed: int
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """The model to embed or rerank with from now on, whichever it does; "none" for lexical recall only.

    With `reranker` the name is that of a reranking model: "none" then means that nothing is reranked.
    """

    name: str
    reranker: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """One model: "embedder" or "reranker", whether its files are here and whole, and whether it is in use."""

    name: str
    kind: str
    state: str
    bytes: int
    licence: str
    in_use: bool
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsResponse:
    """The models, and how far embedding has come in the space in use.

    `refused` texts are found by their words alone. `notes` say where another model is named than the one in use.
    """

    models: tuple[ModelState, ...]
    space: str | None
    embedded: int
    to_embed: int
    refused: int = 0
    notes: tuple[str, ...] = ()
