"""Shows what grpc.aio does against expectation, so that a release that changes it is noticed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from services.runtime.client import CHANNEL_OPTIONS
from tests.requirements import requirement

pytestmark = requirement("grpc:traps")

METHOD = "/sixhop.test.v1.TestService/Test"


@asynccontextmanager
async def bare_server(
    behaviour: Callable[[Any, Any], Any], *options: tuple[str, Any]
) -> AsyncIterator[grpc.aio.Channel]:
    """Serve one method without anything of ours, and open a channel to it."""
    handler: Any = grpc.unary_unary_rpc_method_handler(behaviour)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("sixhop.test.v1.TestService", {"Test": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            yield channel
    finally:
        await server.stop(None)


async def called(channel: grpc.aio.Channel, timeout_s: float) -> Any:
    """Call the method."""
    method: Any = channel.unary_unary(METHOD)
    return await method(b"", timeout=timeout_s)


async def test_a_stray_cancel_sends_no_status_at_all() -> None:
    """Trap T2: why the last line of defence turns it into a defect."""

    async def handler(request: bytes, context: Any) -> bytes:
        loser = asyncio.create_task(asyncio.Event().wait())
        loser.cancel()
        await loser
        return b""

    async with bare_server(handler) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await called(channel, 0.3)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_channel_with_our_options_repeats_nothing_though_it_is_configured_to() -> None:
    """A callee's name service may hand out such a policy; retrying is our own policy's business."""
    attempts = 0

    async def handler(request: bytes, context: Any) -> bytes:
        nonlocal attempts
        attempts += 1
        await context.abort(grpc.StatusCode.UNAVAILABLE)
        return b""

    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.01s",
        "maxBackoff": "0.01s",
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    config = json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]})
    async with bare_server(handler, *CHANNEL_OPTIONS, ("grpc.service_config", config)) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await called(channel, 5.0)

    assert attempts == 1


async def test_without_a_deadline_nothing_remains_to_be_told() -> None:
    """Trap T1: None, and not infinity."""
    seen: list[float | None] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.time_remaining())
        return b""

    async with bare_server(handler) as channel:
        method: Any = channel.unary_unary(METHOD)
        await method(b"")

    assert seen == [None]


async def test_a_timeout_arrives_rounded_up_to_three_digits() -> None:
    """Trap T8: why a timeout is floored to the grid and one step taken off."""
    seen: list[float] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.time_remaining())
        return b""

    for timeout_s in (1.2345, 12.345, 123.45):
        async with bare_server(handler) as channel:
            await called(channel, timeout_s)

    for seen_s, most_s in zip(seen, (1.24, 12.4, 124.0), strict=True):
        assert most_s - 0.5 < seen_s <= most_s
    assert seen[2] > 123.5, "more than was asked for"


async def test_a_childs_error_that_nobody_translates_becomes_unknown_with_its_text() -> None:
    """Why nothing leaves a hop that is no error of our tree."""

    async def handler(request: bytes, context: Any) -> bytes:
        raise KeyError("password")

    async with bare_server(handler) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await called(channel, 5.0)

    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert "password" in (caught.value.details() or "")


async def test_a_handler_that_the_deadline_ends_is_cancelled_and_not_told_why() -> None:
    """Why a hop ends its own work before the deadline: after it nothing can be told."""
    ends: list[tuple[type[BaseException], int, float]] = []
    ended = asyncio.Event()

    async def handler(request: bytes, context: Any) -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            cancels = task.cancelling() if task else 0
            ends.append((type(error), cancels, context.time_remaining()))
            ended.set()
            raise
        return b""

    async with bare_server(handler) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await called(channel, 0.2)
        await asyncio.wait_for(ended.wait(), 5)

    assert ends == [(asyncio.CancelledError, 1, 0)]
