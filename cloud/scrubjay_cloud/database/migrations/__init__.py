"""The numbered steps of the schema, one folder per dialect, each run in a transaction with the row that records it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from scrubjay_cloud.database.port import Transaction
from scrubjay_shared.clock import Millis

SEED = ("store_id", "generation", "secret")
"""What `meta` of a new database holds: its id, 1, and the key of cursors, nonces and fake salts (hex)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One migration."""

    version: int
    name: str
    sql: str

    def statements(self) -> list[str]:
        """Return its statements: each ends with a semicolon at the end of a line, outside of a function's `$$`."""
        lines = [line for line in self.sql.splitlines() if not line.lstrip().startswith("--")]
        statements = [""]
        for number, part in enumerate("\n".join(lines).split("$$")):
            pieces = [part] if number % 2 else part.split(";\n")
            statements[-1] += f"$${part}$$" if number % 2 else pieces[0]
            statements += pieces[1:]
        return [text for statement in statements if (text := statement.strip().removesuffix(";"))]


@cache
def steps(dialect: str) -> tuple[Step, ...]:
    """Return a dialect's migrations in order, numbered from 1 without gaps."""
    numbered = []
    for entry in resources.files("scrubjay_cloud.database.migrations").joinpath(dialect).iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            numbered.append(Step(version=int(number), name=name, sql=entry.read_text(encoding="utf-8")))
    return tuple(sorted(numbered, key=lambda step: step.version))


def latest(dialect: str) -> int:
    """Return the version of the schema that this code knows."""
    return steps(dialect)[-1].version


def seed(now: Callable[[], Millis], entropy: Callable[[int], bytes]) -> dict[str, str]:
    """Return the rows of `meta` for a new database."""
    return {
        "store_id": entropy(16).hex(),
        "generation": "1",
        "secret": entropy(32).hex(),
        "created": str(now()),
    }


def applied(tx: Transaction, step: Step, now: Millis) -> None:
    """Run one step and record it. The caller's transaction makes both one."""
    for statement in step.statements():
        tx.execute(statement)
    tx.execute("insert into migration (version, name, at) values (?, ?, ?)", (step.version, step.name, now))
