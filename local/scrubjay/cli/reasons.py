"""Why something was not taken in, in words: what a reason's code stands for, for one and for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrubjay.api import Skipped

WORDS: dict[str, tuple[str, str]] = {
    # files of a folder
    "tool_results": (
        "file with the output of a tool: its words stand in the transcript",
        "files with the output of tools: their words stand in the transcripts",
    ),
    "subagents": ("transcript of an agent talking to its helper", "transcripts of an agent talking to its helpers"),
    "agent_notes": (
        "note that an agent wrote for itself: name the file to import it all the same",
        "notes that an agent wrote for itself: name the files to import them all the same",
    ),
    "agent_files": ("file of an agent's own", "files of an agent's own"),
    "empty_file": ("empty file", "empty files"),
    "no_zstd": (
        "file packed with zstd: install zstd (or pip install zstandard), then import it again",
        "files packed with zstd: install zstd (or pip install zstandard), then import them again",
    ),
    "packed_twin": ("packed copy of a file beside it", "packed copies of files beside them"),
    "unknown_json": ("JSON file of another program", "JSON files of other programs"),
    "unreadable_folder": ("folder that you may not read", "folders that you may not read"),
    # notes and memories
    "rewritten_here": (
        "note that was rewritten here and in its file: the one here is kept; forget it to import the file's",
        "notes that were rewritten here and in their files: those here are kept; forget one to import the file's",
    ),
    "of_another_account": (
        "event of a project of another account: scrubjay --account NAME import takes it there",
        "events of projects of another account: scrubjay --account NAME import takes them there",
    ),
    "name_taken": ("name that another memory has", "names that other memories have"),
    "forgotten": ("memory that was forgotten here", "memories that were forgotten here"),
    "bad_session": ("session that could not be read", "sessions that could not be read"),
    "nested": ("record nested too deeply", "records nested too deeply"),
    "no_name": ("entry without a name", "entries without a name"),
    # lines of a file
    "bad_json": ("line that is not JSON", "lines that are not JSON"),
    "bad_line": ("line that is not a record of an export", "lines that are not records of an export"),
    "lost_block": (
        "place where a crash left NUL bytes: what stood there is lost",
        "places where a crash left NUL bytes: what stood there is lost",
    ),
    "torn_line": ("last line that was not written to its end", "last lines that were not written to their end"),
    "not_object": ("line that is not a JSON object", "lines that are not JSON objects"),
    "unknown": ("line of an unknown kind", "lines of unknown kinds"),
    "duplicate": ("line that stood there twice", "lines that stood there twice"),
    "empty": ("empty text", "empty texts"),
    # lines of a transcript
    "bookkeeping": ("line of the agent's bookkeeping", "lines of the agent's bookkeeping"),
    "branch": ("message that was taken back", "messages that were taken back"),
    "command": ("command to the agent's program", "commands to the agent's program"),
    "image": ("image", "images"),
    "interrupted": ("mark of an interruption", "marks of interruptions"),
    "meta": ("line that the agent's program wrote", "lines that the agent's program wrote"),
    "not_human": ("prompt that a program made", "prompts that programs made"),
    "other_block": ("part of an unknown kind", "parts of unknown kinds"),
    "recalled": ("answer of scrubjay itself", "answers of scrubjay itself"),
    "reminder": ("reminder that the agent's program added", "reminders that the agent's program added"),
    "repeated": ("plan that was written down twice", "plans that were written down twice"),
    "sidechain": ("line of an agent talking to its helper", "lines of an agent talking to its helpers"),
    "summary": ("title of a session", "titles of sessions"),
    "synthetic": ("error message of the agent's service", "error messages of the agent's service"),
    "system": ("line about the agent's program", "lines about the agent's program"),
    "thinking": ("thought of the agent", "thoughts of the agent"),
    "tool_text": ("text beside the output of a tool", "texts beside the output of tools"),
    "transcript_only": ("line that was only shown", "lines that were only shown"),
    "attachment": ("file that was attached", "files that were attached"),
    "relation": (
        "relation of a graph that was drawn from the memories",
        "relations of a graph that was drawn from the memories",
    ),
    "deleted": ("memory that was deleted there", "memories that were deleted there"),
    # texts that intake empties
    "injected": ("text that scrubjay itself had given the agent", "texts that scrubjay itself had given the agent"),
    "private": ("text marked as private", "texts marked as private"),
}

UNREAD = frozenset(("bad_json", "bad_line", "bad_session", "nested", "no_name", "not_object", "relation", "unknown"))
"""Why something was left out that the reader did not understand, or does not read."""

LOST = frozenset(("lost_block", "torn_line"))
"""What a crash cost: beside bookkeeping it is no reason to doubt what a file was read as."""


def said(skipped: Iterable[Skipped]) -> list[str]:
    """Return the reasons in words, each with its count: "3 empty files"."""
    return [f"{each.count:,} {_words(each)}" for each in skipped]


def _words(each: Skipped) -> str:
    one, several = WORDS.get(each.reason, (None, None))
    if one is None or several is None:
        what = each.reason.replace("_", " ")
        # "not a kind of file to import (.png)", or a reason of a daemon that is newer than this command
        return what.replace("not a kind of file to import", "of a kind that is not imported")
    return one if each.count == 1 else several
