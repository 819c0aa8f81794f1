"""What a Writer is: from a prompt to text, with the tokens that it took. Knows no server, no store and no budget.

What a Writer answers is untrusted: text only, which whoever asked parses. What a call may have cost follows from how it
ended: see `UsageUnknownError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scrubjay_shared.errors import UnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a Writer is asked: its instructions, the text that they are about, and the most tokens it may answer."""

    system: str
    text: str
    max_output_tokens: int

    @property
    def bytes(self) -> int:
        """Its length in UTF-8: no tokenizer in use makes more tokens of a text than it has bytes."""
        return len(self.system.encode("utf-8", "replace")) + len(self.text.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens read and written."""

    input_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        """Both together: what caps are about."""
        return self.input_tokens + self.output_tokens


NOTHING = Usage(input_tokens=0, output_tokens=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a Writer answered. `estimated` tokens were not all counted by it: they are an upper bound.

    `cut_short` says that the text ends where its most tokens were used up.
    """

    text: str
    input_tokens: int
    output_tokens: int
    model: str
    estimated: bool = False
    cut_short: bool = False

    @property
    def usage(self) -> Usage:
        """The tokens that it took."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)


class Writer(Protocol):
    """Something that writes: a server or an agent."""

    async def write(self, prompt: Prompt) -> Written:
        """Ask once. Raises InvalidError, DeniedError, NotFoundError, TooManyError when it refuses: nothing was read.

        Raises NotReachedError when nothing was sent, and UsageUnknownError when it may have read the prompt.
        """


class NotReachedError(UnavailableError):
    """Nothing was sent, so nothing was counted."""


class UsageUnknownError(UnavailableError):
    """The call failed after the prompt was sent, so that its tokens may have been counted.

    `usage` is what the Writer said that it counted, None where it said nothing: then all that was reserved is counted.
    `again` says that the same call may well succeed.
    """

    def __init__(self, message: str, *, hint: str = "", usage: Usage | None = None, again: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage
        self.again = again


class NoAnswerError(UsageUnknownError):
    """The Writer answered, and what it said is no answer: it is empty, cut off, or about a part of the prompt alone.

    `written` is what came; nothing is to be made of its text.
    """

    def __init__(self, message: str, *, hint: str, written: Written) -> None:
        super().__init__(message, hint=hint, usage=written.usage)
        self.written = written


MOST_COUNTED = 1_000_000_000_000
"""A number of tokens above this is a fault of who reports it."""


NAME_CHARS = 200
"""Of what a server calls its model: no name of one is as long."""


def named(reported: object, asked_for: str) -> str:
    r"""Return what a server calls its model, on one line; where it does not say, what was asked for.

    >>> named("small\n1", "small"), named(None, "small")
    ('small 1', 'small')
    """
    name = " ".join(reported.split()) if isinstance(reported, str) else ""
    return name[:NAME_CHARS] or asked_for


def counted(reported: object, most: int) -> tuple[int, bool]:
    """Return the tokens that a Writer reports, or where that is no sensible number `most`, and whether it is that."""
    if isinstance(reported, bool) or not isinstance(reported, int) or not 0 < reported <= MOST_COUNTED:
        return most, True
    return reported, False
