"""The file that a copy goes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay import destination
from scrubjay.cli import invocation

if TYPE_CHECKING:
    from argparse import Namespace


def target_of(line: Namespace, target: Path) -> Path:
    """Return where a copy is to go. Raises for a file of ours, and for one that is there and may not be replaced."""
    chosen = invocation.settings_of(line)
    inside = [each for each in chosen.store_dir.iterdir() if each.is_file()] if chosen.store_dir.is_dir() else []
    ours = [chosen.config_path, chosen.log_path, *inside, *([chosen.socket] if chosen.socket else [])]
    return destination.check(target, chosen.store_path, force=line.force, ours=ours)
