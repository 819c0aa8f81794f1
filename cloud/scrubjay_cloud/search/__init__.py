"""Searching a searchable scope: candidates by meaning and by words, scored as devices score them.

The nearest vectors come from the database (pgvector's exact distance, or its index where a scope is large; numpy over
the scope's vectors on SQLite), the best by words from the words that `materialise` keeps. Both together are scored by
`scoring.weighted` in one place, from the same numbers, so that both databases give the same answer.

Vectors come from devices; there is no model here. They belong to the space that the account log pins for the scope, and
to the words they were made of.
"""

from __future__ import annotations

from scrubjay_cloud.search.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
