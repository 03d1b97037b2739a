"""Decodes server-sent events from bytes, however the network has cut them."""

from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 1 << 20
"""The longest line; one token of a stream takes some hundred bytes."""
MAX_EVENT_BYTES = 4 << 20
"""The most data of one event."""

_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_ENDINGS = (b"\n", b"\r")


class EventTooLongError(Exception):
    """Refuses a line or an event above its bound: the peer does not speak this protocol."""


@dataclass(frozen=True, slots=True)
class Event:
    """Holds one event; the data are bytes, because JSON is parsed from bytes."""

    data: bytes
    """Its data lines, joined by line feeds; never empty."""
    kind: str = "message"
    """What its `event` field says."""


class Decoder:
    """Turns pieces of a byte stream into events.

    Lines end with CR, LF or CRLF, and with nothing else: U+2028 is part of the text. Every byte
    is looked at once, wherever the pieces are cut. Events without data are dropped, and so is
    an event whose blank line never came.
    """

    def __init__(
        self, *, max_line_bytes: int = MAX_LINE_BYTES, max_event_bytes: int = MAX_EVENT_BYTES
    ) -> None:
        """Take the bounds."""
        self._max_line_bytes = max_line_bytes
        self._max_event_bytes = max_event_bytes
        self._head: bytes | None = b""
        self._after_cr = False
        self._pieces: list[bytes] = []
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._event_bytes = 0
        self._kind = ""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Take the next bytes, and yield the events that they complete; to be read to the end.

        Raises:
            EventTooLongError: a line or an event is above its bound; what came before it was
                yielded before.
        """
        if self._head is not None:
            chunk = self._without_bom(self._head + chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        # For bytes, splitlines() knows CR, LF and CRLF only.
        for line in chunk.splitlines(keepends=True):
            if not line.endswith(_ENDINGS):
                self._keep(line)
            elif (event := self._end_line(line.rstrip(b"\r\n"))) is not None:
                yield event

    def _without_bom(self, head: bytes) -> bytes:
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        self._line_bytes += len(piece)
        if self._line_bytes > self._max_line_bytes:
            raise EventTooLongError(f"a line is longer than {self._max_line_bytes} bytes")
        self._pieces.append(piece)

    def _end_line(self, rest: bytes) -> Event | None:
        line = rest
        if self._pieces:
            self._keep(rest)
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._line_bytes = 0
        elif len(line) > self._max_line_bytes:
            raise EventTooLongError(f"a line is longer than {self._max_line_bytes} bytes")
        if not line:
            return self._dispatch()
        if not line.startswith(b":"):
            self._take_field(line)
        return None

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._event_bytes += len(value) + 1
            if self._event_bytes > self._max_event_bytes:
                raise EventTooLongError(f"an event has more than {self._max_event_bytes} bytes")
            self._data.append(value)
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")

    def _dispatch(self) -> Event | None:
        data, kind = b"\n".join(self._data), self._kind or "message"
        self._data.clear()
        self._event_bytes = 0
        self._kind = ""
        return Event(data, kind) if data else None
