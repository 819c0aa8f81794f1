"""A real pgbouncer in transaction mode before a real PostgreSQL, on a Unix socket."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psycopg

BUILT = Path(__file__).parents[1] / ".pgbouncer" / "pgbouncer"
"""Where `make pgbouncer` puts it."""
PORT = 6432
START_S = 20.0


def found() -> Path | None:
    """Return the program, None where it was not built."""
    return BUILT if BUILT.exists() else None


@contextmanager
def running(address: str, *, connections: int = 3, prepared: int = 200) -> Iterator[str]:
    """Put a pgbouncer before a database; yield the address to use instead.

    It opens so many `connections` to PostgreSQL, and knows so many `prepared` statements of a client; 0 turns them off.
    """
    program = found()
    assert program is not None
    parts = urlsplit(address)
    where = parse_qs(parts.query)["host"][0]
    with tempfile.TemporaryDirectory(prefix="sj-pgb-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        run = folder / "run"
        run.mkdir()
        run.chmod(0o777)  # it refuses to run as root, and becomes the server's user
        shutil.copy(program, folder / "pgbouncer")
        (folder / "users").write_text(f'"{parts.username}" ""\n')
        settings = {
            "listen_port": PORT,
            "unix_socket_dir": run,
            "unix_socket_mode": "0777",
            "pool_mode": "transaction",
            "auth_type": "trust",
            "auth_file": folder / "users",
            "default_pool_size": connections,
            "max_client_conn": 200,
            "max_prepared_statements": prepared,
            "server_login_retry": 0,
        } | ({"user": Path(where).owner()} if os.geteuid() == 0 else {})
        lines = [f"{key} = {value}" for key, value in settings.items()]
        (folder / "pgbouncer.ini").write_text(
            "\n".join(["[databases]", f"* = host={where}", "[pgbouncer]", *lines]) + "\n"
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([folder / "pgbouncer", folder / "pgbouncer.ini"], stderr=log, stdout=log)
        try:
            there = urlunsplit(parts._replace(query=f"host={run}&port={PORT}"))
            end = time.monotonic() + START_S
            while not _answers(there):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.02)
            yield there
        finally:
            process.kill()  # it keeps nothing, and to a gentler word it answers by waiting for its clients
            process.wait(START_S)


def _answers(address: str) -> bool:
    try:
        with psycopg.connect(address, connect_timeout=5) as connection:
            connection.execute("select 1")
    except psycopg.OperationalError:
        return False
    return True
