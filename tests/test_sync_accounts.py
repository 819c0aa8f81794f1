"""Two accounts at two servers in one home, and a second machine of each: real commands, real services on loopback."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scrubjay import accounts, settings
from scrubjay.cli import notices
from scrubjay.cli.times import moment
from scrubjay.daemon import control
from scrubjay.model_choice import Origin
from scrubjay.policy import DaemonPolicy
from scrubjay.settings import Settings as Chosen
from scrubjay.store import Store
from scrubjay.transports.client import Agent, discover
from scrubjay_cloud.settings import Settings
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_sync import profile
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.api.rounds import Fault
from scrubjay_sync.cli import choosing
from scrubjay_sync.cli.rendering import fault_lines
from scrubjay_sync.keychain import Keychain
from scrubjay_sync.keys import password
from scrubjay_sync.keys.keypairs import DeviceKeys
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.policy import IDENTITY
from scrubjay_sync.profile import Profile
from test_sync_identity_cli import PASSWORD, Home, serving

PATIENCE_S = 90.0
PRIVATE = "marigold"
WORK = "zirconium"
SHOP = "github.com/acme/shop"


@dataclass(frozen=True)
class Servers:
    """Two services that know nothing of each other: their addresses and their files."""

    private: str
    work: str
    folder: Path

    def holds(self, name: str, words: str) -> bool:
        return any(words.encode() in one.read_bytes() for one in (self.folder / name).rglob("*") if one.is_file())


@pytest.fixture(scope="module", autouse=True)
def _headless() -> Iterator[None]:
    least = replace(IDENTITY, kdf_memory_kib=IDENTITY.kdf_floor_memory_kib, kdf_iterations=2, kdf_lanes=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCRUBJAY_MODEL", "none")
        patch.setenv("SCRUBJAY_KEYCHAIN", "file")
        patch.setattr(password, "IDENTITY", least)
        yield


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        private, work = (
            stack.enter_context(serving(Settings(data=folder / name, registration="open", pepper="p" * 32)))
            for name in ("private", "work")
        )
        yield Servers(private=private, work=work, folder=folder)


def signed_up(machine: Home, server: str, *words: str) -> RecoveryCode:
    answer = machine.run(
        *("login", "--server", server, "--username", machine.path.name, "--sign-up", "--password-stdin", *words),
        stdin=f"{PASSWORD}\n",
    )
    return RecoveryCode.parse(answer["recovery_code"])


def joined(machine: Home, server: str, username: str, code: RecoveryCode) -> None:
    machine.run(
        *("login", "--server", server, "--username", username, "--recovery", "--password-stdin"),
        stdin=f"{PASSWORD}\n{code.text}\n",
    )


def memories(machine: Home, *words: str) -> list[str]:
    return sorted(one["memory"]["content"] for one in machine.run("list", *words)["entries"])


def of_account(machine: Home, account: str) -> Path:
    data = machine.path / "data"
    return data if account == "main" else data / "accounts" / account


Trio = tuple[Home, Home, Home]


def three(servers: Servers, folder: Path, username: str) -> Trio:
    """Return a laptop with both accounts, a desk at home with the private one, and one in an office with that of work."""
    laptop, desk, office = (Home(path=folder / name) for name in (username, "desk", "office"))
    private = signed_up(laptop, servers.private)
    work = signed_up(laptop, servers.work, "--account", "work")
    laptop.run("sync", "projects", "add", "github.com/acme", "--account", "work")
    joined(desk, servers.private, username, private)
    joined(office, servers.work, username, work)
    return laptop, desk, office


@pytest.fixture(scope="module")
def both(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Trio:
    """Three machines for the tests that only add to them."""
    return three(servers, tmp_path_factory.mktemp("both"), "ana")


def test_each_machine_sees_its_own_account_and_nothing_of_the_other(servers: Servers, both: Trio) -> None:
    laptop, desk, office = both
    laptop.run("add", f"{PRIVATE} in spring")
    laptop.run("add", f"{WORK} till rounds down", "--project", SHOP)
    office.run("add", f"{WORK} shelf is full")
    desk.run("add", f"{PRIVATE} seeds are in the shed")

    for machine, words in ((laptop, ("--account", "main")), (desk, ()), (laptop, ("--account", "work")), (office, ())):
        assert machine.run("sync", *words)["synced"]
    for account, other in (("main", desk), ("work", office)):
        assert laptop.run("sync", "--account", account)["synced"]
        assert other.run("sync")["synced"]

    private = [f"{PRIVATE} in spring", f"{PRIVATE} seeds are in the shed"]
    work = [f"{WORK} shelf is full", f"{WORK} till rounds down"]
    assert (memories(laptop), memories(desk)) == (private, private)
    assert (memories(laptop, "--account", "work"), memories(office)) == (work, work)
    for machine, stranger in ((desk, WORK), (office, PRIVATE)):
        for path in (one for one in machine.path.rglob("*") if one.is_file()):
            assert stranger.encode() not in path.read_bytes(), path
    for path in (one for one in (laptop.path / "data").rglob("*") if one.is_file()):
        stranger = PRIVATE if of_account(laptop, "work") in path.parents else WORK
        assert stranger.encode() not in path.read_bytes(), path
    assert not any(servers.holds(name, words) for name in ("private", "work") for words in (PRIVATE, WORK))


def secrets_of(machine: Home, account: str) -> dict[str, bytes]:
    """The keys of an account, each under its name, as its own keychain file has them."""
    found = json.loads((of_account(machine, account) / "sync.keys").read_bytes())
    flat: dict[str, bytes] = {}

    def walk(name: str, value: object) -> None:
        if isinstance(value, dict):
            for key, below in value.items():
                walk(f"{name}.{key}", below)
        elif isinstance(value, str) and len(value) >= 16:
            flat[name] = value.encode()

    walk("", found)
    return flat


def test_no_key_no_id_and_no_device_is_of_two_accounts(both: Trio) -> None:
    laptop = both[0]
    main, work = secrets_of(laptop, "main"), secrets_of(laptop, "work")

    assert len(main) >= 3
    assert not set(main.values()) & set(work.values())
    for path in (one for one in (laptop.path / "data").rglob("*") if one.is_file()):
        strangers = main if of_account(laptop, "work") in path.parents else work
        held = path.read_bytes()
        assert not [name for name, key in strangers.items() if key in held], path
    who = [laptop.run("sync", "status", "--account", account)["who"] for account in ("main", "work")]
    assert (who[0]["name"], who[1]["name"]) == ("main", "work")
    assert who[0]["account"] != who[1]["account"]
    assert who[0]["device"] != who[1]["device"]  # or two servers could tell that both are one machine


class SystemKeychain:
    """A keychain of the system, as the `keyring` package offers one."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.mark.anyio
