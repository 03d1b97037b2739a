"""Is the gRPC door in: takes calls through the policies and answers errors by the contract."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
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
from services.runtime.load_report import LOAD_WANTED, Trailers
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
Find = Callable[[grpc.HandlerCallDetails], "grpc.RpcMethodHandler[Any, Any] | None"]


class PolicyHandlers:
    """Wraps every method once, and keeps the wrapped handler."""

    def __init__(
        self,
        door: Door,
        identify: Identify | None = None,
        load_report: Callable[[bool], Trailers] | None = None,
    ) -> None:
        """Take what is around every call.

        Args:
            door: the policies.
            identify: what the edge does with an identity that came from outside.
            load_report: gives the trailers that tell how much there is to do here; with True, all
                that is known of it.
        """
        self._door = door
        self._identify = identify
        self._load_report = load_report
        self._handlers: dict[str, Any] = {}

    def handler(self, details: grpc.HandlerCallDetails, find: Find) -> Any:
        """Return the wrapped handler of a method; None when `find` knows none.

        Raises:
            TypeError: the client of the method streams.
        """
        method = details.method
        _SENT.set(details.invocation_metadata)
        if method not in self._handlers:
            found = find(details)
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
        unary = _Unary(self, self._door, name, handler.unary_unary)
        return grpc.unary_unary_rpc_method_handler(unary, **codec)

    def _stream_behaviour(
        self, name: str, inner: Callable[[Any, Context], AsyncGenerator[Any, None]]
    ) -> Callable[[Any, Context], AsyncIterator[Any]]:
        door = self._door

        async def serve(request: Any, context: Context) -> AsyncIterator[Any]:
            inbound = self.arrive(name, context, streaming=True)
            settle = partial(self._settle, context)
            async with aclosing(door.stream(inbound, inner(request, context), settle)) as events:
                async for event in events:
                    yield event

        return serve

    async def _settle(
        self, context: Context, inbound: Inbound, failure: SixhopError | None
    ) -> None:
        if failure is not None:
            await self.abort(context, inbound, failure)
        self.report(context, inbound)

    def arrive(self, name: str, context: Context, *, streaming: bool) -> Inbound:
        """Begin a call as it came."""
        sent = _SENT.get()
        identity = read_identity(sent)
        if self._identify is None:
            return self._door.arrive(name, context.time_remaining(), identity, streaming=streaming)
        identity = self._identify(identity)
        inbound = self._door.arrive(name, context.time_remaining(), identity, streaming=streaming)
        came = read_credential(sent)
        if came:
            inbound.credential = Credential(came)
        return inbound

    def report(self, context: Context, inbound: Inbound) -> None:
        """Tell after an answer what its caller wants to know."""
        trailers: Trailers = ()
        if self._load_report is not None:
            trailers = self._load_report(LOAD_WANTED in _SENT.get())
        if inbound.identity.wants_reports and inbound.reports:
            trailers = (*trailers, (REPORTS_KEY, encode_reports(inbound.reports)))
        if trailers:
            context.set_trailing_metadata(trailers)

    async def abort(self, context: Context, inbound: Inbound, error: SixhopError) -> NoReturn:
        """End a call with an error."""
        status = self._door.status(inbound, error)
        load = self._load_report(True) if self._load_report is not None else ()
        await abort(context, status, (REPORTS_KEY, encode_reports(inbound.reports)), *load)


class _Unary:
    """Serves a method that has one answer."""

    __slots__ = ("_door", "_inner", "_name", "_policies")

    def __init__(
        self,
        policies: PolicyHandlers,
        door: Door,
        name: str,
        inner: Callable[[Any, Context], Awaitable[Any]],
    ) -> None:
        self._policies = policies
        self._door = door
        self._name = name
        self._inner = inner

    async def __call__(self, request: Any, context: Context) -> Any:
        inbound = self._policies.arrive(self._name, context, streaming=False)
        try:
            answer = await self._door.unary(inbound, partial(self._inner, request, context))
        except SixhopError as error:
            await self._policies.abort(context, inbound, error)
        self._policies.report(context, inbound)
        return answer

    def __await__(self) -> NoReturn:
        """Be of the kind that gRPC takes for asynchronous by its first look, of seven each call."""
        raise TypeError("a handler is called, and what that returns is awaited")


class _Guarded:
    """Finds the handlers of a service, wrapped: it is what gRPC calls a generic handler."""

    __slots__ = ("service",)

    def __init__(self, found: grpc.GenericRpcHandler, policies: PolicyHandlers) -> None:
        # No method, which would be one function more for each call.
        self.service = partial(policies.handler, find=found.service)


class PolicyServer(grpc.aio.Server):
    """Is the gRPC server of a hop: whatever service is added to it has the policies around it.

    They are put around handlers as these are found. An interceptor costs three coroutines with each
    call, and every method that is registered costs a future that is waited for with each call.
    """

    def __init__(self, server: grpc.aio.Server, policies: PolicyHandlers) -> None:
        """Take the server, to which nothing is added but through here."""
        self._server = server
        self._policies = policies

    def add_generic_rpc_handlers(
        self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]
    ) -> None:
        """Add services, as generated code does."""
        guarded: list[Any] = [_Guarded(each, self._policies) for each in generic_rpc_handlers]
        self._server.add_generic_rpc_handlers(guarded)

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]
    ) -> None:
        """Add nothing: gRPC would look there first, and pass the policies by."""

    def add_insecure_port(self, address: str) -> int:
        """Listen at an address; return the port."""
        return self._server.add_insecure_port(address)

    def add_secure_port(self, address: str, server_credentials: grpc.ServerCredentials) -> int:
        """Listen at an address with TLS; return the port."""
        return self._server.add_secure_port(address, server_credentials)

    async def start(self) -> None:
        """Begin to serve."""
        await self._server.start()

    async def stop(self, grace: float | None) -> None:
        """Take no more calls; those in flight have so many seconds, without a number none."""
        await self._server.stop(grace)

    # gRPC names the parameter.
    async def wait_for_termination(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until it has stopped, at most so many seconds; tell whether time was up first."""
        return await self._server.wait_for_termination(timeout)


async def abort(
    context: Context, status: status_pb2.Status, *trailers: tuple[str, bytes]
) -> NoReturn:
    """End a call with a status, and what comes after it."""
    details = (DETAILS_KEY, status.SerializeToString())
    await context.abort(_CODES[status.code], status.message, trailing_metadata=(details, *trailers))
    raise AssertionError("abort returns never")
