"""Holds the log of one run to giving back what it took, in few bytes."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.runs.log import EventLog, Told
from tests.requirements import requirement

EVENTS = st.lists(st.one_of(st.text(min_size=1, max_size=5), st.integers(0, 9)), max_size=30)
"""Pieces of text, and other events."""


def logged(events: list[str | int]) -> tuple[EventLog, list[Told]]:
    """Return a log of these events, and what it has to tell."""
    log, told = EventLog(), []
    for number, event in enumerate(events, 1):
        if isinstance(event, str):
            log.add_text(number, event)
            told.append(Told(number, number, "text_delta", {"text": event}))
        else:
            log.add(number, "thinking", {"state": event})
            told.append(Told(number, number, "thinking", {"state": event}))
    return log, told


@requirement("runs:events")
@given(EVENTS, st.integers(0, 31))
def test_every_event_after_a_number_comes_back_as_it_was(
    events: list[str | int], after: int
) -> None:
    log, told = logged(events)

    assert list(log.told(after)) == told[after:]
    assert log.sequence == len(events)


@requirement("runs:bounded")
@given(EVENTS, st.integers(1, 31))
def test_what_is_dropped_is_the_oldest_and_its_bytes_are_counted(
    events: list[str | int], drops: int
) -> None:
    log, told = logged(events)
    freed = 0
    before = log.byte_count

    for _ in range(drops):
        if log.byte_count:
            freed += log.drop_oldest()

    assert log.byte_count == before - freed
    assert list(log.told()) == told[log.first - 1 :]
    assert log.byte_count > 0 or log.first == len(events) + 1
    assert log.sequence == len(events)


@given(EVENTS)
def test_the_text_is_whole_or_none(events: list[str | int]) -> None:
    log, _ = logged(events)
    whole = "".join(event for event in events if isinstance(event, str))

    assert log.text() == whole
    if events:
        log.drop_oldest()
        assert log.text() is None


def test_text_that_was_voided_is_none_of_the_answer() -> None:
    log = EventLog()
    log.add_text(1, "wrong")
    log.add(2, "restarted", {"reason": "cut"})
    log.add_text(3, "right")

    assert log.text() == "right"


@requirement("runs:words-go")
@given(EVENTS)
def test_without_words_each_stretch_of_text_is_its_length(events: list[str | int]) -> None:
    log, told = logged(events)

    short = log.without_words()

    others = [each for each in told if each.kind != "text_delta"]
    texts = [each.data for each in short.told() if each.kind == "text_delta"]
    assert sum(data["char_count"] for data in texts) == len(log.text() or "")
    assert sum(data["piece_count"] for data in texts) == len(told) - len(others)
    assert all(data["text"] is None for data in texts)
    assert [each for each in short.told() if each.kind != "text_delta"] == others
    assert short.sequence == log.sequence
    assert short.text() is None or not texts


@given(EVENTS)
def test_a_log_is_made_again_of_what_it_told(events: list[str | int]) -> None:
    log, told = logged(events)

    again = EventLog.of(log.told())

    assert list(again.told()) == told
    assert again.sequence == log.sequence
