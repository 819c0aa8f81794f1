"""The causes of ops as the store keeps them: each once, and a number in the ops that it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay_shared.clock import Millis, ulid, ulid_millis

FORGET = "forget"
"""The kind of the causes of a person's forgetting for good, which reaches the copies beside the store too."""

KEEPING_COPIES = frozenset({"agent_forget", "forget_once"})
"""The kinds of the causes of forgetting, by an agent or for once, that leaves these copies to the person."""


REPLACING = frozenset({"move", "import", "restore"})
"""The kinds of the causes that erase what they store elsewhere: these copies keep it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What a device is about to write for: its id as ops name it, and what it is about (which is not replicated)."""

    id: str
    label: str = ""


def new_cause(kind: str, now: Millis, entropy: Callable[[int], bytes], *, label: str = "") -> Cause:
    """Return a cause of a kind that has its first op still to write."""
    return Cause(id=f"{kind}:{ulid(now, entropy(10))}", label=label)


class Causes:
    """The numbers of causes within one transaction. A cause gets its row with its first op."""

    def __init__(self, fetch: Callable[..., list[Any]], run: Callable[[str, Sequence[Any]], None]) -> None:
        self._fetch = fetch
        self._run = run
        self._known: dict[str, int] = {}

    def number(self, cause: str | None, label: str = "") -> int | None:
        """Return the number of a cause, None of none."""
        if cause is None:
            return None
        found = self._known.get(cause)
        if found is None:
            self._run(
                "insert or ignore into cause (id, at, label) values (?, ?, ?)",
                (cause, ulid_millis(cause.rpartition(":")[2]), label),
            )
            found = self._known[cause] = int(self._fetch("select n from cause where id = ?", (cause,))[0][0])
        return found

    def forget_numbers(self) -> None:
        """Read numbers anew: those of this transaction may have been rolled back."""
        self._known.clear()
