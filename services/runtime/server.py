"""Is the gRPC door in: takes calls through the policies and answers errors by the contract."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

import grpc
from google.rpc import status_pb2

from services.runtime.call import Identity, Inbound
from services.runtime.credential import Credential
from services.runtime.door import Door
from services.runtime.errors import SixhopError
from services.runtime.identity import read_credential, read_identity
from services.runtime.load_report import Trailers
from services.runtime.reports import REPORTS_KEY, encode_reports
from services.runtime.status import DETAILS_KEY

EXEMPT_PREFIXES = ("/grpc.health.", "/grpc.reflection.", "/sixhop.runtime.")
"""Services that must answer when nothing else does; no policy applies to them."""

_SENT: ContextVar[tuple[tuple[str, str | bytes], ...]] = ContextVar("sixhop_sent", default=())
"""The metadata of the call that is being looked up. Its handler runs in the same task, and asking
its context would convert everything once more, which costs a hop a twentieth of its CPU."""
_CODES = {code.value[0]: code for code in grpc.StatusCode}

Context = grpc.aio.ServicerContext[Any, Any]
Identify = Callable[[Identity], Identity]


class PolicyInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every method once, and keeps the wrapped handler."""

    def __init__(
        self,
        door: Door,
        identify: Identify | None = None,
        load_report: Callable[[], Trailers] | None = None,
    ) -> None:
        """Take what is around every call.

        Args:
            door: the policies.
            identify: what the edge does with an identity that came from outside.
            load_report: gives the trailers that tell how much there is to do here.
        """
        self._door = door
        self._identify = identify
        self._load_report = load_report
        self._handlers: dict[str, Any] = {}

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any] | None"]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the wrapped handler of a method."""
        method = handler_call_details.method
        _SENT.set(handler_call_details.invocation_metadata)
        if method not in self._handlers:
            found = await continuation(handler_call_details)
            if found is None or method.startswith(EXEMPT_PREFIXES):
                return found
            self._handlers[method] = self._wrap(method, found)
        return self._handlers[method]

    def _wrap(self, method: str, handler: Any) -> Any:
        name = method.rpartition("/")[2]
        if handler.request_streaming:
            raise TypeError(f"{method}: sixhop has no client streams")
        codec = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.response_streaming:
            stream = self._stream_behaviour(name, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(stream, **codec)
        unary = self._unary_behaviour(name, handler.unary_unary)
        return grpc.unary_unary_rpc_method_handler(unary, **codec)

    def _unary_behaviour(
        self, name: str, inner: Callable[[Any, Context], Awaitable[Any]]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        door = self._door

        async def serve(request: Any, context: Context) -> Any:
            inbound = self._arrive(name, context, streaming=False)
            try:
                answer = await door.unary(inbound, partial(inner, request, context))
            except SixhopError as error:
                await self._abort(context, inbound, error)
            self._report(context, inbound)
            return answer

        return serve

    def _stream_behaviour(
        self, name: str, inner: Callable[[Any, Context], AsyncGenerator[Any, None]]
    ) -> Callable[[Any, Context], AsyncIterator[Any]]:
        door = self._door

        async def serve(request: Any, context: Context) -> AsyncIterator[Any]:
            inbound = self._arrive(name, context, streaming=True)
            settle = partial(self._settle, context)
            async with aclosing(door.stream(inbound, inner(request, context), settle)) as events:
                async for event in events:
                    yield event

        return serve

    async def _settle(
        self, context: Context, inbound: Inbound, failure: SixhopError | None
    ) -> None:
        if failure is not None:
            await self._abort(context, inbound, failure)
        self._report(context, inbound)

    def _arrive(self, name: str, context: Context, *, streaming: bool) -> Inbound:
        sent = _SENT.get()
        identity = read_identity(sent)
        if self._identify is None:
            return self._door.arrive(name, context.time_remaining(), identity, streaming=streaming)
        identity = self._identify(identity)
        inbound = self._door.arrive(name, context.time_remaining(), identity, streaming=streaming)
        inbound.credential = Credential(read_credential(sent))
        return inbound

    def _report(self, context: Context, inbound: Inbound) -> None:
        trailers: list[tuple[str, bytes]] = []
        if self._load_report is not None:
            trailers.extend(self._load_report())
        if inbound.identity.wants_reports and inbound.reports:
            trailers.append((REPORTS_KEY, encode_reports(inbound.reports)))
        if trailers:
            context.set_trailing_metadata(trailers)

    async def _abort(self, context: Context, inbound: Inbound, error: SixhopError) -> NoReturn:
        status = self._door.status(inbound, error)
        load = self._load_report() if self._load_report is not None else ()
        await abort(context, status, (REPORTS_KEY, encode_reports(inbound.reports)), *load)


async def abort(
    context: Context, status: status_pb2.Status, *trailers: tuple[str, bytes]
) -> NoReturn:
    """End a call with a status, and what comes after it."""
    details = (DETAILS_KEY, status.SerializeToString())
    await context.abort(_CODES[status.code], status.message, trailing_metadata=(details, *trailers))
    raise AssertionError("abort returns never")
