"""What people lay down in a few words is learned; what looks like it and is over soon is not."""

from __future__ import annotations

import pytest

from scrubjay.distill.standing import standing
from scrubjay_shared.records import MemoryType, Role, Scope
from test_distill_work import learned, turn

DECISION, PREFERENCE, INSIGHT, FACT, HOWTO = (
    MemoryType.DECISION, MemoryType.PREFERENCE, MemoryType.INSIGHT, MemoryType.FACT, MemoryType.HOWTO,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "content"),
    [
        ("keep functions under 40 lines", PREFERENCE, "The user asked: keep functions under 40 lines."),
        (
            "put new migrations under db/migrations",
            PREFERENCE,
            "The user asked: put new migrations under db/migrations.",
        ),
        ("name branches after the ticket", PREFERENCE, "The user asked: name branches after the ticket."),
        ("run the linter before committing", PREFERENCE, "The user asked: run the linter before committing."),
        ("wait for CI before merging", PREFERENCE, "The user asked: wait for CI before merging."),
        ("short answers please", PREFERENCE, "The user asked: short answers please."),
        ("no ORMs, plain SQL only", PREFERENCE, "The user asked: no ORMs, plain SQL only."),
        ("no seaborn pls, matplotlib only", PREFERENCE, "The user asked: no seaborn pls, matplotlib only."),
        ("no new dependencies without asking", PREFERENCE, "The user asked: no new dependencies without asking."),
        ("async everywhere, no threads", PREFERENCE, "The user asked: async everywhere, no threads."),
        ("call me Sam", PREFERENCE, "The user asked: call the user Sam."),
        ("no malloc after init", PREFERENCE, "The user asked: no malloc after init."),
        ("split views over 150 lines", PREFERENCE, "The user asked: split views over 150 lines."),
        ("no more than 3 CTEs deep", PREFERENCE, "The user asked: no more than 3 CTEs deep."),
        ("we're not doing accounts", DECISION, "We're not doing accounts."),
        ("we flash with openocd over the st-link", DECISION, "We flash with openocd over the st-link."),
        ("we ship to customers via debian packages", DECISION, "We ship to customers via debian packages."),
        ("add tests before you push", PREFERENCE, "The user asked: add tests before you push."),
        ("we follow semver", DECISION, "We follow semver."),
        ("we don't support IE", DECISION, "We don't support IE."),
        ("Stripe over PayPal because of SEPA", DECISION, "Stripe over PayPal because of SEPA."),
        ("sqlite is enough for now, no postgres", DECISION, "Sqlite is enough for now, no postgres."),
        (
            "the reason we pinned lodash to 4.17.20 is a bug in the webpack plugin",
            INSIGHT,
            "The reason we pinned lodash to 4.17.20 is a bug in the webpack plugin.",
        ),
        (
            "we forked the parser because upstream is dead",
            INSIGHT,
            "We forked the parser because upstream is dead.",
        ),
        (
            "the memory leak comes from the websocket handler not being closed",
            INSIGHT,
            "The memory leak comes from the websocket handler not being closed.",
        ),
        (
            "increasing the pool size to 20 fixed the timeouts",
            INSIGHT,
            "Increasing the pool size to 20 fixed the timeouts.",
        ),
        (
            "the test passes locally because the seed data differs",
            INSIGHT,
            "The test passes locally because the seed data differs.",
        ),
        ("to reset the test db run make db-reset", HOWTO, "To reset the test db run make db-reset."),
        ("use make dev to start everything", HOWTO, "Use make dev to start everything."),
        (
            "you have to restart the worker after changing the env file",
            HOWTO,
            "You have to restart the worker after changing the env file.",
        ),
        ("PRs need two approvals", FACT, "PRs need two approvals."),
        ("users are never hard-deleted", PREFERENCE, "Users are never hard-deleted."),
        ("the app must work offline", DECISION, "The app must work offline."),
        ("the default port is 8443", FACT, "The default port is 8443."),
        ("the primary color is #0055ff", PREFERENCE, "The primary color is #0055ff."),
        ("staging moved to stage.shop.io", FACT, "Staging moved to stage.shop.io."),
        ("prices are stored as floats", FACT, "Prices are stored as floats."),
        ("feature flags live in LaunchDarkly", FACT, "Feature flags live in LaunchDarkly."),
        ("error reports go to Sentry", FACT, "Error reports go to Sentry."),
        ("weights are in grams", FACT, "Weights are in grams."),
        ("all endpoints use basic auth", DECISION, "All endpoints use basic auth."),
        ("the team standup is at 9:30", FACT, "The team standup is at 9:30."),
        ("the database is mysql 5.7", FACT, "The database is mysql 5.7."),
        ("use tabs for indentation", DECISION, "Use tabs for indentation."),
        ("English for code comments", PREFERENCE, "The user asked: English for code comments."),
        ("Tom reviews the security PRs", FACT, "Tom reviews the security PRs."),
        ("Petra is my manager", FACT, "Petra is the user's manager."),
        (
            "we got rid of LaunchDarkly, flags are in the config table now",
            DECISION,
            "We got rid of LaunchDarkly, flags are in the config table now.",
        ),
        ("the design system moved from Figma to Penpot", DECISION, "The design system moved from Figma to Penpot."),
        ("tests don't need a running redis anymore", DECISION, "Tests don't need a running redis anymore."),
        ("changed my mind: camelCase for json keys", DECISION, "Changed my mind: camelCase for json keys."),
        ("commit messages are in German", PREFERENCE, "Commit messages are in German."),
        ("our customers are mostly dentists", FACT, "Our customers are mostly dentists."),
        ("my editor is neovim", FACT, "The user's editor is neovim."),
        ("my pronouns are they/them", FACT, "The user's pronouns are they/them."),
        ("I'm new to Rust", FACT, "The user is new to Rust."),
    ],
)
def test_what_is_laid_down_in_a_few_words_is_learned(text: str, kind: MemoryType, content: str) -> None:
    assert [(o.type, o.content) for o in learned(turn(text))] == [(kind, content)]


