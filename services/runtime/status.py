"""Translates between our errors and `google.rpc.Status` on the wire."""

from collections.abc import Mapping
from typing import TypeVar

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from services.runtime.durations import to_duration, to_seconds
from services.runtime.errors import (
    BACKUP_DETAILS,
    TABLE,
    CallerError,
    Code,
    DependencyError,
    DependencyFailedError,
    DependencyOverloadedError,
    InvalidArgumentError,
    Origin,
    SelfBugError,
    SixhopError,
)

DetailT = TypeVar("DetailT", bound=Message)

DETAILS_KEY = "grpc-status-details-bin"
DOMAIN_SUFFIX = ".sixhop"
MAX_MESSAGE_BYTES = 480
"""Metadata is limited to 8 KiB in all, and every byte that is no ASCII travels as three."""
UNTAKEN_SIGNS = (
    "failed to connect to all addresses",
    "DNS resolution failed",
    "GOAWAY received",
    "no healthy upstream",
    "reset reason: connection failure",
    "reset reason: remote connection failure",
)
"""What gRPC and Envoy say of a call that nobody has taken, in a code that they give as well when a
callee goes away in the middle of its work."""
MAX_VALUE_BYTES = 200
"""What is told about an error may hold what a caller wrote, of any length."""


def to_status(
    error: SixhopError, *, hop: str, pod: str, remaining_s: float, wait_s: float
) -> status_pb2.Status:
    """Return what the wire carries for an error that `hop` answers.

    Exactly one ErrorInfo; RetryInfo when the error says when to come back; BadRequest when it
    names a field. The text of a defect is withheld.
    """
    message, metadata = status_info(error, hop=hop, remaining_s=remaining_s, wait_s=wait_s)
    if pod:
        metadata["pod"] = pod
    status = status_pb2.Status(code=int(error.code), message=_cut(message))
    info = error_details_pb2.ErrorInfo(
        reason=error.reason,
        domain=f"{hop}{DOMAIN_SUFFIX}",
        metadata=metadata,
    )
    _pack(status, info)
    if error.retry_after_s is not None:
        delay = to_duration(error.retry_after_s)
        _pack(status, error_details_pb2.RetryInfo(retry_delay=delay))
    if isinstance(error, InvalidArgumentError) and error.field:
        bad = error_details_pb2.BadRequest()
        field = _cut(error.field, MAX_VALUE_BYTES)
        bad.field_violations.add(field=field, description=_cut(error.problem))
        _pack(status, bad)
    return status


def status_info(
    error: SixhopError, *, hop: str, remaining_s: float, wait_s: float
) -> tuple[str, dict[str, str]]:
    """Return what is told of an error that `hop` answers: a text for people, facts for machines.

    The text of a defect is withheld; facts that are empty are left out.
    """
    message = error.message
    if isinstance(error, SelfBugError):
        message = f"{hop} has a defect; its log tells more"
    metadata = {
        **{key: _cut(value, MAX_VALUE_BYTES) for key, value in error.details.items()},
        "hop": hop,
        "cause": error.cause or error.reason.lower(),
        "remainingMs": str(max(0, round(remaining_s * 1000))),
        "waitMs": str(round(wait_s * 1000)),
    }
    if error.origin is not None:
        origin = error.origin
        metadata |= {
            "originHop": origin.hop,
            "originPod": origin.pod,
            "originCode": origin.code,
            "originReason": origin.reason,
        }
    return message, {key: value for key, value in metadata.items() if value}


def error_info(details: bytes | None) -> error_details_pb2.ErrorInfo | None:
    """Return the ErrorInfo of a status in its wire form, or None when there is none."""
    return _find(details, error_details_pb2.ErrorInfo)


