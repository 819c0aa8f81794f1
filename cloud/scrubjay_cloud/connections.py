"""Connections from the moment they are open: those that have proved nothing keep nobody else from the service.

Theory of operation. uvicorn gives the requests that it has read to the application, which bounds their bodies, and
leaves a connection that sends none, or half of one, open for ever. Here each must send the head of a request within
some seconds, of a bounded size, and the rest of a body that was answered already soon after, and sends few requests
ahead: each that waits for its turn takes a kilobyte, and there is room for thousands in one read. A connection with a
request that brought a valid token counts no more among the strangers. Of these there are only so many, fewer of one
network, and the oldest one goes when another comes: what is honest has its answer by then. Where a proxy stands in
front, all connections are its own, and it does the same by its own means (deploy/).
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from scrubjay_cloud.guard import PROVED, address
from scrubjay_cloud.limits import network_of
from scrubjay_cloud.policy import DEFAULT, ConnectionPolicy
from scrubjay_cloud.settings import Network


class Strangers:
    """The open connections that have proved nothing, by the networks that they come from, oldest first."""

    def __init__(self, policy: ConnectionPolicy, most: int) -> None:
        self._policy = policy
        self._most = most
        self._count = 0
        self._by_network: dict[bytes, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, connection: Connection, network: bytes) -> None:
        """Count a new connection. Where that is one too many, an older one is closed."""
        same = self._by_network.setdefault(network, {})
        same[connection] = None
        self._count += 1
        crowd = same if len(same) > self._policy.of_network else None
        if crowd is None and self._count > self._most:
            crowd = max(self._by_network.values(), key=len)
        if crowd is not None:
            next(iter(crowd)).give_up()

    def drop(self, connection: Connection, network: bytes) -> None:
        """Count a connection no more: it is closed, or has proved who it is of."""
        same = self._by_network.get(network, {})
        if connection in same:
            del same[connection]
            self._count -= 1
            if not same:
                del self._by_network[network]


class TooManyAheadError(Exception):
    """More requests came than may wait on a connection. Ends their parsing, and goes no further."""


class Connection(HttpToolsProtocol):
    """One connection: uvicorn's, with an end to every wait for somebody who has proved nothing."""

    def __init__(
        self, *, strangers: Strangers, policy: ConnectionPolicy, proxies: tuple[Network, ...], **uvicorns: Any
    ) -> None:
        super().__init__(**uvicorns)
        self._strangers = strangers
        self._policy = policy
        self._proxies = proxies
        self._network = b""
        self._deadline: asyncio.TimerHandle | None = None
        self._in_head = True
        """Whether the next that is to come is the head of a request."""
        self._overhead = 0
        """Bytes that came of the head or of the body under way, without the body's own."""
        self._brought = 0
        """Bytes of that body, as far as they came."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait(self._policy.head_s)
        if not self._is_proxy():
            self._network = network_of(address({"client": self.client}, ()))
            self._strangers.add(self, self._network)

    def _is_proxy(self) -> bool:
        try:
            host = ipaddress.ip_address(self.client[0]) if self.client else None
        except ValueError:
            return False
        return host is not None and any(host in network for network in self._proxies)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_waiting()
        self._strangers.drop(self, self._network)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is more of a head, or of what is around a body, than any request has."""
        if self._in_head and self._deadline is None:
            self._wait(self._policy.head_s)
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > self._policy.head_bytes + self._policy.chunk_overhead * self._brought:
            self.give_up()

    def on_message_begin(self) -> None:
        """Begin a request, unless too many wait: the application says when it has brought a valid token."""
        if len(self.pipeline) >= self._policy.ahead:
            self.give_up()
            raise TooManyAheadError  # or the parser would go on with what came, which may be thousands
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[PROVED] = self._prove

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what stands after a body is none that anybody reads."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the wait for a head: how long a body may take is for the application to say."""
        self._stop_waiting()
        self._in_head, self._overhead = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._overhead -= len(body)
        self._brought += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request, as far as it comes from outside."""
        self._stop_waiting()
        self._in_head, self._overhead, self._brought = True, 0, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Give what is left of a body that was not asked for some time, to be thrown away."""
        super().on_response_complete()
        if not self._in_head and not self.transport.is_closing():
            self._wait(self._policy.rest_s)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is idle; at once, where what it asked for was not read."""
        if self.transport.get_write_buffer_size():
            self.give_up()
        else:
            super().timeout_keep_alive_handler()

    def give_up(self) -> None:
        """End the connection at once: closing it in good order would wait for the other side."""
        self.transport.abort()

    def _prove(self) -> None:
        self._strangers.drop(self, self._network)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self.give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: anybody may ask for another protocol, and is answered in this one."""


def connection_type(
    proxies: tuple[Network, ...], most: int, policy: ConnectionPolicy = DEFAULT.connections
) -> type[asyncio.Protocol]:
    """Return what uvicorn makes of each connection of one server that has `most` of them at once."""
    strangers = Strangers(policy, int(most * policy.strangers))

    class Counted(Connection):
        def __init__(self, **uvicorns: Any) -> None:
            super().__init__(strangers=strangers, policy=policy, proxies=proxies, **uvicorns)

    return Counted
