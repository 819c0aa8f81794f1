"""The least that a new machine needs: the same rows and indexes, inserted through one connection of bare SQLite."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from scrubjay_bench.figures import Rounds
from scrubjay_io.sqlite import driver

FLOOR_ROWS = 4_096  # rows a transaction: as many as a page of a first upload brings
_TABLES = ("event", "op", "session")


def measure(rounds: Rounds, store: Path, path: Path, events: int) -> None:
    """Note what one connection needs to insert the same rows with the same indexes."""
    wall = total_cpu = 0.0
    with (
        closing(driver.connect(f"file:{store}?immutable=1", uri=True)) as source,
        closing(driver.connect(str(path), isolation_level=None)) as target,
    ):
        target.execute("pragma journal_mode = wal")
        target.execute("pragma synchronous = full")
        named = ", ".join(f"'{table}'" for table in _TABLES)
        schema = source.execute(
            "select sql from sqlite_master where sql is not null and type in ('table', 'index')"
            f" and tbl_name in ({named}) order by type desc"
        )
        for (sql,) in schema.fetchall():
            target.execute(sql)
        for table in _TABLES:
            took, cpu = _copied(source, target, table)
            wall, total_cpu = wall + took, total_cpu + cpu
    rounds.add("floor.wall", wall)
    rounds.add("floor.cpu", total_cpu)
    rounds.add("floor.rate", events / wall)


def _copied(source: Any, target: Any, table: str) -> tuple[float, float]:
    cursor = source.execute(f"select * from {table}")
    took = cpu = 0.0
    while rows := cursor.fetchmany(FLOOR_ROWS):
        marks = ", ".join("?" * len(rows[0]))
        began, began_cpu = time.perf_counter(), time.process_time()
        target.execute("begin immediate")
        target.executemany(f"insert into {table} values ({marks})", rows)
        target.execute("commit")
        took, cpu = took + time.perf_counter() - began, cpu + time.process_time() - began_cpu
    return took, cpu
