"""Work with agents, as recall tells it from talk between people, and what counts there.

Theory of operation. Where at least half of the events are an agent's or a tool's, turns are long, most of them are
steps, and questions come weeks later in other words. Then the parts of an event's score count otherwise
(`policy.AgentWorkPolicy`), and a memory is judged by what stands around the turn that it was read from too: a sentence
out of its context seldom has the words of the question, and its context has vectors already. Of a store of talk
nothing changes.
"""

from __future__ import annotations

import numpy as np

from scrubjay.index.documents import EVENT, MEMORY
from scrubjay.index.index import Index
from scrubjay.policy import AgentWorkPolicy
from scrubjay.retrieval.candidates import Candidates, CandidateSet, linked
from scrubjay.retrieval.event_scores import steps
from scrubjay.retrieval.signals import Signals
from scrubjay_shared.records import EventType

_AGENTS = (EventType.ASSISTANT_MESSAGE, EventType.ASSISTANT_STOP, EventType.TOOL_RESULT)
_PARTS = ("dense", "bm25", "bm25_before", "before", "after", "session", "length", "memory")


def weighed(index: Index, candidates: Candidates, signals: Signals, policy: AgentWorkPolicy) -> bool:
    """Say whether the events that are seen are of work; if so, weigh what was considered accordingly.

    `signals` are those of events, and know the question's vector.
    """
    events = candidates[EVENT.name]
    if not _is_work(index, events, policy):
        return False
    for name in _PARTS:
        if name in events.parts:
            events.parts[name] = events.parts[name] * np.float32(getattr(policy, name))
    if signals.vector is not None:
        _look_around(index, candidates, signals, policy)
    return True


def _is_work(index: Index, events: CandidateSet, policy: AgentWorkPolicy) -> bool:
    types = [index.names.types.find(kind.value) for kind in _AGENTS]
    if events.seen is None:
        agents = sum(events.table.count_of("type", number) for number in types)
    else:
        agents = int(np.count_nonzero(events.seen & np.isin(events.table["type"], types)))
    return bool(agents) and agents >= policy.share * events.count


def _look_around(index: Index, candidates: Candidates, signals: Signals, policy: AgentWorkPolicy) -> None:
    """Note of each memory considered the cosine of the nearest turn around those that it was read from."""
    memories, events = candidates[MEMORY.name], candidates[EVENT.name]
    memory, event = linked(index, candidates, MEMORY.name)
    around = np.full(len(memories.rows), np.nan, np.float32)
    at = events.rows[event]
    least = np.float32(-1)  # no cosine is less
    for column in ("prev", "next"):
        for rows in (at, *steps(events, column, at, policy.around)):
            there = rows >= 0
            there[there] = events.table["embedded"][rows[there]]
            cosines = np.full(len(rows), least, np.float32)
            cosines[there] = signals.cosine(rows[there])
            np.fmax.at(around, memory, cosines)
    memories.around = around
