"""Holds self-ejection to three failures of its own, thirty seconds, and to the loop's lag."""

import asyncio
from dataclasses import replace

import pytest

from services.runtime.call import Mode
from services.runtime.clock import ManualClock
from services.runtime.errors import (
    DependencyFailedError,
    InvalidArgumentError,
    LoadShedError,
    Origin,
    SelfBugError,
    SelfTimeoutError,
    SelfUnavailableError,
)
from services.runtime.policies.self_ejection import (
    LagConfig,
    LagReadiness,
    SelfEjection,
    SelfEjectionConfig,
)
from tests.unit.runtime.policies.samples import inbound

OWN = SelfUnavailableError("the engine is gone")
CHILD = DependencyFailedError("tool", "broken", cause="x", origin=Origin("tool"))
Told = list[tuple[bool, str]]


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test moves."""
    return ManualClock()


async def stream(
    guard: SelfEjection, *errors: BaseException | None, streaming: bool = True
) -> None:
    """Serve one call for each error; None ends well."""
    for error in errors:
        call = inbound(10.0)
        call.streaming = streaming
        entry = guard(call)
        await entry.__aenter__()
        await entry.__aexit__(type(error) if error else None, error, None)


@pytest.mark.parametrize("wrong", [{"max_failures": 0}, {"ejection_s": 0.0}])
def test_a_rule_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        SelfEjectionConfig(**wrong)  # type: ignore[arg-type]


async def test_three_streams_in_a_row_failed_by_own_fault_end_service_for_thirty_seconds(
    clock: ManualClock,
) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, OWN, SelfTimeoutError("late"))
    two = list(told)
    await stream(guard, SelfBugError("defect"))
    clock.advance(29.9)
    guard.tick()
    away = guard.serving
    clock.advance(0.1)
    guard.tick()

    assert two == []
    assert not away
    assert guard.serving
    assert told == [(False, "3 streams in a row failed by own fault, last SELF_BUG"), (True, "")]


async def test_a_stream_that_ends_well_clears_the_count(clock: ManualClock) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, OWN, OWN, None, OWN, OWN)

    assert told == []
    assert guard.snapshot().failure_count == 2


@pytest.mark.parametrize(
    "error",
    [
        CHILD,
        LoadShedError("full"),
        InvalidArgumentError("question", "say something"),
        asyncio.CancelledError(),
    ],
)
async def test_what_is_not_own_fault_counts_neither_way(
    clock: ManualClock, error: BaseException
) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, *[error] * 9)
    none = list(told)
    await stream(guard, OWN, error, OWN, error, OWN)

    assert none == []
    assert [serving for serving, _ in told] == [False]


async def test_a_defect_that_nobody_translated_is_own_fault(clock: ManualClock) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, LookupError(), LookupError(), LookupError())

    assert told == [(False, "3 streams in a row failed by own fault, last LookupError")]


async def test_calls_that_are_no_streams_are_left_to_the_mesh(clock: ManualClock) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, *[OWN] * 9, streaming=False)
    await stream(guard, OWN, OWN)
    await stream(guard, None, streaming=False)

    assert told == []
    assert guard.snapshot().failure_count == 2


async def test_streams_that_end_during_the_absence_do_not_make_it_longer(
    clock: ManualClock,
) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))

    await stream(guard, OWN, OWN, OWN)
    clock.advance(20.0)
    await stream(guard, *[OWN] * 5)
    clock.advance(10.0)

    assert not guard.snapshot().ejected
    assert guard.snapshot().failure_count == 0
    assert [serving for serving, _ in told] == [False, True]


async def test_after_the_return_it_takes_three_again(clock: ManualClock) -> None:
    told: Told = []
    guard = SelfEjection(SelfEjectionConfig(), clock, lambda *change: told.append(change))
    await stream(guard, OWN, OWN, OWN)
    clock.advance(30.0)
    guard.tick()

    await stream(guard, OWN, OWN)
    two = guard.serving
    await stream(guard, OWN)

    assert two
    assert not guard.serving
    assert guard.snapshot().ejection_count == 2


@pytest.mark.parametrize(("mode", "counted"), [(Mode.OBSERVE, 2), (Mode.OFF, 0)])
async def test_a_rule_that_does_not_enforce_tells_nobody(
    clock: ManualClock, mode: Mode, counted: int
) -> None:
    told: Told = []
    config = replace(SelfEjectionConfig(), mode=mode)
    guard = SelfEjection(config, clock, lambda *change: told.append(change))

    await stream(guard, *[OWN] * 6)

    assert told == []
    assert guard.serving
    assert guard.snapshot().would_eject_count == counted


@pytest.mark.parametrize(
    "wrong",
    [{"calm_lag_s": 0.0}, {"calm_lag_s": 0.3}, {"bad_samples": 0}, {"good_samples": 0}],
)
def test_a_lag_rule_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        LagConfig(**wrong)  # type: ignore[arg-type]


def test_a_loop_that_lags_three_times_in_a_row_is_not_ready() -> None:
    readiness = LagReadiness(LagConfig())

    assert [readiness.sample(0.3) for _ in range(4)] == [True, True, False, False]


def test_one_lag_is_no_reason() -> None:
    readiness = LagReadiness(LagConfig())

    assert all(readiness.sample(lag_s) for lag_s in [0.3, 0.3, 0.2, 5.0, 0.3, 0.01] * 5)
    assert readiness.worst_s == 5.0


def test_readiness_comes_back_after_five_good_samples_in_a_row() -> None:
    readiness = LagReadiness(LagConfig())
    for _ in range(3):
        readiness.sample(0.3)

    early = [readiness.sample(lag_s) for lag_s in [0.01] * 4 + [0.15] + [0.01] * 4]

    assert not any(early)
    assert readiness.sample(0.01)
