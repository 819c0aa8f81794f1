"""Signing up: a new account with this machine as its first device."""

from __future__ import annotations

from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    ScrubjayError,
)
from scrubjay_shared.wire import (
    Kdf,
    Register,
)
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.drafts import Draft, assemble
from scrubjay_sync.account.machine import (
    Machine,
    begin_replication,
    device_body,
    require_logged_out,
    require_same_account,
)
from scrubjay_sync.account.member import Member
from scrubjay_sync.keys.keypairs import KEY_BYTES, DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys
from scrubjay_sync.keys.recovery_code import RecoveryCode

HOME_NAME = "home"


async def sign_up(
    machine: Machine,
    *,
    username: str,
    auth_key: bytes,
    kdf: Kdf,
    recovery: RecoveryCode,
    name: str,
    invite: str = "",
    bring_all: bool = False,
) -> Member:
    """Make a new account with this machine as its first device, called `name`.

    The recovery code must have been shown before: from here on it is the only way back when this machine is lost. It
    signs the account's first entry, so that whoever types it later knows that account from any other.
    Raises ConflictError when the machine is logged in already or the username is taken, AnotherAccountError when its
    store was in an account before and `bring_all` does not say that everything may go to the new one.
    """
    await require_logged_out(machine)
    account, home = machine.entropy(16), machine.entropy(16)
    await require_same_account(machine, account, bring_all=bring_all)
    root, own = RootKey.new(machine.entropy, 1), DeviceKeys.new(machine.entropy)
    keyring = Keyring(
        scopes={home: ScopeKeys(name=HOME_NAME, keys={0: machine.entropy(KEY_BYTES)})},
        devices={machine.device: name},
    )
    draft = Draft(
        entries=[
            (
                EntryType.GENESIS,
                account_log.genesis_body(
                    account,
                    ask=root.ask,
                    rsk=recovery.rsk,
                    recovery_pub=recovery.wrap_pub,
                    origin=machine.cloud.origin,
                ),
            ),
            (EntryType.DEVICE_ADD, device_body(machine.device, own)),
            (EntryType.SCOPE_CREATE, account_log.scope_body(home, suite=Suite.SEALED, home=True)),
        ],
        keyring=keyring,
        recovery=recovery,
    )
    made = assemble(
        draft,
        account=account,
        states=(),
        root=root,
        keyring=keyring,
        device=machine.device,
        sign=signer(own.sign_seed),
        now=machine.now(),
        entropy=machine.entropy,
    )
    # Before the server knows of the account: a machine that stops in between must not have lost its keys.
    await machine.vault.save(Secrets(account=account, device=machine.device, keys=own, root=root))
    if made.sealed is not None:
        await machine.vault.keep_keyring(made.sealed)
    try:
        await machine.cloud.account.register(
            Register(username=username, kdf=kdf, auth_key=auth_key, log=made.append, invite=invite)
        )
    except ScrubjayError:
        await machine.vault.erase()
        raise
    return await begin_replication(machine, made.states[-1], made.append.entries)
