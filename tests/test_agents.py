"""Many agents in one store: who contributed, how much on which of the person's days, and nothing of another project's."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cli_shell import EVENTS, Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, InvalidError
from scrubjay_shared.records import EventDraft, EventType
from service_calls import NOW, Opener, ingest, said

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
DAY = 24 * HOUR
MONDAY = Millis(1_795_392_000_000)  # 2026-11-23T00:00Z
OWN = Caller(principal=Principal.AGENT, agent="codex", project="own")
UNBOUND = Caller(principal=Principal.AGENT, agent="codex")


async def activity(service: Application, caller: Caller = PERSON, **asked: object) -> list[api.Activity]:
    request = api.ActivityRequest(**({"since": Millis(0)} | asked))  # type: ignore[arg-type]
    answer: api.ActivityResponse = await service.call(caller, "agent_activity", request)
    return list(answer.activity)


async def two_agents_in_two_projects(service: Application) -> None:
    await ingest(
        service,
        said("The lantern is lit", "a", agent="claude-code", project="own", ts=MONDAY),
        said("The lantern is out", "b", agent="codex", project="other", ts=MONDAY + DAY),
        said("The lantern is sold", "c", agent="gemini", project="other", ts=MONDAY + 2 * DAY),
        said("The lantern is nobody's", "d", agent="codex", ts=MONDAY + 3 * DAY),
    )


async def test_the_agents_are_listed_with_what_they_did_the_last_one_first(service: Application) -> None:
    await two_agents_in_two_projects(service)

    answer: api.AgentsResponse = await service.call(PERSON, "agents", api.AgentsRequest())

    assert [(each.name, each.events, each.sessions, each.projects) for each in answer.agents] == [
        ("codex", 2, 2, ("other",)),
        ("gemini", 1, 1, ("other",)),
        ("claude-code", 1, 1, ("own",)),
    ]
    assert (answer.agents[0].first, answer.agents[0].last) == (MONDAY + DAY, MONDAY + 3 * DAY)


@pytest.mark.parametrize(
    ("caller", "asked", "names"),
    [
        (PERSON, {}, {"claude-code", "codex", "gemini"}),
        (PERSON, {"project": "own"}, {"claude-code", "codex"}),
        (OWN, {}, {"claude-code", "codex"}),
        (UNBOUND, {}, {"codex"}),
    ],
)
async def test_own_found_others_absent_shared_found(
    service: Application, caller: Caller, asked: dict[str, str], names: set[str]
) -> None:
    await two_agents_in_two_projects(service)

    listed: api.AgentsResponse = await service.call(caller, "agents", api.AgentsRequest(**asked))
    active = await activity(service, caller, **asked)
    hits = (await service.call(caller, "recall", api.RecallRequest(query="lantern", kinds=("event",), **asked))).hits

    assert {each.name for each in listed.agents} == {each.agent for each in active} == names
    sees_codex_elsewhere = caller is PERSON and not asked
    [codex] = [each for each in listed.agents if each.name == "codex"]
    assert codex.events == (2 if sees_codex_elsewhere else 1), "what it did for nobody's project is everybody's to see"
    assert codex.projects == (("other",) if sees_codex_elsewhere else ())
    assert ("The lantern is out" in {hit.text for hit in hits}) is sees_codex_elsewhere


@pytest.mark.parametrize(
    ("agent", "texts"),
    [
        (None, {"lit", "out", "sold", "nobody's"}),
        ("codex", {"out", "nobody's"}),
        ("gemini", {"sold"}),
        ("nobody", set()),
    ],
)
async def test_recall_searches_all_agents_or_one(service: Application, agent: str | None, texts: set[str]) -> None:
    await two_agents_in_two_projects(service)

    request = api.RecallRequest(query="lantern", kinds=("event",), agent=agent)
    found = {hit.text.removeprefix("The lantern is ") for hit in (await service.call(PERSON, "recall", request)).hits}

    assert found == texts


async def test_another_agents_words_in_another_project_stay_hidden_when_it_is_named(service: Application) -> None:
    await two_agents_in_two_projects(service)

    request = api.RecallRequest(query="lantern", kinds=("event",), agent="gemini")

    assert (await service.call(OWN, "recall", request)).hits == ()
    assert await activity(service, OWN, agent="gemini") == []
    for operation, asked in (("agents", api.AgentsRequest), ("agent_activity", api.ActivityRequest)):
        with pytest.raises(DeniedError):
            await service.call(OWN, operation, asked(project="other"))


@pytest.mark.parametrize(
    ("utc_offset", "bucket", "day"),
    [
        (0, "day", "2026-11-22"),
        (120, "day", "2026-11-23"),  # half past one in the night in Helsinki
        (-300, "day", "2026-11-22"),
        (0, "week", "2026-11-16"),
        (120, "week", "2026-11-23"),
        (-300, "week", "2026-11-16"),
    ],
)
async def test_a_day_is_that_of_the_clock_where_it_happened(
    service: Application, utc_offset: int, bucket: str, day: str
) -> None:
    await ingest(service, said("Late", ts=MONDAY - HOUR // 2, utc_offset=utc_offset))

    assert [each.day for each in await activity(service, bucket=api.Bucket(bucket))] == [day]


@pytest.mark.parametrize("bucket", api.Bucket)
async def test_what_is_counted_by_days_and_weeks_is_what_happened(opened: Opener, bucket: api.Bucket) -> None:
    draw = random.Random(7)
    drafts = [
        EventDraft(
            agent=draw.choice(["claude-code", "codex"]),
            session_id=f"s{draw.randrange(9)}",
            type=draw.choice([EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE]),
            text=f"event {n}",
            ts=Millis(draw.randrange(0, 60 * DAY) + draw.choice([0, MONDAY])),
            utc_offset=draw.choice([-720, -300, 0, 120, 840]),
        )
        for n in range(400)
    ]

    expected: dict[tuple[str, str], list[EventDraft]] = defaultdict(list)
    for draft in drafts:
        assert draft.ts is not None
        local = datetime.fromtimestamp(draft.ts / 1000, UTC).astimezone(timezone(timedelta(minutes=draft.utc_offset)))
        day = local.date() - timedelta(days=local.weekday() if bucket is api.Bucket.WEEK else 0)
        expected[day.isoformat(), draft.agent].append(draft)
    async with opened(now=lambda: Millis(MONDAY + 61 * DAY)) as service:
        await ingest(service, *drafts, learn=False)
        found = await activity(service, bucket=bucket)

    assert {(each.day, each.agent): (each.events, each.prompts, each.sessions) for each in found} == {
        key: (
            len(events),
            sum(event.type is EventType.USER_MESSAGE for event in events),
            len({event.session_id for event in events}),
        )
        for key, events in expected.items()
    }
    assert [(each.day, each.agent) for each in found] == sorted(expected)


async def test_without_a_beginning_the_last_thirty_days_are_shown(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        await ingest(service, said("Old", ts=NOW - 31 * DAY), said("New", ts=NOW - 29 * DAY))

        answer: api.ActivityResponse = await service.call(PERSON, "agent_activity", api.ActivityRequest())

    assert [each.first for each in answer.activity] == [NOW - 29 * DAY]
    assert (answer.since, answer.until) == (NOW - 30 * DAY, None)


async def test_an_agent_that_nothing_came_from_is_said(service: Application) -> None:
    await two_agents_in_two_projects(service)

    answer = await service.call(PERSON, "agent_activity", api.ActivityRequest(agent="claude", since=Millis(0)))

    assert answer.activity == ()
    assert answer.notes == ("nothing came from an agent 'claude'; there are: codex, gemini, claude-code",)


async def test_a_time_that_is_none_is_refused(service: Application) -> None:
    with pytest.raises(InvalidError, match="since"):
        await activity(service, since=Millis(-1))


async def test_what_was_forgotten_is_not_counted(service: Application) -> None:
    ids = (await ingest(service, said("The key is under the mat", ts=MONDAY), said("Good", ts=MONDAY))).ids
    await service.call(PERSON, "forget", api.ForgetRequest(ref=ids[0]))

    assert [each.events for each in await activity(service)] == [1]
    answer: api.AgentsResponse = await service.call(PERSON, "agents", api.AgentsRequest())
    assert [each.events for each in answer.agents] == [1]


def test_the_command_lists_agents_and_their_days(shell: Shell) -> None:
    shell.json("ingest", stdin=EVENTS)

    listed = shell.json("agents")["agents"]
    assert listed == shell.json("agents", "list")["agents"]
    [agent] = listed
    active = shell.json("agents", "activity", "--agent", agent["name"], "--from", "1970-01-02", "--bucket", "week")
    assert sum(each["events"] for each in active["activity"]) == agent["events"] == 3
    assert {datetime.fromisoformat(each["day"]).weekday() for each in active["activity"]} == {0}
    assert shell.json("agents", "activity", "--to", "1971-01-01")["activity"] == []
