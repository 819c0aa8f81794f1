"""The least that each thing could cost: a bare insert, a bare product, a bare embedding, a bare route."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numkong
import numpy as np
import numpy.typing as npt

from scrubjay.store import Queries
from scrubjay.transports.client import Client
from scrubjay_bench.daemons import LOOK_SECONDS
from scrubjay_io.sqlite import driver
from scrubjay_shared import scoring
from scrubjay_shared.errors import ScrubjayError, UnavailableError

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int8]

BEST = 10  # hits of one answer
K1 = 0.9  # of BM25, without regard to length (b = 0): the best for turns
RESCORED = 1_000  # rows compared exactly after their signs: fewer lose neighbours
START_SECONDS = 60.0


class BareTable:
    """One table with one index in a WAL file, durable: what any store of events costs at least."""

    def __init__(self, path: Path) -> None:
        self._connection: Any = driver.connect(str(path), isolation_level=None)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute(
            "create table event (n integer primary key, id text not null unique, session_id text not null,"
            " ts integer not null, type text not null, text text not null) strict"
        )

    def insert(self, events: Sequence[dict[str, Any]]) -> None:
        """Insert some events in one transaction."""
        rows = [(e["dedupe_key"], e["session_id"], e["ts"], e["type"], e["text"]) for e in events]
        self._connection.execute("begin immediate")
        self._connection.executemany("insert into event (id, session_id, ts, type, text) values (?, ?, ?, ?, ?)", rows)
        self._connection.execute("commit")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class BareVectors:
    """The best ten of n vectors, with nothing around it: in float32, in int8, and by their signs first."""

    def __init__(self, rows: Rows, scales: Floats) -> None:
        """Take vectors as a store holds them."""
        self._quantised, self._scales = rows, scales
        self._rows = scoring.dequantise(rows, scales)
        self._signs = np.packbits(rows > 0, axis=1)

    def product(self, query: Floats) -> Any:
        """Return the rows of the greatest float32 products."""
        return _best(self._rows @ query)

    def quantised_product(self, query: Floats) -> Any:
        """Return the rows of the greatest int8 products."""
        row, _ = scoring.quantise(query[None, :])
        return _best(np.asarray(numkong.dot(self._quantised, row[0])) * self._scales)

    def signs(self, query: Floats) -> Any:
        """Return the rows of the greatest int8 products among the `RESCORED` whose signs differ least. Not exact."""
        row, _ = scoring.quantise(query[None, :])
        apart = np.asarray(numkong.hamming(self._signs, np.packbits(row[0] > 0), "uint1"))
        near = np.argpartition(apart, min(RESCORED, len(apart)) - 1)[:RESCORED]
        return near[_best(np.asarray(numkong.dot(self._quantised[near], row[0])) * self._scales[near])]


class BareWords:
    """The best ten of n texts by BM25, with nothing around it: SQLite's FTS5, and numpy over postings in memory."""

    def __init__(self, documents: Iterable[tuple[int, str]]) -> None:
        """Take (row id, tokens joined by spaces), which are written into a full text of their own."""
        self._connection = driver.connect("", isolation_level=None)  # a file without a name, gone with the connection
        self._connection.execute("create virtual table event_fts using fts5 (tokens, tokenize = 'ascii')")
        self._connection.execute("begin")
        numbers: dict[str, int] = {}
        lengths = array("q")
        terms = array("q")
        self._ids = array("q")
        for rowid, tokens in documents:
            self._connection.execute("insert into event_fts (rowid, tokens) values (?, ?)", (rowid, tokens))
            split = tokens.split()
            self._ids.append(rowid)
            lengths.append(len(split))
            terms.extend(numbers.setdefault(token, len(numbers)) for token in split)
        self._connection.execute("commit")
        self._numbers = numbers
        self._documents = len(lengths)
        rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        keys, times = np.unique(np.asarray(terms) * len(lengths) + rows, return_counts=True)
        self._starts = np.searchsorted(keys // len(lengths), np.arange(len(numbers) + 1))
        self._rows = keys % len(lengths)
        self._parts = scoring.bm25_part(times, np.asarray(lengths)[self._rows], 0.0, idf=1.0, k1=K1, b=0.0)

    def postings(self, tokens: Sequence[str]) -> Any:
        """Return the ids of the ten best, out of postings in memory that hold all but the idf."""
        scores = np.zeros(self._documents, np.float32)
        for token in tokens:
            if (number := self._numbers.get(token)) is None:
                continue
            of = slice(self._starts[number], self._starts[number + 1])
            idf = np.float32(scoring.bm25_idf(self._documents, of.stop - of.start))
            scores[self._rows[of]] += idf * self._parts[of]
        return np.asarray(self._ids)[_best(scores)]

    def full_text(self, tokens: Sequence[str]) -> Any:
        """Return the ids of the ten best, out of FTS5."""
        query = " OR ".join(f'"{token}"' for token in tokens)
        sql = "select rowid from event_fts where event_fts match ? order by rank limit ?"
        return np.array([row[0] for row in self._connection.execute(sql, (query, BEST))])


def tokens_of(connection: Any) -> Iterator[tuple[int, str]]:
    """Yield the number and the tokens of every event of a store that recall can return."""
    queries = Queries(connection)
    number, after = 0, None
    while True:
        page, after = queries.documents.events(after)
        for doc in page:
            number += 1
            yield number, doc.tokens
        if after is None:
            return


def _best(scores: npt.NDArray[Any]) -> Any:
    return np.argpartition(scores, max(len(scores) - BEST, 0))[-BEST:]


@contextmanager
def echoing(folder: Path) -> Iterator[Callable[[bool], Client]]:
    """Serve a bare Starlette route, as the daemon serves (uvicorn, h11), that answers with what it was sent.

    Yields what makes a connection to it: over TCP when true, through a Unix socket when false.
    """
    path = folder / "echo.sock"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    process = subprocess.Popen([sys.executable, "-m", "scrubjay_bench.floors", str(path), str(port)])

    def connected(tcp: bool) -> Client:  # noqa: FBT001  # one flag, of which both values are read aloud by callers
        return Client(token="none", socket_path=None if tcp else path, address=("127.0.0.1", port))  # noqa: S106

    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with connected(True) as client:
                    client.call("POST", "/echo", {})
                break
            except ScrubjayError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise UnavailableError("the bare server did not start", hint="try again") from None
                time.sleep(LOOK_SECONDS)
        yield connected
    finally:
        process.terminate()
        process.wait()


def _serve(path: str, port: int) -> None:
    import uvicorn  # noqa: PLC0415  # only the child serves
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def echo(request: Request) -> Response:
        return Response(await request.body(), media_type="application/json")

    app = Starlette(routes=[Route("/echo", echo, methods=["POST"])])
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
    with (
        contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as unix,
        socket.create_server(("127.0.0.1", port)) as tcp,
    ):
        # Accepted sockets inherit it. Without it, the answer's body waits 40 ms for its head to be acknowledged.
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        unix.bind(path)
        unix.listen(socket.SOMAXCONN)
        asyncio.run(uvicorn.Server(config).serve(sockets=[tcp, unix]))


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
