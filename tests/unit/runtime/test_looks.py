"""Holds looks at what a process knows to passing the policies that are about work."""

from collections.abc import Sequence
from typing import Any

import pytest

from services.runtime.call import Inbound
from services.runtime.guarding import Guard
from services.runtime.stack import EdgeRules, for_looks, server_stack
from services.runtime.statistics import Activity
from tests.requirements import requirement
from tests.unit.runtime.door import OK, Door
from tests.unit.runtime.fake_time import LoopClock

FULL: dict[str, Any] = {"limit": {"max_inflight": 1}, "admission": {"max_wait_s": 0.0}}


class Asks(Guard[Inbound]):
    """Is a policy that nobody knows yet, such as one that asks who calls."""


@requirement("runs:looks-are-no-runs")
async def test_a_look_is_answered_while_everything_else_is_refused(clock: LoopClock) -> None:
    door = Door(clock)
    door.policies.shed.order("maintenance", 10.0)

    async def work() -> str:
        return "seen"

    assert await door.serve(work) == "LOAD_SHED"
    assert await door.look(work) == OK


@requirement("runs:looks-are-no-runs")
async def test_a_look_is_not_counted_and_takes_no_place(clock: LoopClock) -> None:
    door = Door(clock, FULL)

    async def work() -> str:
        return "seen"

    async def inside() -> str:
        assert await door.look(work) == OK
        return "done"

    assert await door.serve(inside) == OK
    assert door.activity.call_count == 1
    assert door.policies.admission.snapshot().peak_inflight == 1


@requirement("runs:looks-are-no-runs")
@pytest.mark.parametrize(
    ("remaining_s", "reason"), [(0.01, "BUDGET_TOO_SMALL"), (1.0, "SELF_TIMEOUT")]
)
async def test_a_look_has_a_deadline(clock: LoopClock, remaining_s: float, reason: str) -> None:
    async def work() -> str:
        await clock.sleep(5)
        return "late"

    assert await Door(clock).look(work, remaining_s) == reason


@requirement("runs:looks-are-no-runs")
async def test_the_text_of_a_defect_is_withheld_from_a_look_too(clock: LoopClock) -> None:
    async def work() -> str:
        raise ValueError("a defect")

    assert await Door(clock).look(work) == "SELF_BUG"


@requirement("runs:own-tenant")
def test_a_policy_that_is_not_about_work_counts_for_looks(clock: LoopClock) -> None:
    rules = EdgeRules(default_deadline_s=30.0)
    stack: Sequence[Guard[Inbound]] = [
        *server_stack(clock, Activity(), rules, None, log_calls=False),
        asks := Asks(),
    ]

    assert asks in for_looks(stack)


async def test_a_guard_around_all_policies_sees_how_each_call_ends(clock: LoopClock) -> None:
    seen: list[str] = []

    class Sees(Guard[Inbound]):
        def after(self, inbound: Inbound, error: BaseException | None) -> None:
            seen.append(type(error).__name__)

    async def work() -> str:
        return "done"

    door = Door(clock)
    door.surround(Sees())
    await door.serve(work)
    door.policies.shed.order("maintenance", 10.0)
    await door.serve(work)

    assert seen == ["NoneType", "LoadShedError"]
