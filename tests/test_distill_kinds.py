"""What kind of memory a chosen sentence is, and which sentences of a person are over soon."""

from __future__ import annotations

import pytest

from scrubjay.distill.kinds import kind_of
from scrubjay.distill.passing import is_passing


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("the export button should be left of the search field", "decision"),
        ("add a column for the harbour master's initials", "decision"),
        ("we store the berths as integers", "decision"),
        ("each boat has exactly one berth per night", "fact"),
        ("the tide tables are in data/tides.csv", "fact"),
        ("please discuss the schema with me before you change it", "preference"),
        ("reuse the existing helpers wherever that is feasible", "preference"),
        ("never touch the vendored files", "preference"),
        ("tell me the plan before you push", "preference"),
        ("why do we write the prices into the page instead of the settings?", "preference"),
        ("no hard coded prices in the templates", "preference"),
        ("a booking must never be deleted", "preference"),
        ("i also dont like the idea of showing the guests' names", "preference"),
        ("the free berths in a lighter colour, and the names in bold", "preference"),
        ("lets use a table driven test for the tariffs", "preference"),
        ("keep your answers short, no long explanations", "preference"),
        ("ask before you install a new dependency", "preference"),
        ("keep the diff as small as possible", "preference"),
        ("functions should be short, at most 30 lines", "preference"),
        ("stick to the style of the files around it", "preference"),
        ("i can't stand long lists of bullet points", "preference"),
        ("the header looks too crowded", "preference"),
        ("the cli gets a --dry-run flag, please", "decision"),
        ("sessions should expire after 30 minutes", "decision"),
        ("we have three services: billing, tides and mail", "fact"),
        ("the api returns 404 where a berth is not found, even on errors", "fact"),
        ("in the long run this should take the place of the notebook", "goal"),
        ("the idea is to have one app for all harbours", "goal"),
        ("we want to launch in april", "goal"),
        ("i'd rather keep the berths as integers", "preference"),
        ("we agreed to hide the prices of guests", "decision"),
        ("it is decided: no colour for taken berths", "decision"),
        ("we're dropping the old tariff table", "decision"),
        ("rename the berth table throughout the project", "decision"),
        ("the prices were not read from the settings but are made in tariffs.py", "fact"),
        ("i already changed the order of the berths", "fact"),
        ("we're back on the harbour branch", "fact"),
        ("the map is served from http://localhost:8080/map", "fact"),
        ("the delivery by mail runs since 1 March", "fact"),
        ("i would like to build a page where guests book a berth", "goal"),
        ("goal is to have payments working by june", "goal"),
        ("i noticed the mails go out twice because the retry has no key", "insight"),
        ("it turned out that the jitter came from the cable, not from our code", "insight"),
        ("to release it, run `make release VERSION=1.2`", "howto"),
        ("start the stack with `docker compose up -d`", "howto"),
    ],
)
def test_a_persons_sentence_is_called_what_its_cues_say(said: str, kind: str) -> None:
    assert kind_of(said).value == kind


@pytest.mark.parametrize(
    "said",
    [
        "the booking page does not load any more",
        "none of the charts are filled with any data",
        "i do not see any berths on the page",
        "it seems you removed the export button",
        "the labels are not vertically aligned, can you check",
        "after your change the map is gone",
        "now run the linter and the tests",
        "that did not help, lets roll back to yesterday's version",
        "remove this line from the help text",
        "would it make sense to use a queue?",
        "the rules for a booking are as follows:",
        "fix the prices first, then the rest",
        "commit and push to main",
        "the filters dont get saved",
        "lets leave the map out for now and look at the prices",
        "can you look at the logs",
        "lets address 21 with an addition to the tariffs",
        "the comment on line 633 says that the mail goes out at noon",
        "the map is slow now, could you find out why",
        "we see no boats on the map",
        "the chart remains unchanged when the season is changed",
        "all of a sudden the tides are gone",
        "for the buffer we could use sled or sqlite, what do u think",
        "double check the tariffs of the second page",
        "no rows in the table of tides",
    ],
)
def test_a_complaint_a_step_and_a_thought_aloud_are_over_soon(said: str) -> None:
    assert is_passing(said)


@pytest.mark.parametrize(
    "said",
    [
        "prices are stored in cents, not in euros",
        "the page should never show more than ten berths",
        "the export does not show guests any more, please always keep it that way",
        "commit messages are always in english",
        "can we remove the custom mode from the options",
        "lets keep 0.1 for the grid, dont change these anymore",
        "guests of the sailing school have the six long berths on wednesdays",
    ],
)
def test_what_lasts_is_not_over_soon(said: str) -> None:
    assert not is_passing(said)
