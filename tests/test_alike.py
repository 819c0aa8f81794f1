"""Which stored memories a new one is compared with: those that share its rarest words, at the same cost in any store."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranking_world import index_of, memory
from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT, WorkPolicy
from scrubjay.retrieval.lexical import NEAR_B, NEAR_K1, sharing_words
from scrubjay.service.application import Application
from scrubjay_shared import scoring
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import MemoryDraft
from scrubjay_shared.text import analyse
from service_calls import NOW, Opener, get
from watched_sql import watch_sql

ALL = WorkPolicy(near_rows=1 << 30, near_tokens=1 << 30)
WORDS = st.sampled_from(["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty"])
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
SHARED = ("The user prefers {}", "The user has {} at home", "The user was told about {}")


@given(texts=st.lists(TEXTS, max_size=12), asked=TEXTS, count=st.integers(1, 6))
def test_where_no_word_is_left_out_the_best_are_those_of_plain_bm25(texts: list[str], asked: str, count: int) -> None:
    index = index_of(*(memory(f"{n:026}", text) for n, text in enumerate(texts)))
    plain = scoring.bm25(analyse(asked), [analyse(text) for text in texts], k1=NEAR_K1, b=NEAR_B)

    [ids] = sharing_words(index, [analyse(asked)], policy=ALL, count=count, longest=1_000)
    found = [int(id_) for id_ in ids]

    best = sorted((score for score in plain if score > 0), reverse=True)[:count]
    assert [plain[n] for n in found] == pytest.approx(best, rel=1e-5)
    assert len(set(found)) == len(found)


def test_what_is_found_by_a_rare_word_is_found_however_many_share_the_common_ones() -> None:
    common = [memory(f"{n:026}", f"The user prefers thing{n}") for n in range(300)]
    index = index_of(*common, memory("Z" * 26, "The user prefers marmalade in the morning"))
    policy = WorkPolicy(near_rows=100)

    asked = analyse("The user prefers honey to marmalade")
    assert sharing_words(index, [asked], policy=policy, count=12, longest=99) == [["Z" * 26]]


def test_a_text_of_common_words_alone_is_looked_up_by_the_rarest_of_them() -> None:
    index = index_of(*(memory(f"{n:026}", "The user prefers" if n % 2 else "The user was asked") for n in range(300)))

    [found] = sharing_words(index, [analyse("The user prefers")], policy=WorkPolicy(near_rows=10), count=3, longest=99)

    assert len(found) == 3
    assert all(int(id_) % 2 for id_ in found)


def test_what_was_put_away_and_what_is_too_long_is_not_compared_with() -> None:
    index = index_of(
        memory("A" * 26, "The quay is closed"),
        memory("B" * 26, "The quay is closed on Sundays", archived_at=Millis(5)),
        memory("C" * 26, "The quay is closed. " + "And there is more to say. " * 50),
    )

    assert sharing_words(index, [analyse("The quay is open")], policy=ALL, count=9, longest=20) == [["A" * 26]]


@pytest.mark.anyio
async def test_a_statement_ends_the_one_it_replaces_among_many_that_begin_alike(opened: Opener) -> None:
    few = replace(DEFAULT, work=WorkPolicy(near_rows=40))
    async with opened(policy=few, now=lambda: Millis(NOW + 1_000)) as service:
        for n in range(60):
            await _add(service, f"The service port{n} runs on Debian")
        old = await _add(service, "The service gateway listens on port 8080")
        new = await _add(service, "The service gateway listens on port 9090", at=1)

        assert (await get(service, old)).memory.superseded_by == new


@pytest.mark.anyio
async def test_adding_takes_as_many_steps_of_sqlite_in_a_store_ten_times_as_large(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch_sql(monkeypatch, statements=False)
    took = []
    async with opened() as service:
        for start, size in ((0, 60), (60, 540)):
            await _import(service, start, size)
            watched.steps = 0
            await _import(service, 10_000 + size, 20)
            took.append(watched.steps)

    assert took[1] < 1.5 * took[0]  # an index is a little deeper


async def _add(service: Application, content: str, *, at: int = 0) -> str:
    entry = await service.call(PERSON, "add", MemoryDraft(content=content, created_at=Millis(NOW + at)))
    return str(entry.memory.id)


async def _import(service: Application, start: int, count: int) -> None:
    """Import a graph of notes that share their first words and no other."""
    lines = [
        {
            "type": "entity",
            "name": f"person{n}",
            "entityType": "person",
            "observations": [SHARED[n % len(SHARED)].format(f"word{n} thing{n * 7}")],
        }
        for n in range(start, start + count)
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    found = await service.call(PERSON, "import", api.ImportRequest(name=f"graph-{start}.jsonl", data=data))
    assert found.memories == 2 * count  # what is said, and of whom
