"""Describes a run that failed, and what its reader can do about it."""

from dataclasses import dataclass

from gateway.cli.problem import EXIT_FAILED, EXIT_USAGE

NOT_RUNNING = "NOT_RUNNING"
NO_ANSWER = "NO_ANSWER"
GATEWAY_GONE = "GATEWAY_GONE"
TRUNCATED = "TRUNCATED"
"""The reasons that a client finds out by itself; all others are the wire's."""

_CALLERS_FAULT = {
    NOT_RUNNING,
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "NOT_SERVED_HERE",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
}
_MORE_TIME = "give it more time with --deadline"
_OWN_LIMIT = (
    "ask again; a limit of that part itself has ended it, which no longer deadline moves; "
    "`sixhop health` shows how the hops are"
)
_ADVICE = {
    NOT_RUNNING: "start the suite with `sixhop up`, or name another with --gateway",
    NO_ANSWER: f"ask again; `sixhop health` shows how the hops are; or {_MORE_TIME}",
    GATEWAY_GONE: "ask again: `sixhop up` starts it again by itself",
    TRUNCATED: "ask again; what was shown is not complete",
    "UNREACHABLE": "ask again in a moment: `sixhop up` starts it again by itself; "
    "`sixhop health` shows how the hops are",
    "SELF_TIMEOUT": _MORE_TIME,
    "BUDGET_TOO_SMALL": _MORE_TIME,
    "SELF_UNAVAILABLE": "ask again in a moment; `sixhop health` shows how the hops are",
    "SELF_BUG": "the log of that hop tells more; `sixhop up` prints where logs are",
    "LOAD_SHED": "ask again in a moment; it has enough to do",
    "BULKHEAD_FULL": "ask again in a moment; it has enough to do",
    "QUOTA_EXCEEDED": "ask again later; your share is used up",
    "UNAUTHENTICATED": "set SIXHOP_API_KEY to a key; `sixhop key create --tenant NAME` makes one",
    "CIRCUIT_OPEN": "ask again in half a minute; it is known to be sick and gets time to heal",
    "LOOP_DETECTED": "ask in other words; the agent went round in circles",
    "PROVIDER_KEY_REFUSED": "correct SIXHOP_MODEL__API_KEY and start the suite again",
    "PROVIDER_NO_BALANCE": "top up the provider's account, or set another provider",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Is the typed error of a run."""

    code: str
    """The gRPC code's name."""
    reason: str
    message: str
    hop: str = ""
    """The hop that answered the error."""
    pod: str = ""
    cause: str = ""
    """Which limit fired, or what broke."""
    origin_hop: str = ""
    """Where the failure began, when that was behind the hop that answered."""
    origin_pod: str = ""
    origin_code: str = ""
    origin_reason: str = ""
    remaining_ms: int | None = None
    """What the answering hop had left to its deadline."""
    wait_ms: int | None = None
    """How long it had waited for others."""
    retry_after_s: float | None = None
    field: str = ""
    """The field of the request that is wrong."""

    @property
    def failed_hop(self) -> str:
        """Return the hop that is to blame."""
        return self.origin_hop or self.hop

    @property
    def exit_code(self) -> int:
        """Return 2 when the caller can repair it, else 1."""
        return EXIT_USAGE if self.reason in _CALLERS_FAULT else EXIT_FAILED

    @property
    def advice(self) -> str:
        """Return what to do; empty when the message says it all."""
        if self.cause == "step_timeout" and self.retry_after_s is None:
            return _OWN_LIMIT
        advice = _ADVICE.get(self.origin_reason) or _ADVICE.get(self.reason, "")
        if self.retry_after_s is not None:
            return f"ask again in {self.retry_after_s:.1f} s"
        if not advice and self.exit_code == EXIT_FAILED:
            return "ask again; `sixhop health` shows how the hops are"
        return advice


class RunFailedError(Exception):
    """Ends a run without an answer."""

    def __init__(self, failure: Failure) -> None:
        """Take what is known."""
        super().__init__(failure.message)
        self.failure = failure
