"""How hosts call scrubjay: absolute paths, because they start programs with a PATH of their own. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IF_THERE = '[ -x "$0" ] && "$0" "$@"; exit 0'
"""Shell that runs a program where it is, and is silent where it is gone: `scrubjay-hook` itself always exits 0.

A host shows the person an error at each prompt and each tool call for as long as a hook calls what is not there, and a
program can go without `scrubjay uninstall`: a deleted environment, a Python that an upgrade replaced.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the hosts' settings depend on: whose home it is, the environment, the platform, and our programs' paths.

    `options` stand before a program's other arguments: where the store lies, when it is not in its usual place.
    """

    home: Path
    environ: Mapping[str, str]
    platform: str
    hook: Path
    scrubjay: Path
    options: tuple[str, ...] = ()

    def capture(self, host: str, event: str) -> tuple[str, ...]:
        """Return the command line that takes in an event."""
        return (str(self.hook), *self.options, host, event)

    def registered(self, host: str, event: str, *, inject: bool) -> tuple[str, ...]:
        """Return the command line that a host is given: it takes in an event, and with `inject` prints its context.

        It is silent once the program is gone, except on Windows, where no shell is there for certain.
        """
        program, *words = self.capture(host, event)
        words[-2:-2] = ["inject"] if inject else []
        silent = () if self.platform == "win32" else ("/bin/sh", "-c", IF_THERE)
        return (*silent, program, *words)

    def mcp(self) -> tuple[str, ...]:
        """Return the command line of the MCP server."""
        return (str(self.scrubjay), *self.options, "mcp")

    def shell(self, line: tuple[str, ...]) -> str:
        """Return a command line as one string for this platform's shell."""
        if self.platform == "win32":  # no path there has a quote in it
            return " ".join(f'"{word}"' if " " in word else word for word in line)
        return shlex.join(line)

    def folder(self, variable: str, default: str) -> Path:
        """Return a host's folder: the one that its variable names, else the default below the home."""
        named = self.environ.get(variable)
        return Path(named) if named else self.home / default

    def config(self, default: str = ".config") -> Path:
        """Return where programs of this platform keep their settings."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        return self.folder("XDG_CONFIG_HOME", default)
