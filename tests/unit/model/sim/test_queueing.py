"""Shows that slots are lent in order, and that none is lost."""

import asyncio

import pytest

from services.model.sim.queueing import QueueFullError, Slots


async def test_slots_are_lent_in_the_order_of_arrival() -> None:
    slots = Slots(limit=1, max_queued=2)
    first, second, third = slots.enter(), slots.enter(), slots.enter()
    assert (first.done(), second.done(), third.done()) == (True, False, False)

    slots.leave(first)

    assert (second.done(), third.done()) == (True, False)
    assert (slots.inflight, slots.queued) == (1, 1)


async def test_one_more_than_may_wait_is_refused() -> None:
    slots = Slots(limit=1, max_queued=1)
    places = [slots.enter(), slots.enter()]

    with pytest.raises(QueueFullError):
        places.append(slots.enter())

    assert len(places) == 2


async def test_without_places_to_wait_it_is_a_limit_of_concurrency() -> None:
    slots = Slots(limit=1, max_queued=0)
    place = slots.enter()

    with pytest.raises(QueueFullError):
        place = slots.enter()

    slots.leave(place)
    assert slots.enter().done()


async def test_a_waiter_that_leaves_gives_its_place_to_the_next() -> None:
    slots = Slots(limit=1, max_queued=2)
    first, second, third = slots.enter(), slots.enter(), slots.enter()

    slots.leave(second)
    slots.leave(first)

    assert third.done()
    assert (slots.inflight, slots.queued) == (1, 0)


async def test_a_waiter_that_is_cancelled_takes_no_slot_with_it() -> None:
    slots = Slots(limit=1, max_queued=2)
    first, second, third = slots.enter(), slots.enter(), slots.enter()

    async def wait() -> None:
        try:
            await second
        finally:
            slots.leave(second)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    slots.leave(first)
    await asyncio.wait({waiting})

    assert third.done()
    assert (slots.inflight, slots.queued) == (1, 0)
    slots.leave(third)
    assert slots.inflight == 0


async def test_more_slots_admit_who_waits_and_fewer_take_none_away() -> None:
    slots = Slots(limit=1, max_queued=5)
    places = [slots.enter() for _ in range(4)]

    slots.resize(3)
    assert [place.done() for place in places] == [True, True, True, False]

    slots.resize(1)
    slots.leave(places[0])
    assert not places[3].done()
    assert slots.inflight == 2
