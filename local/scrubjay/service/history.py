"""Why a memory is believed: where it was read, how it came to be, and what happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.importers import reconcile
from scrubjay.lifecycle.relearning import OBSERVER, PATTERNS, READER, By
from scrubjay.policy import MemoryPolicy
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Grip, Kind, Memory, Op


class History:
    """The history of one store's memories."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._references = references

    async def why(self, caller: Caller, request: api.RefRequest) -> api.WhyResponse:
        """Return the passages a memory was read from, with their events, and everything that happened to it."""
        view = access.view(caller, project=request.project, session_id=request.session_id)
        memory_id = await self._references.resolve(request.ref, view)
        grips = (await self._store.read(lambda q: q.grips.of_memories([memory_id]))).get(memory_id, ())
        sources: list[api.Source] = []
        for grip in grips:
            chars = max(grip.span_end, self._policy.limits.hit_chars)
            run = await self._store.read(lambda q: q.events.run(grip.event_id_start, grip.event_id_end, chars=chars))
            seen = tuple(event for event in run if view.shows_event(event))
            sources.append(api.Source(grip=grip, events=seen))
        entry = await self._references.entry(memory_id)
        found = await self._store.read(lambda q: q.ops.history(memory_id))
        causes = [cause for op, *_ in found if op is not None and (cause := ops.cause_of(op)) is not None]
        labels = await self._store.read(lambda q: q.causes.labels(causes))
        history = tuple(_change(row, labels) for row in found)
        helped, missed, wrong = await self._store.read(lambda q: q.feedback.counts(memory_id))
        replaced = await self._store.read(lambda q: q.memories.superseded_by(memory_id))
        after = entry.memory.superseded_by
        later = {} if after is None else await self._store.read(lambda q: q.memories.by_id([after]))
        return api.WhyResponse(
            entry=entry,
            origin=_origin(
                entry.memory, history, learned=bool(grips), device=self._store.device, reader=_reader(found, grips)
            ),
            sources=tuple(sources),
            history=history,
            supersedes=tuple(memory for memory in replaced if view.shows(memory)),
            successor=next((memory for memory in later.values() if view.shows(memory)), None),
            helped=helped,
            missed=missed,
            wrong=wrong,
        )


_CHANGES: dict[int, str] = {
    OpType.EVENT: "event",
    OpType.MEMORY: "write",
    OpType.CLAIM: "name",
    OpType.UNCLAIM: "unname",
    OpType.COUNT: "recalled",
    OpType.GRIP: "source",
    OpType.FORGET: "forget",
    OpType.BLANK: "redact",
}


def change_of(op_type: int) -> str:
    """Return what an op of a type did, in a word; its number for one that was erased or is of a newer version."""
    return _CHANGES.get(op_type, str(op_type))


def changed_fields(op: Op | None) -> tuple[str, ...]:
    """Return which fields of a memory an op wrote, by their names."""
    if op is None or op.type != OpType.MEMORY:
        return ()
    return tuple(key.name.lower() for key in ops.fields_of(op))


def _change(row: tuple[Op | None, int, str, int], labels: Mapping[str, str]) -> api.Change:
    op, op_type, device, seq = row
    cause = None if op is None else ops.cause_of(op)
    return api.Change(
        ts=Millis(0) if op is None else millis_of(Hlc(op.hlc)),
        device=device,
        seq=seq,
        change=change_of(op_type),
        fields=changed_fields(op),
        cause=cause,
        label=labels.get(cause or "", ""),
    )


def _reader(log: Sequence[tuple[Op | None, int, str, int]], grips: Sequence[Grip]) -> str:
    """Return what read a memory first, as `Origin.reader` says it."""
    sources = {grip.id: grip.source for grip in grips}
    written = [ops.grip_of(op) for op, *_ in log if op is not None and op.type == OpType.GRIP]
    source = next((sources[one] for one in written if one in sources), "")
    readers = {PATTERNS: By.PATTERNS, READER: By.READER, OBSERVER: By.WRITER}
    return next((by.value for begins, by in readers.items() if source.startswith(begins)), "")


def _origin(memory: Memory, history: Sequence[api.Change], *, learned: bool, device: str, reader: str) -> api.Origin:
    """Return how a memory came to be. Its first op says when and where; words that were erased leave none."""
    found = reconcile.places(memory.metadata)
    first = next((change for change in history if change.ts), None)
    return api.Origin(
        how="learned" if learned or memory.kind is Kind.OBSERVATION else "imported" if found else "added",
        by=memory.trust.value,
        ts=memory.created_at if first is None else first.ts,
        device="" if first is None else first.device,
        here=first is not None and first.device == device,
        places=tuple(
            api.Place(file=str(place.get("path") or place.get("source") or ""), heading=str(place.get("heading", "")))
            for place in found
        ),
        reader=reader,
    )
