"""One command line of sync: what was given, how it prints and asks, and how it calls operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrubjay.cli.output import Output
from scrubjay_sync import profile
from scrubjay_sync.api.identity import Nothing
from scrubjay_sync.cli.prompts import Prompts
from scrubjay_sync.transport import connect

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command line, how it prints its result (`out`), and how it asks a person (`prompts`)."""

    line: Namespace
    out: Output
    prompts: Prompts
    chosen: Settings

    def call(self, operation: str, request: Any = None) -> Any:
        """Call one operation over a connection of its own."""
        with connect(self.chosen) as transport:
            return transport.call(operation, Nothing() if request is None else request)

    def require_login(self) -> profile.Profile:
        """Return the login. Raises NotFoundError before anything is asked of a person."""
        return profile.required(self.chosen.store_dir, self.chosen.account)
