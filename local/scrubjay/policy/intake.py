"""What is removed from texts before they are stored, and the sizes beyond which a request is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactPolicy:
    """When a run of characters is a secret. Bits are Shannon's, per character, over the run's own frequencies.

    Calibrated on Python source and talk, where nearly every hit is a mistake. Last measured on 5 MB of installed Python
    (one hit, a password left in an example), on 14,190 turns of work with agents (9.2 MB, none) and on 1.6 MB of talk
    (three).
    """

    token_chars: int = 32  # shortest nameless run judged by randomness alone: below, ids and identifiers look the same
    token_max_chars: int = 128  # longest such run: what is longer is data (images, signatures, source maps)
    token_entropy: float = 4.1  # 32 random base-62 characters have 4.6 +- 0.12; hexadecimal cannot exceed 4.0
    token_transitions: float = (
        0.42  # share of neighbours of different class (A/a/0): random base 62 has 0.62, names 0.25
    )
    token_digits: int = 3  # a nameless random run of 32 has five; identifiers have none or a year
    assigned_chars: int = 12  # shortest value of a key named token, secret or api key; real ones are 16 and up
    assigned_entropy: float = 2.9  # below: repeated or enumerated characters. 12 random base-36 characters have 3.4
    assigned_transitions: float = 0.18  # words and versions joined by punctuation stay below; hexadecimal has 0.47
    password_chars: int = 5  # shortest value of a key named password: shorter ones are types, flags and numbers
    prefixed_entropy: float = 2.6  # a vendor's prefix followed by less is a placeholder ("xxxx", "1111")
    password_max_chars: int = 256  # longest value of such a key: the longest that common services accept
    names_per_value: int = 8  # key names tried before one value (`a_key=b_key=c`): bounds the work, one is usual
    secret_max_chars: int = 4_096  # longest assigned value looked at: bounds the work at one place
    key_max_chars: int = 65_536  # longest private key block: a 16,384-bit RSA key in PEM has 13,000
    passes: int = 16  # rescans until nothing more is found; each pass removes a secret, ordinary text takes two


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPolicy:
    """Sizes beyond which a request is refused, and budgets of what is always loaded."""

    max_text_chars: int = 8_000_000  # one event or memory; above the 5 MB tool outputs that agents really produce
    # What hooks and transcripts tell is kept with its beginning and its end. Of a tool's output: the first and the last
    # hundred lines hold what it was about and how it ended, and a day of work stays within some megabytes. Of what was
    # said: a quarter of a million words is a pasted file, more is a mistake.
    output_chars: int = 16_000
    spoken_chars: int = 1_000_000
    max_body_bytes: int = 32 * 1024 * 1024  # one HTTP request: a batch of a few large events
    max_import_bytes: int = 256 * 1024 * 1024  # one imported file: transcripts of long sessions pass 50 MB
    # Of a file whose first lines are read to tell what it is. Codex writes its instructions into the first one (80 KB),
    # Claude Code copies of files before the first prompt; images in such a line come to some MB.
    max_head_bytes: int = 16 * 1024 * 1024
    # How far ahead of this machine's clock a time may lie and still be believed: a day, for clocks that are wrong and
    # times that somebody wrote down as UTC. What is said to be later was not told then.
    clock_skew_ms: int = 86_400_000
    max_batch: int = 5_000  # drafts in one request: bounds one transaction to about a second
    max_name_chars: int = 200  # a name is typed by hand
    max_metadata_bytes: int = 65_536  # metadata describes the text; it is not a second text
    max_metadata_depth: int = 32  # deeper nesting is an attack on the parser, not a description
    max_query_chars: int = 8_000  # about the embedding model's window many times over
    also: int = 3  # further phrasings of a question: each costs a look at the store, and the fourth finds little more
    identity_tokens: int = 200  # the identity layer's budget, from the layer table of the specification
    active_tokens: int = 500  # the active layer's, likewise
    recall_tokens: int = 2_000  # what one answer may cost an agent's context unless it asks for more
    # Of one text in an answer of recall, whatever its budget: forty pages, more than anybody reads in a hit. `get`
    # and the events give the whole.
    hit_chars: int = 200_000
    # Of the texts of one page of memories or events. Making a page of 500 texts of 8 MB took 4 GB and held everybody
    # up; the page ends early instead, and has at least one entry.
    page_chars: int = 4_000_000
