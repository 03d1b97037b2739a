"""Holds the server's policies to keeping what they have learned when their settings change."""

from dataclasses import replace

import pytest

from services.runtime.call import Criticality, Mode
from services.runtime.clock import ManualClock
from services.runtime.errors import SelfBugError, SixhopError
from services.runtime.keyed import Keyed
from services.runtime.levels import LevelRules, Levels
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed, Gradient, GradientConfig, LimitConfig
from services.runtime.policies.self_ejection import SelfEjection, SelfEjectionConfig
from tests.unit.runtime.policies.samples import inbound


def test_a_search_goes_on_from_where_it_is_inside_the_new_bounds() -> None:
    limit = Gradient(GradientConfig(initial_limit=50))
    for number in range(1, 13):
        limit.record(100.0 + number / 10, 0.1, 50)
    found = limit.value
    settings = GradientConfig(max_limit=60, min_limit=10)

    kept = LimitConfig(algorithm="gradient", gradient=settings).limit_after(limit)
    inside = kept.value
    lowered = LimitConfig(algorithm="gradient", gradient=replace(settings, max_limit=20))

    assert found > 50
    assert (kept, inside) == (limit, found)
    assert lowered.limit_after(limit).value == 20
    assert LimitConfig(max_inflight=7).limit_after(limit).value == 7
    assert LimitConfig(algorithm="gradient").limit_after(Fixed(7)).value == 20


async def test_a_lower_limit_refuses_until_enough_have_ended_and_counts_all(
    manual: ManualClock,
) -> None:
    admission = Admission(AdmissionConfig(), Fixed(5), manual)
    calls = [inbound(10.0, arrived_at=manual.now()) for _ in range(4)]
    entries = [admission(call) for call in calls]
    for entry in entries:
        await entry.__aenter__()

    admission.reconfigure_limit(LimitConfig(max_inflight=2))
    with pytest.raises(SixhopError):
        await admission(inbound(10.0, arrived_at=manual.now())).__aenter__()
    for entry in entries:
        await entry.__aexit__(None, None, None)

    seen = admission.snapshot()
    assert (seen.limit, seen.inflight, seen.peak_inflight, seen.served_count) == (2, 0, 4, 4)


def test_room_that_was_learned_for_a_level_stays_kept() -> None:
    levels = Levels(LevelRules())
    levels.room(Criticality.CRITICAL, 100, 0.0)
    for _ in range(5):
        levels.note_refused(Criticality.CRITICAL_PLUS, 90, 10, 100)
    learned = levels.room(Criticality.CRITICAL, 100, 0.0)

    levels.reconfigure(LevelRules(critical_ratio=0.9))

    assert learned == 70
    assert levels.room(Criticality.CRITICAL, 100, 0.0) == 80


async def failing(ejection: SelfEjection, count: int) -> None:
    """End so many streams by own fault."""
    for _ in range(count):
        ejection.after(inbound(10.0), SelfBugError("a defect", cause="defect"))


async def test_failures_in_a_row_are_counted_over_a_reload(manual: ManualClock) -> None:
    ejection = SelfEjection(SelfEjectionConfig(), manual, lambda serving, why: None)
    await failing(ejection, 2)

    ejection.reconfigure(SelfEjectionConfig(ejection_s=10.0))
    await failing(ejection, 1)

    assert not ejection.serving


async def test_an_ejection_lasts_as_long_as_the_new_rule_says(manual: ManualClock) -> None:
    told: list[bool] = []
    ejection = SelfEjection(SelfEjectionConfig(), manual, lambda serving, why: told.append(serving))
    await failing(ejection, 3)

    manual.advance(9.0)
    ejection.reconfigure(SelfEjectionConfig(ejection_s=10.0))
    still = ejection.serving
    manual.advance(1.0)
    ejection.tick()

    assert (still, ejection.serving, told) == (False, True, [False, True])


async def test_a_rule_that_enforces_nothing_brings_the_process_back(manual: ManualClock) -> None:
    ejection = SelfEjection(SelfEjectionConfig(), manual, lambda serving, why: None)
    await failing(ejection, 3)

    ejection.reconfigure(SelfEjectionConfig(mode=Mode.OBSERVE))

    assert ejection.serving


def test_fewer_keys_are_kept_from_the_next_one_on() -> None:
    keyed = Keyed(str.upper, max_keys=4)
    for key in "abcd":
        keyed.of(key)

    keyed.resize(2)
    before = list(keyed)
    keyed.of("e")

    assert before == ["a", "b", "c", "d"]
    assert list(keyed) == ["d", "e"]
