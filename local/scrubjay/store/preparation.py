"""A second process that makes ops ready to be stored, while this one stores those before them.

The interpreter runs one thread of Python at a time, so a thread would not help. Requests and answers go through the
pipes of a child of our own interpreter, each as its length in four bytes and MessagePack. The next request is sent
before the answer to the last has come, and answers are sent by a thread of the child's: it never waits for this process
while there is something to do. It holds no key and opens no file, and ends with this process, whose end it sees at its
standard input.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO

import msgspec

from scrubjay.garbage import uncollected
from scrubjay.store.received import Ready, ready, ready_chunk
from scrubjay_shared import snapshot

log = logging.getLogger(__name__)

_LENGTH = 4
_END_S = 5.0  # for the child to see that its input ended: it takes a millisecond
_answers = msgspec.msgpack.Decoder(Ready)
Request = tuple[str, Sequence[tuple[int, bytes | None]], bytes, int | None]
"""A device and ops of it, or the payload of a chunk of a snapshot; and which arrival number the first event would have
if whoever is asked had numbered none before, None for no numbers."""


class Maker:
    """Makes runs ready as they are asked for, and counts the events that it has numbered."""

    def __init__(self, numbered: int = 0) -> None:
        self.numbered = numbered

    def ready(self, request: Request) -> Ready:
        """Return what is asked for."""
        device, run, payload, first = request
        number = 0 if first is None else first + self.numbered
        made = ready_chunk(snapshot.decode_chunk(payload), number) if payload else ready(device, run, number)
        self.count(made)
        return made

    def count(self, made: Ready) -> None:
        """Take note of a run that another has made."""
        if made.numbered:
            self.numbered += len(made.ids)


class Child:
    """The other process. `send` and `receive` block, each in a thread of its own; requests are answered in order."""

    def __init__(self) -> None:
        command = [sys.executable or "", "-P", "-m", __name__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own

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
    """Makes runs of ops ready, in the order in which they are asked for, in a child. Close it when done.

    Several may be asked for at once. Once told where the store's events end (`follow`), it numbers those of the runs as
    they will arrive. That holds while runs are stored in their order, and each is told (`settled`, then `follow`).
    Where somebody else has written events meanwhile, the store numbers again.
    """

    def __init__(self) -> None:
        self._child: Child | None = None
        self._sending, self._receiving = asyncio.Lock(), asyncio.Lock()
        """Whoever has sent waits for the second at once: answers are received in the order of the requests."""
        self._asked: set[asyncio.Task[Ready]] = set()
        self._here = Maker()
        """Counts what the child has numbered too."""
        self._before_child = 0
        """Events that were numbered when the child was started."""
        self._settled = 0
        self._first: int | None = None
        """What the first of all events would be numbered, as it looks by now."""

    def follow(self, last: int | None) -> None:
        """Give events of runs numbers after the last that the store now has; None: no more, they are there already."""
        self._first = None if last is None else last + 1 - self._settled

    def settled(self, run: Ready) -> None:
        """Take note that a run is stored, or will not be."""
        if run.numbered:
            self._settled += len(run.ids)

    async def ready(self, device: str, run: Sequence[tuple[int, bytes | None]]) -> Ready:
        """Do what `received.ready` does. Where the child cannot be had, a thread of this process does it."""
        return await self._answer(device, run, b"")

    async def ready_chunk(self, payload: bytes) -> Ready:
        """Do what `received.ready_chunk` does of the chunk of a payload that was read before, likewise."""
        return await self._answer("", [], payload)

    async def start(self) -> None:
        """Start the child now, for the first run not to wait for it."""
        async with self._sending, self._receiving:
            await self._start()

    async def close(self) -> None:
        """End the child, and whatever is still asked of it."""
        asked = list(self._asked)
        for task in asked:
            task.cancel()
        await self._end(at_once=bool(asked))
        await asyncio.gather(*asked, return_exceptions=True)

    async def _answer(self, device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes) -> Ready:
        task = asyncio.create_task(self._exchange(device, run, payload), name="prepare")
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

    async def _exchange(self, device: str, run: Sequence[tuple[int, bytes | None]], payload: bytes) -> Ready:
        async with self._sending:
            first, child = self._first, self._child
            if child is None:
                async with self._receiving:
                    await self._start()
                    made = await self._made_here((device, run, payload, first))  # while the child gets up
                    self._before_child = self._here.numbered
                    return made
            there = None if first is None else first + self._before_child
            with suppress(OSError, ValueError):  # then there is no answer
                await asyncio.to_thread(child.send, (device, run, payload, there))
        async with self._receiving:
            try:
                made = await asyncio.to_thread(child.receive)
            except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
                log.warning("ops are prepared in this process, because another failed error=%s", type(error).__name__)
                if self._child is child:
                    await self._end(at_once=True)
                return await self._made_here((device, run, payload, first))
            self._here.count(made)
            return made

    async def _made_here(self, request: Request) -> Ready:
        return await asyncio.to_thread(self._here.ready, request)

    async def _start(self) -> None:
        """Start the child, when all that was asked for before is answered."""
        if self._child is not None:
            return
        self._before_child = self._here.numbered
        try:
            self._child = await asyncio.to_thread(Child)
        except OSError as error:
            log.warning("another process cannot be started error=%s", type(error).__name__)

    async def _end(self, *, at_once: bool) -> None:
        child, self._child = self._child, None
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
    maker = Maker()
    sent: Future[None] | None = None
    with ThreadPoolExecutor(1) as sender:
        while True:
            try:
                request = requests.decode(_received(sys.stdin.buffer))
            except EOFError:
                return
            answer = msgspec.msgpack.encode(maker.ready(request))
            if sent is not None:
                sent.result()
            sent = sender.submit(_send, sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