def from_status(
    dependency: str, code: Code, message: str, status: bytes | None, *, cause: str
) -> SixhopError:
    """Return what a dependency's error is to the hop that called it.

    Args:
        dependency: the hop that was called.
        code: the code that it answered, or that gRPC made up.
        message: its text.
        status: the value of `grpc-status-details-bin`, if any.
        cause: the limit that fired, when nothing better is known.
    """
    info = _find(status, error_details_pb2.ErrorInfo)
    if info is None:
        return _from_bare_code(dependency, code, message, cause)
    facts = dict(info.metadata)
    origin = _origin(dependency, code, info.reason, facts)
    cause = facts.get("cause") or cause
    kind = TABLE.get(info.reason)
    if kind is not None and issubclass(kind, CallerError) and kind.code is code:
        return _caller_error(kind, message, facts, origin)
    details = {key: facts[key] for key in BACKUP_DETAILS if key in facts}
    if kind is not None and kind.reason == "BUDGET_TOO_SMALL":
        return kind(message, cause=cause, origin=origin, details=details)
    if code is Code.RESOURCE_EXHAUSTED:
        failure: type[DependencyError] = DependencyOverloadedError
    else:
        failure = DependencyFailedError
    return failure(
        dependency,
        message,
        cause=cause,
        origin=origin,
        # Not only who is busy says when to come back: so does a provider that is down.
        retry_after_s=retry_after_s(status),
        details=details,
    )


def no_answer(dependency: str, waited_s: float, cause: str) -> DependencyFailedError:
    """Return the error of a dependency that was silent until one of our limits fired."""
    return DependencyFailedError(
        dependency,
        f"{dependency} did not answer within {waited_s:.2f} s ({cause})",
        cause=cause,
        origin=Origin(dependency, code=Code.DEADLINE_EXCEEDED.name, reason="NO_ANSWER"),
    )


def _from_bare_code(dependency: str, code: Code, message: str, cause: str) -> SixhopError:
    untaken = any(sign in message for sign in UNTAKEN_SIGNS)
    reasons = {
        Code.UNAVAILABLE: ("UNREACHABLE", "unreachable", "cannot be reached")
        if untaken
        else ("CONNECTION_LOST", "connection_lost", "was lost"),
        Code.DEADLINE_EXCEEDED: ("NO_ANSWER", cause, "did not answer in time"),
    }
    reason, cause, text = reasons.get(code, (code.name, code.name.lower(), "failed"))
    origin = Origin(dependency, code=code.name, reason=reason)
    full = f"{dependency} {text} ({code.name}: {message[:200]})"
    if code is Code.RESOURCE_EXHAUSTED:
        return DependencyOverloadedError(dependency, full, cause=cause, origin=origin)
    return DependencyFailedError(dependency, full, cause=cause, origin=origin)


def _origin(dependency: str, code: Code, reason: str, facts: Mapping[str, str]) -> Origin:
    if "originHop" in facts:
        return Origin(
            facts["originHop"],
            facts.get("originPod", ""),
            facts.get("originCode", ""),
            facts.get("originReason", ""),
        )
    return Origin(facts.get("hop", dependency), facts.get("pod", ""), code.name, reason)


def _caller_error(
    kind: type[SixhopError], message: str, facts: Mapping[str, str], origin: Origin
) -> SixhopError:
    # The constructors of these compose their text; what came over the wire is already composed.
    error = kind.__new__(kind)
    SixhopError.__init__(error, message, cause=facts.get("cause", ""), origin=origin)
    error.details = {key: facts[key] for key in ("field", "what", "name") if key in facts}
    if isinstance(error, InvalidArgumentError):
        error.field = facts.get("field", "")
        error.problem = message.removeprefix(f"{error.field}: ")
    return error


def retry_after_s(details: bytes | None) -> float | None:
    """Return when to come back as a status says it, in seconds; None when it does not."""
    info = _find(details, error_details_pb2.RetryInfo)
    return None if info is None else to_seconds(info.retry_delay)


def _cut(text: str, length: int = MAX_MESSAGE_BYTES) -> str:
    return text.encode(errors="replace")[:length].decode(errors="ignore")


def _pack(status: status_pb2.Status, detail: Message) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)
    status.details.append(packed)


def _find(details: bytes | None, kind: type[DetailT]) -> DetailT | None:
    """Return a detail; bytes that are no status tell nothing, and the code still counts."""
    try:
        status = status_pb2.Status.FromString(details or b"")
        for packed in status.details:
            found = kind()
            if packed.Unpack(found):
                return found
    except DecodeError:
        return None
    return None
