"""A turn of a session is an answer, or only what led to one."""

from __future__ import annotations

import pytest

from scrubjay.retrieval.turns import TurnKind, turn_kind
from scrubjay_shared.records import EventType

PERSON, AGENT, TOOL, NOTE = (
    EventType.USER_MESSAGE,
    EventType.ASSISTANT_MESSAGE,
    EventType.TOOL_RESULT,
    EventType.NOTE,
)


@pytest.mark.parametrize(
    ("type_", "text", "kind"),
    [
        (PERSON, "we deploy on tuesdays", TurnKind.STATEMENT),
        (PERSON, "why did the ingest service lose messages?", TurnKind.QUESTION),
        (PERSON, "let me think about it", TurnKind.STATEMENT),
        (NOTE, "# Deploys\nOn Tuesdays.", TurnKind.STATEMENT),
        (AGENT, "Let me check the logs.", TurnKind.NARRATION),
        (AGENT, "I’ll look at how the service reads its queue.", TurnKind.NARRATION),
        (AGENT, "Perfect! Now let me run the tests", TurnKind.NARRATION),
        (AGENT, "Good, now I need to update the imports.", TurnKind.NARRATION),
        (AGENT, "Here is the file as it stands:", TurnKind.NARRATION),
        (AGENT, "I'll use Go, because the race was in the C binding.", TurnKind.FINDING),
        (AGENT, "The queue was acknowledged before the write.", TurnKind.FINDING),
        (AGENT, "Let me explain. " + "The queue is read twice by each worker. " * 20, TurnKind.FINDING),
        (AGENT, "Shall I delete it?", TurnKind.QUESTION),
        (EventType.ASSISTANT_STOP, "Done, 12 tests pass.", TurnKind.FINDING),
        (TOOL, "let me check", TurnKind.OUTPUT),
        (AGENT, "", TurnKind.FINDING),
    ],
)
def test_the_kind_of_a_turn(type_: EventType, text: str, kind: TurnKind) -> None:
    assert turn_kind(type_, text) is kind
