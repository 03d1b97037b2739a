"""Is the gRPC door in: takes calls through the policies and answers errors by the contract."""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, NoReturn

import grpc
from google.rpc import status_pb2

from services.runtime.call import CURRENT, Identity, Inbound
from services.runtime.clock import Clock
from services.runtime.cutoff import Cutoff, Cutoffs
from services.runtime.errors import BudgetTooSmallError, SixhopError
from services.runtime.guarding import Guard, Guarded, Guards
from services.runtime.heartbeat_events import is_heartbeat
from services.runtime.identity import read_identity
from services.runtime.load_report import Trailers
from services.runtime.policies.deadline import own_timeout
from services.runtime.reports import REPORTS_KEY, encode_reports
from services.runtime.status import DETAILS_KEY, to_status

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
        hop: str,
        pod: str,
        stack: Sequence[Guard[Inbound]],
        clock: Clock,
        identify: Identify | None = None,
        load_report: Callable[[], Trailers] | None = None,
        first_event: Callable[[Inbound], None] | None = None,
    ) -> None:
        """Take the policies in their order.

        Args:
            hop: the hop that is served.
            pod: this process.
            stack: the policies, outermost first.
            clock: the clock.
            identify: what the edge does with an identity that came from outside.
            load_report: gives the trailers that tell how much there is to do here.
            first_event: is told of every stream that begins to answer; a heartbeat is no answer.
        """
        self._hop = hop
        self._pod = pod
        self._guards = Guards(stack)
        self.cutoffs = Cutoffs(clock)
        """Ends the calls whose time is up."""
        self._clock = clock
        self._identify = identify
        self._load_report = load_report
        self._first_event = first_event
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
        guards = self._guards

        async def serve(request: Any, context: Context) -> Any:
            inbound = self._arrive(name, context, streaming=False)
            try:
                waiting = guards.enter(inbound)
                if waiting is not None:
                    await waiting
                try:
                    with self._cutoff(inbound) as cutoff:
                        answer = await cutoff.bound(inner(request, context))
                except BaseException as error:
                    guards.leave(inbound, error)
                    raise
                guards.leave(inbound)
            except SixhopError as error:
                await self._abort(context, inbound, error)
            self._report(context, inbound)
            return answer

        return serve

    def _stream_behaviour(
        self, name: str, inner: Callable[[Any, Context], AsyncGenerator[Any, None]]
    ) -> Callable[[Any, Context], AsyncIterator[Any]]:
        async def serve(request: Any, context: Context) -> AsyncIterator[Any]:
            inbound = self._arrive(name, context, streaming=True)
            failure: SixhopError | None = None
            try:
                # The service's generator is closed here and not by the garbage collector, so that
                # what it holds is free when the caller has gone, however it went.
                async with (
                    Guarded(self._guards, inbound),
                    aclosing(inner(request, context)) as events,
                ):
                    with self._cutoff(inbound) as cutoff:
                        while True:
                            try:
                                event = await cutoff.bound(anext(events))
                            except StopAsyncIteration:
                                break
                            given_at = self._clock.now()
                            if not inbound.answered_at and self._first_event is not None:
                                # One that says only that we wait is no answer.
                                if not is_heartbeat(event):
                                    self._first_event(inbound)
                            yield event
                            self._refuse_slow_reader(inbound, given_at)
            except SixhopError as error:
                failure = error
            if failure is not None:
                await self._abort(context, inbound, failure)
            self._report(context, inbound)

        return serve

    def _refuse_slow_reader(self, inbound: Inbound, given_at: float) -> None:
        """End a stream whose time was spent by a caller that did not read."""
        now = self._clock.now()
        if now >= inbound.self_deadline and now - given_at > inbound.margin_s:
            raise BudgetTooSmallError(
                f"the caller took {now - given_at:.2f} s to read one event; read faster",
                cause="slow_reader",
            )

    def _cutoff(self, inbound: Inbound) -> Cutoff:
        """Return what ends this hop's work when it has to answer by itself."""
        return self.cutoffs.begin(inbound.self_deadline, inbound, own_timeout)

    def _arrive(self, name: str, context: Context, *, streaming: bool) -> Inbound:
        now = self._clock.now()
        remaining_s = context.time_remaining()
        deadline = math.inf if remaining_s is None else now + remaining_s
        identity = read_identity(_SENT.get())
        if self._identify is not None:
            identity = self._identify(identity)
        inbound = Inbound(self._hop, name, streaming, now, deadline, identity)
        CURRENT.set(inbound)
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
        remaining_s = inbound.deadline - self._clock.now()
        status = to_status(
            error,
            hop=self._hop,
            pod=self._pod,
            remaining_s=remaining_s if math.isfinite(remaining_s) else 0.0,
            wait_s=inbound.wait_s,
        )
        load = self._load_report() if self._load_report is not None else ()
        await abort(context, status, (REPORTS_KEY, encode_reports(inbound.reports)), *load)


async def abort(
    context: Context, status: status_pb2.Status, *trailers: tuple[str, bytes]
) -> NoReturn:
    """End a call with a status, and what comes after it."""
    details = (DETAILS_KEY, status.SerializeToString())
    await context.abort(_CODES[status.code], status.message, trailing_metadata=(details, *trailers))
    raise AssertionError("abort returns never")
