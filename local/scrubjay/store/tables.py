"""Every table of the store, registered once: what it holds, whether a check sum covers it, and when it is emptied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scrubjay.store import rows


class Role(StrEnum):
    """Where the rows of a table come from."""

    SOURCE = "source"
    """Events and ops, and what says how to read them: the projections are made from these."""
    LOCAL = "local"
    """What this device alone knows."""
    REPLICATION = "replication"
    """What is kept for an account."""
    QUEUE = "queue"
    """What waits for a vector: made again by a rebuild, and covered by a check sum because nothing else repeats it."""
    CONTENTS = "contents"
    """The table of contents: made again in the background after a rebuild, and covered by a check sum till then."""
    DERIVED = "derived"
    """A projection: follows from the sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table. Rows of any role but DERIVED carry a check sum.

    Of a projection: `columns` are those that follow from the sources, `key` is the one that names a row. `memory_id` is
    the column that says which memory a row is about, for tables whose rows go with it. `remade` tables are emptied
    before all is projected again, `folded` ones before one memory is. `shown` is a query that every device
    answers alike that holds the same ops.
    """

    name: str
    role: Role
    columns: str = ""
    key: str = ""
    memory_id: str = ""
    remade: bool = False
    folded: bool = False
    shown: str = ""


TABLES = (
    Table(
        name="event",
        role=Role.SOURCE,
        shown=f"select {rows.EVENT_COLUMNS} from event where not forgotten order by id",
    ),
    Table(name="op", role=Role.SOURCE),
    Table(name="cause", role=Role.SOURCE),
    Table(name="embedding", role=Role.LOCAL),
    Table(name="space", role=Role.SOURCE),
    Table(name="access", role=Role.LOCAL, memory_id="memory_id"),
    Table(name="feedback", role=Role.LOCAL, memory_id="memory_id"),
    Table(name="learned", role=Role.SOURCE),
    Table(name="unlearned", role=Role.SOURCE),
    Table(name="job", role=Role.LOCAL),
    Table(name="job_run", role=Role.LOCAL),
    Table(name="instruction_file", role=Role.LOCAL),
    Table(name="unremembered", role=Role.LOCAL),
    Table(name="toc_told", role=Role.LOCAL),
    Table(name="writer_call", role=Role.LOCAL),
    Table(name="tombstone_hit", role=Role.LOCAL),
    Table(name="vault", role=Role.LOCAL),
    Table(name="vault_file", role=Role.LOCAL),
    Table(name="handed", role=Role.LOCAL, memory_id="ref"),
    Table(name="prediction", role=Role.LOCAL, memory_id="ref"),
    Table(name="surfaced", role=Role.LOCAL, memory_id="ref"),
    Table(name="used", role=Role.LOCAL, memory_id="ref"),
    Table(name="meta", role=Role.LOCAL),
    Table(name="parked", role=Role.LOCAL),
    Table(name="replaced", role=Role.LOCAL, memory_id="entity"),
    Table(name="heard", role=Role.LOCAL),
    Table(name="sync_state", role=Role.REPLICATION),
    Table(name="lane", role=Role.REPLICATION),
    Table(name="sealed", role=Role.REPLICATION),
    Table(name="link", role=Role.REPLICATION),
    Table(name="part", role=Role.REPLICATION),
    Table(name="placed", role=Role.REPLICATION),
    Table(name="bound", role=Role.REPLICATION),
    Table(name="account_log", role=Role.REPLICATION),
    Table(name="account_state", role=Role.REPLICATION),
    Table(name="seen", role=Role.REPLICATION),
    Table(name="receipt", role=Role.REPLICATION),
    Table(name="account_device", role=Role.REPLICATION),
    Table(name="alarm", role=Role.REPLICATION),
    Table(name="erased", role=Role.REPLICATION),
    Table(name="unconfirmed", role=Role.REPLICATION),
    Table(name="team_log", role=Role.REPLICATION),
    Table(name="team_lane", role=Role.REPLICATION),
    Table(name="team_outbox", role=Role.REPLICATION),
    Table(name="team_sealed", role=Role.REPLICATION),
    Table(name="refused", role=Role.QUEUE),
    Table(name="embed_queue", role=Role.QUEUE),
    Table(name="toc_segment", role=Role.CONTENTS),
    Table(name="toc_period", role=Role.CONTENTS),
    Table(name="toc_stale", role=Role.CONTENTS),
    Table(name="tombstone", role=Role.DERIVED, columns="id, hlc, lifted", key="id"),
    Table(name="tombstone_key", role=Role.DERIVED, columns="id, key", key="id"),
    Table(name="tombstone_words", role=Role.DERIVED, columns="digest, entity, key, project", key="entity"),
    Table(
        name="memory",
        role=Role.DERIVED,
        columns=rows.MEMORY_COLUMNS,
        key="id",
        memory_id="id",
        shown=f"select {rows.MEMORY_COLUMNS} from memory order by id",
    ),
    Table(
        name="name",
        role=Role.DERIVED,
        columns="name, memory_id, created_at, canonical, claimed",
        key="name",
        memory_id="memory_id",
        remade=True,
        shown="select name, memory_id, canonical, created_at from name order by name",
    ),
    Table(
        name="also_from",
        role=Role.DERIVED,
        columns="source_key, memory_id",
        key="memory_id",
        memory_id="memory_id",
        remade=True,
    ),
    Table(name="claim", role=Role.DERIVED, columns="name, hlc, device, memory_id", key="name", remade=True),
    Table(
        name="grip",
        role=Role.DERIVED,
        columns=rows.GRIP_COLUMNS,
        key="id",
        memory_id="memory_id",
        remade=True,
        folded=True,
        shown=f"select {rows.GRIP_COLUMNS} from grip where memory_id in (select id from memory) order by id",
    ),
    Table(
        name="conflict",
        role=Role.DERIVED,
        columns="memory_id, field, hlc, device",
        key="memory_id",
        memory_id="memory_id",
        remade=True,
        folded=True,
        shown="select memory_id, field, hlc, device from conflict where memory_id in (select id from memory)"
        " order by 1, 2, 3, 4",
    ),
    Table(
        name="counted",
        role=Role.DERIVED,
        columns="memory_id, device, total, last",
        key="memory_id",
        memory_id="memory_id",
        remade=True,
        folded=True,
        shown="select m.id, sum(c.total), max(c.last) from counted c join memory m on m.id = c.memory_id"
        " group by 1 order by 1",
    ),
    Table(
        name="session",
        role=Role.DERIVED,
        columns="id, agent, project, start, last, closed, title, title_at, events, last_n",
        key="id",
        remade=True,
        shown=f"select {rows.SESSION_COLUMNS} from session order by id",
    ),
    Table(
        name="session_agent",
        role=Role.DERIVED,
        columns="session_id, agent, project, events, start, last",
        key="session_id",
        remade=True,
    ),
)

CHECKSUMMED = tuple(table.name for table in TABLES if table.role is not Role.DERIVED)
"""The tables whose rows say something that nothing else in the file says."""

SOURCES = frozenset(table.name for table in TABLES if table.role is Role.SOURCE)
"""The tables that projections are made from."""

OF_REPLICATION = tuple(table.name for table in TABLES if table.role is Role.REPLICATION)
"""What is forgotten when sync is turned off."""

DERIVED = tuple(table for table in TABLES if table.role is Role.DERIVED)
"""The projections, to be made again and compared."""

REMADE = tuple(table.name for table in TABLES if table.remade)
"""Emptied before everything is projected again."""

FOLDED = tuple(table.name for table in TABLES if table.folded)
"""Of which one memory's rows are emptied before it is projected again."""

OF_MEMORY = {table.name: table.memory_id for table in TABLES if table.memory_id}
"""The column that says which memory a row is about, by table: these rows go with it."""

SHOWN = tuple(table.shown for table in TABLES if table.shown)
"""What every device shows that holds the same ops."""
