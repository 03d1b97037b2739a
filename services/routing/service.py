"""Serves the routing hop: chooses an agent and forwards its run."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from services.routing.board import HealthBoard
from services.routing.config import BoardSettings, RoutingSettings
from services.routing.decision import ContextSize, ModelRoute, RouteDecision, decide
from services.routing.directory import AgentDirectory
from services.routing.embedding import E5Embedder, EmbeddingThread
from services.routing.intent import Choice, IntentIndex
from services.routing.polling import Poller
from services.routing.ports import DomainReplicas, open_replicas
from services.routing.redis_store import RedisStore
from services.routing.sharing import BoardSharing
from services.runtime.background import background
from services.runtime.call import CURRENT
from services.runtime.clock import Clock
from services.runtime.errors import NotFoundError, SelfUnavailableError
from services.runtime.generation_options import options_from_wire
from services.runtime.policies.deadline import MAX_SHARE
from services.runtime.process import Hop
from services.runtime.telemetry import AGENT_CHOSEN, get_logger
from services.runtime.topology import DOMAIN, ROUTING
from sixhop.domain.v1 import domain_pb2
from sixhop.routing.v1 import routing_pb2
from sixhop.routing.v1.routing_pb2_grpc import (
    RoutingServiceServicer,
    add_RoutingServiceServicer_to_server,
)
from sixhop.type.v1 import chat_pb2, run_pb2

SERVICE = "sixhop.routing.v1.RoutingService"

_ROUTES = {
    ModelRoute.PRIMARY: run_pb2.MODEL_ROUTE_PRIMARY,
    ModelRoute.BACKUP: run_pb2.MODEL_ROUTE_BACKUP,
}
_SIZES = {
    ContextSize.FULL: run_pb2.CONTEXT_SIZE_FULL,
    ContextSize.COMPRESSED: run_pb2.CONTEXT_SIZE_COMPRESSED,
}


class RoutingServicer(RoutingServiceServicer):
    """Chooses who answers, for the gateway."""

    def __init__(
        self,
        directory: AgentDirectory,
        replicas: DomainReplicas,
        settings: RoutingSettings,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        """Take the agents, the ways to the hop that runs them, and what decides between equals."""
        self._directory = directory
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._log = get_logger()

    async def Route(  # gRPC's name
        self,
        request: routing_pb2.RouteRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[routing_pb2.RouteResponse]:
        """Choose an agent and a replica, and forward the run to it."""
        choice = await self._choose(request)
        CURRENT.get().note = choice.agent
        decision = self._decide(choice.agent)
        self._tell(choice, decision)
        routed = run_pb2.RunEvent(routed=_routed(choice, decision))
        yield routing_pb2.RouteResponse(sequence=1, event=routed)
        sequence = 1
        forwarded = domain_pb2.RunAgentRequest(
            agent=choice.agent,
            question=request.question,
            delivery=request.delivery,
            model_route=_ROUTES[decision.advice.route],
            context_size=_SIZES[decision.advice.context],
            allowed_tools=request.allowed_tools if request.HasField("allowed_tools") else None,
        )
        async with self._replicas.run(decision.placement, forwarded) as running:
            async for response in running.responses:
                running.hear()
                sequence += 1
                given_at = self._clock.now()
                yield routing_pb2.RouteResponse(sequence=sequence, event=response.event)
                running.hold(self._clock.now() - given_at)

    async def ListAgents(  # gRPC's name
        self,
        request: routing_pb2.ListAgentsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> routing_pb2.ListAgentsResponse:
        """List the agents that can be asked for."""
        cards = sorted(self._agents().cards, key=lambda card: card.name)
        return routing_pb2.ListAgentsResponse(
            agents=[
                routing_pb2.AgentSummary(
                    name=card.name,
                    description=card.description,
                    reads_data=card.reads_data,
                    converses=card.converses,
                )
                for card in cards
            ]
        )

    def _decide(self, agent: str) -> RouteDecision:
        """Decide where the run goes, before anyone waits for it."""
        index, now = self._directory.index, self._clock.now()
        left_s = CURRENT.get().self_deadline - now
        return decide(
            self._replicas.board,
            index.needed_tools(agent) if index is not None else (),
            MAX_SHARE * left_s,
            now,
            self._chance,
            self._replicas.blocked(),
        )

    def _tell(self, choice: Choice, decision: RouteDecision) -> None:
        self._log.info(
            AGENT_CHOSEN,
            agent=choice.agent,
            margin=choice.margin,
            why=choice.reason,
            replica=decision.placement.record.address,
            model_route=decision.advice.route,
            context_size=decision.advice.context,
            route_why=decision.reason,
        )

    def _agents(self) -> IntentIndex:
        index = self._directory.index
        if index is None:
            raise SelfUnavailableError(
                "routing has not learned the agents yet; try again in a moment",
                cause="starting",
                retry_after_s=1.0,
            )
        return index

    async def _choose(self, request: routing_pb2.RouteRequest) -> Choice:
        index = self._agents()
        if request.HasField("allowed_agents"):
            index = index.only(request.allowed_agents.names)
        if request.agent:
            if request.agent not in index.names:
                raise NotFoundError("agent", request.agent, index.names)
            return Choice(request.agent, 1.0, 1.0, "requested")
        settings, with_data = self._settings, bool(request.question.sources)
        if _converses(request.question):
            return index.conversing(settings.fallback_agent, with_data=with_data)
        return await self._directory.thread.run(
            lambda: index.choose(
                request.question.text,
                min_margin=settings.min_margin,
                fallback_agent=settings.data_agent if with_data else settings.fallback_agent,
                with_data=with_data,
            )
        )


def _converses(question: run_pb2.Question) -> bool:
    """Tell whether a question is for whoever converses, whatever its words are."""
    options = options_from_wire(question.generation, question.tools, question.tool_choice)
    told = any(message.role == chat_pb2.CHAT_ROLE_TOOL for message in question.history)
    needs = options.needs_conversing or not question.text.strip()
    return needs or (told and not question.sources)


def _routed(choice: Choice, decision: RouteDecision) -> run_pb2.RunRouted:
    return run_pb2.RunRouted(
        agent=choice.agent,
        score=choice.score,
        margin=choice.margin,
        reason=choice.reason,
        replica=decision.replica,
        model_route=_ROUTES[decision.advice.route],
        context_size=_SIZES[decision.advice.context],
        route_reason=decision.reason,
    )


@asynccontextmanager
async def open_hop(hop: Hop) -> AsyncIterator[None]:
    """Open the routing hop: it can work once it has learned the agents."""
    settings = hop.config.section(ROUTING, RoutingSettings)
    thread, chance = EmbeddingThread(), random.Random()
    board = HealthBoard(hop.config.replicas(DOMAIN), settings.board, hop.clock, chance)
    try:
        embedder = await thread.run(E5Embedder)
        async with open_replicas(hop, board, settings.board) as replicas:
            directory = AgentDirectory(replicas.any, embedder, thread, settings, hop.clock)
            servicer = RoutingServicer(directory, replicas, settings, hop.clock, chance)
            add_RoutingServiceServicer_to_server(servicer, hop.server)
            hop.services.append(SERVICE)
            hop.runtime.attributes = lambda: {
                "agents": ", ".join(directory.index.names if directory.index else ()),
                "board": board.describe(),
            }
            hop.health.detail = "waiting for the agents of the domain hop"
            poller = Poller(board, replicas.ask, settings.board, hop.clock, chance)
            async with (
                poller.polling(),
                _sharing(hop, board, settings.board),
                background(directory.refresh_forever(hop.health.set_ready)),
            ):
                yield
    finally:
        thread.close()


@asynccontextmanager
async def _sharing(hop: Hop, board: HealthBoard, settings: BoardSettings) -> AsyncIterator[None]:
    """Share the board while the block runs, when there is a store."""
    url = settings.redis_url.get_secret_value()
    if not url:
        yield
        return
    store = RedisStore(url, settings.redis_prefix, settings.share_expiry_s)
    sharing = BoardSharing(board, store, hop.pod, settings.share_interval_s, hop.clock)
    async with background(sharing.share_forever()):
        yield
