"""Takes an operator's orders to the fast-fail switch, from those who may give them."""

import hmac
import ipaddress
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from services.runtime.call import Criticality
from services.runtime.clock import Clock
from services.runtime.durations import to_seconds
from services.runtime.errors import (
    InvalidArgumentError,
    NotServedHereError,
    PermissionDeniedError,
    SixhopError,
    UnauthenticatedError,
)
from services.runtime.policies.shed import ShedSwitch
from services.runtime.policy_state import order_state
from services.runtime.telemetry import ORDER_REFUSED, ORDER_TAKEN, get_logger
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2

OPERATOR_KEY = "x-sixhop-operator-key"
"""The metadata that carries the operator's key."""
MAX_REASON_CHARS = 200
MAX_OPERATOR_CHARS = 100
MAX_ORDER_S = 86_400.0
"""An order that is forgotten ends within a day."""


_PASSED_ON = ("forwarded", "via", "x-envoy-external-address", "x-real-ip")
_PASSED_ON_PREFIX = "x-forwarded-"
"""What proxies say of themselves, in headers and in metadata."""


@dataclass(frozen=True, slots=True)
class Giver:
    """Is who gives an order, as far as that is known."""

    key: str | None
    """The operator's key as it came, if it did."""
    peer: str
    """Where the order comes from, for the log."""
    passed_on: bool = False
    """Whether a proxy says that it has passed the order on."""


def giver_of(pairs: Iterable[tuple[str, str | bytes]], peer: str) -> Giver:
    """Return who gives an order.

    Args:
        pairs: the headers or the metadata that it came with, names in lower case.
        peer: who calls, for the log.
    """
    key, passed_on = None, False
    for name, value in pairs:
        if name == OPERATOR_KEY and isinstance(value, str):
            key = value
        passed_on |= name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIX)
    return Giver(key, peer, passed_on)


def _nobody_asks() -> str:
    return ""


class Authority:
    """Decides who may give orders."""

    def __init__(self, secret: str, host: str, hop: str = GATEWAY) -> None:
        """Take the operator's key, empty without one, and which hop listens on which address."""
        self._digest = _digest(secret) if secret else b""
        self._local = is_loopback(host)
        self._host = host
        self._hop = hop
        self.why_key: Callable[[], str] = _nobody_asks
        """Returns why orders need the key although this hop listens for its own machine alone;
        empty when they do not. A room that asks its callers who they are sets it."""

    def knows(self, key: str) -> bool:
        """Return whether this is the operator's key; nothing is while there is none."""
        # Of digests, so that not even the length of the right key shows in the time.
        return bool(self._digest) and hmac.compare_digest(self._digest, _digest(key))

    def check(self, giver: Giver) -> None:
        """Let an operator pass.

        Whether a caller is local is not asked: behind a sidecar everybody looks so. What counts is
        where the hop listens, and whether it trusts everybody who calls it there.

        Raises:
            UnauthenticatedError: the key is missing or not this one.
            PermissionDeniedError: there is no key, and others than local ones can call, or have.
        """
        if self._digest:
            if not giver.key:
                raise UnauthenticatedError(
                    "an order needs the operator's key; set SIXHOP_OPERATOR__KEY for the command "
                    f"(metadata {OPERATOR_KEY})",
                    cause="no_key",
                )
            if not self.knows(giver.key):
                raise UnauthenticatedError(
                    "this is not the operator's key; set SIXHOP_OPERATOR__KEY to the one that the "
                    f"{self._hop} was started with",
                    cause="wrong_key",
                )
        elif why := self._why_key(giver):
            raise PermissionDeniedError(
                f"{why}, and the {self._hop} has no operator's key; set SIXHOP_OPERATOR__KEY (key "
                f"or key_file in [operator]) for the {self._hop} and for the command",
                cause="no_key_configured",
            )

    def _why_key(self, giver: Giver) -> str:
        """Return why nobody can order without a key; empty when they can."""
        if not self._local:
            return f"the {self._hop} listens on {self._host}"
        return self.why_key() or ("a proxy has passed this order on" if giver.passed_on else "")


