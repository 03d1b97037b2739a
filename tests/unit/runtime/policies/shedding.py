"""Leads calls through a fast-fail switch."""

from services.runtime.call import Criticality, Identity, Inbound
from services.runtime.clock import ManualClock
from services.runtime.errors import LoadShedError, SelfTimeoutError
from services.runtime.policies.shed import ShedConfig, ShedSwitch
from tests.unit.runtime.policies.samples import inbound

CONFIG = ShedConfig(min_calls=10)
LATE = SelfTimeoutError("late", cause="deadline")
LEVELS = list(Criticality)


def arriving(clock: ManualClock, level: Criticality = Criticality.CRITICAL) -> Inbound:
    """Return a call that arrives now with ten seconds."""
    call = inbound(10.0, hop="gateway", arrived_at=clock.now())
    call.identity = Identity(criticality=level)
    return call


async def ended_by(switch: ShedSwitch, call: Inbound, error: BaseException | None) -> None:
    """Serve a call to its end."""
    entry = switch(call)
    await entry.__aenter__()
    await entry.__aexit__(type(error) if error else None, error, None)


async def let_in(switch: ShedSwitch, clock: ManualClock) -> list[bool]:
    """Say which levels are let in now, lowest first."""
    found = []
    for level in LEVELS:
        try:
            await switch(arriving(clock, level)).__aenter__()
            found.append(True)
        except LoadShedError:
            found.append(False)
    return found


async def load(
    switch: ShedSwitch, clock: ManualClock, length_s: float, failing: float, *, rate: int = 10
) -> None:
    """Serve CRITICAL_PLUS calls for some time, of which a part ends late."""
    for number in range(round(length_s * rate)):
        clock.advance(1 / rate)
        fails = (number * failing) % 1 + failing >= 1
        call = arriving(clock, Criticality.CRITICAL_PLUS)
        await ended_by(switch, call, LATE if fails else None)
