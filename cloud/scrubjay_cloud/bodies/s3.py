"""A store that speaks S3: AWS, MinIO, Ceph, R2 and the like, by the client of the Arrow project's object_store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import MemoryStore, S3Store

from scrubjay_cloud.bodies.store import Observed
from scrubjay_cloud.policy import DEFAULT, BodyPolicy
from scrubjay_cloud.settings import Settings
from scrubjay_shared.errors import NotFoundError, UnavailableError

if TYPE_CHECKING:
    from obstore.store import S3Config  # is there for type checkers only

log = logging.getLogger(__name__)


class S3Bodies:
    """A bucket, or a folder of one."""

    def __init__(self, store: S3Store | MemoryStore, policy: BodyPolicy, observed: Observed) -> None:
        self._store = store
        self._policy = policy
        self._observed = observed
        self._free = asyncio.Semaphore(policy.at_once)

    @classmethod
    def of(cls, settings: Settings, observed: Observed, policy: BodyPolicy = DEFAULT.bodies) -> S3Bodies:
        """Return the store that the settings name."""
        bucket, _, folder = settings.bodies.removeprefix("s3://").partition("/")
        config: S3Config = {
            "access_key_id": settings.bodies_access_key_id,
            "secret_access_key": settings.bodies_secret_access_key,
            "region": settings.bodies_region,
            # The bucket before the address needs a DNS of its own; all but AWS serve it as a path.
            "virtual_hosted_style_request": not settings.bodies_endpoint,
        }
        if settings.bodies_endpoint:
            config["endpoint"] = settings.bodies_endpoint
        store = S3Store(
            bucket,
            prefix=folder or None,
            config=config,
            client_options={
                "timeout": timedelta(seconds=policy.answer_s),
                "connect_timeout": timedelta(seconds=policy.connect_s),
                "allow_http": settings.bodies_endpoint.startswith("http://"),
            },
            retry_config={"max_retries": policy.retries, "retry_timeout": timedelta(seconds=policy.give_up_s)},
        )
        return cls(store, policy, observed)

    async def put(self, key: str, body: bytes) -> None:
        """Keep a body."""
        async with self._free:
            with self._asked("put", len(body)):
                await obstore.put_async(self._store, key, body, use_multipart=False)

    async def get(self, key: str) -> bytes:
        """Return a body."""
        async with self._free:
            with self._asked("get") as size:
                found = await obstore.get_async(self._store, key)
                body = bytes(await found.bytes_async())
                size.append(len(body))
                return body

    def fetch(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return bodies, some at a time."""
        if not keys:
            return []
        with ThreadPoolExecutor(min(len(keys), self._policy.at_once)) as pool:
            return list(pool.map(self._fetched, keys))

    def _fetched(self, key: str) -> bytes | None:
        try:
            with self._asked("get") as size:
                body = bytes(obstore.get(self._store, key).bytes())
                size.append(len(body))
                return body
        except NotFoundError:
            return None

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete bodies, by the thousand a request."""
        if not keys:
            return
        async with self._free:
            with self._asked("delete"):
                await obstore.delete_async(self._store, list(keys))

    @contextmanager
    def _asked(self, kind: str, size: int = 0) -> Iterator[list[int]]:
        """Time a request, count it, and raise our errors for the library's: those quote addresses."""
        began, sizes, held = time.perf_counter(), [size], False
        try:
            yield sizes
            held = True
        except FileNotFoundError as error:
            held = True  # it answered
            raise NotFoundError(
                "the store has no such body", hint="scrubjay-cloud admin restore finds what is missing"
            ) from error
        except BaseError as error:
            log.warning("store failed kind=%s error=%s", kind, type(error).__name__)
            raise UnavailableError(
                "the server cannot reach its store of bodies", hint="try again in a moment; nothing is lost"
            ) from error
        finally:
            self._observed(kind, time.perf_counter() - began, sum(sizes), held)
