"""Waiting until what came in is learned and embedded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrubjay import api
from scrubjay.cli import render
from scrubjay.cli.output import Output

if TYPE_CHECKING:
    from scrubjay.transports.local import Transport


LOOK_S = 0.2
"""Between two looks at what is still to be learned: a bar that moves five times a second looks alive."""


STALLED_S = 10.0
"""How long the jobs may make no progress before the work is done in the foreground, where errors show."""


SETTLE_MS = 3_600_000
"""How long the rest may take: an hour is more than a store of a hundred thousand events needs on a small machine."""


def finish(store: Transport, out: Output, *, wait: bool) -> None:
    """Wait until all is learned, when asked to, or when no daemon would do it after us; else say that it goes on."""
    if not wait and store.through == "daemon":
        waiting: api.SettleResponse = store.call("settle", api.SettleRequest(timeout_ms=0))
        if waiting.to_learn and not out.json:
            events = render.words.counted(waiting.to_learn, "event")
            out.remark(
                f"the daemon goes on learning from {events}; scrubjay stats shows how far it is,"
                " and scrubjay review what waits for your word by then"
            )
        return
    left = settled(store, out)
    if left.problem:
        out.remark(f"what was said waits for the Writer: {left.problem}")
    if left.to_learn or left.to_embed:
        out.remark(
            f"not done yet: {render.words.counted(left.to_learn, 'event')} to learn from, "
            f"{render.words.counted(left.to_embed, 'text')} to embed; the next command goes on"
        )


def settled(store: Transport, out: Output) -> api.SettleResponse:
    """Wait until all is learned and embedded, and show how far it is. Returns what could not be done.

    The jobs do the work and the bar follows them; the operation `settle` then does what they left.
    """
    with out.progress() as bar:
        task = bar.add_task("learning", total=None)
        most = waiting = 0
        moved = time.monotonic()
        while time.monotonic() - moved < STALLED_S:
            counts: api.SettleResponse = store.call("settle", api.SettleRequest(timeout_ms=0))
            left = counts.to_learn + counts.to_embed
            if left == 0:
                break
            if left != waiting:
                waiting, moved = left, time.monotonic()
            most = max(most, left)
            what = "learning" if counts.to_learn else "embedding"
            bar.update(task, description=what, total=most, completed=most - left)
            time.sleep(LOOK_S)
        answer: api.SettleResponse = store.call("settle", api.SettleRequest(timeout_ms=SETTLE_MS))
    return answer
