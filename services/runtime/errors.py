"""Defines every error that a hop can answer, with its code and its reason.

SixhopError
├── RejectedError                 no work was done
│   ├── DeadlineMissingError      INVALID_ARGUMENT     DEADLINE_MISSING
│   ├── BudgetTooSmallError       FAILED_PRECONDITION  BUDGET_TOO_SMALL
│   ├── LoadShedError             RESOURCE_EXHAUSTED   LOAD_SHED
│   ├── BulkheadFullError         RESOURCE_EXHAUSTED   BULKHEAD_FULL
│   ├── QuotaExceededError        RESOURCE_EXHAUSTED   QUOTA_EXCEEDED
│   ├── CircuitOpenError          ABORTED              CIRCUIT_OPEN
│   └── LoopDetectedError         ABORTED              LOOP_DETECTED
├── CallerError                   the caller's mistake
│   ├── AlreadyExistsError        ALREADY_EXISTS       ALREADY_EXISTS
│   ├── InvalidArgumentError      INVALID_ARGUMENT     INVALID_ARGUMENT
│   ├── NotFoundError             NOT_FOUND            NOT_FOUND
│   ├── NotServedHereError        FAILED_PRECONDITION  NOT_SERVED_HERE
│   ├── PermissionDeniedError     PERMISSION_DENIED    PERMISSION_DENIED
│   ├── RunCancelledError        CANCELLED            RUN_CANCELLED
│   └── UnauthenticatedError      UNAUTHENTICATED      UNAUTHENTICATED
├── SelfError                     this hop's own fault; the only codes that a mesh may count
│   ├── SelfTimeoutError          DEADLINE_EXCEEDED    SELF_TIMEOUT
│   ├── SelfUnavailableError      UNAVAILABLE          SELF_UNAVAILABLE
│   └── SelfBugError              INTERNAL             SELF_BUG
└── DependencyError               somebody else's fault, named by its origin
    ├── DependencyFailedError     ABORTED              DEPENDENCY_FAILED
    └── DependencyOverloadedError RESOURCE_EXHAUSTED   DEPENDENCY_OVERLOADED
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from services.runtime.call import Outcome


class Code(IntEnum):
    """Names the gRPC status codes, so that policies need not know gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """Tells where a failure began; every relay copies it unchanged."""

    hop: str
    pod: str = ""
    code: str = ""
    """The code that the origin answered, or would have."""
    reason: str = ""
    """The reason that the origin gave; `NO_ANSWER` when it gave none in time."""


BACKUP_DETAILS = ("backupHop", "backupCode", "backupReason", "backupProblem")
"""What the model that stands in failed with as well, or why it was not asked (the last one only);
every relay copies these unchanged, as it does an origin."""


