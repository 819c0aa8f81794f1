"""A small client of the cloud service for tests: real keys, real logs, real sealed objects, over any httpx2 transport.

It is not the product's client: it does what a test tells it to, wrong things too.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from scrubjay_cloud.app import create_app
from scrubjay_cloud.bodies import BodyStore
from scrubjay_cloud.database import open as open_database
from scrubjay_cloud.policy import DEFAULT, CloudPolicy
from scrubjay_cloud.service import Service
from scrubjay_cloud.settings import Settings
from scrubjay_shared import account as accountlog
from scrubjay_shared import segment
from scrubjay_shared.account import AccountState, EntryType, Signer
from scrubjay_shared.envelope import Envelope, Header, ObjectKind, Suite, assemble, lane_root, split
from scrubjay_shared.sealing import seal
from scrubjay_shared.wire import (
    CURSOR,
    HEAD,
    MEDIA,
    Challenge,
    Enroll,
    Enrolment,
    Heads,
    Kdf,
    LogAppend,
    Login,
    LogPage,
    Pending,
    Problem,
    PushAnswer,
    Pushed,
    RefuseDevice,
    Register,
    Token,
    TokenRequest,
    Wrap,
    auth_message,
    refusal_message,
)

ORIGIN = "http://cloud.test"


@dataclass(slots=True)
class Entropy:
    """Random bytes from a seed: the same in every run."""

    seed: str = "scrubjay"
    _count: int = 0

    def __call__(self, length: int) -> bytes:
        """Return the next bytes."""
        self._count += 1
        return hashlib.shake_256(f"{self.seed}/{self._count}".encode()).digest(length)


@dataclass(slots=True)
class Clock:
    """A clock that stands still until it is moved. UTC milliseconds."""

    at: int = 1_800_000_000_000

    def __call__(self) -> Any:
        """Return the time."""
        return self.at

    def pass_(self, seconds: float) -> None:
        """Move on."""
        self.at += int(seconds * 1000)


class Key:
    """An Ed25519 key."""

    def __init__(self, entropy: Entropy) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(entropy(32))
        self.public = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.sign = self.private.sign


class RefusedError(Exception):
    """An answer that is a problem document."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.problem = msgspec.json.decode(response.content, type=Problem)
        super().__init__(f"{self.problem.status} {self.problem.code}: {self.problem.detail}")

    @property
    def code(self) -> str:
        return self.problem.code


@dataclass(slots=True)
class Page:
    """One pulled page."""

    objects: list[Envelope]
    cursor: str
    head: str
    response: httpx.Response


@dataclass(slots=True)
class Client:
    """Requests to one app or server; the problem of a refusal is raised."""

    http: httpx.AsyncClient
    token: str = ""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        answer: Any = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **params: Any,
    ) -> Any:
        """Send one request. `body` is a record (JSON) or bytes; `answer` the record to decode."""
        given = dict(headers or {})
        bearer = self.token if token is None else token
        if bearer:
            given["Authorization"] = f"Bearer {bearer}"
        content = None
        if isinstance(body, bytes):
            content = body
            given.setdefault("Content-Type", MEDIA)
        elif body is not None:
            content = msgspec.json.encode(body)
            given.setdefault("Content-Type", "application/json")
        response = await self.http.request(method, path, content=content, headers=given, params=params or None)
        if response.status_code >= 400:
            raise RefusedError(response)
        return response if answer is None else msgspec.json.decode(response.content, type=answer)


