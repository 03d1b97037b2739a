"""Calls the model hop, for every hop that generates text."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from services.runtime.client import Dependency
from services.runtime.compression.tokens import TokenCount
from services.runtime.conversation import (
    Message,
    ToolCall,
    call_from_wire,
    message_to_wire,
    offer_to_wire,
)
from services.runtime.durations import to_seconds
from services.runtime.errors import DependencyFailedError, Origin
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions, format_to_wire
from services.runtime.outgoing import Outgoing
from services.runtime.output_limit import CUT_FINISH, OutputLimit, limited_by
from services.runtime.switch import Switch
from services.runtime.topology import MODEL
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts the tokens of one generation."""

    input_token_count: int = 0
    output_token_count: int = 0
    estimated: bool = False
    """True when the provider gave no count."""

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum; an estimate in either makes the sum one."""
        return Usage(
            self.input_token_count + other.input_token_count,
            self.output_token_count + other.output_token_count,
            self.estimated or other.estimated,
        )


@dataclass(slots=True)
class Generation:
    """Holds one generation as it grows; complete once it has a finish reason."""

    text: str = ""
    model: str = ""
    """The model that wrote the text, as the provider names it."""
    finish_reason: str = ""
    """Why the provider stopped: `stop`, `length` or `tool_calls`; empty until then."""
    usage: Usage = field(default_factory=Usage)
    tool_calls: tuple[ToolCall, ...] = ()
    """The tools that the model asks for; not to be acted on before there is a finish reason."""
    limit: OutputLimit | None = None
    """Where the text was cut off, for the finish reason `length`; None otherwise."""
    switch: Switch | None = None
    """Why the model that stands in wrote it; None for the first model's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """Says what a model can do, as its hop tells."""

    name: str
    """The model, as answers name it."""
    window_tokens: int
    """What prompt and answer may have together."""
    max_output_tokens: int
    """The longest answer; 0 when it has not told."""
    tools: bool = False
    """It calls tools when asked to."""
    strict_tools: bool = False
    """It keeps to the schema of a tool exactly when told to."""
    single_tool_call: bool = False
    """It asks for one tool at most when told to."""
    seed: bool = False
    """It takes a seed."""
    json_object: bool = False
    """It writes JSON when told to."""
    json_schema: bool = False
    """It holds its answer to a JSON schema."""
    prefill: bool = False
    """It goes on from an assistant's message that it is given."""
    wants_reasoning: bool = False
    """It wants its own earlier reasoning back with tool calls."""
    first_token_s: float | None = None
    """What its first token takes as a rule; None while that is not known."""
    tokens_per_s: float = 0.0
    """How fast it writes once it does; 0 while that is not known."""


class TextStream(Protocol):
    """Gives the text of a generation, whoever writes it."""

    @property
    def result(self) -> Generation:
        """What has arrived so far."""
        ...

    def __aiter__(self) -> AsyncIterator[str]:
        """Yield text."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Says that a hop waits for another, inside its limits; lengths in seconds."""

    state: str
    """What is waited for: `queued`, `reasoning` or `silent`."""
    silence_s: float
    """How long no content was heard."""
    remaining_s: float
    """What it has left to its deadline."""
    hop: str = MODEL
    """The hop that waits."""


