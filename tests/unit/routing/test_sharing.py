"""Holds sharing to one warning, one line, and a board that works without it."""

import asyncio

from services.routing.sharing import MISSES, BoardSharing, StoreAwayError
from services.runtime.background import background
from services.runtime.clock import ManualClock
from tests.logged import logged
from tests.requirements import requirement
from tests.unit.routing.boards import A, B, Play


class Shelf:
    """Is a store in memory that several share; away when the test says so."""

    def __init__(self) -> None:
        self.messages: dict[str, bytes] = {}
        self.away = False
        self.exchanges = 0
        self.closed = False

    async def exchange(self, name: str, message: bytes) -> dict[str, bytes]:
        """Put one message there and return the others."""
        self.exchanges += 1
        if self.away:
            raise StoreAwayError("no answer in time")
        self.messages[name] = message
        return {other: told for other, told in self.messages.items() if other != name}

    async def close(self) -> None:
        """Note it."""
        self.closed = True


def sharing(play: Play, shelf: Shelf, name: str) -> BoardSharing:
    """Return one process's sharing."""
    return BoardSharing(play.board, shelf, name, 1.0, play.clock)


@requirement("board:shared")
async def test_a_process_that_has_just_started_knows_what_the_others_know(
    clock: ManualClock,
) -> None:
    old, new, shelf = Play(clock=clock), Play(clock=clock), Shelf()
    old.length_s[B] = 4.0
    old.run(20)
    old.wait(10)
    await sharing(old, shelf, "routing-1").share()

    await sharing(new, shelf, "routing-2").share()

    assert new.board.slowdown(new.record(B), clock.now()) > 3
    assert new.board.slowdown(new.record(A), clock.now()) < 1.5


@requirement("board:shared-away")
async def test_a_store_that_is_away_is_told_once_and_so_is_its_return(clock: ManualClock) -> None:
    play, shelf = Play(clock=clock), Shelf()
    share = sharing(play, shelf, "routing-1")

    with logged() as log:
        await share.share()
        for shelf.away in (True, False):
            for _ in range(5 * MISSES):
                await share.share()

    told = [(line["event"], line["level"]) for line in log.lines()]
    assert told == [
        ("board_shared", "info"),
        ("board_alone", "warning"),
        ("board_shared", "info"),
    ]


@requirement("board:shared-away")
async def test_a_single_missed_exchange_is_no_news(clock: ManualClock) -> None:
    play, shelf = Play(clock=clock), Shelf()
    share = sharing(play, shelf, "routing-1")
    await share.share()

    with logged() as log:
        for _ in range(10):
            for shelf.away in (True, True, False):
                await share.share()

    assert log.events() == []


@requirement("board:shared-away")
async def test_without_the_store_what_others_told_ages_and_ours_goes_on(
    clock: ManualClock,
) -> None:
    old, new, shelf = Play(clock=clock), Play(clock=clock), Shelf()
    old.length_s[B] = 4.0
    old.run(20)
    old.wait(10)
    await sharing(old, shelf, "routing-1").share()
    share = sharing(new, shelf, "routing-2")
    await share.share()

    shelf.away = True
    for _ in range(10):
        clock.advance(30)
        await share.share()

    assert new.board.slowdown(new.record(B), clock.now()) < 1.5
    assert new.run(10).total() == 200


async def test_exchanges_go_on_in_their_rhythm_until_the_end(clock: ManualClock) -> None:
    play, shelf = Play(clock=clock), Shelf()

    async with background(sharing(play, shelf, "routing-1").share_forever()):
        for _ in range(50):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            clock.advance(0.1)

    assert 4 <= shelf.exchanges <= 6
    assert shelf.closed