@dataclass(slots=True)
class Account:
    """An account's keys and its log, as its owner has them."""

    name: str
    entropy: Entropy
    now: Clock
    origin: str = ORIGIN
    auth_key: bytes = b""
    id: bytes = b""
    home: bytes = b""
    entries: list[bytes] = field(default_factory=list)
    scope_keys: dict[bytes, bytes] = field(default_factory=dict)
    ask: Any = None
    rsk: Any = None
    author: Any = None
    """The device that makes entries, None before there is one."""

    @classmethod
    def make(cls, name: str = "ann", *, seed: str = "", now: Clock | None = None, origin: str = ORIGIN) -> Account:
        """Return an account with a genesis. Its first device makes the home scope."""
        entropy = Entropy(f"{seed}/{name}")
        found = cls(name=name, entropy=entropy, now=now or Clock(), origin=origin)
        found.id, found.home, found.auth_key = entropy(16), entropy(16), entropy(32)
        found.ask, found.rsk = Key(entropy), Key(entropy)
        body = accountlog.genesis_body(
            found.id, ask=found.ask.public, rsk=found.rsk.public, recovery_pub=b"r" * 1216, origin=origin
        )
        found.say(EntryType.GENESIS, body)
        found.scope_keys[found.home] = entropy(32)
        return found

    @property
    def state(self) -> AccountState:
        return accountlog.replay(self.entries)

    @property
    def head(self) -> bytes:
        return accountlog.read(self.entries[-1]).hash if self.entries else bytes(32)

    @property
    def kdf(self) -> Kdf:
        return Kdf(salt=hashlib.sha256(self.name.encode()).digest()[:16], memory_kib=64 * 1024, iterations=3, lanes=4)

    def entry(
        self,
        kind: EntryType,
        body: dict[int, Any],
        *,
        signer: Signer = Signer.ASK,
        sign: Any = None,
        author: Device | None = None,
    ) -> bytes:
        """Return a next entry without keeping it; `author` made it, else the device that makes them."""
        key = self.rsk if signer == Signer.RSK else self.ask
        by = author or self.author
        by_code = signer == Signer.RSK or not self.entries or by is None
        return accountlog.entry(
            self.id or body[1],
            seq=len(self.entries),
            prev=self.head,
            type=kind,
            body=body,
            sign=sign or key.sign,
            signer=signer,
            author=accountlog.CODE_AUTHOR if by_code else by.id,
            cosign=self.rsk.sign if by_code else by.key.sign,
        )

    def say(self, kind: EntryType, body: dict[int, Any], **options: Any) -> bytes:
        """Keep a next entry, and return it."""
        made = self.entry(kind, body, **options)
        self.entries.append(made)
        return made

    def device(self, client: Client, **options: Any) -> Device:
        """Return a new device that the log certifies (locally, so far)."""
        found = Device(account=self, client=Client(client.http), id=self.entropy(16), key=Key(self.entropy))
        first = self.author is None
        self.author = self.author or found
        self.say(
            EntryType.DEVICE_ADD,
            accountlog.device_body(found.id, sign_pub=found.key.public, wrap_pub=found.wrap_pub, **options),
        )
        if first:
            self.say(EntryType.SCOPE_CREATE, accountlog.scope_body(self.home, suite=Suite.SEALED, home=True))
        return found

    def scope(self, suite: Suite = Suite.SEALED) -> bytes:
        """Declare another scope (locally, so far) and return its id."""
        scope = self.entropy(16)
        self.say(EntryType.SCOPE_CREATE, accountlog.scope_body(scope, suite=suite))
        self.scope_keys[scope] = self.entropy(32)
        return scope

    def registration(self, *, invite: str = "", wraps: Sequence[Wrap] = ()) -> Register:
        return Register(
            username=self.name,
            kdf=self.kdf,
            auth_key=self.auth_key,
            log=LogAppend(head=bytes(32), entries=tuple(self.entries), wraps=tuple(wraps)),
            invite=invite,
        )

    async def register(self, client: Client, **options: Any) -> Pending:
        return await client.call("POST", "/v1/register", self.registration(**options), answer=Pending, token="")

    async def login(self, client: Client, *, code: str = "") -> Pending:
        given = Login(username=self.name, auth_key=self.auth_key, code=code)
        return await client.call("POST", "/v1/login", given, answer=Pending, token="")


