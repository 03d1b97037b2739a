"""Holds measurements of a provider to what it did, and what fits to what was measured."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.model.backend import Finish, Piece, Reasoning, Text
from services.model.pace import WINDOW_S, Pace, PacedWire
from services.runtime.clock import ManualClock
from services.runtime.errors import SelfUnavailableError
from services.runtime.generation import Usage
from tests.requirements import requirement

Step = float | Piece | Exception
"""A pause in seconds, a piece, or how it ends."""
WORD = Text("four" * 5)
"""Five tokens by our estimate."""
WORDS: list[Step] = [0.5, WORD] * 4


class Scripted:
    """Gives pieces after pauses."""

    def __init__(self, clock: ManualClock, script: Sequence[Step]) -> None:
        self._clock = clock
        self._script = list(script)
        self.cancelled = False

    async def read(self) -> Piece | None:
        """Do the script's next step."""
        while self._script:
            step = self._script.pop(0)
            if isinstance(step, float):
                self._clock.advance(step)
            elif isinstance(step, Exception):
                raise step
            else:
                return step
        return None

    def cancel(self) -> None:
        """Close."""
        self.cancelled = True


async def read(pace: Pace, clock: ManualClock, script: Sequence[Step]) -> None:
    """Read one completion to its end."""
    inner = Scripted(clock, script)
    wire = PacedWire(inner, pace, clock, asked_at=clock.now())
    try:
        while await wire.read() is not None:
            pass
    except SelfUnavailableError:
        pass
    wire.cancel()
    wire.cancel()
    assert inner.cancelled


def measured(first_s: float, interval_s: float, count: int = 5) -> tuple[Pace, ManualClock]:
    """Return what is known after some completions that all took the same."""
    clock = ManualClock()
    pace = Pace(clock)
    for _ in range(count):
        pace.note_first(first_s)
        pace.note_rate(100, 100 * interval_s)
    return pace, clock


@requirement("time-to-tokens:measured")
async def test_the_first_token_and_the_rate_after_it_are_measured_apart() -> None:
    clock = ManualClock()
    pace = Pace(clock)

    for _ in range(5):
        await read(pace, clock, [2.0, WORD, *WORDS])

    assert pace.time_to_first_token_s() == pytest.approx(2.0)
    assert pace.tokens_per_second() == pytest.approx(10.0)


@requirement("time-to-tokens:measured")
async def test_the_providers_own_count_is_better_than_our_estimate() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    finish = Finish("m", "stop", Usage(1, 50, estimated=False))

    for _ in range(5):
        await read(pace, clock, [2.0, WORD, *WORDS, finish])

    assert pace.tokens_per_second() == pytest.approx(20.0)


async def test_reasoning_is_written_as_well_and_a_failure_takes_nothing_back() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    thought = Reasoning(WORD.text)
    thoughts: list[Step] = [0.5, thought] * 4

    for _ in range(5):
        await read(pace, clock, [1.0, thought, *thoughts, SelfUnavailableError("gone")])

    assert pace.time_to_first_token_s() == pytest.approx(1.0)
    assert pace.tokens_per_second() == pytest.approx(10.0)


@pytest.mark.parametrize(
    "script",
    [[], [1.0], [1.0, WORD], [1.0, WORD, 9.0], [1.0, WORD, 0.5, WORD], [0.5, *[WORD] * 9]],
)
async def test_what_tells_no_rate_teaches_none(script: list[float | Piece]) -> None:
    clock = ManualClock()
    pace = Pace(clock)

    for _ in range(9):
        await read(pace, clock, script)

    assert pace.tokens_per_second() is None
    assert pace.tokens_within(60.0) is None


@requirement("time-to-tokens:nothing-cut-without-knowledge")
def test_with_too_few_measurements_nothing_is_known() -> None:
    pace, _ = measured(1.0, 0.1, count=4)

    assert (pace.time_to_first_token_s(), pace.tokens_per_second()) == (None, None)
    assert pace.tokens_within(10.0) is None


@requirement("time-to-tokens:nothing-cut-without-knowledge")
def test_what_was_measured_long_ago_is_known_no_more() -> None:
    pace, clock = measured(1.0, 0.1)

    clock.advance(3 * WINDOW_S)

    assert pace.tokens_within(10.0) is None


@requirement("time-to-tokens:fits")
@pytest.mark.parametrize(
    ("length_s", "count"), [(-1.0, 0), (0.0, 0), (0.99, 0), (1.0, 1), (1.1, 2), (11.0, 101)]
)
def test_what_fits_is_the_first_token_and_what_follows_at_the_rate(
    length_s: float, count: int
) -> None:
    pace, _ = measured(1.0, 0.1)

    assert pace.tokens_within(length_s) == pytest.approx(count, abs=1 if length_s > 1 else 0)


@requirement("time-to-tokens:fits")
def test_a_jittery_provider_is_trusted_with_what_nine_of_ten_answers_hold() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    for number in range(20):
        pace.note_first(3.0 if number % 5 == 0 else 1.0)
        pace.note_rate(100, 20.0 if number % 5 == 0 else 10.0)

    assert pace.tokens_within(9.0) == 31
    assert pace.time_to_first_token_s() == 1.0


@requirement("time-to-tokens:fits")
@given(
    first_s=st.floats(0.01, 10.0),
    interval_s=st.floats(0.001, 1.0),
    length_s=st.floats(0.0, 120.0),
    more_s=st.floats(0.0, 10.0),
)
def test_what_fits_can_be_written_in_time_and_grows_with_it(
    first_s: float, interval_s: float, length_s: float, more_s: float
) -> None:
    pace, _ = measured(first_s, interval_s)

    fits = pace.tokens_within(length_s)
    fits_more = pace.tokens_within(length_s + more_s)

    assert fits is not None
    assert fits_more is not None
    assert 0 <= fits <= fits_more
    if fits:
        assert first_s + (fits - 1) * interval_s <= length_s + 1e-6
