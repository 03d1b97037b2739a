"""Takes runs in this process, for doors that are no gRPC door."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from gateway.runner import Runner
from services.runtime.call import Identity, Inbound
from services.runtime.credential import Credential
from services.runtime.door import Door
from services.runtime.errors import SixhopError
from services.runtime.identity import edge_identity
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Says who comes in, and how long they wait."""

    remaining_s: float | None = None
    """What the caller has left, seconds; None leaves it to the gateway."""
    identity: Identity = field(default_factory=Identity)
    """Whose request it is, as it came."""
    credential: Credential | None = None
    """What the caller shows to be known by."""


@dataclass(frozen=True, slots=True)
class AgentCard:
    """Describes an agent to those who choose."""

    name: str
    description: str


class Desk:
    """Leads runs through the policies of the gateway, as its gRPC door does."""

    def __init__(self, door: Door, runner: Runner) -> None:
        """Take the policies, and what makes runs."""
        self._door = door
        self._runner = runner

    def arrive(self, method: str, arrival: Arrival, *, streaming: bool) -> Inbound:
        """Begin a call; what is told of it later, such as its reports, is in what is returned."""
        identity = edge_identity(arrival.identity)
        inbound = self._door.arrive(method, arrival.remaining_s, identity, streaming=streaming)
        inbound.credential = arrival.credential
        return inbound

    def ask(
        self, inbound: Inbound, request: gateway_pb2.AskRequest
    ) -> Awaitable[gateway_pb2.AskResponse]:
        """Run a question and return the whole answer.

        Raises:
            SixhopError: it was refused or failed; `status` says what the contract makes of that.
        """

        # A task of its own, which goes with the one that waits for it: each event of the run would
        # wake all of the coroutines above this one, and an HTTP server has a dozen.
        def begin() -> asyncio.Task[gateway_pb2.AskResponse]:
            return asyncio.get_running_loop().create_task(self._runner.ask(request))

        return self._door.unary(inbound, begin)

    def run(
        self,
        inbound: Inbound,
        request: gateway_pb2.RunRequest,
        let_in: Callable[[], None] | None = None,
    ) -> AsyncGenerator[run_pb2.RunEvent, None]:
        """Run a question and return its events as they happen; they raise as `ask` does.

        `let_in` is called once the policies have let it pass, and may refuse it still.
        """
        events = self._runner.events(request, let_in)
        return self._door.stream(inbound, events, _settle)

    async def look(self, inbound: Inbound, serve: Callable[[], Awaitable[T]]) -> T:
        """Serve a look at runs, which is no run itself.

        Raises:
            SixhopError: the caller may not look, or there is nothing to see.
        """
        return await self._door.look(inbound, serve)

    async def agents(self, inbound: Inbound) -> list[AgentCard]:
        """Return who can be asked; raises as `ask` does."""
        listed = await self._door.unary(inbound, self._runner.agents)
        return [AgentCard(each.name, each.description) for each in listed.agents]


async def _settle(inbound: Inbound, failure: SixhopError | None) -> None:
    if failure is not None:
        raise failure
