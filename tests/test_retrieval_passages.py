"""A passage is the part of a long text that holds what the question asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrubjay.retrieval.passages import SEARCHED_CHARS, passage
from scrubjay_shared.text import query_tokens

LOG = "\n".join(f"line {n}: nothing of note happened here" for n in range(200))


def weights(question: str) -> dict[str, float]:
    return dict.fromkeys(query_tokens(question), 1.0)


def test_a_short_text_is_its_own_passage() -> None:
    found = passage("The fence is written in Go.", weights("Which language?"), chars=100)

    assert (found.text, found.start, found.end) == ("The fence is written in Go.", 0, 27)


def test_the_passage_is_where_the_words_of_the_question_stand_together() -> None:
    text = f"{LOG}\nThe deploy window was moved. It is Tuesday at noon now.\n{LOG}"

    found = passage(text, weights("When is the deploy window?"), chars=200)

    assert "deploy window was moved. It is Tuesday at noon" in found.text
    assert len(found.text) <= 200


def test_a_word_is_found_in_another_form_and_in_small_letters() -> None:
    text = f"{LOG}\nDeploying happily is what Vera does.\n{LOG}"

    assert "Vera" in passage(text, weights("who deploys happy?"), chars=150).text


def test_without_a_word_in_common_the_beginning_is_returned() -> None:
    assert passage(LOG, weights("quantum chromodynamics"), chars=120).start == 0


def test_a_rare_word_outweighs_two_common_ones() -> None:
    text = f"{LOG}\nThe cache is red and big.\n{LOG}\nThe marten sleeps.\n{LOG}"

    found = passage(text, {"cach": 1.0, "red": 1.0, "marten": 3.0}, chars=80)

    assert "marten" in found.text


def test_one_endless_line_is_cut_at_words() -> None:
    text = "word " * 2_000 + "needle " + "word " * 500

    found = passage(text, weights("needle"), chars=100)

    assert "needle" in found.text
    assert len(found.text) <= 100


texts = st.text(alphabet="abc .!?\n東京é😀İ", max_size=400)


@given(texts, st.lists(st.sampled_from(["a", "b", "c", "東京", "ab"]), max_size=4, unique=True), st.integers(1, 300))
def test_a_passage_stands_where_it_says_and_is_never_longer_than_asked(text: str, words: list[str], chars: int) -> None:
    found = passage(text, dict.fromkeys(words, 1.0), chars=chars)

    assert text[found.start : found.end] == found.text
    assert len(found.text) <= chars
    assert found.start < SEARCHED_CHARS


@given(chars=st.integers(-2, 3))
def test_a_passage_without_room_ends(chars: int) -> None:
    """The attack was everyday: a memory said five hundred times left nothing for each of its quotes."""
    assert len(passage(LOG, weights("note"), chars=chars).text) <= max(chars, 1)
