"""Holds the way of an error over the wire: exception → status → exception."""

from typing import TypeVar

import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.errors import (
    BACKUP_DETAILS,
    TABLE,
    BudgetTooSmallError,
    Code,
    DependencyError,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    LoadShedError,
    NotFoundError,
    Origin,
    SelfBugError,
    SelfTimeoutError,
    SixhopError,
)
from services.runtime.status import error_info, from_status, no_answer, to_status
from tests.requirements import requirement

DetailT = TypeVar("DetailT", bound=Message)

PASSED_ON = {
    "ALREADY_EXISTS",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "NOT_SERVED_HERE",
    "PERMISSION_DENIED",
    "RUN_CANCELLED",
    "UNAUTHENTICATED",
    "BUDGET_TOO_SMALL",
}
"""The caller's own errors: a relay answers them as they are."""
OVERLOADS = {"LOAD_SHED", "BULKHEAD_FULL", "QUOTA_EXCEEDED", "DEPENDENCY_OVERLOADED"}


def sample(reason: str) -> SixhopError:
    """Return an error of a kind, as a service would raise it."""
    kind = TABLE[reason]
    if kind is InvalidArgumentError:
        return InvalidArgumentError("arguments.sql", "is empty; write SQL")
    if kind is NotFoundError:
        return NotFoundError("tool", "sqll", ["sql"])
    if issubclass(kind, DependencyError):
        return kind("llm", "the provider failed", cause="http_500", origin=Origin("llm", "p", "X"))
    return kind("it went wrong", cause="queue")


def status_of(error: SixhopError, hop: str = "tool", pod: str = "tool-7") -> status_pb2.Status:
    """Return the status that a hop answers."""
    return to_status(error, hop=hop, pod=pod, remaining_s=1.2345, wait_s=0.25)


def received(status: status_pb2.Status, dependency: str = "tool") -> SixhopError:
    """Return what the caller makes of a status."""
    code = Code(status.code)
    return from_status(dependency, code, status.message, status.SerializeToString(), cause="fired")


def found(status: status_pb2.Status, kind: type[DetailT]) -> list[DetailT]:
    """Return every detail of a kind in a status."""
    details = []
    for packed in status.details:
        detail = kind()
        if packed.Unpack(detail):
            details.append(detail)
    return details


@requirement("errors:table")
@pytest.mark.parametrize("reason", TABLE)
def test_every_error_travels_with_its_code_and_exactly_one_errorinfo(reason: str) -> None:
    error = sample(reason)

    status = status_of(error)

    (info,) = found(status, error_details_pb2.ErrorInfo)
    assert status.code == error.code
    assert (info.reason, info.domain) == (reason, "tool.sixhop")
    told = dict(info.metadata)
    assert (told["hop"], told["pod"]) == ("tool", "tool-7")
    assert (told["remainingMs"], told["waitMs"]) == ("1234", "250")
    assert told["cause"] == (error.cause or reason.lower())


@requirement("errors:fault-attribution")
@pytest.mark.parametrize("reason", TABLE)
def test_a_callers_error_passes_and_every_other_becomes_the_dependencys(reason: str) -> None:
    error = received(status_of(sample(reason)))

    if reason in PASSED_ON:
        assert type(error) is TABLE[reason]
    elif reason in OVERLOADS:
        assert type(error) is DependencyOverloadedError
    else:
        assert type(error) is DependencyFailedError
    if isinstance(error, DependencyError):
        assert error.dependency == "tool"


@requirement("errors:fault-attribution")
@pytest.mark.parametrize("reason", TABLE)
def test_the_origin_is_copied_unchanged_over_two_relays(reason: str) -> None:
    first = received(status_of(sample(reason)), "tool")
    second = received(status_of(first, "domain", "domain-1"), "domain")
    third = received(status_of(second, "routing", "routing-1"), "routing")

    expected = sample(reason).origin or Origin("tool", "tool-7", TABLE[reason].code.name, reason)
    assert first.origin == second.origin == third.origin == expected
    assert type(third) is type(second)


