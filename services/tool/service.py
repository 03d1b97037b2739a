"""Serves the tool hop: turns messages into executions and results into messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from services.runtime.call import CURRENT
from services.runtime.durations import to_duration
from services.runtime.failover import open_failover
from services.runtime.ladder import as_binding, refuse_violations
from services.runtime.process import Hop
from services.runtime.topology import TOOL
from services.tool.config import ToolSettings
from services.tool.context import ToolResources
from services.tool.declaration import Tool
from services.tool.examination import load_registry, tool_findings
from services.tool.execution import execute
from services.tool.registry import Registry
from services.tool.source import DataSource
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceServicer, add_ToolServiceServicer_to_server
from sixhop.type.v1 import artifact_pb2

SERVICE = "sixhop.tool.v1.ToolService"


class ToolServicer(ToolServiceServicer):
    """Executes tools for agents."""

    def __init__(self, registry: Registry, resources: ToolResources) -> None:
        """Take the tools and what their executions share."""
        self._registry = registry
        self._resources = resources

    async def ExecuteTool(  # gRPC's name
        self,
        request: tool_pb2.ExecuteToolRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> tool_pb2.ExecuteToolResponse:
        """Execute one tool."""
        inbound = CURRENT.get()
        inbound.note = request.name
        inbound.enough_s = self._registry.slow_after_s(request.name)
        execution = self._resources.context(
            sources=tuple(DataSource(source.name, source.content) for source in request.sources),
            request_id=request.request_id,
            language=request.language or "en",
            deadline=inbound.self_deadline,
        )
        arguments = json_format.MessageToDict(request.arguments)
        result = await execute(self._registry, request.name, arguments, execution)
        data = Struct()
        data.update(result.data)
        return tool_pb2.ExecuteToolResponse(
            data=data,
            artifacts=[
                artifact_pb2.Artifact(
                    name=artifact.name, media_type=artifact.media_type, content=artifact.content
                )
                for artifact in result.artifacts
            ],
        )

    async def ListTools(  # gRPC's name
        self,
        request: tool_pb2.ListToolsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> tool_pb2.ListToolsResponse:
        """List the tools."""
        return tool_pb2.ListToolsResponse(tools=[_card(tool) for tool in self._registry])


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Open the tool hop: it can work once its tools are found.

    Raises:
        ConfigError: a tool declares less than it must, or more than its callers wait.
    """
    settings = hop.config.section(TOOL, ToolSettings)
    registry = load_registry(settings)
    refuse_violations(as_binding(tool_findings(registry, settings, hop.config), hop.config))
    async with open_failover(hop) as model:
        resources = ToolResources.create(settings, clock=hop.clock, model=model)
        try:
            add_ToolServiceServicer_to_server(ToolServicer(registry, resources), hop.server)
            hop.services.append(SERVICE)
            hop.runtime.attributes = lambda: {"tools": ", ".join(tool.name for tool in registry)}
            await hop.health.set_ready()
            yield
        finally:
            resources.close()


def _card(tool: Tool[Any]) -> tool_pb2.ToolCard:
    schema = Struct()
    schema.update(tool.arguments.model_json_schema())
    card = tool_pb2.ToolCard(
        name=tool.name,
        description=tool.description,
        arguments_schema=schema,
        timeout_duration=to_duration(tool.timeout_s),
        max_concurrency=tool.max_concurrency,
        fallbacks=[kind.value for kind in tool.fallbacks],
        idempotent=tool.idempotent,
        group=tool.group.value,
        slow_call_duration=to_duration(tool.slow_after_s),
        cache_age_duration=to_duration(tool.cache_age_s),
        min_timeout_duration=to_duration(tool.least_timeout_s),
    )
    if tool.default is not None:
        card.default_data.update(tool.default)
    return card
