"""How another machine is added to an account: by a device that compares words, or by the recovery code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scrubjay_shared import account as account_log
from scrubjay_shared.account import AccountState, EntryType
from scrubjay_shared.errors import (
    CredentialsError,
    DeniedError,
    InvalidError,
    LogConflictError,
    PendingError,
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
    PairingAnswer,
    PairingReveal,
    Pending,
    code_login_message,
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
from scrubjay_sync.account.pinned_log import as_not_theirs, fetch_log, fetch_since_checkpoint, fetch_states
from scrubjay_sync.account.rotation import new_epochs
from scrubjay_sync.keys.digests import pairing_commitment, pairing_digest
from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import Keyring, open_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import unwrap_root
from scrubjay_sync.words import PairingWords, pairing_words


async def log_in(
    machine: Machine,
    *,
    username: str,
    auth_key: bytes,
    name: str,
    code: str = "",
    recovery: RecoveryCode | None = None,
    bring_all: bool = False,
) -> Joining:
    """Prove the password and ask to be let in. `code` is the TOTP code, where the account has one.

    `recovery` signs the login, so that whoever guesses at the account's password keeps its owner out of nothing.

    Raises CredentialsError for whatever does not fit, ConflictError when the machine is logged in already,
    AnotherAccountError as `sign_up` does.
    """
    await require_logged_out(machine)
    asked = Login(username=username, auth_key=auth_key, code=code)
    if recovery is not None:
        asked = await _signed_login(machine, asked, recovery)
    pending = await machine.cloud.account.login(asked)
    await require_same_account(machine, pending.account, bring_all=bring_all)
    with as_not_theirs(machine.cloud.origin):
        entries, states = await fetch_since_checkpoint(machine.cloud, machine.now(), pending=pending.token)
    _check_account(states, pending, machine.cloud.origin)
    if machine.device in states[-1].devices:  # it was let in before and stopped too early: that id's keys are gone
        fresh = machine.entropy(16).hex()
        await machine.store.write(lambda tx: tx.incarnation.renew(fresh, 0))
    joining = Joining(
        machine=machine,
        pending=pending,
        own=DeviceKeys.new(machine.entropy),
        name=name,
        entries=entries,
        states=states,
    )
    await joining.ask()
    return joining


async def _signed_login(machine: Machine, asked: Login, recovery: RecoveryCode) -> Login:
    nonce, origin = (await machine.cloud.account.challenge(RECOVERY_TARGET)).nonce, machine.cloud.origin
    message = code_login_message(nonce, asked.username, asked.auth_key, origin)
    return replace(asked, nonce=nonce, origin=origin, proof=recovery.sign(message))


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
    """A machine that has proved the password, and waits to be let in by another one or by the recovery code.

    `added`: another device has let it in. It joins once a person has typed the words that prove that this was theirs.
    """

    machine: Machine
    pending: Pending
    own: DeviceKeys = field(repr=False)
    name: str
    entries: list[bytes] = field(repr=False)
    states: list[AccountState] = field(repr=False)
    nonce: bytes = field(default=b"", repr=False)
    asked: Enrolment = field(init=False, repr=False)
    answered: PairingAnswer | None = None

    @property
    def state(self) -> AccountState:
        """The account as the log shows it."""
        return self.states[-1]

    async def ask(self) -> None:
        """Ask to be let in, bound to these keys and to a new nonce."""
        self.nonce, self.answered = self.machine.entropy(32), None
        own, device = self.own, self.machine.device
        self.asked = await self.machine.cloud.account.enroll(
            Enroll(
                device=device,
                sign_pub=own.sign_pub,
                wrap_pub=own.wrap_pub,
                commitment=pairing_commitment(self.nonce, device, own.sign_pub, own.wrap_pub),
            ),
            pending=self.pending.token,
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What a person types on the device that lets this one in; none before that one has answered."""
        return () if self.answered is None else self._words(self.answered).shown

    def _words(self, answer: PairingAnswer) -> PairingWords:
        return pairing_words(
            pairing_digest(
                genesis=self.state.genesis,
                head=answer.head,
                device=self.machine.device,
                sign_pub=self.own.sign_pub,
                wrap_pub=self.own.wrap_pub,
                asking=self.nonce,
                answering=answer.nonce,
            )
        )

    @property
    def added(self) -> bool:
        """Whether another device has let this one in."""
        return self.machine.device in self.state.devices

    async def poll(self) -> None:
        """Look whether another device has answered, or has let this one in.

        Raises ExpiredError when the time to wait is over, SplitError when the server let in keys that are not ours, or
        let them in somewhere else than where the words were shown.
        """
        await self._catch_up()
        if self.added:
            self._check_added()
            return
        if self.answered is not None:
            if self.answered.head != self.state.head:
                await self.ask()  # the account has changed: what was shown says nothing of it as it is
            return
        for one in (await self.machine.cloud.account.enrolments(pending=self.pending.token)).enrolments:
            if one.id == self.asked.id and one.answer:
                await self._reveal(PairingAnswer(nonce=one.answer, head=one.answer_head))

    async def _reveal(self, answer: PairingAnswer) -> None:
        """Take an answer, for good, and reveal this machine's nonce. All that the words are over is fixed before."""
        if answer.head not in {state.head for state in self.states}:
            raise SplitError(
                "the device that answered holds another account log than the server shows here",
                hint="do not trust this server; or run scrubjay login again, if the account changed just now",
            )
        self.answered = answer
        await self.machine.cloud.account.reveal(
            self.asked.id, PairingReveal(nonce=self.nonce), pending=self.pending.token
        )

    def _check_added(self) -> None:
        added = self.state.devices[self.machine.device]
        if (added.sign_pub, added.wrap_pub) != (self.own.sign_pub, self.own.wrap_pub):
            raise SplitError("other keys than this machine's were added under its id", hint="do not trust this server")
        first = self.states[0].seq
        before = self.states[added.added - 1 - first].head if added.added > first else b""
        if self.answered is None or before != self.answered.head:
            raise SplitError(
                "this machine was added to an account whose words nobody has compared", hint="do not trust this server"
            )

    async def join(self, proof: Sequence[str]) -> Member:
        """Join the account that let this machine in. `proof` are the words that a person read on that device.

        A server could let a machine into an account of its own; then nobody has words that fit. Raises PendingError
        before this machine is let in, DeniedError when the words are others.
        """
        if not self.added or self.answered is None:
            raise PendingError("this machine was not let in yet", hint="scrubjay devices approve on another device")
        self._check_added()
        if self._words(self.answered).proof != tuple(proof):
            raise DeniedError(
                "those are not the words of the device that let this machine in: it is not logged in",
                hint="read them on the other device again; if they still differ, do not trust this server, and shut"
                " this machine out there: scrubjay devices revoke",
            )
        return await self._joined(None)

    async def recover(self, code: RecoveryCode) -> Member:
        """Let this machine in with the recovery code.

        Raises CredentialsError when it is not this account's, WithheldError when the newest root key is not wrapped to
        it (whoever rotated it left the code out: see `revert`).
        """
        with as_not_theirs(self.machine.cloud.origin):
            await self._read_whole()
        while True:
            self._check_code(code)
            root = await self._root(code, self.state)
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
            before = (await self._read_whole(start - 1))[start - 1]
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
            if await self._sent(draft, root, keyring, earlier={before.seq: before}):
                return await self._joined(root)

    async def _read_whole(self, *wanted: int) -> dict[int, AccountState]:
        """Verify the log from its genesis on, which the code signed; return the states after some entries.

        No words of a person speak for the checkpoint at which this machine began to read. The state that it states is
        the right one if the log from the genesis on leads to it. Raises SplitError when it does not.
        """
        if self.states[0].seq == 0:  # it was read from there
            return {seq: self.states[seq] for seq in wanted}
        return await fetch_states(self.machine.cloud, set(wanted), self.state, pending=self.pending.token)

    def _check_code(self, code: RecoveryCode) -> None:
        # Replaying the log has checked that the key in force signed the first entry, or the one that put it in force.
        if code.rsk != self.state.rsk:
            raise CredentialsError(
                "that is not the recovery code of this account",
                hint="a newer code replaces those before it, and one made with --lost counts after seven days",
            )

    async def _root(self, code: RecoveryCode, state: AccountState) -> RootKey | None:
        """Return the root key that a state of the account names, as it was wrapped to the code."""
        for wrap in (await self.machine.cloud.log.wraps(RECOVERY_TARGET, pending=self.pending.token)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == state.version:
                return unwrap_root(wrap, account=state.account, target=RECOVERY_TARGET, holder=code, ask=state.ask)
        return None

    async def _keyring(self, code: RecoveryCode, before: AccountState) -> Keyring:
        root = await self._root(code, before)
        if root is None or before.keyring is None:
            raise WithheldError(
                f"the recovery code cannot open the keys of entry {before.seq}",
                hint="give a later entry to --void-from",
            )
        version, digest = before.keyring
        sealed = await self.machine.cloud.log.blob(digest, pending=self.pending.token)
        return open_keyring(sealed, account=before.account, version=version, digest=digest, root=root)

    async def _sent(
        self, draft: Draft, root: RootKey, keyring: Keyring, *, earlier: Mapping[int, AccountState] | None = None
    ) -> bool:
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
            earlier=earlier,
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
        first = self.states[0].seq
        undone = {seq for seq in account_log.undone_from(entries) if seq < first}
        earlier = await self._read_whole(*undone) if undone else {}
        self.states = account_log.extended(self.states, entries[1:], self.machine.now(), earlier=earlier)
        self.entries += entries[1:]

    async def _save(self, root: RootKey | None) -> None:
        await self.machine.vault.save(
            Secrets(account=self.state.account, device=self.machine.device, keys=self.own, root=root)
        )

    async def _joined(self, root: RootKey | None) -> Member:
        await self._save(root)
        member = await begin_replication(self.machine, self.state, self.entries)
        await rename_device(member, self.machine.cloud, member.device, self.name)
        return member
