"""Feedback: whether memories helped whoever recalled them, or are wrong. Counted on this device, and it moves a little.

What it changes of a memory is written as any change is: it syncs, and `undo` takes it back. The counts stay here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller, Principal
from scrubjay.lifecycle.appraisal import Appraisal, Verdict, appraised
from scrubjay.policy import MemoryPolicy
from scrubjay.service import put_away
from scrubjay.service.references import References
from scrubjay.store import Cause, MemoryWrite, Store, Transaction
from scrubjay_shared.errors import DeniedError, InvalidError

Supersedes = Callable[[Caller, api.SupersedeRequest], Awaitable[api.SupersedeResponse]]


class Feedback:
    """Takes what callers say of the memories of one store. `supersede` lets a new text take a memory's place."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, references: References, supersede: Supersedes) -> None:
        self._store = store
        self._policy = policy
        self._references = references
        self._supersede = supersede

    async def feedback(self, caller: Caller, request: api.FeedbackRequest) -> api.FeedbackResponse:
        """Count what is said of memories, and let it move them. Raises NotFoundError for one that is not seen."""
        verdict = _verdict(request)
        most = self._policy.work.recalled_hits
        if not 1 <= len(request.refs) <= most:
            raise InvalidError(
                f"refs must hold between 1 and {most} references, got {len(request.refs)}",
                hint="name the memories of one answer",
            )
        _check_correction(caller, request)
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found = tuple(dict.fromkeys([await self._references.resolve(ref, seen) for ref in request.refs]))
        agent = (caller.agent or "")[: self._policy.limits.max_name_chars]
        is_person = caller.principal is Principal.PERSON
        cause = self._store.new_cause("feedback")
        corrected = None
        if request.content is not None:
            asked = api.SupersedeRequest(ref=found[0], content=request.content)
            corrected = (await self._supersede(caller, asked)).new.memory.id

        def work(tx: Transaction) -> list[str]:
            return self._carry_out(tx, found, verdict, agent, is_person=is_person, corrected=corrected is not None)

        changed = await self._store.write(work, cause=cause)
        return api.FeedbackResponse(
            memories=found,
            helped=request.helped,
            wrong=request.wrong,
            changed=tuple(changed),
            cause=_taken_back_by(cause, changed),
            corrected=corrected,
        )

    def _carry_out(
        self, tx: Transaction, ids: Sequence[str], verdict: Verdict, agent: str, *, is_person: bool, corrected: bool
    ) -> list[str]:
        shown = tx.queries.memories.by_id(ids)
        if verdict is Verdict.WRONG:
            for memory in shown.values():
                put_away.check_one(tx, memory)
                if is_person:  # who takes it out of use
                    tx.memories.write(put_away.taken_out(tx, memory.id))
            shown = tx.queries.memories.by_id(ids)
        before = tx.queries.feedback.said(ids, agent, verdict.value)
        tx.feedback.add(ids, agent, verdict.value)
        if corrected:
            return []  # what took its place says all
        writes = []
        for memory_id in ids:
            said = Appraisal(verdict=verdict, agent=None if is_person else agent, before=before.get(memory_id, 0))
            if memory_id in shown and (fields := appraised(shown[memory_id], said, self._policy.feedback, tx.now)):
                writes.append(MemoryWrite(memory_id=memory_id, fields=fields, settles=is_person))
        if writes:
            tx.memories.write(writes)
        return [write.memory_id for write in writes]


def _verdict(request: api.FeedbackRequest) -> Verdict:
    if request.wrong and request.helped:
        raise InvalidError("what is wrong did not help", hint="say that it helped, or that it is wrong")
    return Verdict.WRONG if request.wrong else Verdict.HELPED if request.helped else Verdict.MISSED


def _check_correction(caller: Caller, request: api.FeedbackRequest) -> None:
    if request.content is None:
        return
    if not request.wrong or len(request.refs) != 1:
        raise InvalidError("a correction is of one memory that is wrong", hint="name one, and say that it is wrong")
    if caller.principal is not Principal.PERSON:
        raise DeniedError("an agent corrects by memory_correct", hint="leave out content: the person is asked then")


def _taken_back_by(cause: Cause, changed: Sequence[str]) -> str | None:
    return cause.id if changed else None
