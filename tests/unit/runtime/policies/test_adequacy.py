"""Holds a hop's own timeouts to what its callers gave: who is in a hurry has nobody ejected."""

import pytest

from services.runtime.call import Inbound
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


def given(seconds: float, enough_s: float = 2.0) -> Inbound:
    """Return a call of a tool that is slow after some time."""
    call = inbound(seconds, hop="tool")
    call.note, call.enough_s = "sql", enough_s
    return call


def blamed(guard: Adequacy, call: Inbound, error: SixhopError = LATE) -> bool:
    """Return whether the error stays what it is."""
    try:
        guard.after(call, error)
    except BudgetTooSmallError:
        return False
    return True


@pytest.mark.parametrize(
    ("given_s", "p90_s", "expected"),
    [
        (1.0, 0.1, True),
        (1.0, 0.8, True),
        (1.0, 0.9, False),
        (1.0, None, False),
        (2.5, None, True),
        # Whatever it takes by now: it was not slow when that was declared.
        (2.5, 30.0, True),
        # Too little for anybody.
        (0.4, 0.01, False),
    ],
)
def test_who_outruns_what_it_takes_as_a_rule_is_to_blame(
    given_s: float, p90_s: float | None, expected: bool
) -> None:
    guard = Adequacy(lambda note: p90_s)

    assert blamed(guard, given(given_s)) is expected


def test_a_caller_in_a_hurry_is_told_what_to_give() -> None:
    with pytest.raises(BudgetTooSmallError) as told:
        Adequacy(lambda note: 0.8).after(given(0.5), LATE)

    assert told.value.code is Code.FAILED_PRECONDITION
    assert (told.value.cause, told.value.details["neededMs"]) == ("deadline", "800")
    assert told.value.message.endswith("call with a longer deadline")


def test_what_it_took_when_it_was_well_is_not_forgotten_while_it_is_sick() -> None:
    known: dict[str, float] = {"sql": 0.1}
    guard = Adequacy(known.get)
    assert blamed(guard, given(1.0))

    known.clear()

    assert blamed(guard, given(1.0))


def test_a_step_that_outran_its_own_limit_had_its_time() -> None:
    guard = Adequacy(lambda note: None)

    assert blamed(guard, given(0.3), SelfTimeoutError("late", cause="step_timeout"))


@pytest.mark.parametrize(
    "error",
    [
        SelfUnavailableError("gone"),
        DependencyFailedError("model", "late", cause="deadline", origin=Origin("model")),
    ],
)
def test_what_is_no_own_timeout_passes(error: SixhopError) -> None:
    assert blamed(Adequacy(lambda note: None), given(0.1), error)


@pytest.mark.parametrize(("given_s", "expected"), [(0.3, False), (1.0, True)])
def test_where_nothing_is_declared_the_least_counts(given_s: float, expected: bool) -> None:
    guard = Adequacy(lambda note: 30.0)

    assert blamed(guard, inbound(given_s)) is expected


def test_a_call_that_ends_well_passes() -> None:
    Adequacy(lambda note: None).after(given(0.1), None)
