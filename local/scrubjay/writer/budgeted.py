"""The Writer that jobs get: off by default, under caps, with a ledger.

Theory of operation. Before each call the most that it can cost is reserved, in the transaction that checks the caps; so
two jobs at once cannot pass them together, and a crash leaves the call counted. After it the reservation is replaced by
what the Writer counted: by nothing where the Writer was not reached or refused, by all that was reserved where nobody
can know. A second try is a call of its own. A Writer that reports more than was reserved is written down as it reports,
and the next call finds the cap used up.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass

from scrubjay.policy import WriterPolicy
from scrubjay.store import Store
from scrubjay.store.queries.writer_calls import WriterCall
from scrubjay.tracing import Noting, Tracer
from scrubjay.writer import budget
from scrubjay.writer.budget import Asked, Caps, Estimate, Spent
from scrubjay.writer.ledger import Ledger
from scrubjay.writer.port import (
    NOTHING,
    NoAnswerError,
    NotReachedError,
    Prompt,
    Usage,
    UsageUnknownError,
    Writer,
    Written,
)
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import BudgetError, InvalidError, ScrubjayError, TooManyError, UnavailableError

log = logging.getLogger(__name__)

STAGE = "write"
"""What a call is in traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The Writer that the person set. `name` is the setting's value, `destination` where prompts go, for people.

    `framing_tokens` are the most tokens that the Writer adds to a prompt; `leaves` says that prompts leave this
    machine.
    """

    writer: Writer
    name: str
    model: str
    destination: str
    leaves: bool
    framing_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """So many calls failed since a time, and none was answered after it; `said` is what the last error was."""

    since: Millis
    calls: int
    said: str
    hint: str


class BudgetedWriter:
    """A Writer under caps, or none."""

    def __init__(
        self,
        store: Store,
        chosen: Chosen | None,
        caps: Caps | None,
        policy: WriterPolicy,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.chosen = chosen
        self.caps = caps or Caps(daily=policy.daily_tokens, monthly=policy.monthly_tokens)
        self.ledger = Ledger(store=store, days=policy.ledger_days)
        self._policy = policy
        self._sleep = sleep
        self._monotonic = monotonic
        self._failures = 0
        self._rests_until = 0.0
        self._trouble: ScrubjayError | None = None  # why the last call failed, or was not made
        self.tracer: Tracer | None = None
        """Told of each call, where there is one: when, how long, how many tokens; not what it was about."""

    @property
    def is_on(self) -> bool:
        """Whether the person has set a Writer. Where not, nothing is ever asked."""
        return self.chosen is not None

    async def write(self, prompt: Prompt, *, job: str, cause: str | None = None, session: str | None = None) -> Written:
        """Ask, for a job of this name; try again where that makes sense, each time within the caps.

        `cause` and `session` are what the answer is for, as traces name it.

        Raises BudgetError before a call that could pass a cap, UnavailableError where there is no Writer or it is left
        alone after failures, and what `port.Writer.write` raises. Callers fall back to what they do without a Writer.
        """
        chosen = self._set()
        if prompt.max_output_tokens < 1:
            raise InvalidError(f"max_output_tokens must be at least 1, got {prompt.max_output_tokens}")
        self._check_rest(chosen)
        wait = self._policy.wait_seconds
        for attempt in range(1, self._policy.attempts + 1):
            try:
                # Whoever turned it off since is obeyed.
                written = await self._once(self._set(), prompt, job, cause=cause, session=session)
            except ScrubjayError as error:
                self._trouble = error
                if isinstance(error, BudgetError):
                    raise
                if isinstance(error, UnavailableError | TooManyError):
                    wait = max(wait, error.retry_after)
                if attempt == self._policy.attempts or not _again(error) or wait > self._policy.wait_most_seconds:
                    self._note_failure(error)
                    raise
                await self._sleep(wait)
                wait *= 2
            else:
                self._failures, self._trouble = 0, None
                return written
        raise AssertionError("the last attempt returns or raises")

    @property
    def rests(self) -> bool:
        """Whether it is left alone now, after failures in a row."""
        return self._rests_until > self._monotonic()

    def end_rest(self) -> None:
        """Ask it again at the next call, whatever failed before: a person wants to know."""
        self._rests_until = 0.0

    async def failing(self) -> Failing | None:
        """Return since when every call has failed and why, None where the last one was answered or none was made.

        The ledger says it after a restart too, but no more than the kind of error then.
        """
        found = await self.ledger.store.read(lambda q: q.writer_calls.failing())
        if found is None:
            return None
        trouble = self._trouble
        said = found.outcome if trouble is None or isinstance(trouble, BudgetError) else trouble.message
        return Failing(since=found.since, calls=found.calls, said=said, hint="" if trouble is None else trouble.hint)

    async def ask_once(self, chosen: Chosen, prompt: Prompt, *, job: str) -> Written:
        """Ask a Writer that need not be the one that is set, once, within the caps. Raises as `write`."""
        try:
            return await self._once(chosen, prompt, job, cause=None, session=None)
        finally:
            await _closed(chosen)

    async def use(self, chosen: Chosen | None, caps: Caps) -> None:
        """Ask this one from now on, or none, under these caps; what the one before did wrong is not held against it."""
        before, self.chosen, self.caps = self.chosen, chosen, caps
        self._failures, self._rests_until, self._trouble = 0, 0.0, None
        await _closed(before)

    async def estimate(self, asked: Asked) -> Estimate:
        """Return what some calls cost at most, when each is answered at the first try, and what is left."""
        read = asked.input_tokens + asked.calls * self._set().framing_tokens
        left = await self.left()
        return Estimate(
            calls=asked.calls,
            input_tokens=read,
            output_tokens=asked.output_tokens,
            left=left,
            fits=asked.whole and read + asked.output_tokens <= left,
        )

    async def spent(self) -> Spent:
        """Return what is counted for today and this month."""
        return await self.ledger.spent()

    async def left(self) -> int:
        """Return how many tokens may still be used today."""
        return budget.left(self.caps, await self.spent())

    async def aclose(self) -> None:
        """Let go of the Writer's connections."""
        await _closed(self.chosen)

    def _set(self) -> Chosen:
        if self.chosen is None:
            raise UnavailableError(
                "no Writer is set", hint="scrubjay writer finds one, and says what leaves the machine then"
            )
        return self.chosen

    def _check_rest(self, chosen: Chosen) -> None:
        rest = self._rests_until - self._monotonic()
        if rest > 0:
            raise UnavailableError(
                f"{chosen.destination} failed {self._failures} times in a row and is left alone for {rest:.0f} seconds"
                f"{'' if self._trouble is None else f'; the last error: {self._trouble.message}'}",
                hint=(self._trouble and self._trouble.hint) or "scrubjay cost shows how its calls ended",
                retry_after=rest,
            )

    def _note_failure(self, error: ScrubjayError) -> None:
        self._failures += 1
        beyond = self._failures - self._policy.failures
        if beyond >= 0:
            rest = min(self._policy.rest_seconds * 2 ** min(beyond, 16), self._policy.rest_most_seconds)
            if isinstance(error, TooManyError):
                rest = max(rest, error.retry_after)
            self._rests_until = self._monotonic() + rest

    async def _once(
        self, chosen: Chosen, prompt: Prompt, job: str, *, cause: str | None, session: str | None
    ) -> Written:
        reserved = budget.most(prompt, framing_tokens=chosen.framing_tokens)
        call = WriterCall(
            job=job,
            writer=chosen.name,
            model=chosen.model,
            input_tokens=reserved.input_tokens,
            output_tokens=reserved.output_tokens,
        )
        n = await self.ledger.reserve(call, self.caps)
        started = self._monotonic()
        usage, estimated = NOTHING, False
        with nullcontext(Noting()) if self.tracer is None else self.tracer.span(STAGE, job) as noting:
            noting.model, noting.cause, noting.session = chosen.model, cause, session
            try:
                written = self._checked(await chosen.writer.write(prompt), prompt, chosen)
            except ScrubjayError as error:
                outcome = error.code
                if isinstance(error, UsageUnknownError):
                    outcome, usage = "failed", error.usage or reserved
                    estimated = error.written.estimated if isinstance(error, NoAnswerError) else usage is not NOTHING
                elif isinstance(error, NotReachedError):
                    outcome = "not_reached"
                noting.error = outcome
                noting.input_tokens, noting.output_tokens = usage.input_tokens, usage.output_tokens
                await self._settle(
                    n, job, usage, model=chosen.model, estimated=estimated, outcome=outcome, started=started
                )
                raise
            # Whatever else is raised (a task that is cancelled, a fault of ours) leaves the reservation counted.
            usage = written.usage
            noting.input_tokens, noting.output_tokens = usage.input_tokens, usage.output_tokens
        await self._settle(
            n, job, usage, model=written.model, estimated=written.estimated, outcome="done", started=started
        )
        return written

    def _checked(self, written: Written, prompt: Prompt, chosen: Chosen) -> Written:
        """Return an answer that is one. Raises NoAnswerError."""
        if not written.text.strip():
            problem, hint = "answered nothing", "set a model that thinks less before it answers (writer_model)"
        elif written.cut_short:
            problem = f"was cut off after {written.output_tokens:,} tokens of its answer"
            hint = "set a model that thinks less before it answers (writer_model)"
        elif not written.estimated and budget.is_read_in_part(prompt, written.input_tokens, self._policy):
            problem = f"read {written.input_tokens:,} tokens of a prompt that has more"
            hint = f"let the server have a context of {self._policy.context_tokens:,} tokens, or set another model"
        else:
            return written
        raise NoAnswerError(f"{chosen.destination} {problem}, so nothing is made of it", hint=hint, written=written)

    async def _settle(
        self, n: int, job: str, usage: Usage, *, model: str, estimated: bool, outcome: str, started: float
    ) -> None:
        ms = round((self._monotonic() - started) * 1000)
        await self.ledger.settle(n, usage, model=model, estimated=estimated, outcome=outcome, ms=ms)
        log.info(
            "asked the writer job=%s call=%d input=%d output=%d outcome=%s ms=%d",
            job,
            n,
            usage.input_tokens,
            usage.output_tokens,
            outcome,
            ms,
        )


async def _closed(chosen: Chosen | None) -> None:
    close = getattr(chosen and chosen.writer, "aclose", None)
    if close is not None:
        await close()


def _again(error: ScrubjayError) -> bool:
    return error.again if isinstance(error, UsageUnknownError) else isinstance(error, NotReachedError | TooManyError)
