"""Passes an operator's order for a breaker on to every process of its hop."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from gateway.addresses import addresses
from services.runtime.client import open_channel
from services.runtime.errors import Code, NotFoundError, SixhopError
from services.runtime.orders import OPERATOR_KEY, Giver
from services.runtime.process import Hop
from services.runtime.status import DETAILS_KEY, from_status
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub

ORDER_TIMEOUT_S = 3.0
"""How long a process may take to obey; it has nothing to compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeyed:
    """Is what one process made of an order."""

    address: str
    answer: runtime_pb2.OrderBreakerResponse | None = None
    error: SixhopError | None = None


async def order_breaker(
    hop: Hop, at: str, request: runtime_pb2.OrderBreakerRequest, giver: Giver
) -> Sequence[Obeyed]:
    """Give the order to every process of a hop; return what each made of it.

    The key travels as it was shown: this gateway lends its own to nobody. Inner hops without a key
    trust whoever reaches them, so it lets nobody through who may not order here.

    Args:
        hop: the gateway.
        at: the hop whose breakers are meant.
        request: the order.
        giver: who gives it.

    Raises:
        NotFoundError: there is no such hop.
        SixhopError: who asks may not order, or no process obeys; the error of the first one.
    """
    hop.runtime.breaker_orders.admit(request, giver)
    found = [address for name, address in addresses(hop.config) if name == at]
    if not found:
        raise NotFoundError("hop", at[:100], hop.config.processes)
    if at == GATEWAY:
        answer = hop.runtime.breaker_orders.order(request, giver)
        return [Obeyed(address=found[0], answer=answer)]
    made = await asyncio.gather(*(_order(at, address, request, giver.key) for address in found))
    if all(each.error is not None for each in made):
        for each in made:
            if each.error is not None:
                raise each.error
    return made


async def _order(
    hop: str, address: str, request: runtime_pb2.OrderBreakerRequest, key: str | None
) -> Obeyed:
    metadata = ((OPERATOR_KEY, key),) if key else ()
    async with open_channel(address) as channel:
        try:
            answer = await RuntimeServiceStub(channel).OrderBreaker(
                request, timeout=ORDER_TIMEOUT_S, metadata=metadata
            )
        except grpc.aio.AioRpcError as error:
            return Obeyed(address=address, error=_error_of(hop, error))
    return Obeyed(address=address, answer=answer)


def _error_of(hop: str, error: grpc.aio.AioRpcError) -> SixhopError:
    trailing = error.trailing_metadata()
    details = trailing.get(DETAILS_KEY) if trailing is not None else None
    status = details if isinstance(details, bytes) else None
    code = Code[error.code().name]
    return from_status(hop, code, error.details() or "", status, cause="order")
