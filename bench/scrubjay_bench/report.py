"""Figures as they are shown: a table for people, JSON for programs, and the block in the documentation made of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from scrubjay_bench.figures import Figure
from scrubjay_shared.errors import InvalidError

FORMAT = 1
BEGIN = "<!-- bench:begin, written by `scrubjay bench run --docs` -->"
END = "<!-- bench:end -->"
COLUMNS = ("figure", "what", "median", "least … greatest", "× its floor", "goal")


def section_of(figures: Iterable[Figure], machine: Mapping[str, Any], loads: tuple[float, float]) -> dict[str, Any]:
    """Return one section as it stands in JSON. `loads` are those of the minutes before and after."""
    found = {"machine": dict(machine), "load_before": loads[0], "load_after": loads[1]}
    return found | {"figures": [asdict(figure) for figure in figures]}


def figures_of(section: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a section of a JSON file. Raises InvalidError when they are not figures."""
    try:
        return msgspec.convert(section["figures"], list[Figure])
    except (KeyError, msgspec.ValidationError) as error:
        raise InvalidError(
            f"not a file of figures: {error}", hint="scrubjay bench run --json FILE writes one"
        ) from error


def block(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the part of the documentation between the markers, both included."""
    parts = [BEGIN]
    for name, section in sections.items():
        parts += [f"### {name}", _conditions(section), table(figures_of(section))]
    return "\n\n".join([*parts, END])


def table(figures: Iterable[Figure]) -> str:
    """Return figures as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|--:|--:|--:|--:|"]
    lines += [f"| {' | '.join(_cells(figure))} |" for figure in figures]
    return "\n".join(lines)


def replaced(page: str, sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a page with its block made anew. Raises InvalidError when it has no markers."""
    return inserted(page, BEGIN, END, block(sections))


def inserted(page: str, begin: str, end: str, new: str) -> str:
    """Return a page with `new`, which holds both markers, in place of what stands between them and of them.

    Raises InvalidError when the page lacks one.
    """
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise InvalidError("the page has no place for figures", hint=f"put {begin} and {end} into it")
    return before + new + after


def number(value: float) -> str:
    """Return a number as people read it: thousands apart, three significant digits below a thousand."""
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _cells(figure: Figure) -> tuple[str, ...]:
    goal = ""
    if figure.goal is not None:
        bound = f"{'≥' if figure.is_rate else '≤'} {number(figure.goal)}"
        goal = f"{bound} {'reached' if figure.reached else 'missed'}"
    spread = "" if figure.rounds == 1 else f"{number(figure.low)} … {number(figure.high)}"
    ratio = "" if figure.ratio is None else f"{number(figure.ratio)} × {figure.floor}"
    return (f"`{figure.name}`", figure.meaning, f"{number(figure.value)} {figure.unit}", spread, ratio, goal)


def _conditions(section: Mapping[str, Any]) -> str:
    machine = section["machine"]
    versions = ", ".join(f"{name} {value}" for name, value in machine.items() if name not in _MACHINE)
    first = next(iter(section["figures"]), {"rounds": 0})
    return (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB, {machine['file_system']},"
        f" {machine['system']}; load average {section['load_before']} before and {section['load_after']} after;"
        f" {first['rounds']} rounds; {versions}."
    )


_MACHINE = frozenset({"cores", "processor", "memory_gb", "file_system", "system"})
