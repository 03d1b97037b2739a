"""Writes one answer to a connection, well or badly, as a behaviour says."""

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

from tests.provider.behaviour import Behaviour
from tests.provider.log import Log, Record

HUGE = 10**9
WHOLE = ("complete", "stall_after_finish", "close_after_finish")
"""The endings that come after the whole text."""


class ClientGoneError(Exception):
    """Says that the client has closed its connection."""


class Connection:
    """Writes to one client and notices at once when it goes."""

    def __init__(
        self, writer: asyncio.StreamWriter, gone: asyncio.Event, record: Record, log: Log
    ) -> None:
        """Take where to write, what tells that the client went, and where to note what is sent."""
        self._writer = writer
        self._gone = gone
        self.record = record
        self.log = log

    async def head(self, behaviour: Behaviour, *, length: int | None) -> None:
        """Send the status and the headers; without a length the body is chunked."""
        how = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        lines = [
            f"HTTP/1.1 {behaviour.status} X",
            f"content-type: {behaviour.content_type}",
            how,
            *(f"{name}: {value}" for name, value in behaviour.headers.items()),
        ]
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n")

    async def block(self, data: bytes) -> None:
        """Send one block of a chunked body."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: Any, *, kind: str = "") -> None:
        """Send one event."""
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        prefix = f"event: {kind}\n" if kind else ""
        await self.block(f"{prefix}data: {data}\n\n".encode())

    async def delta(self, delta: Any, finish_reason: str | None = None) -> None:
        """Send one chunk of the answer."""
        await self.event(_chunk(self.record, [_choice(delta, finish_reason)]))
        self.record.chunks_sent += 1
        self.log.change()

    async def raw(self, data: bytes) -> None:
        """Send bytes; a client that does not read is waited for, until it goes."""
        if self._gone.is_set():
            raise ClientGoneError
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError:
            raise ClientGoneError from None

    async def wait(self, length_s: float, keep_alive_interval_s: float = 0.0) -> None:
        """Wait, with a comment now and then, until the client goes.

        Raises:
            ClientGoneError: it went.
        """
        step_s = keep_alive_interval_s or length_s
        left_s = length_s
        while left_s > 0:
            try:
                await asyncio.wait_for(self._gone.wait(), min(step_s, left_s))
            except TimeoutError:
                left_s -= step_s
            else:
                raise ClientGoneError
            if keep_alive_interval_s:
                await self.block(b": keep-alive\n\n")

    def reset(self) -> None:
        """Break the connection with RST."""
        # A linger time of zero makes the kernel answer with RST instead of FIN.
        linger = struct.pack("ii", 1, 0)
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()


async def answer(connection: Connection, behaviour: Behaviour) -> bool:
    """Answer one request; return whether the connection can serve another.

    Raises:
        ClientGoneError: the client closed its connection before the end.
    """
    if behaviour.silent:
        await connection.wait(HUGE)
    await connection.wait(behaviour.headers_after_s)
    if behaviour.body or behaviour.status != 200:
        body = behaviour.body.encode()
        await connection.head(behaviour, length=len(body))
        await connection.raw(body)
        connection.log.end(connection.record, "refused")
        return True
    await connection.head(behaviour, length=None)
    await connection.wait(behaviour.first_chunk_after_s, behaviour.keep_alive_interval_s)
    sent = await _send_text(connection, behaviour)
    if behaviour.ending in WHOLE and sent:
        return await _complete(connection, behaviour)
    return await _fail(connection, behaviour)


async def _send_text(connection: Connection, behaviour: Behaviour) -> bool:
    """Send the text up to its fault; return whether all of it was sent."""
    limit = HUGE if behaviour.ending in WHOLE else behaviour.after_chunks
    if limit:
        await connection.delta({"role": "assistant", "content": None})
    thought = {"content": None, "reasoning_content": "Hm. "}
    deltas: list[Mapping[str, Any]] = [thought] * behaviour.reasoning_count
    deltas += [{"content": word} for word in behaviour.words()]
    deltas += behaviour.deltas
    if behaviour.obeys_max_tokens:
        deltas = deltas[: _written(connection.record, behaviour)]
    for number, delta in enumerate(deltas):
        if number >= limit:
            return False
        if number:
            await connection.wait(behaviour.chunk_interval_s, behaviour.keep_alive_interval_s)
        await connection.delta(delta)
    return True


async def _complete(connection: Connection, behaviour: Behaviour) -> bool:
    record = connection.record
    cut = behaviour.obeys_max_tokens and _written(record, behaviour) == record.max_tokens
    await connection.delta({}, "length" if cut else behaviour.finish_reason)
    if behaviour.ending == "stall_after_finish":
        await connection.wait(HUGE)
    if behaviour.ending == "close_after_finish":
        await connection.raw(b"ffff\r\ndata: {")
        connection.log.end(record, behaviour.ending)
        return False
    if behaviour.usage:
        written = _written(record, behaviour)
        usage = {"prompt_tokens": record.prompt_characters, "completion_tokens": written}
        await connection.event(_chunk(record, []) | {"usage": usage})
    if behaviour.done:
        await connection.event("[DONE]")
    await connection.raw(b"0\r\n\r\n")
    connection.log.end(record, "complete")
    return True


async def _fail(connection: Connection, behaviour: Behaviour) -> bool:
    match behaviour.ending:
        case "malformed":
            await connection.event('{"choices": [{"delta": {"content": "half')
        case "in_band_error":
            await connection.event({"error": {"message": "engine died", "type": "server_error"}})
        case "event_error":
            await connection.event({"message": "engine died"}, kind="error")
        case "no_choices":
            await connection.event({"message": "engine died"})
    match behaviour.ending:
        case "malformed" | "in_band_error" | "event_error" | "no_choices":
            # Whoever has understood does not wait for more.
            await connection.wait(HUGE)
        case "stall":
            await connection.wait(HUGE)
        case "keep_alive_forever":
            await connection.wait(HUGE, behaviour.keep_alive_interval_s or 0.05)
        case "truncate":
            await connection.raw(b"0\r\n\r\n")
        case "done_without_finish":
            await connection.event("[DONE]")
            await connection.raw(b"0\r\n\r\n")
        case "reset":
            connection.reset()
        case "close_mid_chunk":
            await connection.raw(b"ffff\r\ndata: {")
    connection.log.end(connection.record, behaviour.ending)
    return behaviour.ending in ("truncate", "done_without_finish")


def _written(record: Record, behaviour: Behaviour) -> int:
    """Return how many tokens an answer has when it is whole; each chunk is one."""
    count = len(behaviour.words()) + behaviour.reasoning_count
    if behaviour.obeys_max_tokens and record.max_tokens is not None:
        return min(count, record.max_tokens)
    return count


def _choice(delta: Any, finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _chunk(record: Record, choices: list[Any]) -> dict[str, Any]:
    return {
        "id": f"scripted-{record.number}",
        "object": "chat.completion.chunk",
        "model": record.model,
        "choices": choices,
    }
