"""Writes an answer as a stream of events."""

from collections.abc import Mapping
from typing import Any

import orjson

from services.model.sim.exchange import EndedError, Exchange, TrippedError

DONE = b"[DONE]"


async def stream(exchange: Exchange) -> None:
    """Write the whole answer, or as much of it as its fault lets through.

    Raises:
        EndedError: the fault has ended it.
    """
    fault = exchange.fault
    await exchange.head()
    await _fail_at(exchange, "headers")
    try:
        await _tokens(exchange)
    except TrippedError:
        await _fail(exchange)
    if exchange.token_limit is not None:
        await _fail(exchange)
    for _ in range(fault.finish_count if fault.finish else 0):
        await _send(exchange, _chunk(exchange, {}, exchange.finish_reason))
    await _fail_at(exchange, "finish")
    if exchange.ask.include_usage and fault.usage:
        usage = exchange.composition.usage(exchange.record.tokens_written)
        await _send(exchange, exchange.frame(choices=[], usage=usage))
    for _ in range(fault.done_count if fault.done else 0):
        await exchange.write(exchange.framer.event(DONE))
    await _fail_at(exchange, "end")
    await exchange.wire.end()
    exchange.completed()


async def _tokens(exchange: Exchange) -> None:
    """Write the tokens up to the fault's; return when it is its turn, or when all are written."""
    pace = exchange.pace
    limit = exchange.token_limit
    await exchange.pause(pace.first_token_s(exchange.composition.prompt_tokens, exchange.factor))
    if limit == 0:
        return
    first = None if exchange.settings.dialect == "llamacpp" else ""
    await _send(exchange, _chunk(exchange, {"role": "assistant", "content": first}))
    for number, delta in enumerate(exchange.composition.deltas[:limit]):
        if number:
            await exchange.pause(pace.token_interval_s(exchange.factor))
        await _send(exchange, _chunk(exchange, delta))
        exchange.wrote_token()
    if limit is not None:
        await exchange.pause(pace.token_interval_s(exchange.factor))


async def _fail_at(exchange: Exchange, stage: str) -> None:
    if exchange.trips and exchange.fault.stage == stage:
        await _fail(exchange)


async def _fail(exchange: Exchange) -> None:
    """End the stream in the middle.

    Raises:
        EndedError: always.
    """
    fault, written = exchange.fault, exchange.record.tokens_written
    match fault.ending:
        case "done":
            await exchange.write(exchange.framer.event(DONE))
        case "event":
            await exchange.write(exchange.framer.event(fault.event.encode(), fault.event_kind))
            if fault.hold:
                await exchange.hold()
        case "flood":
            await flood(exchange)
            raise EndedError
        case _:
            deltas = exchange.composition.deltas
            delta = deltas[min(written, len(deltas) - 1)] if deltas else {"content": ""}
            block = exchange.framer.event(orjson.dumps(_chunk(exchange, delta)))
            inside = fault.stage in ("event", "chunk")
            await exchange.break_off(block[: len(block) // 2] if inside else b"")
    await exchange.wire.end()
    exchange.ended()
    raise EndedError


async def flood(exchange: Exchange) -> None:
    """Write what says nothing as fast as it is read, until its time is over."""
    block = exchange.framer.comment() * 500 if exchange.ask.stream else b"\n" * 8000
    until = exchange.clock.now() + exchange.fault.hold_s
    while exchange.clock.now() < until and not exchange.wire.gone:
        await exchange.wire.body([block])
        exchange.record.comments_written += 1
        await exchange.clock.sleep(0)
    exchange.wire.close()
    exchange.ended()


async def _send(exchange: Exchange, value: Mapping[str, Any]) -> None:
    await exchange.write(exchange.framer.event(orjson.dumps(value)))


def _chunk(
    exchange: Exchange, delta: Mapping[str, Any], finish_reason: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return exchange.frame(choices=[choice])
