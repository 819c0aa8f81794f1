"""Names: which memory each resolves to, of all the claims to it."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.store import rows
from scrubjay.store.write_context import WriteContext
from scrubjay_shared import ops
from scrubjay_shared.clock import Hlc, millis_of, shown_time
from scrubjay_shared.records import Memory


class Names:
    """The tables `claim` and `name`."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._fetch = context.queries.fetch
        self._run = context.run
        self._run_many = context.run_many

    def release(self, ids: str) -> set[str]:
        """Take the claims of some memories (a JSON array of ids) away. Returns the names that they were to."""
        found = self._fetch(
            "select distinct name from claim where memory_id in (select value from json_each(?))", (ids,)
        )
        if found:
            self._run("delete from claim where memory_id in (select value from json_each(?))", (ids,))
        return {str(row[0]) for row in found}

    def decide(self, names: set[str], memories: Mapping[str, Memory]) -> dict[str, str | None]:
        """Decide again who shows under some names, as `ops.holders` does. Returns the new names of memories.

        `memories` are being written and carry the name that they claim; of others, those whose name changed are
        returned. A claim to `a~2` decides about `a` too: that number is not free to show the second holder of `a`.
        """
        groups = names | {parent for name in names if (parent := rows.parent_of(name)) is not None}
        if not groups:
            return {}
        wanted = rows.array(groups)
        before = self._fetch(
            "select name, memory_id, claimed, canonical from name where claimed in (select value from json_each(?))",
            (wanted,),
        )
        canonical = {(memory_id, claimed) for _, memory_id, claimed, own in before if own and memory_id not in memories}
        canonical |= {(memory.id, memory.name) for memory in memories.values() if memory.name is not None}
        self._run("delete from name where claimed in (select value from json_each(?))", (wanted,))
        order: dict[str, dict[str, int]] = {}
        for name, hlc, memory_id in self._fetch(
            "select name, hlc, memory_id from claim where name in (select value from json_each(?))"
            " order by name, hlc < ?, hlc, device, memory_id",
            (wanted, ops.FIRST_CLAIM),
        ):
            order.setdefault(name, {}).setdefault(memory_id, hlc)
        visible = memories.keys() | self._context.queries.memories.existing(
            memory_id for held in order.values() for memory_id in held
        )
        shown: list[tuple[str, str, int, bool, str]] = []
        for claimed, held in order.items():
            free = self._free_names(claimed, len(held) - 1)
            for name, (memory_id, hlc) in zip([claimed, *free], held.items(), strict=True):
                if memory_id in visible:
                    own = (memory_id, claimed) in canonical
                    shown.append((name, memory_id, shown_time(millis_of(Hlc(hlc))), own, claimed))
        self._run_many(
            "insert into name (name, memory_id, created_at, canonical, claimed) values (?, ?, ?, ?, ?)", shown
        )
        was = {memory_id: name for name, memory_id, _, own in before if own}
        now: dict[str, str | None] = {memory_id: name for name, memory_id, _, own, _ in shown if own}
        return {
            memory_id: name for memory_id, name in now.items() if memory_id in memories or was.get(memory_id) != name
        }

    def _free_names(self, name: str, count: int) -> list[str]:
        """Return the first `name~2`, `name~3`, … that nobody claims."""
        if not count:
            return []
        claimed = {
            row[0]
            for row in self._fetch(
                "select distinct name from claim where name > ? and name < ?", (f"{name}~", f"{name}\x7f")
            )
        }
        found: list[str] = []
        place = 2
        while len(found) < count:
            if f"{name}~{place}" not in claimed:
                found.append(f"{name}~{place}")
            place += 1
        return found
