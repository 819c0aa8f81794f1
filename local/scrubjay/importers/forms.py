"""Forms in which an agent asks its person: what was asked, what there was to choose, and what was answered. Pure.

A host reports a form as the result of a tool, but no tool said it: the questions are the agent's words, the answers
what the person chose or typed. They come as an object of answers, or in words (`User has answered your questions:
"…"="…"`, as public transcripts of Claude Code and the source of a tool of OpenCode's name have them). No form was
driven with a real host; what is not understood stays a tool's result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scrubjay.importers.parsing import clean

FORMS = frozenset(("askuserquestion", "askuser", "question", "requestuserinput"))
"""The tools that show a form, without case and punctuation: Claude Code's, Gemini CLI's, OpenCode's, Codex's."""
MOST_QUESTIONS = 8
"""Of one form; the hosts allow four."""
QUESTION_CHARS = 1_000
ANSWER_CHARS = 4_000
OPTION_CHARS = 300
MOST_OPTIONS = 12

_PLAIN = re.compile(r"[^a-z]")
_TOLD = re.compile(r"\bhas answered your questions:\s*", re.IGNORECASE)
_ENDS = re.compile(r'"\s*(?:[,;] ?"|\.|$|user notes|selected)')
_WORDS_CHARS = 40_000
"""Of a result in words, in which pairs are looked for."""
_ADVISED = re.compile(r"\s*\(recommended\)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question of a form that was answered. `options` are what there was to choose, one a line of text."""

    question: str
    options: tuple[str, ...]
    answer: str

    @property
    def asked(self) -> str:
        """What the agent asked, in the words that the form showed: the options, then the question."""
        listed = "\n".join(f"- {option}" for option in self.options)
        return f"{listed}\n\n{self.question}" if listed else self.question


def is_form(tool: str, server: str = "") -> bool:
    """Say whether a tool shows a form of the host's own; one of an MCP server is any program's.

    >>> is_form("AskUserQuestion"), is_form("mcp__survey__question"), is_form("question", "survey")
    (True, False, False)
    """
    return not server and _PLAIN.sub("", tool.casefold()) in FORMS


def answered(given: Any, output: Any, text: str) -> tuple[Answered, ...]:
    """Return the questions of a form with their answers, in order; none where it was turned down, or is not understood.

    `given` is what the tool was called with, `output` its result as an object, `text` the result in words.
    """
    asked = _questions(given) or _questions(output)
    told = output.get("answers") if isinstance(output, Mapping) else None
    pairs = list(_by_key(told, asked)) if told else list(_in_words(text))
    found = []
    for question, answer in pairs[:MOST_QUESTIONS]:
        if question and answer:
            options = next((_options(one) for one in asked if clean(one.get("question")) == question), ())
            found.append(Answered(question=question[:QUESTION_CHARS], options=options, answer=answer[:ANSWER_CHARS]))
    return tuple(found)


def _questions(given: Any) -> list[Mapping[str, Any]]:
    listed = given.get("questions") if isinstance(given, Mapping) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        return [given] if isinstance(given, Mapping) and isinstance(given.get("question"), str) else []
    return [one for one in listed if isinstance(one, Mapping)]


def _by_key(told: Any, asked: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of an object of answers, by the question itself, its id or its place; or of a list in order."""
    if isinstance(told, Mapping):
        ids = {clean(one.get("id")): clean(one.get("question")) for one in asked if clean(one.get("id"))}
        places = {str(n): clean(one.get("question")) for n, one in enumerate(asked)}
        for key, value in told.items():
            name = clean(key)
            yield ids.get(name) or places.get(name) or name, _answer(value)
    elif isinstance(told, Sequence) and not isinstance(told, str):
        for one, value in zip(asked, told, strict=False):
            yield clean(one.get("question")), _answer(value)


def _answer(value: Any) -> str:
    """Return an answer as text, without a mark that its option was advised."""
    if isinstance(value, Mapping):
        value = value.get("answers") or value.get("answer") or value.get("selected") or value.get("label")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(filter(None, (_answer(one) for one in value[:MOST_OPTIONS])))
    return _ADVISED.sub("", clean(value)).strip()


def _in_words(text: str) -> Iterator[tuple[str, str]]:
    begins = _TOLD.search(text)
    if begins is not None:
        first, *rest = text[begins.end() : begins.end() + _WORDS_CHARS].split('"="', MOST_QUESTIONS)
        question = first.rpartition('"')[2]
        for said in rest:
            ends = _ENDS.search(said)
            if ends is not None:
                yield question.strip(), _answer(said[: ends.start()])
            question = said.rpartition('"')[2]


def _options(one: Mapping[str, Any]) -> tuple[str, ...]:
    listed = one.get("options")
    found = []
    for option in listed[:MOST_OPTIONS] if isinstance(listed, list) else ():
        label = clean(option.get("label")) if isinstance(option, Mapping) else clean(option)
        about = clean(option.get("description")) if isinstance(option, Mapping) else ""
        if label:
            found.append(f"{label}: {about}"[:OPTION_CHARS] if about else label[:OPTION_CHARS])
    return tuple(found)
