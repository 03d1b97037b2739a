"""Tests that static timeouts know nothing of each other."""

import math

import pytest

from services.runtime.call import Call
from services.runtime.clock import ManualClock
from services.runtime.errors import DeadlineMissingError
from services.runtime.policies.deadline import ServerDeadline
from services.runtime.static_deadlines import StaticDeadline, StaticServerDeadline
from tests.unit.runtime.policies.samples import inbound, limits


def attempt(clock: ManualClock, *, remaining_s: float, streaming: bool) -> Call:
    """Return an attempt whose caller has this long, and whose callee 12 s."""
    arrived = inbound(remaining_s, arrived_at=clock.now())
    call = Call("tool", "ExecuteTool", streaming, arrived, limits(12.0))
    StaticDeadline(clock).before(call)
    return call


@pytest.mark.parametrize("remaining_s", [0.001, 8.0, 1000.0])
def test_an_attempt_has_the_step_timeout_whatever_its_caller_has_left(remaining_s: float) -> None:
    assert (
        attempt(ManualClock(), remaining_s=remaining_s, streaming=False).attempt_timeout_s == 12.0
    )


def test_a_stream_has_it_for_the_whole_and_for_every_wait() -> None:
    clock = ManualClock()

    call = attempt(clock, remaining_s=8.0, streaming=True)

    assert call.attempt_timeout_s == 12.0
    assert call.wait_limit is not None
    until = (clock.now() + 12.0, "step_timeout")
    assert call.wait_limit.first_wait_until() == until
    call.wait_limit.content_arrived()
    assert call.wait_limit.next_wait_until(clock.now() + 5.0) == until


def test_a_hop_keeps_no_margin_to_answer_by_itself() -> None:
    clock = ManualClock()
    arrived = inbound(8.0, arrived_at=clock.now())

    StaticServerDeadline(clock).before(arrived)

    assert arrived.self_deadline == arrived.deadline == clock.now() + 8.0


def test_the_edge_still_gives_and_cuts_deadlines() -> None:
    clock = ManualClock()
    edge = StaticServerDeadline(clock, default_deadline_s=30.0, max_deadline_s=60.0)
    given = []
    for remaining_s in (math.inf, 100.0):
        arrived = inbound(remaining_s, arrived_at=clock.now())
        edge.before(arrived)
        given.append(arrived.time_remaining_on_arrival_s)

    assert given == [30.0, 60.0]
    assert isinstance(edge, ServerDeadline)


def test_an_inner_hop_still_refuses_a_call_without_a_deadline() -> None:
    clock = ManualClock()

    with pytest.raises(DeadlineMissingError):
        StaticServerDeadline(clock).before(inbound(math.inf, arrived_at=clock.now()))
