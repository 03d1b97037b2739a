"""Holds the two guards to the design: what arrives gets a deadline, what leaves gets a timeout."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.call import Call, CallLimits, Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import BudgetTooSmallError, DeadlineMissingError
from services.runtime.policies.deadline import ClientDeadline, ServerDeadline, margin_s
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START
from tests.unit.runtime.policies.samples import call, inbound, limits


def arriving(remaining_s: float) -> Inbound:
    """Return a call as the door makes it: without a margin yet."""
    return Inbound("tool", "ExecuteTool", False, START, START + remaining_s)


async def served(guard: ServerDeadline, inbound: Inbound) -> Inbound:
    """Return the call as the service would see it."""
    async with guard(inbound):
        return inbound


async def attempted(call: Call, now_s: float = 0.0) -> Call:
    """Return the call as the wire would see it, some time after the arrival."""
    async with ClientDeadline(ManualClock(START + now_s))(call):
        return call


@pytest.mark.parametrize("remaining_s", [0.2, 2.5, 30.0, 700.0])
async def test_an_inner_hop_keeps_the_deadline_that_came(remaining_s: float) -> None:
    seen = await served(ServerDeadline(ManualClock(START)), arriving(remaining_s))

    assert seen.deadline == START + remaining_s
    assert seen.self_deadline == pytest.approx(START + remaining_s - margin_s(remaining_s))


@requirement("deadline:missing-refused")
async def test_an_inner_hop_refuses_a_call_without_a_deadline() -> None:
    with pytest.raises(DeadlineMissingError, match="pass a timeout"):
        await served(ServerDeadline(ManualClock(START)), arriving(math.inf))


@requirement("deadline:missing-refused")
@pytest.mark.parametrize(
    ("remaining_s", "expected"), [(math.inf, 30.0), (500.0, 120.0), (120.0, 120.0), (7.0, 7.0)]
)
async def test_the_edge_gives_a_missing_deadline_and_cuts_a_long_one(
    remaining_s: float, expected: float
) -> None:
    guard = ServerDeadline(ManualClock(START), default_deadline_s=30.0, max_deadline_s=120.0)

    seen = await served(guard, arriving(remaining_s))

    assert seen.deadline == START + expected
    assert seen.margin_s == pytest.approx(margin_s(expected))


async def test_a_default_above_the_longest_deadline_is_cut_too() -> None:
    guard = ServerDeadline(ManualClock(START), default_deadline_s=300.0, max_deadline_s=120.0)

    seen = await served(guard, arriving(math.inf))

    assert seen.deadline == START + 120.0


@pytest.mark.parametrize("remaining_s", [0.0, 0.01, 0.05])
async def test_a_call_that_arrives_with_less_than_its_margin_is_refused(
    remaining_s: float,
) -> None:
    with pytest.raises(BudgetTooSmallError) as caught:
        await served(ServerDeadline(ManualClock(START)), arriving(remaining_s))

    assert caught.value.cause == "arrival"


@pytest.mark.parametrize(
    ("step_timeout_s", "remaining_s", "now_s", "expected", "limit"),
    [
        (5.0, 30.0, 0.0, 4.99, "the step timeout"),
        (20.0, 30.0, 0.0, 17.9, "the share"),
        (20.0, 2.5, 0.0, 1.49, "the share"),
        (20.0, 30.0, 10.0, 11.9, "the share of what is left now"),
        (20.0, 30.0, 28.0, 0.99, "our own answer"),
    ],
)
async def test_a_unary_attempt_gets_the_least_of_step_share_and_rest_on_the_grid(
    step_timeout_s: float, remaining_s: float, now_s: float, expected: float, limit: str
) -> None:
    sent = await attempted(call(inbound(remaining_s), limits(step_timeout_s)), now_s)

    assert sent.attempt_timeout_s == pytest.approx(expected), limit


async def test_the_last_chance_may_spend_what_the_share_kept_back() -> None:
    usual = await attempted(call(inbound(10.0), limits(20.0)), 5.0)
    last = await attempted(call(inbound(10.0), limits(20.0), last_chance=True), 5.0)

    assert usual.attempt_timeout_s == pytest.approx(2.99)
    assert last.attempt_timeout_s == pytest.approx(3.99)


async def test_a_stream_may_last_until_this_hop_must_answer() -> None:
    sent = await attempted(call(inbound(30.0), limits(5.0), streaming=True))

    assert sent.attempt_timeout_s == pytest.approx(28.9)
    assert sent.wait_limit is not None
    until, cause = sent.wait_limit.first_wait_until()
    assert until == pytest.approx(START + 5.0)
    assert cause == "step_timeout"


@requirement("deadline:not-worth-sending")
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("remaining_s", "now_s", "min_useful_s"),
    [(1.0, 0.0, 0.7), (30.0, 29.5, 0.0), (30.0, 31.0, 0.0), (30.0, 28.9, 0.1), (0.06, 0.0, 0.02)],
)
async def test_what_cannot_be_answered_in_time_is_not_sent(
    streaming: bool, remaining_s: float, now_s: float, min_useful_s: float
) -> None:
    late = call(inbound(remaining_s), limits(20.0, min_useful_s=min_useful_s), streaming=streaming)

    with pytest.raises(BudgetTooSmallError) as caught:
        await attempted(late, now_s)

    assert caught.value.cause == "not_worth_sending"
    assert caught.value.details == {"dependency": "model"}
    assert "-" not in caught.value.message.split(" s ")[0], "no negative time is told"


@requirement("deadline:unary-share", "deadline:self-deadline")
@given(
    st.builds(
        CallLimits,
        step_timeout_s=st.floats(0.001, 600),
        min_useful_s=st.floats(0, 1),
        share=st.floats(0.01, 3.0),
    ),
    st.floats(0.06, 700),
    st.floats(0, 1.1),
    st.booleans(),
)
async def test_whatever_the_settings_and_the_moment_an_attempt_stays_inside_its_share(
    limits: CallLimits, remaining_s: float, spent: float, streaming: bool
) -> None:
    served_call, now_s = inbound(remaining_s), spent * remaining_s
    made = call(served_call, limits, streaming=streaming)
    try:
        await attempted(made, now_s)
    except BudgetTooSmallError:
        return

    left_s = remaining_s - now_s
    assert made.attempt_timeout_s > 0
    assert now_s + made.attempt_timeout_s <= remaining_s - served_call.margin_s + 1e-6
    if not streaming:
        assert limits.min_useful_s <= made.attempt_timeout_s <= limits.step_timeout_s
        assert made.attempt_timeout_s <= 0.6 * left_s + 1e-6
