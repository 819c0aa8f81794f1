"""What the Writer cost, and what people are told of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from scrubjay import api
from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay.service.paging import page_limit
from scrubjay.store import Store
from scrubjay.store.queries.writer_calls import GROUPS, WriterTotal
from scrubjay.writer.budgeted import BudgetedWriter, Chosen
from scrubjay.writer.ledger import DAY_MS, local_day
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError

NEARLY = 0.9  # of a cap: there is a day's work left to do about it
NEXT_CALLS = 2  # that still fit when a cap's warning begins: the last ones are refused by what they might cost


class Costs:
    """Reads the ledger of one store's Writer."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, writer: BudgetedWriter) -> None:
        self._store = store
        self._policy = policy
        self._writer = writer

    async def cost(self, _: Caller, request: api.CostRequest) -> api.CostResponse:
        """Add up calls. Raises InvalidError for a group or a day that there is not."""
        if not re.fullmatch(api.COST_BY, request.by):
            raise InvalidError(f"calls are not told apart by {request.by[:40]!r}", hint=f"by: {', '.join(GROUPS)}")
        by = tuple(dict.fromkeys(name for name in request.by.split(",") if name))
        spent = await self._writer.spent()
        now = self._store.clock()
        since = _day(request.since) or local_day(Millis(now - (self._policy.work.activity_days - 1) * DAY_MS))
        until = _day(request.until) or max(spent.day, since)
        limit = page_limit(self._policy, request.limit)
        found = await self._store.read(lambda q: q.writer_calls.totals(by, since=since, until=until, limit=limit))
        whole = await self._store.read(lambda q: q.writer_calls.totals((), since=since, until=until, limit=1))
        chosen, caps = self._writer.chosen, self._writer.caps
        return api.CostResponse(
            writer="none" if chosen is None else chosen.name,
            model=None if chosen is None else chosen.model,
            destination="" if chosen is None else chosen.destination,
            day=spent.day,
            daily_tokens=caps.daily,
            monthly_tokens=caps.monthly,
            used_today=spent.daily,
            used_this_month=spent.monthly,
            left=await self._writer.left(),
            rows=tuple(_row(by, total) for total in found),
            total=_row((), whole[0]) if whole else None,
        )

    async def warnings(self) -> Iterable[str]:
        """Return what `status` is to say: where prompts go, that calls fail, and that a cap is used up, or nearly."""
        chosen = self._writer.chosen
        if chosen is None:
            return ()
        caps, spent = self._writer.caps, await self._writer.spent()
        told = []
        if chosen.leaves:
            told.append(
                f"the writer is on: background jobs and ask send what was said to your agents to {chosen.destination}"
            )
        if (failing := await self._writer.failing()) is not None:
            since = datetime.fromtimestamp(failing.since / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
            hint = f" ({failing.hint})" if failing.hint else ""
            told.append(
                f"the writer fails: none of {failing.calls:,} calls since {since} was answered;"
                f" the last error: {failing.said}{hint}"
            )
        room = NEXT_CALLS * self._reserved(chosen)
        for span, used, cap in (("day", spent.daily, caps.daily), ("month", spent.monthly, caps.monthly)):
            if used >= cap * NEARLY or cap - used < room:
                told.append(
                    f"the writer has used {used:,} of the {cap:,} tokens of this {span}, and a call of the observer may"
                    f" need {self._reserved(chosen):,}; a call that does not fit is not made, and sessions wait for it"
                    " (scrubjay cost)"
                )
        return told

    def _reserved(self, chosen: Chosen) -> int:
        """Return what one long question of the observer reserves: a byte a token, rules and framing included."""
        policy = self._policy.observer
        return policy.prompt_chars + policy.rules_chars + policy.output_tokens + chosen.framing_tokens


def _row(by: tuple[str, ...], total: WriterTotal) -> api.CostRow:
    return api.CostRow(
        calls=total.calls,
        failed=total.failed,
        estimated=total.estimated,
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        last=total.last,
        **dict(zip(by, total.key, strict=True)),
    )


def _day(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(api.COST_DAY, text):
        raise InvalidError(f"{text[:40]!r} is not a day", hint="write it as 2026-11-23")
    return text
