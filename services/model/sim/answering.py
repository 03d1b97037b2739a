"""Answers one request: refuses it, lets it wait for a slot, and writes its answer."""

import asyncio
import hmac

from services.model.sim.config import SimSettings
from services.model.sim.dialect import RefusalError, overflow
from services.model.sim.exchange import JSON, EndedError, Exchange, TrippedError
from services.model.sim.queueing import QueueFullError
from services.model.sim.selection import MODEL_PREFIX
from services.model.sim.streaming import stream
from services.model.sim.unary import unary

QUEUE_TIMEOUT = "queue_timeout"


async def answer(exchange: Exchange) -> None:
    """Answer a request as its fault and the settings say; the log tells how it ended."""
    fault = exchange.fault
    try:
        await exchange.break_at("request")
        await exchange.pause(fault.headers_after_s, silent=True)
        if fault.status != 200:
            named = exchange.refusal(fault.status, fault.message, type=fault.type, code=fault.code)
            await exchange.refuse(named)
        elif fault.body:
            await _send_body(exchange)
        else:
            check(exchange)
            await _work(exchange)
    except RefusalError as refusal:
        await exchange.refuse(refusal)
    except TrippedError:
        # Before the headers nothing is left but to break off.
        try:
            await exchange.break_off()
        except EndedError:
            return
    except EndedError:
        return


def check(exchange: Exchange) -> None:
    """Refuse what a provider would.

    Raises:
        RefusalError: the key, the model, the length or the form of the prompt is not accepted.
    """
    ask, settings, fault = exchange.ask, exchange.settings, exchange.fault
    if not is_key(settings, exchange.authorization):
        raise exchange.refusal(401, "Authentication Fails (no such user)")
    if not settings.any_model and not _is_served(ask.model, settings):
        known = ", ".join(settings.models)
        message = f"the model {ask.model} does not exist; known: {known}"
        raise exchange.refusal(404, message, code="model_not_found")
    window = fault.window or settings.window
    if ask.prompt_tokens + (ask.max_tokens or 0) > window:
        raise overflow(settings.dialect, ask, window)
    if ask.prefix is not None and not fault.prefill:
        message = "this model does not support a prefill: the last message must be the user's"
        raise exchange.refusal(400, message, "prefill_refused")
    if ask.thinks(settings.thinking) and ask.lacks_reasoning():
        message = "The reasoning_content in the thinking mode must be passed back to the API."
        raise exchange.refusal(400, message, "reasoning_missing")


def is_key(settings: SimSettings, authorization: str) -> bool:
    """Return whether a header shows the key; without a key any will do."""
    key = settings.api_key.get_secret_value()
    shown = authorization.removeprefix("Bearer ")
    return not key or hmac.compare_digest(shown.encode(), key.encode())


def _is_served(model: str, settings: SimSettings) -> bool:
    return model in settings.models or model.startswith(MODEL_PREFIX)


async def _send_body(exchange: Exchange) -> None:
    body = exchange.fault.body.encode()
    kind = exchange.fault.content_type or JSON
    exchange.record.status = 200
    await exchange.wire.head(
        200,
        {"content-type": kind},
        length=len(body),
        pause_s=exchange.fault.head_pause_s,
    )
    await exchange.wire.send(body)
    exchange.ended()


async def _work(exchange: Exchange) -> None:
    """Write the answer in a slot.

    Raises:
        RefusalError: there is neither a slot nor a place to wait for one.
        EndedError: the request waited too long, or its fault has ended it.
    """
    try:
        place = exchange.slots.enter()
    except QueueFullError:
        raise exchange.refusal(429, "too many requests at a time", "concurrency") from None
    try:
        if not place.done():
            await _wait_in_queue(exchange, place)
        await (stream(exchange) if exchange.ask.stream else unary(exchange))
    finally:
        exchange.slots.leave(place)


async def _wait_in_queue(exchange: Exchange, place: "asyncio.Future[None]") -> None:
    """Wait for a slot, as DeepSeek does: streams get comments, the others get empty lines."""
    settings, clock = exchange.settings, exchange.clock
    began = clock.now()
    until = began + settings.queue_timeout_s
    while not place.done() and (left_s := until - clock.now()) > 0:
        step_s = min(settings.keep_alive_interval_s, left_s)
        await asyncio.wait({place}, timeout=step_s)
        exchange.record.queued_ms = (clock.now() - began) * 1000
        if not place.done():
            await exchange.keep_alive()
    if not place.done():
        exchange.wire.close()
        exchange.log.end(exchange.record, QUEUE_TIMEOUT)
        raise EndedError
