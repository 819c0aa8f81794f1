"""Labelled coding sessions: what a memory should have learned from them, what it must not, and what is asked later.

A folder with `sessions.jsonl`, `memories.jsonl`, `not.jsonl` and `questions.jsonl`; docs/retrieval-format.md describes
them, so that anybody can label sessions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from scrubjay_bench.conversations import DAY_MS, digest
from scrubjay_shared.clock import MAX_EVENT_MILLIS, Millis
from scrubjay_shared.errors import InvalidError, NotFoundError
from scrubjay_shared.records import EventType, Role, Trust

SESSIONS, MEMORIES, TEMPTING, QUESTIONS = "sessions.jsonl", "memories.jsonl", "not.jsonl", "questions.jsonl"
HINT = "docs/retrieval-format.md describes the four files"
WEEKS_LATER_MS = 30 * DAY_MS

LineT = TypeVar("LineT")
NamedT = TypeVar("NamedT", "Turn", "Label")
Some = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a session, as it was said. `time` is ISO 8601, UTC where it has no offset; None is not known."""

    id: Some
    project: Some
    session: Some
    type: Literal["user_message", "assistant_message", "tool_result"]
    text: str
    time: str | None = None

    @property
    def event_type(self) -> EventType:
        """The type of the event that the turn is stored as."""
        return EventType(self.type)

    @property
    def role(self) -> Role:
        """Who speaks."""
        return {"user_message": Role.USER, "assistant_message": Role.ASSISTANT, "tool_result": Role.TOOL}[self.type]

    @property
    def trust(self) -> Trust:
        """How far the turn may be believed."""
        return {"user_message": Trust.USER, "assistant_message": Trust.AGENT, "tool_result": Trust.UNTRUSTED}[self.type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A memory that should be learned: its text as a person would write it, and the words it was read from.

    `quote` is a substring of the text of `turn`; `evidence` names all the turns that say it. Importance 3 must be
    remembered, 2 is useful, 1 is nice to have.
    """

    id: Some
    session: Some
    turn: Some
    quote: Some
    text: Some
    type: Literal["decision", "preference", "fact", "insight", "goal", "howto"]
    scope: Literal["user", "project", "session"]
    importance: Literal[1, 2, 3]
    evidence: tuple[str, ...] = ()
    said_by: Literal["person", "agent"] = "person"
    supersedes: str | None = None

    @property
    def turns(self) -> frozenset[str]:
        """The turns that a memory with this content may have been read from."""
        return frozenset((self.turn, *self.evidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempting:
    """Words that look like a memory and are none: `quote` is a substring of the text of `turn`."""

    turn: Some
    quote: Some
    reason: Some


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody asks weeks later. `evidence` is the fewest turns that answer it, none where nothing does.

    `memories` names the labels that answer it, `stale` the turns that give an outdated answer. An unanswerable question
    names its `project`, or is asked of every project whose labels' ids begin as its own id does, up to the first "-".
    """

    id: Some
    question: Some
    category: Some
    evidence: tuple[str, ...] = ()
    answer: str = ""
    memories: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The labelled sessions of one project, which is one person's, in the order of the file. `times` are the turns'."""

    name: str
    turns: tuple[Turn, ...]
    times: tuple[Millis, ...]
    labels: tuple[Label, ...]
    tempting: tuple[Tempting, ...]
    questions: tuple[Question, ...]

    @property
    def asked(self) -> Millis:
        """When the questions are asked: thirty days after the last turn."""
        return Millis(max(self.times) + WEEKS_LATER_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Projects, with the name of their folder and the SHA-256 of its files."""

    name: str
    sha256: str
    projects: tuple[Project, ...]


def load(folder: Path, only: Iterable[str] = ()) -> Sessions:
    """Read the four files; with `only`, some projects. Raises NotFoundError, or InvalidError naming file and line.

    A session without any label, tempting words or evidence was not read by whoever labelled, and is left out.
    """
    turns = _by_id(folder / SESSIONS, Turn, _check_time)
    labels = _by_id(folder / MEMORIES, Label, lambda label: _check_turns(turns, label.turns, label.turn, label.quote))
    tempting = list(
        _lines(folder / TEMPTING, Tempting, lambda words: _check_turns(turns, (words.turn,), words.turn, words.quote))
    )
    questions = list(_lines(folder / QUESTIONS, Question, lambda question: _check_question(question, turns, labels)))
    if not any(question.evidence for question in questions):
        raise InvalidError(f"{QUESTIONS}: no question that the sessions answer", hint=HINT)
    named = (
        *(label.turn for label in labels.values()),
        *(words.turn for words in tempting),
        *(turn for question in questions for turn in question.evidence),
    )
    read = {turns[turn].session for turn in named}
    names = list(dict.fromkeys(turn.project for turn in turns.values() if turn.session in read))
    if unknown := set(only) - set(names):
        raise InvalidError(f"no project is called {min(unknown)}", hint=f"projects: {', '.join(names)}")
    said = [turn for turn in turns.values() if turn.session in read]
    project_of = {turn.id: turn.project for turn in said}

    def is_asked(question: Question, project: str) -> bool:
        if question.evidence:
            return project_of[question.evidence[0]] == project
        return project in _places(question, turns, labels)

    return Sessions(
        name=folder.resolve().name,
        sha256=digest(*(folder / name for name in (SESSIONS, MEMORIES, TEMPTING, QUESTIONS))),
        projects=tuple(
            Project(
                name=name,
                turns=(mine := tuple(turn for turn in said if turn.project == name)),
                times=tuple(_rising(mine)),
                labels=tuple(label for label in labels.values() if project_of[label.turn] == name),
                tempting=tuple(words for words in tempting if project_of[words.turn] == name),
                questions=tuple(one for one in questions if is_asked(one, name)),
            )
            for name in names
            if not only or name in only
        ),
    )


def labelled(folder: Path, only: Iterable[str] = ()) -> Sessions:
    """Read sessions and their labels alone, of labelled sessions; with `only`, of some projects.

    The turns of a session stand together, in the order in which sessions begin. Raises NotFoundError, InvalidError.
    """
    turns = _by_id(folder / SESSIONS, Turn, _check_time)
    labels = _by_id(folder / MEMORIES, Label, lambda label: _check_turns(turns, label.turns, label.turn, label.quote))
    read = {label.session for label in labels.values()}
    of_project: dict[str, dict[str, list[Turn]]] = {}
    for turn in turns.values():
        if turn.session in read:
            of_project.setdefault(turn.project, {}).setdefault(turn.session, []).append(turn)
    if unknown := set(only) - of_project.keys():
        raise InvalidError(f"no project is called {min(unknown)}", hint=f"projects: {', '.join(of_project)}")
    projects = []
    for name, sessions in of_project.items():
        mine = tuple(turn for said in sessions.values() for turn in said)
        if not only or name in only:
            projects.append(
                Project(
                    name=name,
                    turns=mine,
                    times=tuple(_rising(mine)),
                    labels=tuple(label for label in labels.values() if turns[label.turn].project == name),
                    tempting=(),
                    questions=(),
                )
            )
    sha256 = digest(folder / SESSIONS, folder / MEMORIES)
    return Sessions(name=folder.resolve().name, sha256=sha256, projects=tuple(projects))


def _labeller(id_: str) -> str:
    """Return what all ids of one person's labels begin with: "B" of "B-m17"."""
    return id_.split("-", maxsplit=1)[0]


def _rising(turns: Iterable[Turn]) -> Iterator[Millis]:
    """Yield the turns' times, each later than the one before: clocks stand still and go back, talk does not."""
    last = 0
    for turn in turns:
        last = max(last + 1, _millis(turn))
        yield Millis(last)


def _check_time(turn: Turn) -> None:
    if not 0 <= _millis(turn) <= MAX_EVENT_MILLIS:
        raise ValueError("time is before 1970 or too far off")


def _millis(turn: Turn) -> int:
    if not turn.time:
        return 0
    when = datetime.fromisoformat(turn.time)
    return round((when.replace(tzinfo=UTC) if when.tzinfo is None else when).timestamp() * 1000)


def _by_id(path: Path, of: type[NamedT], check: Callable[[NamedT], None] = lambda _: None) -> dict[str, NamedT]:
    found: dict[str, NamedT] = {}
    for line in _lines(path, of, check):
        if line.id in found:
            raise InvalidError(f"{path.name}: the id {line.id} stands there twice", hint="one id a line")
        found[line.id] = line
    return found


def _lines(path: Path, of: type[LineT], check: Callable[[LineT], None] = lambda _: None) -> Iterator[LineT]:
    try:
        rows = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path.name} is not in the folder", hint=HINT) from None
    for number, row in enumerate(rows, start=1):
        if row.strip():
            try:
                line = msgspec.json.decode(row, type=of)
                check(line)
            except (msgspec.MsgspecError, ValueError, OverflowError) as error:
                raise InvalidError(f"{path.name}, line {number}: {error}", hint=HINT) from error
            yield line


