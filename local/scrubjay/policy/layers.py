"""What is proposed for the active layer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersPolicy:
    """How much is proposed of what a person is at: as much as one reads at a glance, and nothing old."""

    goals: int = 5  # open ones, the most salient first
    decisions: int = 3  # the last ones of the project
    decision_days: int = 14  # after two weeks a decision is how things are, and no longer what one is at
    goal_days: int = 90  # a goal that nobody spoke of for a season was given up
    left_off_days: int = 14  # an end of a session that nobody came back to in two weeks was one
    turns: int = 12  # last turns of a session among which its end is looked for
    end_turns: int = 4  # of these, those in which something named for next time is looked for: before farewells
    turn_chars: int = 4_000  # of one of them
    line_chars: int = 400  # the longest sentence that is proposed: a fifth of the layer
    looked_at: int = 200  # newest memories of a project that are looked through
    sentences: int = 2  # of an agent's answer, that say what is left to do
