"""`scrubjay docs`: the documents that came with the program, so that every hint leads to something that is there."""

from __future__ import annotations

import re
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from scrubjay.cli.arguments import text
from scrubjay.cli.output import Output
from scrubjay_shared.errors import (
    NotFoundError,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from scrubjay.cli.arguments import Parser


PAGES = {
    "guide": "how scrubjay works, what it promises, and its settings",
    "agents": "what setup changes for each agent, what is taken in and given back",
    "cli": "every command, its options and its records",
    "mcp": "the memory as tools of an agent, and how to connect one",
    "writer": "the language model that jobs may ask: off by default, where prompts go, what it may cost",
    "vault": "an agent's memory as plain files that anybody edits",
    "sync": "the same memory on other machines, and what a server can see",
    "sync-cli": "every command of sync",
    "self-hosting": "running the server",
    "protocol": "the protocol of sync, byte by byte",
}
"""The documents of the installed package, with what each is about. pyproject.toml puts them into the wheel."""


_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)(?:\.\./|docs/)*([\w-]+)\.md(#[\w-]+)?\)")


def configure(parser: Parser) -> None:
    """Take which document is wanted, if any."""
    parser.add_argument(
        "page", nargs="?", type=text, metavar="PAGE", help="the document to read (without it: the list of all)"
    )


def run(line: Namespace) -> None:
    """Print a document, or list what there is."""
    out = Output.of(line, prose=True)
    if line.page is None:
        out.answer(PAGES, lambda: "\n".join(f"scrubjay docs {name:<13} {about}" for name, about in PAGES.items()))
        return
    name = line.page.removeprefix("docs/").removesuffix(".md")
    if name not in PAGES:
        raise NotFoundError(
            f"there is no document {line.page[:60]!r}", hint=f"scrubjay docs PAGE, one of: {', '.join(PAGES)}"
        )
    text = linked(page(name))
    out.answer({"page": name, "text": text}, lambda: _rendered(text) if sys.stdout.isatty() else text)


def page(name: str) -> str:
    """Return a document's Markdown: from the package, or from the checkout that it is installed from."""
    packaged: Traversable = resources.files("scrubjay").joinpath("docs", f"{name}.md")
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return (Path(__file__).parents[4] / "docs" / f"{name}.md").read_text(encoding="utf-8")


def linked(text: str) -> str:
    """Return a document with its links to other documents written as the commands that show those here.

    A link to a document that is not shipped says where that is: in the project's source.
    """

    def replacement(link: re.Match[str]) -> str:
        label, name, section = link[1], link[2], link[3] or ""
        if name not in PAGES:
            return f"{label} (docs/{name}.md, in the source of scrubjay)"
        about = f", section “{section.removeprefix('#').replace('-', ' ')}”" if section else ""
        return f"`scrubjay docs {name}`{about}" if label == f"{name}.md" else f"{label} (`scrubjay docs {name}`{about})"

    return _LINK.sub(replacement, text)


def _rendered(text: str) -> RenderableType:
    from rich.markdown import Markdown  # noqa: PLC0415  # a parser of its own, for this command alone

    return Markdown(text, hyperlinks=False)
