"""Whether Codex runs our hooks: it asks the person once for each, and skips in silence what was not approved."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from scrubjay.setup.json_edits import PROGRAM
from scrubjay.spawning import NO_WINDOW
from scrubjay_shared.errors import UnavailableError

LIMIT_S = 10.0
"""How long Codex may take to answer: half a second, when nothing else is going on."""

TRUSTED = frozenset(("trusted", "managed"))


def untrusted(program: str, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the events of our hooks that Codex skips, asked of Codex itself, without a network.

    Raises UnavailableError where it does not answer: an older one cannot be asked.
    """
    hooks = _listed(program, folder, environ)
    ours = [hook for hook in hooks if PROGRAM in str(hook.get("command", ""))]
    if not ours:
        raise UnavailableError("Codex does not list our hooks", hint="start Codex, and look at /hooks")
    return sorted(
        str(hook.get("eventName"))
        for hook in ours
        if hook.get("trustStatus") not in TRUSTED or hook.get("enabled") is False
    )


def _listed(program: str, folder: Path, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    asks: Sequence[dict[str, Any]] = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "scrubjay", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(folder)]}},
    )
    try:
        process = subprocess.Popen(  # noqa: S603  # the program that the person calls Codex
            [program, "app-server"],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            creationflags=NO_WINDOW,
        )
    except OSError as error:
        raise _silent(str(error.strerror)) from error
    with process:
        late = threading.Timer(LIMIT_S, process.kill)
        late.start()
        try:
            assert process.stdin is not None  # noqa: S101  # both are pipes
            assert process.stdout is not None  # noqa: S101
            for ask in asks:
                process.stdin.write(json.dumps(ask) + "\n")
            process.stdin.flush()
            answer = _answer(process.stdout)
        except (OSError, ValueError) as error:
            raise _silent(type(error).__name__) from error
        finally:
            late.cancel()
            process.kill()
    try:
        return [hook for listed in answer["result"]["data"] for hook in listed["hooks"]]
    except (KeyError, TypeError) as error:
        raise _silent("it cannot list hooks") from error


def _answer(lines: IO[str]) -> Any:
    for line in lines:
        answer = json.loads(line)
        if answer.get("id") == 2:
            return answer
    raise ValueError


def _silent(why: str) -> UnavailableError:
    return UnavailableError(f"codex app-server does not answer ({why})", hint="start Codex, and look at /hooks")
