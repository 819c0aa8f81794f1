"""What a tool answers, as text that is enough by itself: who said what and when, under ids that other tools take. Pure.

Every answer keeps to a budget of tokens. What has no room is named by a cursor, never cut off in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from scrubjay import api, redaction
from scrubjay.dates import find_dates
from scrubjay.intervals import happened
from scrubjay.retrieval.passages import tidied
from scrubjay.retrieval.turns import says_again
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import EventType, Memory, ReviewState, author_of, review_state
from scrubjay_shared.text import estimate_tokens, unbracketed

MEMORY_ID = "m_"
EVENT_ID = "e_"
GRIP_ID = "g_"
CUT = " […]"

DOUBTED = {"import": "imported", "untrusted": "unverified", "agent": "an agent's words"}
"""What is said beside a memory that is not the person's own words."""

BESIDE = {api.Beside.ASKED: "answering ", api.Beside.ANSWERED: "answered by "}
"""What is said before the other side of an exchange."""

_SPOKEN = frozenset({EventType.USER_MESSAGE.value, EventType.ASSISTANT_MESSAGE.value})
"""Of these who spoke says what it is."""

REVIEWED = {
    ReviewState.WAITING: "not reviewed by the person",
    ReviewState.DISPUTED: "disputed",
    ReviewState.REJECTED: "rejected by the person",
}
"""What is said beside a memory that the person has yet to look at, or did not want."""

WHEN_HINT = 'a day or a period: "yesterday", "last week", "2026-11-20", "March 2026", "May to June 2026"'


def whose(trust: str, speaker: str) -> str:
    """Return whose words a memory's are, where they are not the person's: of an imported session, who said them there.

    >>> whose("import", "user"), whose("import", "Caroline"), whose("import", ""), whose("user", "user")
    ("the person's words, imported", "Caroline's words, imported", 'imported', '')
    """
    if trust == "import" and speaker:
        return f"{'the person' if speaker == 'user' else speaker}'s words, imported"
    return DOUBTED.get(trust, "")


def bare(ref: str) -> str:
    """Return an id as the operations take it: without the letter that tells a model what it is an id of.

    >>> bare("m_01KXK2Y3Q0"), bare("database"), bare("[m_01KXK2Y3Q0]")
    ('01KXK2Y3Q0', 'database', '01KXK2Y3Q0')
    """
    plain, inner = ref.strip(), unbracketed(ref.strip())
    return inner[2:] if inner[:2] in {MEMORY_ID, EVENT_ID, GRIP_ID} else plain


def day(ts: Millis, utc_offset: int) -> str:
    """Return the day of a time on the clock of a place, as ISO 8601 has it."""
    return f"{datetime.fromtimestamp(ts / 1000, UTC) + timedelta(minutes=utc_offset):%Y-%m-%d}"


def period(words: str, now: Millis, utc_offset: int) -> tuple[Millis | None, Millis | None]:
    """Return since when and until when a phrase means, (None, None) for no words. Raises InvalidError."""
    if not words.strip():
        return None, None
    found = find_dates(words, now, utc_offset) or find_dates(f"in {words}", now, utc_offset)
    if not found:
        raise InvalidError(f"when: {words[:60]!r} is not a time that is understood", hint=WHEN_HINT)
    return min(date.start for date in found), max(date.end for date in found)


FENCE_TOKENS = estimate_tokens(redaction.injected("")) + 1
"""What the fence of recalled data costs around an answer."""


