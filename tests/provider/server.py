"""Serves HTTP as a provider would, down to the bytes that a real one would never send."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from tests.provider.answer import ClientGoneError, Connection, answer
from tests.provider.behaviour import Script
from tests.provider.log import Log, Record, now_ms

COMPLETIONS = {("POST", "/v1/chat/completions"), ("POST", "/beta/chat/completions")}
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Request:
    """Holds one HTTP request."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class ScriptedProvider:
    """Answers requests as its script says, and remembers them."""

    def __init__(self, script: Script) -> None:
        """Take what to do."""
        self.log = Log()
        self.script = script
        self.port = 0
        """The port, once it serves."""
        self.health_count = 0
        """How often its health page was asked for."""
        self._connections = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Return what a client takes as its provider's base URL."""
        return f"http://{HOST}:{self.port}/v1"

    async def serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Event
    ) -> None:
        """Serve one connection until either side ends it."""
        number = next(self._connections)
        self.log.connections.add(number)
        try:
            while (request := await _read_request(reader)) is not None:
                if not await self._serve(request, number, writer, gone):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went between two requests, or inside of one
        finally:
            self.log.close(number)
            writer.transport.abort()

    def accept(self) -> asyncio.Protocol:
        """Return what serves a new connection."""
        return _Protocol(self)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the serving of one connection; `stop` ends it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _serve(
        self,
        request: Request,
        number: int,
        writer: asyncio.StreamWriter,
        gone: asyncio.Event,
    ) -> bool:
        path = urlsplit(request.target).path
        if (request.method, path) not in COMPLETIONS:
            status, body = await self._control(request)
            writer.write(_plain(status, json.dumps(body).encode()))
            return True
        record, behaviour = self._arrive(request, number)
        connection = Connection(writer, gone, record, self.log)
        try:
            return await answer(connection, behaviour)
        except ClientGoneError:
            self.log.end(record, "client_closed")
            return False

    def _arrive(self, request: Request, number: int) -> tuple[Record, Any]:
        body = json.loads(request.body)
        name, behaviour = self.script.choose(body.get("model", ""))
        deadline = request.headers.get("x-sixhop-deadline-ms")
        messages = body.get("messages", [])
        record = Record(
            number=len(self.log.records) + 1,
            connection=number,
            arrived_ms=now_ms(),
            model=body.get("model", ""),
            behaviour=name,
            headers=request.headers,
            deadline_ms=None if deadline is None else int(deadline),
            message_count=len(messages),
            prompt_characters=sum(len(message.get("content") or "") for message in messages),
            max_tokens=body.get("max_tokens"),
            body=body,
        )
        self.log.arrive(record)
        return record, behaviour

    async def _control(self, request: Request) -> tuple[int, Any]:
        parts = urlsplit(request.target)
        match request.method, parts.path:
            case "GET", "/log":
                return 200, self.log.as_json()
            case "GET", "/wait":
                return await self._wait(parse_qs(parts.query))
            case "DELETE", "/log":
                self.log.records[:] = [r for r in self.log.records if r.closed_ms is None]
                return 200, self.log.as_json()
            case "POST", "/script":
                self.script = Script.from_json(request.body.decode())
                return 200, {}
            case "GET", "/v1/health":
                self.health_count += 1
                if self.script.health is not None:
                    return 200, self.script.health
            case "GET", "/health":
                return 200, {"status": "ok"}
            case "GET", "/v1/models" if self.script.models is not None:
                models = [{"id": name, "object": "model"} for name in self.script.models]
                return 200, {"object": "list", "data": models}
        return 404, {"error": {"message": f"there is no {parts.path}"}}

    async def _wait(self, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        timeout_s = float(query.get("timeout_s", ["5"])[0])
        conditions = {
            "arrived": Log.arrived,
            "streaming": Log.streaming,
            "closed": Log.closed,
            "idle": Log.idle,
        }
        wanted = [(conditions[k], int(v[0])) for k, v in query.items() if k in conditions]
        try:
            await self.log.wait_for(
                lambda log: all(holds(log, count) for holds, count in wanted), timeout_s=timeout_s
            )
        except TimeoutError:
            return 504, self.log.as_json()
        return 200, self.log.as_json()


@asynccontextmanager
async def serving(
    script: Script | None = None, *, port: int = 0
) -> AsyncIterator[ScriptedProvider]:
    """Serve on loopback while the block runs."""
    provider = ScriptedProvider(script or Script())
    server = await asyncio.get_running_loop().create_server(provider.accept, HOST, port)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        yield provider
    finally:
        server.close()
        await provider.stop()


class _Protocol(asyncio.StreamReaderProtocol):
    """Serves one connection, and tells at once when its client goes."""

    def __init__(self, provider: ScriptedProvider) -> None:
        # Kept here, because the protocol keeps only a weak reference.
        self._reader = asyncio.StreamReader()
        super().__init__(self._reader)
        self._provider = provider
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Not asked by isinstance: the transports of uvloop are of no class of asyncio's.
        writable = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        writer = asyncio.StreamWriter(writable, self, self._reader, loop)
        self._provider.start(self._provider.serve_connection(self._reader, writer, self._gone))

    def eof_received(self) -> bool:
        self._gone.set()
        super().eof_received()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


def _plain(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body
