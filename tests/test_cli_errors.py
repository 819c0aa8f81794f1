"""The system's errors become errors of scrubjay with an exit code."""

from __future__ import annotations

import pytest

from scrubjay.cli.errors import of_os_error
from scrubjay_shared import errors


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(2, "No such file", "x"), errors.NotFoundError),
        (PermissionError(13, "Permission denied", "x"), errors.DeniedError),
        (IsADirectoryError(21, "Is a directory", "x"), errors.InvalidError),
        (OSError(28, "No space left on device"), errors.UnavailableError),
        (OSError(5, "Input/output error"), errors.UnavailableError),
    ],
)
def test_the_systems_errors_become_ours(error: OSError, kind: type[errors.ScrubjayError]) -> None:
    found = of_os_error(error)

    assert type(found) is kind
    assert found.hint
    assert mode_of(found) == kind.exit_code


def mode_of(error: errors.ScrubjayError) -> int:
    return error.exit_code
