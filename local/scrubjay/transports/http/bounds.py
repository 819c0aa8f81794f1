"""What the types of `api` cannot say of a field: its least and greatest value, its length, what it may consist of.

The OpenAPI document says it, so that a request that it allows is not refused. The service checks the same bounds
itself, for every caller. Pure.
"""

from __future__ import annotations

from typing import Any

from scrubjay.api.cost import COST_BY, COST_DAY
from scrubjay.ingest.intake import MAX_PROJECT_CHARS
from scrubjay.policy import MemoryPolicy
from scrubjay_shared.clock import DAY_MINUTES, MAX_EVENT_MILLIS, MAX_MILLIS
from scrubjay_shared.records import Kind

Keywords = dict[str, Any]

NOT_BLANK = r"[\p{L}\p{N}\p{P}\p{S}]"
_PLAIN = r"[\p{L}\p{M}\p{N}\p{P}\p{S} ]*"
PRINTABLE = rf"^{_PLAIN}{NOT_BLANK}{_PLAIN}$"
BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{4})$"
TOC_NODE = (
    r"^toc(:year:[0-9]{4}|:month:[0-9]{4}-[0-9]{2}|:week:[0-9]{4}-W[0-9]{2}|:day:[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|:segment:[0-9A-Z]{26})?$"
)
CURSOR = r"^[0-9]{1,14}-[0-9]{1,14}$"


def bounds(policy: MemoryPolicy) -> dict[str, dict[str, Keywords]]:
    """Return JSON Schema keywords by request record and field."""
    limits, work = policy.limits, policy.work
    time: Keywords = {"minimum": 0, "maximum": MAX_MILLIS}
    share: Keywords = {"minimum": 0, "maximum": 1}
    name: Keywords = {"minLength": 1, "maxLength": limits.max_name_chars, "pattern": PRINTABLE}
    who: Keywords = {"minLength": 1, "maxLength": limits.max_name_chars, "pattern": NOT_BLANK}
    words: Keywords = {"minLength": 1, "maxLength": limits.max_text_chars, "pattern": NOT_BLANK}
    page: Keywords = {"limit": {"minimum": 1, "maximum": work.page}, "cursor": {"pattern": CURSOR}}
    period: Keywords = {"since": time, "until": time}
    asked: Keywords = period | {"as_of": time}
    around: Keywords = {"minimum": 0, "maximum": policy.toc.around}
    return {
        "EventDraft": {
            "agent": who,
            "session_id": who,
            "project": {"maxLength": MAX_PROJECT_CHARS},
            "ts": {"minimum": 0, "maximum": MAX_EVENT_MILLIS},
            "utc_offset": {"exclusiveMinimum": -DAY_MINUTES, "exclusiveMaximum": DAY_MINUTES},
            "text": {"maxLength": limits.max_text_chars},
        },
        "LearnRequest": {"text": words, "project": {"maxLength": MAX_PROJECT_CHARS}},
        "HookRequest": {"host": who, "sent": time, "data": {"pattern": BASE64}},
        "ImportRequest": {"data": {"pattern": BASE64}},
        "IngestRequest": {"events": {"maxItems": limits.max_batch}},
        "MemoryDraft": {
            "content": words,
            "name": name,
            "aliases": {"items": {"type": "string"} | name},
            "salience": share,
            "kind": {"not": {"const": Kind.OBSERVATION.value}},  # that is read from what was said, and added by nobody
            "valid_from": time,
            "valid_to": time,
            "created_at": time,
        },
        "ObserveRequest": {"content": words | {"maxLength": policy.observer.fact_chars}},
        "UpdateRequest": {
            "content": words,
            "salience": share,
            "valid_from": time,
            "valid_to": time,
            "clear": {"items": {"enum": ["topic", "valid_from", "valid_to", "superseded_by"]}},
        },
        "SupersedeRequest": {"content": words},
        "ProposalsRequest": {"refs": {"maxItems": work.recalled_hits}},
        "FeedbackRequest": {"refs": {"minItems": 1, "maxItems": work.recalled_hits}, "content": words},
        "HistoryRequest": page,
        "DiffRequest": {"limit": page["limit"], "since": time, "cursor": {"pattern": "^[0-9A-Z]{26}$"}},
        "ReviewRequest": page,
        "DecideRequest": {"refs": {"maxItems": work.page}},
        "RenameRequest": {"name": name},
        "AliasRequest": {"alias": name},
        "ContextRequest": {"prompt": {"maxLength": limits.max_query_chars}, "max_tokens": {"minimum": 1}},
        "SlotRequest": {"key": name, "value": {"maxLength": limits.max_text_chars}},
        "CostRequest": {
            "by": {"pattern": COST_BY},
            "since": {"pattern": COST_DAY},
            "until": {"pattern": COST_DAY},
            "limit": page["limit"],
        },
        "ForgetsRequest": {"limit": page["limit"]},
        "JobRunsRequest": {"limit": page["limit"]},
        "TraceRequest": {"limit": page["limit"]},
        "ListRequest": page | period,
        "ActivityRequest": period,
        "ReplayRequest": page,
        "EventsRequest": page | period,
        "TocRequest": page | {"id": {"pattern": TOC_NODE}},
        "TimelineRequest": page | period | {"level": {"enum": ["year", "month", "week", "day", "segment", None]}},
        "GripRequest": {"before": around, "after": around},
        "AskRequest": asked | {"question": {"minLength": 1, "maxLength": limits.max_query_chars, "pattern": NOT_BLANK}},
        "RouteRequest": period
        | {
            "query": {"maxLength": limits.max_query_chars},
            "limit": {"minimum": 1, "maximum": work.recalled_hits},
            "max_tokens": {"minimum": 1},
            "timeout_ms": {"minimum": 1},
        },
        "TeleportRequest": period
        | {
            "query": {"maxLength": limits.max_query_chars},
            "limit": {"minimum": 1, "maximum": work.recalled_hits},
        },
        "VaultRememberRequest": {"text": words | {"maxLength": policy.vault.entry_chars}},
        "VaultRecallRequest": {
            "query": {"maxLength": limits.max_query_chars},
            "limit": {"minimum": 1, "maximum": work.recalled_hits},
        },
        "RecallRequest": asked
        | {
            "query": {"maxLength": limits.max_query_chars},
            "also": {"maxItems": limits.also, "items": {"type": "string", "maxLength": limits.max_query_chars}},
            "limit": {"minimum": 1, "maximum": work.recalled_hits},
            "neighbours": {"minimum": 0, "maximum": work.neighbours},
            "min_salience": share,
            "max_tokens": {"minimum": 1},
            "kinds": {"minItems": 1, "items": {"enum": ["memory", "event"]}},
        },
    }


