"""`scrubjay demo`, as `make demo` runs it: a real daemon in its own process, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from scrubjay.cli.commands import demo
from scrubjay_shared.errors import InvalidError, NotFoundError

ROOT = Path(__file__).parent.parent


def run(temporary: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SCRUBJAY_")}
    paths = os.pathsep.join(str(ROOT / part) for part in ("local", "shared", "bench"))
    return subprocess.run(
        [sys.executable, "-m", "scrubjay.cli", "demo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=kept | {"TMPDIR": str(temporary), "HOME": str(temporary), "PYTHONPATH": paths, "COLUMNS": "120"} | env,
        timeout=240,
        check=False,
    )


def daemons_in(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.environ().get("SCRUBJAY_DATA_DIR", ""):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_the_demo_asks_five_questions_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = run(tmp_path, SCRUBJAY_MODEL="none")

    assert ended.returncode == 0, ended.stderr
    asked = [question.text for question in demo.sample().questions]
    assert len(asked) == 5
    assert all(question in ended.stdout for question in asked)
    assert ended.stdout.count(" ms") >= 5
    assert ended.stdout.count("↳") >= 5
    assert "hidden before anything was written" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert list(tmp_path.glob("scrubjay-demo-*")) == []
    assert daemons_in(tmp_path) == []


def test_a_demo_that_fails_says_so_and_cleans_up(tmp_path: Path) -> None:
    ended = run(tmp_path, SCRUBJAY_MODEL="not-a-model-of-ours", SCRUBJAY_LOG_LEVEL="loud")

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.glob("scrubjay-demo-*")) == []


def locomo(path: Path) -> Path:
    """A small file in the shape of LoCoMo, written for this test."""
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I decided to paint the boat green next week."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "I went to the harbour festival yesterday and loved it."},
        {"speaker": "Ada", "dia_id": "D1:3", "text": "My favorite tool is the old plane my father gave me."},
    ]
    asked = [
        {"question": "When did Bo go to the festival?", "answer": "7 May 2023", "evidence": ["D1:2"], "category": 2},
        {"question": "What colour will the boat be?", "answer": "green", "evidence": ["D1:1"], "category": 4},
        {"question": "What does Ada like?", "answer": "her plane", "evidence": ["D1:3"], "category": 1},
        {"question": "When will Ada paint?", "answer": "next week", "evidence": ["D1:1"], "category": 2},
        {"question": "Who gave Ada the plane?", "answer": "her father", "evidence": ["D1:3"], "category": 4},
        {"question": "What did Bo steal?", "adversarial_answer": "nothing", "evidence": ["D1:3"], "category": 5},
    ]
    sample: dict[str, Any] = {
        "sample_id": "boat-1",
        "qa": asked,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
        },
    }
    path.write_text(json.dumps([sample]), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_locomo_conversation_is_shown_with_its_own_questions(tmp_path: Path) -> None:
    file = locomo(tmp_path / "locomo.json")

    ended = run(tmp_path, "--locomo", str(file), SCRUBJAY_MODEL="none")

    assert ended.returncode == 0, ended.stderr
    assert "Ada and Bo (boat-1 of locomo.json)" in ended.stdout
    assert "When did Bo go to the festival?" in ended.stdout
    assert "steal" not in ended.stdout


@pytest.mark.parametrize(
    ("content", "only", "kind"),
    [
        (b"", None, InvalidError),
        (b"not json", None, InvalidError),
        (b"\xff\xfe\x00", None, InvalidError),
        (b"{}", None, InvalidError),
        (b"[]", None, InvalidError),
        (b'[{"sample_id": "a"}]', None, InvalidError),
        (b'[{"sample_id": "a"}]', "b", NotFoundError),
        (b"[" * 100_000, None, InvalidError),
    ],
)
def test_a_file_that_is_not_locomo_is_an_error(
    tmp_path: Path, content: bytes, only: str | None, kind: type[Exception]
) -> None:
    (tmp_path / "file.json").write_bytes(content)

    with pytest.raises(kind):
        demo.of_locomo(tmp_path / "file.json", only)
