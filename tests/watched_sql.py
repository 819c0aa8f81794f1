"""What SQLite is told and how much it does, on every connection that is opened meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scrubjay_io.sqlite import driver

STEP = 100
"""Instructions of SQLite's machine that are counted together."""


class Watched:
    """Statements by their text with their values, in the order they ran, and how many instructions they took."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.steps = 0

    def _step(self) -> int:
        self.steps += STEP
        return 0


def watch_sql(monkeypatch: pytest.MonkeyPatch, *, statements: bool = True) -> Watched:
    """Watch what is told to connections that open from now on."""
    watched = Watched()
    connect: Callable[..., Any] = driver.connect

    def connected(*given: Any, **more: Any) -> Any:
        connection = connect(*given, **more)
        if statements:
            connection.set_trace_callback(watched.statements.append)
        connection.set_progress_handler(watched._step, STEP)
        return connection

    monkeypatch.setattr(driver, "connect", connected)
    return watched
