"""Signing up: a new account with this machine as its first device."""

from __future__ import annotations

from scrubjay_shared import account as account_log
from scrubjay_shared.account import EntryType
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    NotFoundError,
    ScrubjayError,
    SplitError,
    UnauthenticatedError,
    UnavailableError,
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
from scrubjay_sync.account.pinned_log import fetch_since_checkpoint
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.keys.keypairs import KEY_BYTES, DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys
from scrubjay_sync.keys.recovery_code import RecoveryCode

HOME_NAME = "home"


async def finished(machine: Machine) -> Member | None:
    """Finish a sign-up of which only the answer was lost: the server has an account with this machine's keys.

    None where there is none; keys of which the server never heard are erased. Raises SplitError when what it shows is
    not the account of those keys, and what reading the log raises.
    """
    kept = await machine.vault.load()
    if kept is None or kept.root is None or kept.device != machine.device:
        return None
    machine.cloud.use(Credential(account=kept.account, device=kept.device, sign=signer(kept.keys.sign_seed)))
    try:
        entries, states = await fetch_since_checkpoint(machine.cloud, machine.now())
    except (UnauthenticatedError, NotFoundError):
        await machine.vault.erase()
        return None
    state = states[-1]
    own = state.devices.get(kept.device)
    if (state.account, state.ask) != (kept.account, kept.root.ask) or own is None or own.sign_pub != kept.keys.sign_pub:
        raise SplitError("the server shows another account than the one made here", hint="do not trust this server")
    return await begin_replication(machine, state, entries)


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
    store was in an account before and `bring_all` does not say that everything may go to the new one; UnavailableError
    when the server's answer did not come: it may have made the account, and this machine keeps its keys. The next call
    then finishes that one instead, whose recovery code is the one given then (see `finished`).
    """
    await require_logged_out(machine)
    before = await finished(machine)
    if before is not None:
        return before
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
    except UnavailableError as error:
        raise UnavailableError(
            f"{error.message}: the account may have been made all the same",
            hint="run scrubjay login --sign-up again, with the same name: it goes on from there, and nothing is lost",
        ) from error
    except ScrubjayError:
        await machine.vault.erase()
        raise
    return await begin_replication(machine, made.states[-1], made.append.entries)
