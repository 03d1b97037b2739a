"""Is the gRPC door out: sends requests and reads streams for the choke point."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from services.runtime.call import Alternative, Call, Callee
from services.runtime.errors import Code, DependencyFailedError, Origin, SixhopError
from services.runtime.identity import write_identity
from services.runtime.load_report import LOAD_REPORT_KEY, LOAD_WANTED, LoadReader
from services.runtime.outgoing import Outgoing
from services.runtime.reports import REPORTS_KEY
from services.runtime.requests import (
    Request,
    RequestFailure,
    StreamRequest,
    Trailers,
    UnaryRequest,
)
from services.runtime.status import DETAILS_KEY, from_status

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

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
        self.loads: LoadReader | None = None
        """Knows when a report is wanted; without it each answer is to bring one."""
        self.under_way: set[Request[Any]] = set()
        """The requests that have not ended."""

    def end_requests(self) -> None:
        """End the requests that are under way: to close their channel does not."""
        for running in list(self.under_way):
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

        def send(call: Call) -> Awaitable[ResponseT]:
            metadata, asks = self._metadata(call)
            try:
                sent: UnaryRequest[ResponseT] = UnaryRequest(rpc, call, self, wants_trailers=asks)
            except grpc.aio.UsageError:
                # Our own channel was closed meanwhile: this process is about to end.
                raise self.lost(call) from None
            return sent.send(request, metadata)

        return self.outgoing.unary(
            _method_of(type(request).__name__),
            send,
            note=note,
            callee=callee,
            alternatives=alternatives,
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

        async def open_wire(call: Call) -> "StreamRequest[ResponseT]":  # see Outgoing.stream
            metadata, asks = self._metadata(call)
            try:
                wire: StreamRequest[ResponseT] = StreamRequest(rpc, call, self, wants_trailers=asks)
                await wire.send(request, metadata)
            except grpc.aio.UsageError:
                # Our own channel was closed meanwhile: this process is about to end.
                raise self.lost(call) from None
            return wire

        return self.outgoing.stream(
            _method_of(type(request).__name__),
            open_wire,
            is_content=is_content,
            take_heartbeat=take_heartbeat,
            note=note,
            callee=callee,
        )

    def keep(self, call: Call, trailers: Trailers) -> None:
        """Keep what the callee has told after its answer."""
        reports = trailers.get(REPORTS_KEY)
        if isinstance(reports, bytes):
            call.told = reports
        load = trailers.get(LOAD_REPORT_KEY)
        if isinstance(load, bytes) and self.note_load is not None:
            self.note_load(load)

    def fault(self, call: Call, error: RequestFailure | DecodeError) -> SixhopError:
        """Return what a request that failed is to its caller; what came with it is kept."""
        if isinstance(error, DecodeError):
            return _unreadable(call)
        self.keep(call, error.trailers)
        return _translate(call, error)

    def lost(self, call: Call) -> SixhopError:
        """Return what a request is to its caller that was cancelled under it."""
        return DependencyFailedError(
            call.dependency,
            f"the call to {call.dependency} was cancelled under us",
            cause="cancelled",
            origin=Origin(call.dependency, code=Code.CANCELLED.name, reason="CANCELLED"),
        )

    def _metadata(self, call: Call) -> tuple[list[tuple[str, str]], bool]:
        """Return what goes with a call, and whether it asks for anything after its answer."""
        identity = call.inbound.identity
        pairs = write_identity(identity)
        pairs += call.callee.metadata
        if self.note_load is None:
            return pairs, identity.wants_reports
        # A stream that ends late says late how it goes: so each of them asks.
        if self.loads is not None and not call.streaming:
            if call.sent_at < self.loads.due_at:
                return pairs, identity.wants_reports
            self.loads.ask(call.sent_at)
        pairs.append(LOAD_WANTED)
        return pairs, True


@cache
def _method_of(kind: str) -> str:
    # buf lint holds that the request of an RPC is named after it.
    return kind.removesuffix("Request")


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
