"""Runs one hop as a process: from its configuration to its drain."""

import asyncio
import gc
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc

from services.runtime.background import background
from services.runtime.checks.finding import Examine, Finding
from services.runtime.client import MAX_MESSAGE_BYTES, Dependency, open_channel
from services.runtime.clock import Clock, MonotonicClock, process_cpu_s
from services.runtime.config import Config, ConfigError, HopSettings, load_config, pod_name
from services.runtime.door import Door
from services.runtime.estimate import PathEstimator
from services.runtime.fitness import watching_fitness
from services.runtime.health import Health
from services.runtime.identity import edge_identity
from services.runtime.inspection import RuntimeServicer
from services.runtime.journal import Journal
from services.runtime.ladder import UNCHECKED, check_ladder, findings, violations
from services.runtime.lean_grpc import spare_each_call
from services.runtime.load_meter import LoadMeter
from services.runtime.load_report import LoadReporter
from services.runtime.loads import Loads
from services.runtime.loop_alarm import LoopAlarm, NoAlarm
from services.runtime.metrics_door import metrics_door
from services.runtime.orders import Authority, Orders
from services.runtime.outgoing import Outgoing
from services.runtime.policies.deadline import margin_s
from services.runtime.policies.self_ejection import LagConfig, LagReadiness
from services.runtime.process_state import ProcessState
from services.runtime.reflection import add_reflection
from services.runtime.reload import (
    Live,
    edge_rules,
    logs_calls,
    read_off_the_loop,
    reload_whenever,
)
from services.runtime.sections import MissingFileError
from services.runtime.server import PolicyHandlers, PolicyServer
from services.runtime.stack import (
    ClientPolicies,
    ServerPolicies,
    client_policies,
    client_stack,
    server_policies,
    server_stack,
)
from services.runtime.statistics import Activity
from services.runtime.telemetry import (
    CHECK_FOUND,
    HOP_DRAINING,
    HOP_SERVING,
    HOP_STOPPED,
    REFUSED_TO_START,
    STARTED_UNCHECKED,
    configure_logging,
    get_logger,
    tell_breaker,
    tell_ejection,
    tell_shed,
)
from services.runtime.tenancy import Tenancy
from services.runtime.topology import GATEWAY

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A second process on the same port must fail, not share its calls.
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    # Of more calls than this that wait to be looked at, gRPC drops some by chance and tells them
    # nothing. Admission looks at a thousand in a second and tells each why; more than some seconds
    # of that help nobody, and would take their memory.
    ("grpc.server.max_pending_requests", 5_000),
    ("grpc.server.max_pending_requests_hard_limit", 10_000),
)
EXIT_OK = 0
EXIT_VIOLATED = 1
"""The configuration can be read, and contradicts itself."""
EXIT_CONFIG = 2


class PortTakenError(Exception):
    """Says that another process listens on the port."""


@dataclass(slots=True, kw_only=True)
class Hop:
    """Is what a room gets to work with."""

    name: str
    pod: str
    live: Live
    clock: Clock
    activity: Activity
    door: Door
    """The policies around what is served; a room that opens a door of its own leads calls through
    them."""
    server: PolicyServer
    health: Health
    runtime: RuntimeServicer
    policies: ClientPolicies | None
    """What guards the calls to others; None while the engine is off."""
    loads: Loads
    """What the endpoints that this process calls have told of their load."""
    estimator: PathEstimator | None
    """Learns what calls take; None while the engine is off."""
    tenancy: Tenancy | None
    """Who comes in; None behind the edge."""
    services: list[str] = field(default_factory=list)
    """The full names of the gRPC services; the room adds its own before it yields."""
    draining: list[Callable[[float], Awaitable[None]]] = field(default_factory=list)
    """Closes what else than gRPC calls comes in by, within so many seconds; the room adds them."""

    @property
    def config(self) -> Config:
        """Return the configuration that holds now."""
        return self.live.config

    def outgoing(self, dependency: str) -> Outgoing:
        """Return the choke point for calls to a dependency.

        Raises:
            UnknownEdgeError: the topology does not let this hop call it.
        """
        static = self.config.static_deadlines
        stack = client_stack(
            self.clock, self.activity, self.policies, self.estimator, static=static
        )
        limits = self.config.limits(dependency)
        outgoing = Outgoing(self.name, dependency, limits, stack, self.clock)
        self.live.outgoing.append(outgoing)
        return outgoing

    @asynccontextmanager
    async def dependency(self, name: str, address: str = "") -> AsyncIterator[Dependency]:
        """Open the way to another hop, or to the one of its processes at an address."""
        outgoing, address = self.outgoing(name), address or self.config.address(name)
        async with open_channel(address) as channel:
            dependency = Dependency(outgoing, channel)
            if self.estimator is not None:
                reader = self.loads.endpoint(name, address)
                dependency.note_load, dependency.loads = reader.note, reader
            try:
                yield dependency
            finally:
                dependency.end_requests()


