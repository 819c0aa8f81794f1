"""What scrubjay can be asked: requests and responses by area, and the registry of operations.

A reference (`ref`) is a memory's id, an unambiguous prefix of at least 6 characters of it, its name, or any alias.
Times are UTC milliseconds. `project` and `session_id` in a request narrow what is asked: without either it is about
everything that the caller sees; else about the person's memories, that project's, and that session's, and events of
that project, of that session, or of none. What a caller sees at all, `access` says; what it may not see does not exist
for it: no operation reads or changes it.
"""

from scrubjay.api.context import (
    ContextAnswer,
    ContextRequest,
    SlotRequest,
)
from scrubjay.api.events import (
    EventsAnswer,
    EventsRequest,
    IngestAnswer,
    IngestRequest,
    SessionsAnswer,
    Skipped,
)
from scrubjay.api.history import (
    Change,
    Conflict,
    ConflictsAnswer,
    ConflictsRequest,
    Origin,
    Place,
    ResolveRequest,
    Source,
    Version,
    WhyAnswer,
)
from scrubjay.api.memories import (
    AliasRequest,
    Entry,
    ForgetAnswer,
    ForgetRequest,
    ListAnswer,
    ListRequest,
    RefRequest,
    RenameRequest,
    UpdateRequest,
)
from scrubjay.api.recall import (
    Hit,
    Mode,
    Quote,
    RecallAnswer,
    RecallRequest,
)
from scrubjay.api.status import (
    Job,
    JobRequest,
    JobRun,
    JobRunsAnswer,
    JobRunsRequest,
    JobsAnswer,
    ModelRequest,
    ModelsAnswer,
    ModelState,
    Nothing,
    SettleAnswer,
    SettleRequest,
    StatsAnswer,
    StatusAnswer,
)
from scrubjay.api.transfer import (
    ImportAnswer,
    ImportRequest,
    PathAnswer,
    PathRequest,
    RebuildAnswer,
    RebuildRequest,
)

__all__ = [
    "AliasRequest",
    "Change",
    "Conflict",
    "ConflictsAnswer",
    "ConflictsRequest",
    "ContextAnswer",
    "ContextRequest",
    "Entry",
    "EventsAnswer",
    "EventsRequest",
    "ForgetAnswer",
    "ForgetRequest",
    "Hit",
    "ImportAnswer",
    "ImportRequest",
    "IngestAnswer",
    "IngestRequest",
    "Job",
    "JobRequest",
    "JobRun",
    "JobRunsAnswer",
    "JobRunsRequest",
    "JobsAnswer",
    "ListAnswer",
    "ListRequest",
    "Mode",
    "ModelRequest",
    "ModelState",
    "ModelsAnswer",
    "Nothing",
    "Origin",
    "PathAnswer",
    "PathRequest",
    "Place",
    "Quote",
    "RebuildAnswer",
    "RebuildRequest",
    "RecallAnswer",
    "RecallRequest",
    "RefRequest",
    "RenameRequest",
    "ResolveRequest",
    "SessionsAnswer",
    "SettleAnswer",
    "SettleRequest",
    "Skipped",
    "SlotRequest",
    "Source",
    "StatsAnswer",
    "StatusAnswer",
    "UpdateRequest",
    "Version",
    "WhyAnswer",
]
