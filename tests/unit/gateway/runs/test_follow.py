"""Holds the readers of a run to having every event once, or to being told what is missing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.run_answer import event_chunks
from gateway.runs import run as run_module
from gateway.runs.reading import RunReader
from gateway.runs.run import Run
from services.runtime.clock import ManualClock
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, finished, kept, text

WAIT_S = 5.0
NOWHERE = ManualClock()
READER = RunReader(Gateway(NOWHERE).memory, NOWHERE)
"""Finds nothing: the runs here are all of this process."""
Read = list[tuple[int | None, str, dict[str, object]]]


@pytest.fixture(autouse=True)
def _never_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a reader wait for ever that nobody tells of an event."""
    monkeypatch.setattr(run_module, "LOOK_S", 3600.0)


def read(chunk: bytes) -> Read:
    """Return the events of a chunk: number, name, data."""
    found: Read = []
    for block in chunk.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        number = int(fields["id"]) if "id" in fields else None
        found.append((number, fields["event"], orjson.loads(fields["data"])))
    return found


async def read_all(run: Run, after: int = 0) -> Read:
    """Return what a reader has of a run until its end."""
    async with aclosing(event_chunks(run, after, READER)) as chunks, asyncio.timeout(WAIT_S):
        return [event async for chunk in chunks for event in read(chunk)]


async def settle() -> None:
    """Let whatever is ready be done, so that all readers wait."""
    for _ in range(10):
        await asyncio.sleep(0)


async def next_of(chunks: AsyncGenerator[bytes, None]) -> Read:
    """Return the next events of a reader."""
    return read(await asyncio.wait_for(anext(chunks), WAIT_S))


@requirement("runs:events")
async def test_a_reader_has_each_event_as_it_comes_and_then_the_end(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()
    gateway.tell(inbound, text("a"))

    async with aclosing(event_chunks(kept(inbound), 0, READER)) as chunks:
        first = await next_of(chunks)
        waiting = asyncio.create_task(next_of(chunks))
        await settle()
        gateway.tell(inbound, text("b"))
        second = await waiting
        gateway.tell(inbound, finished())
        gateway.book.after(inbound, None)
        rest = [event async for chunk in chunks for event in read(chunk)]

    assert [(number, name) for number, name, _ in first + second + rest] == [
        (1, "text_delta"),
        (2, "text_delta"),
        (3, "finished"),
        (4, "ended"),
    ]
    assert second[0][2] == {"sequence": 2, "at_ms": 0, "kind": "text_delta", "text": "b"}
    assert rest[-1][2]["status"] == "ok"


@requirement("runs:events")
async def test_readers_do_not_disturb_each_other(clock: ManualClock) -> None:
    gateway = Gateway(clock)
    inbound = gateway.begin()
    run = kept(inbound)
    gateway.tell(inbound, text("a"))

    readers = [asyncio.create_task(read_all(run, after)) for after in (0, 0, 1)]
    left = event_chunks(run, 0, READER)
    await next_of(left)
    await left.aclose()
    gateway.tell(inbound, text("b"))
    gateway.book.after(inbound, None)
    found = await asyncio.gather(*readers)

    assert [[number for number, _, _ in each] for each in found] == [[1, 2, 3], [1, 2, 3], [2, 3]]


@requirement("runs:events")
@given(st.lists(st.text(min_size=1, max_size=4), max_size=12), st.integers(0, 14))
async def test_whoever_comes_back_has_each_event_exactly_once(words: list[str], left: int) -> None:
    clock = ManualClock()
    gateway = Gateway(clock)
    run = gateway.ended("r1", *[text(word) for word in words])

    whole = await read_all(run)
    again = await read_all(run, left)

    assert again == [event for event in whole if event[0] is None or event[0] > left] or (
        left > run.log.sequence and len(again) == 1
    )


@requirement("runs:events")
async def test_what_is_gone_when_a_reader_comes_is_told(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_run_bytes=10_000)
    run = gateway.ended("r1", *[text("x" * 500) for _ in range(40)])
    first = run.log.first

    found = await read_all(run, 3)

    assert found[0] == (
        None,
        "gap",
        {"first_missing": 4, "last_missing": first - 1, "reason": "evicted"},
    )
    assert [number for number, _, _ in found[1:]] == list(range(first, 42))


@requirement("runs:events")
async def test_a_reader_that_is_too_slow_is_told_what_it_missed_and_ends(
    clock: ManualClock,
) -> None:
    gateway = Gateway(clock, max_run_bytes=10_000)
    inbound = gateway.begin()
    gateway.tell(inbound, text("a"))
    chunks = event_chunks(kept(inbound), 0, READER)
    await next_of(chunks)

    for _ in range(40):
        gateway.tell(inbound, text("x" * 500))
    rest = [event async for chunk in chunks for event in read(chunk)]

    last_missing = kept(inbound).log.first - 1
    assert rest == [
        (None, "gap", {"first_missing": 2, "last_missing": last_missing, "reason": "slow_reader"})
    ]


@requirement("runs:events", "runs:bounded")
async def test_a_reader_of_a_run_that_goes_is_told(clock: ManualClock) -> None:
    gateway = Gateway(clock, max_count=1)
    inbound = gateway.begin("r1")
    reader = asyncio.create_task(read_all(kept(inbound)))
    await settle()

    gateway.begin("r2")

    assert [name for _, name, _ in await reader] == ["gone"]


@requirement("runs:words-go", "runs:events")
@pytest.mark.parametrize(("after", "numbers"), [(0, [2, 3, 4]), (1, [2, 3, 4]), (2, [3, 4])])
async def test_without_words_the_events_are_still_there(
    clock: ManualClock, after: int, numbers: list[int]
) -> None:
    gateway = Gateway(clock)
    run = gateway.ended("r1", text("My "), text("secret."), finished())
    clock.advance(301.0)
    gateway.memory.tidy()

    found = await read_all(run, after)

    assert [number for number, _, _ in found] == numbers
    assert "secret" not in str(found)
    assert found[-1][2]["answer"] is None
