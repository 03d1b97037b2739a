"""Holds a hop's own timeouts to what its callers gave: who is in a hurry has nobody ejected."""

import pytest

from services.runtime.call import Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    BudgetTooSmallError,
    Code,
    DependencyFailedError,
    Origin,
    SelfTimeoutError,
    SelfUnavailableError,
    SixhopError,
)
from services.runtime.policies.adequacy import Adequacy
from tests.requirements import requirement
from tests.unit.runtime.policies.samples import inbound

LATE = SelfTimeoutError("late", cause="deadline")
pytestmark = requirement("errors:hurry-blames-nobody")


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


def given(clock: ManualClock, seconds: float, enough_s: float = 2.0) -> Inbound:
    """Return a call of a tool that is slow after some time."""
    call = inbound(seconds, hop="tool", arrived_at=clock.now())
    call.note, call.enough_s = "sql", enough_s
    return call


def answered(guard: Adequacy, clock: ManualClock, taken_s: float, count: int) -> None:
    """Have so many calls answered that take so long."""
    for _ in range(count):
        call = given(clock, 60.0)
        clock.advance(taken_s)
        guard.after(call, None)


def blamed(guard: Adequacy, call: Inbound, error: SixhopError = LATE) -> bool:
    """Return whether the error stays what it is."""
    try:
        guard.after(call, error)
    except BudgetTooSmallError:
        return False
    return True


@pytest.mark.parametrize(
    ("given_s", "usual_s", "expected"),
    [
        (1.0, 0.1, True),
        (1.0, 0.8, True),
        (1.0, 0.9, False),
        # Whatever it takes by now: it was not slow when that was declared.
        (2.5, 30.0, True),
        # Too little for anybody.
        (0.4, 0.01, False),
    ],
)
def test_who_outruns_what_it_takes_as_a_rule_is_to_blame(
    clock: ManualClock, given_s: float, usual_s: float, expected: bool
) -> None:
    guard = Adequacy(clock)
    answered(guard, clock, usual_s, 5)

    assert blamed(guard, given(clock, given_s)) is expected


@pytest.mark.parametrize(("given_s", "expected"), [(1.0, False), (2.5, True)])
def test_of_a_tool_that_is_new_only_what_it_declares_is_known(
    clock: ManualClock, given_s: float, expected: bool
) -> None:
    guard = Adequacy(clock)
    answered(guard, clock, 0.1, 4)

    assert blamed(guard, given(clock, given_s)) is expected


def test_a_caller_in_a_hurry_is_told_what_to_give(clock: ManualClock) -> None:
    guard = Adequacy(clock)
    answered(guard, clock, 0.8, 5)

    with pytest.raises(BudgetTooSmallError) as told:
        guard.after(given(clock, 0.5), LATE)

    assert told.value.code is Code.FAILED_PRECONDITION
    assert (told.value.cause, told.value.details["neededMs"]) == ("deadline", "800")
    assert told.value.message.endswith("call with a longer deadline")


def test_what_it_took_when_it_was_well_is_not_forgotten_while_it_is_sick(
    clock: ManualClock,
) -> None:
    guard = Adequacy(clock)
    answered(guard, clock, 0.1, 5)

    clock.advance(3600.0)

    assert blamed(guard, given(clock, 1.0))


def test_a_step_that_outran_its_own_limit_had_its_time(clock: ManualClock) -> None:
    assert blamed(Adequacy(clock), given(clock, 0.3), SelfTimeoutError("l", cause="step_timeout"))


@pytest.mark.parametrize(
    "error",
    [
        SelfUnavailableError("gone"),
        DependencyFailedError("model", "late", cause="deadline", origin=Origin("model")),
    ],
)
def test_what_is_no_own_timeout_passes(clock: ManualClock, error: SixhopError) -> None:
    assert blamed(Adequacy(clock), given(clock, 0.1), error)


@pytest.mark.parametrize(("given_s", "expected"), [(0.3, False), (1.0, True)])
def test_where_nothing_is_declared_the_least_counts(
    clock: ManualClock, given_s: float, expected: bool
) -> None:
    assert blamed(Adequacy(clock), inbound(given_s)) is expected
