"""Where results and remarks go: results to stdout, as JSON or for people; everything else to stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from scrubjay.cli.lazy import LazyModule
from scrubjay.cli.render.words import clean

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Mapping

    from rich import console, progress, text
    from rich.console import Console, RenderableType
    from rich.progress import Progress

else:
    console, progress, text = LazyModule("rich.console"), LazyModule("rich.progress"), LazyModule("rich.text")


PIPE_WIDTH = 160
"""Columns of text that is not for a terminal: wide enough for what tables hold, and COLUMNS asks for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How this command was asked to speak."""

    json: bool
    quiet: bool

    @classmethod
    def of(cls, line: Namespace, *, prose: bool = False) -> Output:
        """Read it from the command line; without a wish, JSON unless a person sees the output.

        A command whose result is `prose` writes JSON on demand alone: its text is read by `less` or kept in a file.
        """
        piped = not prose and not sys.stdout.isatty()
        return cls(json=line.form == "json" or (line.form is None and piped), quiet=line.quiet)

    def answer(self, record: Any, people: Callable[[], RenderableType]) -> None:
        """Write a result: the record as JSON, or what `people` makes of it."""
        if self.json:
            write_json(record)
            return
        shown = people()
        if isinstance(shown, str):
            shown = text.Text(clean(shown))
        # A line of ours stays one line: who pipes it wants to cut it up, and terminals wrap by themselves.
        console_, soft = terminal(), isinstance(shown, text.Text)
        if sys.stdout.isatty():
            console_.print(shown, soft_wrap=soft)
            return
        with console_.capture() as captured:
            console_.print(shown, soft_wrap=soft)
        # Cells of a table are padded to the window's width. A pipe has none.
        lines = [line.rstrip() for line in captured.get().splitlines()]
        write_bytes("".join(f"{line}\n" for line in lines).encode())

    def remark(self, words: str) -> None:
        """Say something that is not the result, on stderr; nothing when quiet."""
        if not self.quiet and words:
            remarks().print(clean(words), style="dim", markup=False, soft_wrap=True)

    def notes(self, notes: Iterable[str], labels: Mapping[str, str] | None = None) -> None:
        """Say what stands in an answer's `notes`, where the answer itself is not JSON that holds them.

        `labels` are how projects are shown that are named in them.
        """
        if not self.json:
            for note in notes:
                for project, label in (labels or {}).items():
                    note = note.replace(project, label)  # noqa: PLW2901 - the same note
                self.remark(note)

    def more(self, cursor: str | None) -> None:
        """Say how to see the next page, unless this is the last."""
        if cursor is not None and not self.json:
            self.remark(f"there are more: add --cursor {cursor} to see the next page")

    def progress(self) -> Progress:
        """Return a progress bar on stderr; it shows only to people, and not when quiet."""
        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
        )
        return progress.Progress(*columns, console=remarks(), transient=True, disable=self.hushed)

    @property
    def hushed(self) -> bool:
        """Whether nobody wants to see progress."""
        return self.quiet or not sys.stderr.isatty()


def write_json(record: Any) -> None:
    """Write one record on stdout: on one line for programs, indented for people who asked for JSON."""
    encoded = msgspec.json.encode(record)
    if sys.stdout.isatty():
        encoded = msgspec.json.format(encoded, indent=2)
    write_bytes(encoded + b"\n")


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout, whatever encoding the terminal has."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
    else:
        buffer.write(data)
        buffer.flush()


def terminal() -> Console:
    """Return the console of results."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return console.Console(highlight=False, emoji=False, width=width)


def remarks() -> Console:
    """Return the console of everything that is not a result."""
    return console.Console(stderr=True, highlight=False, emoji=False)
