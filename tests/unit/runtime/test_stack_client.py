"""Holds the client's policies to what they do together, through the list that a process uses.

Every pair of neighbours, outermost first, with the tests of what they do together. In another order
they fail, but for two pairs: no call is hedged and retried, and a wait for a permit is told to all.

    fallback · hedge               test_what_is_hedged_in_vain_is_replaced_once,
                                   test_a_hedge_in_vain_is_not_replaced_while_the_original_may_…
    fallback · retry               TABLE; test_the_first_attempt_leaves_a_share_for_the_spare
    hedge · retry                  test_what_is_hedged_is_not_retried,
                                   test_a_callee_that_would_be_repeated_by_both_is_refused_at_…
    hedge · attempt telemetry      test_a_hedge_has_a_report_and_a_budget_of_its_own
    retry · attempt telemetry      test_every_attempt_is_reported_refused_ones_included
    attempt telemetry · deadline   test_what_is_not_worth_sending_is_reported
    deadline · breaker             test_a_call_without_time_is_no_probe
    breaker · bulkhead             test_nobody_queues_for_a_callee_that_is_known_to_be_sick,
                                   test_a_probe_that_finds_no_permit_leaves_its_place_to_another,
                                   test_refusals_of_the_bulkhead_do_not_open_the_breaker,
                                   test_the_wait_for_a_permit_does_not_make_a_callee_slow
    bulkhead · adaptive timeouts   test_the_wait_for_a_permit_is_no_latency_of_the_callee
    adaptive timeouts · estimate   test_who_judges_a_silence_knows_what_nine_of_ten_answers_take
    estimate · the wire            test_what_a_sick_callee_takes_moves_no_timeout_but_is_expected

Those that name a wait for a permit stand in test_stack_waits.py.

And pairs with others between them: retry over the breaker and over the bulkhead, hedge over both.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from services.runtime.call import Fallback
from services.runtime.circuit import BreakerState
from services.runtime.config import load_config
from services.runtime.errors import SixhopError
from services.runtime.ladder import ladder_problems
from tests.unit.runtime.policies.client_samples import failed, overloaded
from tests.unit.runtime.scripted import Pause
from tests.unit.runtime.wired import (
    HEDGED,
    KEY,
    MODEL,
    NO_QUEUE,
    ONE_PERMIT,
    spare,
    wired,
)

Steps = Sequence[tuple[float, SixhopError | None]]
OK, FAIL, HANG = (0.1, None), (0.1, failed()), (60.0, None)
WARM: Steps = [(0.1, None)] * 49 + [(0.09, None)] * 11
"""What the calls that warm a hedge take."""


@dataclass(frozen=True, slots=True)
class Row:
    """Says what a callee does, and what its caller gets."""

    name: str
    steps: Steps
    gets: str
    """The answer, or the reason of the error."""
    sent: int
    """How many attempts reach the callee."""
    spare: bool = False
    """Whether there is an alternative."""
    open: bool = False
    """Whether the breaker is open to begin with."""
    full: bool = False
    """Whether the bulkhead is."""
    remaining_s: float = 30.0


TABLE = [
    Row("a good answer", [OK], "answer 1", 1),
    Row("a failure that passes", [FAIL, OK], "answer 2", 2),
    Row("a failure that stays", [FAIL], "DEPENDENCY_FAILED", 2),
    Row("a failure with a spare", [FAIL], "spare", 2, spare=True),
    Row("silence, then an answer", [HANG, OK], "answer 2", 2),
    Row("silence", [HANG], "DEPENDENCY_FAILED", 2),
    Row("an open breaker is not retried", [OK], "CIRCUIT_OPEN", 0, open=True),
    Row("an open breaker with a spare", [OK], "spare", 0, spare=True, open=True),
    Row("a full bulkhead is not retried", [OK], "BULKHEAD_FULL", 0, full=True),
    Row("a full bulkhead under fallback", [OK], "spare", 0, spare=True, full=True),
    Row("what a deeper hop failed at", [(0.1, failed(hop="model"))], "DEPENDENCY_FAILED", 1),
    Row("told to come back", [(0.1, overloaded(1.0)), OK], "answer 2", 2),
    Row("told nothing", [(0.1, overloaded()), OK], "DEPENDENCY_OVERLOADED", 1),
    Row("told to stay away", [(0.1, overloaded(-1.0)), OK], "DEPENDENCY_OVERLOADED", 1),
    Row("no time for a second", [FAIL, OK], "DEPENDENCY_FAILED", 1, remaining_s=3.0),
    Row("no time at all", [OK], "BUDGET_TOO_SMALL", 0, remaining_s=0.05),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_what_a_callee_does_comes_to_what_its_caller_gets(row: Row) -> None:
    hop = wired(*row.steps, tables=[NO_QUEUE])
    if row.open:
        hop.policies.breakers.force_open(KEY)
    alternatives = [spare(hop.clock)] if row.spare else []

    async with AsyncExitStack() as others:
        if row.full:
            await others.enter_async_context(hop.policies.bulkhead(hop.some_call()))
        try:
            gets = await hop.ask(remaining_s=row.remaining_s, alternatives=alternatives)
        except SixhopError as error:
            gets = error.reason

    assert gets == row.gets
    assert len(hop.callee.sent) == row.sent
    given = hop.policies.fallback.snapshot().counts
    assert given == ({Fallback.DEFAULT: 1} if row.gets == "spare" else {})
    assert hop.clock.now() <= hop.inbound.self_deadline
    assert await hop.leftovers() == {}


async def test_an_attempt_counts_while_it_is_under_way_and_an_alternative_is_none() -> None:
    hop = wired(FAIL)
    seen: list[int] = []

    calling = asyncio.create_task(hop.ask(alternatives=[spare(hop.clock, 1.0)]))
    while not calling.done():
        seen.append(hop.activity.outgoing)
        await hop.clock.sleep(0.05)

    assert await calling == "spare"
    # It has not begun when it is first looked at.
    assert seen[1] == 1
    # The alternative takes twenty looks.
    assert set(seen[-15:]) == {0}


async def test_what_is_hedged_in_vain_is_replaced_once() -> None:
    hop = wired(*WARM, (3.0, failed()), FAIL, tables=[HEDGED])
    await hop.warm()

    assert await hop.ask(alternatives=[spare(hop.clock)]) == "spare"

    assert len(hop.callee.sent) == len(WARM) + 2
    assert hop.policies.fallback.snapshot().counts == {Fallback.DEFAULT: 1}
    assert await hop.leftovers() == {}


async def test_a_hedge_in_vain_is_not_replaced_while_the_original_may_answer() -> None:
    hop = wired(*WARM, (1.0, None), FAIL, tables=[HEDGED])
    await hop.warm()

    assert await hop.ask(alternatives=[spare(hop.clock)]) == "answer 61"

    assert len(hop.callee.sent) == len(WARM) + 2
    assert hop.policies.fallback.snapshot().counts == {}


async def test_the_first_attempt_leaves_a_share_for_the_spare() -> None:
    hop = wired(HANG)

    assert await hop.ask(remaining_s=4.0, alternatives=[spare(hop.clock, 1.0)]) == "spare"

    assert [sent.given_s for sent in hop.callee.sent] == pytest.approx([2.39])
    assert hop.clock.now() < hop.inbound.self_deadline


async def test_what_is_hedged_is_not_retried() -> None:
    hop = wired(FAIL, OK, tables=[HEDGED])

    with pytest.raises(SixhopError):
        await hop.ask()

    assert len(hop.callee.sent) == 1


@pytest.mark.parametrize(
    ("settings", "fits"),
    [({}, False), ({"RETRY__NOT_FOR": KEY}, True), ({"RETRY__MAX_ATTEMPTS": "1"}, True)],
)
def test_a_callee_that_would_be_repeated_by_both_is_refused_at_the_start(
    settings: dict[str, str], fits: bool
) -> None:
    told = {"ENGINE__ENABLED": "true", "HEDGE__KEYS": KEY} | settings
    config = load_config(None, {f"SIXHOP_{name}": value for name, value in told.items()})

    problems = [problem for problem in ladder_problems(config) if "hedge.keys" in problem]

    assert bool(problems) is not fits


async def test_a_hedge_has_a_report_and_a_budget_of_its_own() -> None:
    hop = wired(*WARM, (3.0, None), OK, tables=[HEDGED])
    await hop.warm()
    tokens = hop.policies.hedge.snapshot()[KEY].tokens

    assert await hop.ask() == "answer 62"

    reports = {report.attempt: report for report in hop.inbound.reports}
    assert [reports[number].outcome for number in (1, 2)] == ["CANCELLED", "OK"]
    assert reports[1].used_s == pytest.approx(0.2)
    assert reports[2].used_s == pytest.approx(0.1)
    assert hop.policies.hedge.snapshot()[KEY].tokens == pytest.approx(tokens + 0.02 - 1)
    assert KEY not in hop.policies.retry.snapshot()
    assert await hop.leftovers() == {}


async def test_hedges_stay_within_a_fiftieth_of_the_calls_however_late_these_are() -> None:
    hop = wired(*WARM, (0.5, None), tables=[HEDGED])
    await hop.warm()

    for _ in range(100):
        await hop.ask()

    hedges = hop.policies.hedge.snapshot()[KEY].hedge_count
    assert 1 <= hedges <= 0.02 * 160
    assert len(hop.callee.sent) == 160 + hedges


async def test_a_hedge_that_the_bulkhead_refuses_leaves_the_original_alone() -> None:
    hop = wired(*WARM, (1.0, None), OK, tables=[HEDGED, NO_QUEUE])
    await hop.warm()

    assert await hop.ask() == "answer 61"

    assert hop.policies.hedge.snapshot()[KEY].hedge_count == 1
    assert [report.outcome for report in hop.inbound.reports] == [
        "RESOURCE_EXHAUSTED/BULKHEAD_FULL",
        "OK",
    ]
    assert await hop.leftovers() == {}


async def test_a_late_call_is_not_hedged_while_the_breaker_is_not_closed() -> None:
    hop = wired(*WARM, (1.0, None), OK, tables=[HEDGED])
    await hop.warm()
    await hop.half_open()

    assert await hop.ask() == "answer 61"

    assert hop.policies.hedge.snapshot()[KEY].hedge_count == 0
    assert hop.state() is BreakerState.CLOSED


async def test_every_attempt_is_reported_refused_ones_included() -> None:
    hop = wired(FAIL, OK)
    opening = hop.callee

    def trip() -> None:
        if len(opening.sent) == 1:
            # Somebody else finds out meanwhile, so that the wait for the second is in vain.
            asyncio.get_running_loop().call_later(0.15, hop.policies.breakers.force_open, KEY)

    opening.watch = trip
    with pytest.raises(SixhopError) as caught:
        await hop.ask()
    with pytest.raises(SixhopError):
        await hop.ask()

    assert caught.value.reason == "DEPENDENCY_FAILED"
    first, second = ([r.outcome for r in inbound.reports] for inbound in hop.inbounds)
    assert first == ["ABORTED/DEPENDENCY_FAILED"]
    assert second == ["ABORTED/CIRCUIT_OPEN"]


async def test_what_is_not_worth_sending_is_reported() -> None:
    hop = wired(OK)

    with pytest.raises(SixhopError):
        await hop.ask(remaining_s=0.05)

    (report,) = hop.inbound.reports
    assert report.outcome == "FAILED_PRECONDITION/BUDGET_TOO_SMALL"
    assert hop.callee.sent == []


async def test_a_call_without_time_is_no_probe() -> None:
    hop = wired(OK)
    await hop.half_open()

    for _ in range(5):
        with pytest.raises(SixhopError) as caught:
            await hop.ask(remaining_s=0.05)
        assert caught.value.reason == "BUDGET_TOO_SMALL"

    assert hop.state() is BreakerState.HALF_OPEN
    # Nor is the callee to blame for what the caller has not got.
    hop.policies.breakers.force_open(KEY)
    with pytest.raises(SixhopError) as caught:
        await hop.ask(remaining_s=0.05)
    assert caught.value.reason == "BUDGET_TOO_SMALL"


async def test_nobody_queues_for_a_callee_that_is_known_to_be_sick() -> None:
    hop = wired(HANG, tables=[ONE_PERMIT])
    hop.policies.breakers.force_open(KEY)
    began = hop.clock.now()

    async with hop.policies.bulkhead(hop.some_call()):
        with pytest.raises(SixhopError) as caught:
            await hop.ask()

    assert caught.value.reason == "CIRCUIT_OPEN"
    assert hop.clock.now() == began


async def test_a_probe_that_finds_no_permit_leaves_its_place_to_another() -> None:
    hop = wired(OK, tables=[NO_QUEUE])
    await hop.half_open()

    async with hop.policies.bulkhead(hop.some_call()):
        for _ in range(5):
            with pytest.raises(SixhopError) as caught:
                await hop.ask()
            assert caught.value.reason == "BULKHEAD_FULL"

    assert hop.state() is BreakerState.HALF_OPEN
    assert await hop.ask() == "answer 1"
    assert hop.state() is BreakerState.CLOSED


async def test_refusals_of_the_bulkhead_do_not_open_the_breaker() -> None:
    hop = wired(OK, tables=[NO_QUEUE])

    async with hop.policies.bulkhead(hop.some_call()):
        for _ in range(30):
            with pytest.raises(SixhopError):
                await hop.ask()

    assert hop.state() is BreakerState.CLOSED
    assert hop.policies.breakers.snapshot()[KEY].call_count == 0
    assert hop.policies.retry.snapshot()[KEY].tokens == 10.0


async def test_what_a_sick_callee_takes_moves_no_timeout_but_is_expected() -> None:
    hop = wired(*[(0.1, None)] * 30, (1.0, None))
    await hop.warm(30)
    await hop.half_open()

    await hop.ask()

    # Innermost, both are left while the breaker still probes.
    assert hop.state() is BreakerState.CLOSED
    assert hop.policies.adaptive.snapshot()[KEY].sample_count == 30
    assert hop.estimator.seen_s()["tool"] == pytest.approx(0.1, rel=0.2)


async def test_who_judges_a_silence_knows_what_nine_of_ten_answers_take() -> None:
    hop = wired(*[(0.1, None)] * 30, HANG)
    await hop.warm(30)

    with pytest.raises(SixhopError):
        await hop.ask(remaining_s=0.6)
    with pytest.raises(SixhopError):
        await hop.ask(remaining_s=0.15)

    # Some 0.36 s were enough for most, and 0.09 s for none.
    given = [sent.given_s for sent in hop.callee.sent[30:]]
    assert given[1] < 0.1 < 0.3 < given[0]
    assert hop.policies.breakers.snapshot()[KEY].call_count == 31
    assert hop.policies.adaptive.snapshot()[KEY].sample_count == 31


async def test_a_model_that_takes_nearly_five_seconds_is_not_slow() -> None:
    hop = wired(OK)

    for _ in range(5):
        await hop.read([Pause(4.9), "one"])

    assert hop.state(MODEL) is BreakerState.CLOSED


async def test_a_breaker_that_trips_on_the_first_attempt_forbids_the_second() -> None:
    hop = wired(FAIL, tables=[{"breaker": {"min_calls": 3}}])

    for _ in range(2):
        began = hop.clock.now()
        with pytest.raises(SixhopError):
            await hop.ask()

    # Nor is anything waited for.
    assert hop.clock.now() - began == pytest.approx(0.1)
    assert len(hop.callee.sent) == 3
    assert hop.state() is BreakerState.OPEN


async def test_a_callee_that_always_fails_gets_hardly_more_than_its_calls_and_then_none() -> None:
    hop = wired(FAIL)

    for _ in range(100):
        with pytest.raises(SixhopError):
            await hop.ask()

    assert len(hop.callee.sent) <= 12
