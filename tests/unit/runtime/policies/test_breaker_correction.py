"""Opens breakers at once where every call will be refused until somebody corrects something."""

import pytest

from services.runtime.circuit import BreakerChange, BreakerConfig, BreakerState, Reason
from services.runtime.clock import ManualClock
from services.runtime.errors import CircuitOpenError, DependencyFailedError, Origin
from services.runtime.policies.breaker import Breakers
from services.runtime.telemetry import tell_breaker
from tests.logged import logged
from tests.unit.runtime.policies.client_samples import failed, one, refused

KEY = "tool/sql"
CLOSED, OPEN = BreakerState.CLOSED, BreakerState.OPEN
WRONG = "the key is wrong; correct THE_SETTING"


def hopeless(hop: str = "tool") -> DependencyFailedError:
    origin = Origin(hop, code="HTTP_401", reason="PROVIDER_KEY_REFUSED")
    return DependencyFailedError(
        "tool", WRONG, cause="key_refused", origin=origin, opens_breaker=True
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def changes() -> list[BreakerChange]:
    return []


@pytest.fixture
def breakers(clock: ManualClock, changes: list[BreakerChange]) -> Breakers:
    return Breakers(BreakerConfig(), clock, changes.append)


async def test_one_such_refusal_opens_it(breakers: Breakers, clock: ManualClock) -> None:
    await one(breakers, clock, 0.1, hopeless())

    found = breakers.snapshot()[KEY]
    assert (found.state, found.reason, found.told) == (OPEN, Reason.REFUSES_ALL, WRONG)


async def test_those_who_are_refused_then_are_told_what_to_correct(
    breakers: Breakers, clock: ManualClock
) -> None:
    await one(breakers, clock, 0.1, hopeless())

    error = await refused(breakers)

    assert isinstance(error, CircuitOpenError)
    assert error.cause == "refuses_all"
    assert WRONG in error.message


async def test_a_probe_that_is_refused_so_opens_it_again_and_a_good_one_closes_it(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await one(breakers, clock, 0.1, hopeless())
    clock.advance(30.0)
    await one(breakers, clock, 0.1, hopeless())
    clock.advance(30.0)
    await one(breakers, clock, 0.1)

    told = [(each.new, each.told) for each in changes if each.new is not BreakerState.HALF_OPEN]
    assert told == [(OPEN, WRONG), (OPEN, WRONG), (CLOSED, "")]
    assert breakers.snapshot()[KEY].told == ""


async def test_what_a_hop_behind_the_callee_refuses_does_not_open_its_breaker(
    breakers: Breakers, clock: ManualClock
) -> None:
    await one(breakers, clock, 0.1, hopeless("llm"))

    assert breakers.state(KEY) is CLOSED


async def test_other_failures_need_company(breakers: Breakers, clock: ManualClock) -> None:
    await one(breakers, clock, 0.1, failed())

    assert breakers.state(KEY) is CLOSED


async def test_an_operator_who_holds_it_closed_is_obeyed(
    breakers: Breakers, clock: ManualClock
) -> None:
    breakers.force_closed(KEY)

    await one(breakers, clock, 0.1, hopeless())

    assert breakers.state(KEY) is CLOSED


async def test_it_is_told_loudly(
    breakers: Breakers, clock: ManualClock, changes: list[BreakerChange]
) -> None:
    await one(breakers, clock, 0.1, hopeless())

    with logged() as log:
        tell_breaker(changes[0])

    (line,) = log.lines()
    assert (line["level"], line["reason"], line["problem"]) == ("error", "refuses_all", WRONG)
