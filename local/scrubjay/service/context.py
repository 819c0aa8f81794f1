"""The layers that are always loaded: who the agent is, and what it is at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.access import ACTIVE_PREFIX, IDENTITY_PREFIX, View
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.lifecycle import proposals
from scrubjay.lifecycle.trust import is_held_back
from scrubjay.policy import MemoryPolicy
from scrubjay.retrieval import packing
from scrubjay.service import refusals, transfer
from scrubjay.service.forget import Forgetting
from scrubjay.service.handing import Handing, Wish
from scrubjay.service.references import References
from scrubjay.service.threads import off_loop
from scrubjay.store import MemoryWrite, Store, Transaction
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, InvalidError, NotFoundError, TooLargeError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Kind, Layer, Memory, MemoryDraft, MemoryType


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a layer that is always loaded: its key, and the memory that holds it."""

    key: str
    memory: Memory


class Context:
    """The identity and the active layer of one store. `wake` tells a background job that it has something to do."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        references: References,
        forgetting: Forgetting,
        handing: Handing,
        wake: Callable[[str], None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._forgetting = forgetting
        self._handing = handing
        self._wake = wake
        self._now = now

    async def context(self, caller: Caller, request: api.ContextRequest) -> api.ContextResponse:
        """Return the startup context: who the agent is and what it is at, within their budgets, and more.

        That is what agents are handed; with a prompt, what is handed beside it. Nothing counts as handed over by being
        asked for here.
        """
        _check(request, self._policy)
        found = await self.always(caller, project=request.project, session_id=request.session_id)
        wish = Wish(
            project=request.project if request.project is not None else caller.project,
            session_id=request.session_id if request.session_id is not None else caller.session_id,
            prompt=request.prompt,
            max_tokens=request.max_tokens,
            always=found.text if request.prompt is None else "",
        )
        items, handed = await self._handing.chosen(caller, wish)
        notes = await self._references.notes_on(request.project)
        return replace(found, notes=notes, items=items, handed=handed, project=wish.project)

    async def always(self, caller: Caller, *, project: str | None, session_id: str | None) -> api.ContextResponse:
        """Return the layers that are always loaded, as a caller sees them."""
        seen = access.view(caller, project=project, session_id=session_id)
        identity = await self.lines(Layer.IDENTITY, seen)
        active = await self.lines(Layer.ACTIVE, seen)
        limits = self._policy.limits
        made = partial(
            packing.context,
            _texts(identity),
            _texts(active),
            identity_tokens=limits.identity_tokens,
            active_tokens=limits.active_tokens,
            first=_first((*identity, *active)),
        )
        return await off_loop(sum(len(line.memory.content) for line in (*identity, *active)), made)

    async def set_identity(self, caller: Caller, request: api.SlotRequest) -> api.ContextResponse:
        """Set one line of the identity layer."""
        return await self._set_slot(caller, Layer.IDENTITY, IDENTITY_PREFIX, request)

    async def set_active(self, caller: Caller, request: api.SlotRequest) -> api.ContextResponse:
        """Set one line of the active layer."""
        return await self._set_slot(caller, Layer.ACTIVE, ACTIVE_PREFIX, request)

    async def _set_slot(
        self, caller: Caller, layer: Layer, prefix: str, request: api.SlotRequest
    ) -> api.ContextResponse:
        access.check_layer(caller, layer)
        name = prefix + intake.name(self._policy, request.key)
        if not request.value.strip():
            held = (await self._store.read(lambda q: q.names.holders([name]))).get(name)
            if held is None:
                raise NotFoundError(
                    f"the {layer} layer has no line called {request.key!r}", hint="scrubjay context shows its lines"
                )
            await self._forgetting.forget(caller, api.ForgetRequest(ref=held, for_good=False))
            return await self.context(caller, api.ContextRequest())
        content = await off_loop(len(request.value), lambda: intake.content(self._policy, request.value))

        def work(tx: Transaction) -> None:
            held = tx.queries.names.holders([name]).get(name)
            if held is not None:
                if tx.queries.memories.is_imported(held):
                    raise ConflictError(
                        f"the name {name!r} belongs to memory {held}, which came from a file",
                        hint=f"scrubjay forget {held} removes that one; then set the line again",
                    )
                fields = {Field.CONTENT: content, Field.LAYER: layer.value}
                write = MemoryWrite(memory_id=held, fields=fields)
            else:
                draft = MemoryDraft(content=content, name=name, kind=Kind.NOTE, type=MemoryType.LONG_TERM, layer=layer)
                write = MemoryWrite(memory_id=tx.new_id(), fields=transfer.fields_of(draft, tx.now), names=(name,))
            refusals.lifted(tx, caller, write)
            tx.memories.write([write])

        await self._store.write(work, cause=self._store.new_cause(f"set_{layer}"))
        self._wake("embed")
        return await self.context(caller, api.ContextRequest())

    async def slots(self, layer: Layer, seen: View) -> dict[str, str]:
        """Return the lines of a layer that a caller sees, by their keys."""
        return _texts(await self.lines(layer, seen))

    async def lines(self, layer: Layer, seen: View) -> list[Line]:
        """Return the lines of a layer that a caller sees, oldest first; what does not hold any more is none."""
        found: dict[str, Line] = {}
        for memory in await self._store.read(lambda q: q.memories.layer(layer.value)):
            if seen.shows(memory) and proposals.holds(memory, self._now()) and not is_held_back(memory.review):
                name = memory.name or memory.id[-6:]
                key = name.removeprefix(IDENTITY_PREFIX).removeprefix(ACTIVE_PREFIX)
                found[key] = Line(key, memory)
        return list(found.values())


def _texts(lines: Iterable[Line]) -> dict[str, str]:
    return {line.key: line.memory.content for line in lines}


def _first(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return the keys of lines in the order in which they stay where not all fit: what is salient, then what is new."""
    ordered = sorted(lines, key=lambda line: (-line.memory.salience, -line.memory.updated_at, line.key))
    return tuple(dict.fromkeys(line.key for line in ordered))


def _check(request: api.ContextRequest, policy: MemoryPolicy) -> None:
    if request.max_tokens is not None and request.max_tokens < 1:
        raise InvalidError(
            f"max_tokens must be 1 or more, got {request.max_tokens}", hint="leave it out for the usual budget"
        )
    if request.prompt is not None and len(request.prompt) > policy.limits.max_query_chars:
        raise TooLargeError(
            f"a prompt must have at most {policy.limits.max_query_chars} characters, got {len(request.prompt)}",
            hint="its beginning is enough to find what belongs to it",
        )
