"""Holds the counters of a process to what happened."""

import pytest

from services.runtime.statistics import MIN_SAMPLES, WINDOW, Activity, LatencySnapshot, spare_qps


def test_without_calls_there_is_no_latency() -> None:
    assert Activity().latency() == LatencySnapshot()


def test_percentiles_are_those_of_the_calls_that_ended_well() -> None:
    activity = Activity()

    for length_s in reversed(range(101)):
        activity.record(float(length_s), length_s / 2, failed=False)
    activity.record(5000.0, 0.0, failed=True)

    assert activity.latency() == LatencySnapshot(
        average_s=50.0,
        p50_s=50.0,
        p90_s=90.0,
        p99_s=99.0,
        average_wait_s=25.0,
        work_p50_s=25.0,
        work_p90_s=45.0,
        max_last_s=4.0,
    )
    assert (activity.call_count, activity.error_count) == (102, 1)


def test_only_recent_calls_tell_a_latency() -> None:
    activity = Activity()
    for _ in range(WINDOW):
        activity.record(100.0, 0.0, failed=False)

    for _ in range(WINDOW):
        activity.record(1.0, 0.0, failed=False)

    assert activity.latency().p99_s == pytest.approx(1.0)
    assert activity.call_count == 2 * WINDOW


def test_work_is_what_was_not_spent_waiting() -> None:
    activity = Activity()
    for _ in range(9):
        activity.record(1.0, 0.9, failed=False)
    activity.record(1.0, 0.0, failed=False)

    latency = activity.latency()

    assert latency.p50_s == pytest.approx(1.0)
    assert latency.work_p50_s == pytest.approx(0.1)
    assert latency.average_wait_s == pytest.approx(0.81)


def test_a_wait_that_seems_longer_than_its_call_leaves_no_work() -> None:
    activity = Activity()
    activity.record(1.0, 1.1, failed=False)

    assert activity.latency().work_p50_s == 0.0


def test_the_maximum_is_that_of_the_last_five_calls_that_ended_well() -> None:
    activity = Activity()
    for length_s in (9.0, 2.0, 4.0, 1.0, 1.0, 1.0):
        activity.record(length_s, 0.0, failed=False)
    activity.record(8.0, 0.0, failed=True)

    assert activity.latency().max_last_s == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("room", "inflight", "average_s", "qps"),
    [
        (10, 4, 0.5, 12.0),
        (10, 10, 0.5, 0.0),
        (10, 12, 0.5, 0.0),
        (10, 10, 0.0, 0.0),
        (10, 0, 0.0, None),
    ],
    ids=["six places for half a second", "full", "shrunk", "full from the start", "unknown"],
)
def test_free_places_divided_by_the_latency_are_the_calls_there_is_room_for(
    room: int, inflight: int, average_s: float, qps: float | None
) -> None:
    assert spare_qps(room, inflight, average_s) == qps


def test_a_few_calls_do_not_tell_how_many_more_there_is_room_for() -> None:
    activity = Activity()
    for _ in range(MIN_SAMPLES - 1):
        activity.record(0.5, 0.0, failed=False)
    activity.record(0.5, 0.0, failed=True)

    few, full = activity.spare_qps(10, 4), activity.spare_qps(10, 10)
    activity.record(0.5, 0.0, failed=False)

    assert (few, full, activity.spare_qps(10, 4)) == (None, 0.0, 12.0)
