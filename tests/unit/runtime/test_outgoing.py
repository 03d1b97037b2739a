"""Holds the choke point: what leaves a process leaves through the policies."""

import asyncio

import pytest

from services.runtime.call import Call, CallLimits
from services.runtime.errors import (
    BudgetTooSmallError,
    DeadlineMissingError,
    SelfUnavailableError,
)
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.stack import ClientStack
from services.runtime.topology import UnknownEdgeError
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock
from tests.unit.runtime.scripted import RecordingGuard, ScriptedWire, choke_point, serving

LIMITS = CallLimits(step_timeout_s=5.0, min_useful_s=0.0)


def test_an_edge_that_the_topology_does_not_know_cannot_be_built(clock: LoopClock) -> None:
    with pytest.raises(UnknownEdgeError):
        Outgoing("routing", "model", LIMITS, ClientStack(), clock)


async def test_an_answer_comes_back_with_a_report_of_its_attempt(clock: LoopClock) -> None:
    async def send(call: Call) -> float:
        await clock.sleep(1.5)
        return call.attempt_timeout_s

    with serving(clock, 30.0) as inbound:
        await clock.sleep(2.0)
        given_s = await choke_point(clock, LIMITS).unary("ExecuteTool", send, note="sql")

    (report,) = inbound.reports
    assert given_s == report.given_s == pytest.approx(4.99)
    assert (report.hop, report.method, report.attempt) == ("model", "ExecuteTool sql", 1)
    assert report.start_s == pytest.approx(2.0)
    assert report.used_s == pytest.approx(1.5)
    assert report.left_s == pytest.approx(26.5)
    assert report.outcome == "OK"
    assert inbound.wait_s == pytest.approx(1.5)


async def test_a_failure_comes_back_as_it_is_and_is_reported(clock: LoopClock) -> None:
    guard, lost = RecordingGuard(), SelfUnavailableError("gone")

    async def send(call: Call) -> None:
        raise lost

    with serving(clock) as inbound, pytest.raises(SelfUnavailableError) as caught:
        await choke_point(clock, LIMITS, guard).unary("Generate", send)

    assert caught.value is lost
    assert guard.log == ["begin", "SelfUnavailableError"]
    assert [report.outcome for report in inbound.reports] == ["UNAVAILABLE/SELF_UNAVAILABLE"]


@requirement("deadline:not-worth-sending")
async def test_what_is_not_worth_sending_is_not_sent_and_still_reported(clock: LoopClock) -> None:
    async def send(call: Call) -> None:
        raise AssertionError("this was to be refused")

    with serving(clock, 0.02) as inbound, pytest.raises(BudgetTooSmallError):
        await choke_point(clock, LIMITS).unary("Generate", send)

    assert [report.outcome for report in inbound.reports] == [
        "FAILED_PRECONDITION/BUDGET_TOO_SMALL"
    ]
    assert inbound.wait_s == 0


@requirement("deadline:missing-refused")
async def test_a_call_outside_of_any_run_is_refused(clock: LoopClock) -> None:
    async def send(call: Call) -> None:
        raise AssertionError("this was to be refused")

    async def open_wire(call: Call) -> ScriptedWire:
        raise AssertionError("this was to be refused")

    outgoing = choke_point(clock, LIMITS)
    with pytest.raises(DeadlineMissingError, match=r"own_work\(\)"):
        await outgoing.unary("Generate", send)
    with pytest.raises(DeadlineMissingError):
        await outgoing.stream("Generate", open_wire).__aenter__()


async def test_own_work_has_a_deadline_like_any_call(clock: LoopClock) -> None:
    async def send(call: Call) -> float:
        return call.attempt_timeout_s

    with own_work("domain", "Refresh", 3.0, clock) as inbound:
        given_s = await choke_point(clock, LIMITS).unary("Generate", send)

    assert given_s == pytest.approx(1.79)
    assert inbound.deadline == START + 3.0
    with pytest.raises(DeadlineMissingError):
        await choke_point(clock, LIMITS).unary("Generate", send)


async def test_a_cancel_notes_whose_wait_was_cut(clock: LoopClock) -> None:
    async def send(call: Call) -> None:
        await clock.sleep(60)

    with serving(clock) as inbound:
        waiter = asyncio.create_task(choke_point(clock, LIMITS).unary("Generate", send))
        await clock.sleep(1.0)
        waiter.cancel()
        await asyncio.wait({waiter})

    assert inbound.cut_wait == "model"
    assert inbound.waiting == []
    assert [report.outcome for report in inbound.reports] == ["CANCELLED"]


async def test_waits_at_the_same_time_count_once(clock: LoopClock) -> None:
    async def send(call: Call) -> None:
        await clock.sleep(2.0)

    outgoing = choke_point(clock, LIMITS)
    with serving(clock) as inbound:
        async with asyncio.TaskGroup() as group:
            group.create_task(outgoing.unary("Generate", send))
            await clock.sleep(1.0)
            group.create_task(outgoing.unary("Generate", send))

    assert inbound.wait_s == pytest.approx(3.0)
    assert inbound.waiting == []
