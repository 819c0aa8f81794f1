"""The cloud as seen from a device: one typed method per route of `wire`, and every failure as one of our errors.

Knows HTTP and no key: what proves the device is a `sign` callable. Never follows a redirect, never speaks plain http
to another machine, and never takes more bytes than it asked for. Retrying is the caller's: errors say after how long.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from scrubjay_shared import wire
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import MAX_PAGE_BYTES, Envelope, split
from scrubjay_shared.errors import (
    BY_CODE,
    CorruptError,
    DeniedError,
    ExpiredError,
    InvalidError,
    MalformedError,
    NotFoundError,
    ScrubjayError,
    TooLargeError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
)
from scrubjay_sync.policy import CLOUD

T = TypeVar("T")
Sign = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some objects as the server holds them, where the next page begins, and where everything ends."""

    objects: tuple[Envelope, ...]
    cursor: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Who asks for tokens: a device of an account, and what signs for it."""

    account: bytes
    device: bytes
    sign: Sign


class Cloud:
    """One server, reached at `origin`. Every method raises the kinds of `errors`; UnavailableError when unreachable.

    `store_id` and `generation` are those of the last answer; `offset_ms` is what to add to this device's clock to get
    the server's, measured at the quickest answer so far; None before the first.
    """

    def __init__(
        self, origin: str, *, now: Callable[[], Millis], transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        """`transport` takes the place of the network. Raises InvalidError for an unsafe address, or none."""
        self.origin = checked_origin(origin)
        self.store_id: str | None = None
        self.generation: int | None = None
        self.offset_ms: int | None = None
        self.quota_percent = 0
        """Share of the quota used, in percent, when the server last warned; 0 while it does not."""
        self._now = now
        self._credential: Credential | None = None
        self._token = ""
        self._token_ends = Millis(0)
        self._quickest_ms: int | None = None
        self._client = httpx2.AsyncClient(
            base_url=self.origin,
            transport=transport,
            follow_redirects=False,
            timeout=httpx2.Timeout(CLOUD.timeout_s, connect=CLOUD.connect_s),
            headers={"Accept-Encoding": "identity", "User-Agent": "scrubjay"},
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def use(self, credential: Credential) -> None:
        """From now on ask as a device of an account. Tokens are minted when they are needed."""
        if credential != self._credential:
            self._credential, self._token = credential, ""

    # --- no key needed ------------------------------------------------------------------------------------------------

    async def caps(self) -> wire.Caps:
        """Return what this server speaks and allows. Raises UpdateNeededError when that is another protocol."""
        caps = await self._json("GET", "/v1/caps", wire.Caps, auth=None)
        if caps.protocol != wire.PROTOCOL:
            raise BY_CODE["update_needed"](
                f"{self.origin} speaks protocol {caps.protocol}, this device {wire.PROTOCOL}",
                hint="update the older of the two",
            )
        self.store_id, self.generation = caps.store_id, caps.generation
        return caps

    async def prelogin(self, username: str) -> wire.Prelogin:
        """Return how a name derives its key."""
        return await self._json("GET", "/v1/prelogin", wire.Prelogin, auth=None, params={"username": username})

    async def check_sign_up(self, asked: wire.CheckSignUp) -> None:
        """Ask whether a name is free and an invitation valid. Raises ConflictError, DeniedError; NotFoundError where
        the server is older than the question.
        """  # noqa: D205 - one thought
        await self._send("POST", "/v1/register/check", body=asked, auth=None)

    async def register(self, account: wire.Register) -> None:
        """Make a new account."""
        await self._send("POST", "/v1/register", body=account, auth=None)

    async def login(self, login: wire.Login) -> wire.Pending:
        """Prove a password; the token that comes back may enrol a device and read the account log."""
        return await self._json("POST", "/v1/login", wire.Pending, body=login, auth=None)

    # --- enrolment ----------------------------------------------------------------------------------------------------

    async def enroll(self, device: wire.Enroll, *, pending: str) -> wire.Enrolment:
        """Ask to be added, with the token of a login."""
        return await self._json("POST", "/v1/enroll", wire.Enrolment, body=device, auth=pending)

    async def enrolments(self, *, pending: str | None = None) -> wire.Enrolments:
        """Return the devices that ask: all of them to a device, its own to the one with a pending token."""
        return await self._json("GET", "/v1/enroll", wire.Enrolments, auth=pending or self)

    async def approve(self, enrolment: bytes) -> wire.Enrolment:
        """Note that the device of an enrolment was added to the account log."""
        return await self._json("POST", f"/v1/enroll/{enrolment.hex()}/approve", wire.Enrolment, auth=self)

    # --- the account --------------------------------------------------------------------------------------------------

    async def log(self, start: int = 0, *, pending: str | None = None) -> wire.LogPage:
        """Return the account log from entry `start` on."""
        return await self._json("GET", "/v1/log", wire.LogPage, auth=pending or self, params={"from": str(start)})

    async def append(self, append: wire.LogAppend, *, pending: str | None = None) -> wire.LogPage:
        """Append to the account log. Raises LogConflictError when it has moved on."""
        return await self._json("POST", "/v1/log", wire.LogPage, body=append, auth=pending or self)

    async def wraps(self, target: bytes, *, pending: str | None = None) -> wire.Wraps:
        """Return the keys sealed to a device, or to the recovery code (`wire.RECOVERY_TARGET`), newest first."""
        return await self._json("GET", f"/v1/wraps/{target.hex()}", wire.Wraps, auth=pending or self)

    async def put_wrap(self, wrap: wire.Wrap) -> None:
        """Store a key sealed to one holder."""
        await self._send("PUT", f"/v1/wraps/{wrap.target.hex()}", body=wrap, auth=self)

    async def usage(self) -> wire.Usage:
        """Return bytes and objects held, and what is allowed."""
        return await self._json("GET", "/v1/usage", wire.Usage, auth=self)

    async def set_password(self, change: wire.SetPassword) -> None:
        """Change the password."""
        await self._send("PUT", "/v1/account/password", body=change, auth=self)

    async def set_totp(self, change: wire.SetTotp) -> None:
        """Set or take away the second factor."""
        await self._send("PUT", "/v1/account/totp", body=change, auth=self)

    async def delete_account(self, proof: wire.DeleteAccount) -> wire.Deleted:
        """Delete the account and everything of it."""
        return await self._json("DELETE", "/v1/account", wire.Deleted, body=proof, auth=self)

    async def delete_scope(self, scope: bytes) -> wire.Deleted:
        """Delete every object of a scope."""
        return await self._json("DELETE", f"/v1/scopes/{scope.hex()}", wire.Deleted, auth=self)

    async def delete_device(self, device: bytes) -> None:
        """Drop a device's tokens at once; what ends its right to write is the log."""
        await self._send("DELETE", f"/v1/devices/{device.hex()}", auth=self)

    # --- objects ------------------------------------------------------------------------------------------------------

    async def push(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send objects that continue lanes of this device; one result each, in order. TooLargeError: send fewer."""
        return await self._objects("/v1/push", objects)

    async def pack(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send packs that take the place of what they cover."""
        return await self._objects("/v1/pack", objects)

    async def repair(self, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        """Send objects of any lane of the account that the server has lost, as they were first sent."""
        return await self._objects("/v1/heal", objects)

    async def pull(
        self, cursor: str, *, limit: int = MAX_PAGE_BYTES, wait_s: float = 0, scopes: Sequence[bytes] = ()
    ) -> Page:
        """Return the objects after a cursor ("" is the beginning), at most `limit` bytes of them.

        With nothing new, the answer comes when there is something, or after `wait_s`. `scopes` empty means all.
        """
        params = {"after": cursor, "limit": str(limit), "wait": str(int(wait_s))}
        if scopes:
            params["scopes"] = ",".join(scope.hex() for scope in scopes)
        answer = await self._send(
            "GET", "/v1/pull", auth=self, params=params, wait_s=wait_s, limit=max(limit, MAX_PAGE_BYTES)
        )
        try:
            cursor, head = answer.headers[wire.CURSOR], answer.headers[wire.HEAD]
        except KeyError as error:
            raise MalformedError(
                f"{self.origin} sent a page without the header that says where the next one begins",
                hint="a proxy in between may drop headers: tell the server's operator",
            ) from error
        return Page(objects=tuple(split(answer.body)), cursor=cursor, head=head)

    async def lane(
        self, scope: bytes, device: bytes, *, start: int = 1, limit: int = MAX_PAGE_BYTES
    ) -> tuple[Envelope, ...]:
        """Return objects of a lane in its order, from the one that holds place `start` on.

        As many as fit `limit` bytes, but at least one; none when the lane ends before.
        """
        params = {"from": str(start), "limit": str(limit)}
        path = f"/v1/lanes/{scope.hex()}/{device.hex()}"
        answer = await self._send("GET", path, auth=self, params=params, limit=max(limit, MAX_PAGE_BYTES))
        return tuple(split(answer.body))

    async def heads(self) -> wire.Heads:
        """Return where every lane of the account ends."""
        return await self._json("GET", "/v1/heads", wire.Heads, auth=self)

    async def blob(self, digest: bytes, *, pending: str | None = None) -> bytes:
        """Return the object stored under a SHA-256; whether it is that one is the caller's to check. NotFoundError."""
        answer = await self._send("GET", f"/v1/objects/{digest.hex()}", auth=pending or self)
        return answer.body

    async def put_blob(self, digest: bytes, data: bytes) -> None:
        """Store an object under its SHA-256."""
        await self._send("PUT", f"/v1/objects/{digest.hex()}", raw=data, auth=self)

    async def search(self, scope: bytes, request: wire.SearchRequest) -> wire.SearchAnswer:
        """Search a scope that the server may read."""
        return await self._json("POST", f"/v1/search/{scope.hex()}", wire.SearchAnswer, body=request, auth=self)

    async def wanted_vectors(self, scope: bytes, *, after: str = "") -> wire.WantedVectors:
        """Return which memories of a searchable scope have no vector at the server, a page behind an id."""
        params = {"after": after} if after else None
        path = f"/v1/search/{scope.hex()}/vectors"
        return await self._json("GET", path, wire.WantedVectors, auth=self, params=params)

    async def put_vectors(self, scope: bytes, vectors: wire.PutVectors) -> None:
        """Give vectors of a searchable scope's memories."""
        await self._send("PUT", f"/v1/search/{scope.hex()}/vectors", body=vectors, auth=self)

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _objects(self, path: str, objects: Sequence[Envelope]) -> tuple[wire.Pushed, ...]:
        raw = b"".join(envelope.data for envelope in objects)
        answer = await self._json("POST", path, wire.PushAnswer, raw=raw, auth=self)
        asked = [(one.header.scope, one.header.device, one.header.n_from, one.header.n_to) for one in objects]
        if [(one.scope, one.device, one.n_from, one.n_to) for one in answer.results] != asked:
            raise MalformedError(
                f"{self.origin} answered about other objects than were sent",
                hint="the server or a proxy has a fault: tell its operator",
            )
        return answer.results

    async def _json(self, method: str, path: str, kind: type[T], **asked: Any) -> T:
        answer = await self._send(method, path, **asked)
        try:
            return wire.read(answer.body, kind)
        except MalformedError as error:
            raise MalformedError(
                f"{self.origin} sent an answer that cannot be read",
                hint="the address may be of another service, or of a server that is much older or newer",
            ) from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        auth: str | Cloud | None,
        body: Any = None,
        raw: bytes | None = None,
        params: Mapping[str, str] | None = None,
        wait_s: float = 0,
        limit: int = CLOUD.max_answer_bytes,
    ) -> _Answer:
        """Ask once; as a device, once more with a new token when the old one has ended. `auth` self: as a device."""
        headers = {}
        content = raw
        if raw is not None:
            headers["Content-Type"] = wire.MEDIA
        elif body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        fresh = False
        while True:
            if auth is not None:
                if isinstance(auth, str):
                    token = auth
                else:
                    fresh = fresh or not self._token_holds()
                    token = await self._minted() if fresh else self._token
                headers["Authorization"] = f"Bearer {token}"
            answer = await self._exchange(_Request(method, path, content, headers, params, wait_s, limit))
            if answer.status < 300:
                return answer
            error = self._problem(answer)
            ended = isinstance(error, ExpiredError) or type(error) is UnauthenticatedError
            if not ended or fresh or auth is not self:
                raise error
            fresh = True

    async def _exchange(self, asked: _Request) -> _Answer:
        sent = self._now()
        timeout = httpx2.Timeout(CLOUD.timeout_s + asked.wait_s, connect=CLOUD.connect_s)
        try:
            async with self._client.stream(
                asked.method,
                asked.path,
                content=asked.content,
                headers=asked.headers,
                params=asked.params,
                timeout=timeout,
            ) as response:
                got = bytearray()
                async for part in response.aiter_raw():
                    got += part
                    if len(got) > asked.limit + CLOUD.slack_bytes:
                        raise MalformedError(
                            f"{self.origin} sent more than was asked for",
                            hint="the server or a proxy has a fault: tell its operator",
                        )
        except httpx2.TimeoutException as error:
            raise UnavailableError(
                f"{self.origin} did not answer in time", hint="check the network, and try again later"
            ) from error
        except httpx2.HTTPError as error:
            raise UnavailableError(
                f"{self.origin} cannot be reached ({type(error).__name__})",
                hint="check the address and the network, and that the server runs",
            ) from error
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) != len(got):
            raise UnavailableError(f"an answer of {self.origin} was cut short", hint="check the network, and try again")
        self._note(response.headers, sent)
        return _Answer(response.status_code, bytes(got), response.headers)

    def _note(self, headers: Mapping[str, str], sent: Millis) -> None:
        """Take over what every answer tells: which store this is, and what its clock says."""
        self.store_id = headers.get(wire.STORE, self.store_id)
        generation = headers.get(wire.GENERATION, "")
        if generation.isdecimal():
            self.generation = int(generation)
        percent = headers.get(wire.WARNING, "0")
        self.quota_percent = int(percent) if percent.isdecimal() else 0
        got = self._now()
        took_ms = got - sent
        if "Date" not in headers or took_ms < 0 or (self._quickest_ms is not None and took_ms > self._quickest_ms):
            return
        try:
            stamp = parsedate_to_datetime(headers["Date"])
        except ValueError:
            return  # only a measure of time is lost, and the next answer brings another
        # A Date header is cut to whole seconds, so that its middle is the best guess.
        self._quickest_ms = took_ms
        self.offset_ms = int(stamp.timestamp() * 1000) + 500 - (sent + took_ms // 2)

    def _problem(self, answer: _Answer) -> ScrubjayError:
        if 300 <= answer.status < 400:
            return self._redirected(answer.headers.get("Location", ""))
        after = _seconds(answer.headers.get("Retry-After", ""))
        try:
            problem = wire.read(answer.body, wire.Problem)
        except MalformedError:
            return self._foreign(answer.status, after)
        kind = BY_CODE.get(problem.code)
        if kind is None:
            other = UnavailableError if answer.status >= 500 else ScrubjayError
            kind = next((known for status, known in _BY_STATUS if status == answer.status), other)
        hint = problem.hint or "scrubjay sync status"
        if issubclass(kind, TooManyError) and after:
            hint = f"try again in {f'{after / 60:.0f} minutes' if after > 90 else f'{max(after, 1):.0f} seconds'}"
        if issubclass(kind, UnavailableError):
            return kind(problem.detail or problem.title, hint=hint, retry_after=after)
        return kind(problem.detail or problem.title, hint=hint)

    def _redirected(self, location: str) -> ScrubjayError:
        target = urlsplit(location)
        there = f"{target.scheme}://{target.netloc}"
        if not target.netloc or there == self.origin:
            return InvalidError(
                f"{self.origin} redirects to another path, which is not followed",
                hint="give the address that the server itself has",
            )
        return DeniedError(
            f"{self.origin} redirects to another host, which is not followed",
            hint="an account belongs to one address: ask the operator to serve it there again",
        )

    def _foreign(self, status: int, after: float) -> ScrubjayError:
        """Return the error of an answer that is not a problem document: a proxy's, or another service's."""
        if status == 413:
            return TooLargeError(
                f"a proxy before {self.origin} refuses requests of this size", hint="its operator must allow 1 MiB"
            )
        if status == 429:
            return TooManyError(
                f"{self.origin} refuses more requests for now", hint="try again in some minutes", retry_after=after
            )
        if status >= 500:
            return UnavailableError(
                f"{self.origin} answered {status}",
                hint="try again later; its operator may know more",
                retry_after=after,
            )
        if status == 404:
            return NotFoundError(f"{self.origin} has no scrubjay server at this path (404)", hint="check the address")
        return CorruptError(
            f"{self.origin} answered {status}, and not as a scrubjay server does", hint="check the address"
        )

    def _token_holds(self) -> bool:
        return bool(self._token) and self._now() + CLOUD.token_margin_ms < self._token_ends

    async def _minted(self) -> str:
        """Return a new token: the device signs what the server made up, bound to the address it is reached at."""
        who = self._credential
        if who is None:
            raise UnauthenticatedError("this machine is not logged in: sync is off", hint="scrubjay login")
        begun = self._now()
        challenge = await self._json(
            "GET", "/v1/auth/challenge", wire.Challenge, auth=None, params={"device": who.device.hex()}
        )
        request = wire.TokenRequest(
            account=who.account,
            device=who.device,
            nonce=challenge.nonce,
            origin=self.origin,
            signature=who.sign(wire.auth_message(who.account, who.device, challenge.nonce, self.origin)),
        )
        token = await self._json("POST", "/v1/auth/token", wire.Token, body=request, auth=None)
        # By the server's clock; this device's may be days off.
        self._token, self._token_ends = token.token, Millis(token.expires - (self.offset_ms or 0))
        if self._token_ends <= begun:
            self._token_ends = Millis(begun + CLOUD.token_least_ms)
        return token.token


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    content: bytes | None
    headers: Mapping[str, str]
    params: Mapping[str, str] | None
    wait_s: float
    limit: int


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]


_BY_STATUS: tuple[tuple[int, type[ScrubjayError]], ...] = (
    (400, InvalidError),
    (401, UnauthenticatedError),
    (403, DeniedError),
    (404, NotFoundError),
    (413, TooLargeError),
    (429, TooManyError),
    (503, UnavailableError),
)


def checked_origin(text: str) -> str:
    """Return an origin in its one form: scheme, host and, unless it is the usual one, port.

    Raises InvalidError for anything else, and for http to another machine.
    """
    parts = urlsplit(text.strip())
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in {"https", "http"} or not host or parts.path.strip("/") or parts.query or parts.username:
        raise InvalidError(
            "the server's address must be https://host or https://host:port", hint="without user name and path"
        )
    if parts.scheme == "http" and not _loopback(host):
        raise InvalidError(
            f"http without TLS is allowed to this machine only, and {host} is another one", hint=f"use https://{host}"
        )
    name = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in {None, usual} else "")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _seconds(text: str) -> float:
    try:
        return min(max(0.0, float(text)), CLOUD.max_retry_after_s)
    except ValueError:
        return 0.0  # a date, or nothing: the caller's own pause serves
