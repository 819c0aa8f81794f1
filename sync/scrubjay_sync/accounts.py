"""What changes an account: signing up, letting devices in and out, recovery, scopes, the password.

Root keys are made at sign-up, at a rotation and when entries are voided, and nowhere else: a machine that logs in to an
account that exists either is given its root key or has none.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from scrubjay.store import Store, replica
from scrubjay_shared import account as log
from scrubjay_shared.account import AccountState, Device, EntryType
from scrubjay_shared.clock import Millis
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    AnotherAccountError,
    ConflictError,
    CredentialsError,
    DeniedError,
    InvalidError,
    LogConflictError,
    NotFoundError,
    RevokedError,
    RolledBackError,
    ScrubjayError,
    SplitError,
    WithheldError,
)
from scrubjay_shared.wire import (
    RECOVERY_TARGET,
    ROOT_WRAP,
    DeleteAccount,
    Deleted,
    Enroll,
    Enrolment,
    Kdf,
    Login,
    Pending,
    Register,
)
from scrubjay_sync import keys
from scrubjay_sync.api.account import RecoveryPublic
from scrubjay_sync.cloud import Cloud, Credential
from scrubjay_sync.keys import DeviceKeys, Entropy, Keyring, RecoveryCode, RootKey, ScopeKeys
from scrubjay_sync.membership import Draft, Member, Secrets, Vault, assemble, whole_log
from scrubjay_sync.words import words_of

HOME_NAME = "home"
_VERIFY = "scrubjay sync verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What this machine brings to an account: its store, the place for its secrets, the server, time and chance."""

    store: Store
    vault: Vault
    cloud: Cloud
    now: Callable[[], Millis]
    entropy: Entropy

    @property
    def device(self) -> bytes:
        """The store's device id, 16 bytes."""
        return bytes.fromhex(self.store.device)

    async def member(self) -> Member:
        """Return the member that this machine is, once it is one."""
        return await Member.load(self.store, self.vault, self.cloud.origin, now=self.now, entropy=self.entropy)


# --- a new account ----------------------------------------------------------------------------------------------------


async def sign_up(
    machine: Machine,
    *,
    username: str,
    auth_key: bytes,
    kdf: Kdf,
    recovery: RecoveryPublic,
    name: str,
    invite: str = "",
    bring_all: bool = False,
) -> Member:
    """Make a new account with this machine as its first device, called `name`.

    The recovery code must have been shown before: from here on it is the only way back when this machine is lost.
    Raises ConflictError when the machine is logged in already or the username is taken, AnotherAccountError when its
    store was in an account before and `bring_all` does not say that everything may go to the new one.
    """
    await _must_be_out(machine)
    account, home = machine.entropy(16), machine.entropy(16)
    await _must_not_mix(machine, account, bring_all=bring_all)
    root, own = RootKey.new(machine.entropy, 1), DeviceKeys.new(machine.entropy)
    keyring = Keyring(
        scopes={home: ScopeKeys(name=HOME_NAME, keys={0: machine.entropy(keys.KEY_BYTES)})},
        devices={machine.device: name},
    )
    draft = Draft(
        entries=[
            (
                EntryType.GENESIS,
                log.genesis_body(
                    account,
                    ask=root.ask,
                    rsk=recovery.rsk,
                    recovery_pub=recovery.wrap_pub,
                    origin=machine.cloud.origin,
                ),
            ),
            (EntryType.DEVICE_ADD, _device_body(machine.device, own)),
            (EntryType.SCOPE_CREATE, log.scope_body(home, suite=Suite.SEALED, home=True)),
        ],
        keyring=keyring,
    )
    made = assemble(
        draft,
        account=account,
        states=(),
        root=root,
        keyring=keyring,
        device=machine.device,
        sign=keys.signer(own.sign_seed),
        now=machine.now(),
        entropy=machine.entropy,
    )
    # Before the server knows of the account: a machine that stops in between must not have lost its keys.
    await machine.vault.save(Secrets(account=account, device=machine.device, keys=own, root=root))
    if made.sealed is not None:
        await machine.vault.keep_keyring(made.sealed)
    try:
        await machine.cloud.register(
            Register(username=username, kdf=kdf, auth_key=auth_key, log=made.append, invite=invite)
        )
    except ScrubjayError:
        await machine.vault.erase()
        raise
    return await _begun(machine, account, made.append.entries)


