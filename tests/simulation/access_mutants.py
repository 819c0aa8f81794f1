"""Weaknesses planted in who is let in and what they may: attackers in histories get through, and a law says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from scrubjay_shared.account import AccountState
from scrubjay_sync.account import account_devices, changes, drafts, pinned_log
from scrubjay_sync.engine import apply
from simulation.mutants import Mutant, mutant

replaying = import_module("scrubjay_shared.account.replay")


def _by(*kinds: str) -> frozenset[str]:
    return frozenset(kinds)


def _for_the_revoked_too(original: Any) -> Any:
    def wraps(before: Any, after: AccountState, **given: Any) -> Any:
        devices = {device: replace(one, ends=None) for device, one in after.devices.items()}
        return original(before, replace(after, devices=devices), **given)

    return wraps


def _as_it_came(_original: Any) -> Callable[..., Any]:
    return lambda data, **_: data


ACCESS_MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "entries of the account log are taken unsigned",
        (replaying, "_verify", lambda _: lambda *_: None),
        faults=_by("served log", "password"),
    ),
    mutant(
        "a new root key is wrapped for the revoked too",
        (drafts, "wraps_after", _for_the_revoked_too),
        faults=_by("thief"),
    ),
    mutant(
        "a revoke forgets whom the thief let in",
        (account_devices, "let_in_by", lambda _: lambda *_: ()),
        faults=_by("thief"),
    ),
    mutant(
        "a revoke gives scopes no new key",
        (account_devices, "new_epochs", lambda _: lambda state, ring, *_, **__: ([], ring)),
        faults=_by("thief"),
    ),
    mutant(
        "changes of who is in are told nobody",
        (pinned_log, "changes_in", lambda _: lambda *_: []),
        faults=_by("thief"),
    ),
    mutant(
        "changes of who is in are told without their author",
        (changes, "_author", lambda _: lambda _: "somebody"),
        faults=_by("thief"),
    ),
    mutant(
        "a limited device writes of anything",
        (apply, "_within_rights", lambda _: lambda context, tx, lane, entries, _: entries),
        faults=_by("limited"),
    ),
    mutant("a limited device speaks as the person", (apply, "confined", _as_it_came), faults=_by("limited")),
    mutant(
        "what a limited device said first is kept where the owner writes",
        (apply, "_take_back", lambda _: lambda *_: None),
        faults=_by("limited"),
    ),
)
