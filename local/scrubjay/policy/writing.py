"""How a Writer is asked, and how much it may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPolicy:
    """Bounds of one call, what is tried again, and the caps where the person sets none."""

    daily_tokens: int = 200_000  # some ten sessions of 20,000 tokens with their answers: a full day's work, and no more
    monthly_tokens: int = 2_000_000  # ten such days; at the prices of small models (2026) less than two dollars
    connect_seconds: float = 5.0  # a server that is there accepts within milliseconds, across the world within a second
    answer_seconds: float = 300.0  # a model on a CPU writes about ten tokens a second: some thousands in this time
    answer_bytes: int = 4_194_304  # 100,000 tokens of text are 400 KB; JSON escapes and reasoning take the rest
    framing_tokens: int = 256  # what a server's template of roles adds to two messages: 20 to 100 tokens in common ones
    sparse_chars: int = 7  # to a token, on average: what tokenizers make of prose has 3 to 5, so more was not all read
    sparse_from_chars: int = 2_000  # of a prompt: in a short one a run of signs that is one token decides
    context_tokens: int = 16_384  # asked for where a server takes it: a prompt of 28,000 bytes and its answer
    attempts: int = 3  # a server that is busy is free again within two tries, or it is down
    wait_seconds: float = 2.0  # before the second try, doubled before the third
    wait_most_seconds: float = 30.0  # a server that asks for a longer wait is left to the job's next run
    failures: int = 2  # calls in a row that failed, until the Writer is left alone: a third would cost tokens too
    rest_seconds: float = 60.0  # how long it is left alone at first
    rest_most_seconds: float = 3_600.0  # doubled after each failure up to this: a day of failures costs 24 calls
    trial_tokens: int = 1_500  # of the answer to a trial: as many as an observer may write, thinking included
    outlook_days: int = 10  # by which a day's cost is told: a working week and the weekends around it
    token_chars: float = 3.7  # what one token of sessions held, code and paths among them: 25,700 chars in 6,842
    answer_tokens: int = 330  # of an observer's answer on average: 50,000 in the 150 calls of ten sessions
    ledger_days: int = 400  # a year and a month of calls are kept: months can be compared with those of last year
