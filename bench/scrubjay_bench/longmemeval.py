"""LongMemEval as its authors publish it (`longmemeval_s_cleaned.json`, `longmemeval_oracle.json`), read from a path.

Each question has a history of its own, and so is a conversation here. Both sides of a chat are stored, as an agent's
memory would; the authors' own retrieval runs index the user's turns only, so figures are not like for like. Abstention
questions have no answer to find and are left out, as the authors do.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrubjay_bench.conversations import Conversation, DataSet, Question, Turn, digest
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import Role

ABSTENTION = "_abs"
DATE = re.compile(r"(\d{4})/(\d\d)/(\d\d)\D*(?:(\d\d):(\d\d))?")
TURN_MS = 60_000  # turns carry no time of their own; a minute each keeps their order within the session
HINT = "longmemeval_s_cleaned.json comes from the data set's authors (Wu et al., ICLR 2025)"


def load(path: Path) -> DataSet:
    """Read a file. Raises NotFoundError or InvalidError."""
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(f"{path.name} is not there", hint=HINT) from None
    except ValueError as error:
        raise InvalidError(f"{path.name} is not JSON", hint=HINT) from error
    try:
        conversations = tuple(_conversation(entry) for entry in entries)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidError(f"{path.name} is not LongMemEval: {error!r}", hint=HINT) from error
    return DataSet(name="LongMemEval", sha256=digest(path), conversations=conversations)


def _conversation(entry: dict[str, Any]) -> Conversation:
    answering = set(entry["answer_session_ids"])
    turns: list[Turn] = []
    evidence: set[str] = set()
    sessions: set[str] = set()
    seen: Counter[str] = Counter()
    dated = zip(entry["haystack_dates"], entry["haystack_session_ids"], entry["haystack_sessions"], strict=True)
    # The oracle file's sessions are in no order of time.
    for start, given, said in sorted(
        ((_time(date), str(session), said) for date, session, said in dated), key=lambda one: one[0]
    ):
        seen[given] += 1
        session = given if seen[given] == 1 else f"{given}#{seen[given]}"
        if given in answering:
            sessions.add(session)
        for place, turn in enumerate(said):
            id_ = f"{session}/{place + 1}"
            turns.append(
                Turn(
                    id=id_,
                    session=session,
                    speaker=turn["role"],
                    text=turn["content"],
                    ts=Millis(start + place * TURN_MS),
                    role=Role(turn["role"]),
                )
            )
            if turn.get("has_answer"):
                evidence.add(id_)
    question_id = str(entry["question_id"])
    asked = entry.get("question_date")
    question = Question(
        text=entry["question"],
        evidence=frozenset(evidence),
        category=entry["question_type"],
        sessions=frozenset(sessions),
        asked=None if asked is None else _time(asked),
        left_out="abstention" if question_id.endswith(ABSTENTION) else "",
    )
    return Conversation(name=question_id, turns=tuple(turns), questions=(question,))


def _time(text: str) -> Millis:
    """Return the time of "2023/05/20 (Sat) 02:21", of a place nobody names, as UTC milliseconds."""
    found = DATE.match(text)
    if found is None:
        raise ValueError(text)
    year, month, day, hour, minute = (int(part or 0) for part in found.groups())
    return Millis(round(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() * 1000))
