"""For whom a sentence counts: what holds everywhere is the person's, a rule about one repository is the project's."""

from __future__ import annotations

import pytest

from scrubjay.distill.scope import is_personal
from scrubjay_shared.records import MemoryType

FACT, PREFERENCE, GOAL, DECISION, INSIGHT = (
    MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.GOAL, MemoryType.DECISION, MemoryType.INSIGHT,
)  # fmt: skip

PERSONAL = [
    (FACT, "my name is Maya and I live in Malmö"),
    (FACT, "I'm colour blind, so no red and green in charts"),
    (FACT, "I am a backend developer in Oslo"),
    (FACT, "my machine has 16 GB of RAM and no GPU"),
    (FACT, "I'm on a Mac with fish as the shell"),
    (FACT, "I work at the harbour office"),
    (FACT, "my keyboard has the German layout"),
    (FACT, "my wife Elin is a nurse"),
    (FACT, "I speak German and a little Danish"),
    (FACT, "I have two monitors and a standing desk"),
    (FACT, "I live in the old town of Bergen"),
    (FACT, "my time zone is Europe/Oslo"),
    (PREFERENCE, "I prefer tabs over spaces"),
    (PREFERENCE, "I hate ORMs"),
    (PREFERENCE, "I love Rust"),
    (PREFERENCE, "I prefer dark themes"),
    (PREFERENCE, "my favorite editor is Helix"),
    (PREFERENCE, "I like small commits"),
    (PREFERENCE, "in all my projects I want conventional commits"),
    (PREFERENCE, "I'm allergic to peanuts"),
    (PREFERENCE, "in every repo we squash before a merge"),
    (PREFERENCE, "I can't stand mocks"),
]
ASKED_OF_THE_AGENT = [
    "keep your answers short",
    "please never apologise",
    "always explain in plain language what a command does",
    "never use emojis",
    "ask me before you install anything",
    "call me Maya",
    "don't explain basics to me",
    "always use conventional commits",
    "in all my projects use uv instead of poetry",
    "never use rebase in any repo",
    "answer in German",
    "remind me that my passport runs out in May",
]
OF_THE_PROJECT = [
    (FACT, "Petra reviews anything in services/ingest"),
    (FACT, "we use Postgres 16 for the events"),
    (FACT, "the login link uses UTC"),
    (FACT, "our staging runs in Frankfurt"),
    (FACT, "I moved the parser to its own crate"),
    (FACT, "my branch is based on the release"),
    (PREFERENCE, "I prefer squash merges in this repo"),
    (PREFERENCE, "I prefer the new grid in the Oslo view"),
    (PREFERENCE, "I want all migrations in `db/versions`"),
    (PREFERENCE, "I like the old endpoint better"),
    (PREFERENCE, "we prefer table tests"),
    (DECISION, "I decided to drop SQLite for the queue"),
    (DECISION, "let's go with FastAPI"),
    (DECISION, "we'll use NATS"),
    (INSIGHT, "I learned that the retry sends the mail twice"),
    (INSIGHT, "the fix was to pin numpy"),
    (GOAL, "our goal is to launch in May"),
    (GOAL, "I want to split the ingest service"),
    (FACT, "here I use the nightly compiler"),
    (FACT, "WCAG AA is a contract requirement, keyboard navigation has to work everywhere"),
]
ASKED_OF_THE_PROJECT = [
    "don't push to main",
    "use goose for the migrations",
    "never commit to the release branch",
    "always run `make check` before a commit",
    "don't touch services/ingest",
    "never deploy on a Friday to production",
    "always tag the release",
    "use uv, not poetry",
    "don't add tests to this module",
    "please never edit the generated files",
    "no mocks in our tests",
    "put the helpers into path_utils",
]


@pytest.mark.parametrize(("kind", "text"), PERSONAL)
def test_what_holds_everywhere_is_the_persons(kind: MemoryType, text: str) -> None:
    assert is_personal(text.lower(), kind, asked=False)


@pytest.mark.parametrize("text", ASKED_OF_THE_AGENT)
def test_how_one_wants_to_be_answered_is_the_persons(text: str) -> None:
    assert is_personal(text.lower(), PREFERENCE, asked=True)


@pytest.mark.parametrize(("kind", "text"), OF_THE_PROJECT)
def test_what_is_told_of_a_project_is_the_projects(kind: MemoryType, text: str) -> None:
    assert not is_personal(text.lower(), kind, asked=False)


@pytest.mark.parametrize("text", ASKED_OF_THE_PROJECT)
def test_a_rule_about_one_repository_is_the_projects(text: str) -> None:
    assert not is_personal(text.lower(), PREFERENCE, asked=True)
