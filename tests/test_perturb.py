"""A copy is falsified, never the store; and what `verify` notices of it is what it says it can."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli_shell import Shell
from scrubjay_shared.clock import ulid_bytes

TALK = (
    "We decided to use PostgreSQL for the bookings. I prefer tea over coffee in the morning. "
    "We chose Fastmail for the newsletter. The key insight is that users leave at the second step. "
    "My goal is to ship the beta by October. We agreed to meet on Mondays. I always write tests first. "
    "We decided to drop support for Python 3.9. I prefer dark mode in every editor."
)
NOTICED = {
    ("corrupt", "row"): True,
    ("corrupt", "op"): True,
    ("corrupt", "sealed"): False,
    ("swap", "row"): True,
    ("swap", "op"): True,
    ("swap", "sealed"): False,
    ("forge", "row"): True,
    ("forge", "op"): True,
    ("rewrite", "row"): True,
    ("rewrite", "op"): True,
    ("rewrite", "sealed"): True,
}
"""What can be noticed without the account: all but memories whose log was rewritten together with its check sums."""


@pytest.fixture
def told(shell: Shell, tmp_path: Path) -> Shell:
    """A store with memories that were read from events, and with notes."""
    sentences = TALK.split(". ")
    for part in (sentences[:3], sentences[3:6], sentences[6:]):
        shell.json("learn", ". ".join(part))
    notes = "".join(f"## Note {n}\n\nThe harbour has {n * 7} berths at pier {n}.\n\n" for n in range(14))
    (tmp_path / "notes.md").write_text(notes, encoding="utf-8")
    shell.json("import", str(tmp_path / "notes.md"))
    return shell


def test_each_kind_is_noticed_that_can_be(told: Shell, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    report = told.json(
        "perturb", str(copy), "--seed", "3", "--corrupt", "1", "--swap", "1", "--forge", "1", "--rewrite", "1"
    )
    assert sum(report["done"].values()) == 12

    code, out, _ = told.run("verify", str(copy), "--key", report["key"])
    found = json.loads(out)

    assert code == 7
    noticed = {(one["kind"], one["depth"]): one["found"] == one["done"] for one in found["detected"]}
    assert {key: value for key, value in noticed.items() if key != ("forge", "sealed")} == NOTICED
    assert "noticed" in told.run("--text", "verify", str(copy), "--key", report["key"])[1]


@pytest.mark.parametrize("depth", ["row", "op", "sealed"])
def test_a_forged_memory_is_there_beside_the_one_it_is_made_after(told: Shell, tmp_path: Path, depth: str) -> None:
    copy = tmp_path / "copy.db"
    report = told.json("perturb", str(copy), "--forge", "1", "--depth", depth)
    [forged] = json.loads(Path(report["key"]).read_text(encoding="utf-8"))["done"]
    with closing(sqlite3.connect(copy)) as connection:
        before = {entry["memory"]["id"] for entry in told.json("list", "--limit", "100")["entries"]}
        shown = dict(connection.execute("select id, content from memory").fetchall())
        logged = [row[0] for row in connection.execute("select body from op where entity = ?", tuple(forged["ids"]))]

    expected = before if depth == "op" else {*before, *forged["ids"]}  # of the log alone, nothing is derived yet
    assert set(shown) == expected
    assert shown.get(forged["ids"][0]) == (None if depth == "op" else forged["after"][0])
    assert [ulid_bytes(forged["ids"][0]) in body for body in logged] == ([] if depth == "row" else [True])


@pytest.mark.parametrize("depth", ["row", "op"])
def test_the_key_explains_all_that_is_found(told: Shell, tmp_path: Path, depth: str) -> None:
    kinds = ("--corrupt", "2", "--swap", "1", "--forge", "2", "--rewrite", "2")
    report = told.json("perturb", str(tmp_path / "copy.db"), *kinds, "--depth", depth)

    _, out, _ = told.run("verify", str(tmp_path / "copy.db"), "--key", report["key"])

    found = json.loads(out)
    assert [one["found"] == one["done"] for one in found["detected"]] == [True] * 4
    assert found["unexplained"] == 0, found["findings"]


def test_the_store_itself_is_sound_and_untouched(told: Shell, tmp_path: Path) -> None:
    before = told.json("verify")
    assert before["sound"], before
    listed = told.json("list", "--limit", "100")

    told.json("perturb", str(tmp_path / "copy.db"))

    assert told.json("verify")["sound"]
    assert told.json("list", "--limit", "100") == listed
    assert "everything fits" in told.run("--text", "verify")[1]


def test_nothing_is_falsified_in_place(told: Shell, tmp_path: Path) -> None:
    path = Path(told.json("verify")["file"])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for target in (path, link):
        assert told.error("perturb", str(target))[0] == 5
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    told.json("perturb", str(tmp_path / "copy.db"))
    assert told.error("perturb", str(tmp_path / "copy.db"))[0] == 5
    assert told.error("perturb", str(tmp_path / "other.db"), "--corrupt", "500")[0] == 5
    assert not (tmp_path / "other.db").exists(), "half a falsification is none"
    assert told.error("verify", str(tmp_path / "nowhere.db"))[0] == 3
    assert told.error("verify", "--key", str(link))[0] == 2


def test_the_same_seed_falsifies_the_same(told: Shell, tmp_path: Path) -> None:
    keys = []
    for name in ("one", "two"):
        report = told.json("perturb", str(tmp_path / f"{name}.db"), "--seed", "9")
        keys.append(json.loads(Path(report["key"]).read_text(encoding="utf-8")))
        assert Path(report["key"]).stat().st_mode & 0o077 == 0, "it quotes memories"
    assert keys[0] == keys[1]


def test_a_sealed_copy_shows_what_it_was_made_to_say(told: Shell, tmp_path: Path) -> None:
    report = told.json("perturb", str(tmp_path / "home.db"), "--corrupt", "2", "--depth", "sealed")
    key = json.loads(Path(report["key"]).read_text(encoding="utf-8"))
    found = told.json("verify", str(tmp_path / "home.db"), "--key", report["key"])
    assert found["sound"], "whoever can write the file can write a log that fits"
    assert [one["found"] for one in found["detected"]] == [0]
    assert all(one["before"] != one["after"] for one in key["done"])
