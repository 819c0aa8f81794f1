"""The one rule of access: what a caller may call, see and change, and how far what it writes is trusted. Pure.

Handlers ask it and decide nothing of this themselves. The person may do everything. An agent calls the operations that
name it; sees the person's memories, and those and the events of its own project and session; changes what is trusted
no more than itself; and writes nothing into the layers that are always loaded, nor pins what sessions are told first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from scrubjay.api.caller import Caller, Principal
from scrubjay.api.operations import Operation
from scrubjay_shared.errors import DeniedError, NotFoundError
from scrubjay_shared.records import (
    ALWAYS_LOADED,
    TRUST_ORDER,
    Event,
    EventDraft,
    Layer,
    Memory,
    MemoryDraft,
    Scope,
    Session,
    Trust,
)

TRUST_CEILING: Mapping[Principal, Trust] = {
    Principal.PERSON: Trust.USER,
    Principal.AGENT: Trust.AGENT,
    Principal.IMPORTER: Trust.IMPORT,
    Principal.HOST: Trust.USER,
}
"""The most that can be believed of what a principal writes, whatever that says of itself.

What nobody here says has its bound elsewhere. A job that distils gives a memory the trust of the event that it was read
from (`distill.observe`). What another device's op says is bounded by every device alike, or stores would differ: an
event by its role, a memory by the least that any write of it said, a layer by that (`scrubjay_shared.ops`).
"""

IDENTITY_PREFIX = "identity/"
ACTIVE_PREFIX = "active/"
RESERVED_NAMES = (IDENTITY_PREFIX, ACTIVE_PREFIX)
"""How the names of always loaded lines begin. Who may write no such line may claim no such name either."""

NO_PROJECT = ""
"""The project of an agent that has none: no event and no memory belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What of the store is seen: everything, or where one is given, what belongs to a project or a session.

    The person's memories, and events of no project, are always seen.
    """

    project: str | None = None
    session_id: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether anything is left out."""
        return self.project is not None or self.session_id is not None

    def shows(self, memory: Memory) -> bool:
        """Say whether a memory is seen."""
        if not self.is_bounded or memory.scope is Scope.USER:
            return True
        return memory.resource_id is not None and memory.resource_id in {self.project, self.session_id}

    def shows_event(self, event: Event) -> bool:
        """Say whether an event is seen."""
        return not self.is_bounded or event.project in {self.project, None} or event.session_id == self.session_id

    def shows_session(self, session: Session) -> bool:
        """Say whether a session is seen."""
        return not self.is_bounded or session.project in {self.project, None} or session.id == self.session_id


EVERYTHING = View()


def check_call(caller: Caller, operation: Operation) -> None:
    """Check that a caller may call an operation. Raises DeniedError."""
    if caller.principal not in operation.principals:
        allowed = " or ".join(sorted(operation.principals))
        raise DeniedError(
            f"{operation.name} is not for an {caller.principal}: it is for the {allowed}"
            if caller.principal is Principal.AGENT
            else f"{operation.name} is not for {caller.principal}",
            hint="ask the person to do it, with the command scrubjay",
        )


def view(caller: Caller, *, project: str | None = None, session_id: str | None = None) -> View:
    """Return what a caller sees, narrowed to what its request names. Raises DeniedError when that is not its own."""
    if caller.principal is not Principal.AGENT:
        return View(project=project, session_id=session_id)
    for kind, asked, own in (("project", project, caller.project), ("session", session_id, caller.session_id)):
        if asked is not None and asked != own:
            raise DeniedError(f"{asked[:80]!r} is not the caller's own {kind}", hint=f"leave out the {kind}")
    if project is not None or session_id is not None:
        return View(project=project or NO_PROJECT, session_id=session_id)
    return View(project=caller.project or NO_PROJECT, session_id=caller.session_id)


def check_resource(seen: View, resource_id: str | None) -> None:
    """Check that what belongs to one project or session is in view. Raises DeniedError."""
    if resource_id is not None and seen.is_bounded and resource_id not in {seen.project, seen.session_id}:
        raise DeniedError(
            f"{resource_id[:80]} is not the caller's own project or session", hint="leave out resource_id"
        )


def check_memory(caller: Caller, draft: MemoryDraft) -> None:
    """Check that a caller may add a memory of this layer, name and scope. Raises DeniedError."""
    if caller.principal is not Principal.AGENT:
        return
    check_layer(caller, draft.layer)
    for name in (draft.name, *draft.aliases):
        if name is not None:
            check_name(caller, name)
    if draft.scope is not Scope.USER and draft.resource_id not in {caller.project, caller.session_id} - {None}:
        raise DeniedError(
            f"{(draft.resource_id or '')[:80]!r} is not the caller's own {draft.scope}",
            hint=f"leave out the scope, or give the caller's own {draft.scope}",
        )


def check_layer(caller: Caller, layer: Layer) -> None:
    """Check that a caller may put something into a layer: who is an agent, into the archive. Raises DeniedError.

    What stands in the layer `surfaced` is told to every session first: it is the person who picks that.
    """
    if caller.principal is Principal.AGENT and layer is not Layer.ARCHIVE:
        sets = "scrubjay brief --pin ID pins a memory" if layer is Layer.SURFACED else "scrubjay context sets it"
        raise DeniedError(f"an agent does not write the {layer} layer", hint=f"ask the person: {sets}")


def check_name(caller: Caller, name: str) -> None:
    """Check that a caller may give a memory this name. Raises DeniedError."""
    if caller.principal is Principal.AGENT and " ".join(name.split()).startswith(RESERVED_NAMES):
        raise DeniedError("names of always loaded lines are the person's to give", hint="choose another name")


def check_change(caller: Caller, memory: Memory) -> None:
    """Check that a caller may rewrite or rename a memory. Raises DeniedError.

    An agent's words under the person's name would be believed as the person's.
    """
    if caller.principal is not Principal.AGENT:
        return
    check_forget(caller, memory)
    if TRUST_ORDER.index(memory.trust) > TRUST_ORDER.index(TRUST_CEILING[caller.principal]):
        raise DeniedError(
            f"memory {memory.id} is trusted as the {memory.trust}'s: an {caller.principal} does not rewrite it",
            hint="add a memory of your own, or ask the person to change this one",
        )


def check_forget(caller: Caller, memory: Memory) -> None:
    """Check that a caller may forget a memory that it sees. Raises DeniedError."""
    if caller.principal is Principal.AGENT and memory.layer in ALWAYS_LOADED:
        raise DeniedError(
            f"memory {memory.id} is always loaded, and only the person changes it", hint="ask the person to do it"
        )


def may_name_existing(caller: Caller) -> bool:
    """Say whether the names of what is added are bound to an equal memory that is there already."""
    return caller.principal is not Principal.AGENT


def owned(caller: Caller, draft: EventDraft) -> EventDraft:
    """Return an event as its caller may add it, in the caller's own project. Raises DeniedError for another's."""
    if caller.principal is not Principal.AGENT:
        return draft
    for kind, given, own in (
        ("project", draft.project, caller.project),
        ("session", draft.session_id, caller.session_id),
    ):
        if own is not None and given is not None and given != own:
            raise DeniedError(f"{given[:80]!r} is not the caller's own {kind}", hint=f"send events of {own[:80]!r}")
    return draft if draft.project is not None else replace(draft, project=caller.project)


def not_found(ref: str) -> NotFoundError:
    """Return the error for a memory that is not there; one that a caller does not see is not there for it."""
    return NotFoundError(f"there is no memory {ref[:60]!r}", hint="scrubjay list shows all memories with their ids")
