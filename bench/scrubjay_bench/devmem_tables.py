"""Rows about labelled sessions as tables: for the terminal, and for the documentation out of `bench/devmem.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrubjay_bench.devmem_asking import Observed

BEGIN = "<!-- devmem:begin, written by `scrubjay bench devmem --docs` -->"
END = "<!-- devmem:end -->"
CONFIGURATIONS = {
    "learned": "What the product learned by itself",
    "observed": "What an observer learned (`--writer settings`)",
    "labelled": "With the labelled memories added instead (`--gold`)",
}

Row = Mapping[str, Any]
Cell = Callable[[Row], str]


def _share(value: float | None) -> str:
    """Return a share of 1 as papers print it; nothing where there was nothing to count.

    >>> _share(0.7124), _share(1), _share(None)
    ('.712', '1.000', '')
    """
    return "" if value is None else f"{value:.3f}".removeprefix("0")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


LEARNING: dict[str, Cell] = {
    "memories": lambda row: _number(row["memories"]),
    "precision": lambda row: _share(row["precision"]),
    "cover 1": lambda row: _share(row["coverage"]["1"]),
    "cover 2": lambda row: _share(row["coverage"]["2"]),
    "cover 3": lambda row: _share(row["coverage"]["3"]),
    "cover 2–3": lambda row: _share(row["coverage"]["2-3"]),
    "type": lambda row: _share(row["type_right"]),
    "scope": lambda row: _share(row["scope_right"]),
    "tempting": lambda row: _share(row["tempting_kept"]),
    "of turns": lambda row: _share(row["token_share"]),
}
ASKING: dict[str, Cell] = {
    "questions": lambda row: _number(row["questions"]),
    "R@5": lambda row: _share(row["recall"]["5"]),
    "first": lambda row: _share(row["first_right"]),
    "R@5 wide": lambda row: _share(row["recall_no_budget"]["5"]),
    "first wide": lambda row: _share(row["first_right_no_budget"]),
    "current": lambda row: _share(row["current_first"]),
    "AUC": lambda row: _share(row["known_auc"]),
    "memory in 3": lambda row: _share(row["memory_among_three"]),
    "tokens": lambda row: _number(row["tokens"]),
    "p50 ms": lambda row: "" if row["latency_ms"]["p50"] is None else f"{row['latency_ms']['p50']:.1f}",
}


def shown(rows: Sequence[Row]) -> str:
    """Return rows as lines for a terminal: what was learned, then what was answered."""
    lines: list[str] = []
    for columns in _blocks(rows):
        lines += ["", f"  {'':12}" + "".join(f" {name:>10}" for name in columns)]
        lines += [f"  {row['project']:12}" + "".join(f" {cell(row):>10}" for cell in columns.values()) for row in rows]
    return "\n".join(lines)


def observed(by_project: Mapping[str, Observed]) -> str:
    """Return what an observer did in each project as lines for a terminal."""
    lines = [""]
    for name, found in by_project.items():
        told = f"{found.calls} calls, {found.tokens:,} tokens, {found.by_patterns} memories by patterns alone"
        if found.said is not None and found.kept is not None:
            share = _share(found.kept / found.said if found.said else None)
            told += f"; of {found.said} facts that the Writer answered {found.kept} are there ({share})"
        lines.append(f"  {name:12} {told}")
        lines.append(f"  {'':12} {', '.join(f'{count} {at}' for at, count in sorted(found.counts.items()))}")
    return "\n".join(lines)


def block(sets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the part of the documentation between the markers, both included."""
    parts = [BEGIN]
    for name, found in sets.items():
        parts.append(f"### {name}")
        for memories, title in CONFIGURATIONS.items():
            if memories in found:
                rows = found[memories]["rows"]
                parts += [f"#### {title}", _conditions(found[memories]["run"])]
                parts += [_table(rows, columns) for columns in _blocks(rows)]
                parts.append(_categories(rows))
    return "\n\n".join([*parts, END])


def _blocks(rows: Sequence[Row]) -> list[dict[str, Cell]]:
    learned = any(row["memories"] or row["coverage"]["2-3"] is not None for row in rows)
    return [LEARNING, ASKING] if learned else [ASKING]


def _table(rows: Sequence[Row], columns: Mapping[str, Cell]) -> str:
    lines = [f"| project | {' | '.join(columns)} |", f"|---|{'--:|' * len(columns)}"]
    lines += [f"| {row['project']} | {' | '.join(cell(row) for cell in columns.values())} |" for row in rows]
    return "\n".join(lines)


def _categories(rows: Sequence[Row]) -> str:
    counted = [row for row in rows if row.get("by_category")]
    names = sorted({name for row in counted for name in row["by_category"]})
    lines = [f"| R@5 (questions) | {' | '.join(names)} |", f"|---|{'--:|' * len(names)}"]
    for row in counted:
        found = [row["by_category"].get(name) for name in names]
        cells = ["" if one is None else f"{_share(one['recall']['5'])} ({one['questions']})" for one in found]
        lines.append(f"| {row['project']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _conditions(run: Mapping[str, Any]) -> str:
    machine, models = run["machine"], []
    for kind, title in (("model", "embedding"), ("reranker", "reranking")):
        named = run[kind]
        models.append(f"no {title} model" if named is None else f"{title} model {named['name']}")
    return (
        f"Data sha256 {run['data']['sha256'][:16]}…; {'; '.join(models)}; scrubjay {run['scrubjay']}, code"
        f" {run['code']}; {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB,"
        f" {machine['system']}, load average {run['load']}."
    )
