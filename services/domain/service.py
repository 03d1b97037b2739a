"""Serves the domain hop: turns messages into runs and events into messages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.domain.agent import Agent, AgentRegistry, Answer
from services.domain.availability import ToolAvailability
from services.domain.config import DomainSettings
from services.domain.delivery import Delivery
from services.domain.directory import ToolDirectory
from services.domain.events import (
    Degraded,
    Event,
    Restarted,
    StepFinished,
    StepStarted,
    StepState,
    TextDelta,
)
from services.domain.examination import load_agents
from services.domain.execution import Silence, executing
from services.domain.ports import ToolClient
from services.domain.run import Advice, Ports, Run
from services.domain.sources import DataSource
from services.runtime.background import background
from services.runtime.call import CURRENT
from services.runtime.conversation import (
    Message,
    ToolCall,
    call_to_wire,
    message_from_wire,
    role_from_wire,
)
from services.runtime.durations import to_duration
from services.runtime.errors import InvalidArgumentError
from services.runtime.failover import open_failover
from services.runtime.generation import Wait
from services.runtime.generation_options import GenerationOptions, options_from_wire
from services.runtime.heartbeat import HeartbeatSettings
from services.runtime.language import language_of
from services.runtime.process import Hop
from services.runtime.topology import DOMAIN, TOOL
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import (
    DomainServiceServicer,
    add_DomainServiceServicer_to_server,
)
from sixhop.type.v1 import artifact_pb2, chat_pb2, run_pb2, usage_pb2

SERVICE = "sixhop.domain.v1.DomainService"

_STATES = {
    StepState.OK: run_pb2.STEP_STATE_OK,
    StepState.FAILED: run_pb2.STEP_STATE_FAILED,
    StepState.SKIPPED: run_pb2.STEP_STATE_SKIPPED,
}


_DELIVERIES = {
    run_pb2.DELIVERY_BUFFERED: Delivery.BUFFERED,
    run_pb2.DELIVERY_LIVE: Delivery.LIVE,
}


class DomainServicer(DomainServiceServicer):
    """Runs agents for routing."""

    def __init__(self, agents: AgentRegistry, ports: Ports, heartbeat: HeartbeatSettings) -> None:
        """Take the agents, their ways out, and when their silence is to be told."""
        self._agents = agents
        self._heartbeat = heartbeat
        self._ports = ports

    async def RunAgent(  # gRPC's name
        self,
        request: domain_pb2.RunAgentRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[domain_pb2.RunAgentResponse]:
        """Run one agent on one question."""
        agent = self._agents.get(request.agent)
        question = request.question
        options = _options(question)
        _require_fit(agent, question, options)
        history = [_message(message) for message in question.history]
        inbound = CURRENT.get()
        inbound.note = agent.name
        run = Run(
            question=question.text,
            language=question.language or language_of(_last_words(question.text, history)),
            sources=[DataSource(source.name, source.content) for source in question.sources],
            session_id=question.session_id,
            inbound=inbound,
            ports=self._ports,
            history=history,
            options=options,
            delivery=_DELIVERIES.get(request.delivery, Delivery.RESTARTABLE),
            advice=Advice(
                backup=request.model_route == run_pb2.MODEL_ROUTE_BACKUP,
                compressed=request.context_size == run_pb2.CONTEXT_SIZE_COMPRESSED,
            ),
            allowed_tools=(
                frozenset(request.allowed_tools.names)
                if request.HasField("allowed_tools")
                else None
            ),
        )
        sequence = 0
        async with executing(agent, run, self._heartbeat) as execution:
            async for event in execution.events():
                sequence += 1
                yield _response(sequence, _to_proto(event, run))
            answer = execution.answer()
        finished = run_pb2.RunEvent(finished=_finished(agent.name, answer, run))
        yield _response(sequence + 1, finished)

    async def ListAgents(  # gRPC's name
        self,
        request: domain_pb2.ListAgentsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> domain_pb2.ListAgentsResponse:
        """List the agents."""
        return domain_pb2.ListAgentsResponse(
            agents=[
                domain_pb2.AgentCard(
                    name=agent.name,
                    description=agent.description,
                    examples=agent.examples,
                    reads_data=agent.reads_data,
                    needed_tools=agent.needed_tools,
                    converses=agent.converses,
                )
                for agent in self._agents
            ]
        )


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Open the domain hop: it can work once its agents are found."""
    settings = hop.config.section(DOMAIN, DomainSettings)
    agents = load_agents(settings)
    async with hop.dependency(TOOL) as tool, open_failover(hop) as model:
        directory = ToolDirectory(
            tool, hop.clock, refresh_interval_s=settings.tools_refresh_interval_s
        )
        availability = ToolAvailability(
            directory, lambda: hop.policies.breakers if hop.policies else None
        )
        driver = hop.policies.fallback if hop.policies else None
        tools = ToolClient(tool, directory.declared, driver)
        ports = Ports(tools, model, hop.clock, availability)
        add_DomainServiceServicer_to_server(
            DomainServicer(agents, ports, hop.config.heartbeat), hop.server
        )
        hop.services.append(SERVICE)
        hop.runtime.attributes = lambda: {"agents": ", ".join(agent.name for agent in agents)}
        async with background(directory.refresh_forever()):
            await hop.health.set_ready()
            yield


