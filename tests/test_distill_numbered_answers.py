"""Numbered answers to an agent's numbered questions: each is told with its question, and a list of one's own is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.distill import distill
from scrubjay.distill.numbered_answers import numbered_answers
from scrubjay_shared.records import Event, EventType, Role, Trust

QUESTIONS = """Before I begin, some questions:

1. **Session naming**: Should the session be named by the task id alone, or by its title too?
2. **Duplicates**: If a session for the task exists, should we fail or return it?

   - Suggestion: fail with an error
3. How long do we keep closed sessions?
4. Should I run the tests first?

Once you confirm, I'll start."""

OFFER = """Done. Would you like:
1. Different styling for the selector?
2. A different default chart?
3. More chart descriptions?"""


def told(proposal: str, reply: str) -> list[str]:
    return [one.words for one in numbered_answers(proposal, reply)]


NAMING = "Session naming: Should the session be named by the task id alone, or by its title too?"
TWICE = "Duplicates: If a session for the task exists, should we fail or return it?"
KEPT = "How long do we keep closed sessions?"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("1. just the task id\n2. fail\n3. 30 days", [("just the task id", NAMING), ("fail", TWICE), ("30 days", KEPT)]),
        ("1) just the task id\n3) 30 days", [("just the task id", NAMING), ("30 days", KEPT)]),
        ("re your questions:\n1 - just the id\n\n3 - 30 days.", [("just the id", NAMING), ("30 days", KEPT)]),
        ("1. the former, 3. 30 days", [("the former", NAMING), ("30 days", KEPT)]),
        ("1: just the id\n   and nothing else\n3: 30 days", [("just the id and nothing else", NAMING), ("30 days", KEPT)]),
        ("3. 30 days", [("30 days", KEPT)]),
        ("1. not sure\n2. ?\n3. up to you", []),
        ("1. yes\n3. what do you suggest?", []),
        ("4. yes", []),
        ("7. forty\n8. fifty", []),
        ("1. see 3\n3. 30 days", [("30 days", KEPT)]),
        ("I also want a page of settings with these things on it:\n1. the name\n2. the colour", []),
        ("just go ahead", []),
        ("", []),
    ],
)  # fmt: skip
def test_an_answer_is_told_with_the_question_of_its_number(reply: str, expected: list[tuple[str, str]]) -> None:
    asked = QUESTIONS.replace("\n\n   - Suggestion: fail with an error", "")
    assert told(asked, reply) == [f'answered "{said}" to "{question}"' for said, question in expected]


def test_yes_to_a_choice_says_something_where_the_agent_suggested_one() -> None:
    assert told(QUESTIONS, "2. yes") == [f'answered "yes" to "{TWICE} Suggested: fail with an error"']
    assert told(QUESTIONS, "1. yes") == []
    named = "1. Is the table called `invoice` or `invoices`?\n   - Recommendation: invoices"
    assert told(named, "1. yes") == [
        'answered "yes" to "Is the table called `invoice` or `invoices`? Suggested: invoices"'
    ]


def test_a_list_below_an_offer_answers_nothing() -> None:
    assert told(OFFER, "1. league, team and player\n2. by match day\n3. graphs") == []


def test_of_two_lists_the_last_that_asks_is_answered() -> None:
    proposal = "1. Should we use Redis?\n2. Do we need TLS?\n\nMore:\n\n1. Which port should it use?\n\n1. I read it.\n2. I ran it."

    assert told(proposal, "1. 8443") == ['answered "8443" to "Which port should it use?"']


def turn(text: str, number: int, role: Role) -> Event:
    kind, trust = (
        (EventType.USER_MESSAGE, Trust.USER) if role is Role.USER else (EventType.ASSISTANT_MESSAGE, Trust.AGENT)
    )
    return Event(
        id=f"e{number:04}", device="d", agent="test", session_id="s1", type=kind, role=role, text=text, trust=trust,
        ts=1_700_000_000_000, dedupe_key=str(number), project="proj_a",
    )  # fmt: skip


def test_each_answer_is_a_memory_with_a_grip_over_both_turns_and_is_not_told_twice() -> None:
    reply = "1. we use the task id, never the title\n3. 30 days"
    learned = distill((turn(QUESTIONS, 1, Role.ASSISTANT), turn(reply, 2, Role.USER)), user_id="u").observations

    assert [one.content for one in learned] == [
        f'The user answered "we use the task id, never the title" to "{NAMING}".',
        f'The user answered "30 days" to "{KEPT}".',
    ]
    both = f"{QUESTIONS}\n{reply}"
    for one in learned:
        assert (one.event_id_start, one.event_id_end, one.trust) == ("e0001", "e0002", Trust.AGENT)
        assert both[one.span_start : one.span_end] == one.excerpt
    assert learned[0].excerpt.startswith("**Session naming**")
    assert learned[0].excerpt.endswith("never the title")


PIECES = st.sampled_from(
    ["1. ", "2) ", "3: ", "\n", "\n\n", "? ", "Should we use it", "yes", "- a", "**", "Suggestion: x", " 4. "]
)


@given(st.lists(PIECES, max_size=40), st.lists(PIECES, max_size=20))
def test_what_is_told_stands_in_both_texts(asked: list[str], answered: list[str]) -> None:
    proposal, reply = "".join(asked), "".join(answered)

    for one in numbered_answers(proposal, reply):
        answer = one.words.removeprefix('answered "').split('" to "')[0]
        assert answer in " ".join(reply[: one.end].split())
        asked_first = one.words.split('" to "')[1].split("?")[0].split(":")[0].split()[0]
        assert asked_first.lower() in proposal[one.start :].lower()
