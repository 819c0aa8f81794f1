"""moto's S3 server in a process of its own, on a free port of the loopback: it speaks S3, over HTTP, to any client."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from obstore.store import S3Store

from scrubjay_cloud.settings import Settings

ACCESS = {"bodies_access_key_id": "AKIDEXAMPLE", "bodies_secret_access_key": "a-secret-that-no-log-may-show"}
DATABASE = "postgres://db.example.org/scrubjay"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of the server, and what an operator sets for it."""

    endpoint: str
    name: str

    @property
    def settings(self) -> Settings:
        return Settings(
            data=Path("unused"),
            database_url=DATABASE,
            bodies=f"s3://{self.name}/bodies",
            bodies_endpoint=self.endpoint,
            **ACCESS,
        )

    def keys(self) -> set[str]:
        """What the bucket holds, asked with a client of its own."""
        store = S3Store(
            self.name,
            prefix="bodies",
            config={
                "endpoint": self.endpoint,
                "region": "us-east-1",
                "access_key_id": "other",
                "secret_access_key": "other",
                "virtual_hosted_style_request": False,
            },
            client_options={"allow_http": True},
        )
        return {str(one["path"]) for page in store.list() for one in page}


@dataclass(slots=True)
class S3Server:
    """The server. `bucket` makes a new one."""

    endpoint: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def bucket(self) -> Bucket:
        made = Bucket(self.endpoint, f"bodies-{next(self._numbers)}")
        request = urllib.request.Request(f"{self.endpoint}/{made.name}", method="PUT")  # noqa: S310 - ours
        urllib.request.urlopen(request, timeout=20).close()  # noqa: S310 - ours
        return made


@contextlib.contextmanager
def running() -> Iterator[S3Server]:
    """Run the server until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            assert process.poll() is None, "moto's server ended"
            assert time.monotonic() < until, "moto's server does not listen"
            time.sleep(0.05)
        yield S3Server(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=20)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