class GenerationStream:
    """Gives the text of one generation piece by piece."""

    def __init__(
        self, events: AsyncIterator[model_pb2.GenerateResponse], dependency: str = MODEL
    ) -> None:
        """Take the events of the model hop, and the name of the deployment that gives them."""
        self._events = events
        self._dependency = dependency
        self.result = Generation()
        """What has arrived so far."""

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield text.

        Raises:
            SixhopError: the generation failed, was cut, or outlived its limits.
        """
        async for event in self._events:
            kind = event.WhichOneof("event")
            if kind == "text_delta":
                self.result.text += event.text_delta.text
                yield event.text_delta.text
            elif kind == "tool_call":
                self.result.tool_calls += (call_from_wire(event.tool_call),)
            elif kind == "finished":
                self._finish(event.finished)
        if not self.result.finish_reason:
            raise DependencyFailedError(
                self._dependency,
                "the model hop ended its stream without saying that the text is complete",
                cause="truncated",
                origin=Origin(self._dependency, code="OK", reason="TRUNCATED"),
            )

    def _finish(self, finished: model_pb2.GenerationFinished) -> None:
        self.result.model = finished.model
        self.result.finish_reason = finished.finish_reason
        self.result.usage = Usage(
            finished.usage.input_token_count,
            finished.usage.output_token_count,
            finished.usage.estimated,
        )
        if finished.finish_reason == CUT_FINISH:
            whose = limited_by(finished.limited_by)
            self.result.limit = OutputLimit(finished.limit_token_count, whose)


class ModelClient:
    """Generates text through the model hop."""

    def __init__(self, dependency: Dependency) -> None:
        """Take the dependency: `model`, or another deployment of that hop."""
        self._dependency = dependency
        self._stub = ModelServiceStub(dependency.channel)
        # What only asks about the model says nothing about how it writes.
        self._about = replace(self.outgoing.callee, key=f"{self.outgoing.callee.key}/about")

    @property
    def outgoing(self) -> Outgoing:
        """Return the choke point of its calls."""
        return self._dependency.outgoing

    async def describe(self) -> ModelCard:
        """Return what the model can do.

        Raises:
            SixhopError: the hop failed or did not answer.
        """
        told = await self._dependency.unary(
            self._stub.DescribeModel, model_pb2.DescribeModelRequest(), callee=self._about
        )
        first = told.first_token_duration if told.HasField("first_token_duration") else None
        return ModelCard(
            name=told.model,
            window_tokens=told.window_token_count,
            max_output_tokens=told.max_output_token_count,
            tools=told.tools,
            strict_tools=told.strict_tools,
            single_tool_call=told.single_tool_call,
            seed=told.seed,
            json_object=told.json_object,
            json_schema=told.json_schema,
            prefill=told.prefill,
            wants_reasoning=told.wants_reasoning,
            first_token_s=None if first is None else to_seconds(first),
            tokens_per_s=told.tokens_per_second,
        )

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        """Return what a conversation costs the model to read.

        Raises:
            SixhopError: the hop failed or did not answer.
        """
        told = await self._dependency.unary(
            self._stub.CountTokens,
            model_pb2.CountTokensRequest(messages=[message_to_wire(each) for each in messages]),
            callee=self._about,
        )
        return TokenCount(told.token_count, exact=not told.estimated)

    def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        continues_last: bool = False,
    ) -> AbstractAsyncContextManager[GenerationStream]:
        """Return a generation to iterate over; leaving the block ends it everywhere.

        Args:
            messages: the conversation, oldest first.
            options: how the text is to be generated.
            on_wait: is told now and then while the model hop waits for its provider.
            continues_last: whether to go on from the last message, an assistant's; only where
                the model's card says that it can.
        """
        return self._open(to_request(messages, options, continues_last), on_wait)

    @asynccontextmanager
    async def _open(
        self, request: model_pb2.GenerateRequest, on_wait: Callable[[Wait], None] | None
    ) -> AsyncIterator[GenerationStream]:
        def take_heartbeat(event: model_pb2.GenerateResponse) -> bool:
            if event.WhichOneof("event") != "thinking":
                return False
            if on_wait is not None:
                on_wait(_wait(event.thinking, self.outgoing.dependency))
            return True

        async with self._dependency.stream(
            self._stub.Generate, request, is_content=_is_content, take_heartbeat=take_heartbeat
        ) as events:
            yield GenerationStream(events, self.outgoing.dependency)


async def whole(opening: AbstractAsyncContextManager[TextStream]) -> Generation:
    """Return a generation once it is whole; nobody sees a part of it.

    Raises:
        SixhopError: as the stream does.
    """
    async with opening as generation:
        async for _ in generation:
            pass
        return generation.result


def to_request(
    messages: Sequence[Message], options: GenerationOptions, continues_last: bool = False
) -> model_pb2.GenerateRequest:
    """Return what is asked of the model hop as it travels; arguments as for `stream`."""
    form = options.response_format
    return model_pb2.GenerateRequest(
        messages=[message_to_wire(message) for message in messages],
        max_output_tokens=options.max_output_tokens,
        temperature=options.temperature,
        tools=[offer_to_wire(tool) for tool in options.tools],
        tool_choice=options.tool_choice,
        continues_last=continues_last,
        top_p=options.top_p,
        stop=options.stop,
        seed=options.seed,
        response_format=None if form is None else format_to_wire(form),
        single_tool_call=options.single_tool_call,
    )


def _wait(told: model_pb2.GenerationWait, hop: str) -> Wait:
    silence_s = to_seconds(told.silence_duration)
    return Wait(told.state, silence_s, to_seconds(told.remaining_duration), hop)


def _is_content(event: model_pb2.GenerateResponse) -> bool:
    return event.WhichOneof("event") not in ("thinking", None)
