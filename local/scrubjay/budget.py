"""What fits into an agent's context: hits and always-loaded layers, cut to a budget of tokens. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scrubjay.api import ContextAnswer, Hit, Quote
from scrubjay.recall import pack
from scrubjay_shared.text import estimate_tokens

IDENTITY_TITLE = "# Identity"
ACTIVE_TITLE = "# Active context"


def cost(hit: Hit) -> int:
    """Return the estimated tokens of everything a hit quotes."""
    return estimate_tokens(hit.text) + _cost((*hit.sources, *hit.neighbours))


def fit(hits: Sequence[Hit], max_tokens: int) -> tuple[tuple[Hit, ...], int, int]:
    """Return the hits that cost at most `max_tokens` together, what they cost, and how many were left out.

    The order is kept. What does not fit whole loses its neighbours, then its sources, then the end of its text; then
    nothing more is taken, so that the best stay first.
    """
    kept: list[Hit] = []
    spent = 0
    for hit in hits:
        room = max_tokens - spent
        shorter = next((form for form in _forms(hit) if cost(form) <= room), None)
        if shorter is None:
            packed = pack([hit.text], max_tokens=room)
            if packed.texts:
                shorter = replace(hit, text=packed.texts[0], sources=(), neighbours=(), truncated=True)
                kept.append(shorter)
                spent += cost(shorter)
            break
        kept.append(shorter)
        spent += cost(shorter)
    return tuple(kept), spent, len(hits) - len(kept)


def context(
    identity: Mapping[str, str],
    active: Mapping[str, str],
    *,
    identity_tokens: int,
    active_tokens: int,
) -> ContextAnswer:
    """Return the startup context: the identity layer, then the active one, each within its own budget.

    Lines that do not fit are named in `cut`, and the text says how many there are.
    """
    parts: list[str] = []
    cut: list[str] = []
    for title, lines, budget in (
        (IDENTITY_TITLE, identity, identity_tokens),
        (ACTIVE_TITLE, active, active_tokens),
    ):
        if lines:
            text, dropped = _layer(title, lines, budget)
            parts.append(text)
            cut += dropped
    text = "\n\n".join(parts)
    return ContextAnswer(
        text=text, tokens=estimate_tokens(text), identity=dict(identity), active=dict(active), cut=tuple(cut)
    )


def layer_text(title: str, lines: Mapping[str, str]) -> str:
    """Return a layer whole: a title and a line a key; "" when it is empty."""
    return "\n".join([title, *(_line(key, value) for key, value in lines.items())]) if lines else ""


def _layer(title: str, lines: Mapping[str, str], budget: int) -> tuple[str, list[str]]:
    whole = layer_text(title, lines)
    if estimate_tokens(whole) <= budget:
        return whole, []
    kept = [title]
    dropped: list[str] = []
    note = "({} more did not fit: scrubjay context --json lists them)"
    room = budget - estimate_tokens("\n" + note.format(len(lines)))
    for key, value in lines.items():
        if estimate_tokens("\n".join([*kept, _line(key, value)])) <= room:
            kept.append(_line(key, value))
        else:
            dropped.append(key)
    return "\n".join([*kept, note.format(len(dropped))]), dropped


def _line(key: str, value: str) -> str:
    return f"- {key}: {value}"


def _forms(hit: Hit) -> tuple[Hit, ...]:
    return hit, replace(hit, neighbours=()), replace(hit, neighbours=(), sources=())


def _cost(quotes: Sequence[Quote]) -> int:
    return sum(estimate_tokens(quote.text) for quote in quotes)
