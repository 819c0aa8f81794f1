"""Bodies of large sealed objects in an S3-compatible store, beside the database that orders and counts them.

Theory of operation. A row whose `body_key` is not null holds of its object the header alone; the rest stands in the
store under that key. A key is made for one upload and never used again. It is noted in `loose_body` before its body is
sent, and taken out of there by the transaction that writes the row: so whatever breaks off in between, the key of
every body that no row names stands in `loose_body`, and nobody has to list a bucket to find it. A row that is deleted
puts its key back there, in the same transaction. The job `bodies` deletes what stands there and is due: it marks the
keys first, and a marked key is taken by no row any more.

What the store does is in `store`; the table is in `loose`; `collection` is where both meet.
"""

from __future__ import annotations

from scrubjay_cloud.bodies.store import BodyStore, Observed, open_store

__all__ = ["BodyStore", "Observed", "open_store"]
