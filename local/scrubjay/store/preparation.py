"""A second process that makes ops ready to be stored, while this one stores those before them.

The interpreter runs one thread of Python at a time, so a thread would not help. Requests and answers go through the
pipes of a child of our own interpreter, each as its length in four bytes and MessagePack. It holds no key and opens no
file, and ends with this process, whose end it sees at its standard input.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import IO

import msgspec

from scrubjay.garbage import uncollected
from scrubjay.store.received import Ready, ready, ready_chunk
from scrubjay_shared import snapshot

log = logging.getLogger(__name__)

_LENGTH = 4
_END_S = 5.0  # for the child to see that its input ended: it takes a millisecond
_answers = msgspec.msgpack.Decoder(Ready)
_Request = tuple[str, list[tuple[int, bytes | None]], bytes, int]
"""A device and ops of it, or the payload of a chunk of a snapshot; and the arrival number of the first event, or 0."""


class Preparation:
    """Makes runs of ops ready, one after the other, in a child that the first run starts. Close it when done.

    Once told where the store's events end (`follow`), it numbers those of the runs as they will arrive. That holds
    while runs are stored in their order, and each is told (`settled`, then `follow`). Where somebody else has written
    events meanwhile, the store numbers again.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._pipes = Lock()
        """Held by the thread that asks until it has its answer, also when nobody waits for that any more."""
        self._last: int | None = None
        self._waiting = 0
        """Events that were made ready and are not stored yet."""

    def follow(self, last: int | None) -> None:
        """Give events of runs numbers after the last that the store now has; None: no more, they are there already."""
        self._last = last

    def settled(self, run: Ready) -> None:
        """Take note that a run is stored, or will not be."""
        self._waiting -= len(run.ids)

    async def ready(self, device: str, run: Sequence[tuple[int, bytes | None]]) -> Ready:
        """Do what `received.ready` does. Where the child cannot be had, a thread of this process does it."""
        return await self._answer(device, run)

    async def ready_chunk(self, payload: bytes) -> Ready:
        """Do what `received.ready_chunk` does of the chunk of a payload that was read before, likewise."""
        return await self._answer("", [], payload)

    async def _answer(self, device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes = b"") -> Ready:
        async with self._one_at_a_time:
            number = 0 if self._last is None else self._last + self._waiting + 1
            try:
                made = await asyncio.to_thread(self._asked, device, run, payload, number)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                log.warning("ops are prepared in this process, because another failed error=%s", type(error).__name__)
                await self.close()
                made = await asyncio.to_thread(_made, device, run, payload, number)
            self._waiting += len(made.ids)
            return made

    async def start(self) -> None:
        """Start the child now, for the first run not to wait for it."""
        async with self._one_at_a_time:
            try:
                await asyncio.to_thread(self._started)
            except OSError as error:
                log.info(
                    "another process cannot be started error=%s", type(error).__name__
                )  # and `ready` says so again

    async def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            await asyncio.to_thread(_ended, child)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            command = [sys.executable or "", "-P", "-m", __name__]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own
        return self._child

    def _asked(self, device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes, number: int) -> Ready:
        with self._pipes:
            child = self._started()
            assert child.stdin is not None  # noqa: S101 - they are pipes
            assert child.stdout is not None  # noqa: S101
            _send(child.stdin, msgspec.msgpack.encode((device, run, payload, number)))
            answer = _received(child.stdout)
        with uncollected():  # some ten thousand tuples, none of them in a circle: half of the time was looking for one
            return _answers.decode(answer)


def _ended(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None  # noqa: S101 - they are pipes
    assert child.stdout is not None  # noqa: S101
    with suppress(BrokenPipeError):  # what was not sent yet to a child that has gone
        child.stdin.close()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()  # last: a thread that still reads from it has it locked


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH, "big") + data)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes:
    """Return the next message of a pipe. Raises EOFError when the other side has gone."""
    length = int.from_bytes(_exactly(pipe, _LENGTH), "big")
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = bytes(pipe.read(count))
    if len(data) < count:
        raise EOFError
    return data


def main() -> None:
    """Answer until the input ends."""
    gc.disable()  # what is made here holds no circles, and looking for some took a seventh of the time
    requests = msgspec.msgpack.Decoder(_Request)
    while True:
        try:
            asked = requests.decode(_received(sys.stdin.buffer))
        except EOFError:
            return
        _send(sys.stdout.buffer, msgspec.msgpack.encode(_made(*asked)))


def _made(device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes, number: int) -> Ready:
    return ready_chunk(snapshot.decode_chunk(payload), number) if payload else ready(device, run, number)


if __name__ == "__main__":
    main()
