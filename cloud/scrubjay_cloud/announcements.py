"""What instances of the service tell each other over PostgreSQL: accounts that have something new.

Announced are changes that are stored already, many in one NOTIFY, apart from the transactions that made them: a commit
that notifies takes a lock on the whole database. So an instance that dies in between has not announced its last; who
waits at another then learns of it with the end of the wait. Where listening fails, the accounts in question are looked
up every second, as long as it does.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing

from scrubjay_cloud.database.announcements import LISTENING, PAYLOAD_BYTES
from scrubjay_cloud.database.port import Channel
from scrubjay_cloud.policy import CloudPolicy
from scrubjay_shared.errors import ConflictError, MalformedError, ScrubjayError

log = logging.getLogger(__name__)

News = tuple[bytes, int | None]
"""(account, its `gseq`); None where something else than its objects has changed."""

_PAD = b"=="
_ACCOUNT_BYTES = 16
_ACCOUNT_CHARS = 22


def encoded(sender: str, news: Iterable[News], most: int = PAYLOAD_BYTES) -> list[str]:
    """Return news as announcements of at most so many bytes: who sends, then each account with its number in hex."""
    texts: list[list[str]] = []
    size = 0
    for account, gseq in news:
        text = base64.urlsafe_b64encode(account).rstrip(b"=").decode() + ("" if gseq is None else f"{gseq:x}")
        if not texts or size + len(text) + 1 > most:
            texts.append([sender])
            size = len(sender)
        texts[-1].append(text)
        size += len(text) + 1
    return [",".join(parts) for parts in texts]


def decoded(payload: str) -> tuple[str, list[News]]:
    """Return who sent an announcement, and its news. Raises MalformedError."""
    sender, *parts = payload.split(",")
    found: list[News] = []
    for part in parts:
        name, number = part[:_ACCOUNT_CHARS], part[_ACCOUNT_CHARS:]
        try:
            account = base64.b64decode(name.encode("ascii") + _PAD, altchars=b"-_", validate=True)
            gseq = int(number, 16) if number else None
        except (ValueError, binascii.Error) as error:
            raise _not_ours() from error
        if len(account) != _ACCOUNT_BYTES or (gseq is not None and gseq < 0):
            raise _not_ours()
        found.append((account, gseq))
    return sender, found


def _not_ours() -> MalformedError:
    return MalformedError(
        "an announcement of another instance cannot be read", hint="update all instances to the same version"
    )


class Announcements:
    """One process's part: it tells what it stored, and hears what others did.

    `hear` takes what others told; `look` looks up what they may have stored, for when nothing is heard. `sender` tells
    this process from the others.
    """

    def __init__(
        self,
        channel: Channel,
        policy: CloudPolicy,
        *,
        sender: str,
        hear: Callable[[bytes, int | None], None],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._channel = channel
        self._policy = policy
        self._sender = sender
        self._hear = hear
        self._look = look
        self._untold: dict[tuple[bytes, bool], int | None] = {}
        self._teller: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._closed = False

    def tell(self, account: bytes, gseq: int | None) -> None:
        """Tell the others, a little later and with what else there is to tell by then."""
        if self._closed or len(self._untold) >= self._policy.untold:
            return  # the database has been away for long: who waits is answered at the end of the wait
        self._untold[account, gseq is None] = gseq
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._told(), name="cloud-announce")

    def listen(self) -> None:
        """Hear the others from now on."""
        if self._listener is None and not self._closed:
            self._listener = asyncio.create_task(self._listened(), name="cloud-listen")

    def close(self) -> None:
        """End."""
        self._closed = True
        for task in (self._teller, self._listener):
            if task is not None:
                task.cancel()

    async def _told(self) -> None:
        while self._untold:
            await asyncio.sleep(self._policy.gather_s)
            news, self._untold = self._untold, {}
            try:
                for payload in encoded(self._sender, [(account, gseq) for (account, _), gseq in news.items()]):
                    await self._channel.announce(payload)
            except ScrubjayError as error:
                log.warning("not announced code=%s accounts=%d", error.code, len(news))
                self._untold = news | self._untold
                await asyncio.sleep(self._policy.poll_s)

    async def _listened(self) -> None:
        wait_s = self._policy.poll_s
        while True:
            try:
                async with aclosing(self._channel.heard()) as heard:
                    async for payload in heard:
                        if payload == LISTENING:
                            log.info("listening to other instances")
                            wait_s = self._policy.poll_s
                            await self._look()  # what they stored before
                        else:
                            self._take(payload)
            except ConflictError as error:
                log.warning("polling every %s s: %s; %s", self._policy.poll_s, error.message, error.hint)
                wait_s = self._policy.listen_again_most_s
            except ScrubjayError as error:
                log.warning("not listening code=%s again_in_s=%s", error.code, wait_s)
            await self._polled(wait_s)
            wait_s = min(wait_s * 2, self._policy.listen_again_most_s)

    async def _polled(self, seconds: float) -> None:
        """Look every second, for so many."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            try:
                await self._look()
            except ScrubjayError as error:  # the database is away: who waits is answered when the time is over
                log.warning("poll failed code=%s", error.code)
            await asyncio.sleep(self._policy.poll_s)

    def _take(self, payload: str) -> None:
        try:
            sender, news = decoded(payload)
        except MalformedError as error:
            log.warning("%s; %s", error.message, error.hint)
            return
        if sender != self._sender:
            for account, gseq in news:
                self._hear(account, gseq)
