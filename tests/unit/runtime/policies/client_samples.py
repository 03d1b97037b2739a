"""Makes calls, failures and attempts for the tests of what guards and drives a client's calls."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from services.runtime.call import Call, Callee
from services.runtime.clock import Clock, ManualClock
from services.runtime.errors import (
    DependencyFailedError,
    DependencyOverloadedError,
    Origin,
    SixhopError,
)
from services.runtime.guarding import Guard
from services.runtime.status import no_answer
from tests.unit.runtime.fake_time import START
from tests.unit.runtime.policies.samples import inbound, limits

SQL = Callee(key="tool/sql", idempotent=True, min_timeout_s=0.25)


def sql_call(
    *,
    remaining_s: float = 30.0,
    step_timeout_s: float = 5.0,
    streaming: bool = False,
    callee: Callee = SQL,
    arrived_at: float = START,
    **changes: object,
) -> Call:
    """Return a call to a tool that has been given what it needs."""
    call = Call(
        "tool",
        "ExecuteTool",
        streaming,
        inbound(remaining_s, arrived_at=arrived_at),
        limits(step_timeout_s),
        attempt_timeout_s=step_timeout_s,
        callee=callee,
    )
    return replace(call, **changes)  # type: ignore[arg-type]


def failed(
    reason: str = "SELF_UNAVAILABLE", hop: str = "tool", *, cause: str = "x"
) -> DependencyFailedError:
    """Return what a failure of the callee is to its caller; of a hop behind it with another hop."""
    return DependencyFailedError(
        "tool", "it failed", cause=cause, origin=Origin(hop, code="UNAVAILABLE", reason=reason)
    )


def silent(cause: str = "step_timeout") -> DependencyFailedError:
    """Return the error of a callee that did not answer."""
    return no_answer("tool", 5.0, cause)


def overloaded(pushback_s: float | None = None, hop: str = "tool") -> DependencyOverloadedError:
    """Return the refusal of a callee that has enough to do."""
    origin = Origin(hop, code="RESOURCE_EXHAUSTED", reason="LOAD_SHED")
    return DependencyOverloadedError(
        "tool", "full", cause="limit", origin=origin, retry_after_s=pushback_s
    )


async def one(
    guard: Guard[Call],
    clock: ManualClock,
    length_s: float = 0.1,
    error: BaseException | None = None,
    call: Call | None = None,
) -> None:
    """Make an attempt that takes its time and ends so.

    Raises:
        SixhopError: the guard refused.
    """
    call = call or sql_call()
    guarded = guard(call)
    await guarded.__aenter__()
    # As the choke point does: the wire comes after the guards.
    call.sent_at = clock.now()
    clock.advance(length_s)
    kind = None if error is None else type(error)
    await guarded.__aexit__(kind, error, None)


async def refused(guard: Guard[Call], call: Call | None = None) -> SixhopError | None:
    """Return the refusal of an attempt, or None when it was let through and cancelled."""
    guarded = guard(call or sql_call())
    try:
        await guarded.__aenter__()
    except SixhopError as error:
        return error
    cancel = asyncio.CancelledError()
    await guarded.__aexit__(type(cancel), cancel, None)
    return None


def script(
    clock: Clock, *steps: tuple[float, SixhopError | None]
) -> tuple[Callable[[], Awaitable[str]], list[float]]:
    """Return an attempt that takes and ends as each step says, and the instants of its starts."""
    starts: list[float] = []

    async def attempt() -> str:
        length_s, error = steps[min(len(starts), len(steps) - 1)]
        starts.append(clock.now())
        await clock.sleep(length_s)
        if error is not None:
            raise error
        return f"answer {len(starts)}"

    return attempt, starts
