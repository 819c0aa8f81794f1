"""What people say at work with an agent: rules, replacements, findings, rotas, dates; and their answers to proposals."""

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


@pytest.mark.parametrize(
    ("text", "kind", "content"),
    [
        ("we use uv, not poetry", DECISION, "We use uv, not poetry."),
        (
            "We run the jobs on Nomad instead of Kubernetes.",
            DECISION,
            "We run the jobs on Nomad instead of Kubernetes.",
        ),
        ("PagerDuty→Opsgenie", DECISION, "PagerDuty→Opsgenie."),
        ("Sentry -> GlitchTip for the frontend", DECISION, "Sentry -> GlitchTip for the frontend."),
        ("we moved from Jenkins to Buildkite", DECISION, "We moved from Jenkins to Buildkite."),
        ("let's not use GraphQL", DECISION, "Let's not use GraphQL."),
        ("we use jest for tests", DECISION, "We use jest for tests."),
        ("we deploy with ansible", DECISION, "We deploy with ansible."),
        ("we store images on local disk", DECISION, "We store images on local disk."),
        ("we dont deploy with ansible anymore", DECISION, "We don't deploy with ansible anymore."),
        ("we no longer support Python 3.10", DECISION, "We no longer support Python 3.10."),
        ("please answer in German", PREFERENCE, "The user asked: please answer in German."),
        ("reply in english from now on", PREFERENCE, "The user asked: reply in english from now on."),
        ("don't push to main", PREFERENCE, "The user asked: don't push to main."),
        ("dont rebase shared branches", PREFERENCE, "The user asked: don't rebase shared branches."),
        ("Please don't mock the database.", PREFERENCE, "The user asked: please don't mock the database."),
        ("use goose for the migrations", PREFERENCE, "The user asked: use goose for the migrations."),
        ("I prefer tabs.", PREFERENCE, "The user prefers tabs."),
        ("I hate ORMs.", PREFERENCE, "The user hates ORMs."),
        ("I want all commits signed", PREFERENCE, "The user wants all commits signed."),
        ("The fix was to set statement_timeout to 30s.", INSIGHT, "The fix was to set statement_timeout to 30s."),
        (
            "The cause was a missing index on the orders table.",
            INSIGHT,
            "The cause was a missing index on the orders table.",
        ),
        ("The p95 went from 900 ms to 120 ms.", INSIGHT, "The p95 went from 900 ms to 120 ms."),
        ("Petra reviews anything in services/ingest", FACT, "Petra reviews anything in services/ingest."),
        ("on-call rota: Mon-Wed Petra, Thu-Sun Ulf", FACT, "On-call rota: Mon-Wed Petra, Thu-Sun Ulf."),
        ("prod is frozen until 5 January 2024", FACT, "Prod is frozen until 5 January 2024."),
        ("the deadline for the beta is 14 March 2024", FACT, "The deadline for the beta is 14 March 2024."),
    ],
)
def test_what_is_said_at_work_is_learned(text: str, kind: MemoryType, content: str) -> None:
    assert [(o.type, o.content) for o in learned(turn(text))] == [(kind, content)]


@pytest.mark.parametrize(
    "text",
    [
        "don't do it",
        "don't fix this yet, just explain the cause",
        "don't worry about the tests",
        "don't touch it for now please",
        "I don't know how this works",
        "use the second one",
        "stop",
        "what was the fix for the timeout?",
        "should we use uv or poetry?",
        "the fix was merged",
        "maybe we move from Jenkins to Buildkite",
        "if we use uv, not poetry, it would be faster",
        "a -> b",
        "we use it for tests",
        "answer in detail",
        "we build on that",
        "we test with this now",
    ],
)
def test_what_is_over_at_once_or_only_asked_is_not_learned(text: str) -> None:
    assert [o.content for o in learned(turn(text))] == []


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
    ("text", "content"),
    [
        ("The parser should move to lexer.go.", "The parser should move to lexer.go."),
        ("all lists should be searchable", "All lists should be searchable."),
        ("Again, everything has to be keyboard friendly.", "Again, everything has to be keyboard friendly."),
        ("Deep Olive (#3B4A1E) for links and badges", "Deep Olive (#3B4A1E) for links and badges."),
        ("use `ratatui` instead of tui-rs", "Use `ratatui` instead of tui-rs."),
        ("Please note this is a Django 4 project.", "Please note this is a Django 4 project."),
        (
            "This is not a commercial app, but a private hobby project.",
            "This is not a commercial app, but a private hobby project.",
        ),
        ("I am using direnv to load secrets", "The user is using direnv to load secrets."),
        ("If depth is 3, then only nodes of a level up to 3 are drawn.",) * 2,
        ("tests live in tests/unit", "Tests live in tests/unit."),
        ("we ship on Fridays", "We ship on Fridays."),
    ],
)
def test_how_things_are_to_be_is_learned_in_short_words_too(text: str, content: str) -> None:
    assert [one.content for one in learned(turn(text))] == [content]


@pytest.mark.parametrize(
    "text",
    [
        "Do not change other tabs or handlers.",
        "Please do NOT touch any other parts of menu/view.tsx except for the broken link.",
        "don't change anything else",
        "Keep all existing styles.",
        "Review the two specs to see whether anything contradicts.",
        "Please look through the repo and sum it up.",
        "I'm not sure that it has any state.",
        "Next up is the export in @plan.md.",
        "Current problems: rows too narrow, icon misplaced.",
        "You can run the formatter if you need to.",
        "When I add a second tenant I get this error: relation does not exist.",
        "I'm attaching two pictures of the gap.",
        "the header must be missing",
        "The fixed code should look like this:",
        "If nothing else is open, you can start.",
        "I don't think the cache keeps anything.",
        "The editor keeps hanging when opening large files.",
        "When you checked the routes, you forgot the admin ones.",
        "I'm in the dark theme and toggling it does nothing.",
    ],
)
def test_a_limit_of_the_task_a_look_and_news_are_not_learned(text: str) -> None:
    assert learned(turn(text)) == ()


@pytest.mark.parametrize("text", ["never change an existing migration", "don't push to main", "keep PRs small"])
def test_an_order_that_holds_on_is_learned_though_it_forbids(text: str) -> None:
    assert [one.type for one in learned(turn(text))] == [PREFERENCE]


@pytest.mark.parametrize(
    "text",
    [
        (
            "Jonas moved the server from Hetzner to the university's vm, so deployment is now rsync + systemd there, "
            "no docker any more."
        ),
        (
            "But no last-write-wins: when two coordinators edit the same shift we keep both and the regional coordinator "
            "decides."
        ),
        "Ola's team dropped the old endpoint, so we call v3 now, no retries any more.",
        "But no polling: the client subscribes and we send diffs.",
    ],
)
def test_what_is_done_without_from_now_on_is_a_decision_and_no_failure(text: str) -> None:
    (found,) = learned(turn(text))

    assert found.content.lower().removeprefix("but ") in text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "The page is blank now, no images any more",
        "The login is gone now, no sidebar any more",
        "Now the page is not loading any more.",
        "But no emails are sent: the queue is empty",
        "but there are no logs: we see nothing",
    ],
)
def test_what_somebody_misses_is_still_a_failure(text: str) -> None:
    assert learned(turn(text)) == ()


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
    text = "the token is [REDACTED:api-key]\nwe use uv, not poetry"

    assert [one.content for one in learned(turn(text))] == ["We use uv, not poetry."]
