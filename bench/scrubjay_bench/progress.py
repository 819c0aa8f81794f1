"""What is being done, on stderr: a bar for a person at a terminal, a line a minute for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_SECONDS = 60.0


class Steps:
    """How far some work has come. `say` names what is done now, `step` counts."""

    def __init__(self, total: int, bar: Progress | None) -> None:
        """Show it on a bar, or as lines where there is none."""
        self._total = total
        self._done = 0
        self._said = ""
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=total)
        self._spoke = time.monotonic()

    def say(self, words: str) -> None:
        """Name what is being done."""
        self._said = words
        self._show()

    def step(self, count: int = 1) -> None:
        """Count something as done."""
        self._done += count
        self._show()

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=self._said, completed=self._done)
        elif time.monotonic() - self._spoke >= LINE_SECONDS:
            self._spoke = time.monotonic()
            sys.stderr.write(f"{100 * self._done // max(self._total, 1)}%: {self._said}\n")


@contextmanager
def steps(total: int) -> Iterator[Steps]:
    """Yield the progress of `total` steps; what is on the screen goes away afterwards."""
    if not sys.stderr.isatty():
        yield Steps(total, None)
        return
    columns = (
        TextColumn("{task.description:<48}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Steps(total, bar)
