"""Is the gRPC door out: sends requests and reads streams for the choke point."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from services.runtime.call import Alternative, Call, Callee
from services.runtime.cutoff import cancel_asked
from services.runtime.errors import Code, DependencyFailedError, Origin, SixhopError
from services.runtime.identity import write_identity
from services.runtime.load_report import LOAD_REPORT_KEY
from services.runtime.outgoing import Outgoing
from services.runtime.reports import REPORTS_KEY
from services.runtime.requests import RequestFailure, StreamRequest, UnaryRequest
from services.runtime.status import DETAILS_KEY, from_status

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)
StartedT = TypeVar("StartedT")

MAX_MESSAGE_BYTES = 40 * 1024 * 1024
"""Room for the user's data (16 MiB) and the files of an answer."""

PUSHBACK_KEY = "grpc-retry-pushback-ms"
"""Is how a gRPC server that is not of this house says when to come back."""

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A frozen peer is noticed by its missing ping, which only this option arms.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    # A callee that was restarted is found again within a quarter of a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # In spite of its name this is how long one attempt to connect may take: a busy callee needs
    # more than a tenth of a second for its first frame.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    # What another channel has found out about an address, before its port was somebody else's, is
    # not to be shared.
    ("grpc.use_local_subchannel_pool", 1),
    # Retrying is the retry policy's business alone.
    ("grpc.enable_retries", 0),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """Return a channel to `host:port`; it connects with its first call."""
    return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)


class Dependency:
    """Calls the RPCs of one hop. Stubs are made on its channel and called through it."""

    def __init__(self, outgoing: Outgoing, channel: grpc.aio.Channel) -> None:
        """Take the choke point and the channel."""
        self.channel = channel
        self.outgoing = outgoing
        self.note_load: Callable[[bytes], None] | None = None
        """Is given the load reports of answers, when somebody wants them."""
        self.load_due: Callable[[], bool] = lambda: True
        """Tells whether a report is wanted now; reading what comes after an answer costs."""
        self._under_way: set[UnaryRequest[Any] | StreamRequest[Any]] = set()

    def end_requests(self) -> None:
        """End the requests that are under way: to close their channel does not."""
        for running in list(self._under_way):
            running.cancel()

    def unary(
        self,
        rpc: "grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        *,
        note: str = "",
        callee: Callee | None = None,
        alternatives: Sequence[Alternative] = (),
    ) -> Coroutine[Any, Any, ResponseT]:
        """Call a unary RPC; await what is returned.

        Args:
            rpc: the method of a stub on this channel.
            request: what to send.
            note: what the method's name does not say, such as the name of a tool.
            callee: what is called, when that is more than the dependency as a whole.
            alternatives: what may be given when the call fails.

        Raises:
            SixhopError: the dependency failed, did not answer in time, or a policy refused.
        """

        async def send(call: Call) -> ResponseT:
            try:
                running: UnaryRequest[ResponseT] = UnaryRequest(rpc, call.attempt_timeout_s)
                self._under_way.add(running)
                try:
                    response = await running.send(request, _metadata(call))
                finally:
                    self._under_way.discard(running)
            except RequestFailure as failure:
                self.keep(call, failure.trailers)
                raise _translate(call, failure) from None
            except DecodeError as error:
                raise _unreadable(call) from error
            except grpc.aio.UsageError:
                # Our own channel was closed meanwhile: this process is about to end.
                raise _cancelled_by_peer(call) from None
            except asyncio.CancelledError:
                if cancel_asked():
                    raise
                raise _cancelled_by_peer(call) from None
            if self.wants_trailers(call):
                self.keep(call, await running.trailers())
            return response

        return self.outgoing.unary(
            _method_of(request), send, note=note, callee=callee, alternatives=alternatives
        )

    def stream(
        self,
        rpc: "grpc.aio.UnaryStreamMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        *,
        is_content: Callable[[ResponseT], bool] | None = None,
        take_heartbeat: Callable[[ResponseT], bool] | None = None,
        note: str = "",
        callee: Callee | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[ResponseT]]:
        """Call a server-streaming RPC; leaving the block ends it everywhere.

        Args:
            rpc: the method of a stub on this channel.
            request: what to send.
            is_content: tells what ends the wait for the first content; None counts any event.
            take_heartbeat: takes an event that says only that the callee waits, as
                `Outgoing.stream` says.
            note: what the method's name does not say.
            callee: what is called, when that is more than the dependency as a whole.

        Raises:
            SixhopError: as for `unary`, at opening and while reading.
        """

        async def open_wire(call: Call) -> _GrpcWire[ResponseT]:
            try:
                wire: _GrpcWire[ResponseT] = _GrpcWire(rpc, call, self, self._under_way)
                await wire.send(request, _metadata(call))
            except grpc.aio.UsageError:
                # Our own channel was closed meanwhile: this process is about to end.
                raise _cancelled_by_peer(call) from None
            return wire

        return self.outgoing.stream(
            _method_of(request),
            open_wire,
            is_content=is_content,
            take_heartbeat=take_heartbeat,
            note=note,
            callee=callee,
        )

    def wants_trailers(self, call: Call) -> bool:
        """Tell whether anybody looks at what comes after an answer; reading it costs."""
        if call.inbound.identity.wants_reports:
            return True
        return self.note_load is not None and self.load_due()

    def keep(self, call: Call, trailers: Mapping[str, str | bytes]) -> None:
        """Keep what the callee has told after its answer."""
        reports = trailers.get(REPORTS_KEY)
        if isinstance(reports, bytes):
            call.told = reports
        load = trailers.get(LOAD_REPORT_KEY)
        if isinstance(load, bytes) and self.note_load is not None:
            self.note_load(load)


