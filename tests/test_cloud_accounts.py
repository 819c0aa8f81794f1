"""Accounts and devices of the cloud service, on both databases: signing up, passwords, pairing, the log, leaving."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cloud_client import (
    Account,
    Client,
    Device,
    Key,
    RefusedError,
    World,
    keyring,
    object_hash,
    opened,
    second_device,
    signed_up,
    totp_code,
)
from scrubjay_cloud.accounts.contents import rows_of
from scrubjay_cloud.accounts.registration import create_invite
from scrubjay_cloud.policy import DEFAULT, Bucket, CloudPolicy, LimitPolicy
from scrubjay_cloud.service import Service
from scrubjay_shared import account as accountlog
from scrubjay_shared.account import AccountState, EntryType, Signer
from scrubjay_shared.envelope import Suite
from scrubjay_shared.signatures import is_signed
from scrubjay_shared.wire import (
    RECOVERY_TARGET,
    ROOT_WRAP,
    AccountName,
    Caps,
    Challenge,
    CheckSignUp,
    DeleteAccount,
    Deleted,
    Enroll,
    Enrolment,
    Enrolments,
    Kdf,
    LogAppend,
    Login,
    LogPage,
    PairingAnswer,
    PairingReveal,
    Pending,
    Prelogin,
    Refusals,
    Register,
    SetName,
    SetPassword,
    SetTotp,
    Usage,
    Wrap,
    Wraps,
    code_login_message,
    refusal_message,
)

pytestmark = pytest.mark.anyio

LOOSE = CloudPolicy(
    limits=LimitPolicy(
        login_address=Bucket(burst=1000, rate=1000),
        login_name=Bucket(burst=1000, rate=1000),
        register=Bucket(burst=1000, rate=1000),
    ),
    hash_memory_kib=64,  # what a password costs is not what these tests are about
    hash_iterations=1,
)


@pytest.fixture
async def world(cloud_store: str | Path) -> AsyncIterator[World]:
    async with opened(cloud_store, policy=LOOSE) as found:
        yield found


@pytest.fixture
async def file_world(tmp_path: Path) -> AsyncIterator[World]:
    """A service on a file: for what is refused before any database is asked."""
    async with opened(tmp_path / "server.db", policy=LOOSE) as found:
        yield found


async def refused(call: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        await call
    assert caught.value.response.headers["content-type"] == "application/problem+json"
    assert caught.value.problem.request_id == caught.value.response.headers["x-request-id"]
    return caught.value.problem.status, caught.value.code


# --- signing up -------------------------------------------------------------------------------------------------------


async def test_who_signs_up_has_an_account_a_log_and_a_device(world: World) -> None:
    device = await signed_up(world.client, now=world.now)

    page = await device.client.call("GET", "/v1/log", answer=LogPage)
    usage = await device.client.call("GET", "/v1/usage", answer=Usage)

    assert list(page.entries) == device.account.entries
    assert (page.seq, page.head) == (2, device.account.head)
    assert (usage.devices, usage.scopes, usage.objects, usage.bytes) == (1, 1, 0, 0)


async def test_caps_and_probes_need_no_token(world: World) -> None:
    caps = await world.client.call("GET", "/v1/caps", answer=Caps)
    health = await world.client.call("GET", "/healthz")
    ready = await world.client.call("GET", "/readyz")
    world.service.stop()
    stopping = await world.client.http.get("/readyz")

    assert (caps.protocol, caps.generation, caps.registration) == (1, 1, "open")
    assert caps.store_id == health.headers["scrubjay-store"]
    assert caps.time == world.now()
    assert [health.status_code, ready.status_code, stopping.status_code] == [200, 200, 503]


async def test_a_name_is_taken_once_however_it_is_written(world: World) -> None:
    await signed_up(world.client, "ann", now=world.now)

    again = Account.make("ANN", seed="other", now=world.now)
    again.device(world.client)

    assert await refused(again.register(world.client)) == (409, "conflict")


async def test_an_account_is_made_once(world: World) -> None:
    device = await signed_up(world.client, "ann", now=world.now)

    device.account.name = "bob"

    assert await refused(device.account.register(world.client)) == (409, "conflict")


def _forged_entry(account: Account) -> None:
    account.entries[-1] = account.entries[-1][:-1] + bytes([account.entries[-1][-1] ^ 1])


BAD_REGISTRATIONS: dict[str, tuple[Callable[[Account], Any], Callable[[Register], Register], tuple[int, str]]] = {
    "no device": (lambda a: a.entries.__delitem__(slice(1, None)), lambda r: r, (400, "invalid")),
    "no genesis": (lambda a: a.entries.pop(0), lambda r: r, (409, "broken_chain")),
    "no log": (lambda a: a.entries.clear(), lambda r: r, (400, "invalid")),
    "a forged entry": (_forged_entry, lambda r: r, (409, "bad_signature")),
    "a log that follows something": (
        lambda _: None,
        lambda r: replace(r, log=replace(r.log, head=b"x" * 32)),
        (400, "invalid"),
    ),
    "an empty name": (lambda _: None, lambda r: replace(r, username=" "), (400, "invalid")),
    "a name with a zero byte": (lambda _: None, lambda r: replace(r, username="a\0b"), (400, "invalid")),
    "a long name": (lambda _: None, lambda r: replace(r, username="a" * 65), (400, "invalid")),
    "a short key": (lambda _: None, lambda r: replace(r, auth_key=b"short"), (400, "invalid")),
    "a short salt": (lambda _: None, lambda r: replace(r, kdf=replace(r.kdf, salt=b"s" * 15)), (400, "invalid")),
    "a cheap derivation": (
        lambda _: None,
        lambda r: replace(r, kdf=replace(r.kdf, memory_kib=1024)),
        (400, "invalid"),
    ),
    "one iteration": (lambda _: None, lambda r: replace(r, kdf=replace(r.kdf, iterations=1)), (400, "invalid")),
    "a huge number": (lambda _: None, lambda r: replace(r, kdf=replace(r.kdf, lanes=2**62)), (400, "invalid")),
    "a wrap of no kind": (
        lambda _: None,
        lambda r: replace(r, log=replace(r.log, wraps=(Wrap(target=bytes(16), kind=9, version=1, sealed=b"x"),))),
        (400, "invalid"),
    ),
    "a blob that is none": (
        lambda _: None,
        lambda r: replace(r, log=replace(r.log, blobs=(b"x",))),
        (400, "malformed"),
    ),
}


@pytest.mark.parametrize("case", BAD_REGISTRATIONS)
async def test_a_registration_that_is_not_whole_makes_nothing(file_world: World, case: str) -> None:
    spoil, change, expected = BAD_REGISTRATIONS[case]
    account = Account.make("ann", now=file_world.now)
    account.device(file_world.client)
    spoil(account)

    found = await refused(file_world.client.call("POST", "/v1/register", change(account.registration())))

    assert found == expected
    assert await file_world.rows("select count(*) from account") == [(0,)]
    assert await file_world.rows("select count(*) from account_log") == [(0,)]


async def test_an_invitation_signs_up_one_account(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, registration="invite") as world:
        made = await world.database.write(lambda tx: create_invite(tx, random=bytes(15), now=world.now(), policy=LOOSE))
        none = Account.make("none", now=world.now)
        none.device(world.client)

        without = await refused(none.register(world.client))
        await signed_up(world.client, "ann", now=world.now, invite=made.code)
        twice = await refused(none.register(world.client, invite=made.code))

        assert without == twice == (403, "denied")


async def test_an_invitation_ends(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, registration="invite") as world:
        made = await world.database.write(lambda tx: create_invite(tx, random=bytes(15), now=world.now(), policy=LOOSE))
        world.now.at = made.expires
        account = Account.make("ann", now=world.now)
        account.device(world.client)

        assert await refused(account.register(world.client, invite=made.code)) == (403, "denied")


async def test_name_and_invitation_are_checked_before_a_person_is_asked_for_more(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, registration="invite") as world:
        invites = [
            (await world.database.write(partial(create_invite, random=bytes([n] * 15), now=world.now(), policy=LOOSE)))
            for n in range(2)
        ]
        await signed_up(world.client, "ann", now=world.now, invite=invites[0].code)

        async def check(username: str, invite: str) -> Any:
            return await world.client.call("POST", "/v1/register/check", CheckSignUp(username=username, invite=invite))

        assert (await check("bob", invites[1].code)).status_code == 204
        assert await refused(check("bob", "")) == (403, "denied")
        assert await refused(check("bob", invites[0].code)) == (403, "denied")  # it was used
        assert await refused(check("ANN", invites[1].code)) == (409, "conflict")
        assert await refused(check("ANN", "a guess")) == (403, "denied")  # names are told to the invited only
        assert await refused(check("no name", invites[1].code)) == (400, "invalid")
        await signed_up(world.client, "bob", now=world.now, invite=invites[1].code)  # the checks have used nothing up


async def test_invitations_and_names_cannot_be_tried_faster_than_accounts_are_made(cloud_store: str | Path) -> None:
    policy = replace(LOOSE, limits=replace(LOOSE.limits, register=DEFAULT.limits.register))
    async with opened(cloud_store, policy=policy, registration="invite") as world:
        guesses = [CheckSignUp(username="ann", invite=f"guess {n}") for n in range(6)]

        told = [await refused(world.client.call("POST", "/v1/register/check", guess)) for guess in guesses]

        assert told == [(403, "denied")] * 5 + [(429, "too_many")]


async def test_an_account_made_for_another_server_is_refused(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=LOOSE, origin="https://elsewhere.test") as world:
        account = Account.make("ann", now=world.now)
        account.device(world.client)

        assert await refused(account.register(world.client)) == (403, "denied")


# --- passwords --------------------------------------------------------------------------------------------------------


async def test_a_wrong_password_and_an_unknown_name_answer_alike(world: World) -> None:
    await signed_up(world.client, "ann", now=world.now)
    answers = []

    for name in ("ann", "nobody"):
        given = Login(username=name, auth_key=b"w" * 32)
        with pytest.raises(RefusedError) as caught:
            await world.client.call("POST", "/v1/login", given, token="")
        response = caught.value.response
        headers = {key: value for key, value in response.headers.items() if key != "x-request-id"}
        answers.append((replace(caught.value.problem, request_id=""), headers, len(response.content)))

    assert answers[0] == answers[1]
    assert answers[0][0].code == "credentials"
    assert answers[0][0].status == 401


async def test_prelogin_gives_an_unknown_name_a_salt_that_stays(world: World) -> None:
    device = await signed_up(world.client, "ann", now=world.now)

    async def asked(name: str) -> Kdf:
        found: Prelogin = await world.client.call("GET", "/v1/prelogin", answer=Prelogin, username=name)
        return found.kdf

    assert await asked("ANN") == device.account.kdf
    assert await asked("nobody") == await asked("Nobody")
    assert replace(await asked("nobody"), salt=b"") == replace(await asked("ann"), salt=b"")
    assert (await asked("nobody")).salt != (await asked("somebody")).salt


async def test_a_pending_token_enrols_and_reads_the_log_and_no_more(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    pending = await device.account.login(world.client)
    client = Client(world.client.http, pending.token)

    assert pending.expires == world.now() + DEFAULT.pending_ms
    assert (await client.call("GET", "/v1/log", answer=LogPage)).seq == 2
    for method, path in (
        ("GET", "/v1/pull"),
        ("GET", "/v1/heads"),
        ("GET", "/v1/usage"),
        ("GET", "/v1/events"),
        ("DELETE", f"/v1/devices/{device.id.hex()}"),
    ):
        assert await refused(client.call(method, path)) == (403, "pending")
    assert await refused(client.call("POST", "/v1/push", device.segment().data)) == (403, "pending")
    assert await refused(client.call("GET", f"/v1/wraps/{device.id.hex()}")) == (403, "denied")
    world.now.at = pending.expires
    assert await refused(client.call("GET", "/v1/log")) == (401, "expired")


async def test_the_code_of_a_second_factor_works_once(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account, secret = device.account, b"s" * 20
    set_it = SetTotp(auth_key=account.auth_key, secret=secret, code=totp_code(secret, world.now()))

    wrong = await refused(device.client.call("PUT", "/v1/account/totp", replace(set_it, code="000000")))
    await device.client.call("PUT", "/v1/account/totp", set_it)

    assert wrong == (401, "credentials")
    assert await refused(account.login(world.client)) == (401, "credentials")
    assert await refused(account.login(world.client, code=set_it.code)) == (401, "credentials")  # used to set it
    world.now.pass_(60)
    [(kept,)] = await world.rows("select totp from account where id = ?", account.id)
    assert secret not in kept  # a copy of the database gives no codes
    code = totp_code(secret, world.now())
    assert (await account.login(world.client, code=code)).account == account.id
    assert await refused(account.login(world.client, code=code)) == (401, "credentials")
    world.now.pass_(60)
    assert (await account.login(world.client, code=totp_code(secret, world.now() - 30_000))).account == account.id
    await device.client.call("PUT", "/v1/account/totp", SetTotp(auth_key=account.auth_key))
    assert (await account.login(world.client)).account == account.id


async def test_a_new_password_replaces_the_old_and_voids_what_it_gave(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account = device.account
    pending = await account.login(world.client)
    given = SetPassword(auth_key=account.auth_key, new_kdf=account.kdf, new_auth_key=b"n" * 32)

    wrong = await refused(device.client.call("PUT", "/v1/account/password", replace(given, auth_key=b"w" * 32)))
    await device.client.call("PUT", "/v1/account/password", given)

    assert wrong == (401, "credentials")
    assert await refused(device.client.call("GET", "/v1/log", token=pending.token)) == (401, "unauthenticated")
    assert await refused(account.login(world.client)) == (401, "credentials")
    account.auth_key = b"n" * 32
    assert (await account.login(world.client)).account == account.id
    assert (await device.heads()).heads == ()


async def test_a_name_that_was_given_up_is_kept_for_its_account_for_a_while(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account = device.account
    first = account.name
    other = await signed_up(world.client, "other", now=world.now)

    async def renamed(name: str, *, device: Device = device, key: bytes = b"") -> str:
        given = SetName(auth_key=key or device.account.auth_key, username=name)
        call = device.client.call("PUT", "/v1/account/name", given, answer=AccountName)
        return (await call).username

    assert await refused(renamed("other")) == (409, "conflict")
    assert await refused(renamed("mine", key=b"w" * 32)) == (401, "credentials")
    assert await refused(renamed("no spaces")) == (400, "invalid")
    assert await renamed(first) == first
    assert await renamed("SECOND") == "second"
    assert await refused(account.login(world.client)) == (401, "credentials")
    account.name = "second"
    assert (await account.login(world.client)).account == account.id
    assert await refused(renamed(first, device=other)) == (409, "conflict")
    assert await renamed(first) == first
    assert await refused(signed_up(world.client, "second", now=world.now)) == (409, "conflict")
    for name in ("third", "fourth"):
        assert await renamed(name) == name
    assert await refused(renamed("fifth")) == (409, "conflict")  # three are kept: second, the first, third
    assert await renamed("second") == "second"
    world.now.pass_(LOOSE.former_name_ms // 1000 + 1)
    await other.authenticate()
    assert await renamed(first, device=other) == first


async def test_guessing_is_limited_by_address_and_by_name(cloud_store: str | Path) -> None:
    policy = CloudPolicy(hash_memory_kib=64, hash_iterations=1)
    async with opened(cloud_store, policy=policy) as world:
        given = Login(username="ann", auth_key=b"w" * 32)

        async def guess(name: str = "ann") -> str:
            with pytest.raises(RefusedError) as caught:
                await world.client.call("POST", "/v1/login", replace(given, username=name))
            if caught.value.code == "too_many":
                assert caught.value.problem.status == 429
                assert 1 <= int(caught.value.response.headers["retry-after"]) <= 360
            return caught.value.code

        by_address = [await guess() for _ in range(6)]
        world.now.pass_(60)
        another = [await guess() for _ in range(5)]
        world.now.pass_(60)

        assert by_address == ["credentials"] * 5 + ["too_many"]
        assert another == ["credentials"] * 5
        assert await guess() == "too_many"
        assert await guess("bob") == "credentials"


async def test_who_guesses_from_one_network_keeps_nobody_out_of_their_account(cloud_store: str | Path) -> None:
    """The attack: wrong logins from one place, for as long as it likes. The owner logs in from another."""
    policy = CloudPolicy(hash_memory_kib=64, hash_iterations=1)
    async with opened(cloud_store, policy=policy, proxies=(ipaddress.ip_network("127.0.0.0/8"),)) as world:
        device = await signed_up(world.client, now=world.now)

        async def login(address: str, key: bytes) -> str:
            given = Login(username=device.account.name, auth_key=key)
            try:
                await world.client.call("POST", "/v1/login", given, headers={"X-Forwarded-For": address})
            except RefusedError as error:
                return error.code
            return "ok"

        attacked = [await login(f"203.0.113.{n}", b"w" * 32) for n in range(30)]  # one network, many addresses

        assert attacked == ["credentials"] * 10 + ["too_many"] * 20
        assert await login("198.51.100.7", device.account.auth_key) == "ok"


async def test_who_guesses_from_many_networks_keeps_no_owner_out_of_a_network_that_they_are_known_in(
    cloud_store: str | Path,
) -> None:
    """The attack: more wrong logins from everywhere than a name is given. The owner's own networks do not count in it."""
    policy = CloudPolicy(hash_memory_kib=64, hash_iterations=1, known_networks=2)
    async with opened(cloud_store, policy=policy, proxies=(ipaddress.ip_network("127.0.0.0/8"),)) as world:
        device = await signed_up(world.client, now=world.now)  # in 127.0.0.0/24
        account = device.account

        async def login(address: str, key: bytes = account.auth_key) -> str:
            given = Login(username=account.name, auth_key=key)
            try:
                await world.client.call("POST", "/v1/login", given, headers={"X-Forwarded-For": address})
            except RefusedError as error:
                return error.code
            return "ok"

        async def attack() -> None:
            for network in range(50):
                for n in range(5):
                    await login(f"10.{network}.1.{n}", b"w" * 32)

        world.now.pass_(1)  # of two networks seen in the same millisecond either is the older one
        await world.client.call(
            "POST", "/v1/auth/token", await device.token_request(), headers={"X-Forwarded-For": "2001:db8:7:1::1"}
        )
        await attack()
        assert await login("192.0.2.55") == "too_many"  # nobody knows them here: the recovery code lets them in
        assert [await login("127.0.0.9"), await login("2001:db8:7:2::2")] == ["ok", "ok"]
        tries = [await login(f"2001:db8:7:{n}::1", b"w" * 32) for n in range(11)]
        assert tries == ["credentials"] * 9 + ["too_many"] * 2  # a neighbour has what one network is given, and no more

        world.now.pass_(3600)
        await login("198.51.100.7")  # where they are today, by the right password
        await attack()
        assert await login("198.51.100.9") == "ok"
        assert await login("127.0.0.9") == "too_many"  # the oldest of three makes room
        assert await world.rows("select count(*) from known_network") == [(2,)]
        stored = await world.rows("select network from known_network")
        assert all(len(network) == 16 for (network,) in stored)


