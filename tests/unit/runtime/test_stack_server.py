"""Holds the server's policies to what they do together, through the list that a process uses.

Every pair of neighbours, outermost first, with the test that would fail in another order:

    telemetry · self-ejection     test_the_stream_that_ejects_the_process_is_still_counted_…
    self-ejection · errors        test_three_streams_that_fail_by_own_fault_eject_the_process
    errors · deadline             test_a_refusal_of_the_deadline_is_an_error_of_ours_and_no_defect,
                                  test_a_defect_of_a_policy_is_told_as_ours
    deadline · shed               test_a_call_without_time_is_not_shed_and_tells_no_overload,
                                  test_the_switch_knows_a_deadline_that_the_edge_has_given
    shed · admission              test_what_is_shed_never_comes_to_admission,
                                  test_refusals_of_admission_close_the_switch,
                                  test_a_tenant_over_its_share_closes_no_switch
    deadline · admission          test_a_call_without_time_takes_no_reject_token (inner hops)
    admission · path estimate     test_what_is_refused_teaches_nothing_about_what_is_served
    admission · adequacy          test_callers_in_a_hurry_do_not_make_the_limit_smaller
    adequacy · the service        test_a_place_is_held_until_the_stream_ends_however_it_does

And the way through all of them, cancelled at every wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from services.runtime.call import CURRENT, Call, CallLimits, Criticality
from services.runtime.errors import SelfUnavailableError
from sixhop.gateway.v1.gateway_pb2 import RunResponse
from tests.unit.runtime.door import OK, Door
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.interruption import How, Waits, everywhere

LIMIT_4: dict[str, Any] = {"limit": {"max_inflight": 4}}
QUICK_SHED: dict[str, Any] = {"shed": {"min_calls": 10, "sustain_s": 0.0, "window_s": 100.0}}
NEVER_SHED: dict[str, Any] = {"shed": {"mode": "off"}}
NO_TIME_S = 0.04
"""Less than the margin."""


def taking(clock: LoopClock, length_s: float, error: Exception | None = None) -> Any:
    """Return work that takes its time and ends so."""

    async def work() -> str:
        await clock.sleep(length_s)
        if error is not None:
            raise error
        return "answer"

    return work


def streaming(clock: LoopClock, length_s: float, error: BaseException | None = None) -> Any:
    """Return work that streams two events, with a wait between them, and ends so."""

    async def work() -> AsyncIterator[RunResponse]:
        yield RunResponse(sequence=1)
        await clock.sleep(length_s)
        yield RunResponse(sequence=2)
        if error is not None:
            raise error

    return work


async def crowd(door: Door, count: int, length_s: float = 5.0) -> list["asyncio.Task[str]"]:
    """Start calls that are in flight together."""
    clock = LoopClock()
    tasks = [
        asyncio.create_task(door.serve(taking(clock, length_s), level=Criticality.CRITICAL_PLUS))
        for _ in range(count)
    ]
    await clock.sleep(0.0)
    await clock.sleep(0.0)
    return tasks


async def test_the_stream_that_ejects_the_process_is_still_counted_as_served(
    clock: LoopClock,
) -> None:
    door = Door(clock)
    served: list[int] = []
    door.on_ejection = lambda: served.append(door.activity.inflight)

    ends = [await door.stream(streaming(clock, 0.1, RuntimeError("defect"))) for _ in range(4)]

    assert ends == ["SELF_BUG"] * 4
    assert served == [1]
    assert (door.activity.call_count, door.activity.error_count) == (4, 4)
    assert door.held() == {}


@pytest.mark.parametrize(
    "error",
    [RuntimeError("nobody has named it"), SelfUnavailableError("gone"), asyncio.CancelledError()],
    ids=["a defect", "own fault", "a stray cancel"],
)
async def test_three_streams_that_fail_by_own_fault_eject_the_process(
    clock: LoopClock, error: BaseException
) -> None:
    door = Door(clock)

    for _ in range(3):
        await door.stream(streaming(clock, 0.1, error))

    assert door.ejections == [False]
    assert not door.policies.ejection.serving


async def test_unary_failures_and_refusals_eject_nobody(clock: LoopClock) -> None:
    door = Door(clock)

    for _ in range(5):
        await door.serve(taking(clock, 0.1, RuntimeError("defect")))
        await door.stream(streaming(clock, 0.1), NO_TIME_S)

    assert door.ejections == []


async def test_a_refusal_of_the_deadline_is_an_error_of_ours_and_no_defect(
    clock: LoopClock,
) -> None:
    door, inner = Door(clock), Door(clock, edge=False)

    ends = [
        await door.serve(taking(clock, 0.1), NO_TIME_S),
        await inner.serve(taking(clock, 0.1), None),
        await door.serve(taking(clock, 0.1), None),
    ]

    assert ends == ["BUDGET_TOO_SMALL", "DEADLINE_MISSING", OK]
    assert (door.activity.call_count, door.activity.error_count) == (2, 1)
    assert door.held() == inner.held() == {}


async def test_a_defect_of_a_policy_is_told_as_ours() -> None:
    class Failing(LoopClock):
        instants = iter(range(2))

        def now(self) -> float:
            if next(self.instants, None) == 1:
                # The arrival was the first to ask; the deadline is the second.
                raise ZeroDivisionError
            return super().now()

    door = Door(Failing())

    assert await door.serve(taking(LoopClock(), 0.1)) == "SELF_BUG"
    assert await door.serve(taking(LoopClock(), 0.1)) == OK


async def test_a_call_without_time_is_not_shed_and_tells_no_overload(clock: LoopClock) -> None:
    door = Door(clock, QUICK_SHED)
    door.policies.shed.order("maintenance", 10.0)

    refused = await door.serve(taking(clock, 0.1), NO_TIME_S)
    shed = await door.serve(taking(clock, 0.1))
    for _ in range(50):
        await door.serve(taking(clock, 0.1), NO_TIME_S)

    seen = door.policies.shed.snapshot()
    assert (refused, shed) == ("BUDGET_TOO_SMALL", "LOAD_SHED")
    assert dict(seen.refused) == {"operator/CRITICAL": 1}
    assert seen.call_count == 0


async def test_the_switch_knows_a_deadline_that_the_edge_has_given(clock: LoopClock) -> None:
    door = Door(clock, QUICK_SHED)

    ends = await asyncio.gather(*(door.serve(taking(clock, 100.0), None) for _ in range(10)))
    await clock.sleep(0.1)
    after = [await door.serve(taking(clock, 0.1), level=level) for level in Criticality]

    assert set(ends) == {"SELF_TIMEOUT"}
    assert after[0] == "LOAD_SHED"
    assert after[3] == OK


async def test_what_is_shed_never_comes_to_admission(clock: LoopClock) -> None:
    door = Door(clock, LIMIT_4)
    held = await crowd(door, 4)
    door.policies.shed.order("maintenance", 60.0, up_to=Criticality.SHEDDABLE)

    ends = [await door.serve(taking(clock, 0.1), level=Criticality.SHEDDABLE) for _ in range(20)]
    full = await door.serve(taking(clock, 0.1), level=Criticality.SHEDDABLE_PLUS)
    await asyncio.gather(*held)

    assert set(ends) | {full} == {"LOAD_SHED"}
    assert dict(door.policies.shed.snapshot().refused) == {"operator/SHEDDABLE": 20}
    assert dict(door.policies.admission.snapshot().refused) == {"limit/SHEDDABLE_PLUS": 1}


async def test_refusals_of_admission_close_the_switch(clock: LoopClock) -> None:
    door = Door(clock, LIMIT_4, QUICK_SHED)
    held = await crowd(door, 4)

    for _ in range(12):
        await door.serve(taking(clock, 0.1))
    await asyncio.gather(*held)

    refused = dict(door.policies.shed.snapshot().refused)
    assert door.sheds[0].by == "overload"
    assert door.sheds[0].up_to is Criticality.SHEDDABLE
    assert await door.serve(taking(clock, 0.1), level=Criticality.SHEDDABLE) == "LOAD_SHED"
    assert refused == {}
    assert await door.serve(taking(clock, 0.1)) == OK


async def test_a_tenant_over_its_share_closes_no_switch(clock: LoopClock) -> None:
    door = Door(clock, {"limit": {"max_inflight": 20}}, QUICK_SHED)

    calls = [
        door.serve(taking(clock, 1.0), tenant="hot" if number % 8 else f"calm {number}")
        for number in range(64)
    ]
    ends = await asyncio.gather(*calls)

    admission = door.policies.admission.snapshot()
    told = door.policies.shed.snapshot()
    shared = admission.refused.get("fair_share/CRITICAL", 0)
    assert ends.count("LOAD_SHED") >= shared > 10
    # What was refused for its tenant's sake is not among those that tell of load.
    assert told.call_count == len(ends) - shared


async def test_a_call_without_time_takes_no_reject_token(clock: LoopClock) -> None:
    """Public failure: reject tokens that are drained by requests that were not to be refused."""
    door = Door(clock, {"admission": {"estimate": "enforce"}}, edge=False)
    for _ in range(20):
        await door.serve(taking(clock, 2.0))

    without_time = [await door.serve(taking(clock, 0.1), NO_TIME_S) for _ in range(50)]
    too_long = await door.serve(taking(clock, 2.0), 1.0)

    assert set(without_time) == {"BUDGET_TOO_SMALL"}
    assert too_long == "BUDGET_TOO_SMALL"
    assert dict(door.policies.admission.snapshot().refused) == {"estimate/CRITICAL": 1}


async def test_what_is_refused_teaches_nothing_about_what_is_served(clock: LoopClock) -> None:
    door = Door(clock, LIMIT_4, NEVER_SHED)

    async def asking_the_model() -> str:
        call = Call("model", "Generate", False, CURRENT.get(), CallLimits(step_timeout_s=5.0))
        door.estimator.made.before(call)
        CURRENT.get().begin_wait("model", clock.now())
        await clock.sleep(1.0)
        CURRENT.get().end_wait("model", clock.now())
        door.estimator.made.after(call, None)
        return "answer"

    for _ in range(20):
        await door.serve(asking_the_model)
    held = await crowd(door, 4, length_s=1.0)
    for _ in range(200):
        assert await door.serve(asking_the_model) == "LOAD_SHED"
    await asyncio.gather(*held)

    # One in six of the calls that were served made none; of all that came, nearly all.
    assert door.estimator.path_s() == pytest.approx(20 / 24, rel=0.2)
    assert door.policies.admission.snapshot().served_count == 24


async def test_callers_in_a_hurry_do_not_make_the_limit_smaller(clock: LoopClock) -> None:
    door = Door(clock, {"limit": {"algorithm": "gradient"}}, edge=False)

    limits = []
    for remaining_s, reason in ((0.3, "BUDGET_TOO_SMALL"), (3.0, "SELF_TIMEOUT")):
        for _ in range(30):
            assert await door.serve(taking(clock, 5.0), remaining_s) == reason
        limits.append(door.policies.admission.limit)

    assert limits[0] == 20 > limits[1]


async def closed(door: Door, clock: LoopClock) -> None:
    """Be left by the caller in the middle."""
    task = asyncio.create_task(door.stream(streaming(clock, 5.0)))
    await clock.sleep(1.0)
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize(
    "end",
    [
        lambda door, clock: door.stream(streaming(clock, 5.0)),
        lambda door, clock: door.stream(streaming(clock, 5.0, RuntimeError("defect"))),
        lambda door, clock: door.stream(streaming(clock, 5.0, asyncio.CancelledError())),
        lambda door, clock: door.stream(streaming(clock, 50.0)),
        closed,
    ],
    ids=["well", "by a defect", "by a stray cancel", "by the deadline", "by its caller"],
)
async def test_a_place_is_held_until_the_stream_ends_however_it_does(
    clock: LoopClock, end: Callable[[Door, LoopClock], Coroutine[Any, Any, object]]
) -> None:
    door = Door(clock, LIMIT_4)
    seen: set[int] = set()

    ending = asyncio.create_task(end(door, clock))
    await clock.sleep(0.5)
    seen.add(door.held().get("admitted", 0))
    await asyncio.wait({ending})

    assert seen == {1}
    assert door.leftovers() == {}


async def test_waves_of_refusals_never_raise_what_is_in_flight_above_the_limit(
    clock: LoopClock,
) -> None:
    """Public failure (grpc#41531): rejections that disable the limit, by a count gone negative."""
    door = Door(clock, LIMIT_4, NEVER_SHED)

    for _ in range(5):
        ends = await asyncio.gather(
            *(door.serve(taking(clock, 0.1), level=Criticality.CRITICAL_PLUS) for _ in range(30))
        )
        assert ends.count(OK) == 4

    assert door.policies.admission.snapshot().peak_inflight == 4
    assert door.leftovers() == {}


async def served_at_once(door: Door, waits: Waits) -> None:
    """Serve a call that waits twice."""

    async def work() -> str:
        await door.clock.sleep(0.1)
        await door.clock.sleep(0.1)
        return "answer"

    await waits.cancel(door.serve(work))


async def served_after_a_wait(door: Door, waits: Waits) -> None:
    """Wait for the place of a call that matters less."""
    full = Door(door.clock, {"limit": {"max_inflight": 1}})
    door.__dict__.update(full.__dict__)
    lesser = asyncio.create_task(door.serve(taking(LoopClock(), 0.1), level=Criticality.SHEDDABLE))
    await asyncio.sleep(0)
    await waits.cancel(door.serve(taking(LoopClock(), 0.1), level=Criticality.CRITICAL))
    await lesser


async def served_as_a_stream(door: Door, waits: Waits) -> None:
    """Serve a stream, whose service has something to put in order."""

    async def work() -> AsyncIterator[str]:
        try:
            for _ in range(3):
                await door.clock.sleep(0.1)
                yield "event"
        finally:
            await door.clock.sleep(0.1)

    await waits.cancel(door.stream(work))


async def served_too_late(door: Door, waits: Waits) -> None:
    """Serve a call that this hop ends itself, and which then takes its time to end."""

    async def work() -> str:
        try:
            await door.clock.sleep(60.0)
        finally:
            await door.clock.sleep(0.1)
        return "answer"

    await waits.cancel(door.serve(work, 1.0))


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize(
    "play", [served_at_once, served_after_a_wait, served_as_a_stream, served_too_late]
)
def test_a_served_call_that_is_cancelled_at_any_wait_leaves_nothing_behind(
    play: Callable[[Door, Waits], Coroutine[Any, Any, None]], how: How
) -> None:
    async def run(waits: Waits) -> None:
        door = Door(LoopClock(), LIMIT_4)
        await play(door, waits)
        left = door.leftovers()
        assert left == {}, f"cancelled at wait {waits.number}: {left}"
        if how is How.WAITING:
            assert waits.cancelled is waits.fired, f"cancelled at wait {waits.number}"

    assert everywhere(run, how) >= 2
