"""Sends requests without the task and the call object that grpc.aio makes for each.

grpc.aio runs every request in a task of its own, so that it can be awaited later and by several. A
hop awaits it at once and alone, and saves one part in fifteen of its CPU by awaiting what that task
would, and as much of a stream's. None of the names below is public: they belong to the pinned
release of grpcio, as the names in `launch` do, and every test that makes a call tells when another
release has other ones.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from services.runtime.call import Call
from services.runtime.clock import wall_s
from services.runtime.cutoff import cancel_asked
from services.runtime.errors import Code, SixhopError

ResponseT = TypeVar("ResponseT", bound=Message)

Pairs = Sequence[tuple[str, str | bytes]]
Trailers = Mapping[str, str | bytes]
"""What comes after an answer."""


_CANCELLED = "nobody waits for the answer any more"
_OK = Code.OK


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Is the status of a request that was not answered."""

    code: Code
    details: str
    trailers: Trailers


class Sender(Protocol):
    """Is told how its requests end."""

    under_way: "set[Request[Any]]"
    """Those that have not ended, so that they can be ended from outside."""

    def keep(self, call: Call, trailers: Trailers) -> None:
        """Take what has come after an answer, be it good or an error."""
        ...

    def fault(self, call: Call, error: RequestFailure | DecodeError) -> SixhopError:
        """Return what a request that failed is to its caller."""
        ...

    def lost(self, call: Call) -> SixhopError:
        """Return what a request is to its caller that somebody else has cancelled."""
        ...


class Request(Generic[ResponseT]):
    """Is one request on its way."""

    __slots__ = ("_call", "_deserialize", "_made_for", "_sender", "_wants_trailers")

    def __init__(self, rpc: Any, call: Call, sender: Sender, *, wants_trailers: bool) -> None:
        """Begin the request of an attempt.

        Args:
            rpc: the method of a stub.
            call: the attempt; its timeout is the deadline of the whole answer.
            sender: is told how it ends.
            wants_trailers: whether to look at what comes after a good answer, which costs.

        Raises:
            grpc.aio.UsageError: the channel is closed.
        """
        self._call = rpc._channel.call(
            rpc._method, wall_s() + call.attempt_timeout_s, None, None, rpc._registered_call_handle
        )
        self._deserialize: Callable[[bytes], ResponseT] = rpc._response_deserializer
        self._made_for = call
        self._sender = sender
        self._wants_trailers = wants_trailers
        sender.under_way.add(self)

    def cancel(self) -> None:
        """End the request, whoever waits for it."""
        self._sender.under_way.discard(self)
        if not self._call.done():
            self._call.cancel(_CANCELLED)


class UnaryRequest(Request[ResponseT]):
    """Is a request that is answered at once."""

    __slots__ = ()

    async def send(self, request: Message, metadata: Pairs) -> ResponseT:
        """Send it and return the answer; who is cancelled here cancels the request.

        Raises:
            SixhopError: what the sender makes of a request that was not answered.
        """
        call = self._call
        try:
            answer = await call.unary_unary(request.SerializeToString(), tuple(metadata), None)
        except asyncio.CancelledError:
            call.cancel(_CANCELLED)
            if cancel_asked():
                raise
            raise self._sender.lost(self._made_for) from None
        finally:
            self._sender.under_way.discard(self)
        if not call.is_ok():
            if call.is_locally_cancelled():
                raise self._sender.lost(self._made_for)
            raise self._sender.fault(self._made_for, _failure(await call.status()))
        try:
            response = self._deserialize(answer)
        except DecodeError as error:
            raise self._sender.fault(self._made_for, error) from error
        if self._wants_trailers:
            self._sender.keep(self._made_for, _trailers(await call.status()))
        return response


class StreamRequest(Request[ResponseT]):
    """Is a request that is answered by a stream."""

    __slots__ = ()

    async def send(self, request: Message, metadata: Pairs) -> None:
        """Send it; who is cancelled here cancels the request. How it fails is told by `read`."""
        try:
            await self._call.initiate_unary_stream(
                request.SerializeToString(), tuple(metadata), None
            )
        except BaseException:
            self.cancel()
            raise

    async def read(self) -> ResponseT | None:
        """Return the next message; None after the last of a stream that ended well.

        Raises:
            SixhopError: what the sender makes of a stream that failed.
            asyncio.CancelledError: `cancel` ended it, or who waits here is cancelled.
        """
        try:
            message = await self._call.receive_serialized_message()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if message is grpc.aio.EOF:
            await self._end()
            return None
        try:
            return self._deserialize(message)
        except DecodeError as error:
            raise self._sender.fault(self._made_for, error) from error

    async def _end(self) -> None:
        if self._call.is_locally_cancelled():
            raise asyncio.CancelledError
        status = await self._call.status()
        if status.code() != _OK:
            raise self._sender.fault(self._made_for, _failure(status))
        if self._wants_trailers:
            self._sender.keep(self._made_for, _trailers(status))


def _failure(status: Any) -> RequestFailure:
    return RequestFailure(Code(status.code()), status.details() or "", _trailers(status))


def _trailers(status: Any) -> Trailers:
    return dict(status.trailing_metadata() or ())
