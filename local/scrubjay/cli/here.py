"""The project that a command acts for: the one that is named, else that of the repository that it is run in."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping


def project_of(line: Namespace) -> str | None:
    """Return the project of a command: what it names, else the folder that it is run in where that is a repository.

    None where a session is named, which has a project of its own, and outside of repositories.
    """
    if line.project is not None or getattr(line, "session", None) is not None:
        return line.project  # type: ignore[no-any-return]
    return repository()


def repository() -> str | None:
    """Return the folder that this runs in where it is in a repository, None elsewhere.

    The daemon knows what project it is a checkout of. A repository that holds the home folder is no project: it keeps
    settings.
    """
    try:
        folder = here = os.path.realpath(os.getcwd())  # noqa: PTH109  # pathlib takes as long as half of the interpreter
    except OSError:  # the folder is gone
        return None
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    while not os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118
        if (above := os.path.dirname(folder)) == folder:  # noqa: PTH120
            return None
        folder = above
    return None if f"{home}{os.sep}".startswith(f"{folder.rstrip(os.sep)}{os.sep}") else here


def told(line: Namespace, project: str | None, labels: Mapping[str, str]) -> str:
    """Return that a command acted for the project of its folder, as `labels` show it; "" where that was named."""
    if project is None or project_of(line) == line.project:
        return ""
    return f"of the project {labels.get(project, project)}, whose folder you are in: --project names another"
