"""The network between one machine and the server: it loses, repeats, delays, cuts and refuses, as a seed decides."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import httpx2

from scrubjay_shared import envelope, wire
from scrubjay_shared.errors import MalformedError
from simulation.laws import require
from simulation.machine import CANARY, CrashError

REFUSALS = {"413": 413, "429": 429, "500": 500, "503": 503}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


Ask = Callable[[httpx2.Request], Awaitable[Answer]]
"""The way into a server: it answers a request whose body was read."""


class _Once(httpx2.AsyncByteStream):
    """A body that is read once, in pieces."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), 4096):
            yield self._body[at : at + 4096]


class Network(httpx2.AsyncBaseTransport):
    """The way from a machine to the server.

    `fault` chooses what happens to a request, `ask` gives the way into the server that the machine is connected to, and
    `change` is what a lying server does to the answer. `meanwhile` is what others do before a request arrives. Nothing that passes may hold what a person wrote (I11).
    """

    def __init__(
        self,
        *,
        fault: Callable[[], str],
        ask: Callable[[], Ask],
        change: Callable[[str, Answer], Answer],
        meanwhile: Callable[[], Awaitable[None]],
    ) -> None:
        self._fault = fault
        self._meanwhile = meanwhile
        self._ask = ask
        self._change = change
        self.late: list[httpx2.Request] = []
        """Requests under way that their sender has given up: the server may still see them."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Carry one request."""
        body = await request.aread()
        _private(b"\n".join([body, str(request.url).encode(), *(b"%s: %s" % one for one in request.headers.raw)]))
        await self._meanwhile()
        how = self._fault()
        if how in REFUSALS:
            return _response(
                Answer(status=REFUSALS[how], headers=(("Retry-After", "3"), ("Content-Type", "text/html")), body=b"no")
            )
        if how in {"drop", "one-way out"}:
            raise httpx2.ConnectError("dropped")
        if how == "crash before":
            raise CrashError
        if how == "late":
            self.late.append(request)
            raise httpx2.ReadTimeout("late")
        answer = await self._carried(request)
        if how == "duplicate":
            answer = await self._carried(request)
        if how == "crash after":
            raise CrashError
        if how in {"lose answer", "one-way in"}:
            raise httpx2.ReadError("lost")
        answer = self._change(request.url.path, answer)
        if how == "truncate" and answer.body:
            answer = Answer(status=answer.status, headers=answer.headers, body=answer.body[: len(answer.body) // 2])
        return _response(answer)

    async def _carried(self, request: httpx2.Request) -> Answer:
        answer = await self._ask()(request)
        _private(answer.body)
        return answer

    async def deliver(self) -> int:
        """Bring the late requests to the server; nobody waits for the answers. Returns how many."""
        waiting, self.late = self.late, []
        for request in waiting:
            await self._carried(request)
        return len(waiting)


def _private(data: bytes) -> None:
    require("I11 no plaintext on the network", "", holds=CANARY.encode() not in data)


def _response(answer: Answer) -> httpx2.Response:
    return httpx2.Response(answer.status, headers=list(answer.headers), stream=_Once(answer.body))


def without_lane(answer: Answer, lane: tuple[bytes, bytes]) -> Answer:
    """Return an answer of objects from which those of a lane are left out."""
    if answer.status != 200 or dict(answer.headers).get("content-type") != wire.MEDIA:
        return answer
    try:
        kept = [one.data for one in envelope.split(answer.body) if one.lane != lane]
    except MalformedError:
        return answer
    return _with_body(answer, b"".join(kept))


def thinned(path: str, answer: Answer, rng: random.Random) -> Answer:
    """Return a page from which some objects are left out."""
    if answer.status != 200 or path != "/v1/pull":
        return answer
    return _with_body(answer, b"".join(one.data for one in envelope.split(answer.body) if rng.random() < 0.6))


def with_object(path: str, answer: Answer, data: bytes) -> Answer:
    """Return a page with one more object at its end."""
    return _with_body(answer, answer.body + data) if answer.status == 200 and path == "/v1/pull" else answer


def flipped(answer: Answer, place: float) -> Answer:
    """Return an answer of objects in which one bit is another."""
    if answer.status != 200 or dict(answer.headers).get("content-type") != wire.MEDIA or not answer.body:
        return answer
    at = int(place * len(answer.body))
    return _with_body(answer, answer.body[:at] + bytes([answer.body[at] ^ 1]) + answer.body[at + 1 :])


def _with_body(answer: Answer, body: bytes) -> Answer:
    headers = tuple(
        (key, str(len(body)) if key.lower() == "content-length" else value) for key, value in answer.headers
    )
    return Answer(status=answer.status, headers=headers, body=body)
