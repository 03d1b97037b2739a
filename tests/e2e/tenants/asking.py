"""Asks at both doors of a gateway, with keys and tokens, and tells what came of it."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import aiohttp
import grpc

from gateway.access.key_file import change
from gateway.access.keys import make_key
from services.runtime.client import CHANNEL_OPTIONS
from services.runtime.status import DETAILS_KEY, error_info, retry_after_s
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2
from tests.e2e.suite import WAIT_S

Door = Literal["grpc", "http"]
DOORS: tuple[Door, ...] = ("grpc", "http")
DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Told:
    """Is what one call came to."""

    code: str
    """The reason of the error; OK without one."""
    cause: str = ""
    message: str = ""
    status: int = 200
    """Of HTTP; 200 over gRPC."""
    retry_after_s: float | None = None
    details: Mapping[str, str] | None = None
    agent: str = ""
    text: str = ""
    run_id: str = ""


class Asker:
    """Asks one gateway."""

    def __init__(self, channel: grpc.aio.Channel, session: aiohttp.ClientSession, url: str) -> None:
        """Take the ways in."""
        self._stub = GatewayServiceStub(channel)
        self._session = session
        self.url = url

    async def ask(
        self,
        door: Door,
        key: str | None,
        *,
        agent: str = "probe_early",
        question: str = "Go.",
        level: str = "",
        **fields: Any,
    ) -> Told:
        """Ask one question; with a key, it is shown as it is."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        if level:
            headers["x-sixhop-criticality"] = level
        if door == "grpc":
            return await self._grpc(headers, agent, question)
        asked = {"model": agent or "auto", "messages": [{"role": "user", "content": question}]}
        return await self._http(headers, asked | fields)

    async def _grpc(self, headers: dict[str, str], agent: str, question: str) -> Told:
        request = gateway_pb2.AskRequest(question=run_pb2.Question(text=question), agent=agent)
        try:
            answer = await self._stub.Ask(
                request, timeout=DEADLINE_S, metadata=tuple(headers.items())
            )
        except grpc.aio.AioRpcError as error:
            metadata = error.trailing_metadata()
            found = metadata.get(DETAILS_KEY) if metadata is not None else None
            details = found if isinstance(found, bytes) else None
            info = error_info(details)
            if info is None:
                return Told(error.code().name, message=error.details() or "")
            return Told(
                info.reason,
                info.metadata["cause"],
                error.details() or "",
                retry_after_s=retry_after_s(details),
                details=dict(info.metadata),
            )
        return Told("OK", agent=answer.agent, text=answer.text, run_id=answer.run_id)

    async def _http(self, headers: dict[str, str], asked: dict[str, Any]) -> Told:
        headers["x-sixhop-deadline-ms"] = f"{DEADLINE_S * 1000:.0f}"
        async with self._session.post(
            f"{self.url}/v1/chat/completions", json=asked, headers=headers
        ) as response:
            body = json.loads(await response.read())
            after = response.headers.get("retry-after")
            if response.status == 200:
                text = body["choices"][0]["message"]["content"]
                told = body["sixhop"]
                return Told("OK", agent=told["agent"], text=text, run_id=told["run_id"])
            error = body["error"]
            return Told(
                error["reason"],
                error["cause"],
                error["message"],
                response.status,
                None if after is None else float(after),
                error["details"],
            )

    async def get(self, path: str, key: str | None = None) -> tuple[int, Any]:
        """Return what a page says, and its status."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        async with self._session.get(f"{self.url}{path}", headers=headers) as response:
            return response.status, json.loads(await response.read())


@asynccontextmanager
async def asking(address: str, url: str) -> AsyncIterator[Asker]:
    """Open the ways into a gateway."""
    async with (
        grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session,
    ):
        yield Asker(channel, session, url)


def put_key(path: Path, tenant: str, *, expired: bool = False, revoked: bool = False) -> str:
    """Put a key into a file of keys, and return it."""
    now = datetime.now(UTC)
    key, record = make_key(
        tenant,
        name="",
        now=now,
        expires=now - timedelta(seconds=1) if expired else None,
        random_bytes=secrets.token_bytes,
    )
    record = record.model_copy(update={"revoked_time": now if revoked else None})
    change(path, lambda kept: [*kept, record])
    return key


async def ask_until(asker: Asker, key: str, code: str) -> Told:
    """Ask until the answer is another: a second at most, and the bound is for the machine."""
    async with asyncio.timeout(WAIT_S):
        while True:
            told = await asker.ask("grpc", key)
            if told.code == code:
                return told