OpenHop = Callable[[Hop], AbstractAsyncContextManager[None]]


async def run(
    name: str,
    open_hop: OpenHop,
    settings_kind: type[HopSettings],
    *,
    config_path: Path | None = None,
    check_only: bool = False,
    examine: Examine | None = None,
    make_alarm: Callable[[Clock], LoopAlarm] | None = None,
) -> int:
    """Run a hop until it is told to stop; return the process's exit code.

    Args:
        name: the hop.
        open_hop: opens the room.
        settings_kind: the room's section of the configuration.
        config_path: the configuration file; None looks where every hop looks.
        check_only: whether only to tell what is found in the configuration.
        examine: finds what only the room knows; asked when only checking.
        make_alarm: makes what looks who holds the event loop up; without it nobody knows.
    """
    spare_each_call()
    clock = MonotonicClock()
    pod = pod_name(name)
    journal = configure_logging(name, pod, "info", clock)
    try:
        config = load_config(config_path)
        settings = config.section(name, settings_kind)
        if check_only:
            _orders(name, config, None, clock)
            return _tell([*findings(config), *(examine(config) if examine else ())])
        check_ladder(config)
        if config.static_deadlines:
            # Before the level is set: nobody may miss it.
            get_logger().warning(STARTED_UNCHECKED, problem=UNCHECKED.text)
        get_logger().journal.reconfigure(config.log.level)
        # From here on the signal is heard: by itself it would end the process.
        asked = _reload_signal()
        alarm = make_alarm(clock) if make_alarm is not None else NoAlarm()
        reading = partial(read_off_the_loop, path=config_path)
        async with serving(name, open_hop, config, clock, alarm) as hop:
            _settle_memory()
            async with background(reload_whenever(asked, hop.live, reading)):
                await _stop_signal()
            await _drain(hop, settings, journal)
    except (ConfigError, PortTakenError) as error:
        missing = isinstance(error, MissingFileError)
        get_logger().error(REFUSED_TO_START, problem=str(error), missing_file=missing)
        return EXIT_CONFIG
    finally:
        journal.flush()
    return EXIT_OK


def _tell(found: Sequence[Finding]) -> int:
    """Write what was found, one line each; return the exit code."""
    for finding in found:
        get_logger().warning(
            CHECK_FOUND, rule=finding.rule, severity=finding.severity, problem=finding.text
        )
    return EXIT_VIOLATED if violations(found) else EXIT_OK


@asynccontextmanager
async def serving(
    name: str,
    open_hop: OpenHop,
    config: Config,
    clock: Clock,
    alarm: LoopAlarm | None = None,
) -> AsyncIterator[Hop]:
    """Serve a hop while the block runs; it is up, though perhaps not ready, when it is entered.

    An alarm looks who holds its event loop up; without one nobody knows.

    Raises:
        PortTakenError: another process listens there.
        ConfigError: another one listens where metrics are to be told.
    """
    hop = _assemble(name, config, clock)
    state = hop.runtime.state
    _bind(hop.server, config, name)
    try:
        async with watching_fitness(
            state.health, state.guards, state.lag, clock, alarm or NoAlarm()
        ):
            async with (
                metrics_door(name, config.hop(name), hop.runtime.snapshot),
                open_hop(hop),
            ):
                await _start(hop)
                yield hop
    finally:
        await hop.server.stop(None)


