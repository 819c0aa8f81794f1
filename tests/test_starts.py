"""What a start is made of: what is worth telling, in which order, within which budget; and the brief of a project."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_shell import Shell
from hook_process import prompt
from scrubjay import Memory as Store
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.handing import start, worth
from scrubjay.handing.features import FEATURES, features, is_outright
from scrubjay.handing.start import Known
from scrubjay.policy import HandingPolicy
from scrubjay.retrieval.handing import usual_tokens
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import CorruptError, DeniedError
from scrubjay_shared.records import (
    AUTHOR,
    EventDraft,
    EventType,
    Kind,
    Layer,
    Memory,
    MemoryDraft,
    MemoryType,
    Scope,
    Trust,
    content_hash,
)
from starts_world import sessions
from test_handing import SHOP, answered, hook, say, settled, started

POLICY = HandingPolicy()
AGENT = Caller(principal=Principal.AGENT, agent="crow", project=SHOP, session_id="second")


def memory(text: str, number: int = 0, **more: Any) -> Memory:
    given: dict[str, Any] = {
        "id": f"01HZZZZZZZZZZZZZZZZZZZ{number:04}",
        "content": text,
        "kind": Kind.OBSERVATION,
        "type": MemoryType.DECISION,
        "scope": Scope.PROJECT,
        "resource_id": SHOP,
        "salience": 0.8,
        "created_at": Millis(1_000 + number),
        "updated_at": Millis(1_000 + number),
        "content_hash": content_hash(text),
        "confidence": 0.45,
    }
    return Memory(**(given | more))


# What a statement is worth by its words

ORDERS = (
    "Put the vat line on the invoice.",
    "Add a login page for customers.",
    "Fix the typo in the heading.",
    "Make the sidebar a bit narrower.",
    "Rename the variable d to day in the loader.",
    "Set up the sender for order confirmations.",
    "Should the list be sorted by date, or by name?",
)
STANDING = (
    "We keep drafts on the device because people write them on trains without a network.",
    "The user doesn't want mocks in integration tests, they hid two outages.",
    "Never delete a customer record, the tax office asks for it ten years later.",
    "All times are stored in UTC because the offices are in three time zones.",
    "The user prefers plain SQL over an ORM since the team knows SQL and the queries are long.",
)


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_of_the_moment_reads_as_worth_less_than_what_stands(order: str) -> None:
    chances = [worth.fitted().chance(text) for text in STANDING]

    assert worth.fitted().chance(order) < min(chances)
    assert worth.fitted().chance(order) < POLICY.outright_least


def test_the_weights_are_of_these_features_and_another_file_is_refused() -> None:
    assert len(worth.fitted().form) == len(FEATURES) == len(features("Use pnpm, never npm."))
    with pytest.raises(CorruptError, match="other features"):
        worth.parse(b'{"features": ["words"], "form": [1.0]}')


@given(st.text(max_size=2_000))
def test_any_text_has_a_chance_and_always_the_same(text: str) -> None:
    chance = worth.fitted().chance(text)

    assert 0 <= chance <= 1
    assert worth.fitted().chance(text) == chance


@pytest.mark.parametrize(
    ("text", "outright"),
    [
        ("The user prefers tabs over spaces in every project.", True),
        ("We decided to use SQLite for the cart store.", True),
        ("The user asked: never force-push to main.", True),
        ("From now on commit messages start with the ticket.", True),
        ("Never mind, do it later for now.", False),
        ("Did we decide on tabs?", False),
        ("Add a button to the list.", False),
    ],
)
def test_what_is_said_outright_is_told_from_what_is_not(text: str, *, outright: bool) -> None:
    assert is_outright(text) is outright


# What a memory is worth


def test_what_the_person_wrote_or_used_is_worth_more_and_what_an_agent_said_less() -> None:
    said = memory("Staging is behind the old proxy.")
    plain = start.worth(said, 0.3, POLICY)

    assert start.worth(replace(said, kind=Kind.STORED), 0.3, POLICY) >= POLICY.chosen_worth
    assert start.worth(replace(said, review="accepted"), 0.3, POLICY) >= POLICY.chosen_worth
    assert start.worth(replace(said, trust=Trust.AGENT), 0.3, POLICY) < plain
    assert plain < start.worth(said, 0.3, POLICY, uses=1) < start.worth(said, 0.3, POLICY, uses=3)
    assert (
        start.worth(replace(said, salience=0.95), 0.3, POLICY)
        > plain
        > start.worth(replace(said, salience=0.4), 0.3, POLICY)
    )
    assert start.worth(said, 0.3, POLICY, probability=0.2) > plain


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(MemoryType), st.sampled_from(Trust))
def test_a_likelier_statement_is_never_worth_less(one: float, other: float, type_: MemoryType, trust: Trust) -> None:
    said = memory("Never rebase.", type=type_, trust=trust)

    less, more = sorted((one, other))

    assert start.worth(said, less, POLICY) <= start.worth(said, more, POLICY)


def test_what_is_worth_nothing_is_not_told_and_what_is_pinned_always_is() -> None:
    low = Known(memory=memory("Add a button.", 1), worth=POLICY.worth_floor - 0.01)
    high = Known(memory=memory("Carts are kept for thirty days.", 2), worth=0.9)
    pinned = Known(memory=memory("Anna signs releases.", 3, layer=Layer.SURFACED), worth=0.01)

    assert start.ranked([low, high, pinned], POLICY) == [pinned, high]


def test_of_two_that_say_the_same_the_newer_is_told() -> None:
    old = Known(memory=memory("Releases go out on Mondays after lunch.", 1), worth=0.9)
    new = Known(memory=memory("Releases go out on Mondays after lunch now.", 2), worth=0.5)

    assert start.ranked([old, new], POLICY) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Never deploy the shop on Fridays without a backup.",
            "The shop may deploy on Fridays without a backup.",
        ),
        (
            "The staging database listens on port 5433 of host heron.",
            "The production database listens on port 5432 of host heron.",
        ),
        ("Never edit the generated files in api by hand.", "Never edit the generated files in web by hand."),
        ("The loader is written in C.", "The loader is written in C++."),
        ("Carts move from Postgres to Redis.", "Carts move to Postgres from Redis."),
        ("Never edit the generated files by hand.", "Never edit the generated files in api by hand."),
    ],
)
def test_two_lines_that_differ_in_a_word_are_both_told(old: str, new: str) -> None:
    lines = [Known(memory=memory(old, 1), worth=0.9), Known(memory=memory(new, 2), worth=0.8)]

    assert start.ranked(lines, POLICY) == lines


@pytest.mark.parametrize(
    ("better", "lesser"),
    [
        ({"trust": Trust.USER}, {"trust": Trust.AGENT}),
        ({"type": MemoryType.PREFERENCE}, {"type": MemoryType.FACT}),
        ({}, {"metadata": {AUTHOR: "Ben"}}),
        ({"layer": Layer.SURFACED}, {}),
    ],
)
def test_in_the_place_of_a_line_nothing_lesser_is_told_however_new(
    better: dict[str, Any], lesser: dict[str, Any]
) -> None:
    old = Known(memory=memory("Releases go out on Mondays.", 1, **better), worth=0.5)
    new = Known(memory=memory("Releases go out on Mondays now.", 2, **lesser), worth=0.9)

    assert start.ranked([old, new], POLICY) == [old]


def test_two_lines_of_which_neither_may_stand_for_the_other_are_both_told() -> None:
    rule = Known(memory=memory("Tests run in CI.", 1, type=MemoryType.HOWTO, trust=Trust.AGENT), worth=0.9)
    fact = Known(memory=memory("Tests run in CI.", 2, type=MemoryType.FACT), worth=0.8)
    everywhere = Known(memory=memory("Tests run in CI.", 3, scope=Scope.USER, resource_id=None), worth=0.7)

    assert start.ranked([rule, fact, everywhere], POLICY) == [rule, fact, everywhere]


def test_what_questions_a_line_is_told_before_it_however_little_it_is_worth() -> None:
    new = Known(memory=memory("Make it sixty now.", 2), worth=0.01)
    old = Known(memory=memory("Keys get thirty requests a minute.", 1), worth=0.9, questioned_by=new.memory.id)
    gone = Known(memory=memory("Anna signs releases.", 3), worth=0.5, questioned_by="of another project")

    assert [one.memory for one in start.ranked([old, new, gone], POLICY)] == [new.memory, old.memory, gone.memory]
    assert start.ranked([replace(old, worth=0.01), new], POLICY) == []


def test_two_lines_that_question_each_other_are_both_told() -> None:
    one, other = memory("Keys get thirty requests a minute.", 1), memory("Keys get sixty requests a minute.", 2)
    lines = [Known(memory=one, worth=0.9, questioned_by=other.id), Known(memory=other, worth=0.9, questioned_by=one.id)]

    assert {line.memory.id for line in start.ranked(lines, POLICY)} == {one.id, other.id}


def test_what_an_agent_put_into_the_layer_is_no_pin_until_the_person_accepts_it() -> None:
    said = memory("The index is rebuilt by night.", layer=Layer.SURFACED, trust=Trust.AGENT)

    assert not start.is_pinned(said)
    assert start.is_pinned(replace(said, review="accepted"))
    assert start.is_pinned(replace(said, trust=Trust.USER))


def test_of_two_that_are_worth_as_much_the_shorter_comes_first() -> None:
    long = Known(memory=memory("The renderer " + "of the invoices that customers print " * 4, 1), worth=0.6)
    short = Known(memory=memory("Prices are integers of cents, never floats.", 2), worth=0.6)

    assert start.ranked([long, short], POLICY) == [short, long]


@pytest.mark.parametrize(
    ("type_", "layer", "unused", "spent"),
    [
        (MemoryType.FACT, Layer.ARCHIVE, 19, False),
        (MemoryType.FACT, Layer.ARCHIVE, 20, True),
        (MemoryType.DECISION, Layer.ARCHIVE, 20, True),
        (MemoryType.GOAL, Layer.ARCHIVE, 20, True),
        (MemoryType.PREFERENCE, Layer.ARCHIVE, 90, False),
        (MemoryType.HOWTO, Layer.ARCHIVE, 90, False),
        (MemoryType.DECISION, Layer.SURFACED, 90, False),
    ],
)
def test_twenty_sessions_without_use_are_enough_but_rules_and_pins_stay(
    type_: MemoryType, layer: Layer, unused: int, *, spent: bool
) -> None:
    assert start.is_spent(memory("x y", type=type_, layer=layer), unused, POLICY) is spent


# Starts of real sessions


async def added(service: Application, text: str, **more: Any) -> str:
    wanted: dict[str, Any] = {"type": MemoryType.DECISION, "scope": Scope.PROJECT, "resource_id": SHOP}
    found: api.Entry = await service.call(PERSON, "add", MemoryDraft(content=text, **(wanted | more)))
    return found.memory.id


async def brief(service: Application, project: str | None = SHOP) -> api.BriefResponse:
    found: api.BriefResponse = await service.call(PERSON, "brief", api.BriefRequest(project=project))
    return found


@pytest.mark.anyio
async def test_done_orders_are_not_decisions_of_the_next_session(service: Application) -> None:
    await say(
        service,
        "first",
        *ORDERS[:4],
        "We keep drafts on the device, because people write them on trains without a network.",
    )
    await settled(service)

    text = await hook(service, started("second"), inject=True)

    assert "drafts on the device" in text
    assert not [order for order in ORDERS if order in text]


@pytest.mark.anyio
async def test_a_start_keeps_to_its_budget_and_its_brief_to_its_own(service: Application) -> None:
    for n in range(60):
        await added(service, f"Part {n} of the shop is called {'abcdefghij'[n % 10] * 9}{n} because of rule {n * 7}.")

    text = await hook(service, started("second"), inject=True)
    page = await brief(service)

    assert 0 < len(text) // 4 <= POLICY.start_tokens
    assert 0 < page.tokens <= page.budget == POLICY.brief_tokens
    assert page.known == 60
    assert usual_tokens(text) > 0.7 * POLICY.start_tokens, "what is worth it fills the room"


@pytest.mark.anyio
async def test_a_brief_has_four_headings_and_cites_a_memory_for_each_line(service: Application) -> None:
    ids = {
        await added(service, "The shop sells pots that a potter makes one by one.", type=MemoryType.FACT),
        await added(service, "Tests use pytest and no fixtures of JSON.", type=MemoryType.PREFERENCE),
        await added(service, "Checkout is for guests only, because nobody wants an account."),
        await added(service, "Two loaders at once corrupt the index.", type=MemoryType.INSIGHT),
    }
    await added(service, "The user likes short answers.", scope=Scope.USER, resource_id=None)
    await added(service, "Ledgers are closed on Fridays.", resource_id="/home/ana/bank")

    page = await brief(service)

    assert {item.ref for item in page.items} == ids
    assert {item.kind for item in page.items} == {"memory"}
    assert [line for line in page.text.splitlines() if line.endswith(":")] == [
        "What this is:",
        "How to work here:",
        "Decided:",
        "Beware:",
    ]
    handed = await hook(service, started("second"), inject=True)
    assert all(item.text in handed for item in page.items)


@pytest.mark.anyio
async def test_a_brief_lives_with_its_memories(service: Application) -> None:
    guests = await added(service, "Checkout is for guests only, because nobody wants an account.")

    await service.call(PERSON, "supersede", api.SupersedeRequest(ref=guests, content="Checkout asks for an account."))
    replaced = await brief(service)
    [line] = replaced.items
    await service.call(PERSON, "update", api.UpdateRequest(ref=line.ref, content="Checkout asks for a name."))
    edited = await brief(service)
    await service.call(PERSON, "forget", api.ForgetRequest(ref=line.ref))

    assert "asks for an account" in replaced.text
    assert "asks for a name" in edited.text
    assert (await brief(service)).items == ()


@pytest.mark.anyio
async def test_an_agent_sees_its_own_projects_brief_and_a_store_without_projects_has_none(
    service: Application,
) -> None:
    nothing = await brief(service, None)
    assert (nothing.project, nothing.items) == (None, ())
    assert nothing.notes
    await added(service, "Checkout is for guests only, because nobody wants an account.")

    mine: api.BriefResponse = await service.call(AGENT, "brief", api.BriefRequest())

    assert [item.text for item in mine.items] == [item.text for item in (await brief(service)).items]


@pytest.mark.anyio
async def test_a_line_is_found_by_the_end_of_its_id(service: Application) -> None:
    await added(service, "Checkout is for guests only, because nobody wants an account.")
    [line] = (await brief(service)).items
    short = line.text.partition("[")[2].partition("]")[0]

    found = await service.call(AGENT, "get", api.RefRequest(ref=short))

    assert found.memory.id == line.ref


@pytest.mark.anyio
async def test_a_decision_that_no_session_used_is_told_twenty_times_and_a_rule_always(service: Application) -> None:
    decided = await added(service, "Checkout is for guests only, because nobody wants an account.")
    ruled = await added(service, "Tests use pytest, never unittest.", type=MemoryType.PREFERENCE)
    told = []
    for n in range(POLICY.unused_sessions + 2):
        text = await hook(service, started(f"start-{n}"), inject=True)
        told.append((decided[-6:] in text, ruled[-6:] in text))
        await hook(service, prompt(f"start-{n}", "Paint the shed.", prompt_id=f"p{n}"))

    assert [one for one, _ in told] == [True] * POLICY.unused_sessions + [False, False]
    assert all(rule for _, rule in told)


@pytest.mark.anyio
async def test_a_decision_that_a_session_used_is_told_on(service: Application) -> None:
    decided = await added(service, "Checkout is for guests only, because nobody wants an account.")
    for n in range(POLICY.unused_sessions):
        await hook(service, started(f"start-{n}"), inject=True)
        await hook(service, prompt(f"start-{n}", "Paint the shed.", prompt_id=f"p{n}"))
    await hook(service, answered(f"start-{n}", f"As [{decided[-6:]}] says, there is no login."))
    await service.surface.run()

    assert decided[-6:] in await hook(service, started("later"), inject=True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("last", "open_"),
    [
        ("The nightly export is not yet scheduled; shall I add the timer?", True),
        ("Done.", False),
        ("All tests pass and it is committed.", False),
    ],
)
async def test_what_a_session_left_open_is_one_line_and_what_ended_is_none(
    service: Application, last: str, *, open_: bool
) -> None:
    await added(service, "Checkout is for guests only, because nobody wants an account.")
    await say(service, "first", "Write the export of the orders.")
    await hook(service, answered("first", last))
    await settled(service)

    items = (await service.call(PERSON, "context", api.ContextRequest(project=SHOP, session_id="second"))).items

    assert [item.section for item in items if item.kind == "event"] == [api.Section.LEFT_OFF] * open_


@pytest.mark.anyio
async def test_thanks_is_no_open_end(service: Application) -> None:
    await added(service, "Checkout is for guests only, because nobody wants an account.")
    await say(service, "first", "Write the export of the orders.")
    await hook(service, answered("first", "Done."))
    await say(service, "first", "thanks")
    await settled(service)

    items = (await service.call(PERSON, "context", api.ContextRequest(project=SHOP, session_id="second"))).items

    assert [item.kind for item in items] == ["memory"]


@pytest.mark.anyio
async def test_thanks_does_not_hide_what_was_named_for_next_time(service: Application) -> None:
    await added(service, "Checkout is for guests only, because nobody wants an account.")
    await say(service, "first", "Write the export of the orders.", "next time: ramp/soak editor", "thx, gotta go")
    await settled(service)

    items = (await service.call(PERSON, "context", api.ContextRequest(project=SHOP, session_id="second"))).items

    [left] = [item.words for item in items if item.section is api.Section.LEFT_OFF]
    assert left == "next time: ramp/soak editor"


@pytest.mark.anyio
async def test_what_begins_to_hold_later_is_told_then(service: Application) -> None:
    later = await added(service, "The login page is served by the new proxy.", valid_from=Millis(4_000_000_000_000))
    now = await added(
        service, "Checkout is for guests only, because nobody wants an account.", valid_from=Millis(1_000)
    )

    assert [item.ref for item in (await brief(service)).items] == [now]
    await service.call(PERSON, "update", api.UpdateRequest(ref=later, valid_from=Millis(1_000)))
    assert {item.ref for item in (await brief(service)).items} == {now, later}


@pytest.mark.anyio
async def test_what_an_agent_wrote_is_marked_in_a_brief_and_in_a_start(service: Application) -> None:
    await added(service, "Checkout is for guests only, because nobody wants an account.")
    draft = MemoryDraft(
        content="The carts are kept in the table basket.", type=MemoryType.FACT, scope=Scope.PROJECT, resource_id=SHOP
    )
    await service.call(AGENT, "add", draft)

    page = await brief(service)
    handed = await hook(service, started("second"), inject=True)

    said = {item.words: "an agent said)" in item.text for item in page.items}
    assert said == {
        "Checkout is for guests only, because nobody wants an account.": False,
        "The carts are kept in the table basket.": True,
    }
    assert all(item.text in handed for item in page.items)


@pytest.mark.anyio
async def test_an_agent_pins_nothing_and_the_person_pins_an_agents_words(service: Application) -> None:
    noted = MemoryDraft(content="The index is rebuilt by night.", scope=Scope.PROJECT, resource_id=SHOP)
    own = (await service.call(AGENT, "add", noted)).memory.id

    with pytest.raises(DeniedError, match="surfaced"):
        await service.call(AGENT, "add", replace(noted, content="Carts are red.", layer=Layer.SURFACED))
    with pytest.raises(DeniedError, match="surfaced"):
        await service.call(AGENT, "update", api.UpdateRequest(ref=own, layer=Layer.SURFACED))
    await service.call(PERSON, "update", api.UpdateRequest(ref=own, layer=Layer.SURFACED))
    pinned = (await brief(service)).items
    await service.call(AGENT, "update", api.UpdateRequest(ref=own, content="The index is rebuilt by day."))
    rewritten = (await brief(service)).items
    newer = await service.call(AGENT, "supersede", api.SupersedeRequest(ref=own, content="The index is never rebuilt."))

    assert [item.pinned for item in pinned] == [True]
    assert not any(item.pinned for item in rewritten), "other words than those that the person picked"
    assert newer.new.memory.layer is Layer.ARCHIVE


# Twenty starts


@pytest.mark.anyio
async def test_of_twenty_starts_most_lines_are_worth_it(service: Application) -> None:
    """Without an embedding model, so by the form of what was said alone. A rule of the person holds everywhere."""
    told: list[str] = []
    lasting: list[str] = []
    for session in sessions():
        shown = await service.call(PERSON, "context", api.ContextRequest(project=session.project))
        assert len(shown.handed) // 4 <= POLICY.start_tokens
        told += [item.text for item in shown.items if item.kind == "memory"]
        for turn in session.turns:
            draft = {"type": "user_message" if turn.is_person else "assistant_message", "text": turn.text}
            await service.call(
                PERSON,
                "ingest",
                api.IngestRequest(events=(_draft(session.id, session.project, turn.ts, **draft),)),
            )
            if turn.lasts:
                lasting.append(turn.text)
        await settled(service)

    right = [text for text in told if any(_alike(text, said) for said in lasting)]

    assert len(told) >= 20
    assert len(right) >= 0.9 * len(told)


def _draft(session: str, project: str, ts: int, *, type: str, text: str) -> Any:  # noqa: A002 - as the field is called
    trust = Trust.USER if type == "user_message" else Trust.AGENT
    return EventDraft(
        agent="crow", session_id=session, project=project, type=EventType(type), text=text, ts=Millis(ts), trust=trust
    )


def _alike(told: str, said: str) -> bool:
    one, other = (set(text.casefold().replace(",", " ").replace(".", " ").split()) for text in (told, said))
    return len(one & other) >= 0.6 * min(len(one), len(other))


# From outside


def test_a_brief_is_shown_and_pinned_on_the_command_line(shell: Shell) -> None:
    project = ("--project", "/home/ana/shop")
    shell.run("add", *project, "--type", "decision", "Checkout is for guests only, because nobody wants an account.")
    line = shell.json("brief", *project)["items"][0]

    pinned = shell.json("brief", *project, "--pin", line["ref"])["items"][0]
    _, shown, _ = shell.run("brief", *project, "--text")
    unpinned = shell.json("brief", *project, "--unpin", line["ref"])["items"][0]

    assert (line["pinned"], pinned["pinned"], unpinned["pinned"]) == (False, True, False)
    assert "Decided:" in shown
    assert "(pinned)" in shown


def test_a_line_of_the_identity_is_neither_pinned_nor_unpinned(shell: Shell) -> None:
    shell.run("context", "--identity", "name=Ana")
    shown = shell.json("list", "--layer", "identity")["entries"][0]["memory"]["id"]

    for option in ("--pin", "--unpin"):
        code, error = shell.error("brief", option, shown, "--json")
        assert (code, error["code"]) == (5, "conflict")
        assert "identity" in error["message"]
    assert "Ana" in shell.run("context")[1]


def test_a_pin_says_where_it_is_told_and_one_that_names_nothing_is_refused(shell: Shell) -> None:
    shop, bank = ("--project", "/home/ana/shop"), ("--project", "/home/ana/bank")
    shell.run("add", *shop, "--type", "decision", "Checkout is for guests only, because nobody wants an account.")
    ours = shell.json("brief", *shop)["items"][0]["ref"]
    mine = shell.json("add", "The person likes short answers.")["memory"]["id"]

    _, _, elsewhere = shell.run("brief", *bank, "--pin", ours, "--text")
    notes = shell.json("brief", *shop, "--pin", mine)["notes"]
    code, error = shell.error("brief", "--pin", "", "--json")
    unpinned, _ = shell.error("brief", *shop, "--unpin", mine, "--unpin", "nobody", "--json")

    assert "is pinned in /home/ana/shop: scrubjay brief --project /home/ana/shop" in elsewhere
    assert "in the starts of all projects" in notes[0]
    assert (code, error["message"]) == (2, "--pin names no memory")
    assert unpinned != 0
    assert shell.json("get", mine)["memory"]["layer"] == "surfaced", "nothing is changed where one is refused"


def test_a_library_reads_a_brief(tmp_path: Any) -> None:
    with Store(tmp_path / "m.db", project="/home/ana/shop") as store:
        store.add("Checkout is for guests only, because nobody wants an account.", "decision")

        assert [item.section for item in store.brief().items] == [api.Section.DECISION]
