"""What the person forgot for good or rejected and comes again: they alone may write it, and say so by it."""

from __future__ import annotations

from scrubjay.api.caller import Caller, Principal
from scrubjay.store import MemoryWrite, Statement, Transaction
from scrubjay.store.writes.memories import statement_of
from scrubjay_shared.errors import DeniedError
from scrubjay_shared.ops import Field
from scrubjay_shared.records import Memory, Scope


def lifted(tx: Transaction, caller: Caller, write: MemoryWrite, shown: Memory | None = None) -> bool:
    """Refuse the words of a write no more where the person writes them. Returns whether they were refused before.

    `shown` is the memory that is rewritten. Of anybody else the write itself is refused (`MemoryWrites.write`).
    """
    if caller.principal is not Principal.PERSON or Field.CONTENT not in write.fields:
        return False
    said = statement_of(write)
    if shown is not None:
        said = Statement(text=said.text, project=shown.resource_id if shown.scope is Scope.PROJECT else None)
    return bool(tx.forget.lift([said], write.memory_id))


def rejected() -> DeniedError:
    """Return the error for words of which the person rejected a memory."""
    return DeniedError(
        "the person rejected a memory of these words",
        hint="leave it, or ask the person: scrubjay review --state rejected lists what they rejected",
    )
