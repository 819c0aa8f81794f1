"""What was put away into another is found by its own words and leads to what holds it. Pure.

Theory of operation. A merged or compressed memory is searched as it was, so that an archive of many things does not
blur what each of them says. What was merged is told by the memory that stayed, which says the same; what is in an
archive is told as it was, and names the archive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.retrieval.assemble import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a memory that was put away is told by: itself or the one it was merged into, and the archive it is in."""

    id: str
    archive: str | None


def folded(hits: Sequence[Hit], put_away: Mapping[str, Told | None], *, limit: int) -> tuple[Hit, ...]:
    """Return the first `limit` hits in their order, those that were `put_away` as they are told.

    None stands for what nothing holds: it is left out, as is what says what an earlier hit does.
    """
    found: dict[str, Hit] = {}
    for hit in hits:
        if len(found) == limit:
            break
        told = put_away.get(hit.id, Told(id=hit.id, archive=None))
        if told is not None:
            found.setdefault(told.id, replace(hit, id=told.id, archive=told.archive))
    return tuple(found.values())
