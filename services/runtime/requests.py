"""Sends requests without the task and the call object that grpc.aio makes for each.

grpc.aio runs every request in a task of its own, so that it can be awaited later and by several. A
hop awaits it at once and alone, and saves one part in fifteen of its CPU by awaiting what that task
would, and as much of a stream's. None of the names below is public: they belong to the pinned
release of grpcio, as the names in `launch` do, and every test that makes a call tells when another
release has other ones.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message

from services.runtime.clock import wall_s
from services.runtime.errors import Code, SixhopError

ResponseT = TypeVar("ResponseT", bound=Message)

Pairs = Sequence[tuple[str, str | bytes]]

_CANCELLED = "nobody waits for the answer any more"


@dataclass(frozen=True, slots=True)
class RequestFailure(Exception):
    """Carries the status of a request that was not answered."""

    code: Code
    details: str
    trailers: Mapping[str, str | bytes]


class UnaryRequest(Generic[ResponseT]):
    """Is one request on its way."""

    __slots__ = ("_call", "_rpc")

    def __init__(self, rpc: Any, timeout_s: float) -> None:
        """Begin a request that may take so long.

        Args:
            rpc: the method of a stub.
            timeout_s: how long the callee has.

        Raises:
            grpc.aio.UsageError: the channel is closed.
        """
        self._rpc = rpc
        self._call = _begin(rpc, timeout_s)

    async def send(self, request: Message, metadata: Pairs) -> ResponseT:
        """Send it and return the answer; who is cancelled here cancels the request.

        Raises:
            RequestFailure: it ended with a status that is not OK.
            grpc.aio.UsageError: `cancel` ended it.
            google.protobuf.message.DecodeError: the answer is no message of the right kind.
        """
        call = self._call
        try:
            answer = await call.unary_unary(request.SerializeToString(), tuple(metadata), None)
        except asyncio.CancelledError:
            call.cancel(_CANCELLED)
            raise
        if not call.is_ok():
            if call.is_locally_cancelled():
                raise grpc.aio.UsageError("the request was ended by this process")
            raise await self._failure()
        return cast(ResponseT, self._rpc._response_deserializer(answer))

    def cancel(self) -> None:
        """End the request, whoever waits for it."""
        self._call.cancel(_CANCELLED)

    async def trailers(self) -> Mapping[str, str | bytes]:
        """Return what came after the answer."""
        return _trailers(await self._call.status())

    async def _failure(self) -> RequestFailure:
        return _failure(await self._call.status())


class StreamRequest(ABC, Generic[ResponseT]):
    """Is one request on its way that is answered by a stream."""

    def __init__(self, rpc: Any, timeout_s: float) -> None:
        """Begin a request whose whole answer may take so long; else as `UnaryRequest` does."""
        self._call = _begin(rpc, timeout_s)
        self._receive = self._call.receive_serialized_message
        self._deserialize = rpc._response_deserializer

    async def send(self, request: Message, metadata: Pairs) -> None:
        """Send it; who is cancelled here cancels the request. How it fails is told by `read`."""
        try:
            await self._call.initiate_unary_stream(
                request.SerializeToString(), tuple(metadata), None
            )
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def read(self) -> ResponseT | None:
        """Return the next message; None after the last of a stream that ended well.

        Raises:
            SixhopError: what `fault` makes of a stream that failed.
            asyncio.CancelledError: `cancel` ended it, or who waits here is cancelled.
        """
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if message is grpc.aio.EOF:
            await self._end()
            return None
        try:
            return cast(ResponseT, self._deserialize(message))
        except DecodeError as error:
            raise self.fault(error) from error

    def cancel(self) -> None:
        """End the request, whoever waits for it."""
        if not self._call.done():
            self._call.cancel(_CANCELLED)

    @abstractmethod
    def fault(self, error: RequestFailure | DecodeError) -> SixhopError:
        """Return what a stream that failed is to its reader."""

    @abstractmethod
    def well_ended(self, trailers: Callable[[], Mapping[str, str | bytes]]) -> None:
        """Take note of the end of a stream; `trailers` returns what came after it, at a price."""

    async def _end(self) -> None:
        if self._call.is_locally_cancelled():
            raise asyncio.CancelledError
        status = await self._call.status()
        if status.code() != Code.OK:
            raise self.fault(_failure(status))
        self.well_ended(partial(_trailers, status))


def _begin(rpc: Any, timeout_s: float) -> Any:
    return rpc._channel.call(
        rpc._method, wall_s() + timeout_s, None, None, rpc._registered_call_handle
    )


def _failure(status: Any) -> RequestFailure:
    return RequestFailure(Code(status.code()), status.details() or "", _trailers(status))


def _trailers(status: Any) -> Mapping[str, str | bytes]:
    return dict(status.trailing_metadata() or ())