class Orders:
    """Is where orders to the fast-fail switch arrive."""

    def __init__(
        self, hop: str, switch: ShedSwitch | None, authority: Authority, clock: Clock
    ) -> None:
        """Take the hop, its switch, None while the engine is off, and who may use it."""
        self.authority = authority
        self._hop = hop
        self._switch = switch
        self._clock = clock
        self._log = get_logger()

    def shed(
        self, request: runtime_pb2.OrderShedRequest, giver: Giver
    ) -> runtime_pb2.OrderShedResponse:
        """Close the door for a while.

        Args:
            request: the order.
            giver: who gives it.

        Raises:
            NotServedHereError: it is another hop that does this, or the engine is off.
            UnauthenticatedError: the key is missing or wrong.
            PermissionDeniedError: nobody may give orders here.
            InvalidArgumentError: a field is wrong.
        """
        operator = request.operator_name
        switch = self._open(giver, operator, order="shed")
        reason, length_s, up_to = _checked(request)
        given = switch.order(reason, length_s, up_to, operator=operator)
        self._log.info(ORDER_TAKEN, order="shed", operator=operator, peer=giver.peer)
        return runtime_pb2.OrderShedResponse(order=order_state(given, self._clock))

    def end(self, request: runtime_pb2.EndShedRequest, giver: Giver) -> runtime_pb2.EndShedResponse:
        """Open the door again; arguments and errors as for `shed`."""
        operator = request.operator_name
        switch = self._open(giver, operator, order="end")
        check_operator(operator)
        ended = switch.withdraw(operator=operator)
        self._log.info(ORDER_TAKEN, order="end", operator=operator, peer=giver.peer)
        if ended is None:
            return runtime_pb2.EndShedResponse()
        return runtime_pb2.EndShedResponse(ended=order_state(ended, self._clock))

    def switch_for(self, giver: Giver) -> ShedSwitch:
        """Return the switch, to who may use it.

        Raises:
            SixhopError: as `shed` says, but for fields.
        """
        if self._hop != GATEWAY:
            raise NotServedHereError(
                f"{self._hop} has no fast-fail switch; give the order to the {GATEWAY}",
                cause="wrong_hop",
            )
        self.authority.check(giver)
        if self._switch is None:
            raise NotServedHereError(
                "the fast-fail switch needs the policy engine, which is off; set "
                "SIXHOP_ENGINE__ENABLED=true (enabled in [engine]) and start the suite again",
                cause="engine_off",
            )
        return self._switch

    def _open(self, giver: Giver, operator: str, *, order: str) -> ShedSwitch:
        with telling_refusal(order, operator, giver):
            return self.switch_for(giver)


@contextmanager
def telling_refusal(order: str, operator: str, giver: Giver) -> Iterator[None]:
    """Log it when the block refuses an order.

    Args:
        order: the log's name for it.
        operator: who orders, as they say themselves.
        giver: who gives it.
    """
    try:
        yield
    except SixhopError as error:
        get_logger().warning(
            ORDER_REFUSED,
            order=order,
            operator=operator[:MAX_OPERATOR_CHARS],
            peer=giver.peer,
            cause=error.cause,
        )
        raise


def _checked(request: runtime_pb2.OrderShedRequest) -> tuple[str, float, Criticality]:
    reason = checked_reason(request.reason)
    length_s = checked_length_s("shed_duration", to_seconds(request.shed_duration))
    if request.up_to not in (0, *Criticality):
        raise InvalidArgumentError(
            "up_to", f"{request.up_to} is no level; levels go from 1 to {max(Criticality).value}"
        )
    check_operator(request.operator_name)
    return reason, length_s, Criticality(request.up_to or max(Criticality))


def checked_reason(text: str) -> str:
    """Return why an order is given.

    Raises:
        InvalidArgumentError: there is nothing, or too much.
    """
    reason = text.strip()
    if not 1 <= len(reason) <= MAX_REASON_CHARS:
        raise InvalidArgumentError(
            "reason", f"has {len(reason)} characters; say why in 1 to {MAX_REASON_CHARS}"
        )
    return reason


def checked_length_s(field: str, length_s: float) -> float:
    """Return how long an order lasts, seconds.

    Raises:
        InvalidArgumentError: it is not above 0, or longer than a day.
    """
    if not 0 < length_s <= MAX_ORDER_S:
        raise InvalidArgumentError(
            field,
            f"{length_s:g} s is not above 0 and {MAX_ORDER_S:g} s at most; an order ends by itself",
        )
    return length_s


def check_operator(name: str) -> None:
    """Refuse the name of an operator that is too long for a log.

    Raises:
        InvalidArgumentError: it is.
    """
    if len(name) > MAX_OPERATOR_CHARS:
        raise InvalidArgumentError(
            "operator_name", f"has {len(name)} characters; {MAX_OPERATOR_CHARS} at most"
        )


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from its own machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
