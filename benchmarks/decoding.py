"""Measures what one event of a provider's stream costs the model hop when nothing waits."""

import statistics
import time

import orjson

from services.model.backend import Provider
from services.model.completion import Completion
from services.model.refusal import Exchange
from services.model.wire import CompletionWire
from services.runtime.clock import MonotonicClock

ROUNDS = 9
EVENTS = 5000
READ_BYTES = 64 * 1024
"""What one read of a saturated connection gives."""


class _Saturated:
    """Gives the bytes of a long answer, as much as one read takes."""

    def __init__(self) -> None:
        choice = {"index": 0, "delta": {"content": "a token "}, "finish_reason": None}
        chunk = {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
        last = chunk | {"choices": [choice | {"finish_reason": "stop"}]}
        events = [*[orjson.dumps(chunk)] * (EVENTS - 1), orjson.dumps(last), b"[DONE]"]
        self._body = b"".join(b"data: %s\n\n" % event for event in events)

    async def read(self) -> bytes:
        part, self._body = self._body[:READ_BYTES], self._body[READ_BYTES:]
        return part

    async def gather(self, length_s: float) -> None:
        pass

    def abort(self) -> None:
        pass


async def microseconds_per_event() -> float:
    """Return the median over some rounds: bytes, events, JSON, contract and joining."""
    clock, exchange = MonotonicClock(), Exchange(Provider(base_url="http://x/v1", model="m"))
    found_us = []
    for _ in range(ROUNDS):
        wire = CompletionWire(
            _Saturated(), Completion(exchange), clock, until=clock.now() + 60,
            min_event_interval_s=0.0,
        )  # fmt: skip
        began = time.process_time()
        while await wire.read() is not None:
            pass
        found_us.append(1e6 * (time.process_time() - began) / EVENTS)
    return statistics.median(found_us)
