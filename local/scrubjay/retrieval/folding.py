"""What was put away into another is found by its own words and told by what holds it. Pure.

Theory of operation. A merged or compressed memory is searched as it was, so that an archive of many things does not
blur what each of them says. A place in the answer is taken by what was found, so that an answer tells as much as
before; what was found of one archive stands together in one hit, where the best of it stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.retrieval.assemble import Hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What holds a memory that was put away: its id, and whether it is an archive, which tells of its members apart."""

    id: str
    is_archive: bool


def folded(hits: Sequence[Hit], holders: Mapping[str, Holder | None], *, limit: int) -> tuple[Hit, ...]:
    """Return hits in their order, those in `holders` as hits of what holds them: None of what nothing holds, left out.

    So many of the hits given take part as `limit` says; one that says what an earlier one does takes no place.
    """
    found: dict[str, Hit] = {}
    taken = 0
    for hit in hits:
        if taken == limit:
            break
        holder = holders.get(hit.id, Holder(id=hit.id, is_archive=False))
        if holder is None:
            continue
        before = found.get(holder.id)
        members = (hit.id,) if holder.is_archive else ()
        if before is None:
            found[holder.id] = hit if holder.id == hit.id else replace(hit, id=holder.id, members=members)
        elif members and hit.id not in before.members:
            also = tuple(dict.fromkeys((*before.also, *hit.also)))
            found[holder.id] = replace(before, members=(*before.members, *members), also=also)
        else:
            continue
        taken += 1
    return tuple(found.values())
