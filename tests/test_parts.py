"""Parts of an op that no one object holds: split, read and joined again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay_shared import parts, segment
from scrubjay_shared.errors import MalformedError
from scrubjay_shared.parts import MAX_PARTS, Part


@given(st.binary(max_size=4_000), st.integers(8, 600), st.integers(1, 1 << 40))
def test_an_op_is_what_its_parts_join_to(data: bytes, size: int, seq: int) -> None:
    made = parts.split((seq, data), size)
    read = [parts.part_of(segment.decode(segment.encode([parts.entry_of(one)]))) for one in made]

    assert read == made
    assert parts.joined(one.data for one in read) == data
    assert [(one.seq, one.number, one.total) for one in read] == [(seq, n, len(made)) for n in range(len(made))]


def test_parts_are_of_one_size_so_that_the_last_is_not_small() -> None:
    made = parts.split((1, random.Random(7).randbytes(1_010)), 100)  # incompressible: 11 parts

    lengths = [len(one.data) for one in made]

    assert max(lengths) <= 100
    assert max(lengths) - min(lengths) <= len(made)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [(1, None)],
        [(1, b"short")],
        [parts.entry_of(Part(1, 0, 2, b"x")), parts.entry_of(Part(2, 1, 2, b"x"))],
        [parts.entry_of(Part(1, 2, 2, b"x"))],
        [parts.entry_of(Part(1, 0, 0, b"x"))],
        [parts.entry_of(Part(1, 0, MAX_PARTS + 1, b"x"))],
    ],
    ids=["nothing", "erased", "too short", "two entries", "beyond its total", "of no parts", "of too many"],
)
def test_what_holds_no_part_is_malformed(entries: list[segment.Entry]) -> None:
    with pytest.raises(MalformedError):
        parts.part_of(entries)
