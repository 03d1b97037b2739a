"""Holds heartbeats to coming in time, to losing nothing and to ending with what they tell of."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.model.backend import Piece, Reasoning, Text
from services.model.heartbeats import with_heartbeats
from services.model.vitals import VITALS
from services.runtime.errors import SelfUnavailableError
from services.runtime.generation import Wait
from services.runtime.heartbeat import HeartbeatSettings
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

CLOCK = LoopClock()
Step = float | Piece | BaseException
"""A pause in seconds, a piece, or how it ends."""


@dataclass(slots=True)
class Generation:
    """Is a generation that does what the test says."""

    script: Sequence[Step]
    open_s: float = 0.0
    log: list[str] = field(default_factory=list)
    given: int = 0

    @asynccontextmanager
    async def opening(self) -> AsyncIterator[AsyncIterator[Piece]]:
        """Open it."""
        try:
            self.log.append("opens")
            await CLOCK.sleep(self.open_s)
            VITALS.get().reach()
            yield self._pieces()
            self.log.append("ended")
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        finally:
            self.log.append("closed")

    async def _pieces(self) -> AsyncIterator[Piece]:
        for step in self.script:
            if isinstance(step, float):
                await CLOCK.sleep(step)
            elif isinstance(step, BaseException):
                raise step
            else:
                self.given += 1
                yield step


Told = tuple[float, Piece | Wait]


async def told(generation: Generation, *, time_s: float = 30.0, take: int = 1000) -> list[Told]:
    """Return what is told of a generation, each with its time; some are enough."""
    pieces = with_heartbeats(generation.opening(), HeartbeatSettings(), CLOCK, START + time_s)
    heard: list[Told] = []
    async with aclosing(pieces):
        async for piece in pieces:
            heard.append((round(CLOCK.now() - START, 6), piece))
            if len(heard) == take:
                break
    return heard


def beats(heard: list[Told]) -> list[tuple[float, str]]:
    """Return the heartbeats among it: their times and states."""
    return [(at, piece.state) for at, piece in heard if isinstance(piece, Wait)]


@requirement("heartbeat:tells-what-is-waited-for")
def test_silence_is_told_after_a_fifth_of_a_second_and_then_every_second() -> None:
    heard = in_no_time(told(Generation([3.0, Text("a")])))

    assert beats(heard) == [(0.2, "silent"), (1.2, "silent"), (2.2, "silent")]
    first = heard[0][1]
    assert isinstance(first, Wait)
    assert (first.silence_s, first.remaining_s) == pytest.approx((0.2, 29.8))
    assert heard[-1] == (3.0, Text("a"))


@requirement("heartbeat:tells-what-is-waited-for")
def test_opening_is_told_as_well_and_reasoning_is_told_from_silence() -> None:
    script: list[Step] = [0.5, Reasoning("hm"), 0.7, Text("a"), 1.5, Text("b")]

    heard = in_no_time(told(Generation(script, open_s=0.3)))

    assert beats(heard) == [(0.2, "queued"), (1.2, "reasoning"), (2.2, "silent")]
    # Counted from the last content, and not from the last heartbeat.
    silences = [piece.silence_s for _, piece in heard if isinstance(piece, Wait)]
    assert silences == pytest.approx([0.2, 0.4, 0.7])


def test_a_slow_writer_is_accompanied_once_a_second() -> None:
    script: list[Step] = [0.4, Text("a")] * 10

    heard = in_no_time(told(Generation(script)))

    assert len(beats(heard)) == 4


def test_a_quick_writer_is_not_accompanied() -> None:
    heard = in_no_time(told(Generation([0.19, Text("a")] * 20)))

    assert [piece for _, piece in heard] == [Text("a")] * 20


@requirement("heartbeat:fits-every-limit")
def test_near_the_end_of_the_time_heartbeats_come_closer() -> None:
    heard = in_no_time(told(Generation([1.0, Text("a")]), time_s=1.1))

    at = [at for at, _ in beats(heard)]
    assert len(at) > 3
    # The caller waits for 0.6 of what is left.
    assert all(after - now <= 0.6 * (1.1 - now) for now, after in itertools.pairwise(at))


@requirement("heartbeat:tells-what-is-waited-for")
def test_heartbeats_end_with_the_generations_failure() -> None:
    generation = Generation([0.5, SelfUnavailableError("gone")])

    async def scenario() -> float:
        with pytest.raises(SelfUnavailableError):
            await told(generation)
        assert len(asyncio.all_tasks()) == 1
        return CLOCK.now() - START

    assert in_no_time(scenario()) == pytest.approx(0.5)
    assert generation.log == ["opens", "closed"]


def test_what_came_before_a_failure_is_given_before_it() -> None:
    generation = Generation([Text("a"), Text("b"), SelfUnavailableError("gone")])
    heard: list[Piece | Wait] = []

    async def scenario() -> None:
        async for piece in with_heartbeats(
            generation.opening(), HeartbeatSettings(), CLOCK, START + 30
        ):
            heard.append(piece)
            await CLOCK.sleep(1.0)

    with pytest.raises(SelfUnavailableError):
        in_no_time(scenario())

    assert heard == [Text("a"), Text("b")]


@requirement("heartbeat:tells-what-is-waited-for")
@pytest.mark.parametrize("end", [[], [SelfUnavailableError("gone")]], ids=["well", "badly"])
@pytest.mark.parametrize("sending_s", [0.0, 0.05])
def test_an_end_that_comes_while_a_piece_is_sent_is_told_at_once(
    end: list[Step], sending_s: float
) -> None:
    async def scenario() -> float:
        generation = Generation([Text("a"), *end])
        with suppress(SelfUnavailableError):
            async for _ in with_heartbeats(
                generation.opening(), HeartbeatSettings(), CLOCK, START + 30
            ):
                await CLOCK.sleep(sending_s)
        return CLOCK.now() - START

    assert in_no_time(scenario()) == pytest.approx(sending_s)


def test_a_reader_that_leaves_closes_the_generation_at_once() -> None:
    generation = Generation([Text("a"), 60.0])

    assert in_no_time(told(generation, take=1)) == [(0.0, Text("a"))]
    assert generation.log == ["opens", "cancelled", "closed"]


@pytest.mark.parametrize("after_s", [0.1, 0.2, 0.5, 1.2])
def test_a_cancel_while_waiting_closes_the_generation_before_it_goes_on(after_s: float) -> None:
    generation = Generation([60.0], open_s=0.3)

    async def scenario() -> float:
        task = asyncio.create_task(told(generation))
        await CLOCK.sleep(after_s)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert len(asyncio.all_tasks()) == 1
        return CLOCK.now() - START

    assert in_no_time(scenario()) == pytest.approx(after_s)
    assert generation.log == ["opens", "cancelled", "closed"]


def test_a_reader_that_is_slow_is_not_run_over() -> None:
    generation = Generation([Text("a")] * 50)

    async def scenario() -> int:
        pieces = with_heartbeats(generation.opening(), HeartbeatSettings(), CLOCK, START + 30)
        async with aclosing(pieces):
            await anext(pieces)
            await CLOCK.sleep(10.0)
            return generation.given

    # One is read, one waits to be read, and one waits for its place.
    assert in_no_time(scenario()) == 3


@given(
    waits=st.lists(st.floats(0.0, 3.0), max_size=20),
    reads=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=5),
)
def test_every_piece_is_given_once_and_in_order(waits: list[float], reads: list[float]) -> None:
    script: list[Step] = []
    for number, wait_s in enumerate(waits):
        script += [wait_s, Text(str(number))]
    generation = Generation(script)

    async def scenario() -> list[str]:
        heard = []
        pieces = with_heartbeats(generation.opening(), HeartbeatSettings(), CLOCK, START + 999)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Text):
                    heard.append(piece.text)
                await CLOCK.sleep(reads[len(heard) % len(reads)])
        return heard

    assert in_no_time(scenario()) == [str(number) for number in range(len(waits))]
    assert generation.log == ["opens", "ended", "closed"]
