"""An archive of a compaction without words that were forgotten: the one change that it ever sees."""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay.store import MemoryWrite, Transaction
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Grip


def rewrite(tx: Transaction, archives: Iterable[str]) -> None:
    """Write some archives again from the quotations that are left of them, under their names.

    Their ids change: what was forgotten is erased from the log too, and with it all that was ever said of the old ones.
    """
    from scrubjay.compaction import extract  # noqa: PLC0415  # what distils is an eighth of the daemon's start

    for memory_id in archives:
        memory = tx.queries.memories.get(memory_id)
        about = extract.About.of(memory.metadata)
        if about is None:
            continue
        grips = tx.queries.grips.of_memory(memory_id)
        events = tx.queries.events.by_id([grip.event_id_start for grip in grips], chars=0)
        lines = [
            extract.Line(
                part=extract.part_of(grip.source),
                event_id=grip.event_id_start,
                start=grip.span_start,
                end=grip.span_end,
                text=grip.excerpt,
                speaker=events[grip.event_id_start].speaker,
                trust=memory.trust,
                ts=grip.created_at,
            )
            for grip in grips
            if grip.event_id_start in events
        ]
        aliases = [alias.name for alias in tx.queries.names.aliases([memory_id]).get(memory_id, ())]
        names = ([] if memory.name is None else [memory.name]) + aliases
        tx.forget.memory(memory_id)
        new_id = tx.new_id()
        fields = {
            Field.CONTENT: extract.rendered(about, lines),
            Field.KIND: memory.kind.value,
            Field.NAME: memory.name,
            Field.TYPE: memory.type.value,
            Field.SCOPE: memory.scope.value,
            Field.RESOURCE_ID: memory.resource_id,
            Field.SALIENCE: memory.salience,
            Field.TRUST: memory.trust.value,
            Field.CREATED_AT: int(memory.created_at),
            Field.METADATA: memory.metadata,
        }
        kept = tuple(
            Grip(
                id=tx.new_id(),
                memory_id=new_id,
                event_id_start=grip.event_id_start,
                event_id_end=grip.event_id_end,
                span_start=grip.span_start,
                span_end=grip.span_end,
                excerpt=grip.excerpt,
                source=grip.source,
                created_at=grip.created_at,
            )
            for grip in grips
            if grip.event_id_start in events
        )
        tx.memories.write(
            [
                MemoryWrite(
                    memory_id=new_id,
                    fields={key: value for key, value in fields.items() if value is not None},
                    grips=kept,
                    names=tuple(names),
                )
            ]
        )