async def _must_be_out(machine: Machine) -> None:
    if await replica.state(machine.store) is not None:
        raise ConflictError("this store is logged in already", hint="scrubjay logout first")


async def account_before(store: Store) -> bytes:
    """Return the account that the store was in last; empty when there was none, or nobody knows what it still has."""
    return await store.write(replica.left) or b""


async def _must_not_mix(machine: Machine, account: bytes, *, bring_all: bool) -> None:
    """Two accounts are often two people, or work and home: what one holds must not go to the other unasked."""
    before = await account_before(machine.store)
    if before and before != account and not bring_all:
        raise mixing(before.hex())


def mixing(before: str) -> AnotherAccountError:
    """Return what is said to a store that was in account `before` (hex) and is about to enter another."""
    return AnotherAccountError(
        f"this store was in account {before[:8]} before: everything that it holds would go to another account now",
        hint="scrubjay login --bring-all allows it; scrubjay --home FOLDER login uses another store",
    )


async def _begun(machine: Machine, account: bytes, entries: Sequence[bytes]) -> Member:
    """Turn replication on, and return the member with all its keys.

    What the store replicated with another account before goes to this one as this device's own: here nobody has it.
    """

    def begin(tx: Any) -> None:
        if replica.left(tx) not in {None, account}:
            tx.adopt()
        replica.begin(tx, account)
        replica.keep_log(tx, 0, list(entries))

    await machine.store.write(begin)
    member = await machine.member()
    await member.refresh(machine.cloud)
    return member


# --- another machine of an account ------------------------------------------------------------------------------------


