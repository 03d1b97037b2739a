"""Writes an answer as one JSON document."""

from typing import Any

import orjson

from services.model.sim.exchange import EndedError, Exchange, TrippedError
from services.model.sim.streaming import flood


async def unary(exchange: Exchange) -> None:
    """Write the whole answer, or as much of it as its fault lets through.

    Raises:
        EndedError: the fault has ended it.
    """
    fault = exchange.fault
    if exchange.trips and fault.stage == "headers":
        await _fail(exchange)
    try:
        await _tokens(exchange)
    except TrippedError:
        await _fail(exchange)
    if exchange.token_limit is not None:
        await _fail(exchange)
    body = orjson.dumps(_document(exchange, exchange.record.tokens_written))
    framed = exchange.trips or not fault.chunked
    await exchange.head(length=None if framed else len(body))
    await exchange.write(body)
    if exchange.trips and fault.stage in ("finish", "end"):
        await exchange.break_off()
    await exchange.wire.end()
    exchange.completed()


async def _tokens(exchange: Exchange) -> None:
    """Spend the time of the tokens up to the fault's."""
    pace = exchange.pace
    limit = exchange.token_limit
    await exchange.pause(pace.first_token_s(exchange.composition.prompt_tokens, exchange.factor))
    for number, _ in enumerate(exchange.composition.deltas[:limit]):
        if number:
            await exchange.pause(pace.token_interval_s(exchange.factor))
        exchange.wrote_token()


async def _fail(exchange: Exchange) -> None:
    """End the document in the middle.

    Raises:
        EndedError: always.
    """
    fault, written = exchange.fault, exchange.record.tokens_written
    await exchange.head()
    match fault.ending:
        case "done":
            document = _document(exchange, written)
            document["choices"][0]["finish_reason"] = None
            await exchange.write(orjson.dumps(document))
        case "event":
            await exchange.write(fault.event.encode())
            if fault.hold:
                await exchange.hold()
        case "flood":
            await flood(exchange)
            raise EndedError
        case _:
            body = orjson.dumps(_document(exchange, len(exchange.composition.deltas)))
            early = fault.stage == "headers" or (fault.stage == "token" and not written)
            await exchange.break_off(b"" if early else body[: len(body) // 2])
    await exchange.wire.end()
    exchange.ended()
    raise EndedError


def _document(exchange: Exchange, count: int) -> dict[str, Any]:
    composition = exchange.composition
    choice = {
        "index": 0,
        "message": composition.message(count),
        "logprobs": None,
        "finish_reason": exchange.finish_reason,
    }
    usage = {"usage": composition.usage(count)} if exchange.fault.usage else {}
    return exchange.frame(choices=[choice], **usage)
