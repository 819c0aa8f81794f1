"""Every weight, threshold and size, with its unit and its reason. Pure values; nothing here acts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from scrubjay_shared.errors import InvalidError
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
class RelevancePolicy:
    """How likely a hit answers: weights of logistic functions (`scrubjay.retrieval.relevance`).

    Fitted (ridge, each set weighing the same) on the first ten hits of each kind, on 288 questions about 57 sessions of
    work with agents, LoCoMo's first two conversations and our own chats; words and cosines are those of the default
    model's space in standard deviations, so that another model's count alike. What tells known from unknown was fitted
    on the same questions, 36 that the sessions do not answer, and questions put to other people's stores.
    """

    memory_bias: float = (
        -3.65
    )  # fitted -3.9: a quarter likelier, since a memory says it in a sentence that stands alone
    memory_cosine: float = 0.35  # a deviation of its cosine
    memory_words: float = 2.4  # all of the question's words instead of none
    memory_confidence: float = 1.0  # power of its own confidence, which is a probability
    # A memory that is this share as likely to answer as the turn it was read from stands in the turn's place: what it
    # says was chosen, and it quotes the turn. Of questions whose answer was learned, seven in ten then show it.
    instead: float = 0.1
    instead_matched: float = 0.5  # and this share of the words that the turn has of the question
    superseded: float = 0.2  # share that is left of what another memory has taken the place of
    event_bias: float = -3.7
    event_score: float = 0.37  # its score, which includes what stands around it
    event_length: float = -0.9  # logarithm of its length: of a long turn less answers
    usual_chars: float = 400.0  # where that begins to count
    finding: float = -0.8  # against what a person said: an agent says much and decides little
    question: float = -1.5  # fitted -0.7: twice that costs nothing, and one's own question stands below an answer
    narration: float = -2.9  # "Let me look at …": one in 160 answered something
    output: float = -2.7  # of a tool: one in 470
    answer_bias: float = -3.5
    answer_cosine: float = 1.47  # mean deviation of the nearest
    answer_hits: int = 10  # 3 tell other matters from one's own a little better, known from unsaid details worse
    words_bias: float = -2.0  # without vectors: the share of words alone
    words_matched: float = 4.0
    # Below, nothing is known: 1 in 100 questions that have an answer fall below, and 8 in 10 of another store's.
    floor: float = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """How candidates are scored and packed.

    Weights multiply standard deviations of meaning or their equivalent in words (`scrubjay.retrieval`). None is fitted:
    they are round numbers on a plateau of three sets, LoCoMo's turns, the same cut into sentences, and our own chats
    of work with agents. `scrubjay bench run quality` shows what they give. `scrubjay bench fit` fits them to a set of
    your own, and the setting `recall_weights` puts what it wrote in place of these.
    """

    # The balance of meaning and words: between 3 and 6 for `lexical`, R@5 on LoCoMo's turns stays within .01.
    lexical: float = 4.0  # what a word counts that only one document holds, in deviations of the cosine
    k1: float = 0.9  # BM25: hardly matters between 0.6 and 2. Its b is 0: a long turn of talk is as good as a short one
    long_tokens: float = 128.0  # tokens; no message of a conversation is longer, tool output is (scoring.bm25_part)
    # A document's own score, which its neighbours, its session and the choice of candidates go by.
    own_dense: float = 0.5
    own_bm25: float = 0.5
    event_dense: float = 0.5
    event_bm25: float = 0.25  # its own words
    event_bm25_before: float = 0.25  # its words with those before: an answer seldom repeats the question's
    window_tokens: int = 24  # how far back "before" goes: two turns of a talk, six of a chat
    window_turns: int = 8  # and no further: one-word turns are small talk
    event_before: float = 1.0  # own scores of the turns before it, by distance as in `beside`
    event_after: float = 1.0  # and after it
    beside: tuple[float, ...] = (0.2, 0.14, 0.1)  # halving within two steps: people write a thought in several turns
    event_session: float = 0.3  # best own score of its session: what was talked of there
    event_answers: float = 0.0  # own score of the turn before, if that asks: pays where talk is question and answer
    event_speaker: float = 0.3  # +1 / -1 when the question names exactly one speaker and it is / is not this one
    event_asks: float = 0.6  # off a turn that ends with a question mark: who asks does not tell
    event_when: float = 0.8  # the question asks when and the turn has a word of time
    event_count: float = 0.6  # the question asks how many and the turn has a number
    event_length: float = 0.4  # natural logarithm of its tokens against the usual: "ok" tells little
    usual_tokens: float = 12.0  # tokens of a turn that counts neither as long nor as short
    event_credit: float = 0.3  # best own score of a memory read from the event
    memory_dense: float = 0.6  # a memory is a sentence that stands alone, so meaning counts for more than in a turn
    memory_bm25: float = 0.35
    memory_session: float = 0.6  # best own score of a memory of the same session
    memory_source: float = 1.0  # score of the event it was read from
    memory_sourced: float = 0.75  # factor on a memory with a source: two scores added, back on the scale of one
    memory_when: float = 0.5  # the question asks when and the memory says when: to settle near ties
    judged_hits: int = 20  # of each kind, whose confidence says whether anything is known: of 10 that was .01 worse
    narration: float = 1.0  # off an agent's turn that says only what it will do: not one in 169 answered
    output: float = 1.0  # off a tool's output: two of 932 did
    rerank: float = 0.3  # on the logit of the reranking model, whose deviation over the first hits is 4 to 5
    rerank_hits: int = 10  # how many hits it reads: 12 were no better on LoCoMo and our chats, and cost a fifth more
    rerank_memories: int = 3  # of work with an agent: the first is then right in .40 of questions, not .35; as with 10
    rerank_near: float = 1.0  # and of those, how far below the first: of what trails more, nothing ever became first
    rerank_reach: float = (
        4.0  # where people talk: a lead that is not taken back; logits of ten hits are 13 apart at most
    )
    rerank_words: int = 40  # of an event and what was said before it together; a longer event is read alone
    rerank_before: int = 24  # words before the event, at most
    # How much of a large store is looked at. Agreement with looking at all of it: `scrubjay bench run scale-1m`.
    exhaustive: int = 4_096  # rows up to which every one is scored: some 4 ms
    candidates: int = 1_024  # rows that each signal proposes among more
    seeds: int = 160  # of these, the best by their own score get the whole sum, with their surroundings
    seeds_share: int = (
        2_500  # and as many as one in so many of a store beyond 400,000: with 160 of a million, .965 agree
    )
    keyword_k1: float = 1.2  # BM25's customary values, for the mode that anyone can recompute
    keyword_b: float = 0.75
    merged_sources: int = 4  # a memory of more events than this is a summary: it does not stand for one of them
    named: float = 1.0  # how far a memory asked for by its name stands above all others
    # Where a question asks how things are now: two of 60 such questions more had the current answer first.
    outdated: float = 2.0  # off a memory that a newer one of the same words would say; from 1 to 3 hardly matters
    outdated_cosine: float = 0.7  # of two memories, from where they are of one subject; from .6 to .8 likewise
    outdated_among: int = 10  # first memories that are compared
    mentioned: float = 1.5  # its name or an alias stands in the question: some four words' worth of being meant
    topic: float = 0.5  # the question names its topic: to settle near ties, for topics are wide
    date: float = 3.0  # within a date that the question speaks of: who names a day mostly means it
    cosine_weight: float = 0.8  # mode weighted, from its specification
    token_weight: float = 0.2
    topic_threshold: float = (
        0.6  # cosine of query and topic label; unrelated words are at 0.4-0.55 in the default model
    )
    min_topic_filter_size: int = 5  # with fewer candidates than a usual answer has, there is nothing to choose from
    relevance: RelevancePolicy = RelevancePolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWeights:
    """Weights that `scrubjay bench fit` wrote: fields of `RecallPolicy` by name, and what they were fitted to.

    `folds` are for the benchmark alone: under a conversation's name, the weights that were fitted without it.
    """

    data: str
    data_sha256: str
    protocol: str
    model: str
    weights: dict[str, float]
    folds: dict[str, dict[str, float]]


def weighted(policy: RecallPolicy, weights: Mapping[str, float]) -> RecallPolicy:
    """Return a policy with some weights in place of its own.

    Raises InvalidError for an unknown name, or a value that is not a finite number.
    """
    known = {item.name for item in fields(RecallPolicy) if isinstance(item.default, float)}
    if wrong := sorted(name for name, value in weights.items() if name not in known or not math.isfinite(value)):
        problem = "must be a finite number" if wrong[0] in known else "is not the name of a weight of recall"
        raise InvalidError(f"{wrong[0]!r} {problem}", hint="scrubjay bench fit writes a file of weights")
    changed: dict[str, Any] = dict(weights)
    return replace(policy, **changed)


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
    near_overlap: float = 0.85  # share of stems in common (Jaccard) from which two are the same: one word in seven
    # Of turns of work with an agent: the chance, by the selector, that a careful reader would keep a sentence.
    # Fitted to other people, two sentences in five from here up match a label, and hold three labels in ten.
    min_chance: float = 0.25
    min_chance_of_fact: float = 0.1  # of what a pattern reads as a person's fact about things: one in three is right
    directive_confidence: float = 0.9  # an observer chose the words; above any pattern, below what a person wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersessionPolicy:
    """When a later statement takes the place of an earlier one. Round numbers, none fitted."""

    max_chars: int = 1_000  # of either statement: a longer text says more than one thing, and nothing replaces it whole
    value_words: int = 4  # of a value: what differs in more words is another sentence
    near_polarity: float = 0.7  # share of stems in common from which a denial may be of the same statement
    gone_share: float = 0.75  # share of the words of what ended that the earlier statement must hold
    short_stems: int = 2  # stems of an earlier statement that the later one does not repeat: with more, a part is left
    tying_stems: int = 2  # shared beside what ended, from which a part of the earlier statement may have ended
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
class RoutingPolicy:
    """How a question is routed: how far each layer looks, what its finds weigh, and when enough was found.

    Weights and constants are round; where one was tried against others, it was on questions of LoCoMo that stand in no
    benchmark of ours.
    """

    looked: int = 40  # events that a layer proposes: those of a dozen talks
    rank_constant: float = 6.0  # added to a rank before it divides: the first counts twice as much as the seventh
    memories_weight: float = 1.5  # of what recall puts first, with the reranking model where there is one
    hybrid_weight: float = 1.5
    keyword_weight: float = 0.5  # words and meaning by themselves only tip the balance
    vector_weight: float = 0.5
    further_turn: float = 0.6  # of a talk, each further turn that was found counts so much of the one before
    outside: float = 0.5  # a talk right after the time that is named: what happened is told the day after
    outside_days: float = 14.0  # by then it counts least
    far_outside: float = 0.1  # what any talk counts: the time may have been misread
    hits: int = 5  # of an answer, where fewer pointers are asked for: a hit is a sentence, a pointer a talk
    enough: int = 3  # pointers from which on no further layer is asked
    grips: int = 2  # passages that a pointer names: an id costs a model twenty tokens
    passage_chars: int = 240  # of such a passage: two sentences
    scanned: int = 2_000  # newest events that the last resort reads
    max_tokens: int = 1_000  # of the hits of an answer, unless asked for more: the pointers lead to the rest

    def weight(self, layer: str) -> float:
        """Return what a layer's finds weigh."""
        weights = {
            "memories": self.memories_weight,
            "hybrid": self.hybrid_weight,
            "keyword": self.keyword_weight,
            "vector": self.vector_weight,
        }
        return weights.get(layer, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactPolicy:
    """When a run of characters is a secret. Bits are Shannon's, per character, over the run's own frequencies.

    Calibrated on Python source and talk, where nearly every hit is a mistake. Last measured on 5 MB of installed Python
    (one hit, a password left in an example), on 14,190 turns of work with agents (9.2 MB, none) and on 1.6 MB of talk
    (three).
    """

    token_chars: int = 32  # shortest nameless run judged by randomness alone: below, ids and identifiers look the same
    token_max_chars: int = 128  # longest such run: what is longer is data (images, signatures, source maps)
    token_entropy: float = 4.1  # 32 random base-62 characters have 4.6 +- 0.12; hexadecimal cannot exceed 4.0
    token_transitions: float = (
        0.42  # share of neighbours of different class (A/a/0): random base 62 has 0.62, names 0.25
    )
    token_digits: int = 3  # a nameless random run of 32 has five; identifiers have none or a year
    assigned_chars: int = 12  # shortest value of a key named token, secret or api key; real ones are 16 and up
    assigned_entropy: float = 2.9  # below: repeated or enumerated characters. 12 random base-36 characters have 3.4
    assigned_transitions: float = 0.18  # words and versions joined by punctuation stay below; hexadecimal has 0.47
    password_chars: int = 5  # shortest value of a key named password: shorter ones are types, flags and numbers
    prefixed_entropy: float = 2.6  # a vendor's prefix followed by less is a placeholder ("xxxx", "1111")
    password_max_chars: int = 256  # longest value of such a key: the longest that common services accept
    names_per_value: int = 8  # key names tried before one value (`a_key=b_key=c`): bounds the work, one is usual
    secret_max_chars: int = 4_096  # longest assigned value looked at: bounds the work at one place
    key_max_chars: int = 65_536  # longest private key block: a 16,384-bit RSA key in PEM has 13,000
    passes: int = 16  # rescans until nothing more is found; each pass removes a secret, ordinary text takes two


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """Sizes beyond which a request is refused, and budgets of what is always loaded."""

    max_text_chars: int = 8_000_000  # one event or memory; above the 5 MB tool outputs that agents really produce
    # What hooks and transcripts tell is kept with its beginning and its end. Of a tool's output: the first and the last
    # hundred lines hold what it was about and how it ended, and a day of work stays within some megabytes. Of what was
    # said: a quarter of a million words is a pasted file, more is a mistake.
    output_chars: int = 16_000
    spoken_chars: int = 1_000_000
    max_body_bytes: int = 32 * 1024 * 1024  # one HTTP request: a batch of a few large events
    max_import_bytes: int = 256 * 1024 * 1024  # one imported file: transcripts of long sessions pass 50 MB
    max_batch: int = 5_000  # drafts in one request: bounds one transaction to about a second
    max_name_chars: int = 200  # a name is typed by hand
    max_metadata_bytes: int = 65_536  # metadata describes the text; it is not a second text
    max_metadata_depth: int = 32  # deeper nesting is an attack on the parser, not a description
    max_query_chars: int = 8_000  # about the embedding model's window many times over
    identity_tokens: int = 200  # the identity layer's budget, from the layer table of the specification
    active_tokens: int = 500  # the active layer's, likewise
    recall_tokens: int = 2_000  # what one answer may cost an agent's context unless it asks for more
    usual_hits: int = 10  # that the usual budget has room for: a hit's share of it is what a passage may cost
    chars_per_token: float = 3.2  # of code and prose as agents write it: so ten passages fit, with what is quoted
    passage_chars: int = 240  # the least that a passage has: two sentences
    # Of one text in an answer of recall, whatever its budget: forty pages, more than anybody reads in a hit. `get`
    # and the events give the whole.
    hit_chars: int = 200_000
    # Of the texts of one page of memories or events. Making a page of 500 texts of 8 MB took 4 GB and held everybody
    # up; the page ends early instead, and has at least one entry.
    page_chars: int = 4_000_000


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
    title_chars: int = 80  # of a segment's title: one line
    bullets: int = 5  # of a segment or a period, as shown
    kept_bullets: int = 10  # of each period, for the next longer one to choose from
    shown_in_list: int = 2  # bullets of a node among its parent's children: enough to choose by
    keywords: int = 8  # as shown
    kept_keywords: int = 40  # for the next longer period to add up
    around: int = 50  # events to each side of a passage that may be asked for: a screen or two
    same_passage: float = 0.5  # share of stems in common (Jaccard) from which two passages say the same
    step_events: int = 400  # cut between two commits: about a tenth of a second in a thread
    step_sessions: int = 50  # in which they may be: a question each, and most sessions have a dozen events


@dataclass(frozen=True, slots=True, kw_only=True)
class HandingPolicy:
    """What an agent is handed without having asked: little, and only what is likely to help."""

    start_tokens: int = 900  # at a session's start, beside identity and active layer: a page; hosts cut at 2,500
    prompt_tokens: int = 500  # beside a prompt: every one costs it again, so half as much
    rules: int = 6  # of a project and of the person: more are not read as rules
    decisions: int = 6  # the last ones: earlier ones are found by recall
    recalled: int = 4  # beside a prompt: the fifth hit answers seldom
    considered: int = 24  # hits that are looked at for these: the session's own turns are among them, and left out
    # Below these, silence. On 57 sessions of work (14,190 turns) and 288 questions about them, hits from .05 up in
    # answers from .5 up kept 9 in 10 of the answers that .05 alone finds, and spoke half as often beside prompts of
    # other projects. In a small store an answer is never so sure, and one good hit has to do.
    known: float = 0.5  # how likely an answer must be for its lesser hits to be told
    floor: float = 0.05  # how likely a hit must then be to answer
    sure: float = 0.1  # and how likely in any other answer
    line_chars: int = 320  # of one thing: two sentences, and its id for the rest
    prompt_words: int = 2  # of a prompt that is recalled for: "yes" and "continue" ask for nothing
    wait_seconds: float = 0.35  # for recall, within the half second that a hook waits
    kept_days: int = 90  # how long it is known what a session was handed: longer than one is resumed


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonPolicy:
    """How long the daemon waits for what, and how much it logs."""

    start_seconds: float = 150.0  # a start takes 2 s; of a million events without their saved index 25 to 105
    stop_seconds: float = 10.0  # from SIGTERM to SIGKILL: grace, then a checkpoint of the store
    grace_seconds: int = 5  # for requests in flight at SIGTERM; below stop_seconds, to leave time to close the store
    handover_seconds: float = 12.0  # for a predecessor to let go of the store; above stop_seconds
    poll_seconds: float = 0.02  # between looks while starting or stopping: one is a file that is not there yet
    watch_seconds: float = 5.0  # between looks whether store and program are still there: 35 microseconds each
    keep_alive_seconds: int = 75  # an idle connection costs some kilobytes, opening one a millisecond
    log_bytes: int = 2 * 1024 * 1024  # one log file: months of a person's use
    log_files: int = 3  # older logs kept beside it
    log_lines: int = 50  # what `daemon logs` shows unless asked for more


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPolicy:
    """How much background work is done at a time, and how often it is looked for."""

    learn_events: int = 500  # events distilled in one transaction: about a second of work, then others get their turn
    learn_context: int = 4  # events before the first new one: enough for "it" and "that" to find what they mean
    near_candidates: int = 12  # memories with the most words in common that a new one is compared with
    near_tokens: int = 16  # words of a memory that candidates are looked up by: more cost time and find the same
    embed_batch: int = 64  # texts embedded between two commits: about half a second, so a query is never kept waiting
    import_batch: int = 500  # drafts of a file stored in one transaction
    gather_ms: int = 500  # from new work to the job that does it: a turn's events come within this, and nobody waits
    sweep_seconds: int = 60  # how often jobs look for work that nobody announced (after a crash, mostly)
    spool_seconds: int = 5  # how often the spool is looked at: 20 microseconds each, and a file is stored within it
    maintain_seconds: int = 3_600  # how often the file is looked after
    history: int = 50  # runs of a job that are kept: some days of quiet use, half a minute of a large import
    count_log_ms: int = 3_600_000  # a memory's recall count goes into the log at most once an hour: sync sends that log
    unload_seconds: int = 900  # the model leaves memory after a quarter of an hour without a question
    recalled_hits: int = 100  # the most hits of one answer
    neighbours: int = 10  # the most events to each side of a hit
    page: int = 500  # the most entries of one page
    activity_days: int = 30  # of agents' activity, unless asked for other days: a month fits on a screen


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPolicy:
    """How long what a change replaced is kept, so that the change can be taken back."""

    after_request_ms: int = 24 * 3_600_000  # whoever changes a memory by name sees at once whether it was a slip
    after_run_ms: int = 30 * 24 * 3_600_000  # an import or a run of a job is noticed when its memories are next read
    kept_versions: int = 8  # of each field, at most: undoing an undoing needs three, and edits cost by them


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPolicy:
    """How long a model is waited for, and when one that fails is left alone."""

    question_seconds: float = 2.0  # for a server, while somebody waits: a warm one takes 20 to 200 ms; then words alone
    failures: int = 2  # in a row until it is left alone: one lost answer may be chance, two cost a person 4 seconds
    rest_seconds: float = 10.0  # how long it is left alone at first: a server that restarts is back in that time
    rest_most_seconds: float = 300.0  # doubled after each failure up to this: what is down for long is asked seldom


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """All of it. A caller who wants other numbers builds another policy; there is no global."""

    recall: RecallPolicy = RecallPolicy()
    distill: DistillPolicy = DistillPolicy()
    supersession: SupersessionPolicy = SupersessionPolicy()
    compaction: CompactionPolicy = CompactionPolicy()
    routing: RoutingPolicy = RoutingPolicy()
    redact: RedactPolicy = RedactPolicy()
    limits: LimitPolicy = LimitPolicy()
    toc: TocPolicy = TocPolicy()
    handing: HandingPolicy = HandingPolicy()
    daemon: DaemonPolicy = DaemonPolicy()
    work: WorkPolicy = WorkPolicy()
    undo: UndoPolicy = UndoPolicy()
    models: ModelPolicy = ModelPolicy()


DEFAULT = MemoryPolicy()
