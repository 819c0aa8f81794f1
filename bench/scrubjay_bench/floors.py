"""The least that each thing could cost: a bare insert, a bare product, a bare embedding, a bare route."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numkong
import numpy as np
import numpy.typing as npt

from scrubjay.client import Client
from scrubjay.store.sqlite import driver
from scrubjay_bench.daemons import LOOK_SECONDS
from scrubjay_shared import scoring
from scrubjay_shared.errors import ScrubjayError, UnavailableError

Floats = npt.NDArray[np.float32]

BEST = 10  # hits of one answer
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
    """The best ten of n vectors, exactly, with nothing around it: in float32 with numpy, in int8 with numkong."""

    def __init__(self, vectors: Floats) -> None:
        self._rows = vectors
        self._quantised, self._scales = scoring.quantise(vectors)

    def product(self, query: Floats) -> Any:
        """Return the rows of the greatest float32 products."""
        scores = self._rows @ query
        return np.argpartition(scores, len(scores) - BEST)[-BEST:]

    def quantised_product(self, query: Floats) -> Any:
        """Return the rows of the greatest int8 products."""
        row, _ = scoring.quantise(query[None, :])
        scores = np.asarray(numkong.dot(self._quantised, row[0])) * self._scales
        return np.argpartition(scores, len(scores) - BEST)[-BEST:]


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
