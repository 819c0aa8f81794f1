"""What is learned of what was said, and how it is cut into segments and archives."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.records import MemoryType

TYPE_SALIENCE: dict[MemoryType, float] = {  # initial salience by type, from the specification of the memory types
    MemoryType.DECISION: 0.8,
    MemoryType.PREFERENCE: 0.7,
    MemoryType.INSIGHT: 0.75,
    MemoryType.GOAL: 0.85,
    MemoryType.FACT: 0.55,  # the middle of the specified 0.5-0.6
    MemoryType.HOWTO: 0.7,  # wrong commands cost as much as ignored wishes: as a preference
    MemoryType.LONG_TERM: 0.7,
    MemoryType.DAILY: 0.5,
    MemoryType.BELIEF: 0.6,
    MemoryType.SELF: 0.6,
    MemoryType.SOCIAL: 0.5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillPolicy:
    """What the pattern distiller keeps, and when two memories say the same."""

    min_confidence: float = 0.5  # the extraction default of the specification
    salience_spread: float = 0.05  # keeps each type within its band (facts 0.5-0.6), however sure the reading
    # How sure the reading of a pattern is before the sentence's words are weighed. The order is what matters: set with
    # an audit by hand so that a plain fact with three telling words passes, and an aside does not.
    outright_confidence: float = 0.75  # "I prefer …"
    family_confidence: float = 0.7  # decisions, goals, insights, likes
    instruction_confidence: float = 0.65  # "always …", "keep your answers short"
    agreement_confidence: float = 0.7  # "yes, option B": as sure as a decision in the person's own words
    fact_confidence: float = 0.6  # told of oneself or of somebody by name
    project_confidence: float = 0.55  # "the login link uses UTC"
    loose_confidence: float = 0.5  # told of a thing of one's own, between people
    aside_confidence: float = 0.44  # told of anything else, between people: passes only with a name, number or date
    opinion_confidence: float = 0.35  # "my family is great"
    min_detail: int = 2  # telling stems a memory needs; one is enough beside a name, a number or a date
    detail_bonus: float = 0.03  # for each telling stem beyond those
    max_detail_steps: int = 5  # more words do not make a sentence truer
    mark_bonus: float = 0.1  # a name, a number or code stands in it
    date_bonus: float = 0.1  # it says when
    thin_penalty: float = 0.15  # it has no more than `min_detail`
    hedge_penalty: float = 0.2  # "somehow", "or so"
    vague_penalty: float = 0.2  # it ends in "some places", "a new skill"
    pointing_penalty: float = 0.35  # "that trip", "the situation": told of before, perhaps
    unresolved_penalty: float = 0.5  # a pronoun without its noun: nothing outweighs that
    max_sentences: int = 4_000  # of one event: a 5 MB paste costs about a second, and nobody says more in one breath
    max_sentence_chars: int = 400  # about 70 words; longer runs are pasted, not said
    min_words: int = 4  # shorter sentences seldom stand alone ("I love it.")
    max_words: int = 45  # longer ones hold several thoughts, and read badly as one memory
    max_memories: int = (
        64  # of one event: more than anyone learns from one message is a document, and belongs in import
    )
    echo_share: float = 0.8  # of a statement's stems in one thing that its agent was handed: it only tells that back
    echo_stems: int = 2  # a statement with fewer says too little to be told from anything
    near_overlap: float = 0.85  # share of stems in common (Jaccard) from which two are the same: one word in seven
    # Of what a person says at work: chances that the reader gives, chosen on people whom it was not fitted to.
    # .08: of what is kept .53 is worth it, and .32 of what matters is kept; .05: .49 and .37; .12: .53 and .27.
    min_worth: float = 0.08  # that a sentence would still matter weeks later
    taken_back_ms: int = 3_600_000  # after which "wrong window" is of something else
    max_read: int = 400  # sentences of one turn: six seconds of one core, and nobody types more at once
    min_leaning: float = 0.5  # that a sentence says nothing without the words before it: it is told with them
    directive_confidence: float = 0.9  # an observer chose the words; above any pattern, below what a person wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersessionPolicy:
    """When a later statement takes the place of an earlier one. Round numbers, none fitted."""

    # The chance of a change of mind (`lifecycle.minds`) from which the person is asked: it is likelier than not. Of
    # people left out of the fit seven changes in ten are noticed so, and of pairs that both hold one in fourteen is
    # asked about; from .4 it is .76 and .08, from .6 .64 and .05 (docs/decisions.md).
    ask: float = 0.5
    turn_chars: int = 240  # of a turn that is read with what was learned of it: two or three sentences say one thing

    max_chars: int = 1_000  # of either statement: a longer text says more than one thing, and nothing replaces it whole
    value_words: int = 4  # of a value: what differs in more words is another sentence
    near_polarity: float = 0.7  # share of stems in common from which a denial may be of the same statement
    gone_share: float = 0.75  # share of the words of what ended that the earlier statement must hold
    short_stems: int = 2  # stems of an earlier statement that the later one does not repeat: with more, a part is left
    tying_stems: int = 2  # shared beside what ended, from which a part of the earlier statement may have ended
    naming_stems: int = 3  # of what ended, all in the earlier statement, from which no other thing is likely meant
    shared_stems: int = 3  # in common, from which two statements are about one thing …
    shared_share: float = 0.5  # … where these are half of the shorter one


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """How much of a session its archive quotes: about 1,500 tokens, what a host's own summary has."""

    asked: int = 16  # prompts, those with most detail
    asked_chars: int = 200  # of a prompt: its first sentence
    settled: int = 16  # decisions, facts and wishes that were distilled
    last: int = 3  # the last turns: where the work stood
    last_chars: int = 300  # of each of them
    salience: float = 0.5  # of an archive: what it quotes is remembered by itself, and comes before it
    tries: int = 3  # when somebody forgets in between what was read: twice in a row is chance, more is not


