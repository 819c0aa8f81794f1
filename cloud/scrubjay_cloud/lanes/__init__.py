"""Lanes: where objects come in, in what order they go out, and what packs and repairs may do to them.

A lane is one device's chain of objects in one scope; the account's `gseq` orders all of them. It is given out under the
lock of the account's row, which every writing transaction here takes first: an order by a sequence would let a reader
pass a position that is committed after it.

What is checked before the transaction (`validate`) is checked against the account log as it was; the transaction
(`store`) compares the log's head, and the request begins again when that has moved on.
"""

from __future__ import annotations

from scrubjay_cloud.lanes.endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
