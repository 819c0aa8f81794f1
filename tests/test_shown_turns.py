"""What is shown of a hit: its whole turn where there is room, and of a long one what answers and how it ended."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.policy import DEFAULT
from scrubjay.retrieval.packing import shared_out
from scrubjay.retrieval.passages import GAP, excerpt, says_nothing, tidied
from scrubjay.service.application import Application
from scrubjay.transports.mcp import answers
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import EventDraft, EventType, MemoryDraft, Role
from scrubjay_shared.text import query_tokens
from service_calls import NOW, ingest, said

pytestmark = pytest.mark.anyio

LOG = "\n".join(f"Step {n} of the log said nothing of note." for n in range(120))

END = "So the lock of stable nine was rusty.\n\nIf you want, I can oil the other locks too."


def agent(text: str, **more: object) -> EventDraft:
    return said(text, type=EventType.ASSISTANT_MESSAGE, role=Role.ASSISTANT, **more)


async def settled(service: Application, *drafts: EventDraft) -> None:
    await ingest(service, *drafts)
    await service.call(PERSON, "settle", api.SettleRequest(timeout_ms=60_000))


async def hits(service: Application, query: str, caller: Caller = PERSON, **more: object) -> tuple[api.Hit, ...]:
    return (await service.call(caller, "recall", api.RecallRequest(query=query, **more))).hits


@pytest.mark.parametrize(
    ("turn", "question", "answer"),
    [
        ("staging is heron.example, prod is osprey. ssh user is deploy on both", "where is staging?", "heron.example"),
        ("workshop max is 6 now. prices are stored in cents", "how many people fit in a workshop?", "max is 6"),
        ("We decided to use Postgres for the shop. Ilse keeps the key to the cellar.", "who has the key?", "Ilse"),
    ],
)
async def test_a_memory_never_hides_the_rest_of_its_turn(
    service: Application, turn: str, question: str, answer: str
) -> None:
    await settled(service, said(turn, project="p"), agent("Noted.", project="p"))

    found = await hits(service, question)

    assert any(answer in "\n".join([hit.text, *(quote.text for quote in hit.sources)]) for hit in found)
    assert any(answer in answers.hit(hit, 0, why=False) for hit in found)


async def test_the_words_that_a_memory_was_read_from_are_marked_in_their_turn(service: Application) -> None:
    turn = "Good morning. We decided to use Postgres for the shop. Ilse keeps the key."
    await settled(service, said(turn))

    [hit] = await hits(service, "what does the shop use?", kinds=("memory",))
    [quote] = hit.told_in

    assert (quote.text, quote.text[slice(*quote.cited)].rstrip(".")) == (
        turn,
        "We decided to use Postgres for the shop",
    )
    assert "Good morning. «We decided to use Postgres for the shop" in answers.hit(hit, 0, why=False)
    assert answers.hit(hit, 0, why=False).count("Postgres") == 1


async def test_a_quote_in_the_memorys_own_words_says_only_who_and_when(service: Application) -> None:
    await settled(service, said("We decided to use Postgres for the shop."))

    [hit] = await hits(service, "what does the shop use?", kinds=("memory",))

    assert [(quote.speaker, quote.text, quote.cited) for quote in hit.sources] == [("user", "", None)]
    assert answers.hit(hit, 0, why=False).endswith("user: We decided to use Postgres for the shop.")


async def test_an_answer_to_a_question_cites_both_who_asked_and_who_answered(service: Application) -> None:
    question = "I can do that.\n\nWhich disk would you like the nightly backup to go to: the USB drive or the NAS?"
    await settled(
        service,
        said("Please set up the backup.", project="p"),
        agent(question, project="p"),
        said("the NAS", project="p"),
        agent("Good, it goes to the NAS from now on.", project="p"),
    )

    found = await hits(service, "Where does the nightly backup go?", kinds=("memory",))
    [asked, answered] = next(hit.told_in for hit in found if len(hit.told_in) == 2)

    assert (asked.speaker, asked.text) == ("assistant", question)
    assert (answered.speaker, answered.text) == ("user", "the NAS")
    assert asked.text[slice(*asked.cited)].startswith("Which disk")


async def test_of_a_turn_of_another_project_no_more_is_shown_than_was_learned(service: Application) -> None:
    turn = "I prefer tabs to spaces in all my code. The launch code of the rocket is in the safe."
    await settled(service, said(turn, project="rocket"))
    other = Caller(principal=Principal.AGENT, project="shop")

    [mine, *_], [theirs, *_] = [
        await hits(service, "tabs or spaces?", who, kinds=("memory",)) for who in (PERSON, other)
    ]

    assert theirs.text == mine.text
    assert "launch code" in str(mine)
    assert "launch code" not in str(theirs)


async def test_a_turn_is_cut_by_the_budget_that_is_left_and_not_by_the_limit(service: Application) -> None:
    turn = "My plan for now is to grow. " + "It takes time and a good deal of patience to come to that. " * 6
    await ingest(service, said(f"{turn}That is my current goal."), *(said(f"A goal, number {n}.") for n in range(4)))

    for limit in (5, 20, 100):
        found = await hits(service, "what is the current goal?", limit=limit)
        assert any(hit.text.startswith("My plan for now is to grow.") and not hit.truncated for hit in found)


async def test_twenty_long_turns_share_the_usual_budget_and_the_first_have_the_most(service: Application) -> None:
    texts = [f"{LOG}\nThe zebra {n} sleeps in stable {n}.\n{LOG}" for n in range(24)]
    await ingest(service, *(said(text, session=f"s{n}") for n, text in enumerate(texts)), learn=False)

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="where does the zebra sleep?"))

    assert len(answer.hits) == 20
    assert 0.75 * DEFAULT.limits.recall_tokens <= answer.tokens <= DEFAULT.limits.recall_tokens
    assert all("sleeps in stable" in hit.text and hit.truncated for hit in answer.hits)
    first, rest = answer.hits[: DEFAULT.recall.showing.first_hits], answer.hits[DEFAULT.recall.showing.first_hits :]
    assert min(len(hit.text) for hit in first) > 2 * max(len(hit.text) for hit in rest)


async def test_one_long_memory_leaves_room_for_the_others_and_shows_what_answers(service: Application) -> None:
    says = [f"The puffin ferry leaves pier {n} at {n % 24}:00 and carries {n * 3} crates." for n in range(140)]
    ferries = " ".join([*says[:117], "Its bosun is Ilse.", *says[117:]])
    for text in (ferries, "puffin " + "w" * 9_000, *(f"Puffin number {n} lives on rock {n}." for n in range(10))):
        await service.call(PERSON, "add", MemoryDraft(content=text))

    answer = await service.call(PERSON, "recall", api.RecallRequest(query="who is bosun of the puffin ferry?"))
    [cut] = [hit for hit in answer.hits if "ferry" in hit.text]

    assert len(answer.hits) == 12
    assert answer.left_out == 0
    assert "Its bosun is Ilse." in cut.text
    assert cut.truncated
    assert cut.span is not None
    assert cut.text == ferries[slice(*cut.span)]


async def test_an_agents_long_turn_shows_what_answers_and_its_last_words(service: Application) -> None:
    rows = "\n\n---\n\n| a | b |\n|---|---|\n"
    turn = f"I'll look at the stables.{rows}{LOG}{rows}The zebra sleeps in stable nine.{rows}{LOG}{rows}{END}"
    others = (said(f"{n} {LOG}", session=f"s{n}") for n in range(9))
    await ingest(service, agent(turn), *others, learn=False)

    [hit] = [hit for hit in await hits(service, "where does the zebra sleep?") if hit.type == "assistant_message"]
    passage, ending = hit.text.split(GAP)

    assert "The zebra sleeps in stable nine." in passage
    assert turn[slice(*hit.span)].split("\n", maxsplit=1)[0] == passage.split("\n")[0]
    assert ending.endswith("So the lock of stable nine was rusty.")
    assert not re.search(r"^\W*$", hit.text.replace(GAP, "\n"), re.MULTILINE)


async def test_what_a_host_notes_of_being_stopped_is_no_hit(service: Application) -> None:
    note = "[Request interrupted by user for tool use]"
    await ingest(service, said(note), said("The tool was interrupted by the request of a user."), learn=False)

    found = await hits(service, "request interrupted by user for tool use")

    assert [hit.text for hit in found] == ["The tool was interrupted by the request of a user."]


@pytest.mark.parametrize("text", ["[Request interrupted by user]", "<no message>", "(no content)", " \n"])
def test_a_remark_in_brackets_alone_says_nothing(text: str) -> None:
    assert says_nothing(text)


@pytest.mark.parametrize("text", ["[x] tests pass", "see [1]", "ok", "[link](https://example.org)", "[a] [b]"])
def test_what_has_a_word_outside_brackets_says_something(text: str) -> None:
    assert not says_nothing(text)


def test_lines_that_say_nothing_are_left_out_and_others_stay() -> None:
    text = "# Title\n\n---\n| a | b |\n|:--|--:|\n| 1 | 2 |\n```go\nx := 1\n```\n[Request interrupted by user]\n✅\n…\n"

    assert tidied(text) == "# Title\n| a | b |\n| 1 | 2 |\n```go\nx := 1\n✅\n…"
    assert tidied("---") == "---"


turns = st.lists(
    st.sampled_from(
        [
            "The zebra sleeps.",
            "stable nine",
            "---",
            "",
            "|--|",
            "Is it? Yes!",
            "x" * 30,
            "東京。",
            "If you want, I can.",
        ]
    ),
    max_size=30,
).map("\n".join)


@given(turns, st.integers(40, 200), st.data())
def test_an_excerpt_keeps_to_its_length_and_to_the_words_of_its_turn(
    turn: str, chars: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(turn)))
    end = data.draw(st.integers(start, len(turn)))
    weights = dict.fromkeys(query_tokens("zebra stable"), 1.0)

    found = excerpt(turn, weights, chars=chars, cited=(start, end), concludes=data.draw(st.booleans()))

    assert len(found.text) <= max(chars, 1)
    whole = tidied(turn)
    assert all(part in turn or part in whole for part in found.text.split(GAP))
    if found.span is not None:
        assert turn[slice(*found.span)].strip()
        assert found.text.split(maxsplit=1)[0] == turn[slice(*found.span)].split(maxsplit=1)[0]
    if found.cited is not None:
        marked = found.text[slice(*found.cited)]
        assert marked in whole or marked in turn


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.sampled_from([0.35, 1.0, 3.0]), st.integers(0, 60)), min_size=1, max_size=20
    ),
    st.integers(0, 3_000),
)
def test_a_total_is_shared_out_by_weight_need_and_least(wishes: list[tuple[int, float, int]], total: int) -> None:
    needs = [need for need, _, _ in wishes]
    weights = [weight for _, weight, _ in wishes]
    least = [min(need, low) for need, _, low in wishes]

    given_ = shared_out(total, needs, weights, least)

    assert all(low <= got <= need for low, got, need in zip(least, given_, needs, strict=True))
    assert sum(given_) <= max(total, sum(least))
    if sum(needs) <= total:
        assert given_ == needs
    for (one, got), (other, had) in itertools.combinations(zip(wishes, given_, strict=True), 2):
        if one[1] == other[1] and got < had:  # of two that weigh the same, who has less needs no more, or had a least
            assert got == one[0] or had == min(other[0], other[2])


async def test_a_turn_beyond_what_is_searched_still_shows_its_last_words(service: Application) -> None:
    turn = f"The zebra sleeps in stable nine.\n{LOG * 8}\nAll locks are oiled now."
    await ingest(service, agent(turn, ts=Millis(NOW)), *(said(LOG, session=f"s{n}") for n in range(9)), learn=False)

    [hit] = [hit for hit in await hits(service, "where does the zebra sleep?") if hit.type == "assistant_message"]

    assert hit.text.startswith("The zebra sleeps in stable nine.")
    assert hit.text.endswith(f"{GAP}All locks are oiled now.") or hit.text.endswith("\nAll locks are oiled now.")
