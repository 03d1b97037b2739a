"""Holds what follows a file to its last content that made sense."""

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.access.following import INTERVAL_S, MAX_BYTES, Follower
from services.runtime.background import background
from services.runtime.clock import ManualClock
from services.runtime.telemetry import configure_logging
from tests.requirements import requirement
from tests.waiting import until


@pytest.fixture
def log() -> io.BytesIO:
    """Return what is logged."""
    target = io.BytesIO()
    configure_logging("gateway", "pod", "info", ManualClock(), target)
    return target


def events(log: io.BytesIO) -> list[tuple[str, str]]:
    """Return what was logged: each event, with its problem."""
    lines = map(json.loads, log.getvalue().splitlines())
    return [(line["event"], line.get("problem", "")) for line in lines]


CLOCK = ManualClock()


@pytest_asyncio.fixture
async def follower(tmp_path: Path, log: io.BytesIO) -> AsyncIterator[Follower[int]]:
    """Return what follows a number in a file."""
    following = Follower(tmp_path / "number", int, CLOCK)
    following.look()
    async with background(following.follow_forever()):
        yield following


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Have files that only their owner can write, whatever is usual where the tests run."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def replaced(path: Path, text: str) -> None:
    """Give a file another content at once: who looks between two writes would find half of it."""
    other = path.with_name("other")
    other.write_text(text)
    other.replace(path)


async def looked() -> None:
    """Let the time pass after which the file is looked at again."""
    await asyncio.sleep(0)
    CLOCK.advance(INTERVAL_S)


async def reads(follower: Follower[int], value: int) -> None:
    """Wait until the value is another."""
    async with asyncio.timeout(5):
        while follower.value != value:
            await looked()


@requirement("tenants:revoked-at-once")
async def test_a_change_is_found_within_a_second(follower: Follower[int]) -> None:
    assert follower.value is None
    follower.path.write_text("1")
    await reads(follower, 1)

    replaced(follower.path, "2")

    await reads(follower, 2)
    assert INTERVAL_S <= 0.5


@requirement("tenants:key-file")
@pytest.mark.parametrize("broken", ["x", "", None, "1" * (MAX_BYTES + 1)])
async def test_what_makes_no_sense_leaves_what_was_and_is_told_once(
    follower: Follower[int], log: io.BytesIO, broken: str | None
) -> None:
    replaced(follower.path, "1")
    await reads(follower, 1)

    if broken is None:
        follower.path.unlink()
    else:
        replaced(follower.path, broken)
    told = "access_unreadable"
    async with asyncio.timeout(5):
        while told not in dict(events(log)):
            await looked()
    for _ in range(10):
        await looked()
    assert follower.value == 1

    replaced(follower.path, "3")
    await reads(follower, 3)
    await until(lambda: len(events(log)) == 3)
    assert [event for event, _ in events(log)] == ["access_changed", told, "access_changed"]


@requirement("tenants:key-file")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
async def test_a_file_that_others_can_write_is_read_and_told_once(
    follower: Follower[int], log: io.BytesIO, mode: int
) -> None:
    replaced(follower.path, "1")
    await reads(follower, 1)
    assert "access_writable" not in dict(events(log))

    follower.path.chmod(mode)
    async with asyncio.timeout(5):
        while "access_writable" not in dict(events(log)):
            await looked()
    follower.path.write_text("23")
    await reads(follower, 23)

    warned = [problem for event, problem in events(log) if event == "access_writable"]
    assert len(warned) == 1
    assert "chmod go-w" in warned[0]


async def test_a_file_that_was_never_there_is_no_problem(
    follower: Follower[int], log: io.BytesIO
) -> None:
    for _ in range(10):
        await looked()

    assert follower.value is None
    assert events(log) == []
