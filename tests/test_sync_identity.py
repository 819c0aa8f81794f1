"""Accounts over the real service and real stores: who is let in, who is not, and what a lying server cannot do."""

from __future__ import annotations

import ast
import base64
import importlib
import inspect
import json
import pkgutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import ModuleType

import httpx2
import pytest

import scrubjay_sync.account
from scrubjay.store import Store
from scrubjay_cloud import database
from scrubjay_cloud.app import create_app
from scrubjay_cloud.policy import DEFAULT
from scrubjay_cloud.settings import Settings
from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType, Signer
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    BadSignatureError,
    ConflictError,
    CredentialsError,
    DeniedError,
    InvalidError,
    NotFoundError,
    PendingError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    UnauthenticatedError,
    UnavailableError,
    WithheldError,
)
from scrubjay_shared.wire import Kdf, LogAppend, LogPage, SetPassword
from scrubjay_sync import keychain
from scrubjay_sync.account import (
    account_devices,
    account_scopes,
    admission,
    drafts,
    leaving,
    limited_devices,
    pairing,
    recovery,
    registration,
    rotation,
)
from scrubjay_sync.account.admission import Joining
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.limited_devices import Bundle
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root
from sync_devices import answered, let_in

ORIGIN = "https://sync.example.org"
KDF = Kdf(salt=b"k" * 16, memory_kib=19 * 1024, iterations=2, lanes=1)
RIGHT, WRONG = b"r" * 32, b"w" * 32
"""Derived keys: deriving them is `auth_key`'s, and slow on purpose."""

CHEAP = replace(DEFAULT, hash_memory_kib=64, hash_iterations=1)
pytestmark = pytest.mark.anyio


class Memory:
    """A `secrets.Vault` in memory; `saves` counts."""

    def __init__(self) -> None:
        self.secrets: Secrets | None = None
        self.sealed: bytes | None = None

    async def load(self) -> Secrets | None:
        return self.secrets

    async def save(self, secrets: Secrets) -> None:
        self.secrets = secrets

    async def keyring(self) -> bytes | None:
        return self.sealed

    async def keep_keyring(self, data: bytes) -> None:
        self.sealed = data

    async def erase(self) -> None:
        self.secrets = self.sealed = None


@dataclass
class World:
    """One server, and as many machines as a test wants."""

    path: Path
    stack: AsyncExitStack
    transport: httpx2.AsyncBaseTransport = field(init=False)
    settings: Settings = field(init=False)
    database: database.Database = field(init=False)
    random: Random = field(default_factory=lambda: Random(5))
    time: int = 1_800_000_000_000
    code: RecoveryCode = field(default_factory=lambda: RecoveryCode(secret=b"c" * 20))
    machines: int = 0

    def now(self) -> Millis:
        self.time += 1
        return Millis(self.time)

    async def machine(self, transport: httpx2.AsyncBaseTransport | None = None) -> Machine:
        self.machines += 1
        store = await Store.open(
            self.path / f"{self.machines}" / "memory.db", now=self.now, entropy=self.random.randbytes
        )
        self.stack.push_async_callback(store.close)
        cloud = Cloud(ORIGIN, now=self.now, transport=transport or self.transport)
        self.stack.push_async_callback(cloud.aclose)
        return Machine(store=store, vault=Memory(), cloud=cloud, now=self.now, entropy=self.random.randbytes)

    async def signed_up(self, machine: Machine | None = None, username: str = "ann") -> tuple[Machine, Member]:
        machine = machine or await self.machine()
        member = await registration.sign_up(
            machine, username=username, auth_key=RIGHT, kdf=KDF, recovery=self.code, name="laptop"
        )
        return machine, member

    async def asking(self, machine: Machine | None = None, *, name: str = "desk") -> Joining:
        machine = machine or await self.machine()
        return await admission.log_in(machine, username="ann", auth_key=RIGHT, name=name)

    async def paired(self, first: Machine, member: Member, *, name: str = "desk") -> tuple[Machine, Member]:
        joining = await self.asking(name=name)
        return joining.machine, await let_in(joining, member, first.cloud)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        made = World(path=tmp_path, stack=stack)
        made.settings = Settings(data=tmp_path / "cloud", registration="open", pepper="p" * 32)
        made.database = await database.open(made.settings, now=made.now, entropy=made.random.randbytes)
        stack.push_async_callback(made.database.close)
        app = create_app(made.database, made.settings, now=made.now, entropy=made.random.randbytes, policy=CHEAP)
        made.transport = httpx2.ASGITransport(app=app)
        yield made


