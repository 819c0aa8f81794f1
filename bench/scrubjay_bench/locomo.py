"""LoCoMo retrieval: how often the turns or facts that answer a question are among the first five.

P1: documents are the data set's own observations. P2: documents are the raw turns. R@k is the mean over questions of
|retrieved ∩ relevant| / |relevant|, NDCG@k binary; a question searches its own conversation; questions without any
resolvable evidence are left out and counted. The data (CC BY-NC 4.0) is read from a path and never shipped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from scrubjay.index import EventDoc, Index, MemoryDoc
from scrubjay.policy import RecallPolicy
from scrubjay.recall import EVENT, MEMORY, MODES, Filters, Query, rank
from scrubjay_shared import scoring, text
from scrubjay_shared.clock import Millis

Floats = npt.NDArray[np.float32]
MAX_TOKENS = 512  # the model's window
BATCH = 16  # texts of like length at once: larger batches only cost memory on a CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn; `id` is the data set's dia_id, unique within its conversation."""

    id: str
    session: int
    place: int
    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One fact that the data set ships, with the turn it names as its source."""

    id: str
    session: int
    speaker: str
    text: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with the dia_ids of its evidence and its category, 1 to 5."""

    text: str
    evidence: frozenset[str]
    category: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of the data set."""

    name: str
    turns: tuple[Turn, ...]
    observations: tuple[Observation, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> list[Conversation]:
    """Read the data set as published (`locomo10.json`)."""
    return [_conversation(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(entry: dict[str, Any]) -> Conversation:
    said = entry["conversation"]
    sessions = sorted(int(key.split("_")[1]) for key in said if re.fullmatch(r"session_\d+", key))
    turns = tuple(
        Turn(id=turn["dia_id"], session=session, place=place, speaker=turn["speaker"], text=turn["text"])
        for session in sessions
        for place, turn in enumerate(said[f"session_{session}"])
    )
    observations = tuple(
        Observation(id=f"o{session}-{speaker}-{at}", session=session, speaker=speaker, text=fact, source=source)
        for session in sessions
        for speaker, facts in entry["observation"].get(f"session_{session}_observation", {}).items()
        for at, (fact, source) in enumerate(facts)
        if isinstance(source, str)
    )
    questions = tuple(
        Question(text=item["question"], evidence=frozenset(item.get("evidence", ())), category=int(item["category"]))
        for item in entry["qa"]
    )
    return Conversation(name=entry["sample_id"], turns=turns, observations=observations, questions=questions)


class Embedder:
    """The product's default model, straight from its files: CLS pooling, unit rows, cached by text on disk."""

    def __init__(self, model: Path, cache: Path | None) -> None:
        self.sha256 = hashlib.sha256((model / "model.onnx").read_bytes()).hexdigest()
        options = onnxruntime.SessionOptions()
        options.enable_cpu_mem_arena = False
        options.intra_op_num_threads = 2
        self._session = onnxruntime.InferenceSession(str(model / "model.onnx"), options, ["CPUExecutionProvider"])
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._file = cache / f"embeddings-{self.sha256[:16]}.npz" if cache is not None else None
        self._known: dict[str, Floats] = {}
        if self._file is not None and self._file.exists():
            with np.load(self._file) as stored:
                self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return float32 [n, d], unit rows."""
        keys = [hashlib.sha256(t.encode()).hexdigest() for t in texts]
        missing = sorted({k: t for k, t in zip(keys, texts, strict=True) if k not in self._known}.items(), key=_size)
        for at in range(0, len(missing), BATCH):
            batch = missing[at : at + BATCH]
            self._known.update(zip((key for key, _ in batch), self._embed([t for _, t in batch]), strict=True))
        return np.stack([self._known[key] for key in keys])

    def _embed(self, texts: list[str]) -> Floats:
        encoded = self._tokenizer.encode_batch(texts)
        inputs = {
            "input_ids": np.array([e.ids for e in encoded], np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
            "token_type_ids": np.array([e.type_ids for e in encoded], np.int64),
        }
        output = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        rows = np.asarray(output)[:, 0, :]
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def save(self) -> None:
        """Write the cache, if there is one."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._file, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))


