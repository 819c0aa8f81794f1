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

from importlib import import_module

from scrubjay_cloud.bodies.store import BodyStore, Observed
from scrubjay_cloud.settings import Settings
from scrubjay_shared.errors import InvalidError

__all__ = ["BodyStore", "Observed", "open_store"]


def open_store(settings: Settings, observed: Observed | None = None) -> BodyStore | None:
    """Return the store that the settings name, None where they name none. Asks nothing of it yet.

    Raises InvalidError when the client library is not installed.
    """
    if not settings.bodies:
        return None
    try:
        s3 = import_module("scrubjay_cloud.bodies.s3")
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise InvalidError(
            "a store of bodies needs the extra 'cloud-s3', which is not installed (obstore is missing)",
            hint="pip install 'scrubjay[cloud,cloud-s3]'",
        ) from error
    opened: BodyStore = s3.S3Bodies.of(settings, observed or _unobserved)
    return opened


def _unobserved(kind: str, seconds: float, size: int, held: bool) -> None:  # noqa: FBT001 - as `Observed`
    """Tell nobody."""