# --- signing up -------------------------------------------------------------------------------------------------------


async def test_signing_up_makes_an_account_with_one_device_and_a_home(world: World) -> None:
    machine, member = await world.signed_up()

    assert member.state.account == member.account
    assert [one.id for one in member.state.active()] == [machine.device]
    assert member.scopes.ids == (member.home,)
    assert len(member.scopes.key(member.home, member.scopes.epoch(member.home))) == 32
    assert (member.scopes.name(member.home), member.device_name(machine.device)) == ("home", "laptop")
    assert not member.limited
    assert not member.read_only


async def test_a_member_is_itself_again_after_a_restart_without_the_network(world: World) -> None:
    machine, member = await world.signed_up()

    again = await machine.member()

    assert again.state == member.state
    assert again.scopes.key(again.home, 0) == member.scopes.key(member.home, 0)
    assert again.device_name(machine.device) == "laptop"
    assert await again.refresh(machine.cloud)
    assert not await again.refresh(machine.cloud)


async def test_signing_up_twice_or_under_a_taken_name_changes_nothing(world: World) -> None:
    machine, _ = await world.signed_up()
    with pytest.raises(ConflictError, match="logged in already"):
        await world.signed_up(machine)

    other = await world.machine()
    with pytest.raises(ConflictError, match="taken"):
        await world.signed_up(other)
    assert await other.vault.load() is None
    assert await other.store.read(lambda q: q.replication.state()) is None


async def test_a_project_may_have_a_scope_of_its_own(world: World) -> None:
    machine, member = await world.signed_up()

    scope = await account_scopes.create_scope(member, machine, name="work", suite=Suite.SEALED, projects=["proj_x"])

    assert member.scopes.projects == {"proj_x": scope}
    assert [(one.project, one.scope) for one in await machine.store.read(lambda q: q.replication.bindings())] == [
        ("proj_x", scope)
    ]
    assert member.scopes.ids == (member.home, scope)
    assert member.scopes.key(scope, 0) != member.scopes.key(member.home, 0)
    with pytest.raises(ConflictError, match="has a scope 'work'"):
        await account_scopes.create_scope(member, machine, name="work", suite=Suite.SEALED)
    with pytest.raises(ConflictError, match="proj_x belongs to another scope"):
        await account_scopes.create_scope(member, machine, name="more", suite=Suite.SEALED, projects=["proj_x"])


async def test_every_machine_binds_a_project_and_lets_go_of_it(world: World) -> None:
    first, member = await world.signed_up()
    second, other = await world.paired(first, member)
    scope = await account_scopes.create_scope(member, first, name="work", suite=Suite.SEALED, projects=["proj_x"])

    await other.refresh(second.cloud)
    assert [(one.project, one.scope) for one in await second.store.read(lambda q: q.replication.bindings())] == [
        ("proj_x", scope)
    ]
    await account_scopes.delete_scope(member, first.cloud, scope)
    await other.refresh(second.cloud)
    assert (
        await first.store.read(lambda q: q.replication.bindings())
        == await second.store.read(lambda q: q.replication.bindings())
        == []
    )


async def test_a_searchable_scope_has_no_key_and_its_mode_is_in_the_log(world: World) -> None:
    machine, member = await world.signed_up()

    scope = await account_scopes.create_scope(member, machine, name="team", suite=Suite.OPEN, space="bge/384")

    assert member.scopes.suite(scope) == Suite.OPEN
    assert member.scopes.key(scope, 0) == b""
    assert member.state.scopes[scope].space == "bge/384"


async def test_deleting_a_scope_takes_its_keys_away(world: World) -> None:
    machine, member = await world.signed_up()
    scope = await account_scopes.create_scope(member, machine, name="work", suite=Suite.SEALED)

    await account_scopes.delete_scope(member, machine.cloud, scope)

    assert member.scopes.ids == (member.home,)
    with pytest.raises(NotFoundError):
        member.scopes.key(scope, 0)
    with pytest.raises(ConflictError, match="home scope"):
        await account_scopes.delete_scope(member, machine.cloud, member.home)


# --- pairing ----------------------------------------------------------------------------------------------------------


