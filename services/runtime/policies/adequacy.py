"""Blames this hop for the time that it took only when it was given enough of it.

A mesh ejects the pod that says DEADLINE_EXCEEDED. Callers in a hurry would have it eject one
healthy pod after the other: so work that outran less than it takes as a rule is answered as a
deadline that was too short, which nobody counts.
"""

from collections.abc import Callable

from services.runtime.call import Inbound
from services.runtime.errors import BudgetTooSmallError, SelfTimeoutError
from services.runtime.guarding import Guard
from services.runtime.keyed import Keyed
from services.runtime.verdict import STEP_TIMEOUT

LEAST_S = 0.4
"""With less, in seconds, nobody is to blame: a busy machine takes half of it, and the margin of
the answer an eighth."""
NoteP90 = Callable[[str], float | None]
"""Returns what nine of ten callers of a tool waited lately, in seconds; None if unknown."""


class _Known:
    """Keeps what is known of one tool, also when it has not answered for long."""

    def __init__(self) -> None:
        self.p90_s: float | None = None


class Adequacy(Guard[Inbound]):
    """Is the guard that looks what a call was given when this hop says that its time is up."""

    def __init__(self, note_p90: NoteP90) -> None:
        """Take who knows what answers take."""
        self._note_p90 = note_p90
        self._known = Keyed(lambda note: _Known())

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Let the error pass, or tell the caller to call with more time.

        A step that ends by its own declared limit had its time, whatever the caller had.

        Raises:
            BudgetTooSmallError: the time was up, and was too short to blame this hop.
        """
        if not isinstance(error, SelfTimeoutError) or error.cause == STEP_TIMEOUT:
            return
        given_s, needed_s = inbound.time_remaining_on_arrival_s, self._needed_s(inbound)
        if given_s - inbound.margin_s < needed_s:
            raise BudgetTooSmallError(
                f"{inbound.hop} could not finish {inbound.method} within the {given_s:.2f} s it "
                f"had, and takes up to {needed_s:.2f} s; call with a longer deadline",
                cause="deadline",
                details={"neededMs": str(round(needed_s * 1000))},
            ) from error

    def _needed_s(self, inbound: Inbound) -> float:
        """Return what a hop must be given to be blamed."""
        if not inbound.note or inbound.enough_s <= 0:
            return LEAST_S
        known = self._known.of(inbound.note)
        # What a tool took when it was last well, however long it has been sick.
        known.p90_s = self._note_p90(inbound.note) or known.p90_s
        # What is called slow is enough: a tool must not excuse itself by having become so.
        usual_s = inbound.enough_s if known.p90_s is None else min(known.p90_s, inbound.enough_s)
        return max(LEAST_S, usual_s)