@requirement("failover:both-are-told")
@pytest.mark.parametrize("reason", ["DEPENDENCY_FAILED", "LOAD_SHED", "BUDGET_TOO_SMALL"])
def test_what_the_second_model_did_is_copied_unchanged_over_two_relays(reason: str) -> None:
    told = {key: f"the {key}" for key in BACKUP_DETAILS}
    error = sample(reason)
    error.retell("both failed", {**told, "own": "stays here"})

    first = received(status_of(error), "domain")
    second = received(status_of(first, "routing", "routing-1"), "routing")

    assert first.details == second.details == told


@requirement("errors:bug-withheld")
def test_the_text_of_a_defect_stays_inside() -> None:
    status = status_of(SelfBugError("KeyError: 'password=hunter2'", cause="defect"))

    assert b"hunter2" not in status.SerializeToString()
    assert status.message == "tool has a defect; its log tells more"


def test_a_refusal_under_load_says_when_to_come_back() -> None:
    status = status_of(LoadShedError("full", cause="queue", retry_after_s=1.25))

    error = received(status)

    assert isinstance(error, DependencyOverloadedError)
    assert error.retry_after_s == 1.25


@requirement("failover:come-back")
@pytest.mark.parametrize("reason", ["DEPENDENCY_FAILED", "CIRCUIT_OPEN", "LOAD_SHED"])
def test_when_to_come_back_is_told_over_all_relays(reason: str) -> None:
    error = sample(reason)
    error.retry_after_s = 3.25

    first = received(status_of(error), "model")
    second = received(status_of(first, "domain", "domain-1"), "domain")

    assert (first.retry_after_s, second.retry_after_s) == (3.25, 3.25)


def test_an_error_without_a_time_to_come_back_says_none() -> None:
    assert received(status_of(LoadShedError("full"))).retry_after_s is None


def test_a_wrong_field_travels_as_bad_request_and_comes_back_whole() -> None:
    status = status_of(InvalidArgumentError("arguments.sql", "is empty; write SQL"))

    (violation,) = found(status, error_details_pb2.BadRequest)[0].field_violations
    error = received(status)

    assert (violation.field, violation.description) == ("arguments.sql", "is empty; write SQL")
    assert isinstance(error, InvalidArgumentError)
    assert (error.field, error.problem) == ("arguments.sql", "is empty; write SQL")
    assert error.message == "arguments.sql: is empty; write SQL"


def test_a_missing_thing_comes_back_with_its_name() -> None:
    error = received(status_of(NotFoundError("agent", "chta", ["chat"])))

    assert error.message == "there is no agent named 'chta'; known: chat"
    assert error.details == {"what": "agent", "name": "chta"}


def test_a_dependency_that_refused_for_want_of_time_tells_so_to_everyone_above() -> None:
    error = received(status_of(BudgetTooSmallError("0.01 s are too little", cause="arrival")))

    assert (error.code, error.cause) == (Code.FAILED_PRECONDITION, "arrival")


def test_what_the_dependency_says_of_the_cause_counts_more_than_our_guess() -> None:
    told = received(status_of(SelfTimeoutError("too slow", cause="deadline")))

    assert told.cause == "deadline"


@pytest.mark.parametrize(
    ("code", "reason", "cause"),
    [
        (Code.UNAVAILABLE, "CONNECTION_LOST", "connection_lost"),
        (Code.DEADLINE_EXCEEDED, "NO_ANSWER", "fired"),
        (Code.UNIMPLEMENTED, "UNIMPLEMENTED", "unimplemented"),
        (Code.UNKNOWN, "UNKNOWN", "unknown"),
        (Code.CANCELLED, "CANCELLED", "cancelled"),
    ],
)
def test_a_code_that_grpc_made_up_blames_the_dependency(
    code: Code, reason: str, cause: str
) -> None:
    error = from_status("model", code, "socket closed", None, cause="fired")

    assert isinstance(error, DependencyFailedError)
    assert error.origin == Origin("model", code=code.name, reason=reason)
    assert error.cause == cause
    assert "socket closed" in error.message


def test_a_bare_overload_is_one() -> None:
    error = from_status("model", Code.RESOURCE_EXHAUSTED, "full", None, cause="fired")

    assert isinstance(error, DependencyOverloadedError)


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.UNAUTHENTICATED])
def test_a_callers_code_without_our_reason_is_no_callers_error(code: Code) -> None:
    """A proxy's NOT_FOUND must not tell a user that the agent does not exist."""
    error = from_status("routing", code, "no such route", None, cause="fired")

    assert isinstance(error, DependencyFailedError)


