"""A statement that only says what holds is judged by its value alone; nothing is judged otherwise for it."""

from __future__ import annotations

from unittest.mock import PropertyMock, patch

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.lifecycle.readings import Reading
from scrubjay.lifecycle.supersession import verdict_of
from scrubjay.policy import SupersessionPolicy

WORDS = st.sampled_from(
    [
        "the",
        "we",
        "our",
        "port",
        "service",
        "uses",
        "is",
        "not",
        "never",
        "now",
        "until",
        "replaced",
        "dropped",
        "instead",
        "of",
        "moved",
        "to",
        "from",
        "postgres",
        "redis",
        "8080",
        "9090",
        "v2",
        "v3",
        "Ann",
        "Ben",
        "user",
        "prefers",
        "tea",
        "coffee,",
        "no",
        "longer",
        "for",
        "while",
        "and",
        "on",
        "db-1",
        "db-2",
        "enabled",
        "disabled",
    ]
)
TEXTS = st.lists(WORDS, min_size=2, max_size=9).map(" ".join)
POLICY = SupersessionPolicy()


@given(old=TEXTS, new=TEXTS)
def test_a_plain_statement_gets_the_verdict_of_all_judgements(old: str, new: str) -> None:
    quick = verdict_of(old, new, POLICY)

    with patch.object(Reading, "is_plain", PropertyMock(return_value=False)):
        assert verdict_of(old, new, POLICY) == quick
