"""What fits a context: a budget is never exceeded, the best come first, and what was cut is said."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.api import Hit, Quote
from scrubjay.retrieval import packing
from scrubjay.retrieval.packing import CUT, pack
from scrubjay_shared.clock import Millis
from scrubjay_shared.text import estimate_tokens

words = st.text(st.characters(codec="utf-8"), max_size=80) | st.lists(
    st.sampled_from(["harbour", "Oslo", "2026", "東京", "🦜", "and", "\n"]), max_size=30
).map(" ".join)
quotes = st.lists(
    words.map(lambda text: Quote(event_id="e", session_id="s", ts=Millis(0), utc_offset=0, speaker="user", text=text)),
    max_size=3,
).map(tuple)
hits = st.lists(
    st.builds(
        lambda text, sources, around: Hit(
            id="m", kind="memory", text=text, score=1.0, ts=Millis(0), type="fact", sources=sources, neighbours=around
        ),
        words,
        quotes,
        quotes,
    ),
    max_size=6,
)
lines = st.dictionaries(st.text(min_size=1, max_size=12), words, max_size=8)


@given(hits, st.integers(1, 300))
def test_hits_never_cost_more_than_their_budget(found: list[Hit], max_tokens: int) -> None:
    kept, spent, left_out = packing.fit(found, max_tokens)

    assert spent <= max_tokens
    assert spent == sum(packing.cost(hit) for hit in kept)
    assert len(kept) + left_out == len(found)


@given(hits, st.integers(1, 300))
def test_hits_that_are_kept_are_the_first_and_say_when_they_were_cut(found: list[Hit], max_tokens: int) -> None:
    kept, _, _ = packing.fit(found, max_tokens)

    for whole, short in zip(found, kept, strict=False):
        assert short.truncated is (short.text != whole.text)
        assert short.sources in (whole.sources, ())
        assert short.neighbours in (whole.neighbours, ())
    assert not any(hit.truncated for hit in kept[:-1])


@given(hits)
def test_a_large_budget_changes_nothing(found: list[Hit]) -> None:
    assert packing.fit(found, 1_000_000)[0] == tuple(found)


@settings(max_examples=60)
@given(lines, lines, st.integers(40, 400), st.integers(40, 400))
def test_a_context_keeps_within_its_budgets_and_names_what_it_left_out(
    identity: dict[str, str], active: dict[str, str], identity_tokens: int, active_tokens: int
) -> None:
    identity = {f"i {key}": value for key, value in identity.items()}
    active = {f"a {key}": value for key, value in active.items()}

    answer = packing.context(identity, active, identity_tokens=identity_tokens, active_tokens=active_tokens)

    # Two more: the line breaks between the two layers.
    assert answer.tokens == estimate_tokens(answer.text) <= identity_tokens + active_tokens + 2
    assert (answer.identity, answer.active) == (identity, active)
    assert sorted(answer.cut) == sorted(
        key for layer in (identity, active) for key, value in layer.items() if f"- {key}: {value}" not in answer.text
    )
    assert ("did not fit" in answer.text) >= bool(answer.cut)


@given(lines)
def test_a_context_that_fits_is_whole(identity: dict[str, str]) -> None:
    answer = packing.context(identity, {}, identity_tokens=100_000, active_tokens=0)

    assert answer.cut == ()
    assert answer.text == packing.layer_text(packing.IDENTITY_TITLE, identity)


def test_an_empty_context_is_empty() -> None:
    assert packing.context({}, {}, identity_tokens=200, active_tokens=500).text == ""


@settings(max_examples=30)
@given(st.lists(st.text(max_size=80), max_size=6), st.integers(0, 60))
def test_a_pack_never_exceeds_its_budget_and_keeps_the_order(texts: list[str], budget: int) -> None:
    packed = pack(texts, max_tokens=budget)

    assert estimate_tokens("\n".join(packed.texts)) == packed.tokens <= budget
    assert len(packed.texts) + packed.left_out == len(texts)
    whole = packed.texts[:-1] if packed.truncated else packed.texts
    assert list(whole) == texts[: len(whole)]
    if packed.truncated:
        assert packed.texts[-1].endswith(CUT)
        assert texts[len(whole)].startswith(packed.texts[-1].removesuffix(CUT))


def test_a_pack_cuts_the_last_text_at_a_word_and_counts_the_rest() -> None:
    texts = ["one two three", "four five six seven eight nine ten eleven twelve", "never reached"]

    packed = pack(texts, max_tokens=14)

    assert packed.texts[0] == texts[0]
    assert packed.texts[1].endswith(CUT)
    assert packed.texts[1].removesuffix(CUT) == "four five six seven eight nine"
    assert (packed.left_out, packed.truncated) == (1, True)


def test_a_pack_without_room_for_some_words_leaves_the_text_out() -> None:
    assert pack(["one two three", "four five six"], max_tokens=6).texts == ("one two three",)
    assert pack(["one two three"], max_tokens=0).left_out == 1
    assert pack([], max_tokens=10).tokens == 0
