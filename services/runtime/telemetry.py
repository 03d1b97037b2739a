"""Names every log event and field, and writes them."""

import asyncio
import traceback
from typing import Any, BinaryIO

from services.runtime.call import MAX_REPORTS, AttemptReport, Call, Inbound, Outcome
from services.runtime.circuit import BreakerChange, BreakerState
from services.runtime.clock import Clock
from services.runtime.cutoff import cancel_asked
from services.runtime.errors import Code, SelfBugError, SixhopError
from services.runtime.guarding import Guard
from services.runtime.journal import Journal, Logger, milliseconds
from services.runtime.policies.shed import ShedChange
from services.runtime.statistics import Activity

CALL_ENDED = "call_ended"
CALL_FAILED = "call_failed"
ATTEMPT_FAILED = "attempt_failed"
DEFECT = "defect"
HOP_SERVING = "hop_serving"
HTTP_SERVING = "http_serving"
HTTP_SERVER_SAYS = "http_server_says"
HOP_READY = "hop_ready"
HOP_NOT_READY = "hop_not_ready"
HOP_THAWED = "hop_thawed"
LOOP_HELD = "loop_held"
WATCHER_STALLED = "watcher_stalled"
HOP_DRAINING = "hop_draining"
HOP_STOPPED = "hop_stopped"
REFUSED_TO_START = "refused_to_start"
CHECK_FOUND = "check_found"
STARTED_UNCHECKED = "started_unchecked"
CONFIG_RELOADED = "config_reloaded"
RELOAD_REFUSED = "reload_refused"
AGENTS_LEARNED = "agents_learned"
AGENTS_UNREACHABLE = "agents_unreachable"
TOOLS_LEARNED = "tools_learned"
TOOLS_UNREACHABLE = "tools_unreachable"
STEP_FAILED = "step_failed"
STEP_SKIPPED = "step_skipped"
ANSWER_DEGRADED = "answer_degraded"
AGENT_CHOSEN = "agent_chosen"
MODEL_SWITCHED = "model_switched"
MODEL_CARD_MISSING = "model_card_missing"
BOARD_ALONE = "board_alone"
BOARD_SHARED = "board_shared"
RUNS_ALONE = "runs_alone"
RUNS_SHARED = "runs_shared"
REPLICA_AWAY = "replica_away"
REPLICA_BACK = "replica_back"
SELF_EJECTED = "self_ejected"
SELF_RETURNED = "self_returned"
SHED_CHANGED = "shed_changed"
ORDER_TAKEN = "order_taken"
ORDER_REFUSED = "order_refused"
BREAKER_CHANGED = "breaker_changed"
ACCESS_CHANGED = "access_changed"
ACCESS_UNREADABLE = "access_unreadable"
ACCESS_WRITABLE = "access_writable"
ACCESS_RULE = "access_rule"
TOKEN_KEYS_AWAY = "token_keys_away"
TOKEN_KEYS_LEARNED = "token_keys_learned"
QUOTA_ALONE = "quota_alone"
QUOTA_SHARED = "quota_shared"
WORKER_NOT_STOPPED = "worker_not_stopped"
MODEL_UNCHECKED = "model_unchecked"
DIALECT_ADVISED = "dialect_advised"
"""The events."""

METRIC_CALLS = "sixhop_calls"
METRIC_CALL_ERRORS = "sixhop_call_errors"
METRIC_INFLIGHT = "sixhop_inflight_calls"
METRIC_READY = "sixhop_ready"
METRIC_LATENCY = "sixhop_call_latency_seconds"
METRIC_WAIT = "sixhop_call_wait_seconds"
METRIC_PATH = "sixhop_path_estimate_seconds"
METRIC_MEMORY = "sixhop_resident_bytes"
METRIC_ESTIMATED_QPS = "sixhop_estimated_qps"
METRIC_LOOP_LAG = "sixhop_event_loop_lag_seconds"
METRIC_LIMIT = "sixhop_admission_limit"
METRIC_REJECTED = "sixhop_rejected_calls"
METRIC_WOULD_REJECT = "sixhop_would_reject_calls"
METRIC_DOOR = "sixhop_door_state"
METRIC_FALLBACKS = "sixhop_fallbacks"
METRIC_BREAKER = "sixhop_breaker_state"
METRIC_DEPENDENCY_LATENCY = "sixhop_dependency_latency_seconds"
METRIC_RETRIES = "sixhop_retries"
METRIC_TRIPS = "sixhop_breaker_trips"
METRIC_HTTP_STREAMS = "sixhop_http_streams"
"""The metrics; Prometheus adds `_total` to the names of counters."""

