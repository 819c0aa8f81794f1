"""How a text is scored against a query: int8 cosine, BM25, z-scores, and the weighted formula. Arrays in, arrays out.

Vectors are unit float32 rows kept as int8 with one scale each: a quarter of the memory, and exact integer products.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numkong
import numpy as np
import numpy.typing as npt

from scrubjay_shared.errors import CorruptError

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int8]
Topic = TypeVar("Topic", str, int)

_STEPS = 127  # int8 without -128, so that the range is symmetric


def quantise(vectors: Floats) -> tuple[Rows, Floats]:
    """Return float32 [n, d] as int8 [n, d] and the float32 scale [n] of each row, so that `rows * scale` is near it.

    The largest component of a row becomes 127. A row of zeros, or with a number that is not finite, becomes zeros.
    """
    rows = np.asarray(vectors, np.float32)
    peaks = np.abs(rows).max(axis=1) if rows.size else np.zeros(len(rows), np.float32)
    usable = np.isfinite(peaks) & (peaks > 0)
    scales = np.where(usable, peaks / _STEPS, 0).astype(np.float32)
    # A subnormal peak underflows as a scale; such a row is zeros too.
    usable &= scales > 0
    scaled = np.divide(rows, scales[:, None], out=np.zeros_like(rows), where=usable[:, None])
    return np.rint(scaled).clip(-_STEPS, _STEPS).astype(np.int8), scales


def dequantise(rows: Rows, scales: Floats) -> Floats:
    """Return the float32 [n, d] that `quantise` made these of, to within half a scale in each component."""
    return np.asarray(rows.astype(np.float32) * scales[:, None], np.float32)


def encode_vector(row: Rows, scale: float) -> bytes:
    """Return one quantised vector as it is stored: little-endian float32 scale, then d bytes. 388 bytes for d = 384."""
    return struct.pack("<f", scale) + np.ascontiguousarray(row, np.int8).tobytes()


def decode_vector(blob: bytes) -> tuple[Rows, float]:
    """Return what `encode_vector` was given. Raises CorruptError for too few bytes, or a negative scale."""
    if len(blob) <= 4:
        raise CorruptError("a stored vector is cut short", hint="scrubjay rebuild --vectors makes them again")
    scale = float(np.frombuffer(blob, "<f4", count=1)[0])
    if not (math.isfinite(scale) and scale >= 0):
        raise CorruptError("a stored vector has no valid scale", hint="scrubjay rebuild --vectors makes them again")
    return np.frombuffer(blob, np.int8, offset=4), scale


def decode_vectors(blobs: Sequence[bytes]) -> tuple[Rows, Floats]:
    """Return int8 [n, d] and float32 [n] of vectors that `encode_vector` made, as `decode_vector` of each would.

    Raises CorruptError as that does, and when the vectors are not of one width.
    """
    if not blobs:
        return np.zeros((0, 0), np.int8), np.zeros(0, np.float32)
    if min(map(len, blobs)) <= 4 or len(set(map(len, blobs))) > 1:
        raise CorruptError("a stored vector is cut short", hint="scrubjay rebuild --vectors makes them again")
    table = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), -1)
    scales = np.ascontiguousarray(table[:, :4]).view("<f4")[:, 0].astype(np.float32)
    if not (np.isfinite(scales) & (scales >= 0)).all():
        raise CorruptError("a stored vector has no valid scale", hint="scrubjay rebuild --vectors makes them again")
    return table[:, 4:], scales


def cosines(rows: Rows, scales: Floats, query: Rows, query_scale: float) -> Floats:
    """Return float32 [n]: the cosine of each unit row with the unit query, both quantised. d must agree.

    The integer products are exact, so equal rows score equally whatever their order.
    """
    return np.asarray(products(rows, query) * query_scale, np.float32) * scales


def products(rows: Rows, query: Rows) -> npt.NDArray[np.float64]:
    """Return float64 [n]: the product of each row with the query, exact."""
    if not len(rows):
        return np.zeros(0, np.float64)
    return np.asarray(numkong.dot(np.ascontiguousarray(rows), np.ascontiguousarray(query)))


def bm25_idf(n: int, df: int) -> float:
    """Return BM25's weight of a token that `df` of `n` documents hold: ln(1 + (n - df + .5) / (df + .5)), above 0."""
    return math.log1p((n - df + 0.5) / (df + 0.5))


def bm25_part(
    tf: npt.NDArray[Any],
    length: npt.NDArray[Any],
    mean_length: float,
    *,
    idf: float,
    k1: float,
    b: float,
    long: float = math.inf,
) -> Floats:
    """Return float32 [n]: what one query token adds to documents that hold it `tf` times and are `length` tokens long.

    idf · tf (k1 + 1) / (tf + k1 (1 - b + b · length / mean_length)). Source: Robertson & Zaragoza 2009. Our addition:
    from `long` tokens on, k1 grows in proportion to length whatever b is, because a log of 50,000 words holds any word.
    """
    norm = k1 * (1 - b + b * length / mean_length) if b and mean_length > 0 else np.full(len(tf), k1 * (1 - b))
    return np.asarray(idf * (k1 + 1) * tf / (tf + norm * np.maximum(length / long, 1.0)), np.float32)


def bm25(query: Iterable[str], documents: Sequence[Sequence[str]], *, k1: float, b: float) -> list[float]:
    """Return each document's BM25 score for a query's distinct tokens, the plain way. The index must agree with it."""
    lengths = np.array([len(document) for document in documents], np.float32)
    mean_length = float(lengths.mean()) if len(documents) else 0.0
    scores = np.zeros(len(documents), np.float32)
    for token in dict.fromkeys(query):
        tf = np.array([list(document).count(token) for document in documents], np.float32)
        held = tf > 0
        idf = bm25_idf(len(documents), int(held.sum()))
        scores[held] += bm25_part(tf[held], lengths[held], mean_length, idf=idf, k1=k1, b=b)
    return [float(score) for score in scores]


def overlap_idf(n: int, df: int) -> float:
    """Return the weight of a token in `overlap`: ln(n / df) + 1. A token nobody holds counts as held once."""
    return math.log(max(n, 1) / max(df, 1)) + 1.0


def overlap(query: Iterable[str], document: Iterable[str], idf: Mapping[str, float]) -> float:
    """Return the share, 0 to 1, of the query's tokens that the document holds, each weighted by its `idf`."""
    held = set(document)
    wanted = {token: idf.get(token, 1.0) for token in query}
    total = sum(wanted.values())
    return sum(weight for token, weight in wanted.items() if token in held) / total if total > 0 else 0.0


def weighted(cosine: Floats, overlaps: Floats, *, cosine_weight: float, token_weight: float) -> Floats:
    """Return the score of the mode `weighted`: cosine and token overlap, 0.8 and 0.2 by default policy."""
    return np.asarray(cosine_weight * cosine + token_weight * overlaps, np.float32)


def topic_filter(
    similarities: Mapping[Topic, float], counts: Mapping[Topic, int], *, threshold: float, min_size: int
) -> frozenset[Topic] | None:
    """Return the topics to search in, or None for all: those at least `threshold` like the query.

    `counts` says how many documents carry a topic. When the chosen ones hold fewer than `min_size` together, the filter
    would leave too little to choose from, and all are searched.
    """
    chosen = frozenset(topic for topic, similarity in similarities.items() if similarity >= threshold)
    return chosen if chosen and sum(counts.get(topic, 0) for topic in chosen) >= min_size else None