async def test_a_second_machine_is_let_in_by_words_and_gets_every_key(world: World) -> None:
    first, member = await world.signed_up()

    second, joined = await world.paired(first, member)

    assert joined.root == member.root
    assert joined.scopes.key(joined.home, 0) == member.scopes.key(member.home, 0)
    await member.refresh(first.cloud)
    assert {member.device_name(one.id) for one in member.state.active()} == {"laptop", "desk"}
    assert joined.device == second.device != first.device


async def test_both_machines_have_the_same_words_once_one_has_answered(world: World) -> None:
    first, member = await world.signed_up()
    joining = await world.asking()
    await joining.poll()
    assert joining.words == ()

    asked = await answered(joining, member, first.cloud)

    assert pairing.words_for(member, asked).shown == joining.words
    assert (len(joining.words), len(pairing.words_for(member, asked).proof)) == (6, 3)
    with pytest.raises(PendingError):
        await joining.join(pairing.words_for(member, asked).proof)


async def test_wrong_words_let_nobody_in(world: World) -> None:
    first, member = await world.signed_up()
    joining = await world.asking()
    asked = await answered(joining, member, first.cloud)

    with pytest.raises(DeniedError, match="not added"):
        await pairing.approve(member, first.cloud, asked, joining.words[::-1])

    assert len(member.state.active()) == 1
    await joining.poll()
    assert not joining.added


async def test_a_machine_joins_only_with_the_words_of_the_device_that_let_it_in(world: World) -> None:
    first, member = await world.signed_up()
    joining = await world.asking()
    asked = await answered(joining, member, first.cloud)
    proof = await pairing.approve(member, first.cloud, asked, joining.words)
    await joining.poll()
    assert joining.added

    for wrong in ((), proof[::-1], joining.words[:3]):
        with pytest.raises(DeniedError, match="not logged in"):
            await joining.join(wrong)
        assert await joining.machine.vault.load() is None
    assert (await joining.join(proof)).root == member.root


async def test_words_begin_anew_when_the_account_changes_meanwhile(world: World) -> None:
    first, member = await world.signed_up()
    joining = await world.asking()
    asked = await answered(joining, member, first.cloud)
    before = joining.words
    await account_devices.rename_device(member, first.cloud, first.device, "old laptop")

    with pytest.raises(ConflictError, match="has changed"):
        await pairing.approve(member, first.cloud, asked, before)
    await joining.poll()
    assert joining.words == ()
    await let_in(joining, member, first.cloud)


async def test_a_machine_that_died_between_approval_and_keys_can_ask_again(world: World) -> None:
    first, member = await world.signed_up()
    joining = await world.asking()
    asked = await answered(joining, member, first.cloud)
    await pairing.approve(member, first.cloud, asked, joining.words)
    lost = joining.machine.device

    again = await world.asking(joining.machine)
    assert again.machine.device != lost
    await let_in(again, member, first.cloud)


@pytest.mark.parametrize(("username", "auth_key"), [("ann", WRONG), ("bob", RIGHT)])
async def test_a_wrong_name_or_password_is_one_error(world: World, username: str, auth_key: bytes) -> None:
    await world.signed_up()
    machine = await world.machine()

    with pytest.raises(CredentialsError, match="is wrong"):
        await admission.log_in(machine, username=username, auth_key=auth_key, name="x")
    assert await machine.vault.load() is None


# --- I9: no second root key -------------------------------------------------------------------------------------------

MAKES_ROOT = "RootKey.new"
MAY_MAKE_ROOT = {
    "reversal.void.draft",
    "registration.sign_up",
    "account_devices.revoke.draft",
    "rotation.rotation_draft",
    "admission.Joining.revert",
}


def functions(module: ModuleType) -> dict[str, ast.AST]:
    """The functions and methods of a module by their path, those within others too."""
    found: dict[str, ast.AST] = {}

    def walk(node: ast.AST, name: str) -> None:
        for below in ast.iter_child_nodes(node):
            inner = name
            if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{below.name}"
                if not isinstance(below, ast.ClassDef):
                    found[inner] = below
            walk(below, inner)

    walk(ast.parse(inspect.getsource(module)), module.__name__.rpartition(".")[2])
    return found


def names_in(function: ast.AST) -> set[str]:
    """What a function's own lines name, those of functions within it excepted."""
    named: set[str] = set()
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Attribute):
            named |= {ast.unparse(node), f".{node.attr}"}
        elif isinstance(node, ast.Name):
            named.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return named


