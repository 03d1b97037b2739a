"""Holds a breaker of a hop open or closed for a while, or resets it: the verb `breaker`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc
from rich.text import Text

from gateway.addresses import addresses
from gateway.cli.client import to_failure
from gateway.cli.console import length_text, one_line, open_console, until_reader_leaves, write_json
from gateway.cli.parts import read_config
from gateway.cli.problem import EXIT_OK, RefusedError
from gateway.cli.shed import ORDER_TIMEOUT_S, length_s, operator_name, show_failure
from services.runtime.client import open_channel
from services.runtime.config import ConfigError
from services.runtime.durations import to_duration
from services.runtime.orders import OPERATOR_KEY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub

ORDERS = {
    "open": runtime_pb2.BREAKER_ORDER_OPEN,
    "close": runtime_pb2.BREAKER_ORDER_CLOSE,
    "reset": runtime_pb2.BREAKER_ORDER_RESET,
}
_DONE = {
    "open": "refuses every call to {key} for {length}",
    "close": "lets every call to {key} pass for {length}",
    "reset": "lets its breaker of {key} decide again, from the beginning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOptions:
    """Is what the command line of `breaker` says."""

    order: str
    """`open`, `close` or `reset`."""
    key: str
    """The dependency, as `sixhop health` shows it."""
    hop: str
    """Whose breaker it is."""
    length: str = ""
    """How long it is held, as it was written: `60s`, `5m`."""
    reason: str = ""
    as_json: bool = False
    config_path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """Is how a breaker stands after an order, as it is shown."""

    hop: str
    address: str
    pod: str
    key: str
    state: str
    """`closed`, `open` or `half_open`."""
    forced: bool


async def breaker(environ: Mapping[str, str], options: BreakerOptions) -> int:
    """Give an order to every process of a hop; return the exit code.

    Raises:
        RefusedError: an option or the configuration is wrong; nothing was sent.
    """
    request = _request(options, operator_name(environ))
    config = read_config(environ, options.config_path)
    places = [place for place in addresses(config) if place[0] == options.hop]
    if not places:
        known = ", ".join(config.processes)
        raise RefusedError(f"--hop {options.hop}: there is no such hop; known: {known}")
    try:
        secret = config.operator.secret()
    except ConfigError as error:
        raise RefusedError(str(error), reason="BAD_CONFIG") from None
    metadata = ((OPERATOR_KEY, secret),) if secret else ()
    held: list[HeldView] = []
    for hop, address in places:
        try:
            held.append(await _send(hop, address, request, metadata))
        except grpc.aio.AioRpcError as error:
            failure = to_failure(error, address, heard=False)
            show_failure(failure, as_json=options.as_json)
            return failure.exit_code
    with until_reader_leaves():
        _show(held, options)
    return EXIT_OK


def _request(options: BreakerOptions, operator: str) -> runtime_pb2.OrderBreakerRequest:
    request = runtime_pb2.OrderBreakerRequest(
        key=options.key,
        order=ORDERS[options.order],
        reason=options.reason.strip(),
        operator_name=operator,
    )
    if options.order == "reset":
        if options.length:
            raise RefusedError("a reset holds nothing; leave out --for")
    elif not request.reason or not options.length:
        raise RefusedError(f'say why and for how long: {options.order} --reason "…" --for 60s')
    else:
        request.hold_duration.CopyFrom(to_duration(length_s(options.length)))
    return request


async def _send(
    hop: str,
    address: str,
    request: runtime_pb2.OrderBreakerRequest,
    metadata: tuple[tuple[str, str], ...],
) -> HeldView:
    async with open_channel(address) as channel:
        answer = await RuntimeServiceStub(channel).OrderBreaker(
            request, timeout=ORDER_TIMEOUT_S, metadata=metadata
        )
    state = runtime_pb2.BreakerState.Name(answer.dependency.breaker_state)
    return HeldView(
        hop=hop,
        address=address,
        pod=one_line(answer.pod),
        key=one_line(answer.dependency.key),
        state=state.removeprefix("BREAKER_STATE_").lower(),
        forced=answer.dependency.breaker_forced,
    )


def _show(held: Sequence[HeldView], options: BreakerOptions) -> None:
    if options.as_json:
        write_json(sys.stdout, {"ok": True, "breakers": [asdict(each) for each in held]})
        return
    console = open_console(sys.stdout)
    length = length_text(length_s(options.length)) if options.length else ""
    for each in held:
        done = _DONE[options.order].format(key=each.key, length=length)
        console.print(Text(f"{each.hop} ({each.address}) {done}"), soft_wrap=True)
