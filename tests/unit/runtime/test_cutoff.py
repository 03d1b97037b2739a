"""Holds the end of a hop's own work to one instant."""

import asyncio

import pytest

from services.runtime.call import Identity, Inbound
from services.runtime.cutoff import GRAIN_S, Cutoff, Cutoffs
from services.runtime.door import Door
from services.runtime.errors import RunCancelledError, SelfTimeoutError
from tests.unit.runtime.fake_time import LoopClock


def served() -> Inbound:
    """Return a call that is being served."""
    return Inbound("tool", "ExecuteTool", False, 0.0, 10.0)


def begun(clock: LoopClock) -> Cutoff:
    """Return what cuts a call off in two seconds."""
    return Cutoffs(clock).begin(clock.now() + 2.0, served(), too_late)


def too_late(inbound: Inbound) -> Exception:
    """Return what a wait raises that was cut off."""
    return SelfTimeoutError("too late")


async def test_a_wait_ends_at_the_instant(clock: LoopClock) -> None:
    began = clock.now()

    with begun(clock) as cutoff, pytest.raises(SelfTimeoutError):
        await cutoff.bound(clock.sleep(60))

    assert clock.now() - began == pytest.approx(2.0)


async def test_the_task_is_not_cancelled_any_more_once_its_wait_was_cut(clock: LoopClock) -> None:
    with begun(clock) as cutoff, pytest.raises(SelfTimeoutError):
        await cutoff.bound(clock.sleep(60))

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await clock.sleep(1)


async def test_a_wait_that_begins_after_the_instant_ends_at_once(clock: LoopClock) -> None:
    with begun(clock) as cutoff:
        await clock.sleep(5)
        began = clock.now()
        with pytest.raises(SelfTimeoutError):
            await cutoff.bound(clock.sleep(60))

    assert clock.now() == began


async def test_work_that_need_not_wait_has_its_answer_even_after_the_instant(
    clock: LoopClock,
) -> None:
    async def ready() -> str:
        return "ready"

    with begun(clock) as cutoff:
        await clock.sleep(5)
        answer = await cutoff.bound(ready())

    assert answer == "ready"
    await clock.sleep(1)


async def test_a_wait_can_be_ended_from_outside_by_an_error_of_its_own(clock: LoopClock) -> None:
    began = clock.now()

    async def other(cutoff: Cutoff) -> None:
        await clock.sleep(0.5)
        cutoff.cancel(lambda inbound: RunCancelledError(f"{inbound.method} was ended"))

    with begun(clock) as cutoff:
        ending = asyncio.create_task(other(cutoff))
        with pytest.raises(RunCancelledError):
            await cutoff.bound(clock.sleep(60))
        with pytest.raises(RunCancelledError):
            await cutoff.bound(clock.sleep(60))
    await ending

    assert clock.now() - began == pytest.approx(0.5)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_happens_between_two_waits_is_not_cut(clock: LoopClock) -> None:
    with begun(clock) as cutoff:
        await cutoff.bound(clock.sleep(1))
        await clock.sleep(5)


async def test_nothing_is_cut_once_the_block_is_left(clock: LoopClock) -> None:
    with begun(clock) as cutoff:
        pass

    await cutoff.bound(clock.sleep(60))


@pytest.mark.parametrize("after_s", [1.0, 2.0])
async def test_the_callers_cancel_stays_a_cancel(clock: LoopClock, after_s: float) -> None:
    """At 2.0 s both come together, and the caller's counts."""

    async def work() -> None:
        with begun(clock) as cutoff:
            await cutoff.bound(clock.sleep(60))

    task = asyncio.create_task(work())
    await clock.sleep(after_s)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_an_error_of_the_work_passes_though_it_was_cut(clock: LoopClock) -> None:
    async def stubborn() -> None:
        try:
            await clock.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("own words") from None

    with begun(clock) as cutoff, pytest.raises(ValueError, match="own words"):
        await cutoff.bound(stubborn())

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_task_of_a_unary_call_is_not_cancelled_any_more_once_it_was_cut(
    clock: LoopClock,
) -> None:
    door = Door("tool", "tool-7", [], clock)
    inbound = door.arrive("ExecuteTool", 2.0, Identity(), streaming=False)

    with pytest.raises(SelfTimeoutError):
        await door.unary(inbound, lambda: clock.sleep(60))

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert len(door.cutoffs) == 0


async def test_work_that_was_cut_and_cleans_up_is_not_interrupted_from_outside(
    clock: LoopClock,
) -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(0.05)
            done.append("cleaned up")

    async def other(cutoff: Cutoff) -> None:
        await clock.sleep(2.02)
        cutoff.cancel(lambda inbound: RunCancelledError("ended"))

    task = asyncio.current_task()
    cutoff = Cutoffs(clock).begin(clock.now() + 2.0, served(), too_late, task)
    ending = asyncio.create_task(other(cutoff))
    with pytest.raises(asyncio.CancelledError):
        await work()
    cutoff.take_back()
    await ending

    assert done == ["cleaned up"]


async def ended_at(cutoffs: Cutoffs, clock: LoopClock, length_s: float) -> float:
    """Wait for ever in a call that is cut off, and return when that was."""
    with (
        cutoffs.begin(clock.now() + length_s, served(), too_late) as cutoff,
        pytest.raises(SelfTimeoutError),
    ):
        await cutoff.bound(clock.sleep(60))
    return clock.now()


@pytest.mark.parametrize("order", [(1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 3.0, 1.0)])
async def test_every_call_ends_at_its_own_instant_in_whatever_order_they_came(
    clock: LoopClock, order: tuple[float, ...]
) -> None:
    cutoffs, began = Cutoffs(clock), clock.now()

    ends = await asyncio.gather(*(ended_at(cutoffs, clock, length_s) for length_s in order))

    assert [end - began for end in ends] == pytest.approx(list(order), abs=2 * GRAIN_S)


async def test_a_call_that_has_ended_is_not_cut_off_and_others_still_are(clock: LoopClock) -> None:
    cutoffs, began = Cutoffs(clock), clock.now()
    with cutoffs.begin(began + 1.0, served(), too_late) as cutoff:
        await cutoff.bound(clock.sleep(0.5))

    end = await ended_at(cutoffs, clock, 2.0)
    later = await ended_at(cutoffs, clock, 4.0)

    assert (end - began, later - end) == pytest.approx((2.5, 4.0), abs=2 * GRAIN_S)
