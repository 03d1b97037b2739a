"""Holds the events of one run, text packed, within a number of bytes."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, NamedTuple

import orjson

from gateway.runs.event_json import RESTARTED, TEXT, without_words

EVENT_BYTES = 300
"""What an event other than text takes beside its words."""
PART_BYTES = 12
"""What a piece of text takes beside its words: a place in a list, and its instant."""


class Told(NamedTuple):
    """Is one event as its readers get it."""

    sequence: int
    """Counts the events of the run from 1."""
    at_ms: int
    """When it came, from the start of the run."""
    kind: str
    data: Mapping[str, Any]
    """What it says, as `event_json` writes it."""


class _Words:
    """Holds pieces of text that came one after the other."""

    __slots__ = ("at", "first", "parts")

    def __init__(self, first: int) -> None:
        self.first = first
        self.parts: list[str] = []
        self.at = array("I")

    @property
    def last(self) -> int:
        return self.first + len(self.parts) - 1

    def told(self, after: int) -> Iterator[Told]:
        for place in range(max(0, after + 1 - self.first), len(self.parts)):
            text = {"text": self.parts[place]}
            yield Told(self.first + place, self.at[place], TEXT, text)


@dataclass(slots=True)
class _Fact:
    """Holds an event that is no text, as JSON: a dictionary would take ten times as much."""

    first: int
    last: int
    """The same, unless it stands for a whole stretch of text."""
    at_ms: int
    kind: str
    content: bytes

    def told(self, after: int) -> Iterator[Told]:
        if after < self.last:
            yield Told(self.last, self.at_ms, self.kind, orjson.loads(self.content))


class EventLog:
    """Is what a run has told so far; the oldest goes when there is too much of it.

    A piece of text costs an append to a list and one to an array.
    """

    __slots__ = ("_parts", "byte_count", "sequence")

    def __init__(self) -> None:
        """Start with nothing."""
        self._parts: list[_Words | _Fact] = []
        self.byte_count = 0
        """What is kept takes, about."""
        self.sequence = 0
        """The number of the last event."""

    @property
    def first(self) -> int:
        """Return the number of the first event that is there; without any, of the next one."""
        return self._parts[0].first if self._parts else self.sequence + 1

    def add_text(self, at_ms: int, text: str) -> int:
        """Take a piece of text; return how many bytes more there are."""
        self.sequence += 1
        last = self._parts[-1] if self._parts else None
        if type(last) is not _Words:
            last = _Words(self.sequence)
            self._parts.append(last)
        last.parts.append(text)
        last.at.append(at_ms)
        taken = getsizeof(text) + PART_BYTES
        self.byte_count += taken
        return taken

    def add(
        self, at_ms: int, kind: str, data: Mapping[str, Any], sequence: int | None = None
    ) -> int:
        """Take any other event; return how many bytes more there are.

        Args:
            at_ms: when it came, from the start of the run.
            kind: which event it is.
            data: what it says; may stand for a whole stretch of text.
            sequence: its number; without one, the next.
        """
        self.sequence = last = self.sequence + 1 if sequence is None else sequence
        first = last + 1 - data.get("piece_count", 1)
        content = orjson.dumps(data)
        self._parts.append(_Fact(first, last, at_ms, kind, content))
        taken = len(content) + EVENT_BYTES
        self.byte_count += taken
        return taken

    def told(self, after: int = 0) -> Iterator[Told]:
        """Yield the events that are there, from the one after a number on.

        Nothing may be added in between; what is yielded has been made by then.
        """
        place = bisect_right(self._parts, after, key=lambda part: part.first)
        for part in self._parts[max(0, place - 1) :]:
            yield from part.told(after)

    def text(self) -> str | None:
        """Return the text of the answer so far; None when a part of it is gone."""
        if self.first != 1:
            return None
        texts: list[str] = []
        for part in self._parts:
            if isinstance(part, _Words):
                texts += part.parts
            elif part.kind == RESTARTED:
                texts.clear()
            elif part.kind == TEXT:
                return None
        return "".join(texts)

    def drop_oldest(self) -> int:
        """Forget the oldest event, or half of the text that came first; return the bytes."""
        part = self._parts[0]
        if isinstance(part, _Fact):
            del self._parts[0]
            freed = len(part.content) + EVENT_BYTES
        else:
            half = (len(part.parts) + 1) // 2
            freed = sum(map(getsizeof, part.parts[:half])) + half * PART_BYTES
            del part.parts[:half]
            del part.at[:half]
            part.first += half
            if not part.parts:
                del self._parts[0]
        self.byte_count -= freed
        return freed

    def without_words(self) -> "EventLog":
        """Return what may be kept when the words may not: each stretch of text as its length.

        The event of a stretch has the number of its last piece, and says how many there were.
        """
        kept = EventLog()
        for part in self._parts:
            if isinstance(part, _Words):
                data: Mapping[str, Any] = {
                    "text": None,
                    "char_count": sum(map(len, part.parts)),
                    "piece_count": len(part.parts),
                }
                kept.add(part.at[-1], TEXT, data, part.last)
            else:
                data = without_words(part.kind, orjson.loads(part.content))
                kept.add(part.at_ms, part.kind, data, part.last)
        kept.sequence = self.sequence
        return kept

    @classmethod
    def of(cls, events: Iterable[Told]) -> "EventLog":
        """Return a log of events that were told before."""
        log = cls()
        for told in events:
            if told.kind == TEXT and told.data["text"] is not None:
                log.sequence = told.sequence - 1
                log.add_text(told.at_ms, told.data["text"])
            else:
                log.add(told.at_ms, told.kind, told.data, told.sequence)
        return log
