"""Vectors, which devices make and send: which are missing, and what a valid one is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scrubjay_cloud.database.port import Row, Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.policy import SearchPolicy
from scrubjay_cloud.search.access import catch_up, searchable_scope
from scrubjay_cloud.service import Service
from scrubjay_shared.account import ScopeState
from scrubjay_shared.errors import (
    InvalidError,
    TooLargeError,
    WrongSpaceError,
)
from scrubjay_shared.wire import (
    PutVectors,
    WantedVector,
    WantedVectors,
)

Vector = npt.NDArray[np.float32]
ID_CHARS = 26


async def wanted_vectors(service: Service, call: Call) -> Answer:
    """Return the memories that have no vector of what they now say, and the topics without a vector."""
    account, scope, after, page = (
        call.caller.account,
        call.path["scope"],
        call.query["after"],
        service.policy.search.page,
    )
    await searchable_scope(service, call)
    await catch_up(service, account, scope)

    def work(tx: Transaction) -> tuple[list[Row], list[Row]]:
        memories = tx.rows(
            "select id, hash from mem where account = ? and scope = ? and embedded = 0 and text is not null and id > ?"
            " order by id limit ?",
            (account, scope, after, page),
        )
        topics = tx.rows(
            "select distinct topic from mem where account = ? and scope = ? and topic is not null and topic not in"
            " (select topic from mem_label where account = ? and scope = ?) order by topic limit ?",
            (account, scope, account, scope, page),
        )
        return memories, [] if after else topics

    memories, topics = await service.database.read(work)
    return Answer(
        record=WantedVectors(
            wanted=tuple(WantedVector(id=memory, content_hash=said) for memory, said in memories),
            topics=tuple(topic for (topic,) in topics),
            next=memories[-1][0] if len(memories) == page else "",
        )
    )


async def put_vectors(service: Service, call: Call) -> Answer:
    """Take vectors of memories that say what they were made of; others are passed over, for they came too late."""
    given: PutVectors = call.body
    account, scope, policy = call.caller.account, call.path["scope"], service.policy.search
    declared = await searchable_scope(service, call, writes=True)
    check_space(declared, given.space)
    if len(given.vectors) + len(given.topics) > policy.put:
        raise TooLargeError(f"a request may carry {policy.put} vectors", hint="send them in several requests")
    vectors = {one.id: (one.content_hash, vector_of(one.vector, policy)) for one in given.vectors}
    labels = {one.topic: vector_of(one.vector, policy) for one in given.topics}
    widths = {len(vector) for _, vector in vectors.values()} | {len(vector) for vector in labels.values()}
    if len(widths) > 1:
        raise WrongSpaceError(
            "the vectors of the request have different widths", hint="all vectors of a space have the same"
        )
    if not widths:
        return Answer()
    await catch_up(service, account, scope)

    def work(tx: Transaction) -> None:
        tx.execute("update account set gseq = gseq where id = ?", (account,))
        check_width(stored_width(tx, account, scope), min(widths))
        ids, topics = list(vectors), list(labels)
        here = "from mem where account = ? and scope = ? and"
        said: dict[str, str] = {}
        used: list[Row] = []
        if ids:
            sql = f"select id, hash {here} text is not null and id in ({marks(ids)})"
            said = dict(tx.rows(sql, (account, scope, *ids)))
        if topics:
            used = tx.rows(f"select distinct topic {here} topic in ({marks(topics)})", (account, scope, *topics))
        kept = [one for one in ids if said.get(one) == vectors[one][0]]
        for table, key, rows in (
            ("mem_embedding", "id", [(one, vectors[one][1]) for one in kept]),
            ("mem_label", "topic", [(topic, labels[topic]) for (topic,) in used]),
        ):
            mark = "?::text::vector" if tx.dialect == "postgres" and table == "mem_embedding" else "?"
            tx.many(
                f"insert into {table} (account, scope, {key}, vec) values (?, ?, ?, {mark})"
                f" on conflict (account, scope, {key}) do update set vec = excluded.vec",
                [(account, scope, one, pgvector_text(v) if mark != "?" else v.tobytes()) for one, v in rows],
            )
        tx.many(
            "update mem set embedded = 1 where account = ? and scope = ? and id = ?",
            [(account, scope, one) for one in kept],
        )

    await service.database.write(work)
    return Answer()


def check_space(scope: ScopeState, space: str) -> None:
    """Raise WrongSpaceError when vectors are of another embedding space than the scope's."""
    if not scope.space:
        raise WrongSpaceError(
            "the scope was made without an embedding space: it is searched by words only",
            hint="make a new scope: scrubjay sync scopes create --space ID; that of a scope never changes",
        )
    if space != scope.space:
        raise WrongSpaceError(
            f"the scope's vectors are of space {scope.space[:120]!r}, got one of {space[:120]!r}",
            hint="scrubjay models use chooses the model that makes them",
        )


def check_width(there: int, width: int) -> None:
    """Raise WrongSpaceError when vectors have another length than those that are there; 0: there are none."""
    if there not in {0, width}:
        raise WrongSpaceError(
            f"the scope's vectors have {there} numbers, got one of {width}",
            hint="use the model that the scope was made with",
        )


def vector_of(data: bytes, policy: SearchPolicy) -> Vector:
    """Return a vector as it travels, of length 1 exactly. Raises InvalidError, WrongSpaceError."""
    if not data or len(data) % 4:
        raise InvalidError("a vector must be float32 numbers, little-endian", hint="GET /openapi.json describes it")
    vector = np.frombuffer(data, "<f4")
    if len(vector) > policy.dimension:
        raise WrongSpaceError(
            f"a vector may have {policy.dimension} numbers, got {len(vector)}", hint="use a model with shorter vectors"
        )
    length = float(np.sqrt(np.sum(vector.astype(np.float64) ** 2)))
    if not abs(length - 1) <= policy.unit:  # not a number compares as false
        raise InvalidError("a vector must have length 1", hint="normalise it before it is sent")
    return np.asarray(vector / np.float32(length), "<f4")


def pgvector_text(vector: Vector) -> str:
    """Return a vector as pgvector reads it; nine digits bring a float32 back exactly."""
    return "[" + ",".join(f"{number:.9g}" for number in vector.tolist()) + "]"


def stored_width(tx: Transaction, account: bytes, scope: bytes) -> int:
    """Return how many numbers the scope's vectors have; 0 when there is none."""
    for table in ("mem_embedding", "mem_label"):
        column = "vector_send(vec)" if tx.dialect == "postgres" and table == "mem_embedding" else "vec"
        row = tx.row(f"select {column} from {table} where account = ? and scope = ? limit 1", (account, scope))
        if row is not None:
            return len(vectors_of([row[0]], tx.dialect if table == "mem_embedding" else "")[0])
    return 0


def vectors_of(blobs: Sequence[bytes], dialect: str) -> Vector:
    """Return float32 [n, d] of stored vectors: what `vector_send` gives has a header of 4 bytes and is big-endian."""
    if dialect == "postgres":
        rows = np.frombuffer(b"".join(bytes(blob)[4:] for blob in blobs), ">f4")
    else:
        rows = np.frombuffer(b"".join(blobs), "<f4")
    return np.asarray(rows.reshape(len(blobs), -1), np.float32)


def marks(values: Sequence[object]) -> str:
    """Return as many question marks as there are values, for a statement."""
    return ", ".join("?" * len(values))
