"""Watches whether this process is fit for calls: its event loop, and its own failures."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.runtime.background import background
from services.runtime.clock import Clock, busy_s
from services.runtime.health import Health
from services.runtime.loop_alarm import Holder, LoopAlarm
from services.runtime.policies.self_ejection import Held, LagReadiness
from services.runtime.stack import ServerPolicies
from services.runtime.telemetry import HOP_THAWED, LOOP_HELD, get_logger

INTERVAL_S = 0.5
"""How often the loop's lag is looked at."""
LOOKED_RATIO = 0.5
"""A process that was looked at for at least this part of its pause was not stopped meanwhile."""
EXPLAINED_RATIO = 0.5
"""A loop that lags has used a CPU, or has waited for one, for at least this part of its lag; the
rest of a pause is nobody's."""


class Standstill:
    """Tells a process that was stopped from one whose loop lags.

    A stopped process, or one on a machine that was suspended, is late once and well again; it has
    neither used a CPU nor waited for one meanwhile. Several such pauses in a row are no accident:
    then the loop waits for something that blocks, or somebody throttles the process, and both make
    it unfit.
    """

    def __init__(self, least_s: float) -> None:
        """Take the lag from which on it matters."""
        self._least_s = least_s
        self._before = False

    def sample(self, late_s: float, busy_s: float) -> bool:
        """Take how late a timer was and how busy the process meanwhile; return whether it stood.

        Args:
            late_s: how late it was, in seconds.
            busy_s: how much CPU the process has used or waited for since the timer was set.
        """
        unexplained = late_s > self._least_s and busy_s < EXPLAINED_RATIO * late_s
        stood = unexplained and not self._before
        self._before = unexplained
        return stood


@asynccontextmanager
async def watching_fitness(
    health: Health,
    policies: ServerPolicies | None,
    lag: LagReadiness,
    clock: Clock,
    alarm: LoopAlarm,
) -> AsyncIterator[None]:
    """Watch while the block runs; without policies, when the engine is off, do nothing."""
    if policies is None:
        yield
        return
    try:
        async with background(watch_fitness(health, policies, lag, clock, alarm)):
            yield
    finally:
        alarm.disarm()


async def watch_fitness(
    health: Health,
    policies: ServerPolicies,
    lag: LagReadiness,
    clock: Clock,
    alarm: LoopAlarm,
    busy: Callable[[], float] = busy_s,
) -> None:
    """Tell the health service of every change, for ever.

    The loop lags when a timer comes late: then everything does, and other pods serve better. What
    holds it up is told, with the call that was at work when that is known.

    Args:
        health: is told.
        policies: know whether this process fails by itself.
        lag: learns how late the loop is.
        clock: the clock.
        alarm: looks who is at work while the loop does not come back.
        busy: tells how long the process has used a CPU or waited for one.
    """
    standstill = Standstill(lag.config.max_lag_s)
    told = ""
    while True:
        due, busy_before_s = clock.now() + INTERVAL_S, busy()
        alarm.arm(INTERVAL_S + lag.config.max_lag_s)
        await clock.sleep(INTERVAL_S)
        late_s = max(0.0, clock.now() - due)
        stood = standstill.sample(late_s, busy() - busy_before_s)
        # What sleeps in the loop is as idle as what was stopped; but it can be looked at meanwhile.
        seen = alarm.looked_s() > LOOKED_RATIO * (late_s - lag.config.max_lag_s)
        if stood and not seen:
            get_logger().warning(HOP_THAWED, stood_s=round(late_s, 3))
        else:
            lag.sample(late_s)
            if late_s > lag.config.max_lag_s:
                _tell_held(lag, late_s, clock.now(), alarm.holder())
        unfit = ""
        policies.ejection.tick()
        # So that the end of an order is told when it comes, and not with the next call.
        policies.shed.tick()
        if not policies.ejection.serving:
            unfit = "failed by its own fault several times in a row"
        elif not lag.ready:
            unfit = "its event loop lags"
        if unfit != told:
            told = unfit
            await health.set_fit(unfit)


def _tell_held(lag: LagReadiness, held_s: float, now: float, holder: Holder | None) -> None:
    lag.held(Held(held_s, now, "" if holder is None else str(holder)))
    fields: dict[str, str] = {}
    if holder is not None:
        fields = {
            "method": holder.method,
            "note": holder.note,
            "run_id": holder.run_id,
            "where": holder.where,
        }
    get_logger().warning(LOOP_HELD, held_s=round(held_s, 3), **fields)
