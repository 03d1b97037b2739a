"""Blames this hop for the time that it took only when it was given enough of it.

A mesh ejects the pod that says DEADLINE_EXCEEDED. Callers in a hurry would have it eject one
healthy pod after the other: so work that outran less than it takes as a rule is answered as a
deadline that was too short, which nobody counts.
"""

from services.runtime.call import Inbound
from services.runtime.clock import Clock
from services.runtime.errors import BudgetTooSmallError, SelfTimeoutError
from services.runtime.guarding import Guard
from services.runtime.keyed import Keyed
from services.runtime.recent import RecentLengths
from services.runtime.verdict import STEP_TIMEOUT

LEAST_S = 0.4
"""With less, in seconds, nobody is to blame: a busy machine takes half of it, and the margin of
the answer an eighth."""
KEPT_COUNT = 20
"""So many answers of a tool say what it takes as a rule. They do not age: what it took when it was
last well must not be forgotten because it has been sick for long."""
MIN_COUNT = 5
"""With fewer answers nothing is known but what is declared."""


class Adequacy(Guard[Inbound]):
    """Is the guard that looks what a call was given when this hop says that its time is up."""

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        self._clock = clock
        self._tools = Keyed(lambda note: RecentLengths(KEPT_COUNT))

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Learn from an answer; let an error pass, or tell the caller to call with more time.

        A step that ends by its own declared limit had its time, whatever the caller had.

        Raises:
            BudgetTooSmallError: the time was up, and was too short to blame this hop.
        """
        if error is None:
            if inbound.enough_s > 0:
                taken_s = self._clock.now() - inbound.arrived_at
                self._tools.of(inbound.note).add(taken_s)
            return
        if not isinstance(error, SelfTimeoutError) or error.cause == STEP_TIMEOUT:
            return
        given_s, needed_s = inbound.time_remaining_on_arrival_s, self._needed_s(inbound)
        if given_s - inbound.margin_s < needed_s:
            raise BudgetTooSmallError(
                f"{inbound.hop} could not finish {inbound.method} within the {given_s:.2f} s it "
                f"had, and needs up to {needed_s:.2f} s; call with a longer deadline",
                cause="deadline",
                details={"neededMs": str(round(needed_s * 1000))},
            ) from error

    def _needed_s(self, inbound: Inbound) -> float:
        """Return what a hop must be given to be blamed."""
        if inbound.enough_s <= 0:
            return LEAST_S
        known = self._tools.of(inbound.note)
        usual_s = known.percentile(0.9) if len(known) >= MIN_COUNT else inbound.enough_s
        # What is called slow is enough: a tool must not excuse itself by having become so.
        return max(LEAST_S, min(usual_s, inbound.enough_s))
