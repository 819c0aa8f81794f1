"""The way from a prompt to stored memories: labels that a real server answers with arrive, those of others do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay.settings import NO_MODEL
from scrubjay.writer.budget import Caps
from scrubjay_bench import cli, devmem, devmem_asking
from scrubjay_bench.devmem_asking import Memories, Observed, Run
from scrubjay_bench.devmem_writers import NO_CAPS, Answers, LabelWriter
from scrubjay_shared.errors import UnavailableError
from writer_server import ModelServer, model_server

OWN = Path(__file__).parent.parent / "bench" / "devmem"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def observed(
    server: ModelServer, tmp_path: Path, *, strangers: bool, caps: Caps = NO_CAPS
) -> tuple[LabelWriter, Observed, int]:
    """Have the sessions of a project read by a server that knows its labels. Returns what it said and what is stored."""
    data = devmem.load(OWN, ["ledgerlane"])
    [project] = data.projects
    knows = LabelWriter(
        labels=project.labels, turns={turn.id: turn.text for turn in project.turns}, strangers=strangers
    )
    server.answer = lambda asked: knows.answer(asked.text)
    run = Run(
        data=data,
        memories=Memories.OBSERVED,
        models_dir=tmp_path,
        model=NO_MODEL,
        scratch=tmp_path,
        answers=Answers.SETTINGS,
        writer=server.chosen(),
        caps=caps,
    )
    [seen] = devmem_asking.measured(run)
    assert seen.observed is not None
    from scrubjay_bench.devmem_scores import matched  # noqa: PLC0415

    return knows, seen.observed, len(matched(seen.learned, knows.said).best)


def test_what_the_writer_says_rightly_arrives(server: ModelServer, tmp_path: Path) -> None:
    knows, found, kept = observed(server, tmp_path, strangers=False)
    assert len(knows.said) == 13  # all labels of the project
    assert kept >= 0.95 * len(knows.said)
    assert found.by_patterns == 0
    assert found.calls == len(server.asked) == 2
    assert found.tokens == server.counted


def test_what_no_turn_says_does_not(server: ModelServer, tmp_path: Path) -> None:
    knows, found, kept = observed(server, tmp_path, strangers=True)
    assert kept <= 0.1 * len(knows.said)
    assert found.counts["unsupported_facts"] >= 0.9 * len(knows.said)


def test_over_budget_nothing_is_asked_and_nothing_is_measured(server: ModelServer, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="not distilled") as caught:
        observed(server, tmp_path, strangers=False, caps=Caps(daily=1, monthly=1))
    assert "writer_daily_tokens" in caught.value.hint
    assert server.asked == []


def test_the_command_says_what_the_observer_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCRUBJAY_HOME", str(tmp_path))  # not the settings of who runs the tests, and not their tokens
    monkeypatch.delenv("SCRUBJAY_WRITER", raising=False)
    arguments = ["devmem", "--data", str(OWN), "--projects", "rezepte", "--model", "none", "--reranker", "none"]
    assert cli.main([*arguments, "--writer", "labels"]) == 0
    assert "of 9 facts that the Writer answered 9 are there (1.000)" in capsys.readouterr().out
    assert cli.main([*arguments, "--writer", "settings"]) == 2
    assert "the settings name no Writer" in capsys.readouterr().err
