"""One connection to a server: requests, tokens, limits. Knows no route but those that give tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, TypeVar

import httpx2
import msgspec

from scrubjay_shared import wire
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import (
    ExpiredError,
    MalformedError,
    TooManyError,
    UnauthenticatedError,
    UnavailableError,
)
from scrubjay_sync.cloud.origin import checked_origin
from scrubjay_sync.cloud.problems import Response, error_of
from scrubjay_sync.policy import CLOUD

T = TypeVar("T")
_USERNAME = re.compile(r"[\w.+@-]{1,128}")
"""What a user name is made of: it is shown as it is."""
Sign = Callable[[bytes], bytes]
MAX_DIGITS = 15
"""Of a time in a header: the year 33658."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Who asks for tokens: a device of an account, and what signs for it."""

    account: bytes
    device: bytes
    sign: Sign


class Auth(Enum):
    """Who asks, where it is nobody with a token of a login."""

    DEVICE = "device"


class Connection:
    """Requests to one server, and the token of the device that makes them.

    `store_id` and `generation` are those of the last response; `offset_ms` is what to add to this device's clock to get
    the server's, measured at the quickest response so far; None before the first.
    """

    def __init__(
        self,
        origin: str,
        *,
        now: Callable[[], Millis],
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`transport` takes the place of the network. Raises InvalidError for an unsafe or missing address."""
        self.origin = checked_origin(origin)
        self.store_id: str | None = None
        self.generation: int | None = None
        self.offset_ms: int | None = None
        self.quota_percent = 0
        """Share of the quota used, in percent, when the server last warned; 0 while it does not."""
        self.refused = 0
        """When the newest refusal of a device of the account ends, as the server last said with its log; 0 for none."""
        self.username = ""
        """What the server calls the account of the device that asks, when it last said so."""
        self._now = now
        self._sleep = sleep
        self._credential: Credential | None = None
        self._token = ""
        self._token_ends = Millis(0)
        self._quickest_ms: int | None = None
        self._http = httpx2.AsyncClient(
            base_url=self.origin,
            transport=transport,
            follow_redirects=False,
            timeout=httpx2.Timeout(CLOUD.timeout_s, connect=CLOUD.connect_s),
            headers={"Accept-Encoding": "identity", "User-Agent": "scrubjay"},
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def use(self, credential: Credential) -> None:
        """From now on ask as a device of an account. Tokens are minted when they are needed."""
        if credential != self._credential:
            self._credential, self._token = credential, ""

    @property
    def credential(self) -> Credential:
        """Who asks. Raises UnauthenticatedError when nobody does."""
        if self._credential is None:
            raise UnauthenticatedError("this machine is not logged in: sync is off", hint="scrubjay login")
        return self._credential

    async def send(
        self,
        method: str,
        path: str,
        *,
        auth: str | Auth | None,
        body: Any = None,
        raw: bytes | None = None,
        params: Mapping[str, str] | None = None,
        wait_s: float = 0,
        limit: int = CLOUD.max_answer_bytes,
    ) -> Response:
        """Send a request and return the response.

        `auth` is the token of a login, or says that the device asks: then once more with a new token, when the old one
        has ended. Where the server lets no more through for some seconds, it is asked again then. Raises the error that
        a response of 300 or above stands for.
        """
        headers = {}
        content = raw
        if raw is not None:
            headers["Content-Type"] = wire.MEDIA
        elif body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        fresh, pauses = False, CLOUD.pauses
        while True:
            if auth is not None:
                if isinstance(auth, str):
                    token = auth
                else:
                    fresh = fresh or not self._token_holds()
                    token = await self._new_token() if fresh else self._token
                headers["Authorization"] = f"Bearer {token}"
            response = await self._exchange(_Request(method, path, content, headers, params, wait_s, limit))
            if response.status < 300:
                return response
            error = error_of(self.origin, response)
            if isinstance(error, TooManyError) and pauses and 0 < error.retry_after <= CLOUD.pause_most_s:
                pauses -= 1
                await self._sleep(error.retry_after)
                continue
            ended = isinstance(error, ExpiredError) or type(error) is UnauthenticatedError
            if not ended or fresh or auth is not Auth.DEVICE:
                raise error
            fresh = True

    async def json(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        """Send a request and return the decoded response. Raises MalformedError, and what `send` raises."""
        response = await self.send(method, path, **options)
        try:
            return wire.read(response.body, kind)
        except MalformedError as error:
            raise MalformedError(
                f"{self.origin} sent an answer that cannot be read",
                hint="the address may be of another service, or of a server that is much older or newer",
            ) from error

    async def _exchange(self, request: _Request) -> Response:
        sent = self._now()
        timeout = httpx2.Timeout(CLOUD.timeout_s + request.wait_s, connect=CLOUD.connect_s)
        try:
            async with self._http.stream(
                request.method,
                request.path,
                content=request.content,
                headers=request.headers,
                params=request.params,
                timeout=timeout,
            ) as response:
                got = bytearray()
                limit = request.limit if response.status_code < 300 else CLOUD.problem_bytes
                async for part in response.aiter_raw():
                    got += part
                    if len(got) > limit + CLOUD.slack_bytes:
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
        return Response(response.status_code, bytes(got), response.headers)

    def _note(self, headers: Mapping[str, str], sent: Millis) -> None:
        """Take over what every answer tells: which store this is, and what its clock says."""
        self.store_id = headers.get(wire.STORE, self.store_id)
        generation = headers.get(wire.GENERATION, "")
        if generation.isdecimal():
            self.generation = int(generation)
        refused = headers.get(wire.REFUSED, "")
        if refused.isdecimal() and len(refused) <= MAX_DIGITS:
            self.refused = int(refused)
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

    def _token_holds(self) -> bool:
        return bool(self._token) and self._now() + CLOUD.token_margin_ms < self._token_ends

    async def _new_token(self) -> str:
        """Return a new token: the device signs what the server made up, bound to the address it is reached at."""
        who = self.credential
        begun = self._now()
        challenge = await self.json(
            "GET", "/v1/auth/challenge", wire.Challenge, auth=None, params={"device": who.device.hex()}
        )
        request = wire.TokenRequest(
            account=who.account,
            device=who.device,
            nonce=challenge.nonce,
            origin=self.origin,
            signature=who.sign(wire.auth_message(who.account, who.device, challenge.nonce, self.origin)),
        )
        token = await self.json("POST", "/v1/auth/token", wire.Token, body=request, auth=None)
        self.username = token.username if _USERNAME.fullmatch(token.username) else ""
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
