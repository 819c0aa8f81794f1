"""The commands of teams as people run them: several homes, real accounts, a real server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scrubjay.cli import notices
from scrubjay_cloud.settings import Settings
from scrubjay_sync.cli import prompts
from scrubjay_sync.keys import password
from scrubjay_sync.policy import IDENTITY
from test_sync_identity_cli import PASSWORD, Home, serving, signed_up

YES = f"{PASSWORD}\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server where anybody may sign up; returns its address."""
    with serving(Settings(data=tmp_path / "cloud", registration="open", pepper="p" * 32)) as origin:
        yield origin


@pytest.fixture(autouse=True)
def _headless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCRUBJAY_MODEL", "none")
    monkeypatch.setenv("SCRUBJAY_KEYCHAIN", "file")
    least = replace(IDENTITY, kdf_memory_kib=IDENTITY.kdf_floor_memory_kib, kdf_iterations=2, kdf_lanes=1)
    monkeypatch.setattr(password, "IDENTITY", least)
    monkeypatch.setattr(prompts, "TERMINAL", tmp_path / "no terminal")


@pytest.fixture
def home(tmp_path: Path) -> Callable[[str], Home]:
    return lambda name: Home(path=tmp_path / name)


@pytest.mark.slow
def test_a_team_from_its_making_to_leaving_it(server: str, home: Callable[[str], Home]) -> None:
    ann, bob = home("ann"), home("bob")
    signed_up(ann, server, "ann")
    signed_up(bob, server, "bob")
    made = ann.run("teams", "create", "core", "--project", "proj_x")
    assert [(one["name"], one["role"], one["projects"]) for one in made["teams"]] == [("core", "admin", ["proj_x"])]

    card = bob.run("teams", "card")["words"]
    unattended = ann.run("teams", "invite", "core", "bob", "--words", *card, fails=True)
    assert (unattended["code"], "nobody is at a terminal" in unattended["message"]) == ("denied", True)
    wrong = ("--words", *card[1:], card[0], "--password-stdin")
    assert ann.run("teams", "invite", "core", "bob", *wrong, stdin=YES, fails=True)["code"] == "denied"
    proof = ann.run("teams", "invite", "core", "bob", "--words", *card, "--password-stdin", stdin=YES)["words"]
    other = ("--words", *proof[1:], proof[0], "--password-stdin")
    assert bob.run("teams", "join", "work", *other, stdin=YES, fails=True)["code"] == "denied"
    came = bob.run("teams", "join", "work", "--words", " ".join(proof), "--password-stdin", stdin=YES)
    assert [one["role"] for one in came["teams"][0]["members"]] == ["admin", "writer"]
    assert [one["name"] for one in ann.run("teams")["teams"][0]["members"]] == ["", "bob"]

    assert ann.run("teams")["teams"][0]["words"] == bob.run("teams")["teams"][0]["words"]

    told = [one["message"] for one in ann.run("sync", "status")["faults"]]
    assert any("team core: bob came in as writer, by you" in one for one in told)
    assert any("came in" in message for message, _ in notices.waiting(next(ann.path.rglob("memory.db"))))

    changed = ann.run("teams", "role", "core", "bob", "reader", "--password-stdin", stdin=YES)
    assert [one["role"] for one in changed["teams"][0]["members"]] == ["admin", "reader"]
    last = ann.run("teams", "leave", "core", "--confirm", "core", fails=True)
    assert (last["code"], "admin" in last["message"]) == ("invalid", True)
    gone = ann.run("teams", "remove", "core", "bob", "--password-stdin", stdin=YES)
    assert [one["you"] for one in gone["teams"][0]["members"]] == [True]
    bob.run("sync")
    assert bob.run("teams")["teams"] == []
    assert any("you were taken out" in one["message"] for one in bob.run("sync", "status")["faults"])
    assert ann.run("teams", "leave", "core", "--confirm", "core")["teams"] == []