@pytest.mark.parametrize(
    "text",
    [
        "run the tests before pushing it",
        "to fix it run the tests",
        "the test fails because of this",
        "run the tests before committing this",
        "no changes please",
        "no errors, looks good",
        "short summary please",
        "errors everywhere",
        "console.log everywhere, please clean up",
        "the callback is never called",
        "the promise is never resolved",
        "there must be a bug in the parser",
        "the file must be missing",
        "the tests must be fixed",
        "the function moved to utils.py",
        "the count is 42",
        "the output is 0.35",
        "the commit is a1b2c3d",
        "the failing test is test_upload_retry",
        "call me back when it is done",
        "call me when done",
        "our users are complaining again",
        "I'm new here",
        "I'm on line 42",
        "we use it in three places",
        "put console logs in the handlers",
        "the second over the first because it is shorter",
        "cells are cut off at the end",
        "events are fired in the wrong order",
        "labels are printed in the console",
        "all buttons are gone",
        "every click triggers two requests",
        "the page doesn't load any more",
        "the focus moved to the next field",
        "the build is fine now",
        "the row is deleted by the trigger",
        "use that for the header",
        "React handles this wrong",
        "no output after the restart",
        "no errors in the console",
        "no instructions on how to upgrade",
        "we're not using the cache here",
        "we return null in that case",
        "split the file in two",
        "my terminal is frozen",
    ],
)
def test_what_is_over_soon_is_nothing_laid_down(text: str) -> None:
    assert standing(text.lower(), text) is None


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (
            (
                "ok so a bit of context: this is a Django app for a dental clinic in Graz, about 40 users. I'm the only"
                " developer. The receptionists use it all day so downtime during 8-18 is not acceptable."
            ),
            [
                "This is a Django app for a dental clinic in Graz, about 40 users.",
                "The user is the only developer.",
                "The receptionists use it all day so downtime during 8-18 is not acceptable.",
            ],
        ),
        (
            "wait, why did you add a dependency? I said no new dependencies. Remove it and write the 5 lines yourself",
            ["The user asked: no new dependencies."],
        ),
        (
            (
                "Great, works. Let's commit this and go on with the export. Invoices are numbered per year, and gaps are not"
                " allowed by Austrian law."
            ),
            ["Invoices are numbered per year, and gaps are not allowed by Austrian law."],
        ),
        (
            "The SMS provider is Twilio, but we want to move away from it. Don't build anything new on Twilio.",
            [
                "The SMS provider is Twilio, but we want to move away from it.",
                "The user asked: don't build anything new on Twilio.",
            ],
        ),
        (
            "django-cms doesn't support Django 5 yet, so we stay on 4.2 for now",
            ["Django-cms doesn't support Django 5 yet, so we stay on 4.2 for now."],
        ),
        ("can you check the backup? Should be a .dump file around 2GB", []),
        ("hm the notebook kernel died again, restart and run the first 3 cells", []),
    ],
)
def test_of_a_message_of_several_sentences_what_holds_is_kept_and_what_is_over_is_not(
    text: str, contents: list[str]
) -> None:
    answered = turn("OK.", 2, Role.ASSISTANT)

    assert [one.content for one in learned(turn(text), answered)] == contents


def test_what_is_wanted_everywhere_in_the_code_is_the_projects() -> None:
    [code] = learned(turn("async everywhere, no threads"))
    [person] = learned(turn("no emojis please"))

    [made] = learned(turn("I've set up a nightly backup to Backblaze B2, retention 90 days"))
    [own] = learned(turn("I've installed Arch Linux on my laptop"))

    assert code.scope is made.scope is Scope.PROJECT
    assert own.scope is Scope.USER
    assert person.scope is Scope.USER
