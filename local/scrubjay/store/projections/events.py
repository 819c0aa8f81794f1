"""Events: their rows and sessions, what the index learns of them, and how all of it changes when one is erased."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from types import MappingProxyType
from typing import Any

from scrubjay.index.documents import EventDoc
from scrubjay.store import checksums, received, row_inserts, rows, sqlite
from scrubjay.store.embed_queue import EmbedQueue
from scrubjay.store.projections.contents import Contents
from scrubjay.store.projections.memories import Memories
from scrubjay.store.projections.sessions import Sessions
from scrubjay.store.received import Ready
from scrubjay.store.session_counts import SessionCount, session_counts
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Event

_NONE: Mapping[int, tuple[str, str]] = MappingProxyType({})
_COLUMNS = f"n, {rows.EVENT_COLUMNS}, erased, seq, forgotten, crc"
_INSERT = f"insert into event ({_COLUMNS}) values ({rows.placeholders(_COLUMNS)})"
_INSERT_READY = (
    f"event (device, n, {rows.EVENT_COLUMNS.replace(' device,', '')}, seq, crc, erased, forgotten)",
    f"(?1, {', '.join('?' * 15)}, 0, 0)",
)
"""Where `Ready.rows` go, of the device that is bound first."""
_DOC = partial(tuple.__new__, EventDoc)
"""Makes an `EventDoc` of its values as a tuple, without a call of Python: a million when a device joins."""


class Events:
    """The table `event`, and what follows from its rows."""

    def __init__(
        self,
        context: WriteContext,
        sessions: Sessions,
        memories: Memories,
        queue: EmbedQueue,
        contents: Contents,
    ) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many
        self._sessions = sessions
        self._memories = memories
        self._queue = queue
        self._contents = contents

    def add(
        self,
        new: Sequence[tuple[int, sqlite.Row, bool, int]],
        *,
        learn: bool,
        words: Mapping[int, tuple[str, str]] = _NONE,
    ) -> None:
        """Add rows of events: (seq, row of EVENT_COLUMNS, whether it was forgotten, how often it was erased).

        `words` are speaker and tokens as `rows.received_words` says them, by seq, as far as they were made before.
        """
        numbered = list(enumerate(new, self._context.queries.events.last() + 1))
        self._run_many(
            _INSERT,
            checksums.all_summed([(n, *row, erased, seq, int(gone)) for n, (seq, row, gone, erased) in numbered]),
        )
        live = [(n, seq, row) for n, (seq, row, gone, _) in numbered if not gone]
        self._tell(((seq, row) for _, seq, row in live), words)
        last_learned = {row[3]: n for n, _, row in live} if learn else {}
        counts = session_counts((seq, row) for _, seq, row in live)
        self._follow([n for n, _ in numbered], counts, learn=learn, last_learned=last_learned)

    def add_ready(self, run: Ready) -> None:
        """Add the events of a run as they were made ready, none of them here, forgotten or erased, numbers and all."""
        width = received.EVENT_VALUES
        row_inserts.insert(self._context.connection, *_INSERT_READY, run.rows, width=width, shared=(run.device,))

        def column(place: int) -> list[Any]:
            return run.rows[place::width]

        times = column(received.TIME)
        said = zip(
            *(run.ids, column(received.SESSION), column(received.AGENT), times),
            [(ts << 20) + (seq & 0xFFFFF) for ts, seq in zip(times, run.places, strict=True)],
            *(run.speakers, column(received.TYPE), run.tokens, column(received.PROJECT)),
            strict=True,
        )
        self._context.changes.events += map(_DOC, compress(said, run.tokens))
        self._follow(column(0), run.sessions, learn=False, last_learned={})

    def _follow(
        self, numbers: Sequence[int], counts: Sequence[SessionCount], *, learn: bool, last_learned: Mapping[str, int]
    ) -> None:
        """Do what follows from new rows, of some arrival numbers in order, beside what the index is told."""
        if numbers:
            self._queue.add_events(numbers[0], numbers[-1])
        if not learn:
            unlearned = checksums.numbers_summed(numbers)
            row_inserts.insert(self._context.connection, "unlearned (n, crc)", "(?, ?)", unlearned, width=2)
        self._sessions.extend(numbers, counts, last_learned)
        self._contents.mark((count.id, count.first_at) for count in counts)
        self._memories.cover({count.id for count in counts})

    def _tell(
        self, numbered: Iterable[tuple[int, sqlite.Row]], words: Mapping[int, tuple[str, str]] = _NONE
    ) -> list[EventDoc]:
        """Tell the index of events (seq, row). Returns those that recall can return, as it holds them."""
        found = [
            rows.event_doc(row, seq) if (said := words.get(seq)) is None else rows.doc_of_made(row, seq, *said)
            for seq, row in numbered
        ]
        docs = [doc for doc in found if doc is not None]
        self._context.changes.events += docs
        return docs

    def add_twin(self, seq: int, event: Event, *, forgotten: bool) -> None:
        """Take in an event that another device has under the same id: the same one of the two counts everywhere."""
        row = self._fetch(f"select {rows.EVENT_COLUMNS} from event where id = ?", (event.id,))[0]
        there = rows.event_of(row)
        if there == event or ops.first_event(event, there) is there:
            return
        self._contents.erased(rows.array([event.id]))  # from where it stood: its place may have changed
        self._run(
            f"update event set ({rows.EVENT_COLUMNS}, seq, forgotten) = ({rows.placeholders(rows.EVENT_COLUMNS)}, ?, ?)"
            " where id = ?",
            (*rows.event_row(event), seq, int(forgotten), event.id),
        )
        self._context.note_rewritten()
        self._reindex(rows.array([event.id]))
        self._sessions.project([there.session_id])
        self._memories.cover([there.session_id])

    def rewrite(self, events: Sequence[tuple[str, str, str, int]]) -> None:
        """Give some events another (text, metadata, whether it is forgotten), and all that follows from these."""
        if not events:
            return
        ids = rows.array(event_id for event_id, *_ in events)
        self._run_many(
            "update event set text = ?, metadata = ?, forgotten = ?, erased = erased + 1 where id = ?",
            [(text, metadata, forgotten, event_id) for event_id, text, metadata, forgotten in events],
        )
        self._reindex(ids)

    def redact(self, event_ids: Iterable[str]) -> bool:
        """Erase the passages of some events that ops of type BLANK name. Returns whether any was still there."""
        spans = self.redactions(event_ids)
        found = self._fetch(
            "select id, text, metadata from event where id in (select value from json_each(?)) and not forgotten",
            (rows.array(spans),),
        )
        redacted = [(event_id, ops.blanked(text, spans[event_id]), text, more) for event_id, text, more in found]
        changed = [(event_id, now, more, 0) for event_id, now, text, more in redacted if now != text]
        self.rewrite(changed)
        kept = self._fetch(  # an event that its row cannot repeat byte for byte
            "select entity, device, seq, body from op where entity in (select value from json_each(?)) and type = ?"
            " and body is not null",
            (rows.array(spans), int(OpType.EVENT)),
        )
        self._run_many(
            "update op set body = ? where device = ? and seq = ?",
            [
                (ops.encode(ops.with_blanks(ops.decode(body, device=device, seq=seq), spans[event_id])), device, seq)
                for event_id, device, seq, body in kept
            ],
        )
        return bool(changed)

    def redactions(self, event_ids: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
        """Return the passages that were erased of each of some events, whether they came already or not."""
        found: dict[str, list[tuple[int, int]]] = {}
        if not self._fetch("select 1 from op indexed by op_erases where type in (3, 8) limit 1"):
            return found
        for event_id, body in self._fetch(
            "select entity, body from op indexed by op_erases where entity in (select value from json_each(?))"
            f" and type in (3, 8) and type = {int(OpType.BLANK)} and body is not null",
            (rows.array(event_ids),),
        ):
            found.setdefault(event_id, []).extend(ops.spans_of(ops.decode(body, device="", seq=0)))
        return found

    def _reindex(self, ids: str) -> None:
        """Tell the index and the sessions of some events (a JSON array of ids) that changed."""
        self._run(
            "delete from embedding where space in (select id from space) and owner in (select value from json_each(?))",
            (ids,),
        )
        self._queue.change_events(ids)
        self._contents.erased(ids)
        found = self._fetch(
            f"select {rows.EVENT_COLUMNS}, n, seq, forgotten from event"
            " where id in (select value from json_each(?)) order by n",
            (ids,),
        )
        searched = {doc.id for doc in self._tell((row[14], row) for row in found if not row[15])}
        self._context.changes.stale.update(row[0] for row in found)
        self._context.changes.removed += sorted({row[0] for row in found} - searched)
        self._sessions.project({row[3] for row in found})
        self._memories.cover({row[3] for row in found})
