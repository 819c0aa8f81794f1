"""What the person is asked about memories, what is said of them, and what an audit finds: composed for one store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from scrubjay import api
from scrubjay.policy import MemoryPolicy
from scrubjay.service.audit import Audit
from scrubjay.service.feedback import Feedback, Supersedes
from scrubjay.service.handlers import Handler
from scrubjay.service.references import References
from scrubjay.service.review import Review
from scrubjay.store import Store


def handlers(
    store: Store,
    policy: MemoryPolicy,
    *,
    references: References,
    supersede: Supersedes,
    surfacing: Callable[[], Awaitable[api.SurfacingStats]],
) -> Mapping[str, Handler]:
    """Return what runs the operations, by their names."""
    review = Review(store, policy, references=references)
    feedback = Feedback(store, policy, references=references, supersede=supersede)
    audit = Audit(store, policy, surfacing=surfacing)
    return {
        "review": review.review,
        "decide": review.decide,
        "feedback": feedback.feedback,
        "audit": audit.audit,
    }
