"""Holds adaptive timeouts to following what answers take, inside their bounds."""

import asyncio
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import Callee
from services.runtime.clock import ManualClock
from services.runtime.errors import DependencyFailedError
from services.runtime.policies.adaptive import AdaptiveConfig, AdaptiveTimeouts
from services.runtime.policies.deadline import floor_to_grid
from tests.unit.runtime.policies.client_samples import SQL, failed, one, silent, sql_call
from tests.unit.runtime.policies.samples import limits

KEY = "tool/sql"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


QUICK = AdaptiveConfig(min_timeout_s=0.25)
"""Moves within what the answers of these tests take."""


def timeouts(
    clock: ManualClock, config: AdaptiveConfig | None = None, *, closed: bool = True
) -> AdaptiveTimeouts:
    """Return timeouts whose breakers are all closed, or none is."""
    return AdaptiveTimeouts(config or QUICK, clock, lambda key: closed)


async def answers(adaptive: AdaptiveTimeouts, clock: ManualClock, *lengths: float) -> None:
    """Let answers take so long."""
    for length_s in lengths:
        await one(adaptive, clock, length_s)


async def test_until_enough_is_known_the_declared_timeout_holds(clock: ManualClock) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.1] * 99)
    call = sql_call()
    assert adaptive.limits(call) is call.limits

    await answers(adaptive, clock, *[0.1] * 10)

    assert adaptive.limits(call).step_timeout_s < call.limits.step_timeout_s


async def test_of_a_busy_callee_answers_are_looked_at_at_even_intervals(
    clock: ManualClock,
) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.1] * 110)

    await answers(adaptive, clock, *[0.001] * 1000)

    assert 110 + 15 <= adaptive.snapshot()[KEY].sample_count <= 110 + 25


async def test_a_calm_callee_gets_a_tighter_timeout_than_a_jittery_one(clock: ManualClock) -> None:
    calm, jittery = timeouts(clock), timeouts(clock)
    await answers(calm, clock, *[0.5, 0.52] * 60)
    await answers(jittery, clock, *([0.5] * 9 + [1.5]) * 12)

    assert calm.limits(sql_call()).step_timeout_s == pytest.approx(0.78)
    assert jittery.limits(sql_call()).step_timeout_s == pytest.approx(3.5)


async def test_no_timeout_leaves_its_bounds(clock: ManualClock) -> None:
    quick, slow = timeouts(clock), timeouts(clock)
    await answers(quick, clock, *[0.001] * 120)
    await answers(slow, clock, *[0.1, 9.0] * 60)

    assert quick.limits(sql_call()).step_timeout_s == 0.25
    assert slow.limits(sql_call()).step_timeout_s == 5.0


async def test_a_timeout_declared_below_the_least_stays_as_declared(clock: ManualClock) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.001] * 120)

    assert adaptive.limits(sql_call(step_timeout_s=0.1)).step_timeout_s == 0.1


@pytest.mark.parametrize(
    ("dependency", "least_s"),
    [("llm", 0.25), ("model", 1.67), ("tool", 2.78), ("domain", 4.63), ("routing", 7.72)],
)
async def test_a_hop_keeps_what_the_last_one_behind_it_needs(
    clock: ManualClock, dependency: str, least_s: float
) -> None:
    adaptive = timeouts(clock)
    call = sql_call(dependency=dependency, callee=Callee(key=dependency), step_timeout_s=20.0)
    for _ in range(120):
        await one(adaptive, clock, 0.001, call=call)

    assert adaptive.limits(call).step_timeout_s == pytest.approx(least_s, abs=0.01)
    assert adaptive.snapshot()[dependency].least_s == pytest.approx(least_s, abs=0.01)


@pytest.mark.parametrize("least_s", [0.6, 9.0])
async def test_a_tool_keeps_what_it_declares_whatever_holds_for_others(
    clock: ManualClock, least_s: float
) -> None:
    adaptive = timeouts(clock, AdaptiveConfig())
    call = sql_call(callee=replace(SQL, min_timeout_s=least_s), step_timeout_s=20.0)
    await answers(adaptive, clock, *[0.001] * 120)

    assert adaptive.limits(call).step_timeout_s == least_s


