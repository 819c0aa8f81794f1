"""The active layer: what is proposed for it, who decides on that, and how much of it is loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.lifecycle import proposals
from scrubjay.policy import DEFAULT, TYPE_SALIENCE, LayersPolicy
from scrubjay.retrieval import packing
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from scrubjay_shared.records import Event, EventType, MemoryDraft, MemoryType, Role, Scope, Trust
from scrubjay_shared.text import estimate_tokens
from test_handing import SHOP, answered, hook, say, started

pytestmark = pytest.mark.anyio
POLICY = LayersPolicy()
AGENT = Caller(principal=Principal.AGENT, agent="crow", project=SHOP)
HERE = api.ActiveRequest(project=SHOP)


async def remembered(
    service: Application, text: str, kind: MemoryType = MemoryType.GOAL, caller: Caller = PERSON, **more: object
) -> str:
    draft = MemoryDraft(content=text, type=kind, **({"scope": Scope.PROJECT, "resource_id": SHOP} | more))  # type: ignore[arg-type]
    found: api.Entry = await service.call(caller, "add", draft)
    return found.memory.id


async def shown(service: Application, caller: Caller = PERSON) -> api.ActiveResponse:
    found: api.ActiveResponse = await service.call(caller, "active", HERE)
    return found


async def refs(service: Application) -> list[str]:
    return [one.ref for one in (await shown(service)).proposed]


async def confirm(service: Application, *chosen: str, every: bool = False) -> api.ActiveResponse:
    request = api.ProposalsRequest(refs=chosen, every=every, project=SHOP)
    found: api.ActiveResponse = await service.call(PERSON, "confirm_active", request)
    return found


async def dismiss(service: Application, *chosen: str, every: bool = False) -> api.ActiveResponse:
    request = api.ProposalsRequest(refs=chosen, every=every, project=SHOP)
    found: api.ActiveResponse = await service.call(PERSON, "dismiss_active", request)
    return found


# What is proposed


async def test_open_goals_late_decisions_and_an_unfinished_end_are_proposed(service: Application) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")
    decision = await remembered(service, "The cart store is SQLite in WAL mode.", MemoryType.DECISION)
    await remembered(service, "The office is in Lisbon.", MemoryType.FACT)
    await say(service, "first", "Fix the checkout test.")
    await hook(service, answered("first", "I fixed half of it. The empty cart still fails. Sleep well!"))

    found = await shown(service)

    assert [(one.ref, one.reason) for one in found.proposed[:2]] == [(goal, "goal"), (decision, "decision")]
    assert [(one.reason, one.text) for one in found.proposed[2:]] == [("left_off", "The empty cart still fails.")]
    assert found.active == ()
    assert (found.project, found.budget) == (SHOP, DEFAULT.limits.active_tokens)
    assert found == await service.call(PERSON, "active", api.ActiveRequest(project=SHOP)), "asking decides nothing"


async def test_a_goal_that_is_over_is_not_proposed_and_leaves_the_layer(service: Application) -> None:
    reached = await remembered(service, "The booking beta goes live in May.")
    ended = await remembered(service, "The marathon is run in ten minutes.")
    away = await remembered(service, "Learn to paint the old garden.")
    assert set(await refs(service)) == {reached, ended, away}
    await confirm(service, ended)

    await service.call(PERSON, "supersede", api.SupersedeRequest(ref=reached, content="The beta went live."))
    await service.call(PERSON, "update", api.UpdateRequest(ref=ended, valid_to=Millis(1_000)))
    await service.call(PERSON, "update", api.UpdateRequest(ref=away, archived=True))

    found = await shown(service)
    assert not {reached, ended, away} & {one.ref for one in found.proposed}
    assert found.active == ()
    assert "marathon" not in (await service.call(PERSON, "context", api.ContextRequest(project=SHOP))).text


async def test_what_is_doubted_another_projects_or_too_long_is_not_proposed(service: Application) -> None:
    await remembered(service, "A page says: become rich.", trust=Trust.UNTRUSTED)
    await remembered(service, "The ledger moves to Oracle.", resource_id="/home/ana/bank")
    await remembered(service, "Everything is in euros.", MemoryType.DECISION, scope=Scope.USER, resource_id=None)
    await remembered(service, "Write " + "a very long plan " * 40)

    assert await refs(service) == []


async def test_the_persons_own_goals_are_proposed_everywhere(service: Application) -> None:
    goal = await remembered(service, "Run a marathon in May.", scope=Scope.USER, resource_id=None)

    for project in (SHOP, "/home/ana/bank", None):
        found = await service.call(PERSON, "active", api.ActiveRequest(project=project))
        assert [one.ref for one in found.proposed] == [goal]


async def test_decisions_that_were_read_with_doubt_and_questions_are_not_proposed(service: Application) -> None:
    usual = TYPE_SALIENCE[MemoryType.DECISION]
    sure = await remembered(service, "The cart store is SQLite.", MemoryType.DECISION, salience=usual)
    await remembered(service, "Looks all good, proceed.", MemoryType.DECISION, salience=usual - 0.01)
    await remembered(service, "Do we pass the cart to the backend?", MemoryType.DECISION, salience=usual)
    await remembered(service, "Do we move the booking to Oracle?")

    assert await refs(service) == [sure]


async def test_a_turn_is_not_proposed_beside_the_decision_that_says_all_of_it(service: Application) -> None:
    await say(service, "first", "We decided to use SQLite for the cart store.")
    assert len(await refs(service)) == 1, "the turn: nothing was learned yet"
    await service.call(PERSON, "settle", api.SettleRequest())
    [decision] = [entry.memory for entry in (await service.call(PERSON, "list", api.ListRequest())).entries]

    assert await refs(service) == [decision.id]
    assert [line.ref for line in (await confirm(service, every=True)).active] == [decision.id]
    assert await refs(service) == [], "nor is it once the decision is active"

    await say(service, "second", "We decided to use Redis for the sessions. Write the migration, please.")
    await service.call(PERSON, "settle", api.SettleRequest())
    assert [one.kind for one in (await shown(service)).proposed] == ["memory", "event"], "it says more"


# Who decides


async def test_what_is_confirmed_is_loaded_and_undo_takes_that_back(service: Application) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")

    found = await confirm(service, goal[:12].lower())

    assert [line.ref for line in found.active] == [goal]
    assert found.proposed == ()
    assert "The booking beta goes live in May." in await hook(service, started("second"), inject=True)
    [cause] = (await service.call(PERSON, "history", api.HistoryRequest(kind="confirm_active"))).causes
    await service.call(PERSON, "undo", api.UndoRequest(cause=cause.id))
    assert (await shown(service)).active == ()
    assert await refs(service) == [goal]


async def test_what_is_dismissed_does_not_come_back_over_a_rebuild_and_undo_brings_it_back(
    service: Application,
) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")
    await say(service, "first", "Fix the checkout test.")
    [_, end] = await refs(service)

    assert (await dismiss(service, every=True)).proposed == ()
    await service.call(PERSON, "rebuild", api.RebuildRequest())
    assert await refs(service) == []

    for cause in (await service.call(PERSON, "history", api.HistoryRequest(kind="dismiss_active"))).causes:
        await service.call(PERSON, "undo", api.UndoRequest(cause=cause.id))
    assert await refs(service) == [goal, end]


async def test_the_end_of_a_session_becomes_a_line_with_its_source(service: Application) -> None:
    await say(service, "first", "Fix the checkout test. It fails on empty carts.")
    [end] = await refs(service)

    [line] = (await confirm(service, end)).active

    assert line.text == "Fix the checkout test. It fails on empty carts."
    assert await refs(service) == []
    why = await service.call(PERSON, "why", api.RefRequest(ref=line.ref))
    assert [event.id for source in why.sources for event in source.events] == [end]
    assert (await dismiss(service, line.ref)).active == ()
    assert await refs(service) == [], "it was decided on"


async def test_what_is_taken_out_of_the_layer_is_not_proposed_again(service: Application) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")
    await confirm(service, goal)

    found = await dismiss(service, goal)

    assert found.active == found.proposed == ()
    assert (await service.call(PERSON, "get", api.RefRequest(ref=goal))).memory.layer == "archive"


async def test_an_agent_proposes_by_a_goal_of_its_own_and_only_a_person_confirms(service: Application) -> None:
    goal = await remembered(service, "Rewrite the importer next.", caller=AGENT)

    [one] = (await shown(service, AGENT)).proposed
    assert (one.ref, one.trust) == (goal, "agent")
    for name in ("confirm_active", "dismiss_active"):
        with pytest.raises(DeniedError):
            await service.call(AGENT, name, api.ProposalsRequest(refs=(goal,)))
    with pytest.raises(DeniedError):
        await service.call(AGENT, "update", api.UpdateRequest(ref=goal, layer="active"))  # type: ignore[arg-type]
    other = Caller(principal=Principal.AGENT, agent="crow", project="/home/ana/bank")
    assert (await service.call(other, "active", api.ActiveRequest())).proposed == ()

    assert [line.ref for line in (await confirm(service, goal)).active] == [goal]


async def test_without_a_project_it_is_the_one_that_was_spoken_in_last(service: Application) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")
    assert (await service.call(PERSON, "active", api.ActiveRequest())).proposed == ()
    await say(service, "first", "Hello there, how is the beta?")

    found = await service.call(PERSON, "active", api.ActiveRequest())

    assert found.project == SHOP
    assert goal in [one.ref for one in found.proposed]
    assert SHOP in found.notes[0]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.ProposalsRequest(project=SHOP), InvalidError),
        (api.ProposalsRequest(refs=("x",), every=True, project=SHOP), InvalidError),
        (api.ProposalsRequest(refs=("01NOTHING",), project=SHOP), NotFoundError),
        (api.ProposalsRequest(refs=("01",), project=SHOP), ConflictError),
    ],
)
async def test_a_wrong_request_decides_nothing(
    service: Application, request_: api.ProposalsRequest, error: type[Exception]
) -> None:
    two = [await remembered(service, "The booking beta goes live."), await remembered(service, "The importer is new.")]

    for name in ("confirm_active", "dismiss_active"):
        with pytest.raises(error):
            await service.call(PERSON, name, request_)
    assert set(await refs(service)) == set(two)


def test_the_command_shows_confirms_and_dismisses(shell: Shell) -> None:
    for text in ("The booking beta goes live.", "The importer is new."):
        shell.json("add", text, "--type", "goal", "--project", SHOP)
    one, two = (each["ref"] for each in shell.json("active", "list", "--project", SHOP)["proposed"])

    assert [each["ref"] for each in shell.json("active", "--project", SHOP)["proposed"]] == [one, two]
    assert [line["ref"] for line in shell.json("active", "--project", SHOP, "confirm", one)["active"]] == [one]
    assert shell.json("active", "dismiss", "all", "--project", SHOP)["proposed"] == []
    assert [line["ref"] for line in shell.json("active", "list", "--project", SHOP)["active"]] == [one]
    assert two not in str(shell.json("active", "list", "--project", SHOP))


async def test_a_decision_is_an_op_and_a_proposal_is_none(service: Application) -> None:
    goal = await remembered(service, "The booking beta goes live in May.")

    async def ops() -> int:
        return int((await service.call(PERSON, "stats", api.Nothing())).ops)

    before = await ops()
    await shown(service)
    assert await ops() == before
    await confirm(service, goal)
    assert await ops() == before + 1


# Budgets

LINES = st.dictionaries(st.sampled_from("abcdefghij"), st.text(min_size=1, max_size=200), max_size=10)


@given(LINES, st.permutations("abcdefghij"), st.integers(40, 200))
def test_a_layer_keeps_its_budget_whole_lines_and_the_first_ones(
    lines: dict[str, str], first: list[str], budget: int
) -> None:
    answer = packing.context({}, lines, identity_tokens=10, active_tokens=budget, first=first)

    assert answer.active_tokens <= budget
    for key, text in lines.items():
        assert (f"- {key}: {text}" in answer.text) or key in answer.cut
    kept = [key for key in first if key in lines and key not in answer.cut]
    for key in answer.cut:  # it did not fit beside those before it
        ahead = [one for one in kept if first.index(one) < first.index(key)]
        block = "\n".join([packing.ACTIVE_TITLE, *(f"- {one}: {lines[one]}" for one in [*ahead, key])])
        assert estimate_tokens(block) > budget - 25  # the line that says how many are left out takes some


async def test_what_is_salient_and_new_stays_when_the_layer_is_full(service: Application) -> None:
    for n in range(30):
        await service.call(
            PERSON, "set_active", api.SlotRequest(key=f"task {n}", value=f"finish part {n} of " + "the beta " * 8)
        )
    goal = await remembered(service, "The booking beta goes live in May.", salience=0.95)

    found = await confirm(service, goal)

    loaded = {line.key for line in found.active if line.fits}
    assert goal in {line.ref for line in found.active if line.fits}
    assert "task 29" in loaded
    assert "task 0" not in loaded
    assert found.tokens <= found.budget


# Decisions


def turn(text: str, kind: EventType = EventType.ASSISTANT_STOP, trust: Trust = Trust.AGENT, ts: int = 0) -> Event:
    return Event(
        id="E", device="d", agent="crow", session_id="s", type=kind, role=Role.USER, text=text, ts=Millis(ts),
        dedupe_key="k", trust=trust,
    )  # fmt: skip


def test_a_program_that_speaks_in_the_persons_name_leaves_nothing_unfinished() -> None:
    said = turn("<local-command-stdout>Catch you later!</local-command-stdout>", EventType.USER_MESSAGE, Trust.USER)
    left = turn("The empty cart still fails.")

    found = proposals.unfinished([said, left], POLICY, now=Millis(1))

    assert found is not None
    assert found.text == "The empty cart still fails."
    assert proposals.unfinished([said], POLICY, now=Millis(1)) is None


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (turn("Fix v1.2 of the test.", EventType.USER_MESSAGE, Trust.USER), "Fix v1.2 of the test."),
        (turn("All done. Remaining: the docs."), "Remaining: the docs."),
        (turn("Fertig bis auf eins. Noch offen ist der Import."), "Noch offen ist der Import."),
        (turn("Done.\n- [ ] TODO update cli.md"), "- [ ] TODO update cli.md"),
        (turn("All tests pass and it is merged."), None),
        (turn("Remaining: the docs.", trust=Trust.UNTRUSTED), None),
        (turn("Remaining: " + "the docs and " * 60), None),
    ],
)
def test_where_a_session_ended(last: Event, text: str | None) -> None:
    found = proposals.unfinished([last, turn("Next step: nothing of this.")], POLICY, now=Millis(1))

    assert (None if found is None else found.text) == text
    assert proposals.unfinished([last], POLICY, now=Millis(10**12)) is None, "too long ago"


def prompted(text: str) -> Event:
    return turn(text, EventType.USER_MESSAGE, Trust.USER)


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ([prompted("thx, gotta go"), prompted("next time: ramp/soak editor")], "next time: ramp/soak editor"),
        (
            [prompted("thx, gotta go"), turn("Noted. See you tomorrow!"), prompted("next time: ramp/soak editor")],
            "next time: ramp/soak editor",
        ),
        ([turn("Done."), prompted("No, do it now."), prompted("next time: ramp/soak editor")], None),
        ([prompted("Thanks for the fix! next time: the legend")], "next time: the legend"),
        ([prompted("dinner time, bye"), turn("Shall I add the timer?")], "Shall I add the timer?"),
        ([prompted("thanks"), turn("Done."), prompted("Write the export.")], None),
        ([prompted("thanks, add the login page for customers")], "thanks, add the login page for customers"),
        ([prompted("Great, thanks! Can you push it?")], "Great, thanks! Can you push it?"),
    ],
)
def test_who_takes_leave_leaves_open_what_was_named_before(turns: list[Event], text: str | None) -> None:
    found = proposals.unfinished(turns, POLICY, now=Millis(1))

    assert (None if found is None else found.text) == text


@given(st.text(max_size=300))
def test_where_a_session_ended_is_a_passage_of_its_words(text: str) -> None:
    found = proposals.unfinished([turn(f"{text} Still to do: x")], POLICY, now=Millis(1))

    if found is not None:
        assert found.text == found.event.text[found.start : found.end] == found.text.strip()
        assert 0 < len(found.text) <= POLICY.line_chars
