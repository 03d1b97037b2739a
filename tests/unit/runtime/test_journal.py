"""Holds log lines to the moment at which they were written."""

import io
import json

from services.runtime.call import CURRENT, Inbound
from services.runtime.clock import ManualClock
from services.runtime.journal import Journal
from tests.unit.runtime.fake_time import LoopClock


async def test_a_line_tells_the_time_of_its_event_and_not_of_its_rendering(
    clock: LoopClock,
) -> None:
    target = io.BytesIO()
    journal = Journal("tool", "tool-7", "info", clock, target)
    CURRENT.set(Inbound("tool", "ExecuteTool", False, clock.now(), clock.now() + 10.0))
    expected = clock.utc().isoformat(timespec="milliseconds")

    journal.write("info", "step_failed", {})
    await clock.sleep(4.0)
    journal.flush()

    line = json.loads(target.getvalue())
    assert (line["time"], line["remaining_ms"]) == (expected, 10_000)


async def test_lines_keep_their_order_whatever_their_level(clock: LoopClock) -> None:
    target = io.BytesIO()
    journal = Journal("tool", "tool-7", "info", clock, target)

    for level, event in (("info", "a"), ("debug", "unseen"), ("info", "b"), ("warning", "c")):
        journal.write(level, event, {})

    assert [json.loads(line)["event"] for line in target.getvalue().splitlines()] == ["a", "b", "c"]


def test_without_a_loop_lines_are_written_at_once(manual: ManualClock) -> None:
    target = io.BytesIO()

    Journal("tool", "tool-7", "info", manual, target).write("info", "hop_ready", {})

    assert json.loads(target.getvalue())["event"] == "hop_ready"
