"""Turns events into bytes, well or as badly as the standard allows."""

import itertools

import orjson

from services.model.sim.faults import Fault

BOM = b"\xef\xbb\xbf"
_ENDINGS = {"lf": (b"\n",), "crlf": (b"\r\n",), "cr": (b"\r",), "mix": (b"\n", b"\r\n", b"\r")}
_EXTRAS = (
    (b"id: 7", b"", b"", b""),
    (b"retry: 3000", b""),
    (b"event: ping", b""),
    (b": a comment", b"unknown: field", b"nameless", b""),
)
"""What clients have to skip: lines of events without data."""


class Framer:
    """Frames the events of one stream."""

    def __init__(self, fault: Fault) -> None:
        """Take how."""
        self._fault = fault
        # One ending an event: CR before an empty line that ends with LF would be one CRLF.
        self._endings = itertools.cycle(_ENDINGS[fault.line_ending])
        self._extras = itertools.cycle(_EXTRAS)
        self._begun = False

    def event(self, data: bytes, kind: str = "") -> bytes:
        """Return one event, with what comes before it."""
        fault = self._fault
        start = b"data: " if fault.data_space else b"data:"
        lines = [f"event: {kind}".encode()] if kind else []
        lines += [start + line for line in self._lines(data)]
        block = self._joined([*lines, b""])
        if fault.extra_events:
            block = self._joined(list(next(self._extras))) + block
        return self._first() + block

    def comment(self) -> bytes:
        """Return a comment, which keeps a connection alive and says nothing."""
        return self._first() + self._joined([b": keep-alive", b""])

    def pieces(self, block: bytes) -> list[bytes]:
        """Return bytes as they are written, one after the other."""
        size = self._fault.write_bytes
        if size > 0:
            return [block[i : i + size] for i in range(0, len(block), size)]
        if not self._fault.split_utf8:
            return [block]
        cuts = [i for i, byte in enumerate(block) if byte & 0xC0 == 0x80]
        edges = itertools.pairwise([0, *cuts, len(block)])
        return [block[start:end] for start, end in edges]

    def _lines(self, data: bytes) -> list[bytes]:
        if self._fault.multiline and data.startswith(b"{"):
            try:
                value = orjson.loads(data)
            except orjson.JSONDecodeError:
                return [data]
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).split(b"\n")
        return [data]

    def _joined(self, lines: list[bytes]) -> bytes:
        ending = next(self._endings)
        return b"".join(line + ending for line in lines)

    def _first(self) -> bytes:
        begun, self._begun = self._begun, True
        return BOM if self._fault.bom and not begun else b""
