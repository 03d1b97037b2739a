"""Holds that heads go out with what follows them, and nothing is lost or put out of order."""

import asyncio
from typing import Any, cast

import pytest

from gateway.http.one_write import OneWrite
from tests.requirements import requirement

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
pytestmark = requirement("http:one-write")


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


def made() -> tuple[Sent, OneWrite]:
    """Return what is really sent, and the transport that sends it."""
    sent = Sent()
    return sent, OneWrite(cast(asyncio.Transport, sent), asyncio.get_running_loop())


async def a_turn() -> None:
    """Let the loop do what is due."""
    await asyncio.sleep(0)