async def test_nothing_else_of_the_limits_changes(clock: ManualClock) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.3] * 120)
    call = sql_call(limits=limits(5.0, read_timeout_s=7.0, share=0.4, min_useful_s=0.02))

    moved = adaptive.limits(call)

    assert moved == limits(moved.step_timeout_s, read_timeout_s=7.0, share=0.4, min_useful_s=0.02)


@pytest.mark.parametrize("error", [failed(), asyncio.CancelledError(), KeyError("a defect")])
async def test_only_answers_teach(clock: ManualClock, error: BaseException) -> None:
    adaptive = timeouts(clock)
    for _ in range(200):
        await one(adaptive, clock, 0.001, error)

    assert adaptive.snapshot() == {}


@pytest.mark.parametrize("error", [silent(), failed("SELF_TIMEOUT")], ids=["silent", "says so"])
async def test_answers_that_are_cut_off_make_the_timeout_looser(
    clock: ManualClock, error: DependencyFailedError
) -> None:
    """concurrency-limits#137: when each call takes exactly the timeout, all seems well."""
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.5] * 120)
    tight_s = adaptive.limits(sql_call()).step_timeout_s
    assert tight_s == pytest.approx(0.75)

    for _ in range(20):
        given_s = adaptive.limits(sql_call()).step_timeout_s
        call = sql_call(attempt_timeout_s=given_s, advertised_p90_s=0.5)
        await one(adaptive, clock, given_s, error, call)

    assert adaptive.limits(sql_call()).step_timeout_s > 2 * tight_s


async def test_what_was_measured_of_a_callee_that_hangs_is_told_as_it_was(
    clock: ManualClock,
) -> None:
    """Half of its answers came, and the others were cut off after 3 s: nothing took 6 s."""
    adaptive = timeouts(clock)
    call = sql_call(callee=replace(SQL, timeout_s=3.0))
    adaptive.limits(call)
    for _ in range(60):
        await one(adaptive, clock, 1.0, call=call)
        await one(adaptive, clock, 3.0, failed("SELF_TIMEOUT", cause="step_timeout"), call)

    seen = adaptive.snapshot()[KEY]

    assert (seen.p50_s, seen.p99_s) == pytest.approx((1.0, 3.0))
    assert (seen.sample_count, seen.declared_s) == (120, 3.0)
    # The timeout follows them as if they had taken twice as long: 6 + 2 · (6 − 1).
    assert seen.wanted_s == pytest.approx(16.0)


@pytest.mark.parametrize(("own_s", "declared_s"), [(None, 5.0), (3.0, 3.0), (9.0, 5.0)])
async def test_a_callee_is_told_with_what_ends_its_calls_by_declaration(
    clock: ManualClock, own_s: float | None, declared_s: float
) -> None:
    adaptive = timeouts(clock)

    adaptive.limits(sql_call(callee=replace(SQL, timeout_s=own_s)))

    assert adaptive.snapshot()[KEY].declared_s == declared_s


@pytest.mark.parametrize("length_s", [0.5, 1.234, 2.0, 3.3])
async def test_a_callee_that_takes_the_same_every_time_or_a_little_more_is_not_cut_off(
    clock: ManualClock, length_s: float
) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[length_s] * 120)

    given_s = floor_to_grid(adaptive.limits(sql_call()).step_timeout_s)

    assert given_s > 1.2 * length_s


async def test_a_tight_timeout_learns_that_it_is_wrong_though_the_callee_needs_more_as_a_rule(
    clock: ManualClock,
) -> None:
    adaptive = timeouts(clock)
    await answers(adaptive, clock, *[0.5] * 120)

    # Others ask it larger questions, it says: these cut-offs are not its fault.
    for _ in range(20):
        given_s = adaptive.limits(sql_call()).step_timeout_s
        moved = limits(given_s)
        call = sql_call(limits=moved, attempt_timeout_s=given_s, advertised_p90_s=3.0)
        await one(adaptive, clock, given_s, failed("SELF_TIMEOUT"), call)

    assert adaptive.limits(sql_call()).step_timeout_s > 3.0