async def test_who_has_the_recovery_code_is_kept_out_by_nobody(cloud_store: str | Path) -> None:
    """The attack: wrong logins from the owner's own address, for as long as it likes."""
    policy = CloudPolicy(hash_memory_kib=64, hash_iterations=1)
    async with opened(cloud_store, policy=policy) as world:
        device = await signed_up(world.client, now=world.now)
        account = device.account
        for _ in range(6):
            with pytest.raises(RefusedError):
                await replace(account, auth_key=b"w" * 32).login(world.client)

        async def signed(code: Key, *, key: bytes = account.auth_key) -> Login:
            nonce = (await world.client.call("GET", "/v1/auth/challenge", answer=Challenge, device="00" * 16)).nonce
            message = code_login_message(nonce, account.name, key, account.origin)
            return Login(
                username=account.name, auth_key=key, nonce=nonce, origin=account.origin, proof=code.sign(message)
            )

        login = "/v1/login"
        plain = Login(username=account.name, auth_key=account.auth_key)
        assert await refused(world.client.call("POST", login, plain)) == (429, "too_many")
        assert await refused(world.client.call("POST", login, await signed(Key(account.entropy)))) == (429, "too_many")
        given = await signed(account.rsk)
        assert (await world.client.call("POST", login, given, answer=Pending)).account == account.id
        assert await refused(world.client.call("POST", login, given)) == (401, "unauthenticated")  # a second answer
        wrong = await signed(account.rsk, key=b"w" * 32)
        assert await refused(world.client.call("POST", login, wrong)) == (401, "credentials")
        moved = replace(await signed(account.rsk), username="somebody-else")
        assert await refused(world.client.call("POST", login, moved)) == (429, "too_many")


