"""The documents say what the code does: what can be generated is compared, and written with SCRUBJAY_WRITE_DOCS=1."""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from pathlib import Path

import pytest

from scrubjay import settings
from scrubjay.cli import parser
from scrubjay.cli.commands import docs
from scrubjay.cli.render import words
from scrubjay.models import catalog
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


def test_the_glossary_has_at_most_fifteen_words_and_the_code_uses_each() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    table = guide.partition("## Words\n")[2].partition("\n## ")[0]
    defined = [row[1] for row in re.finditer(r"^\| (\w+) \|", table, re.MULTILINE) if row[1] != "word"]
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES).casefold()

    assert 0 < len(defined) <= 15
    assert [word for word in defined if not re.search(rf"\b{word}s?\b", code)] == []


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in DOCS
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]

    assert broken == []


PACKAGES = ("local", "shared", "sync", "cloud", "bench")
SOURCES = sorted(path for name in PACKAGES for path in ROOT.joinpath(name).rglob("*.py"))


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: below
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, below in action.choices.items()
    }


def test_every_command_that_a_document_or_a_hint_names_is_one() -> None:
    commands = subcommands(parser.tree())
    text = {page.name: page.read_text(encoding="utf-8") for page in DOCS}
    spans = [
        (name, said)
        for name, page in text.items()
        for said in re.findall(r"(?:`|^)scrubjay ([a-z][a-z -]*)", page, re.MULTILINE)
    ]
    spans += [
        (path.name, word)
        for path in SOURCES
        for word in re.findall(r'hint=f?"scrubjay ([a-z][a-z-]*)(?![a-z-]| those of)', path.read_text(encoding="utf-8"))
    ]
    wrong = set()
    for name, said in spans:
        command, *rest = said.split()
        below = subcommands(commands[command]) if command in commands else {}
        if command not in commands or (below and rest and not rest[0].startswith("-") and rest[0] not in below):
            wrong.add((name, said))

    assert len(spans) > 400
    assert wrong == set()


def test_every_document_that_the_program_names_is_there() -> None:
    named = {
        (path.name, name)
        for path in SOURCES
        for name in re.findall(r"(?<![\w/])(?:docs/)([\w-]+\.md)", path.read_text(encoding="utf-8"))
    }

    assert {found for found in named if not (ROOT / "docs" / found[1]).is_file()} == set()


def test_what_a_person_is_told_to_read_is_in_the_installed_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    told = {
        name for path in SOURCES for name in re.findall(r"scrubjay docs ([a-z-]+)", path.read_text(encoding="utf-8"))
    }

    assert {f"docs/{name}.md": f"scrubjay/docs/{name}.md" for name in docs.PAGES} == shipped
    assert told <= docs.PAGES.keys()
    assert all(docs.page(name).startswith("# ") for name in docs.PAGES)


@pytest.mark.parametrize("name", sorted(docs.PAGES))
def test_a_link_in_a_shipped_document_leads_to_a_shipped_one_or_to_the_project(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", docs.page(name))

    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


def test_no_document_names_a_path_of_one_machine() -> None:
    named = [page.name for page in DOCS if re.search(r"(?<![\w.])/(work|root|tmp|home/[a-z]+)/", page.read_text())]

    assert named == []


def test_the_guide_gives_the_size_of_the_models_that_the_manifest_gives() -> None:
    names = (settings.DEFAULT_MODEL, settings.DEFAULT_RERANKER)
    guide = " ".join((ROOT / "docs" / "guide.md").read_text(encoding="utf-8").split())

    download, disk = catalog.download_size(names), sum(catalog.find(name).size for name in names)

    assert f"one download of {words.size(download)}, which takes {words.size(disk)} on disk" in guide


@pytest.mark.parametrize("name", sorted(docs.PAGES))
def test_a_shipped_document_read_here_names_other_documents_by_the_command_that_shows_them(name: str) -> None:
    text = docs.linked(docs.page(name))

    assert re.findall(r"\]\([^)]*\.md[^)]*\)", text) == []
    assert set(re.findall(r"scrubjay docs ([a-z-]+)", text)) <= docs.PAGES.keys()


def test_a_link_becomes_the_command_that_shows_the_document() -> None:
    assert docs.linked("see [sync.md](sync.md)") == "see `scrubjay docs sync`"
    assert docs.linked("[errors](cli.md#exit-codes)") == "errors (`scrubjay docs cli`, section “exit codes”)"
    assert docs.linked("[why](decisions.md)") == "why (docs/decisions.md, in the source of scrubjay)"


def test_no_source_or_document_refers_to_a_section_of_a_document_that_is_not_there() -> None:
    present = {page.name for page in DOCS}
    here = [path for path in (*SOURCES, *ROOT.joinpath("tests").rglob("*.py")) if path != Path(__file__)]
    texts = {path: path.read_text(encoding="utf-8") for path in (*here, *DOCS)}
    sections = {
        (path.name, name)
        for path, text in texts.items()
        for name in re.findall(r"([\w-]+\.md)[\s,)]*(?:§|\bD\d)", text)
    }
    named = {  # in prose; a quoted or a user's own file name is an example
        (path.name, name)
        for path, text in texts.items()
        for name in re.findall(r"\bdocs/([\w-]+\.md)|\b((?:sync|recall|architecture|protocol|decisions)\.md)\b", text)
        for name in name
        if name
    }

    assert {(where, name) for where, name in sections | named if name not in present} == set()
    assert [where for where, name in sections if name != "protocol.md"] == []


_TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def test_every_attack_that_is_listed_has_a_test_and_every_test_is_there() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| attack", "| **"))]
    named = [_TEST.findall(row) for row in rows]

    assert rows
    assert [row for row, tests in zip(rows, named, strict=True) if not tests] == []
    assert [
        f"{file}::{name}"
        for file, name in {each for tests in named for each in tests}
        if not re.search(rf"^(async )?def {name}\b", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)
    ] == []
