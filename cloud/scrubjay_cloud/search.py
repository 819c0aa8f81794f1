"""Searching a searchable scope: candidates by meaning and by words, scored as devices score them.

The nearest vectors come from the database (pgvector's exact distance, or its index where a scope is large; numpy over
the scope's vectors on SQLite), the best by words from the words that `materialise` keeps. Both together are scored by
`scoring.weighted` in one place, from the same numbers, so that both databases give the same answer.

Vectors come from devices; there is no model here. They belong to the space that the account log pins for the scope, and
to the words they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from scrubjay_cloud.database.port import Database, Row, Transaction
from scrubjay_cloud.endpoint import Admits, Answer, Call, Endpoint, Query, Takes
from scrubjay_cloud.materialise import caught_up
from scrubjay_cloud.policy import SearchPolicy
from scrubjay_cloud.service import Service
from scrubjay_shared import scoring
from scrubjay_shared.account import ScopeState
from scrubjay_shared.envelope import Suite
from scrubjay_shared.errors import (
    DeniedError,
    InvalidError,
    NotFoundError,
    NotSearchableError,
    RevokedError,
    TooLargeError,
    WrongSpaceError,
)
from scrubjay_shared.text import query_tokens
from scrubjay_shared.wire import (
    PutVectors,
    SearchAnswer,
    SearchHit,
    SearchRequest,
    WantedVector,
    WantedVectors,
)

Vector = npt.NDArray[np.float32]
HYBRID, KEYWORD = "hybrid", "keyword"
ID_CHARS = 26


async def _searchable(service: Service, call: Call, *, writes: bool = False) -> ScopeState:
    """Return the scope of a call, which the caller may read and the server may search. Raises what forbids it."""
    caller, scope = call.caller, call.path["scope"]
    state = await service.state(caller.account, caller.head)
    device, found = state.devices.get(caller.device or b""), state.scopes.get(scope)
    if device is None or device.revoked:
        raise RevokedError(
            "this device was revoked: it syncs no more",
            hint="scrubjay logout, then scrubjay login asks to be added again",
        )
    if device.scopes is not None and scope not in device.scopes:
        raise DeniedError(
            "this device was not given that scope", hint="scrubjay sync scopes list shows the scopes of this device"
        )
    if writes and device.read_only:
        raise DeniedError(
            "this is a read-only device, which may not send vectors", hint="devices that may write send them"
        )
    if found is None or found.deleted:
        raise NotFoundError("the account has no such scope", hint="scrubjay sync scopes list shows them")
    if found.suite != Suite.OPEN:
        raise NotSearchableError(
            "the scope is sealed: this server cannot read it", hint="scrubjay recall searches it on your device"
        )
    if not service.database.searches:
        raise NotSearchableError(
            "this server cannot search: its PostgreSQL has no pgvector 0.8",
            hint="its operator installs the extension and restarts it; scrubjay recall searches on your device",
        )
    return found


async def _caught_up(service: Service, account: bytes, scope: bytes) -> None:
    await caught_up(service.database, account, scope, policy=service.policy.search, offload=service.offload)


# --- vectors ----------------------------------------------------------------------------------------------------------


async def wanted_vectors(service: Service, call: Call) -> Answer:
    """Name the memories that have no vector of what they now say, and the topics that have none."""
    account, scope, after, page = (
        call.caller.account,
        call.path["scope"],
        call.query["after"],
        service.policy.search.page,
    )
    await _searchable(service, call)
    await _caught_up(service, account, scope)

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
    found = await _searchable(service, call, writes=True)
    _check_space(found, given.space)
    if len(given.vectors) + len(given.topics) > policy.put:
        raise TooLargeError(f"a request may carry {policy.put} vectors", hint="send them in several requests")
    vectors = {one.id: (one.content_hash, _vector(one.vector, policy)) for one in given.vectors}
    labels = {one.topic: _vector(one.vector, policy) for one in given.topics}
    widths = {len(vector) for _, vector in vectors.values()} | {len(vector) for vector in labels.values()}
    if len(widths) > 1:
        raise WrongSpaceError(
            "the vectors of the request have different widths", hint="all vectors of a space have the same"
        )
    if not widths:
        return Answer()
    await _caught_up(service, account, scope)

    def work(tx: Transaction) -> None:
        tx.execute("update account set gseq = gseq where id = ?", (account,))
        _check_width(_width(tx, account, scope), min(widths))
        ids, topics = list(vectors), list(labels)
        here = "from mem where account = ? and scope = ? and"
        said: dict[str, str] = {}
        used: list[Row] = []
        if ids:
            sql = f"select id, hash {here} text is not null and id in ({_marks(ids)})"
            said = dict(tx.rows(sql, (account, scope, *ids)))
        if topics:
            used = tx.rows(f"select distinct topic {here} topic in ({_marks(topics)})", (account, scope, *topics))
        kept = [one for one in ids if said.get(one) == vectors[one][0]]
        for table, key, rows in (
            ("mem_embedding", "id", [(one, vectors[one][1]) for one in kept]),
            ("mem_label", "topic", [(topic, labels[topic]) for (topic,) in used]),
        ):
            mark = "?::text::vector" if tx.dialect == "postgres" and table == "mem_embedding" else "?"
            tx.many(
                f"insert into {table} (account, scope, {key}, vec) values (?, ?, ?, {mark})"
                f" on conflict (account, scope, {key}) do update set vec = excluded.vec",
                [(account, scope, one, _words_of(v) if mark != "?" else v.tobytes()) for one, v in rows],
            )
        tx.many(
            "update mem set embedded = 1 where account = ? and scope = ? and id = ?",
            [(account, scope, one) for one in kept],
        )

    await service.database.write(work)
    return Answer()


def _check_space(scope: ScopeState, space: str) -> None:
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


def _check_width(there: int, width: int) -> None:
    if there not in {0, width}:
        raise WrongSpaceError(
            f"the scope's vectors have {there} numbers, got one of {width}",
            hint="use the model that the scope was made with",
        )


def _vector(data: bytes, policy: SearchPolicy) -> Vector:
    """Return a vector as it travels, of length 1 exactly. Raises InvalidError, WrongSpaceError."""
    if not data or len(data) % 4:
        raise InvalidError("a vector must be float32 numbers, little-endian", hint="GET /openapi.json describes it")
    found = np.frombuffer(data, "<f4")
    if len(found) > policy.dimension:
        raise WrongSpaceError(
            f"a vector may have {policy.dimension} numbers, got {len(found)}", hint="use a model with shorter vectors"
        )
    length = float(np.sqrt(np.sum(found.astype(np.float64) ** 2)))
    if not abs(length - 1) <= policy.unit:  # not a number compares as false
        raise InvalidError("a vector must have length 1", hint="normalise it before it is sent")
    return np.asarray(found / np.float32(length), "<f4")


def _words_of(vector: Vector) -> str:
    """Return a vector as pgvector reads it; nine digits bring a float32 back exactly."""
    return "[" + ",".join(f"{number:.9g}" for number in vector.tolist()) + "]"


def _width(tx: Transaction, account: bytes, scope: bytes) -> int:
    """Return how many numbers the scope's vectors have; 0 when there is none."""
    for table in ("mem_embedding", "mem_label"):
        column = "vector_send(vec)" if tx.dialect == "postgres" and table == "mem_embedding" else "vec"
        row = tx.row(f"select {column} from {table} where account = ? and scope = ? limit 1", (account, scope))
        if row is not None:
            return len(_kept([row[0]], tx.dialect if table == "mem_embedding" else "")[0])
    return 0


