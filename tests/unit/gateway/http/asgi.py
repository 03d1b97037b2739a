"""Asks an ASGI application without a network."""

from dataclasses import dataclass
from typing import Any

import orjson
from starlette.types import ASGIApp, Message


@dataclass(frozen=True)
class Answered:
    """Is what an application answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as what its JSON says."""
        return orjson.loads(self.body)


async def ask(
    app: ASGIApp, method: str, path: str, *, body: bytes = b"", **headers: str
) -> Answered:
    """Ask once; headers are written with `_` for `-`."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": pairs,
        "state": {},
    }
    await app(scope, receive, send)
    begun = sent[0]
    told = {name.decode(): text.decode() for name, text in begun["headers"]}
    return Answered(begun["status"], told, b"".join(part["body"] for part in sent[1:]))
