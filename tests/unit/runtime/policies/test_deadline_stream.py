"""Holds the limits of streams to the design: first event, gap, first content, the whole."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.call import CallLimits
from services.runtime.policies.deadline import StreamWait, floor_to_grid
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START
from tests.unit.runtime.policies.samples import inbound, limits

pytestmark = requirement("deadline:stream-limits")


def begin(limits: CallLimits, remaining_s: float, *, spent_s: float = 0.0) -> StreamWait:
    """Return the limits of a stream begun some time after the arrival of its caller's call."""
    served, now = inbound(remaining_s), START + spent_s
    return StreamWait.begin(limits, served.deadline, now, floor_to_grid(served.self_deadline - now))


@pytest.mark.parametrize(
    ("step_timeout_s", "remaining_s", "spent_s", "until_s", "cause"),
    [
        (5.0, 30.0, 0.0, 5.0, "step_timeout"),
        (20.0, 30.0, 0.0, 18.0, "deadline_share"),
        (20.0, 30.0, 10.0, 10.0 + 12.0, "deadline_share"),
        (20.0, 1.0, 0.0, 0.6, "deadline_share"),
        (20.0, 30.0, 28.0, 28.0 + 0.99, "deadline"),
    ],
)
def test_the_first_event_may_take_the_step_timeout_or_the_share(
    step_timeout_s: float, remaining_s: float, spent_s: float, until_s: float, cause: str
) -> None:
    until, why = begin(limits(step_timeout_s), remaining_s, spent_s=spent_s).first_wait_until()

    assert until - START == pytest.approx(until_s)
    assert why == cause


@pytest.mark.parametrize(
    ("read_timeout_s", "now_s", "until_s", "cause"),
    [
        (3.0, 4.0, 7.0, "read_timeout"),
        (15.0, 10.0, 10.0 + 12.0, "deadline_share"),
        (15.0, 28.0, 28.9, "deadline"),
        (0.5, 28.0, 28.5, "read_timeout"),
        (0.5, 28.6, 28.9, "deadline"),
    ],
)
def test_a_later_event_may_take_the_read_timeout_or_the_share_of_what_is_left_then(
    read_timeout_s: float, now_s: float, until_s: float, cause: str
) -> None:
    wait = begin(limits(read_timeout_s=read_timeout_s), 30.0)

    until, why = wait.next_wait_until(START + now_s)

    assert until - START == pytest.approx(until_s)
    assert why == cause


@pytest.mark.parametrize(
    ("first_content_timeout_s", "remaining_s", "until_s", "cause"),
    [
        (6.0, 30.0, 6.0, "first_content_timeout"),
        (6.0, 8.0, 4.8, "deadline_share"),
        (6.0, 10.0, 6.0, "first_content_timeout"),
    ],
)
def test_heartbeats_do_not_extend_the_wait_for_the_first_content(
    first_content_timeout_s: float, remaining_s: float, until_s: float, cause: str
) -> None:
    wait = begin(limits(20.0, first_content_timeout_s=first_content_timeout_s), remaining_s)

    ends = {wait.next_wait_until(START + 0.1 * beat)[0] - START for beat in range(40)}
    causes = {wait.next_wait_until(START + 0.1 * beat)[1] for beat in range(20, 40)}

    assert max(ends) == pytest.approx(until_s)
    assert causes == {cause}


def test_once_there_is_content_only_gaps_and_the_whole_count() -> None:
    wait = begin(limits(20.0, first_content_timeout_s=6.0, read_timeout_s=15.0), 30.0)

    wait.content_arrived()

    assert wait.content_until == math.inf
    until, cause = wait.next_wait_until(START + 5.9)
    assert until - START == pytest.approx(5.9 + 0.6 * 24.1)
    assert cause == "deadline_share"


def test_the_whole_ends_before_this_hop_must_answer() -> None:
    wait = begin(limits(read_timeout_s=600.0), 30.0)

    assert wait.whole_until == pytest.approx(START + 28.9)


def test_a_share_above_six_tenths_counts_as_six_tenths() -> None:
    wait = begin(limits(100.0, share=1.0, read_timeout_s=100.0), 10.0)

    assert wait.first_wait_until()[0] - START == pytest.approx(6.0)
    assert wait.next_wait_until(START + 5.0)[0] - START == pytest.approx(5.0 + 3.0)


LIMITS = st.builds(
    CallLimits,
    step_timeout_s=st.floats(0.001, 600),
    read_timeout_s=st.floats(0.001, 600),
    first_content_timeout_s=st.none() | st.floats(0.001, 600),
    share=st.floats(0.01, 2.0),
)


@given(LIMITS, st.floats(0.2, 600), st.floats(0, 1), st.lists(st.floats(0, 1), max_size=8))
def test_no_wait_is_longer_than_the_share_or_lasts_beyond_the_self_deadline(
    limits: CallLimits, remaining_s: float, spent: float, steps: list[float]
) -> None:
    served = inbound(remaining_s)
    now = START + spent * (remaining_s - served.margin_s)
    whole_s = floor_to_grid(served.self_deadline - now)
    wait = StreamWait.begin(limits, served.deadline, now, whole_s)

    waits = [(now, wait.first_wait_until()[0])]
    for step in steps:
        now += step * (wait.whole_until - now)
        waits.append((now, wait.next_wait_until(now)[0]))

    assert now <= served.self_deadline
    for began, until in waits:
        assert until <= served.self_deadline + 1e-6
        assert until - began <= 0.6 * (served.deadline - began) + 1e-6


@given(LIMITS, st.floats(0.2, 600), st.floats(0, 1), st.floats(0, 1))
def test_a_later_wait_never_ends_earlier(
    limits: CallLimits, remaining_s: float, one: float, other: float
) -> None:
    wait = begin(limits, remaining_s)
    sooner, later = sorted(START + part * remaining_s for part in (one, other))

    assert wait.next_wait_until(sooner)[0] <= wait.next_wait_until(later)[0] + 1e-6
