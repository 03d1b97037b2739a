"""Holds the one table of errors to the design, section 5."""

import grpc
import pytest

from services.runtime import errors
from services.runtime.call import Outcome
from services.runtime.errors import TABLE, Code, Origin, SixhopError
from sixhop.type.v1 import error_pb2
from tests.requirements import requirement

CONTRACT = {
    "SELF_TIMEOUT": ("SelfTimeoutError", Code.DEADLINE_EXCEEDED, Outcome.FAILURE),
    "SELF_UNAVAILABLE": ("SelfUnavailableError", Code.UNAVAILABLE, Outcome.FAILURE),
    "SELF_BUG": ("SelfBugError", Code.INTERNAL, Outcome.FAILURE),
    "LOAD_SHED": ("LoadShedError", Code.RESOURCE_EXHAUSTED, Outcome.IGNORED),
    "BULKHEAD_FULL": ("BulkheadFullError", Code.RESOURCE_EXHAUSTED, Outcome.IGNORED),
    "QUOTA_EXCEEDED": ("QuotaExceededError", Code.RESOURCE_EXHAUSTED, Outcome.IGNORED),
    "BUDGET_TOO_SMALL": ("BudgetTooSmallError", Code.FAILED_PRECONDITION, Outcome.IGNORED),
    "CIRCUIT_OPEN": ("CircuitOpenError", Code.ABORTED, Outcome.IGNORED),
    "LOOP_DETECTED": ("LoopDetectedError", Code.ABORTED, Outcome.IGNORED),
    "DEPENDENCY_FAILED": ("DependencyFailedError", Code.ABORTED, Outcome.IGNORED),
    "DEPENDENCY_OVERLOADED": (
        "DependencyOverloadedError",
        Code.RESOURCE_EXHAUSTED,
        Outcome.IGNORED,
    ),
    "DEADLINE_MISSING": ("DeadlineMissingError", Code.INVALID_ARGUMENT, Outcome.IGNORED),
    "ALREADY_EXISTS": ("AlreadyExistsError", Code.ALREADY_EXISTS, Outcome.IGNORED),
    "INVALID_ARGUMENT": ("InvalidArgumentError", Code.INVALID_ARGUMENT, Outcome.IGNORED),
    "NOT_FOUND": ("NotFoundError", Code.NOT_FOUND, Outcome.IGNORED),
    "NOT_SERVED_HERE": ("NotServedHereError", Code.FAILED_PRECONDITION, Outcome.IGNORED),
    "PERMISSION_DENIED": ("PermissionDeniedError", Code.PERMISSION_DENIED, Outcome.IGNORED),
    "RUN_CANCELLED": ("RunCancelledError", Code.CANCELLED, Outcome.IGNORED),
    "UNAUTHENTICATED": ("UnauthenticatedError", Code.UNAUTHENTICATED, Outcome.IGNORED),
}
"""Reason → class, code, what it tells about the hop that answers it."""

COUNTED_BY_ENVOY = {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.INTERNAL}


@requirement("errors:table")
def test_the_table_is_that_of_the_design() -> None:
    table = {reason: (kind.__name__, kind.code, kind.outcome) for reason, kind in TABLE.items()}

    assert table == CONTRACT


@requirement("errors:table")
def test_the_proto_names_the_same_reasons() -> None:
    prefix = "ERROR_REASON_"
    names = {name.removeprefix(prefix) for name in error_pb2.ErrorReason.keys()}

    assert names - {"UNSPECIFIED"} == set(CONTRACT)


@requirement("errors:fault-attribution")
def test_only_own_failures_use_a_code_that_a_mesh_counts() -> None:
    counted = {kind.reason for kind in TABLE.values() if kind.code in COUNTED_BY_ENVOY}

    assert counted == {"SELF_TIMEOUT", "SELF_UNAVAILABLE", "SELF_BUG"}


def test_our_codes_are_those_of_grpc() -> None:
    names = {code.name: code.value[0] for code in grpc.StatusCode}

    assert {code.name: int(code) for code in Code} == names


def test_the_docstring_shows_the_table() -> None:
    drawn = {
        tuple(line.split()[-3:])
        for line in (errors.__doc__ or "").splitlines()
        if line.rsplit(" ", 1)[-1] in TABLE
    }

    assert drawn == {(name, code.name, reason) for reason, (name, code, _) in CONTRACT.items()}


def test_an_error_says_what_it_was_made_with() -> None:
    details = {"attempts": "2"}
    error = errors.LoadShedError(
        "come later", cause="queue", details=details, retry_after_s=1.5, origin=Origin("tool")
    )
    details["attempts"] = "3"

    assert str(error) == error.message == "come later"
    assert (error.cause, error.retry_after_s, error.origin) == ("queue", 1.5, Origin("tool"))
    assert error.details == {"attempts": "2"}


def test_a_wrong_argument_names_its_field() -> None:
    error = errors.InvalidArgumentError("question.text", "is empty; ask something")

    assert error.message == "question.text: is empty; ask something"
    assert error.details == {"field": "question.text"}


def test_a_wrong_request_without_a_field_tells_only_the_problem() -> None:
    assert errors.InvalidArgumentError("", "is no CSV").message == "is no CSV"


def test_a_missing_thing_names_those_that_exist() -> None:
    error = errors.NotFoundError("agent", "chta", ["reports", "chat"])

    assert error.message == "there is no agent named 'chta'; known: chat, reports"
    assert error.details == {"what": "agent", "name": "chta"}


@pytest.mark.parametrize("kind", TABLE.values(), ids=TABLE)
def test_every_error_is_one_of_the_tree(kind: type[SixhopError]) -> None:
    families = {errors.RejectedError, errors.CallerError, errors.SelfError, errors.DependencyError}

    assert len(families & set(kind.__mro__)) == 1
