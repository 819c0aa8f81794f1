from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_ROLE_UNSPECIFIED: _ClassVar[EventRole]
    EVENT_ROLE_USER: _ClassVar[EventRole]
    EVENT_ROLE_ASSISTANT: _ClassVar[EventRole]
    EVENT_ROLE_SYSTEM: _ClassVar[EventRole]
    EVENT_ROLE_TOOL: _ClassVar[EventRole]

class EventType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_TYPE_UNSPECIFIED: _ClassVar[EventType]
    EVENT_TYPE_SESSION_START: _ClassVar[EventType]
    EVENT_TYPE_USER_MESSAGE: _ClassVar[EventType]
    EVENT_TYPE_ASSISTANT_MESSAGE: _ClassVar[EventType]
    EVENT_TYPE_TOOL_RESULT: _ClassVar[EventType]
    EVENT_TYPE_ASSISTANT_STOP: _ClassVar[EventType]
    EVENT_TYPE_SUBAGENT_START: _ClassVar[EventType]
    EVENT_TYPE_SUBAGENT_STOP: _ClassVar[EventType]
    EVENT_TYPE_SESSION_END: _ClassVar[EventType]

class TocLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOC_LEVEL_UNSPECIFIED: _ClassVar[TocLevel]
    TOC_LEVEL_YEAR: _ClassVar[TocLevel]
    TOC_LEVEL_MONTH: _ClassVar[TocLevel]
    TOC_LEVEL_WEEK: _ClassVar[TocLevel]
    TOC_LEVEL_DAY: _ClassVar[TocLevel]
    TOC_LEVEL_SEGMENT: _ClassVar[TocLevel]

class TeleportDocType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TELEPORT_DOC_TYPE_UNSPECIFIED: _ClassVar[TeleportDocType]
    TELEPORT_DOC_TYPE_TOC_NODE: _ClassVar[TeleportDocType]
    TELEPORT_DOC_TYPE_GRIP: _ClassVar[TeleportDocType]

