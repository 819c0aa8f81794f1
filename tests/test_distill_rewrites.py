"""First person becomes third where that is English; what was nobody's word is nobody's memory; other languages rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.distill import distill
from scrubjay.distill.language import is_english
from scrubjay.distill.person import Speaker, named, tidied
from scrubjay.distill.wording import is_grammatical
from scrubjay_shared.records import Event, EventType, Role

USER = Speaker(name="The user")

GARBLED_BEFORE = """
im is a Rust crate with 12 modules
Working memory serves as a limited store for 4 items
Working set fits in 2 GB on the db host
Training data lives in S3 under the models bucket
Training loss falls to 0.2 after 20 epochs
Learning rate decays to 0.001 after 20 epochs
Planning poker happens on Monday with the platform team
Moving averages smooth the 30 day chart
Running shoes need replacement every 800 km
Building blocks depend on the core module in Rust
Reading glasses are in the second drawer of the desk
Writing style guide applies to all 12 repos
Going to production requires a review by Petra
Getting started guide covers Docker on Ubuntu 22.04
Looking glass servers run in 4 regions
Starting price rises to 49 EUR in March
Seeing stones appear in 3 books of Tolkien
Saving states cost 12 ms per frame in Unity
Started container web-1 on port 8080
Started 12 workers on node eu-1
Built target scrubjay in 3.2 s
Found 12 errors in 4 files (2 fixable)
Found existing alembic config at db/alembic.ini
Created symlink /etc/systemd/system/web.service
Created 4 tables in schema public
Added 42 packages in 3s on Node 20
Took 12 seconds to load the index from S3
Received 200 OK from the API in Frankfurt
Applied migration 0012 to the events table
Applied 3 fixes to src/main.rs
Passed 12 tests in 3 files of the core
Completed in 4 seconds with 2 warnings in db.py
Finished release profile in 4.2 s
Finished in 0.3 seconds, 12 examples, 0 failures
Watched files are reloaded every 2 seconds by Vite
Published under the MIT licence in 2019
Published 12 messages to topic events in Kafka
Released under Apache 2.0 by the CNCF
Discovered in 1998 by two teams in Geneva
Discovered 4 hosts in subnet 10.0.0.0
Launched 2 instances of t3.medium in Oslo
Left join users on users.id = likes.user_id
Left: 12 items in the queue of Oslo
Lost connection to Postgres at 10.0.0.4
Met office forecasts rain in Bergen for Friday
Saw blade depth is 12 mm for oak
Moved permanently to https://example.org in 2019
Used memory is 4 GB on the Redis node
Opened port 443 on host web-1
Opened pull request 12 against main
Updated 4 rows in table users
Broke the build on main with 3 errors in CI
Ran 12 tests in 0.012s on Python 3.11
Ran all test suites matching api
Got 404 from https://example.org/api
Got unexpected token in JSON at position 12
Made 12 requests to api.example in 3 s
Wrote 12 files to dist in 2.1 s
Spent 4.2 s in garbage collection on JVM 21
Tried 3 mirrors before pypi answered in Oslo
Joined channel ops as bot-12
Posted 3 comments to PR 12
Visited 12 pages and found 3 dead links
Attended by 300 people in Berlin in 2019
Played by Liv Ullmann in the 1978 film
Taught at Oxford since 1998 by Dr Berg
I i is the loop index in the Rust parser
i is the row and j is the column of the matrix
i has the type int in the C parser
I is the identity matrix of size 3 in the proof
I've is not a word in the parser of Oslo
my be we use Redis for the queue
My is a keyword in Perl 5 scripts
Signed-off-by: Ulf Berg in Oslo on 3 March
""".strip().splitlines()


def turn(text: str, project: str | None = None) -> Event:
    return Event(
        id="e0001", device="d", agent="test", session_id="s1", type=EventType.USER_MESSAGE, role=Role.USER, text=text,
        ts=1_700_000_000_000, dedupe_key="1", project=project,
    )  # fmt: skip


def learned(text: str) -> list[str]:
    return [o.content for o in distill([turn(text)], user_id="user_1").observations]


@pytest.mark.parametrize("text", GARBLED_BEFORE)
def test_what_nobody_said_of_themselves_is_no_memory_about_the_user(text: str) -> None:
    assert [content for content in learned(text) if "user" in content] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ran the Oslo marathon yesterday in 3:04", ["The user ran the Oslo marathon on 13 November 2023 in 3:04."]),
        ("I use Redis, works fine with Postgres 16", ["The user uses Redis, works fine with Postgres 16."]),
        ("prefer tabs over spaces in Makefiles", ["The user prefers tabs over spaces in Makefiles."]),
        ("I prefer tabs.", ["The user prefers tabs."]),
        ("I hate ORMs.", ["The user hates ORMs."]),
    ],
)
def test_what_a_person_leaves_out_is_filled_in_where_it_is_theirs(text: str, expected: list[str]) -> None:
    assert learned(text) == expected


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The user prefers tabs.", True),
        ("The user is is a Rust crate.", False),
        ("The user are in Oslo.", False),
        ("The user have a dog.", False),
        ("The user's be we use Redis.", False),
        ("The user lives in Oslo and they has a dog.", False),
        ("The user lives in Oslo and they have a dog.", True),
        ("The user and their sister are in Oslo.", True),
        ("The user ises the row.", False),
        ("The user likes what I like.", False),
        ("The user and they is the loop.", False),
        ("It gave the user a dog.", True),
    ],
)
def test_a_rewrite_that_is_no_english_is_seen(text: str, right: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert is_grammatical(text, USER) is right


VERBS = {
    "prefer": "prefers", "use": "uses", "hate": "hates", "like": "likes", "watch": "watches", "try": "tries", "fix": "fixes",
    "have": "has", "do": "does", "go to": "goes to", "am": "is", "moved": "moved", "was": "was", "can use": "can use",
    "don't use": "doesn't use", "haven't used": "hasn't used", "study": "studies", "play": "plays", "run": "runs",
}  # fmt: skip
ADVERBS = st.sampled_from(["", "always ", "really ", "usually ", "never "])
OBJECTS = st.sampled_from(["tabs", "the old laptop", "Postgres 16", "my sister's boat", "our kayak", "uv, not poetry"])


@given(ADVERBS, st.sampled_from(sorted(VERBS)), OBJECTS, st.sampled_from(["", " and my dog", " when I am in Oslo"]))
def test_each_pattern_of_a_persons_sentence_is_rewritten_in_english(
    adverb: str, verb: str, thing: str, end: str
) -> None:
    text = f"I {adverb}{verb} {thing}{end}"

    rewritten = named(tidied(text), USER)

    assert rewritten.startswith(f"The user {adverb}{VERBS[verb]} ")
    assert is_grammatical(rewritten, USER)


@given(ADVERBS, st.sampled_from(sorted(VERBS)), OBJECTS)
def test_the_words_before_the_rewrite_would_not_pass_for_one(adverb: str, verb: str, thing: str) -> None:
    assert not is_grammatical(f"I {adverb}{verb} {thing}", USER)


FOREIGN = """
wir nutzen uv statt Poetry
Ich mag keine Mocks in den Tests
Wir haben uns für Postgres 16 entschieden
Mein Name ist Jonas und ich wohne in Berlin
bitte nie auf main pushen, das macht der Bot
Ich nutze immer Docker und nicht Podman
nous utilisons uv au lieu de poetry pour ce projet
je préfère les onglets aux espaces dans mon code
on a décidé d'utiliser Postgres 16 pour les événements
Je m'appelle Claire et j'habite à Lyon
preferimos tabs y siempre usamos Postgres 16
hemos decidido usar Redis para la cola
Me llamo Ana y vivo en Madrid
preferisco i test senza mock e usiamo sempre pytest
decidimos usar o Postgres 16 para os eventos
wij gebruiken altijd uv en niet poetry
vi använder alltid uv och inte poetry
我们决定使用 Postgres 16
我更喜欢 tabs 而不是 spaces
不要 push 到 main
テストには pytest を使います
私は tabs が好きです
mainに push しないでください
우리는 Postgres 16을 사용합니다
نستخدم Postgres 16 في المشروع
أفضل استخدام tabs
Мы используем Postgres 16 для событий
Я предпочитаю табы пробелам
Χρησιμοποιούμε Postgres 16
אנחנו משתמשים ב Postgres 16
""".strip().splitlines()


@pytest.mark.parametrize("text", FOREIGN)
def test_other_languages_give_nothing(text: str) -> None:
    assert learned(text) == []
    assert learned(f"{text}. {text}!") == []


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Malmö with my sister Elin",
        "We use Postgres 16 for the events",
        "uv, ruff, mypy, pytest",
        "Claudia Müller owns services/ingest in München",
        "dont push to main plz",
        "I live in São Paulo and work for Peña y Hijos",
        "the son of a plus sign is a minus",
        "",
    ],
)
def test_english_with_foreign_names_is_english(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("The shop is called Ton & Glut", "The shop is called Ton & Glut"),
        ("We buy at Marks & Spencer", "We buy at Marks & Spencer"),
        ("AT&T and Q & A", "AT&T and Q & A"),
        ("My sister & I run it", "My sister and I run it"),
        ("She sent it to Ana & me", "She sent it to Ana and me"),
        ("you & Ana decide", "you and Ana decide"),
    ],
)
def test_an_ampersand_of_a_name_stays_and_one_beside_a_person_is_written_out(said: str, kept: str) -> None:
    assert tidied(said) == kept
