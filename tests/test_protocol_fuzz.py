"""Damaged input is refused by name, whatever it is: a few seconds of what `make fuzz` does for minutes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent / "fuzz"


def loaded() -> ModuleType:
    """Return tests/fuzz/run.py as a module."""
    spec = importlib.util.spec_from_file_location("scrubjay_fuzz_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = loaded()


@pytest.mark.parametrize("name", run.DECODERS)
def test_a_decoder_refuses_damaged_input_by_name_and_agrees_with_the_second_one(name: str) -> None:
    tally = run.fuzz(name, 0.8, seed=7)

    assert tally.crashes == []
    assert tally.executions > 100
    assert len(tally.outcomes) > 1, "the mutations all meet the same check"


@pytest.mark.parametrize(
    ("name", "seed", "execution"),
    [
        # A genesis without a readable origin, signed by another key: one decoder saw the one fault first, one the other.
        ("account", 1, 35134),
        ("account", 2, 5753),
        ("account", 2, 35603),
    ],
)
def test_what_once_broke_a_decoder_does_not_any_more(name: str, seed: int, execution: int) -> None:
    decoder = run.DECODERS[name]

    # That both decoders say the same is checked within; entries of version 2 are drawn differently.
    assert decoder.take(decoder.draw(Random(f"{seed} {execution}"))) in {"invalid", "malformed", "bad_signature"}


def test_a_crash_is_told_with_the_input_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> str:
        raise KeyError(1)

    monkeypatch.setitem(run.DECODERS, "json", run.DECODERS["json"].__class__(run.DECODERS["json"].draw, broken))
    tally = run.fuzz("json", 3.0, seed=7)

    assert len(tally.crashes) == run.KEPT
    assert "KeyError" in tally.crashes[0]
    assert "seed 7, execution 0" in tally.crashes[0]
