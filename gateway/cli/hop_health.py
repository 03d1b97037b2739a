"""Tells how one process does, from what it says or from its silence."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import grpc

from gateway.cli.console import length_text, one_line
from gateway.cli.dependencies import DependencyHealth, InForce, read_dependencies
from gateway.cli.plain import plain
from services.runtime.durations import to_seconds
from services.runtime.status import DETAILS_KEY, error_info
from sixhop.runtime.v1 import runtime_pb2

ASK_TIMEOUT_S = 1.0
"""How long a hop may take to answer; one that needs longer is in no good state."""

SERVING, NOT_SERVING, SILENT, UNREACHABLE = "serving", "not serving", "silent", "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class HopHealth:
    """Tells how one process does; lengths in seconds."""

    hop: str
    address: str
    state: str
    """`serving`, `not serving`, `silent` (no answer in time) or `unreachable`."""
    detail: str = ""
    """Why it does not serve, or what it says about itself."""
    pod: str = ""
    up_s: float = 0.0
    inflight_count: int = 0
    outgoing_count: int = 0
    task_count: int = 0
    call_count: int = 0
    error_count: int = 0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    wait_s: float = 0.0
    """Of the mean latency, the part spent waiting for others."""
    resident_byte_count: int = 0
    provider: str = ""
    """Whom the model hop says that it calls, `host:port`; empty for the other hops."""
    dependencies: tuple[DependencyHealth, ...] = ()
    """Those that it has called, as it sees them."""
    replica: bool = False
    """Whether it is one of several processes of its hop."""
    told: runtime_pb2.GetSnapshotResponse | None = field(default=None, repr=False)
    """All that it has told; None when nothing was heard."""

    @property
    def name(self) -> str:
        """Return how people tell it from the others: the hop, of replicas with the address."""
        return f"{self.hop}@{self.address}" if self.replica else self.hop

    @property
    def serves(self) -> bool:
        """Return whether it takes calls."""
        return self.state == SERVING


def is_replica(hop: str, places: Iterable[tuple[str, str]]) -> bool:
    """Return whether a hop has several processes.

    Args:
        hop: the hop.
        places: all hops, each with its address.
    """
    return sum(name == hop for name, _ in places) > 1


def unheard(hop: str, address: str, error: grpc.aio.AioRpcError) -> HopHealth:
    """Return how a process does that has not told its state."""
    code = error.code()
    if code is grpc.StatusCode.UNAVAILABLE:
        return HopHealth(hop=hop, address=address, state=UNREACHABLE, detail="nobody listens there")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return silent(hop, address)
    metadata = error.trailing_metadata()
    details = metadata.get(DETAILS_KEY) if metadata is not None else None
    if isinstance(details, bytes) and error_info(details) is not None:
        # A hop of ours that does not want to tell, and says why.
        text = one_line(error.details() or "")
        return HopHealth(hop=hop, address=address, state=SILENT, detail=text)
    detail = f"no hop of sixhop: {code.name} {one_line(error.details() or '')}"
    return HopHealth(hop=hop, address=address, state=NOT_SERVING, detail=detail)


def heard(
    hop: str,
    address: str,
    snapshot: runtime_pb2.GetSnapshotResponse,
    in_force: InForce,
    *,
    serves: bool,
) -> HopHealth:
    """Return how a process does that has told its state.

    Args:
        hop: the hop that should be there.
        address: where it was asked.
        snapshot: what it told.
        in_force: tells the step timeout of a callee.
        serves: whether it says that it takes calls.
    """
    detail = snapshot.detail
    if snapshot.hop != hop:
        serves, detail = False, f"this is the hop {snapshot.hop}; correct the ports"
    elif serves and not detail:
        attributes = sorted(snapshot.attributes.items())
        detail = "; ".join(f"{key} {value}" for key, value in attributes if value)
    return HopHealth(
        hop=hop,
        address=address,
        state=SERVING if serves else NOT_SERVING,
        detail=one_line(detail),
        pod=one_line(snapshot.pod),
        up_s=round(to_seconds(snapshot.up_duration), 3),
        inflight_count=snapshot.inflight_count,
        outgoing_count=snapshot.outgoing_count,
        task_count=snapshot.task_count,
        call_count=snapshot.call_count,
        error_count=snapshot.error_count,
        p50_s=round(to_seconds(snapshot.p50_latency), 6),
        p90_s=round(to_seconds(snapshot.p90_latency), 6),
        p99_s=round(to_seconds(snapshot.p99_latency), 6),
        wait_s=round(to_seconds(snapshot.avg_wait_latency), 6),
        resident_byte_count=snapshot.resident_byte_count,
        provider=one_line(snapshot.attributes.get("provider", "")),
        dependencies=read_dependencies(snapshot.dependencies, in_force),
        told=snapshot,
    )


def to_document(hop: HopHealth) -> Mapping[str, Any]:
    """Return how a process does as programs are shown it: `snapshot` holds all that it told."""
    document = asdict(replace(hop, told=None))
    del document["told"]
    return document | {"snapshot": None if hop.told is None else plain(hop.told)}


def silent(hop: str, address: str) -> HopHealth:
    """Return how a process does that takes calls and does not answer."""
    detail = f"no answer within {length_text(ASK_TIMEOUT_S)}; it is stopped, stuck or busy"
    return HopHealth(hop=hop, address=address, state=SILENT, detail=detail)
