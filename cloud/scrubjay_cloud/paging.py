"""How much of a list a page takes."""

from __future__ import annotations

from collections.abc import Iterable


def fitting(sizes: Iterable[int], limit: int) -> int:
    """Return how many of some sizes, from the first on, fit into `limit` bytes; one at least, where there are any.

    >>> fitting([3, 4, 5], 7), fitting([9, 1], 7), fitting([], 7)
    (2, 1, 0)
    """
    count = total = 0
    for size in sizes:
        total += size
        if count and total > limit:
            break
        count += 1
    return count
