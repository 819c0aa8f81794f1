"""JSON over HTTP to the server of a Writer: one request, one bounded answer, and what a failure means for the budget.

Neither prompt nor answer is ever logged or quoted in an error: servers repeat the request in theirs.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx2

from scrubjay.policy import WriterPolicy
from scrubjay.writer.port import NOTHING, NotReachedError, UsageUnknownError
from scrubjay_shared.errors import DeniedError, InvalidError, NotFoundError, TooLargeError, TooManyError

CHECK_URL = "check writer_url"
UNKNOWN_PARAMETER = frozenset({400, 422})
"""The statuses with which servers refuse a parameter that they do not know, or one of its values."""

RETRY_AFTER_MOST = 86_400.0  # a server that says more means: not today


class Connection:
    """Requests to one server.

    `url` is one that may be sent to (`setting_values.private_url`); `headers` hold the key, and are never shown.
    """

    def __init__(self, url: str, headers: Mapping[str, str], policy: WriterPolicy) -> None:
        self.host = urlsplit(url).netloc
        self._url = url
        self._headers = {**headers, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._policy = policy
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._refused: Counter[str] = Counter()  # of each wish, how many of its values this server refused

    def beside(self, path: str) -> str:
        """Return an address beside the `/v1` of this server."""
        return f"{self._url.rstrip('/').removesuffix('/v1')}/{path}"

    def __repr__(self) -> str:
        """Name the server, not the key."""
        return f"Connection(host={self.host!r})"

    async def post(
        self, path: str, body: Mapping[str, object], wishes: Mapping[str, Sequence[object]] | None = None
    ) -> Any:
        """Send a request and return what the JSON of its answer holds. Raises as `port.Writer.write` says.

        `wishes` are parameters that not every server takes, each with its values, the dearest first. What a server
        refuses is left out, and not wished for again; where it refuses the bare request too, it was not for them.
        """
        wishes = wishes or {}
        before = self._refused.copy()
        while True:
            granted = {
                name: values[self._refused[name]]
                for name, values in wishes.items()
                if self._refused[name] < len(values)
            }
            status, headers, answer = await self._sent("POST", path, {**body, **granted})
            if status not in UNKNOWN_PARAMETER:
                break
            if not granted:
                self._refused = before
                break
            self._refused.update([name for name in granted if name.encode() in answer] or [*granted])
        self._check_status(status, headers)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise UsageUnknownError(f"{self.host} answered with {kind[:40] or 'no type'!r}, not JSON", hint=CHECK_URL)
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise UsageUnknownError(f"{self.host} answered with something that is not JSON", hint=CHECK_URL) from None

    async def look(self, path: str) -> Any:
        """Return the JSON that a server shows at an address, None where it shows none. Nothing is sent to it.

        Raises NotReachedError.
        """
        try:
            status, _, answer = await self._sent("GET", path, None)
            return json.loads(answer) if status == HTTPStatus.OK else None
        except (UsageUnknownError, ValueError, RecursionError):
            return None

    async def _sent(
        self, method: str, path: str, body: Mapping[str, object] | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._opening:
            if self._client is None:
                # The certificates that the system trusts take some 50 ms to load: not on the event loop.
                self._client = await asyncio.to_thread(self._connected)
            client = self._client
        # ASCII, so that a lone surrogate does no harm
        content = b"" if body is None else json.dumps(body).encode()
        limit = self._policy.connect_seconds if body is None else self._policy.answer_seconds
        try:
            async with asyncio.timeout(limit):
                return await self._exchange(client, method, path, content)
        except TimeoutError:
            raise UsageUnknownError(
                f"{self.host} did not answer within {limit:g} seconds", hint="a smaller model answers sooner"
            ) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _connected(self) -> httpx2.AsyncClient:
        encrypted = urlsplit(self._url).scheme == "https"
        # Without TLS no certificate is needed, so none is loaded; a context without any trusts nobody.
        trusted: ssl.SSLContext | bool = encrypted or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return httpx2.AsyncClient(
            base_url=self._url.rstrip("/") + "/",
            headers=self._headers,
            follow_redirects=False,
            # A proxy that the environment names may carry TLS, never plain text that is meant for this machine.
            trust_env=encrypted,
            verify=trusted,
            timeout=httpx2.Timeout(self._policy.answer_seconds, connect=self._policy.connect_seconds),
        )

    async def _exchange(
        self, client: httpx2.AsyncClient, method: str, path: str, content: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        got = bytearray()
        try:
            async with client.stream(
                method, path, content=content, headers={"Content-Type": "application/json"}
            ) as response:
                if response.headers.get("content-encoding", "identity").lower() != "identity":
                    raise UsageUnknownError(f"{self.host} packed an answer that was asked for as it is", hint=CHECK_URL)
                async for part in response.aiter_raw():
                    got += part
                    if len(got) > self._policy.answer_bytes:
                        raise UsageUnknownError(
                            f"{self.host} answered with more than {self._policy.answer_bytes:,} bytes", hint=CHECK_URL
                        )
        # The causes are not passed on: they hold the request, and with it the key.
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.PoolTimeout) as error:
            raise NotReachedError(
                f"{self.host} cannot be reached ({type(error).__name__})",
                hint="start the server, or check writer_url and the network",
            ) from None
        except httpx2.TimeoutException:
            raise UsageUnknownError(
                f"{self.host} did not answer in time", hint="a smaller model answers sooner"
            ) from None
        except httpx2.HTTPError as error:
            raise UsageUnknownError(
                f"{self.host} broke off ({type(error).__name__})", hint="see the server's own log", again=True
            ) from None
        return response.status_code, response.headers, bytes(got)

    def _check_status(self, status: int, headers: Mapping[str, str]) -> None:
        """Raise what a status stands for. The text of the answer is not shown: servers quote the request in it."""
        match status:
            case 200:
                return
            case 401 | 403:
                raise DeniedError(
                    f"{self.host} refused the key ({status})", hint="writer_key_env names the variable that holds it"
                )
            case 404:
                raise NotFoundError(
                    f"{self.host} has no such model or address (404)", hint="check writer_model, writer_url"
                )
            case 413:
                raise TooLargeError(
                    f"{self.host} refused a prompt of this length (413)", hint="use a model that reads more"
                )
            case 429:
                raise TooManyError(
                    f"{self.host} is asked too often, or its quota is used up (429)",
                    hint="see the server's own limits",
                    retry_after=_retry_after(headers.get("retry-after", "")),
                )
            case _ if 400 <= status < 500 and status != 408:
                raise InvalidError(
                    f"{self.host} refused the request ({status})", hint="check writer, writer_url and writer_model"
                )
            case _ if 300 <= status < 400:
                raise InvalidError(
                    f"{self.host} sends its callers elsewhere ({status})", hint="set writer_url to where it is in truth"
                )
            case _:
                # Whoever answers with an error has written nothing, and counts nothing.
                raise UsageUnknownError(
                    f"{self.host} failed ({status})",
                    hint="see the server's own log",
                    usage=NOTHING,
                    again=status >= HTTPStatus.INTERNAL_SERVER_ERROR,
                )


def _retry_after(text: str) -> float:
    """Return the seconds that a server asks for; 0 where it says nothing that can be read."""
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), RETRY_AFTER_MOST)
    try:
        at = parsedate_to_datetime(text)
        now = at.now(at.tzinfo)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(0.0, (at - now).total_seconds()), RETRY_AFTER_MOST)
