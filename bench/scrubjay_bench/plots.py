"""Two pictures of a run as SVG: recall against k for each configuration, and bars by category. Text in, text out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 60, 210, 56, 54
COLOURS = ("#1f5fa8", "#d1495b", "#2e8b57", "#e08e1b", "#6f4ba3", "#17a2a2", "#8c5a3c", "#5c6b73", "#b5399c", "#9aa21c")
INK, GRID = "#222222", "#dddddd"
DASHES = ("", "7 3", "2 3")


def curves(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return recall against k, one line a row, k on a logarithmic scale."""
    ks = sorted({int(k) for row in rows for k in row["recall"]})
    spread = math.log(ks[-1] / ks[0]) or 1.0
    across = {k: LEFT + (WIDTH - LEFT - RIGHT) * math.log(k / ks[0]) / spread for k in ks}
    parts = [*_frame(title), *_levels()]
    parts += [_text(across[k], HEIGHT - BOTTOM + 20, str(k), anchor="middle") for k in ks]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "k (first hits looked at)", anchor="middle"))
    for at, row in enumerate(rows):
        colour, dash = COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]
        points = [(across[k], _up(row["recall"][str(k)])) for k in ks if str(k) in row["recall"]]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{style}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    best = sorted(range(len(rows)), key=lambda at: -rows[at]["recall"].get("5", 0.0))
    for place, at in enumerate(best):
        colour, y = COLOURS[at % len(COLOURS)], TOP + 8 + 20 * place
        dash = DASHES[at // len(COLOURS) % len(DASHES)]
        style = f' stroke-dasharray="{dash}"' if dash else ""
        x = WIDTH - RIGHT + 16
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{colour}" stroke-width="3"{style}/>')
        parts.append(_text(x + 32, y + 4, rows[at]["configuration"]))
    return _document(parts, max(HEIGHT, TOP + 20 * len(rows) + 20))


def bars(title: str, rows: Sequence[Mapping[str, Any]], k: int, *, counted: str = "questions") -> str:
    """Return recall at k by category, a group of bars a category, a bar a row; `counted` is "" to show no number."""
    categories = sorted({category for row in rows for category in row["by_category"]})
    group = (WIDTH - LEFT - RIGHT) / max(len(categories), 1)
    width = group * 0.8 / max(len(rows), 1)
    parts = [*_frame(title), *_levels()]
    for place, category in enumerate(categories):
        start = LEFT + group * place + group * 0.1
        for at, row in enumerate(rows):
            value = row["by_category"].get(category, {}).get("recall", {}).get(str(k))
            if value is not None:
                top, x = _up(value), start + width * at
                colour = COLOURS[at % len(COLOURS)]
                parts.append(
                    f'<rect x="{x:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}" height="{_up(0) - top:.1f}"'
                    f' fill="{colour}"><title>{escape(row["configuration"])}: {value:.3f}</title></rect>'
                )
        middle = start + group * 0.4
        parts.append(_text(middle, HEIGHT - BOTTOM + 18, _short(category, group), anchor="middle"))
        if counted:
            number = max((row["by_category"].get(category, {}).get(counted, 0) for row in rows), default=0)
            parts.append(_text(middle, HEIGHT - BOTTOM + 34, f"{number} {counted}", anchor="middle", size=10))
    for at, row in enumerate(rows):
        x, y = WIDTH - RIGHT + 16, TOP + 8 + 20 * at
        parts.append(f'<rect x="{x}" y="{y - 6}" width="12" height="12" fill="{COLOURS[at % len(COLOURS)]}"/>')
        parts.append(_text(x + 20, y + 4, row["configuration"]))
    return _document(parts, max(HEIGHT, TOP + 20 * len(rows) + 20))


def _frame(title: str) -> list[str]:
    return [_text(LEFT, 28, title, size=16, weight="bold")]


def _levels() -> list[str]:
    parts = []
    for tenth in range(0, 11, 2):
        y = _up(tenth / 10)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(_text(LEFT - 10, y + 4, f"{tenth / 10:.1f}", anchor="end"))
    return parts


def _up(value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value


def _short(words: str, width: float) -> str:
    letters = max(int(width / 6.5), 4)
    return words if len(words) <= letters else words[: letters - 1] + "…"


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{INK}"'
        f' text-anchor="{anchor}">{escape(words)}</text>'
    )


def _document(parts: Sequence[str], height: float) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}"'
        f' height="{height:.0f}" font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join([opening, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def growth(title: str, sizes: Sequence[tuple[int, int, int]]) -> str:
    """Return the size of a store against turns: (turns, bytes, memories) of each look at it."""
    turns, most = max(one[0] for one in sizes), max(one[1] for one in sizes)
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    points = [(LEFT + across * at / turns, HEIGHT - BOTTOM - up * size / most) for at, size, _ in sizes]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [*_frame(title), f'<polyline points="{line}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[0]}"/>' for x, y in points]
    (x, y), (at, size, memories) = points[-1], sizes[-1]
    parts.append(_text(x + 8, y + 4, f"{size / 1e6:.1f} MB, {memories:,} memories"))
    parts.append(_text(LEFT + across, HEIGHT - BOTTOM + 20, f"{at:,} turns", anchor="middle"))
    return _document(parts, HEIGHT)