class Page:
    """The lines of an answer within a budget of tokens, in the fence of recalled data, which no text in it can close.

    Without `recalled`, it says nothing that was remembered, and has no fence.
    """

    def __init__(self, max_tokens: int, *, recalled: bool = True) -> None:
        self._max_tokens = max_tokens - (FENCE_TOKENS if recalled else 0)
        self._recalled = recalled
        self._lines: list[str] = []
        self._spent = 0

    def add(self, text: str, *, reserve: int = 0) -> bool:
        """Add some lines if they fit and leave `reserve` tokens. Say whether they did."""
        text = redaction.defused(text)
        cost = estimate_tokens(text) + 1
        if self._spent + cost + reserve > self._max_tokens:
            return False
        self._lines.append(text)
        self._spent += cost
        return True

    def add_cut(self, text: str, *, reserve: int = 0) -> bool:
        """Add as much of the beginning of a text as fits. Say whether it was all of it."""
        text = redaction.defused(text)
        if self.add(text, reserve=reserve):
            return True
        low, high = 0, len(text)
        room = self._max_tokens - self._spent - reserve - estimate_tokens(CUT) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if estimate_tokens(text[:middle]) <= room:
                low = middle
            else:
                high = middle - 1
        while low and not self.add(text[:low].rstrip() + CUT, reserve=reserve):
            low -= 1  # the mark and the word that it cuts can cost more together than each alone
        return False

    @property
    def room(self) -> int:
        """The tokens that are left."""
        return self._max_tokens - self._spent

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added."""
        return not self._lines

    def text(self) -> str:
        """Return the lines; "" for none."""
        lines = "\n".join(self._lines)
        return redaction.injected(lines) if self._recalled and lines else lines


def hit(found: api.Hit, utc_offset: int, *, why: bool, brief: bool = False) -> str:
    """Return one answer of a search: what it is, its words in the turn that said them, and what stood beside it.

    The words that a memory was read from are marked in their turn; its own words come first where the turn has not all
    of them. A `brief` one is one line.
    """
    words = _told(found, utc_offset)
    words += [f"> {BESIDE[said.beside]}{said.speaker}: {tidied(said.text)}" for said in found.sources if said.beside]
    head = " · ".join(_heading(found, utc_offset))
    lines = [f"{head} · {' '.join(' '.join(words).split())}"] if brief else [head, *words]
    if why and found.parts:
        lines.append("score " + " + ".join(f"{part} {value:.2f}" for part, value in found.parts.items() if value))
    return "\n".join(lines)


def _heading(found: api.Hit, utc_offset: int) -> list[str]:
    """Return what stands before the words of a hit: its id, what it is, when it was said, what is doubted of it."""
    is_memory = found.kind == "memory"
    about = [f"{MEMORY_ID if is_memory else EVENT_ID}{found.id}"]
    about += [found.type] if is_memory or found.type not in _SPOKEN else []
    about.append(day(found.ts, utc_offset))
    about += [f'"{found.name}"'] if found.name else []
    about += ["this project"] if found.scope == "project" and found.resource_id else []
    if is_memory and found.trust in DOUBTED and not (found.trust == "agent" and found.told_in):
        about.append(DOUBTED[found.trust])  # of an agent's turn who spoke says it
    about += [f"by {found.author}"] if found.author is not None else []
    about += _reviewed(found.review)
    said_at = found.ts if found.read_from else None
    if found.valid_to is not None and not happened(found.valid_from, found.valid_to, said_at):
        about.append(f"held until {day(found.valid_to, utc_offset)}")
    if found.superseded_by:
        about.append(f"replaced by {MEMORY_ID}{found.superseded_by}")
    elif found.questioned_by:
        about.append(f"may be out of date: see {MEMORY_ID}{found.questioned_by}")
    return about


def _told(found: api.Hit, utc_offset: int) -> list[str]:
    """Return the words of a hit: of an event its own, of a memory the turns that it was read from, or before them."""
    words = tidied(found.text) + (CUT if found.truncated and CUT.strip() not in found.text else "")
    if found.kind != "memory":
        return [f"{found.sources[0].speaker}: {words}" if found.sources else words]
    turns = found.told_in
    if not turns:
        return [f"{found.read_from[0].speaker}: {words}" if found.read_from else words]
    told = [f"{_said(turn, found, utc_offset)}: {tidied(marked(turn))}" for turn in turns]
    said = " ".join(turn.text for turn in turns)
    if found.truncated or not says_again(said, " ".join(turn.speaker for turn in turns), found.text):
        return [words, *(f"> {each}" for each in told)]
    return told


def _said(turn: api.Quote, found: api.Hit, utc_offset: int) -> str:
    """Return who said a turn, and when where it was not on the day of the memory."""
    when = day(turn.ts, turn.utc_offset)
    return turn.speaker if when == day(found.ts, utc_offset) else f"{turn.speaker}, {when}"


def marked(turn: api.Quote) -> str:
    """Return the words of a turn with those marked that a memory was read from; all of them need no mark."""
    if turn.cited is None or not (turn.text[: turn.cited[0]].strip() or turn.text[turn.cited[1] :].strip(" \n.!")):
        return turn.text
    start, end = turn.cited
    return f"{turn.text[:start]}«{turn.text[start:end]}»{turn.text[end:]}"


def memory(found: api.WhyResponse, utc_offset: int, *, full: bool) -> list[str]:
    """Return one memory as pieces, the most important first: what it says, its sources, its history."""
    entry, origin = found.entry.memory, found.origin
    pieces = [_about(found, utc_offset), entry.content]
    pieces += [f"from {place.file}" + (f" › {place.heading}" if place.heading else "") for place in origin.places[:3]]
    for source in found.sources if full else found.sources[:1]:
        events = source.events[:1] if not full else source.events
        if not events:
            pieces.append(f"> {source.grip.excerpt}")
        for event in events:
            words = event.text if full else source.grip.excerpt
            said = day(event.ts, event.utc_offset)
            pieces.append(f"> {event.speaker}, {said}, {event.agent}: {words} ({EVENT_ID}{event.id})")
    if len(found.sources) > 1 and not full:
        pieces.append(f"{len(found.sources) - 1} more sources: detail=full")
    if full:
        pieces += [replaced(old, utc_offset) for old in found.supersedes]
    return pieces


def _about(found: api.WhyResponse, utc_offset: int) -> str:
    """Return the line about a memory: what it is, since when, whose words, and what became of it."""
    entry, origin = found.entry.memory, found.origin
    about = [
        f"{MEMORY_ID}{entry.id}",
        entry.type.value,
        entry.scope.value,
        f"{origin.how} {day(origin.ts, utc_offset)}",
    ]
    agent = author_of(entry) or entry.metadata.get("agent")
    if isinstance(agent, str) and agent:
        about.append(f"by {agent}")
    speaker = next((event.speaker for source in found.sources for event in source.events), "")
    about.append(whose(entry.trust.value, speaker) or "the person's words")
    about += _reviewed(entry.review)
    about += [f'"{name}"' for name in found.entry.aliases[:3]]
    if entry.topic:
        about.append(f"topic {entry.topic}")
    if entry.superseded_by:
        about.append(f"replaced by {MEMORY_ID}{entry.superseded_by}")
    if found.helped or found.missed or found.wrong:
        wrong = f", wrong {found.wrong}" if found.wrong else ""
        about.append(f"helped {found.helped}, did not {found.missed}{wrong}")
    if entry.archived_at:
        about.append("put away")
    return " · ".join(about)


def _reviewed(review: str | None) -> list[str]:
    """Return what is said of a memory that the person has yet to look at, or did not want."""
    state = review_state(review)
    return [] if state is None else [REVIEWED[state]] if state in REVIEWED else []


def replaced(old: Memory, utc_offset: int) -> str:
    """Return the line about a memory whose place another took."""
    return f"replaces {MEMORY_ID}{old.id} ({day(old.created_at, utc_offset)}): {old.content}"


def noted(notes: Sequence[str]) -> str:
    """Return what an operation remarked."""
    return "\n".join(f"({note})" for note in notes)
