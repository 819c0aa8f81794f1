"""Weaknesses planted in snapshots: lies of a server or of a device get through, and a law says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scrubjay.store.queries.op_log import OpLogQueries
from scrubjay.store.writes.unconfirmed import Unconfirmed
from scrubjay_shared.account import AccountState
from scrubjay_shared.envelope import ObjectKind, parse, signed_by
from scrubjay_shared.errors import BadSignatureError
from scrubjay_sync import packing
from scrubjay_sync.account.member import Member
from scrubjay_sync.engine import snapshots
from simulation.mutants import Mutant, mutant


def _by(*kinds: str) -> frozenset[str]:
    return frozenset({"snapshots", *kinds})


def _by_anybody(_original: Any) -> Any:
    async def manifest_of(context: Any) -> Any:
        """Take a manifest of whoever is known, in force or not."""
        envelope = parse(await context.cloud.snapshots.manifest(context.member.home))
        if context.ahead_of_log(envelope):
            await context.member.refresh(context.cloud)
        snapshots._check_header(context, envelope, ObjectKind.SNAPSHOT_MANIFEST, envelope.header.device)
        state: AccountState = context.member.state
        if not signed_by(envelope, (state.devices[envelope.header.device].sign_pub,)):
            raise BadSignatureError("it is not signed by its device", hint="")
        return packing.opened_manifest(envelope, context.key(envelope))

    return manifest_of


def _forgotten_comes_back(original: Any) -> Any:
    def take(self: Unconfirmed, run: Any) -> Any:
        """Take in a chunk as if nothing had been forgotten."""
        known = OpLogQueries.forgotten
        OpLogQueries.forgotten = _nothing_forgotten  # type: ignore[method-assign]
        try:
            return original(self, run)
        finally:
            OpLogQueries.forgotten = known  # type: ignore[method-assign]

    return take


def _nothing_forgotten(_self: OpLogQueries, _ids: Iterable[str]) -> set[str]:
    return set()


def _struck_off(original: Any) -> Any:
    def confirm(self: Unconfirmed, said: Any) -> bool:
        original(self, said)
        return True

    return confirm


async def _never(*_: Any) -> bool:
    return False


SNAPSHOT_MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "a snapshot need not be signed",
        (snapshots, "signed_by", lambda _: lambda *_: True),
        faults=_by("foreign snapshot"),
    ),
    mutant(
        "a snapshot may be of a device that was revoked",
        (snapshots, "manifest_of", _by_anybody),
        faults=_by("snapshot of a revoked"),
        first=1,
    ),
    mutant(
        "what was forgotten comes back with a snapshot",
        (Unconfirmed, "take", _forgotten_comes_back),
        faults=_by("old snapshot"),
        first=2,
    ),
    mutant(
        "a snapshot is not compared with the lanes",
        (Unconfirmed, "confirm", _struck_off),
        faults=_by("lying maker"),
        first=1,
    ),
    mutant(
        "what stands in a snapshot and in no lane stays",
        (snapshots, "settle", lambda _: _never),
        faults=_by("lying maker"),
        first=13,
    ),
    mutant(
        "whoever made a snapshot that lies is told as somebody",
        (Member, "device_name", lambda _: lambda *_: "somebody"),
        faults=_by("lying maker"),
        first=1,
    ),
)
