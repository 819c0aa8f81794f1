"""The short way of a command whose answer is printed as the daemon gives it: one request, no library but Python's own.

Most commands are called by programs, which want JSON, while a daemon runs. Loading what reads and checks requests and
answers takes longer than the interpreter and the answer together, and the daemon checks them anyway. Where anything is
out of the ordinary this does nothing, and the command goes its usual way.
"""

from __future__ import annotations

import os
import sys

from scrubjay.folders import data_folder, names_account
from scrubjay.transports import one_request

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import Any


def run(
    line: Namespace,
    path: str,
    words: Sequence[str],
    request: Callable[[Namespace, str], dict[str, Any]],
    *,
    repeatable: bool,
) -> bool:
    """Post a request to the daemon, print its answer, and say whether that was possible; if not, nothing has happened.

    `request` makes its fields of the line and its words; what is `repeatable` may be asked again where the answer got
    lost. Raises the error that the daemon answers with, and UnavailableError when it does not answer.
    """
    if line.form == "text" or list(words) == ["-"] or sys.stdout.isatty():  # for a person JSON is indented
        return False
    out = getattr(sys.stdout, "buffer", None)  # whatever encoding the terminal has
    if out is None:  # a program runs the command in its own process, and takes text
        return False
    folder = data_folder(line.data_dir, line.home, os.environ)
    if folder is None or names_account(line.account, line.home, os.environ):
        return False
    try:
        answer = one_request.post(folder, path, request(line, " ".join(words)))
    except one_request.LostError as error:
        if repeatable and not error.timed_out:
            return False
        raise _lost(timed_out=error.timed_out) from error
    if answer is None:
        return False
    status, body = answer
    if status >= 400:
        raise _failed(status, body)
    sys.stdout.flush()
    out.write(body + b"\n")
    return True


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value: one that is absent has its default."""
    return {name: value for name, value in fields.items() if value is not None}


def _failed(status: int, body: bytes) -> Exception:
    import json  # noqa: PLC0415  # these two are for failures alone

    from scrubjay_shared.errors import from_code  # noqa: PLC0415

    fields = json.loads(body)
    detail = fields.get("detail", f"HTTP {status}")
    return from_code(str(fields.get("code", "internal")), str(detail), str(fields.get("hint", "")))


def _lost(*, timed_out: bool) -> Exception:
    from scrubjay.transports import client  # noqa: PLC0415  # as above
    from scrubjay_shared.errors import UnavailableError  # noqa: PLC0415

    if timed_out:
        return UnavailableError(client.LATE, hint=client.LATE_HINT)
    return UnavailableError(client.NO_ANSWER, hint=client.START_HINT)
