"""Calls the scriptable provider as the model hop does, through the choke point."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from services.model.backend import Engine, Finish, Piece, Prompt, Provider, Reasoning, Text
from services.model.backends.openai_compatible import connect
from services.runtime.call import Call, CallLimits, Group, Identity
from services.runtime.clock import MonotonicClock
from services.runtime.config import load_config
from services.runtime.conversation import Message, ToolCall
from services.runtime.http_pools import PoolSize, open_pools
from services.runtime.outgoing import Outgoing, own_work
from services.runtime.statistics import Activity
from services.runtime.stream import Wire
from services.runtime.topology import LLM, MODEL
from tests.provider.behaviour import Script
from tests.provider.server import ScriptedProvider, serving
from tests.stacks import single

KEY = "sk-secret-1234567890"
PROMPT = Prompt([Message("user", "How many orders came from Shenzhen?")], max_output_tokens=64)
LIMITS = CallLimits(step_timeout_s=5.0, read_timeout_s=5.0)


@dataclass(slots=True)
class Answer:
    """Collects what one call gave."""

    text: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish: Finish | None = None
    pieces: list[Piece] = field(default_factory=list)

    def take(self, piece: Piece) -> None:
        self.pieces.append(piece)
        if isinstance(piece, Text):
            self.text += piece.text
        elif isinstance(piece, Reasoning):
            self.reasoning += piece.text
        elif isinstance(piece, ToolCall):
            self.tool_calls.append(piece)
        elif isinstance(piece, Finish):
            self.finish = piece


@dataclass(slots=True)
class Caller:
    """Calls a provider with a given time."""

    provider: ScriptedProvider
    engine: Engine
    settings: Provider
    limits: CallLimits = LIMITS
    activity: Activity = field(default_factory=Activity)

    @asynccontextmanager
    async def streaming(
        self, *, deadline_s: float = 20.0, prompt: Prompt = PROMPT
    ) -> AsyncIterator[AsyncIterator[Piece]]:
        """Open one call; leaving the block cancels it."""
        clock = MonotonicClock()
        outgoing = Outgoing(MODEL, LLM, self.limits, single(clock, self.activity), clock)

        async def open_wire(call: Call) -> Wire[Piece]:
            return await self.engine.open(prompt, call)

        with own_work(MODEL, "test", deadline_s, clock) as inbound:
            inbound.identity = Identity(request_id="request-7")
            async with outgoing.stream("ChatCompletions", open_wire) as pieces:
                yield pieces

    async def ask(
        self, *, deadline_s: float = 20.0, prompt: Prompt = PROMPT, into: Answer | None = None
    ) -> Answer:
        """Return the whole answer; what came before an error is in `into`."""
        answer = into or Answer()
        async with self.streaming(deadline_s=deadline_s, prompt=prompt) as pieces:
            async for piece in pieces:
                answer.take(piece)
        return answer


@asynccontextmanager
async def calling(
    behaviour: str,
    *,
    limits: CallLimits = LIMITS,
    settings: Provider | None = None,
    connections: int = 64,
) -> AsyncIterator[Caller]:
    """Serve one behaviour, and call it, while the block runs."""
    async with serving(Script(default=behaviour)) as provider:
        known = settings or Provider(base_url="", model="any", api_key=KEY)
        known = replace(known, base_url=known.base_url or provider.base_url)
        sizes = {Group.CORE: PoolSize(connections, "the test")}
        async with (
            open_pools(load_config(None, {}), sizes) as pools,
            connect(known, pools.pool(Group.CORE), MonotonicClock()) as engine,
        ):
            yield Caller(provider, engine, known, limits)
