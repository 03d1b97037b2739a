"""Holds THE ORDER of the policies, as two lists."""

import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from services.runtime.call import Call, CallLimits, Driver, Inbound
from services.runtime.circuit import BreakerChange, pause, resume
from services.runtime.clock import Clock
from services.runtime.config import Config
from services.runtime.estimate import PathEstimator, ServedPaths
from services.runtime.guarding import Guard, Guards
from services.runtime.policies.adaptive import AdaptiveTimeouts
from services.runtime.policies.adequacy import Adequacy
from services.runtime.policies.admission import Admission, Estimate
from services.runtime.policies.breaker import Breakers
from services.runtime.policies.bulkhead import Bulkhead, Waits
from services.runtime.policies.deadline import ClientDeadline, ServerDeadline
from services.runtime.policies.fallback import FallbackDriver
from services.runtime.policies.hedge import Hedge
from services.runtime.policies.quota import Quota
from services.runtime.policies.retry import Retry
from services.runtime.policies.self_ejection import SelfEjection
from services.runtime.policies.shed import ShedChange, ShedSwitch
from services.runtime.policy_settings import PolicySettings, policy_settings
from services.runtime.static_deadlines import StaticDeadline, StaticServerDeadline
from services.runtime.statistics import Activity
from services.runtime.telemetry import (
    AttemptTelemetry,
    ServerErrors,
    ServerTelemetry,
)
from services.runtime.tenancy import Tenancy