def calls(caller: str, called: str, named: set[str]) -> bool:
    """Whether one function may call another: by its name, or as anybody's method."""
    above, _, short = called.rpartition(".")
    if above.count(".") == 0:  # a module's own, which others import by its name
        return short in named or f"{above}.{short}" in named
    return (above == caller and short in named) or f".{short}" in named


def test_only_sign_up_and_rotations_make_root_keys_and_logging_in_reaches_none_of_them() -> None:
    found = functions(keychain)
    for module in pkgutil.iter_modules(scrubjay_sync.account.__path__):
        found |= functions(importlib.import_module(f"scrubjay_sync.account.{module.name}"))
    named = {name: names_in(function) for name, function in found.items()}
    assert {name for name, words in named.items() if MAKES_ROOT in words} == MAY_MAKE_ROOT

    reached = {
        "admission.log_in",
        "admission.Joining.poll",
        "admission.Joining.join",
        "admission.Joining.recover",
        "limited_devices.join_limited",
    }
    while more := {
        called for called in found if called not in reached and any(calls(one, called, named[one]) for one in reached)
    }:
        reached |= more
    assert {"member.Member._certify", "account_devices.rename_device.draft"} <= reached  # it does walk
    assert not reached & MAY_MAKE_ROOT


async def test_a_second_machine_has_no_root_key_until_it_is_given_one(world: World) -> None:
    _, member = await world.signed_up()
    joining = await world.asking()

    assert await joining.machine.vault.load() is None
    with pytest.raises(NotFoundError):
        await joining.machine.member()
    await joining.poll()
    assert not joining.added
    assert await joining.machine.vault.load() is None
    assert member.state.version == 1


