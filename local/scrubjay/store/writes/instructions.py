"""Noting which files of instructions for agents were imported."""

from __future__ import annotations

import json

from scrubjay.store.queries.instructions import Sections
from scrubjay.store.write_context import WriteContext


class InstructionWrites:
    """Files of instructions that were imported. They are of this device alone: another has other files there."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def note(self, path: str, project: str, sections: Sections) -> None:
        """Note what stands in a file now."""
        self._context.run(
            "insert into instruction_file (path, project, sections) values (?1, ?2, ?3)"
            " on conflict do update set sections = excluded.sections",
            (path, project, json.dumps(sections, sort_keys=True)),
        )