def _kept(blobs: Sequence[bytes], dialect: str) -> Vector:
    """Return float32 [n, d] of stored vectors: what `vector_send` gives has a header of 4 bytes and is big-endian."""
    if dialect == "postgres":
        rows = np.frombuffer(b"".join(bytes(blob)[4:] for blob in blobs), ">f4")
    else:
        rows = np.frombuffer(b"".join(blobs), "<f4")
    return np.asarray(rows.reshape(len(blobs), -1), np.float32)


# --- searching --------------------------------------------------------------------------------------------------------


async def search(service: Service, call: Call) -> Answer:
    """Search by meaning and words; without a vector by words alone. The best come first."""
    asked: SearchRequest = call.body
    policy = service.policy.search
    found = await _searchable(service, call)
    if len(asked.text) > policy.text_chars:
        raise TooLargeError(f"a query may have {policy.text_chars} characters", hint="shorten it")
    if not 1 <= asked.limit <= policy.hits:
        raise InvalidError(f"limit must be from 1 to {policy.hits}", hint="ask for fewer")
    vector = None
    if asked.vector:
        _check_space(found, asked.space)
        vector = _vector(asked.vector, policy)
    account = call.caller.account
    await _caught_up(service, account, found.id)
    hits = await service.database.read(lambda tx: searched(tx, account, found.id, asked, vector=vector, policy=policy))
    return Answer(record=SearchAnswer(hits=hits, mode=KEYWORD if vector is None else HYBRID))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A search inside a transaction. `where` and `values` keep to rows of `mem m` that the filters allow."""

    account: bytes
    scope: bytes
    where: str
    values: tuple[object, ...]
    idf: Mapping[str, float]
    tokens: tuple[str, ...]

    @property
    def join(self) -> str:
        """What a statement over a table `x` of ids adds to keep to those rows."""
        return " join mem m on m.account = x.account and m.scope = x.scope and m.id = x.id" if self.where else ""


def searched(
    tx: Transaction,
    account: bytes,
    scope: bytes,
    request: SearchRequest,
    *,
    vector: Vector | None,
    policy: SearchPolicy,
) -> tuple[SearchHit, ...]:
    """Return the hits. The rows must be caught up with the lanes. Raises WrongSpaceError."""
    if vector is not None:
        _check_width(_width(tx, account, scope), len(vector))
    where, values = "", list[object]()
    for column, wanted in (("type", request.type), ("topic", request.topic)):
        if wanted:
            where += f" and m.{column} = ?"
            values.append(wanted)
    if vector is not None and not request.topic:
        topics = _topics(tx, account, scope, vector, policy)
        if topics is not None:
            where += f" and m.topic in ({_marks(topics)})"
            values += topics
    tokens, idf = _idf(tx, account, scope, request.text)
    asked = _Asked(account=account, scope=scope, where=where, values=tuple(values), idf=idf, tokens=tokens)
    ids = _by_words(tx, asked, policy) | (_by_meaning(tx, asked, vector, policy) if vector is not None else set())
    return _scored(tx, asked, sorted(ids), vector, limit=request.limit, policy=policy) if ids else ()


def _topics(tx: Transaction, account: bytes, scope: bytes, vector: Vector, policy: SearchPolicy) -> list[str] | None:
    """Return the topics to search in; None for all."""
    labels = tx.rows(
        "select topic, vec from mem_label where account = ? and scope = ? order by topic", (account, scope)
    )
    if not labels:
        return None
    likeness = _kept([row[1] for row in labels], "") @ vector
    counts: dict[str, int] = dict(
        tx.rows(
            "select topic, count(*) from mem where account = ? and scope = ? and topic is not null group by topic",
            (account, scope),
        )
    )
    chosen = scoring.topic_filter(
        {row[0]: float(like) for row, like in zip(labels, likeness, strict=True)},
        counts,
        threshold=policy.topic_threshold,
        min_size=policy.min_topic_filter_size,
    )
    return None if chosen is None else sorted(chosen)


def _idf(tx: Transaction, account: bytes, scope: bytes, text: str) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return a query's tokens, and what each weighs by how many memories of the scope hold it."""
    tokens = tuple(query_tokens(text))
    if not tokens:
        return (), {}
    row = tx.row("select count(*) from mem where account = ? and scope = ? and text is not null", (account, scope))
    count = int(row[0]) if row else 0
    held: dict[str, int] = dict(
        tx.rows(
            f"select word, count(*) from mem_word where account = ? and scope = ? and word in ({_marks(tokens)})"
            " group by word",
            (account, scope, *tokens),
        )
    )
    return tokens, {token: scoring.overlap_idf(count, held.get(token, 0)) for token in tokens}