@dataclass(frozen=True, slots=True, kw_only=True)
class TocPolicy:
    """How sessions are cut into segments, and how much of these the table of contents keeps."""

    gap_ms: int = 30 * 60_000  # a silence after which people have come back to something: the specification's
    max_events: int = 80  # of one segment: a screen or two of turns, of which the outline can still speak for all
    max_chars: int = 24_000  # said in one segment: about 6,000 tokens, what an agent can read at once
    min_events: int = 6  # below which no shift of topic is looked for: two exchanges, and an answer
    window: int = 3  # said turns to each side of a shift that are compared: one alone may be "yes, do that"
    reach: int = 12  # turns within which those after it are looked for, as tool calls come between
    # Of the cosine of what was said before and after a turn, below what is usual in the segment, from which the topic
    # has shifted. In talk between people, two in a hundred turns begin another one so, and of sessions about other
    # things, joined without a gap, three in ten are told apart; at .06 twice as many turns, and four in ten.
    topic_drop: float = 0.1
    said_chars: int = 4_000  # of one turn that are read: what a turn is about stands at its beginning
    min_words: int = 3  # of a passage: fewer say nothing by themselves
    max_passage_chars: int = 240  # of a passage: two sentences, as in answers of recall
    quiet_seconds: float = 2.0  # without a write before it is built in the background: a burst is over by then
    wait_seconds: float = 30.0  # the longest that somebody who never stops writing puts it off
    asked_seconds: float = 1.0  # since the last question before its next step: who is answered asks on within this
    way_seconds: float = 5.0  # the longest that questions without a pause put off a step: of a tenth of a second
    title_chars: int = 80  # of a segment's title: one line
    told_chars: int = 600  # of a segment's summary by the Writer: two sentences, where it read that in two parts
    bullets: int = 5  # of a segment or a period, as shown
    kept_bullets: int = 10  # of each period, for the next longer one to choose from
    shown_in_list: int = 2  # bullets of a node among its parent's children: enough to choose by
    keywords: int = 8  # as shown
    kept_keywords: int = 40  # for the next longer period to add up
    around: int = 50  # events to each side of a passage that may be asked for: a screen or two
    same_passage: float = 0.5  # share of stems in common (Jaccard) from which two passages say the same
    step_events: int = 400  # cut between two commits: about a tenth of a second in a thread
    step_sessions: int = 50  # in which they may be: a question each, and most sessions have a dozen events
