"""Serves `GET /v1/health` and `GET /livez` over HTTP, for whoever speaks no gRPC."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import orjson

from services.runtime.background import OWN_TASK

MAX_HEAD_BYTES = 8 * 1024
HEAD_TIMEOUT_S = 2.0
"""How long a client may take to ask, and again to take its answer."""
MAX_CLIENTS = 16
"""So many are heard at a time; others are sent away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPage:
    """Is what the page tells, in the words of the providers that have one."""

    ready: bool
    """Whether this process takes calls."""
    detail: str = ""
    """Why it does not."""
    estimated_qps: float | None = None
    """How many more calls per second it takes; None is not known."""
    avg_latency_s: float | None = None
    """What a call takes on average; None is not known."""

    def as_json(self) -> bytes:
        """Return the body."""
        latency_s = self.avg_latency_s
        return orjson.dumps(
            {
                "status": "ok" if self.ready else self.detail or "not ready",
                "estimated_qps": self.estimated_qps,
                "avg_latency_ms": None if latency_s is None else round(1000 * latency_s, 3),
            }
        )


class HealthDoor:
    """Answers one question on each connection. A library for that would cost two megabytes."""

    def __init__(self, look: Callable[[], HealthPage]) -> None:
        """Take what the page tells now."""
        self._look = look
        self._clients: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client and close."""
        task = asyncio.current_task()
        self._clients[task] = writer
        if task is not None:
            task.set_name(f"{OWN_TASK}health page")
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                if len(self._clients) > MAX_CLIENTS:
                    answer = _answer(503, b'{"status":"too many clients"}')
                else:
                    answer = self._answer(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            # Who asks no question, or does not wait for its answer, needs none.
            writer.transport.abort()
        finally:
            del self._clients[task]
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def close(self) -> None:
        """Send away whoever is still there, and wait until they are gone."""
        for writer in self._clients.values():
            writer.transport.abort()
        if tasks := [task for task in self._clients if task is not None]:
            await asyncio.wait(tasks, timeout=HEAD_TIMEOUT_S)

    def _answer(self, head: bytes) -> bytes:
        method, target = (*head.split(b"\r\n", 1)[0].split(b" "), b"", b"")[:2]
        path = target.split(b"?", 1)[0]
        if path not in (b"/v1/health", b"/livez"):
            return _answer(404, b'{"status":"there is /v1/health and /livez"}')
        if method not in (b"GET", b"HEAD"):
            return _answer(405, b'{"status":"only GET"}')
        if path == b"/livez":
            return _answer(200, b'{"status":"ok"}', with_body=method == b"GET")
        page = self._look()
        return _answer(200 if page.ready else 503, page.as_json(), with_body=method == b"GET")


def _answer(status: int, body: bytes, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")


_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@asynccontextmanager
async def health_door(
    host: str, port: int, look: Callable[[], HealthPage]
) -> AsyncIterator[asyncio.Server]:
    """Serve the pages while the block runs.

    Raises:
        OSError: the port cannot be had.
    """
    door = HealthDoor(look)
    server = await asyncio.start_server(door.serve, host, port, limit=MAX_HEAD_BYTES)
    try:
        yield server
    finally:
        server.close()
        await door.close()
