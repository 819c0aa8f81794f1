"""Retrieval rows as tables: for the terminal, and for the documentation out of `bench/retrieval.json`.

Beside them stand the figures that others published, with where they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEGIN = "<!-- retrieval:begin, written by `scrubjay bench locomo --docs` -->"
END = "<!-- retrieval:end -->"

ACOLYTE = "Acolyte's documentation of its memory; text-embedding-3-small"
ACOLYTE_LARGE = "the same; text-embedding-3-large"
MTEB = "MTEB's LoCoMo task; one model, no fusion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A figure of others, under the protocol it is comparable with. `ndcg` is at 5, for P3 at 10; None if not given."""

    protocol: str
    system: str
    recall: float
    ndcg: float | None
    source: str


_LARGEST = "the best of all: an embedding model of 8 billion parameters"
PUBLISHED = (
    Published(protocol="P1", system="cosine", recall=0.650, ndcg=0.580, source=ACOLYTE),
    Published(protocol="P1", system="hybrid", recall=0.669, ndcg=0.602, source=ACOLYTE),
    Published(protocol="P1", system="hybrid + TF-IDF", recall=0.705, ndcg=0.651, source=ACOLYTE),
    Published(protocol="P1", system="hybrid + TF-IDF, large model", recall=0.722, ndcg=0.652, source=ACOLYTE_LARGE),
    Published(protocol="P2", system="cosine", recall=0.599, ndcg=0.480, source=ACOLYTE),
    Published(protocol="P3", system=_LARGEST, recall=0.623, ndcg=None, source=MTEB),
    Published(protocol="P3", system="bm25s", recall=0.466, ndcg=None, source=MTEB),
    Published(protocol="P3", system="bge-small-en-v1.5", recall=0.418, ndcg=None, source=MTEB),
    Published(protocol="P3", system="all-MiniLM-L6-v2", recall=0.299, ndcg=None, source=MTEB),
)

Rows = Sequence[Mapping[str, Any]]


def shown(rows: Rows, k: int) -> str:
    """Return rows as lines for a terminal, a block for each protocol."""
    lines: list[str] = []
    for protocol, group in by_protocol(rows).items():
        ndcg_k = ndcg_of(protocol, k)
        lines += ["", f"{protocol}: {_counted(group[0])}"]
        lines.append(
            f"  {'':30} {f'R@{k}':>6} {f'N@{ndcg_k}':>6}  {f'95% of R@{k}':13}"
            f" {'R@1':>6} {'R@10':>6} {'R@20':>6} {'R@50':>6} {'p50 ms':>8} {'p95 ms':>8} {'tokens':>7}"
        )
        lines += [_line(row, k, ndcg_k) for row in group]
        lines += [f"  {note}" for note in _notes(group)]
    return "\n".join(lines)


def _line(row: Mapping[str, Any], k: int, ndcg_k: int) -> str:
    recall = row["recall"]
    return (
        f"  {row['configuration']:30} {recall[str(k)]:6.3f} {row['ndcg'][str(ndcg_k)]:6.3f}  {_interval(row, k):13}"
        f" {recall['1']:6.3f} {recall['10']:6.3f} {recall['20']:6.3f} {recall['50']:6.3f}"
        f" {row['latency_ms']['p50']:8.1f} {row['latency_ms']['p95']:8.1f} {row['tokens']['mean']:7.0f}"
    )


