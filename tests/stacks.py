"""Builds the client's stack as a process does, from a configuration that says nothing."""

import random
from collections.abc import Callable, Mapping

from services.domain.availability import OfferedTool, Unavailable
from services.domain.directory import DeclaredTool
from services.runtime.call import Callee
from services.runtime.circuit import BreakerChange
from services.runtime.clock import Clock
from services.runtime.config import load_config
from services.runtime.stack import (
    ClientPolicies,
    ClientStack,
    ServerPolicies,
    client_policies,
    client_stack,
    server_policies,
)
from services.runtime.statistics import Activity


def policies(
    clock: Clock,
    environ: Mapping[str, str] | None = None,
    tell: Callable[[BreakerChange], None] = lambda change: None,
) -> ClientPolicies:
    """Return fresh policies with the defaults, but for what `environ` sets."""
    config = load_config(None, environ or {})
    return client_policies(config, clock, random.Random(7), tell)


def stack(clock: Clock, activity: Activity) -> ClientStack:
    """Return a fresh stack with the defaults."""
    return client_stack(clock, activity, policies(clock))


def single(clock: Clock, activity: Activity) -> ClientStack:
    """Return a fresh stack that makes one attempt only, to look at what one attempt does."""
    once = policies(clock, {"SIXHOP_RETRY__MAX_ATTEMPTS": "1"})
    return client_stack(clock, activity, once)


def server_guards(clock: Clock) -> ServerPolicies:
    """Return fresh policies of the server's side with the defaults."""
    config = load_config(None, {})
    return server_policies(config, clock, lambda serving, why: None, lambda change: None)


def tool_callee(name: str) -> Callee:
    """Return a tool that may be called twice."""
    return Callee(key=f"tool/{name}", idempotent=True)


def declared_tool(name: str) -> DeclaredTool:
    """Return what such a tool declares: callers must report its errors."""
    return DeclaredTool(callee=tool_callee(name))


class Unwatched:
    """Knows of no tool that cannot be used, and of none at all."""

    def offered(self) -> tuple[OfferedTool, ...]:
        """Return nothing."""
        return ()

    def unavailable(self) -> Mapping[str, Unavailable]:
        """Return nothing."""
        return {}
