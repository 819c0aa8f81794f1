"""`scrubjay bench fit`: weights of the recipe fitted to a data set, each conversation's without a look at it.

The service is asked every question with every feature on; the parts of a hit's score, divided by their weights, are its
features. Weights are fitted by a listwise softmax over each question's hits: the likelihood of the right ones, in equal
shares. For every conversation they are fitted on all others, and those are what a row of the benchmark may use about
it (`fold`); a user's `recall_weights` are those fitted on all. The weight of the reranking model is chosen last, from a
few round numbers, likewise on the other conversations alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from scrubjay import api
from scrubjay.api.caller import PERSON
from scrubjay.policy import DEFAULT, RecallPolicy, RecallWeights, weighted
from scrubjay_bench.asking import NO_BUDGET
from scrubjay_bench.conversations import Conversation, DataSet
from scrubjay_bench.fillings import Documents, Filled, Keeper
from scrubjay_bench.progress import Steps, steps
from scrubjay_bench.protocols import EVENTS, Protocol
from scrubjay_shared.errors import CorruptError, InvalidError, NotFoundError

Doubles = npt.NDArray[np.float64]

DEPTH = 100  # hits of a question that take part: the most that one answer holds
STEPS = 300
RATE = 0.05
L2 = 1e-3  # on standardised features: keeps apart what always comes together
RERANKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_EVENT = {  # a part of a score, the weight that it is multiplied by, and the sign of that
    "dense": ("event_dense", 1),
    "bm25": ("event_bm25", 1),
    "bm25_before": ("event_bm25_before", 1),
    "before": ("event_before", 1),
    "after": ("event_after", 1),
    "session": ("event_session", 1),
    "speaker": ("event_speaker", 1),
    "asks": ("event_asks", -1),
    "answers": ("event_answers", 1),
    "when": ("event_when", 1),
    "count": ("event_count", 1),
    "length": ("event_length", 1),
    "date": ("date", 1),
}
_MEMORY = {
    "dense": ("memory_dense", 1),
    "bm25": ("memory_bm25", 1),
    "session": ("memory_session", 1),
    "source": ("memory_source", 1),
    "when": ("memory_when", 1),
    "date": ("date", 1),
}
EVERYTHING = replace(DEFAULT.recall, event_answers=0.2)
ALL = ""
"""The fold of no conversation: fitted on all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is fitted to: a data set asked by one protocol, for one kind of hit, in kept stores."""

    data: DataSet
    protocol: Protocol
    keeper: Keeper
    scratch: Path | None

    def filled(self, conversation: Conversation, progress: Steps) -> Filled:
        """Return the store of a conversation, made unless it is there."""
        return self.keeper.filled(conversation, self.protocol.filling, progress.say)

    @property
    def features(self) -> dict[str, tuple[str, int]]:
        """What is fitted. Raises InvalidError where hits of two kinds would need two sets of weights at once."""
        if len(self.protocol.kinds) > 1:
            raise InvalidError(f"{self.protocol.name} asks for two kinds of hits", hint="fit to P2, or to P1")
        return _EVENT if self.protocol.kinds == EVENTS else _MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What came back for one question: features [n, f], which hits are right, how many right ones there are."""

    features: Doubles
    right: npt.NDArray[np.bool_]
    relevant: int


def fitted(task: Task) -> RecallWeights:
    """Return weights for each conversation of a data set, fitted on the others, and under "" on all.

    Raises InvalidError with fewer than two conversations: nothing would be left to fit on.
    """
    data = task.data
    if len(data.conversations) < 2:
        raise InvalidError("weights need two conversations at least", hint="leave out --conversations")
    with steps(sum(len(c.questions) for c in data.conversations)) as progress:
        asked = {
            one.name: asyncio.run(_asked(task, one, task.filled(one, progress), progress)) for one in data.conversations
        }
    folds = {}
    for name in (ALL, *asked):
        weights = softmax_fit([hits for other, found in asked.items() if other != name for hits in found])
        named = {
            field: round(sign * float(w), 4) for (field, sign), w in zip(task.features.values(), weights, strict=True)
        }
        # A score's own scale means nothing alone; on the default's, the reranker's weight can be compared.
        dense = task.features["dense"][0]
        size = getattr(DEFAULT.recall, dense) / max(abs(named[dense]), 1e-6)
        folds[name] = {field: round(size * value, 4) for field, value in named.items()}
    return RecallWeights(
        data=data.name,
        data_sha256=data.sha256,
        protocol=task.protocol.name,
        model=task.keeper.model,
        weights=folds.pop(ALL),
        folds=folds,
    )


def reranked(found: RecallWeights, task: Task) -> RecallWeights:
    """Return the same weights with one for the reranking model, chosen for each conversation on the others.

    Raises NotFoundError when no reranking model takes part.
    """
    data = task.data
    read: dict[str, list[tuple[Doubles, Doubles, Hits]]] = {}
    with steps(sum(len(c.questions) for c in data.conversations)) as progress:
        for one in data.conversations:
            policy = replace(weighted(DEFAULT.recall, found.folds[one.name]), rerank=1.0)
            read[one.name] = asyncio.run(_logits(task, one, task.filled(one, progress), policy, progress))

    def best(names: Sequence[str]) -> float:
        def worth(weight: float) -> float:
            return float(np.mean([_worth(base + weight * logit, hits) for n in names for base, logit, hits in read[n]]))

        return max(RERANKS, key=worth)

    folds = {name: {**weights, "rerank": best([n for n in read if n != name])} for name, weights in found.folds.items()}
    return replace(found, weights={**found.weights, "rerank": best(list(read))}, folds=folds)


