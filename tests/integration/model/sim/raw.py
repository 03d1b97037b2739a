"""Speaks HTTP with the simulator byte by byte, and tells what came and how it ended."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from services.model.sim.config import SimSettings
from services.model.sim.server import Simulator, serving
from services.model.sse import Decoder, Event
from services.runtime.clock import MonotonicClock

ANSWER = "alpha beta gamma delta epsilon"
LAST_CHUNK = b"0\r\n\r\n"
PATIENCE_S = 5.0
QUIET_S = 0.15
"""After so long without a byte a stream is called silent, by tests that expect it to be."""
FAST = {"ttft_median_s": 0.0, "prefill_s_per_1k": 0.0, "token_median_s": 0.0, "answer": ANSWER}


@asynccontextmanager
async def simulated(**settings: Any) -> AsyncIterator[Simulator]:
    """Serve without waits of its own while the block runs."""
    async with serving(SimSettings(**{**FAST, **settings}), MonotonicClock()) as simulator:
        yield simulator


class Listening(Protocol):
    """Is a simulator, here or in another process."""

    @property
    def port(self) -> int:
        """Return where it listens."""
        ...


@dataclass(slots=True)
class Got:
    """Is what a client was sent."""

    raw: bytes = b""
    ended: str = ""
    """`eof`, `reset`, or `open` when the connection is still there."""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    """Without the framing of HTTP chunks."""
    pieces: list[bytes] = field(default_factory=list)
    """The HTTP chunks that came whole."""
    whole: bool = False
    """Whether HTTP says that the body is whole."""

    @property
    def events(self) -> list[Event]:
        """Return the events that came whole."""
        return list(Decoder().feed(self.body))

    @property
    def datas(self) -> list[Any]:
        """Return the JSON of the events, and texts where they are none."""
        return [_parsed(event.data) for event in self.events]

    @property
    def choices(self) -> list[Any]:
        """Return the first choices of all chunks that have one."""
        return [d["choices"][0] for d in self.datas if isinstance(d, dict) and d.get("choices")]

    @property
    def text(self) -> str:
        """Return the text of the answer."""
        return "".join(choice["delta"].get("content") or "" for choice in self.choices)

    @property
    def finishes(self) -> list[str]:
        """Return every finish_reason."""
        return [choice["finish_reason"] for choice in self.choices if choice["finish_reason"]]

    @property
    def done_count(self) -> int:
        """Return how many times `[DONE]` came."""
        return sum(1 for data in self.datas if data == "[DONE]")

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def chat(model: str = "m", text: str = "What now?", **more: Any) -> dict[str, Any]:
    """Return the body of a request for a stream."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }


def written(body: Mapping[str, Any], path: str = "/v1/chat/completions", **headers: str) -> bytes:
    """Return a request in bytes; names of headers have underscores for dashes."""
    data = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: sim",
        f"content-length: {len(data)}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Client:
    """Is one connection to the simulator."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take an open connection."""
        self.reader = reader
        self.writer = writer

    async def send(self, body: Mapping[str, Any], **headers: str) -> None:
        """Send a request."""
        self.writer.write(written(body, **headers))
        await self.writer.drain()

    async def receive(self, *, quiet_s: float = PATIENCE_S) -> Got:
        """Return all that comes until the body is whole, the end, or a silence."""
        got = Got()
        while not got.ended and not got.whole:
            try:
                async with asyncio.timeout(quiet_s):
                    data = await self.reader.read(65536)
            except TimeoutError:
                got.ended = "open"
            except ConnectionResetError:
                got.ended = "reset"
            else:
                got.raw += data
                got.ended = "" if data else "eof"
            # Not at every byte of a stream that comes byte by byte.
            if got.ended or b"chunked" not in got.raw[:400] or got.raw.endswith(LAST_CHUNK):
                _parse(got)
        got.ended = got.ended or "open"
        return got

    def close(self) -> None:
        """Leave."""
        self.writer.close()


@asynccontextmanager
async def connected(simulator: Listening) -> AsyncIterator[Client]:
    """Connect while the block runs."""
    reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass  # it was reset, as some tests want it to be


async def post(
    simulator: Listening, body: Mapping[str, Any], *, quiet_s: float = PATIENCE_S, **headers: str
) -> Got:
    """Send one request by a connection of its own, and return what came."""
    async with connected(simulator) as client:
        await client.send(body, **headers)
        return await client.receive(quiet_s=quiet_s)


async def control(
    simulator: Simulator,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    patience_s: float = PATIENCE_S,
) -> tuple[int, Any]:
    """Ask the control port, and return the status and the document."""
    reader, writer = await asyncio.open_connection("127.0.0.1", simulator.control_port)
    try:
        length = f"content-length: {len(body)}\r\n" if body is not None else ""
        writer.write(f"{method} {path} HTTP/1.1\r\nconnection: close\r\n{length}\r\n".encode())
        writer.write(body or b"")
        async with asyncio.timeout(patience_s):
            raw = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, document = raw.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(document)


def _parse(got: Got) -> None:
    head, separator, rest = got.raw.partition(b"\r\n\r\n")
    if not separator:
        return
    first, *lines = head.decode("latin-1").split("\r\n")
    got.status = int(first.split(" ")[1])
    got.headers = dict(line.split(": ", 1) for line in lines)
    if got.headers.get("transfer-encoding") == "chunked":
        got.pieces, got.body, got.whole = _unchunked(rest)
    else:
        got.body = rest
        got.whole = len(rest) == int(got.headers.get("content-length", -1))


def _unchunked(rest: bytes) -> tuple[list[bytes], bytes, bool]:
    pieces: list[bytes] = []
    while True:
        line, separator, after = rest.partition(b"\r\n")
        if not separator:
            return pieces, b"".join(pieces), False
        size = int(line, 16)
        if size == 0:
            return pieces, b"".join(pieces), True
        if len(after) < size + 2:
            return pieces, b"".join(pieces) + after[:size], False
        pieces.append(after[:size])
        rest = after[size + 2 :]