async def test_a_callers_short_deadline_does_not_teach(clock: ManualClock) -> None:
    adaptive = timeouts(clock)
    call = sql_call(attempt_timeout_s=0.01, advertised_p90_s=0.5)
    for _ in range(200):
        await one(adaptive, clock, 0.01, silent("deadline_share"), call)

    assert adaptive.snapshot() == {}


async def test_a_sick_callee_freezes_its_timeout(clock: ManualClock) -> None:
    well = True
    adaptive = AdaptiveTimeouts(QUICK, clock, lambda key: well)
    await answers(adaptive, clock, *[0.5] * 120)
    well = False
    await answers(adaptive, clock, *[4.0] * 120)

    assert adaptive.limits(sql_call()).step_timeout_s == pytest.approx(0.75)
    assert adaptive.snapshot()[KEY].frozen
    assert adaptive.snapshot()[KEY].sample_count == 120


async def test_when_it_is_off_the_declared_timeout_holds(clock: ManualClock) -> None:
    adaptive = timeouts(clock, AdaptiveConfig(enabled=False))
    await answers(adaptive, clock, *[0.5] * 120)
    call = sql_call()

    assert adaptive.limits(call) is call.limits


async def test_a_stream_teaches_by_its_first_event_and_its_first_content(
    clock: ManualClock,
) -> None:
    adaptive = timeouts(clock)
    for _ in range(120):
        call = sql_call(streaming=True)
        guarded = adaptive(call)
        await guarded.__aenter__()
        call.sent_at = clock.now()
        clock.advance(0.4)
        adaptive.first_event(call)
        clock.advance(2.0)
        adaptive.first_content(call)
        clock.advance(60.0)
        await guarded.__aexit__(None, None, None)
    declared = limits(5.0, first_content_timeout_s=6.0)

    moved = adaptive.limits(sql_call(streaming=True, limits=declared))

    assert moved.step_timeout_s == pytest.approx(0.6)
    assert moved.first_content_timeout_s == pytest.approx(3.6)


async def test_of_a_busy_callee_first_contents_are_looked_at_at_even_intervals(
    clock: ManualClock,
) -> None:
    adaptive = timeouts(clock)
    call = sql_call(streaming=True, limits=limits(5.0, first_content_timeout_s=6.0))
    for length_s in [2.5] * 120 + [0.001] * 1000:
        adaptive.limits(call)
        call.sent_at = clock.now()
        clock.advance(length_s)
        adaptive.first_content(call)

    moved = adaptive.limits(call)

    # Twenty of the thousand are among those looked at, so that the others are still the most.
    assert moved.first_content_timeout_s == pytest.approx(3.75)


@pytest.mark.parametrize("wrong", [{"min_timeout_s": 0.0}, {"max_keys": 0}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .*: write"):
        AdaptiveConfig(**wrong)  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(
    least_s=st.floats(0.01, 10.0),
    declared_s=st.floats(0.01, 20.0),
    scale_s=st.floats(0.0, 30.0),
    seed=st.integers(0, 100),
)
def test_whatever_is_seen_the_declared_timeout_is_never_exceeded(
    least_s: float, declared_s: float, scale_s: float, seed: int
) -> None:
    clock, chance = ManualClock(), random.Random(seed)
    adaptive = timeouts(clock)
    call = sql_call(step_timeout_s=declared_s, callee=replace(SQL, min_timeout_s=least_s))

    asyncio.run(answers(adaptive, clock, *(chance.uniform(0, scale_s) for _ in range(110))))

    step_s = adaptive.limits(call).step_timeout_s
    assert min(least_s, declared_s) <= step_s <= declared_s
