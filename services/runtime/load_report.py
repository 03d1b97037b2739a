"""Tells a process's load in the trailers of its answers, as an ORCA load report.

The wire form is ORCA's (xds.data.orca.v3, gRFC A51), so that Envoy and gRPC's weighted round robin
can read it. gRPC keeps ORCA's own trailer to itself and never gives it to a caller's code: what our
callers read travels in one of ours, which tells all that is known. It is sent to those that ask for
it, as each does a few times per second: with every answer it would cost a hop a thirtieth of its
CPU.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from services.runtime.circuit import BreakerState
from services.runtime.clock import Clock
from sixhop.type.v1 import load_pb2

ORCA_REPORT_KEY = "endpoint-load-metrics-bin"
"""The trailer for proxies and balancers, as ORCA names it."""
LOAD_REPORT_KEY = "sixhop-load-bin"
"""The trailer for our callers, which tells of lengths, dependencies, tools and agents as well."""
LOAD_WANTED = ("x-sixhop-load", "1")
"""What a call carries whose answer is to tell all; an error always does."""
ASK_INTERVAL_S = 0.05
"""How often a caller asks for a report at most while none comes: who was asked may never answer."""
REBUILD_INTERVAL_S = 0.2
"""How long one report is told: building one costs as much as a call, and nothing reacts sooner."""
MAX_BYTES = 2500
"""A longer report is not read: beside the reports of attempts there is no more room in metadata."""
MAX_NAMED = 12
"""How many breakers, latencies and notes are told of each kind at most."""
MAX_NUMBER = 1e9
"""No length, rate or count is larger."""

Trailers = tuple[tuple[str, bytes], ...]
"""Names and values of trailing metadata."""

_STATES = {BreakerState.OPEN: 1.0, BreakerState.HALF_OPEN: 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """Describes the load of one process at one instant; lengths in seconds, None is unknown."""

    cpu_utilization: float = 0.0
    """CPU time used per second; a process with more than one thread can reach more than 1."""
    application_utilization: float = 0.0
    """Calls in flight as a part of those that may be."""
    rps: float = 0.0
    """Calls served per second."""
    eps: float = 0.0
    """Of these, the ones that failed."""
    p50_s: float | None = None
    """What half of the callers waited for an answer, or for the first event of a stream."""
    p90_s: float | None = None
    """What nine of ten callers waited."""
    wait_s: float | None = None
    """What half of the calls spent waiting for dependencies, all their waits together."""
    path_s: float | None = None
    """The path estimate: own work, and the dependencies by how often they are called."""
    estimated_qps: float | None = None
    """How many more calls per second would be served in time."""
    inflight: int = 0
    """Calls being served."""
    limit: int = 0
    """How many may be; 0 is unknown."""
    queued: int = 0
    """Calls to dependencies that wait for a permit."""
    note_p90_s: Mapping[str, float] = field(default_factory=dict)
    """`p90_s` of single tools or agents, by name."""
    breakers: Mapping[str, BreakerState] = field(default_factory=dict)
    """The dependencies whose breaker is not closed, by key."""
    mean_s: Mapping[str, float] = field(default_factory=dict)
    """What answers of dependencies take, by key."""


def encode_load_report(report: LoadReport) -> bytes:
    """Return all that a report tells, as the value of a trailer."""
    named = {
        name: number
        for name, number in (
            ("p50_s", report.p50_s),
            ("p90_s", report.p90_s),
            ("wait_s", report.wait_s),
            ("path_s", report.path_s),
            ("estimated_qps", report.estimated_qps),
            ("inflight", report.inflight),
            ("limit", report.limit),
            ("queued", report.queued),
        )
        if number is not None
    }
    for prefix, numbers in (
        ("p90_s/", report.note_p90_s),
        ("breaker/", {k: _STATES[v] for k, v in report.breakers.items() if v in _STATES}),
        ("mean_s/", report.mean_s),
    ):
        for key, number in list(numbers.items())[:MAX_NAMED]:
            named[prefix + key] = number
    return _encoded(report, named)


def _encoded(report: LoadReport, named: Mapping[str, float]) -> bytes:
    told = load_pb2.LoadReport(
        cpu_utilization=report.cpu_utilization,
        application_utilization=report.application_utilization,
        rps_fractional=report.rps,
        eps=report.eps,
        named_metrics=named,
    )
    return told.SerializeToString()


def load_trailer(report: LoadReport) -> tuple[str, bytes]:
    """Return the trailer of every answer: what proxies and balancers choose by."""
    named = {} if report.estimated_qps is None else {"estimated_qps": report.estimated_qps}
    return ORCA_REPORT_KEY, _encoded(report, named)


def read_load_report(value: bytes) -> LoadReport | None:
    """Return the report in a trailer; None for garbage.

    A report of a foreign server has none of our names: what it does not tell is unknown. A number
    that can be no load, such as a negative one, counts as not told.
    """
    if len(value) > MAX_BYTES:
        return None
    try:
        told = load_pb2.LoadReport.FromString(value)
    except DecodeError:
        # Reports help to choose: an answer must not fail over them.
        return None
    named = {name: number for name, number in told.named_metrics.items() if _sane(number)}
    return LoadReport(
        cpu_utilization=_or_zero(told.cpu_utilization),
        application_utilization=_or_zero(told.application_utilization),
        rps=_or_zero(told.rps_fractional),
        eps=_or_zero(told.eps),
        p50_s=named.get("p50_s"),
        p90_s=named.get("p90_s"),
        wait_s=named.get("wait_s"),
        path_s=named.get("path_s"),
        estimated_qps=named.get("estimated_qps"),
        inflight=int(named.get("inflight", 0)),
        limit=int(named.get("limit", 0)),
        queued=int(named.get("queued", 0)),
        note_p90_s=_under("p90_s/", named),
        breakers={
            key: BreakerState.OPEN if number >= 1 else BreakerState.HALF_OPEN
            for key, number in _under("breaker/", named).items()
        },
        mean_s=_under("mean_s/", named),
    )


class LoadReporter:
    """Gives the report of this process as it goes onto the wire, built now and then."""

    __slots__ = ("_brief", "_fresh_until", "_full", "_measure", "_now")

    def __init__(self, measure: Callable[[], LoadReport], clock: Clock) -> None:
        """Take what measures the load."""
        self._measure = measure
        self._now = clock.now
        self._brief: Trailers = ()
        self._full: Trailers = ()
        self._fresh_until = -math.inf

    def current(self, full: bool) -> Trailers:
        """Return the trailers that tell the load; `REBUILD_INTERVAL_S` old at most.

        Args:
            full: whether all that is known is asked for, as our callers do now and then.
        """
        now = self._now()
        if now >= self._fresh_until:
            report = self._measure()
            self._brief = (load_trailer(report),)
            self._full = (*self._brief, (LOAD_REPORT_KEY, encode_load_report(report)))
            self._fresh_until = now + REBUILD_INTERVAL_S
        return self._full if full else self._brief


class LoadReader:
    """Keeps what one endpoint has told last."""

    __slots__ = ("_clock", "_told_at", "_value", "due_at", "report")

    def __init__(self, clock: Clock) -> None:
        """Start with nothing told."""
        self._clock = clock
        self._value = b""
        self.due_at = -math.inf
        """From this instant on another report is wanted: as often as there may be one, no oftener.
        An attribute, because every call looks at it."""
        self._told_at = -math.inf
        self.report: LoadReport | None = None
        """The last report that could be read."""

    def ask(self, now: float) -> None:
        """Note that a report is asked for at an instant."""
        self.due_at = now + ASK_INTERVAL_S

    def note(self, value: bytes) -> None:
        """Take the trailer of an answer; what is no report changes nothing."""
        now = self._clock.now()
        # One report comes with many answers, and reading one costs more than all else here.
        if value != self._value:
            report = read_load_report(value)
            if report is None:
                return
            self._value = value
            self.report = report
        self._told_at = now
        self.due_at = now + REBUILD_INTERVAL_S

    def age_s(self) -> float:
        """Return how long ago something was told last; infinite when nothing was."""
        return self._clock.now() - self._told_at


def _sane(number: float) -> bool:
    return 0 <= number < MAX_NUMBER


def _or_zero(number: float) -> float:
    return number if _sane(number) else 0.0


def _under(prefix: str, named: Mapping[str, float]) -> dict[str, float]:
    size = len(prefix)
    found = ((name[size:], number) for name, number in named.items() if name.startswith(prefix))
    return dict(list(found)[:MAX_NAMED])
