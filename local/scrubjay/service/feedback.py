"""Feedback: whether memories helped whoever recalled them. Counted on this device, shown by `why`; it ranks nothing."""

from __future__ import annotations

from scrubjay import api
from scrubjay.api import access
from scrubjay.api.caller import Caller
from scrubjay.policy import MemoryPolicy
from scrubjay.service.references import References
from scrubjay.store import Store
from scrubjay_shared.errors import InvalidError


class Feedback:
    """Counts what callers say of the memories of one store."""

    def __init__(self, store: Store, policy: MemoryPolicy, *, references: References) -> None:
        self._store = store
        self._policy = policy
        self._references = references

    async def feedback(self, caller: Caller, request: api.FeedbackRequest) -> api.FeedbackResponse:
        """Count that memories helped, or did not. Raises NotFoundError for one that the caller does not see."""
        most = self._policy.work.recalled_hits
        if not 1 <= len(request.refs) <= most:
            raise InvalidError(
                f"refs must hold between 1 and {most} references, got {len(request.refs)}",
                hint="name the memories of one answer",
            )
        seen = access.view(caller, project=request.project, session_id=request.session_id)
        found = dict.fromkeys([await self._references.resolve(ref, seen) for ref in request.refs])
        agent = (caller.agent or "")[: self._policy.limits.max_name_chars]
        # No cause: it changes no memory, so there is nothing that `undo` could take back.
        await self._store.write(lambda tx: tx.feedback.add(tuple(found), agent, helped=request.helped))
        return api.FeedbackResponse(memories=tuple(found), helped=request.helped)