async def test_each_account_has_a_place_of_its_own_in_the_system_s_keychain(tmp_path: Path) -> None:
    system = SystemKeychain()
    main, work = (Keychain(accounts.folder_of(tmp_path, name), environ={}, backend=system) for name in ("main", "work"))
    kept = [
        Secrets(account=bytes([n]) * 16, device=bytes([n]) * 16, keys=DeviceKeys.new(os.urandom), root=None)
        for n in (1, 2)
    ]
    for keychain, secrets in zip((main, work), kept, strict=True):
        await keychain.save(secrets)

    assert [await main.load(), await work.load()] == kept
    await main.erase()
    assert [await main.load(), await work.load()] == [None, kept[1]]


@pytest.mark.slow
def test_scopes_of_one_name_do_not_mix(both: Trio) -> None:
    laptop, desk, office = both
    for account, project in (("main", "garden"), ("work", "github.com/acme/till")):
        laptop.run("sync", "scopes", "create", "shared", "--project", project, "--account", account)
        laptop.run("add", f"of {account}", "--project", project)
        assert laptop.run("sync", "--account", account)["synced"]
    for machine in (desk, office):
        assert machine.run("sync")["synced"]

    ids = [
        {one["name"]: one["id"] for one in laptop.run("sync", "scopes", "--account", account)["scopes"]}
        for account in ("main", "work")
    ]
    assert ids[0]["shared"] != ids[1]["shared"]
    for machine, own, stranger in ((desk, "of main", "of work"), (office, "of work", "of main")):
        assert own in memories(machine)
        assert stranger not in memories(machine)


@pytest.mark.slow
def test_status_lists_every_account_and_doctor_names_them(both: Trio) -> None:
    laptop = both[0]

    found = laptop.run("sync", "status")
    assert found["who"]["name"] == "main"
    assert [one["name"] for one in found["others"]] == ["work"]
    assert laptop.run("sync", "status", "--account", "work")["others"] == []
    text = laptop.raw("sync", "status", "--text").stdout
    assert "main: " in text
    assert "work: " in text
    assert "account main" in laptop.raw("sync", "--text").stderr  # which one is meant, before anything is done
    listed = laptop.run("sync", "accounts")["accounts"]
    assert [(one["name"], one["projects"]) for one in listed] == [("main", []), ("work", ["github.com/acme"])]
    checks = {one["name"] for one in json.loads(laptop.raw("doctor").stdout)["checks"]}
    assert {"sync round", "sync round (work)"} <= checks


