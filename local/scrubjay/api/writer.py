"""The Writer that is set: what it is, what it was asked last, what it would cost; and trying another."""

from __future__ import annotations

from dataclasses import dataclass

from scrubjay_shared.clock import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterRequest:
    """A Writer, in the words of the settings: `writer`, `writer_url`, `writer_model` and `writer_key_env`.

    What it has none of is "". `key_env` is the name of a variable of the environment, never a key.
    """

    writer: str
    url: str = ""
    model: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseWriterRequest:
    """Asks for the Writer that the settings' file names: it says nothing itself, so that no caller sets another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterTrial:
    """What a Writer answered when it was asked about an invented sentence, and what that cost."""

    answer: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """A call in the ledger: `outcome` is "done", "open" while it is under way, or how it failed."""

    at: Millis
    job: str
    writer: str
    model: str
    input_tokens: int
    output_tokens: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterDay:
    """What reading the sessions of an ordinary day would take, by those of the last days.

    `days` are those in which something was said, of the `looked_at` last ones, today included; calls and tokens are of
    one of them on average, and estimated: nothing was asked.
    """

    looked_at: int
    days: int
    sessions: int
    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterResponse:
    """The Writer that is set, "none" while none is, with what is counted against its caps and its last call.

    `destination` says where prompts go, "" when nowhere, and `leaves` whether that is another machine.
    """

    writer: str
    url: str
    model: str
    key_env: str
    destination: str
    leaves: bool
    daily_tokens: int
    monthly_tokens: int
    used_today: int
    used_this_month: int
    left: int
    day: WriterDay
    last: LastCall | None = None
