"""Holds one attempt of a stream to its limits, and to being left without a trace."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from services.runtime.call import Call, CallLimits, Inbound
from services.runtime.errors import (
    BudgetTooSmallError,
    DependencyFailedError,
    SelfUnavailableError,
)
from services.runtime.guarding import Guards
from services.runtime.stream import AttemptStream, Wire
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock
from tests.unit.runtime.scripted import (
    Pause,
    RecordingGuard,
    ScriptedWire,
    Step,
    choke_point,
    serving,
)

LIMITS = CallLimits(
    step_timeout_s=5.0, read_timeout_s=3.0, first_content_timeout_s=6.0, min_useful_s=0.0
)


@dataclass(slots=True)
class Attempt:
    """Is one scripted stream with everything that can be seen of it."""

    events: AsyncIterator[str]
    wire: ScriptedWire
    guard: RecordingGuard
    inbound: Inbound


@asynccontextmanager
async def streaming(
    clock: LoopClock,
    script: Sequence[Step],
    *,
    limits: CallLimits = LIMITS,
    remaining_s: float = 30.0,
    guard: RecordingGuard | None = None,
    wire: ScriptedWire | None = None,
) -> AsyncIterator[Attempt]:
    """Open a scripted stream from domain to model; events beginning with `.` are heartbeats."""
    stream, guard = wire or ScriptedWire(clock, script), guard or RecordingGuard()

    async def open_wire(call: Call) -> Wire[str]:
        return stream

    outgoing = choke_point(clock, limits, guard)
    with serving(clock, remaining_s) as inbound:
        opening = outgoing.stream(
            "Generate", open_wire, is_content=lambda event: not event.startswith(".")
        )
        try:
            async with opening as events:
                yield Attempt(events, stream, guard, inbound)
        finally:
            assert stream.cancel_count or "begin" not in guard.log, "the stream was left open"


async def consume(clock: LoopClock, script: Sequence[Step], **options: Any) -> list[str]:
    """Return all events of a scripted stream."""
    async with streaming(clock, script, **options) as attempt:
        return [event async for event in attempt.events]


async def failure(
    clock: LoopClock, script: Sequence[Step], **options: Any
) -> DependencyFailedError:
    """Return how a scripted stream fails."""
    with pytest.raises(DependencyFailedError) as caught:
        await consume(clock, script, **options)
    return caught.value


async def test_events_come_in_order_and_the_end_is_clean(clock: LoopClock) -> None:
    guard = RecordingGuard()

    events = await consume(clock, ["one", Pause(1.0), "two", "three"], guard=guard)

    assert events == ["one", "two", "three"]
    assert guard.log == ["begin", "ok"]


async def test_an_empty_stream_is_a_stream(clock: LoopClock) -> None:
    assert await consume(clock, []) == []


@requirement("deadline:stream-limits")
@pytest.mark.parametrize(
    ("script", "remaining_s", "cause", "after_s"),
    [
        ([Pause(60), "late"], 30.0, "step_timeout", 5.0),
        ([Pause(60), "late"], 5.0, "deadline_share", 3.0),
        (["a", Pause(60), "late"], 30.0, "read_timeout", 3.0),
        (["a", Pause(2), "b", Pause(60), "late"], 30.0, "read_timeout", 5.0),
        (["a", Pause(60), "late"], 4.0, "deadline_share", 2.4),
        ([".", Pause(2), ".", Pause(2), ".", Pause(2.5), "x"], 30.0, "first_content_timeout", 6.0),
        ([".", *[Pause(1), "."] * 60], 30.0, "first_content_timeout", 6.0),
        ([".", *[Pause(1), "."] * 60], 8.0, "deadline_share", 4.8),
        (["a", *[Pause(1), "."] * 60], 30.0, "deadline", 28.9),
        (["a", *[Pause(0.5), "b"] * 99], 10.0, "deadline", 8.99),
    ],
    ids=str,
)
async def test_a_wait_ends_by_the_limit_that_is_nearest_and_says_which(
    clock: LoopClock, script: list[Step], remaining_s: float, cause: str, after_s: float
) -> None:
    guard = RecordingGuard()

    error = await failure(clock, script, remaining_s=remaining_s, guard=guard)

    assert clock.now() - START == pytest.approx(after_s, abs=0.001)
    assert (error.cause, error.dependency) == (cause, "model")
    assert error.origin is not None
    assert (error.origin.hop, error.origin.reason) == ("model", "NO_ANSWER")
    assert guard.log == ["begin", "DependencyFailedError"]


@requirement("deadline:stream-limits")
async def test_content_ends_the_wait_for_content(clock: LoopClock) -> None:
    beats: list[Step] = [Pause(2), "."]
    script = [".", Pause(2), "text", *beats * 5, "end"]

    events = await consume(clock, script)

    assert events[-1] == "end"
    assert clock.now() - START == pytest.approx(12.0)


async def test_the_time_of_the_consumer_is_no_wait(clock: LoopClock) -> None:
    script: list[Step] = ["one", Pause(1), "two", Pause(1), "three"]

    async with streaming(clock, script) as attempt:
        events = []
        async for event in attempt.events:
            events.append(event)
            await clock.sleep(5.0)

    assert events == ["one", "two", "three"]
    assert attempt.inbound.wait_s == pytest.approx(2.0)


@requirement("stream:cancelled-when-left")
async def test_a_stream_that_is_left_in_the_middle_is_closed_and_tells_nothing(
    clock: LoopClock,
) -> None:
    async with streaming(clock, ["one", "two", "three"]) as attempt:
        async for _ in attempt.events:
            break

    assert attempt.wire.cancel_count >= 1
    assert attempt.guard.log == ["begin", "CancelledError"]
    assert [report.outcome for report in attempt.inbound.reports] == ["CANCELLED"]


@requirement("stream:cancelled-when-left")
async def test_an_error_of_the_consumer_closes_the_stream_and_tells_nothing_of_it(
    clock: LoopClock,
) -> None:
    guard = RecordingGuard()

    async def work() -> None:
        async with streaming(clock, ["one", "two"], guard=guard) as attempt:
            async for _ in attempt.events:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()

    assert guard.log == ["begin", "CancelledError"]


@requirement("stream:cancelled-when-left")
@pytest.mark.parametrize("script", [[Pause(60)], ["one", Pause(2.5), "two"]], ids=["first", "gap"])
async def test_a_cancel_while_waiting_closes_the_stream(
    clock: LoopClock, script: list[Step]
) -> None:
    guard = RecordingGuard()
    consumer = asyncio.create_task(consume(clock, script, guard=guard))
    await clock.sleep(1.0)

    consumer.cancel()
    await asyncio.wait({consumer})

    assert consumer.cancelled()
    assert guard.log == ["begin", "CancelledError"]


@pytest.mark.parametrize("script", [[Pause(60)], ["one", Pause(60)]], ids=["first", "gap"])
async def test_a_cancel_while_waiting_notes_whose_wait_was_cut(
    clock: LoopClock, script: list[Step]
) -> None:
    async def open_wire(call: Call) -> Wire[str]:
        return ScriptedWire(clock, script)

    async def work() -> None:
        async with choke_point(clock, LIMITS).stream("Generate", open_wire) as events:
            async for _ in events:
                pass

    with serving(clock) as inbound:
        worker = asyncio.create_task(work())
        await clock.sleep(1.0)
        worker.cancel()
        await asyncio.wait({worker})

    assert inbound.cut_wait == "model"
    assert inbound.waiting == []
    assert inbound.wait_s == pytest.approx(1.0)


@requirement("errors:stray-cancel")
@pytest.mark.parametrize("script", [[], ["one"]], ids=["first", "later"])
async def test_a_stream_that_is_closed_under_us_is_the_dependencys_failure(
    clock: LoopClock, script: list[Step]
) -> None:
    error = await failure(clock, [*script, asyncio.CancelledError()])

    assert (error.cause, error.origin and error.origin.reason) == ("cancelled", "STREAM_LOST")


@pytest.mark.parametrize("script", [[], ["one"]], ids=["first", "later"])
async def test_a_failure_of_the_dependency_reaches_the_consumer_and_the_guards(
    clock: LoopClock, script: list[Step]
) -> None:
    guard, lost = RecordingGuard(), SelfUnavailableError("gone")

    with pytest.raises(SelfUnavailableError) as caught:
        await consume(clock, [*script, lost], guard=guard)

    assert caught.value is lost
    assert guard.log == ["begin", "SelfUnavailableError"]


async def test_a_failure_that_arrives_together_with_the_limit_is_told_as_the_limit(
    clock: LoopClock,
) -> None:
    """The transport has its own timer for the whole stream: it may win by a hair."""

    class Expiring(ScriptedWire):
        async def read(self) -> str | None:
            try:
                return await super().read()
            except asyncio.CancelledError:
                raise SelfUnavailableError("the transport noticed") from None

    wire = Expiring(clock, ["one", Pause(60)])

    error = await failure(clock, [], wire=wire)

    assert error.cause == "read_timeout"


@requirement("stream:held-until-left")
async def test_the_guards_are_held_until_the_stream_is_left(clock: LoopClock) -> None:
    async with streaming(clock, ["one", "two"]) as attempt:
        async for _ in attempt.events:
            assert attempt.guard.log == ["begin"]
        assert attempt.guard.log == ["begin"]

    assert attempt.guard.log == ["begin", "ok"]


async def test_a_stream_that_was_read_to_its_end_and_then_left_by_an_error_went_well(
    clock: LoopClock,
) -> None:
    guard = RecordingGuard()

    async def work() -> None:
        async with streaming(clock, ["one"], guard=guard) as attempt:
            async for _ in attempt.events:
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()

    assert guard.log == ["begin", "ok"]


async def test_a_refusal_opens_no_wire(clock: LoopClock) -> None:
    guard = RecordingGuard()

    with pytest.raises(BudgetTooSmallError):
        await consume(clock, ["one"], remaining_s=0.02, guard=guard)

    assert guard.log == []


async def test_a_wire_that_opens_too_slowly_meets_the_limit_of_the_first_event(
    clock: LoopClock,
) -> None:
    async def open_wire(call: Call) -> Wire[str]:
        await clock.sleep(60)
        return ScriptedWire(clock, [])

    with serving(clock), pytest.raises(DependencyFailedError) as caught:
        async with choke_point(clock, LIMITS).stream("Generate", open_wire):
            pass

    assert caught.value.cause == "step_timeout"
    assert clock.now() - START == pytest.approx(5.0)


async def test_a_stream_without_limits_is_a_defect(clock: LoopClock) -> None:
    async def open_wire(call: Call) -> Wire[str]:
        return ScriptedWire(clock, [])

    with serving(clock) as inbound:
        call = Call("model", "Generate", True, inbound, LIMITS)
        stream: AttemptStream[str] = AttemptStream(call, clock, None)

        with pytest.raises(RuntimeError, match="no limits"):
            await stream.open(Guards([]), open_wire)
        with pytest.raises(RuntimeError, match="not opened"):
            await anext(stream)
