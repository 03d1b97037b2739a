"""Speaks with providers in the dialect of OpenAI's chat completions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from services.model.backend import Backend, Capabilities, Engine, Piece, Prompt, Provider
from services.model.completion import Completion
from services.model.http import HttpDoor
from services.model.listing import check_model
from services.model.refusal import Exchange
from services.model.requests import request_body, request_url
from services.model.wire import CompletionWire
from services.runtime.call import Call
from services.runtime.clock import Clock
from services.runtime.http_pools import HttpPool
from services.runtime.stream import Wire


class OpenAiEngine:
    """Asks one provider for completions."""

    def __init__(self, provider: Provider, door: HttpDoor, clock: Clock) -> None:
        """Take the provider and the way to it."""
        self._provider = provider
        self._door = door
        self._clock = clock

    async def open(self, prompt: Prompt, call: Call) -> Wire[Piece]:
        """Ask for one completion; errors as `Engine.open` says."""
        form = prompt.response_format
        schema = form.schema if form is not None else ""
        exchange = Exchange(self._provider, prompt.messages, prompt.tools, schema)
        body = orjson.dumps(request_body(self._provider, prompt))
        until = self._clock.now() + call.attempt_timeout_s
        url = request_url(self._provider, prompt)
        stream = await self._door.post(url, body, call, exchange)
        return CompletionWire(
            stream,
            Completion(exchange),
            self._clock,
            until=until,
            min_event_interval_s=self._provider.min_event_interval_s,
        )


@asynccontextmanager
async def connect(provider: Provider, pool: HttpPool, clock: Clock) -> AsyncIterator[Engine]:
    """Speak with a provider while the block runs.

    Raises:
        ConfigError: it does not have the model.
    """
    door = HttpDoor(pool, provider, clock)
    await check_model(provider, door)
    yield OpenAiEngine(provider, door, clock)


BACKEND = Backend(
    name="openai_compatible",
    # What any server of this dialect can be trusted with; the table of dialects says more.
    capabilities=Capabilities(),
    connect=connect,
)