def softmax_fit(questions: Sequence[Hits]) -> Doubles:
    """Return the weights that make the right hits of each question likeliest, by Adam on standardised features."""
    useful = [hits for hits in questions if hits.right.any() and not hits.right.all()]
    if not useful:
        raise InvalidError("no question has a right hit among its first", hint="is the model installed?")
    every = np.concatenate([hits.features for hits in useful])
    mean, deviation = every.mean(axis=0), every.std(axis=0)
    deviation[deviation < 1e-9] = np.inf  # a feature that never differs gets no weight
    width = max(len(hits.right) for hits in useful)
    count = every.shape[1]
    x = np.zeros((len(useful), width, count))
    y = np.zeros((len(useful), width))
    there = np.zeros((len(useful), width), np.bool_)
    for at, hits in enumerate(useful):
        n = len(hits.right)
        x[at, :n] = (hits.features - mean) / deviation
        y[at, :n] = hits.right / hits.right.sum()
        there[at, :n] = True
    w, first, second = np.full(count, 0.3), np.zeros(count), np.zeros(count)
    for step in range(1, STEPS + 1):
        scores = np.where(there, x @ w, -np.inf)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        gradient = np.einsum("qn,qnf->f", odds - y, x) / len(useful) + L2 * w
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        w = w - RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return np.asarray(w / deviation, np.float64)


def read(path: Path) -> RecallWeights:
    """Return the weights that `scrubjay bench fit` wrote. Raises NotFoundError, or CorruptError for another file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecallWeights)
    except FileNotFoundError:
        raise NotFoundError(f"{path.name} is not there", hint="scrubjay bench fit writes it") from None
    except msgspec.DecodeError as error:
        raise CorruptError(f"{path.name} holds no weights: {error}", hint="scrubjay bench fit writes them") from error


def policies(found: RecallWeights, data: DataSet) -> Callable[[str], RecallPolicy]:
    """Return what gives each conversation the policy that was fitted without it.

    Raises InvalidError when the weights were fitted to other data: the row would not be what it says.
    """
    if found.data_sha256 != data.sha256:
        raise InvalidError("the weights were fitted to other data", hint="scrubjay bench fit --data PATH")
    return lambda name: weighted(DEFAULT.recall, found.folds[name])


async def _asked(task: Task, conversation: Conversation, filled: Filled, progress: Steps) -> list[Hits]:
    protocol, keeper, policy = task.protocol, task.keeper, EVERYTHING
    found = []
    async with keeper.opened(filled, lambda: conversation.end, task.scratch) as service:
        service.policy = replace(service.policy, recall=policy)
        for question in conversation.questions:
            progress.step()
            if protocol.out(conversation, question, filled.documents):
                continue
            relevant = protocol.relevant(conversation, question, filled.documents)
            answer = await service.call(PERSON, "recall", _request(question.text, protocol, rerank=False))
            weights = [sign * float(getattr(policy, field)) for field, sign in task.features.values()]
            features = np.array([[hit.parts.get(part, 0.0) for part in task.features] for hit in answer.hits])
            right = [_found(hit.id, filled.documents) in relevant for hit in answer.hits]
            found.append(
                Hits(features=features / np.array(weights), right=np.array(right, np.bool_), relevant=len(relevant))
            )
    return found


async def _logits(
    task: Task, conversation: Conversation, filled: Filled, policy: RecallPolicy, progress: Steps
) -> list[tuple[Doubles, Doubles, Hits]]:
    protocol, keeper = task.protocol, task.keeper
    found = []
    async with keeper.opened(filled, lambda: conversation.end, task.scratch) as service:
        service.policy = replace(service.policy, recall=policy)
        for question in conversation.questions:
            progress.step()
            if protocol.out(conversation, question, filled.documents):
                continue
            relevant = protocol.relevant(conversation, question, filled.documents)
            answer = await service.call(PERSON, "recall", _request(question.text, protocol, rerank=True))
            if not answer.stages_ms["rerank"]:
                raise NotFoundError("no reranking model took part", hint="scrubjay models pull")
            hits = answer.hits[: policy.rerank_hits]
            logits = np.array([hit.parts.get("rerank", 0.0) for hit in hits])
            right = np.array([_found(hit.id, filled.documents) in relevant for hit in hits], np.bool_)
            base = np.array([hit.score for hit in hits]) - logits
            found.append((base, logits, Hits(features=np.zeros((0, 0)), right=right, relevant=len(relevant))))
    return found


def _found(id_: str, documents: Documents) -> str:
    """Return what a hit counts as: an event as its turn, a memory as itself."""
    return documents.turns.get(id_, id_)


def _request(question: str, protocol: Protocol, *, rerank: bool) -> api.RecallRequest:
    return api.RecallRequest(query=question, limit=DEPTH, kinds=protocol.kinds, max_tokens=NO_BUDGET, rerank=rerank)


def _worth(scores: Doubles, hits: Hits, k: int = 5) -> float:
    """Return the mean of R@k and NDCG@k, which is what the weight of the reranker is chosen by."""
    gains = hits.right[np.argsort(-scores, kind="stable")[:k]]
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = float(discounts[: min(k, hits.relevant)].sum())
    return float(gains.sum() / hits.relevant + (gains * discounts[: len(gains)]).sum() / ideal) / 2
