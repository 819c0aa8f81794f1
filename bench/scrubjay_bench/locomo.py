"""LoCoMo as its authors publish it (`locomo10.json`, CC BY-NC 4.0): read from a path, never shipped.

Evidence is taken as it stands: a string that names no turn, or several at once, resolves to nothing. Captions of photos
are left out, since the published protocols search `[speaker] text`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from scrubjay.importers.locomo import TURN_MS, said_at
from scrubjay_bench.conversations import Conversation, DataSet, Fact, Question, Turn, digest
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
SESSION = re.compile(r"session_(\d+)")
HINT = "locomo10.json comes from the data set's authors (Maharana et al., ACL 2024)"


def load(path: Path) -> DataSet:
    """Read the data set. Raises NotFoundError or InvalidError."""
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f"{path.name} is not there", hint=HINT) from None
    except ValueError as error:
        raise InvalidError(f"{path.name} is not JSON", hint=HINT) from error
    try:
        conversations = tuple(_conversation(entry) for entry in entries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidError(f"{path.name} is not LoCoMo: {error!r}", hint=HINT) from error
    return DataSet(name="LoCoMo", sha256=digest(path), conversations=conversations)


def _conversation(entry: dict[str, Any]) -> Conversation:
    said = entry["conversation"]
    numbers = sorted(int(match[1]) for key in said if (match := SESSION.fullmatch(key)))
    starts = {number: said_at(said.get(f"session_{number}_date_time")) or Millis(0) for number in numbers}
    turns = tuple(
        Turn(
            id=turn["dia_id"],
            session=str(number),
            speaker=turn["speaker"],
            text=turn["text"],
            ts=Millis(starts[number] + place * TURN_MS),
        )
        for number in numbers
        for place, turn in enumerate(said[f"session_{number}"])
    )
    facts = tuple(
        Fact(
            session=str(number),
            speaker=speaker,
            text=fact,
            source=source if isinstance(source, str) else None,
            ts=starts[number],
        )
        for number in numbers
        for speaker, of_speaker in entry.get("observation", {}).get(f"session_{number}_observation", {}).items()
        for fact, source in of_speaker
    )
    questions = tuple(
        Question(
            text=item["question"],
            evidence=frozenset(item.get("evidence", ())),
            category=CATEGORIES[int(item["category"])],
            answer=str(item.get("answer", "")),
        )
        for item in entry["qa"]
    )
    return Conversation(name=str(entry["sample_id"]), turns=turns, facts=facts, questions=questions)