def _by_words(tx: Transaction, asked: _Asked, policy: SearchPolicy) -> set[str]:
    if not asked.tokens:
        return set()
    weight = " ".join("when ? then cast(? as double precision)" for _ in asked.tokens)
    weights = [value for token in asked.tokens for value in (token, asked.idf[token])]
    rows = tx.rows(
        f"select x.id, sum(case x.word {weight} end) as held from mem_word x{asked.join}"
        f" where x.account = ? and x.scope = ? and x.word in ({_marks(asked.tokens)}){asked.where}"
        " group by x.id order by held desc, x.id limit ?",
        (*weights, asked.account, asked.scope, *asked.tokens, *asked.values, policy.nearest),
    )
    return {row[0] for row in rows}


def _by_meaning(tx: Transaction, asked: _Asked, vector: Vector, policy: SearchPolicy) -> set[str]:
    scope = (asked.account, asked.scope)
    here = f"from mem_embedding x{asked.join} where x.account = ? and x.scope = ?{asked.where}"
    if tx.dialect == "postgres":
        # An index that was cut down by a filter goes on until there are enough.
        tx.execute("set local hnsw.iterative_scan = strict_order")
        tx.execute(f"set local hnsw.ef_search = {policy.nearest}")
        wide = f"vector({len(vector)})"
        rows = tx.rows(
            f"select x.id {here} order by x.vec::{wide} <=> ?::text::{wide} limit ?",
            (*scope, *asked.values, _words_of(vector), policy.nearest),
        )
        return {row[0] for row in rows}
    rows = tx.rows(f"select x.id, x.vec {here}", (*scope, *asked.values))
    if not rows:
        return set()
    likeness = _kept([row[1] for row in rows], "") @ vector
    best = np.argsort(-likeness, kind="stable")[: policy.nearest]
    return {rows[at][0] for at in best}


