"""No operation and no job's look reads all events, memories or ops of a store, but those named here with their reason.

Every statement that the operations really run is caught on its way to SQLite, and SQLite is asked how it would carry it
out in a store of a hundred thousand sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.api.operations import OPERATIONS, Kind
from scrubjay_io.sqlite import driver
from scrubjay_shared.errors import ScrubjayError
from scrubjay_shared.records import MemoryDraft, ReviewState, Scope, Trust
from service_calls import Opener, ingest, said
from test_access import HOOK, ROWS
from watched_sql import watch_sql

pytestmark = pytest.mark.anyio

GROWN = 10_000
"""Times as large as it is here the store is said to be."""

FEW_VALUES = 6

LARGE = ("event", "memory", "op", "grip", "access", "name", "claim", "embedding", "unlearned", "unembedded")
"""Tables that have a row for each event, memory or op, or more."""

VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+\b")

PAGE = "a page in the order of an index: it ends at its limit"
ANY = "one row, whichever comes first"
FEW = "an index of those few rows that may be meant, and of no others"
COUNT = "a count: an index is read, and not the rows"
WHOLE = "a person asked about all that is remembered"
WORDS = "these words may stand in any text"
QUEUE = "a queue: its rows go as they are worked off"

NEEDED: dict[tuple[str, str], str] = {
    **{
        (name, "memory USING INDEX memory_created"): PAGE
        for name in ("list", "active", "confirm_active", "dismiss_active", "context", "brief")
    },
    ("events", "event USING INDEX event_ts"): PAGE,
    **{(name, table): ANY for name in ("layers", "route") for table in ("event", "memory")},
    **{(name, "grip USING INDEX grip_long"): ANY for name in ("hook", "ingest", "learn")},
    **{
        (name, "memory USING INDEX memory_doubt"): FEW
        for name in ("conflicts", "status", "recall", "route", "context", "brief")
    },
    **{(name, "memory USING INDEX memory_review"): FEW for name in ("review", "import")},
    **{(name, "memory USING COVERING INDEX memory_review"): FEW for name in ("review", "audit")},
    **{
        (name, "event USING INDEX event_compaction"): FEW
        for name in ("status", "pause_job", "resume_job", "look of compact")
    },
    ("stats", "memory USING COVERING INDEX memory_listed"): COUNT,
    ("stats", "op USING COVERING INDEX op_entity"): COUNT,
    ("stats", "name"): "a count: the names that are not a memory's own are few",
    ("status", "unembedded"): QUEUE,
    ("audit", "event"): WHOLE,
    ("relearn", "memory USING INDEX sqlite_autoindex_memory_1"): WHOLE,
    ("audit", "memory"): WHOLE,
    ("audit", "memory USING INDEX sqlite_autoindex_memory_1"): WHOLE,
    ("audit", "memory USING COVERING INDEX sqlite_autoindex_memory_1"): WHOLE,
    ("forget", "event"): WORDS,
    ("forget", "memory"): WORDS,
}
"""What may read a whole table or index, as SQLite says it: by operation or job, with the reason."""

AGENT = Caller(principal=Principal.AGENT, agent="crow", project="own", session_id="own session")
MORE: tuple[tuple[str, Caller, Any], ...] = (
    ("recall", PERSON, api.RecallRequest(query="zebra", project="nowhere")),
    ("recall", AGENT, api.RecallRequest(query="zebra stripes")),
    ("list", PERSON, api.ListRequest(project="own")),
    ("list", PERSON, api.ListRequest(project="nowhere")),
    ("list", PERSON, api.ListRequest(archived=True)),
    ("events", PERSON, api.EventsRequest(project="nowhere")),
    ("events", PERSON, api.EventsRequest(project="own")),
    ("events", AGENT, api.EventsRequest()),
    ("agents", PERSON, api.AgentsRequest(project="nowhere")),
    ("agents", AGENT, api.AgentsRequest()),
    ("context", AGENT, api.ContextRequest(project="own", session_id="own session")),
    ("brief", AGENT, api.BriefRequest(project="own", session_id="own session")),
    ("review", PERSON, api.ReviewRequest(state=ReviewState.REJECTED)),
    ("consolidate", PERSON, api.ConsolidateRequest()),
    ("import", PERSON, api.ImportRequest(name="a.md", data=b"# A\n\nSaid once more.\n", project="own")),
    ("import", PERSON, api.ImportRequest(name="b.md", data=b"# A\n\nSaid once more.\n", project="own")),
)
"""Ways to ask that read differently from those of `ROWS`."""


async def test_nothing_is_looked_for_by_reading_everything(
    opened: Opener, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        await _filled(service)
    with closing(driver.connect(str(store_path), isolation_level=None)) as connection:
        _grow(connection)
    watched = watch_sql(monkeypatch)
    told: list[tuple[str, str]] = []
    async with opened() as service:

        async def watching(name: str, work: Any) -> None:
            watched.statements.clear()
            with suppress(ScrubjayError):  # what is refused was looked for as well
                await work
            told.extend((name, sql) for sql in watched.statements)

        memory = (await service.call(PERSON, "add", MemoryDraft(content="The quay is closed"))).memory.id
        for name, row in ROWS.items():
            if name not in {"rebuild", "backup", "vault_init"} and OPERATIONS[name].kind is not Kind.STREAM:
                ref = memory if name != "forget" else "zebra-0"
                await watching(name, service.call(PERSON, name, row.request(ref)))
        for name, caller, request in MORE:
            await watching(name, service.call(caller, name, request))
        hook = api.HookRequest(host="codex", data=HOOK, event="Stop")
        await watching("hook", service.call(PERSON, "hook", hook))
        for job in service.scheduler._jobs:
            await watching(f"look of {job.name}", job.due())
            await watching(f"pending of {job.name}", job.pending())

    with closing(driver.connect(f"{store_path.as_uri()}?mode=ro", uri=True)) as connection:
        alike = {(name, VALUE.sub("?", sql)): sql for name, sql in told}  # one of those that differ in their values
        found = {(name, read) for (name, _), sql in alike.items() for read in _reads_whole(connection, sql)}

    assert found - set(NEEDED) == set()
    assert set(NEEDED) - found == set(), "these are needed no more"


async def _filled(service: Any) -> None:
    for n in range(8):
        project = ("own", "other", None)[n % 3]
        await ingest(
            service, *(said(f"We use zebra {n} for {k}.", f"s{n}", agent="crow", project=project) for k in range(12))
        )
    await service.distill.run()
    await service.toc.run()
    for n in range(20):
        draft = MemoryDraft(
            content=f"The zebra {n} has stripes",
            name=f"zebra-{n}",
            trust=Trust.AGENT if n % 2 else Trust.USER,
            scope=Scope.PROJECT if n % 3 else Scope.USER,
            resource_id="own" if n % 3 else None,
        )
        await service.call(AGENT if n % 2 else PERSON, "add", draft)
    for n in range(8):
        old = api.SupersedeRequest(ref=f"zebra-{n + 2}", content=f"Stripes has the zebra {n} no more")
        await service.call(PERSON, "supersede", old)


def _grow(connection: Any) -> None:
    """Tell SQLite that each table has many more rows than it has."""
    connection.execute("analyze")
    for table, index, stat in connection.execute("select tbl, idx, stat from sqlite_stat1").fetchall():
        rows, *each = (int(word) for word in stat.split() if word.isdigit())
        # What has few values here has few there.
        grown = [rows * GROWN, *(one * GROWN if rows < FEW_VALUES * one else one for one in each)]
        connection.execute(
            "update sqlite_stat1 set stat = ? where tbl = ? and idx is ?", (" ".join(map(str, grown)), table, index)
        )


def _reads_whole(connection: Any, sql: str) -> Iterator[str]:
    """Yield how SQLite would read all of a large table for a statement, with the table's own name."""
    if sql.lstrip().split(" ", 1)[0].lower() not in {"select", "insert", "update", "delete", "with"}:
        return
    names = {
        alias.lower(): table.lower()
        for table, alias in re.findall(rf"\b({'|'.join(LARGE)})\s+(?:as\s+)?(\w+)", sql, re.IGNORECASE)
    }
    try:
        plan = connection.execute(f"explain query plan {sql}").fetchall()
    except driver.DatabaseError:
        return  # of a table that was dropped since
    for *_, step in plan:
        # What came before some time is mostly all there is.
        bound = re.match(r"SEARCH (\w+)( USING (?:COVERING )?INDEX \w+) \((?:created_at|ts)<\?\)$", step)
        if (found := re.match(r"SCAN (\w+)(.*)", step) or bound) is not None:
            table = names.get(found[1].lower(), found[1].lower())
            if table in LARGE:
                yield f"{table}{found[2]}"
