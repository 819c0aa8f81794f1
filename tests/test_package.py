"""What `import scrubjay` offers by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

import scrubjay
from scrubjay_shared import errors

ERRORS = [name for name in scrubjay.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("name", scrubjay.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(scrubjay, name) is not None


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_class_is_the_one_that_is_raised(name: str) -> None:
    assert getattr(scrubjay, name) is getattr(errors, name)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = scrubjay.Nothing  # type: ignore[attr-defined,unused-ignore]


def test_an_error_can_be_imported_as_the_documents_say() -> None:
    program = "from scrubjay import ConflictError, ScrubjayError; print(issubclass(ConflictError, ScrubjayError))"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.stdout, ended.stderr) == ("True\n", "")
