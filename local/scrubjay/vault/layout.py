"""Which files there are, and which memories stand in them. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from scrubjay_shared.errors import InvalidError
from scrubjay_shared.records import Memory, MemoryType, Scope


class VaultFile(StrEnum):
    """The files of a vault, by the name of each without its ending."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    SELF = "self"
    SOCIAL = "social"
    WORKING = "working"

    @property
    def file_name(self) -> str:
        """The name of the file in the folder."""
        return f"{self.value}.md"


TYPE_IN: dict[VaultFile, MemoryType] = {
    VaultFile.EPISODIC: MemoryType.DAILY,
    VaultFile.SEMANTIC: MemoryType.BELIEF,
    VaultFile.SELF: MemoryType.SELF,
    VaultFile.SOCIAL: MemoryType.SOCIAL,
    VaultFile.WORKING: MemoryType.DAILY,
}
"""What a new entry of a file is stored as."""

_FILE_OF: dict[MemoryType, VaultFile] = {
    MemoryType.DAILY: VaultFile.EPISODIC,
    MemoryType.SELF: VaultFile.SELF,
    MemoryType.SOCIAL: VaultFile.SOCIAL,
}

TITLES: dict[VaultFile, str] = {
    VaultFile.EPISODIC: "Episodic memory",
    VaultFile.SEMANTIC: "Semantic memory",
    VaultFile.SELF: "Self",
    VaultFile.SOCIAL: "Social memory",
    VaultFile.WORKING: "",
}
"""The first line of a file that scrubjay makes; working.md is a scratch pad and has none."""

RESOURCE = "vault:"
"""What the resource id of a vault's memories begins with; the agent's name follows."""

_NAME = re.compile(r"[\w][\w.@ -]{0,99}")


def resource_of(agent: str) -> str:
    """Return the resource id of the memories of an agent's vault. Raises InvalidError for a name that is none."""
    if not _NAME.fullmatch(agent):
        raise InvalidError(
            f"{agent[:60]!r} is not an agent's name",
            hint="use letters, digits, spaces, dots and dashes, at most 100 characters",
        )
    return f"{RESOURCE}{agent}"


def scope_in(file: VaultFile) -> Scope:
    """Return the scope of a file's memories: what is worked with now is the session's, the rest stays."""
    return Scope.SESSION if file is VaultFile.WORKING else Scope.PROJECT


def file_of(memory: Memory) -> VaultFile:
    """Return the file in which a memory of a vault stands. What is no event, self or social is knowledge."""
    if memory.scope is Scope.SESSION:
        return VaultFile.WORKING
    return _FILE_OF.get(memory.type, VaultFile.SEMANTIC)
