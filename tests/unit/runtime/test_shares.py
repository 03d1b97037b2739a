"""Holds fair shares to arithmetic that can be checked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.shares import ShareRules, Shares
from tests.unit.runtime.fake_time import START

RULES = ShareRules(memory_s=1.0, tolerance=1.1, burst_ratio=0.15, kept_ratio=0.25)


def busy(shares: Shares, **calls: int) -> Shares:
    """Begin so many calls for each tenant."""
    for tenant, count in calls.items():
        for _ in range(count):
            shares.change(tenant, 1, START)
    return shares


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory_s": 0.0},
        {"tolerance": 0.9},
        {"burst_ratio": 1.5},
        {"kept_ratio": 0.9},
        {"kept_ratio": -0.1},
    ],
)
def test_rules_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        ShareRules(**wrong)


def test_batches_of_short_calls_are_measured_as_what_they_are() -> None:
    # No number in flight is a flood by itself: only what was used lately counts.
    shares, now = Shares(ShareRules(memory_s=1.0, tolerance=1.1, burst_ratio=1)), START
    for _ in range(1000):
        for tenant in "aaaaaaaaab":
            shares.change(tenant, 1, now)
        now += 0.004
        for tenant in "aaaaaaaaab":
            shares.change(tenant, -1, now)
        now += 0.0015

    for tenant in "aaaaaaaaab":
        shares.change(tenant, 1, now)

    # On average 6.5 of them were in flight, and its share is 5.
    assert shares.is_over("a", 10, now)
    assert not shares.is_over("b", 10, now)


def test_who_is_alone_is_never_over_its_share() -> None:
    shares = busy(Shares(RULES), a=50)

    assert not shares.is_over("a", 10, START + 60)


def test_who_has_just_come_is_not_over_its_share() -> None:
    shares = busy(Shares(RULES), a=5, b=5)

    assert not shares.is_over("c", 10, START)


@pytest.mark.parametrize(("inflight", "over"), [(11, False), (12, True)])
def test_a_flood_is_caught_at_once(inflight: int, over: bool) -> None:
    shares = busy(Shares(RULES), hot=inflight, cold=1)

    assert shares.is_over("hot", 20, START) is over
    assert not shares.is_over("cold", 20, START)


def test_use_grows_with_time_until_it_is_more_than_the_share() -> None:
    shares = busy(Shares(ShareRules(memory_s=1.0, tolerance=1.1, burst_ratio=1)), hot=12, cold=1)
    crossing_s = -math.log(1 - 11 / 12)

    assert not shares.is_over("hot", 20, START + crossing_s - 0.01)
    assert shares.is_over("hot", 20, START + crossing_s + 0.01)


def test_who_uses_less_than_an_equal_part_of_the_places_is_within_its_share() -> None:
    shares = busy(Shares(RULES), a=3, b=1)

    assert not shares.is_over("a", 20, START + 30)


def test_a_burst_after_a_pause_has_not_gone_on_all_the_while() -> None:
    rules = ShareRules(memory_s=1.0, tolerance=1.1, burst_ratio=1)
    shares, later = busy(Shares(rules), b=1, a=1), START + 2
    shares.change("a", -1, START)
    for _ in range(9):
        shares.change("a", 1, later)

    # Nobody but it has called meanwhile. Of ten places its share is five, and it has used none.
    assert not shares.is_over("a", 10, later)
    assert shares.is_over("a", 10, later + 2)


def test_who_has_left_is_forgotten_and_who_is_served_is_not() -> None:
    shares = busy(Shares(RULES), gone=1, long=1)
    shares.change("gone", -1, START)

    for _ in range(4):
        shares.change("now", 1, START + 3.1)

    assert shares.tenant_count == 2
    assert shares.inflight == 5


def test_a_refusal_of_one_within_its_share_keeps_more_and_time_takes_it_back() -> None:
    shares = busy(Shares(RULES), hot=15, cold=1)

    before = shares.room_for_all(20, START)
    shares.note_refused("hot", 20, START)
    unmoved = shares.room_for_all(20, START)
    for _ in range(50):
        shares.note_refused("cold", 20, START)
    least = shares.room_for_all(20, START)
    later = shares.room_for_all(20, START + 1000)

    assert (before, unmoved, least) == pytest.approx((15.0, 15.0, 10.0))
    assert later == pytest.approx(15.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5), st.booleans()), max_size=80))
def test_what_all_have_in_flight_is_the_sum_of_the_tenants(
    changes: list[tuple[str, float, bool]],
) -> None:
    shares = Shares(ShareRules(memory_s=1000.0))
    running = dict.fromkeys("abc", 0)

    now = START
    for tenant, step_s, begins in changes:
        now += step_s
        if begins:
            shares.change(tenant, 1, now)
            running[tenant] += 1
        elif running[tenant]:
            shares.change(tenant, -1, now)
            running[tenant] -= 1

    assert shares.inflight == sum(running.values())


def test_callers_without_a_name_share_one() -> None:
    shares = Shares(ShareRules())

    for now in (1.0, 1.1, 9.0):
        shares.change("", 1, now)
        shares.change("", -1, now)

    assert (shares.inflight, shares.tenant_count) == (0, 1)
