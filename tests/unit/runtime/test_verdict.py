"""Holds the verdict to blaming a callee for what the callee itself has done."""

import asyncio

import pytest

from services.runtime.call import Call, Callee, Outcome
from services.runtime.errors import (
    BulkheadFullError,
    CircuitOpenError,
    DependencyFailedError,
    InvalidArgumentError,
    SelfBugError,
)
from services.runtime.policies.deadline import StreamWait
from services.runtime.verdict import verdict
from tests.unit.runtime.fake_time import START
from tests.unit.runtime.policies.client_samples import failed, overloaded, silent, sql_call
from tests.unit.runtime.policies.samples import limits

SUCCESS, FAILURE, IGNORED = Outcome.SUCCESS, Outcome.FAILURE, Outcome.IGNORED


def stream(first_s: float, *, advertised_p90_s: float = 0.0, delivered: bool = False) -> Call:
    """Return a stream that had so long for its first event."""
    wait = StreamWait.begin(limits(first_s), START + 30.0, START, 29.0)
    return sql_call(
        streaming=True,
        step_timeout_s=first_s,
        sent_at=START,
        wait_limit=wait,
        advertised_p90_s=advertised_p90_s,
        delivered=delivered,
    )


def test_a_good_end_is_a_success() -> None:
    assert verdict(None, sql_call()) is SUCCESS


@pytest.mark.parametrize(
    "reason", ["SELF_UNAVAILABLE", "SELF_TIMEOUT", "SELF_BUG", "UNREACHABLE", "CANCELLED"]
)
def test_what_the_callee_did_is_its_failure(reason: str) -> None:
    assert verdict(failed(reason), sql_call()) is FAILURE


@pytest.mark.parametrize(
    "error",
    [
        failed(hop="model"),
        failed("CIRCUIT_OPEN"),
        failed("CONTEXT_LENGTH"),
        overloaded(),
        BulkheadFullError("full"),
        CircuitOpenError("open"),
        InvalidArgumentError("sql", "no"),
        SelfBugError("ours"),
        asyncio.CancelledError(),
        GeneratorExit(),
        ValueError("a defect"),
    ],
    ids=repr,
)
def test_what_others_did_says_nothing(error: BaseException) -> None:
    assert verdict(error, sql_call()) is IGNORED


@pytest.mark.parametrize(
    ("given_s", "advertised_p90_s", "outcome"),
    [
        (0.5, 0.4, FAILURE),
        (0.4, 0.4, FAILURE),
        (0.3, 0.4, IGNORED),
        (4.99, 0.0, FAILURE),
        (2.0, 0.0, FAILURE),
        (0.1, 0.0, IGNORED),
        (2.0, 9.0, FAILURE),
        (1.8, 9.0, IGNORED),
    ],
)
def test_silence_counts_when_the_callee_had_what_it_needs(
    given_s: float, advertised_p90_s: float, outcome: Outcome
) -> None:
    call = sql_call(attempt_timeout_s=given_s, advertised_p90_s=advertised_p90_s)

    assert verdict(silent(), call) is outcome


def test_a_whole_short_step_is_enough_for_one_that_nobody_knows_yet() -> None:
    call = sql_call(step_timeout_s=0.5, attempt_timeout_s=0.499)

    assert verdict(silent(), call) is FAILURE


def test_the_unreachable_failed_however_little_time_it_had() -> None:
    call = sql_call(attempt_timeout_s=0.01, advertised_p90_s=5.0)

    assert verdict(failed("UNREACHABLE"), call) is FAILURE


@pytest.mark.parametrize(
    ("first_s", "advertised_p90_s", "outcome"),
    [(1.0, 0.5, FAILURE), (0.4, 0.5, IGNORED), (3.0, 0.0, FAILURE)],
)
def test_a_stream_is_judged_by_what_it_had_for_its_first_event(
    first_s: float, advertised_p90_s: float, outcome: Outcome
) -> None:
    call = stream(first_s, advertised_p90_s=advertised_p90_s)

    assert verdict(silent(), call) is outcome


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [
        ("read_timeout", FAILURE),
        ("first_content_timeout", FAILURE),
        ("deadline_share", IGNORED),
        ("deadline", IGNORED),
    ],
)
def test_a_stream_that_has_begun_fails_by_its_own_limits_only(cause: str, outcome: Outcome) -> None:
    assert verdict(silent(cause), stream(5.0, delivered=True)) is outcome


def test_an_error_without_an_origin_says_nothing() -> None:
    error = failed()
    error.origin = None

    assert isinstance(error, DependencyFailedError)
    assert verdict(error, sql_call(callee=Callee(key="x"))) is IGNORED