def _assemble(name: str, config: Config, clock: Clock) -> Hop:
    pod, activity = pod_name(name), Activity()
    edge, static = edge_rules(name, config), config.static_deadlines
    loads = Loads(clock)
    guards = policies = estimator = None
    if config.engine.enabled:
        estimator = PathEstimator(clock, loads)
        guards = server_policies(config, clock, tell_ejection, tell_shed, estimator.estimate_s)
        policies = client_policies(config, clock, random.Random(), tell_breaker)
    log_calls = logs_calls(name, config)
    tenancy = _tenancy(config, clock) if name == GATEWAY else None
    stack = server_stack(
        clock, activity, edge, guards, estimator, tenancy, log_calls=log_calls, static=static
    )
    health, lag = Health(), LagReadiness(LagConfig())
    state = ProcessState(
        hop=name,
        pod=pod,
        clock=clock,
        activity=activity,
        health=health,
        lag=lag,
        guards=guards,
        policies=policies,
    )
    runtime = RuntimeServicer(state, _orders(name, config, guards, clock))
    first_event = load_report = None
    if estimator is not None:
        first_event = estimator.served.first_event
        runtime.path_estimate = partial(estimator.path_s_or, runtime.path_estimate)
        meter = LoadMeter(state, estimator, process_cpu_s)
        load_report = LoadReporter(meter.measure, clock).current
    identify = edge_identity if name == GATEWAY else None
    door = Door(name, pod, stack, clock, first_event)
    handlers = PolicyHandlers(door, identify, load_report)
    server = PolicyServer(grpc.aio.server(options=SERVER_OPTIONS), handlers)
    live = Live(name, config, stack, guards, policies, tenancy)
    return Hop(
        name=name,
        pod=pod,
        live=live,
        clock=clock,
        activity=activity,
        door=door,
        server=server,
        health=health,
        runtime=runtime,
        policies=policies,
        loads=loads,
        estimator=estimator,
        tenancy=tenancy,
    )


def _tenancy(config: Config, clock: Clock) -> Tenancy:
    # With static deadlines no hop answers before its caller gives up.
    margin = (lambda length_s: 0.0) if config.static_deadlines else margin_s
    return Tenancy(config.tenants, clock, margin)


def _orders(name: str, config: Config, guards: ServerPolicies | None, clock: Clock) -> Orders:
    host = config.hop(name).host
    try:
        secret = config.operator.secret()
    except MissingFileError:
        if name == GATEWAY:
            raise
        # Pods of inner hops need not be given the file; then nobody orders there, local or not.
        secret, host = "", f"{host} (without {config.operator.key_file})"
    authority = Authority(secret, host, name)
    return Orders(name, guards.shed if guards else None, authority, clock)


def _settle_memory() -> None:
    """Spare the garbage collector what it looks through in vain.

    What start-up has made stays for good, and a call makes hundreds of objects that go by
    themselves. Measured over five hops: a seventh of the CPU, and half of the p99, of a call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 10)


def _bind(server: PolicyServer, config: Config, name: str) -> None:
    address = config.address(name)
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError:
        bound = 0
    if not bound:
        raise PortTakenError(
            f"{address} is taken; stop the process that listens there, or set "
            f"SIXHOP_{name.upper()}__PORT to a free port"
        )


async def _start(hop: Hop) -> None:
    await hop.health.register(hop.server, hop.services)
    hop.runtime.add_to(hop.server)
    names = [*hop.services, "grpc.health.v1.Health", "sixhop.runtime.v1.RuntimeService"]
    add_reflection(hop.server, names)
    await hop.server.start()
    get_logger().info(HOP_SERVING, address=hop.config.address(hop.name))
    hop.runtime.remember_own_tasks()


def _reload_signal() -> asyncio.Event:
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    return asked


async def _stop_signal() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


async def _drain(hop: Hop, settings: HopSettings, journal: Journal) -> None:
    log = get_logger()
    log.info(HOP_DRAINING, inflight=hop.activity.inflight)
    await hop.health.drain()
    # Sends GOAWAY: callers go elsewhere, calls in flight end in peace or with the time.
    within_s = settings.drain_timeout_s
    await asyncio.gather(hop.server.stop(within_s), *(close(within_s) for close in hop.draining))
    log.info(HOP_STOPPED, cut=hop.activity.inflight)
    journal.flush()
