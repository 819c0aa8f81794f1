"""Which command installs an extra of the scrubjay that is running: from where it came, with what installed it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

UV_RECEIPT = "uv-receipt.toml"
"""What `uv tool install` leaves in the environment that it makes for a tool (docs.astral.sh/uv, "Tools")."""
PIPX_RECEIPT = "pipx_metadata.json"
"""What pipx leaves in the environment that it makes for a program (pipx.pypa.io, "How pipx works")."""


class Installed(Protocol):
    """What is read of an installed distribution: `importlib.metadata.Distribution` is one."""

    def read_text(self, filename: str) -> str | None:
        """Return a file of its metadata, None when there is none."""


def install_command(extra: str, installed: Installed, prefix: Path) -> str:
    """Return the command that adds an extra, ready to be pasted into a shell.

    `direct_url.json` of what is installed says where it came from (PEP 610; without it, an index), `INSTALLER` what
    installed it. `prefix` is the environment's folder (`sys.prefix`).
    """
    origin = _origin(installed.read_text("direct_url.json"))
    what = shlex.quote(_requirement(extra, origin))
    if origin.get("dir_info", {}).get("editable"):
        what = f"-e {what}"
    if (prefix / UV_RECEIPT).is_file():
        return f"uv tool install --force {what}"
    if (prefix / PIPX_RECEIPT).is_file():
        return f"pipx install --force {what}"
    by_uv = (installed.read_text("INSTALLER") or "").strip() == "uv"
    return f"{'uv pip' if by_uv else 'pip'} install {what}"


def uninstall_command(installed: Installed, prefix: Path) -> str:
    """Return the command that takes the program out of the environment that it runs in."""
    if (prefix / UV_RECEIPT).is_file():
        return "uv tool uninstall scrubjay"
    if (prefix / PIPX_RECEIPT).is_file():
        return "pipx uninstall scrubjay"
    by_uv = (installed.read_text("INSTALLER") or "").strip() == "uv"
    return f"{'uv pip' if by_uv else 'pip'} uninstall scrubjay"


def _origin(direct_url: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(direct_url or "{}")
    except ValueError:  # not our file, and only a hint depends on it: then the name alone is named
        return {}
    return found if isinstance(found, dict) else {}


def _requirement(extra: str, origin: Mapping[str, Any]) -> str:
    """Return what names scrubjay with an extra to an installer: a folder, an address (PEP 508), or its name alone."""
    url = str(origin.get("url", ""))
    if not url:
        return f"scrubjay[{extra}]"
    if "dir_info" in origin and url.startswith("file:///") and ":" not in url.removeprefix("file:"):
        return f"{_decoded(url.removeprefix('file://'))}[{extra}]"
    vcs = origin.get("vcs_info", {})
    if vcs:
        revision = vcs.get("requested_revision") or vcs.get("commit_id", "")
        url = f"{vcs.get('vcs', 'git')}+{url}" + f"@{revision}" * bool(revision)
    return f"scrubjay[{extra}] @ {url}"


def _decoded(path: str) -> str:
    """Return a path without percent escapes (RFC 3986, section 2.1)."""
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), path.encode())
    return raw.decode(errors="replace")
