"""Where each operation is found over HTTP: method, path and status, by the operation's name. Standard library only.

Path parameters are fields of the request. GET and DELETE take the others from the query string, the other methods from
a JSON body. An operation of another package is POST /v1/operations/{name}.
"""

from __future__ import annotations

from typing import NamedTuple


class Route(NamedTuple):
    """The route of one operation, and the status of its response."""

    operation: str
    method: str
    path: str
    status: int = 200

    @property
    def takes_query(self) -> bool:
        """Whether the request's fields stand in the query string, because the method has no body."""
        return self.method in {"GET", "DELETE"}


ROUTES: tuple[Route, ...] = (
    Route("ingest", "POST", "/v1/events", status=202),
    Route("hook", "POST", "/v1/hooks/{host}"),
    Route("events", "GET", "/v1/events"),
    Route("sessions", "GET", "/v1/sessions"),
    Route("compact", "POST", "/v1/sessions/{session_id}/compact"),
    Route("replay", "GET", "/v1/sessions/{session_id}/replay"),
    Route("agents", "GET", "/v1/agents"),
    Route("agent_activity", "GET", "/v1/agents/activity"),
    Route("toc", "GET", "/v1/toc"),
    Route("timeline", "GET", "/v1/timeline"),
    Route("grip", "GET", "/v1/grips/{id}"),
    Route("add", "POST", "/v1/memories", status=201),
    Route("observe", "POST", "/v1/observe"),
    Route("learn", "POST", "/v1/learn"),
    Route("relearn", "POST", "/v1/relearn"),
    Route("list", "GET", "/v1/memories"),
    Route("get", "GET", "/v1/memories/{ref}"),
    Route("update", "PATCH", "/v1/memories/{ref}"),
    Route("supersede", "POST", "/v1/memories/{ref}/supersede"),
    Route("forget", "DELETE", "/v1/memories/{ref}"),
    Route("forget_all", "POST", "/v1/forget"),
    Route("forgets", "GET", "/v1/forgets"),
    Route("rename", "POST", "/v1/memories/{ref}/rename"),
    Route("alias", "POST", "/v1/memories/{ref}/aliases"),
    Route("why", "GET", "/v1/memories/{ref}/why"),
    Route("trace", "GET", "/v1/trace/{id}"),
    Route("projects", "GET", "/v1/projects"),
    Route("trust_folder", "POST", "/v1/projects/trust"),
    Route("feedback", "POST", "/v1/feedback"),
    Route("history", "GET", "/v1/history"),
    Route("undo", "POST", "/v1/undo"),
    Route("consolidate", "POST", "/v1/consolidate"),
    Route("diff", "GET", "/v1/diff"),
    Route("review", "GET", "/v1/review"),
    Route("audit", "GET", "/v1/audit"),
    Route("decide", "POST", "/v1/review"),
    Route("conflicts", "GET", "/v1/conflicts"),
    Route("resolve", "POST", "/v1/memories/{ref}/resolve"),
    Route("recall", "POST", "/v1/recall"),
    Route("ask", "POST", "/v1/ask"),
    Route("route", "POST", "/v1/route"),
    Route("teleport", "POST", "/v1/teleport"),
    Route("layers", "GET", "/v1/route/layers"),
    Route("context", "GET", "/v1/context"),
    Route("brief", "GET", "/v1/brief"),
    Route("set_identity", "PUT", "/v1/identity/{key}"),
    Route("set_active", "PUT", "/v1/active/{key}"),
    Route("active", "GET", "/v1/active"),
    Route("confirm_active", "POST", "/v1/proposals/confirm"),
    Route("dismiss_active", "POST", "/v1/proposals/dismiss"),
    Route("import", "POST", "/v1/import"),
    Route("export", "GET", "/v1/export"),
    Route("stats", "GET", "/v1/stats"),
    Route("status", "GET", "/v1/status"),
    Route("settle", "POST", "/v1/settle"),
    Route("backup", "POST", "/v1/backup"),
    Route("rebuild", "POST", "/v1/rebuild"),
    Route("jobs", "GET", "/v1/jobs"),
    Route("job_runs", "GET", "/v1/jobs/runs"),
    Route("run_job", "POST", "/v1/jobs/{name}/run"),
    Route("pause_job", "POST", "/v1/jobs/{name}/pause"),
    Route("resume_job", "POST", "/v1/jobs/{name}/resume"),
    Route("cost", "GET", "/v1/cost"),
    Route("writer", "GET", "/v1/writer"),
    Route("try_writer", "POST", "/v1/writer/try"),
    Route("use_writer", "POST", "/v1/writer/use"),
    Route("models", "GET", "/v1/models"),
    Route("vaults", "GET", "/v1/vaults"),
    Route("vault_init", "POST", "/v1/vaults"),
    Route("vault_sync", "POST", "/v1/vaults/sync"),
    Route("vault_stop", "POST", "/v1/vaults/stop"),
    Route("vault_remember", "POST", "/v1/vaults/remember"),
    Route("vault_recall", "POST", "/v1/vaults/recall"),
    Route("vault_compact", "POST", "/v1/vaults/compact"),
    Route("vault_reflect", "POST", "/v1/vaults/reflect"),
    Route("use_model", "POST", "/v1/models/use"),
)
BY_OPERATION: dict[str, Route] = {route.operation: route for route in ROUTES}

PLUGIN_PATH = "/v1/operations/{name}"
"""Where the operations of other packages are: POST, JSON in and JSON out."""
