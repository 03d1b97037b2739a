"""Holds a caller to this: a callee that only says that it lives has not answered yet."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.runtime.call import CallLimits
from services.runtime.circuit import BreakerState
from services.runtime.errors import DependencyFailedError, SelfUnavailableError, SixhopError
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time
from tests.unit.runtime.policies.client_samples import failed
from tests.unit.runtime.scripted import Pause, ScriptedWire, Step, serving
from tests.unit.runtime.wired import MODEL, ScriptedCallee, Wired

LIMITS = CallLimits(
    step_timeout_s=10.0, read_timeout_s=15.0, first_content_timeout_s=6.0, min_useful_s=0.0
)
"""Those of the model hop."""
BEAT: list[Step] = [Pause(1.0), "."]
BEATS: list[Step] = [Pause(0.2), ".", *BEAT * 99]
"""A hop that waits and says so, for ever."""


class Reader:
    """Reads streams of the model as the domain hop does, through every policy."""

    def __init__(self, limits: CallLimits = LIMITS) -> None:
        """Take the limits."""
        self.clock = LoopClock()
        self.hop = Wired(self.clock, ScriptedCallee(self.clock, []), limits=limits)
        self.beats: list[str] = []
        """The heartbeats that were told."""
        self.attempts = 0

    async def read(self, *scripts: Sequence[Step], remaining_s: float = 30.0) -> list[str]:
        """Return the events of one call; its attempts follow the scripts, the last for ever."""
        left = list(scripts)

        async def open_wire(call: Any) -> ScriptedWire:
            self.attempts += 1
            return ScriptedWire(self.clock, left.pop(0) if len(left) > 1 else left[0])

        def take_heartbeat(event: str) -> bool:
            if event.startswith("."):
                self.beats.append(event)
                return True
            return False

        with serving(self.clock, remaining_s) as inbound:
            self.hop.inbounds.append(inbound)
            stream = self.hop._model.stream(
                "Generate",
                open_wire,
                is_content=lambda event: not event.startswith("."),
                take_heartbeat=take_heartbeat,
            )
            async with stream as events:
                return [event async for event in events]

    async def fail(self, *scripts: Sequence[Step], remaining_s: float = 30.0) -> SixhopError:
        """Return how one call fails."""
        with pytest.raises(SixhopError) as caught:
            await self.read(*scripts, remaining_s=remaining_s)
        return caught.value

    def learned(self) -> dict[str, Any]:
        """Return everything that the policies have learned."""
        policies, estimator = self.hop.policies, self.hop.estimator
        inbound = self.hop.inbound
        return {
            "now": round(self.clock.now(), 6),
            "breaker": policies.breakers.snapshot(),
            "adaptive": policies.adaptive.snapshot(),
            "retry": policies.retry.snapshot(),
            "seen": estimator.seen_s(),
            "reports": [report.outcome for report in inbound.reports],
            "wait_s": round(inbound.wait_s, 6),
            "attempts": self.attempts,
        }


@requirement("heartbeat:extends-no-content-limit")
@pytest.mark.parametrize(
    ("script", "remaining_s", "cause", "after_s"),
    [
        (BEATS, 30.0, "first_content_timeout", 6.0),
        (BEATS, 8.0, "deadline_share", 4.8),
        ([Pause(9), "late"], 30.0, "first_content_timeout", 6.0),
        (["text", *BEATS], 30.0, "deadline", 28.9),
        (["text", Pause(1), ".", Pause(60), "late"], 30.0, "read_timeout", 16.0),
        (["text", Pause(1), ".", Pause(60), "late"], 10.0, "deadline_share", 6.4),
    ],
)
async def test_heartbeats_keep_a_caller_inside_its_limits_and_not_beyond(
    script: list[Step], remaining_s: float, cause: str, after_s: float
) -> None:
    reader = Reader()

    error = await reader.fail(script, remaining_s=remaining_s)

    assert (error.cause, round(reader.clock.now() - START, 1)) == (cause, after_s)
    assert isinstance(error, DependencyFailedError)
    assert error.origin is not None
    assert (error.origin.hop, error.origin.reason) == ("model", "NO_ANSWER")


@requirement("heartbeat:extends-no-content-limit")
async def test_a_hop_whose_heartbeats_stop_is_given_up_sooner_than_one_that_lives() -> None:
    reader = Reader(CallLimits(step_timeout_s=5.0, read_timeout_s=2.0, min_useful_s=0.0))

    error = await reader.fail([*BEAT * 4, Pause(60)])

    assert error.cause == "read_timeout"
    assert reader.clock.now() - START == pytest.approx(6.0)


async def test_heartbeats_are_told_at_once_and_given_to_no_consumer() -> None:
    reader = Reader()
    reading = asyncio.create_task(reader.read([*BEATS[:4], Pause(1.0), "text", ".", "more"]))

    await reader.clock.sleep(1.5)
    told_while_waiting = len(reader.beats)
    events = await reading

    assert told_while_waiting == 2
    assert events == ["text", "more"]
    assert len(reader.beats) == 3


@requirement("heartbeat:is-no-answer")
async def test_a_failure_after_heartbeats_alone_is_repeated() -> None:
    reader = Reader()

    events = await reader.read([*BEATS[:6], failed(hop=MODEL)], ["text"])

    assert (events, reader.attempts) == (["text"], 2)


@requirement("heartbeat:is-no-answer")
async def test_a_callee_that_is_silent_with_heartbeats_opens_its_breaker() -> None:
    reader = Reader()

    for _ in range(3):
        await reader.fail(BEATS)

    assert reader.hop.state(MODEL) is BreakerState.OPEN


@requirement("heartbeat:is-no-answer")
async def test_what_a_callee_takes_is_its_first_content_and_not_its_first_heartbeat() -> None:
    reader = Reader()

    for _ in range(5):
        await reader.read([*BEATS[:6], Pause(0.8), "text"])

    policies = reader.hop.policies
    assert policies.adaptive.snapshot()[MODEL].p50_s == pytest.approx(3.0)
    assert policies.breakers.snapshot()[MODEL].mean_latency_s == pytest.approx(3.0)
    assert reader.hop.estimator.seen_s()[MODEL] == pytest.approx(3.0)


def lengths(least_s: float, most_s: float) -> st.SearchStrategy[float]:
    """Draw lengths whose sums are exact: what is compared must not differ by a rounding."""
    return st.integers(round(least_s * 64), round(most_s * 64)).map(lambda ticks: ticks / 64)


ENDS = st.sampled_from(["text", "silence", "failure", "ours"])
ATTEMPTS = st.lists(
    st.tuples(
        ENDS,
        lengths(0.05, 8.0),
        st.lists(lengths(0.02, 1.0), max_size=12),
        lengths(0.0, 3.0),
    ),
    min_size=1,
    max_size=6,
)


def script_of(attempt: tuple[str, float, list[float], float], *, beating: bool) -> list[Step]:
    """Return one attempt: after some time its end; before it, and after its text, heartbeats."""
    end, length_s, gaps, after_s = attempt
    waits: list[Step] = []
    left_s = length_s if end != "silence" else 60.0
    for gap_s in gaps:
        if gap_s < left_s and beating:
            waits += [Pause(gap_s), "."]
            left_s -= gap_s
    waits.append(Pause(left_s))
    match end:
        case "text":
            return [*waits, "text", *([".", "."] if beating else []), Pause(after_s), "more"]
        case "failure":
            return [*waits, failed(hop=MODEL)]
        case "ours":
            return [*waits, SelfUnavailableError("gone")]
    return waits


@requirement("heartbeat:is-no-answer")
@given(attempts=ATTEMPTS, remaining_s=lengths(4.0, 30.0))
@settings(max_examples=40, deadline=None)
def test_with_and_without_heartbeats_a_call_comes_to_the_same(
    attempts: list[tuple[str, float, list[float], float]], remaining_s: float
) -> None:
    async def play(*, beating: bool) -> tuple[list[Any], dict[str, Any]]:
        reader = Reader()
        ends: list[Any] = []
        for attempt in attempts:
            try:
                script = script_of(attempt, beating=beating)
                ends.append(await reader.read(script, remaining_s=remaining_s))
            except SixhopError as error:
                ends.append((error.reason, error.cause))
        return ends, reader.learned()

    assert in_no_time(play(beating=True)) == in_no_time(play(beating=False))