def _check_turns(turns: Mapping[str, Turn], named: Iterable[str], turn: str = "", quote: str = "") -> None:
    """Raise ValueError unless all the named turns are there, and the quote is in its own."""
    if unknown := set(named) - turns.keys():
        raise ValueError(f"no turn has the id {min(unknown)}")
    if quote not in turns[turn].text:
        raise ValueError(f"the quote is not in the text of {turn}")


def _check_question(question: Question, turns: Mapping[str, Turn], labels: Mapping[str, Label]) -> None:
    if unknown := {*question.evidence, *question.stale} - turns.keys():
        raise ValueError(f"no turn has the id {min(unknown)}")
    if missing := set(question.memories) - labels.keys():
        raise ValueError(f"no memory has the id {min(missing)}")
    if len({turns[turn].project for turn in question.evidence}) > 1:
        raise ValueError("evidence of two projects")
    if not question.evidence and not _places(question, turns, labels):
        raise ValueError("asked of no project: name one")


def _places(question: Question, turns: Mapping[str, Turn], labels: Mapping[str, Label]) -> frozenset[str]:
    """Return the projects that an unanswerable question is asked of."""
    if question.project is not None:
        return frozenset(turn.project for turn in turns.values() if turn.project == question.project)
    begins = _labeller(question.id)
    return frozenset(turns[label.turn].project for label in labels.values() if _labeller(label.id) == begins)
