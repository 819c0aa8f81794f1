"""Memories: read, listed, rewritten, named, forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Json, Kind, Layer, Memory, MemoryType, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory with the names that resolve to it. `created` is false when an equal memory was already there.

    `lifted` says that its words had been forgotten for good, and are refused no more since the person added them again.
    `supersedes` are the memories whose place a new one took when it was added.
    """

    memory: Memory
    aliases: tuple[str, ...] = ()
    created: bool = False
    lifted: bool = False
    supersedes: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRequest:
    """One memory, addressed by id, prefix, name or alias."""

    ref: str
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """A page of memories, newest first; with `archived`, of those that were archived. `cursor` is the last `next`.

    With `handed_first` they stand in the order in which agents are handed them: what is always loaded, then rules, then
    by how much each matters, and last what no agent is handed. A cursor belongs to the order of its page.
    """

    limit: int = 50
    cursor: str | None = None
    type: MemoryType | None = None
    kind: Kind | None = None
    layer: Layer | None = None
    scope: Scope | None = None
    project: str | None = None
    session_id: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    archived: bool = False
    handed_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListResponse:
    """A page of entries and the cursor of the next, None at the end. A page of large texts ends before its limit.

    `notes` say when nothing belongs to `project`.
    """

    entries: tuple[Entry, ...]
    next: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """New values for a memory's fields; None leaves a field as it is (`Write` of the entry model is `content`).

    `superseded_by` is a reference to the memory that takes this one's place; `clear` names fields that get no value:
    topic, valid_from, valid_to, superseded_by. Archived, a memory is kept, and neither recalled nor listed.
    """

    ref: str
    content: str | None = None
    type: MemoryType | None = None
    salience: float | None = None
    topic: str | None = None
    layer: Layer | None = None
    metadata: Json | None = None
    valid_from: Millis | None = None
    valid_to: Millis | None = None
    superseded_by: str | None = None
    archived: bool | None = None
    clear: tuple[str, ...] = ()
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeRequest:
    """That a memory holds no longer: another takes its place, which `by` refers to, or which is made of `content`.

    A new one is of the type, the scope and the topic of the old one.
    """

    ref: str
    by: str | None = None
    content: str | None = None
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeResponse:
    """The memory that ended, and the one that took its place.

    `still_holds` is what had taken the old one's place before, where it has not ended and the caller may see it.
    """

    old: Entry
    new: Entry
    still_holds: Memory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRequest:
    """A new canonical name. The old one stays as an alias, so that nothing that used it breaks."""

    ref: str
    name: str
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRequest:
    """Bind one more name to a memory, or with `remove` take it away."""

    ref: str
    alias: str
    remove: bool = False
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetsRequest:
    """What was forgotten last, at most `limit`; or the one thing with an id."""

    id: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReceipt:
    """What another device of the account claims: at `at` it said that it has carried the forget out; None for not yet.

    `seen` is when it last said anything, both by its own clock. Nobody can check that a device has erased.
    """

    device: str
    at: Millis | None = None
    seen: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenThing:
    """A memory or an event that was forgotten, on this machine too. `refused` counts how often its words came again.

    `refuses`: whether they still would be. `device` forgot it. `waiting` counts changes of it that may still stand in
    objects at the server, until they are packed anew.
    """

    id: str
    is_event: bool
    at: Millis
    device: str
    refuses: bool
    lifted: bool
    refused: int = 0
    refused_at: Millis | None = None
    waiting: int = 0
    receipts: tuple[ForgetReceipt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetsResponse:
    """What was forgotten, newest first. `synced` says whether other devices are to hear of it."""

    forgets: tuple[ForgottenThing, ...]
    synced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """Erase a memory or an event. `keep_sources` leaves the words in the events that the memory was read from.

    `for_good`: the same words are refused from then on, whoever comes with them, until the person adds them again.
    `in_copies`: where the person forgets for good, the words are blanked too in the copies that the store makes by
    itself. Of something that is forgotten already, that is all that is done.
    """

    ref: str
    keep_sources: bool = False
    for_good: bool = True
    in_copies: bool = True
    project: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResponse:
    """What is gone: memories and events by id. `sources` counts the passages blanked out of events.

    `copies` are files beside the store, made before, that may still hold the words: backups, and stores that a restore
    put aside. Nothing but the person deletes those. `remaining` are memories and events, by id, that hold a number, a
    key or an address of the words in another sentence: each can be forgotten by its id.

    Of the copies that the store makes by itself (of the last nights, from before a migration), `blanked` counts those
    that the words were taken out of, `deleted` are those where that failed, and `holding` counts those that hold them
    still: `blanks` is the person's command that blanks these; "" where that is under way. `in_log`: a long read still
    holds the words in the log of the file, which is cut back when that ends.
    """

    forgotten: tuple[str, ...]
    events: tuple[str, ...] = ()
    sources: int = 0
    copies: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    blanked: int = 0
    deleted: tuple[str, ...] = ()
    holding: int = 0
    blanks: str = ""
    in_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetAllRequest:
    """Erase all that an import brought, all of a session or all of a project, and what was learned from it.

    Exactly one is named: `import_cause` is the cause of an import, as the history names it. `dry_run` says what would
    go, and erases nothing. The same words are not refused later; the same events never come again.
    """

    import_cause: str | None = None
    session_id: str | None = None
    project: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetAllResponse:
    """What went, or would go: `of` says of what, `events` and `memories` count, `sessions` are those it is spread over.

    `examples` are, before anything went, the beginnings of some of the texts. The rest says what `ForgetResponse` says.
    """

    of: str
    events: int
    memories: int
    sessions: int
    dry_run: bool
    examples: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    blanked: int = 0
    deleted: tuple[str, ...] = ()
    holding: int = 0
    in_log: bool = False
