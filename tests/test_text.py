"""The analyser finds what people look for in any script, never fails, and agrees with FTS5."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from scrubjay_shared import text
from scrubjay_shared.text import (
    ASKS,
    FTS5_TOKENIZE,
    MAX_TOKEN_CHARS,
    STOP_WORDS,
    Mark,
    analyse,
    analysed,
    asks,
    estimate_tokens,
    fts_query,
    mark_of,
    query_tokens,
)

ANY_TEXT = st.text(st.characters(), max_size=200)  # lone surrogates and control characters included
SCRIPTS = st.text(
    st.sampled_from("aZ9'’ -_éßıİЖйё東京のカ한글กรุंงكتاबि😀👍🏽🇩🇪\u200d\ufe0f\u0301\x00\n\"*"), max_size=60
)

FOUND = [  # what a document says, what someone asks, in words
    ("[Caroline] We went to the painting classes", "When did Caroline paint?", "stems"),
    ("It was the dog's bone", "dogs", "possessive and plural"),
    ("Don’t touch O’Brien’s code", "o'brien code", "typographic apostrophe"),
    ("the café on the corner", "cafe", "accents left out"),
    ("the cafe on the corner", "café", "accents added"),
    ("un cafe\u0301", "café", "decomposed accents"),
    ("l'homme et l’été", "homme été", "French elision"),
    ("Grüße aus der Straße", "STRASSE", "German sharp s"),
    ("Müllers Kühe", "kühe", "German umlaut"),
    ("İstanbul'da yaşıyor", "ISTANBUL", "Turkish dotted capital"),
    ("ışık", "IŞIK", "Turkish dotless i"),
    ("мы читали книги", "книга", "Russian case"),
    ("ёлка в лесу", "елка", "Russian without the dots"),
    ("كِتَابٌ جديد", "كتاب", "Arabic vowel points"),
    ("الكتاب", "كتاب", "Arabic article"),
    ("٣ أشهر", "3", "Arabic digits"),
    ("ΟΔΥΣΣΕΎΣ", "οδυσσευς", "Greek capitals and accent"),
    ("हिन्दी किताबें", "किताब", "Hindi plural"),
    ("我昨天在东京买了一本书", "东京", "Chinese word of two characters"),
    ("我有一只猫", "猫", "one Chinese character"),
    ("新しいカメラを買った", "カメラ", "Japanese katakana"),
    ("ｶﾒﾗを買った", "カメラ", "half-width katakana"),
    ("학교에서 만났다", "학교", "Korean noun with a particle"),
    ("ฉันไปกรุงเทพเมื่อวาน", "กรุงเทพ", "Thai word inside a run"),
    ("great 👍🏽 thanks", "👍", "emoji of another skin tone"),
    ("👩‍💻 at work", "💻", "part of a joined emoji"),
    ("moved to 🇩🇪 today", "🇩🇪", "flag"),
    ("❤️ it", "❤", "emoji with a variation selector"),
    ("ＡＢＣ １２３", "abc 123", "full width"),
    ("ﬁnal", "final", "ligature"),
    ("set MAX_TOKEN=5", "max token", "identifier"),
    ("x" * 500, "x" * 500, "endless word"),
]


@pytest.mark.parametrize(("document", "query", "case"), FOUND, ids=[case for _, _, case in FOUND])
def test_a_query_finds_the_document(document: str, query: str, case: str) -> None:  # noqa: ARG001 - the id
    wanted = query_tokens(query)

    held = set(analyse(document))

    assert wanted
    assert held.issuperset(wanted)


@pytest.mark.parametrize(
    ("document", "query"),
    [("I live in 北京", "东京"), ("a bus", "abuse"), ("the 🇫🇷 team", "🇩🇪"), ("กรุงเทพ", "เชียงใหม่")],
)
def test_a_query_does_not_find_what_only_looks_alike(document: str, query: str) -> None:
    assert not set(analyse(document)) & set(query_tokens(query))


@pytest.mark.parametrize("text", ["", "   ", "What is it?", "who’s that", "?!… —", "\ud800\udfff", "\x00\x07\u200b"])
def test_text_without_content_has_no_tokens(text: str) -> None:
    assert analyse(text) == []
    assert query_tokens(text) == []


def test_stop_words_are_dropped_in_every_form_of_apostrophe() -> None:
    typed = " ".join(sorted(STOP_WORDS))

    assert analyse(typed) == []
    assert analyse(typed.replace("'", "’")) == []


def test_repetitions_are_kept_in_a_document_and_dropped_in_a_query() -> None:
    assert analyse("dog dogs cat") == ["dog", "dog", "cat"]
    assert query_tokens("dog dogs cat") == ["dog", "cat"]


def test_a_query_asks_for_the_pair_and_not_for_its_characters() -> None:
    assert analyse("東京") == ["東京", "東", "京"]
    assert query_tokens("東京") == ["東京"]


@given(ANY_TEXT | SCRIPTS)
def test_any_string_gives_clean_tokens(text: str) -> None:
    for token in [*analyse(text), *query_tokens(text)]:
        assert token
        assert len(token) <= 2 * MAX_TOKEN_CHARS
        assert not any(character.isspace() or character in "\"'" for character in token)
        token.encode()  # no lone surrogate is left


@given(ANY_TEXT | SCRIPTS)
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(query_tokens(text)) <= set(analyse(text))


@given(ANY_TEXT | SCRIPTS)
def test_case_makes_no_difference_in_ascii(text: str) -> None:
    plain = text.encode("ascii", "ignore").decode()

    assert analyse(plain.upper()) == analyse(plain.lower())


@given(st.text(st.characters(max_codepoint=127), max_size=100))
def test_ascii_is_read_the_same_beside_other_scripts(text: str) -> None:
    assert analyse(f"{text} ж")[:-1] == analyse(text)


@given(st.lists(ANY_TEXT | SCRIPTS, min_size=1, max_size=4))
def test_fts5_splits_joined_tokens_back_into_the_same_tokens(texts: list[str]) -> None:
    tokens = [token for text in texts for token in analyse(text)]
    store = sqlite3.connect(":memory:")
    store.execute(f"create virtual table entry using fts5(tokens, tokenize='{FTS5_TOKENIZE}')")
    store.execute("create virtual table term using fts5vocab(entry, instance)")

    store.execute("insert into entry values (?)", (" ".join(tokens),))

    found = [term for (term,) in store.execute("select term from term order by offset")]
    assert found == tokens
    store.close()


@given(ANY_TEXT | SCRIPTS, ANY_TEXT | SCRIPTS)
def test_an_fts_query_matches_exactly_the_documents_that_share_a_token(document: str, query: str) -> None:
    store = sqlite3.connect(":memory:")
    store.execute(f"create virtual table entry using fts5(tokens, tokenize='{FTS5_TOKENIZE}')")
    store.execute("insert into entry values (?)", (" ".join(analyse(document)),))

    hits = store.execute("select count(*) from entry where entry match ?", (fts_query(query_tokens(query)),)).fetchone()

    assert hits == (int(bool(set(analyse(document)) & set(query_tokens(query)))),)
    store.close()


@pytest.mark.parametrize("hostile", ['"', "*", "a* NEAR b", "-a", "x:y", "(", "NOT", 'a" OR "b', "^a", "{a b}:c"])
def test_query_syntax_is_never_read_as_syntax(hostile: str) -> None:
    store = sqlite3.connect(":memory:")
    store.execute(f"create virtual table entry using fts5(tokens, tokenize='{FTS5_TOKENIZE}')")

    assert store.execute("select * from entry where entry match ?", (fts_query([hostile]),)).fetchall() == []
    assert store.execute("select * from entry where entry match ?", (fts_query([]),)).fetchall() == []
    store.close()


def test_many_threads_stem_alike() -> None:
    words = [f"painting{n} relationships книги" for n in range(200)]
    alone = [analyse(word) for word in words]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(analyse, words * 5))

    assert together == alone * 5


@pytest.mark.parametrize(
    ("text", "least"),
    [  # tokens of a tokenizer with 100,000 entries, counted once
        ("", 0),
        ("Hello, world!", 4),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("def add(a, b):\n    return a + b\n", 14),
        ("2026-11-21T10:00:00.123Z", 16),
        ("今天天气很好", 6),
        ("👍🏽", 4),
    ],
)
def test_an_estimate_is_not_below_what_a_tokenizer_counts(text: str, least: int) -> None:
    assert estimate_tokens(text) >= least


@given(ANY_TEXT, ANY_TEXT)
def test_joined_by_a_line_break_texts_cost_their_sum_and_one(left: str, right: str) -> None:
    assert estimate_tokens(f"{left}\n{right}") == estimate_tokens(left) + estimate_tokens(right) + 1


# --- what a text may answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "asking"),
    [
        ("is it?", True),
        ('"is it?"', True),
        ("is it? 😂", True),
        ("本当？", True),
        ("is it? yes", False),
        ("it is.", False),
        ("", False),
    ],
)
def test_a_text_asks_when_a_question_mark_ends_it(said: str, asking: bool) -> None:  # noqa: FBT001
    assert asks(said) is asking


@pytest.mark.parametrize(
    ("word", "mark"),
    [
        (ASKS, Mark.ASKS),
        ("Yesterday", Mark.TIMED),
        ("mornings", Mark.TIMED),
        ("2019", Mark.TIMED | Mark.COUNTED),
        ("7pm", Mark.TIMED | Mark.COUNTED),
        ("12", Mark.COUNTED),
        ("dozen", Mark.COUNTED),
        ("may", Mark(0)),
        ("kayak", Mark(0)),
    ],
)
def test_a_token_tells_what_its_text_can_answer(word: str, mark: Mark) -> None:
    (token,) = analyse(word) or [word]

    assert mark_of(token) == mark


def test_the_token_of_a_question_is_found_by_no_query() -> None:
    assert ASKS not in query_tokens("really? ? ??")


# --- the analyser, quick and plain ---------------------------------------------------------------------------------------

PROSE = st.lists(
    st.sampled_from(
        [*"'’.-_/ \n?", "don't", "DON'T", "Mel's", "o'clock", "'quoted'", "l'ami", "x" * 80, "it", "Paints"]
    ),
    max_size=40,
).map("".join)


def plainly(words: str) -> list[str]:
    """Analyse ASCII as the module says that it does: stop words dropped, what leans on a word cut, then stems."""
    found = re.findall(r"[a-z0-9]+(?:'[a-z]+)?", words.lower())
    bare = [re.sub(r"^[dln]'(?=[a-z]{3})|'s$|(?<=[a-z0-9]{3})'[a-z]+$", "", w) for w in found if w not in STOP_WORDS]
    stem = Stemmer.Stemmer("english").stemWord
    return [stem(word[:MAX_TOKEN_CHARS]).replace("'", "") for word in bare if word not in STOP_WORDS]


@given(PROSE | st.text(st.characters(max_codepoint=127), max_size=200))
def test_words_that_were_met_before_give_what_they_give_alone(words: str) -> None:
    straight = words.replace("’", "'")

    assert analyse(words) == plainly(straight)
    assert analyse(words) == analyse(words)


@given(ANY_TEXT | SCRIPTS | PROSE)
def test_the_joined_tokens_are_the_tokens_with_a_space_between_two(words: str) -> None:
    assert analysed(words) == " ".join(analyse(words))


def test_the_words_kept_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = text._Terms()
    monkeypatch.setattr(text, "_TERMS", kept)
    monkeypatch.setattr(text, "_MAX_TERMS", 10)
    words = [f"paintings{number}" for number in range(100)]

    assert [analyse(word) for word in words] == [plainly(word) for word in words]
    analyse("k" * 5_000)
    assert len(kept) <= 10
    assert all(len(word) <= text._MAX_KEPT_CHARS for word in kept)
