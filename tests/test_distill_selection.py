"""What the distiller keeps of work with an agent, by its selector and its patterns together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.distill import Observation, distill, selector
from scrubjay.distill.features import FEATURES, features
from scrubjay.distill.forest import Forest, parse
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.selector import Selector
from scrubjay.distill.wording import sentence_case, whole
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError
from scrubjay_shared.records import Event, EventType, MemoryType, Role, Scope, Trust

NOON = Millis(1_780_000_000_000)


def turn(text: str, *, by_person: bool = True, project: str | None = "crow") -> Event:
    return Event(
        id="01K0000000000000000000000A",
        session_id="s",
        ts=NOON,
        agent="claude-code",
        type=EventType.USER_MESSAGE if by_person else EventType.ASSISTANT_MESSAGE,
        role=Role.USER if by_person else Role.ASSISTANT,
        text=text,
        project=project,
        device="d",
        dedupe_key="k",
        trust=Trust.USER if by_person else Trust.AGENT,
    )


def learned(text: str, *, by_person: bool = True, project: str | None = "crow") -> tuple[Observation, ...]:
    return distill([turn(text, by_person=by_person, project=project)]).observations


@pytest.mark.parametrize(
    "said",
    [
        "Let's keep the retry queue in services/ingest, it must never block the request.",
        "We should always write the migration before the model that needs it.",
        "I want the export to be sorted by date and not by name.",
        "Instead of polling we use a webhook for the payments.",
    ],
)
def test_what_a_person_wants_of_the_project_is_kept(said: str) -> None:
    assert [one.excerpt for one in learned(said)] == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Can you look at the failing test?",
        "I get an error when I run the tests.",
        "now the button does not work again",
        "now the page is blank again",
        "ok thanks",
        "What does this function do?",
        "yes please go ahead",
        "I ran the build and pushed it.",
    ],
)
def test_what_is_asked_reported_or_said_in_passing_is_not_kept(said: str) -> None:
    assert learned(said) == ()


@pytest.mark.parametrize(
    "said",
    ["Let me check the configuration first.", "Now I'll update the tests.", "I'll start by reading the file.", "Done."],
)
def test_what_an_agent_narrates_is_not_kept(said: str) -> None:
    assert learned(said, by_person=False) == ()


def test_what_an_agent_has_found_out_is_kept_and_trusted_as_an_agents() -> None:
    [found] = learned("The root cause was a stale lock file in the cache folder.", by_person=False)

    assert (found.type, found.trust) == (MemoryType.INSIGHT, Trust.AGENT)


def test_a_chosen_sentence_stands_in_its_own_words_with_its_date_made_absolute() -> None:
    [kept] = learned("We should always publish the nightly build before tomorrow.")

    assert kept.content.startswith("We should always publish the nightly build before 29 May 2026")
    assert kept.valid_to is not None


def test_talk_outside_of_a_project_is_read_by_the_patterns_alone() -> None:
    [told] = learned("I moved to Lisbon in May 2024 to work at the aquarium.", project=None)

    assert told.type is MemoryType.FACT


def test_a_selectors_confidence_is_its_chance() -> None:
    said = "Instead of polling we use a webhook for the payments."
    [kept] = learned(said)

    [chance] = selector.probabilities(said, list(sentences(said)), by_person=True)
    assert kept.confidence == pytest.approx(chance, abs=0.001)


@given(st.text(max_size=400), st.booleans())
def test_every_sentence_has_a_chance_whatever_it_holds(text: str, by_person: bool) -> None:  # noqa: FBT001
    found = list(sentences(text))

    chances = selector.probabilities(text, found, by_person=by_person)

    assert len(chances) == len(found)
    assert all(0 <= chance <= 1 for chance in chances)
    assert np.isfinite(features(text, found, by_person=by_person)).all()


def test_weights_that_are_damaged_are_not_used() -> None:
    data = bytearray(resources.files("scrubjay.distill").joinpath(selector.WEIGHTS).read_bytes())
    data[len(data) // 2] ^= 1

    with pytest.raises(CorruptError, match="sha256"):
        parse(bytes(data), selector.SHA256)


def test_a_forest_adds_up_its_trees() -> None:
    stump = Forest(
        names=("length",),
        roots=np.array([0, 3], np.int32),
        feature=np.zeros(6, np.int16),
        threshold=np.array([1, 0, 0, 5, 0, 0], np.float32),
        left=np.array([1, 1, 2, 4, 4, 5], np.int32),
        right=np.array([2, 1, 2, 5, 4, 5], np.int32),
        value=np.array([0, -1, 1, 0, 10, 20], np.float32),
        depth=1,
        slope=0.1,
        offset=-1.0,
    )
    rows = np.array([[1.0], [2.0], [6.0]], np.float32)

    expected = [1 / (1 + math.exp(-(0.1 * total - 1))) for total in (9, 11, 21)]

    assert stump.probabilities(rows) == pytest.approx(expected)
    again = parse(stump.dump(), _sha256(stump.dump()))
    assert again.probabilities(rows) == pytest.approx(expected)
    assert replace(again, slope=0.0).probabilities(rows)[0] == replace(again, slope=0.0).probabilities(rows)[2]


def test_the_weights_were_fitted_to_the_features_of_today() -> None:
    data = resources.files("scrubjay.distill").joinpath(selector.WEIGHTS).read_bytes()

    assert parse(data, selector.SHA256).names == FEATURES


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("main.py never imports from tests", "main.py never imports from tests."),
        ("getWeek returns all the matches", "getWeek returns all the matches."),
        ("deviceId/agentName are not used", "deviceId/agentName are not used."),
        ("we never import from tests in main.py", "We never import from tests in main.py."),
        ("e-mails are sent at night", "E-mails are sent at night."),
    ],
)
def test_a_name_of_code_keeps_its_first_letter(said: str, expected: str) -> None:
    assert sentence_case(said) == expected


def test_the_selector_that_is_given_decides() -> None:
    said = "Instead of polling we use a webhook for the payments."

    def refuses(text: str, sentences: object, *, by_person: bool) -> list[float]:  # noqa: ARG001
        return [0.0]

    assert distill([turn(said)]).observations
    assert distill([turn(said)], selector=refuses).observations == ()


def test_a_wish_that_only_leads_in_to_a_list_is_not_kept() -> None:
    assert learned("i want to add some more dynamics into the scoring:\n\n- 10 pins more on a good day") == ()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("We decided to go through the migrations one by one.", MemoryType.DECISION),
        ("We'll keep the tariffs in one table.", MemoryType.DECISION),
        ("Let's use a table driven test for the tariffs.", MemoryType.PREFERENCE),
        ("I prefer short functions, also in the tests of the tariffs.", MemoryType.PREFERENCE),
    ],
)
def test_a_decision_that_is_named_stands_and_a_wish_for_how_to_work_is_a_preference(
    said: str, kind: MemoryType
) -> None:
    def chooses(text: str, sentences: Sequence[Span], *, by_person: bool) -> list[float]:  # noqa: ARG001
        return [0.9 for _ in sentences]

    assert [one.type for one in distill([turn(said)], selector=chooses).observations] == [kind]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The queue lives in Redis, the jobs in Postgres)", "The queue lives in Redis, the jobs in Postgres"),
        ("The tag is `v2` (without a prefix), so:", "The tag is `v2` (without a prefix)"),
        ("It is stored in /etc/crow (see above).", "It is stored in /etc/crow (see above)."),
        ("We keep ids, names and\n  dates in the header", "We keep ids, names and dates in the header"),
        ("Rows have a date\nColumns have a name", "Rows have a date; Columns have a name"),
        ("Put it in the repo then", "Put it in the repo then"),
        ("Keep f(x) and g(x)!", "Keep f(x) and g(x)!"),
    ],
)
def test_a_sentence_stands_without_what_hung_on_to_it(said: str, kept: str) -> None:
    assert whole(said) == kept
    assert whole(kept) == kept


@given(st.text("ab (),.:;\n-", max_size=40))
def test_standing_alone_takes_words_from_nobody(said: str) -> None:
    kept = whole(said)

    assert "\n" not in kept
    assert [letter for letter in kept if letter.isalnum()] == [letter for letter in said if letter.isalnum()]


def likely(chance: float) -> Selector:
    def same(text: str, found: Sequence[Span], *, by_person: bool) -> list[float]:  # noqa: ARG001
        return [chance for _ in found]

    return same


def test_what_looks_like_a_finding_by_its_form_alone_is_no_surer_than_the_selector_asks_for() -> None:
    said = "The root cause was the retry in `worker.py`, which sent the mail twice."

    [doubted] = distill([turn(said, by_person=False)], selector=likely(0.0)).observations
    [shared] = distill([turn(said, by_person=False)], selector=likely(0.95)).observations

    assert doubted.type is shared.type is MemoryType.INSIGHT
    assert doubted.confidence == DEFAULT.distill.min_chance_of_agent
    assert shared.confidence > 0.9


def test_a_marked_finding_of_a_review_is_nobodys_word() -> None:
    marked = "- (7) ⚠️ We should always write the migration before the model that needs it."
    plain = "- We should always write the migration before the model that needs it."

    assert [one.content for one in learned(marked)] == []
    assert len(learned(plain)) == 1


@pytest.mark.parametrize(
    ("said", "scope"),
    [
        ("I want to filter the bookings by year and by season.", Scope.PROJECT),
        ("I would like to print all bookings of a day on one page.", Scope.PROJECT),
        ("I want to learn Rust this year.", Scope.USER),
        ("I want to have tests in all of my projects.", Scope.USER),
    ],
)
def test_what_somebody_wants_at_work_is_wanted_of_the_project_unless_it_is_of_themselves(
    said: str, scope: Scope
) -> None:
    def chooses(text: str, sentences: Sequence[Span], *, by_person: bool) -> list[float]:  # noqa: ARG001
        return [0.9 for _ in sentences]

    assert [one.scope for one in distill([turn(said)], selector=chooses).observations] == [scope]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (
            "The enemies shouldn't respawn when you reenter a room. They should only respawn after resting at a bonfire.",
            "The enemies shouldn't respawn when you reenter a room. They should only respawn after resting at a bonfire.",
        ),
        (
            "Rounding is done per line item, not on the total. That's what the tax advisor told us.",
            "Rounding is done per line item, not on the total. That's what the tax advisor told us.",
        ),
        (
            "hm, max speed near people is 250 mm/s, that's a safety rule in safety.yaml. never raise it",
            "Max speed near people is 250 mm/s, that's a safety rule in safety.yaml. Never raise it.",
        ),
        (
            "I want to assign a skill from 0 to 10 to each player. this should impact the scoring of every match.",
            "The user wants to assign a skill from 0 to 10 to each player. This should impact the scoring of every match.",
        ),
    ],
)
def test_a_sentence_that_takes_up_the_one_before_is_told_together_with_it(said: str, content: str) -> None:
    [one] = learned(said)

    assert one.content == content
    assert one.excerpt == said.removeprefix("hm, ")


def test_an_order_about_a_thing_makes_what_was_told_of_it_a_wish() -> None:
    [told] = learned("The ingest config lives in etc/app.yaml.")
    [ordered] = learned("The ingest config lives in etc/app.yaml. Don't touch it, ops owns it.")

    assert told.type is MemoryType.FACT
    assert ordered.content == "The ingest config lives in etc/app.yaml. Don't touch it, ops owns it."
    assert ordered.type in {MemoryType.PREFERENCE, MemoryType.DECISION}


@pytest.mark.parametrize(
    "said",
    [
        "The enemies shouldn't respawn when you reenter a room.\n\nThey should only respawn after resting at a bonfire.",
        "Do the enemies respawn when you reenter a room? They should only respawn after resting at a bonfire.",
        "This is about the enemies of level two:\nThey should only respawn after resting at a bonfire.",
    ],
)
def test_nothing_is_told_together_over_a_paragraph_a_question_or_a_lead_in(said: str) -> None:
    assert not any("bonfire" in one.content and "enemies" in one.content for one in learned(said))


def test_an_agents_sentences_stay_apart() -> None:
    said = "The culprit was the retry loop in services/ingest. It should only retry when the queue is empty."

    assert not any(". It should" in one.content for one in learned(said, by_person=False))


@pytest.mark.parametrize(
    "said",
    [
        "the cert-manager thing is broken again. can you look at the logs",
        "The compose button is super slow now, can you explain",
        "could you undo the last one",
        "no output after the restart",
        "no errors in the console",
        "no rows in the table",
        "we end up with two rows",
        "we fall into the else branch",
        "we see a different behavior now",
        "we get a 500 from the api every time",
        "don't touch that for now",
        "my terminal is frozen",
    ],
)
def test_what_somebody_sees_misses_or_asks_for_right_now_is_not_kept(said: str) -> None:
    assert learned(said) == ()


def test_of_a_sentence_whose_beginning_a_pattern_reads_all_is_kept_and_an_order_stands_alone() -> None:
    [told] = learned("The app is called Kornblume, it's for people with allotment gardens.")
    [asked] = learned("I fixed the tests myself yesterday evening - never push to main")

    assert told.content == "The app is called Kornblume, it's for people with allotment gardens."
    assert asked.content == "The user asked: never push to main."
