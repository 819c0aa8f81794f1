"""The pepper of the service: required, made where somebody tries it out, and taken up by accounts from before."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cloud_client import Clock, Entropy, RefusedError, opened, signed_up
from scrubjay_cloud import credentials, pepper
from scrubjay_cloud.cli import main
from scrubjay_cloud.settings import Settings
from scrubjay_shared.errors import CorruptError, InvalidError
from scrubjay_shared.wire import SetTotp

pytestmark = pytest.mark.anyio


def test_a_service_for_others_needs_a_pepper_and_says_how_to_make_one(tmp_path: Path) -> None:
    local = Settings(data=tmp_path)
    for settings in (
        replace(local, origin="https://sync.example.org"),
        replace(local, tls_cert=tmp_path / "c", tls_key=tmp_path / "k"),
        replace(local, database_url="postgres://db/scrubjay"),
    ):
        with pytest.raises(InvalidError, match="no pepper is set") as missing:
            pepper.with_pepper(settings, Entropy(1))
        assert "openssl rand -hex 32" in missing.value.hint
    with pytest.raises(InvalidError, match="32 or more"):
        pepper.with_pepper(replace(local, pepper="too short"), Entropy(1))
    assert not (tmp_path / "pepper").exists()


def test_the_command_does_not_start_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCRUBJAY_CLOUD_PEPPER", raising=False)
    assert main(["serve", "--data", str(tmp_path / "data"), "--origin", "https://sync.example.org"]) == 2
    assert "SCRUBJAY_CLOUD_PEPPER" in capsys.readouterr().err
    assert not (tmp_path / "data" / "server.db").exists()


def test_who_tries_it_out_gets_one_beside_the_database_that_stays(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data")
    first = pepper.with_pepper(settings, Entropy(1))

    kept = settings.data / "pepper"
    assert len(first.pepper) == 64
    assert kept.read_text() == first.pepper + "\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert pepper.with_pepper(settings, Entropy(2)) == first
    assert first.pepper not in repr(first)


async def test_another_pepper_than_before_is_told_when_the_service_starts(cloud_store: str | Path) -> None:
    async with opened(cloud_store) as world:
        await pepper.check_pepper(world.database, b"p" * 32)
        await pepper.check_pepper(world.database, b"p" * 32)
        with pytest.raises(CorruptError, match="is not the one") as other:
            await pepper.check_pepper(world.database, b"q" * 32)
        assert "SCRUBJAY_CLOUD_PEPPER" in other.value.hint


async def test_an_account_from_before_is_put_under_the_pepper_when_its_password_is_used(
    cloud_store: str | Path,
) -> None:
    """Its hash, and the secret of its second factor, were made by a service without a pepper, and by the code of then."""
    secret = b"s" * 20
    now = Clock()
    async with opened(cloud_store, pepper="", now=now) as world:
        device = await signed_up(world.client, now=world.now)
        code = credentials.totp(secret, world.now() // 30_000)
        given = SetTotp(auth_key=device.account.auth_key, secret=secret, code=code)
        await device.client.call("PUT", "/v1/account/totp", given)
        await world.database.write(lambda tx: tx.execute("update account set auth_method = 1"))
        before = await world.rows("select auth_hash, totp from account")
    async with opened(cloud_store, pepper="p" * 32, now=now) as world:
        for _ in range(2):
            now.pass_(60)
            wrong = replace(device.account, auth_key=b"w" * 32)
            with pytest.raises(RefusedError, match="credentials"):
                await wrong.login(world.client)
            await device.account.login(world.client, code=credentials.totp(secret, now() // 30_000))
            after = await world.rows("select auth_hash, totp, auth_method from account")
            assert after[0][2] == 2
            assert after[0][0] != before[0][0]
            assert after[0][1] != before[0][1]
