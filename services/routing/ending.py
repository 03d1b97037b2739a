"""Judges what the end of a run says about the replica that it was sent to."""

from services.routing.record import RunEnd
from services.runtime.errors import (
    DependencyFailedError,
    DependencyOverloadedError,
    RejectedError,
    SixhopError,
)
from services.runtime.topology import DOMAIN
from services.runtime.verdict import OUT_OF_TIME, SAY_NOTHING

LOST = frozenset({"UNREACHABLE", "CONNECTION_LOST", "STREAM_LOST", "CANCELLED"})
"""The origin's reasons that say that nobody is there any more."""


def ending(error: BaseException | None) -> tuple[RunEnd, float]:
    """Return how a run ended for its replica, and how long it asked to be spared, seconds.

    Args:
        error: what ended the run; None when it ended well.
    """
    if error is None:
        return RunEnd.ANSWERED, 0.0
    if not isinstance(error, SixhopError):
        # A cancel, by a caller who has gone or a deadline, or a defect of ours.
        return RunEnd.CUT, 0.0
    if isinstance(error, RejectedError) and error.origin is None:
        return RunEnd.UNSENT, 0.0
    if not isinstance(error, DependencyFailedError | DependencyOverloadedError):
        return RunEnd.ELSEWHERE, 0.0
    origin = error.origin
    if origin is None or origin.hop != DOMAIN:
        late = origin is not None and origin.reason in OUT_OF_TIME
        return (RunEnd.CUT if late else RunEnd.ELSEWHERE), 0.0
    if isinstance(error, DependencyOverloadedError):
        return RunEnd.REFUSED, error.retry_after_s or 0.0
    if origin.reason in LOST:
        return RunEnd.UNREACHABLE, 0.0
    if origin.reason in OUT_OF_TIME:
        return RunEnd.CUT, 0.0
    return (RunEnd.ELSEWHERE if origin.reason in SAY_NOTHING else RunEnd.FAILED), 0.0
