"""Serves the model hop: checks a prompt, asks the provider, streams what it writes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import grpc

from services.model.backend import (
    Capabilities,
    Engine,
    Finish,
    Piece,
    Prompt,
    Provider,
    Reasoning,
    ToolCallPart,
)
from services.model.catalog import find_backend
from services.model.config import ModelSettings
from services.model.counting import PromptCounter
from services.model.examination import connect_findings
from services.model.fitting import fitted
from services.model.health import telling_health
from services.model.heartbeats import with_heartbeats
from services.model.http import HttpDoor
from services.model.pace import Pace, PacedWire
from services.model.prompts import checked, require_messages
from services.runtime.call import CURRENT, Call, Group
from services.runtime.clock import Clock
from services.runtime.conversation import (
    Message,
    ToolCall,
    call_to_wire,
    message_from_wire,
    offer_from_wire,
    role_from_wire,
)
from services.runtime.durations import set_duration
from services.runtime.errors import InvalidArgumentError
from services.runtime.generation import Wait
from services.runtime.generation_options import format_from_wire
from services.runtime.heartbeat import HeartbeatSettings
from services.runtime.http_pools import PoolSize, open_pools
from services.runtime.ladder import as_binding, refuse_violations
from services.runtime.outgoing import Outgoing
from services.runtime.output_limit import CUT_FINISH, limit_that_cut
from services.runtime.process import Hop
from services.runtime.stream import Wire
from services.runtime.topology import LLM, MODEL, MODEL_BACKUP
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)
from sixhop.type.v1 import chat_pb2, usage_pb2

SERVICE = "sixhop.model.v1.ModelService"
METHOD = "ChatCompletions"
"""What the provider's only method is called in logs and reports."""

Context = grpc.aio.ServicerContext[
    model_pb2.GenerateRequest, AsyncIterator[model_pb2.GenerateResponse]
]
AnyContext = grpc.aio.ServicerContext[Any, Any]


class ModelService(ModelServiceServicer):
    """Generates text with the provider that the settings name."""

    def __init__(
        self,
        outgoing: Outgoing,
        engine: Engine,
        settings: ModelSettings,
        provider: Provider,
        counter: PromptCounter,
        heartbeat: HeartbeatSettings,
        clock: Clock,
    ) -> None:
        """Take the choke point towards the provider, the open door to it, and what is known of it.

        The heartbeat says when callers are told that it is waited for.
        """
        self._outgoing = outgoing
        self._engine = engine
        self._settings = settings
        self._provider = provider
        self._counter = counter
        self._heartbeat = heartbeat
        self._clock = clock
        self._pace = Pace(clock)

    async def Generate(  # gRPC's name
        self, request: model_pb2.GenerateRequest, context: Context
    ) -> AsyncIterator[model_pb2.GenerateResponse]:
        """Generate one completion.

        Raises:
            InvalidArgumentError: the request has no usable prompt, or wants what the model cannot.
            SixhopError: the provider failed, cut its answer, or outlived its limits.
        """
        prompt = to_prompt(request, self._settings, self._provider.can)
        granted = prompt.max_output_tokens

        async def open_wire(call: Call) -> Wire[Piece]:
            nonlocal granted
            pace, asked_at = self._pace, self._clock.now()
            fits = fitted(prompt, call.attempt_timeout_s, pace, self._settings.told_time)
            granted = fits.max_output_tokens
            wire = await self._engine.open(fits, call)
            return PacedWire(wire, pace, self._clock, asked_at=asked_at)

        sequence = 0
        opening = self._outgoing.stream(METHOD, open_wire)
        until = CURRENT.get().self_deadline
        pieces = with_heartbeats(opening, self._heartbeat, self._clock, until)
        async with aclosing(pieces):
            async for piece in pieces:
                sequence += 1
                event = self._event(sequence, piece)
                if isinstance(piece, Finish) and piece.finish_reason == CUT_FINISH:
                    limit = limit_that_cut(
                        asked=request.max_output_tokens,
                        allowed=prompt.max_output_tokens,
                        granted=granted,
                        written=piece.written,
                    )
                    event.finished.limit_token_count = limit.token_count
                    event.finished.limited_by = limit.limited_by
                yield event

    async def CountTokens(  # gRPC's name
        self, request: model_pb2.CountTokensRequest, context: AnyContext
    ) -> model_pb2.CountTokensResponse:
        """Count what a conversation costs to read.

        Raises:
            InvalidArgumentError: the request has no usable prompt.
        """
        messages = to_messages(request.messages)
        require_messages(messages, self._settings)
        count = await self._counter.count(messages)
        return model_pb2.CountTokensResponse(token_count=count.count, estimated=not count.exact)

    async def DescribeModel(  # gRPC's name
        self, request: model_pb2.DescribeModelRequest, context: AnyContext
    ) -> model_pb2.DescribeModelResponse:
        """Describe the model."""
        can = self._provider.can
        description = model_pb2.DescribeModelResponse(
            model=self._settings.label(self._provider.model),
            window_token_count=can.window,
            max_output_token_count=self._settings.output_limit,
            tools=can.tools,
            strict_tools=can.strict_tools,
            single_tool_call=can.single_tool_call,
            seed=can.seed,
            json_object=can.json_object,
            json_schema=can.json_schema,
            prefill=can.prefill,
            wants_reasoning=can.wants_reasoning,
            languages=can.languages,
            tokens_per_second=self._pace.tokens_per_second() or 0.0,
        )
        first_s = self._pace.time_to_first_token_s()
        if first_s is not None:
            set_duration(description.first_token_duration, first_s)
        return description

    def _event(self, sequence: int, piece: Piece | Wait) -> model_pb2.GenerateResponse:
        event = model_pb2.GenerateResponse(sequence=sequence)
        if isinstance(piece, Finish):
            event.finished.model = self._settings.label(piece.model)
            event.finished.finish_reason = piece.finish_reason
            event.finished.usage.CopyFrom(
                usage_pb2.Usage(
                    input_token_count=piece.usage.input_token_count,
                    output_token_count=piece.usage.output_token_count,
                    estimated=piece.usage.estimated,
                )
            )
        elif isinstance(piece, Wait):
            event.thinking.state = piece.state
            set_duration(event.thinking.silence_duration, piece.silence_s)
            set_duration(event.thinking.remaining_duration, piece.remaining_s)
        elif isinstance(piece, ToolCall):
            event.tool_call.CopyFrom(call_to_wire(piece))
        elif isinstance(piece, ToolCallPart):
            event.tool_call_part.name = piece.name
            event.tool_call_part.byte_count = piece.byte_count
        elif isinstance(piece, Reasoning):
            event.reasoning_delta.text = piece.text
        else:
            event.text_delta.text = piece.text
        return event


