"""One model that a process may hold: loaded when it is first needed, let go when idle, left alone while it fails.

Theory of operation. The embedder and the reranker each have a slot. A circuit breaker guards it: `failures` in a row
open it, and while it is open nobody waits for the model. After a rest it is tried once; success closes it and clears
the error that `status` shows, failure doubles the rest. A model on a server is tried in the background and waited for
`patience` seconds at most by whoever asks a question, because a server that does not answer looks like a slow one. What
was asked goes on by itself meanwhile, so that a server which first loads its model is ready for the next question.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from scrubjay import garbage
from scrubjay.policy import ModelPolicy
from scrubjay_shared.errors import CorruptError, InvalidError, ScrubjayError, UnavailableError

log = logging.getLogger(__name__)

OF_THE_TEXT = (InvalidError, CorruptError)
"""Errors for which a text may be to blame rather than the model: they do not open the breaker."""


class Closable(Protocol):
    """What a slot may hold."""

    def close(self) -> None:
        """Let go of the model."""
        ...


M = TypeVar("M", bound=Closable)
T = TypeVar("T")
F = TypeVar("F", bound="asyncio.Future[Any]")


@dataclass(slots=True)
class Breaker:
    """Whether something that fails is to be asked again. Times in seconds of a clock that never goes back.

    >>> breaker = Breaker(ModelPolicy(failures=1, rest_seconds=10))
    >>> breaker.failed(now=0)
    >>> breaker.closed, breaker.may_try(now=9), breaker.may_try(now=10), breaker.may_try(now=10)
    (False, False, True, False)
    """

    policy: ModelPolicy
    failures: int = 0
    rest: float = 0.0
    resting_until: float = 0.0
    tried: bool = False

    @property
    def closed(self) -> bool:
        """Whether it may be asked."""
        return self.rest == 0

    def due(self, now: float) -> bool:
        """Return whether it is open and has rested long enough to be tried once."""
        return self.rest > 0 and now >= self.resting_until

    def may_try(self, now: float) -> bool:
        """Return whether the caller may try it; no other may until that has ended, or has taken as long as a rest."""
        if not self.due(now):
            return False
        self.resting_until, self.tried = now + self.rest, True
        return True

    def failed(self, now: float, *, at_once: bool = False) -> None:
        """Count a failure; `at_once` opens the breaker whatever the count."""
        self.failures += 1
        if self.closed and (at_once or self.failures >= self.policy.failures):
            self.rest = self.policy.rest_seconds
        elif self.tried:
            self.rest = min(2 * self.rest, self.policy.rest_most_seconds)
        else:
            return  # it was asked before the breaker opened
        self.resting_until, self.tried = now + self.rest, False

    def succeeded(self) -> None:
        """Close it."""
        self.failures, self.rest, self.resting_until, self.tried = 0, 0.0, 0.0, False


class Slot(Generic[M]):
    """Holds one model. Used on the event loop; what it runs, runs in threads."""

    def __init__(self, name: str, policy: ModelPolicy, load: Callable[[], Awaitable[M | None]]) -> None:
        """`load` returns the model that is chosen, None when there is none to load, or raises why it cannot."""
        self.model: M | None = None
        self.error: ScrubjayError | None = None
        """Why it does not work; None again as soon as it does."""
        self.patience: float | None = None
        """How many seconds a question waits for it; None for a model of this process, which is waited for."""
        self.loading = asyncio.Lock()
        """Held while the model is loaded or replaced."""
        self.breaker = Breaker(policy)
        self._name = name
        self._load = load
        self._used = time.monotonic()
        self._tasks: set[asyncio.Future[Any]] = set()

    @property
    def state(self) -> str:
        """How it is: "loaded", "idle", or the code of the error that it met."""
        if self.error is not None and (self.model is None or not self.breaker.closed):
            return self.error.code
        return "idle" if self.model is None else "loaded"

    async def held(self) -> M | None:
        """Return the model, loading it if need be; None when there is none, or when `error` says why it cannot be."""
        model = self.model
        if model is not None:
            self._used = time.monotonic()
            return model
        async with self.loading:
            model = self.model
            if model is not None:
                return model
            if not self.breaker.closed and not self.breaker.may_try(time.monotonic()):
                return None
            try:
                model = await self._load()
            except ScrubjayError as error:
                self._fail(error, at_once=True)
                return None
            self.error = None
            self.breaker.succeeded()
            self.model = model
            self._used = time.monotonic()
            # The modules that it came with stay: the garbage collector need not walk over them again and again,
            # 40 ms in which no other thread runs.
            garbage.keep()
            return model

    async def ready(self, trial: Callable[[], Awaitable[object]] | None = None) -> M | None:
        """Return the model for a question, which must not wait: None while it fails or takes longer than `patience`.

        When it is time to try a failing model again, `trial` does so in the background.
        """
        if self.patience is None:
            return await self.held()
        if not self.breaker.closed:
            if trial is not None and self.breaker.due(time.monotonic()):
                self._begin(trial())
            return None
        if self.model is not None:
            return self.model
        loading = self._begin(self.held())
        done, _ = await asyncio.wait({loading}, timeout=self.patience)
        if done:
            return loading.result()
        self._fail(self._late(self.patience))
        return None

    async def run(self, model: M, work: Callable[[], T], *, patience: float | None = None) -> T:
        """Return what `work` of the model gives, run in a thread. Raises what it raises, and counts it.

        Raises UnavailableError when it takes longer than `patience` seconds; it then goes on by itself. Work that
        nobody waits for, on a server, says nothing about how soon that answers a question: that it ends well does not
        close the breaker, but that it fails opens it at once.
        """
        self._used = time.monotonic()
        background = patience is None and self.patience is not None
        task = self._track(asyncio.get_running_loop().run_in_executor(None, work))  # at once: no turn of the loop first
        done, _ = await asyncio.wait({task}, timeout=patience)
        try:
            if not done:
                raise self._late(patience)
            found = task.result()
        except OF_THE_TEXT as error:
            if self.model is model and self.error is None:
                self.error = error
            raise
        except ScrubjayError as error:
            if self.model is model:  # one that was replaced meanwhile says nothing about its successor
                self._fail(error, at_once=background)
            raise
        if self.model is model and (not background or self.breaker.failures == 0):
            self.error = None
            self.breaker.succeeded()
        return found

    def replace(self, model: M | None) -> M | None:
        """Hold another model, or none. Returns the one before, which the caller closes."""
        before, self.model, self.error = self.model, model, None
        self.breaker.succeeded()
        self._used = time.monotonic()
        return before

    async def let_go(self, *, unused_for: float = 0.0) -> bool:
        """Close the model if nobody used it for so many seconds. Returns whether it was closed."""
        if self.model is None or self._used > time.monotonic() - unused_for:
            return False
        model, self.model = self.model, None
        await asyncio.to_thread(model.close)
        return True

    async def close(self) -> None:
        """Let go of the model, and of what is still asked of it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.model is not None:
            self.model.close()
            self.model = None

    def _begin(self, work: Awaitable[T]) -> asyncio.Task[T]:
        async def awaited() -> T:
            return await work

        return self._track(asyncio.get_running_loop().create_task(awaited(), name=self._name))

    def _track(self, task: F) -> F:
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited was told; whoever did not wait any more learnt that it was late

    def _late(self, patience: float | None) -> UnavailableError:
        return UnavailableError(
            f"the {self._name} did not answer within {patience:g} seconds", hint="check that its server is running"
        )

    def _fail(self, error: ScrubjayError, *, at_once: bool = False) -> None:
        log.warning("model failed slot=%s code=%s", self._name, error.code)
        self.error = error
        self.breaker.failed(time.monotonic(), at_once=at_once)
