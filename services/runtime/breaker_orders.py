"""Takes an operator's orders to the breakers of this process."""

from contextlib import AbstractContextManager

from services.runtime.call import Mode
from services.runtime.dependency_health import dependency_snapshots
from services.runtime.durations import to_seconds
from services.runtime.errors import (
    InvalidArgumentError,
    NotFoundError,
    NotServedHereError,
)
from services.runtime.orders import (
    MAX_REASON_CHARS,
    Authority,
    Giver,
    check_operator,
    checked_length_s,
    checked_reason,
    telling_refusal,
)
from services.runtime.stack import ClientPolicies
from services.runtime.telemetry import ORDER_TAKEN, get_logger
from sixhop.runtime.v1 import runtime_pb2

_ORDERS = {
    runtime_pb2.BREAKER_ORDER_OPEN: "breaker_open",
    runtime_pb2.BREAKER_ORDER_CLOSE: "breaker_close",
    runtime_pb2.BREAKER_ORDER_RESET: "breaker_reset",
}
"""The orders, by the names that the log has for them."""


class BreakerOrders:
    """Is where orders to breakers arrive. What is ordered lies in the breaker and nowhere else."""

    def __init__(
        self, hop: str, pod: str, policies: ClientPolicies | None, authority: Authority
    ) -> None:
        """Take the process, its policies, None while the engine is off, and who may order."""
        self._hop = hop
        self._pod = pod
        self._policies = policies
        self._authority = authority
        self._log = get_logger()

    def order(
        self, request: runtime_pb2.OrderBreakerRequest, giver: Giver
    ) -> runtime_pb2.OrderBreakerResponse:
        """Hold a breaker, or reset it.

        Args:
            request: the order.
            giver: who gives it.

        Raises:
            UnauthenticatedError: the key is missing or wrong.
            PermissionDeniedError: nobody may give orders here.
            NotServedHereError: breakers refuse nothing, or the engine is off.
            InvalidArgumentError: a field is wrong.
            NotFoundError: this process has not called such a dependency.
        """
        self.admit(request, giver)
        with _telling_refusal(request, giver):
            policies = self._enforcing()
        reason, hold_s = _checked(request)
        breakers = policies.breakers
        if request.key not in breakers.snapshot():
            raise NotFoundError(
                f"dependency that {self._hop} has called", request.key[:100], [*breakers.snapshot()]
            )
        if request.order == runtime_pb2.BREAKER_ORDER_OPEN:
            breakers.force_open(request.key, for_s=hold_s)
        elif request.order == runtime_pb2.BREAKER_ORDER_CLOSE:
            breakers.force_closed(request.key, for_s=hold_s)
        else:
            breakers.release(request.key)
        self._log.warning(
            ORDER_TAKEN,
            order=_ORDERS[request.order],
            dependency=request.key,
            operator=request.operator_name,
            peer=giver.peer,
            problem=reason,
            lasts_s=round(hold_s, 3) or None,
        )
        (now,) = [each for each in dependency_snapshots(policies) if each.key == request.key]
        return runtime_pb2.OrderBreakerResponse(pod=self._pod, dependency=now)

    def admit(self, request: runtime_pb2.OrderBreakerRequest, giver: Giver) -> None:
        """Let an operator pass, whichever process the order is for.

        Raises:
            UnauthenticatedError: the key is missing or wrong.
            PermissionDeniedError: nobody may give orders here.
        """
        with _telling_refusal(request, giver):
            self._authority.check(giver)

    def _enforcing(self) -> ClientPolicies:
        if self._policies is None:
            raise NotServedHereError(
                "breakers need the policy engine, which is off; set SIXHOP_ENGINE__ENABLED=true "
                "(enabled in [engine]) and start the suite again",
                cause="engine_off",
            )
        mode = self._policies.breakers.config.mode
        if mode is not Mode.ENFORCE:
            raise NotServedHereError(
                f"breakers refuse nothing while their mode is {mode}; set "
                "SIXHOP_BREAKER__MODE=enforce (mode in [breaker]) and reload",
                cause="not_enforced",
            )
        return self._policies


def _telling_refusal(
    request: runtime_pb2.OrderBreakerRequest, giver: Giver
) -> AbstractContextManager[None]:
    return telling_refusal(_ORDERS.get(request.order, ""), request.operator_name, giver)


def _checked(request: runtime_pb2.OrderBreakerRequest) -> tuple[str, float]:
    """Return why, and for how many seconds."""
    if request.order not in _ORDERS:
        raise InvalidArgumentError("order", "must be OPEN, CLOSE or RESET")
    check_operator(request.operator_name)
    if request.order == runtime_pb2.BREAKER_ORDER_RESET:
        return request.reason.strip()[:MAX_REASON_CHARS], 0.0
    reason = checked_reason(request.reason)
    return reason, checked_length_s("hold_duration", to_seconds(request.hold_duration))
