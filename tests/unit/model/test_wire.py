"""Reads completions from scripted bytes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile

import orjson
import pytest

from services.model.backend import Finish, Piece, Provider, Reasoning, Text, ToolCallPart
from services.model.completion import Completion
from services.model.refusal import Exchange, Reason, failed
from services.model.wire import CompletionWire, is_sign_of_life, joined
from services.runtime.clock import Clock, ManualClock, MonotonicClock
from services.runtime.errors import DependencyFailedError, SixhopError
from tests.requirements import requirement
from tests.unit.runtime.fake_time import START, LoopClock, in_no_time

EXCHANGE = Exchange(Provider(base_url="http://provider/v1", model="m"))
LOST = failed(Reason.CONNECTION_LOST, "connection_lost", "gone")


class ScriptedBytes:
    """Gives pieces of an answer, or fails; without more it is silent for ever."""

    def __init__(self, script: Sequence[bytes | SixhopError]) -> None:
        self._script = list(script)
        self.aborted = False
        self.at_end = False

    async def read(self) -> bytes:
        if self.at_end and not self._script:
            return b""
        if not self._script:
            await asyncio.Event().wait()
        step = self._script.pop(0)
        if isinstance(step, SixhopError):
            raise step
        self.at_end = self._script == [b""] or step == b""
        return step

    async def gather(self, length_s: float) -> None:
        gathered = list(takewhile(lambda step: isinstance(step, bytes) and step, self._script))
        rest = self._script[len(gathered) :]
        if not rest:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), length_s)
        self._script = [b"".join(gathered), *rest] if gathered else rest  # type: ignore[arg-type]

    def abort(self) -> None:
        self.aborted = True


def event(content: str | None = None, finish: str | None = None, **delta: str) -> bytes:
    choice = {"delta": {"content": content, **delta}, "finish_reason": finish}
    return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


def wire(
    script: Sequence[bytes | SixhopError], clock: Clock, *, interval_s: float = 0.0
) -> tuple[CompletionWire, ScriptedBytes]:
    stream = ScriptedBytes(script)
    completion = Completion(EXCHANGE)
    made = CompletionWire(
        stream, completion, clock, until=clock.now() + 0.02, min_event_interval_s=interval_s
    )
    return made, stream


async def read_all(reading: CompletionWire) -> tuple[list[Piece], SixhopError | None]:
    pieces: list[Piece] = []
    try:
        while (piece := await reading.read()) is not None:
            pieces.append(piece)
    except SixhopError as error:
        return pieces, error
    return pieces, None


DONE = b"data: [DONE]\n\n"


async def test_neighbours_of_one_kind_are_joined_and_order_is_kept(clock: ManualClock) -> None:
    together = (
        event(None, reasoning_content="a")
        + event(None, reasoning_content="b")
        + event("c")
        + event("d", "stop")
    )
    reading, _ = wire([together, DONE, b""], clock)

    pieces, _ = await read_all(reading)

    assert pieces[:2] == [Reasoning("ab"), Text("cd")]
    assert isinstance(pieces[2], Finish)


@pytest.mark.parametrize("ending", [[b""], [LOST], [DONE, b""], [DONE, LOST], [DONE], []], ids=str)
async def test_once_the_answer_is_whole_no_ending_takes_that_back(
    clock: ManualClock, ending: list[bytes | SixhopError]
) -> None:
    reading, stream = wire([event("a", "stop"), *ending], clock)

    pieces, error = await read_all(reading)

    assert error is None
    assert isinstance(pieces[-1], Finish)
    # A connection whose end was not seen is not used again.
    assert stream.aborted is (b"" not in ending)


@pytest.mark.parametrize(
    ("ending", "reason"),
    [([b""], "TRUNCATED"), ([DONE, b""], "TRUNCATED"), ([LOST], "CONNECTION_LOST")],
)
async def test_what_came_before_a_fault_is_given_first(
    clock: ManualClock, ending: list[bytes | SixhopError], reason: str
) -> None:
    reading, _ = wire([event("a") + event("b"), *ending], clock)

    pieces, error = await read_all(reading)

    assert pieces == [Text("ab")]
    assert error is not None
    assert error.origin is not None
    assert error.origin.reason == reason


async def test_text_and_fault_that_arrive_together_are_both_told(clock: ManualClock) -> None:
    reading, _ = wire([event("a") + b"data: {half\n\n"], clock)

    pieces, error = await read_all(reading)

    assert pieces == [Text("a")]
    assert error is not None
    assert error.cause == "bad_json"


async def test_an_endless_line_is_refused(clock: ManualClock) -> None:
    reading, _ = wire([b"x" * (1 << 20)] * 3, clock)

    _, error = await read_all(reading)

    assert error is not None
    assert error.cause == "event_too_long"


async def test_the_first_piece_and_the_end_are_not_held_back(clock: ManualClock) -> None:
    script = [event("a"), event("b"), event("c"), event("d", "stop"), DONE, b""]
    reading, _ = wire(script, clock, interval_s=60)

    async with asyncio.timeout(5):
        pieces, _ = await read_all(reading)

    assert pieces[:-1] == [Text("a"), Text("bcd")]
    assert isinstance(pieces[-1], Finish)


async def test_a_piece_is_given_when_its_time_has_come_although_nothing_follows() -> None:
    reading, _ = wire([event("a"), event("b")], MonotonicClock(), interval_s=0.02)

    async with asyncio.timeout(5):
        pieces = [await reading.read(), await reading.read()]

    assert pieces == [Text("a"), Text("b")]


async def test_a_fault_is_not_held_back_either(clock: ManualClock) -> None:
    reading, _ = wire([event("a"), event("b"), LOST], clock, interval_s=60)

    async with asyncio.timeout(5):
        pieces, error = await read_all(reading)

    assert pieces == [Text("a"), Text("b")]
    assert error is LOST


async def test_no_piece_is_given_before_its_time(clock: ManualClock) -> None:
    reading, _ = wire([event("a"), event("b")], clock, interval_s=60)
    await reading.read()

    second = asyncio.create_task(reading.read())
    for _ in range(10):
        await asyncio.sleep(0)

    assert not second.done()
    second.cancel()


def test_parts_of_tool_calls_are_joined_and_tell_the_last_tool() -> None:
    parts = [ToolCallPart("sql", 2), ToolCallPart("sql", 3), ToolCallPart("mail", 4)]

    assert joined([Text("a"), *parts, Text("b")]) == [Text("a"), ToolCallPart("mail", 9), Text("b")]


def test_joining_nothing_gives_nothing() -> None:
    assert joined([]) == []


class Beating(ScriptedBytes):
    """Sends signs of life every four seconds, so many of them, and then nothing."""

    def __init__(self, count: int) -> None:
        super().__init__([b": keep-alive\n\n"] * count)

    async def read(self) -> bytes:
        await LoopClock().sleep(4.0)
        return await super().read()


@requirement("model:two-clocks")
def test_a_connection_whose_signs_of_life_stop_is_dead_and_says_so() -> None:
    async def scenario() -> tuple[list[Piece], SixhopError | None, float]:
        clock = LoopClock()
        stream, completion = Beating(5), Completion(EXCHANGE)
        reading = CompletionWire(
            stream, completion, clock, until=START + 900, min_event_interval_s=0.0
        )
        return *await read_all(reading), clock.now() - START

    pieces, error, after_s = in_no_time(scenario())

    assert pieces == []
    assert isinstance(error, DependencyFailedError)
    assert error.origin is not None
    assert (error.origin.reason, error.cause) == ("CONNECTION_LOST", "bytes_idle")
    assert after_s == pytest.approx(5 * 4.0 + 15.0)


@pytest.mark.parametrize(
    ("chunk", "sign"),
    [
        (b": keep-alive\n\n", True),
        (b"\n\n", True),
        (b"\r\n: x\r\n", True),
        (b"data: {}\n\n", False),
        (b"\n\ndata: {}", False),
        (b"event: ping\n\n", False),
    ],
)
def test_comments_and_empty_lines_are_signs_of_life(chunk: bytes, sign: bool) -> None:
    assert is_sign_of_life(chunk) is sign
