"""The scopes of an account as one device sees them: which it takes part in, their keys, names and projects."""

from __future__ import annotations

from collections.abc import Mapping

from scrubjay.store import Store
from scrubjay.store.transaction import Transaction
from scrubjay_shared.account import ScopeState
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import NotFoundError
from scrubjay_sync.account.changes import bound_hint, readers_of
from scrubjay_sync.account.opened_keys import OpenedKeys
from scrubjay_sync.account.pinned_log import PinnedLog
from scrubjay_sync.keys.keyring import ScopeKeys
from scrubjay_sync.policy import ACCOUNT_CHANGED, TEAM_CHANGED


class MemberScopes:
    """What the log says of each scope, with the keys and names that this device has opened. Follows both."""

    def __init__(self, store: Store, log: PinnedLog, keys: OpenedKeys) -> None:
        self._store = store
        self._log = log
        self._keys = keys

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The scopes that this device takes part in, home first; deleted ones are not among them."""
        state = self._log.state
        own = state.device_of(bytes.fromhex(self._store.device))
        mine = None if own is None else own.scopes
        found = [one for one in state.scopes.values() if not one.deleted and (mine is None or one.id in mine)]
        return tuple(one.id for one in sorted(found, key=lambda one: not one.home))

    def key(self, scope: bytes, epoch: int) -> bytes:
        """Return the key of a scope at an epoch; empty for a searchable scope, which has none. Raises NotFoundError."""
        if self.suite(scope) == Suite.OPEN:
            return b""
        known = self._keys.scopes.get(scope)
        if known is None or epoch not in known.keys:
            raise NotFoundError(
                f"this device has no key of scope {scope.hex()[:8]}, epoch {epoch}",
                hint="the scope was deleted, or this device was not given it: scrubjay sync scopes list",
            )
        return known.keys[epoch]

    def epoch(self, scope: bytes) -> int:
        """Return the epoch that new objects of a scope are sealed under. Raises NotFoundError."""
        return self._state(scope).epoch

    def suite(self, scope: bytes) -> Suite:
        """Return how objects of a scope are protected, for ever as the log declares it. Raises NotFoundError."""
        return Suite(self._state(scope).suite)

    def name(self, scope: bytes) -> str:
        """Return a scope's name, or the beginning of its id when it has none."""
        known = self._keys.scopes.get(scope)
        return known.name if known is not None and known.name else scope.hex()[:8]

    @property
    def teams(self) -> Mapping[bytes, ScopeKeys]:
        """The teams that this person is in: what the keyring names and the account log does not, with no keys there."""
        known = self._log.state.scopes
        return {team: keys for team, keys in self._keys.scopes.items() if team not in known and not keys.keys}

    @property
    def projects(self) -> Mapping[str, bytes]:
        """The projects that are bound to scopes of their own or to teams, as all full devices know them."""
        return {
            project: scope
            for scope in (*self.ids, *self.teams)
            if scope in self._keys.scopes
            for project in self._keys.scopes[scope].projects
        }

    @property
    def authors(self) -> dict[str, str]:
        """What devices and people are called here, by the short ids that what they wrote is marked with."""
        return {one.hex()[:8]: name for one, name in self._keys.names.items()}

    def projects_of(self, scope: bytes) -> tuple[str, ...]:
        """Return the projects that are bound to a scope or a team, in order."""
        return tuple(sorted(project for project, bound in self.projects.items() if bound == scope))

    async def bind_projects(self) -> None:
        """Bind projects in the store as the account has them bound: to what is first written from here on.

        A person is told, in the same transaction, of each that goes to where others read it. What was bound when this
        device came in is no news.
        """
        bound = {one.project: one.scope for one in await self._store.read(lambda q: q.replication.bindings())}
        wanted = dict(self.projects)
        if bound == wanted:
            return

        def bind(tx: Transaction) -> None:
            for project in bound.keys() - wanted.keys():
                tx.replication.unbind(project)
            moved = [project for project in sorted(wanted) if bound.get(project) != wanted[project]]
            for project in moved:
                tx.replication.bind(project, wanted[project], self._store.last_seq)
            if tx.queries.replication.has_synced():
                for project in moved:
                    self._tell_bound(tx, project, wanted[project])

        await self._store.write(bind)

    def _tell_bound(self, tx: Transaction, project: str, scope: bytes) -> None:
        """Raise an alarm when what is written about a project goes to where more than full devices read it."""
        state, name = self._log.state, self.name(scope)
        readers = readers_of(scope, state, self._keys.names)
        if readers:
            words = (
                f"what is first written about project {project} goes to {name} from now on, which {readers} can read"
            )
            code = ACCOUNT_CHANGED if scope in state.scopes else TEAM_CHANGED
            tx.replication.raise_alarm(code, f"{scope.hex()}/{project}", words, bound_hint(scope, state, name))

    def _state(self, scope: bytes) -> ScopeState:
        found = self._log.state.scopes.get(scope)
        if found is None:
            raise NotFoundError(f"the account has no scope {scope.hex()[:8]}", hint="scrubjay sync scopes list")
        return found