async def log_in(
    machine: Machine, *, username: str, auth_key: bytes, name: str, code: str = "", bring_all: bool = False
) -> Joining:
    """Prove the password and ask to be let in. `code` is the TOTP code, where the account has one.

    Raises CredentialsError for whatever does not fit, ConflictError when the machine is logged in already,
    AnotherAccountError as `sign_up` does.
    """
    await _must_be_out(machine)
    pending = await machine.cloud.login(Login(username=username, auth_key=auth_key, code=code))
    await _must_not_mix(machine, pending.account, bring_all=bring_all)
    entries, _ = await whole_log(machine.cloud, pending=pending.token)
    states = log.extended((), entries, machine.now())
    _check_account(states, pending, machine.cloud.origin)
    if machine.device in states[-1].devices:  # it was let in before and stopped too early: that id's keys are gone
        fresh = machine.entropy(16).hex()
        await machine.store.write(lambda tx: tx.reincarnate(fresh, 0))
    own = DeviceKeys.new(machine.entropy)
    asked = Enroll(device=machine.device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
    await machine.cloud.enroll(asked, pending=pending.token)
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
        return words_of(keys.pairing_digest(self.state.genesis, self.own.sign_pub, self.own.wrap_pub, self.state.head))

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
        it (whoever rotated it left the code out: see `void`).
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
            draft = Draft(entries=[(EntryType.DEVICE_ADD, _device_body(self.machine.device, self.own))])
            if await self._sent(draft, root, Keyring()):
                return await self._joined(root)

    async def void(self, code: RecoveryCode, start: int) -> Member:
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
            epochs, keyring = _new_epochs(before, keyring, self.machine.entropy, above=self.state)
            added = [(EntryType.DEVICE_ADD, _device_body(self.machine.device, self.own))]
            draft = Draft(
                entries=[(EntryType.VOID, {1: start, 2: root.version, 3: root.ask}), *added, *epochs],
                keyring=keyring.with_device(self.machine.device, self.name),
                root=root,
                recovery=code,
                by_recovery=frozenset({EntryType.VOID}),
            )
            if await self._sent(draft, root, keyring):
                return await self._joined(root)

    def _check_code(self, code: RecoveryCode) -> None:
        if code.rsk not in {self.state.rsk, self.state.recovery(self.machine.now())[0]}:
            raise CredentialsError(
                "that is not the recovery code of this account", hint="a newer code replaces those before it"
            )

    async def _root(self, code: RecoveryCode, version: int) -> RootKey | None:
        for wrap in (await self.machine.cloud.wraps(RECOVERY_TARGET, pending=self.pending.token)).wraps:
            if wrap.kind == ROOT_WRAP and wrap.version == version:
                ask = next(state.ask for state in reversed(self.states) if state.version == version)
                return keys.unwrap_root(wrap, account=self.state.account, target=RECOVERY_TARGET, holder=code, ask=ask)
        return None

    async def _keyring(self, code: RecoveryCode, before: AccountState) -> Keyring:
        root = await self._root(code, before.version)
        if root is None or before.keyring is None:
            raise WithheldError(
                f"the recovery code cannot open the keys of entry {before.seq}",
                hint="give a later entry to --void-from",
            )
        version, digest = before.keyring
        sealed = await self.machine.cloud.blob(digest, pending=self.pending.token)
        return keys.open_keyring(sealed, account=before.account, version=version, digest=digest, root=root)

    async def _sent(self, draft: Draft, root: RootKey, keyring: Keyring) -> bool:
        """Append with the pending token; False when the log had moved on, and was read again."""
        made = assemble(
            draft,
            account=self.state.account,
            states=self.states,
            root=root,
            keyring=keyring,
            device=self.machine.device,
            sign=keys.signer(self.own.sign_seed),
            now=self.machine.now(),
            entropy=self.machine.entropy,
        )
        await self._save(made.root)
        try:
            await self.machine.cloud.append(made.append, pending=self.pending.token)
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
        entries, page = await whole_log(self.machine.cloud, pending=self.pending.token, start=last.seq)
        if page.seq < last.seq:
            raise RolledBackError("the server's account log has become shorter", hint="do not trust this server")
        if not entries or entries[0] != self.entries[-1]:
            raise SplitError("the server shows another account log than before", hint="do not trust this server")
        self.states = log.extended(self.states, entries[1:], self.machine.now())
        self.entries += entries[1:]

    async def _save(self, root: RootKey | None) -> None:
        await self.machine.vault.save(
            Secrets(account=self.state.account, device=self.machine.device, keys=self.own, root=root)
        )

    async def _joined(self, root: RootKey | None) -> Member:
        await self._save(root)
        member = await _begun(self.machine, self.state.account, self.entries)
        await rename_device(member, self.machine.cloud, member.device, self.name)
        return member


def _device_body(device: bytes, own: DeviceKeys) -> dict[int, Any]:
    return log.device_body(device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)


# --- letting in -------------------------------------------------------------------------------------------------------


def words_for(member: Member, asking: Enrolment) -> tuple[str, ...]:
    """Return the words that a machine which asks must show if it is the one it seems to be."""
    return words_of(keys.pairing_digest(member.state.genesis, asking.sign_pub, asking.wrap_pub, member.state.head))


async def approve(member: Member, cloud: Cloud, asking: Enrolment, words: Sequence[str]) -> None:
    """Let in the machine that shows these words: it will hold all keys of the account.

    Raises DeniedError when the words are others: somebody is in between, or the account has changed meanwhile.
    """

    def draft(state: AccountState, _: Keyring) -> Draft:
        digest = keys.pairing_digest(state.genesis, asking.sign_pub, asking.wrap_pub, state.head)
        if words_of(digest) != tuple(words):
            raise DeniedError(
                "the words are not those of the machine that asks: it was not added",
                hint="the account may have changed: compare the words again; if they still differ, do not go on",
            )
        body = log.device_body(asking.device, sign_pub=asking.sign_pub, wrap_pub=asking.wrap_pub)
        return Draft(entries=[(EntryType.DEVICE_ADD, body)])

    await member.append(cloud, draft)
    await cloud.approve(asking.id)


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


_BUNDLE = "sjs1-device-"


async def create_limited(
    member: Member, cloud: Cloud, *, name: str, scopes: Sequence[bytes], read_only: bool, entropy: Entropy
) -> Bundle:
    """Let in a device that has the keys of some scopes only, and never the root key: for machines without a person."""
    device, own = entropy(16), DeviceKeys.new(entropy)
    body = log.device_body(
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
    """Make this store the limited device of a bundle. What was written here before goes on as that device's.

    Raises AnotherAccountError as `sign_up` does.
    """
    await _must_be_out(machine)
    await _must_not_mix(machine, bundle.account, bring_all=bring_all)
    cloud = machine.cloud
    cloud.use(Credential(account=bundle.account, device=bundle.device, sign=keys.signer(bundle.keys.sign_seed)))
    entries, _ = await whole_log(cloud)
    states = log.extended((), entries, machine.now())
    if states[0].genesis != bundle.genesis:
        raise SplitError("the server shows another account than the bundle was made for", hint="do not trust it")
    if machine.device != bundle.device:
        await machine.store.write(lambda tx: tx.reincarnate(bundle.device.hex(), 0))
    await machine.vault.save(Secrets(account=bundle.account, device=bundle.device, keys=bundle.keys))
    return await _begun(machine, bundle.account, entries)


# --- letting out, and new keys ----------------------------------------------------------------------------------------


async def ends_of(store: Store, device: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Return how far a device's lanes are held and verified here, by scope: what will count of it."""
    lanes = await replica.lanes(store)
    return {scope: (lane.n, lane.tip) for (scope, owner), lane in lanes.items() if owner == device and lane.n}


async def revoke(
    member: Member, cloud: Cloud, device: bytes, *, ends: Mapping[bytes, tuple[int, bytes]], entropy: Entropy
) -> None:
    """Shut a device out: its tokens at once, and every key that it knew is replaced for what is written from now on.

    What it wrote counts up to `ends`; what it has read stays read. Its lanes are adopted by this device, which packs
    them from now on. Raises NotFoundError, ConflictError for this device itself.
    """
    if device == member.device:
        raise ConflictError("that is this device", hint="scrubjay logout takes this device out of the account")

    def draft(state: AccountState, ring: Keyring) -> Draft:
        lost = known_device(state, device)
        adopted = [(EntryType.LANE_ADOPT, {1: scope, 2: device, 3: member.device}) for scope in sorted(ends)]
        revoked = (EntryType.DEVICE_REVOKE, log.revoke_body(device, ends))
        root = RootKey.new(entropy, state.version + 1) if lost.full else None
        rotated = [] if root is None else [(EntryType.ROTATE, {1: root.version, 2: root.ask})]
        epochs, kept = _new_epochs(state, ring, entropy, only=lost.scopes)
        return Draft(entries=[revoked, *rotated, *epochs, *adopted], keyring=kept, root=root)

    known_device(member.state, device)
    await cloud.delete_device(device)
    await member.append(cloud, draft)


async def rotate(member: Member, cloud: Cloud, *, entropy: Entropy) -> None:
    """Replace the root key, the account's signing key, and every scope's key for what is written from now on."""
    await member.append(cloud, lambda state, ring: _rotation(state, ring, entropy))


def _rotation(state: AccountState, ring: Keyring, entropy: Entropy) -> Draft:
    root = RootKey.new(entropy, state.version + 1)
    epochs, ring = _new_epochs(state, ring, entropy)
    return Draft(entries=[(EntryType.ROTATE, {1: root.version, 2: root.ask}), *epochs], keyring=ring, root=root)


def _new_epochs(
    state: AccountState,
    ring: Keyring,
    entropy: Entropy,
    *,
    only: Sequence[bytes] | None = None,
    above: AccountState | None = None,
) -> tuple[list[tuple[EntryType, dict[int, Any]]], Keyring]:
    """Return the entries that give sealed scopes a new epoch, and the keyring with their keys.

    `above`: the state that a void entry cancels, because epochs count on from it.
    """
    entries = []
    for scope in state.scopes.values():
        if scope.deleted or scope.suite == Suite.OPEN or (only is not None and scope.id not in only):
            continue
        known = ring.scopes.get(scope.id, ScopeKeys(name=""))
        reached = scope if above is None else above.scopes.get(scope.id, scope)
        epoch = max(scope.epoch, reached.epoch) + 1
        entries.append((EntryType.EPOCH_ADD, {1: scope.id, 2: epoch}))
        ring = ring.with_scope(scope.id, replace(known, keys={**known.keys, epoch: entropy(keys.KEY_BYTES)}))
    return entries, ring


def known_device(state: AccountState, device: bytes) -> Device:
    """Return a device in force. Raises NotFoundError, RevokedError."""
    found = state.devices.get(device)
    if found is None:
        raise NotFoundError(f"the account has no device {device.hex()[:8]}", hint="scrubjay devices list shows them")
    if found.revoked:
        raise RevokedError(f"device {device.hex()[:8]} was revoked already", hint="scrubjay devices list shows them")
    return found


async def rename_device(member: Member, cloud: Cloud, device: bytes, name: str) -> None:
    """Give a device a name. The server does not see it."""

    def draft(state: AccountState, ring: Keyring) -> Draft:
        known_device(state, device)
        return Draft(keyring=ring.with_device(device, name)) if ring.devices.get(device) != name else Draft()

    await member.append(cloud, draft)


# --- recovery ---------------------------------------------------------------------------------------------------------


def is_recovery(state: AccountState, rsk: bytes, now: Millis) -> bool:
    """Say whether a recovery code, by its public half, is the account's, now or once its wait is over."""
    waiting = () if state.waiting_recovery is None else (state.waiting_recovery[0],)
    return rsk in {state.recovery(now)[0], *waiting}


async def replace_recovery(
    member: Member,
    cloud: Cloud,
    new: RecoveryPublic,
    *,
    old: RecoveryCode | None,
    now: Callable[[], Millis],
    entropy: Entropy,
) -> None:
    """Put a new recovery code in the place of the old one, and replace every key that the old one opened.

    With the old code at once; without it after `account.RECOVERY_DELAY_MS`, in which the old one can still void it.
    """

    def draft(state: AccountState, ring: Keyring) -> Draft:
        if old is not None and old.rsk not in {state.rsk, state.recovery(now())[0]}:
            raise CredentialsError(
                "that is not the recovery code of this account",
                hint="without it: scrubjay recovery rotate --lost, and the new code is valid after seven days",
            )
        body = {1: new.rsk, 2: new.wrap_pub, 3: now()}
        rotation = _rotation(state, ring, entropy)
        return replace(
            rotation,
            entries=[(EntryType.RECOVERY_ROTATE, body), *rotation.entries],
            recovery=old,
            by_recovery=frozenset({EntryType.RECOVERY_ROTATE}),
        )

    await member.append(cloud, draft)


# --- scopes -----------------------------------------------------------------------------------------------------------


async def create_scope(
    member: Member,
    machine: Machine,
    *,
    name: str,
    suite: Suite,
    projects: Sequence[str] = (),
    space: str = "",
) -> bytes:
    """Make a scope and bind projects to it; returns its id. Its mode is for ever.

    What is first written about those projects from now on goes to it; what exists stays where it is. Raises
    ConflictError when the name or a project is taken.
    """
    scope = machine.entropy(16)
    held = {} if suite == Suite.OPEN else {0: machine.entropy(keys.KEY_BYTES)}

    def draft(_: AccountState, ring: Keyring) -> Draft:
        if any(known.name == name for known in ring.scopes.values()):
            raise ConflictError(
                f"the account has a scope {name!r} already", hint="scrubjay sync scopes list shows them"
            )
        taken = sorted(set(projects) & member.projects.keys())
        if taken:
            raise ConflictError(
                f"project {taken[0]} belongs to another scope already", hint="scrubjay sync scopes list shows them"
            )
        return Draft(
            entries=[(EntryType.SCOPE_CREATE, log.scope_body(scope, suite=suite, space=space))],
            keyring=ring.with_scope(scope, ScopeKeys(name=name, keys=held, projects=tuple(projects))),
        )

    await member.append(machine.cloud, draft)
    return scope


async def delete_scope(member: Member, cloud: Cloud, scope: bytes) -> Deleted:
    """Delete a scope's objects at the server, and its keys on every device. Memories stay in the stores that have them.

    Raises NotFoundError, ConflictError for the home scope.
    """

    def draft(state: AccountState, ring: Keyring) -> Draft:
        found = state.scopes.get(scope)
        if found is None or found.deleted:
            raise NotFoundError(
                f"the account has no scope {scope.hex()[:8]}", hint="scrubjay sync scopes list shows them"
            )
        if found.home:
            raise ConflictError(
                "the home scope cannot be deleted while the account exists",
                hint="scrubjay account delete deletes the account",
            )
        return Draft(entries=[(EntryType.SCOPE_DELETE, {1: scope})], keyring=ring.without_scope(scope))

    await member.append(cloud, draft)
    return await cloud.delete_scope(scope)


# --- leaving ----------------------------------------------------------------------------------------------------------


async def log_out(machine: Machine, member: Member | None) -> None:
    """Leave the account: keys and everything kept for it are erased here, memories stay.

    With `member`, the log says so too; else (offline, revoked, keys lost) only this machine knows. What was never
    confirmed by the server becomes a new device's, to be sent after a later login.
    """
    if member is not None and not member.limited:
        ends = await ends_of(machine.store, member.device)

        def draft(state: AccountState, _: Keyring) -> Draft:
            own = state.devices.get(member.device)
            gone = own is None or own.revoked
            return Draft() if gone else Draft(entries=[(EntryType.DEVICE_REVOKE, log.revoke_body(member.device, ends))])

        await member.append(machine.cloud, draft)
    await leave(machine.store, machine.vault, machine.entropy)


async def leave(store: Store, vault: Vault, entropy: Entropy) -> None:
    """Erase what a store keeps of its account, its memories excepted. Doing it twice is doing it once."""
    state = await replica.state(store)
    if state is not None:
        after = await confirmed_seq(store, bytes.fromhex(store.device), state.sealed_seq)
        fresh = entropy(16).hex()

        def end(tx: Any) -> None:
            tx.reincarnate(fresh, after)
            replica.end(tx)

        await store.write(end)
    await vault.erase()


async def confirmed_seq(store: Store, device: bytes, sealed_seq: int) -> int:
    """Return the last op of this device up to which the server has confirmed every one."""
    confirmed = sealed_seq
    for (scope, owner), lane in (await replica.lanes(store)).items():
        if owner == device:
            waiting = await replica.sealed(store, scope, device, after=lane.acked_n)
            confirmed = min([confirmed, *(one.seq_low - 1 for one in waiting)])
    return max(confirmed, 0)


async def delete_account(machine: Machine, auth_key: bytes) -> Deleted:
    """Delete the account at the server, and leave it. Memories stay here."""
    deleted = await machine.cloud.delete_account(DeleteAccount(auth_key=auth_key))
    await leave(machine.store, machine.vault, machine.entropy)
    return deleted
