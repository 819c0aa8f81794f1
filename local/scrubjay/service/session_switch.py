"""The switch of one session: the person starts an agent with it, its hooks tell, and nothing of that session is stored.

What is noted is the session, and from when to when: so the host's own transcript, which is read later, brings nothing
of it either. An event of the session that comes without the switch ends it.
"""

from __future__ import annotations

from collections.abc import Iterable

from scrubjay import hosts
from scrubjay.policy import MemoryPolicy
from scrubjay.spool import Report
from scrubjay.store import Store
from scrubjay_shared.clock import Millis

OFF_NOTICE = "scrubjay: memory is off in this session (SCRUBJAY_USE_MEMORY=0). Nothing of it is stored."
"""What the person is shown when such a session begins, by the hosts that can show it."""


class SessionSwitch:
    """The sessions of one store in which memory is off."""

    def __init__(self, store: Store, policy: MemoryPolicy) -> None:
        self._store = store
        self._slack_ms = int(policy.work.switch_slack_seconds * 1000)
        self._off: set[str] | None = None

    async def told(self, report: Report) -> None:
        """Note what a report says of its session's switch. One that names no session says nothing."""
        off = await self._sessions()
        session_id, sent = hosts.session_of(report.payload), Millis(report.sent)
        if not session_id or report.use_memory == (session_id not in off):
            return
        if report.use_memory:
            await self._store.write(lambda tx: tx.unremembered.switch_on(session_id, sent))
        else:
            since = Millis(max(0, sent - self._slack_ms))
            await self._store.write(
                lambda tx: tx.unremembered.switch_off(session_id, agent=report.host, since=since, seen=sent)
            )
        self._off = None

    async def notes(self) -> Iterable[str]:
        """Return what `status` is to say: in which of the last day's sessions memory is off."""
        day_ago = self._store.clock() - 86_400_000
        agents = [one.agent for one in await self._store.read(lambda q: q.unremembered.off()) if one.seen >= day_ago]
        if not agents:
            return ()
        names = ", ".join(f"{agents.count(agent)} of {agent}" for agent in sorted(set(agents)))
        why = "they were started with SCRUBJAY_USE_MEMORY=0, and nothing of them is stored"
        return (f"memory is off in sessions of the last day ({names}): {why}",)

    async def _sessions(self) -> set[str]:
        if self._off is None:
            self._off = {one.session_id for one in await self._store.read(lambda q: q.unremembered.off())}
        return self._off
