"""Limited devices: they get the keys of some scopes, in a bundle, and never the root key."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import (
    InvalidError,
    NotFoundError,
    SplitError,
)
from scrubjay_sync.account.device_secrets import Secrets
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine, begin_replication, require_logged_out, require_same_account
from scrubjay_sync.account.member import Member
from scrubjay_sync.account.pinned_log import as_not_theirs, fetch_log
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.cloud.connection import Credential
from scrubjay_sync.keys.keypairs import DeviceKeys, Entropy, signer
from scrubjay_sync.keys.keyring import Keyring

_BUNDLE = "sjs1-device-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a limited device needs to begin: its keys, and what it must find at the server."""

    origin: str
    account: bytes
    genesis: bytes
    device: bytes
    keys: DeviceKeys = field(repr=False)

    @property
    def text(self) -> str:
        """The bundle as one line, to be kept as a secret of the machine that runs without a person."""
        return _BUNDLE + base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Bundle:
        """Read it. Raises InvalidError, which does not repeat it."""
        line = text.strip()
        try:
            if not line.startswith(_BUNDLE):
                raise ValueError  # noqa: TRY301 - told like whatever else is wrong with it
            data = base64.b64decode(line.removeprefix(_BUNDLE) + "==", altchars=b"-_")
            return msgspec.msgpack.decode(data, type=cls)
        except (ValueError, msgspec.MsgspecError) as error:
            raise InvalidError(
                "that is not a device bundle", hint="scrubjay devices create prints one, which begins with sjs1-device-"
            ) from error


async def create_limited(
    member: Member, cloud: Cloud, *, name: str, scopes: Sequence[bytes], read_only: bool, entropy: Entropy
) -> Bundle:
    """Let in a device that has the keys of some scopes only, and never the root key: for machines without a person."""
    device, own = entropy(16), DeviceKeys.new(entropy)
    body = account_log.device_body(
        device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub, scopes=list(scopes), read_only=read_only
    )

    def draft(state: AccountState, ring: Keyring) -> Draft:
        for scope in scopes:
            if scope not in state.scopes or state.scopes[scope].deleted:
                raise NotFoundError(
                    f"the account has no scope {scope.hex()[:8]}", hint="scrubjay sync scopes list shows them"
                )
        return Draft(entries=[(EntryType.DEVICE_ADD, body)], keyring=ring.with_device(device, name))

    await member.append(cloud, draft)
    return Bundle(origin=cloud.origin, account=member.account, genesis=member.state.genesis, device=device, keys=own)


async def join_limited(machine: Machine, bundle: Bundle, *, bring_all: bool = False) -> Member:
    """Make this store an instance of the limited device of a bundle. What was written here before goes on as its own.

    As many stores as one likes may join by the same bundle, one after the other and at once: each writes under an id of
    its own. Raises AnotherAccountError as `sign_up` does.
    """
    await require_logged_out(machine)
    await require_same_account(machine, bundle.account, bring_all=bring_all)
    cloud = machine.cloud
    cloud.use(Credential(account=bundle.account, device=bundle.device, sign=signer(bundle.keys.sign_seed)))
    with as_not_theirs(cloud.origin):
        entries, _ = await fetch_log(cloud)
        state, _ = account_log.replayed(entries, now=machine.now())
    if state.genesis != bundle.genesis:
        raise SplitError("the server shows another account than the bundle was made for", hint="do not trust it")
    instance = account_log.instance_of(bundle.device, machine.entropy(8))
    await machine.store.write(lambda tx: tx.incarnation.renew(instance.hex(), 0))
    await machine.vault.save(Secrets(account=bundle.account, device=bundle.device, keys=bundle.keys))
    return await begin_replication(machine, state, entries)
