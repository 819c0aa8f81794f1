"""The inverted index of SQLite over the tokens of memories, and how its rows go without a trace."""

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.store.file import fts_erases
from scrubjay.store.write_context import WriteContext


def remove(context: WriteContext, numbers: Sequence[int]) -> None:
    """Delete the full text of some memories, and have FTS5 write that down before anything else comes.

    SQLite 3.53.4 with `secure-delete` damages the index of a row that is deleted and inserted again within what
    FTS5 still holds in memory, when the places of one word run over the end of a page: the next delete then leaves
    some of them. FTS5 writes down what it holds when a savepoint begins.
    """
    if numbers:
        context.run_many("delete from memory_fts where rowid = ?", [(n,) for n in numbers])
        context.run("savepoint unindexed")
        context.run("release unindexed")


def make_anew(context: WriteContext) -> None:
    """Make the index anew: of a damaged one nothing can be deleted, and of a large one only slowly."""
    context.run("drop table memory_fts")
    context.run("create virtual table memory_fts using fts5 (tokens, tokenize = 'ascii')")
    if fts_erases():
        context.run("insert into memory_fts (memory_fts, rank) values ('secure-delete', 1)")


def erase_traces(context: WriteContext) -> None:
    """Make what FTS5 still holds of deleted rows go, on a SQLite whose FTS5 does not erase by itself."""
    if not fts_erases():
        context.run("insert into memory_fts (memory_fts) values ('optimize')")


def merge(context: WriteContext) -> None:
    """Merge a little of the index."""
    context.run("insert into memory_fts (memory_fts, rank) values ('merge', 200)")