def block(sets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the part of the documentation between the markers, both included."""
    parts = [BEGIN]
    for name, found in sets.items():
        k = found["run"]["k"]
        parts += [f"### {name}", _conditions(found["run"])]
        for protocol, group in by_protocol(found["rows"]).items():
            parts += [f"#### {protocol}", f"{_sentence(_counted(group[0]))} {' '.join(_notes(group))}".strip()]
            parts += [_table(group, k, ndcg_of(protocol, k)), *_published(protocol), *_categories(group, k)]
    return "\n\n".join([*parts, END])


def by_protocol(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """Return rows under their protocol, both in the order of the rows."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["protocol"], []).append(row)
    return found


def ndcg_of(protocol: str, k: int) -> int:
    """Return the k at which NDCG is shown: P3 has it at 10."""
    return 10 if protocol == "P3" else k


def _table(rows: Rows, k: int, ndcg_k: int) -> str:
    heads = (
        "configuration", f"R@{k}", "95 %", f"NDCG@{ndcg_k}", "R@1", "R@10", "R@20", "R@50", "p50 ms", "p95 ms",
        "tokens", "bytes",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
    for row in rows:
        recall = row["recall"]
        cells = (
            row["configuration"], _share(recall[str(k)]), _interval(row, k), _share(row["ndcg"][str(ndcg_k)]),
            *(_share(recall[at]) for at in ("1", "10", "20", "50")),
            f"{row['latency_ms']['p50']:.1f}", f"{row['latency_ms']['p95']:.1f}", f"{row['tokens']['mean']:.0f}",
            f"{row['bytes_per_document']:,}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _categories(rows: Rows, k: int) -> list[str]:
    categories = sorted({category for row in rows for category in row["by_category"]})
    if len(categories) < 2:
        return []
    sizes = {
        category: max(row["by_category"].get(category, {}).get("questions", 0) for row in rows)
        for category in categories
    }
    lines = [f"| R@{k} | {' | '.join(f'{category} ({sizes[category]})' for category in categories)} |"]
    lines.append(f"|---|{'--:|' * len(categories)}")
    for row in rows:
        found = row["by_category"]
        cells = [_share(found[category]["recall"][str(k)]) if category in found else "" for category in categories]
        lines.append(f"| {row['configuration']} | {' | '.join(cells)} |")
    return ["\n".join(lines)]


def _published(protocol: str) -> list[str]:
    found = [one for one in PUBLISHED if one.protocol == protocol]
    if not found:
        return []
    lines = [f"| published | R@5 | NDCG@{ndcg_of(protocol, 5)} | where |", "|---|--:|--:|---|"]
    lines += [
        f"| {one.system} | {_share(one.recall)} | {'' if one.ndcg is None else _share(one.ndcg)} | {one.source} |"
        for one in found
    ]
    return ["\n".join(lines)]


def _counted(row: Mapping[str, Any]) -> str:
    out = ", ".join(f"{count:,} left out ({reason})" for reason, count in row["left_out"].items())
    documents = f"{row['documents']:,} documents in {row['conversations']} conversations"
    return f"{row['questions']:,} questions{f', {out}' if out else ''}; {documents}"


def _notes(rows: Rows) -> list[str]:
    covered = next((row["coverage"] for row in rows if "coverage" in row), None)
    if covered is None:
        return []
    return [
        (
            f"{covered['memories']:,} memories cover some of the evidence of {100 * covered['any']:.1f}% of the"
            f" questions, all of it of {100 * covered['all']:.1f}%, and {100 * covered['turns']:.1f}% of the evidence"
            f" turns; their tokens are {100 * covered['compression']:.1f}% of the turns'."
        )
    ]


def _conditions(run: Mapping[str, Any]) -> str:
    machine, reranker = run["machine"], run["reranker"]
    again = "" if reranker is None else f"; reranking model {reranker['name']} (sha256 {reranker['sha256'][:16]}…)"
    model = "no embedding model"
    if run["model"] is not None:
        model = f"embedding model {run['model']['name']} (sha256 {run['model']['sha256'][:16]}…)"
    return (
        f"Data sha256 {run['data']['sha256'][:16]}…; {model}{again}; scrubjay {run['scrubjay']}, code {run['code']},"
        f" policy {run['policy']}; k = {run['k']}; intervals from {run['draws']:,} draws of whole conversations, seed"
        f" {run['seed']}; {machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB,"
        f" {machine['system']}, load average {run['load']}."
    )


def _sentence(words: str) -> str:
    return f"{words}."


def _interval(row: Mapping[str, Any], k: int) -> str:
    found = row["interval"]["recall"][str(k)]
    return "" if found is None else f"{_share(found[0])}–{_share(found[1])}"


def _share(value: float) -> str:
    """Return a share of 1 as papers print it.

    >>> _share(0.7124)
    '.712'
    """
    return f"{value:.3f}".removeprefix("0")
