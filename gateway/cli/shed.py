"""Has the gateway refuse calls for a while, or take them again: the verb `shed`."""

import math
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import grpc
from rich.text import Text

from gateway.cli.address import gateway_address
from gateway.cli.client import to_failure
from gateway.cli.console import length_text, one_line, open_console, until_reader_leaves, write_json
from gateway.cli.failure import NOT_RUNNING, Failure
from gateway.cli.parts import read_config
from gateway.cli.problem import EXIT_OK, RefusedError
from services.runtime.call import Criticality
from services.runtime.client import open_channel
from services.runtime.config import ConfigError
from services.runtime.durations import to_duration, to_seconds
from services.runtime.orders import OPERATOR_KEY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import criticality_pb2

ORDER_TIMEOUT_S = 5.0
"""How long the gateway may take to obey; it has nothing to compute."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_NAMES = [level.name for level in Criticality]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedOptions:
    """Is what the command line of `shed` says."""

    reason: str = ""
    length: str = ""
    """How long, as it was written: `60s`, `5m`."""
    up_to: str = ""
    """The highest level that is refused; empty refuses all."""
    end: bool = False
    """Whether an order is to be ended instead of given."""
    gateway: str = ""
    """`host:port` of the gateway; empty takes the configuration's."""
    as_json: bool = False
    config_path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """Is an order, as it is shown."""

    reason: str
    up_to: str
    """The name of the highest level that is refused."""
    end_time: str
    """When it is over, in UTC, as ISO 8601."""
    remaining_s: float
    operator: str


def order_view(order: runtime_pb2.ShedOrder) -> OrderView:
    """Return an order in plain types."""
    name = criticality_pb2.Criticality.Name(order.up_to)
    return OrderView(
        reason=one_line(order.reason),
        up_to=name.removeprefix("CRITICALITY_"),
        end_time=order.end_time.ToDatetime(UTC).isoformat(timespec="seconds"),
        remaining_s=round(to_seconds(order.remaining_duration), 3),
        operator=one_line(order.operator_name),
    )


async def shed(environ: Mapping[str, str], options: ShedOptions) -> int:
    """Give or end an order; return the exit code.

    Raises:
        RefusedError: an option or the configuration is wrong; nothing was sent.
    """
    request = _request(options, operator_name(environ))
    config = read_config(environ, options.config_path)
    address = gateway_address(options.gateway, lambda: config)
    try:
        secret = config.operator.secret()
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    metadata = ((OPERATOR_KEY, secret),) if secret else ()
    try:
        order = await _send(address, request, metadata)
    except grpc.aio.AioRpcError as error:
        failure = to_failure(error, address, heard=False)
        show_failure(failure, as_json=options.as_json)
        return failure.exit_code
    with until_reader_leaves():
        _show(order, options)
    return EXIT_OK


def length_s(text: str) -> float:
    """Return the seconds that a person means: `60s`, `90`, `1.5m`, `500ms`, `2h`.

    Raises:
        RefusedError: it is no length above zero.
    """
    found = _LENGTH.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS_S[found[2]] if found else 0.0
    if seconds <= 0 or math.isinf(seconds):
        raise RefusedError(f"--for {text}: write a length above zero, such as 60s or 5m")
    return seconds


def level(text: str) -> Criticality:
    """Return the level of criticality that a person means; nothing means all of them.

    Raises:
        RefusedError: there is no such level.
    """
    if not text:
        return max(Criticality)
    name = text.strip().upper().replace("-", "_")
    if name not in _NAMES:
        raise RefusedError(f"--up-to {text}: there is no such level; known: {', '.join(_NAMES)}")
    return Criticality[name]


Order = runtime_pb2.OrderShedRequest | runtime_pb2.EndShedRequest


def _request(options: ShedOptions, operator: str) -> Order:
    if options.end:
        given = {"--reason": options.reason, "--for": options.length, "--up-to": options.up_to}
        surplus = [name for name, value in given.items() if value]
        if surplus:
            raise RefusedError(f"--end ends the order that is in force; leave out {surplus[0]}")
        return runtime_pb2.EndShedRequest(operator_name=operator)
    if not options.reason.strip() or not options.length:
        raise RefusedError(
            'say why and for how long: --reason "the database moves" --for 60s; or --end'
        )
    highest = criticality_pb2.Criticality.Value(f"CRITICALITY_{level(options.up_to).name}")
    return runtime_pb2.OrderShedRequest(
        reason=options.reason.strip(),
        shed_duration=to_duration(length_s(options.length)),
        up_to=highest,
        operator_name=operator,
    )


def operator_name(environ: Mapping[str, str]) -> str:
    """Return who gives an order, for the log of whoever takes it."""
    user = environ.get("USER") or environ.get("LOGNAME") or environ.get("USERNAME") or "somebody"
    return f"{user}@{socket.gethostname()}"[:100]


async def _send(
    address: str, request: Order, metadata: tuple[tuple[str, str], ...]
) -> OrderView | None:
    """Return the order that is in force, or that was; None when there was none to end."""
    async with open_channel(address) as channel:
        stub = RuntimeServiceStub(channel)
        if isinstance(request, runtime_pb2.EndShedRequest):
            ended = await stub.EndShed(request, timeout=ORDER_TIMEOUT_S, metadata=metadata)
            return order_view(ended.ended) if ended.HasField("ended") else None
        given = await stub.OrderShed(request, timeout=ORDER_TIMEOUT_S, metadata=metadata)
        return order_view(given.order)


def _show(order: OrderView | None, options: ShedOptions) -> None:
    if options.as_json:
        name = "ended" if options.end else "order"
        write_json(sys.stdout, {"ok": True, name: None if order is None else asdict(order)})
        return
    console = open_console(sys.stdout)
    for line in _lines(order, options):
        console.print(Text(line), soft_wrap=True)


def _lines(order: OrderView | None, options: ShedOptions) -> list[str]:
    if order is None:
        return ["no order was in force; nothing has changed"]
    if options.end:
        return [f"the gateway takes calls again; it had refused them because: {order.reason}"]
    every = order.up_to == max(Criticality).name
    which = "all calls" if every else f"calls up to {order.up_to}"
    return [
        f"the gateway refuses {which} for {length_text(order.remaining_s)}, "
        f"until {order.end_time}: {order.reason}",
        "they fail at once with LOAD_SHED; `sixhop shed --end` ends it before its time",
    ]


def show_failure(failure: Failure, *, as_json: bool) -> None:
    """Show why an order was not obeyed."""
    # All other advice is for questions; what refuses an order says itself what to do.
    advice = failure.advice if failure.reason == NOT_RUNNING else ""
    if as_json:
        error: dict[str, Any] = asdict(failure) | {"advice": advice}
        write_json(sys.stdout, {"ok": False, "error": error})
        return
    sys.stderr.write(f"sixhop: {one_line(failure.message)}\n")
    if advice:
        sys.stderr.write(f"  what to do  {advice}\n")
