"""Holds the times of heartbeats to what their callers wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.config import ConfigError, load_config
from services.runtime.heartbeat import MIN_INTERVAL_S, HeartbeatSettings
from services.runtime.policies.deadline import MAX_SHARE
from tests.requirements import requirement


def test_the_first_comes_soon_and_the_others_calmly() -> None:
    known = load_config(environ={}).heartbeat

    assert (known.first_s, known.interval_s) == (0.2, 1.0)


def test_a_first_one_that_comes_after_the_second_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"\[heartbeat\] first_s = .*: write a number up to interval_s"
    ):
        load_config(environ={"SIXHOP_HEARTBEAT__FIRST_S": "2"})


@requirement("heartbeat:fits-every-limit")
@given(left_s=st.floats(0.2, 120.0), interval_s=st.floats(0.2, 60.0))
def test_two_come_within_every_wait_that_a_share_of_the_time_left_limits(
    left_s: float, interval_s: float
) -> None:
    beat_s = HeartbeatSettings(interval_s=interval_s).interval_near_s(left_s)

    assert MIN_INTERVAL_S <= beat_s <= interval_s
    assert 2 * beat_s <= MAX_SHARE * left_s
