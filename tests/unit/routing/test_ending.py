"""Holds the verdict on a replica to what the end of a run says about it."""

import asyncio

import pytest

from services.routing.ending import ending
from services.routing.record import RunEnd
from services.runtime.errors import (
    BudgetTooSmallError,
    BulkheadFullError,
    CircuitOpenError,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    NotFoundError,
    Origin,
)


def failed(reason: str, hop: str = "domain") -> DependencyFailedError:
    """Return what a run failed with."""
    return DependencyFailedError("domain", "no", cause="x", origin=Origin(hop, reason=reason))


def overloaded(hop: str) -> DependencyOverloadedError:
    """Return a refusal for load."""
    return DependencyOverloadedError(
        "domain", "no", cause="limit", origin=Origin(hop, reason="LOAD_SHED"), retry_after_s=1.5
    )


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (None, RunEnd.ANSWERED),
        (asyncio.CancelledError(), RunEnd.CUT),
        (GeneratorExit(), RunEnd.CUT),
        (failed("SELF_BUG"), RunEnd.FAILED),
        (failed("SELF_UNAVAILABLE"), RunEnd.FAILED),
        (failed("UNREACHABLE"), RunEnd.UNREACHABLE),
        (failed("CONNECTION_LOST"), RunEnd.UNREACHABLE),
        (failed("STREAM_LOST"), RunEnd.UNREACHABLE),
        (failed("NO_ANSWER"), RunEnd.CUT),
        (failed("SELF_TIMEOUT"), RunEnd.CUT),
        (failed("CIRCUIT_OPEN"), RunEnd.ELSEWHERE),
        (failed("SELF_BUG", hop="tool"), RunEnd.ELSEWHERE),
        (failed("NO_ANSWER", hop="model"), RunEnd.CUT),
        (overloaded("domain"), RunEnd.REFUSED),
        (overloaded("tool"), RunEnd.ELSEWHERE),
        (CircuitOpenError("ours"), RunEnd.UNSENT),
        (BulkheadFullError("ours"), RunEnd.UNSENT),
        (BudgetTooSmallError("ours"), RunEnd.UNSENT),
        (BudgetTooSmallError("its", origin=Origin("domain")), RunEnd.ELSEWHERE),
        (NotFoundError("agent", "x"), RunEnd.ELSEWHERE),
        (InvalidArgumentError("text", "no"), RunEnd.ELSEWHERE),
    ],
    ids=repr,
)
def test_only_what_a_replica_did_itself_speaks_against_it(
    error: BaseException | None, end: RunEnd
) -> None:
    assert ending(error)[0] is end


def test_a_replica_that_has_enough_to_do_says_for_how_long() -> None:
    assert ending(overloaded("domain")) == (RunEnd.REFUSED, 1.5)