def _scored(
    tx: Transaction, asked: _Asked, ids: Sequence[str], vector: Vector | None, *, limit: int, policy: SearchPolicy
) -> tuple[SearchHit, ...]:
    """Score candidates, in the order of their ids so that every database sums the same numbers alike."""
    these = f"account = ? and scope = ? and id in ({_marks(ids)})"
    here = (asked.account, asked.scope, *ids)
    words: dict[str, list[str]] = {}
    if asked.tokens:
        for one, word in tx.rows(
            f"select id, word from mem_word where {these} and word in ({_marks(asked.tokens)})", (*here, *asked.tokens)
        ):
            words.setdefault(one, []).append(word)
    overlaps = np.array([scoring.overlap(asked.tokens, words.get(one, ()), asked.idf) for one in ids], np.float32)
    cosine, embedded = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.bool_)
    if vector is not None:
        column = "vector_send(vec)" if tx.dialect == "postgres" else "vec"
        blobs: dict[str, bytes] = dict(tx.rows(f"select id, {column} from mem_embedding where {these}", here))
        at = [place for place, one in enumerate(ids) if one in blobs]
        if at:
            cosine[at] = _kept([blobs[ids[place]] for place in at], tx.dialect) @ vector
            embedded[at] = True
    scores = scoring.weighted(cosine, overlaps, cosine_weight=policy.cosine_weight, token_weight=policy.token_weight)
    rows = {
        row[0]: row
        for row in tx.rows(f"select id, text, type, topic, created, superseded from mem where {these}", here)
    }
    order = sorted(
        (place for place in range(len(ids)) if embedded[place] or overlaps[place] > 0),
        key=lambda place: (rows[ids[place]][5], -float(scores[place]), -rows[ids[place]][4], ids[place]),
    )
    return tuple(
        SearchHit(
            id=ids[place],
            content=rows[ids[place]][1],
            score=float(scores[place]),
            cosine=float(cosine[place]),
            overlap=float(overlaps[place]),
            type=rows[ids[place]][2],
            topic=rows[ids[place]][3],
            created_at=rows[ids[place]][4],
        )
        for place in order[:limit]
    )


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


# --- an index for large scopes ----------------------------------------------------------------------------------------


async def indexed(database: Database, policy: SearchPolicy) -> int:
    """Give each large scope an index of its own (PostgreSQL), and drop those of scopes that are small again.

    An index holds one scope: no other's vectors are walked through, and a filter by scope takes nothing away. Returns
    how many were made or dropped. Making one keeps vectors from being written for as long as it takes.
    """
    if database.dialect != "postgres" or not database.searches:
        return 0
    counted = "select account, scope, count(*), max(vector_dims(vec)) from mem_embedding group by account, scope"
    scopes = {
        _index(account, scope): (account, scope, count, width)
        for account, scope, count, width in await database.read(lambda tx: tx.rows(counted))
    }
    named = "select indexname::text from pg_indexes where tablename = 'mem_embedding' and indexname like 'mem_near_%'"
    there = {name for (name,) in await database.read(lambda tx: tx.rows(named))}
    dropped = [name for name in there if name not in scopes or scopes[name][2] < policy.index_rows // 2]
    made = [name for name, (_, _, count, _) in scopes.items() if name not in there and count >= policy.index_rows]
    for name in dropped:
        await database.write(lambda tx, name=name: tx.execute(f"drop index if exists {name}"))  # type: ignore[misc]
    for name in made:
        account, scope, _, width = scopes[name]
        sql = (
            f"create index if not exists {name} on mem_embedding using hnsw ((vec::vector({width})) vector_cosine_ops)"
            f" where account = '\\x{account.hex()}'::bytea and scope = '\\x{scope.hex()}'::bytea"
        )

        def work(tx: Transaction, sql: str = sql) -> None:
            tx.execute("set local statement_timeout = 0")
            tx.execute(sql)

        await database.write(work)
    return len(dropped) + len(made)


def _index(account: bytes, scope: bytes) -> str:
    return f"mem_near_{sha256(account + scope).hexdigest()[:32]}"


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
