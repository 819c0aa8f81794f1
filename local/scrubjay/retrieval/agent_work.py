"""Work with agents, as recall tells it from talk between people, and what counts there.

Theory of operation. Where at least half of the events are an agent's or a tool's, turns are long, most of them are
steps, and questions come weeks later in other words. Then the parts of an event's score count otherwise
(`policy.AgentWorkPolicy`), and a memory is judged by what stands around the turn that it was read from too: a sentence
out of its context seldom has the words of the question, and its context has vectors already. Of a store of talk
nothing changes.
"""

from __future__ import annotations

import numpy as np

from scrubjay.index.arrays import Mask
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
    events.parts["step"] = np.where(_goes_on(index, events), np.float32(-policy.step), np.float32(0))
    if signals.vector is not None:
        _look_around(index, candidates, signals, policy)
    return True


def nearest(candidates: Candidates, policy: AgentWorkPolicy) -> float | None:
    """Return the mean cosine of what is nearest to the question, of all kinds together; None without vectors.

    Of a small store those are fewer: it holds little of any one matter.
    """
    found = [each.cosine[each.table["embedded"][each.rows]] for each in candidates.values() if each.cosine is not None]
    cosines = np.concatenate(found) if found else np.zeros(0, np.float32)
    if not len(cosines):
        return None
    most = min(max(len(cosines) // policy.near_share, policy.near_least), policy.near_most)
    return float(np.sort(cosines)[-most:].mean())


def other_side(index: Index, events: CandidateSet, row: int, policy: AgentWorkPolicy) -> int:
    """Return the row of the other side of an exchange, -1 where there is none that is seen.

    Of what a person says it is the agent's last turn before they speak again; of an agent's turn what it was asked.
    """
    kinds = (EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE)
    said, agents = (index.names.types.find(kind.value) for kind in kinds)
    types = events.table["type"]
    if types[row] not in {said, agents}:
        return -1
    asked = types[row] == said
    links, found = events.table["next" if asked else "prev"], -1
    for _ in range(policy.exchange):
        row = int(links[row])
        if row < 0:
            break
        if types[row] == said:
            found = found if asked else row
            break
        if asked and types[row] == agents:
            found = row
    return found if found >= 0 and (events.seen is None or events.seen[found]) else -1


def _goes_on(index: Index, events: CandidateSet) -> Mask:
    """Return which of the events considered are an agent's turn after which it, or its tool, goes on."""
    *said, printed = (index.names.types.find(kind.value) for kind in _AGENTS)
    types, (following,) = events.table["type"], steps(events, "next", events.rows, 1)
    there = following >= 0
    there[there] = np.isin(types[following[there]], [*said, printed])
    return there & np.isin(types[events.rows], said)


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