@dataclass(slots=True)
class Device:
    """A device: its keys, its lanes as it has them."""

    account: Account
    client: Client
    id: bytes
    key: Key
    wrap_pub: bytes = b"w" * 1216
    lanes: dict[bytes, list[Envelope]] = field(default_factory=dict)
    cursor: str = ""

    async def authenticate(self, *, origin: str | None = None) -> Token:
        """Get a token by challenge and signature, and use it from now on."""
        made = await self.client.call("POST", "/v1/auth/token", await self.token_request(origin=origin), answer=Token)
        self.client.token = made.token
        return made

    async def token_request(self, *, origin: str | None = None) -> TokenRequest:
        asked = await self.client.call("GET", "/v1/auth/challenge", answer=Challenge, device=self.id.hex(), token="")
        origin = self.account.origin if origin is None else origin
        message = auth_message(self.account.id, self.id, asked.nonce, origin)
        return TokenRequest(
            account=self.account.id,
            device=self.id,
            nonce=asked.nonce,
            origin=origin,
            signature=self.key.sign(message),
        )

    async def refusal(self, other: Device, *, key: Key | None = None) -> RefuseDevice:
        """Return a signed request that another device be refused for a while."""
        asked = await self.client.call("GET", "/v1/auth/challenge", answer=Challenge, device=self.id.hex(), token="")
        message = refusal_message(self.account.id, other.id, self.id, asked.nonce)
        return RefuseDevice(nonce=asked.nonce, signature=(key or self.key).sign(message))

    async def refuse(self, other: Device) -> None:
        """Have another device refused for a while."""
        await self.client.call("DELETE", f"/v1/devices/{other.id.hex()}", await self.refusal(other))

    async def append(self, *entries: bytes, wraps: Sequence[Wrap] = (), blobs: Sequence[bytes] = ()) -> LogPage:
        """Append entries that `Account.say` has kept already: `head` is what came before them."""
        count = len(self.account.entries) - len(entries)
        head = accountlog.read(self.account.entries[count - 1]).hash if count else bytes(32)
        given = LogAppend(head=head, entries=entries, wraps=tuple(wraps), blobs=tuple(blobs))
        return await self.client.call("POST", "/v1/log", given, answer=LogPage)

    def segment(
        self,
        payload: bytes = b"op",
        *,
        scope: bytes | None = None,
        suite: Suite = Suite.SEALED,
        keep: bool = True,
        sign: Any = None,
        **changed: Any,
    ) -> Envelope:
        """Return the next object of a lane, kept as its end unless told otherwise; `changed` fields of the header."""
        account = self.account
        scope = account.home if scope is None else scope
        lane = self.lanes.setdefault(scope, [])
        n = lane[-1].header.n_to if lane else 0
        prev = lane[-1].end if lane else lane_root(account.id, scope, self.id)
        header = Header(
            suite=suite,
            kind=ObjectKind.SEGMENT,
            account=account.id,
            scope=scope,
            device=self.id,
            epoch=account.state.scopes[scope].epoch if scope in account.state.scopes else 0,
            n_from=n + 1,
            n_to=n + 1,
            prev=prev,
        )
        header = replace(header, **changed)
        made = seal(
            header,
            segment.encode([(n + 1, payload)]),
            key=account.scope_keys.get(scope, bytes(32)),
            salt=account.entropy(32),
            sign=sign or self.key.sign,
        )
        if keep:
            lane.append(made)
        return made

    def quick(self, size: int = 100, *, scope: bytes | None = None) -> Envelope:
        """Return the next object of a lane with a body of random bytes: the server cannot tell, and it is faster."""
        account = self.account
        scope = account.home if scope is None else scope
        lane = self.lanes.setdefault(scope, [])
        header = Header(
            suite=Suite.SEALED,
            kind=ObjectKind.SEGMENT,
            account=account.id,
            scope=scope,
            device=self.id,
            n_from=(lane[-1].header.n_to if lane else 0) + 1,
            n_to=(lane[-1].header.n_to if lane else 0) + 1,
            prev=lane[-1].end if lane else lane_root(account.id, scope, self.id),
            salt=account.entropy(32),
            commit=account.entropy(32),
            body_len=size,
        )
        made = assemble(header, account.entropy(size), self.key.sign)
        lane.append(made)
        return made

    def pack(self, run: Sequence[Envelope], *, sign: Any = None, size: int = 64, **changed: Any) -> Envelope:
        """Return a pack that stands for some objects in a row. Its body is nothing that opens."""
        first, last = run[0].header, run[-1]
        header = replace(
            first,
            kind=ObjectKind.PACK,
            n_to=last.header.n_to,
            tip=last.end,
            body_len=size,
            salt=self.account.entropy(32),
            commit=self.account.entropy(32),
            **changed,
        )
        return assemble(header, self.account.entropy(size), sign or self.key.sign)

    async def send(self, path: str, objects: Iterable[Envelope | bytes]) -> tuple[Pushed, ...]:
        body = b"".join(one if isinstance(one, bytes) else one.data for one in objects)
        return (await self.client.call("POST", path, body, answer=PushAnswer)).results

    async def push(self, *objects: Envelope | bytes) -> tuple[Pushed, ...]:
        return await self.send("/v1/push", objects)

    async def statuses(self, *objects: Envelope | bytes, path: str = "/v1/push") -> list[str]:
        return [one.status for one in await self.send(path, objects)]

    async def pull(self, after: str | None = None, **params: Any) -> Page:
        response = await self.client.call("GET", "/v1/pull", after=self.cursor if after is None else after, **params)
        objects = list(split(response.content))
        return Page(objects, response.headers[CURSOR], response.headers[HEAD], response)

    async def drain(self, **params: Any) -> list[Envelope]:
        """Pull until the end, as a client must: a page without objects before the end is an error."""
        found: list[Envelope] = []
        while True:
            page = await self.pull(**params)
            assert page.objects or page.cursor == page.head, "an empty page before the end"
            assert page.cursor != self.cursor or page.cursor == page.head, "a cursor that does not move"
            found += page.objects
            self.cursor = page.cursor
            if page.cursor == page.head:
                return found

    async def heads(self) -> Heads:
        return await self.client.call("GET", "/v1/heads", answer=Heads)

    async def ask(self, pending: Pending) -> Enrolment:
        given = Enroll(device=self.id, sign_pub=self.key.public, wrap_pub=self.wrap_pub, commitment=b"c" * 32)
        return await self.client.call("POST", "/v1/enroll", given, answer=Enrolment, token=pending.token)


