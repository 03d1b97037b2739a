"""Tests whom an alarm has seen at work while the event loop did not come back."""

import sys
from collections.abc import Sequence
from contextvars import Context

import pytest

from services.runtime.call import CURRENT, Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.loop_alarm import SignalAlarm

ALARM = 14
"""The number of the signal, which these tests do not send: what runs them needs it itself."""


def call(note: str) -> Inbound:
    """Return a call of the tool hop."""
    return Inbound("tool", "ExecuteTool", False, 0.0, 9.0, Identity("run-1"), note=note)


SLOW, OTHER = call("slow"), call("other")


def seen(looks: Sequence[Inbound | None]) -> SignalAlarm:
    """Return an alarm that has seen these at work, one a second."""
    clock = ManualClock()
    alarm = SignalAlarm(clock)
    for inbound in looks:
        context = Context()
        if inbound is not None:
            context.run(CURRENT.set, inbound)
        clock.advance(1.0)
        context.run(alarm.look, ALARM, sys._getframe())
    return alarm


@pytest.mark.parametrize(
    ("looks", "note"),
    [
        ([], None),
        ([SLOW], "slow"),
        ([SLOW, SLOW, OTHER], "slow"),
        # Many at work one after the other: none of them holds the loop up.
        ([SLOW, OTHER], None),
        ([SLOW, OTHER, None, None], None),
        # It is held up by something that is no call.
        ([None, None, SLOW], None),
    ],
)
def test_the_call_that_was_seen_in_most_of_the_looks_holds_the_loop_up(
    looks: Sequence[Inbound | None], note: str | None
) -> None:
    holder = seen(looks).holder()

    assert (holder.note if holder else None) == note


def test_the_holder_is_named_with_its_run_and_its_line_of_code() -> None:
    holder = seen([SLOW, SLOW]).holder()

    assert holder is not None
    assert (holder.method, holder.note, holder.run_id) == ("ExecuteTool", "slow", "run-1")
    assert holder.where.startswith("test_loop_alarm.py:")
    assert str(holder).startswith("ExecuteTool slow at test_loop_alarm.py:")


@pytest.mark.parametrize(("count", "length_s"), [(0, 0.0), (1, 0.0), (4, 3.0), (900, 899.0)])
def test_it_has_looked_from_the_first_look_to_the_last_however_many(
    count: int, length_s: float
) -> None:
    assert seen([SLOW] * count).looked_s() == length_s
