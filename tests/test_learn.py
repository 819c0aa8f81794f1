"""Learning from a text on purpose: what is kept of each sentence, why, and that it is what the distiller keeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_shell import Shell
from scrubjay import api
from scrubjay.api.caller import PERSON, Caller, Principal
from scrubjay.distill import distill
from scrubjay.distill.explain import explained
from scrubjay.policy import DEFAULT
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import DeniedError, InvalidError
from scrubjay_shared.records import Event, EventType, Role
from service_calls import NOW, listed

pytestmark = pytest.mark.anyio

TURN = """From now on we use uv, not poetry. can you fix the test? The page is blank again.

here is the log:
12:00:01 ERROR no disk left
12:00:02 ERROR no disk left
can you free some? I prefer small commits."""


async def learn(service: Application, text: str, **more: Any) -> api.LearnResponse:
    answer: api.LearnResponse = await service.call(PERSON, "learn", api.LearnRequest(text=text, **more))
    return answer


def said(text: str, project: str | None) -> Event:
    return Event(
        id="e1", device="d", agent="a", session_id="s", type=EventType.USER_MESSAGE, role=Role.USER, text=text,
        ts=Millis(NOW), dedupe_key="k", project=project,
    )  # fmt: skip


async def test_each_sentence_has_a_verdict_and_what_is_kept_is_stored(service: Application) -> None:
    answer = await learn(service, TURN, project="shop")

    kept = {verdict.sentence: verdict for verdict in answer.verdicts if verdict.memories}
    assert list(kept) == ["From now on we use uv, not poetry.", "I prefer small commits."]
    assert "in so many words" in kept["From now on we use uv, not poetry."].why
    refused = {verdict.sentence: verdict.why for verdict in answer.verdicts if not verdict.memories}
    assert "not said in so many words" in refused["can you fix the test?"]
    assert refused["12:00:01 ERROR no disk left\n12:00:02 ERROR no disk left"].startswith("pasted")
    assert [entry.memory.content for entry in answer.learned] == [
        memory.content for verdict in answer.verdicts for memory in verdict.memories
    ]
    why = await service.call(PERSON, "why", api.RefRequest(ref=answer.learned[0].memory.id))
    assert [source.grip.event_id_start for source in why.sources] == [answer.event_id]


async def test_a_dry_run_stores_nothing(service: Application) -> None:
    answer = await learn(service, TURN, project="shop", dry_run=True)

    assert sum(len(verdict.memories) for verdict in answer.verdicts) == 2
    assert (answer.learned, answer.event_id) == ((), "")
    assert await listed(service) == []
    assert (await service.call(PERSON, "events", api.EventsRequest())).events == ()


async def test_what_is_known_already_is_named_and_not_stored_twice(service: Application) -> None:
    first = await learn(service, "We decided to use SQLite for the store.")
    second = await learn(service, "Yesterday I said it: we decided to use SQLite for the store.")

    assert [entry.memory.id for entry in second.learned] == [entry.memory.id for entry in first.learned]
    assert len(await listed(service)) == 1


async def test_a_secret_is_taken_out_before_anything_is_shown(service: Application) -> None:
    answer = await learn(service, "We decided to use the key AKIA" + "Q7RTZ2MNBV4KLPWS for uploads.", dry_run=True)

    assert answer.redactions
    assert "Q7RTZ2MN" not in str(answer)


async def test_an_agent_does_not_speak_for_the_person_and_an_empty_text_is_refused(service: Application) -> None:
    agent = Caller(principal=Principal.AGENT, agent="crow", project="shop")
    with pytest.raises(DeniedError):
        await service.call(agent, "learn", api.LearnRequest(text="We use uv."))
    with pytest.raises(InvalidError, match="empty"):
        await learn(service, "  ")


SENTENCES = st.sampled_from(
    ["We use uv, not poetry.", "I prefer tabs.", "can you fix it?", "Root cause: the cache.", "> quoted line", "ok",
     "Never push to main.", "12:00:01 ERROR no disk left", "My goal is to ship in May.", "the page is blank again"]
)  # fmt: skip


@given(parts=st.lists(SENTENCES, min_size=1, max_size=6), project=st.sampled_from([None, "shop"]))
def test_the_verdicts_keep_what_the_distiller_keeps(parts: list[str], project: str | None) -> None:
    event = said(" ".join(parts), project)

    shown = {thought.content for verdict in explained(event, None, DEFAULT.distill) for thought in verdict.thoughts}

    assert shown == {observation.content for observation in distill([event]).observations}


def test_the_command_shows_why(shell: Shell) -> None:
    _, out, _ = shell.run("--text", "learn", "--explain", "--dry-run", "I hate ORMs. can you fix it?")

    assert "+ I hate ORMs." in out
    assert "pattern: preference" in out
    assert "- can you fix it?" in out
    assert "1 memory would be learned; nothing was stored" in out
    assert shell.json("list")["entries"] == []
