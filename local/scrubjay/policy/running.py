"""How the daemon, its background work and its models are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonPolicy:
    """How long the daemon waits for what, and how much it logs."""

    start_seconds: float = 150.0  # a start takes 2 s; of a million events without their saved index 25 to 105
    stop_seconds: float = 10.0  # from SIGTERM to SIGKILL: grace, then a checkpoint of the store
    grace_seconds: int = 5  # for requests in flight at SIGTERM; below stop_seconds, to leave time to close the store
    handover_seconds: float = 12.0  # for a predecessor to let go of the store; above stop_seconds
    poll_seconds: float = 0.02  # between looks while starting or stopping: one is a file that is not there yet
    watch_seconds: float = 5.0  # between looks whether store and program are still there: 35 microseconds each
    keep_alive_seconds: int = 75  # an idle connection costs some kilobytes, opening one a millisecond
    log_bytes: int = 2 * 1024 * 1024  # one log file: months of a person's use
    log_files: int = 3  # older logs kept beside it
    log_lines: int = 50  # what `daemon logs` shows unless asked for more


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPolicy:
    """How many connections the daemon keeps, and how long a client may hold one without doing its part."""

    head_seconds: float = 10.0  # for the head of a request: it leaves a program in one write
    body_seconds: float = 30.0  # between two parts of a body: a program that makes it as it sends pauses for seconds
    unread_seconds: float = 60.0  # for an answer of which nothing is read: its words are kept until it ends
    look_seconds: float = 5.0  # between looks at them while there are any: microseconds each
    most: int = 1_000  # of one listener: a person's programs open some dozens
    least: int = 8  # of one listener, however few files may be open
    other_files: int = 192  # the store, the models, the log (some 60), and two times `waiting` not yet counted
    waiting: int = 64  # connections that are taken at a time: a burst must not use up the files before it is counted
    full_log_seconds: float = 60.0  # between two lines that say that no file can be opened: it may last for hours


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPolicy:
    """How much background work is done at a time, and how often it is looked for."""

    learn_events: int = 500  # events distilled in one transaction: about a second of work, then others get their turn
    learn_context: int = 4  # events before the first new one: enough for "it" and "that" to find what they mean
    near_candidates: int = 12  # memories with the most words in common that a new one is compared with
    near_tokens: int = 16  # words of a memory, its rarest, that they are looked up by: more cost time and find the same
    near_rows: int = 4_096  # memories that hold any of these: commoner words are left out, which tell next to nothing
    embed_batch: int = 64  # texts embedded between two commits: about half a second, so a query is never kept waiting
    import_events: int = 500  # events of a file stored in one transaction
    # Memories of a file stored in one transaction. They are compared with what is stored, not with each other: of 500
    # at a time, an import of a thousand left half of what it contradicts itself in unseen; 50 cost a fifth more.
    import_memories: int = 100
    gather_ms: int = 500  # from new work to the job that does it: a turn's events come within this, and nobody waits
    sweep_seconds: int = 60  # how often jobs look for work that nobody announced (after a crash, mostly)
    spool_seconds: int = 5  # how often the spool is looked at: 20 microseconds each, and a file is stored within it
    maintain_seconds: int = 3_600  # how often the file is looked after
    history: int = 50  # runs of a job that are kept: some days of quiet use, half a minute of a large import
    count_log_ms: int = 3_600_000  # a memory's recall count goes into the log at most once an hour: sync sends that log
    unload_reader_seconds: int = 120  # it reads in bursts, in the background: nobody waits for it to be loaded again
    unload_seconds: int = 900  # the model leaves memory after a quarter of an hour without a question
    recalled_hits: int = 100  # the most hits of one answer
    neighbours: int = 10  # the most events to each side of a hit
    page: int = 500  # the most entries of one page
    switch_slack_seconds: float = 5.0  # before the event that says that memory is off: hosts write a prompt down first
    activity_days: int = 30  # of agents' activity, unless asked for other days: a month fits on a screen


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPolicy:
    """How long what a change replaced is kept, so that the change can be taken back."""

    after_request_ms: int = 24 * 3_600_000  # whoever changes a memory by name sees at once whether it was a slip
    after_run_ms: int = 30 * 24 * 3_600_000  # an import or a run of a job is noticed when its memories are next read
    kept_versions: int = 8  # causes whose writes to a field stay: undoing an undoing needs three, and edits cost


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPolicy:
    """How long a model is waited for, and when one that fails is left alone."""

    question_seconds: float = 2.0  # for a server, while somebody waits: a warm one takes 20 to 200 ms; then words alone
    failures: int = 2  # in a row until it is left alone: one lost answer may be chance, two cost a person 4 seconds
    rest_seconds: float = 10.0  # how long it is left alone at first: a server that restarts is back in that time
    rest_most_seconds: float = 300.0  # doubled after each failure up to this: what is down for long is asked seldom


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPolicy:
    """When work is done that can wait: once in a civil day, while nobody needs the machine."""

    hour: int = 3  # when a new day of work begins, by the machine's clock: who works late is done, who is early not up
    look_seconds: int = 600  # how often it is looked whether the moment is good: 1 ms each, and a night has 18 of them
    quiet_seconds: float = 120.0  # since the last question: who reads an answer asks the next within two minutes
    load: float = 0.7  # per core, over a minute: above, a build or a test run is under way
    most_seconds: float = 2 * 86_400  # then a battery or a busy machine is no reason any more: some are never else
    retry_seconds: int = 3_600  # after a failure: a full disk or a model's server seldom mends itself sooner
    integrity_days: int = 7  # reading everything costs a minute of CPU for a million events; disks rot slowly
    backups: int = 2  # copies: last night's, and the one before it if that one holds a mistake
    free_share: float = 1.5  # of the store's size that must be free: for the copy, and for the store to go on


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePolicy:
    """How much of the traces is kept."""

    file_bytes: int = 2 * 1024 * 1024  # of one of two files: some 20,000 stages, days of a busy machine
    ids: int = 50  # of one span: a page of hits; more are counted
    queued: int = 4_096  # spans that wait for the disk: a second of the busiest import
    flush_seconds: float = 5.0  # for the disk, at the end and before a trace is read