T = TypeVar("T")
_FOR_WORK = (ServerTelemetry, SelfEjection, Quota, ShedSwitch, Admission, ServedPaths)
"""The guards that count, judge, admit and learn from work; all others count for looks too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRules:
    """Holds what only the gateway does with deadlines; inner hops have neither."""

    default_deadline_s: float | None = None
    """Given to calls without a deadline."""
    max_deadline_s: float | None = None
    """Longer deadlines are cut to it."""


@dataclass(frozen=True, slots=True)
class ServerPolicies:
    """Holds the policies that remember something: one of each in a process."""

    ejection: SelfEjection
    shed: ShedSwitch
    admission: Admission

    def reconfigure(self, settings: PolicySettings) -> None:
        """Let all of them follow other settings; what they have learned stays."""
        self.ejection.reconfigure(settings.self_ejection)
        self.shed.reconfigure(settings.shed)
        self.admission.reconfigure(settings.admission)
        self.admission.reconfigure_limit(settings.limit)


def server_policies(
    config: Config,
    clock: Clock,
    tell_ejection: Callable[[bool, str], None],
    tell_shed: Callable[[ShedChange], None],
    estimate: Estimate | None = None,
) -> ServerPolicies:
    """Return the policies as the configuration wants them.

    Args:
        config: the configuration.
        clock: the clock.
        tell_ejection: is told whether this process wants calls, and why not.
        tell_shed: is told of every change of the fast-fail switch.
        estimate: tells what a call takes from here on; without it nobody is refused for that.

    Raises:
        ConfigError: a section of a policy is wrong.
    """
    settings = policy_settings(config)
    return ServerPolicies(
        ejection=SelfEjection(settings.self_ejection, clock, tell_ejection),
        shed=ShedSwitch(settings.shed, clock, tell_shed),
        admission=Admission(settings.admission, settings.limit.limit(), clock, estimate),
    )


def server_stack(
    clock: Clock,
    activity: Activity,
    edge: EdgeRules,
    policies: ServerPolicies | None,
    estimator: PathEstimator | None = None,
    tenancy: Tenancy | None = None,
    *,
    log_calls: bool,
    static: bool = False,
) -> Sequence[Guard[Inbound]]:
    """Return what wraps the serving of a call, outermost first.

    Without policies, when the engine is off, their lines are left out and cost nothing. With static
    deadlines no hop answers before its caller gives up. Tenants are known at the gateway only.
    """
    deadline = StaticServerDeadline if static else ServerDeadline
    at_the_edge = edge.default_deadline_s is not None
    return [
        # Outermost, so that it counts what the caller will see.
        ServerTelemetry(clock, activity, log_calls=log_calls),
        # Outside of the translation: a defect that nobody has named is our fault as well.
        *([policies.ejection] if policies else []),
        # Before anything can fail: what leaves this hop is an error of our tree.
        ServerErrors(),
        # Refuses what cannot be answered in time before any work is done for it.
        deadline(
            clock,
            default_deadline_s=edge.default_deadline_s,
            max_deadline_s=edge.max_deadline_s,
        ),
        # Inside the deadline, which it may cut; everything below goes by tenant and criticality.
        *([tenancy.identification] if tenancy else []),
        # Before the switch: what exceeds one tenant's share is no load of all.
        *([tenancy.quota] if tenancy else []),
        # At the gateway only: what it refuses costs nothing behind it.
        *([policies.shed] if policies and at_the_edge else []),
        # Counts what is really served.
        *([policies.admission] if policies else []),
        # Innermost: what is refused teaches nothing about what is served.
        *([estimator.served] if estimator else []),
        # Beside it: what all others see is whose fault it is, and not only that time was up.
        *([Adequacy(clock)] if policies else []),
    ]


def for_looks(stack: Sequence[Guard[Inbound]]) -> list[Guard[Inbound]]:
    """Return those of the guards that count for a look at what a process knows as well.

    Who may look, and for how long, is asked. That a process has enough to do keeps nobody from
    seeing so, nor does a used-up quota a tenant from looking at its run; nothing is learned.
    """
    return [guard for guard in stack if not isinstance(guard, _FOR_WORK)]


@dataclass(frozen=True, slots=True)
class ClientPolicies:
    """Holds the policies that remember something: one of each in a process."""

    fallback: FallbackDriver
    hedge: Hedge
    retry: Retry
    breakers: Breakers
    bulkhead: Bulkhead
    adaptive: AdaptiveTimeouts

    def reconfigure(self, settings: PolicySettings) -> None:
        """Let all of them follow other settings; what they have learned stays."""
        self.fallback.reconfigure(settings.fallback)
        self.hedge.reconfigure(settings.hedge)
        self.retry.reconfigure(settings.retry)
        self.breakers.reconfigure(settings.breaker)
        self.bulkhead.reconfigure(settings.bulkhead)
        self.adaptive.reconfigure(settings.adaptive)


def client_policies(
    config: Config,
    clock: Clock,
    chance: random.Random,
    tell: Callable[[BreakerChange], None],
) -> ClientPolicies:
    """Return the policies as the configuration wants them.

    Args:
        config: the configuration.
        clock: the clock.
        chance: spreads what must not happen in step.
        tell: is told of every change of a breaker.

    Raises:
        ConfigError: a section of a policy is wrong.
    """
    settings = policy_settings(config)
    breakers = Breakers(settings.breaker, clock, tell)
    return ClientPolicies(
        fallback=FallbackDriver(settings.fallback, clock),
        hedge=Hedge(settings.hedge, clock, breakers.closed),
        retry=Retry(settings.retry, clock, chance, breakers.closed),
        breakers=breakers,
        bulkhead=Bulkhead(settings.bulkhead, clock, Waits(begins=pause, ends=resume)),
        adaptive=AdaptiveTimeouts(settings.adaptive, clock, breakers.closed),
    )


@dataclass(frozen=True, slots=True)
class StreamHooks:
    """Tells policies of a stream what its end does not."""

    first_event: Sequence[Callable[[Call], None]] = ()
    """Called when the first event is there."""
    first_content: Sequence[Callable[[Call], None]] = ()
    """Called when the first content is there."""


NO_HOOKS = StreamHooks()


class ClientStack:
    """Holds what wraps a call that this hop makes."""

    def __init__(
        self,
        *,
        drivers: Sequence[Driver] = (),
        attempt_guards: Sequence[Guard[Call]] = (),
        hooks: StreamHooks = NO_HOOKS,
        limits: Callable[[Call], CallLimits] | None = None,
    ) -> None:
        """Take the policies, each list outermost first.

        Args:
            drivers: around the whole call, whose attempts they own; without any there is one.
            attempt_guards: around each attempt.
            hooks: are called while a stream goes on.
            limits: moves the declared limits of a call; None leaves them.
        """
        self.drivers = tuple(drivers)
        self._inwards = self.drivers[::-1]
        self.attempt_guards = tuple(attempt_guards)
        self.hooks = hooks
        self.limits = limits
        self.attempts = Guards(attempt_guards)
        """The guards of an attempt, ready to be entered."""

    def driven(
        self, call: Call, attempt: Callable[[], Coroutine[Any, Any, T]]
    ) -> Callable[[], Coroutine[Any, Any, T]]:
        """Return what makes the attempts of a call as its drivers decide.

        Most calls are driven by nobody, and what is returned is their one attempt.
        """
        for driver in self._inwards:
            if not driver.idle and driver.applies(call):
                attempt = partial(driver, call, attempt)
        return attempt


def client_stack(
    clock: Clock,
    activity: Activity,
    policies: ClientPolicies | None,
    estimator: PathEstimator | None = None,
    *,
    static: bool = False,
) -> ClientStack:
    """Return what wraps every call that a hop makes, outermost first.

    Without policies, when the engine is off, there is one attempt and its deadline. With static
    deadlines that is the callee's step timeout, whatever the caller has left.
    """
    deadline: Guard[Call] = StaticDeadline(clock) if static else ClientDeadline(clock)
    if policies is None:
        return ClientStack(
            attempt_guards=[AttemptTelemetry(clock, activity), deadline],
        )
    return ClientStack(
        drivers=[
            # Sees what all attempts came to, and only then gives something lesser.
            policies.fallback,
            # One of the two for each callee; the configuration check refuses both.
            policies.hedge,
            policies.retry,
        ],
        attempt_guards=[
            # Around the refusals below it too: a report tells of every attempt.
            AttemptTelemetry(clock, activity),
            # Decides what the attempt is given, before anything waits for anything.
            deadline,
            # Before the bulkhead: nobody queues for a callee that is known to be sick.
            policies.breakers,
            # Last before the wire: a permit is held only while something is on its way.
            policies.bulkhead,
            # Inside of it, so that the wait for a permit is no latency of the callee.
            policies.adaptive,
            # Beside it, for the same reason.
            *([estimator.made] if estimator else []),
        ],
        hooks=StreamHooks(
            first_event=[
                policies.breakers.first_event,
                policies.adaptive.first_event,
                *([estimator.made.first_event] if estimator else []),
            ],
            first_content=[
                policies.adaptive.first_content,
                *([estimator.made.first_content] if estimator else []),
            ],
        ),
        limits=policies.adaptive.limits,
    )