# --- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_sign_up_whose_answer_was_lost_is_finished_by_the_next(world: World, *, arrived: bool) -> None:
    sent: list[httpx2.Response] = []

    class Cut(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path == "/v1/register" and not sent:
                sent.append(httpx2.Response(500))
                if arrived:
                    await world.transport.handle_async_request(request)
                raise httpx2.ReadError("cut off", request=request)
            return await world.transport.handle_async_request(request)

    cut = await world.machine(Cut())
    with pytest.raises(UnavailableError, match="may have been made") as lost:
        await world.signed_up(cut)
    assert "--sign-up again" in lost.value.hint
    kept = await cut.vault.load()

    _, member = await world.signed_up(cut)

    now = await cut.vault.load()
    assert (now.account == kept.account) == arrived
    assert member.account == now.account
    assert member.state.rsk == world.code.rsk
    await account_scopes.create_scope(member, cut, name="works", suite=Suite.SEALED)


async def test_the_recovery_code_lets_a_machine_in_when_every_other_is_lost(world: World) -> None:
    _, member = await world.signed_up()
    joining = await world.asking()

    joined = await joining.recover(RecoveryCode.parse(world.code.text.lower()))

    assert joined.root == member.root
    assert joined.scopes.key(joined.home, 0) == member.scopes.key(member.home, 0)
    assert joined.device_name(joined.device) == "desk"


async def test_another_recovery_code_opens_nothing(world: World) -> None:
    await world.signed_up()
    joining = await world.asking()

    with pytest.raises(CredentialsError, match="not the recovery code"):
        await joining.recover(RecoveryCode(secret=b"d" * 20))
    assert await joining.machine.vault.load() is None


async def test_a_new_recovery_code_replaces_the_old_at_once_where_the_old_is_given(world: World) -> None:
    machine, member = await world.signed_up()
    new = RecoveryCode(secret=b"n" * 20)

    await recovery.replace_recovery(
        member, machine.cloud, new, old=world.code, now=world.now, entropy=world.random.randbytes
    )

    assert member.state.version == 2
    assert recovery.is_recovery(member.state, new.rsk)
    with pytest.raises(CredentialsError):
        await (await world.asking()).recover(world.code)
    assert await (await world.asking()).recover(new) is not None


async def test_without_the_old_code_a_new_one_waits_a_week_and_the_old_still_opens(world: World) -> None:
    machine, member = await world.signed_up()
    new = RecoveryCode(secret=b"n" * 20)

    await recovery.replace_recovery(member, machine.cloud, new, old=None, now=world.now, entropy=world.random.randbytes)

    assert await (await world.asking()).recover(world.code) is not None
    with pytest.raises(CredentialsError):
        await (await world.asking()).recover(new)
    assert not await confirmed(world, machine, member)
    world.time += 8 * 24 * 3600 * 1000
    assert await confirmed(world, machine, member)
    assert not await confirmed(world, machine, member)
    assert await (await world.asking(name="late")).recover(new) is not None
    with pytest.raises(CredentialsError):
        await (await world.asking()).recover(world.code)


async def confirmed(world: World, machine: Machine, member: Member) -> bool:
    """A round's part in a recovery code that waits. Says whether it was put in force."""
    await member.refresh(machine.cloud)
    return await recovery.confirm_recovery(member, machine.cloud, now=world.now, entropy=world.random.randbytes)


async def test_a_wrong_old_code_replaces_nothing(world: World) -> None:
    machine, member = await world.signed_up()
    before = member.state

    with pytest.raises(CredentialsError):
        await recovery.replace_recovery(
            member,
            machine.cloud,
            RecoveryCode(secret=b"n" * 20),
            old=RecoveryCode(secret=b"d" * 20),
            now=world.now,
            entropy=world.random.randbytes,
        )
    assert member.state == before


async def test_the_recovery_code_undoes_what_a_thief_did_with_an_unlocked_machine(world: World) -> None:
    first, member = await world.signed_up()
    thief_machine, thief = await world.paired(first, member, name="stolen")
    await member.refresh(first.cloud)
    start = member.state.seq + 1
    await thief.refresh(thief_machine.cloud)
    await account_devices.revoke(thief, thief_machine.cloud, first.device, ends={}, entropy=world.random.randbytes)
    with pytest.raises(ScrubjayError):
        await member.refresh(first.cloud)

    joining = await world.asking(name="new")
    back = await joining.revert(world.code, start)

    assert not back.state.devices[first.device].revoked
    assert back.state.version == 3
    assert back.scopes.epoch(back.home) == 2
    assert len(back.scopes.key(back.home, 2)) == 32
    await account_devices.revoke(
        back, joining.machine.cloud, thief_machine.device, ends={}, entropy=world.random.randbytes
    )
    with pytest.raises(ScrubjayError):
        await thief.refresh(thief_machine.cloud)
    with pytest.raises(CredentialsError):
        await (await world.asking()).revert(RecoveryCode(secret=b"d" * 20), start)


# --- revoking and rotating --------------------------------------------------------------------------------------------


async def test_a_revoked_machine_is_shut_out_and_the_others_follow_the_new_keys(world: World) -> None:
    first, member = await world.signed_up()
    second, other = await world.paired(first, member, name="desk")
    lost_machine, lost = await world.paired(first, member, name="lost")
    old_root, old_wrap = other.root, other.state.devices[second.device].wrap_pub
    await other.refresh(second.cloud)

    await account_devices.revoke(member, first.cloud, lost_machine.device, ends={}, entropy=world.random.randbytes)
    await other.refresh(second.cloud)

    with pytest.raises(RevokedError):
        await lost.refresh(lost_machine.cloud)
    with pytest.raises((UnauthenticatedError, RevokedError)):
        await lost_machine.cloud.heads()
    await member.refresh(first.cloud)
    assert member.state.version == 2
    assert other.root == member.root != old_root
    assert other.scopes.key(other.home, 1) == member.scopes.key(member.home, 1)
    assert other.scopes.key(other.home, 0) == member.scopes.key(
        member.home, 0
    )  # what was written before stays readable
    assert member.scopes.epoch(member.home) == 1
    kept = await second.vault.load()
    assert kept is not None
    assert kept.root == member.root  # the old one is not kept
    assert other.state.devices[second.device].wrap_pub != old_wrap
    assert kept.keys.wrap_pub == other.state.devices[second.device].wrap_pub
    assert member.device_name(lost_machine.device) == "lost"  # the list of devices says which one it was


async def test_what_is_wrapped_after_a_rotation_opens_with_renewed_keys_only(world: World) -> None:
    first, member = await world.signed_up()
    before = (await first.vault.load()).keys

    await rotation.rotate(member, first.cloud, entropy=world.random.randbytes)

    (wrap,) = [one for one in (await first.cloud.log.wraps(first.device)).wraps if one.version == 2]
    with pytest.raises(ScrubjayError):
        unwrap_root(wrap, account=member.account, target=first.device, holder=before)
    kept = await first.vault.load()
    assert kept.keys.sign_seed == before.sign_seed
    assert unwrap_root(wrap, account=member.account, target=first.device, holder=kept.keys) == member.root


async def test_a_machine_that_stopped_while_renewing_its_keys_goes_on_with_the_right_ones(world: World) -> None:
    first, member = await world.signed_up()
    second, other = await world.paired(first, member)
    await rotation.rotate(member, first.cloud, entropy=world.random.randbytes)

    save, saved = second.vault.save, []

    async def stops_before_the_swap(secrets: Secrets) -> None:
        if saved and saved[-1].next_wrap is not None and secrets.next_wrap is None:
            raise InterruptedError
        saved.append(secrets)
        await save(secrets)

    second.vault.save = stops_before_the_swap
    with pytest.raises(InterruptedError):
        await other.refresh(second.cloud)
    second.vault.save = save
    again = await second.member()
    await again.refresh(second.cloud)

    kept = await second.vault.load()
    assert kept.next_wrap is None
    assert kept.keys.wrap_pub == again.state.devices[second.device].wrap_pub
    await member.refresh(first.cloud)
    await rotation.rotate(member, first.cloud, entropy=world.random.randbytes)
    await again.refresh(second.cloud)
    assert again.root == member.root


async def test_revoking_this_machine_or_one_that_is_not_there_is_refused(world: World) -> None:
    first, member = await world.signed_up()

    with pytest.raises(ConflictError, match="this device"):
        await account_devices.revoke(member, first.cloud, first.device, ends={}, entropy=world.random.randbytes)
    with pytest.raises(NotFoundError):
        await account_devices.revoke(member, first.cloud, b"x" * 16, ends={}, entropy=world.random.randbytes)


async def test_two_machines_that_change_the_account_at_once_both_succeed(world: World) -> None:
    first, member = await world.signed_up()
    second, other = await world.paired(first, member)
    await member.refresh(first.cloud)

    await other.append(second.cloud, lambda _, ring: drafts.Draft(keyring=ring.with_device(second.device, "tower")))
    raced: list[LogAppend] = []

    async def late(append: LogAppend) -> LogPage:
        if not raced:
            raced.append(append)
            await account_devices.rename_device(other, second.cloud, second.device, "tower 2")
        return await first.cloud.log.append(append)

    await member.append(
        first.cloud, lambda _, ring: drafts.Draft(keyring=ring.with_device(first.device, "lap")), send=late
    )

    await other.refresh(second.cloud)
    assert other.keyring.devices == {first.device: "lap", second.device: "tower 2"} == dict(member.keyring.devices)


async def test_a_cloned_store_becomes_a_device_of_its_own(world: World) -> None:
    machine, member = await world.signed_up()
    before = machine.device

    await machine.store.write(lambda tx: tx.incarnation.renew("ee" * 16, 0))
    await member.refresh(machine.cloud)

    assert machine.device == member.device == b"\xee" * 16
    assert {before, machine.device} == {one.id for one in member.state.active()}
    assert (await machine.cloud.heads()) is not None  # asks as the new device
    kept = await machine.vault.load()
    assert (kept.device, kept.former) == (machine.device, None)
    assert member.device_name(machine.device) == "laptop"
    again = await machine.member()
    await again.refresh(machine.cloud)


async def test_a_store_older_than_its_keys_says_so_and_keeps_them(world: World) -> None:
    machine, member = await world.signed_up()
    before = machine.device
    await machine.store.write(lambda tx: tx.incarnation.renew("ee" * 16, 0))
    await member.refresh(machine.cloud)
    kept = await machine.vault.load()

    await machine.store.write(
        lambda tx: tx.incarnation.renew(before.hex(), 0)
    )  # an older copy of the file was put back
    for _ in range(2):
        with pytest.raises(UnauthenticatedError, match="older than its keys") as told:
            await (await machine.member()).refresh(machine.cloud)
        assert "scrubjay login" in told.value.hint

    assert await machine.vault.load() == kept
    await leaving.log_out(machine, await machine.member())
    assert (await (await world.asking(machine)).recover(world.code)).device == machine.device


# --- limited devices --------------------------------------------------------------------------------------------------


async def test_a_limited_device_gets_its_scopes_and_never_the_root_key(world: World) -> None:
    first, member = await world.signed_up()
    scope = await account_scopes.create_scope(member, first, name="ci", suite=Suite.SEALED, projects=["proj_ci"])
    bundle = await limited_devices.create_limited(
        member, first.cloud, name="runner", scopes=[scope], read_only=True, entropy=world.random.randbytes
    )

    runner = await world.machine()
    limited = await limited_devices.join_limited(runner, Bundle.parse(f" {bundle.text}\n"))

    assert (limited.limited, limited.read_only, limited.scopes.ids) == (True, True, (scope,))
    assert limited.scopes.key(scope, 0) == member.scopes.key(scope, 0)
    assert limited.device == runner.device == account_log.instance_of(bundle.device, runner.device[8:])
    assert limited.certified is not None
    assert limited.certified.id == bundle.device
    with pytest.raises(NotFoundError):
        limited.scopes.key(limited.home, 0)
    kept = await runner.vault.load()
    assert kept.root is None
    assert all(wrap.kind == 2 for wrap in (await runner.cloud.log.wraps(bundle.device)).wraps)
    for refused in (
        lambda: rotation.rotate(limited, runner.cloud, entropy=world.random.randbytes),
        lambda: account_devices.rename_device(limited, runner.cloud, runner.device, "x"),
        lambda: account_devices.revoke(limited, runner.cloud, first.device, ends={}, entropy=world.random.randbytes),
    ):
        with pytest.raises(DeniedError):
            await refused()


async def test_a_limited_device_follows_new_keys_and_is_revoked_without_a_new_root(world: World) -> None:
    first, member = await world.signed_up()
    bundle = await limited_devices.create_limited(
        member, first.cloud, name="runner", scopes=[member.home], read_only=False, entropy=world.random.randbytes
    )
    runner = await world.machine()
    limited = await limited_devices.join_limited(runner, bundle)

    await rotation.rotate(member, first.cloud, entropy=world.random.randbytes)
    await limited.refresh(runner.cloud)
    assert limited.scopes.key(limited.home, 1) == member.scopes.key(member.home, 1)

    version = member.state.version
    await account_devices.revoke(member, first.cloud, bundle.device, ends={}, entropy=world.random.randbytes)
    assert member.state.version == version
    assert member.scopes.epoch(member.home) == 2
    with pytest.raises(RevokedError):
        await limited.refresh(runner.cloud)


@pytest.mark.parametrize("text", ["", "sjs1-device-", "sjs1-device-!!", "abc", "sjs1-device-" + "A" * 40])
def test_what_is_not_a_bundle_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidError, match="not a device bundle") as refused:
        Bundle.parse(text)
    assert "AAAA" not in refused.value.message


