"""A new store is made of one script, which is what the migrations together make."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from scrubjay.store import file

SCHEMA = Path(file.__file__).with_name("schema.sql")
HEAD = """\
-- The schema of a new store: what the migrations together make, which say why each thing is there.
-- Made of them by `SCRUBJAY_WRITE_DOCS=1 pytest tests/test_schema.py`; do not edit.
"""


def made(path: Path, schema: str | None) -> Path:
    file.prepare(path, file.migrations(), lambda: {"device": "d"}, schema=schema)
    return path


def declared(path: Path) -> list[tuple[str, str, str]]:
    """Return the kind, name and statement of all that a file declares, tables first, but for what SQLite makes itself."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select type, name, sql from sqlite_master where sql is not null order by rowid")
        found = rows.fetchall()
    virtual = [name for _, name, sql in found if sql.lower().startswith("create virtual table")]
    own = [
        row
        for row in found
        if not row[1].startswith("sqlite_") and not any(row[1].startswith(f"{name}_") for name in virtual)
    ]
    return sorted(own, key=lambda row: ("table", "index", "trigger", "view").index(row[0]))


def test_the_script_is_what_the_migrations_make(tmp_path: Path) -> None:
    statements = [f"{sql};\n" for _, _, sql in declared(made(tmp_path / "steps.db", None))]
    text = "\n".join([HEAD, *statements])
    if os.environ.get("SCRUBJAY_WRITE_DOCS"):
        SCHEMA.write_text(text, encoding="utf-8")

    assert file.schema() == text


def test_a_new_file_is_the_same_by_the_script_as_by_the_migrations(tmp_path: Path) -> None:
    def all_of(path: Path) -> tuple[object, ...]:
        with closing(sqlite3.connect(path)) as connection:
            tables = [name for kind, name, _ in declared(path) if kind == "table"]
            settings = ("user_version", "application_id", "auto_vacuum", "page_size", "encoding")
            return (
                sorted(declared(path)),
                {name: connection.execute(f'pragma table_xinfo("{name}")').fetchall() for name in tables},
                {name: connection.execute(f'select * from "{name}"').fetchall() for name in tables},
                {name: connection.execute(f"pragma {name}").fetchall() for name in settings},
            )

    assert all_of(made(tmp_path / "script.db", file.schema())) == all_of(made(tmp_path / "steps.db", None))
