"""Measures the CPU that each policy's guard costs a call, let in or refused."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from benchmarks import stacks
from services.runtime.call import (
    Call,
    Callee,
    CallLimits,
    Criticality,
    Group,
    Identity,
    Inbound,
    Mode,
)
from services.runtime.clock import Clock, MonotonicClock
from services.runtime.errors import SixhopError
from services.runtime.guarding import Guard
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.bulkhead import Bulkhead, BulkheadConfig, GroupSize
from services.runtime.policies.deadline import ClientDeadline, ServerDeadline, margin_s
from services.runtime.policies.limit import Fixed, Gradient, GradientConfig
from services.runtime.policies.self_ejection import SelfEjection, SelfEjectionConfig
from services.runtime.policies.shed import ShedConfig, ShedSwitch

ROUNDS = 9
DEADLINE_S = 3600.0
Guarded = Callable[[int], AbstractAsyncContextManager[None]]
"""Returns the guard of one call; the number tells calls apart."""


@dataclass(frozen=True, slots=True)
class Row:
    """Is one line of the table."""

    name: str
    guard: Guarded
    refuses: bool = False


def inbound(clock: Clock, number: int, level: Criticality = Criticality.CRITICAL) -> Inbound:
    """Return a call that was served just now, of one of twenty tenants."""
    now = clock.now()
    identity = Identity(tenant=f"tenant {number % 20}", criticality=level)
    return Inbound(
        "tool", "ExecuteTool", True, now, now + DEADLINE_S, identity, margin_s(DEADLINE_S)
    )


def outgoing(clock: Clock, number: int) -> Call:
    """Return a call to one of ten tools."""
    callee = Callee(key=f"tool/{number % 10}", group=Group.CORE, max_concurrency=50)
    limits = CallLimits(step_timeout_s=5.0)
    call = Call("tool", "ExecuteTool", False, inbound(clock, number), limits, callee=callee)
    call.attempt_timeout_s = 5.0
    return call


async def filled(guard: Guarded, count: int) -> None:
    """Let so many calls in that never end."""
    for number in range(count):
        await guard(number).__aenter__()


async def rows(clock: Clock) -> list[Row]:
    """Return what to measure, every policy in the state that the line names."""
    calls = [outgoing(clock, number) for number in range(100)]
    served = [inbound(clock, number) for number in range(100)]
    short = Inbound("tool", "ExecuteTool", True, clock.now(), clock.now() + 0.5, Identity())

    open_bulkhead = Bulkhead(BulkheadConfig(), clock)
    no_queue = GroupSize(permits=64, max_queued=0)
    full_bulkhead = Bulkhead(BulkheadConfig(core=no_queue, tenant_ratio=1.0), clock)
    await filled(lambda number: full_bulkhead(calls[number]), 64)

    fixed = Admission(AdmissionConfig(), Fixed(100), clock, lambda _: 0.2)
    gradient = Admission(AdmissionConfig(), Gradient(GradientConfig()), clock, lambda _: 0.2)
    crowded = Admission(AdmissionConfig(), Fixed(100), clock, lambda _: 0.2)
    await filled(lambda number: crowded(served[number]), 78)
    full = Admission(AdmissionConfig(), Fixed(50), clock)
    await filled(lambda number: full(served[number]), 40)

    idle_switch = ShedSwitch(ShedConfig(), clock)
    closed_switch = ShedSwitch(ShedConfig(), clock)
    closed_switch.order("benchmark", 3600.0)
    ejection = SelfEjection(SelfEjectionConfig(), clock, lambda serving, why: None)
    server, client = ServerDeadline(clock), ClientDeadline(clock)

    nothing: Guard[Inbound] = Guard()
    return [
        Row("a guard that does nothing", lambda number: nothing(served[number % 100])),
        Row("deadline, server", lambda number: server(served[number % 100])),
        Row("deadline, client", lambda number: client(calls[number % 100])),
        Row("bulkhead, let in", lambda number: open_bulkhead(calls[number % 100])),
        Row("bulkhead, refused", lambda number: full_bulkhead(calls[number % 100]), refuses=True),
        Row("admission, fixed limit, let in", lambda number: fixed(served[number % 100])),
        Row("admission, gradient, let in", lambda number: gradient(served[number % 100])),
        Row("admission, fair shares checked", lambda number: crowded(served[number % 100])),
        Row("admission, refused by limit", lambda number: full(served[number % 100]), refuses=True),
        Row("admission, refused by estimate", _short(clock, short), refuses=True),
        Row("shed switch, open", lambda number: idle_switch(served[number % 100])),
        Row(
            "shed switch, closed", lambda number: closed_switch(served[number % 100]), refuses=True
        ),
        Row("self-ejection", lambda number: ejection(served[number % 100])),
    ]


def _short(clock: Clock, call: Inbound) -> Guarded:
    guard = Admission(AdmissionConfig(estimate=Mode.ENFORCE), Fixed(100), clock, lambda _: 5.0)
    return lambda _: guard(call)


async def measure(row: Row, count: int) -> float:
    """Return the CPU microseconds of one call, entered and left."""
    began = time.process_time()
    for number in range(count):
        if row.refuses:
            entry = row.guard(number)
            try:
                await entry.__aenter__()
            except SixhopError:
                continue
            # One of five is let in, whatever the estimate says.
            await entry.__aexit__(None, None, None)
        else:
            entry = row.guard(number)
            await entry.__aenter__()
            await entry.__aexit__(None, None, None)
    return (time.process_time() - began) / count * 1e6


async def handover(clock: Clock, count: int) -> float:
    """Return the CPU microseconds of one permit that goes from hand to hand through a queue."""
    size = GroupSize(permits=1, max_queued=256)
    bulkhead = Bulkhead(BulkheadConfig(core=size, max_wait_s=60.0, callee_queue_ratio=1.0), clock)
    calls = [outgoing(clock, number) for number in range(100)]

    async def take(number: int) -> None:
        async with bulkhead(calls[number]):
            pass

    began = time.process_time()
    for _ in range(count // 100):
        holder = bulkhead(calls[0])
        await holder.__aenter__()
        waiters = asyncio.gather(*(take(number) for number in range(1, 100)))
        await asyncio.sleep(0)
        await holder.__aexit__(None, None, None)
        await waiters
    return (time.process_time() - began) / count * 1e6


async def table(count: int) -> None:
    """Measure in turns, so that noise meets every line alike, and print medians."""
    clock = MonotonicClock()
    lines = await rows(clock)
    figures: dict[str, list[float]] = {row.name: [] for row in lines}
    figures["bulkhead, handed over in a queue"] = []
    for _ in range(ROUNDS):
        for row in lines:
            figures[row.name].append(await measure(row, count))
        figures["bulkhead, handed over in a queue"].append(await handover(clock, count))
    print(f"{'CPU microseconds of one call':<36} median   least")
    for name, found in figures.items():
        print(f"{name:<36} {statistics.median(found):6.2f}  {min(found):6.2f}")
    verdicts = await stacks.measure(clock, count)
    print("\n" + "\n".join(line for _, line in verdicts))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000, help="calls of each round")
    asyncio.run(table(parser.parse_args().count))


if __name__ == "__main__":
    main()
