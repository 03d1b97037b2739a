"""Makes calls to one dependency through the policies, whatever the transport."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

from services.runtime.call import (
    CURRENT,
    Alternative,
    Call,
    Callee,
    CallLimits,
    Group,
    Identity,
    Inbound,
)
from services.runtime.clock import Clock
from services.runtime.errors import DeadlineMissingError
from services.runtime.policies.deadline import margin_s
from services.runtime.stack import ClientStack
from services.runtime.stream import AttemptStream, StreamedCall, Wire
from services.runtime.topology import (
    DOMAIN,
    LLM,
    MODEL,
    MODEL_BACKUP,
    ROUTING,
    TOOL,
    require_edge,
)

T = TypeVar("T")

MODEL_SLOW_CALL_S = 5.0

CALLEES = {
    # Forwarding a run or running an agent may have effects: never sent twice.
    ROUTING: Callee(key=ROUTING),
    DOMAIN: Callee(key=DOMAIN),
    # Every tool is a callee of its own, as it declares itself; this one stands for the listing.
    TOOL: Callee(key=TOOL, group=Group.DATA, idempotent=True),
    # Behind these is a provider that may have been asked already when they are lost.
    MODEL: Callee(key=MODEL, idempotent=True, paid=True, slow_call_s=MODEL_SLOW_CALL_S),
    # With permits of its own: those of the first model are taken when it is needed.
    MODEL_BACKUP: Callee(
        key=MODEL_BACKUP,
        group=Group.BACKUP,
        idempotent=True,
        paid=True,
        slow_call_s=MODEL_SLOW_CALL_S,
    ),
    LLM: Callee(key=LLM, group=Group.CORE, idempotent=True, slow_call_s=MODEL_SLOW_CALL_S),
}
"""What is known of each dependency as a whole."""


class Outgoing:
    """Makes calls from one hop to one dependency. Nothing leaves a process but through here."""

    def __init__(
        self, hop: str, dependency: str, limits: CallLimits, stack: ClientStack, clock: Clock
    ) -> None:
        """Take both ends of the edge.

        Raises:
            UnknownEdgeError: the topology does not know the edge.
        """
        require_edge(hop, dependency)
        self.dependency = dependency
        self.callee = CALLEES[dependency]
        """What is known of the dependency as a whole."""
        self.limits = limits
        self._stack = stack
        self._clock = clock

    def unary(
        self,
        method: str,
        send: Callable[[Call], Awaitable[T]],
        *,
        note: str = "",
        callee: Callee | None = None,
        alternatives: Sequence[Alternative] = (),
    ) -> Coroutine[Any, Any, T]:
        """Make one call that is answered at once; await what is returned.

        Args:
            method: what is called, for logs and reports.
            send: does one attempt within `call.attempt_timeout_s`.
            note: what the method's name does not say.
            callee: what is called, when that is more than the dependency as a whole.
            alternatives: what may be given when the call fails.

        Raises:
            DeadlineMissingError: at once, when there is no run that it could be for.
            SixhopError: as `send` does, or a policy refused.
        """
        call = self._new_call(method, streaming=False, note=note, callee=callee)
        call.alternatives = alternatives
        return self._stack.driven(call, partial(self._attempt, call, send))()

    def stream(
        self,
        method: str,
        open_wire: Callable[[Call], Awaitable[Wire[T]]],
        *,
        is_content: Callable[[T], bool] | None = None,
        take_heartbeat: Callable[[T], bool] | None = None,
        note: str = "",
        callee: Callee | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[T]]:
        """Make one call that is answered by a stream; leaving the block ends it everywhere.

        Args:
            method: what is called, for logs and reports.
            open_wire: starts one attempt that may last `call.attempt_timeout_s`.
            is_content: tells what ends the wait for the first content; None counts any event.
            take_heartbeat: takes an event that says only that the callee waits, and returns True;
                such an event is no answer. None takes none.
            note: what the method's name does not say.
            callee: what is called, when that is more than the dependency as a whole.

        Raises:
            DeadlineMissingError: at once, when there is no run that it could be for.
            SixhopError: the stream failed, one of its waits outlived its limit, or a policy
                refused.
        """
        call = self._new_call(method, streaming=True, note=note, callee=callee)

        # What is written in quotes is not looked up with each call.
        def attempt() -> "Coroutine[Any, Any, AttemptStream[T]]":
            mine, hooks = call.next_attempt(), self._stack.hooks
            stream = AttemptStream(mine, self._clock, is_content, hooks, take_heartbeat)
            return stream.open(self._stack.attempts, open_wire)

        return StreamedCall(self._stack.driven(call, attempt))

    async def _attempt(self, call: Call, send: Callable[[Call], Awaitable[T]]) -> T:
        """Make one attempt, and note that this hop waits for its answer."""
        # The first as in Call.next_attempt, because almost every attempt is one.
        if call.begun:
            call = call.next_attempt()
        else:
            call.begun = call.attempt = 1
        guards, inbound = self._stack.attempts, call.inbound
        waiting = guards.enter(call)
        if waiting is not None:
            await waiting
        # The waits as in Inbound.begin_wait and end_wait, because every attempt comes here.
        dependency, waits = call.dependency, inbound.waiting
        call.sent_at = now = self._clock.now()
        if not waits:
            inbound.waiting_since = now
        waits.append(dependency)
        try:
            answer = await send(call)
        except BaseException as error:
            inbound.end_wait(dependency, self._clock.now())
            if isinstance(error, asyncio.CancelledError):
                inbound.cut_wait = dependency
            guards.leave(call, error)
            raise
        waits.remove(dependency)
        if not waits:
            inbound.wait_s += self._clock.now() - inbound.waiting_since
        guards.leave(call)
        return answer

    def _new_call(
        self, method: str, *, streaming: bool, note: str, callee: Callee | None = None
    ) -> Call:
        inbound = CURRENT.get(None)
        if inbound is None:
            raise DeadlineMissingError(
                f"{method} was to be called outside of any run; wrap own work in own_work()"
            )
        call = Call(self.dependency, method, streaming, inbound, self.limits, note=note)
        call.callee = callee or self.callee
        if self._stack.limits is not None:
            call.limits = self._stack.limits(call)
        return call


@contextmanager
def own_work(hop: str, name: str, length_s: float, clock: Clock) -> Iterator[Inbound]:
    """Give a task of this hop's own a deadline, so that it may make calls.

    Args:
        hop: the hop that works.
        name: what the work is called in logs.
        length_s: how long it may take.
        clock: the clock.
    """
    now = clock.now()
    inbound = Inbound(hop, name, False, now, now + length_s, Identity(), margin_s(length_s))
    token = CURRENT.set(inbound)
    try:
        yield inbound
    finally:
        CURRENT.reset(token)
