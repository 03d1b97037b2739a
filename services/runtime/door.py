"""Leads every call that arrives through the policies, whatever transport brought it."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from google.protobuf.message import Message
from google.rpc import status_pb2

from services.runtime.call import CURRENT, Identity, Inbound
from services.runtime.clock import Clock
from services.runtime.cutoff import Cutoffs
from services.runtime.errors import BudgetTooSmallError, SixhopError
from services.runtime.guarding import Guard, Guarded, Guards
from services.runtime.heartbeat_events import is_heartbeat
from services.runtime.policies.deadline import own_timeout
from services.runtime.stack import for_looks
from services.runtime.status import to_status

T = TypeVar("T")
EventT = TypeVar("EventT", bound=Message)
Settle = Callable[[Inbound, SixhopError | None], Awaitable[None]]
"""Ends a stream for its transport: with an error, or with what comes after its last event."""


class Door:
    """Is what all doors of a process share: the policies around what is served."""

    def __init__(
        self,
        hop: str,
        pod: str,
        stack: Sequence[Guard[Inbound]],
        clock: Clock,
        first_event: Callable[[Inbound], None] | None = None,
    ) -> None:
        """Take the policies in their order.

        Args:
            hop: the hop that is served.
            pod: this process.
            stack: the policies, outermost first.
            clock: the clock.
            first_event: is told of every stream that begins to answer; a heartbeat is no answer.
        """
        self.hop = hop
        self.cutoffs = Cutoffs(clock)
        """Ends the calls whose time is up."""
        self._pod = pod
        self._stack = tuple(stack)
        self._guard()
        self._looks = Guards(for_looks(stack))
        self._clock = clock
        self._first_event = first_event

    def surround(self, guard: Guard[Inbound]) -> None:
        """Put one more guard around all policies: it sees how each call ends, refused or not."""
        self._stack = (guard, *self._stack)
        self._guard()

    def arrive(
        self, name: str, remaining_s: float | None, identity: Identity, *, streaming: bool
    ) -> Inbound:
        """Begin a call: it is the current one from here on, in this task.

        Args:
            name: the method.
            remaining_s: what its caller has left, seconds; None without a deadline.
            identity: whose it is.
            streaming: whether it is answered by a stream.
        """
        now = self._clock.now()
        deadline = math.inf if remaining_s is None else now + remaining_s
        inbound = Inbound(self.hop, name, streaming, now, deadline, identity)
        CURRENT.set(inbound)
        return inbound

    async def unary(
        self, inbound: Inbound, serve: Callable[[], Awaitable[T]], *, is_look: bool = False
    ) -> T:
        """Serve a call that has one answer, or a `look`.

        Raises:
            SixhopError: a policy refused, the work failed, or its time is up.
        """
        guards = self._looks if is_look else self._unaries
        waiting = guards.enter(inbound)
        if waiting is not None:
            await waiting
        try:
            # What cannot be begun is not to be cut off.
            work = serve()
            at = inbound.deadline - inbound.margin_s
            cutoff = self.cutoffs.begin(at, inbound, own_timeout, asyncio.current_task())
            try:
                answer = await work
            except asyncio.CancelledError:
                cutoff.raise_own()
                raise
            finally:
                if cutoff.cut:
                    cutoff.take_back()
                self.cutoffs.end(cutoff)
        except BaseException as error:
            guards.leave(inbound, error)
            raise
        guards.leave(inbound)
        return answer

    def look(self, inbound: Inbound, serve: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """Serve a look at what this process knows, which is no work of the suite; await it.

        It has a deadline and its caller must be known; but it is neither admitted nor shed nor
        learned from, so that people can look at a gateway that refuses everything else.

        Raises:
            SixhopError: the caller may not, the look failed, or its time is up.
        """
        return self.unary(inbound, serve, is_look=True)

    async def stream(
        self, inbound: Inbound, events: AsyncGenerator[EventT, None], settle: Settle
    ) -> AsyncGenerator[EventT, None]:
        """Serve a call that has a stream of answers; `settle` is told how it ended."""
        failure: SixhopError | None = None
        try:
            # The service's generator is closed here and not by the garbage collector, so that
            # what it holds is free when the caller has gone, however it went.
            async with Guarded(self._streams, inbound), aclosing(events):
                with self.cutoffs.begin(inbound.self_deadline, inbound, own_timeout) as cutoff:
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
        await settle(inbound, failure)

    def status(self, inbound: Inbound, error: SixhopError) -> status_pb2.Status:
        """Return what the contract says of an error that ends a call here."""
        remaining_s = inbound.deadline - self._clock.now()
        return to_status(
            error,
            hop=self.hop,
            pod=self._pod,
            remaining_s=remaining_s if math.isfinite(remaining_s) else 0.0,
            wait_s=inbound.wait_s,
        )

    def _guard(self) -> None:
        self._streams = Guards(self._stack)
        self._unaries = Guards(guard for guard in self._stack if not guard.streams_only)

    def _refuse_slow_reader(self, inbound: Inbound, given_at: float) -> None:
        """End a stream whose time was spent by a caller that did not read."""
        now = self._clock.now()
        if now >= inbound.self_deadline and now - given_at > inbound.margin_s:
            raise BudgetTooSmallError(
                f"the caller took {now - given_at:.2f} s to read one event; read faster",
                cause="slow_reader",
            )
