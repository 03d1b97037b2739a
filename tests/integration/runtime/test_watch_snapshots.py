"""Holds the watch over a process to its promises, over real connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from services.runtime.client import open_channel
from services.runtime.config import Config
from services.runtime.durations import to_duration
from services.runtime.process import Hop, serving
from services.runtime.status import DETAILS_KEY, error_info
from services.runtime.topology import GATEWAY
from services.runtime.watchers import MAX_WATCHERS
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.integration.runtime.suite import CLOCK, configured
from tests.requirements import requirement
from tests.waiting import until

CHANGE = runtime_pb2.WATCH_CAUSE_CHANGE
READ_S = 5.0
Watch = Any
"""A call of WatchSnapshots."""


@asynccontextmanager
async def ready(hop: Hop) -> AsyncIterator[None]:
    """Open a hop that serves nothing of its own."""
    await hop.health.set_ready()
    yield


@asynccontextmanager
async def gateway(**settings: str) -> AsyncIterator[tuple[Hop, RuntimeServiceStub]]:
    """Run a gateway with the engine on, and the way to it."""
    config: Config = configured(**({"ENGINE__ENABLED": "true"} | settings))
    async with (
        serving(GATEWAY, ready, config, CLOCK) as hop,
        open_channel(config.address(GATEWAY)) as channel,
    ):
        yield hop, RuntimeServiceStub(channel)


def watch(stub: RuntimeServiceStub, interval_s: float | None = None) -> Watch:
    """Begin to watch, without a deadline."""
    request = runtime_pb2.WatchSnapshotsRequest()
    if interval_s is not None:
        request.max_interval_duration.CopyFrom(to_duration(interval_s))
    return stub.WatchSnapshots(request)


async def following(call: Watch) -> runtime_pb2.WatchSnapshotsResponse:
    """Return the next state."""
    return await asyncio.wait_for(call.read(), READ_S)


async def refused(call: Watch) -> grpc.aio.AioRpcError:
    """Return why a watch has ended."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await following(call)
    return caught.value


@requirement("health:watch")
async def test_a_watcher_has_the_state_at_once_and_after_every_change() -> None:
    async with gateway() as (hop, stub):
        assert hop.runtime.state.guards is not None
        call = watch(stub, 60.0)
        first = await following(call)
        hop.runtime.state.guards.shed.order("the database moves", 60.0)
        closed = await following(call)
        hop.runtime.state.guards.shed.withdraw()
        opened = await following(call)
        await hop.health.set_not_ready("its event loop lags")
        unready = await following(call)
        call.cancel()

    assert (first.sequence, first.cause) == (1, runtime_pb2.WATCH_CAUSE_FIRST)
    assert first.snapshot.hop == GATEWAY
    changes = [closed, opened, unready]
    assert [(each.sequence, each.cause) for each in changes] == [(n, CHANGE) for n in (2, 3, 4)]
    assert closed.snapshot.shed.state == runtime_pb2.DOOR_STATE_CLOSED
    assert closed.snapshot.shed.order.reason == "the database moves"
    assert opened.snapshot.shed.state == runtime_pb2.DOOR_STATE_OPEN
    assert (unready.snapshot.ready, unready.snapshot.detail) == (False, "its event loop lags")


@requirement("health:watch")
async def test_the_state_comes_as_often_as_asked_without_any_change() -> None:
    async with gateway() as (_, stub):
        call = watch(stub, 0.2)
        causes = [(await following(call)).cause for _ in range(3)]
        call.cancel()

    interval = runtime_pb2.WATCH_CAUSE_INTERVAL
    assert causes == [runtime_pb2.WATCH_CAUSE_FIRST, interval, interval]


@requirement("health:watch", "health:snapshot")
async def test_a_watch_is_no_call_in_flight() -> None:
    async with gateway() as (hop, stub):
        calls = [watch(stub, 60.0) for _ in range(3)]
        for call in calls:
            await following(call)
        during = await stub.GetSnapshot(runtime_pb2.GetSnapshotRequest())
        watching = hop.runtime.watchers.count
        for call in calls:
            call.cancel()

    assert watching == 3
    assert (during.inflight_count, during.outgoing_count, during.call_count) == (0, 0, 0)
    assert during.admission.inflight_count == 0


@requirement("health:watch")
async def test_a_watch_ends_well_when_the_process_drains() -> None:
    async with gateway() as (hop, stub):
        call = watch(stub, 60.0)
        await following(call)
        await hop.health.drain()
        last = await following(call)
        # With a watch open this would take the whole grace.
        await asyncio.wait_for(hop.server.stop(60.0), READ_S)
        end = await call.read()
        code = await call.code()

    assert (last.snapshot.ready, last.snapshot.detail) == (False, "draining")
    assert (end, code) == (grpc.aio.EOF, grpc.StatusCode.OK)


@requirement("health:watch-is-bounded")
@pytest.mark.parametrize("interval_s", [0.0, 0.19, 60.5, -1.0])
async def test_an_interval_out_of_range_is_refused_with_the_range(interval_s: float) -> None:
    async with gateway() as (_, stub):
        error = await refused(watch(stub, interval_s))

    info = error_info(_details(error))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert info is not None
    assert (info.reason, info.metadata["field"]) == ("INVALID_ARGUMENT", "max_interval_duration")
    assert "between 0.2 and 60 s" in (error.details() or "")


@requirement("health:watch-is-bounded")
async def test_only_so_many_may_watch_and_who_leaves_makes_room() -> None:
    async with gateway() as (hop, stub):
        calls = [watch(stub, 60.0) for _ in range(MAX_WATCHERS)]
        for call in calls:
            await following(call)
        error = await refused(watch(stub, 60.0))
        for call in calls:
            call.cancel()
        await until(lambda: hop.runtime.watchers.count == 0)
        again = watch(stub, 60.0)
        state = await following(again)
        again.cancel()

    info = error_info(_details(error))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert info is not None
    assert (info.reason, info.metadata["cause"]) == ("LOAD_SHED", "watchers")
    assert "GetSnapshot" in (error.details() or "")
    assert state.sequence == 1


@requirement("health:watch-is-bounded")
async def test_a_watcher_that_does_not_read_finds_the_newest_state_and_no_heap_of_old_ones() -> (
    None
):
    built = newest = 0

    def attributes() -> dict[str, str]:
        nonlocal built
        built += 1
        # Large, so that what the transport takes by itself is soon full.
        return {"number": str(newest), "ballast": "x" * 4_000_000}

    async with gateway() as (hop, stub):
        hop.runtime.attributes = attributes
        call = watch(stub, 60.0)
        await following(call)
        for newest in range(1, 30):
            hop.health.detail = f"state {newest}"
            await CLOCK.sleep(0.12)
        built_unread = built
        seen = [0]
        while seen[-1] < newest:
            seen.append(int((await following(call)).snapshot.attributes["number"]))
        call.cancel()

    assert built_unread < 15, "states are made when they can be sent"
    assert len(seen) < 20, seen


def _details(error: grpc.aio.AioRpcError) -> bytes:
    metadata = error.trailing_metadata()
    assert metadata is not None
    value = metadata[DETAILS_KEY]
    assert isinstance(value, bytes)
    return value