class QueryIntent(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_INTENT_UNSPECIFIED: _ClassVar[QueryIntent]
    QUERY_INTENT_EXPLORE: _ClassVar[QueryIntent]
    QUERY_INTENT_ANSWER: _ClassVar[QueryIntent]
    QUERY_INTENT_LOCATE: _ClassVar[QueryIntent]
    QUERY_INTENT_TIME_BOXED: _ClassVar[QueryIntent]

class RetrievalLayer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRIEVAL_LAYER_UNSPECIFIED: _ClassVar[RetrievalLayer]
    RETRIEVAL_LAYER_TOPICS: _ClassVar[RetrievalLayer]
    RETRIEVAL_LAYER_HYBRID: _ClassVar[RetrievalLayer]
    RETRIEVAL_LAYER_VECTOR: _ClassVar[RetrievalLayer]
    RETRIEVAL_LAYER_BM25: _ClassVar[RetrievalLayer]
    RETRIEVAL_LAYER_AGENTIC: _ClassVar[RetrievalLayer]
EVENT_ROLE_UNSPECIFIED: EventRole
EVENT_ROLE_USER: EventRole
EVENT_ROLE_ASSISTANT: EventRole
EVENT_ROLE_SYSTEM: EventRole
EVENT_ROLE_TOOL: EventRole
EVENT_TYPE_UNSPECIFIED: EventType
EVENT_TYPE_SESSION_START: EventType
EVENT_TYPE_USER_MESSAGE: EventType
EVENT_TYPE_ASSISTANT_MESSAGE: EventType
EVENT_TYPE_TOOL_RESULT: EventType
EVENT_TYPE_ASSISTANT_STOP: EventType
EVENT_TYPE_SUBAGENT_START: EventType
EVENT_TYPE_SUBAGENT_STOP: EventType
EVENT_TYPE_SESSION_END: EventType
TOC_LEVEL_UNSPECIFIED: TocLevel
TOC_LEVEL_YEAR: TocLevel
TOC_LEVEL_MONTH: TocLevel
TOC_LEVEL_WEEK: TocLevel
TOC_LEVEL_DAY: TocLevel
TOC_LEVEL_SEGMENT: TocLevel
TELEPORT_DOC_TYPE_UNSPECIFIED: TeleportDocType
TELEPORT_DOC_TYPE_TOC_NODE: TeleportDocType
TELEPORT_DOC_TYPE_GRIP: TeleportDocType
QUERY_INTENT_UNSPECIFIED: QueryIntent
QUERY_INTENT_EXPLORE: QueryIntent
QUERY_INTENT_ANSWER: QueryIntent
QUERY_INTENT_LOCATE: QueryIntent
QUERY_INTENT_TIME_BOXED: QueryIntent
RETRIEVAL_LAYER_UNSPECIFIED: RetrievalLayer
RETRIEVAL_LAYER_TOPICS: RetrievalLayer
RETRIEVAL_LAYER_HYBRID: RetrievalLayer
RETRIEVAL_LAYER_VECTOR: RetrievalLayer
RETRIEVAL_LAYER_BM25: RetrievalLayer
RETRIEVAL_LAYER_AGENTIC: RetrievalLayer

class Event(_message.Message):
    __slots__ = ("event_id", "session_id", "timestamp_ms", "event_type", "role", "text", "metadata", "agent")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    session_id: str
    timestamp_ms: int
    event_type: EventType
    role: EventRole
    text: str
    metadata: _containers.ScalarMap[str, str]
    agent: str
    def __init__(self, event_id: _Optional[str] = ..., session_id: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., event_type: _Optional[_Union[EventType, str]] = ..., role: _Optional[_Union[EventRole, str]] = ..., text: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., agent: _Optional[str] = ...) -> None: ...

class IngestEventRequest(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: Event
    def __init__(self, event: _Optional[_Union[Event, _Mapping]] = ...) -> None: ...

class IngestEventResponse(_message.Message):
    __slots__ = ("event_id", "created")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    created: bool
    def __init__(self, event_id: _Optional[str] = ..., created: _Optional[bool] = ...) -> None: ...

class TocBullet(_message.Message):
    __slots__ = ("text", "grip_ids")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    GRIP_IDS_FIELD_NUMBER: _ClassVar[int]
    text: str
    grip_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, text: _Optional[str] = ..., grip_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class TocNode(_message.Message):
    __slots__ = ("node_id", "level", "title", "summary", "bullets", "keywords", "child_node_ids", "start_time_ms", "end_time_ms", "version")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    BULLETS_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    CHILD_NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    END_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    level: TocLevel
    title: str
    summary: str
    bullets: _containers.RepeatedCompositeFieldContainer[TocBullet]
    keywords: _containers.RepeatedScalarFieldContainer[str]
    child_node_ids: _containers.RepeatedScalarFieldContainer[str]
    start_time_ms: int
    end_time_ms: int
    version: int
    def __init__(self, node_id: _Optional[str] = ..., level: _Optional[_Union[TocLevel, str]] = ..., title: _Optional[str] = ..., summary: _Optional[str] = ..., bullets: _Optional[_Iterable[_Union[TocBullet, _Mapping]]] = ..., keywords: _Optional[_Iterable[str]] = ..., child_node_ids: _Optional[_Iterable[str]] = ..., start_time_ms: _Optional[int] = ..., end_time_ms: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class Grip(_message.Message):
    __slots__ = ("grip_id", "excerpt", "event_id_start", "event_id_end", "timestamp_ms", "source")
    GRIP_ID_FIELD_NUMBER: _ClassVar[int]
    EXCERPT_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_START_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_END_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    grip_id: str
    excerpt: str
    event_id_start: str
    event_id_end: str
    timestamp_ms: int
    source: str
    def __init__(self, grip_id: _Optional[str] = ..., excerpt: _Optional[str] = ..., event_id_start: _Optional[str] = ..., event_id_end: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., source: _Optional[str] = ...) -> None: ...

class GetTocRootRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetTocRootResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[TocNode]
    def __init__(self, nodes: _Optional[_Iterable[_Union[TocNode, _Mapping]]] = ...) -> None: ...

class GetNodeRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    def __init__(self, node_id: _Optional[str] = ...) -> None: ...

class GetNodeResponse(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: TocNode
    def __init__(self, node: _Optional[_Union[TocNode, _Mapping]] = ...) -> None: ...

class BrowseTocRequest(_message.Message):
    __slots__ = ("parent_id", "limit", "continuation_token")
    PARENT_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTINUATION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent_id: str
    limit: int
    continuation_token: str
    def __init__(self, parent_id: _Optional[str] = ..., limit: _Optional[int] = ..., continuation_token: _Optional[str] = ...) -> None: ...

class BrowseTocResponse(_message.Message):
    __slots__ = ("children", "continuation_token", "has_more")
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CONTINUATION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    children: _containers.RepeatedCompositeFieldContainer[TocNode]
    continuation_token: str
    has_more: bool
    def __init__(self, children: _Optional[_Iterable[_Union[TocNode, _Mapping]]] = ..., continuation_token: _Optional[str] = ..., has_more: _Optional[bool] = ...) -> None: ...

class GetEventsRequest(_message.Message):
    __slots__ = ("from_timestamp_ms", "to_timestamp_ms", "limit")
    FROM_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    TO_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    from_timestamp_ms: int
    to_timestamp_ms: int
    limit: int
    def __init__(self, from_timestamp_ms: _Optional[int] = ..., to_timestamp_ms: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class GetEventsResponse(_message.Message):
    __slots__ = ("events", "has_more")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    has_more: bool
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., has_more: _Optional[bool] = ...) -> None: ...

class ExpandGripRequest(_message.Message):
    __slots__ = ("grip_id", "events_before", "events_after")
    GRIP_ID_FIELD_NUMBER: _ClassVar[int]
    EVENTS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_AFTER_FIELD_NUMBER: _ClassVar[int]
    grip_id: str
    events_before: int
    events_after: int
    def __init__(self, grip_id: _Optional[str] = ..., events_before: _Optional[int] = ..., events_after: _Optional[int] = ...) -> None: ...

class ExpandGripResponse(_message.Message):
    __slots__ = ("grip", "events_before", "excerpt_events", "events_after")
    GRIP_FIELD_NUMBER: _ClassVar[int]
    EVENTS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    EXCERPT_EVENTS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_AFTER_FIELD_NUMBER: _ClassVar[int]
    grip: Grip
    events_before: _containers.RepeatedCompositeFieldContainer[Event]
    excerpt_events: _containers.RepeatedCompositeFieldContainer[Event]
    events_after: _containers.RepeatedCompositeFieldContainer[Event]
    def __init__(self, grip: _Optional[_Union[Grip, _Mapping]] = ..., events_before: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., excerpt_events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., events_after: _Optional[_Iterable[_Union[Event, _Mapping]]] = ...) -> None: ...

class TeleportSearchRequest(_message.Message):
    __slots__ = ("query", "doc_type", "limit", "agent_filter")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    DOC_TYPE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FILTER_FIELD_NUMBER: _ClassVar[int]
    query: str
    doc_type: TeleportDocType
    limit: int
    agent_filter: str
    def __init__(self, query: _Optional[str] = ..., doc_type: _Optional[_Union[TeleportDocType, str]] = ..., limit: _Optional[int] = ..., agent_filter: _Optional[str] = ...) -> None: ...

class TeleportSearchResult(_message.Message):
    __slots__ = ("doc_id", "doc_type", "score", "keywords", "timestamp_ms", "agent")
    DOC_ID_FIELD_NUMBER: _ClassVar[int]
    DOC_TYPE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    doc_id: str
    doc_type: TeleportDocType
    score: float
    keywords: str
    timestamp_ms: int
    agent: str
    def __init__(self, doc_id: _Optional[str] = ..., doc_type: _Optional[_Union[TeleportDocType, str]] = ..., score: _Optional[float] = ..., keywords: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., agent: _Optional[str] = ...) -> None: ...

class TeleportSearchResponse(_message.Message):
    __slots__ = ("results", "total_docs")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_DOCS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[TeleportSearchResult]
    total_docs: int
    def __init__(self, results: _Optional[_Iterable[_Union[TeleportSearchResult, _Mapping]]] = ..., total_docs: _Optional[int] = ...) -> None: ...

class RouteQueryRequest(_message.Message):
    __slots__ = ("query", "intent_override", "limit", "agent_filter")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    INTENT_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FILTER_FIELD_NUMBER: _ClassVar[int]
    query: str
    intent_override: QueryIntent
    limit: int
    agent_filter: str
    def __init__(self, query: _Optional[str] = ..., intent_override: _Optional[_Union[QueryIntent, str]] = ..., limit: _Optional[int] = ..., agent_filter: _Optional[str] = ...) -> None: ...

class RetrievalResult(_message.Message):
    __slots__ = ("doc_id", "doc_type", "score", "text_preview", "source_layer", "metadata", "agent")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DOC_ID_FIELD_NUMBER: _ClassVar[int]
    DOC_TYPE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TEXT_PREVIEW_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LAYER_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    doc_id: str
    doc_type: str
    score: float
    text_preview: str
    source_layer: RetrievalLayer
    metadata: _containers.ScalarMap[str, str]
    agent: str
    def __init__(self, doc_id: _Optional[str] = ..., doc_type: _Optional[str] = ..., score: _Optional[float] = ..., text_preview: _Optional[str] = ..., source_layer: _Optional[_Union[RetrievalLayer, str]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., agent: _Optional[str] = ...) -> None: ...

class ExplainabilityPayload(_message.Message):
    __slots__ = ("intent", "why_winner", "total_time_ms", "grip_ids")
    INTENT_FIELD_NUMBER: _ClassVar[int]
    WHY_WINNER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    GRIP_IDS_FIELD_NUMBER: _ClassVar[int]
    intent: QueryIntent
    why_winner: str
    total_time_ms: int
    grip_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, intent: _Optional[_Union[QueryIntent, str]] = ..., why_winner: _Optional[str] = ..., total_time_ms: _Optional[int] = ..., grip_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class RouteQueryResponse(_message.Message):
    __slots__ = ("results", "explanation", "has_results", "layers_attempted")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    HAS_RESULTS_FIELD_NUMBER: _ClassVar[int]
    LAYERS_ATTEMPTED_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RetrievalResult]
    explanation: ExplainabilityPayload
    has_results: bool
    layers_attempted: _containers.RepeatedScalarFieldContainer[RetrievalLayer]
    def __init__(self, results: _Optional[_Iterable[_Union[RetrievalResult, _Mapping]]] = ..., explanation: _Optional[_Union[ExplainabilityPayload, _Mapping]] = ..., has_results: _Optional[bool] = ..., layers_attempted: _Optional[_Iterable[_Union[RetrievalLayer, str]]] = ...) -> None: ...

class AgentSummary(_message.Message):
    __slots__ = ("agent_id", "event_count", "session_count", "first_seen_ms", "last_seen_ms")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    event_count: int
    session_count: int
    first_seen_ms: int
    last_seen_ms: int
    def __init__(self, agent_id: _Optional[str] = ..., event_count: _Optional[int] = ..., session_count: _Optional[int] = ..., first_seen_ms: _Optional[int] = ..., last_seen_ms: _Optional[int] = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[AgentSummary]
    def __init__(self, agents: _Optional[_Iterable[_Union[AgentSummary, _Mapping]]] = ...) -> None: ...

class GetAgentActivityRequest(_message.Message):
    __slots__ = ("agent_id", "from_ms", "to_ms", "bucket")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    TO_MS_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    from_ms: int
    to_ms: int
    bucket: str
    def __init__(self, agent_id: _Optional[str] = ..., from_ms: _Optional[int] = ..., to_ms: _Optional[int] = ..., bucket: _Optional[str] = ...) -> None: ...

class ActivityBucket(_message.Message):
    __slots__ = ("start_ms", "end_ms", "event_count", "agent_id")
    START_MS_FIELD_NUMBER: _ClassVar[int]
    END_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    start_ms: int
    end_ms: int
    event_count: int
    agent_id: str
    def __init__(self, start_ms: _Optional[int] = ..., end_ms: _Optional[int] = ..., event_count: _Optional[int] = ..., agent_id: _Optional[str] = ...) -> None: ...

class GetAgentActivityResponse(_message.Message):
    __slots__ = ("buckets",)
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    buckets: _containers.RepeatedCompositeFieldContainer[ActivityBucket]
    def __init__(self, buckets: _Optional[_Iterable[_Union[ActivityBucket, _Mapping]]] = ...) -> None: ...
