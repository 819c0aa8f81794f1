"""What counts in recall, in a route through time, and in what an agent is handed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from scrubjay.policy.working import AgentWorkPolicy
from scrubjay_shared.errors import InvalidError


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowingPolicy:
    """How the budget of an answer is shared out among its hits (`scrubjay.service.recall_hits`)."""

    first_hits: int = 3  # are shown at length: an answer is mostly among them
    first: float = 3.0  # so many times what each of the others has, where not all have room
    output: float = 0.5  # of a tool's output, which answers one question in 470
    whole: int = (
        150  # tokens of a memory up to which it is told whole, whatever is left; a longer one is cut like a turn
    )
    least: int = 60  # tokens that a hit has at least, or all that it needs: two sentences. Without, it is left out
    beside: float = 0.35  # what else is told beside a turn has of the room, against the turn
    beside_least: int = 25  # tokens of that: below, a dozen words that begin in the middle say nothing


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
    # Of work, a memory that was read from a turn must be so likely: poorer ones are fragments, which the model orders
    # worse than they were.
    rerank_likely: float = 0.1
    rerank_memories: int = 12  # of work with an agent: from 10 to 24 the same, of 6 five hits hold .03 less
    rerank_reach: float = (
        4.0  # where people talk: a lead that is not taken back; logits of ten hits are 13 apart at most
    )
    rerank_words: int = 40  # of an event and what was said before it together; a longer event is read alone
    rerank_before: int = 24  # words before the event, at most
    # Of several phrasings, a hit's worth is the sum of 1 / (this + its place): the first of one list stands beside the
    # eighth of two. With 60, the customary value, what all find a little beat what the question itself found first.
    phrasings: float = 6.0
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
    salience: float = 0.3  # of a memory at the end of the band below: what helped settles near ties, and no more
    salience_spread: float = 0.05  # from the usual salience of its type: so far memories of a type differ by themselves
    salience_band: float = 0.1  # beyond that: feedback moves no memory farther
    topic: float = 0.5  # the question names its topic: to settle near ties, for topics are wide
    date: float = 3.0  # within a date that the question speaks of: who names a day mostly means it
    cosine_weight: float = 0.8  # mode weighted, from its specification
    token_weight: float = 0.2
    topic_threshold: float = (
        0.6  # cosine of query and topic label; unrelated words are at 0.4-0.55 in the default model
    )
    min_topic_filter_size: int = 5  # with fewer candidates than a usual answer has, there is nothing to choose from
    relevance: RelevancePolicy = RelevancePolicy()
    agent_work: AgentWorkPolicy = field(default_factory=AgentWorkPolicy)
    showing: ShowingPolicy = ShowingPolicy()


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
class HandingPolicy:
    """What an agent is handed without having asked: little, and only what is likely to help."""

    # Tokens as models count them (`retrieval.handing.usual_tokens`), as hosts and bills do.
    start_tokens: int = 350  # at a session's start, beside identity and active layer: a dozen lines, read every time
    brief_tokens: int = 200  # of these, the project's brief; the rest is the person's, and what was left open
    prompt_tokens: int = 500  # beside a prompt: it is known what is asked, so more may be told of it
    start_line_chars: int = 200  # of one thing at a start: a sentence; who wants the rest asks for it
    # How likely it must be that a reader would have a line told (`scrubjay.handing.worth`). Of people left out of the
    # fit, two lines in three above this are; a start of a project that has none says nothing.
    worth_floor: float = 0.4
    # Power of a line's length that its worth is divided by. Of people left out, .56 of the lines of a start were right
    # with .5 and .7, .48 with 0 and .54 with 1, and of what must be remembered .14 and .15 were told, not .12.
    thrift: float = 0.6
    shortest_chars: int = 40  # from which on shorter is no better: fewer words say too little
    sureness: float = 2.0  # by how much its logit grows with how sure it was read: of others .59 right, not .54, of ten
    usual_confidence: float = 0.45  # of what is learned
    # Said outright ("I prefer …", "we decided …", "never …"): the people of the fit seldom speak so, and are right in
    # four of ten where they do; what reads like an order of the moment all the same is none.
    outright_worth: float = 0.5
    outright_least: float = 0.15
    chosen_worth: float = 0.8  # of what was written down or accepted, however it reads: somebody chose it to be kept
    lesser_trust: float = 0.6  # what is left of the worth of words that are not the person's own
    used_bonus: float = 0.5  # by how much a memory is worth more that was used …
    used_full: float = 3.0  # … in so many sessions
    salience: float = 1.0  # by how much more for each point of salience that feedback, or somebody, gave it
    salience_spread: float = 0.05  # beyond what is usual for its kind: so far memories of a kind differ by themselves
    looked_over: int = 24  # lines that are put in order, of a project and beside it: twice what the budget holds
    unused_sessions: int = 20  # that were told a fact or a decision without using it: it is told no more
    looked_at: int = 600  # memories of a project that are weighed for its starts, and rules of the person: years
    recalled: int = 4  # beside a prompt: the fifth hit answers seldom
    considered: int = 24  # hits that are looked at for these: the session's own turns are among them, and left out
    # Below these, silence. On 57 sessions of work (14,190 turns) and 288 questions about them, hits from .05 up in
    # answers from .5 up kept 9 in 10 of the answers that .05 alone finds, and spoke half as often beside prompts of
    # other projects. In a small store an answer is never so sure, and one good hit has to do.
    known: float = 0.5  # how likely an answer must be for its lesser hits to be told
    floor: float = 0.05  # how likely a hit must then be to answer
    sure: float = 0.1  # and how likely in any other answer
    # What the reranking model reads beside a prompt, where it is loaded. Of twenty prompts in invented weeks of work,
    # what bears on eight is then told, with noise beside two; without it on six, with noise beside five.
    read: int = 6  # hits: some hundredths of a second
    read_chars: int = 300  # of one: two or three sentences; a longer one takes ten times as long
    read_floor: float = 0.01  # how likely a hit must be to be read
    bears: float = -9.6  # logit from which a hit bears on a prompt …
    bears_within: float = 3.0  # … and how far below the best of them
    twice_seconds: float = 10.0  # in which an event that hooks of two registrations bring is one: both start at once
    line_chars: int = 320  # of one thing: two sentences, and its id for the rest
    prompt_words: int = 2  # of a prompt that is recalled for: "yes" and "continue" ask for nothing
    wait_seconds: float = 0.35  # for recall, within the half second that a hook waits
    kept_days: int = 365  # how long it is known what a session was handed: longer than one is resumed, or twenty take
