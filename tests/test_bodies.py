"""A request's body is read up to its bound and no further, whatever its headers claim and however it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from scrubjay_io.bodies import JOINED_BYTES, bounded_body
from scrubjay_shared.errors import TooLargeError

pytestmark = pytest.mark.anyio

LIMIT = 10
DISCONNECT: dict[str, Any] = {"type": "http.disconnect"}


@dataclass
class Sent:
    """A request as a server hands it on, message by message. `taken` counts those that were asked for."""

    pieces: Sequence[bytes]
    length: str | None = None
    cut: bool = False
    """Whether the client goes away where the body would go on."""
    gates: Sequence[asyncio.Event] = ()
    """What each piece waits for, of a client that is slow."""
    taken: int = field(default=0, init=False)
    asked: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    """Set whenever a message is asked for."""

    @property
    def request(self) -> Request:
        headers = [] if self.length is None else [(b"content-length", self.length.encode("latin-1"))]
        return Request({"type": "http", "method": "POST", "headers": headers}, self._receive)

    async def _receive(self) -> dict[str, Any]:
        n, self.taken = self.taken, self.taken + 1
        self.asked.set()
        if n < len(self.gates):
            await self.gates[n].wait()
        if n >= len(self.pieces):
            return DISCONNECT
        return {"type": "http.request", "body": self.pieces[n], "more_body": self.cut or n + 1 < len(self.pieces)}


WHOLE = {
    "empty": Sent([b""], "0"),
    "in one piece": Sent([b"0123456789"], "10"),
    "in pieces, some of them empty": Sent([b"0123", b"", b"456", b"789"], "10"),
    "of no length": Sent([b"01234", b"56789"]),
    "of a length that is too small": Sent([b"01234", b"56789"], "3"),
    "of a length that is too large, and allowed": Sent([b"01234"], "10"),
    "of a length that is no number": Sent([b"01234"], "ten"),
    "of a length with zeros before it": Sent([b"01234"], "0" * 5000 + "5"),
    "of a negative length": Sent([b"01234"], "-1"),
    "of a length in digits that are not ASCII": Sent([b"01234"], "\xb2\xb3"),
}


@pytest.mark.parametrize("case", WHOLE)
async def test_a_body_within_the_bound_is_read_whole(case: str) -> None:
    sent = WHOLE[case]

    assert await bounded_body(sent.request, LIMIT) == b"".join(sent.pieces)


TOO_LARGE = {
    "by a byte": (Sent([b"0123456789a"], "11"), 0),
    "and says so": (Sent([b"0" * 5] * 1000, "5000"), 0),
    "by what it says alone": (Sent([b"0"], "11"), 0),
    "and says more digits than Python reads": (Sent([b"0"], "9" * 5000), 0),
    "and says that it is small": (Sent([b"0" * 5] * 1000, "5"), 3),
    "and says nothing": (Sent([b"0" * 5] * 1000), 3),
    "and says nonsense": (Sent([b"0" * 5] * 1000, "-5000"), 3),
    "and is cut off after that": (Sent([b"0" * 11], cut=True), 1),
}


@pytest.mark.parametrize("case", TOO_LARGE)
async def test_a_body_that_is_too_large_is_refused_at_its_first_byte_too_many(case: str) -> None:
    sent, taken = TOO_LARGE[case]

    with pytest.raises(TooLargeError, match="larger than 10 bytes"):
        await bounded_body(sent.request, LIMIT)

    assert sent.taken == taken


@pytest.mark.parametrize("sent", [Sent([]), Sent([b"0123"], cut=True), Sent([b"0123"], "10", cut=True)], ids=str)
async def test_a_body_that_is_cut_off_is_no_body(sent: Sent) -> None:
    with pytest.raises(ClientDisconnect):
        await bounded_body(sent.request, LIMIT)


async def test_a_slow_body_is_waited_for_piece_by_piece_and_holds_up_nobody() -> None:
    gates = [asyncio.Event() for _ in range(3)]
    slow = Sent([b"012", b"345", b"678"], "9", gates=gates)
    reading = asyncio.create_task(bounded_body(slow.request, LIMIT))
    progress = []

    for gate in gates:
        await slow.asked.wait()
        slow.asked.clear()
        assert await bounded_body(Sent([b"quick"], "5").request, LIMIT) == b"quick"
        progress.append((slow.taken, reading.done()))
        gate.set()

    assert await reading == b"012345678"
    assert progress == [(1, False), (2, False), (3, False)]


async def test_a_slow_body_can_be_given_up() -> None:
    slow = Sent([b"012"], "9", gates=[asyncio.Event()])

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bounded_body(slow.request, LIMIT), 0.01)

    assert slow.taken == 1


@pytest.mark.parametrize(("size", "threads"), [(JOINED_BYTES - 1, 0), (JOINED_BYTES, 1)])
async def test_a_large_body_in_pieces_is_joined_beside_the_event_loop(
    size: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = 0
    to_thread = asyncio.to_thread

    async def counted(*arguments: Any) -> Any:
        nonlocal joined
        joined += 1
        return await to_thread(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    body = bytes(range(256)) * (JOINED_BYTES // 256)
    body = body[:size]

    assert await bounded_body(Sent([body[:1000], body[1000:]]).request, JOINED_BYTES) == body
    assert joined == threads


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=6), st.none() | st.text("0123456789-+ _", max_size=3))
def test_any_body_is_read_whole_or_refused(pieces: list[bytes], length: str | None) -> None:
    body = b"".join(pieces)
    declared = int(length) if length is not None and length.isdecimal() else 0

    async def read() -> bytes | None:
        try:
            return await bounded_body(Sent(pieces, length).request, LIMIT)
        except TooLargeError:
            return None

    assert asyncio.run(read()) == (body if max(len(body), declared) <= LIMIT else None)
