"""Who attacks an account: a server that lies, a thief with an unlocked device, a thief with the password.

The server holds all that the real one does and no key of anybody. What it makes itself is made with keys of its own, or
with public halves that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import httpx2
import msgspec

from scrubjay_shared import account as account_log
from scrubjay_shared import wire
from scrubjay_shared.account import AccountState, EntryType, Signer
from scrubjay_shared.envelope import Suite
from scrubjay_sync.account.drafts import Draft
from scrubjay_sync.account.machine import Machine
from scrubjay_sync.account.member import Member
from scrubjay_sync.keys.keypairs import DeviceKeys, RootKey, signer
from scrubjay_sync.keys.keyring import Keyring, ScopeKeys, digest_of, seal_keyring
from scrubjay_sync.keys.recovery_code import RecoveryCode
from scrubjay_sync.keys.wraps import wrap_root


@dataclass
class Minted:
    """An account that a server has made, with the recovery keys of somebody who never signed up there."""

    account: bytes
    entries: list[bytes]
    root: RootKey
    keyring: Keyring
    sealed: bytes
    wraps: tuple[wire.Wrap, ...]
    device: bytes
    keys: DeviceKeys

    def register(self, *, username: str, auth_key: bytes, kdf: wire.Kdf) -> wire.Register:
        """The request that puts it on a server."""
        log = wire.LogAppend(head=bytes(32), entries=tuple(self.entries), wraps=self.wraps, blobs=(self.sealed,))
        return wire.Register(username=username, kdf=kdf, auth_key=auth_key, log=log)


def minted(victim: AccountState, *, random: Random, code: Callable[[bytes], bytes] | None = None) -> Minted:
    """Return an account whose recovery keys are the public ones of `victim`, which its server knows.

    `code` signs in the place of the recovery code, which the server does not have: by default a key of its own.
    """
    account, home, device = random.randbytes(16), random.randbytes(16), random.randbytes(16)
    root, own = RootKey.new(random.randbytes, 1), DeviceKeys.new(random.randbytes)
    keyring = Keyring(scopes={home: ScopeKeys(name="home", keys={0: random.randbytes(32)})}, devices={device: "evil"})
    sealed = seal_keyring(
        keyring,
        account=account,
        device=device,
        version=1,
        root=root,
        entropy=random.randbytes,
        sign=signer(own.sign_seed),
    ).data
    body = account_log.genesis_body(
        account, ask=root.ask, rsk=victim.rsk, recovery_pub=victim.recovery_pub, origin=victim.origins[0]
    )
    added = account_log.device_body(device, sign_pub=own.sign_pub, wrap_pub=own.wrap_pub)
    bodies: list[tuple[EntryType, dict[int, Any]]] = [
        (EntryType.GENESIS, body),
        (EntryType.DEVICE_ADD, added),
        (EntryType.SCOPE_CREATE, account_log.scope_body(home, suite=Suite.SEALED, home=True)),
        (EntryType.KEYRING_SET, {1: 1, 2: digest_of(sealed)}),
    ]
    entries: list[bytes] = []
    for kind, said in bodies:
        first = not entries
        entries.append(
            account_log.entry(
                account,
                seq=len(entries),
                prev=account_log.read(entries[-1]).hash if entries else bytes(32),
                type=kind,
                body=said,
                sign=root.sign,
                author=account_log.CODE_AUTHOR if first else device,
                cosign=(code or root.sign) if first else signer(own.sign_seed),
            )
        )
    wraps = (
        wrap_root(root, account=account, target=device, wrap_pub=own.wrap_pub),
        wrap_root(root, account=account, target=wire.RECOVERY_TARGET, wrap_pub=victim.recovery_pub),
    )
    return Minted(
        account=account,
        entries=entries,
        root=root,
        keyring=keyring,
        sealed=sealed,
        wraps=wraps,
        device=device,
        keys=own,
    )


class EvilServer(httpx2.AsyncBaseTransport):
    """Serves an account of its own making to whoever logs in, and keeps what it is sent."""

    def __init__(self, made: Minted) -> None:
        self.made = made
        self.appended: list[wire.LogAppend] = []
        self.asked: wire.Enrolment

    def let_in(self, device: bytes, keys: DeviceKeys) -> None:
        """Add a device to the false account, as if somebody had approved it."""
        last, made = account_log.read(self.made.entries[-1]), self.made
        entry = account_log.entry(
            made.account,
            seq=last.seq + 1,
            prev=last.hash,
            type=EntryType.DEVICE_ADD,
            body=account_log.device_body(device, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub),
            sign=made.root.sign,
            author=made.device,
            cosign=signer(made.keys.sign_seed),
        )
        made.entries.append(entry)

    def answer(self, nonce: bytes) -> None:
        """Answer who asks, as if a device did."""
        head = account_log.read(self.made.entries[-1]).hash
        self.asked = replace(self.asked, answer=nonce, answer_head=head)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer as the real service would, of the false account."""
        body = await request.aread()
        entries = [*self.made.entries, *(entry for one in self.appended for entry in one.entries)]
        answer: Any
        match request.method, request.url.path:
            case "POST", "/v1/login":
                answer = wire.Pending(account=self.made.account, token="t", expires=1 << 50)
            case "POST", "/v1/enroll":
                asked = msgspec.json.decode(body, type=wire.Enroll)
                answer = self.asked = wire.Enrolment(
                    id=bytes(16),
                    device=asked.device,
                    sign_pub=asked.sign_pub,
                    wrap_pub=asked.wrap_pub,
                    commitment=asked.commitment,
                    approved=False,
                    expires=1 << 50,
                )
            case "GET", "/v1/enroll":
                answer = wire.Enrolments(enrolments=(self.asked,))
            case "POST", path if path.endswith("/reveal"):
                answer = self.asked
            case "POST", "/v1/log":
                self.appended.append(msgspec.json.decode(body, type=wire.LogAppend))
                answer = wire.LogPage(entries=(), seq=0, head=bytes(32))
            case "GET", "/v1/log":
                last = account_log.read(entries[-1])
                start = int(request.url.params.get("from", 0))
                answer = wire.LogPage(entries=tuple(entries[start:]), seq=last.seq, head=last.hash)
            case "GET", path if path.startswith("/v1/wraps/"):
                target = bytes.fromhex(path.rpartition("/")[2])
                answer = wire.Wraps(wraps=tuple(one for one in self.made.wraps if one.target == target))
            case _:
                return httpx2.Response(404, stream=httpx2.ByteStream(b"{}"))
        content = msgspec.json.encode(answer)
        return httpx2.Response(200, headers={"Content-Type": "application/json"}, stream=httpx2.ByteStream(content))


