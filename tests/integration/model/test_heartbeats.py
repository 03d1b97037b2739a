"""Lets a provider keep the model hop waiting in every way, and listens to what the hop says."""

import asyncio
from contextlib import suppress

import grpc
import pytest

from services.runtime.status import DETAILS_KEY, error_info
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import ModelServiceStub
from tests.integration.model.test_hop import REQUEST, chain, idle
from tests.listeners import full_listener
from tests.requirements import requirement

BOUND_S = 5.0


async def hears(stub: ModelServiceStub, state: str) -> bool:
    """Return whether a heartbeat of this state comes within a bound; then leave."""
    call = stub.Generate(REQUEST, timeout=20)
    try:
        async with asyncio.timeout(BOUND_S):
            async for event in call:
                if event.thinking.state == state:
                    assert event.thinking.silence_duration.ToTimedelta().total_seconds() >= 0.19
                    assert 0 < event.thinking.remaining_duration.ToTimedelta().total_seconds() < 20
                    return True
        return False
    finally:
        call.cancel()


@requirement("heartbeat:tells-what-is-waited-for")
@pytest.mark.parametrize(
    ("behaviour", "state"),
    [
        ("silent", "silent"),
        ("slow-headers", "silent"),
        ("slow-first-chunk", "silent"),
        ("keep-alive-forever", "queued"),
        ("stall?reasoning_count=9", "reasoning"),
        ("keep-alive-forever?reasoning_count=9&after_chunks=3", "reasoning"),
        ("stall", "silent"),
    ],
)
async def test_a_wait_is_told_with_what_is_waited_for(behaviour: str, state: str) -> None:
    async with chain(behaviour) as running:
        assert await hears(running.stub, state)
        await idle(running.hop)


@requirement("heartbeat:tells-what-is-waited-for")
async def test_a_wait_for_a_connection_is_told_as_a_queue() -> None:
    with full_listener() as port:
        async with chain("silent", MODEL__BASE_URL=f"http://127.0.0.1:{port}/v1") as running:
            assert await hears(running.stub, "queued")
            await idle(running.hop)


@requirement("heartbeat:tells-what-is-waited-for")
async def test_a_wait_for_a_place_in_the_pool_is_told_as_a_queue() -> None:
    async with chain("silent", MODEL__MAX_CONNECTIONS="1") as running:
        first = running.stub.Generate(REQUEST, timeout=20)
        await first.read()

        assert await hears(running.stub, "queued")
        first.cancel()
        await idle(running.hop)


@requirement("heartbeat:tells-what-is-waited-for")
@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        ("silent", "step_timeout"),
        ("keep-alive-forever", "step_timeout"),
        ("stall", "read_timeout"),
        ("keep-alive-forever?after_chunks=3", "read_timeout"),
    ],
)
async def test_heartbeats_end_when_the_provider_is_given_up_whatever_it_keeps_alive(
    behaviour: str, cause: str
) -> None:
    kinds: list[str | None] = []

    async def listen(stub: ModelServiceStub) -> None:
        async for event in stub.Generate(REQUEST, timeout=20):
            kinds.append(event.WhichOneof("event"))  # noqa: PERF401  # kept when it raises

    async with chain(
        behaviour,
        CALLS__LLM__STEP_TIMEOUT_S="1.5",
        CALLS__LLM__READ_TIMEOUT_S="1.5",
        MODEL__CONNECT_TIMEOUT_S="1",
    ) as running:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await listen(running.stub)
        record = await running.provider.log.wait_for(lambda log: log.closed(1))
        await idle(running.hop)

    info = error_info(dict(caught.value.trailing_metadata() or ()).get(DETAILS_KEY))
    assert info is not None
    assert (info.metadata["originReason"], info.metadata["cause"]) == ("NO_ANSWER", cause)
    # At 0.2 and 1.2 s; a slow machine may be late for one of them.
    assert 1 <= kinds.count("thinking") <= 2
    assert record.ended == "client_closed"
    assert len(running.provider.log.records) == 1


@requirement("model:cancel-closes-the-connection")
async def test_a_caller_that_goes_between_heartbeats_leaves_nothing_behind() -> None:
    async with chain("silent") as running:
        call = running.stub.Generate(REQUEST, timeout=20)
        event = await call.read()
        assert isinstance(event, model_pb2.GenerateResponse)
        assert event.WhichOneof("event") == "thinking"

        call.cancel()
        with suppress(asyncio.CancelledError):
            await call.read()
        record = await running.provider.log.wait_for(lambda log: log.closed(1))

        assert record.ended == "client_closed"
        await idle(running.hop)
