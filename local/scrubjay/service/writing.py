"""The Writer that is set: how it is, what an ordinary day would cost, trying one, and taking up what settings say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from scrubjay import api
from scrubjay import settings as options
from scrubjay.api.caller import Caller
from scrubjay.ingest import intake
from scrubjay.policy import MemoryPolicy
from scrubjay.service.account_stores import AccountStores
from scrubjay.service.writer_outlook import outlook
from scrubjay.settings import Settings
from scrubjay.store import Store
from scrubjay.store.queries.writer_calls import WriterCall
from scrubjay.writer import configured
from scrubjay.writer.budgeted import BudgetedWriter, Chosen
from scrubjay.writer.ledger import DAY_MS, local_day
from scrubjay.writer.port import Prompt, Written
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, UnavailableError

JOB = "trial"
TRIAL = Prompt(
    system="You note facts of conversations. Answer with the fact that is asked for, in one short sentence.",
    text=(
        "On which port does the crane server listen?\n\n"
        "person: The crane server listens on port 9417, because the harbour's firewall opens only that one."
    ),
    max_output_tokens=1,
)
"""What a trial asks: nothing of it was said by anybody. The length of the answer is the policy's."""
FACT = "9417"
SHOWN_CHARS = 200
"""Of an answer that is shown."""


class Writing:
    """The Writer of one store. `accounts` are the other stores of the home, which ask the same one."""

    def __init__(
        self,
        store: Store,
        policy: MemoryPolicy,
        *,
        writer: BudgetedWriter,
        accounts: Callable[[], AccountStores | None],
        now: Callable[[], Millis],
    ) -> None:
        self._store = store
        self._policy = policy
        self._writer = writer
        self._accounts = accounts
        self._now = now
        self._settings: Settings | None = None
        self._environ: Mapping[str, str] = {}

    def follow(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Take these settings as those in force, and the keys from this environment."""
        self._settings, self._environ = settings, environ

    async def writer(self, _: Caller, __: api.Nothing) -> api.WriterResponse:
        """Say which Writer is set, what was used of its caps, and what an ordinary day would take."""
        chosen, caps, spent = self._writer.chosen, self._writer.caps, await self._writer.spent()
        last = await self._store.read(lambda q: q.writer_calls.last())
        settings = self._settings
        return api.WriterResponse(
            writer=configured.OFF if chosen is None else chosen.name,
            url="" if chosen is None or settings is None else settings.writer_url,
            model="" if chosen is None else chosen.model,
            key_env="" if chosen is None or settings is None else settings.writer_key_env,
            destination="" if chosen is None else chosen.destination,
            leaves=chosen is not None and chosen.leaves,
            daily_tokens=caps.daily,
            monthly_tokens=caps.monthly,
            used_today=spent.daily,
            used_this_month=spent.monthly,
            left=await self._writer.left(),
            day=await self._day(),
            last=None if last is None else _call(*last),
        )

    async def try_writer(self, _: Caller, request: api.WriterRequest) -> api.WriterTrial:
        """Ask a Writer once about an invented sentence, under the caps and counted as any call; set nothing.

        Raises InvalidError for what cannot be a Writer, UnavailableError for an answer that is none, and what a call
        raises.
        """
        chosen = self._chosen(options.writer_assigned(self._known(), _assigned(request)))
        began = time.perf_counter()
        prompt = replace(TRIAL, max_output_tokens=self._policy.writer.trial_tokens)
        written = await self._writer.ask_once(chosen, prompt, job=JOB)
        return api.WriterTrial(
            answer=_answer(written),
            model=written.model,
            input_tokens=written.input_tokens,
            output_tokens=written.output_tokens,
            estimated=written.estimated,
            elapsed_ms=round((time.perf_counter() - began) * 1000, 3),
        )

    async def use_writer(self, caller: Caller, request: api.UseWriterRequest) -> api.WriterResponse:
        """Read what the settings' file says of the Writer, and ask that one from now on, in all accounts."""
        settings = await asyncio.to_thread(options.writer_reread, self._known())
        chosen = None if settings.writer == configured.OFF else self._chosen(settings)
        self._settings = settings
        await self._writer.use(chosen, configured.caps(settings))
        if (accounts := self._accounts()) is not None:
            await accounts.tell(caller, "use_writer", request)
        return await self.writer(caller, api.Nothing())

    def _known(self) -> Settings:
        if self._settings is None:
            raise ConflictError(
                "this store was opened without settings, which name its Writer", hint="scrubjay writer sets one"
            )
        return self._settings

    def _chosen(self, settings: Settings) -> Chosen:
        found = configured.chosen(settings, self._environ, self._policy.writer)
        if found is None:
            raise ConflictError("no Writer is named", hint=f"one of: {', '.join(options.WRITERS[1:])}")
        return found

    async def _day(self) -> api.WriterDay:
        policy, now = self._policy.writer, self._now()
        since = Millis(now - policy.outlook_days * DAY_MS)
        found = await self._store.read(lambda q: q.events.sizes_since(since))

        def estimated() -> api.WriterDay:
            from scrubjay.distill.observer_prompt import SYSTEM  # noqa: PLC0415  # as in `Distill`: a start waits for it

            days = {local_day(event.ts) for event in found}
            count = max(len(days), 1)
            told = outlook(found, self._policy.observer, instruction_chars=len(SYSTEM))
            return api.WriterDay(
                looked_at=policy.outlook_days,
                days=len(days),
                sessions=round(len({event.session_id for event in found}) / count),
                calls=-(-told.calls // count),
                input_tokens=round(told.chars / policy.token_chars / count),
                output_tokens=round(told.calls * policy.answer_tokens / count),
            )

        return await asyncio.to_thread(estimated)


def _assigned(request: api.WriterRequest) -> dict[str, str]:
    given = (request.writer, request.url, request.model, request.key_env)
    return dict(zip(options.WRITER_KEYS, given, strict=True))


def _answer(written: Written) -> str:
    """Return what a trial was answered. Raises UnavailableError where a Writer like that would learn nothing."""
    text = " ".join(intake.valid(written.text).split())
    if FACT not in text:
        raise UnavailableError(
            f"{written.model} did not find {FACT} in one sentence; it answered: {text[:SHOWN_CHARS]}",
            hint="choose a larger model",
        )
    return text[-SHOWN_CHARS:]


def _call(at: Millis, call: WriterCall, outcome: str) -> api.LastCall:
    return api.LastCall(
        at=at,
        job=call.job,
        writer=call.writer,
        model=call.model,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        outcome=outcome,
    )
