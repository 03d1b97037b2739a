"""Holds the policies to telling, in their snapshots, what an operator asks of them."""

import pytest

from services.runtime.call import Criticality, Fallback, Identity, Inbound, Mode
from services.runtime.circuit import BreakerConfig, BreakerState
from services.runtime.clock import ManualClock
from services.runtime.errors import LoadShedError, SelfTimeoutError
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.breaker import Breakers
from services.runtime.policies.fallback import FallbackConfig, FallbackDriver
from services.runtime.policies.limit import Fixed, Gradient, GradientConfig
from services.runtime.policies.shed import ShedChange, ShedConfig, ShedSwitch
from tests.unit.runtime.fake_time import LoopClock
from tests.unit.runtime.policies.client_samples import failed, one, sql_call
from tests.unit.runtime.policies.samples import inbound
from tests.unit.runtime.policies.test_fallback import failing, giving

KEY = "tool/sql"


def arriving(clock: ManualClock, level: Criticality, tenant: str = "a") -> Inbound:
    """Return a call of a tenant that arrives now."""
    call = inbound(10.0, arrived_at=clock.now())
    call.identity = Identity(tenant=tenant, criticality=level)
    return call


def test_an_order_tells_who_gave_it_and_for_how_long_it_lasts() -> None:
    clock, told = ManualClock(), list[ShedChange]()
    switch = ShedSwitch(ShedConfig(), clock, told.append)

    switch.order("the database moves", 20.0, operator="ada@desk")
    ended = switch.withdraw(operator="bob@desk")

    assert ended is not None
    assert (ended.operator, ended.reason) == ("ada@desk", "the database moves")
    assert [(change.operator, change.lasts_s) for change in told] == [
        ("ada@desk", 20.0),
        ("bob@desk", None),
    ]


def test_an_order_that_is_over_cannot_be_withdrawn() -> None:
    clock, told = ManualClock(), list[ShedChange]()
    switch = ShedSwitch(ShedConfig(), clock, told.append)
    switch.order("short", 1.0)
    clock.advance(1.0)

    assert switch.withdraw(operator="bob") is None
    assert [change.reason for change in told] == ["short", "over"]


def test_a_switch_without_order_and_overload_refuses_nobody() -> None:
    assert ShedSwitch(ShedConfig(), ManualClock()).snapshot().up_to is None


@pytest.mark.parametrize(
    ("mode", "up_to"),
    [(Mode.ENFORCE, Criticality.SHEDDABLE_PLUS), (Mode.OBSERVE, Criticality.SHEDDABLE)],
)
async def test_a_switch_tells_the_highest_level_that_is_refused_by_order_or_by_rule(
    mode: Mode, up_to: Criticality
) -> None:
    clock = ManualClock()
    config = ShedConfig(mode=mode, min_calls=1, sustain_s=0.0, hold_s=0.1, window_s=1.0)
    switch = ShedSwitch(config, clock)
    switch.order("bulk work waits", 60.0, up_to=Criticality.SHEDDABLE)
    late = SelfTimeoutError("late", cause="deadline")
    for _ in range(2):
        entry = switch(arriving(clock, Criticality.CRITICAL_PLUS))
        await entry.__aenter__()
        await entry.__aexit__(type(late), late, None)
        clock.advance(0.15)
        switch.tick()

    seen = switch.snapshot()

    assert seen.overload_up_to is Criticality.SHEDDABLE_PLUS
    assert (seen.mode, seen.up_to) == (mode, up_to)


@pytest.mark.parametrize(
    ("limit", "kind", "value"),
    [(Fixed(10), "fixed", 10), (Gradient(GradientConfig(initial_limit=20)), "gradient", 20)],
)
def test_a_gate_tells_its_limit_and_how_it_is_found(
    limit: Fixed | Gradient, kind: str, value: int
) -> None:
    seen = Admission(AdmissionConfig(), limit, ManualClock()).snapshot()

    assert (seen.limit, seen.limit_kind) == (value, kind)
    assert seen.modes == {
        "estimate": Mode.OBSERVE,
        "limit": Mode.ENFORCE,
        "fair_share": Mode.ENFORCE,
    }


async def test_a_gate_tells_how_its_limit_is_shared() -> None:
    clock = ManualClock()
    admission = Admission(AdmissionConfig(), Fixed(10), clock)
    for tenant in ("hot",) * 5 + ("calm",):
        await admission(arriving(clock, Criticality.CRITICAL, tenant)).__aenter__()

    levels = admission.snapshot().levels

    assert [levels[level].room for level in Criticality] == [5, 6, 8, 10]
    critical = levels[Criticality.CRITICAL].share
    assert (critical.inflight, critical.tenant_count, critical.over_count) == (6, 2, 1)
    assert critical.kept_ratio == pytest.approx(0.25)
    assert levels[Criticality.SHEDDABLE].share.tenant_count == 0


async def test_a_gate_that_only_observes_tells_what_it_would_have_refused() -> None:
    clock = ManualClock()
    admission = Admission(AdmissionConfig(limit=Mode.OBSERVE), Fixed(1), clock)
    for _ in range(3):
        await admission(arriving(clock, Criticality.CRITICAL)).__aenter__()

    assert admission.snapshot().would_refuse == {"limit/CRITICAL": 2}


async def test_a_gate_that_enforces_tells_what_it_has_refused() -> None:
    clock = ManualClock()
    admission = Admission(AdmissionConfig(), Fixed(1), clock)
    await admission(arriving(clock, Criticality.CRITICAL)).__aenter__()

    with pytest.raises(LoadShedError):
        await admission(arriving(clock, Criticality.CRITICAL)).__aenter__()

    assert admission.snapshot().refused == {"limit/CRITICAL": 1}


async def test_a_breaker_tells_its_period_and_how_long_it_is_in_its_state() -> None:
    clock = ManualClock()
    breakers = Breakers(BreakerConfig(), clock)
    for _ in range(10):
        await one(breakers, clock, 0.1, failed())
    opened = breakers.snapshot()[KEY]
    clock.advance(31.0)
    probing = breakers.snapshot()[KEY]
    clock.advance(2.0)

    assert (opened.state, opened.epoch, opened.age_s) == (BreakerState.OPEN, 1, 0.0)
    assert (probing.state, probing.epoch, probing.age_s) == (BreakerState.HALF_OPEN, 2, 0.0)
    assert breakers.snapshot()[KEY].age_s == pytest.approx(2.0)


async def test_fallbacks_are_counted_by_mechanism_and_callee(clock: LoopClock) -> None:
    driver = FallbackDriver(FallbackConfig(), clock)
    for mechanism in (Fallback.SKIP, Fallback.SKIP, Fallback.DEFAULT):
        call = sql_call(alternatives=(giving(clock, mechanism),))
        await driver(call, failing(clock, failed()))

    seen = driver.snapshot()

    assert seen.counts == {Fallback.SKIP: 2, Fallback.DEFAULT: 1}
    assert seen.callees == {KEY: {Fallback.SKIP: 2, Fallback.DEFAULT: 1}}


async def test_an_answer_and_a_failure_without_alternative_count_as_no_fallback(
    clock: LoopClock,
) -> None:
    driver = FallbackDriver(FallbackConfig(), clock)

    async def answer() -> str:
        return "answer"

    await driver(sql_call(alternatives=(giving(clock, Fallback.SKIP),)), answer)
    with pytest.raises(type(failed())):
        await driver(sql_call(), failing(clock, failed()))

    assert driver.snapshot().counts == {}
