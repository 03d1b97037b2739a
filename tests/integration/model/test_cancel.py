"""Leaves a provider in every phase of a call, and watches that the connection closes."""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import psutil
import pytest

from services.model.backend import Prompt, Provider
from services.runtime.conversation import Message
from tests.integration.model.calls import calling
from tests.provider.log import Log
from tests.requirements import requirement
from tests.waiting import until

PHASES = [
    ("silent", Log.arrived),
    ("slow-headers", Log.arrived),
    ("slow-first-chunk", Log.arrived),
    ("keep-alive-forever", Log.arrived),
    ("stall", Log.streaming),
    ("normal?chunk_interval_s=0.01&token_count=10000", Log.streaming),
    ("stall-after-finish", Log.streaming),
]


async def cancel(task: "asyncio.Task[object]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@requirement("model:cancel-closes-the-connection")
@pytest.mark.parametrize(("behaviour", "reached"), PHASES)
async def test_a_cancelled_call_closes_its_connection_at_once(
    behaviour: str, reached: Callable[[Log, int], bool]
) -> None:
    async with calling(behaviour) as caller:
        task: asyncio.Task[object] = asyncio.create_task(caller.ask())
        log = caller.provider.log
        await log.wait_for(lambda log: reached(log, 1))

        await cancel(task)
        record = await log.wait_for(lambda log: log.closed(1), timeout_s=0.25)

        assert record.ended == "client_closed"
        assert not log.connections
        assert caller.activity.outgoing == 0


@requirement("model:cancel-closes-the-connection")
async def test_a_reader_that_leaves_in_the_middle_closes_its_connection_at_once() -> None:
    async with calling("stall") as caller:
        async with caller.streaming() as pieces:
            await anext(pieces)

        record = await caller.provider.log.wait_for(lambda log: log.closed(1), timeout_s=0.25)

    assert record.ended == "client_closed"


@requirement("model:cancel-closes-the-connection")
async def test_a_call_that_is_cancelled_while_it_connects_leaves_no_socket() -> None:
    # A listener whose queue is full takes no more connections: the next one hangs.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        before = len(sockets_to(port))
        settings = Provider(base_url=f"http://127.0.0.1:{port}/v1", model="any")
        async with calling("normal", settings=settings) as caller:
            task: asyncio.Task[object] = asyncio.create_task(caller.ask())
            await until(lambda: len(sockets_to(port)) > before)

            await cancel(task)

            await until(lambda: len(sockets_to(port)) == before, timeout_s=0.25)
            assert caller.activity.outgoing == 0
        for filler in fillers:
            filler.close()


@requirement("model:cancel-closes-the-connection")
async def test_a_call_that_is_cancelled_while_it_sends_closes_its_connection() -> None:
    accepted: list[asyncio.Transport] = []

    class Deaf(asyncio.Protocol):
        """Takes a connection and reads nothing."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            writable = cast(asyncio.Transport, transport)
            writable.pause_reading()
            accepted.append(writable)

    server = await asyncio.get_running_loop().create_server(Deaf, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = Provider(base_url=f"http://127.0.0.1:{port}/v1", model="any")
    # More than the kernel's buffers of both sides hold.
    prompt = Prompt([Message("user", "x" * (32 << 20))], max_output_tokens=1)

    async with server, calling("normal", settings=settings) as caller:
        task: asyncio.Task[object] = asyncio.create_task(caller.ask(prompt=prompt))
        await until(lambda: bool(accepted))
        await until_full(accepted[0])

        await cancel(task)

        await until(lambda: not sockets_to(port), timeout_s=0.25)
        accepted[0].abort()


def sockets_to(port: int) -> list[object]:
    """Return this process's sockets whose other end is a port."""
    connections = psutil.Process().net_connections(kind="tcp")
    return [c for c in connections if c.raddr and c.raddr.port == port]


async def until_full(transport: asyncio.Transport) -> None:
    """Wait until a socket that nobody reads holds all that it can."""
    fileno = transport.get_extra_info("socket").fileno()
    seen = -1
    async with asyncio.timeout(5):
        while (held := unread_bytes(fileno)) > seen:
            seen = held
            await asyncio.sleep(0.05)


def unread_bytes(fileno: int) -> int:
    """Return how many bytes a socket holds."""
    return int(struct.unpack("i", fcntl.ioctl(fileno, termios.FIONREAD, b"\0" * 4))[0])