def test_a_reason_that_does_not_fit_its_code_blames_the_dependency() -> None:
    status = status_of(NotFoundError("agent", "x"))
    status.code = Code.INTERNAL

    assert isinstance(received(status), DependencyFailedError)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("failed to connect to all addresses; last error: UNKNOWN: refused", "UNREACHABLE"),
        ("DNS resolution failed for model:7404", "UNREACHABLE"),
        ("GOAWAY received; Error code: 0", "UNREACHABLE"),
        ("no healthy upstream", "UNREACHABLE"),
        ("upstream connect error. reset reason: connection failure", "UNREACHABLE"),
        ("upstream connect error. reset reason: connection termination", "CONNECTION_LOST"),
        ("Stream removed (Socket closed)", "CONNECTION_LOST"),
        ("Cancelling all calls", "CONNECTION_LOST"),
    ],
)
def test_a_call_that_nobody_took_is_told_from_one_whose_callee_went_away(
    message: str, reason: str
) -> None:
    error = from_status("model", Code.UNAVAILABLE, message, None, cause="fired")

    assert error.origin == Origin("model", code="UNAVAILABLE", reason=reason)


def test_a_reason_that_we_do_not_know_blames_the_dependency() -> None:
    status = status_pb2.Status(code=Code.NOT_FOUND, message="moved")
    packed = Packed()
    packed.Pack(error_details_pb2.ErrorInfo(reason="GONE_FISHING", domain="x.example"))
    status.details.append(packed)

    error = received(status)

    assert isinstance(error, DependencyFailedError)
    assert error.origin == Origin("tool", "", "NOT_FOUND", "GONE_FISHING")


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xff", b"\x08", b"garbage that is no message", b"\x1a\x05\x0a\x03abc" * 3],
)
def test_garbage_in_the_details_is_as_no_details(garbage: bytes) -> None:
    error = from_status("model", Code.UNAVAILABLE, "closed", garbage, cause="fired")

    assert isinstance(error, DependencyFailedError)
    assert error.cause == "connection_lost"


def test_garbage_inside_of_a_detail_is_as_no_detail() -> None:
    status = status_pb2.Status(code=Code.UNAVAILABLE)
    url = "type.googleapis.com/google.rpc.ErrorInfo"
    status.details.append(Packed(type_url=url, value=b"\xff\xff"))

    assert error_info(status.SerializeToString()) is None
    assert received(status).cause == "connection_lost"


@given(st.sampled_from(list(Code)[1:]), st.binary(max_size=60))
def test_whatever_bytes_come_an_error_of_the_tree_results(code: Code, details: bytes) -> None:
    error = from_status("model", code, "", details, cause="fired")

    assert error.origin is not None
    assert error.origin.hop


@pytest.mark.parametrize("text", ["x" * 5000, "字" * 5000, "\ud800" * 5000, "字\0\n" * 2000])
def test_a_status_stays_small_and_readable_whatever_was_written_in_it(text: str) -> None:
    for error in (InvalidArgumentError(text, text), NotFoundError(text, text, [text])):
        status = status_of(error)

        again = received(status_pb2.Status.FromString(status.SerializeToString()))

        assert len(status.SerializeToString()) < 2500
        assert len(status.message.encode()) < 500
        assert type(again) is type(error)


def test_a_silent_dependency_is_told_with_the_limit_that_fired() -> None:
    error = no_answer("model", 6.004, "first_content_timeout")

    assert error.message == "model did not answer within 6.00 s (first_content_timeout)"
    assert (error.cause, error.dependency) == ("first_content_timeout", "model")
    assert error.origin == Origin("model", code="DEADLINE_EXCEEDED", reason="NO_ANSWER")


def test_time_that_is_over_is_told_as_zero() -> None:
    status = to_status(SelfTimeoutError("late"), hop="tool", pod="p", remaining_s=-2, wait_s=0)

    (info,) = found(status, error_details_pb2.ErrorInfo)
    assert info.metadata["remainingMs"] == "0"
