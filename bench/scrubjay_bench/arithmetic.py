"""Arithmetic in a document, step by step, so that no step can say something else than what it adds up to.

In a block of the language `calc`, `name = number` gives a figure and `name = expression -> number` adds figures up;
`#` begins a remark. `python -m scrubjay_bench.arithmetic FILE` writes the numbers behind the arrows anew.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_BLOCK = re.compile(r"^```calc\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_LINE = re.compile(
    r"^(?P<name>[a-z_0-9]+) = (?P<what>[^#>]+?)(?P<arrow>\s+-> (?P<result>[\d.,e+-]+))?(?P<remark>\s*#.*)?$"
)
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def recomputed(text: str) -> str:
    """Return a document with the result of every step as it adds up, to three figures. Raises ValueError."""
    known: dict[str, float] = {}

    def line(found: str) -> str:
        if not found.strip() or found.startswith("#"):
            return found
        match = _LINE.match(found)
        if match is None:
            raise ValueError(f"this is no step: {found}")
        value = _value(match["what"].replace(",", ""), known)
        if match["arrow"] is None:
            known[match["name"]] = value
            return found
        known[match["name"]] = rounded = float(f"{value:.3g}")
        start, end = match.span("result")
        return found[:start] + shown(rounded) + found[end:]

    def block(match: re.Match[str]) -> str:
        return "```calc\n" + "\n".join(map(line, match[1].splitlines())) + "\n```"

    return _BLOCK.sub(block, text)


def inputs(text: str) -> dict[str, float]:
    """Return the figures that a document begins with, by their names."""
    return {
        match["name"]: _value(match["what"].replace(",", ""), {})
        for block in _BLOCK.findall(text)
        for found in block.splitlines()
        if (match := _LINE.match(found)) is not None and match["arrow"] is None
    }


def shown(value: float) -> str:
    """Return a number as documents show it.

    >>> shown(2604.0), shown(0.142), shown(12.0)
    ('2,604', '0.142', '12')
    """
    if value == math.floor(value):
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _value(expression: str, known: Mapping[str, float]) -> float:
    return _evaluated(ast.parse(expression.strip(), mode="eval").body, known)


def _evaluated(node: ast.expr, known: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left, known), _evaluated(node.right, known))
    raise ValueError(
        f"a step adds, multiplies and divides what stands before it, and this does not: {ast.unparse(node)}"
    )


def main() -> None:
    """Write the results of a document's steps anew."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(recomputed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