def _size(entry: tuple[str, str]) -> int:
    return len(entry[1])


def indexed(conversation: Conversation, embed: Embedder | None, *, turns: bool, facts: bool, linked: bool) -> Index:
    """Return an index of a conversation: its turns as events, its observations as memories, `linked` or not."""
    index = Index()
    documents: list[tuple[str, str]] = []
    if turns:
        documents += [(turn.id, f"[{turn.speaker}] {turn.text}") for turn in conversation.turns]
        index.add_events(
            EventDoc(
                id=turn.id,
                session_id=f"s{turn.session}",
                agent="locomo",
                ts=Millis(turn.session * 1000 + turn.place),
                order=turn.place,
                speaker=turn.speaker,
                type="user_message",
                tokens=" ".join(text.analyse(f"[{turn.speaker}] {turn.text}")),
            )
            for turn in conversation.turns
        )
    if facts:
        documents += [(fact.id, f"[{fact.speaker}] {fact.text}") for fact in conversation.observations]
        index.add_memories(
            MemoryDoc(
                id=fact.id,
                scope="user",
                type="fact",
                kind="observation",
                layer="archive",
                salience=0.5,
                created_at=Millis(fact.session * 1000),
                updated_at=Millis(fact.session * 1000),
                tokens=" ".join(text.analyse(f"[{fact.speaker}] {fact.text}")),
                session_id=f"s{fact.session}",
                sources=(fact.source,) if linked else (),
            )
            for fact in conversation.observations
        )
    if embed is not None and documents:
        index.set_vectors([id_ for id_, _ in documents], *scoring.quantise(embed([t for _, t in documents])))
    return index


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: means over the counted questions, 95% interval by conversation, milliseconds per query."""

    name: str
    recall: float
    ndcg: float
    low: float
    high: float
    counted: int
    left_out: int
    p50: float
    p95: float


def measure(
    name: str,
    conversations: Sequence[Conversation],
    embed: Embedder | None,
    policy: RecallPolicy,
    *,
    k: int,
    mode: str,
    turns: bool,
    facts: bool,
    linked: bool,
    answer: str,
    only: Callable[[Conversation, Question], bool] = lambda _conversation, _question: True,
) -> Row:
    """Ask every question and score the first k of what comes back.

    `answer` says what is counted: "fact", an observation whose source is evidence, or "turn", an evidence turn; with
    both kinds searched, a fact counts as the turn it was read from.
    """
    recalls: list[list[float]] = []
    ndcgs: list[float] = []
    times: list[float] = []
    left_out = 0
    kinds = {MEMORY} if answer == "fact" else {EVENT, MEMORY}
    for conversation in conversations:
        index = indexed(conversation, embed, turns=turns, facts=facts, linked=linked)
        source = {fact.id: fact.source for fact in conversation.observations}
        known = {turn.id for turn in conversation.turns}
        recalls.append([])
        for question in conversation.questions:
            relevant = (
                {id_ for id_, turn in source.items() if turn in question.evidence}
                if answer == "fact"
                else known & question.evidence
            )
            if not relevant or not only(conversation, question):
                left_out += 1
                continue
            query = Query(
                text=question.text,
                tokens=tuple(text.query_tokens(question.text)),
                vector=None if embed is None else embed([question.text])[0],
            )
            begun = time.perf_counter()
            hits = rank(index, query, Filters(kinds=frozenset(kinds)), policy, limit=2 * k, mode=mode).hits
            times.append(1000 * (time.perf_counter() - begun))
            found = [hit.id for hit in hits]
            if answer == "turn":
                found = list(dict.fromkeys(source.get(id_, id_) for id_ in found))
            gains = [1.0 if id_ in relevant else 0.0 for id_ in found[:k]]
            recalls[-1].append(sum(gains) / len(relevant))
            ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(relevant))))
            ndcgs.append(sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / ideal)
    low, high = _interval(recalls)
    everything = [value for one in recalls for value in one]
    return Row(
        name=name,
        recall=float(np.mean(everything)),
        ndcg=float(np.mean(ndcgs)),
        low=low,
        high=high,
        counted=len(everything),
        left_out=left_out,
        p50=float(np.percentile(times, 50)),
        p95=float(np.percentile(times, 95)),
    )


def _interval(by_conversation: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the 95% interval of the mean, drawing whole conversations: questions of one are not independent."""
    draw = np.random.default_rng(0)
    sums = np.array([sum(one) for one in by_conversation])
    sizes = np.array([len(one) for one in by_conversation])
    picks = draw.integers(0, len(sums), (2000, len(sums)))
    means = sums[picks].sum(axis=1) / np.maximum(sizes[picks].sum(axis=1), 1)
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def has_fact(conversation: Conversation, question: Question) -> bool:
    """Whether P1 counts this question too."""
    return any(fact.source in question.evidence for fact in conversation.observations)


