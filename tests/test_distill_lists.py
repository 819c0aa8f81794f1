"""Lists in which a person lays down how things are or are to be, and lists of tasks, which are none of these."""

from __future__ import annotations

import pytest

from scrubjay.distill import distill
from scrubjay.distill.lists import laid_down
from scrubjay.distill.prose import sentences
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Role, Scope, Trust


def _learned(text: str, role: Role = Role.USER) -> list[tuple[str, str, Scope]]:
    by_person = role is Role.USER
    said = Event(
        id="01K0000000000000000000000A",
        session_id="s",
        ts=Millis(1_795_000_000_000),
        agent="claude-code",
        type=EventType.USER_MESSAGE if by_person else EventType.ASSISTANT_MESSAGE,
        role=role,
        text=text,
        project="crow",
        device="d",
        dedupe_key="k",
        trust=Trust.USER if by_person else Trust.AGENT,
    )
    return [(one.type.value, one.content, one.scope) for one in distill([said]).observations]


def test_every_item_of_a_list_of_rules_is_a_rule() -> None:
    said = (
        "Some ground rules for this repo:\n- never commit directly to main\n- use pnpm\n"
        "- tests with vitest, colocated next to the file\n- no default exports\n- ask before adding a dependency\n\n"
        "Now fix the header please."
    )

    assert _learned(said) == [
        ("preference", f"The user asked: {rule}.", Scope.PROJECT)
        for rule in (
            "never commit directly to main",
            "use pnpm",
            "tests with vitest, colocated next to the file",
            "no default exports",
            "ask before adding a dependency",
        )
    ]


def test_an_item_without_a_verb_is_told_with_what_its_list_is_of() -> None:
    said = "Here's the stack:\n1. Next.js 15 (app router)\n2. Clerk for auth\n3. the database is on Neon\n"

    assert [content for _, content, _ in _learned(said)] == [
        "Stack: Next.js 15 (app router).",
        "Stack: Clerk for auth.",
        "The database is on Neon.",
    ]


def test_lines_that_name_themselves_are_items_without_a_mark() -> None:
    said = "Context:\nUsers: mostly 50+, on old iPads\nDeadline: 1 March\nBudget: almost none\n\nLet's see the draft."

    assert [content for _, content, _ in _learned(said)] == [
        "Users: mostly 50+, on old iPads.",
        "Deadline: 1 March.",
        "Budget: almost none.",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Todo for today:\n- fix the header\n- rename foo to bar\n- write the changelog",
        "Please fix these problems with the setup:\n- wrong port\n- missing env file",
        "Steps to set up the environment:\n- install node\n- copy the env file",
        "I see this output:\n- 12 passed\n- 3 skipped",
        "Options:\n- the red one\n- the blue one",
    ],
)
def test_a_list_of_tasks_problems_or_outputs_lays_down_nothing(said: str) -> None:
    assert laid_down(said, list(sentences(said))) == {}


def test_a_list_ends_with_its_paragraph() -> None:
    said = "Our conventions:\n- snake case\n- small modules\n\n- and now the header\n- then the footer"

    assert [said[one.start : one.end] for n, one in enumerate(sentences(said)) if n in laid_down(said, list(sentences(said)))] == [
        "snake case",
        "small modules",
    ]  # fmt: skip


def test_what_an_agent_lists_is_not_the_persons_rule() -> None:
    assert _learned("Our conventions:\n- use pnpm\n- no default exports", Role.ASSISTANT) == []


def test_a_heading_of_one_word_and_a_complaint_are_no_rules() -> None:
    said = "What I care about:\n1) no N+1 queries\n2) naming\n3) the page is broken again\n"

    assert [content for _, content, _ in _learned(said)] == ["The user asked: no N+1 queries."]
