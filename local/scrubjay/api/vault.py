"""Plain files: an agent's memory as markdown, kept in a folder of the person's choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scrubjay_shared.clock import Millis

VaultFileName = Literal["episodic", "semantic", "self", "social", "working"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultFileState:
    """One file: how many memories stand in it, and what waits for the person.

    `gone` entries left the file at once and are archived only when that is confirmed; `conflicts` are texts kept in the
    file beside the store's; `refused` entries stand in the file and were not stored. `problem` says why the file was
    not read or not written, "" when it was.
    """

    file: str
    entries: int = 0
    gone: int = 0
    conflicts: int = 0
    refused: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vault:
    """An agent's vault: where its files are, and how each is."""

    agent: str
    folder: str
    files: tuple[VaultFileState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultsRequest:
    """The vaults of this device, or an agent's."""

    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultsResponse:
    """The vaults by agent."""

    vaults: tuple[Vault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultInitRequest:
    """Keep an agent's memory as files in a folder (absolute; made when it is not there)."""

    agent: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSyncRequest:
    """Merge files and store now, of all vaults or an agent's.

    What is gone from `file` (of `agent`; of all its files without) is archived however much it is with `confirm`, and
    written there again with `put_back`.
    """

    agent: str | None = None
    file: VaultFileName | None = None
    confirm: bool = False
    put_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultStopRequest:
    """Keep an agent's files no longer. The files and the memories stay."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRememberRequest:
    """Append to an agent's episodic.md; or with `working` write working.md anew.

    With `source` it is something that another said, and goes to social.md under that name; `claim` says whether it
    proved right. An agent that asks is the agent: it names none.
    """

    text: str
    agent: str | None = None
    section: str | None = None
    working: bool = False
    source: str | None = None
    claim: Literal["confirmed", "contradicted"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRememberResponse:
    """The memory that was written, and where it stands."""

    id: str
    agent: str
    file: str
    section: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRecallRequest:
    """Sections of an agent's files that share words with a question, by BM25.

    `by_source` lets how often a source of social.md proved right move its sections by a tenth at most.
    """

    query: str
    agent: str | None = None
    limit: int = 5
    by_source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultEntry:
    """An entry of a section: the memory's id, its text, and its BM25 score, 0 where it shares no word."""

    id: str
    text: str
    score: float
    created_at: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSection:
    """A section that answers: its score is the sum of its entries'.

    `confirmed` and `contradicted` count the claims of the source that the section is about, in social.md.
    """

    file: str
    section: str
    score: float
    entries: tuple[VaultEntry, ...]
    confirmed: int = 0
    contradicted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRecallResponse:
    """The sections that answer, best first."""

    agent: str
    sections: tuple[VaultSection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultCondenseRequest:
    """Carry what episodic.md says again and again over to semantic.md, or what an agent says of itself to self.md."""

    agent: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultCondensed:
    """One entry that was carried over, and the memories that it was read from."""

    file: str
    section: str
    text: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultCondenseResponse:
    """What was written, and which memories were archived. `cause` takes it back (`scrubjay undo`).

    `worded` counts those written entries whose words are a Writer's; the others stand word for word in their sources.
    """

    agent: str
    written: tuple[VaultCondensed, ...]
    archived: tuple[str, ...] = ()
    cause: str | None = None
    worded: int = 0