async def test_what_proves_nothing_costs_no_write(cloud_store: str | Path) -> None:
    async with opened(cloud_store, policy=CloudPolicy(hash_memory_kib=64, hash_iterations=1)) as world:
        device = await signed_up(world.client, now=world.now)
        tables = ("bucket", "challenge", "audit", "token", "enroll", "invite")
        before = [await world.rows(f"select * from {table}") for table in tables]
        bare = Client(world.client.http)
        request = replace(await device.token_request(), signature=b"s" * 64)
        await bare.call("GET", "/v1/prelogin", username="ann")
        await bare.call("GET", "/v1/caps")
        assert await refused(bare.call("POST", "/v1/auth/token", request)) == (401, "unauthenticated")
        assert await refused(bare.call("POST", "/v1/login", Login(username="bob", auth_key=b"w" * 32)))
        assert await refused(bare.call("GET", "/v1/heads", token="x"))
        given = device.account.registration()
        assert await refused(bare.call("POST", "/v1/register/check", CheckSignUp(username=given.username)))
        assert [await world.rows(f"select * from {table}") for table in tables] == before


# --- tokens -----------------------------------------------------------------------------------------------------------


async def test_a_token_is_asked_for_and_must_be_ours_and_in_time(world: World) -> None:
    device = await signed_up(world.client, now=world.now)

    bare = Client(world.client.http)
    assert await refused(bare.call("GET", "/v1/heads")) == (401, "unauthenticated")
    assert await refused(bare.call("GET", "/v1/heads", token="nonsense")) == (401, "unauthenticated")
    world.now.pass_(3599)
    assert (await device.heads()).heads == ()
    world.now.pass_(1)
    assert await refused(device.heads()) == (401, "expired")
    await device.authenticate()
    assert (await device.heads()).heads == ()


