"""Holds the ways to the replicas of the domain hop, and follows every run to its end."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import grpc

from services.routing.board import HealthBoard, Placement
from services.routing.config import BoardSettings
from services.routing.ending import ending
from services.routing.record import PolledState, ReplicaRecord, RunTicket
from services.runtime.call import Callee
from services.runtime.circuit import BreakerState
from services.runtime.client import Dependency
from services.runtime.clock import Clock
from services.runtime.durations import to_seconds
from services.runtime.load_report import LoadReader
from services.runtime.outgoing import own_work
from services.runtime.parts import AGENT_KEY, part
from services.runtime.policies.breaker import Breakers
from services.runtime.process import Hop
from services.runtime.topology import DOMAIN, ROUTING
from sixhop.domain.v1 import domain_pb2
from sixhop.domain.v1.domain_pb2_grpc import DomainServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub

_STATES = {
    runtime_pb2.BREAKER_STATE_OPEN: BreakerState.OPEN,
    runtime_pb2.BREAKER_STATE_HALF_OPEN: BreakerState.HALF_OPEN,
}


@dataclass(frozen=True, slots=True)
class Lane:
    """Is the way to one replica."""

    dependency: Dependency
    domain: DomainServiceStub
    runtime: RuntimeServiceStub
    poll_callee: Callee
    """Its state is asked for whether or not its breaker lets runs pass."""
    agents: dict[str, Callee] = field(default_factory=dict)
    """The replica as the callee of each agent's runs, by the agent's name."""

    def callee(self, agent: str) -> Callee:
        """Return the replica as the callee of an agent's runs."""
        found = self.agents.get(agent)
        if found is None:
            whole = self.dependency.outgoing.callee
            found = self.agents[agent] = replace(whole, metadata=part(AGENT_KEY, agent))
        return found


class DomainReplicas:
    """Sends runs and questions to the replicas that the board names."""

    def __init__(
        self,
        lanes: dict[str, Lane],
        board: HealthBoard,
        settings: BoardSettings,
        clock: Clock,
        breakers: Breakers | None,
    ) -> None:
        """Take the ways by address, who chooses, and the breakers; None while they are off."""
        self.board = board
        self._lanes = lanes
        self._settings = settings
        self._clock = clock
        self._breakers = breakers

    def any(self) -> Dependency:
        """Return the way to a replica that can be asked now."""
        placement = self.board.place(self.blocked())
        return self._lanes[placement.record.address].dependency

    def blocked(self) -> frozenset[str]:
        """Return the replicas that cannot be called at this moment: no connection, no permission.

        With a single one there is nothing to choose, and its error says more.
        """
        if len(self._lanes) == 1:
            return frozenset()
        return frozenset(address for address, lane in self._lanes.items() if self._bars(lane))

    @asynccontextmanager
    async def run(
        self, placement: Placement, request: domain_pb2.RunAgentRequest
    ) -> AsyncIterator["Running"]:
        """Run an agent where it was placed; the board learns how that ends.

        Raises:
            SixhopError: the replica failed, or a policy refused.
        """
        record = placement.record
        lane = self._lanes[record.address]
        ticket = self.board.begin(placement, request.agent)
        error: BaseException | None = None
        try:
            async with lane.dependency.stream(
                lane.domain.RunAgent,
                request,
                note=request.agent,
                callee=lane.callee(request.agent),
            ) as responses:
                yield Running(self.board, record, ticket, responses)
        except BaseException as raised:  # looked at and passed on, whatever it is
            error = raised
            raise
        finally:
            self.board.end(record, ticket, *ending(error))

    async def ask(self, address: str) -> PolledState:
        """Return what a replica tells about itself.

        Raises:
            SixhopError: it failed, or did not answer in time.
        """
        lane = self._lanes[address]
        with own_work(ROUTING, "PollReplica", self._settings.poll_timeout_s, self._clock):
            snapshot = await lane.dependency.unary(
                lane.runtime.GetSnapshot,
                runtime_pb2.GetSnapshotRequest(),
                callee=lane.poll_callee,
            )
        return to_state(snapshot)

    def _bars(self, lane: Lane) -> bool:
        state = lane.dependency.channel.get_state()
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            return True
        if self._breakers is None:
            return False
        return self._breakers.state(lane.dependency.outgoing.callee.key) is BreakerState.OPEN


@dataclass(slots=True)
class Running:
    """Is one run under way."""

    board: HealthBoard
    record: ReplicaRecord
    ticket: RunTicket
    responses: AsyncIterator[domain_pb2.RunAgentResponse]

    def hear(self) -> None:
        """Note that an event is there."""
        self.board.hear(self.record, self.ticket)

    def hold(self, length_s: float) -> None:
        """Note how long the reader of an event has kept us: that time is not the replica's."""
        self.ticket.held_s += length_s


@asynccontextmanager
async def open_replicas(
    hop: Hop, board: HealthBoard, settings: BoardSettings
) -> AsyncIterator[DomainReplicas]:
    """Open the ways to all replicas that the board knows."""
    lanes: dict[str, Lane] = {}
    async with AsyncExitStack() as exits:
        for address, record in board.records.items():
            dependency = await exits.enter_async_context(hop.dependency(DOMAIN, address))
            if len(board.records) > 1:
                # Each has a breaker of its own: a sick one must not cut off the others.
                callee = replace(dependency.outgoing.callee, key=f"{DOMAIN}@{address}")
                dependency.outgoing.callee = callee
            if hop.estimator is not None:
                reader = hop.loads.endpoint(DOMAIN, address)
                dependency.note_load = LoadListener(reader, record, hop.clock).note
            channel = dependency.channel
            poll_callee = Callee(key=f"{DOMAIN}@{address}/state", idempotent=True)
            lanes[address] = Lane(
                dependency, DomainServiceStub(channel), RuntimeServiceStub(channel), poll_callee
            )
        breakers = hop.policies.breakers if hop.policies else None
        yield DomainReplicas(lanes, board, settings, hop.clock, breakers)


@dataclass(slots=True)
class LoadListener:
    """Passes what a replica tells of its load on to the board."""

    reader: LoadReader
    record: ReplicaRecord
    clock: Clock

    def note(self, value: bytes) -> None:
        """Take the trailer of an answer."""
        self.reader.note(value)
        if self.reader.report is not None:
            self.record.take_report(self.reader.report, self.clock.now())


def to_state(snapshot: runtime_pb2.GetSnapshotResponse) -> PolledState:
    """Return what the board wants to know of a snapshot."""
    seen = snapshot.dependencies
    return PolledState(
        pod=snapshot.pod,
        ready=snapshot.ready,
        detail=snapshot.detail,
        inflight=snapshot.inflight_count,
        limit=snapshot.admission.limit,
        p50_s=to_seconds(snapshot.p50_latency),
        call_count=snapshot.call_count,
        breakers={
            each.key: _STATES[each.breaker_state] for each in seen if each.breaker_state in _STATES
        },
        mean_s={each.key: to_seconds(each.mean_latency) for each in seen if each.call_count},
    )
