"""The routes of lanes, objects and scopes."""

from __future__ import annotations

from typing import Any

from scrubjay_cloud.decoding import hex_id, whole
from scrubjay_cloud.endpoint import Admits, Endpoint, Query, Takes
from scrubjay_cloud.lanes.objects import get_object, put_object
from scrubjay_cloud.lanes.push import pack, push, repair
from scrubjay_cloud.lanes.read import heads, pull, read_lane
from scrubjay_cloud.lanes.scopes import delete_scope
from scrubjay_cloud.lanes.snapshots import delete_snapshot, get_snapshot, missing_chunks, put_snapshot
from scrubjay_cloud.lanes.stream import events
from scrubjay_cloud.lanes.validate import MAX_N
from scrubjay_shared.envelope import (
    MAX_PAGE_BYTES,
)
from scrubjay_shared.errors import (
    InvalidError,
)
from scrubjay_shared.wire import Chunks, Deleted, Heads, PushAnswer, PutSnapshot


def _scopes(text: str) -> tuple[bytes, ...] | None:
    return tuple(dict.fromkeys(_id(part) for part in text.split(",")[:1_001])) if text else None


def _id(text: str) -> bytes:
    try:
        return hex_id(text)
    except InvalidError as error:
        raise ValueError("ids of 32 lower-case hex digits, separated by commas") from error


_LIMIT = Query(
    name="limit",
    meaning="a number of bytes",
    read=whole(1, MAX_PAGE_BYTES),
    schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE_BYTES},
    default=MAX_PAGE_BYTES,
)
_SCOPES = Query(
    name="scopes",
    meaning="a list of scopes",
    read=_scopes,
    schema={"type": "string", "pattern": "^([0-9a-f]{32}(,[0-9a-f]{32})*)?$"},
)


def _taking(path: str, summary: str, handler: Any) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        summary=summary,
        handler=handler,
        admits=Admits.DEVICE,
        takes=Takes.OBJECTS,
        answer=PushAnswer,
        limit="push",
    )


ENDPOINTS = (
    _taking("/v1/push", "Append objects to the calling device's lanes.", push),
    _taking("/v1/pack", "Put packs in the place of what they cover.", pack),
    _taking("/v1/heal", "Give back objects that the server has lost.", repair),
    Endpoint(
        method="GET",
        path="/v1/pull",
        summary="The objects after a cursor, in order; waits for some when there are none.",
        handler=pull,
        admits=Admits.DEVICE,
        refused=True,
        answer=bytes,
        limit="pull",
        query=(
            Query(name="after", meaning="a cursor", read=str, schema={"type": "string"}, default=""),
            _LIMIT,
            Query(
                name="wait",
                meaning="a number of seconds",
                read=whole(0, 3_600),
                schema={"type": "integer", "minimum": 0, "maximum": 3_600},
                default=0,
            ),
            _SCOPES,
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/lanes/{scope}/{device}",
        summary="One lane from a number on.",
        handler=read_lane,
        admits=Admits.DEVICE,
        refused=True,
        answer=bytes,
        limit="pull",
        query=(
            Query(
                name="from",
                meaning="a number in the lane",
                read=whole(1, MAX_N),
                schema={"type": "integer", "minimum": 1, "maximum": MAX_N},
                default=1,
            ),
            _LIMIT,
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/heads",
        summary="Where every lane ends.",
        handler=heads,
        admits=Admits.DEVICE,
        refused=True,
        answer=Heads,
        limit="pull",
    ),
    Endpoint(
        method="GET",
        path="/v1/events",
        summary="The account's `gseq`, as server-sent events, whenever it moves.",
        handler=events,
        admits=Admits.DEVICE,
        refused=True,
        answer=str,
        limit="pull",
    ),
    Endpoint(
        method="GET",
        path="/v1/objects/{hash}",
        summary="An object that stands in no lane.",
        handler=get_object,
        admits=Admits.PENDING,
        refused=True,
        answer=bytes,
        limit="pull",
    ),
    Endpoint(
        method="PUT",
        path="/v1/objects/{hash}",
        summary="Keep an object under its hash.",
        handler=put_object,
        admits=Admits.FULL,
        takes=Takes.OBJECTS,
        status=204,
        limit="push",
    ),
    Endpoint(
        method="GET",
        path="/v1/snapshots/{scope}",
        summary="The manifest of a scope's snapshot.",
        handler=get_snapshot,
        admits=Admits.DEVICE,
        answer=bytes,
        limit="pull",
    ),
    Endpoint(
        method="PUT",
        path="/v1/snapshots/{scope}",
        summary="Put a snapshot in the place of the one that a scope has.",
        handler=put_snapshot,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=PutSnapshot,
        status=204,
        limit="push",
    ),
    Endpoint(
        method="DELETE",
        path="/v1/snapshots/{scope}",
        summary="Delete a scope's snapshot.",
        handler=delete_snapshot,
        admits=Admits.DEVICE,
        status=204,
    ),
    Endpoint(
        method="POST",
        path="/v1/snapshots/{scope}/missing",
        summary="Which of some chunks of a snapshot are not there.",
        handler=missing_chunks,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=Chunks,
        answer=Chunks,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/scopes/{scope}",
        summary="Delete everything of a scope that the log has ended.",
        handler=delete_scope,
        admits=Admits.FULL,
        answer=Deleted,
    ),
)