def test_projects_are_routed_by_folder_address_and_name(tmp_path: Path) -> None:
    machine, folder = Home(path=tmp_path / "home"), tmp_path / "notes"
    folder.mkdir()
    machine.run("sync", "accounts", "add", "work")
    for named in (str(folder), "git@github.com:Acme/Till.git", "gitlab.com/acme/*"):
        machine.run("sync", "projects", "add", named, "--account", "work")
    routed = [str(folder).casefold(), "github.com/acme/till", "gitlab.com/acme"]

    (main, work) = machine.run("sync", "projects")["accounts"]
    assert (main["projects"], work["projects"], work["username"]) == ([], routed, "")
    assert machine.run("sync", "projects", "add", "x", fails=True)["code"] == "invalid"  # whose?
    assert machine.run("sync", "projects", "add", "x", "--account", "wrok", fails=True)["code"] == "not_found"
    machine.run("sync", "projects", "remove", "gitlab.com/acme")
    machine.run("add", "the till rounds down", "--project", "github.com/acme/till")
    assert memories(machine) == []
    assert memories(machine, "--account", "work") == ["the till rounds down"]
    assert "others here: work" in machine.raw("recall", "which till", "--text").stderr
    machine.run("sync", "accounts", "remove", "work")
    assert machine.run("list", "--account", "work", fails=True)["code"] == "not_found"
    assert (of_account(machine, "work") / "memory.db").exists()


def test_a_command_says_which_account_it_means_or_asks(tmp_path: Path) -> None:
    def logged_in(*names: str) -> Chosen:
        folder = tmp_path / "-".join(names)
        chosen = settings.load({}, {"SCRUBJAY_HOME": str(folder)})
        for name in names:
            accounts.change(chosen.data_dir, lambda known, name=name: known.with_account(name))
            login = Profile(origin="https://sync.example.org", account=b"a" * 16, username=name, device_name="laptop")
            profile.save(accounts.folder_of(chosen.data_dir, name), login)
        return chosen

    def meant(chosen: Chosen, command: str, subcommand: str = "") -> str:
        return choosing.of_command(chosen, command, subcommand).account

    assert meant(logged_in("main"), "logout") == "main"
    assert meant(logged_in("work"), "logout") == "work"
    assert meant(logged_in("main", "work"), "devices", "list") == "main"
    for command in ("logout", "account"):
        with pytest.raises(InvalidError, match=r"main .*work"):
            meant(logged_in("main", "work"), command)
    with pytest.raises(InvalidError, match=r"club .*work"):
        meant(logged_in("club", "work"), "devices", "list")
    assert meant(logged_in("club", "work"), "sync", "status") == "club"
    named = replace(logged_in("main", "work"), account="work", origins={"account": Origin.FLAG})
    assert meant(named, "logout") == "work"


def test_alarms_name_their_account() -> None:
    alarm = Fault(code="split", message="the server shows two histories", hint="scrubjay sync verify")

    assert fault_lines([alarm], "main") == ["! the server shows two histories\n  scrubjay sync verify"]
    assert fault_lines([alarm], "work") == [
        "! account work: the server shows two histories\n  scrubjay sync verify (with --account work)"
    ]


def test_an_alarm_says_which_law_was_broken_since_when_and_what_to_do() -> None:
    at = 1_800_000_000_000
    lie = Fault(code="split", message="the server shows two histories", hint="scrubjay sync verify", at=at)
    change = Fault(code="account_changed", message="a device was added", hint="scrubjay devices list", at=at)

    (told, known) = fault_lines([lie, change], "main")
    assert told == f"! the server shows two histories (split, since {moment(Millis(at))})\n  scrubjay sync verify"
    assert known == f"! a device was added ({moment(Millis(at))})\n  scrubjay devices list"


