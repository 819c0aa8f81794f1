"""A search: candidates by meaning and by words, scored together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrubjay_cloud.database.port import Transaction
from scrubjay_cloud.endpoint import Answer, Call
from scrubjay_cloud.policy import SearchPolicy
from scrubjay_cloud.search.access import catch_up, searchable_scope
from scrubjay_cloud.search.vectors import (
    Vector,
    check_space,
    check_width,
    marks,
    pgvector_text,
    stored_width,
    vector_of,
    vectors_of,
)
from scrubjay_cloud.service import Service
from scrubjay_shared import scoring
from scrubjay_shared.errors import (
    InvalidError,
    TooLargeError,
)
from scrubjay_shared.text import query_tokens
from scrubjay_shared.wire import (
    SearchAnswer,
    SearchHit,
    SearchRequest,
)

HYBRID, KEYWORD = "hybrid", "keyword"


async def search(service: Service, call: Call) -> Answer:
    """Search by meaning and words; without a vector by words alone. The best come first."""
    asked: SearchRequest = call.body
    policy = service.policy.search
    declared = await searchable_scope(service, call)
    if len(asked.text) > policy.text_chars:
        raise TooLargeError(f"a query may have {policy.text_chars} characters", hint="shorten it")
    if not 1 <= asked.limit <= policy.hits:
        raise InvalidError(f"limit must be from 1 to {policy.hits}", hint="ask for fewer")
    vector = None
    if asked.vector:
        check_space(declared, asked.space)
        vector = vector_of(asked.vector, policy)
    account = call.caller.account
    await catch_up(service, account, declared.id)
    hits = await service.database.read(
        lambda tx: searched(tx, account, declared.id, asked, vector=vector, policy=policy)
    )
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
        check_width(stored_width(tx, account, scope), len(vector))
    where, values = "", list[object]()
    for column, wanted in (("type", request.type), ("topic", request.topic)):
        if wanted:
            where += f" and m.{column} = ?"
            values.append(wanted)
    if vector is not None and not request.topic:
        topics = _topics(tx, account, scope, vector, policy)
        if topics is not None:
            where += f" and m.topic in ({marks(topics)})"
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
    likeness = vectors_of([row[1] for row in labels], "") @ vector
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
            f"select word, count(*) from mem_word where account = ? and scope = ? and word in ({marks(tokens)})"
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
        f" where x.account = ? and x.scope = ? and x.word in ({marks(asked.tokens)}){asked.where}"
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
            (*scope, *asked.values, pgvector_text(vector), policy.nearest),
        )
        return {row[0] for row in rows}
    rows = tx.rows(f"select x.id, x.vec {here}", (*scope, *asked.values))
    if not rows:
        return set()
    likeness = vectors_of([row[1] for row in rows], "") @ vector
    best = np.argsort(-likeness, kind="stable")[: policy.nearest]
    return {rows[at][0] for at in best}


def _scored(
    tx: Transaction, asked: _Asked, ids: Sequence[str], vector: Vector | None, *, limit: int, policy: SearchPolicy
) -> tuple[SearchHit, ...]:
    """Score candidates, in the order of their ids so that every database sums the same numbers alike."""
    these = f"account = ? and scope = ? and id in ({marks(ids)})"
    here = (asked.account, asked.scope, *ids)
    words: dict[str, list[str]] = {}
    if asked.tokens:
        for one, word in tx.rows(
            f"select id, word from mem_word where {these} and word in ({marks(asked.tokens)})", (*here, *asked.tokens)
        ):
            words.setdefault(one, []).append(word)
    overlaps = np.array([scoring.overlap(asked.tokens, words.get(one, ()), asked.idf) for one in ids], np.float32)
    cosine, embedded = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.bool_)
    if vector is not None:
        column = "vector_send(vec)" if tx.dialect == "postgres" else "vec"
        blobs: dict[str, bytes] = dict(tx.rows(f"select id, {column} from mem_embedding where {these}", here))
        at = [index for index, one in enumerate(ids) if one in blobs]
        if at:
            cosine[at] = vectors_of([blobs[ids[index]] for index in at], tx.dialect) @ vector
            embedded[at] = True
    scores = scoring.weighted(cosine, overlaps, cosine_weight=policy.cosine_weight, token_weight=policy.token_weight)
    rows = {
        row[0]: row
        for row in tx.rows(f"select id, text, type, topic, created, superseded from mem where {these}", here)
    }
    order = sorted(
        (index for index in range(len(ids)) if embedded[index] or overlaps[index] > 0),
        key=lambda index: (rows[ids[index]][5], -float(scores[index]), -rows[ids[index]][4], ids[index]),
    )
    return tuple(
        SearchHit(
            id=ids[index],
            content=rows[ids[index]][1],
            score=float(scores[index]),
            cosine=float(cosine[index]),
            overlap=float(overlaps[index]),
            type=rows[ids[index]][2],
            topic=rows[ids[index]][3],
            created_at=rows[ids[index]][4],
        )
        for index in order[:limit]
    )
