"""Judges what the end of a call tells about the one that was called."""

from services.runtime.call import Call, Outcome
from services.runtime.errors import (
    TABLE,
    DependencyError,
    DependencyFailedError,
    RejectedError,
)

STEP_TIMEOUT = "step_timeout"
"""The cause of a wait that ended by the declared limit, not by what the caller had left."""
NO_ANSWER = "NO_ANSWER"
"""The origin's reason when it was silent until one of our limits fired."""
OUT_OF_TIME = frozenset({NO_ANSWER, "SELF_TIMEOUT"})
"""The origin's reasons that blame it only if it was given enough: one that answers in time that
its time is up says no more than one that is silent."""
SAY_NOTHING = frozenset(
    {"CONTENT_FILTERED", "CONTEXT_LENGTH", "PROVIDER_REFUSED"}
    | {reason for reason, kind in TABLE.items() if issubclass(kind, RejectedError)}
)
"""The origin's reasons that are about one request, or about a dependency of the origin: a prompt
that is too long must not cut off everybody's model, nor an open breaker behind the callee open one
before it, which would then take as long again to close."""
OWN_LIMITS = frozenset({"read_timeout", "first_content_timeout"})
"""The limits of a running stream that the step sets, and not what its caller had left."""

GRID_RATIO = 0.95
"""What gRPC's grid leaves of a timeout at least, from 20 ms up."""


def verdict(error: BaseException | None, call: Call) -> Outcome:
    """Return what the end of an attempt says about the callee.

    A failure is what the callee itself has done. Nothing is said by what it only passes on from
    a hop behind it, by refusals, by a caller's mistake or cancel, by defects of this process, and
    by silence within a time in which the callee could not have answered.

    Args:
        error: what ended the attempt; None when it ended well.
        call: the call, as its last attempt left it.
    """
    if error is None:
        return Outcome.SUCCESS
    if not isinstance(error, DependencyFailedError) or error.origin is None:
        return Outcome.IGNORED
    if error.origin.hop != call.dependency or error.origin.reason in SAY_NOTHING:
        return Outcome.IGNORED
    if error.origin.reason in OUT_OF_TIME and not _had_time(error, call):
        return Outcome.IGNORED
    return Outcome.FAILURE


def correction(error: BaseException | None) -> str:
    """Return what has to be corrected before any call can succeed; empty when waiting may help."""
    return error.message if isinstance(error, DependencyError) and error.opens_breaker else ""


def _had_time(error: DependencyFailedError, call: Call) -> bool:
    """Tell whether the callee was given what it needs as a rule."""
    if not call.streaming:
        return call.attempt_timeout_s >= _needed_s(call)
    if call.delivered:
        # It was at work. Only a gap that is too long by declaration speaks against it: what
        # its caller's own deadline cut off was perhaps about to come.
        return error.cause in OWN_LIMITS
    if call.wait_limit is None:
        return False
    until, _ = call.wait_limit.first_wait_until()
    return until - call.sent_at >= _needed_s(call)


def _needed_s(call: Call) -> float:
    slow_s = GRID_RATIO * call.callee.slow_call_s
    if call.advertised_p90_s > 0:
        # What is called slow is enough: a callee must not excuse its silence by having become so.
        return min(call.advertised_p90_s, slow_s)
    # Nobody knows yet. A whole step is enough by declaration, and so is what is called slow.
    return min(GRID_RATIO * call.limits.step_timeout_s, slow_s)
