"""What a tool answers, as text that is enough by itself: who said what and when, under ids that other tools take. Pure.

Every answer keeps to a budget of tokens. What has no room is named by a cursor, never cut off in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from scrubjay import api, redaction
from scrubjay.dates import find_dates
from scrubjay.intervals import happened
from scrubjay.retrieval.passages import passage
from scrubjay_shared.clock import Millis
from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Memory, ReviewState, author_of, review_state
from scrubjay_shared.text import estimate_tokens

MEMORY_ID = "m_"
EVENT_ID = "e_"
GRIP_ID = "g_"
CUT = " […]"

LINE_CHARS = 200
"""Of a hit that is told in one line: a sentence or two, enough to say whether it is worth opening."""

DOUBTED = {"import": "from a file", "untrusted": "unverified", "agent": "an agent's words"}
"""What is said beside a memory that is not the person's own words, and that nobody is named for."""

BESIDE = {api.Beside.ASKED: "answering ", api.Beside.ANSWERED: "answered by "}
"""What is said before the other side of an exchange."""

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
    ("the person's words, imported", "Caroline's words, imported", 'from a file', '')
    """
    if trust == "import" and speaker:
        return f"{'the person' if speaker == 'user' else speaker}'s words, imported"
    return DOUBTED.get(trust, "")


def bare(ref: str) -> str:
    """Return an id as the operations take it: without the letter that tells a model what it is an id of.

    >>> bare("m_01KXK2Y3Q0"), bare("database")
    ('01KXK2Y3Q0', 'database')
    """
    plain = ref.strip()
    return plain[2:] if plain[:2] in {MEMORY_ID, EVENT_ID, GRIP_ID} else plain


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
    def is_empty(self) -> bool:
        """Whether nothing has been added."""
        return not self._lines

    def text(self) -> str:
        """Return the lines; "" for none."""
        lines = "\n".join(self._lines)
        return redaction.injected(lines) if self._recalled and lines else lines


def hit(found: api.Hit, utc_offset: int, *, why: bool) -> str:
    """Return one answer of a search: a line about it, its words, and the first words that it was read from."""
    is_memory = found.kind == "memory"
    about = [_ref(found), found.type, day(found.ts, utc_offset)]
    about += [f'"{found.name}"'] if found.name else []
    about += ["this project"] if found.scope == "project" and found.resource_id else []
    about += _standing(found, utc_offset)
    about += [found.sources[0].speaker] if found.sources and not is_memory else []
    lines = [" · ".join(about), found.text + (CUT if found.truncated else "")]
    for said in (*found.read_from[: int(is_memory)], *(said for said in found.sources if said.beside)):
        how = BESIDE[said.beside] if said.beside else ""
        when = day(said.ts, said.utc_offset)
        lines.append(f"> {how}{said.speaker}, {when}: {said.text} ({EVENT_ID}{said.event_id})")
    return "\n".join([*lines, *_score(found, why=why)])


def line(found: api.Hit, utc_offset: int, *, words: Mapping[str, float], why: bool) -> str:
    """Return one answer of a search as a line: its id, who said it and when, and what of its text has most `words`."""
    said = found.sources[0] if found.kind == "event" and found.sources else next(iter(found.read_from), None)
    about = [_ref(found), *([found.type] if found.kind == "memory" else [])]
    about += [day(found.ts, utc_offset)] if said is None else [said.speaker, day(said.ts, said.utc_offset)]
    about += _standing(found, utc_offset)
    text = " ".join(passage(found.text, words, chars=LINE_CHARS).text.split())
    short = found.truncated or len(text) < len(" ".join(found.text.split()))
    return "\n".join([f"{' · '.join(about)}: {text}{CUT if short else ''}", *_score(found, why=why)])


def _ref(found: api.Hit) -> str:
    return f"{MEMORY_ID if found.kind == 'memory' else EVENT_ID}{found.id}"


def _score(found: api.Hit, *, why: bool) -> list[str]:
    if not (why and found.parts):
        return []
    return ["score " + " + ".join(f"{part} {value:.2f}" for part, value in found.parts.items() if value)]


def _standing(found: api.Hit, utc_offset: int) -> list[str]:
    """Return whose words an answer of a search is, where not the person's, and what became of it."""
    words = whose(found.trust or "", found.read_from[0].speaker if found.read_from else "")
    about = [words] if found.kind == "memory" and words else []
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
