"""Holds the budget arithmetic to the design: margin, share, grid, and whose fault a timeout is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.errors import Code, DependencyFailedError, SelfTimeoutError
from services.runtime.policies.deadline import (
    attempt_timeout_s,
    floor_to_grid,
    last_attempt_timeout_s,
    margin_s,
    own_timeout,
)
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START
from tests.unit.runtime.policies.samples import inbound, limits

LENGTHS = st.floats(min_value=0.0, max_value=50_000.0, allow_nan=False)


def on_the_wire(timeout_s: float) -> float:
    """Return what gRPC makes of a timeout: milliseconds, then three digits, always rounded up."""
    millis = math.ceil(round(timeout_s * 1000, 6))
    step = 1
    while millis >= 1000 * step:
        step *= 10
    return math.ceil(millis / step) * step / 1000


@pytest.mark.parametrize(
    ("remaining_s", "margin"),
    [
        (0.0, 0.05),
        (0.1, 0.05),
        (0.05 / 0.12, 0.05),
        (0.5, 0.06),
        (2.5, 0.3),
        (5.0, 0.6),
        (1.0 / 0.12, 1.0),
        (30.0, 1.0),
        (60.0, 2.0),
        (120.0, 4.0),
    ],
)
def test_the_margin_is_an_eighth_up_to_a_second_and_a_thirtieth_of_long_deadlines(
    remaining_s: float, margin: float
) -> None:
    assert margin_s(remaining_s) == pytest.approx(margin)


@requirement("deadline:self-deadline")
@given(st.floats(0.5, 100.0))
def test_a_timeout_that_grpc_sends_again_does_not_outweigh_the_margin(timeout_s: float) -> None:
    """HPACK reuses a value of the same connection that is less than 3 % of it longer."""
    longest_s = on_the_wire(timeout_s) / 0.97

    assert longest_s - margin_s(longest_s) <= timeout_s


@pytest.mark.parametrize(
    ("step_timeout_s", "remaining_s", "share", "expected"),
    [
        (5.0, 30.0, 0.6, 5.0),
        (20.0, 30.0, 0.6, 18.0),
        (20.0, 10.0, 0.6, 6.0),
        (20.0, 10.0, 0.3, 3.0),
        (5.0, 5.0 / 0.6, 0.6, 5.0),
        (5.0, 0.0, 0.6, 0.0),
    ],
)
def test_an_attempt_gets_its_step_timeout_or_its_share_of_the_rest(
    step_timeout_s: float, remaining_s: float, share: float, expected: float
) -> None:
    got = attempt_timeout_s(limits(step_timeout_s, share=share), remaining_s)

    assert got == pytest.approx(expected)


@requirement("deadline:unary-share")
@pytest.mark.parametrize("share", [0.61, 0.9, 1.0, 5.0])
def test_a_share_above_six_tenths_counts_as_six_tenths(share: float) -> None:
    greedy = limits(100.0, share=share)

    assert attempt_timeout_s(greedy, 10.0) == pytest.approx(6.0)
    assert last_attempt_timeout_s(greedy, inbound(10.0), START) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("step_timeout_s", "now_s", "reserve_s", "expected", "limit"),
    [
        (2.0, 0.0, 0.0, 2.0, "the step timeout"),
        (20.0, 0.0, 0.0, 6.0, "the share of what there was on arrival"),
        (20.0, 5.0, 0.0, 4.0, "what is left before the margin"),
        (20.0, 5.0, 1.5, 2.5, "what is left before the margin and the reserve"),
        (20.0, 9.5, 0.0, -0.5, "nothing"),
    ],
)
def test_the_last_attempt_gets_the_least_of_step_rest_and_share_of_all(
    step_timeout_s: float, now_s: float, reserve_s: float, expected: float, limit: str
) -> None:
    got = last_attempt_timeout_s(
        limits(step_timeout_s), inbound(10.0), START + now_s, reserve_s=reserve_s
    )

    assert got == pytest.approx(expected), limit


@pytest.mark.parametrize(
    ("timeout_s", "expected"),
    [
        (0.0, 0.0),
        (0.0005, 0.0),
        (0.001, 0.0),
        (0.0019, 0.0),
        (0.002, 0.001),
        (0.3, 0.299),
        (0.9, 0.899),
        (0.999, 0.998),
        (0.9999, 0.998),
        (1.0, 0.99),
        (1.005, 0.99),
        (2.5, 2.49),
        (9.99, 9.98),
        (9.999, 9.98),
        (10.0, 9.9),
        (10.05, 9.9),
        (29.0, 28.9),
        (99.9, 99.8),
        (99.99, 99.8),
        (100.0, 99.0),
        (119.0, 118.0),
        (999.9, 998.0),
        (1000.0, 990.0),
        (1234.5, 1220.0),
        (9999.0, 9980.0),
        (10_000.0, 9900.0),
        (-1.0, 0.0),
    ],
)
def test_a_timeout_is_floored_to_the_grid_and_one_step_taken_off(
    timeout_s: float, expected: float
) -> None:
    assert floor_to_grid(timeout_s) == pytest.approx(expected, abs=1e-9)


@given(st.integers(101, 999), st.sampled_from([0.001, 0.01, 0.1, 1.0, 10.0]))
def test_a_timeout_on_its_own_grid_point_loses_exactly_one_step(digits: int, step_s: float) -> None:
    timeout_s = digits * step_s

    assert timeout_s - floor_to_grid(timeout_s) == pytest.approx(step_s)


@requirement("deadline:wire-grid")
@given(LENGTHS)
def test_what_grpc_rounds_up_never_exceeds_what_was_computed(timeout_s: float) -> None:
    sent_s = floor_to_grid(timeout_s)

    # A millisecond more, because gRPC counts from an instant and rounds that up as well.
    assert sent_s == 0 or on_the_wire(sent_s + 0.001) <= timeout_s + 1e-6


@given(LENGTHS)
def test_the_grid_costs_at_most_a_fiftieth_of_a_timeout_that_matters(timeout_s: float) -> None:
    lost_s = timeout_s - floor_to_grid(timeout_s)

    assert lost_s <= max(0.002, 0.02 * timeout_s) + 1e-6


@requirement("deadline:unary-share")
@given(
    remaining_s=LENGTHS,
    step_timeout_s=st.floats(0.001, 600.0),
    share=st.floats(0.01, 10.0),
)
def test_no_attempt_gets_more_than_six_tenths_whatever_is_configured(
    remaining_s: float, step_timeout_s: float, share: float
) -> None:
    got = attempt_timeout_s(limits(step_timeout_s, share=share), remaining_s)

    assert got <= 0.6 * remaining_s + 1e-9
    assert got <= step_timeout_s


@given(
    arrived_with_s=st.floats(0.1, 600.0),
    used=st.floats(0.0, 1.2),
    reserve_s=st.floats(0.0, 5.0),
    step_timeout_s=st.floats(0.001, 600.0),
)
def test_the_last_attempt_ends_before_this_hop_must_answer(
    arrived_with_s: float, used: float, reserve_s: float, step_timeout_s: float
) -> None:
    served = inbound(arrived_with_s)
    now = START + used * arrived_with_s

    got = last_attempt_timeout_s(limits(step_timeout_s), served, now, reserve_s=reserve_s)

    assert now + got <= served.self_deadline - reserve_s + 1e-6
    assert got <= 0.6 * arrived_with_s + 1e-9


def test_slow_own_work_is_this_hops_own_timeout() -> None:
    error = own_timeout(inbound(10.0, hop="tool"))

    assert isinstance(error, SelfTimeoutError)
    assert (error.code, error.cause) == (Code.DEADLINE_EXCEEDED, "deadline")
    assert error.origin is None
    assert error.message == "tool could not finish RunAgent within the 10.00 s it had"


def test_a_wait_that_was_cut_is_the_dependencys_failure() -> None:
    served = inbound(10.0, hop="tool")
    served.cut_wait = "model"

    error = own_timeout(served)

    assert isinstance(error, DependencyFailedError)
    assert (error.code, error.cause, error.dependency) == (Code.ABORTED, "deadline", "model")
    assert error.origin is not None
    assert (error.origin.hop, error.origin.code, error.origin.reason) == (
        "model",
        "DEADLINE_EXCEEDED",
        "NO_ANSWER",
    )