def rows(conversations: Sequence[Conversation], embed: Embedder, policy: RecallPolicy, k: int) -> Iterator[Row]:
    """Measure the table that the documentation shows."""
    p1: dict[str, Any] = {"turns": False, "facts": True, "linked": False, "answer": "fact"}
    p2: dict[str, Any] = {"turns": True, "facts": False, "linked": False, "answer": "turn"}
    for mode in MODES:
        yield measure(f"P1 observations, {mode}", conversations, embed, policy, k=k, mode=mode, **p1)
        yield measure(f"P2 turns, {mode}", conversations, embed, policy, k=k, mode=mode, **p2)
    yield measure("P1 observations, no model", conversations, None, policy, k=k, mode="hybrid", **p1)
    yield measure("P2 turns, no model", conversations, None, policy, k=k, mode="hybrid", **p2)
    bare = replace(
        policy,
        event_bm25=policy.event_bm25 + policy.event_bm25_prev,
        event_bm25_prev=0.0,
        event_prev=0.0,
        event_next=0.0,
        event_speaker=0.0,
        event_session=0.0,
    )
    yield measure("P2 turns, no context features", conversations, embed, bare, k=k, mode="hybrid", **p2)
    shared = {**p2, "only": has_fact}
    yield measure("P2 turns, the questions of P1", conversations, embed, policy, k=k, mode="hybrid", **shared)
    with_turns = {**p1, "turns": True, "linked": True}
    yield measure("P1 observations, turns stored too", conversations, embed, policy, k=k, mode="hybrid", **with_turns)
    both = {**p2, "facts": True, "linked": True}
    yield measure("P2 turns, observations stored too", conversations, embed, policy, k=k, mode="hybrid", **both)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="scrubjay_bench.locomo", description="LoCoMo retrieval, P1 and P2.")
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json, from its authors")
    parser.add_argument("--model", type=Path, required=True, help="a folder with model.onnx and tokenizer.json")
    parser.add_argument("--cache", type=Path, help="a folder to keep embeddings in between runs")
    parser.add_argument("--k", type=int, default=5)
    options = parser.parse_args(arguments)
    conversations = load(options.data)
    embed = Embedder(options.model, options.cache)
    print(f"data  sha256 {hashlib.sha256(options.data.read_bytes()).hexdigest()}")
    print(f"model sha256 {embed.sha256}")
    print(f"{'':42} R@{options.k}   NDCG@{options.k} 95% of R     counted left out  p50 ms  p95 ms")
    for row in rows(conversations, embed, RecallPolicy(), options.k):
        print(
            f"{row.name:42} {row.recall:.3f}  {row.ndcg:.3f}  {row.low:.3f}-{row.high:.3f}"
            f"  {row.counted:6} {row.left_out:8}  {row.p50:6.2f}  {row.p95:6.2f}",
            flush=True,
        )
    embed.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
