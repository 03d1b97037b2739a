"""Runs all five hops in one process: real gRPC, real policies, scripted ends."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.struct_pb2 import Struct

from gateway import service as gateway_service
from services.domain.agent import Agent, AgentRegistry, Answer
from services.domain.directory import DeclaredTool
from services.domain.ports import ToolClient
from services.domain.run import Ports, Run
from services.domain.service import DomainServicer
from services.routing.board import HealthBoard
from services.routing.config import RoutingSettings
from services.routing.directory import AgentDirectory
from services.routing.embedding import EmbeddingThread
from services.routing.intent import AgentCard, IntentIndex, Vector
from services.routing.ports import open_replicas
from services.routing.service import RoutingServicer
from services.runtime.call import CURRENT, Inbound
from services.runtime.clock import MonotonicClock
from services.runtime.config import Config, load_config
from services.runtime.conversation import Message
from services.runtime.failover import open_failover
from services.runtime.generation import ModelClient, whole
from services.runtime.guarding import Guard
from services.runtime.process import Hop, OpenHop, serving
from services.runtime.stack import server_stack
from services.runtime.topology import HOPS
from sixhop.domain.v1.domain_pb2_grpc import add_DomainServiceServicer_to_server
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import (
    ModelServiceServicer,
    add_ModelServiceServicer_to_server,
)
from sixhop.routing.v1.routing_pb2_grpc import add_RoutingServiceServicer_to_server
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceServicer, add_ToolServiceServicer_to_server
from tests.ports import free_ports
from tests.stacks import Unwatched, declared_tool

SERVICES = {
    "gateway": "sixhop.gateway.v1.GatewayService",
    "routing": "sixhop.routing.v1.RoutingService",
    "domain": "sixhop.domain.v1.DomainService",
    "tool": "sixhop.tool.v1.ToolService",
    "model": "sixhop.model.v1.ModelService",
}
CLOCK = MonotonicClock()


def text(words: str, sequence: int = 1) -> model_pb2.GenerateResponse:
    """Return an event with text."""
    return model_pb2.GenerateResponse(
        sequence=sequence, text_delta=model_pb2.GeneratedText(text=words)
    )


def heartbeat() -> model_pb2.GenerateResponse:
    """Return an event that says only that the hop waits."""
    return model_pb2.GenerateResponse(thinking=model_pb2.GenerationWait(state="silent"))


def finished() -> model_pb2.GenerateResponse:
    """Return the last event of a good generation."""
    return model_pb2.GenerateResponse(
        finished=model_pb2.GenerationFinished(model="scripted", finish_reason="stop")
    )


async def good_generation() -> AsyncIterator[model_pb2.GenerateResponse]:
    """Write two words."""
    yield text("two ", 1)
    yield text("words", 2)
    yield finished()


class ScriptedModel(ModelServiceServicer):
    """Is a model hop that does what the test says."""

    def __init__(self) -> None:
        """Write two words until told otherwise."""
        self.generation: Callable[[], AsyncIterator[model_pb2.GenerateResponse]] = good_generation

    async def Generate(
        self, request: model_pb2.GenerateRequest, context: Any
    ) -> AsyncIterator[model_pb2.GenerateResponse]:
        async for event in self.generation():
            yield event

    async def CountTokens(
        self, request: model_pb2.CountTokensRequest, context: Any
    ) -> model_pb2.CountTokensResponse:
        return model_pb2.CountTokensResponse(token_count=len(request.messages), estimated=True)

    async def DescribeModel(
        self, request: model_pb2.DescribeModelRequest, context: Any
    ) -> model_pb2.DescribeModelResponse:
        return model_pb2.DescribeModelResponse(model="scripted")


class HeldModel:
    """Is a generation that goes on when the test says so."""

    def __init__(self) -> None:
        """Hold whatever is generated."""
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.model = ScriptedModel()
        self.model.generation = self.generation

    async def generation(self) -> AsyncIterator[model_pb2.GenerateResponse]:
        """Write a word, wait, end well."""
        yield text("one")
        self.began.set()
        await self.go_on.wait()
        yield finished()

    @asynccontextmanager
    async def open_hop(self, hop: Hop) -> AsyncIterator[None]:
        """Open a model hop around it."""
        add_ModelServiceServicer_to_server(self.model, hop.server)
        hop.services.append("sixhop.model.v1.ModelService")
        await hop.health.set_ready()
        yield


class ScriptedTool(ToolServiceServicer):
    """Is a tool hop that does what the test says: by default it asks the model."""

    def __init__(self, model: ModelClient) -> None:
        """Take the way to the model."""
        self._model = model
        self.execution: Callable[[], Awaitable[str]] = self.ask_model

    async def ask_model(self) -> str:
        """Return what the model writes."""
        return (await whole(self._model.stream([Message("user", "write")]))).text

    async def ExecuteTool(
        self, request: tool_pb2.ExecuteToolRequest, context: Any
    ) -> tool_pb2.ExecuteToolResponse:
        data = Struct()
        data.update({"text": await self.execution()})
        return tool_pb2.ExecuteToolResponse(data=data)

    async def ListTools(
        self, request: tool_pb2.ListToolsRequest, context: Any
    ) -> tool_pb2.ListToolsResponse:
        return tool_pb2.ListToolsResponse()


async def run_tool(run: Run) -> Answer:
    """Answer with what a tool says: all six hops."""
    result = await run.tool("summarise", {}, title="asks")
    run.say(str(result.data["text"]))
    return Answer(model="scripted")


async def run_model(run: Run) -> Answer:
    """Answer with what the model says: five hops."""
    async with run.generate([Message("user", "write")]) as generation:
        async for words in generation:
            run.say(words)
        return Answer(model=generation.result.model)


class _FlatEmbedder:
    def embed(self, text: str) -> Vector:
        return np.asarray([1.0], dtype=np.float32)

    def give_back(self) -> None:
        pass


class Recorder(Guard[Inbound]):
    """Is a guard that remembers every call as the one who serves it sees it."""

    def __init__(self, seen: list[Inbound]) -> None:
        """Take where to remember."""
        self._seen = seen

    def before(self, inbound: Inbound) -> None:
        """Remember a call."""
        self._seen.append(inbound)


@dataclass(slots=True)
class Suite:
    """Is all five hops."""

    config: Config
    model: ScriptedModel = field(default_factory=ScriptedModel)
    hops: dict[str, Hop] = field(default_factory=dict)
    agent: Callable[[Run], Awaitable[Answer]] = run_tool
    """What the only agent, `chat`, does."""
    declared: Callable[[str], DeclaredTool] = declared_tool
    """Tells what each tool declares."""
    seen: list[Inbound] = field(default_factory=list)
    """Every call that was let in, at any hop, in the order of arrival."""
    tools: list[ScriptedTool] = field(default_factory=list)

    @property
    def tool(self) -> ScriptedTool:
        """Return the tool hop's servicer."""
        return self.tools[0]

    def arrived(self, hop: str) -> Inbound:
        """Return the last call that arrived at a hop."""
        return [inbound for inbound in self.seen if inbound.hop == hop][-1]

    def idle(self) -> bool:
        """Return whether no hop serves or makes a call."""
        return not any(hop.activity.inflight or hop.activity.outgoing for hop in self.hops.values())

    @asynccontextmanager
    async def open_model(self, hop: Hop) -> AsyncIterator[None]:
        """Open the scripted model hop."""
        add_ModelServiceServicer_to_server(self.model, hop.server)
        async with _ready(hop):
            yield

    @asynccontextmanager
    async def open_tool(self, hop: Hop) -> AsyncIterator[None]:
        """Open the scripted tool hop."""
        async with hop.dependency("model") as model:
            self.tools.append(ScriptedTool(ModelClient(model)))
            add_ToolServiceServicer_to_server(self.tool, hop.server)
            async with _ready(hop):
                yield

    @asynccontextmanager
    async def open_domain(self, hop: Hop) -> AsyncIterator[None]:
        """Open the real domain hop with one agent."""

        async def answer(run: Run) -> Answer:
            return await self.agent(run)

        chat = Agent(
            name="chat",
            description="Talks.",
            examples=("hello", "你好"),
            converses=True,
            run=answer,
        )
        async with hop.dependency("tool") as tool, open_failover(hop) as model:
            driver = hop.policies.fallback if hop.policies else None
            tools = ToolClient(tool, lambda name: self.declared(name), driver)
            ports = Ports(tools, model, hop.clock, Unwatched())
            servicer = DomainServicer(AgentRegistry([chat]), ports, hop.config.heartbeat)
            add_DomainServiceServicer_to_server(servicer, hop.server)
            async with _ready(hop):
                yield

    @asynccontextmanager
    async def open_routing(self, hop: Hop) -> AsyncIterator[None]:
        """Open the real routing hop; it knows the agent and takes no embedding model."""
        thread, settings = EmbeddingThread(), RoutingSettings()
        embedder: Any = _FlatEmbedder()
        chat = AgentCard("chat", "Talks.", ("hello",), converses=True)
        index = IntentIndex([chat], embedder)
        try:
            chance = random.Random(7)
            board = HealthBoard(hop.config.replicas("domain"), settings.board, hop.clock, chance)
            async with open_replicas(hop, board, settings.board) as replicas:
                directory = AgentDirectory(
                    replicas.any, embedder, thread, settings, hop.clock, index
                )
                servicer = RoutingServicer(directory, replicas, settings, hop.clock, chance)
                add_RoutingServiceServicer_to_server(servicer, hop.server)
                async with _ready(hop):
                    yield
        finally:
            thread.close()

    def openers(self) -> Mapping[str, OpenHop]:
        """Return how each hop is opened, innermost first."""
        return {
            "model": self.open_model,
            "tool": self.open_tool,
            "domain": self.open_domain,
            "routing": self.open_routing,
            "gateway": gateway_service.open_hop,
        }


