"""An import over a real store: twice adds nothing, and an edited note is updated."""

from __future__ import annotations

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application

pytestmark = pytest.mark.anyio


async def test_an_import_twice_adds_nothing_and_an_edited_note_is_updated(service: Application) -> None:
    first = await service.call(
        PERSON, "import", api.ImportRequest(name="notes.md", data=b"# Tea\n\nMaya drinks tea.\n")
    )
    again = await service.call(
        PERSON, "import", api.ImportRequest(name="notes.md", data=b"# Tea\n\nMaya drinks tea.\n")
    )
    before = (await service.call(PERSON, "list", api.ListRequest())).entries

    edited = await service.call(
        PERSON, "import", api.ImportRequest(name="notes.md", data=b"# Tea\n\nMaya drinks cocoa.\n")
    )
    after = (await service.call(PERSON, "list", api.ListRequest())).entries

    assert (first.memories, again.memories, again.duplicates) == (1, 0, 1)
    assert edited.memories == 1
    assert [entry.memory.id for entry in after] == [entry.memory.id for entry in before]
    assert "cocoa" in after[0].memory.content
