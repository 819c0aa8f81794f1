"""Fits what tells whether a statement is worth telling unasked (`scrubjay.handing.worth`), and shows how it does.

`python -m scrubjay_bench.fit_worth SENTENCES.jsonl MODELS_DIR OUT.json [--without PERSON]`

Each line of the file is a turn of a person: `{person, text, sentences: [{start, end, code}]}`. A code that begins with
K is worth it, K3 twice as much. Every person weighs the square root of what they said, so that who said most does not
decide alone. With --without, one is left out of the fit, to be tried on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrubjay.distill.observe import distill
from scrubjay.distill.reading import Reader
from scrubjay.handing.features import FEATURES, features
from scrubjay.models import catalog, reading
from scrubjay.models.onnx import OnnxEmbedder
from scrubjay_shared.clock import Millis
from scrubjay_shared.records import Event, EventType, Role, Trust

Matrix = NDArray[np.float64]

FORM_RIDGE, MEANING_RIDGE = 100.0, 600.0
"""How much large weights cost. Between a third and three times as much changes little on people left out."""
LEAST_WORDS, MOST_CHARS = 4, 400
"""Of a sentence that is fitted to: what is learned has as many."""


def ridge(rows: Matrix, right: Matrix, share: Matrix, cost: float) -> tuple[Matrix, float]:
    """Return the weights and the offset of a logistic regression on some rows, as they are measured."""
    mean, scale = rows.mean(0), rows.std(0) + 1e-6
    full = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    costs = np.eye(full.shape[1]) * cost
    costs[-1, -1] = 1e-6
    found = np.zeros(full.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(full @ found, -30, 30)))
        slope = full.T @ (share * (chance - right)) + costs @ found
        curve = (full * (share * chance * (1 - chance))[:, None]).T @ full + costs
        step = np.linalg.solve(curve, slope)
        found -= step
        if float(np.abs(step).max()) < 1e-6:
            break
    weights = found[:-1] / scale
    return weights, float(found[-1] - weights @ mean)


def curve_of(said: Matrix, right: Matrix, share: Matrix) -> tuple[float, float]:
    """Return the slope and the offset that make chances of what a model says."""
    weights, offset = ridge(said[:, None], right, share, 1e-3)
    return round(float(weights[0]), 4), round(offset, 4)


def main(arguments: list[str]) -> None:
    """Fit, and write the file."""
    parser = argparse.ArgumentParser(prog="scrubjay_bench.fit_worth")
    parser.add_argument("sentences", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", action="append", default=[])
    line = parser.parse_args(arguments)
    model = catalog.EMBEDDERS["bge-small-en-v1.5"]
    embedder = OnnxEmbedder(model, line.models / model.name, threads=1)
    turns = [json.loads(one) for one in line.sentences.read_text(encoding="utf-8").splitlines()]
    turns = [turn for turn in turns if turn["person"] not in line.without]
    people, texts, codes = _sentences(turns)
    forms = np.array([features(text) for text in texts])
    meanings = np.array(embedder.embed(texts), np.float64)
    right = np.array([code.startswith("K") for code in codes], np.float64)
    weights = np.array([2.0 if code.startswith("K3") else 1.0 for code in codes])

    def fit(rows: Matrix, cost: float, among: NDArray[np.bool_]) -> Matrix:
        return ridge(rows[among], right[among], _shares(people[among]) * weights[among], cost)[0]

    everybody = np.ones(len(people), bool)
    form, meaning = fit(forms, FORM_RIDGE, everybody), fit(meanings, MEANING_RIDGE, everybody)
    # The curves are of what is learned, where the distiller has passed over most of what is not worth it, and of people
    # who were left out: of its own a fit says too much.
    learned_of, learned, kept = _learned(turns, reading.load())
    learned_forms = np.array([features(text) for text in learned])
    learned_meanings = np.array(embedder.embed(learned), np.float64)
    by_form, by_both = np.zeros(len(learned)), np.zeros(len(learned))
    for person in sorted(set(learned_of)):
        others, own = people != person, learned_of == person
        by_form[own] = learned_forms[own] @ fit(forms, FORM_RIDGE, others)
        by_both[own] = by_form[own] + learned_meanings[own] @ fit(meanings, MEANING_RIDGE, others)
    shares = _shares(learned_of)
    found = {
        "space": model.space,
        "features": list(FEATURES),
        "form": [round(float(one), 4) for one in form],
        "meaning": [round(float(one), 3) for one in meaning],
        "curve_form": curve_of(by_form, kept, shares),
        "curve_both": curve_of(by_both, kept, shares),
    }
    data = json.dumps(found, separators=(",", ":")).encode() + b"\n"
    line.out.write_bytes(data)
    sys.stdout.write(
        f"{len(texts)} sentences, {int(right.sum())} worth it; sha256 {hashlib.sha256(data).hexdigest()}\n"
    )


def _sentences(turns: list[dict[str, Any]]) -> tuple[NDArray[np.str_], list[str], list[str]]:
    people, texts, codes, seen = [], [], [], set()
    for turn in turns:
        for one in turn["sentences"]:
            text = " ".join(turn["text"][one["start"] : one["end"]].split())
            key = (turn["person"], text)
            if key in seen or len(text.split()) < LEAST_WORDS or len(text) > MOST_CHARS:
                continue
            seen.add(key)
            people.append(turn["person"])
            texts.append(text[:1].upper() + text[1:])
            codes.append(one["code"])
    return np.array(people), texts, codes


def _learned(turns: list[dict[str, Any]], reader: Reader) -> tuple[NDArray[np.str_], list[str], Matrix]:
    people, texts, kept = [], [], []
    for turn in turns:
        event = Event(
            id="e",
            device="d",
            agent="a",
            session_id="s",
            type=EventType.USER_MESSAGE,
            role=Role.USER,
            text=turn["text"],
            ts=Millis(0),
            dedupe_key="k",
            project="p",
            trust=Trust.USER,
        )
        for one in distill([event], reader=reader).observations:
            said = [s for s in turn["sentences"] if s["end"] > one.span_start and s["start"] < one.span_end]
            people.append(turn["person"])
            texts.append(one.content)
            kept.append(float(any(s["code"].startswith("K") for s in said)))
    return np.array(people), texts, np.array(kept)


def _shares(people: NDArray[np.str_]) -> Matrix:
    """Return what each row weighs: those of a person weigh the root of their number together."""
    _, at, counts = np.unique(people, return_inverse=True, return_counts=True)
    shares = 1 / np.sqrt(counts[at])
    return np.asarray(shares * len(people) / shares.sum())


if __name__ == "__main__":
    main(sys.argv[1:])
