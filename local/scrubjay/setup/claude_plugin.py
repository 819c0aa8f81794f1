"""The Claude Code plugin of the repository: the hooks, server, commands and skill that `scrubjay setup` writes. Pure.

It calls the programs by their names, so these must be on the PATH; where they are not, its hooks do nothing. A test
compares the files with this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scrubjay.setup import texts
from scrubjay.setup.hosts import CLAUDE, seconds
from scrubjay.version import __version__

ABOUT = "Memory that all agents on this machine share: what was decided, with its source"
AUTHOR = {"name": "The scrubjay developers"}


def plugin() -> dict[str, str]:
    """Return the plugin's files by their paths in it."""
    manifest = {
        "name": "scrubjay",
        "version": __version__,
        "description": ABOUT,
        "author": AUTHOR,
        "license": "Apache-2.0",
        "keywords": ["memory"],
    }
    hooks = {event: [{"hooks": [_handler(event, inject=inject)]}] for event, inject in CLAUDE.items()}
    server = {"command": "scrubjay", "args": ["mcp"]}
    return {
        ".claude-plugin/plugin.json": written(manifest),
        "hooks/hooks.json": written({"description": ABOUT, "hooks": hooks}),
        ".mcp.json": written({"mcpServers": {"scrubjay": server}}),
        **{f"skills/{path}": content for path, _, content in texts.claude_skills()},
    }


def marketplace() -> str:
    """Return the marketplace's file, which lies beside the plugin's folder."""
    listed = {"name": "scrubjay", "source": "./claude-code", "description": ABOUT, "version": __version__}
    return written({"name": "scrubjay", "description": ABOUT, "owner": AUTHOR, "plugins": [listed]})


def _handler(event: str, *, inject: bool) -> dict[str, Any]:
    # Without `args` it is a line for the shell, on Windows too (Git's): it can ask whether the program is there.
    call = f"scrubjay-hook {'inject ' if inject else ''}claude-code {event}"
    return {
        "type": "command",
        "command": f"command -v scrubjay-hook >/dev/null 2>&1 && {call}; exit 0",
        "timeout": seconds(event, inject=inject),
    }


def written(value: Mapping[str, Any]) -> str:
    """Return a JSON file as people write them."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
