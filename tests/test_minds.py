"""Changes of mind in ordinary words: of people whose pairs nothing was fitted to, in a real store.

An earlier memory is there, a later one comes; then it is looked at what ended, and what the person is asked.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.lifecycle.minds import chance_of, likely
from scrubjay.lifecycle.supersession import NewStatement, Verdict
from scrubjay.policy import SupersessionPolicy
from scrubjay.service.application import Application
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import MemoryDraft, Scope, Trust
from service_calls import NOW, Opener, get
from test_supersession import APART

pytestmark = [pytest.mark.anyio]

POLICY = SupersessionPolicy()

ROOT = Path(__file__).resolve().parents[1]
DAY = 86_400_000
BEGAN = Millis(NOW - 300 * DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An earlier and a later statement of somebody, and what the later one does to the earlier."""

    who: str
    old: str
    new: str
    label: str


PAIRS = [Pair(**json.loads(line)) for line in (ROOT / "bench" / "minds" / "kept.jsonl").read_text().splitlines()]
ORDER = ("both", "doubtful", "replaces")
"""What holds beside the earlier statements comes first: they are still there then."""


@dataclass(slots=True)
class Seen:
    """How many pairs of each label there were, and of how many the earlier one ended, or the person is asked."""

    ended: Counter[str]
    asked: Counter[str]
    of: Counter[str]

    def noticed(self, label: str) -> float:
        """Return the share that ended or is asked about."""
        return (self.ended[label] + self.asked[label]) / self.of[label]


async def added(service: Application, content: str, project: str, at: int) -> str:
    draft = MemoryDraft(content=content, scope=Scope.PROJECT, resource_id=project, created_at=Millis(at))
    entry: api.Entry = await service.call(PERSON, "add", draft)
    return entry.memory.id


async def counted(service: Application) -> Seen:
    """Add the earlier statements of all, then the later ones."""
    olds: dict[tuple[str, str], str] = {}
    for one in PAIRS:
        if (one.who, one.old) not in olds:
            olds[one.who, one.old] = await added(service, one.old, one.who, BEGAN + len(olds))
    await service.call(PERSON, "settle", api.SettleRequest())
    pairs = sorted(PAIRS, key=lambda pair: ORDER.index(pair.label))
    for place, one in enumerate(pairs):
        at = BEGAN + DAY * (1 + place)
        await added(service, one.new, one.who, at)
    await service.call(PERSON, "settle", api.SettleRequest())
    answer = await service.call(PERSON, "conflicts", api.ConflictsRequest())
    doubts = {(each.old.id, each.new.content) for each in answer.doubts}
    seen = Seen(Counter(), Counter(), Counter())
    for place, one in enumerate(pairs):
        old = (await get(service, olds[one.who, one.old])).memory
        seen.of[one.label] += 1
        by = None if old.superseded_by is None else (await get(service, old.superseded_by)).memory
        if by is not None and BEGAN + DAY * (1 + place) == by.created_at:
            seen.ended[one.label] += 1
        elif (old.id, one.new) in doubts:
            seen.asked[one.label] += 1
    return seen


# One pair


def _statement(id_: str, content: str, at: int, trust: Trust = Trust.USER) -> NewStatement:
    return NewStatement(id=id_, content=content, scope=Scope.USER, resource_id=None, trust=trust, created_at=Millis(at))


def test_beside_what_forbids_others_may_be_forbidden_until_somebody_lifts_it() -> None:
    rules = [
        "Never force-push to main.",
        "Never push to main without a review.",
        "Always ask before a force-push to main.",
    ]
    for old in rules:
        assert [chance_of(old, new, POLICY) for new in rules] == [0, 0, 0]

    assert chance_of(rules[0], "Force-push to main is fine now.", POLICY) >= POLICY.ask


def test_of_what_was_written_to_be_mistaken_for_a_change_a_fifth_is_asked_about_at_most() -> None:
    asked = [pair for pair in APART if chance_of(*pair, POLICY) >= POLICY.ask]

    assert len(asked) <= 0.2 * len(APART)


def test_of_a_change_of_mind_one_half_may_be_what_was_learned() -> None:
    old = _statement("old", "We use a lock in redis.", 1)
    half = _statement("new", "An advisory lock in postgres is enough.", 9)
    turn = "actually no redis. an advisory lock in postgres is enough"

    assert likely(half, [old], POLICY) == []
    [found] = likely(half, [old], POLICY, around=turn)
    assert (found.old, found.new, found.verdict) == ("old", "new", Verdict.UNSURE)


def test_a_guess_is_about_one_earlier_statement_and_what_is_trusted_less_questions_nothing() -> None:
    old = [
        _statement("parcels", "Parcels go out with DHL.", 1),
        _statement("letters", "Letters and small parcels go out with the post on Mondays.", 2),
    ]
    new = "DHL keeps losing parcels, so we switched parcels to GLS."

    assert [one.old for one in likely(_statement("new", new, 9), old, POLICY)] == ["parcels"]
    assert [one.new for one in likely(old[0], [_statement("new", new, 9)], POLICY)] == ["new"]  # it came before
    assert likely(_statement("new", new, 1), old[:1], POLICY) == []  # which is the later one, nobody knows
    assert likely(_statement("new", new, 9, Trust.AGENT), old, POLICY) == []


# Pairs in a store


async def test_changes_of_mind_that_are_added_are_noticed_and_what_holds_on_ends_nothing(opened: Opener) -> None:
    async with opened(now=lambda: NOW) as service:
        seen = await counted(service)

    assert seen.noticed("replaces") >= 0.5
    assert seen.ended["both"] <= 0.02 * seen.of["both"]
    assert seen.noticed("both") <= 0.15
    assert seen.ended["doubtful"] == 0
