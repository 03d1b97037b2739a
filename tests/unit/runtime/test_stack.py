"""Holds the order of the policies to the design, section 4."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from services.runtime.call import Call, CallLimits, Inbound
from services.runtime.errors import LoadShedError, SelfUnavailableError
from services.runtime.guarding import Guard, Guarded, Guards
from services.runtime.policies.adaptive import AdaptiveTimeouts
from services.runtime.policies.adequacy import Adequacy
from services.runtime.policies.admission import Admission
from services.runtime.policies.breaker import Breakers
from services.runtime.policies.bulkhead import Bulkhead
from services.runtime.policies.deadline import ClientDeadline, ServerDeadline, margin_s
from services.runtime.policies.fallback import FallbackDriver
from services.runtime.policies.hedge import Hedge
from services.runtime.policies.identification import Identification
from services.runtime.policies.quota import Quota
from services.runtime.policies.retry import Retry
from services.runtime.policies.self_ejection import SelfEjection
from services.runtime.policies.shed import ShedSwitch
from services.runtime.stack import ClientStack, EdgeRules, server_stack
from services.runtime.statistics import Activity
from services.runtime.telemetry import (
    AttemptTelemetry,
    ServerErrors,
    ServerTelemetry,
)
from services.runtime.tenancy import Tenancy
from services.runtime.tenants import Tenants
from tests.stacks import server_guards
from tests.stacks import stack as stack_of
from tests.unit.runtime.fake_time import START, LoopClock

T = TypeVar("T")

SERVER_ORDER = [ServerTelemetry, SelfEjection, ServerErrors, ServerDeadline, Admission, Adequacy]
EDGE_ORDER = [*SERVER_ORDER[:-2], ShedSwitch, Admission, Adequacy]
DRIVER_ORDER = [FallbackDriver, Hedge, Retry]
ATTEMPT_ORDER = [AttemptTelemetry, ClientDeadline, Breakers, Bulkhead, AdaptiveTimeouts]
"""Outermost first, as the design says; a policy that is added takes its place here too."""


def new_call() -> Call:
    """Return a call from domain to model."""
    inbound = Inbound("domain", "RunAgent", True, START, START + 30.0, margin_s=1.0)
    return Call("model", "Generate", False, inbound, CallLimits(step_timeout_s=5.0))


class Named(Guard[Call]):
    """Is a guard that writes down when it acts."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def before(self, call: Call) -> None:
        self.log.append(f"{self.name} in")

    def after(self, call: Call, error: BaseException | None) -> None:
        self.log.append(f"{self.name} out")


class Refusing(Guard[Call]):
    """Is a guard that lets nothing pass."""

    def before(self, call: Call) -> None:
        raise LoadShedError("full")


@dataclass(slots=True)
class Twice:
    """Is a driver that tries twice."""

    name: str
    log: list[str]
    wanted: bool = True
    idle: bool = False

    def applies(self, call: Call) -> bool:
        return self.wanted

    async def __call__(self, call: Call, attempt: Callable[[], Awaitable[T]]) -> T:
        for number in (1, 2):
            self.log.append(f"{self.name} {number}")
            try:
                return await attempt()
            except SelfUnavailableError:
                if number == 2:
                    raise
        raise AssertionError


def test_what_is_served_passes_the_policies_in_the_documented_order(clock: LoopClock) -> None:
    guards = server_guards(clock)
    inner = server_stack(clock, Activity(), EdgeRules(), guards, log_calls=True)
    edge = server_stack(
        clock, Activity(), EdgeRules(default_deadline_s=30.0), guards, log_calls=True
    )

    assert [type(guard) for guard in inner] == SERVER_ORDER
    assert [type(guard) for guard in edge] == EDGE_ORDER


def test_whose_call_it_is_is_known_before_anything_goes_by_it(clock: LoopClock) -> None:
    edge, tenancy = EdgeRules(default_deadline_s=30.0), Tenancy(Tenants(), clock, margin_s)
    stack = server_stack(
        clock, Activity(), edge, server_guards(clock), tenancy=tenancy, log_calls=True
    )

    kinds = [type(guard) for guard in stack]
    at = kinds.index(Identification)
    assert kinds[at - 1 : at + 4] == [
        ServerDeadline,
        Identification,
        Quota,
        ShedSwitch,
        Admission,
    ]


def test_what_is_called_passes_the_policies_in_the_documented_order(clock: LoopClock) -> None:
    stack = stack_of(clock, Activity())

    assert [type(driver) for driver in stack.drivers] == DRIVER_ORDER
    assert [type(guard) for guard in stack.attempt_guards] == ATTEMPT_ORDER


async def test_guards_are_entered_outermost_first_and_left_innermost_first() -> None:
    log: list[str] = []

    async with Guarded(Guards([Named("a", log), Named("b", log)]), new_call()):
        pass

    assert log == ["a in", "b in", "b out", "a out"]


async def test_what_was_entered_is_left_when_a_later_guard_refuses() -> None:
    log: list[str] = []

    with pytest.raises(LoadShedError):
        async with Guarded(Guards([Named("a", log), Refusing()]), new_call()):
            log.append("inside")

    assert log == ["a in", "a out"]


async def test_without_drivers_there_is_one_attempt() -> None:
    tries: list[int] = []

    async def attempt() -> str:
        tries.append(1)
        raise SelfUnavailableError("gone")

    with pytest.raises(SelfUnavailableError):
        await ClientStack().driven(new_call(), attempt)()

    assert len(tries) == 1


async def test_drivers_that_have_something_to_do_nest_outermost_first() -> None:
    log: list[str] = []

    async def attempt() -> str:
        log.append("attempt")
        raise SelfUnavailableError("gone")

    idle = Twice("idle", log, wanted=False)
    stack = ClientStack(drivers=[Twice("outer", log), idle, Twice("inner", log)])
    call = new_call()
    with pytest.raises(SelfUnavailableError):
        await stack.driven(call, attempt)()

    half = ["inner 1", "attempt", "inner 2", "attempt"]
    assert log == ["outer 1", *half, "outer 2", *half]
