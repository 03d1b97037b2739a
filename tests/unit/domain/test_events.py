"""Holds the events of a run to their order between the agent and the stream."""

import asyncio
import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from services.domain.events import (
    MAX_JOINED_CHARS,
    Degraded,
    Event,
    EventBuffer,
    Restarted,
    StepStarted,
    TextDelta,
)
from tests.unit.runtime.fake_time import START, in_no_time

EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(min_size=1, max_size=5)),
        st.builds(Restarted, st.just("why")),
        st.builds(StepStarted, st.integers(1, 9), st.just("sql"), st.just("asks")),
    ),
    max_size=12,
)


def all_of(buffer: EventBuffer) -> list[Event]:
    """Take everything."""
    events = []
    while (event := buffer.take()) is not None:
        events.append(event)
    return events


def test_nothing_is_nothing() -> None:
    assert EventBuffer().take() is None


def test_texts_are_joined_only_as_far_as_a_message_holds() -> None:
    buffer = EventBuffer()
    for _ in range(3):
        buffer.put(TextDelta("x" * (MAX_JOINED_CHARS // 2)))

    assert [len(event.text) for event in all_of(buffer) if isinstance(event, TextDelta)] == [
        MAX_JOINED_CHARS,
        MAX_JOINED_CHARS // 2,
    ]


def test_texts_that_follow_each_other_come_as_one() -> None:
    buffer = EventBuffer()
    for event in (TextDelta("a"), TextDelta("b"), Restarted("x"), TextDelta("c"), TextDelta("d")):
        buffer.put(event)

    assert all_of(buffer) == [TextDelta("ab"), Restarted("x"), TextDelta("cd")]


@given(EVENTS)
def test_no_event_and_no_text_is_lost_or_overtaken(events: list[Event]) -> None:
    buffer = EventBuffer()
    for event in events:
        buffer.put(event)

    taken = all_of(buffer)

    assert _flat(taken) == _flat(events)
    assert not any(
        isinstance(one, TextDelta) and isinstance(two, TextDelta)
        for one, two in itertools.pairwise(taken)
    )


def test_who_waits_is_woken_by_an_event_and_by_a_call() -> None:
    async def scenario() -> list[bool]:
        buffer, woken = EventBuffer(), []
        wakes: list[Callable[[], None]] = [
            lambda: buffer.put(Degraded("skip", "chart", "late")),
            buffer.wake,
        ]
        for wake in wakes:
            waiting = asyncio.ensure_future(buffer.wait(10.0))
            await asyncio.sleep(0)
            wake()
            woken.append(await waiting)
            buffer.take()
        return woken

    assert in_no_time(scenario()) == [True, True]


def test_who_waits_in_vain_hears_so_when_the_time_is_over() -> None:
    async def scenario() -> tuple[bool, float]:
        heard = await EventBuffer().wait(10.0)
        return heard, asyncio.get_running_loop().time() - START

    assert in_no_time(scenario()) == (False, 10.0)


def test_what_is_there_already_is_not_waited_for() -> None:
    async def scenario() -> bool:
        buffer = EventBuffer()
        buffer.put(Restarted("x"))
        return await buffer.wait(0.0)

    assert in_no_time(scenario())


def _flat(events: list[Event]) -> list[object]:
    flat: list[object] = []
    for event in events:
        flat.extend(event.text if isinstance(event, TextDelta) else [event])
    return flat