# --- a server that lies -----------------------------------------------------------------------------------------------

Change = Callable[[dict], dict]


class Lies(httpx2.AsyncBaseTransport):
    """Passes everything on, and changes JSON answers of one path."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self.inner = inner
        self.path = ""
        self.change: Change = lambda body: body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self.inner.handle_async_request(request)
        if request.url.path != self.path or request.method != "GET":
            return answer
        body = json.dumps(self.change(json.loads(await answer.aread()))).encode()
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-length"}
        return httpx2.Response(answer.status_code, stream=httpx2.ByteStream(body), headers=headers)


@pytest.fixture
async def lied_to(world: World) -> tuple[Machine, Member, Lies]:
    lies = Lies(world.transport)
    machine, member = await world.signed_up(await world.machine(lies))
    await account_devices.rename_device(member, machine.cloud, machine.device, "x")
    return machine, member, lies


async def test_a_shorter_account_log_is_an_alarm(lied_to: tuple[Machine, Member, Lies]) -> None:
    machine, member, lies = lied_to
    lies.path = "/v1/log"
    lies.change = lambda body: body | {"entries": [], "seq": body["seq"] - 1}

    with pytest.raises(RolledBackError, match="has shown entry"):
        await member.refresh(machine.cloud)


async def test_another_account_log_is_an_alarm(lied_to: tuple[Machine, Member, Lies]) -> None:
    machine, member, lies = lied_to
    lies.path = "/v1/log"

    def other(body: dict) -> dict:
        entry = bytearray(base64.b64decode(body["entries"][0]))
        entry[-1] ^= 1
        return body | {"entries": [base64.b64encode(bytes(entry)).decode()]}

    lies.change = other
    with pytest.raises(SplitError):
        await member.refresh(machine.cloud)


async def test_a_log_whose_end_is_kept_back_is_an_alarm(lied_to: tuple[Machine, Member, Lies]) -> None:
    machine, member, lies = lied_to
    lies.path = "/v1/log"
    lies.change = lambda body: body | {"seq": body["seq"] + 1}

    with pytest.raises(WithheldError):
        await member.refresh(machine.cloud)


async def test_an_older_keyring_is_refused(world: World) -> None:
    lies = Lies(world.transport)
    first, member = await world.signed_up(await world.machine(lies))
    old = member.state.keyring
    await account_devices.rename_device(member, first.cloud, first.device, "x")
    sealed = await first.cloud.log.blob(old[1])

    class Old(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path.startswith("/v1/objects/"):
                return httpx2.Response(200, stream=httpx2.ByteStream(sealed))
            return await world.transport.handle_async_request(request)

    joining = await world.asking(await world.machine(Old()))
    with pytest.raises(BadSignatureError, match="another keyring"):
        await joining.recover(world.code)
    assert member.state.keyring[0] == old[0] + 1


async def test_a_machine_repairs_a_server_that_lost_the_end_of_the_log(world: World, tmp_path: Path) -> None:
    first, member = await world.signed_up()
    second, other = await world.paired(first, member)
    await other.refresh(second.cloud)
    await member.refresh(first.cloud)
    before = member.state.seq
    await world.database.copy_to(tmp_path / "backup.db")
    await rotation.rotate(member, first.cloud, entropy=world.random.randbytes)
    restored = await database.open(tmp_path / "backup.db", now=world.now, entropy=world.random.randbytes)
    world.stack.push_async_callback(restored.close)
    app = create_app(restored, world.settings, now=world.now, entropy=world.random.randbytes, policy=CHEAP)
    machine = replace(first, cloud=Cloud(ORIGIN, now=world.now, transport=httpx2.ASGITransport(app=app)))
    desk = replace(second, cloud=Cloud(ORIGIN, now=world.now, transport=httpx2.ASGITransport(app=app)))
    world.stack.push_async_callback(machine.cloud.aclose)
    world.stack.push_async_callback(desk.cloud.aclose)

    with pytest.raises(RolledBackError):
        await member.refresh(machine.cloud)
    repaired = await member.repair_log(machine.cloud)
    await member.refresh(machine.cloud)
    await other.refresh(desk.cloud)

    assert repaired == member.state.seq - before
    assert other.root == member.root
    assert other.scopes.key(other.home, 1) == member.scopes.key(member.home, 1)
    assert await member.repair_log(machine.cloud) == 0


# --- leaving ----------------------------------------------------------------------------------------------------------


async def test_logging_out_erases_keys_and_keeps_memories_and_the_way_back(world: World) -> None:
    machine, member = await world.signed_up()
    before = machine.device

    await leaving.log_out(machine, member)

    assert await machine.vault.load() is None
    assert await machine.vault.keyring() is None
    assert await machine.store.read(lambda q: q.replication.state()) is None
    assert machine.device != before
    joined = await (await world.asking(machine)).recover(world.code)
    assert joined.state.devices[before].revoked
    await leaving.leave(machine.store, machine.vault, machine.entropy)
    await leaving.leave(machine.store, machine.vault, machine.entropy)


async def test_a_deleted_account_is_gone_and_the_machine_is_out(world: World) -> None:
    machine, _ = await world.signed_up()

    with pytest.raises(CredentialsError):
        await leaving.delete_account(machine, WRONG)
    deleted = await leaving.delete_account(machine, RIGHT)

    assert deleted.left == 0
    assert await machine.vault.load() is None
    with pytest.raises(CredentialsError):
        await world.asking()


async def test_a_changed_password_lets_in_and_the_old_one_does_not(world: World) -> None:
    machine, _ = await world.signed_up()

    await machine.cloud.account.set_password(SetPassword(auth_key=RIGHT, new_kdf=KDF, new_auth_key=WRONG))

    with pytest.raises(CredentialsError):
        await world.asking()
    assert await admission.log_in(await world.machine(), username="ann", auth_key=WRONG, name="x") is not None


def test_signers_have_numbers_that_never_change() -> None:
    assert (Signer.ASK, Signer.RSK, EntryType.VOID) == (1, 2, 14)
