"""Which earlier statement a later one replaces: cases of general English, and the laws that hold for all of them."""

from __future__ import annotations

import pytest

from scrubjay.lifecycle.supersession import NewStatement, Verdict, successions, verdict_of
from scrubjay.policy import SupersessionPolicy
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Scope, Trust

POLICY = SupersessionPolicy()

REPLACED = [
    # another value of what a thing has once
    ("The port is 8080.", "The port is 9090."),
    ("The port is 8080", "The port is now 9090."),
    ("port is 8080", "port is 9090"),
    ("The default branch is master.", "The default branch is now trunk."),
    ("Postgres 16 is the database.", "MySQL 9 is the database."),
    ("The deadline is Friday.", "The deadline is Monday."),
    ("The reviewer is Petra.", "The reviewer is Jonas."),
    ("The on-call lead is Petra Holm.", "The on-call lead is Jonas Berg."),
    ("The geofence service is written in Rust.", "The geofence service is written in Go."),
    ("Fence is written in rust.", "Fence is written in go now."),
    ("Anna lives in Oslo.", "Anna lives in Bergen."),
    ("The API listens on 8000.", "The API listens on 8443."),
    ("We use Postgres as the database.", "We use MySQL as the database."),
    ("We use Jest for frontend tests.", "We use Vitest for frontend tests now."),
    ("The retry limit is 3.", "The retry limit is going to be 5."),
    ("The release is scheduled for May 3.", "The release is scheduled for June 7."),
    ("Our staging server is hosted in Frankfurt.", "Our staging server is hosted in Dublin."),
    # named, and ended
    ("We use Postgres 16 for the events table.", "We moved from Postgres to MySQL 9."),
    ("We use Postgres 16.", "We moved from Postgres to MySQL 9 because of licences."),
    ("We use poetry.", "We use uv instead of poetry."),
    ("We use PagerDuty for alerts.", "We switched alerts from PagerDuty to Opsgenie."),
    ("We run the build on Jenkins.", "The build moved away from Jenkins."),
    ("The cache uses Redis.", "We replaced Redis with Memcached for the cache."),
    ("The queue uses RabbitMQ.", "RabbitMQ was replaced by Kafka in the queue."),
    ("The login page uses jQuery.", "jQuery is dropped from the login page."),
    ("We use mocks in repository tests.", "We stopped using mocks in repository tests."),
    ("The fence service is in Rust.", "No Rust, the fence service is going to be Go."),
    ("We support Windows.", "We no longer support Windows."),
    ("We use Meilisearch for the search.", "Meilisearch has been switched off since May."),
    ("We use poetry.", "We use uv insted of poetry."),
    ("Keep at most 14 days of readings on the gateway.", "Make it 30 days of readings insted of 14."),
    ("We use pnpm in this repo.", "We moved from pnpm to bun on 24 November 2026."),  # when is not what
    ("We use pnpm in this repo, never npm.", "We switched from pnpm to bun by the way, so use bun."),
    ("We use jest for tests.", "In the week of 16 November 2026 we replaced jest with vitest."),
    ("We store sessions in Redis.", "As of 24 November 2026 sessions are stored in Postgres instead of Redis."),
    ("Deploys go out every Friday.", "Deploys go out every Tuesday, no longer on Fridays."),  # all else is said again
    ("Let's use Zustand for the state.", "Scrap Zustand, we go with Redux Toolkit."),  # and what comes instead
    ("We decided to use Kafka for the events.", "Let's drop Kafka and use NATS."),
    ("We deploy with Ansible.", "We dont deploy with Ansible anymore, its all Terraform."),
    (
        "Use the legacy client for uploads.",
        "The user asked: don't use the legacy client for uploads anymore, use the new SDK.",
    ),
    ("Keep the retry count at 3.", "Make the retry count 5."),  # an order to set something says what it is
    ("The request timeout is 30s.", "Set the request timeout to 60s."),
    ("Our node version is 20.", "We're on node 22 now."),  # another version of what is named
    ("We run Postgres 14 on staging and production.", "We upgraded staging and production to Postgres 16."),
    ("We use Tailwind v3.", "We upgraded to Tailwind v4."),
    ("We run Python 3.11 in production.", "Bump production to Python 3.12."),
    ("The user asked: please answer in German.", "The user asked: please answer in English from now on."),
    ("The env var for the key is called PAY_KEY.", "We renamed the env var PAY_KEY to PAYMENTS_API_KEY."),
    ("We store images on local disk.", "Images go to S3 now instead of local disk."),
    ("The nightly job runs at 2am.", "Actually the nightly job runs at 4am now."),
    ("The cache keeps 500 rows.", "The cache keeps 800 rows now."),
    # told as a change, or as what is so now
    ("The bundle limit is 200 kB.", "We raised the bundle limit to 250 kB."),
    ("Max upload size is 10 MB.", "Set the max upload size to 25 MB."),
    ("The cache ttl is 5 minutes.", "We lowered the cache ttl to 60 seconds."),
    ("The price is 9 euros a month.", "The price went up from 9 to 12 euros a month."),
    ("The database is mysql 5.7.", "We migrated the database to mysql 8."),
    ("The docs are hosted on readthedocs.", "We moved the docs to github pages."),
    ("Our CI runs on CircleCI.", "CI is on GitHub Actions since Monday."),
    ("The default locale is en_US.", "Default locale should be de_DE from now on."),
    ("Use tabs for indentation.", "Changed my mind, use 2 spaces for indentation."),
    ("The user prefers long explanations.", "I'd rather have short explanations now."),
    ("We use jest for unit tests.", "Vitest replaced jest in the week of 16 November 2026."),
    ("Deploys happen on Fridays.", "No more Friday deploys, we deploy on Tuesdays."),
    ("Prices are stored as floats.", "Prices are stored as integer cents now, not floats."),
    ("Ines is the product owner.", "Ines left, Paul is the product owner now."),
    ("The docs are written in RST.", "Docs are markdown now, RST is no longer used."),
    ("The standup is at 9 o'clock.", "The standup is at 10 now."),
    ("The rate limit is 100 requests per minute.", "The rate limit is up to 300 requests per minute."),
    # the other polarity
    ("We squash commits.", "We don't squash commits any more."),
    ("Always rebase before merging.", "Never rebase before merging."),
    ("Telemetry is enabled by default.", "Telemetry is disabled by default."),
    ("I like tabs.", "I hate tabs."),
    ("Push to main directly.", "Don't push to main directly."),
    ("The build is not reproducible.", "The build is reproducible."),
    ("The port is 8080.", "The port is no longer 8080."),
]

