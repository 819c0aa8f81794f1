"""The judged sentences that the reader is fitted to and scored on: one row each, with the words around it."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.distill.pasted import own_words
from scrubjay.distill.prose import Span, sentences
from scrubjay.distill.reading import Turn
from scrubjay.importers.specstory import parse_specstory
from scrubjay.models.reading import Tokenizer, row_of
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Role

CODE = re.compile(r"K[23][dpfigh][ups]\+?|[OQRACPN]")
OWN = Path(__file__).resolve().parents[1] / "reader"
OF_AGENTS = 8
"""Of the sentences of agents that are not kept, one in so many is fitted to: they are thirty times those that are."""
OF_PASTES = 2
"""The same of what is pasted or none of the other codes: it is alike, and there is much of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence as the network reads it: its tokens, where its own begin and end, and its code ("-": not kept)."""

    person: str
    by_person: bool
    tokens: tuple[int, ...]
    own: slice
    code: str

    @property
    def is_kept(self) -> bool:
        """Whether a careful reader keeps it."""
        return self.code.startswith("K")


def everything(data: Path, clones: Path | None, tokenizer: Tokenizer) -> list[Example]:
    """Return the examples of all sets; without `clones` those of `codes/` are missing.

    Of a sentence that a person says again (a session that goes on in another file) the first that is not kept counts.
    """
    made: list[Example] = []
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for one in (*_judged(data / "sentences.jsonl", tokenizer), *_cloned(clones, tokenizer)):
        key = (one.person, one.tokens[one.own])
        if one.is_kept or key not in seen:
            made.append(one)
        seen.add(key)
    return [*made, *_judged(data / "agents.jsonl", tokenizer), *_invented(tokenizer)]


def thinned(examples: Sequence[Example], seed: int) -> list[Example]:
    """Return the examples to fit to: all that are kept, and of the others fewer of what there is too much of."""
    draw = random.Random(seed)

    def share(one: Example) -> float:
        if one.is_kept:
            return 1.0
        return (1 / OF_PASTES if one.code in {"P", "N"} else 1.0) if one.by_person else 1 / OF_AGENTS

    return [one for one in examples if draw.random() < share(one)]


def _judged(path: Path, tokenizer: Tokenizer) -> Iterator[Example]:
    for line in path.read_text(encoding="utf-8").splitlines():
        turn: dict[str, Any] = json.loads(line)
        found = [Span(start=one["start"], end=one["end"]) for one in turn["sentences"]]
        codes = [one["code"] for one in turn["sentences"]]
        of_agent = "asked" in turn
        before = turn["asked"] if of_agent else turn["before"]
        yield from _examples(
            turn["person"],
            Turn(text=turn["text"], before=before or ""),
            found,
            codes,
            tokenizer,
            by_person=not of_agent,
        )


def _cloned(clones: Path | None, tokenizer: Tokenizer) -> Iterator[Example]:
    if clones is None:
        return
    for path in sorted((OWN / "codes").glob("*.txt")):
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        _, repository, commit, _ = head.split()
        git = ["git", "--git-dir", str(clones / repository.replace("/", "+") / "repo"), "show"]
        said: list[tuple[str, bool]] = []
        for line in lines:
            if line.startswith("= "):
                shown = subprocess.run([*git, f"{commit}:{line[2:]}"], capture_output=True, check=True)
                events = parse_specstory(line[2:], shown.stdout, project=None).events
                said = [(one.text, one.role is Role.USER) for one in events]
                continue
            number, *codes = line.split()
            at = int(number)
            text = said[at][0]
            before = next((words for words, by_person in reversed(said[:at]) if not by_person), "")
            found = list(sentences(text, own_words(text)))
            if len(found) != len(codes):
                raise InvalidError(f"{path.name}: turn {number} has {len(found)} sentences and {len(codes)} codes")
            yield from _examples(path.stem, Turn(text=text, before=before), found, codes, tokenizer)


def _invented(tokenizer: Tokenizer) -> Iterator[Example]:
    for path in sorted((OWN / "invented").glob("*.txt")):
        before, turn = "", list[tuple[str, str]]()
        for line in (*path.read_text(encoding="utf-8").splitlines(), "= end"):
            if line.startswith("- "):
                code, said, *_ = line[2:].split("\t")
                turn.append((code, said))
            elif line.startswith(("agent:", "= ")):
                yield from _told(f"invented-{path.stem}", before, turn, tokenizer)
                before, turn = line[6:].strip() if line.startswith("agent:") else "", []


def _told(person: str, before: str, turn: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> Iterator[Example]:
    text, found = "", []
    for _, said in turn:
        found.append(Span(start=len(text), end=len(text) + len(said)))
        text += f"{said} "
    yield from _examples(person, Turn(text=text, before=before), found, [code for code, _ in turn], tokenizer)


def _examples(
    person: str,
    turn: Turn,
    found: Sequence[Span],
    codes: Sequence[str],
    tokenizer: Tokenizer,
    *,
    by_person: bool = True,
) -> Iterator[Example]:
    for n, code in enumerate(codes):
        if by_person and not CODE.fullmatch(code):
            continue
        tokens, own = row_of(turn, found, n, tokenizer, by_person=by_person)
        if own.start < own.stop:
            yield Example(person=person, by_person=by_person, tokens=tuple(tokens), own=own, code=code)
