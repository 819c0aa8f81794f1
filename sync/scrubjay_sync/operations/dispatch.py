"""The operations of sync by name, JSON in and JSON out: what the daemon and a command's own process both call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_sync.api.registry import OPERATIONS
from scrubjay_sync.operations import account, devices, login, rounds, scopes, teams, verification
from scrubjay_sync.operations.client import SyncClient

Handler = Callable[[SyncClient, Any], Awaitable[Any]]

HANDLERS: dict[str, Handler] = {
    "prelogin": login.prelogin,
    "sign_up_check": login.sign_up_check,
    "sign_up": login.sign_up,
    "log_in": login.log_in,
    "poll": login.poll,
    "join": login.join,
    "recover": login.recover,
    "join_limited": login.join_limited,
    "log_out": login.log_out,
    "sync": rounds.sync,
    "snapshot": rounds.snapshot,
    "progress": rounds.progress,
    "status": rounds.status,
    "acknowledge": rounds.acknowledge,
    "quiet": rounds.quiet,
    "verify": verification.verify,
    "inspect": verification.inspect,
    "export_heads": verification.export_heads,
    "compare": verification.compare,
    "log": verification.list_log,
    "names": devices.device_names,
    "scopes": scopes.list_scopes,
    "scope_create": scopes.create_scope,
    "search": scopes.search,
    "scope_delete": scopes.delete_scope,
    "teams": teams.list_teams,
    "team_card": teams.show_card,
    "team_create": teams.create_team,
    "team_invite": teams.invite,
    "team_join": teams.join,
    "team_role": teams.set_role,
    "team_remove": teams.remove,
    "team_leave": teams.leave,
    "devices": devices.list_devices,
    "answer": devices.answer,
    "approve": devices.approve,
    "revoke": devices.revoke,
    "rename": devices.rename,
    "device_create": devices.create_device,
    "recovery_check": account.check_recovery,
    "recovery_replace": account.replace_recovery,
    "recovery_void": account.void,
    "rotate": account.rotate,
    "prove": account.prove,
    "password": account.password,
    "account_rename": account.rename,
    "totp": account.totp,
    "account_delete": account.delete_account,
}
"""What runs each operation of `api.registry.OPERATIONS`."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """The operations over one client, for a command that runs them in its own process."""

    client: SyncClient

    async def call(self, name: str, body: bytes) -> bytes:
        """Run an operation by its name. Raises NotFoundError, InvalidError, and what the operation raises."""
        operation = OPERATIONS.get(name)
        if operation is None:
            raise NotFoundError(
                f"sync has no operation {name[:40]!r}", hint=f"its operations are {', '.join(OPERATIONS)}"
            )
        try:
            request = msgspec.json.decode(body or b"{}", type=operation.request)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # The message of msgspec names fields and types, never values.
            raise InvalidError(
                f"the request to {name} is not valid: {error}",
                hint="if the daemon is of another version than the command: scrubjay daemon restart",
            ) from error
        return msgspec.json.encode(await HANDLERS[name](self.client, request))

    async def close(self) -> None:
        """End the work under way; nothing of it is lost."""
        await self.client.close()