async def signed_up(client: Client, name: str = "ann", *, now: Clock | None = None, **options: Any) -> Device:
    """Return the first device of a new account, with a token."""
    account = Account.make(name, now=now)
    device = account.device(client)
    await account.register(client, **options)
    await device.authenticate()
    return device


async def second_device(first: Device, **options: Any) -> Device:
    """Return another device of the account, certified and with a token."""
    device = first.account.device(first.client, **options)
    await first.append(first.account.entries[-1])
    await device.authenticate()
    return device


def totp_code(secret: bytes, now_ms: int) -> str:
    """Return the code an authenticator app shows, made independently of the server's code."""
    digest = hmac.new(secret, struct.pack(">Q", now_ms // 30_000), "sha1").digest()
    offset = digest[19] & 15
    return f"{(struct.unpack('>I', digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000:06d}"


def keyring(account: Account, version: int) -> bytes:
    """An object that could be a keyring, as far as the server can tell."""
    header = Header(
        suite=Suite.SEALED,
        kind=ObjectKind.KEYRING,
        account=account.id,
        scope=bytes(16),
        device=bytes(16),
        n_from=0,
        n_to=0,
        prev=bytes(32),
        salt=account.entropy(32),
        commit=account.entropy(32),
        body_len=40,
    )
    return assemble(header, bytes([version]) * 40, account.ask.sign).data


def object_hash(data: bytes) -> bytes:
    """The name of an object that stands in no lane."""
    return hashlib.sha256(data).digest()


@dataclass(slots=True)
class World:
    """A service on a database of its own, with its clock and a client of it."""

    database: Any
    app: Any
    client: Client
    now: Clock
    settings: Settings

    @property
    def service(self) -> Service:
        return self.app.state.service

    async def rows(self, sql: str, *params: Any) -> list[Any]:
        return await self.database.read(lambda tx: tx.rows(sql, params))


@asynccontextmanager
async def opened(
    where: str | Path,
    *,
    policy: CloudPolicy = DEFAULT,
    now: Clock | None = None,
    body_store: BodyStore | None = None,
    **settings: Any,
) -> AsyncIterator[World]:
    """Serve a database, SQLite or PostgreSQL, in this process."""
    now = now or Clock()
    given = {"registration": "open", "data": Path("unused")} | settings
    if isinstance(where, str):
        given["database_url"] = where
    found = Settings(**given)
    database = await open_database(found if found.database_url else where, now=now, entropy=os.urandom)
    try:
        app = create_app(database, found, now=now, entropy=os.urandom, policy=policy, body_store=body_store)
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as http:
            yield World(database=database, app=app, client=Client(http), now=now, settings=found)
            app.state.service.stop()
    finally:
        await database.close()
