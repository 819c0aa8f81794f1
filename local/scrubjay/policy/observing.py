"""How an observer is asked, and from when what it says counts as said."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportPolicy:
    """From when turns say what a fact claims, as a share of the fact's words by weight.

    Fitted to labels in their own words: with these, 96 in 100 find a passage in the turns that they were made from, and
    of those of another session of the same project 92 in 100 find none.
    """

    passage_chars: int = 500  # of a passage: a paragraph, or a few sentences
    floor: float = 0.45  # of one passage
    joint_floor: float = 0.55  # of two: more words are more chances
    cited_floor: float = 0.22  # of a passage of a turn that the observer names: that it names it says something
    cited_joint_floor: float = 0.32  # of two, the first of which is in such a turn
    least_part: float = 0.1  # of the first of two, unless it is cited ("yes, that one"): a place must say something
    second_sentence: float = 0.08  # what another sentence must add to the first, as a share of the fact's words
    carried: float = 0.6  # of a fact whose one literal only a tool printed: people said the rest
    near_turns: int = 4  # between two passages of one fact: a proposal, its answer, and what came between
    prior_turns: int = 40  # as many turns without any of its words are taken to lie before: in two turns all is rare
    date_slack_days: int = 1  # of a date from that of the turns: people and servers live in several zones


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverPolicy:
    """What an observer is shown and may answer. Characters, about four to a token."""

    support: SupportPolicy = field(default_factory=SupportPolicy)
    new_chars: int = 12_000  # said and not read: each question carries 2,000 tokens of rules, context and memories
    quiet_seconds: float = 20.0  # after the end of a session: some hosts tell of it before its last turn
    wait_seconds: float = 1_800.0  # the longest that turns wait for more or for an end: half an hour is a pause of work
    hold_seconds: float = 600.0  # a session whose question failed is left alone at first, and a Writer over its caps
    hold_most_seconds: float = 21_600.0  # doubled up to this: one that always fails costs four calls a day
    look_seconds: float = 10.0  # between two looks whether a session has become quiet
    prompt_chars: int = 24_000  # of turns and memories: about 6,000 tokens, which every model in use can read
    rules_chars: int = 3_400  # of the rules and fences around them, as an estimate of what a call reserves
    turn_chars: int = 6_000  # of one turn: what is decided in it stands at its beginning or its end
    tool_chars: int = 400  # of what a tool printed: its first lines say what it was
    context_chars: int = 3_000  # of the turns before the new ones: what "that" and "yes" refer to
    context_turns: int = 8  # which these are
    memories: int = 24  # that it may correct
    memory_chars: int = 300  # of each of them
    new_events: int = 1_000  # of one step, most of them of tools: more is a session that was imported
    output_tokens: int = 1_500  # of an answer: some forty facts; nobody learns more from a few thousand words
    max_facts: int = 48  # of one answer: what comes after them is a model that does not stop
    fact_chars: int = 600  # of one fact: a longer one is not one fact
    again_chars: int = 36_000  # three questions: the beginning of a session that was under way without a Writer
    again_share: float = 0.5  # of a day's cap, for what was read before: the sessions of the day come first
    again_tries: int = 3  # with half the turns each time, until a session that is read again is left as it is
    estimated_calls: int = 60  # that an estimate reads: a second's work, and more tokens than the usual cap of a day
    title_chars: int = 80  # of what the turns were about: one line of a list
    summary_chars: int = 300  # of one sentence on it
    told_floor: float = 0.5  # of their words that somebody spoke: the others name what was done in words of their own
    streak: int = 3  # commits in a row with malformed directives before a warning: as the specification says