def _options(question: run_pb2.Question) -> GenerationOptions | None:
    """Return how the caller wants the text generated; None when that is the agent's to say."""
    if not (question.HasField("generation") or question.tools or question.tool_choice):
        return None
    return options_from_wire(question.generation, question.tools, question.tool_choice)


def _require_fit(
    agent: Agent, question: run_pb2.Question, options: GenerationOptions | None
) -> None:
    """Refuse a question that asks for what the agent would leave undone."""
    needs = not question.text.strip() or (options is not None and options.needs_conversing)
    if needs and not agent.converses:
        raise InvalidArgumentError(
            "agent",
            f"{agent.name} takes no tools, no history in place of a question, no stop and no "
            "response format; leave them out, or name no agent",
        )


def _last_words(question: str, history: Sequence[Message]) -> str:
    """Return what the user said last."""
    said = (message.content for message in reversed(history) if message.role == "user")
    return question if question.strip() else next(said, "")


def _message(message: chat_pb2.ChatMessage) -> Message:
    role = role_from_wire(message.role)
    if role is None:
        raise InvalidArgumentError("question.history.role", "say system, user, assistant or tool")
    return message_from_wire(message, role)


def _response(sequence: int, event: run_pb2.RunEvent) -> domain_pb2.RunAgentResponse:
    return domain_pb2.RunAgentResponse(sequence=sequence, event=event)


def _to_proto(event: Event | Silence, run: Run) -> run_pb2.RunEvent:
    match event:
        case StepStarted(step, name, title):
            return run_pb2.RunEvent(
                step_started=run_pb2.StepStarted(step=step, name=name, title=title)
            )
        case StepFinished(step, name, state, elapsed_s, detail):
            return run_pb2.RunEvent(
                step_finished=run_pb2.StepFinished(
                    step=step,
                    name=name,
                    state=_STATES[state],
                    elapsed_duration=to_duration(elapsed_s),
                    detail=detail,
                )
            )
        case TextDelta(text):
            return run_pb2.RunEvent(text_delta=run_pb2.TextDelta(text=text))
        case ToolCall():
            return run_pb2.RunEvent(tool_call=call_to_wire(event))
        case Degraded():
            return run_pb2.RunEvent(degraded=_degraded(event))
        case Restarted(reason):
            return run_pb2.RunEvent(restarted=run_pb2.Restarted(reason=reason))
        case Silence(silence_s):
            return _thinking(Wait("silent", silence_s, run.time_remaining_s(), hop=DOMAIN))
        case Wait():
            return _thinking(event)


def _thinking(wait: Wait) -> run_pb2.RunEvent:
    return run_pb2.RunEvent(
        thinking=run_pb2.Thinking(
            state=wait.state,
            silence_duration=to_duration(wait.silence_s),
            remaining_duration=to_duration(wait.remaining_s),
            hop=wait.hop,
        )
    )


def _degraded(event: Degraded) -> run_pb2.Degraded:
    degraded = run_pb2.Degraded(
        mechanism=event.mechanism,
        part=event.part,
        reason=event.reason,
        error_reason=event.error_reason,
    )
    if event.age_s > 0:
        degraded.age_duration.CopyFrom(to_duration(event.age_s))
    return degraded


def _finished(agent: str, answer: Answer, run: Run) -> run_pb2.RunFinished:
    return run_pb2.RunFinished(
        agent=agent,
        model=answer.model,
        usage=usage_pb2.Usage(
            input_token_count=answer.usage.input_token_count,
            output_token_count=answer.usage.output_token_count,
            estimated=answer.usage.estimated,
        ),
        artifacts=[
            artifact_pb2.Artifact(
                name=artifact.name, media_type=artifact.media_type, content=artifact.content
            )
            for artifact in answer.artifacts
        ],
        degraded=bool(run.degraded_parts),
        missing_parts=dict.fromkeys((*run.missing_parts, *answer.missing)),
        sources=answer.sources,
        finish_reason=answer.finish_reason,
    )
