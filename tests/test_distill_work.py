"""What people answer to the proposals of an agent, and what is never learned of what is said at work."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.distill import Observation, distill
from scrubjay.distill.agreement import agreed
from scrubjay.distill.prose import sentences
from scrubjay.importers.forms import answered
from scrubjay_shared.records import Event, EventType, MemoryType, Role, Scope, Trust

DECISION, PREFERENCE, INSIGHT, FACT = (
    MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.INSIGHT, MemoryType.FACT,
)  # fmt: skip


def turn(text: str, number: int = 1, role: Role = Role.USER) -> Event:
    kind = EventType.USER_MESSAGE if role is Role.USER else EventType.ASSISTANT_MESSAGE
    trust = Trust.USER if role is Role.USER else Trust.AGENT
    return Event(
        id=f"e{number:04}", device="d", agent="test", session_id="s1", type=kind, role=role, text=text, trust=trust,
        ts=1_700_000_000_000, dedupe_key=str(number), project="proj_a",
    )  # fmt: skip


def learned(*turns: Event) -> tuple[Observation, ...]:
    return distill(turns, user_id="user_1").observations


OPTIONS = "Two ways:\n\nA) Keep Redis for the queue.\nB) Move the queue to Postgres with SKIP LOCKED.\n\nWhich one?"
NUMBERED = "I see three.\n1. **Weekly chunks** without compression\n2. **Daily chunks**, compressed after 14 days\n3. No chunks at all"


@pytest.mark.parametrize(
    ("proposal", "reply", "content"),
    [
        (OPTIONS, "B", "The user chose option B: Move the queue to Postgres with SKIP LOCKED."),
        (OPTIONS, "yes, option b", "The user chose option B: Move the queue to Postgres with SKIP LOCKED."),
        (OPTIONS, "let's go with the first one", "The user chose option A: Keep Redis for the queue."),
        (OPTIONS, "option A.", "The user chose option A: Keep Redis for the queue."),
        (NUMBERED, "2", "The user chose option 2: Daily chunks, compressed after 14 days."),
        (NUMBERED, "i'd take number 2, compress after 30 days", "The user chose option 2: Daily chunks, compressed after 14 days (compress after 30 days)."),
        ("What about chunks?", "option B. 1 day chunks, compress after 14 days", "The user chose option B: 1 day chunks, compress after 14 days."),
        ("I suggest we move the queue to Postgres. Shall I go ahead?", "yes, do it", "The user agreed: move the queue to Postgres."),
        ("Should we drop Python 3.10 in the next release?", "yep", "The user agreed: drop Python 3.10 in the next release."),
        ("I'd recommend using NATS for the events.", "ok, but keep Kafka for billing", "The user agreed: using NATS for the events, but keep Kafka for billing."),
        ("1) Keep SQLite for now\n2) Move to Postgres", "1", "The user chose option 1: Keep SQLite for now."),
        ("I'd recommend the dead letter queue. OK?", "yes, do that", "The user agreed: the dead letter queue."),
        ("I propose to store all timestamps in UTC. Does that work?", "yep", "The user agreed: store all timestamps in UTC."),
        (OPTIONS, "B is fine, but keep Redis for billing", "The user chose option B: Move the queue to Postgres with SKIP LOCKED (but keep Redis for billing)."),
        ("Do you want me to keep the old endpoint?", "no, nobody uses it", "The user did not want to keep the old endpoint: nobody uses it."),
        ("How long should we keep the audit logs?", "10 years, it's required by law", 'The user answered "10 years, it\'s required by law" to "How long should we keep the audit logs?".'),
        ("I need two things. Which Python versions do you need to support?", "3.10 and up", 'The user answered "3.10 and up" to "Which Python versions do you need to support?".'),
        ("Should the tests run against a real database or an in-memory one?", "real one, always", 'The user answered "real one, always" to "Should the tests run against a real database or an in-memory one?".'),
        ("What should happen when a payment fails?", "retry three times, then pause the account", 'The user answered "retry three times, then pause the account" to "What should happen when a payment fails?".'),
        ("Which browsers do you want to support?", "all of the big four, no IE", 'The user answered "all of the big four, no IE" to "Which browsers do you want to support?".'),
        ("Should the CLI support Windows?", "no, Linux and macOS only", 'The user answered "no, Linux and macOS only" to "Should the CLI support Windows?".'),
        ("Shall we call it `acme-core` or `acme-base`?", "acme-core", 'The user chose acme-core, asked "Shall we call it `acme-core` or `acme-base`?".'),
        ("Should we use uv or poetry?", "pip", 'The user answered "pip" to "Should we use uv or poetry?".'),
        ("Should we use uv or poetry for the service?", "uv", 'The user chose uv, asked "Should we use uv or poetry for the service?".'),
    ],
)  # fmt: skip
def test_an_answer_decides_what_was_proposed(proposal: str, reply: str, content: str) -> None:
    before, after = turn(proposal, 1, Role.ASSISTANT), turn(reply, 2)

    found = [o for o in learned(before, after) if o.type is DECISION and o.event_id_end == after.id]

    assert content in [o.content for o in found]
    decided = next(o for o in found if o.content == content)
    assert (decided.event_id_start, decided.trust, decided.scope) == (before.id, Trust.AGENT, Scope.PROJECT)
    assert f"{proposal}\n{reply}"[decided.span_start : decided.span_end] == decided.excerpt


@pytest.mark.parametrize(
    ("proposal", "reply"),
    [
        ("Shall I run the tests now?", "yes"),
        ("Want me to commit this?", "go ahead"),
        ("I suggest we move the queue to Postgres.", "no"),
        ("I suggest we move the queue to Postgres.", "why?"),
        ("I suggest we move the queue to Postgres.", "hm, what would that cost us in the long run"),
        ("Done. All 12 tests pass.", "great"),
        (OPTIONS, "C"),
        (OPTIONS, "neither"),
        ("1. Delete the test, it can't run here.\n2. Keep it and mark it slow.", "1"),
        ("A) Push through the parser now\nB) Stop here", "A"),
        ("", "yes"),
        ("Should we use uv or poetry?", "no idea, you decide"),
        ("What would you like to tackle next?", "the login page"),
        ("How should errors be reported?", "let me think about it"),
        ("Which of them should we keep?", "both please"),
        ("What do you see in the console?", "an undefined error"),
        ("Should I continue with the remaining tests?", "only those of the parser"),
        ("Is the layout working now?", "the footer is still too low"),
        ("Do you want me to keep the old endpoint?", "no, wait"),
        ("Is Jonas running as well?", "he'll drive me there though"),
        ("Which color do you want for the header?", "forget it, look at the logs first"),
    ],
)
def test_a_step_a_refusal_and_a_question_decide_nothing(proposal: str, reply: str) -> None:
    assert agreed(proposal, reply) is None


def test_an_answer_is_told_with_its_question_and_not_again_without() -> None:
    asked = turn("Is the API public or internal?", 1, Role.ASSISTANT)

    [one] = learned(asked, turn("internal only, it's behind the VPN", 2))

    assert one.content == 'The user answered "internal only, it\'s behind the VPN" to "Is the API public or internal?".'


def test_only_the_agents_own_proposal_is_agreed_to() -> None:
    proposal = "I suggest we move the queue to Postgres."

    assert [o for o in learned(turn(proposal, 1), turn("yes, do it", 2)) if "agreed" in o.content] == []


@given(st.text(max_size=300) | st.sampled_from([OPTIONS, NUMBERED]), st.sampled_from(["yes", "B", "option 2", "uv", "the last one"]) | st.text(max_size=30))  # fmt: skip
def test_what_is_agreed_lies_inside_of_both(proposal: str, reply: str) -> None:
    found = agreed(proposal, reply)

    assert found is None or (0 <= found.start <= len(proposal) + 1 and found.end <= len(reply))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [*("a", "says ", "a: b\n", "漢", "- a\n", "use a, b, c, ", "Ground rules:\n- "), "1. a? "]
)
def test_the_time_is_linear_in_a_turn(text: str) -> None:
    def seconds(chars: int) -> float:
        body = f"We use Postgres here. {text * (chars // len(text))} Never use MySQL."
        begun = time.process_time()
        learned(turn(body), turn(body, 2, role=Role.ASSISTANT), turn("yes, option b", 3))
        return time.process_time() - begun

    quarter = seconds(10_000)

    assert seconds(40_000) < 12 * quarter + 0.5


@pytest.mark.parametrize(
    "proposal", ["- " * 3000, "should " * 850, "a or b? " * 700, "**" * 3000, "we could use " * 450, "1. a " * 1200]
)
@pytest.mark.parametrize("reply", ["yes", "option b", "postgres please", "no, it is too slow", "great " * 40])
def test_an_answer_to_a_long_proposal_is_read_in_time(proposal: str, reply: str) -> None:
    begun = time.process_time()
    agreed(proposal + "?", reply)

    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("body", ['"a"="' * 10_000, '"' * 40_000, '"x"="' + '"' * 39_000])
def test_a_form_of_many_quotes_is_read_in_time(body: str) -> None:
    begun = time.process_time()
    answered(None, None, "User has answered your questions: " + body)

    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("I have to ask mrs. Keller before I send it.", 1),
        ("the contact is dr. Amsel, prof. Weiss signs", 1),
        ("The answer is no. Use tabs.", 2),
        ("The timeout is 300 ms. We never raise it.", 2),
        ("Latency is in ms. Always.", 2),
        ("ask ms. Keller first", 1),
    ],
)
def test_a_title_in_lower_case_ends_no_sentence(text: str, cut: int) -> None:
    assert len(list(sentences(text))) == cut


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
@pytest.mark.parametrize("project", ["proj_a", None])
@pytest.mark.parametrize(
    "text",
    [
        "Psst my wifi password is [REDACTED:password] in case you need it. It never changes.",
        "We use the key [REDACTED:api-key] for staging, never the production key.",
        "two rules we keep:\n- the staging key is [REDACTED:api-key], never another",
    ],
)
def test_a_line_of_which_a_secret_was_taken_out_is_not_learned(text: str, project: str | None, role: Role) -> None:
    assert learned(replace(turn(text, role=role), project=project)) == ()


def test_what_stands_beside_such_a_line_is_learned() -> None:
    text = "the token is [REDACTED:api-key]\nfrom now on we use uv, not poetry"

    assert [one.content for one in learned(turn(text))] == ["From now on we use uv, not poetry."]
