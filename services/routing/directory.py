"""Learns the agents from the domain hop and keeps them fresh."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services.routing.config import RoutingSettings
from services.routing.embedding import E5Embedder, EmbeddingThread
from services.routing.intent import AgentCard, IntentIndex
from services.runtime.call import Callee
from services.runtime.client import Dependency
from services.runtime.clock import Clock
from services.runtime.errors import SixhopError
from services.runtime.outgoing import own_work
from services.runtime.telemetry import AGENTS_LEARNED, AGENTS_UNREACHABLE, get_logger
from services.runtime.topology import DOMAIN, ROUTING
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub

LISTING = Callee(key=f"{DOMAIN}/agents")
"""Asking who is there: while the domain hop starts it fails again and again, and that must not cut
off the runs that follow."""


@dataclass(slots=True)
class AgentDirectory:
    """Knows the agents. The last known ones stay while the domain hop is away."""

    dependency: Callable[[], Dependency]
    """Returns the way to a process of the domain hop that can be asked now."""
    embedder: E5Embedder
    thread: EmbeddingThread
    settings: RoutingSettings
    clock: Clock
    index: IntentIndex | None = None
    """The agents; None until they were learned for the first time."""

    async def refresh_forever(self, learned: Callable[[], Awaitable[None]]) -> None:
        """Ask again and again; call `learned` after the first success."""
        log = get_logger()
        while True:
            known_before = self.index is not None
            try:
                await self.refresh()
            except SixhopError as error:
                log.warning(AGENTS_UNREACHABLE, problem=error.message, known=known_before)
            else:
                if not known_before:
                    await learned()
            pause_s = (
                self.settings.retry_interval_s
                if self.index is None
                else self.settings.refresh_interval_s
            )
            await self.clock.sleep(pause_s)

    async def refresh(self) -> None:
        """Ask once; embed again only when something changed.

        Raises:
            SixhopError: the domain hop failed or did not answer.
        """
        dependency = self.dependency()
        stub = DomainServiceStub(dependency.channel)
        with own_work(ROUTING, "RefreshAgents", self.settings.refresh_timeout_s, self.clock):
            response = await dependency.unary(
                stub.ListAgents, domain_pb2.ListAgentsRequest(), callee=LISTING
            )
        cards = tuple(
            AgentCard(
                card.name,
                card.description,
                tuple(card.examples),
                card.reads_data,
                tuple(card.needed_tools),
                card.converses,
            )
            for card in response.agents
        )
        if self.index is not None and self.index.cards == cards:
            return
        self.index = await self.thread.run(lambda: self._learn(cards))
        get_logger().info(AGENTS_LEARNED, agents=self.index.names)

    def _learn(self, cards: tuple[AgentCard, ...]) -> IntentIndex:
        index = IntentIndex(cards, self.embedder)
        self.embedder.give_back()
        return index
