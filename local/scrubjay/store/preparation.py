"""Other processes that make ops ready to be stored, while this one stores those before them.

The interpreter runs one thread of Python at a time, so threads would not help. Requests and answers go through the
pipes of children of our own interpreter, each as its length in four bytes and MessagePack. The next request is sent
before the answer to the last has come, and answers are sent by a thread of the child's: it never waits for this
process while there is something to do. They hold no key and open no file, and end with this process, whose end they see
at their standard input.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO

import msgspec

from scrubjay.garbage import uncollected
from scrubjay.spawning import NO_WINDOW
from scrubjay.store.received import Ready, ready, ready_chunk
from scrubjay_shared import snapshot
from scrubjay_shared.ops import OpType

log = logging.getLogger(__name__)

_LENGTH = 4
CHILDREN = max(1, min(2, os.cpu_count() or 1))
"""Of the work on what a lane says, two thirds are theirs: this process keeps one processor busy beside two of them."""
_END_S = 5.0  # for the child to see that its input ended: it takes a millisecond
_answers = msgspec.msgpack.Decoder(Ready)
Request = tuple[str, Sequence[tuple[int, bytes | None]], bytes, int]
"""A device and ops of it, or the payload of a chunk of a snapshot; and the arrival number of the first event, or 0."""


def made(request: Request) -> Ready:
    """Return what is asked for."""
    device, run, payload, number = request
    return ready_chunk(snapshot.decode_chunk(payload), number) if payload else ready(device, run, number)


def events_in(request: Request) -> int:
    """Return how many events a run will have, as far as that can be seen without reading it."""
    _, run, payload, _ = request
    if payload:
        return snapshot.count_of_events(payload)
    return sum(data is not None and data.startswith(_APPENDS) for _, data in run)


_APPENDS = bytes((0x95, OpType.EVENT))
"""What an op that appends an event begins with: an array of five, and its type."""


class Child:
    """Another process. `send` and `receive` block, each in a thread of its own; requests are answered in order."""

    def __init__(self) -> None:
        command = [sys.executable or "", "-P", "-m", __name__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, creationflags=NO_WINDOW)  # noqa: S603  # our own
        self.sending, self.receiving = asyncio.Lock(), asyncio.Lock()
        """Whoever has sent waits for the second at once: answers are received in the order of the requests."""

    def send(self, request: Request) -> None:
        """Ask for a run to be made ready. Raises OSError when the child has gone."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        _send(self.process.stdin, msgspec.msgpack.encode(request))

    def receive(self) -> Ready:
        """Return the next answer. Raises OSError, EOFError or MsgspecError when there is none."""
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        answer = _received(self.process.stdout)
        with uncollected():  # some ten thousand tuples, none of them in a circle: half of the time was looking for one
            return _answers.decode(answer)

    def end(self, *, at_once: bool) -> None:
        """Have it end: at once, or when it has answered."""
        assert self.process.stdin is not None  # noqa: S101 - they are pipes
        assert self.process.stdout is not None  # noqa: S101
        if at_once:
            self.process.kill()
        with suppress(OSError):  # what was not sent yet to a child that has gone
            self.process.stdin.close()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()  # last: a thread that still reads from it has it locked


