"""The retrieval benchmark: stores are filled, every configuration is asked every question, rows come out.

Rows are written as they are finished, and a later run takes over those that nothing has changed for: not the data, the
models, the policy, nor the code that ranks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import scrubjay
import scrubjay_shared
from scrubjay import __version__
from scrubjay.models import catalog
from scrubjay.policy import DEFAULT
from scrubjay.settings import NO_MODEL
from scrubjay_bench import measures, protocols
from scrubjay_bench.asking import Answer, ask
from scrubjay_bench.configurations import Measured
from scrubjay_bench.conversations import DataSet, Question
from scrubjay_bench.figures import load, machine
from scrubjay_bench.fillings import Filled, Filling, Keeper
from scrubjay_bench.progress import Steps, steps
from scrubjay_bench.protocols import Protocol
from scrubjay_shared.errors import InvalidError

FORMAT = 1
RANKING = (  # what decides an answer's order, beside the models: a row is measured again when any of it changes
    "scrubjay/retrieval", "scrubjay/index", "scrubjay/service", "scrubjay/models", "scrubjay/dates.py",
    "scrubjay/policy", "scrubjay_shared/scoring.py", "scrubjay_shared/text.py",
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be measured. `k` is the k of intervals and tokens; `earlier` are rows of a run before."""

    data: DataSet
    protocols: tuple[Protocol, ...]
    configurations: tuple[Measured, ...]
    keeper: Keeper
    k: int = 5
    scratch: Path | None = None
    earlier: tuple[Row, ...] = ()

    @property
    def conditions(self) -> dict[str, Any]:
        """What all rows share, as it stands in JSON."""
        here = machine(self.scratch or self.keeper.folder)
        return {
            "data": {"name": self.data.name, "sha256": self.data.sha256},
            "conversations": [conversation.name for conversation in self.data.conversations],
            "model": model_facts(self.keeper.model),
            "reranker": model_facts(self.keeper.reranker),
            "scrubjay": __version__,
            "code": code(),
            "policy": hashlib.sha256(json.dumps(asdict(DEFAULT.recall)).encode()).hexdigest()[:16],
            "machine": here,
            "load": load(),
            "k": self.k,
            "seed": measures.SEED,
            "draws": measures.DRAWS,
        }

    @property
    def under(self) -> str:
        """Return a digest of what a row must share with others to stand in one table with them."""
        names = [conversation.name for conversation in self.data.conversations]
        said = [FORMAT, self.data.sha256, names, model_facts(self.keeper.model), code(), self.k]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def key(self, protocol: Protocol, configuration: Measured, stores: Sequence[str]) -> str:
        """Return what a row on some stores is known by: two rows with the same key say the same."""
        names = [conversation.name for conversation in self.data.conversations]
        said = [
            self.under, protocol.name, configuration.name, configuration.fingerprint(names),
            model_facts(self.keeper.reranker) if configuration.rerank else None, list(stores),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def measured(run: Run, note: Callable[[str], None] = lambda _: None) -> Iterator[Row]:
    """Yield the rows, one protocol and configuration after another. `note` is told what is left out, and why.

    A protocol under which nothing can be counted is left out and said. Raises whatever filling a store raises.
    """
    known = {row.get("key"): row for row in run.earlier}
    under = run.under
    wanted = sorted(run.protocols, key=lambda protocol: run.protocols.index(_first(run.protocols, protocol)))
    questions = sum(len(conversation.questions) for conversation in run.data.conversations)
    groups = [list(group) for _, group in groupby(wanted, key=lambda protocol: protocol.asking)]
    with steps(questions * len(groups) * len(run.configurations)) as progress:
        for group in groups:
            filled: list[Filled] = []
            stores = [run.keeper.name(conversation, group[0].filling) for conversation in run.data.conversations]
            for configuration in run.configurations:
                keys = [run.key(protocol, configuration, stores) for protocol in group]
                if all(key in known for key in keys):
                    progress.step(questions)
                    yield from (known[key] for key in keys)
                    continue
                filled = filled or _filled(run, group[0].filling, progress)
                answers = _asked(run, filled, group[0], configuration, progress)
                if not answers:
                    note(f"{configuration.name}: left out, no reranking model took part")
                    continue
                for protocol, key in zip(group, keys, strict=True):
                    row = _row(run, filled, protocol, configuration, answers)
                    if row is None:
                        note(f"{protocol.name}: left out, no question can be counted")
                    else:
                        yield row | {"under": under, "key": key}


def _first(among: Sequence[Protocol], protocol: Protocol) -> Protocol:
    """Return the first protocol that is answered together with this one."""
    return next(one for one in among if one.asking == protocol.asking)


def _filled(run: Run, filling: Filling, progress: Steps) -> list[Filled]:
    return [run.keeper.filled(conversation, filling, progress.say) for conversation in run.data.conversations]


def _asked(
    run: Run, filled: Sequence[Filled], protocol: Protocol, configuration: Measured, progress: Steps
) -> list[dict[Question, Answer]]:
    """Return the answers by conversation; none when a reranking model was wanted and took no part."""
    answers = []
    for conversation, store in zip(run.data.conversations, filled, strict=True):
        progress.say(f"{protocol.name} {configuration.name}: {conversation.name}")
        answers.append(
            asyncio.run(
                ask(
                    run.keeper,
                    store,
                    conversation,
                    configuration,
                    kinds=protocol.kinds,
                    k=run.k,
                    scratch=run.scratch,
                    step=progress.step,
                )
            )
        )
        if configuration.rerank and not _reranked(answers[-1]):
            return []
        progress.step(sum(bool(question.left_out) for question in conversation.questions))
    return answers


def _reranked(answers: Mapping[Question, Answer]) -> bool:
    return not answers or any(answer.stages.get("rerank", 0) > 0 for answer in answers.values())


def _row(
    run: Run,
    filled: Sequence[Filled],
    protocol: Protocol,
    configuration: Measured,
    answers: Sequence[Mapping[Question, Answer]],
) -> Row | None:
    """Return a row, None where no question can be counted: a distiller that read nothing near the evidence."""
    scores: list[measures.Score] = []
    counted: list[Answer] = []
    out: Counter[str] = Counter()
    for conversation, store, of_one in zip(run.data.conversations, filled, answers, strict=True):
        for question in conversation.questions:
            if reason := protocol.out(conversation, question, store.documents):
                out[reason] += 1
                continue
            answer = of_one[question]
            scores.append(
                measures.score(
                    conversation.name,
                    question.category,
                    protocol.units(conversation, store.documents, answer.hits),
                    protocol.relevant(conversation, question, store.documents),
                    run.k,
                )
            )
            counted.append(answer)
    if not scores:
        return None
    documents = sum(len(store.documents.texts) for store in filled)
    stages = sorted({stage for answer in counted for stage in answer.stages})
    row = {
        "protocol": protocol.name,
        "configuration": configuration.name,
        "model": run.keeper.model,
        "left_out": dict(sorted(out.items())),
        "conversations": len(run.data.conversations),
        **measures.summary(scores, run.k, macro=protocol.macro),
        "latency_ms": measures.latency([answer.ms for answer in counted])
        | {"stages": {stage: measures.latency([one.stages.get(stage, 0.0) for one in counted]) for stage in stages}},
        "tokens": {"k": run.k, "mean": round(sum(answer.tokens for answer in counted) / len(counted), 1)},
        "documents": documents,
        "bytes_per_document": round(sum(store.documents.bytes for store in filled) / max(documents, 1)),
        "policy": configuration.fingerprint([conversation.name for conversation in run.data.conversations]),
    }
    if protocol.filling is Filling.LEARNED:
        stores = [(one, store.documents) for one, store in zip(run.data.conversations, filled, strict=True)]
        row["coverage"] = {
            name: value if isinstance(value, int) else round(value, measures.DIGITS)
            for name, value in asdict(protocols.coverage(stores)).items()
        }
    return row


def cut(data: DataSet, places: Sequence[int]) -> DataSet:
    """Return a data set with some conversations only, counted from 1. Raises InvalidError for one that is not there."""
    if not places:
        return data
    if bad := [place for place in places if not 1 <= place <= len(data.conversations)]:
        raise InvalidError(f"no conversation {bad[0]}", hint=f"1 to {len(data.conversations)}")
    chosen = tuple(data.conversations[place - 1] for place in dict.fromkeys(places))
    return DataSet(name=data.name, sha256=data.sha256, conversations=chosen)


def model_facts(name: str) -> dict[str, str] | None:
    """Return a model's name and the SHA-256 of its network; None for none. One that runs elsewhere has no digest."""
    if name == NO_MODEL:
        return None
    known = catalog.MODELS.get(name)
    return {"name": name, "sha256": "" if known is None else known.files[0].sha256}


def code(names: Sequence[str] = RANKING) -> str:
    """Return a digest of some modules, by default of those that decide an answer's order."""
    roots = {package.__name__: Path(str(package.__file__)).parent for package in (scrubjay, scrubjay_shared)}
    digest = hashlib.sha256()
    for name in names:
        package, _, module = name.partition("/")
        place = roots[package] / module
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
