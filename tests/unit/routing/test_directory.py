"""Holds the list of agents to being learned, kept fresh, and kept while the domain hop is away."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from services.routing.config import RoutingSettings
from services.routing.directory import AgentDirectory
from services.routing.embedding import EmbeddingThread
from services.routing.intent import Vector
from services.runtime.call import Callee
from services.runtime.clock import ManualClock
from services.runtime.errors import DependencyFailedError, Origin
from sixhop.domain.v1 import domain_pb2

SETTINGS = RoutingSettings(refresh_interval_s=30.0, retry_interval_s=0.25)
AWAY = DependencyFailedError("domain", "gone", cause="unreachable", origin=Origin("domain"))


class Flat:
    """Embeds everything alike, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def embed(self, text: str) -> Vector:
        """Return one direction."""
        self.count += 1
        return np.asarray([1.0], dtype=np.float32)

    def give_back(self) -> None:
        """Hold nothing."""


class ScriptedDomain:
    """Answers ListAgents as the test says; the last answer stays."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.keys: set[str] = set()
        self.channel: Any = FakeChannel()
        self.changed = asyncio.Event()

    async def unary(self, rpc: Any, request: Any, *, callee: Callee) -> Any:
        """Answer once."""
        self.asked += 1
        self.keys.add(callee.key)
        self.changed.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return domain_pb2.ListAgentsResponse(
            agents=[domain_pb2.AgentCard(name=name, examples=["a", "b"]) for name in answer]
        )


class FakeChannel:
    """Makes stubs possible."""

    def unary_unary(self, *args: Any, **kwargs: Any) -> None:
        """Offer nothing."""

    def unary_stream(self, *args: Any, **kwargs: Any) -> None:
        """Offer nothing."""


class InlineThread(EmbeddingThread):
    """Works where it is."""

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what the work returns."""
        return work()


def directory(domain: ScriptedDomain, embedder: Flat, clock: ManualClock) -> AgentDirectory:
    """Return a directory that asks a scripted domain hop."""
    dependency: Any = domain
    model: Any = embedder
    return AgentDirectory(lambda: dependency, model, InlineThread(), SETTINGS, clock)


async def test_agents_are_embedded_again_only_when_they_changed(clock: ManualClock) -> None:
    embedder = Flat()
    agents = directory(ScriptedDomain(["chat"], ["chat"], ["chat", "orders"]), embedder, clock)

    await agents.refresh()
    first = agents.index
    await agents.refresh()
    same = agents.index
    await agents.refresh()

    assert first is same
    assert agents.index is not None
    assert agents.index.names == ["chat", "orders"]
    assert embedder.count == 2 + 4


async def test_the_first_look_is_repeated_soon_and_later_ones_seldom(clock: ManualClock) -> None:
    domain = ScriptedDomain(AWAY, AWAY, ["chat"])
    agents = directory(domain, Flat(), clock)
    ready = asyncio.Event()

    async def learned() -> None:
        assert not ready.is_set(), "this is to be told once"
        ready.set()

    asks = []
    refreshing = asyncio.create_task(agents.refresh_forever(learned))
    for pause_s in (0.25, 0.25, 29.9, 0.1):
        await _turns()
        asks.append((domain.asked, ready.is_set()))
        clock.advance(pause_s)
    await _turns()
    asks.append((domain.asked, ready.is_set()))
    refreshing.cancel()
    await asyncio.wait({refreshing})

    assert asks == [(1, False), (2, False), (3, True), (3, True), (4, True)]


async def test_the_last_known_agents_stay_while_the_domain_hop_is_away(clock: ManualClock) -> None:
    domain = ScriptedDomain(["chat"], AWAY)
    agents = directory(domain, Flat(), clock)
    refreshing = asyncio.create_task(agents.refresh_forever(_nothing))
    await _turns()

    clock.advance(30.0)
    await _turns()
    refreshing.cancel()
    await asyncio.wait({refreshing})

    assert domain.asked == 2
    assert agents.index is not None
    assert agents.index.names == ["chat"]


async def _nothing() -> None:
    pass


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_domain_hop_that_starts_is_not_cut_off_for_the_runs_to_come() -> None:
    domain = ScriptedDomain(["chat"])

    await directory(domain, Flat(), ManualClock()).refresh()

    assert domain.keys == {"domain/agents"}