class Preparation:
    """Makes runs of ops ready, in children. Close it when done.

    Several may be asked for at once. Once told where the store's events end (`follow`), it numbers those of the runs as
    they will arrive. That holds while runs are stored in the order in which they were asked for, and each is told
    (`settled`, then `follow`). Where somebody else has written events meanwhile, or a run has fewer than it looked, the
    store numbers again.
    """

    def __init__(self, children: int | None = None) -> None:
        self._children: list[Child | None] = [None] * (children or CHILDREN)
        self._starting = asyncio.Lock()
        self._turn = 0
        self._asked: set[asyncio.Task[Ready]] = set()
        self._next = 0
        """What the first event of the next run will be numbered; 0: it gets no number."""
        self._waiting = 0
        """Events that have numbers, and are not stored yet."""

    def follow(self, last: int | None) -> None:
        """Give events of runs numbers after the last that the store now has; None: no more, they are there already."""
        self._next = 0 if last is None else last + 1 + self._waiting

    def settled(self, run: Ready) -> None:
        """Take note that a run is stored, or will not be."""
        if run.numbered:
            self._waiting -= len(run.ids)

    async def ready(self, device: str, run: Sequence[tuple[int, bytes | None]]) -> Ready:
        """Do what `received.ready` does. Where no child can be had, a thread of this process does it."""
        return await self._answer(device, run, b"")

    async def ready_chunk(self, payload: bytes) -> Ready:
        """Do what `received.ready_chunk` does of the chunk of a payload that was read before, likewise."""
        return await self._answer("", [], payload)

    async def start(self) -> None:
        """Start the children now, for the first runs not to wait for them."""
        for place in range(len(self._children)):
            await self._started(place)

    async def close(self) -> None:
        """End the children, and whatever is still asked of them."""
        asked = list(self._asked)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)  # one may have a child to start still, which is ended then
        for place in range(len(self._children)):
            await self._end(place, at_once=bool(asked))

    async def _answer(self, device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes) -> Ready:
        request = (device, run, payload, self._next)
        expected = events_in(request) if self._next else 0
        self._waiting += expected
        self._next += expected
        place, self._turn = self._turn, (self._turn + 1) % len(self._children)
        task = asyncio.create_task(self._exchange(place, request, expected), name="prepare")
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        try:
            return await asyncio.shield(task)  # an answer that nobody waits for any more must be received all the same
        except asyncio.CancelledError:
            task.add_done_callback(self._given_up)
            raise

    def _given_up(self, task: asyncio.Task[Ready]) -> None:
        if not task.cancelled() and task.exception() is None:
            self.settled(task.result())

    async def _exchange(self, place: int, request: Request, expected: int) -> Ready:
        more = -expected
        try:
            run = await self._asked_of(place, request)
            more += len(run.ids) if run.numbered else 0
        finally:
            self._waiting += more
            self._next += more if self._next else 0
        return run

    async def _asked_of(self, place: int, request: Request) -> Ready:
        child = self._children[place]
        if child is None:
            await self._started(place)
            return await asyncio.to_thread(made, request)  # while the child gets up
        async with child.sending:
            with suppress(OSError, ValueError):  # then there is no answer
                await asyncio.to_thread(child.send, request)
        async with child.receiving:
            try:
                return await asyncio.to_thread(child.receive)
            except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
                log.warning("ops are prepared in this process, because another failed error=%s", type(error).__name__)
        if self._children[place] is child:
            await self._end(place, at_once=True)
        return await asyncio.to_thread(made, request)

    async def _started(self, place: int) -> None:
        async with self._starting:
            if self._children[place] is not None:
                return
            starting = asyncio.ensure_future(asyncio.to_thread(Child))
            try:
                self._children[place] = await asyncio.shield(starting)
            except OSError as error:
                log.warning("another process cannot be started error=%s", type(error).__name__)
            except asyncio.CancelledError:
                with suppress(OSError):  # the thread goes on, and its process would be nobody's to end
                    self._children[place] = await starting
                raise

    async def _end(self, place: int, *, at_once: bool) -> None:
        child, self._children[place] = self._children[place], None
        if child is not None:
            await asyncio.to_thread(child.end, at_once=at_once)


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
    """Answer until the input ends. A thread sends the answers: one of some megabytes fills the pipe many times over."""
    gc.disable()  # what is made here holds no circles, and looking for some took a seventh of the time
    requests = msgspec.msgpack.Decoder(Request)
    sent: Future[None] | None = None
    with ThreadPoolExecutor(1) as sender:
        while True:
            try:
                request = requests.decode(_received(sys.stdin.buffer))
            except EOFError:
                return
            answer = msgspec.msgpack.encode(made(request))
            if sent is not None:
                sent.result()
            sent = sender.submit(_send, sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
