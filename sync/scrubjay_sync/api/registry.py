"""Every operation of sync by name: what it takes and what it returns. Handlers: `scrubjay_sync.operations.dispatch`."""

from __future__ import annotations

from typing import Any, NamedTuple

from scrubjay_sync.api.account import (
    AccountRenameRequest,
    DeletedResponse,
    DeleteRequest,
    PasswordRequest,
    ProofRequest,
    RecoveryCheckRequest,
    RecoveryReplaceRequest,
    RecoveryResponse,
    RecoveryVoidRequest,
    TotpRequest,
)
from scrubjay_sync.api.devices import (
    AnswerRequest,
    AnswerResponse,
    ApproveRequest,
    ApproveResponse,
    BundleResponse,
    DeviceCreateRequest,
    DevicesResponse,
    NamesResponse,
    RenameRequest,
    RevokeRequest,
)
from scrubjay_sync.api.identity import Nothing, WhoResponse
from scrubjay_sync.api.login import (
    BundleRequest,
    JoiningResponse,
    JoinRequest,
    KdfResponse,
    LogInRequest,
    LogOutRequest,
    LogOutResponse,
    RecoverRequest,
    ServerRequest,
    SignUpCheckRequest,
    SignUpRequest,
)
from scrubjay_sync.api.references import RefRequest
from scrubjay_sync.api.rounds import (
    ProgressResponse,
    QuietRequest,
    SnapshotResponse,
    StatusResponse,
    SyncRequest,
    SyncResponse,
)
from scrubjay_sync.api.scopes import (
    FindRequest,
    FoundResponse,
    ScopeCreateRequest,
    ScopeDeletedResponse,
    ScopesResponse,
)
from scrubjay_sync.api.teams import (
    TeamCreateRequest,
    TeamInviteRequest,
    TeamJoinRequest,
    TeamMemberRequest,
    TeamsResponse,
    TeamWordsResponse,
)
from scrubjay_sync.api.verification import (
    CompareRequest,
    CompareResponse,
    HeadsResponse,
    InspectResponse,
    LogResponse,
    VerifyResponse,
)


class Operation(NamedTuple):
    """The types of an operation's request and response."""

    request: type[Any]
    response: type[Any]


OPERATIONS: dict[str, Operation] = {
    "prelogin": Operation(ServerRequest, KdfResponse),
    "sign_up_check": Operation(SignUpCheckRequest, Nothing),
    "sign_up": Operation(SignUpRequest, WhoResponse),
    "log_in": Operation(LogInRequest, JoiningResponse),
    "poll": Operation(Nothing, JoiningResponse),
    "join": Operation(JoinRequest, WhoResponse),
    "recover": Operation(RecoverRequest, WhoResponse),
    "join_limited": Operation(BundleRequest, WhoResponse),
    "log_out": Operation(LogOutRequest, LogOutResponse),
    "sync": Operation(SyncRequest, SyncResponse),
    "snapshot": Operation(Nothing, SnapshotResponse),
    "progress": Operation(Nothing, ProgressResponse),
    "status": Operation(Nothing, StatusResponse),
    "acknowledge": Operation(Nothing, WhoResponse),
    "quiet": Operation(QuietRequest, WhoResponse),
    "verify": Operation(Nothing, VerifyResponse),
    "inspect": Operation(Nothing, InspectResponse),
    "export_heads": Operation(Nothing, HeadsResponse),
    "compare": Operation(CompareRequest, CompareResponse),
    "log": Operation(Nothing, LogResponse),
    "names": Operation(Nothing, NamesResponse),
    "scopes": Operation(Nothing, ScopesResponse),
    "scope_create": Operation(ScopeCreateRequest, ScopesResponse),
    "search": Operation(FindRequest, FoundResponse),
    "scope_delete": Operation(RefRequest, ScopeDeletedResponse),
    "teams": Operation(Nothing, TeamsResponse),
    "team_card": Operation(Nothing, TeamWordsResponse),
    "team_create": Operation(TeamCreateRequest, TeamsResponse),
    "team_invite": Operation(TeamInviteRequest, TeamWordsResponse),
    "team_join": Operation(TeamJoinRequest, TeamsResponse),
    "team_role": Operation(TeamMemberRequest, TeamsResponse),
    "team_remove": Operation(TeamMemberRequest, TeamsResponse),
    "team_leave": Operation(RefRequest, TeamsResponse),
    "devices": Operation(Nothing, DevicesResponse),
    "answer": Operation(AnswerRequest, AnswerResponse),
    "approve": Operation(ApproveRequest, ApproveResponse),
    "revoke": Operation(RevokeRequest, DevicesResponse),
    "rename": Operation(RenameRequest, DevicesResponse),
    "device_create": Operation(DeviceCreateRequest, BundleResponse),
    "recovery_check": Operation(RecoveryCheckRequest, RecoveryResponse),
    "recovery_replace": Operation(RecoveryReplaceRequest, RecoveryResponse),
    "recovery_void": Operation(RecoveryVoidRequest, WhoResponse),
    "rotate": Operation(Nothing, WhoResponse),
    "prove": Operation(ProofRequest, WhoResponse),
    "password": Operation(PasswordRequest, WhoResponse),
    "account_rename": Operation(AccountRenameRequest, WhoResponse),
    "totp": Operation(TotpRequest, WhoResponse),
    "account_delete": Operation(DeleteRequest, DeletedResponse),
}
"""In the daemon each is called "sync." and this name."""