@dataclass
class Thief:
    """Somebody who copied what a full device holds: its keys, the root key and the account log. `machine` is the way."""

    root: RootKey
    device: bytes
    keys: DeviceKeys
    states: list[AccountState]
    machine: Machine

    @classmethod
    async def at(cls, machine: Machine, member: Member) -> Thief:
        """Copy what a device holds now."""
        kept = await machine.vault.load()
        assert kept is not None
        states = account_log.extended((), await machine.store.read(lambda q: q.replication.account_log()))
        return cls(root=member.root, device=member.device, keys=kept.keys, states=states, machine=machine)

    def entry(
        self,
        kind: EntryType,
        body: dict[int, Any],
        *,
        state: AccountState | None = None,
        author: bytes | None = None,
        cosign: Callable[[bytes], bytes] | None = None,
        sign: Callable[[bytes], bytes] | None = None,
    ) -> bytes:
        """Return an entry that follows, signed with what was copied."""
        after = state or self.states[-1]
        return account_log.entry(
            after.account,
            seq=after.seq + 1,
            prev=after.head,
            type=kind,
            body=body,
            sign=sign or self.root.sign,
            signer=Signer.ASK,
            author=self.device if author is None else author,
            cosign=cosign or signer(self.keys.sign_seed),
        )

    def own_code(self, code: RecoveryCode, at: int) -> bytes:
        """Return the entry that asks for a recovery code of the thief's own."""
        state = self.states[-1]
        body = account_log.recovery_body(
            state.account, state.head, rsk=code.rsk, recovery_pub=code.wrap_pub, at=at, sign=code.sign
        )
        return self.entry(EntryType.RECOVERY_ROTATE, body)

    async def send(self, *entries: bytes, wraps: Sequence[wire.Wrap] = (), pending: str | None = None) -> None:
        """Append entries, as the device or with a pending token."""
        given = wire.LogAppend(head=self.states[-1].head, entries=entries, wraps=tuple(wraps))
        await self.machine.cloud.log.append(given, pending=pending)
        self.states = account_log.extended(self.states, entries)


def device_draft(random: Random) -> tuple[bytes, DeviceKeys, Draft]:
    """Return a device that somebody wants in, and the change that adds it."""
    device, keys = random.randbytes(16), DeviceKeys.new(random.randbytes)
    body = account_log.device_body(device, sign_pub=keys.sign_pub, wrap_pub=keys.wrap_pub)
    return device, keys, Draft(entries=[(EntryType.DEVICE_ADD, body)])