UNSURE = [
    ("The staging database runs on Postgres 14.", "We upgraded staging to Postgres 16."),
    ("The mobile app uses Expo.", "We ejected from Expo, its bare React Native now."),
    ("Let's switch to Meilisearch.", "ok then no Meilisearch"),
    ("The team standup is at 9:30.", "Standup moved to 10:00."),  # the team's?
    ("The mobile team uses Jira.", "The mobile team switched to Linear."),  # for what?
    ("The issue is in the parser.", "The issue is in the lexer now."),  # the same one?
    ("I eat lunch at noon.", "I eat lunch at one o'clock until the project ends."),  # for a time
    ("Bills are delivered to customers by e-mail, as PDF files.", "The delivery by e-mail has been switched off."),
    ("Let's switch to Meilisearch.", "No Meilisearch after all, we stay with Postgres full-text search."),
    ("We use Postgres.", "We want to move from Postgres to MySQL next year."),  # planned
    ("The port is 8080.", "For now the port is 9090."),  # for a time
    ("Our API uses Postgres 16.", "We moved from Postgres to MySQL 9."),  # whose database?
    ("We use Jest for frontend tests.", "We use Vitest for frontend tests."),  # instead, or beside it?
    ("Petra is Swedish.", "Petra is German."),
    ("We use tabs.", "We use spaces now."),
    ("We bill customers monthly.", "We bill customers quarterly now."),
    ("The CLI supports JSON and YAML output.", "The CLI no longer supports YAML output."),  # a part of it
    ("The worker uses 4 threads and 2 GB of memory.", "The worker uses 8 threads now."),
    ("Deploys go out on Mondays and Fridays.", "Deploys go out no longer on Fridays."),
    ("Standups are at 9:00 in room Fjord.", "Standups are now in room Delta."),
    ("The cafeteria closes at 15:00.", "During Ramadan the cafeteria closes at 13:00."),  # for a time
    ("Alerts go to the ops channel.", "Until Monday alerts go to the incident channel."),
    ("Paul approves expenses.", "Ruth approves expenses while Paul is on leave."),
]

