"""Holds one attempt of a stream from its opening to its end, inside its limits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, TypeVar

from services.runtime.call import Call, WaitLimit
from services.runtime.clock import Clock
from services.runtime.cutoff import cancel_asked
from services.runtime.errors import DependencyFailedError, Origin, SixhopError
from services.runtime.guarding import Guards
from services.runtime.stack import NO_HOOKS, StreamHooks
from services.runtime.status import no_answer
from services.runtime.watch import Watch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Wire(Protocol[T_co]):
    """Is one open stream of a transport."""

    async def read(self) -> T_co | None:
        """Return the next event, or None at a clean end.

        Raises:
            SixhopError: the stream failed.
        """
        ...

    def cancel(self) -> None:
        """Close the stream now; a pending read wakes up with CancelledError or an error."""
        ...


class AttemptStream(AsyncIterator[T]):
    """Gives the events of one attempt; every wait ends by its limit.

    The policies of the attempt are held until the stream is left, not until its first event.
    """

    def __init__(
        self,
        call: Call,
        clock: Clock,
        is_content: Callable[[T], bool] | None,
        hooks: StreamHooks = NO_HOOKS,
        take_heartbeat: Callable[[T], bool] | None = None,
    ) -> None:
        """Take the call, what counts as content (None counts any event), and who is told.

        An event that `take_heartbeat` takes prolongs a wait as every event does, and is no answer:
        nobody is told of it, and it is given to no consumer.
        """
        self._take_heartbeat = take_heartbeat
        self._hooks = hooks
        self._has_content = False
        self._call = call
        self._clock = clock
        self._is_content = is_content
        self._guards: Guards[Call] | None = None
        self._wire: Wire[T] | None = None
        self._watch: Watch | None = None
        self._first: T | None = None
        self._ended = False
        self._failure: BaseException | None = None

    async def open(
        self, guards: Guards[Call], open_wire: Callable[[Call], Awaitable[Wire[T]]]
    ) -> "AttemptStream[T]":
        """Return itself, once the first event is there: until then it may be repeated.

        Heartbeats that were taken are none: however long they come, the callee is one that has
        not answered yet.

        Raises:
            SixhopError: a policy refused, or the attempt failed before its first event.
        """
        try:
            waiting = guards.enter(self._call)
            if waiting is not None:
                await waiting
            self._guards = guards
            limit = self._call.wait_limit
            if limit is None:
                raise RuntimeError("the deadline policy has set no limits for this stream")
            await self._open_wire(limit, open_wire)
        except BaseException as error:
            self._failure = error
            self._leave(error)
            raise
        return self

    def leave(self, error: BaseException | None) -> None:
        """Close the stream, wherever it stands; `error` is what ended its reader, if anything."""
        if error is not None and error is self._failure:
            self._leave(error)
        elif self._ended:
            self._leave(None)
        else:
            # Left in the middle: that says nothing about the one who was streaming.
            self._leave(asyncio.CancelledError())

    async def __anext__(self) -> T:
        """Return the next event.

        Raises:
            SixhopError: the stream failed, or the wait outlived its limit.
        """
        if self._first is not None:
            event, self._first = self._first, None
            self._call.delivered = True
            return event
        if self._ended:
            raise StopAsyncIteration
        wire, watch = self._wire, self._watch
        if wire is None or watch is None:
            raise RuntimeError("the stream was not opened")
        inbound, dependency = self._call.inbound, self._call.dependency
        # What Inbound.begin_wait and end_wait do, because every message comes here.
        waits = inbound.waiting
        now = watch.begin()
        if not waits:
            inbound.waiting_since = now
        waits.append(dependency)
        try:
            found = await wire.read()
            # Most readers take none.
            while self._take_heartbeat is not None and self._is_heartbeat(found):
                watch.begin()
                found = await wire.read()
        except BaseException as error:
            self._failure = failure = self._told(error, watch)
            if failure is error:
                raise
            raise failure from None
        finally:
            watch.waiting = False
            waits.remove(dependency)
            if not waits:
                inbound.wait_s += self._clock.now() - inbound.waiting_since
        if not self._has_content:
            self._note_content(found)
        if found is None:
            self._ended = True
            raise StopAsyncIteration
        return found

    async def _open_wire(
        self, limit: WaitLimit, open_wire: Callable[[Call], Awaitable[Wire[T]]]
    ) -> None:
        began = self._call.sent_at = self._clock.now()
        until, cause = limit.first_wait_until()
        self._call.inbound.begin_wait(self._call.dependency, began)
        try:
            async with asyncio.timeout(max(0.0, until - began)) as scope:
                self._wire = await open_wire(self._call)
                self._first = await self._wire.read()
                while self._is_heartbeat(self._first):
                    now = self._clock.now()
                    until, cause = limit.next_wait_until(now)
                    scope.reschedule(asyncio.get_running_loop().time() + max(0.0, until - now))
                    self._first = await self._wire.read()
        except (TimeoutError, SixhopError):
            if not scope.expired():
                raise
            waited_s = self._clock.now() - began
            raise no_answer(self._call.dependency, waited_s, cause) from None
        except asyncio.CancelledError:
            if cancel_asked():
                self._call.inbound.cut_wait = self._call.dependency
                raise
            raise self._lost() from None
        finally:
            self._call.inbound.end_wait(self._call.dependency, self._clock.now())
        self._watch = Watch(self._clock, limit, self._wire.cancel)
        self._ended = self._first is None
        for tell in self._hooks.first_event:
            tell(self._call)
        self._note_content(self._first)

    def _told(self, error: BaseException, watch: Watch) -> BaseException:
        """Return what the end of a wait by an error is to the consumer."""
        cancelled = isinstance(error, asyncio.CancelledError)
        if cancelled and cancel_asked():
            self._call.inbound.cut_wait = self._call.dependency
            return error
        if not cancelled and not isinstance(error, SixhopError):
            return error
        if watch.fired_cause:
            return no_answer(self._call.dependency, watch.waited_s, watch.fired_cause)
        return self._lost() if cancelled else error

    def _is_heartbeat(self, event: T | None) -> bool:
        take = self._take_heartbeat
        return take is not None and event is not None and take(event)

    def _note_content(self, event: T | None) -> None:
        limit = self._call.wait_limit
        if event is None or limit is None or self._has_content:
            return
        if self._is_content is None or self._is_content(event):
            self._has_content = True
            limit.content_arrived()
            for tell in self._hooks.first_content:
                tell(self._call)

    def _lost(self) -> SixhopError:
        dependency = self._call.dependency
        return DependencyFailedError(
            dependency,
            f"the stream from {dependency} was closed under us",
            cause="cancelled",
            origin=Origin(dependency, code="CANCELLED", reason="STREAM_LOST"),
        )

    def _leave(self, error: BaseException | None) -> None:
        if self._watch is not None:
            self._watch.close()
        # Always: a stream that is not read to its end goes on running at the callee.
        if self._wire is not None:
            self._wire.cancel()
        if self._guards is None:
            return
        guards, self._guards = self._guards, None
        guards.leave(self._call, error)


class StreamedCall(AbstractAsyncContextManager[AsyncIterator[T]]):
    """Is one call that is answered by a stream, while a block reads it.

    It is what a generator with contextlib's help would be, at a fraction of the cost.
    """

    def __init__(self, attempts: Callable[[], Awaitable[AttemptStream[T]]]) -> None:
        """Take what makes its attempts."""
        self._attempts = attempts
        self._events: AttemptStream[T]

    async def __aenter__(self) -> AsyncIterator[T]:
        """Open the stream.

        Raises:
            SixhopError: a policy refused, or no attempt began to answer.
        """
        self._events = await self._attempts()
        return self._events

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the stream everywhere, wherever it stands."""
        self._events.leave(error)
