"""Gives calls the static timeouts of a platform whose hops know nothing of each other's deadlines.

It is there to show what comes of that, on the same code: a hop waits for its callee for as long as
is declared, whether or not its own caller has gone meanwhile, and ends its own work only when it is
cut off. That a caller's cancel ends the work remains: gRPC does so by itself.
"""

from dataclasses import dataclass

from services.runtime.call import Call, Inbound
from services.runtime.clock import Clock
from services.runtime.guarding import Guard
from services.runtime.policies.deadline import ServerDeadline


class StaticServerDeadline(ServerDeadline):
    """Gives every call the deadline that it brings, and keeps no margin to answer by itself."""

    def before(self, inbound: Inbound) -> None:
        """Set the call's deadline.

        Raises:
            DeadlineMissingError: the call has none, and no default applies.
            BudgetTooSmallError: there is no time to do anything.
        """
        super().before(inbound)
        inbound.margin_s = 0.0


class StaticDeadline(Guard[Call]):
    """Gives every attempt the step timeout of its callee; a stream has it for the whole."""

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self._clock = clock

    def before(self, call: Call) -> None:
        """Set the attempt's limits."""
        length_s = call.attempt_timeout_s = call.limits.step_timeout_s
        if call.streaming:
            call.wait_limit = StaticWait(self._clock.now() + length_s)


@dataclass(slots=True)
class StaticWait:
    """Bounds a stream as a whole, and no wait of it."""

    until: float
    """The instant at which it ends."""

    def first_wait_until(self) -> tuple[float, str]:
        """Return until when the first event may be waited for, and which limit says so."""
        return self.until, "step_timeout"

    def next_wait_until(self, now: float) -> tuple[float, str]:
        """Return until when a later event may be waited for, and which limit says so."""
        return self.until, "step_timeout"

    def content_arrived(self) -> None:
        """Note that the first content is there, which changes nothing."""
