"""Tests which deadlines are asked for, and when one was cut."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest

from gateway.cli import events
from gateway.cli.ask import AskOptions, ask, run_question
from gateway.cli.client import GatewayClient
from gateway.cli.problem import RefusedError
from gateway.cli.progress import SilentProgress
from gateway.cli.view import Result
from services.runtime.call import AttemptReport
from services.runtime.clock import ManualClock


class ScriptedClient:
    """Tells an acceptance after a while."""

    reports: Sequence[AttemptReport] = ()

    def __init__(self, clock: ManualClock, budget_s: float) -> None:
        self._clock = clock
        self._budget_s = budget_s

    async def run(
        self, question: events.Question, deadline_s: float
    ) -> AsyncIterator[events.Event]:
        self._clock.advance(2.0)
        yield events.Accepted("run-1", self._budget_s)


async def accepted(deadline_s: float, budget_s: float) -> Result:
    clock = ManualClock()
    client = cast(GatewayClient, ScriptedClient(clock, budget_s))
    return await run_question(
        client, events.Question(text="?"), deadline_s, SilentProgress(), clock
    )


@pytest.mark.parametrize("deadline_s", [86_401.0, 1e9, float("inf"), float("nan"), 0.0, -1.0])
async def test_a_deadline_that_is_refused_is_told_both_bounds(deadline_s: float) -> None:
    with pytest.raises(RefusedError, match=r"more than 0 and at most 86400; .*max_deadline_s"):
        await ask({}, ManualClock(), AskOptions(text="?", deadline_s=deadline_s))


async def test_a_run_whose_deadline_the_gateway_cut_counts_by_what_it_was_given() -> None:
    result = await accepted(600.0, budget_s=120.0)

    assert result.transcript.asked_s == 600.0
    assert result.deadline_s == 120.0
    assert result.root.report.left_s == 118.0


async def test_the_time_until_the_gateway_heard_of_a_run_is_no_cut() -> None:
    result = await accepted(30.0, budget_s=28.0)

    assert result.transcript.asked_s == 0.0
    assert result.deadline_s == 30.0