_CHANGES = ("content", "type", "salience", "topic", "layer", "metadata", "valid_from", "valid_to",
            "superseded_by", "archived", "clear")  # fmt: skip

CONDITIONS: dict[str, list[Keywords]] = {
    "MemoryDraft": [
        {
            "if": {"properties": {"scope": {"enum": ["session", "project"]}}, "required": ["scope"]},
            "then": {
                "properties": {"resource_id": {"type": "string", "minLength": 1}},
                "required": ["resource_id"],
            },
        },
        {
            "if": {"properties": {"layer": {"enum": ["identity", "active"]}}, "required": ["layer"]},
            "then": {"properties": {"trust": {"enum": ["user", "agent"]}}},
        },
    ],
    "SupersedeRequest": [
        {
            "oneOf": [
                {"required": [field], "properties": {field: {"type": "string"}, other: {"type": "null"}}}
                for field, other in (("by", "content"), ("content", "by"))
            ]
        }
    ],
    "ProposalsRequest": [
        {
            "oneOf": [
                {"required": ["refs"], "properties": {"refs": {"minItems": 1}, "every": {"const": False}}},
                {"required": ["every"], "properties": {"every": {"const": True}, "refs": {"maxItems": 0}}},
            ]
        }
    ],
    "FeedbackRequest": [
        {
            "if": {"properties": {"wrong": {"const": True}}, "required": ["wrong"]},
            "then": {"properties": {"helped": {"const": False}}},
        },
        {
            "if": {"properties": {"content": {"type": "string"}}, "required": ["content"]},
            "then": {"properties": {"wrong": {"const": True}, "refs": {"maxItems": 1}}, "required": ["wrong"]},
        },
    ],
    "DecideRequest": [
        {
            "oneOf": [
                {"required": ["refs"], "properties": {"refs": {"minItems": 1}, "every": {"const": False}}},
                {"required": ["every"], "properties": {"refs": {"maxItems": 0}, "every": {"const": True}}},
            ]
        }
    ],
    "UpdateRequest": [
        {"anyOf": [{"required": [field], "properties": {field: {"not": {"type": "null"}}}} for field in _CHANGES]}
    ],
}
"""What fields say of each other: a memory of a project names the project, a text that anybody may have written is not
loaded always, an update changes something, proposals are named or all meant."""
