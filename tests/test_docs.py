"""The documents say what the code does: what can be generated is compared, and written with SCRUBJAY_WRITE_DOCS=1."""

from __future__ import annotations

import os
import re
from pathlib import Path

from scrubjay.settings import OPTIONS

ROOT = Path(__file__).parents[1]
DOCS = sorted([*ROOT.glob("*.md"), *ROOT.joinpath("docs").glob("*.md")])


def test_the_guide_lists_every_setting() -> None:
    guide = ROOT / "docs" / "guide.md"
    rows = ["| key | environment | meaning | allowed |", "|---|---|---|---|"]
    rows += [
        f"| `{option.key}` | `{option.variable}` | {option.meaning} | {option.allowed} |" for option in OPTIONS.values()
    ]
    block = "\n".join(["<!-- settings: written by tests/test_docs.py -->", *rows, "<!-- /settings -->"])

    text = guide.read_text(encoding="utf-8")
    wanted = re.sub(r"<!-- settings:.*<!-- /settings -->", lambda _: block, text, flags=re.DOTALL)
    if os.environ.get("SCRUBJAY_WRITE_DOCS"):
        guide.write_text(wanted, encoding="utf-8")
        text = wanted

    assert text == wanted


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in DOCS
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_no_document_names_a_path_of_one_machine() -> None:
    named = [page.name for page in DOCS if re.search(r"(?<![\w.])/(work|root|tmp|home/[a-z]+)/", page.read_text())]

    assert named == []