@pytest.mark.anyio
async def test_the_next_command_tells_of_a_server_that_lies(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "memory.db", now=lambda: Millis(1_800_000_000_000), entropy=os.urandom)
    await store.write(lambda tx: tx.replication.raise_alarm("split", "log", "it shows two histories", "verify"))
    await store.write(lambda tx: tx.replication.raise_alarm("recovery", "", "a clock is off", "set it"))
    await store.close()

    ((message, hint),) = notices.waiting(tmp_path / "memory.db")
    assert message.startswith("it shows two histories (split, since ")
    assert hint == "verify"


@pytest.mark.slow
def test_an_account_whose_keys_are_lost_hides_no_other(servers: Servers, tmp_path: Path) -> None:
    laptop, _, _ = three(servers, tmp_path, "lost")
    (of_account(laptop, "work") / "sync.keys").write_text("{}")

    (other,) = laptop.run("sync", "status")["others"]
    assert "keys are damaged" in other["problem"]
    assert laptop.run("sync")["synced"]


@pytest.mark.slow
def test_logging_out_of_one_account_leaves_the_other(servers: Servers, tmp_path: Path) -> None:
    laptop, desk, _ = three(servers, tmp_path, "leaves")
    laptop.run("add", f"{WORK} till", "--account", "work")

    unclear = laptop.run("logout", fails=True)
    assert (unclear["code"], "--account work" in unclear["hint"]) == ("invalid", True)
    assert laptop.run("sync", "--account", "work")["synced"]
    laptop.run("logout", "--account", "work")

    assert not (of_account(laptop, "work") / "sync.keys").exists()
    assert memories(laptop, "--account", "work") == [f"{WORK} till"]  # they stay, and the project's new ones with them
    laptop.run("add", f"{WORK} stays here", "--project", SHOP)
    laptop.run("add", f"{PRIVATE} in spring")
    assert laptop.run("sync")["synced"]  # the only one that is logged in
    assert desk.run("sync")["synced"]
    assert memories(desk) == [f"{PRIVATE} in spring"]
    assert laptop.run("sync", "--account", "work", fails=True)["message"].startswith("the account work is not logged")
    assert f"{WORK} stays here" in memories(laptop, "--account", "work")


def until(happened: Callable[[], bool]) -> None:
    """Wait until something has happened in the background."""
    give_up = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.2)


@pytest.mark.slow
def test_one_daemon_serves_both_and_a_server_that_is_away_delays_no_other(servers: Servers, tmp_path: Path) -> None:
    laptop, desk = Home(path=tmp_path / "bea"), Home(path=tmp_path / "desk")
    running = settings.load({}, {"SCRUBJAY_HOME": str(laptop.path), "SCRUBJAY_MODEL": "none", "SCRUBJAY_PORT": "0"})
    settings.ensure_dirs(running)
    control.start(running, policy=DaemonPolicy(start_seconds=PATIENCE_S))
    try:
        private = signed_up(laptop, servers.private)
        with serving(Settings(data=tmp_path / "office", registration="open", pepper="p" * 32)) as away:
            signed_up(laptop, away, "--account", "work")
            laptop.run("sync", "projects", "add", "github.com/acme", "--account", "work")
            joined(desk, servers.private, "bea", private)
            agent = discover(running.data_dir, agent=Agent(name="test", project=SHOP))
            assert agent is not None
            with agent:
                agent.call("POST", "/v1/memories", {"content": f"{WORK} till rounds down"})
            laptop.run("add", f"{PRIVATE} in spring")
            until(lambda: laptop.run("sync", "status", "--account", "work")["pending_ops"] == 0)
            until(lambda: desk.run("sync")["synced"] and f"{PRIVATE} in spring" in memories(desk))

        laptop.run("add", f"{WORK} waits", "--project", SHOP)
        laptop.run("add", f"{PRIVATE} goes on")
        until(lambda: desk.run("sync")["synced"] and f"{PRIVATE} goes on" in memories(desk))
        (work,) = laptop.run("sync", "status")["others"]
        assert work["pending_ops"] > 0
        control.stop(running)
        control.start(running, policy=DaemonPolicy(start_seconds=PATIENCE_S))  # it opens both again by itself
        laptop.run("add", f"{PRIVATE} after a restart")
        until(lambda: desk.run("sync")["synced"] and f"{PRIVATE} after a restart" in memories(desk))
    finally:
        control.stop(running)

    assert memories(laptop) == sorted(f"{PRIVATE} {words}" for words in ("in spring", "goes on", "after a restart"))
    assert memories(laptop, "--account", "work") == [f"{WORK} till rounds down", f"{WORK} waits"]
    assert not servers.holds("private", WORK)