class SixhopError(Exception):
    """Ends a call with a code, a reason and what a reader can do about it."""

    code: ClassVar[Code]
    reason: ClassVar[str]
    outcome: ClassVar[Outcome] = Outcome.IGNORED
    """What the error tells about the hop that *answered* it."""

    def __init__(
        self,
        message: str,
        *,
        cause: str = "",
        details: Mapping[str, str] | None = None,
        origin: Origin | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """Take what the wire carries.

        Args:
            message: what happened and what to do, for people.
            cause: which limit fired or what broke, one word, for machines.
            details: more metadata, lowerCamelCase keys with the unit in the key.
            origin: where the failure began, when that was elsewhere.
            retry_after_s: when to come back, where whoever it began with has said so.
        """
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.details: dict[str, str] = dict(details or {})
        self.origin = origin
        self.retry_after_s = retry_after_s

    @property
    def origin_reason(self) -> str:
        """Return the reason of whoever it began with: its own without an origin."""
        return self.origin.reason if self.origin is not None else self.reason

    def retell(self, message: str, details: Mapping[str, str]) -> None:
        """Tell it in other words, and add details; what it is, and whose, stays."""
        self.args = (message,)
        self.message = message
        self.details |= details


class RejectedError(SixhopError):
    """Refuses before any work was done."""


class DeadlineMissingError(RejectedError):
    """Refuses a call that has no deadline."""

    code = Code.INVALID_ARGUMENT
    reason = "DEADLINE_MISSING"


class BudgetTooSmallError(RejectedError):
    """Refuses work that the time remaining cannot pay for."""

    code = Code.FAILED_PRECONDITION
    reason = "BUDGET_TOO_SMALL"


class LoadShedError(RejectedError):
    """Refuses because this hop has enough to do."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "LOAD_SHED"


class BulkheadFullError(RejectedError):
    """Refuses because no permit came free in time."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "BULKHEAD_FULL"


class QuotaExceededError(RejectedError):
    """Refuses because the tenant has used its share."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "QUOTA_EXCEEDED"


class CircuitOpenError(RejectedError):
    """Refuses because the dependency is known to be sick."""

    code = Code.ABORTED
    reason = "CIRCUIT_OPEN"


class LoopDetectedError(RejectedError):
    """Refuses an action that the run has taken already, with the same arguments."""

    code = Code.ABORTED
    reason = "LOOP_DETECTED"


class CallerError(SixhopError):
    """Blames the caller; the same call fails again."""


class AlreadyExistsError(CallerError):
    """Says that the name which the caller gives to something is taken."""

    code = Code.ALREADY_EXISTS
    reason = "ALREADY_EXISTS"


class InvalidArgumentError(CallerError):
    """Says which field is wrong, and what would be right."""

    code = Code.INVALID_ARGUMENT
    reason = "INVALID_ARGUMENT"

    def __init__(
        self, field: str, problem: str, *, cause: str = "", origin: Origin | None = None
    ) -> None:
        """Take the field's path and the problem, a sentence that says what to do."""
        super().__init__(
            f"{field}: {problem}" if field else problem,
            cause=cause,
            details={"field": field},
            origin=origin,
        )
        self.field = field
        self.problem = problem


class NotFoundError(CallerError):
    """Says that a named thing does not exist, and which do."""

    code = Code.NOT_FOUND
    reason = "NOT_FOUND"

    def __init__(
        self, what: str, name: str, known: Sequence[str] = (), *, origin: Origin | None = None
    ) -> None:
        """Take the kind of thing, the name asked for, and the names that exist."""
        hint = f"; known: {', '.join(sorted(known))}" if known else ""
        super().__init__(
            f"there is no {what} named {name!r}{hint}",
            details={"what": what, "name": name[:200]},
            origin=origin,
        )


class NotServedHereError(CallerError):
    """Says that another hop does this, or that a setting has to switch it on."""

    code = Code.FAILED_PRECONDITION
    reason = "NOT_SERVED_HERE"


class PermissionDeniedError(CallerError):
    """Says that the caller may not do this."""

    code = Code.PERMISSION_DENIED
    reason = "PERMISSION_DENIED"


class RunCancelledError(CallerError):
    """Says that the caller, or another one of its tenant, has ended the run."""

    code = Code.CANCELLED
    reason = "RUN_CANCELLED"


class UnauthenticatedError(CallerError):
    """Says that the caller is unknown."""

    code = Code.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"


class SelfError(SixhopError):
    """Blames this hop: the only codes that Envoy's outlier detection may count."""

    outcome = Outcome.FAILURE


class SelfTimeoutError(SelfError):
    """Says that own work outran an adequate budget."""

    code = Code.DEADLINE_EXCEEDED
    reason = "SELF_TIMEOUT"


class SelfUnavailableError(SelfError):
    """Says that an own engine or local dependency is gone."""

    code = Code.UNAVAILABLE
    reason = "SELF_UNAVAILABLE"


class SelfBugError(SelfError):
    """Says that this hop has a defect; the text never leaves the process."""

    code = Code.INTERNAL
    reason = "SELF_BUG"


class DependencyError(SixhopError):
    """Blames a dependency, by its origin."""

    def __init__(
        self,
        dependency: str,
        message: str,
        *,
        cause: str,
        origin: Origin,
        retry_after_s: float | None = None,
        details: Mapping[str, str] | None = None,
        opens_breaker: bool = False,
    ) -> None:
        """Take the dependency that was called, and the origin of its failure.

        `opens_breaker` says that every call will fail like this until somebody corrects something:
        a breaker need not wait for more of them. It holds in this process and does not travel.
        """
        super().__init__(
            message, cause=cause, origin=origin, retry_after_s=retry_after_s, details=details
        )
        self.dependency = dependency
        self.opens_breaker = opens_breaker


class DependencyFailedError(DependencyError):
    """Says that a dependency failed, did not answer, or could not be reached."""

    code = Code.ABORTED
    reason = "DEPENDENCY_FAILED"


class DependencyOverloadedError(DependencyError):
    """Says that a dependency refused because it had enough to do."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "DEPENDENCY_OVERLOADED"


def _leaves(kind: type[SixhopError]) -> list[type[SixhopError]]:
    found = [kind] if "reason" in vars(kind) else []
    for child in kind.__subclasses__():
        if child.__module__ == __name__:
            found.extend(_leaves(child))
    return found


TABLE: Mapping[str, type[SixhopError]] = {kind.reason: kind for kind in _leaves(SixhopError)}
"""The one table: reason → exception class, which knows its code."""

TRANSPORT_REASONS = frozenset(
    {
        "UNREACHABLE",
        "CONNECTION_LOST",
        "NO_ANSWER",
        "STREAM_LOST",
        "TRUNCATED",
        "PROTOCOL_ERROR",
        "UNREADABLE",
        "NOT_TAKEN_BACK",
    }
)
"""What calls come to that nobody answers, or not to the end."""
PROVIDER_REASONS = frozenset(
    {
        "CONTENT_FILTERED",
        "CONTEXT_LENGTH",
        "PROVIDER_ERROR",
        "PROVIDER_KEY_REFUSED",
        "PROVIDER_MODEL_UNKNOWN",
        "PROVIDER_NO_BALANCE",
        "PROVIDER_OVERLOADED",
        "PROVIDER_RATE_LIMITED",
        "PROVIDER_REFUSED",
    }
)
"""What a language model's provider does wrong, as the model hop tells it."""
REASONS = frozenset(TABLE) | {code.name for code in Code} | TRANSPORT_REASONS | PROVIDER_REASONS
"""Every reason that an error or its origin can have; a bare code of gRPC is its own reason."""
