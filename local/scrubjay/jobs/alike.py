"""The stored memories that share words with a text: the index says which, the store what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from scrubjay.index.index import Index
from scrubjay.policy import WorkPolicy
from scrubjay.retrieval.lexical import sharing_words
from scrubjay.store import Store
from scrubjay_shared.records import Memory
from scrubjay_shared.text import analyse

SPARE = 2
"""Times as many as are wanted are looked up: some are longer than they may be, or have gone meanwhile."""


class Alike:
    """Finds the memories of one store that are like texts. `index` returns it once it holds what was committed."""

    def __init__(self, store: Store, policy: WorkPolicy, index: Callable[[], Awaitable[Index]]) -> None:
        self._store = store
        self._policy = policy
        self._index = index

    async def to(self, text: str, *, chars: int, most: int | None = None) -> list[Memory]:
        """Return the memories of up to `chars` characters that share most words with a text, best first."""
        return (await self.to_each([text], chars=chars, most=most))[0]

    async def to_each(self, texts: Sequence[str], *, chars: int, most: int | None = None) -> list[list[Memory]]:
        """Return those of each of some texts: at most `most`, or as many as a new memory is compared with."""
        if not any(texts):
            return [[] for _ in texts]
        count = most or self._policy.near_candidates
        index = await self._index()
        find = partial(sharing_words, index, policy=self._policy, count=SPARE * count, longest=chars)
        found = await asyncio.to_thread(lambda: find([analyse(text) for text in texts]))
        there = await self._read([ids[:count] for ids in found], chars)
        there |= await self._read([ids[count:] for ids in found if not all(one in there for one in ids[:count])], chars)
        return [[there[one] for one in ids if one in there][:count] for ids in found]

    async def _read(self, wanted: Sequence[Sequence[str]], chars: int) -> dict[str, Memory]:
        ids = list(dict.fromkeys(one for each in wanted for one in each))
        return await self._store.read(lambda q: q.memories.short(ids, chars=chars)) if ids else {}
