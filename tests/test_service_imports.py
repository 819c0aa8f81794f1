"""An import over a real store: twice adds nothing, and an edited note is updated."""

from __future__ import annotations

import pytest

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.service.application import Application
from scrubjay_shared.errors import InvalidError

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


async def test_files_that_name_one_cause_are_one_import_whose_label_holds_no_secret(service: Application) -> None:
    key = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    first = await service.call(PERSON, "import", api.ImportRequest(name="a.md", data=b"# Tea\n\nGreen.\n", label=key))
    second = await service.call(
        PERSON, "import", api.ImportRequest(name="b.md", data=b"# Port\n\nOpen.\n", cause=first.cause)
    )

    (cause,) = (await service.call(PERSON, "history", api.HistoryRequest(kind="import"))).causes
    assert first.cause == second.cause == cause.id
    assert cause.label
    assert key not in cause.label


@pytest.mark.parametrize(
    "cause", ["import", "import:1", "add:01KXK2Y3A8M3N5P9R2T4V6W8Y0", "", "restore:01KXK2Y3A8M3N5P9R2T4V6W8Y0"]
)
async def test_a_cause_that_is_not_of_an_import_is_refused(cause: str, service: Application) -> None:
    with pytest.raises(InvalidError, match="not the cause of an import"):
        await service.call(PERSON, "import", api.ImportRequest(name="a.md", data=b"# Tea\n\nGreen.\n", cause=cause))
