"""What `make` gives the programs that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_bytecode_is_kept_whatever_the_environment_says(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"include {ROOT}/Makefile\nshown:\n\t@env\n", encoding="utf-8")
    shown = subprocess.run(
        ["make", "--silent", "-f", str(tmp_path / "Makefile"), "shown"],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "SCRUBJAY_MODELS_DIR=" in shown
    assert "PYTHONDONTWRITEBYTECODE" not in shown