def to_prompt(
    request: model_pb2.GenerateRequest, settings: ModelSettings, can: Capabilities
) -> Prompt:
    """Return the request as plain types.

    Raises:
        InvalidArgumentError: its messages are no conversation, a number is outside of its range, or
            it asks for what the model cannot do.
    """
    asked = Prompt(
        to_messages(request.messages),
        continues_last=request.continues_last,
        max_output_tokens=request.max_output_tokens,
        temperature=request.temperature if request.HasField("temperature") else None,
        top_p=request.top_p if request.HasField("top_p") else None,
        stop=tuple(request.stop),
        seed=request.seed if request.HasField("seed") else None,
        response_format=format_from_wire(request.response_format),
        tools=[offer_from_wire(tool) for tool in request.tools],
        tool_choice=request.tool_choice,
        single_tool_call=request.single_tool_call,
    )
    return checked(asked, settings, can)


def to_messages(sent: Sequence[chat_pb2.ChatMessage]) -> list[Message]:
    """Return messages as plain types.

    Raises:
        InvalidArgumentError: nobody speaks in one of them.
    """
    messages = []
    for number, message in enumerate(sent):
        role = role_from_wire(message.role)
        if role is None:
            raise InvalidArgumentError(
                f"messages[{number}].role", "say system, user, assistant or tool"
            )
        messages.append(message_from_wire(message, role))
    return messages


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Serve the model hop while the block runs.

    Raises:
        ConfigError: the settings name no provider, model or backend that can be used, or wait as
            long for a connection as for an answer; or a port cannot be had.
    """
    # By the name of this deployment: the model that stands in has a section of its own.
    settings = hop.config.section(hop.name, ModelSettings)
    refuse_violations(as_binding(connect_findings(settings, hop.config, hop.name), hop.config))
    backend = find_backend(settings.backend, settings.backend_dirs)
    provider = settings.provider(hop.config.address(LLM), hop.name, backend.capabilities)
    sizes: dict[Group, PoolSize] = {}
    if settings.max_connections:
        sizes[Group.CORE] = PoolSize(settings.max_connections, f"{hop.name}.max_connections")
    async with (
        open_pools(hop.config, sizes) as pools,
        backend.connect(provider, pools.pool(Group.CORE), hop.clock) as engine,
        telling_health(hop, settings, provider, pools),
    ):
        outgoing = hop.outgoing(LLM)
        if hop.name == MODEL and hop.config.runs(MODEL_BACKUP):
            # Callers have another model to ask: nobody queues for this one.
            outgoing.callee = replace(outgoing.callee, has_stand_in=True)
        door = HttpDoor(pools.pool(Group.CORE), provider, hop.clock)
        counter = PromptCounter(settings.counted_by(provider.dialect), provider, door, outgoing)
        service = ModelService(
            outgoing, engine, settings, provider, counter, hop.config.heartbeat, hop.clock
        )
        add_ModelServiceServicer_to_server(service, hop.server)
        hop.services.append(SERVICE)
        hop.runtime.attributes = lambda: {
            "model": settings.label(provider.model),
            "provider": urlsplit(provider.base_url).netloc,
            "backend": backend.name,
            "dialect": provider.dialect.name,
            "window": str(provider.can.window),
            "languages": ",".join(provider.can.languages),
        }
        await hop.health.set_ready()
        yield
