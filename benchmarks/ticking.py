"""Is a provider whose answers tick: each token tells the instant at which it was sent.

Started with `broken`, it breaks every answer off after its tokens: it closes the connection.
"""

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

INTERVAL_S = 0.02
"""Fifty tokens a second."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT = (
    'data: {{"id":"tick","object":"chat.completion.chunk","model":"ticking","choices":'
    '[{{"index":0,"delta":{{"content":{content}}},"finish_reason":{reason}}}]}}\n\n'
)
_END = b"".join(
    b"%x\r\n%s\r\n" % (len(part), part)
    for part in (
        _EVENT.format(content="null", reason='"stop"').encode(),
        b'data: {"model":"ticking","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9}}'
        b"\n\n",
        b"data: [DONE]\n\n",
    )
) + (b"0\r\n\r\n")
_NOWHERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Ticking(asyncio.Protocol):
    """Answers each question with as many tokens as its last word says."""

    def __init__(self, *, broken: bool) -> None:
        """Wait for a client; whether answers are broken off is known before."""
        self._broken = broken
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._left = 0
        self._next_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the client's connection."""
        # Not asked by isinstance: the transports of uvloop are of no class of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop ticking."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Take a request, and begin to answer once it is whole."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or self._transport is None:
            return
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(lines.get(b"content-length", b"0")):
            return
        self._received = b""
        if not head.startswith(b"POST "):
            self._transport.write(_NOWHERE)
            return
        self._left = int(json.loads(body)["messages"][-1]["content"].split()[-1])
        self._next_at = asyncio.get_running_loop().time()
        self._transport.write(_HEAD)
        self._tick()

    def _tick(self) -> None:
        if self._transport is None:
            return
        if not self._left:
            if self._broken:
                self._transport.close()
            else:
                self._transport.write(_END)
            return
        self._left -= 1
        event = _EVENT.format(content=f'"{time.monotonic():.6f} "', reason="null").encode()
        self._transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        self._next_at += INTERVAL_S
        if self._broken and not self._left:
            # At once: the token before it tells when that was.
            self._tick()
            return
        self._timer = asyncio.get_running_loop().call_at(self._next_at, self._tick)


async def serve(port: int, *, broken: bool) -> None:
    """Serve until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Ticking(broken=broken), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), broken=sys.argv[2:] == ["broken"]))
