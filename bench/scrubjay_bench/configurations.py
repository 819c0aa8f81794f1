"""Ways to search, as values: the product's default, the baselines beside it, and the default less one feature each.

A configuration is what a user could choose (a policy, a mode, with the reranker or without). What no policy can say,
the reciprocal ranks and the formula of 002 as published, is `Fused` here from what such configurations return.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scrubjay.api import Mode
from scrubjay.policy import DEFAULT, RecallPolicy
from scrubjay_shared.errors import InvalidError

RANKED = 50  # hits asked for: what R@50 needs
EVERY = 100_000  # all that match
RRF_K = 60  # Cormack, Clarke & Büttcher, SIGIR 2009
RRF_DEPTH = 100
PUBLISHED_COSINE, PUBLISHED_TOKENS = 0.8, 0.2  # the weights of 002

FEATURES: dict[str, dict[str, float]] = {  # a feature of the default, and what its fields are when it is off
    "dense": {"own_dense": 0, "event_dense": 0, "memory_dense": 0},
    "bm25": {"lexical": 0},
    "words before": {"event_bm25_before": 0, "event_bm25": 0.5},
    "turns beside": {"event_before": 0, "event_after": 0},
    "session": {"event_session": 0, "memory_session": 0},
    "speaker": {"event_speaker": 0},
    "question marks": {"event_asks": 0},
    "length": {"event_length": 0},
    "when": {"event_when": 0, "memory_when": 0},
    "how many": {"event_count": 0},
    "grips": {"event_credit": 0, "memory_source": 0, "memory_sourced": 1},
    "dates": {"date": 0},
    "asks for now": {"outdated": 0},
    "kinds of turns": {"narration": 0, "output": 0},
    "salience": {"salience": 0},
}
PARAMETERS = frozenset(  # fields that add nothing by themselves, or take no part in mode hybrid
    {
        "own_bm25", "memory_bm25", "k1", "long_tokens", "window_tokens", "window_turns",
        "beside", "usual_tokens", "merged_sources", "salience_spread", "salience_band",
        "event_answers",  # off in the default; `scrubjay bench fit` may turn it on
        "relevance",  # merges memories and events; no row of one kind depends on it
        "agent_work",  # weighs stores of work with agents; these data sets are people's talk
        "judged_hits", "rerank_memories", "rerank_likely", "rerank_reach",
        "phrasings", "showing",  # several phrasings of one question, and how hits are shown
        "rerank", "rerank_hits", "rerank_words", "rerank_before",  # the row with the reranker beside the one without
        # `scrubjay bench run scale` compares these with an exhaustive search:
        "exhaustive", "candidates", "seeds", "seeds_share",
        "outdated_cosine", "outdated_among",
        "mentioned", "topic",  # likewise
        "named",  # a question that is a memory's name; no data set asks one
        "keyword_k1", "keyword_b", "cosine_weight", "token_weight", "topic_threshold", "min_topic_filter_size",
    }
)  # fmt: skip

Ranks = Sequence["Scored"]
Combine = Callable[[str, Sequence[Ranks]], list["Scored"]]
"""The question and a ranking of each part in; one ranking out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A document and its score. Scores are comparable within one ranking."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to ask the service. `fitted`, where given, has a policy for each conversation, not fitted on it.

    `limit` is how many hits are asked for.
    """

    name: str
    meaning: str
    policy: RecallPolicy = DEFAULT.recall
    mode: Mode = Mode.HYBRID
    rerank: bool = False
    fitted: Callable[[str], RecallPolicy] | None = None
    limit: int = RANKED

    @property
    def parts(self) -> tuple[Configuration, ...]:
        """What the service is asked: this."""
        return (self,)

    def policy_for(self, conversation: str) -> RecallPolicy:
        """Return the policy to ask about a conversation with."""
        return self.policy if self.fitted is None else self.fitted(conversation)

    def fingerprint(self, conversations: Iterable[str]) -> str:
        """Return a digest of all that makes this configuration what it is, on some conversations."""
        said = {"mode": self.mode.value, "rerank": self.rerank, "limit": self.limit}
        policies = [asdict(self.policy_for(name)) for name in (conversations if self.fitted else ("",))]
        return hashlib.sha256(json.dumps([said, policies], sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """Rankings of several configurations made into one by `combine`, which is given the documents of a store first."""

    name: str
    meaning: str
    parts: tuple[Configuration, ...]
    combine: Callable[[Mapping[str, str]], Combine]
    version: int = 1  # raised when `combine` computes otherwise

    @property
    def rerank(self) -> bool:
        """Whether a part needs the reranking model."""
        return any(part.rerank for part in self.parts)

    def fingerprint(self, conversations: Iterable[str]) -> str:
        """Return a digest of all that makes this configuration what it is, on some conversations."""
        names = tuple(conversations)
        said = [self.name, self.version, [part.fingerprint(names) for part in self.parts]]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


Measured = Configuration | Fused


def less(policy: RecallPolicy, *features: str) -> RecallPolicy:
    """Return a policy with some features off."""
    off: dict[str, Any] = {name: value for feature in features for name, value in FEATURES[feature].items()}
    return replace(policy, **off)


NOTHING = less(DEFAULT.recall, *FEATURES)
PLAIN = "default"
RERANKED = "default + reranker"
_COSINE = Configuration(
    name="dense", meaning="cosine alone", policy=replace(NOTHING, event_dense=1.0, memory_dense=1.0)
)
_BM25 = Configuration(
    name="bm25",
    meaning="BM25 alone, k1 .9 and b 0: as the default counts it",
    policy=replace(DEFAULT.recall, keyword_k1=DEFAULT.recall.k1, keyword_b=0.0),
    mode=Mode.KEYWORD,
)


# --- fusions that no policy can say -----------------------------------------------------------------------------------


def reciprocal_ranks(_: Mapping[str, str]) -> Combine:
    """Return reciprocal-rank fusion: the sum over rankings of 1 / (k + rank), rank from 1."""

    def combine(_: str, rankings: Sequence[Ranks]) -> list[Scored]:
        scores: dict[str, float] = {}
        for ranking in rankings:
            for rank, one in enumerate(ranking[:RRF_DEPTH], start=1):
                scores[one.id] = scores.get(one.id, 0.0) + 1 / (RRF_K + rank)
        return in_order(scores)

    return combine


# As published: words between white space and punctuation, of two letters or more, not stemmed, less these.
_STOP_TEXT = """
a an and are as at be been but by did do does for from had has have he how i if in is it its me my no not of on or she
so that the they this to was we what when where which who with you your
"""
PUBLISHED_STOP_WORDS = frozenset(_STOP_TEXT.split())
_BETWEEN_WORDS = re.compile(r"[^\w$+<=>^`|~]+|_+")  # white space and punctuation; the signs left in are symbols


def published_tokens(words: str) -> frozenset[str]:
    """Return the distinct tokens of a text by the rules of 002.

    >>> sorted(published_tokens("[Ada] What's the boat's name?"))
    ['ada', 'boat', 'name']
    """
    return frozenset(
        word for word in _BETWEEN_WORDS.split(words.lower()) if len(word) > 1 and word not in PUBLISHED_STOP_WORDS
    )


def published_formula(documents: Mapping[str, str]) -> Combine:
    """Return .8 cosine + .2 of the query's tokens that the document holds, by idf ln(n/df) + 1 (1 for unheld ones)."""
    tokens = {id_: published_tokens(words) for id_, words in documents.items()}
    held = Counter(token for found in tokens.values() for token in found)
    idf = {token: math.log(len(tokens) / df) + 1 for token, df in held.items()}

    def combine(question: str, rankings: Sequence[Ranks]) -> list[Scored]:
        wanted = {token: idf.get(token, 1.0) for token in published_tokens(question)}
        total = sum(wanted.values()) or 1.0
        cosines = {one.id: one.score for one in rankings[0]}
        return in_order(
            {
                id_: PUBLISHED_COSINE * cosine
                + PUBLISHED_TOKENS * sum(weight for token, weight in wanted.items() if token in tokens[id_]) / total
                for id_, cosine in cosines.items()
            }
        )

    return combine


