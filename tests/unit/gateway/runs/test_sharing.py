"""Holds the writing of runs to a store to being in nobody's way, whatever the store does."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.runs.run import Run
from gateway.runs.sharing import BATCH_COUNT, MAX_WAITING, Outbox, StoreAwayError
from gateway.runs.stored import (
    events_bytes,
    read_events,
    read_record,
    read_words,
    record_bytes,
    words_bytes,
)
from gateway.runs.wanted import Wanted
from services.runtime.clock import ManualClock
from tests.logged import logged
from tests.requirements import requirement
from tests.unit.gateway.runs.made import Gateway, file, finished, kept, text, thinking

TURNS = 20
"""Enough turns of the loop for whatever is ready to be done."""


class Store:
    """Keeps what it is given, unless it is away."""

    def __init__(self) -> None:
        """Start empty."""
        self.batches: list[list[str]] = []
        self.away = False
        self.closed = False

    async def write(self, runs: Sequence[Run]) -> None:
        if self.away:
            raise StoreAwayError("gone")
        self.batches.append([f"{run.record.run_id} {run.record.status}" for run in runs])

    async def find(self, tenant: str, run_id: str) -> Run | None:
        return None

    async def list(self, wanted: Wanted) -> Sequence[Run]:
        return []

    async def file(self, tenant: str, run_id: str, name: str) -> bytes | None:
        return None

    async def close(self) -> None:
        self.closed = True


async def later(clock: ManualClock, length_s: float) -> None:
    """Let time pass, and everything be done that is due."""
    for _ in range(round(length_s / 0.1)):
        clock.advance(0.1)
        for _ in range(TURNS):
            await asyncio.sleep(0)


@requirement("runs:shared")
async def test_a_run_is_written_as_it_is_by_then_and_once(clock: ManualClock) -> None:
    store, gateway = Store(), Gateway(clock)
    outbox = Outbox(store, clock)

    async with outbox.writing():
        await asyncio.sleep(0)
        inbound = gateway.begin("r1")
        outbox.put(kept(inbound))
        await later(clock, 0.2)
        gateway.book.after(inbound, None)
        outbox.put(kept(inbound))
        other = gateway.ended("r2")
        outbox.put(other)
        outbox.put(other)
        await later(clock, 0.2)

    assert store.batches == [["r1 running"], ["r1 ok", "r2 ok"]]
    assert store.closed


@requirement("runs:never-in-the-way", "runs:bounded")
async def test_a_store_that_is_away_is_waited_for_by_nobody(clock: ManualClock) -> None:
    store, gateway = Store(), Gateway(clock, max_count=10_000)
    store.away = True

    outbox = Outbox(store, clock)
    with logged("gateway") as log:
        async with outbox.writing():
            await asyncio.sleep(0)
            for number in range(MAX_WAITING + 10):
                outbox.put(gateway.ended(f"{number}"))
            await later(clock, 3.0)
            store.away = False
            await later(clock, 1.1)
        events = log.events()

    assert events == ["runs_alone", "runs_shared"]
    written = [name.split()[0] for batch in store.batches for name in batch]
    assert sorted(map(int, written)) == list(range(10, MAX_WAITING + 10))
    assert max(map(len, store.batches)) <= BATCH_COUNT


@requirement("runs:never-in-the-way")
async def test_what_cannot_be_written_keeps_nothing_else_from_it(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, gateway = Store(), Gateway(clock)
    outbox, write = Outbox(store, clock), store.write

    async def broken(runs: Sequence[Run]) -> None:
        monkeypatch.setattr(store, "write", write)
        raise RuntimeError("a defect")

    monkeypatch.setattr(store, "write", broken)
    async with outbox.writing():
        await asyncio.sleep(0)
        outbox.put(gateway.ended("poison"))
        await later(clock, 0.2)
        outbox.put(gateway.ended("next"))
        await later(clock, 0.2)

    assert store.batches == [["next ok"]]


@requirement("runs:shared")
async def test_what_is_left_is_written_when_the_gateway_stops(clock: ManualClock) -> None:
    store = Store()
    outbox = Outbox(store, clock)
    async with outbox.writing():
        outbox.put(Gateway(clock).ended("last"))

    assert store.batches == [["last ok"]]


async def test_a_run_that_is_gone_by_then_is_not_written(clock: ManualClock) -> None:
    store, gateway = Store(), Gateway(clock, max_count=1)
    outbox = Outbox(store, clock)

    async with outbox.writing():
        outbox.put(gateway.ended("gone"))
        outbox.put(gateway.ended("there"))

    assert store.batches == [["there ok"]]


@requirement("runs:shared")
def test_a_run_comes_back_from_bytes_as_it_was(clock: ManualClock) -> None:
    run = Gateway(clock).ended(
        "r1", text("Be"), text("cause."), thinking(), finished(file(), sources=["s"])
    )
    record = run.told_record()
    words = run.words()
    assert words is not None

    said, log = read_words(words_bytes(words, run.log))

    assert read_record(record_bytes(record)) == record
    assert record.hops
    assert (said, said.text) == (words, "Because.")
    assert list(log.told()) == list(run.log.told())
    assert list(read_events(events_bytes(log.without_words())).told()) == list(
        run.log.without_words().told()
    )


@pytest.mark.parametrize("content", [b"", b"7", b"{}", b"[1]", b'{"status":"odd"}', b"\xff"])
def test_bytes_that_no_gateway_wrote_are_none_of_a_run(content: bytes) -> None:
    for read in (read_record, read_events, read_words):
        with pytest.raises(ValueError, match=r".*"):
            read(content)


def test_a_record_of_a_later_release_can_be_read(clock: ManualClock) -> None:
    record = Gateway(clock).ended().told_record()

    assert read_record(record_bytes(record)[:-1] + b',"new_field":1}') == record
