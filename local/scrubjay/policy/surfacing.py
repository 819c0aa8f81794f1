"""How it is predicted what a session will need, and when a prediction is kept back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfacingPolicy:
    """What is surfaced: told to an agent before anybody asked for it, because it will probably be needed.

    The weights are logits. Those of `certain`, `asked`, `memory`, `fresh` and `open` are fitted to what labelled
    sessions needed (`scrubjay bench surfacing`), round, and hold for people who were left out of the fit; the others
    take no part in these sessions, or say nothing there, and are set by hand. A turn of long ago is needed once in a
    hundred times; a memory of today that recall finds first for the prompt, one time in four.
    """

    # What makes a thing probable: each signal is in [0, 1] (surfacing.prediction.Signals).
    certain: float = -4.4
    asked: float = 1.5  # recall finds it for the session's own prompts, by its place: how sure recall is says less
    like: float = 0.2  # recall finds it for the last words of the session before: people go on to something else
    memory: float = 1.0  # somebody, or a rule, chose it to be kept; and it is one sentence, where a turn is many
    fresh: float = 0.6  # people go on where they stopped
    open: float = 0.5  # a goal or a decision that still holds
    paths: float = 0.2  # it names a file or an identifier that was just spoken of
    followed: float = 2.0  # it was used after beginnings like this one
    used: float = 1.0  # it was used at all: three times count as always
    branch: float = 0.5  # it was said on the branch that is checked out: work comes back to where it was left
    salience: float = 0.2
    near_places: int = 5  # first answers of recall to a prompt, which come before all else; the tenth says half as much
    fresh_days: float = 7.0  # half-life, counted from the project's last word: a holiday makes nothing old
    used_full: int = 3  # uses from which on more say nothing new

    # How probable it must be. The floor rises when what was surfaced lately was of no use.
    floor: float = 0.03  # a line of 25 tokens: at most 800 tokens for one that is needed, less than recall spends
    floor_most: float = 0.3  # of a prediction that was never right lately: only what recall finds first for the prompt
    good: float = 0.1  # hit rate from which on the floor is not raised: what is above it does better than it
    judged: int = 40  # outcomes that the hit rate is taken of: two days of work, so that a change of habit is noticed
    judged_least: int = 10  # below, chance decides: nothing is raised
    judged_days: int = 14  # older outcomes do not count: a floor that silences all would otherwise never come down
    prior: float = 8.0  # outcomes that the weights are believed for, against those that were seen

    # What is looked at, and how much of it is told.
    looked_at: int = 60  # newest memories of a project that are weighed whatever recall finds
    question_chars: int = 300  # that recall is asked with: embedding them is most of what a prediction costs
    hits: int = 24  # of recall's answer
    turns: int = 12  # last turns of a session that say what it is at
    sessions_before: int = 20  # earlier sessions of a project whose beginnings are compared
    beginnings: int = 2  # prompts that a session's beginning is
    kept: int = 60  # predictions that are kept for one session: more than are told, for some fall away
    kept_days: int = 7  # a prediction is for now: what was not needed in a week was none
    outcome_days: int = 90  # how long it is known what was surfaced and used: as long as what was handed over
    at_start: int = 6  # told at a session's start, within its budget of tokens: as many as decisions
    at_prompt: int = 2  # told beside a prompt: recall, which has read the prompt, says four
    sessions_a_run: int = 4  # sessions that one run of the job predicts for: a tenth of a second each
    session_hours: int = 24  # a session without an event for so long is not predicted for: it is over, or an import

    # When something that was told counts as used.
    spoken_share: float = 0.6  # of its rarer words, that an agent's later answer must hold
    spoken_words: int = 4  # and so many at least: two words in common are chance
    unused_turns: int = 8  # answers after which it was of no use: the work has moved on by then
    unused_hours: int = 12  # or after so long without a further answer