def in_order(scores: Mapping[str, float]) -> list[Scored]:
    """Return documents by falling score; among equals in the order given."""
    return [Scored(id=id_, score=score) for id_, score in sorted(scores.items(), key=lambda one: -one[1])]


# --- all of them ------------------------------------------------------------------------------------------------------

MAIN: tuple[Measured, ...] = (
    Configuration(name=PLAIN, meaning="as it ships, without the reranking model"),
    Configuration(name=RERANKED, meaning="as it ships, with the reranking model", rerank=True),
)
BASELINES: tuple[Measured, ...] = (
    _COSINE,
    _BM25,
    Configuration(name="bm25 1.2/.75", meaning="BM25 alone with its customary parameters", mode=Mode.KEYWORD),
    Fused(
        name="002 formula",
        meaning=".8 cosine + .2 idf-weighted token overlap, tokens as 002 published them",
        parts=(
            Configuration(
                name="cosines",
                meaning="the cosine of every document",
                policy=replace(DEFAULT.recall, cosine_weight=1.0, token_weight=0.0, date=0.0),
                mode=Mode.WEIGHTED,
                limit=EVERY,
            ),
        ),
        combine=published_formula,
    ),
    Configuration(name="weighted", meaning="the same formula as the product has it: stems, dates", mode=Mode.WEIGHTED),
    Fused(
        name="rrf",
        meaning="reciprocal ranks (k = 60) of the first 100 of dense and bm25",
        parts=(replace(_COSINE, limit=RRF_DEPTH), replace(_BM25, limit=RRF_DEPTH)),
        combine=reciprocal_ranks,
    ),
    Configuration(
        name="dense + bm25",
        meaning="the default's own score of a document, with nothing of its context",
        policy=replace(
            NOTHING,
            lexical=DEFAULT.recall.lexical,
            event_dense=0.5,
            event_bm25=0.5,
            memory_dense=DEFAULT.recall.memory_dense,
        ),
    ),
)
ABLATIONS: tuple[Measured, ...] = tuple(
    Configuration(
        name=f"default - {feature}",
        meaning=f"as it ships, without the reranking model and without: {feature}",
        policy=less(DEFAULT.recall, feature),
    )
    for feature in FEATURES
)
GROUPS: dict[str, tuple[Measured, ...]] = {
    "main": MAIN,
    "baselines": BASELINES,
    "ablations": ABLATIONS,
    "all": (*MAIN, *BASELINES, *ABLATIONS),
}
USUAL = ("main", "baselines")


def learned(policies: Callable[[str], RecallPolicy], *, rerank: bool) -> tuple[Configuration, ...]:
    """Return the rows with fitted weights, each conversation's fitted on the others; with the reranker if `rerank`."""
    meaning = "weights fitted on the other conversations"
    plain = Configuration(name="learned", meaning=f"{meaning}, without the reranking model", fitted=policies)
    if not rerank:
        return (plain,)
    return plain, replace(plain, name="learned + reranker", meaning=f"{meaning}, with the reranking model", rerank=True)


def named(names: Iterable[str]) -> tuple[Measured, ...]:
    """Return configurations by name or group, each once. Raises InvalidError for a name that nothing bears."""
    known = {one.name: one for one in GROUPS["all"]}
    found: dict[str, Measured] = {}
    for name in names:
        if name not in GROUPS and name not in known:
            raise InvalidError(
                f"no configuration is called {name}", hint=f"groups: {', '.join(GROUPS)}; names: {'; '.join(known)}"
            )
        found |= {one.name: one for one in GROUPS.get(name) or (known[name],)}
    return tuple(found.values())
