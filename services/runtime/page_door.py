"""Serves a few pages over HTTP, for whoever speaks no gRPC: one question on each connection."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import orjson

from services.runtime.background import OWN_TASK
from services.runtime.config import ConfigError

MAX_HEAD_BYTES = 8 * 1024
HEAD_TIMEOUT_S = 2.0
"""How long a client may take to ask, and again to take its answer."""
MAX_CLIENTS = 16
"""So many are heard at a time; others are sent away."""


@dataclass(frozen=True, slots=True)
class Page:
    """Is one answer."""

    body: bytes
    status: int = 200
    media_type: str = "application/json"


Pages = Mapping[str, Callable[[], Page]]
"""What is told, by its path; made anew for each that asks."""


class PageDoor:
    """Answers one question on each connection. A library for that would cost two megabytes."""

    def __init__(self, pages: Pages) -> None:
        """Take what is told."""
        self._pages = pages
        self._clients: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client and close."""
        task = asyncio.current_task()
        self._clients[task] = writer
        if task is not None:
            task.set_name(f"{OWN_TASK}page")
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                if len(self._clients) > MAX_CLIENTS:
                    answer = _written(_refusal(503, "too many clients"))
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
        make = self._pages.get(target.split(b"?", 1)[0].decode("latin-1"))
        if make is None:
            return _written(_refusal(404, f"there is {' and '.join(self._pages)}"))
        if method not in (b"GET", b"HEAD"):
            return _written(_refusal(405, "only GET"))
        return _written(make(), with_body=method == b"GET")


def _refusal(status: int, text: str) -> Page:
    return Page(orjson.dumps({"status": text}), status)


def _written(page: Page, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\nContent-Type: {page.media_type}\r\n"
        f"Content-Length: {len(page.body)}\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")


_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@asynccontextmanager
async def page_door(host: str, port: int, pages: Pages, setting: str) -> AsyncIterator[None]:
    """Serve pages while the block runs.

    Args:
        host: where.
        port: at which port.
        pages: what is told.
        setting: the variable that sets the port, for who has to choose another.

    Raises:
        ConfigError: the port cannot be had.
    """
    door = PageDoor(pages)
    try:
        server = await asyncio.start_server(door.serve, host, port, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{host}:{port} is taken; set {setting} to a free port, or to 0 for none "
            f"({error.strerror})"
        ) from None
    try:
        yield
    finally:
        server.close()
        await door.close()
