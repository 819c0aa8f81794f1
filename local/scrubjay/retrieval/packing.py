"""What fits into an agent's context: hits and always-loaded layers, cut to a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scrubjay.api import ContextResponse, Hit, Quote
from scrubjay_shared.text import estimate_tokens

IDENTITY_TITLE = "# Identity"
ACTIVE_TITLE = "# Active context"


CHARS_PER_TOKEN = 16
"""Of a text no more characters are looked at than this times the budget: prose has 6 to the estimated token, code 4.

Only what is nearly all white space could fit with more, and is cut although it would have fitted.
"""


def chars_within(max_tokens: int) -> int:
    """Return how many characters of a text can matter to a budget. A longer text does not fit whole."""
    return CHARS_PER_TOKEN * max_tokens


def cost(hit: Hit) -> int:
    """Return the estimated tokens of everything a hit quotes."""
    return estimate_tokens(hit.text) + _cost((*hit.sources, *hit.neighbours))


def shared_out(total: int, needs: Sequence[int], weights: Sequence[float], least: Sequence[int]) -> list[int]:
    """Return what each of several gets of a total: by its weight, but no more than it needs and no less than its least.

    What one does not need the others have. Where all the least are more than the total, each gets its least.

    >>> shared_out(100, [10, 200, 200], [1, 2, 1], [0, 0, 0])
    [10, 60, 30]
    """
    if sum(needs) <= total:
        return list(needs)
    # What is given grows with the level, piece by piece a straight line: each begins at its least and ends at its need.
    bends = [(low / weight, weight) for low, weight in zip(least, weights, strict=True)]
    bends += [(need / weight, -weight) for need, weight in zip(needs, weights, strict=True)]
    spent, level, slope = float(sum(least)), 0.0, 0.0
    for at, change in sorted(bends):
        if spent + slope * (at - level) > total:
            break
        spent, level, slope = spent + slope * (at - level), at, slope + change
    level += max(total - spent, 0.0) / slope if slope > 0 else 0.0
    return [min(need, max(low, int(level * weight))) for need, weight, low in zip(needs, weights, least, strict=True)]


def fit(hits: Sequence[Hit], max_tokens: int) -> tuple[tuple[Hit, ...], int, int]:
    """Return the hits that cost at most `max_tokens` together, what they cost, and how many were left out.

    The order is kept. What does not fit whole loses its neighbours, then its sources, then the end of its text; then
    nothing more is taken, so that the best stay first. No more than `chars_within` of any text is read.
    """
    kept: list[Hit] = []
    spent = 0
    for hit in hits:
        room = max_tokens - spent
        shorter, costs = _fitted(hit, room)
        if shorter is None:
            packed = pack([hit.text[: chars_within(room) + 1]], max_tokens=room)
            if packed.texts:
                kept.append(replace(hit, text=packed.texts[0], sources=(), neighbours=(), truncated=True))
                spent += packed.tokens
            break
        kept.append(shorter)
        spent += costs
    return tuple(kept), spent, len(hits) - len(kept)


def _fitted(hit: Hit, room: int) -> tuple[Hit | None, int]:
    """Return a hit with as much around its whole text as fits, and what it costs; None when its text does not fit."""
    most = chars_within(room)
    text = _bounded(hit.text, most)
    if text > room:
        return None, 0
    sources = sum(_bounded(quote.text, most) for quote in hit.sources)
    if text + sources > room:
        return replace(hit, neighbours=(), sources=()), text
    neighbours = sum(_bounded(quote.text, most) for quote in hit.neighbours)
    if text + sources + neighbours > room:
        return replace(hit, neighbours=()), text + sources
    return hit, text + sources + neighbours


def _bounded(text: str, most: int) -> int:
    """Return the estimated tokens of a text; of one longer than `most`, more than fit, without reading it."""
    return most + 1 if len(text) > most else estimate_tokens(text)


def context(
    identity: Mapping[str, str],
    active: Mapping[str, str],
    *,
    identity_tokens: int,
    active_tokens: int,
    first: Sequence[str] = (),
) -> ContextResponse:
    """Return the startup context: the identity layer, then the active one, each within its own budget.

    Lines that do not fit are named in `cut`, and the text says how many there are. `first` are the keys of those that
    stay before others; a line stands whole or not at all.
    """
    parts: list[str] = []
    cut: list[str] = []
    spent = dict.fromkeys((IDENTITY_TITLE, ACTIVE_TITLE), 0)
    for title, lines, budget in (
        (IDENTITY_TITLE, identity, identity_tokens),
        (ACTIVE_TITLE, active, active_tokens),
    ):
        if lines:
            text, dropped = _layer(title, lines, budget, first)
            parts.append(text)
            cut += dropped
            spent[title] = estimate_tokens(text)
    text = "\n\n".join(parts)
    return ContextResponse(
        text=text,
        tokens=estimate_tokens(text),
        active_tokens=spent[ACTIVE_TITLE],
        identity=dict(identity),
        active=dict(active),
        cut=tuple(cut),
    )


def layer_text(title: str, lines: Mapping[str, str]) -> str:
    """Return a layer whole: a title and a line a key; "" when it is empty."""
    return "\n".join([title, *(_line(key, value) for key, value in lines.items())]) if lines else ""


def _layer(title: str, lines: Mapping[str, str], budget: int, first: Sequence[str]) -> tuple[str, list[str]]:
    most = chars_within(budget)
    whole = layer_text(title, lines)
    if _bounded(whole, most) <= budget:
        return whole, []
    kept: dict[str, str] = {}
    spent = [title]
    note = "({} more did not fit: scrubjay context --json lists them)"
    room = budget - estimate_tokens("\n" + note.format(len(lines)))
    for key in dict.fromkeys([*(key for key in first if key in lines), *lines]):
        value = lines[key]
        if len(value) <= most and _bounded("\n".join([*spent, _line(key, value)]), most) <= room:
            kept[key] = _line(key, value)
            spent.append(kept[key])
    dropped = [key for key in lines if key not in kept]
    return "\n".join([title, *(kept[key] for key in lines if key in kept), note.format(len(dropped))]), dropped


def _line(key: str, value: str) -> str:
    return f"- {key}: {value}"


def _cost(quotes: Sequence[Quote]) -> int:
    return sum(estimate_tokens(quote.text) for quote in quotes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """As many texts as fit, in order.

    `tokens` is their estimate, `left_out` how many did not fit, `truncated` whether the last one was cut.
    """

    texts: tuple[str, ...]
    tokens: int
    left_out: int
    truncated: bool


CUT = " […]"
"""What stands at the end of a text that was cut."""


def pack(texts: Sequence[str], *, max_tokens: int) -> Packed:
    """Return as many texts, in order, as joined by line breaks cost at most `max_tokens` (`estimate_tokens`).

    The first that does not fit is cut at a word and marked with `CUT`, or left out where not even a few words of it
    fit; nothing after it is taken, so that the best stay first.
    """
    packed: list[str] = []
    spent = 0
    for whole in texts:
        room = max_tokens - spent - (1 if packed else 0)
        cost = estimate_tokens(whole)
        if cost > room:
            start = _cut(whole, room - estimate_tokens(CUT))
            if start:
                packed.append(start + CUT)
            return Packed(
                texts=tuple(packed),
                tokens=estimate_tokens("\n".join(packed)),
                left_out=len(texts) - len(packed),
                truncated=bool(start),
            )
        packed.append(whole)
        spent = max_tokens - room + cost
    return Packed(texts=tuple(packed), tokens=spent, left_out=0, truncated=False)


_MIN_CUT = 5  # estimated tokens: fewer words say nothing


def _cut(whole: str, room: int) -> str:
    """Return the longest beginning that ends with a word and costs at most `room`; nothing if it would say nothing."""
    if room < _MIN_CUT:
        return ""
    low, high = 0, len(whole)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(whole[:middle]) <= room else (low, middle - 1)
    beginning = whole[:low]
    ended = beginning[-1:].isspace() or whole[low : low + 1].isspace()
    return (beginning if ended or " " not in beginning else beginning.rsplit(None, 1)[0]).rstrip()
