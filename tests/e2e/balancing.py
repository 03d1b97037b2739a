"""Stands before several processes of one hop as a balancer of connections does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

_BYTES = 65_536


class Balancer:
    """Hands each connection to the first process that takes it, and breaks with it."""

    def __init__(self, ports: Sequence[int]) -> None:
        """Take the ports of the processes, in the order in which they are tried."""
        self._ports = ports
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection, both ways, until one of its ends has gone."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        for port in self._ports:
            try:
                there = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            ways: list[asyncio.Task[object]] = [
                asyncio.create_task(_carry(reader, there[1])),
                asyncio.create_task(_carry(there[0], writer)),
                asyncio.create_task(self._ended.wait()),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                there[1].close()
                writer.close()
            return
        writer.close()

    async def close(self) -> None:
        """End all connections."""
        self._ended.set()
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def balancing(listening_port: int, ports: Sequence[int]) -> AsyncIterator[None]:
    """Balance while the block runs."""
    balancer = Balancer(ports)
    server = await asyncio.start_server(balancer.serve, "127.0.0.1", listening_port)
    try:
        yield
    finally:
        server.close()
        await balancer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_BYTES):
            writer.write(chunk)
            await writer.drain()