APART = [
    ("We use vitest for unit tests.", "We use playwright for e2e tests now."),  # each for its own
    ("The client is Bosch.", "The client is happy now."),  # no other value of it
    ("The queue is rabbitmq 3.12.", "The queue is empty now."),
    ("The server is in Frankfurt.", "The server is down now."),
    ("Our CI runs on CircleCI.", "CI is on fire since Monday."),
    ("The report is due on Friday.", "The report is 12 pages now."),
    ("The meeting is at 9:30.", "The meeting moved to room 4."),
    ("The frontend is in Vue.", "The frontend is on port 5173 now."),
    ("The docs are written in markdown.", "The docs are hosted on netlify now."),
    ("The docs are written in markdown.", "The docs are in the wiki now."),
    ("The logo is blue.", "The logo is in assets/ now."),
    ("Alerts go to Slack.", "Alerts are stored in Postgres now."),
    ("Our API is versioned by date.", "Our API is documented with Redoc now."),
    ("The build takes 10 minutes.", "The build is at 80% now."),
    ("Invoices are sent by email.", "Invoices are in German now."),
    ("The free plan has 3 projects.", "The pro plan has 20 projects now."),
    ("Orders are archived after 90 days.", "Carts are deleted after 30 days."),
    ("The test db needs 3 retries.", "Add a header, since this depends on 4 retries."),
    ("Set the timeout to 30s.", "Set the retry timeout to 60s."),
    ("The client needs Node 18 because of the SDK.", "We upgraded to Node 20."),
    ("The bug appears on iOS 17.", "We updated the test phone to iOS 18."),
    ("Chunk 1 of the migration is done.", "Chunk 2 of the sync is ready now."),
    ("The API listens on port 8080.", "Port 9090 is used for metrics now."),
    ("The dev port is 8080.", "The test port is 9090."),  # another thing
    ("Anna lives in Oslo.", "Petra lives in Oslo."),
    ("Anna lives in Oslo.", "Petra lives in Bergen."),
    ("I like tea.", "I like coffee."),  # both may hold
    ("We use ruff.", "We use mypy."),
    ("We use Redis for sessions.", "We moved the queue from Redis to Kafka."),
    ("We use pytest.", "We moved from Jenkins to Actions."),
    ("Jonas is a potter.", "Jonas is a father."),
    ("The test run took 34 seconds.", "The test run took 21 seconds."),  # both happened
    ("The port is 8080.", "The port is 8080."),
    ("The port is 8080.", "the port is 8080"),
    ("We use Postgres.", "Should we move from Postgres to MySQL?"),  # a question
    ("We use Postgres.", "Maybe we could use MySQL instead of Postgres."),  # a thought
    ("We use Postgres.", "If we moved from Postgres to MySQL, it would be slower."),
    ("We don't use Postgres.", "We moved from Postgres to MySQL."),  # it said so already
    ("We moved from Postgres to MySQL.", "We use MySQL instead of Postgres."),
    ("The parser reads dates.", "The printer writes dates."),
    ("The API has 12 endpoints.", "The API has a rate limit of 100."),
    ("The meeting with Nordlys is on Friday.", "The meeting with Havfrue is on Monday."),
    ("The test took 3 seconds.", "The build took 9 seconds."),
    ("Ruth works at Bosch.", "Ruth works from home on Fridays."),
    ("We deploy on Thursdays.", "We deploy with Ansible."),
    ("We use Redis for sessions.", "Drop Redis from the queue, use Kafka."),
    ("We use Redis for sessions.", "Drop Redis, the queue is fine without."),
    ("We use Redis for sessions.", "The queue dropped Redis and uses Kafka."),
    ("We use bun, never pnpm.", "We moved from pnpm to bun on 24 November 2026."),
    ("Paul visited Lima in 2019.", "Paul visited Quito in 2021."),
    ("The worker restarts after 3 failures.", "The proxy restarts after 5 failures."),
    ("Restart the worker after a deploy.", "Restart the proxy after a deploy."),
    ("Tests live in tests/unit.", "Docs live in docs/api."),
    ("The bug was in the parser.", "The bug was in the lexer."),
    ("Wir nehmen Postgres.", "Wir nehmen MySQL."),  # no English: nothing
]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_later_statement_replaces(old: str, new: str) -> None:
    told = verdict_of(old, new, POLICY)

    assert told is not None
    assert told[0] is Verdict.SUPERSEDES


@pytest.mark.parametrize(("old", "new"), UNSURE)
def test_a_later_statement_may_replace(old: str, new: str) -> None:
    told = verdict_of(old, new, POLICY)

    assert told is not None
    assert told[0] is Verdict.UNSURE


@pytest.mark.parametrize(("old", "new"), APART)
def test_statements_that_stand_beside_each_other(old: str, new: str) -> None:
    assert verdict_of(old, new, POLICY) is None


def _statement(id_: str, content: str, at: int) -> NewStatement:
    return NewStatement(
        id=id_, content=content, scope=Scope.USER, resource_id=None, trust=Trust.USER, created_at=Millis(at)
    )


def test_by_signs_alone_only_the_most_alike_statement_becomes_doubtful() -> None:
    earlier = [
        _statement("far", "Every winter the ferry timetable omits some departures from the old pier.", 1),
        _statement("near", "A ferry timetable for winter has its departures in red letters.", 2),
        _statement("port", "The ferry dock is at pier 4.", 3),
    ]
    later = _statement("new", "These days the ferry timetable lists winter departures in bold letters.", 9)
    assert [verdict_of(one.content, later.content, POLICY) for one in earlier[:2]] == [(Verdict.UNSURE, "change")] * 2

    assert [each.old for each in successions(later, earlier, POLICY)] == ["near"]
    assert [each.old for each in successions(later, earlier[:1], POLICY)] == ["far"]
    sure = _statement("new", "The ferry dock is at pier 7 now.", 9)
    assert [each.old for each in successions(sure, earlier, POLICY)] == ["port"]
