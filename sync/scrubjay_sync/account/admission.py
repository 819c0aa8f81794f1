"""How another machine is added to an account: by a device that compares words, or by the recovery code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import (
    CredentialsError,
    DeniedError,
    InvalidError,
    LogConflictError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    WithheldError,
)
from scrubjay_shared.wire import (
    RECOVERY_TARGET,
    ROOT_WRAP,
    Enroll,
    Enrolment,
    Login,
    Pending,
)
from scrubjay_sync.account.account_devices import rename_device
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
from scrubjay_sync.account.pinned_log import fetch_log
from scrubjay_sync.account.rotation import new_epochs
from scrubjay_sync.cloud.client import Cloud
from scrubjay_sync.keys.digests import pairing_digest
from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import Keyring, open_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root
from scrubjay_sync.words import words_of


async def log_in(
    machine: Machine, *, username: str, auth_key: bytes, name: str, code: str = "", bring_all: bool = False
) -> Joining:
    """Prove the password and ask to be let in. `code` is the TOTP code, where the account has one.

    Raises CredentialsError for whatever does not fit, ConflictError when the machine is logged in already,
    AnotherAccountError as `sign_up` does.
    """
    await require_logged_out(machine)
    pending = await machine.cloud.account.login(Login(username=username, auth_key=auth_key, code=code))
    await require_same_account(machine, pending.account, bring_all=bring_all)
    entries, _ = await fetch_log(machine.cloud, pending=pending.token)
    states = account_log.extended((), entries, machine.now())
    _check_account(states, pending, machine.cloud.origin)
    if machine.device in states[-1].devices:  # it was let in before and stopped too early: that id's keys are gone
        fresh = machine.entropy(16).hex()
        await machine.store.write(lambda tx: tx.incarnation.renew(fresh, 0))
    own = DeviceKeys.new(machine.entropy)
    asked = Enroll(device=machine.device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
    await machine.cloud.account.enroll(asked, pending=pending.token)
    return Joining(machine=machine, pending=pending, own=own, name=name, entries=entries, states=states)


def _check_account(states: Sequence[AccountState], pending: Pending, origin: str) -> None:
    if not states or states[-1].account != pending.account:
        raise SplitError("the server answers with the log of another account", hint="do not trust this server")
    if origin not in states[-1].origins:
        raise DeniedError(
            f"this account was not made for {origin}",
            hint=f"it lists {', '.join(states[-1].origins)}; use that address",
        )


@dataclass(slots=True, kw_only=True)
class Joining:
    """A machine that has proved the password, and waits to be let in by another one or by the recovery code."""

    machine: Machine
    pending: Pending
    own: DeviceKeys = field(repr=False)
    name: str
    entries: list[bytes] = field(repr=False)
    states: list[AccountState] = field(repr=False)

    @property
    def state(self) -> AccountState:
        """The account as the log shows it."""
        return self.states[-1]

    @property
    def words(self) -> tuple[str, ...]:
        """What both machines must show; it changes when the account does."""
        return words_of(pairing_digest(self.state.genesis, self.own.sign_pub, self.own.wrap_pub, self.state.head))

    async def poll(self) -> Member | None:
        """Look whether another device has let this one in; None while not.

        Raises ExpiredError when the time to wait is over, SplitError when the server let in keys that are not ours.
        """
        await self._catch_up()
        added = self.state.devices.get(self.machine.device)
        if added is None:
            return None
        if (added.sign_pub, added.wrap_pub) != (self.own.sign_pub, self.own.wrap_pub):
            raise SplitError("other keys than this machine's were added under its id", hint="do not trust this server")
        return await self._joined(None)

    async def recover(self, code: RecoveryCode) -> Member:
        """Let this machine in with the recovery code.

        Raises CredentialsError when it is not this account's, WithheldError when the newest root key is not wrapped to
        it (whoever rotated it left the code out: see `revert`).
        """
        while True:
            self._check_code(code)
            root = await self._root(code, self.state.version)
            if root is None:
                raise WithheldError(
                    "the account's newest root key was not given to the recovery code",
                    hint="a device that is not yours may have replaced it: scrubjay sync log elsewhere shows where,"
                    " then scrubjay login --void-from SEQ here",
                )
            draft = Draft(
                entries=[(EntryType.DEVICE_ADD, device_body(self.machine.device, self.own))],
                recovery=code,
                by_recovery=frozenset({EntryType.DEVICE_ADD}),
            )
            if await self._sent(draft, root, Keyring()):
                return await self._joined(root)

    async def revert(self, code: RecoveryCode, start: int) -> Member:
        """Cancel everything that the account log says from entry `start` on, and let this machine in.

        For an owner whom a thief with an unlocked device has shut out. The account gets a new root key, every scope a
        new epoch; devices that were revoked from there on are in again, those that were added are out.
        """
        while True:
            self._check_code(code)
            if not 1 <= start <= self.state.seq:
                raise InvalidError(
                    f"--void-from takes an entry of the account log, 1 to {self.state.seq}, got {start}",
                    hint="scrubjay sync log lists them",
                )
            before = self.states[start - 1]
            keyring = await self._keyring(code, before)
            root = RootKey.new(self.machine.entropy, self.state.version + 1)
            epochs, keyring = new_epochs(before, keyring, self.machine.entropy, above=self.state)
            added = [(EntryType.DEVICE_ADD, device_body(self.machine.device, self.own))]
            draft = Draft(
                entries=[(EntryType.VOID, {1: start, 2: root.version, 3: root.ask}), *added, *epochs],
                keyring=keyring.with_device(self.machine.device, self.name),
                root=root,
                recovery=code,
                by_recovery=frozenset({EntryType.VOID, EntryType.DEVICE_ADD}),
            )
            if await self._sent(draft, root, keyring):
                return await self._joined(root)

    def _check_code(self, code: RecoveryCode) -> None:
        # Replaying the log has checked that the key in force signed the first entry, or the one that put it in force.
        if code.rsk != self.state.rsk:
            raise CredentialsError(
                "that is not the recovery code of this account",
                hint="a newer code replaces those before it, and one made with --lost counts after seven days",
            )

    async def _root(self, code: RecoveryCode, version: int) -> RootKey | None:
        for wrap in (await self.machine.cloud.log.wraps(RECOVERY_TARGET, pending=self.pending.token)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == version:
                ask = next(state.ask for state in reversed(self.states) if state.version == version)
                return unwrap_root(wrap, account=self.state.account, target=RECOVERY_TARGET, holder=code, ask=ask)
        return None

    async def _keyring(self, code: RecoveryCode, before: AccountState) -> Keyring:
        root = await self._root(code, before.version)
        if root is None or before.keyring is None:
            raise WithheldError(
                f"the recovery code cannot open the keys of entry {before.seq}",
                hint="give a later entry to --void-from",
            )
        version, digest = before.keyring
        sealed = await self.machine.cloud.log.blob(digest, pending=self.pending.token)
        return open_keyring(sealed, account=before.account, version=version, digest=digest, root=root)

    async def _sent(self, draft: Draft, root: RootKey, keyring: Keyring) -> bool:
        """Append with the pending token; False when the log had moved on, and was read again."""
        made = assemble(
            draft,
            account=self.state.account,
            states=self.states,
            root=root,
            keyring=keyring,
            device=self.machine.device,
            sign=signer(self.own.sign_seed),
            now=self.machine.now(),
            entropy=self.machine.entropy,
        )
        await self._save(made.root)
        try:
            await self.machine.cloud.log.append(made.append, pending=self.pending.token)
        except LogConflictError:
            await self._catch_up()
            return False
        except ScrubjayError:
            await self.machine.vault.erase()
            raise
        self.entries += made.append.entries
        self.states = made.states
        return True

    async def _catch_up(self) -> None:
        last = self.state
        entries, page = await fetch_log(self.machine.cloud, pending=self.pending.token, start=last.seq)
        if page.seq < last.seq:
            raise RolledBackError("the server's account log has become shorter", hint="do not trust this server")
        if not entries or entries[0] != self.entries[-1]:
            raise SplitError("the server shows another account log than before", hint="do not trust this server")
        self.states = account_log.extended(self.states, entries[1:], self.machine.now())
        self.entries += entries[1:]

    async def _save(self, root: RootKey | None) -> None:
        await self.machine.vault.save(
            Secrets(account=self.state.account, device=self.machine.device, keys=self.own, root=root)
        )

    async def _joined(self, root: RootKey | None) -> Member:
        await self._save(root)
        member = await begin_replication(self.machine, self.state.account, self.entries)
        await rename_device(member, self.machine.cloud, member.device, self.name)
        return member


def words_for(member: Member, asking: Enrolment) -> tuple[str, ...]:
    """Return the words that a machine which asks must show if it is the one it seems to be."""
    return words_of(pairing_digest(member.state.genesis, asking.sign_pub, asking.wrap_pub, member.state.head))


async def approve(member: Member, cloud: Cloud, asking: Enrolment, words: Sequence[str]) -> None:
    """Let in the machine that shows these words: it will hold all keys of the account.

    Raises DeniedError when the words are others: somebody is in between, or the account has changed meanwhile.
    """

    def draft(state: AccountState, _: Keyring) -> Draft:
        digest = pairing_digest(state.genesis, asking.sign_pub, asking.wrap_pub, state.head)
        if words_of(digest) != tuple(words):
            raise DeniedError(
                "the words are not those of the machine that asks: it was not added",
                hint="the account may have changed: compare the words again; if they still differ, do not go on",
            )
        body = account_log.device_body(asking.device, sign_pub=asking.sign_pub, wrap_pub=asking.wrap_pub)
        return Draft(entries=[(EntryType.DEVICE_ADD, body)])

    await member.append(cloud, draft)
    await cloud.account.approve(asking.id)
