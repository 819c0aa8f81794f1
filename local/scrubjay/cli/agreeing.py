"""Asking a person before something large is done."""

from __future__ import annotations

import sys

from scrubjay.cli.render.words import clean
from scrubjay_shared.errors import InvalidError


def can_ask() -> bool:
    """Say whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agree(question: str, *, refusal: str, hint: str) -> None:
    """Return once the person says yes. Raises InvalidError where nobody can be asked, or the answer is another."""
    if not can_ask():
        raise InvalidError(f"{refusal}: {' '.join(question.split())}", hint=hint)
    sys.stderr.write(f"{clean(question)}\nGo on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
        raise InvalidError("nothing was changed", hint=hint)
