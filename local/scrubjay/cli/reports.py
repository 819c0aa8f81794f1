"""What commands print as JSON where it is not a record of the API."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay import api
from scrubjay.cli.check import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class InitReport:
    """What is in place now. The states are those of the models in use: ready, absent, damaged, remote or none."""

    data_dir: str
    models_dir: str
    config: str
    file: str
    memories: int
    model: str
    model_state: str
    reranker: str
    reranker_state: str
    writer: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterChoice:
    """A Writer that could be turned on: its name for `scrubjay writer on`, and the settings that it stands for.

    `models` are those that its server has, or the one that it is turned on with; none where `--model` must name it.
    `destination` says where text goes, `leaves` whether that is off this machine. It is paid by "nobody", by a "plan"
    (a subscription) or by a "key", for each token. `own_tokens` are about what it adds to each call.
    """

    name: str
    writer: str
    destination: str
    leaves: bool
    paid_by: str
    url: str = ""
    key_env: str = ""
    models: tuple[str, ...] = ()
    own_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterReport:
    """The Writer as it is now, the choices that were looked for, and the test call of one that was turned on.

    `daemon` says what a change means for it: "follows", "restart" where it must be started again, "stopped" where none
    runs; "" where nothing was changed.
    """

    status: api.WriterResponse
    choices: tuple[WriterChoice, ...] = ()
    trial: api.WriterTrial | None = None
    daemon: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What became of all events. `line` counts those read."""

    lines: int
    accepted: int
    duplicates: int
    redactions: dict[str, int]
    skipped: tuple[api.Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A file that could not be imported, and why."""

    path: str
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysLoaded:
    """Every line that agents are given in each session, by key: after something was put back, a person should know."""

    identity: dict[str, str]
    active: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import took, over all files. `formats` counts files by format; `failed` are those that gave nothing.

    `changed` counts what records said of themselves and a file cannot say: how far they are trusted, that they are
    loaded always. `always_loaded` is there after `--restore`. `cause` is what `scrubjay history` lists the import under
    if it wrote anything, and what `scrubjay undo` takes back; null after a dry run. `taken_back` are the beginnings of
    what you said on branches of conversations that you left, which are not imported. `waiting` counts the memories that
    wait for your review by now, of earlier imports too: agents are not handed them.
    """

    files: int
    events: int
    memories: int
    duplicates: int
    formats: dict[str, int]
    redactions: dict[str, int]
    skipped: tuple[api.Skipped, ...]
    failed: tuple[Failed, ...]
    dry_run: bool
    renamed: int = 0
    aliases_taken: int = 0
    changed: tuple[api.Skipped, ...] = ()
    always_loaded: AlwaysLoaded | None = None
    cause: str | None = None
    taken_back: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledHost:
    """What the transcripts of one host gave: files read, files that did not change since, events that hooks had missed.

    `duplicates` are the events that were there already, by a hook or by an earlier reading.
    """

    host: str
    files: int
    unchanged: int
    events: int
    duplicates: int
    redactions: dict[str, int]
    skipped: tuple[api.Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileReport:
    """What was missing, host by host; `failed` are the transcripts that could not be read.

    `cause` is what `scrubjay history` lists it under and `scrubjay undo` takes back, null when no file was read.
    """

    hosts: tuple[ReconciledHost, ...]
    failed: tuple[Failed, ...]
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What was written, and where: printed when the export itself goes to a file."""

    path: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """The store's file, what it was restored from, and where the old one is kept (null when there was none).

    `always_loaded` are the lines that agents are given from now on. `forgotten` counts what was forgotten after the
    backup was made and stays so; null where it came back, because it was asked for or the old store cannot be read.
    """

    file: str
    source: str
    kept: str | None
    always_loaded: AlwaysLoaded
    forgotten: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SalvageReport:
    """The store's file, what it was made of again, where the damaged one is kept, and what came over.

    `lost` counts the rows of each table that could not be read as they were written; `restamped` the events that keep
    their words and got another place in the log.
    """

    file: str
    source: str
    kept: str | None
    memories: int
    events: int
    ops: int
    lost: dict[str, int]
    restamped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonReport:
    """How the daemon is: running, stopped, stale (it was killed or crashed) or silent (it runs and does not answer).

    `already` is true when the state asked for held before; `killed` when stopping had to be forced. `status` is what
    the daemon says of itself while it runs.
    """

    state: str
    pid: int | None = None
    address: str | None = None
    socket: str | None = None
    already: bool = False
    killed: bool = False
    status: api.StatusResponse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """All checks; `healthy` when none failed."""

    healthy: bool
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFile:
    """A file of a host: what stands in it of scrubjay, and what became of it, or would: create, change, delete or keep.

    `diff` is there after a dry run.
    """

    path: str
    what: str
    action: str
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """One host. `installed` is whether it is on this machine, `captures` whether its sessions are taken in.

    `state` is how it was before: absent, partly (or set up by another version), or complete.
    `notes` say what was left out and why, `then` what is left for a person to do.
    """

    host: str
    title: str
    installed: bool
    state: str
    captures: bool
    files: tuple[SetupFile, ...]
    notes: tuple[str, ...] = ()
    then: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupReport:
    """What was done to the files of each host, or after a dry run what would be."""

    hosts: tuple[HostReport, ...]
    removed: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallReport:
    """The hosts that scrubjay was taken out of, or would be; `failed` are those whose files could not be changed.

    `daemon` is whether one ran, `stays` what is left of scrubjay's own, `then` the commands that are left to a person.
    """

    hosts: tuple[HostReport, ...]
    failed: tuple[Failed, ...]
    daemon: bool
    stays: tuple[str, ...]
    then: tuple[str, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbReport:
    """A falsified copy: where it is, where the key says what was done, and how many things of each kind and depth."""

    file: str
    key: str
    seed: int
    done: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that does not fit: what it is, what is wrong with it, and the command that brings it back."""

    what: str
    wrong: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """Of one kind and depth of falsifications, how many there are by the key, and how many were noticed."""

    kind: str
    depth: str
    done: int
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What does not fit in a store. With a key: what was noticed of each kind, and the findings it does not explain."""

    file: str
    sound: bool
    findings: tuple[Finding, ...]
    detected: tuple[Detected, ...] = ()
    unexplained: int = 0
