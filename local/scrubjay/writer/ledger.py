"""The ledger: each call of a Writer, reserved before it is made and settled after it. Names and numbers, no words."""

from __future__ import annotations

import time
from dataclasses import dataclass

from scrubjay.store import Store
from scrubjay.store.queries.writer_calls import WriterCall
from scrubjay.store.transaction import Transaction
from scrubjay.writer import budget
from scrubjay.writer.budget import Caps, Spent
from scrubjay.writer.port import Usage
from scrubjay_shared.clock import Millis

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The calls that one store's device made. They are kept for `days`."""

    store: Store
    days: int

    async def reserve(self, call: WriterCall, caps: Caps) -> int:
        """Count the most that a call can cost, in the transaction that checks that it fits; return its number.

        Its time and day are those of the transaction. What is never settled, because the program ended before it
        could be, stays counted. Raises BudgetError, and then nothing is counted.
        """

        def work(tx: Transaction) -> int:
            day = local_day(tx.now)
            needed = Usage(input_tokens=call.input_tokens, output_tokens=call.output_tokens)
            budget.check(caps, Spent(day=day, **tx.queries.writer_calls.spent(day)), needed)
            tx.writer_calls.drop_before(local_day(Millis(tx.now - self.days * DAY_MS)))
            return tx.writer_calls.open(call, day)

        return await self.store.write(work)

    async def settle(self, n: int, usage: Usage, *, model: str, estimated: bool, outcome: str, ms: int) -> None:
        """Count what a call cost in truth, in place of what was reserved for it."""
        await self.store.write(
            lambda tx: tx.writer_calls.settle(
                n,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                model=model,
                estimated=estimated,
                outcome=outcome,
                ms=ms,
            )
        )

    async def spent(self) -> Spent:
        """Return what is counted for today and this month."""
        day = local_day(self.store.clock())
        return Spent(day=day, **await self.store.read(lambda q: q.writer_calls.spent(day)))


def local_day(at: Millis) -> str:
    """Return the civil day of a time in the zone of this machine."""
    return budget.civil_day(at, time.localtime(at / 1000).tm_gmtoff // 60)
