"""Holds the choke point to what the policies are promised: streams to their end, moved limits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress

import pytest

from services.runtime.call import Call, CallLimits, Group
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.outgoing import Outgoing
from services.runtime.stack import ClientPolicies, client_stack
from services.runtime.statistics import Activity
from tests.stacks import policies
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed
from tests.unit.runtime.scripted import Pause, ScriptedWire, Step, serving
from tests.unit.runtime.wired import wired

LIMITS = CallLimits(step_timeout_s=10.0, min_useful_s=0.0)
LOST = DependencyFailedError(
    "model", "the stream broke", cause="stream_lost", origin=Origin("model", reason="STREAM_LOST")
)
Stream = AbstractAsyncContextManager[AsyncIterator[str]]
Watch = Callable[[], None]


class LeftError(Exception):
    """Is the consumer's own."""


def to_model(clock: LoopClock, held: ClientPolicies) -> Outgoing:
    """Return the way from domain to model, with all the policies."""
    return Outgoing("domain", "model", LIMITS, client_stack(clock, Activity(), held), clock)


def in_use(held: ClientPolicies) -> int:
    """Return how many permits are in use."""
    return held.bulkhead.snapshot().groups[Group.CORE].inflight


def generation(clock: LoopClock, held: ClientPolicies, *script: Step) -> Stream:
    """Return a stream from the model."""

    async def open_wire(call: Call) -> ScriptedWire:
        return ScriptedWire(clock, script)

    return to_model(clock, held).stream("Generate", open_wire)


async def read_to_the_end(stream: Stream, watch: Watch) -> None:
    """Read all there is."""
    async with stream as events:
        async for _ in events:
            watch()


async def leave_early(stream: Stream, watch: Watch) -> None:
    """Read one event and go."""
    async with stream as events:
        async for _ in events:
            watch()
            break


async def fail(stream: Stream, watch: Watch) -> None:
    """Read one event and fail."""
    with suppress(LeftError):
        async with stream as events:
            async for _ in events:
                watch()
                raise LeftError


async def be_cancelled(stream: Stream, watch: Watch) -> None:
    """Be cancelled while waiting for the second event."""
    reading = asyncio.create_task(read_to_the_end(stream, watch))
    await LoopClock().sleep(1.0)
    reading.cancel()
    await asyncio.wait({reading})
    assert reading.cancelled()


@pytest.mark.parametrize("leave", [read_to_the_end, leave_early, fail, be_cancelled])
async def test_a_permit_is_held_until_its_stream_is_left_however_that_is(
    clock: LoopClock, leave: Callable[[Stream, Watch], object]
) -> None:
    held = policies(clock)
    seen: list[int] = []

    with serving(clock):
        stream = generation(clock, held, "one", Pause(3.0), "two")
        left = leave(stream, lambda: seen.append(in_use(held)))
        assert asyncio.iscoroutine(left)
        await left

    assert set(seen) == {1}
    assert in_use(held) == 0


async def test_a_stream_that_breaks_gives_its_permit_back(clock: LoopClock) -> None:
    held = policies(clock)
    seen: list[int] = []

    with serving(clock), pytest.raises(DependencyFailedError):
        await read_to_the_end(
            generation(clock, held, "one", LOST), lambda: seen.append(in_use(held))
        )

    assert seen == [1]
    assert in_use(held) == 0


async def test_who_is_cancelled_before_the_first_event_gives_the_permit_back(
    clock: LoopClock,
) -> None:
    held = policies(clock)

    with serving(clock):
        opening = asyncio.create_task(
            read_to_the_end(generation(clock, held, Pause(5.0), "one"), lambda: None)
        )
        await clock.sleep(1.0)
        waiting = in_use(held)
        opening.cancel()
        await asyncio.wait({opening})

    assert waiting == 1
    assert in_use(held) == 0


async def test_calls_are_given_what_recent_answers_took_instead_of_what_is_declared(
    clock: LoopClock,
) -> None:
    held = policies(clock, {"SIXHOP_ADAPTIVE__MIN_TIMEOUT_S": "2"})
    outgoing = to_model(clock, held)

    async def send(call: Call) -> float:
        await clock.sleep(0.1)
        return call.attempt_timeout_s

    given_s: list[float] = []
    for _ in range(120):
        with serving(clock):
            given_s.append(await outgoing.unary("Generate", send))

    # What is put on the wire is a step of gRPC's grid below.
    assert given_s[0] == pytest.approx(10.0, abs=0.2)
    assert given_s[-1] == pytest.approx(2.0, abs=0.02)


async def test_the_first_event_of_a_stream_is_waited_for_as_long_as_recent_ones_took(
    clock: LoopClock,
) -> None:
    held = policies(
        clock, {"SIXHOP_ADAPTIVE__MIN_TIMEOUT_S": "2", "SIXHOP_RETRY__MAX_ATTEMPTS": "1"}
    )

    for _ in range(120):
        with serving(clock):
            await read_to_the_end(
                generation(clock, held, Pause(0.1), "one", Pause(2.0), "two"), lambda: None
            )
    began = clock.now()
    with serving(clock), pytest.raises(DependencyFailedError) as caught:
        await read_to_the_end(generation(clock, held, Pause(5.0), "one"), lambda: None)

    assert clock.now() - began == pytest.approx(2.0, abs=0.02)
    assert caught.value.cause == "step_timeout"


async def test_a_gap_that_the_callers_own_deadline_has_cut_is_not_the_callees(
    clock: LoopClock,
) -> None:
    held = policies(clock)

    with serving(clock, 10.0), pytest.raises(DependencyFailedError) as caught:
        await read_to_the_end(generation(clock, held, "one", Pause(60.0)), lambda: None)

    assert caught.value.cause == "deadline_share"
    assert held.breakers.snapshot()["model"].call_count == 0


async def test_the_last_attempt_is_given_more_than_a_share_of_what_is_left() -> None:
    hop = wired((1.0, failed()), (0.1, None))

    assert await hop.ask(remaining_s=5.0) == "answer 2"

    # Three of the five seconds, though some 3.7 were left: nothing follows that needs the rest.
    assert [sent.given_s for sent in hop.callee.sent] == pytest.approx([2.99, 2.99])
