"""Tests, over real sockets, that a group that hangs takes its own connections and nobody else's."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import pytest

from services.runtime.call import Group
from services.runtime.config import load_config
from services.runtime.errors import BulkheadFullError
from services.runtime.http_pools import HttpPool, HttpPools, PoolSize, Sent, open_pools
from tests.requirements import requirement
from tests.waiting import until

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PATIENT_S = 5.0
"""Longer than any wait for a connection in these tests."""


@dataclass(slots=True)
class Server:
    """Is an HTTP server that does what the test says."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    """The first line of each, in the order of arrival."""
    open_count: int = 0
    """How many connections are open."""
    peak_count: int = 0


Reply = Callable[[Server, asyncio.StreamWriter], Awaitable[None]]


async def answer(server: Server, writer: asyncio.StreamWriter) -> None:
    """Answer at once."""
    writer.write(ANSWER)


async def hang(server: Server, writer: asyncio.StreamWriter) -> None:
    """Say nothing."""


@asynccontextmanager
async def serving(reply: Reply) -> AsyncIterator[Server]:
    """Serve while the block runs."""
    server = Server()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.open_count += 1
        server.peak_count = max(server.peak_count, server.open_count)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                server.requests.append(head.splitlines()[0])
                await reply(server, writer)
        server.open_count -= 1
        writer.close()

    listening = await asyncio.start_server(speak, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    async with listening:
        yield server


@asynccontextmanager
async def pools(**sizes: int) -> AsyncIterator[HttpPools]:
    """Open the pools of a process, some of them smaller than by default."""
    smaller = {Group(name): PoolSize(size, "the test") for name, size in sizes.items()}
    async with open_pools(load_config(None, {}), smaller) as opened:
        yield opened


async def get(pool: HttpPool, url: str, *, connect_timeout_s: float = PATIENT_S) -> bytes:
    """Return what a server answers."""
    sent = await pool.send("GET", url, headers={}, connect_timeout_s=connect_timeout_s)
    return await sent.response.read()


@requirement("http-pools:a-group-of-its-own")
async def test_a_group_has_as_many_connections_as_its_declared_capacity_needs() -> None:
    declared = {
        "SIXHOP_BULKHEAD__EXTERNAL__EXPECTED_QPS": "40",
        "SIXHOP_BULKHEAD__EXTERNAL__EXPECTED_LATENCY_S": "0.2",
    }
    async with open_pools(load_config(None, declared)) as opened:
        external, core = opened.pool(Group.EXTERNAL).size, opened.pool(Group.CORE).size

    assert external == PoolSize(10, "bulkhead.external.expected_qps")
    assert core == PoolSize(64, "bulkhead.core.permits")


@requirement("http-pools:a-group-of-its-own")
async def test_an_external_group_that_hangs_leaves_the_core_untouched() -> None:
    async with serving(hang) as hung, serving(answer) as well, pools() as opened:
        external, core = opened.pool(Group.EXTERNAL), opened.pool(Group.CORE)
        stuck = [asyncio.ensure_future(get(external, hung.url)) for _ in range(8)]
        await until(lambda: len(hung.requests) == 8)

        # The ninth finds no connection, and says so after its wait; the core has never waited.
        with pytest.raises(BulkheadFullError, match=r"raise bulkhead\.external\.permits"):
            await get(external, hung.url, connect_timeout_s=0.2)
        answers = await asyncio.gather(*(get(core, well.url) for _ in range(100)))
        still_stuck = not any(each.done() for each in stuck)

        for each in stuck:
            each.cancel()
        await asyncio.wait(stuck)
        await until(lambda: hung.open_count == 0)

    assert (answers, still_stuck) == ([b"ok"] * 100, True)
    assert (len(hung.requests), hung.peak_count) == (8, 8)
    assert well.peak_count <= 64


@requirement("http-pools:a-group-of-its-own")
async def test_a_pool_has_as_many_connections_as_its_group_has_permits() -> None:
    config = load_config(None, {"SIXHOP_BULKHEAD__DATA": '{"permits": 3, "max_queued": 9}'})

    async with open_pools(config) as opened:
        sizes = {group: opened.pool(group).size.connections for group in Group}
        again = opened.pool(Group.DATA) is opened.pool(Group.DATA)

    assert sizes == {
        Group.CORE: 64,
        Group.DATA: 3,
        Group.AUXILIARY: 8,
        Group.EXTERNAL: 8,
        Group.BACKUP: 32,
    }
    assert again


@requirement("http-pools:nothing-is-sent-twice")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_request_over_a_connection_that_proves_closed_is_not_sent_again(
    method: str,
) -> None:
    async def once(server: Server, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) > 1:
            writer.transport.abort()
        else:
            writer.write(ANSWER)

    async with serving(once) as server, pools() as opened:
        pool = opened.pool(Group.EXTERNAL)
        first = await get(pool, server.url)
        with pytest.raises(aiohttp.ClientError):
            await pool.send(method, server.url, headers={}, connect_timeout_s=PATIENT_S)

    assert first == b"ok"
    assert len(server.requests) == 2


@requirement("http-pools:nothing-is-left")
async def test_pools_that_are_closed_leave_no_connection() -> None:
    async with serving(answer) as server:
        async with pools() as opened:
            for group in Group:
                await get(opened.pool(group), server.url)
            kept = server.open_count
        await until(lambda: server.open_count == 0)

    assert kept == len(Group)


@requirement("http-pools:nothing-is-left")
async def test_an_answer_that_is_given_up_closes_its_connection_at_once() -> None:
    async def begin(server: Server, writer: asyncio.StreamWriter) -> None:
        writer.write(ANSWER.replace(b"2\r\n\r\nok", b"9\r\n\r\no"))

    async with serving(begin) as server, pools(external=1) as opened:
        pool = opened.pool(Group.EXTERNAL)
        sent: Sent = await pool.send("GET", server.url, headers={}, connect_timeout_s=PATIENT_S)
        sent.abort()
        await until(lambda: server.open_count == 0)
        # Its place in the pool is free again.
        sent = await pool.send("GET", server.url, headers={}, connect_timeout_s=PATIENT_S)
        sent.abort()

    assert len(server.requests) == 2


@requirement("http-pools:a-group-of-its-own")
async def test_a_server_that_takes_no_connection_is_no_full_pool() -> None:
    async with pools() as opened:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(opened.pool(Group.CORE), "http://127.0.0.1:9/")
