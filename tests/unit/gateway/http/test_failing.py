"""Holds what HTTP clients are told of errors to the design's table."""

from collections.abc import Mapping

import pytest

from gateway.allowance import TOO_LARGE
from gateway.http.failing import (
    NOT_TAKEN,
    TOO_SLOW,
    ErrorDetails,
    failure_of,
    status_of,
)
from services.runtime.errors import (
    PROVIDER_REASONS,
    TABLE,
    TRANSPORT_REASONS,
    BudgetTooSmallError,
    Code,
    DependencyError,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    LoadShedError,
    NotFoundError,
    Origin,
    QuotaExceededError,
    RejectedError,
    SelfBugError,
    SixhopError,
)
from tests.requirements import requirement

STATUSES: Mapping[str, int] = {
    "DEADLINE_MISSING": 400,
    "BUDGET_TOO_SMALL": 504,
    "LOAD_SHED": 503,
    "BULKHEAD_FULL": 503,
    "QUOTA_EXCEEDED": 429,
    "CIRCUIT_OPEN": 503,
    "LOOP_DETECTED": 409,
    "RUN_CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "NOT_SERVED_HERE": 409,
    "PERMISSION_DENIED": 403,
    "UNAUTHENTICATED": 401,
    "SELF_TIMEOUT": 504,
    "SELF_UNAVAILABLE": 503,
    "SELF_BUG": 500,
    "DEPENDENCY_FAILED": 502,
    "DEPENDENCY_OVERLOADED": 503,
}
"""Every reason of the table, written out: a new one has to be decided about."""
ORIGIN = Origin("model", code="ABORTED", reason="PROVIDER_ERROR")


def made(kind: type[SixhopError], *, retry_after_s: float | None = None) -> SixhopError:
    """Return an error of a kind, whatever its constructor takes."""
    error = kind.__new__(kind)
    origin = ORIGIN if issubclass(kind, DependencyError) else None
    SixhopError.__init__(error, "no", origin=origin, retry_after_s=retry_after_s)
    return error


def failed_by(reason: str, code: str = "ABORTED") -> SixhopError:
    """Return what the gateway raises when a failure began at the model hop."""
    origin = Origin("model", code=code, reason=reason)
    return DependencyFailedError("routing", "no", cause="x", origin=origin)


def told(error: SixhopError) -> ErrorDetails:
    """Return what a client reads of an error."""
    return failure_of(error).body["error"]


@requirement("http:every-reason-has-a-status")
def test_every_reason_of_the_table_has_its_status() -> None:
    assert {reason: status_of(made(kind)) for reason, kind in TABLE.items()} == STATUSES


@requirement("http:every-reason-has-a-status")
@pytest.mark.parametrize("reason", TABLE)
def test_every_error_is_told_in_openais_shape_and_ours(reason: str) -> None:
    failure = failure_of(made(TABLE[reason]), remaining_s=1.25, run_id="r", request_id="q")

    error = failure.body["error"]
    assert set(error) == set(ErrorDetails.__annotations__)
    assert (error["reason"], error["remaining_ms"]) == (reason, 1250)
    assert (error["run_id"], error["request_id"]) == ("r", "q")
    assert error["message"]
    assert error["type"].endswith("_error")
    assert error["hop"] == ("model" if error["details"].get("originHop") else "gateway")


@requirement("http:every-reason-has-a-status")
@pytest.mark.parametrize("reason", sorted(PROVIDER_REASONS | TRANSPORT_REASONS))
def test_a_failure_elsewhere_blames_the_request_only_where_it_is_at_fault(reason: str) -> None:
    blamed = reason in ("CONTENT_FILTERED", "CONTEXT_LENGTH")

    assert status_of(failed_by(reason)) == (400 if blamed else 502)


@requirement("http:every-reason-has-a-status")
def test_a_hop_that_did_not_answer_in_time_is_a_gateways_timeout() -> None:
    assert status_of(failed_by("NO_ANSWER", Code.DEADLINE_EXCEEDED.name)) == 504
    assert status_of(failed_by("SELF_TIMEOUT", Code.DEADLINE_EXCEEDED.name)) == 504
    assert status_of(failed_by("CIRCUIT_OPEN")) == 503


@requirement("http:every-reason-has-a-status")
@pytest.mark.parametrize("cause", ["fair_share", "tenant_full", "tenant"])
def test_load_that_a_tenant_makes_alone_is_its_own_excess(cause: str) -> None:
    assert status_of(LoadShedError("no", cause=cause)) == 429
    assert status_of(LoadShedError("no", cause="overload")) == 503


@requirement("http:every-reason-has-a-status")
@pytest.mark.parametrize("reason", TABLE)
def test_clients_repeat_only_what_was_refused_before_any_work(reason: str) -> None:
    kind = TABLE[reason]

    later = failure_of(made(kind, retry_after_s=2.1)).headers
    never = failure_of(made(kind)).headers

    assert later["retry-after"] == "3"
    assert later["x-should-retry"] == str(issubclass(kind, RejectedError)).lower()
    assert "retry-after" not in never
    assert never["x-should-retry"] == "false"


@requirement("http:every-reason-has-a-status")
def test_a_hop_that_was_overloaded_in_the_middle_of_a_run_is_not_asked_again() -> None:
    # A tool may have run by then: the run that the client would begin is another one.
    error = DependencyOverloadedError(
        "routing", "no", cause="rate_limit", origin=ORIGIN, retry_after_s=5
    )

    assert failure_of(error).headers == {"retry-after": "5", "x-should-retry": "false"}


@requirement("http:every-reason-has-a-status")
@pytest.mark.parametrize(("cause", "status"), [(TOO_LARGE, 413), (TOO_SLOW, 408), (NOT_TAKEN, 415)])
def test_bodies_that_are_not_read_have_statuses_of_their_own(cause: str, status: int) -> None:
    assert status_of(InvalidArgumentError("body", "no", cause=cause)) == status


def test_openais_words_are_used_where_it_has_one() -> None:
    assert told(NotFoundError("agent", "gpt"))["code"] == "model_not_found"
    assert told(NotFoundError("agent", "gpt"))["param"] == "model"
    assert told(NotFoundError("page", "/x"))["code"] == "not_found"
    assert told(failed_by("CONTEXT_LENGTH"))["code"] == "context_length_exceeded"
    assert told(QuotaExceededError("no"))["code"] == "rate_limit_exceeded"
    assert told(InvalidArgumentError("n", "no"))["param"] == "n"
    assert told(BudgetTooSmallError("no"))["code"] == "budget_too_small"


@requirement("errors:bug-withheld")
def test_the_text_of_a_defect_is_withheld() -> None:
    assert "secret" not in str(failure_of(SelfBugError("secret")).body)


def test_an_unknown_client_is_told_how_to_be_known() -> None:
    failure = failure_of(made(TABLE["UNAUTHENTICATED"]))

    assert failure.headers["www-authenticate"] == "Bearer"
