"""Asks the mesh as clients do, and tells what became of each call."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from services.runtime.client import CHANNEL_OPTIONS
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2

WIDTH = 8
"""So many clients ask at a time."""


@dataclass(frozen=True, slots=True)
class Told:
    """Tells what a client was told."""

    code: grpc.StatusCode
    reason: str = ""
    origin: str = ""
    """The hop where a failure began."""
    origin_reason: str = ""
    """What it was there."""
    degraded: bool = False
    ended: float = 0.0
    elapsed_s: float = 0.0

    @property
    def served(self) -> bool:
        """Return whether there was an answer, be it a lesser one."""
        return self.code is grpc.StatusCode.OK


class Clients:
    """Ask through the edge."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Take the way to the edge."""
        self._stub = GatewayServiceStub(channel)

    async def ask(self, tool: str, deadline_s: float | None, run_id: str = "") -> Told:
        """Have an agent execute a tool, and wait for the whole answer."""
        request = gateway_pb2.AskRequest(question=run_pb2.Question(text=tool), agent="relay")
        metadata = (("x-sixhop-run-id", run_id),) if run_id else ()
        began = time.monotonic()
        try:
            answer = await self._stub.Ask(request, timeout=deadline_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            ended = time.monotonic()
            value = dict(error.trailing_metadata() or ()).get(DETAILS_KEY)
            info = error_info(value if isinstance(value, bytes) else None)
            return Told(
                error.code(),
                reason=info.reason if info else error.details() or "",
                origin=info.metadata["originHop"] if info else "",
                origin_reason=info.metadata["originReason"] if info else "",
                ended=ended,
                elapsed_s=ended - began,
            )
        ended = time.monotonic()
        degraded = bool(answer.degradations)
        return Told(grpc.StatusCode.OK, degraded=degraded, ended=ended, elapsed_s=ended - began)

    async def ask_often(
        self,
        tool: str,
        count: int,
        deadline_s: float | Sequence[float],
        *,
        width: int = WIDTH,
        enough: Callable[[], bool] | None = None,
    ) -> list[Told]:
        """Have so many calls answered, some at a time.

        Args:
            tool: what is executed.
            count: how many calls.
            deadline_s: of each of them, or those that they take in turn.
            width: how many at a time.
            enough: is asked after each call whether to make no more.
        """
        lengths = [deadline_s] if isinstance(deadline_s, float) else list(deadline_s)
        left = iter(range(count))
        told: list[Told] = []

        async def client() -> None:
            for number in left:
                told.append(await self.ask(tool, lengths[number % len(lengths)]))
                if enough is not None and enough():
                    return

        await asyncio.gather(*(client() for _ in range(width)))
        return told


def tally(told: Sequence[Told]) -> Counter[str]:
    """Return how often each outcome came, for people."""
    return Counter(
        ("degraded" if each.degraded else "answered")
        if each.served
        else f"{each.code.name} {each.origin_reason or each.reason} of {each.origin or 'gateway'}"
        for each in told
    )


@asynccontextmanager
async def clients_of(address: str) -> AsyncIterator[Clients]:
    """Open the way to the edge, and close it when the block is left."""
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        yield Clients(channel)
