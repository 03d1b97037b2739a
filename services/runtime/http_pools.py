"""Owns the HTTP connections of a process, one pool for each group of dependencies.

A group that hangs takes its own connections and nobody else's. A pool has as many as the group has
permits when it is opened, and nothing in it sends a request a second time: that is the business of
the retry policy. Whoever calls over HTTP gets its pool here and opens no connection elsewhere.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp

from services.runtime.call import Group
from services.runtime.config import Config
from services.runtime.errors import BulkheadFullError
from services.runtime.policies.bulkhead import BulkheadConfig

KEEPALIVE_S = 4.0
"""Below the five seconds after which common servers close an idle connection."""
DNS_CACHE_S = 30
WHOLE_BODY_BYTES = 256 * 1024
RETRY_AFTER_S = 1.0

_TRANSPORT: ContextVar[asyncio.Transport | None] = ContextVar("http_transport", default=None)
_CONNECTED: ContextVar[Callable[[], None]] = ContextVar("http_connected")


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Says how many connections a pool may have."""

    connections: int
    """How many may be open at a time."""
    setting: str
    """The setting that says so, for messages."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Is a request that was sent, and whose answer has begun."""

    response: aiohttp.ClientResponse
    _transport: asyncio.Transport | None

    def abort(self) -> None:
        """Close the connection now, unless the answer was read to its end."""
        if self.response.connection is not None and self._transport is not None:
            self._transport.abort()
        self.response.close()


class HttpPool:
    """Holds the connections of one group."""

    def __init__(self, session: aiohttp.ClientSession, group: Group, size: PoolSize) -> None:
        """Take an open session that has so many connections at most."""
        self.group = group
        self.size = size
        self._session = session

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        connect_timeout_s: float,
        body: bytes = b"",
        on_connected: Callable[[], None] = lambda: None,
    ) -> Sent:
        """Send a request, and return once its answer has begun; redirects are not followed.

        Args:
            method: such as `POST`.
            url: where to.
            headers: besides those of the connection.
            connect_timeout_s: the longest wait for a connection, one of the pool's included. What
                follows is bounded by whoever calls: a cancel closes the connection at once.
            body: what to send.
            on_connected: is told when there is a connection, before anything is sent.

        Raises:
            BulkheadFullError: every connection of the pool was in use for the whole time.
            aiohttp.ClientError: the connection or the answer failed.
        """
        queue = SimpleNamespace(waiting=False)
        _TRANSPORT.set(None)
        _CONNECTED.set(on_connected)
        try:
            response = await self._session.request(
                method,
                url,
                # Whole up to a point; more is sent in pieces, so that the loop stays free.
                data=body if len(body) <= WHOLE_BODY_BYTES else io.BytesIO(body),
                headers=headers,
                # `connect` holds for the wait for a free place in the pool as well.
                timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout_s),
                allow_redirects=False,
                trace_request_ctx=queue,
            )
        except BaseException as error:
            # close() would first send what is buffered, to a peer that may never read it.
            if (transport := _TRANSPORT.get()) is not None:
                transport.abort()
            if queue.waiting and isinstance(error, aiohttp.ConnectionTimeoutError):
                raise self._full() from None
            raise
        return Sent(response, _TRANSPORT.get())

    def _full(self) -> BulkheadFullError:
        return BulkheadFullError(
            f"all {self.size.connections} HTTP connections of the group {self.group} are in use; "
            f"come back later or raise {self.size.setting}",
            cause="pool",
            details={"group": self.group.value},
            retry_after_s=RETRY_AFTER_S,
        )


class HttpPools:
    """Opens the pool of a group when it is first asked for; all are closed with the process."""

    def __init__(self, exits: AsyncExitStack, sizes: Mapping[Group, PoolSize]) -> None:
        """Take what closes the pools, and how many connections each group may have."""
        self._exits = exits
        self._sizes = sizes
        self._pools: dict[Group, HttpPool] = {}

    def pool(self, group: Group) -> HttpPool:
        """Return the pool of a group."""
        if group not in self._pools:
            size = self._sizes[group]
            session = _session(size.connections)
            self._exits.push_async_exit(session)
            self._pools[group] = HttpPool(session, group, size)
        return self._pools[group]


@asynccontextmanager
async def open_pools(
    config: Config, sizes: Mapping[Group, PoolSize] | None = None
) -> AsyncIterator[HttpPools]:
    """Own the pools of a process while the block runs.

    Args:
        config: tells how many permits each group has.
        sizes: of groups whose connections are limited otherwise.

    Raises:
        ConfigError: the section of the bulkhead is wrong.
    """
    bulkhead = config.policy("bulkhead", BulkheadConfig)
    known = {group: _size(bulkhead, group) for group in Group} | dict(sizes or {})
    async with AsyncExitStack() as exits:
        yield HttpPools(exits, known)


def _size(bulkhead: BulkheadConfig, group: Group) -> PoolSize:
    size = bulkhead.size(group)
    setting = "expected_qps" if size.expected_qps > 0 else "permits"
    return PoolSize(size.allowed, f"bulkhead.{group}.{setting}")


class _Request(aiohttp.ClientRequest):
    """Remembers its connection, so that a cancel can abort it while it is still sending."""

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        _TRANSPORT.set(conn.transport)
        _CONNECTED.get()()
        return await super().send(conn)


def _session(size: int) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=size, keepalive_timeout=KEEPALIVE_S, ttl_dns_cache=DNS_CACHE_S
        ),
        request_class=_Request,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "sixhop"},
        trace_configs=[_queue_trace()],
        # One for all: each request brings its own limits.
        timeout=aiohttp.ClientTimeout(total=None),
    )
    # Idempotent requests would be sent again when a kept connection proves closed. There is no
    # public way to say no; the library's own test client does it like this.
    session._retry_connection = False
    return session


def _queue_trace() -> aiohttp.TraceConfig:
    """Return what tells a wait for a free connection from a wait for the network."""
    trace = aiohttp.TraceConfig()

    async def begin(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.waiting = True

    async def end(_: object, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.waiting = False

    trace.on_connection_queued_start.append(begin)
    trace.on_connection_queued_end.append(end)
    return trace
