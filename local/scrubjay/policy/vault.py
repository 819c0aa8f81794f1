"""How the plain files of an agent's memory are kept, and when a person is asked first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPolicy:
    """Sizes, paces and bounds of the plain files."""

    look_seconds: float = 0.5  # how often the files are looked at: a person's edit is found within two seconds
    settle_ms: int = 250  # a file changed less than this ago may be half written: it is read at the next look
    max_file_bytes: int = 1_000_000  # of one file: reading markdown takes 4 seconds a megabyte
    entry_chars: int = 20_000  # of one entry that is remembered: ten pages, and fifty of them fill a file
    working_tokens: int = 500  # of working.md, from the description of plain files
    gone_share: float = 0.5  # of a file's entries: more than these gone at once is more often a slip than an edit
    gone_least: int = 3  # entries: fewer gone at once are an edit, whatever share of a short file they are
    similar: float = 0.5  # share of words in common from which an entry counts as another one edited
    paired_most: int = 40  # entries of a section compared with each other: more are a rewrite, and cost its square
    heading_chars: int = 200  # of a section's name: what a topic may have
    recalled_sections: int = 5  # of one answer, unless asked for another number
    kept_sections: int = 5  # latest sections of episodic.md that compaction leaves as they are
    repeated: int = 2  # sections that must say the same before compaction takes it for knowledge
    reliability: float = 0.2  # how far a source's record moves a section's score: from .9 to 1.1 of it
    # Of a Writer that condenses: its question is about as long as an observer's, its answer a screen of sentences.
    asked_chars: int = 20_000  # of entries and of what is known already: about 5,000 tokens
    answer_tokens: int = 1_200
    most_statements: int = 40  # of one answer: what comes after them is a model that does not stop
    statement_chars: int = 400  # of one of them: a longer one is not one statement
