"""Holds what is said of a generation to what was heard of it."""

from collections.abc import Callable

import pytest

from services.model.backend import Reasoning, Text
from services.model.vitals import VITALS, Vitals, WaitState, current_vitals
from services.runtime.clock import ManualClock
from tests.requirements import requirement

Step = Callable[[Vitals], None]
KNOCK, REACH, LIVE = Vitals.knock, Vitals.reach, Vitals.live


def text(vitals: Vitals) -> None:
    """Hear a word."""
    vitals.hear(Text("a"))


def thought(vitals: Vitals) -> None:
    """Hear a thought."""
    vitals.hear(Reasoning("hm"))


@requirement("heartbeat:tells-what-is-waited-for")
@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([], WaitState.QUEUED),
        ([KNOCK], WaitState.QUEUED),
        ([KNOCK, REACH], WaitState.SILENT),
        ([KNOCK, REACH, LIVE], WaitState.QUEUED),
        ([KNOCK, REACH, KNOCK], WaitState.QUEUED),
        ([KNOCK, REACH, LIVE, KNOCK, REACH], WaitState.SILENT),
        ([KNOCK, REACH, LIVE, thought], WaitState.REASONING),
        ([KNOCK, REACH, LIVE, thought, LIVE], WaitState.REASONING),
        ([KNOCK, REACH, LIVE, thought, text], WaitState.SILENT),
        ([KNOCK, REACH, LIVE, text, LIVE], WaitState.SILENT),
    ],
)
def test_the_state_is_what_is_waited_for(steps: list[Step], state: WaitState) -> None:
    vitals = Vitals(ManualClock())

    for step in steps:
        step(vitals)

    assert vitals.state is state


def test_only_content_ends_a_silence() -> None:
    clock = ManualClock()
    vitals = Vitals(clock)

    for step in (KNOCK, REACH, LIVE):
        clock.advance(1.0)
        step(vitals)
    before = clock.now() - vitals.heard_at
    text(vitals)

    assert (before, clock.now() - vitals.heard_at) == (3.0, 0.0)


def test_a_task_without_a_generation_has_vitals_of_nobody() -> None:
    clock = ManualClock()
    mine = Vitals(clock)

    nobodys = current_vitals(clock)
    token = VITALS.set(mine)
    try:
        assert current_vitals(clock) is mine
    finally:
        VITALS.reset(token)
    assert nobodys is not mine
