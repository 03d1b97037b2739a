"""Translates errors for HTTP clients: a status, headers, and a body in OpenAI's shape."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from typing_extensions import TypedDict

from gateway.allowance import TOO_LARGE
from services.runtime.errors import (
    AlreadyExistsError,
    BudgetTooSmallError,
    BulkheadFullError,
    CircuitOpenError,
    Code,
    DeadlineMissingError,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    LoadShedError,
    LoopDetectedError,
    NotFoundError,
    NotServedHereError,
    PermissionDeniedError,
    QuotaExceededError,
    RejectedError,
    RunCancelledError,
    SelfBugError,
    SelfTimeoutError,
    SelfUnavailableError,
    SixhopError,
    UnauthenticatedError,
)
from services.runtime.status import status_info
from services.runtime.topology import GATEWAY

TOO_SLOW = "too_slow"
NOT_TAKEN = "media_type"
_OWN_STATUSES = {TOO_LARGE: 413, TOO_SLOW: 408, NOT_TAKEN: 415}
"""The causes of refusals that HTTP has a status of its own for."""
_STATUSES: Mapping[type[SixhopError], int] = {
    InvalidArgumentError: 400,
    DeadlineMissingError: 400,
    UnauthenticatedError: 401,
    PermissionDeniedError: 403,
    NotFoundError: 404,
    AlreadyExistsError: 409,
    NotServedHereError: 409,
    LoopDetectedError: 409,
    RunCancelledError: 499,
    QuotaExceededError: 429,
    LoadShedError: 503,
    BulkheadFullError: 503,
    CircuitOpenError: 503,
    DependencyOverloadedError: 503,
    SelfUnavailableError: 503,
    BudgetTooSmallError: 504,
    SelfTimeoutError: 504,
    DependencyFailedError: 502,
    SelfBugError: 500,
}
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_OWN_EXCESS = frozenset({"fair_share", "tenant_full", "tenant"})
"""Causes of refusals under load that blame the caller's own tenant."""
_BLAMES_REQUEST = frozenset({"CONTENT_FILTERED", "CONTEXT_LENGTH"})
"""Reasons of a provider that refuses this request and would take others."""
_MODEL = "agent"
"""What OpenAI's clients call a model."""
_CODES = {
    "CONTEXT_LENGTH": "context_length_exceeded",
    "CONTENT_FILTERED": "content_filter",
    "QUOTA_EXCEEDED": "rate_limit_exceeded",
    "UNAUTHENTICATED": "invalid_api_key",
}
"""The words that OpenAI's clients know for it."""


class ErrorDetails(TypedDict):
    """Tells what went wrong, in OpenAI's words and more."""

    message: str
    """What happened and what to do, for people."""
    type: str
    """OpenAI's kind of error, such as `invalid_request_error`."""
    code: str
    """The reason in OpenAI's word where it has one, else in lower case."""
    param: str | None
    """The field of the request that is wrong, such as `messages[0].content`."""
    reason: str
    """The reason as gRPC clients have it in `ErrorInfo`, such as `DEPENDENCY_FAILED`."""
    hop: str
    """Where it began."""
    cause: str
    """Which limit fired or what broke, one word."""
    remaining_ms: int
    """What the caller had left when it was answered, milliseconds."""
    details: dict[str, str]
    """What else is known."""
    run_id: str
    """The run, once there was one."""
    request_id: str
    """The request."""


class ErrorBody(TypedDict):
    """Is the body of every error, and the data of the last event of a stream that failed."""

    error: ErrorDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Is an error as an HTTP client sees it."""

    status: int
    headers: Mapping[str, str]
    body: ErrorBody

    def content(self) -> bytes:
        """Return the body as it is sent."""
        return orjson.dumps(self.body)


def failure_of(
    error: SixhopError,
    *,
    remaining_s: float = 0.0,
    wait_s: float = 0.0,
    run_id: str = "",
    request_id: str = "",
) -> Failure:
    """Return what a client is told of an error.

    Args:
        error: the error.
        remaining_s: what the caller has left, seconds.
        wait_s: what was spent waiting for dependencies, seconds.
        run_id: the run, once there is one.
        request_id: the request.
    """
    message, facts = status_info(error, hop=GATEWAY, remaining_s=remaining_s, wait_s=wait_s)
    status = status_of(error)
    unknown_model = facts.get("what") == _MODEL
    told: ErrorDetails = {
        "message": message,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "code": "model_not_found" if unknown_model else _code(error),
        "param": "model" if unknown_model else facts.get("field"),
        "reason": error.reason,
        "hop": facts.get("originHop", GATEWAY),
        "cause": facts["cause"],
        "remaining_ms": int(facts["remainingMs"]),
        "details": facts,
        "run_id": run_id,
        "request_id": request_id,
    }
    return Failure(status=status, headers=_headers(error, status), body={"error": told})


def status_of(error: SixhopError) -> int:
    """Return the HTTP status of an error."""
    status = next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), 500)
    if status == 400 and error.cause in _OWN_STATUSES:
        return _OWN_STATUSES[error.cause]
    if status == 503 and error.cause in _OWN_EXCESS:
        return 429
    if status == 502 and error.origin is not None:
        if error.origin.reason in _BLAMES_REQUEST:
            return 400
        if error.origin.reason == CircuitOpenError.reason:
            return 503
        if error.origin.code == Code.DEADLINE_EXCEEDED.name:
            return 504
    return status


def _code(error: SixhopError) -> str:
    origin = error.origin.reason if error.origin is not None else ""
    return _CODES.get(origin) or _CODES.get(error.reason) or error.reason.lower()


def _headers(error: SixhopError, status: int) -> dict[str, str]:
    headers = {}
    if error.retry_after_s is not None and error.retry_after_s >= 0:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    # OpenAI's SDKs repeat every 409, 429 and 5xx twice by themselves: what this suite has tried in
    # vain inside the caller's deadline is not made better by three times the load, and what it has
    # done must not be done again. So only where nothing was done, and when it says from when on.
    again = "retry-after" in headers and isinstance(error, RejectedError)
    headers["x-should-retry"] = "true" if again else "false"
    return headers