OK = Code.OK.name

_LOGGER = Logger()


def configure_logging(
    hop: str, pod: str, level: str, clock: Clock, target: BinaryIO | None = None
) -> Journal:
    """Make every log line JSON with the fields of the call being served; return who writes them.

    Args:
        hop: the hop that logs.
        pod: the process that logs.
        level: the least level written.
        clock: tells the time of day and what remains.
        target: where lines go; standard error without one.
    """
    _LOGGER.journal = Journal(hop, pod, level, clock, target)
    return _LOGGER.journal


def get_logger() -> Logger:
    """Return the logger of this process; its methods take an event's name and fields."""
    return _LOGGER


def outcome_of(error: BaseException | None) -> tuple[Outcome, str]:
    """Return what the end of a call means, and its name: `OK`, or a code with a reason."""
    if error is None:
        return Outcome.SUCCESS, OK
    if isinstance(error, SixhopError):
        return error.outcome, f"{error.code.name}/{error.reason}"
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return Outcome.IGNORED, Code.CANCELLED.name
    return Outcome.FAILURE, Code.INTERNAL.name


class ServerTelemetry(Guard[Inbound]):
    """Counts and logs every call that is served. Outermost: it sees what the caller will see."""

    def __init__(self, clock: Clock, activity: Activity, *, log_calls: bool) -> None:
        """Take where to count, and whether calls that ended well are logged."""
        self._clock = clock
        self._activity = activity
        self.log_calls = log_calls
        self._log = get_logger()

    def before(self, inbound: Inbound) -> None:
        """Count a call that begins."""
        self._activity.inflight += 1

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Count and log a call that has ended."""
        self._activity.inflight -= 1
        elapsed_s, wait_s = self._clock.now() - inbound.arrived_at, inbound.wait_s
        self._activity.record(elapsed_s, wait_s, failed=error is not None)
        if error is None and not self.log_calls:
            return
        fields: dict[str, Any] = {
            "outcome": OK if error is None else outcome_of(error)[1],
            "note": inbound.note,
            "given_ms": milliseconds(inbound.time_remaining_on_arrival_s),
            "wait_ms": round(wait_s * 1000),
            "work_ms": round((elapsed_s - wait_s) * 1000),
        }
        if error is None:
            self._log.info(CALL_ENDED, **fields)
        else:
            self._log.warning(CALL_FAILED, **fields, **self._blame(inbound, error))

    def _blame(self, inbound: Inbound, failure: BaseException) -> dict[str, Any]:
        if not isinstance(failure, SixhopError):
            gone = self._clock.now() < inbound.deadline
            return {"cause": "caller_gone" if gone else "deadline"}
        blame = {"message": failure.message, "cause": failure.cause}
        if failure.origin is not None:
            blame["origin_hop"] = failure.origin.hop
            blame["origin_reason"] = failure.origin.reason
        return blame


def tell_refused(error: SixhopError, *, method: str, request_id: str) -> None:
    """Write that a request was refused before it came to the policies, as calls that fail are."""
    _LOGGER.warning(
        CALL_FAILED,
        method=method,
        run_id="",
        request_id=request_id,
        outcome=outcome_of(error)[1],
        message=error.message,
        cause=error.cause,
    )


def tell_defect(error: BaseException) -> None:
    """Write that something has failed that never should, with where."""
    _LOGGER.error(DEFECT, traceback=_format(error))


class ServerErrors(Guard[Inbound]):
    """Turns whatever a service raises into an error of our tree."""

    errors_only = True

    def after(self, inbound: Inbound, error: BaseException | None) -> None:
        """Let errors of our tree and cancels pass, and nothing else.

        Raises:
            SelfBugError: the service failed in another way.
        """
        if error is None or isinstance(error, SixhopError):
            return
        if isinstance(error, asyncio.CancelledError):
            if cancel_asked():
                return
            # Nobody cancelled this call: the service awaited something that was cancelled. gRPC
            # would send no status at all, and the caller would hang until its deadline.
            tell_defect(error)
            raise SelfBugError("a cancelled task was awaited", cause="stray_cancel") from error
        # The outermost layer: nothing unknown may pass.
        if isinstance(error, Exception):
            tell_defect(error)
            raise SelfBugError(f"{type(error).__name__}: {error}", cause="defect") from error


def _format(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def tell_breaker(change: BreakerChange) -> None:
    """Write that a breaker has changed: at once when it opens, and loudly when only people help."""
    log = get_logger()
    write = log.warning if change.new is BreakerState.OPEN else log.info
    problem = {"problem": change.told} if change.told else {}
    if change.told:
        write = log.error
    numbers = change.numbers
    write(
        BREAKER_CHANGED,
        dependency=change.key,
        before=change.old,
        now=change.new,
        reason=change.reason,
        failure_ratio=round(numbers.failure_ratio, 3),
        mean_latency_ms=milliseconds(numbers.mean_latency_s),
        slow_count=numbers.slow_count,
        overdue=numbers.overdue,
        calls=numbers.call_count,
        **problem,
    )


def tell_ejection(serving: bool, why: str) -> None:
    """Write that this process takes itself out of service, or is back."""
    if serving:
        get_logger().info(SELF_RETURNED)
    else:
        get_logger().warning(SELF_EJECTED, problem=why)


def tell_shed(change: ShedChange) -> None:
    """Write that the fast-fail switch has moved."""
    get_logger().warning(
        SHED_CHANGED,
        by=change.by,
        up_to=change.up_to.name if change.up_to is not None else None,
        problem=change.reason,
        enforced=change.enforced,
        operator=change.operator,
        lasts_s=None if change.lasts_s is None else round(change.lasts_s, 3),
    )


class AttemptTelemetry(Guard[Call]):
    """Counts the attempts under way, and reports each: what it was given, used and left."""

    def __init__(self, clock: Clock, activity: Activity) -> None:
        """Take the clock, and where to count."""
        self._clock = clock
        self._activity = activity
        self._log = get_logger()

    def before(self, call: Call) -> None:
        """Note when an attempt begins."""
        self._activity.outgoing += 1
        call.started_at = self._clock.now()
        call.told = b""

    def after(self, call: Call, error: BaseException | None) -> None:
        """Report an attempt that has ended, and log it if it failed."""
        self._activity.outgoing -= 1
        now = self._clock.now()
        name = OK if error is None else outcome_of(error)[1]
        inbound = call.inbound
        # What the constructor of a named tuple does: every attempt comes here.
        told = (
            call.dependency,
            f"{call.method} {call.note}" if call.note else call.method,
            1,
            call.attempt,
            call.started_at - inbound.arrived_at,
            call.attempt_timeout_s,
            now - call.started_at,
            inbound.deadline - now,
            name,
            call.told,
        )
        report = tuple.__new__(AttemptReport, told)
        if len(inbound.reports) < MAX_REPORTS:
            inbound.reports.append(report)
        if isinstance(error, SixhopError):
            self._log.warning(
                ATTEMPT_FAILED,
                dependency=call.dependency,
                dependency_method=report.method,
                outcome=name,
                cause=error.cause,
                given_ms=round(report.given_s * 1000),
                used_ms=round(report.used_s * 1000),
            )