async def test_tokens_are_stored_hashed(world: World) -> None:
    device = await signed_up(world.client, now=world.now)

    rows = await world.rows("select hash from token")

    assert all(device.client.token.encode() not in row[0] and len(row[0]) == 32 for row in rows)


async def test_a_challenge_is_answered_in_time_by_its_device_for_its_server(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    client = Client(world.client.http)
    good = await device.token_request()
    stranger = Key(device.account.entropy)

    cases = {
        "another device": (replace(good, device=bytes(16)), (401, "unauthenticated")),
        "another account": (replace(good, account=bytes(16)), (401, "unauthenticated")),
        "another signature": (replace(good, signature=stranger.sign(b"x")), (401, "unauthenticated")),
        "no signature": (replace(good, signature=b""), (401, "unauthenticated")),
        "another nonce": (replace(good, nonce=bytes(40)), (401, "unauthenticated")),
        "a short nonce": (replace(good, nonce=good.nonce[:39]), (401, "unauthenticated")),
        "another origin": (replace(good, origin="https://evil.test"), (401, "unauthenticated")),
        "short ids": (replace(good, device=b"x"), (400, "invalid")),
    }
    for name, (request, expected) in cases.items():
        assert await refused(client.call("POST", "/v1/auth/token", request)) == expected, name

    relayed = await device.token_request(origin="https://evil.test")
    assert await refused(client.call("POST", "/v1/auth/token", relayed)) == (403, "denied")
    world.now.pass_(61)
    assert await refused(client.call("POST", "/v1/auth/token", good)) == (401, "expired")


async def test_a_device_keeps_few_tokens(world: World) -> None:
    device = await signed_up(world.client, now=world.now)

    for _ in range(DEFAULT.max_tokens + 5):
        await device.authenticate()

    rows = await world.rows("select count(*) from token where device is not null")
    assert rows == [(DEFAULT.max_tokens,)]
    assert (await device.heads()).heads == ()


# --- pairing ----------------------------------------------------------------------------------------------------------


async def test_a_second_device_asks_is_certified_and_gets_a_token(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    account = first.account
    pending = await account.login(world.client)
    second = Device(account=account, client=Client(world.client.http), id=account.entropy(16), key=Key(account.entropy))

    asked = await second.ask(pending)
    listed = await first.client.call("GET", "/v1/enroll", answer=Enrolments)
    path = f"/v1/enroll/{asked.id.hex()}/approve"
    too_early = await refused(first.client.call("POST", path))
    account.say(
        EntryType.DEVICE_ADD,
        accountlog.device_body(second.id, sign_pub=second.key.public, wrap_pub=second.wrap_pub),
    )
    wrap = Wrap(target=second.id, kind=ROOT_WRAP, version=1, sealed=b"sealed")
    await first.append(account.entries[-1], wraps=[wrap])
    await first.client.call("POST", path, answer=Enrolment)
    seen = await second.client.call("GET", "/v1/enroll", answer=Enrolments, token=pending.token)
    await second.authenticate()

    assert listed.enrolments == (asked,)
    assert too_early == (403, "pending")
    assert seen.enrolments == (replace(asked, approved=True),)
    assert (await second.client.call("GET", f"/v1/wraps/{second.id.hex()}", answer=Wraps)).wraps == (wrap,)


async def test_a_request_with_other_keys_than_the_log_says_is_not_approved(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    account = first.account
    second = account.device(world.client)
    await first.append(account.entries[-1])
    pending = await account.login(world.client)
    given = Enroll(device=second.id, sign_pub=b"x" * 32, wrap_pub=second.wrap_pub, commitment=b"c" * 32)
    asked = await second.client.call("POST", "/v1/enroll", given, answer=Enrolment, token=pending.token)

    assert await refused(first.client.call("POST", f"/v1/enroll/{asked.id.hex()}/approve")) == (409, "conflict")
    assert await refused(first.client.call("POST", f"/v1/enroll/{'00' * 16}/approve")) == (404, "not_found")


async def test_a_request_is_answered_once_and_then_reveals_once(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    pending = await first.account.login(world.client)
    second = Device(
        account=first.account,
        client=Client(world.client.http, token=pending.token),
        id=first.account.entropy(16),
        key=Key(first.account.entropy),
    )
    path = f"/v1/enroll/{(await second.ask(pending)).id.hex()}"
    one = PairingAnswer(nonce=b"1" * 32, head=first.account.head)

    assert await refused(second.client.call("POST", f"{path}/reveal", PairingReveal(nonce=b"r" * 32))) == (
        409,
        "conflict",
    )
    assert await refused(second.client.call("POST", f"{path}/answer", one)) == (403, "pending")
    assert await refused(first.client.call("POST", f"{path}/answer", replace(one, nonce=b"1"))) == (400, "invalid")
    for _ in range(2):
        kept = await first.client.call("POST", f"{path}/answer", one, answer=Enrolment)
        assert (kept.answer, kept.answer_head, kept.reveal) == (one.nonce, one.head, b"")
    for other in (replace(one, nonce=b"2" * 32), replace(one, head=bytes(32))):
        assert await refused(first.client.call("POST", f"{path}/answer", other)) == (409, "conflict")
    for _ in range(2):
        kept = await second.client.call("POST", f"{path}/reveal", PairingReveal(nonce=b"r" * 32), answer=Enrolment)
        assert (kept.answer, kept.reveal) == (one.nonce, b"r" * 32)
    assert await refused(second.client.call("POST", f"{path}/reveal", PairingReveal(nonce=b"s" * 32))) == (
        409,
        "conflict",
    )
    assert await refused(second.client.call("POST", f"{path}/reveal", PairingReveal(nonce=b"s"))) == (400, "invalid")


async def test_requests_to_be_added_are_few_and_end(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    account = first.account
    pending = await account.login(world.client)

    async def ask() -> Enrolment:
        one = Device(
            account=account, client=Client(world.client.http), id=account.entropy(16), key=Key(account.entropy)
        )
        return await one.ask(pending)

    for _ in range(DEFAULT.max_enrolments):
        await ask()
    assert await refused(ask()) == (429, "too_many")
    bad = Enroll(device=b"short", sign_pub=b"x" * 32, wrap_pub=b"w", commitment=b"c" * 32)
    assert await refused(world.client.call("POST", "/v1/enroll", bad, token=pending.token)) == (400, "invalid")
    world.now.at += DEFAULT.pending_ms
    await first.authenticate()
    assert (await first.client.call("GET", "/v1/enroll", answer=Enrolments)).enrolments == ()


async def test_a_device_recovers_with_a_password_and_what_the_code_opens(world: World) -> None:
    lost = await signed_up(world.client, now=world.now)
    account = lost.account
    wrap = Wrap(target=RECOVERY_TARGET, kind=ROOT_WRAP, version=1, sealed=b"for the code")
    ring = keyring(account, 1)
    account.say(EntryType.KEYRING_SET, {1: 1, 2: object_hash(ring)})
    await lost.append(account.entries[-1], wraps=[wrap], blobs=[ring])

    pending = await account.login(world.client)
    found = account.device(world.client)
    found.client.token = pending.token
    wraps = await found.client.call("GET", f"/v1/wraps/{RECOVERY_TARGET.hex()}", answer=Wraps)
    response = await found.client.call("GET", f"/v1/objects/{object_hash(ring).hex()}")
    await found.append(account.entries[-1])
    await found.authenticate()

    assert wraps.wraps == (wrap,)
    assert response.content == ring
    assert await found.statuses(found.segment()) == ["ok"]


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_of_two_appends_on_one_head_the_second_is_told_so(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account = device.account
    one = account.entry(EntryType.SCOPE_CREATE, accountlog.scope_body(b"1" * 16, suite=Suite.SEALED))
    other = account.entry(EntryType.SCOPE_CREATE, accountlog.scope_body(b"2" * 16, suite=Suite.SEALED))
    head = account.head

    first = await device.client.call("POST", "/v1/log", LogAppend(head=head, entries=(one,)), answer=LogPage)
    second = await refused(device.client.call("POST", "/v1/log", LogAppend(head=head, entries=(other,))))

    assert first.seq == 3
    assert second == (409, "log_conflict")
    assert (await device.client.call("GET", "/v1/log", answer=LogPage)).head == first.head


BAD_ENTRIES: dict[str, tuple[EntryType, Callable[[Account], dict[int, Any]], tuple[int, str]]] = {
    "a device twice": (
        EntryType.DEVICE_ADD,
        lambda a: accountlog.device_body(next(iter(a.state.devices)), sign_pub=b"x" * 32, wrap_pub=b"w"),
        (400, "invalid"),
    ),
    "an id of the wrong length": (
        EntryType.DEVICE_ADD,
        lambda _: accountlog.device_body(b"x", sign_pub=b"x" * 32, wrap_pub=b"w"),
        (400, "invalid"),
    ),
    "scopes that are a number": (
        EntryType.DEVICE_ADD,
        lambda _: {1: b"x" * 16, 2: b"x" * 32, 3: b"w", 4: 10**9},
        (400, "invalid"),
    ),
    "a revocation of nobody": (EntryType.DEVICE_REVOKE, lambda _: {1: b"x" * 16, 2: []}, (400, "invalid")),
    "ends that are none": (
        EntryType.DEVICE_REVOKE,
        lambda a: {1: next(iter(a.state.devices)), 2: [[1]]},
        (400, "invalid"),
    ),
    "a second home": (
        EntryType.SCOPE_CREATE,
        lambda _: accountlog.scope_body(b"s" * 16, suite=Suite.SEALED, home=True),
        (400, "invalid"),
    ),
    "a mode that is a list": (
        EntryType.SCOPE_CREATE,
        lambda _: {1: b"s" * 16, 2: [], 3: False, 4: ""},
        (400, "invalid"),
    ),
    "a rotation that skips": (EntryType.ROTATE, lambda _: {1: 3, 2: b"k" * 32}, (400, "invalid")),
    "a keyring that was not sent": (EntryType.KEYRING_SET, lambda _: {1: 1, 2: b"h" * 32}, (400, "invalid")),
    "an epoch that skips": (EntryType.EPOCH_ADD, lambda a: {1: a.home, 2: 2}, (400, "invalid")),
    "a second genesis": (EntryType.GENESIS, lambda _: {}, (400, "invalid")),
    "a void without the recovery key": (EntryType.VOID, lambda _: {1: 1, 2: 2, 3: b"k" * 32}, (409, "bad_signature")),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
async def test_the_log_takes_only_what_every_device_would(file_world: World, case: str) -> None:
    kind, body, expected = BAD_ENTRIES[case]
    device = await signed_up(file_world.client, now=file_world.now)
    made = device.account.entry(kind, body(device.account))

    found = await refused(device.client.call("POST", "/v1/log", LogAppend(head=device.account.head, entries=(made,))))

    assert found == expected
    assert await file_world.rows("select count(*) from account_log") == [(3,)]


async def test_an_entry_signed_by_another_key_is_refused(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account = device.account
    made = account.entry(
        EntryType.SCOPE_CREATE, accountlog.scope_body(b"1" * 16, suite=Suite.SEALED), sign=Key(account.entropy).sign
    )

    found = await refused(device.client.call("POST", "/v1/log", LogAppend(head=account.head, entries=(made,))))

    assert found == (409, "bad_signature")


async def test_a_revoked_device_is_refused_everywhere_at_once(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    second = await second_device(first)

    first.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(second.id, {}))
    await first.append(first.account.entries[-1])

    assert await refused(second.heads()) == (403, "revoked")
    assert await refused(second.push(second.segment())) == (403, "revoked")
    assert await refused(second.authenticate()) == (403, "revoked")


async def test_a_device_can_be_shut_out_before_the_entry_that_revokes_it(world: World) -> None:
    first = await signed_up(world.client, now=world.now)
    second = await second_device(first)

    await first.refuse(second)
    first.account.scope()
    await first.append(first.account.entries[-1])  # an append about something else does not let it in again

    assert await refused(second.heads()) == (401, "unauthenticated")
    await second.authenticate()
    await second.pull()
    for call in (second.push(second.segment(keep=False)), second.client.call("GET", "/v1/usage")):
        assert await refused(call) == (503, "unavailable")
    first.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(second.id, {}))
    await first.append(first.account.entries[-1])
    world.now.pass_(DEFAULT.refusal_ms // 1000)
    assert await refused(second.authenticate()) == (403, "revoked")
    assert await refused(first.client.call("DELETE", f"/v1/devices/{'00' * 16}")) == (404, "not_found")


async def test_a_stolen_token_bans_nobody(world: World) -> None:
    """Whoever has the token of a full device, and no key, keeps nobody out, as a client of before signatures does."""
    first = await signed_up(world.client, now=world.now)
    second = await second_device(first)

    await first.client.call("DELETE", f"/v1/devices/{second.id.hex()}")

    assert await second.statuses(second.segment()) == ["ok"]
    first.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(second.id, {}))  # which it goes on to say
    await first.append(first.account.entries[-1])
    assert await refused(second.heads()) == (403, "revoked")


@pytest.mark.parametrize("case", ["another key", "another device", "an old challenge", "a second time", "itself"])
async def test_a_refusal_that_is_not_signed_by_who_asks_and_now_refuses_nobody(file_world: World, case: str) -> None:
    first = await signed_up(file_world.client, now=file_world.now)
    second, third = await second_device(first), await second_device(first)
    given, path, error = await first.refusal(second), f"/v1/devices/{second.id.hex()}", (409, "bad_signature")
    match case:
        case "another key":
            given = await first.refusal(second, key=third.key)
        case "another device":
            given = await first.refusal(third)
        case "an old challenge":
            file_world.now.pass_(DEFAULT.challenge_ms // 1000 + 1)
            error = (401, "expired")
        case "a second time":  # by the device that it came from, once it has lapsed
            await first.client.call("DELETE", path, given)
            file_world.now.pass_(DEFAULT.refusal_ms // 1000)
            await second.authenticate()
            error = (401, "expired")
        case "itself":
            given, path, error = await first.refusal(first), f"/v1/devices/{first.id.hex()}", (400, "invalid")

    assert await refused(first.client.call("DELETE", path, given)) == error
    assert await second.statuses(second.segment()) == ["ok"]


async def test_a_refusal_lapses_and_is_not_renewed_before_an_entry_of_the_log(world: World) -> None:
    owner = await signed_up(world.client, now=world.now)
    thief = await second_device(owner)
    await thief.refuse(owner)
    world.now.pass_(DEFAULT.refusal_ms // 1000 - 60)
    await thief.authenticate()
    await thief.refuse(owner)  # again, and it is not longer for it
    await owner.authenticate()
    assert await refused(owner.push(owner.segment(keep=False))) == (503, "unavailable")
    world.now.pass_(60)

    assert await owner.statuses(owner.segment()) == ["ok"]
    for _ in range(3):
        assert await refused(thief.refuse(owner)) == (409, "conflict")
        assert await owner.statuses(owner.segment()) == ["ok"]
        world.now.pass_(DEFAULT.refusal_ms // 1000 - 1)
        await thief.authenticate()
        await owner.authenticate()


async def test_a_device_that_is_refused_reads_the_log_and_revokes_who_refused_it(world: World) -> None:
    """The attack: whoever has a device keeps all others out, those too that come later."""
    owner = await signed_up(world.client, now=world.now)
    account = owner.account
    thief = await second_device(owner)
    written = thief.segment()
    await thief.push(written)
    fresh = await second_device(owner)
    for one in (owner, fresh):
        await thief.refuse(one)
    await fresh.authenticate()

    page = await fresh.client.call("GET", "/v1/log", answer=LogPage)
    told = (await fresh.client.call("GET", "/v1/refusals", answer=Refusals)).refusals
    lane = await fresh.client.call("GET", f"/v1/lanes/{account.home.hex()}/{thief.id.hex()}")
    await fresh.client.call("GET", f"/v1/wraps/{fresh.id.hex()}", answer=Wraps)
    assert list(page.entries) == account.entries
    assert lane.content == written.data
    assert {(one.device, one.author) for one in told} == {(owner.id, thief.id), (fresh.id, thief.id)}
    for one in told:
        message = refusal_message(account.id, one.device, one.author, one.nonce)
        assert is_signed(thief.key.public, one.signature, message)
    await fresh.refuse(thief)  # both ways: the log decides
    account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(thief.id, {}), author=fresh)
    await fresh.append(account.entries[-1])

    assert await fresh.statuses(fresh.segment()) == ["ok"]
    await owner.authenticate()
    assert await owner.statuses(owner.segment()) == ["ok"]
    assert (await owner.client.call("GET", "/v1/refusals", answer=Refusals)).refusals == ()
    assert await refused(thief.authenticate()) == (403, "revoked")


async def test_a_device_that_is_revoked_while_it_asks_refuses_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await signed_up(world.client, now=world.now)
    thief = await second_device(owner)
    state = Service.state

    async def revoked_meanwhile(service: Service, account: bytes, head: bytes) -> AccountState:
        found = await state(service, account, head)
        monkeypatch.setattr(Service, "state", state)
        owner.account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(thief.id, {}))
        await owner.append(owner.account.entries[-1])
        return found

    given = await thief.refusal(owner)
    monkeypatch.setattr(Service, "state", revoked_meanwhile)

    assert await refused(thief.client.call("DELETE", f"/v1/devices/{owner.id.hex()}", given)) == (403, "revoked")
    assert await owner.statuses(owner.segment()) == ["ok"]


async def test_what_a_thief_asks_for_uses_up_nothing_that_a_revocation_needs(cloud_store: str | Path) -> None:
    few = Bucket(burst=20, rate=0.001)
    policy = CloudPolicy(
        limits=LimitPolicy(
            control=few, pull=few, traffic=Bucket(burst=10_000, rate=1), log=Bucket(burst=4_000, rate=1)
        ),
        hash_memory_kib=64,
        hash_iterations=1,
    )
    async with opened(cloud_store, policy=policy) as world:
        owner = await signed_up(world.client, now=world.now)
        account, thief = owner.account, await second_device(owner)
        await thief.push(thief.segment())
        lane = f"/v1/lanes/{account.home.hex()}/{thief.id.hex()}"
        for path in ("/v1/log", "/v1/heads", lane, "/v1/refusals", "/v1/enroll"):
            asked = [thief.client.call("GET", path) for _ in range(few.burst + 1)]
            assert "too_many" in {
                getattr(one, "code", "") for one in await asyncio.gather(*asked, return_exceptions=True)
            }

        for path in ("/v1/log", "/v1/heads", lane):
            await owner.client.call("GET", path)
        account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(thief.id, {}))
        await owner.append(account.entries[-1])
        assert await refused(thief.heads()) == (403, "revoked")


async def test_a_challenge_is_for_one_answer(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    given = await device.token_request()
    await device.client.call("POST", "/v1/auth/token", given)
    assert await refused(device.client.call("POST", "/v1/auth/token", given)) == (401, "unauthenticated")


async def test_the_recovery_code_undoes_what_a_thief_appended(world: World) -> None:
    owner = await signed_up(world.client, now=world.now)
    account = owner.account
    thief = await second_device(owner)
    account.say(EntryType.DEVICE_REVOKE, accountlog.revoke_body(owner.id, {}))
    await thief.append(account.entries[-1])
    locked_out = await refused(owner.heads())

    fresh = Key(account.entropy)
    pending = await account.login(world.client)
    account.say(EntryType.VOID, {1: 3, 2: 2, 3: fresh.public}, signer=Signer.RSK)
    owner.client.token = pending.token
    await owner.append(account.entries[-1])
    await owner.authenticate()

    assert locked_out == (403, "revoked")
    assert (await owner.heads()).heads == ()
    assert await refused(thief.heads()) == (401, "unauthenticated")


async def test_a_token_alone_replaces_no_wrap(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    path = f"/v1/wraps/{device.id.hex()}"
    wrap = Wrap(target=device.id, kind=ROOT_WRAP, version=1, sealed=b"one")

    await device.client.call("PUT", path, wrap)
    await device.client.call("PUT", path, wrap)
    other = await refused(device.client.call("PUT", path, replace(wrap, sealed=b"two")))
    elsewhere = await refused(device.client.call("PUT", f"/v1/wraps/{'00' * 16}", wrap))
    device.account.say(EntryType.DEVICE_REKEY, {1: device.id, 2: b"r" * 1216})
    await device.append(device.account.entries[-1], wraps=[replace(wrap, sealed=b"two")])

    assert other == (409, "conflict")
    assert elsewhere == (400, "invalid")
    assert (await device.client.call("GET", path, answer=Wraps)).wraps == (replace(wrap, sealed=b"two"),)


async def test_a_limited_device_reads_its_scope_and_governs_nothing(world: World) -> None:
    owner = await signed_up(world.client, now=world.now)
    account = owner.account
    scope = account.scope()
    await owner.append(account.entries[-1])
    limited = await second_device(owner, scopes=[scope], read_only=True)
    await owner.push(owner.segment(), owner.segment(scope=scope))

    pulled = await limited.drain()
    heads = await limited.heads()

    assert [one.header.scope for one in pulled] == [scope]
    assert [one.scope for one in heads.heads] == [scope]
    assert await refused(limited.pull(scopes=account.home.hex())) == (403, "denied")
    assert await refused(limited.client.call("GET", f"/v1/lanes/{account.home.hex()}/{owner.id.hex()}")) == (
        403,
        "denied",
    )
    assert await limited.statuses(limited.segment(scope=scope)) == ["denied"]
    entry = account.entry(EntryType.SCOPE_CREATE, accountlog.scope_body(b"1" * 16, suite=Suite.SEALED))
    assert await refused(limited.client.call("POST", "/v1/log", LogAppend(head=account.head, entries=(entry,)))) == (
        403,
        "denied",
    )
    for method, path in (
        ("DELETE", f"/v1/devices/{owner.id.hex()}"),
        ("GET", f"/v1/wraps/{owner.id.hex()}"),
        ("POST", f"/v1/enroll/{'00' * 16}/approve"),
    ):
        assert await refused(limited.client.call(method, path)) == (403, "denied")


# --- leaving ----------------------------------------------------------------------------------------------------------


async def test_a_deleted_account_leaves_no_row(world: World) -> None:
    device = await signed_up(world.client, "ann", now=world.now)
    other = await signed_up(world.client, "bob", now=world.now)
    await device.push(*[device.segment() for _ in range(5)])
    await device.send("/v1/pack", [device.pack(device.lanes[device.account.home][:3])])
    await other.push(other.segment())
    pending = await device.account.login(world.client)
    await device.ask(pending)
    ring = keyring(device.account, 1)
    device.account.say(EntryType.KEYRING_SET, {1: 1, 2: object_hash(ring)})
    wrap = Wrap(target=device.id, kind=ROOT_WRAP, version=1, sealed=b"one")
    await device.append(device.account.entries[-1], blobs=[ring], wraps=[wrap])
    given = DeleteAccount(auth_key=device.account.auth_key)

    wrong = await refused(device.client.call("DELETE", "/v1/account", replace(given, auth_key=b"w" * 32)))
    gone = await device.client.call("DELETE", "/v1/account", given, answer=Deleted)

    assert wrong == (401, "credentials")
    assert gone == Deleted(objects=7, left=0)
    tables = await world.database.read(_account_tables)
    for table in tables:
        column = "id" if table == "account" else "account"
        assert await world.rows(f"select count(*) from {table} where {column} = ?", device.account.id) == [(0,)], table
    assert await world.database.read(lambda tx: rows_of(tx, device.account.id)) == 0
    assert await refused(device.heads()) == (401, "unauthenticated")
    assert len(await other.drain()) == 1
    assert (await signed_up(world.client, "ann", now=world.now)).account.name == "ann"


def _account_tables(tx: Any) -> list[str]:
    """Every table that names an account, as the database itself says: a new one is not forgotten."""
    if tx.dialect == "sqlite":
        names = [name for (name,) in tx.rows("select name from sqlite_master where type = 'table'")]
        return [
            name
            for name in names
            if name == "account" or any(row[1] == "account" for row in tx.rows(f"pragma table_info({name})"))
        ]
    rows = tx.rows(
        "select distinct table_name from information_schema.columns where table_schema = 'public'"
        " and (column_name = 'account' or table_name = 'account')"
    )
    return [name for (name,) in rows]


async def test_a_scope_is_erased_when_the_log_has_ended_it(world: World) -> None:
    device = await signed_up(world.client, now=world.now)
    account = device.account
    scope = account.scope()
    await device.append(account.entries[-1])
    await device.push(device.segment(), device.segment(scope=scope), device.segment(scope=scope))
    path = f"/v1/scopes/{scope.hex()}"

    in_use = await refused(device.client.call("DELETE", path))
    account.say(EntryType.SCOPE_DELETE, {1: scope})
    await device.append(account.entries[-1])
    gone = await device.client.call("DELETE", path, answer=Deleted)
    usage = await device.client.call("GET", "/v1/usage", answer=Usage)

    assert in_use == (409, "conflict")
    assert gone == Deleted(objects=2, left=0)
    assert usage.objects == 1
    assert usage.bytes == len(device.lanes[account.home][0].data)
    assert await device.statuses(device.segment(scope=scope)) == ["not_found"]
    assert len(await device.drain()) == 1
    assert await refused(device.client.call("DELETE", f"/v1/scopes/{'00' * 16}")) == (404, "not_found")


async def test_pending_answers_a_registration(world: World) -> None:
    account = Account.make("ann", now=world.now)
    account.device(world.client)

    pending = await account.register(world.client)

    assert isinstance(pending, Pending)
    assert (pending.account, pending.expires) == (account.id, world.now() + DEFAULT.pending_ms)
