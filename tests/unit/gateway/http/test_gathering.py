"""Holds that writes go out together where they may, and nothing is lost or put out of order."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from gateway.http.gathering import GATHER_S, MAX_GATHERED_BYTES, Gathering
from tests.requirements import requirement

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
pytestmark = requirement("http:writes-gather")


class Sent:
    """Keeps what a transport was told to do."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.calls: list[Any] = []

    def write(self, data: bytes) -> None:
        """Keep bytes."""
        self.calls.append(data)

    def write_eof(self) -> None:
        """Keep that nothing follows."""
        self.calls.append("eof")

    def close(self) -> None:
        """Keep that it is closed."""
        self.calls.append("close")

    def abort(self) -> None:
        """Keep that it is cut."""
        self.calls.append("abort")

    def is_closing(self) -> bool:
        """Tell whether it is closed or cut."""
        return "close" in self.calls or "abort" in self.calls


async def test_a_head_goes_out_with_the_first_of_its_body() -> None:
    sent, transport = made()
    transport.write(HEAD)
    transport.write(b"one")
    transport.write(b"two")
    await a_turn()

    assert sent.calls == [HEAD + b"one", b"two"]


async def test_a_head_that_nothing_follows_goes_out_in_the_same_turn() -> None:
    sent, transport = made()
    transport.write(HEAD)
    assert sent.calls == []
    await a_turn()

    assert sent.calls == [HEAD]


@pytest.mark.parametrize(("end", "told"), [("write_eof", "eof"), ("close", "close")])
async def test_a_head_that_waits_goes_out_before_the_end(end: str, told: str) -> None:
    sent, transport = made()
    transport.write(HEAD)
    getattr(transport, end)()
    await a_turn()

    assert sent.calls == [HEAD, told]


async def test_two_heads_in_one_turn_keep_their_order() -> None:
    sent, transport = made()
    transport.write(HEAD)
    transport.write(HEAD)
    transport.write(b"body")
    await a_turn()

    assert b"".join(sent.calls) == HEAD + HEAD + b"body"


async def test_nothing_is_written_to_a_connection_that_was_cut() -> None:
    sent, transport = made()
    transport.write(HEAD)
    transport.abort()
    await a_turn()

    assert sent.calls == ["abort"]


class Loop:
    """Is a loop whose time a test moves, and whose turns it takes."""

    def __init__(self) -> None:
        """Begin at an instant."""
        self.now = 100.0
        self._due: list[tuple[float, asyncio.Handle]] = []

    def time(self) -> float:
        """Return the instant."""
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.Handle:
        """Keep what is to be called."""
        handle = asyncio.Handle(callback, (), cast(asyncio.AbstractEventLoop, self))
        self._due.append((when, handle))
        return handle

    def call_soon(self, callback: Callable[[], None]) -> asyncio.Handle:
        """Keep what is to be called next."""
        return self.call_at(self.now, callback)

    def get_debug(self) -> bool:
        """Tell nothing more."""
        return False

    def turn(self, after_s: float = 0.0) -> None:
        """Call what is due after a time."""
        self.now += after_s
        due = [handle for when, handle in self._due if when <= self.now]
        self._due = [(when, handle) for when, handle in self._due if when > self.now]
        for handle in due:
            if not handle.cancelled():
                handle._run()


def test_the_first_event_goes_out_at_once_and_those_that_follow_at_once_together() -> None:
    loop, sent, transport = streaming()
    for event in (b"1", b"2", b"3"):
        transport.write(event)
        loop.turn(0.001)
    assert sent.calls == [b"1"]
    loop.turn(GATHER_S)

    assert sent.calls == [b"1", b"23"]


def test_events_that_come_slowly_do_not_wait() -> None:
    loop, sent, transport = streaming()
    for event in (b"1", b"2", b"3"):
        transport.write(event)
        loop.turn(GATHER_S)

    assert sent.calls == [b"1", b"2", b"3"]


def test_the_last_event_does_not_wait() -> None:
    _, sent, transport = streaming()
    transport.write(b"1")
    transport.write(b"the end")
    transport.gather(False)
    transport.write(b"another answer")

    assert sent.calls == [b"1", b"the end", b"another answer"]


def test_what_waits_is_bounded() -> None:
    _, sent, transport = streaming()
    transport.write(b"1")
    transport.write(b"2" * (MAX_GATHERED_BYTES - 1))
    assert len(sent.calls) == 1
    transport.write(b"3")

    assert [len(data) for data in sent.calls] == [1, MAX_GATHERED_BYTES]


def test_nothing_that_waits_is_written_to_a_connection_that_was_cut() -> None:
    loop, sent, transport = streaming()
    transport.write(b"1")
    transport.write(b"2")
    transport.abort()
    loop.turn(1.0)

    assert sent.calls == [b"1", "abort"]


def streaming() -> tuple[Loop, Sent, Gathering]:
    """Return a loop, what is really sent, and a transport whose writes gather."""
    loop, sent = Loop(), Sent()
    transport = Gathering(cast(asyncio.Transport, sent), cast(asyncio.AbstractEventLoop, loop))
    transport.gather(True)
    return loop, sent, transport


def made() -> tuple[Sent, Gathering]:
    """Return what is really sent, and the transport that sends it."""
    sent = Sent()
    return sent, Gathering(cast(asyncio.Transport, sent), asyncio.get_running_loop())


async def a_turn() -> None:
    """Let the loop do what is due."""
    await asyncio.sleep(0)
