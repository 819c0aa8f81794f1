"""What is kept of what a person says at work, by a reader: the decisions, and the reader that ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import Memory, api
from scrubjay.distill import distill
from scrubjay.distill.observe import SOURCE, Observation
from scrubjay.distill.prose import Span
from scrubjay.distill.reading import Judgement, Turn
from scrubjay.models import reading
from scrubjay.policy import DEFAULT
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, NotFoundError
from scrubjay_shared.records import Event, EventType, MemoryType, Role, Scope, Trust

DULL = Judgement(worth=0.01, leans=0.0, type=MemoryType.FACT, personal=False)
GOOD = Judgement(worth=0.9, leans=0.0, type=MemoryType.DECISION, personal=False)
SENTENCES = Path(__file__).parent / "fixtures" / "judged_sentences.tsv"


class Marks:
    """A reader that finds worth in the sentences that hold one of its words, and thinks nothing of the others."""

    source = "reader/test"

    def __init__(self, judged: Mapping[str, Judgement]) -> None:
        self.judged = judged

    def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
        """Return what the first word that stands in each sentence says of it."""
        said = [turn.text[one.start : one.end] for one in found]
        return [next((of for word, of in self.judged.items() if word in one), DULL) for one in said]


def event(text: str, at: int, role: Role, *, project: str | None = "proj_a") -> Event:
    by_person = role is Role.USER
    return Event(
        id=f"evt_{at}",
        device="here",
        agent="claude-code",
        session_id="s1",
        type=EventType.USER_MESSAGE if by_person else EventType.ASSISTANT_MESSAGE,
        role=role,
        text=text,
        ts=Millis(1_700_000_000_000 + at),
        dedupe_key=str(at),
        project=project,
        trust=Trust.USER if by_person else Trust.AGENT,
    )


def learned(text: str, judged: Mapping[str, Judgement], *, before: str = "") -> tuple[Observation, ...]:
    said = [event(text, 2, Role.USER)]
    if before:
        said.insert(0, event(before, 1, Role.ASSISTANT))
    return distill(said, {"evt_2"}, reader=Marks(judged)).observations


def test_what_the_reader_finds_worth_keeping_is_kept_in_its_own_words() -> None:
    text = "fix the header pls. we only ever get utf-16 files from customs. looks odd now"
    [one] = learned(text, {"utf-16": GOOD})
    assert one.content == "We only ever get utf-16 files from customs."
    assert (one.scope, one.source) == (Scope.PROJECT, Marks.source)
    assert text[one.span_start : one.span_end] == one.excerpt == "we only ever get utf-16 files from customs."


def test_a_finding_is_known_by_the_reader_and_other_kinds_by_their_cues() -> None:
    found = replace(GOOD, type=MemoryType.INSIGHT)
    [cause] = learned("The cause of the crash is a stale lock file.", {"lock": found})
    [rule] = learned("Never use unwrap in the uplink crate.", {"unwrap": found})
    assert (cause.type, rule.type) == (MemoryType.INSIGHT, MemoryType.PREFERENCE)


def test_below_the_floor_nothing_is_kept_whatever_patterns_would_read() -> None:
    below = replace(GOOD, worth=DEFAULT.distill.min_worth - 0.01)
    assert learned("We use Postgres for the billing service.", {"Postgres": below}) == ()


@pytest.mark.parametrize(
    "said",
    [
        "From now on use pnpm here.",
        "Please never push to main.",
        "Remember that staging is read-only.",
        "We decided to drop IE.",
        "You should always run the linter.",
        "I want you to always answer in English.",
        "Do not ever use var.",
    ],
)
def test_what_a_person_says_is_to_be_remembered_is_kept_whatever_the_reader_thinks(said: str) -> None:
    assert [one.content for one in learned(said, {})] == [said]
    assert learned(f"{said[:-1]}?", {}) == ()


def test_what_leans_on_the_sentence_before_is_told_with_it() -> None:
    [one] = learned("The ghosts go home at night. They respawn after a rest.", {"respawn": replace(GOOD, leans=0.9)})
    assert one.content == "The ghosts go home at night. They respawn after a rest."


def test_what_leans_on_words_that_say_nothing_stands_by_itself() -> None:
    [one] = learned("Yes. They respawn after a rest.", {"respawn": replace(GOOD, leans=0.9)}, before="Ok, so.")
    assert one.content == "They respawn after a rest."


TELLS = "we only ever get utf-16 files from customs"


def heard(said: str, between: str = "") -> tuple[tuple[Observation, ...], list[str]]:
    events = [event(TELLS, 1, Role.USER), event(said, 3, Role.USER)]
    if between:
        events.insert(1, event(between, 2, Role.ASSISTANT))
    found = distill(events, reader=Marks({"utf-16": GOOD}))
    return found.observations, list(found.taken_back)


@pytest.mark.parametrize(
    "said",
    [
        "ah no sorry, that's the other project",
        "sorry, wrong window",
        "oops wrong repo!",
        "nvm, wrong repo!",
        "sorry about that, wrong window",
        "lol wrong window",
        "I pasted that into the wrong window",
        "my mistake, that's the other project",
        "please forget what I said",
        "that was meant for another chat",
        "disregard my last message please",
        "Sorry. Wrong session.",
        "i take that back",
        "hm, that was for the other repo, sorry",
    ],
)
def test_what_is_taken_back_in_the_next_turn_is_not_learned(said: str) -> None:
    assert len(heard("thanks, go on", "Noted.")[0]) == 1
    assert heard(said, "Noted.") == heard(said) == ((), ["evt_1"])


@pytest.mark.parametrize(
    "said", ["Ignore that.", "never mind", "please disregard that", "no wait, scratch that", "forget it"]
)
def test_what_may_be_of_the_agents_words_takes_back_only_where_no_agent_spoke(said: str) -> None:
    assert heard(said) == ((), ["evt_1"])
    assert heard(said, "There is a deprecation warning.")[1] == []


@pytest.mark.parametrize(
    "said",
    [
        "ignore this warning in the linter",
        "the wrong project is selected in the list",
        "forget the old layout, use the new one",
        "in the other project we use pnpm",
        "no wait for the second test",
        "that's the wrong color",
        "open it in the other tab",
        "never mind the gap, fix the header",
        "ignore that, it is only the linter being noisy",
        "wrong session, the test uses the expired one",
        "never mind, the tests pass now, please also always run ruff",
        "wrong thread - the callback must run on the UI thread",
        "that is in the other repo, we never vendor it",
    ],
)
def test_what_corrects_another_thing_takes_nothing_back(said: str) -> None:
    assert heard(said)[1] == heard(said, "Noted.")[1] == []


def test_a_week_later_nothing_is_taken_back() -> None:
    late = replace(event("wrong window", 2, Role.USER), ts=Millis(1_700_000_000_000 + 8 * 86_400_000))
    assert distill([event(TELLS, 1, Role.USER), late], reader=Marks({})).taken_back == {}


def test_what_is_taken_back_in_the_same_breath_is_not_learned() -> None:
    assert learned("we only ever get utf-16 files. ah no sorry, that's the other project.", {"utf-16": GOOD}) == ()


def test_what_was_learned_and_is_taken_back_later_ends(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", project="proj_a") as memory:

        def say(*texts: str) -> None:
            said = {"agent": "a", "session_id": "s", "type": "user_message", "project": "proj_a"}
            memory.ingest([{**said, "text": text} for text in texts])
            memory.settle(60)

        say("From now on use pnpm here.", "We decided to use Postgres.")
        ids = {entry.memory.content: entry.memory.id for entry in memory.list().entries}
        say("oh no, wrong window, sorry")
        held = {said: memory.get(one).memory.valid_to is None for said, one in ids.items()}
        assert held == {"From now on use pnpm here.": True, "We decided to use Postgres.": False}
        handed = memory.call("context", api.ContextRequest(project="proj_a")).handed
        assert "pnpm" in handed
        assert "Postgres" not in handed
        say("From now on releases go out on fridays.")
        friday = next(one.memory.id for one in memory.list().entries if "fridays" in one.memory.content)
        memory.update(friday, content="From now on releases go out on fridays at noon.")
        say("oops wrong chat")
        assert memory.get(friday).memory.valid_to is None, "who edited it means it"


def test_what_a_change_that_is_taken_back_had_replaced_holds_again(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", project="proj_a") as memory:

        def say(text: str) -> None:
            said = {"agent": "a", "session_id": "s", "type": "user_message", "project": "proj_a"}
            memory.ingest([{**said, "text": text}])
            memory.settle(60)

        say("From now on the API port is 8080.")
        [old] = [one.memory.id for one in memory.list().entries]
        say("From now on the API port is 9090.")
        assert memory.get(old).memory.superseded_by is not None
        say("sorry, wrong window")
        assert (memory.get(old).memory.superseded_by, memory.get(old).memory.valid_to) == (None, None)


PIECES = st.sampled_from(
    ["ok ", "**so** ", "never ", "utf-16 ", "\n", "\n\n", "- ", "> ", "```\n", ". ", "? ", "! ", "1. ", "@a "]
)


@given(
    st.lists(PIECES | st.text(max_size=8), max_size=20).map("".join),
    st.lists(PIECES, max_size=8).map("".join),
    st.data(),
)
def test_every_excerpt_is_the_text_of_its_turns_at_its_span(text: str, before: str, data: st.DataObject) -> None:
    chance = st.floats(0, 1)

    class Drawn:
        source = "reader/test"

        def read(self, turn: Turn, found: Sequence[Span]) -> list[Judgement]:
            assert turn.text == text
            drawn = data.draw(st.lists(st.tuples(chance, chance), min_size=len(found), max_size=len(found)))
            return [replace(GOOD, worth=worth, leans=leans) for worth, leans in drawn]

    events = [event(before, 1, Role.ASSISTANT), event(text, 2, Role.USER)]
    for one in distill(events, {"evt_2"}, reader=Drawn()).observations:
        shown = f"{before}\n{text}" if one.event_id_start == "evt_1" else text
        assert shown[one.span_start : one.span_end] == one.excerpt
        assert one.content
        assert one.excerpt.strip()


def test_what_an_agent_reports_is_no_part_of_what_a_person_says_next() -> None:
    [one] = learned("redis for the sessions", {"redis": replace(GOOD, leans=0.9)}, before="Done. All 41 tests pass.")
    [sure] = learned("We decided on redis.", {"redis": replace(GOOD, leans=0.9)}, before="I would take redis.")
    assert (one.content, one.trust) == ("Redis for the sessions.", Trust.USER)
    assert (sure.content, sure.trust) == ("We decided on redis.", Trust.USER)


@pytest.mark.parametrize(
    "said",
    [
        "never mind the warnings, just get it to build",
        "always the same error again",
        "I remember it was in utils.py",
        "do you remember what we called the queue, look it up",
        "we never got an answer from them",
    ],
)
def test_talk_that_has_an_explicit_word_is_not_said_to_be_remembered(said: str) -> None:
    assert distill([event(said, 1, Role.USER)]).observations == ()


def test_an_answer_that_leans_is_told_with_what_it_answers_and_trusted_as_the_agent() -> None:
    asked = "I looked at both.\n\nI would keep the audit logs for one year."
    answer = "ten, the law asks for it"
    [one] = learned(answer, {"ten": replace(GOOD, leans=0.9)}, before=asked)
    assert one.content == "I would keep the audit logs for one year. \N{EN DASH} Ten, the law asks for it."
    assert (one.event_id_start, one.event_id_end, one.trust) == ("evt_1", "evt_2", Trust.AGENT)
    both = f"{asked}\n{answer}"
    assert both[one.span_start : one.span_end] == one.excerpt
    assert one.excerpt.startswith("I would keep")


@pytest.mark.parametrize(
    "text",
    [
        "The key for customs is [REDACTED:token], it never expires.",
        "Der Zoll schickt uns immer nur Dateien in utf-16, customs eben.",
        "customs " * 120,
    ],
)
def test_a_line_of_a_secret_another_language_and_a_paste_are_kept_by_no_reader(text: str) -> None:
    assert learned(text, {"customs": GOOD}) == ()


def test_what_holds_everywhere_is_the_persons() -> None:
    [one] = distill(
        [event("no emojis please, i can't stand them", 2, Role.USER)],
        user_id="user_1",
        reader=Marks({"emojis": replace(GOOD, type=MemoryType.PREFERENCE, personal=True)}),
    ).observations
    assert (one.scope, one.resource_id) == (Scope.USER, "user_1")


def test_talk_of_no_project_is_left_to_patterns() -> None:
    said = event("I prefer tabs over spaces.", 1, Role.USER, project=None)
    assert [one.source for one in distill([said], reader=Marks({})).observations] == [SOURCE]


def test_without_a_model_only_what_is_said_in_so_many_words_is_kept() -> None:
    said = event("We use Postgres for billing. From now on use pnpm here. Fix the header.", 1, Role.USER)
    found = event("The root cause was a stale lock file in the cache folder.", 2, Role.ASSISTANT)
    [one] = distill([said, found]).observations
    assert (one.content, one.source) == ("From now on use pnpm here.", SOURCE)
    assert one.confidence >= DEFAULT.distill.instruction_confidence


def test_of_what_agents_say_at_work_nothing_is_kept_without_a_writer() -> None:
    found = event("The cause was a stale lock file in the cache folder.", 1, Role.ASSISTANT)
    assert distill([found], reader=Marks({"lock": GOOD})).observations == ()


def test_where_the_reader_cannot_be_loaded_explicit_words_are_kept_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCRUBJAY_READER", str(tmp_path / "gone.onnx"))
    with Memory(tmp_path / "memory.db", project="proj_a") as memory:
        said = {
            "agent": "a",
            "session_id": "s",
            "type": "user_message",
            "text": "We decided to use Postgres.",
            "project": "proj_a",
        }
        memory.ingest([said])
        memory.settle(60)
        [one] = memory.list().entries
        [source] = memory.why(one.memory.id).sources
        assert source.grip.source == SOURCE
        assert any("said in so many words" in warning for warning in memory.call("status", api.Nothing()).warnings)


@pytest.fixture(scope="module")
def shipped() -> reading.OnnxReader:
    return reading.load()


def test_the_reader_that_ships_ranks_sentences_of_a_person_it_was_not_fitted_to(shipped: reading.OnnxReader) -> None:
    rows = [line.split("\t") for line in SENTENCES.read_text(encoding="utf-8").splitlines() if line]
    ranked = sorted(((_worth(shipped, said, before), mark == "K") for mark, before, said in rows), reverse=True)
    hits = [n for n, (_, is_kept) in enumerate(ranked, 1) if is_kept]
    average_precision = sum(k / n for k, n in enumerate(hits, 1)) / len(hits)
    assert len(rows) >= 60
    assert average_precision >= 0.6, f"{average_precision:.2f}, where chance gives {len(hits) / len(rows):.2f}"


def _worth(shipped: reading.OnnxReader, said: str, before: str) -> float:
    return shipped.read(Turn(text=said, before=before), [Span(start=0, end=len(said))])[0].worth


def test_a_sentence_is_judged_the_same_whatever_was_read_before(shipped: reading.OnnxReader) -> None:
    turn = Turn(text="deploys only on tuesdays. fix the header", before="What next?")
    found = [Span(start=0, end=25), Span(start=26, end=40)]
    first = shipped.read(turn, found)
    shipped.read(Turn(text="\ud800 odd " * 400), [Span(start=0, end=2_000)])
    assert shipped.read(turn, found) == first


@pytest.mark.parametrize("said", ["\ufffd\ufffd.", "\u200b\u200b", "\U000f0000 \U000f0001", "", "\ud800"])
def test_what_the_reader_has_no_words_for_has_a_chance_all_the_same(shipped: reading.OnnxReader, said: str) -> None:
    [made] = shipped.read(Turn(text=said), [Span(start=0, end=len(said))])
    assert 0 <= made.worth <= 1
    assert 0 <= made.leans <= 1


def test_a_reader_that_is_not_there_or_damaged_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCRUBJAY_READER", str(tmp_path / "gone.onnx"))
    with pytest.raises(NotFoundError, match="SCRUBJAY_READER"):
        reading.load()
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    monkeypatch.setenv("SCRUBJAY_READER", str(tmp_path / "bad.onnx"))
    with pytest.raises(CorruptError, match="does not run"):
        reading.load()