@asynccontextmanager
async def _ready(hop: Hop) -> AsyncIterator[None]:
    hop.services.append(SERVICES[hop.name])
    await hop.health.set_ready()
    yield


@asynccontextmanager
async def running(
    replaced: Mapping[str, OpenHop] | None = None, **settings: str
) -> AsyncIterator[Suite]:
    """Run the suite.

    Args:
        replaced: hops that are to be opened otherwise.
        settings: those of the environment, without their prefix.
    """
    suite = Suite(configured(**settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "services.runtime.process.server_stack",
            lambda *a, **k: [*server_stack(*a, **k), Recorder(suite.seen)],
        )
        async with AsyncExitStack() as exits:
            openers = {**suite.openers(), **(replaced or {})}
            for name, open_hop in openers.items():
                hop = serving(name, open_hop, suite.config, CLOCK)
                suite.hops[name] = await exits.enter_async_context(hop)
            yield suite


def configured(**settings: str) -> Config:
    """Return a configuration with free ports."""
    environ = {f"SIXHOP_{name}": value for name, value in settings.items()}
    for name, port in zip(HOPS, free_ports(len(HOPS)), strict=True):
        environ.setdefault(f"SIXHOP_{name.upper()}__PORT", str(port))
    return load_config(Path("/dev/null"), environ)


def current() -> Inbound:
    """Return the call being served."""
    return CURRENT.get()
