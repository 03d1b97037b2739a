"""Writes runs as bytes for a store, and reads them again."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import orjson

from gateway.runs.log import EventLog, Told
from gateway.runs.record import RunRecord, RunWords, Status

_FIELDS = frozenset(field.name for field in fields(RunRecord))


def record_bytes(record: RunRecord) -> bytes:
    """Return a record."""
    return orjson.dumps(record)


def read_record(content: bytes) -> RunRecord:
    """Return the record again; fields of a later release are left out.

    Raises:
        ValueError: it is none.
    """
    try:
        told: dict[str, Any] = orjson.loads(content)
        known = {name: value for name, value in told.items() if name in _FIELDS}
        known["status"] = Status(known["status"])
        return RunRecord(**known)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no record of a run: {error}") from None


def events_bytes(log: EventLog) -> bytes:
    """Return the events of a run."""
    return orjson.dumps([list(told) for told in log.told()])


def read_events(content: bytes) -> EventLog:
    """Return the events again.

    Raises:
        ValueError: they are none.
    """
    try:
        return EventLog.of(_told(orjson.loads(content)))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no events of a run: {error}") from None


def words_bytes(words: RunWords, log: EventLog) -> bytes:
    """Return what a run said: its events hold the text."""
    told = [list(each) for each in log.told()]
    return orjson.dumps([list(words.tool_calls), list(words.sources), told])


def read_words(content: bytes) -> tuple[RunWords, EventLog]:
    """Return what it said again.

    Raises:
        ValueError: it is nothing that a run has said.
    """
    try:
        tool_calls, sources, told = orjson.loads(content)
        log = EventLog.of(_told(told))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no words of a run: {error}") from None
    return RunWords(log.text(), tuple(tool_calls), tuple(sources)), log


def _told(events: Any) -> Iterable[Told]:
    if not isinstance(events, list):
        raise TypeError("no list of events")
    return (Told(*event) for event in events)
