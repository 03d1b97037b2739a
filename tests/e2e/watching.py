"""Reads the runs of a gateway over HTTP, as a browser or a script does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

LIMIT_S = 20.0
"""Far above what any look takes; those that last as long as a run are bounded by it."""


@dataclass(frozen=True)
class Seen:
    """Is one server-sent event."""

    id: int | None
    name: str
    data: dict[str, Any]


class Watcher:
    """Looks at the runs of one gateway."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        """Take a session that knows the address."""
        self.session = session

    async def start(self, question: str = "Go.", **body: Any) -> str:
        """Start a run, and return its address."""
        status, headers, told = await self.ask(
            "POST", "/v1/runs", json={"question": question, **body}
        )
        assert status == 202, told
        assert headers["location"] == told["links"]["self"]
        return str(headers["location"])

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any, Any]:
        """Return the status, the headers and the JSON of an answer."""
        async with asyncio.timeout(LIMIT_S), self.session.request(method, path, **more) as answer:
            content = await answer.read()
            return answer.status, answer.headers, orjson.loads(content) if content else None

    async def get(self, path: str) -> Any:
        """Return the JSON of an answer that is one."""
        status, _, told = await self.ask("GET", path)
        assert status == 200, told
        return told

    async def ended(self, path: str) -> Any:
        """Return a run once it has ended."""
        await self.events(path)
        return await self.get(path)

    async def events(self, path: str, after: int | None = None) -> list[Seen]:
        """Return all events of a run from one on, until its end."""
        return [seen async for seen in self.watch(path, after)]

    async def watch(self, path: str, after: int | None = None) -> AsyncIterator[Seen]:
        """Yield the events of a run as they come."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        async with (
            asyncio.timeout(LIMIT_S),
            self.session.get(f"{path}/events", headers=headers) as answer,
        ):
            assert answer.status == 200, await answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines: list[str] = []
            async for line in answer.content:
                if line != b"\n":
                    lines.append(line.decode().rstrip("\n"))
                elif lines:
                    if not lines[0].startswith(":"):
                        yield _seen(lines)
                    lines = []


def _seen(lines: Sequence[str]) -> Seen:
    fields = dict(line.split(": ", 1) for line in lines)
    number = int(fields["id"]) if "id" in fields else None
    return Seen(number, fields["event"], orjson.loads(fields["data"]))


@asynccontextmanager
async def watching(url: str, key: str = "") -> AsyncIterator[Watcher]:
    """Look at the runs of the gateway at an address while the block runs, with a key if any."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(url, headers=headers, read_bufsize=2**24) as session:
        yield Watcher(session)
