"""`scrubjay mcp`: what an agent starts to reach the memory, over stdin and stdout."""

from __future__ import annotations

import os
import sys

from scrubjay.cli.arguments import Parser
from scrubjay.folders import data_folder
from scrubjay.transports.mcp import bridge

TYPE_CHECKING = False  # as type checkers know it; importing `typing` for it would cost a tenth of the start
if TYPE_CHECKING:
    from argparse import Namespace

TOOLSETS = ("server-memory", "memories", "search-add-remove", "search-fetch", "vault")
"""The toolsets that are asked for by name; a test compares them with those that there are."""


def configure(parser: Parser) -> None:
    """Take which tools to offer."""
    parser.add_argument(
        "toolset",
        nargs="?",
        choices=TOOLSETS,
        metavar="TOOLSET",
        help=f"other tools than scrubjay's own: {', '.join(TOOLSETS)}",
    )


def run(line: Namespace) -> None:
    """Pass MCP messages between stdin, stdout and the daemon until stdin ends."""
    folder = data_folder(line.data_dir, line.home, os.environ)
    if folder is None:
        from scrubjay.cli import invocation  # noqa: PLC0415  # loads the settings, where only they know the folder

        folder = str(invocation.settings_of(line).data_dir)
    path = f"/mcp/{line.toolset}" if line.toolset else "/mcp"
    try:
        project = os.getcwd()  # noqa: PTH109  # pathlib takes as long as half of the interpreter
    except OSError:  # a worktree that was removed under its agent: the session goes on without a project
        project = ""
    serving = bridge.Bridge(folder, path, project, sys.stdout.buffer, lambda: bridge.start_daemon(folder))
    serving.run(sys.stdin.buffer)
