"""Learns from the tool hop what its tools declare, so that calls to them are made rightly."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from google.protobuf import json_format
from pydantic import JsonValue

from services.runtime.call import Callee, Fallback, Group
from services.runtime.client import Dependency
from services.runtime.clock import Clock
from services.runtime.durations import to_seconds
from services.runtime.errors import SixhopError
from services.runtime.outgoing import own_work
from services.runtime.parts import TOOL_GROUP_KEY, part
from services.runtime.telemetry import TOOLS_LEARNED, TOOLS_UNREACHABLE, get_logger
from services.runtime.topology import DOMAIN, TOOL
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub

RETRY_INTERVAL_S = 0.5
REFRESH_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool:
    """Is what a tool declares, as far as its callers go by it."""

    callee: Callee
    """How the guards of calls know it."""
    description: str = ""
    """What it does, in one sentence."""
    fallbacks: tuple[Fallback, ...] = ()
    """What may be given in place of its answer, best first."""
    cache_age_s: float = 0.0
    """How old an answer may be that is given again."""
    default: Mapping[str, JsonValue] | None = None
    """What is given as the default."""


@dataclass(slots=True)
class ToolDirectory:
    """Knows the tools. What was known last stays while the tool hop is away."""

    dependency: Dependency
    clock: Clock
    tools: dict[str, DeclaredTool] = field(default_factory=dict)
    """The tools by name."""
    refresh_interval_s: float = 30.0
    """How often they are asked for again."""

    def declared(self, name: str) -> DeclaredTool:
        """Return what a tool declares; one that nobody knows yet may be left out, if anything."""
        return self.tools.get(name) or unknown_tool(name)

    async def refresh_forever(self) -> None:
        """Ask again and again, soon while nothing is known."""
        while True:
            try:
                await self.refresh()
            except SixhopError as error:
                get_logger().warning(TOOLS_UNREACHABLE, problem=error.message)
            await self.clock.sleep(self.refresh_interval_s if self.tools else RETRY_INTERVAL_S)

    async def refresh(self) -> None:
        """Ask once.

        Raises:
            SixhopError: the tool hop failed or did not answer.
        """
        stub = ToolServiceStub(self.dependency.channel)
        with own_work(DOMAIN, "RefreshTools", REFRESH_TIMEOUT_S, self.clock):
            response = await self.dependency.unary(stub.ListTools, tool_pb2.ListToolsRequest())
        found = {card.name: declared_tool(card) for card in response.tools}
        if found != self.tools:
            self.tools = found
            get_logger().info(TOOLS_LEARNED, tools=sorted(found))


def unknown_tool(name: str) -> DeclaredTool:
    """Return a tool of which nothing is known: never sent twice, and its own permits are few."""
    callee = Callee(key=f"{TOOL}/{name}", group=Group.AUXILIARY)
    return DeclaredTool(callee=callee, fallbacks=(Fallback.PARTIAL, Fallback.SKIP))


def declared_tool(card: tool_pb2.ToolCard) -> DeclaredTool:
    """Return what a tool declares; words of a newer tool hop are passed over."""
    groups, kinds = Group.__members__.values(), Fallback.__members__.values()
    group = Group(card.group) if card.group in groups else Group.AUXILIARY
    return DeclaredTool(
        callee=Callee(
            key=f"{TOOL}/{card.name}",
            group=group,
            idempotent=card.idempotent,
            max_concurrency=card.max_concurrency or None,
            slow_call_s=to_seconds(card.slow_call_duration) or 2.0,
            timeout_s=to_seconds(card.timeout_duration) or None,
            min_timeout_s=to_seconds(card.min_timeout_duration) or None,
            metadata=part(TOOL_GROUP_KEY, group),
        ),
        description=card.description,
        fallbacks=tuple(Fallback(kind) for kind in card.fallbacks if kind in kinds),
        cache_age_s=to_seconds(card.cache_age_duration),
        default=json_format.MessageToDict(card.default_data)
        if card.HasField("default_data")
        else None,
    )
