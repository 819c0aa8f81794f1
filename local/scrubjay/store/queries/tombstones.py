"""Reading tombstones: which words were forgotten, as far as their digests tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scrubjay.store import rows
from scrubjay.store.causes import KEEPING_COPIES, REPLACING
from scrubjay.store.moved import KIND, with_replaced
from scrubjay.store.sqlite import Fetch
from scrubjay_shared import ops, tombstones
from scrubjay_shared.clock import Hlc, Millis, millis_of
from scrubjay_shared.ops import OpType
from scrubjay_shared.records import Op

UNSWEPT = "unswept"
"""The meta key of up to where the store was compared with what other devices forgot: [memory, event] by arrival."""

_NOT_OF_TEAMS = "id not in (select entity from placed where scope in (select team from team_log))"
"""Of memories: what others of a team may have written is not forgotten because the same words were."""


_KEEPING = rows.array(sorted(KEEPING_COPIES))
_REPLACING = rows.array(sorted(REPLACING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Words that may have been forgotten, and the project that they are of; None for those of none."""

    text: str
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A memory or an event that holds some words."""

    id: str
    text: str
    project: str | None
    is_event: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Something forgotten: by which op, and how often this device `refused` its words since, if it `refuses` them."""

    id: str
    device: str
    seq: int
    at: Millis
    is_event: bool
    lifted: bool
    refuses: bool
    refused: int
    refused_at: Millis | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What another device claims of a forget: it said at `at` that it has carried it out. `seen` is its last word."""

    device: str
    at: Millis | None
    seen: Millis | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All that an import, a session or a project brought: events in their order, and memories."""

    events: tuple[str, ...]
    memories: tuple[str, ...]
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Memories and passages of events that say what was forgotten.

    They are those up to some arrival numbers; None for a part of them.
    """

    upto: tuple[int, int] | None
    memories: tuple[str, ...]
    passages: Mapping[str, Sequence[tuple[int, int]]]
    ended: bool
    words_of: Mapping[str, Sequence[str]]
    """Of each of these memories and events, whose words it says: the ids of what was forgotten."""


class TombstoneQueries:
    """The keyed digests of forgotten words, and when these were forgotten."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    def keys(self) -> dict[str, bytes]:
        """Return the keys of digests by id, the smallest id first."""
        return {str(one): bytes(key) for one, key in self._fetch("select id, key from tombstone_key order by id")}

    def erasures(self, about: Iterable[str] = (), *, alone: bool = False) -> list[Op]:
        """Return the ops that erased what the copies beside the store are not to hold either, in their order.

        These are all but an agent's, a person's for once, and those of others of a team; and whoever wrote them, those
        by which some memories or events were forgotten, with all that went with these. `alone`: only the latter.
        What was erased because it stands elsewhere now is not among them until that is forgotten.
        """
        wanted = rows.array(sorted(set(about)))
        found = self._fetch(
            "with asked (n) as (select distinct cause from op indexed by op_erases where type in (3, 8)"
            "  and cause is not null and entity in (select value from json_each(?1)))"
            " select o.device, o.seq, o.body from op o indexed by op_erases left join cause c on c.n = o.cause"
            " where o.type in (3, 8) and o.body is not null"
            f" and {KIND} not in (select value from json_each(?4))"
            " and (o.cause in (select n from asked) or o.entity in (select value from json_each(?1)) or (not ?3"
            f"  and {KIND} not in (select value from json_each(?2))"
            "  and (o.device = (select value from meta where key = 'device') or o.entity not in"
            "   (select entity from placed where scope in (select team from team_log)))))"
            " order by o.hlc, o.device, o.seq",
            (wanted, _KEEPING, alone, _REPLACING),
        )
        decoded = (ops.decode(bytes(body), device=device, seq=seq) for device, seq, body in found)
        return with_replaced(self._fetch, decoded)

    def left_to_person(self, entities: Iterable[str]) -> set[str]:
        """Return which of some forgotten things nobody forgot but those who leave the copies to the person."""
        found = self._fetch(
            "select o.entity from op o indexed by op_erases left join cause c on c.n = o.cause"
            f" where o.type in (3, 8) and o.type = {int(OpType.FORGET)}"
            " and o.entity in (select value from json_each(?))"
            f" group by o.entity having min({KIND} in (select value from json_each(?)))",
            (rows.array(sorted(set(entities))), _KEEPING),
        )
        return {str(row[0]) for row in found}

    def any_words(self) -> bool:
        """Say whether any words are refused."""
        return bool(self._fetch("select 1 from tombstone_words limit 1"))

    def latest(self) -> Millis:
        """Return when something was forgotten last; 0 where nothing was."""
        return millis_of(Hlc(int(self._fetch("select coalesce(max(hlc), 0) from tombstone")[0][0])))

    def refusing(self, said: Sequence[Statement]) -> list[dict[str, Millis]]:
        """Return of each text what was forgotten of the same words, and when."""
        return self._known([(tombstones.forms(one.text), one.project) for one in said])

    def refusing_events(self, said: Sequence[Statement]) -> list[dict[str, Millis]]:
        """Return of each event's text which forgotten events said the same."""
        forms = [(tombstones.event_form(one.text), one.project) for one in said]
        return self._known([(() if form is None else (form,), project) for form, project in forms])

    def passages(self, said: Statement, *, at: Millis | None = None) -> list[tuple[int, int]]:
        """Return where the sentences of a text stand that were forgotten. With `at`, only those forgotten since."""
        return list(self._said(said, at=at))

    def _said(self, said: Statement, *, at: Millis | None = None) -> dict[tuple[int, int], list[str]]:
        """Return where those sentences stand, and of what they are the words, as `passages` does."""
        if not self.any_words():
            return {}
        spans = list(tombstones.sentences(said.text[:MAX_SEARCHED_CHARS]))
        found = self._known([(tombstones.forms(said.text[start:end]), said.project) for start, end in spans])
        since = {
            span: [entity for entity, when in forgotten.items() if at is None or at <= when]
            for span, forgotten in zip(spans, found, strict=True)
        }
        return {span: entities for span, entities in since.items() if entities}

    def left_of(self, said: Sequence[Statement]) -> list[str | None]:
        """Return what may be stored of each text: all of it, or without the sentences that were forgotten.

        None where nothing is left.
        """
        if not said or not self.any_words():
            return [one.text for one in said]
        return [
            None if whole else _without(one.text, self.passages(one))
            for one, whole in zip(said, self.refusing(said), strict=True)
        ]

    def holding(self, words: Sequence[str]) -> list[Held]:
        """Return the memories and events that hold one of some words (without case), as far as they still say any.

        Reads all that the store holds: some tenths of a second for a hundred thousand events. Of more than `MAX_WORDS`
        words the first are looked for: they are those of the beginning of a long text.
        """
        if not words:
            return []
        words = words[:MAX_WORDS]
        marks = " or ".join("instr(lower({0}), ?)" for _ in words)
        return [
            Held(id=row[0], text=row[1], project=row[2], is_event=bool(row[3]))
            for row in self._fetch(
                "select id, content, iif(scope = 'project', resource_id, null), 0 from memory"
                f" where kind <> 'archive' and {_NOT_OF_TEAMS} and ({marks.format('content')}) union all"
                f" select id, text, project, 1 from event where not forgotten and ({marks.format('text')})",
                (*words, *words),
            )
        ]

    def whole_of(self, *, cause: int | None, session_id: str | None, project: str | None) -> Whole:
        """Return what belongs to an import, by the number of its cause, to a session or to a project.

        Memories are those that it made or that are of it alone, and those read from nothing but these events.
        """
        chosen, value = next(
            (sql, value)
            for sql, value in (
                (f"id in (select entity from op where cause = ? and type = {int(OpType.EVENT)})", cause),
                ("session_id = ?", session_id),
                ("session_id in (select session_id from session_agent where project = ?1) and project = ?1", project),
            )
            if value is not None
        )
        events = self._fetch(f"select id, session_id from event where not forgotten and {chosen} order by n", (value,))
        ids = rows.array(str(row[0]) for row in events)
        own = (
            self._fetch(
                "select distinct o.entity from op o join memory m on m.id = o.entity where o.cause = ? and o.type = ?"
                " and not exists (select 1 from op p where p.entity = o.entity and p.type = o.type and p.hlc < o.hlc"
                "  and coalesce(p.cause, 0) <> o.cause)",
                (cause, int(OpType.MEMORY)),
            )
            if cause is not None
            else self._fetch(
                f"select id from memory where scope = '{'project' if session_id is None else 'session'}'"
                " and resource_id is not null and resource_id = ?",  # each kind has an index of its own
                (project if session_id is None else session_id,),
            )
        )
        learned = self._fetch(
            "select distinct g.memory_id from grip g join memory m on m.id = g.memory_id and m.kind = 'observation'"
            " where g.event_id_start in (select value from json_each(?1)) and not exists (select 1 from grip h"
            "  where h.memory_id = g.memory_id and h.event_id_start not in (select value from json_each(?1)))",
            (ids,),
        )
        return Whole(
            events=tuple(str(row[0]) for row in events),
            memories=tuple(dict.fromkeys(str(row[0]) for row in (*own, *learned))),
            sessions=len({row[1] for row in events}),
        )

    def forgets(self, entity: str | None, limit: int) -> list[Forget]:
        """Return what was forgotten last, or the one with an id; grips, which go with memories, are not among it."""
        chosen = "" if entity is None else " and o.entity = ?"
        found = self._fetch(
            "select o.entity, o.device, o.seq, o.hlc, t.lifted, exists (select 1 from event e where e.id = o.entity),"
            " exists (select 1 from tombstone_words w where w.entity = o.entity), coalesce(h.times, 0), h.last"
            " from tombstone t cross join op o on o.entity = t.id and o.hlc = t.hlc"  # each op by its entity
            " left join tombstone_hit h on h.entity = o.entity"
            " where o.type = 3 and o.entity not in (select id from tombstone_key)"
            f" and exists (select 1 from op p where p.entity = o.entity and p.type in (1, 2)){chosen}"
            " order by o.hlc desc, o.device limit ?",
            (*([] if entity is None else [entity]), limit),
        )
        return [
            Forget(
                id=row[0],
                device=row[1],
                seq=row[2],
                at=millis_of(Hlc(row[3])),
                lifted=bool(row[4]),
                is_event=bool(row[5]),
                refuses=bool(row[6]) and not row[4],
                refused=row[7],
                refused_at=None if row[8] is None else Millis(row[8]),
            )
            for row in found
        ]

    def receipts(self, forget: Forget) -> list[Receipt]:
        """Return what each other device in force says of a forget: when it said that it did so, None for not yet."""
        place = self._fetch(
            "select scope, n_to from sealed where device = ? and seq_low > 0 and ? between seq_low and seq_high"
            " order by n_to limit 1",
            (bytes.fromhex(forget.device), forget.seq),
        )
        return [
            Receipt(
                device=str(device),
                at=None if at is None else Millis(at),
                seen=None if seen is None else Millis(seen),
            )
            for device, at, seen in self._fetch(
                "select d.device, (select r.at from receipt r where r.device = d.device and r.scope = ? and r.lane = ?"
                " and r.n >= ?), (select s.at from seen s where lower(hex(s.device)) = d.device)"
                " from account_device d order by d.device",
                (*((place[0][0], forget.device, place[0][1]) if place else (b"", "", 0)),),
            )
            if device != forget.device
        ]

    def unconfirmed(self, before: Millis, limit: int) -> int:
        """Return how many of the last forgets, those before a time, some device in force has not said to have done."""
        return sum(
            1
            for one in self.forgets(None, limit)
            if one.at < before and any(said.at is None for said in self.receipts(one))
        )

    def waiting_objects(self, forget: Forget) -> int:
        """Return how many ops of a forgotten thing may still stand in objects at the server, to be packed anew."""
        return int(
            self._fetch(
                "select count(*) from erased e join op o on o.device = e.device and o.seq = e.seq where o.entity = ?",
                (forget.id,),
            )[0][0]
        )

    def is_synced(self) -> bool:
        """Say whether this store replicates."""
        return bool(self._fetch("select 1 from sync_state limit 1"))

    def unswept(self) -> tuple[int, int] | None:
        """Return up to which memory and which event the store was compared with what others forgot; None for all."""
        found = self._fetch("select value from meta where key = ?", (UNSWEPT,))
        if not found or not found[0][0]:
            return None
        memory, event = json.loads(found[0][0])
        return int(memory), int(event)

    def next_unswept(self, memory: int, event: int, limit: int) -> Sweep:
        """Compare the next memories and events with what was forgotten. What was said after that stays."""
        latest = int(self.latest())
        memories = self._fetch(
            "select n, id, content, iif(scope = 'project', resource_id, null),"
            " iif(kind in ('note', 'stored') and trust = 'user', created_at, 0) from memory"
            f" where n > ? and kind <> 'archive' and layer not in ('identity', 'active') and {_NOT_OF_TEAMS}"
            " order by n limit ?",
            (memory, limit),
        )
        events = self._fetch(
            "select n, id, text, project, ts from event where n > ? and not forgotten and ts <= ? order by n limit ?",
            (event, latest, limit),
        )
        refused = self.refusing([Statement(text=text, project=project) for _, _, text, project, _ in memories])
        of = {
            str(memory_id): list(forgotten)
            for (_, memory_id, _, _, by_hand), forgotten in zip(memories, refused, strict=True)
            if any(by_hand <= at for at in forgotten.values())
        }
        gone = tuple(of)
        passages: dict[str, list[tuple[int, int]]] = {}
        for _, event_id, text, project, ts in events:
            said = self._said(Statement(text=text, project=project), at=Millis(ts))
            if said:
                passages[str(event_id)] = list(said)
                of[str(event_id)] = list(dict.fromkeys(entity for found in said.values() for entity in found))
        return Sweep(
            upto=(memories[-1][0] if memories else memory, events[-1][0] if events else event),
            memories=gone,
            passages=passages,
            ended=len(memories) < limit and len(events) < limit,
            words_of=of,
        )

    def _known(self, wanted: Sequence[tuple[Iterable[str], str | None]]) -> list[dict[str, Millis]]:
        keys = self.keys()
        if not keys:
            return [{} for _ in wanted]
        digests = [
            {(tombstones.digest(key, form).hex(), key_id): form for key_id, key in keys.items() for form in forms}
            for forms, _ in wanted
        ]
        there: dict[tuple[str, str], list[tuple[str, str, Millis]]] = {}
        for digest, key_id, project, entity, hlc in self._fetch(
            "select w.digest, w.key, w.project, w.entity, t.hlc"
            " from tombstone_words w join tombstone t on t.id = w.entity"
            " where not t.lifted and w.digest in (select value from json_each(?))",
            (rows.array(digest for one in digests for digest, _ in one),),
        ):
            there.setdefault((digest, key_id), []).append((project, entity, millis_of(Hlc(int(hlc)))))
        return [
            _in_project(there, one, project, keys) if there else {}
            for one, (_, project) in zip(digests, wanted, strict=True)
        ]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str | None:
    left = ops.blanked(text, spans) if spans else text
    return left if any(map(str.isalnum, left)) else None


MAX_WORDS = 200
"""Words looked for at once: each is a pass over every text, and SQLite takes no condition of over 1,000 parts."""

MAX_SEARCHED_CHARS = 100_000
"""Characters of an event in which forgotten sentences are looked for: a tenth of a second. Talk is never so long."""


def _in_project(
    there: Mapping[tuple[str, str], Sequence[tuple[str, str, Millis]]],
    digests: Iterable[tuple[str, str]],
    project: str | None,
    keys: Mapping[str, bytes],
) -> dict[str, Millis]:
    """Return what was forgotten under some digests; not what was so in another project, where it may be true."""
    found: dict[str, Millis] = {}
    for digest, key_id in digests:
        for of_project, entity, at in there.get((digest, key_id), ()):
            here = "" if project is None else tombstones.project_digest(keys[key_id], project).hex()
            if not (of_project and here) or of_project == here:
                found[entity] = at
    return found
