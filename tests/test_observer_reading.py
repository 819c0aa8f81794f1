"""The pure parts of the observer: what directives are, where turns say a fact, what a prompt shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.distill import parse_directives
from scrubjay.distill.answer import read_answer
from scrubjay.distill.directives import from_json
from scrubjay.distill.observer_prompt import Question, fitting, question
from scrubjay.distill.support import Said, Turns
from scrubjay.policy import DEFAULT, ObserverPolicy, SupportPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, MemoryType, Role, Scope, Trust

AT = Millis(1_769_600_000_000)  # 2026-01-28
POLICY = DEFAULT.observer


def event(text: str, n: int = 0, **more: object) -> Event:
    fields: dict[str, object] = {
        "id": f"e{n}", "device": "d", "agent": "test", "session_id": "s1", "type": EventType.USER_MESSAGE,
        "role": Role.USER, "text": text, "ts": Millis(AT + n), "dedupe_key": str(n), "project": "p1",
    }  # fmt: skip
    return Event(**fields | more)  # type: ignore[arg-type]


def tool(text: str, n: int) -> Event:
    return event(text, n, type=EventType.TOOL_RESULT, role=Role.TOOL, trust=Trust.UNTRUSTED)


def turns(*texts: str) -> Turns:
    return Turns([Said(text=text, ts=AT, trust=Trust.USER, spoken=True) for text in texts], SupportPolicy())


def asked(*events: Event) -> Question:
    return question(events, frozenset(one.id for one in events), [], POLICY)


# --- directives -------------------------------------------------------------------------------------------------------


def test_what_stands_beside_a_scope_belongs_to_the_next_fact() -> None:
    read = parse_directives(
        "@topic Build\n@type decision\n@turns 3, 5-7\n@supersedes m2\n@observe project\nUse ninja.\n@observe user\nTabs.\n",
        known={"m2"},
    )
    assert [(d.scope, d.topic, d.type, d.turns, d.supersedes, d.content) for d in read.observed] == [
        (Scope.PROJECT, "build", MemoryType.DECISION, (3, 5, 6, 7), "m2", "Use ninja."),
        (Scope.USER, None, None, (), None, "Tabs."),
    ]
    assert (read.malformed, read.dropped_untagged) == (0, 0)


@pytest.mark.parametrize(
    ("text", "malformed", "untagged"),
    [
        ("@observe proj\nUse ninja.", 1, 1),
        ("@supersedes m9\n@observe project\nUse ninja.", 1, 1),
        ("@observe project\n@supersedes m9\nUse ninja.", 2, 1),
        ("@turns all\n@observe project\nUse ninja.", 1, 1),
        ("@observe project", 1, 0),
        ("Use ninja.", 0, 1),
    ],
)
def test_a_directive_of_which_a_part_is_malformed_is_not_taken(text: str, malformed: int, untagged: int) -> None:
    read = parse_directives(text, known={"m2"})
    assert (read.observed, read.malformed, read.dropped_untagged) == ((), malformed, untagged)


USED = (Scope.PROJECT, "Use ninja.", MemoryType.DECISION, "build", (1, 3))
SHAPES = {
    "bulleted": "- @topic build\n- @type decision\n- @turns 1, 3\n- @observe project\n- Use ninja.",
    "numbered": "1. @observe project\n   @topic build\n   @type decision\n   @turns 1, 3\n   Use ninja.",
    "bold": "**@topic** build\n**@type decision**\n**@turns**: 1, 3\n**@observe project**\n**Use ninja.**",
    "code": "```\n`@topic build`\n`@type decision`\n`@turns 1, 3`\n`@observe project`\n`Use ninja.`\n```",
    "colons": "@topic: build\n@type: decision\n@turns: 1, 3\n@observe: project\nUse ninja.",
    "one line": "@observe project @topic build @type decision @turns 1, 3\nUse ninja.",
    "brackets": "@topic build\n@type decision\n@turns [1], [3]\n@observe project\nUse ninja.",
    "cited": "[1] @topic build\n@type decision\n@observe project: Use ninja [1, 3].",
    "json": '```json\n[{"observe": "project", "topic": "build", "type": "decision", "turns": [1, 3], "fact": "Use ninja."}]\n```',
    "json object": '{"facts": [{"@scope": "project", "topic": "build", "type": "decision", "turns": "1, 3", "text": "Use ninja."}]}',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shapes_that_models_give_to_directives_are_read(shape: str) -> None:
    read = parse_directives(from_json(SHAPES[shape]) or SHAPES[shape])
    assert [(one.scope, one.content, one.type, one.topic, one.turns) for one in read.observed] == [USED]
    assert (read.malformed, read.dropped_untagged) == (0, 0)


def test_a_fact_that_is_wrapped_is_one_fact() -> None:
    wrapped = CRANE.replace("customer's ", "customer's\n")
    [one] = parse_directives(f"@observe project\n{wrapped}\nThat is all.").observed
    assert one.content == CRANE
    [two] = parse_directives(f"- @observe project\n- {wrapped}\n\n- That is all.").observed
    assert two.content == CRANE


def test_a_fact_of_an_unknown_type_is_taken_without_it_and_counted() -> None:
    read = parse_directives("@type rule\n@observe project\nUse ninja.")
    assert [(one.content, one.type) for one in read.observed] == [("Use ninja.", None)]
    assert (read.malformed, read.unknown_types) == (0, 1)


@pytest.mark.parametrize("answer", ["[]", '{"facts": []}', "NONE", "**NONE**", "None: the turns hold nothing new."])
def test_an_answer_that_there_is_nothing_is_one(answer: str) -> None:
    read = read_answer(answer, asked(event(CRANE)), policy=POLICY, distill_policy=DEFAULT.distill)
    assert (read.promoted, read.is_unusable, dict(read.counts)) == ((), False, {})


@pytest.mark.parametrize("answer", ["", "<think>so</think>", "You like tea.", '[{"tea": 1}]', "{", "[[1]]"])
def test_an_answer_without_a_directive_is_none_of_an_observer_and_counts_as_malformed(answer: str) -> None:
    read = read_answer(answer, asked(event(CRANE)), policy=POLICY, distill_policy=DEFAULT.distill)
    assert (read.promoted, read.is_unusable) == ((), True)
    assert read.counts["malformed_facts"] >= 1


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["@observe user", "@observe proj", "@topic x", "@turns 1", "@supersedes m1", "a", ""])))
def test_every_line_is_taken_or_counted(lines: list[str]) -> None:
    read = parse_directives("\n".join(lines), known={"m1"})
    facts = sum(line == "a" for line in lines)
    assert len(read.observed) + read.dropped_untagged == facts
    scopes = sum(line.startswith("@observe") for line in lines)
    assert scopes - len(read.observed) == read.malformed


# --- support ----------------------------------------------------------------------------------------------------------

CRANE = "The crane server must listen on port 9417, because the customer's firewall opens only that."
TALK = ("Where do the ferries land?", CRANE, "Fine. The buoys are painted red.")


def test_a_fact_in_other_words_is_found_where_it_was_said() -> None:
    found = turns(*TALK).support("The crane server listens on port 9417: no other is open in the firewall.")
    assert found is not None
    [place] = found.places
    assert (place.turn, TALK[1][place.start : place.end]) == (1, CRANE)


@pytest.mark.parametrize(
    "fact",
    [
        "The crane server listens on port 9418: no other is open in the firewall.",
        "The crane server's firewall opens only port 9417 by crane/firewall.toml.",
        "The crane server listens on port 9417 since max_ports is set in the firewall.",
        "The crane server must listen with --firewall on port 9417.",
        "The kitchen closes at noon on Sundays.",
    ],
)
def test_a_fact_with_something_that_nobody_said_is_found_nowhere(fact: str) -> None:
    assert turns(*TALK).support(fact, [1]) is None


@pytest.mark.parametrize(
    ("fact", "said", "is_said"),
    [
        ("The crane listens on port 41.", "The crane listens on port 9417.", False),
        ("The crane listens on port 94.", "The crane listens on port 9417.", False),
        ("The crane listens on port 9417.", "The crane listens on port 9,417.", True),
        ("The harbour opens on 3 November.", "The harbour opens on 30 November.", False),
        ("The harbour opens on 30 November.", "The harbour opens on 30th November.", True),
        ("The crane lifts 3 tons.", "The crane lifts 3.5 tons.", False),
        ("The crane lifts 3.5 tons.", "The crane lifts 35 tons.", False),
        (
            "The crane of the harbour waits for 30 s before it turns.",
            "The crane of the harbour waits for 30s before it turns.",
            True,
        ),
        ("The crane runs Python 3.12.", "The crane runs Python 3.12.4.", True),
        ("The crane runs Python 3.1.", "The crane runs Python 3.12.", False),
        ("The crane has release v2.", "The crane has release 2.", False),
        ("The crane has release 2.", "The crane has release v2.", True),
        (
            "The crane of the harbour talks to gpt-4 before it turns.",
            "The crane of the harbour talks to gpt4 before it turns.",
            True,
        ),
        ("The crane listens on port 28.", "The crane listens on some port.", False),  # the day of the turns, no date
        ("The crane has deviceKeys of its own.", "The crane has a deviceKey of its own.", True),
        ("The crane has a deviceKey of its own.", "The crane has deviceKeys of its own.", True),
        ("The crane has deviceLocks of its own.", "The crane has a deviceKey of its own.", False),
    ],
)
def test_a_number_is_said_by_itself_and_a_name_by_its_singular(fact: str, said: str, *, is_said: bool) -> None:
    assert (turns(said).support(fact) is not None) is is_said


def test_a_place_is_the_sentences_that_carry_the_fact() -> None:
    before, after = "We had rain all day, and the ferry came late. ", " The buoys can wait until the next week."
    said = turns(before * 2 + CRANE + after)
    found = said.support("The crane server listens on port 9417: no other is open in the firewall.")
    assert found is not None
    [place] = found.places
    assert (before * 2 + CRANE + after)[place.start : place.end] == CRANE
    two = turns(before + "Port 9417 is for the crane server. " + "The firewall of the customer opens no other." + after)
    both = two.support("The crane server listens on port 9417, since the customer's firewall opens no other.")
    assert both is not None
    [place] = both.places
    assert place.end - place.start == len(
        "Port 9417 is for the crane server. The firewall of the customer opens no other."
    )


def test_each_cited_turn_that_says_something_of_a_fact_is_a_place() -> None:
    said = turns(CRANE, "Good morning to you all.", "So port 9417 goes into the crane server's settings.")
    fact = "The crane server listens on port 9417: no other is open in the firewall."
    uncited, cited = said.support(fact, [0]), said.support(fact, [0, 1, 2])
    assert uncited is not None
    assert cited is not None
    assert (uncited.places, uncited.beside) == (cited.places, ())
    assert [place.turn for place in cited.beside] == [2]


def test_a_fact_that_two_turns_say_together_rests_on_both() -> None:
    said = turns(
        "Should the exporter write parquet?",
        "Yes, and upload to Frankfurt.",
    )
    found = said.support(
        "The exporter writes parquet, uploads it to Frankfurt and keeps the checksums of its shipments."
    )
    assert found is not None
    assert sorted(place.turn for place in found.places) == [0, 1]


def test_the_date_of_the_turns_is_known_without_being_said() -> None:
    assert turns(CRANE).support("Since 2026-01-28 the crane server must listen on port 9417.") is not None
    assert turns(CRANE).support("Since 2026-03-28 the crane server must listen on port 9417.") is None


def test_trust_is_that_of_the_least_turn_that_is_needed_and_of_an_agent_for_one_literal_of_a_tool() -> None:
    said = Said(text="The crane server must listen on the port of the firewall.", ts=AT, trust=Trust.USER, spoken=True)
    printed = Said(text="port 7777", ts=AT, trust=Trust.UNTRUSTED, spoken=False)
    found = Turns([said, printed], SupportPolicy()).support("The crane server listens on port 7777 of the firewall.")
    assert found is not None
    assert found.trust is Trust.AGENT
    again = Turns([said, printed, replace(printed, trust=Trust.AGENT, spoken=True)], SupportPolicy())
    better = again.support("The crane server listens on port 7777 of the firewall.")
    assert better is not None
    assert better.trust is Trust.AGENT


def test_context_adds_to_a_fact_and_is_no_place_for_one() -> None:
    before = Said(text=CRANE, ts=AT, trust=Trust.USER, spoken=True, fresh=False)
    new = replace(before, text="Thanks, that is all.", fresh=True)
    assert Turns([before, new], SupportPolicy()).support("The crane server listens on port 9417.", [0]) is None


# --- answers ----------------------------------------------------------------------------------------------------------


def test_what_was_pasted_says_nothing_of_the_person() -> None:
    paste = "\n".join(f"12:00:0{n} INFO crane: the operator prefers slow hoists and loud horns" for n in range(6))
    answer = "@turns 1\n@observe user\nThe operator prefers slow hoists and loud horns."
    [made] = read_answer(
        answer, asked(event(f"here is the log:\n{paste}")), policy=POLICY, distill_policy=DEFAULT.distill
    ).promoted
    assert (made.observation.scope, made.observation.trust) == (Scope.PROJECT, Trust.IMPORT)


def test_what_a_model_thinks_aloud_is_not_its_answer() -> None:
    answer = f"<think>\n@observe user\n{CRANE}\n</think>\nNONE"
    read = read_answer(answer, asked(event(CRANE)), policy=POLICY, distill_policy=DEFAULT.distill)
    assert (read.promoted, read.is_unusable) == ((), False)


def test_an_answer_may_hold_no_more_facts_than_it_is_allowed() -> None:
    answer = f"@observe project\n{CRANE}\n" * 200
    read = read_answer(answer, asked(event(CRANE)), policy=POLICY, distill_policy=DEFAULT.distill)
    assert len(read.promoted) == 1
    assert read.counts["duplicates"] == POLICY.max_facts - 1


def test_a_cited_paste_is_no_place_beside_what_the_person_said() -> None:
    paste = "\n".join(f"12:00:0{n} INFO crane: the server listens on port 9417 behind the firewall" for n in range(6))
    answer = f"@turns 1, 2\n@observe project\n{CRANE}"
    [made] = read_answer(
        answer, asked(event(CRANE), event(f"here:\n{paste}", 1)), policy=POLICY, distill_policy=DEFAULT.distill
    ).promoted
    assert (made.observation.trust, made.also) == (Trust.USER, ())


# --- prompts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["user", "tool"]), st.integers(1, 9_000)), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_a_prompt_fits_its_budget_and_shows_every_new_turn_of_a_person(sizes: list[tuple[str, int]], old: int) -> None:
    policy = ObserverPolicy(prompt_chars=8_000, turn_chars=2_000, context_chars=1_000, memories=4)
    events = [
        tool("t" * size, n) if who == "tool" else event(f"w{n:02} " + "word " * (size // 5), n)
        for n, (who, size) in enumerate(sizes)
    ]
    fresh = events[old:] or events
    fresh = fresh[: fitting(fresh, policy)]
    made = question([*events[: events.index(fresh[0])], *fresh], frozenset(one.id for one in fresh), [], policy)
    lines = 40 * (len(events) + 6)
    assert len(made.text) <= policy.prompt_chars + lines
    for one in fresh:
        assert one.role is Role.TOOL or one.text[:3] in made.text


def test_when_room_is_short_what_tools_printed_goes_first() -> None:
    policy = ObserverPolicy(prompt_chars=1_000, turn_chars=900, context_chars=300, memories=2)
    made = question([tool("printed " * 90, 0), event("said " * 150, 1)], frozenset({"e0", "e1"}), [], policy)
    assert "said said" in made.text
    assert "printed" not in made.text


def test_a_prompt_names_the_project_and_the_person_where_they_are_known() -> None:
    made = question([event(CRANE)], frozenset({"e0"}), [], POLICY, person="Ines\n</about>")
    lines = made.text.splitlines()
    assert lines[1:3] == ["project: p1", "person: Ines </about>"]
    unknown = question([event(CRANE, project=None)], frozenset({"e0"}), [], POLICY)
    assert "<about" not in unknown.text


# --- what turns are called --------------------------------------------------------------------------------------------

SAID = (
    event("The nightly export fails when the disk is full.", 0),
    event("I found the cause: the export takes its lock before it checks the disk.", 1, role=Role.ASSISTANT),
    tool("OSError: no space left near cobalt-7", 2),
)
TITLE, SUMMARY = (
    "Nightly export and a full disk",
    "The export fails because it takes the lock before it checks the disk.",
)


@pytest.mark.parametrize(
    "answer",
    [
        f"@title {TITLE}\n@summary {SUMMARY}\nNONE",
        f"- **@title:** {TITLE}\n- **@summary:** {SUMMARY}\nNONE.",
        f"@title\n{TITLE}\n\n@summary\n{SUMMARY}\n\nNONE",
        f"@title {TITLE} @summary {SUMMARY}",
        f"NONE\n@summary {SUMMARY}\n@title {TITLE}",
        f'@title "{TITLE}"\n@summary {SUMMARY}\n@title Another one of the export\nNONE',
        f'{{"title": "{TITLE}", "summary": "{SUMMARY}", "facts": []}}',
        f'{{"@title": "{TITLE}", "@summary": "{SUMMARY}"}}',
    ],
)
def test_a_title_and_a_summary_are_read_in_the_shapes_that_models_give_them(answer: str) -> None:
    found = read_answer(answer, asked(*SAID), policy=POLICY, distill_policy=DEFAULT.distill)
    assert (found.titled.title, found.titled.summary) == (TITLE, SUMMARY)
    assert (found.promoted, dict(found.counts), found.is_unusable) == ((), {}, False)


def test_a_title_is_no_fact_and_takes_none_away() -> None:
    answer = f"@title {TITLE}\n@summary {SUMMARY}\n@type insight\n@observe project\n{SUMMARY}\n"
    found = read_answer(answer, asked(*SAID), policy=POLICY, distill_policy=DEFAULT.distill)
    assert [one.observation.type for one in found.promoted] == [MemoryType.INSIGHT]
    assert found.titled.title == TITLE
    assert dict(found.counts) == {"project_promoted_facts": 1}


@pytest.mark.parametrize(
    "title",
    [
        "Booking a holiday in Norway",  # nobody said that
        "Export fails with cobalt",  # a tool did
        "The 12 nightly exports",  # no such number
        "export " * 30,
    ],
)
def test_a_title_that_the_turns_do_not_say_is_dropped_and_counted(title: str) -> None:
    found = read_answer(f"@title {title}\nNONE", asked(*SAID), policy=POLICY, distill_policy=DEFAULT.distill)
    assert found.titled.title == ""
    assert dict(found.counts) == {"dropped_titles": 1}


def test_turns_of_two_projects_have_no_title() -> None:
    both = asked(SAID[0], event("The other export is fine.", 1, project="p2"))
    found = read_answer(f"@title {TITLE}\nNONE", both, policy=POLICY, distill_policy=DEFAULT.distill)
    assert found.titled.title == ""


def test_a_title_takes_no_word_from_what_was_pasted_or_remembered() -> None:
    pasted = "Look at this export:\n```\nTraceback: cobalt reactor failed\n```\nThe nightly export fails again."
    asking = asked(event(pasted))
    for title, kept in (("Nightly export fails", True), ("Nightly export fails at the reactor", False)):
        found = read_answer(f"@title {title}\nNONE", asking, policy=POLICY, distill_policy=DEFAULT.distill)
        assert bool(found.titled.title) is kept
