"""Defines what a run may reach: tools and a model, in plain types."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import orjson
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct
from pydantic import JsonValue

from services.domain.directory import DeclaredTool
from services.domain.fallbacks import AGENTS_OWN, Asked, Codec, ToolFallbacks
from services.domain.reserve import CutOffError, cut_off_after
from services.domain.sources import DataSource
from services.runtime.call import CURRENT, Alternative, Degradation
from services.runtime.client import Dependency
from services.runtime.conversation import Message
from services.runtime.errors import CallerError, SelfBugError, SixhopError
from services.runtime.failover_stream import ANY_TERMS, Terms
from services.runtime.generation import TextStream, Wait
from services.runtime.generation_options import NO_OPTIONS, GenerationOptions
from services.runtime.policies.fallback import FallbackDriver
from sixhop.tool.v1 import tool_pb2
from sixhop.tool.v1.tool_pb2_grpc import ToolServiceStub
from sixhop.type.v1 import artifact_pb2


@dataclass(frozen=True, slots=True)
class Artifact:
    """Holds one file that belongs to an answer."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Holds what a tool gave, or what was given in its place."""

    data: dict[str, JsonValue]
    artifacts: tuple[Artifact, ...] = ()
    degradation: Degradation | None = None
    """Says what was given in place of the tool's answer, and why; None for the answer itself."""


class ToolPort(Protocol):
    """Executes tools."""

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        sources: Sequence[DataSource],
        language: str,
        request_id: str,
        partial: Mapping[str, JsonValue] | None = None,
        optional: bool = False,
        limit_s: float | None = None,
    ) -> ToolResult:
        """Execute one tool, or give what it declares to be given instead.

        Args:
            name: the tool.
            arguments: as its schema says.
            sources: the data that the question is about.
            language: the run's.
            request_id: names the execution: see `request_id`.
            partial: what the agent has without the answer, if anything.
            optional: whether the agent can do without it.
            limit_s: how long it may take, when that is less than the run has.

        Raises:
            SixhopError: the tool refused, failed, or did not answer in time, and nothing that it
                declares fits.
        """
        ...


class ModelPort(Protocol):
    """Generates text."""

    def stream(
        self,
        messages: Sequence[Message],
        *,
        options: GenerationOptions = NO_OPTIONS,
        on_wait: Callable[[Wait], None] | None = None,
        terms: Terms = ANY_TERMS,
    ) -> AbstractAsyncContextManager[TextStream]:
        """Return a generation to iterate over; the terms say what is known and allowed."""
        ...


class ToolClient:
    """Executes tools at the tool hop."""

    def __init__(
        self,
        dependency: Dependency,
        declared: Callable[[str], DeclaredTool],
        driver: FallbackDriver | None,
    ) -> None:
        """Take what calls need.

        Args:
            dependency: the dependency `tool`.
            declared: tells what each tool declares.
            driver: gives what a tool declares, and keeps answers; None while the engine is off.
        """
        self._dependency = dependency
        self._declared = declared
        self._driver = driver
        self._fallbacks = ToolFallbacks(_CODEC, driver.answers if driver else None)
        self._stub = ToolServiceStub(dependency.channel)

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        sources: Sequence[DataSource],
        language: str,
        request_id: str,
        partial: Mapping[str, JsonValue] | None = None,
        optional: bool = False,
        limit_s: float | None = None,
    ) -> ToolResult:
        """Execute one tool; as the port says."""
        inbound, declared = CURRENT.get(), self._declared(name)
        asked = Asked(
            name=name,
            arguments=arguments,
            sources=sources,
            language=language,
            tenant=inbound.identity.tenant,
        )
        digest = await self._fallbacks.digest(declared, asked)
        told: list[Degradation] = []
        alternatives = self._fallbacks.alternatives(
            declared, digest, partial=partial, optional=optional, tell=told.append
        )
        request = _request(asked, request_id)
        try:
            response = await self._call(request, declared, alternatives, limit_s)
        except SixhopError as error:
            untried = self._untried(error, alternatives)
            given = await self._instead(declared, untried, error, inbound.self_deadline)
            if given is None:
                raise
            return given
        if not told:
            self._fallbacks.keep(declared, digest, response)
        return _result(response, told[0] if told else None)

    async def _call(
        self,
        request: tool_pb2.ExecuteToolRequest,
        declared: DeclaredTool,
        alternatives: Sequence[Alternative],
        limit_s: float | None,
    ) -> tool_pb2.ExecuteToolResponse:
        async with cut_off_after(limit_s, CURRENT.get(), request.language):
            return await self._dependency.unary(
                self._stub.ExecuteTool,
                request,
                note=request.name,
                callee=declared.callee,
                alternatives=alternatives,
            )

    def _untried(
        self, error: SixhopError, alternatives: Sequence[Alternative]
    ) -> Sequence[Alternative]:
        """Return what nobody has tried to give yet."""
        if isinstance(error, CutOffError):
            return alternatives
        if isinstance(error, SelfBugError):
            return ()
        if self._driver is not None and not isinstance(error, CallerError):
            # It has tried all that there is.
            return ()
        # Other answers to a request that was refused do not help, and to do without one does.
        return _agents_own(alternatives)

    async def _instead(
        self,
        declared: DeclaredTool,
        alternatives: Sequence[Alternative],
        error: SixhopError,
        until: float,
    ) -> ToolResult | None:
        if self._driver is not None:
            waited_s = error.limit_s if isinstance(error, CutOffError) else 0.0
            given = await self._driver.give(
                declared.callee.key, alternatives, error, waited_s=waited_s, until=until
            )
            return None if given is None else _result(given.answer, given.degradation)
        for own in _agents_own(alternatives):
            degradation = Degradation(
                mechanism=own.mechanism, reason=error.reason, message=error.message
            )
            return _result(await own.run(), degradation)
        return None


def _agents_own(alternatives: Sequence[Alternative]) -> list[Alternative]:
    """Return what the agent gives by itself, for which it needs no engine."""
    return [each for each in alternatives if each.mechanism in AGENTS_OWN]


def _request(asked: Asked, request_id: str) -> tool_pb2.ExecuteToolRequest:
    packed = Struct()
    packed.update(dict(asked.arguments))
    return tool_pb2.ExecuteToolRequest(
        name=asked.name,
        arguments=packed,
        request_id=request_id,
        sources=[
            artifact_pb2.DataSource(name=source.name, content=source.content)
            for source in asked.sources
        ],
        language=asked.language,
    )


def _result(response: tool_pb2.ExecuteToolResponse, degradation: Degradation | None) -> ToolResult:
    return ToolResult(
        data=json_format.MessageToDict(response.data),
        artifacts=tuple(
            Artifact(artifact.name, artifact.media_type, artifact.content)
            for artifact in response.artifacts
        ),
        degradation=degradation,
    )


def _packed(data: Mapping[str, JsonValue]) -> tool_pb2.ExecuteToolResponse:
    response = tool_pb2.ExecuteToolResponse()
    response.data.update(dict(data))
    return response


_CODEC = Codec(
    pack=_packed,
    dump=tool_pb2.ExecuteToolResponse.SerializeToString,
    load=tool_pb2.ExecuteToolResponse.FromString,
)


def request_id(run_id: str, tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return the id of an execution: the same over retries, never shown to a model.

    It is a digest of run, tool and canonical arguments: the same action in the same run is the
    same execution.
    """
    canonical = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(b"\0".join([run_id.encode(), tool.encode(), canonical]))
    return digest.hexdigest()[:32]