def _metadata(call: Call) -> list[tuple[str, str]]:
    pairs = write_identity(call.inbound.identity)
    pairs += call.callee.metadata
    return pairs


class _GrpcWire(StreamRequest[ResponseT]):
    """Reads one server stream."""

    def __init__(self, rpc: Any, call: Call, dependency: Dependency, under_way: set[Any]) -> None:
        super().__init__(rpc, call.attempt_timeout_s)
        self._made_for = call
        self._dependency = dependency
        self._under_way = under_way
        under_way.add(self)

    def cancel(self) -> None:
        self._under_way.discard(self)
        super().cancel()

    def fault(self, error: RequestFailure | DecodeError) -> SixhopError:
        if isinstance(error, DecodeError):
            return _unreadable(self._made_for)
        self._dependency.keep(self._made_for, error.trailers)
        return _translate(self._made_for, error)

    def well_ended(self, trailers: Callable[[], Mapping[str, str | bytes]]) -> None:
        if self._dependency.wants_trailers(self._made_for):
            self._dependency.keep(self._made_for, trailers())


def _method_of(request: Message) -> str:
    # buf lint holds that the request of an RPC is named after it. To cut the ending off by its
    # length costs a third of looking for it.
    return type(request).__name__[: -len("Request")]


def _translate(call: Call, failure: RequestFailure) -> SixhopError:
    details = failure.trailers.get(DETAILS_KEY)
    share_s = call.limits.share * (call.inbound.deadline - call.started_at)
    cause = "step_timeout" if call.limits.step_timeout_s <= share_s else "deadline_share"
    if call.streaming:
        cause = "deadline"
    translated = from_status(
        call.dependency,
        failure.code,
        failure.details,
        details if isinstance(details, bytes) else None,
        cause=cause,
    )
    pushback_s = _pushback_s(failure.trailers.get(PUSHBACK_KEY))
    if pushback_s is not None:
        translated.retry_after_s = pushback_s
    return translated


def _pushback_s(value: str | bytes | None) -> float | None:
    """Return when the callee wants to be called again; below zero is never, None is not said.

    What is no number means never, as gRPC's retry design (A6) has it.
    """
    if value is None:
        return None
    try:
        return int(value) / 1000
    except ValueError:
        return -1.0


def _unreadable(call: Call) -> SixhopError:
    return DependencyFailedError(
        call.dependency,
        f"{call.dependency} answered {call.method} with something else; do both hops run the same "
        "release?",
        cause="unreadable",
        origin=Origin(call.dependency, code=Code.OK.name, reason="UNREADABLE"),
    )


def _cancelled_by_peer(call: Call) -> SixhopError:
    return DependencyFailedError(
        call.dependency,
        f"the call to {call.dependency} was cancelled under us",
        cause="cancelled",
        origin=Origin(call.dependency, code=Code.CANCELLED.name, reason="CANCELLED"),
    )
