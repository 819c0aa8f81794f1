"""How the Writer answers a question of the person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPolicy:
    """How much a Writer reads and writes for one answer."""

    hits: int = 20  # that it chooses among: the right one of a question in other words is often among the later ten
    hit_tokens: int = 5_000  # of these: a paragraph each, and a question costs less than a cent with a small model
    phrasing_chars: int = 300  # of a phrasing: a longer one is no search
    phrasing_tokens: int = 400  # of all: three lines, and what some models think first
    answer_tokens: int = 1_500  # a screen, and what some models think first
    statements: int = 20  # of an answer: what comes after them is a model that does not stop
