"""The routes of searchable scopes."""

from __future__ import annotations

from scrubjay_cloud.endpoint import Admits, Endpoint, Query, Takes
from scrubjay_cloud.search.query import search
from scrubjay_cloud.search.vectors import ID_CHARS, put_vectors, wanted_vectors
from scrubjay_shared.wire import (
    PutVectors,
    SearchAnswer,
    SearchRequest,
    WantedVectors,
)


def _after(text: str) -> str:
    if len(text) > ID_CHARS or not text.isalnum():
        raise ValueError("an id of a memory")
    return text


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/search/{scope}",
        summary="Search a scope that the server may read.",
        handler=search,
        admits=Admits.DEVICE,
        takes=Takes.JSON,
        record=SearchRequest,
        answer=SearchAnswer,
        limit="pull",
    ),
    Endpoint(
        method="GET",
        path="/v1/search/{scope}/vectors",
        summary="Which memories of a searchable scope want a vector.",
        handler=wanted_vectors,
        admits=Admits.DEVICE,
        answer=WantedVectors,
        limit="pull",
        query=(
            Query(
                name="after",
                meaning="where the page before ended",
                read=_after,
                schema={"type": "string", "pattern": f"^[0-9A-Za-z]{{1,{ID_CHARS}}}$"},
                default="",
            ),
        ),
    ),
    Endpoint(
        method="PUT",
        path="/v1/search/{scope}/vectors",
        summary="Give vectors of a searchable scope's memories.",
        handler=put_vectors,
        admits=Admits.DEVICE,
        takes=Takes.JSON,
        record=PutVectors,
        status=204,
        limit="push",
    ),
)
