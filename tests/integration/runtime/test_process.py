"""Holds a process to its life: ready when it can work, draining in peace, refusing to start."""

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.runtime import process
from services.runtime.checks.finding import Finding, Severity
from services.runtime.client import open_channel
from services.runtime.config import HopSettings
from services.runtime.process import (
    EXIT_CONFIG,
    EXIT_OK,
    EXIT_VIOLATED,
    Hop,
    PortTakenError,
    serving,
)
from services.runtime.telemetry import configure_logging, get_logger
from sixhop.model.v1 import model_pb2
from sixhop.model.v1.model_pb2_grpc import (
    ModelServiceStub,
)
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from tests.integration.runtime.suite import (
    CLOCK,
    HeldModel,
    configured,
    running,
)
from tests.ports import free_port
from tests.requirements import requirement

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def generated(channel: grpc.aio.Channel) -> list[str | None]:
    """Return the kinds of the events of one generation."""
    stub = ModelServiceStub(channel)
    stream = stub.Generate(model_pb2.GenerateRequest(), timeout=20.0)
    return [event.WhichOneof("event") async for event in stream]


@pytest.fixture
def log() -> Iterator[io.BytesIO]:
    """Keep the process's own logging out of the other tests."""
    before = get_logger().journal
    target = io.BytesIO()
    configure = configure_logging
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "services.runtime.process.configure_logging",
            lambda hop, pod, level, clock: configure(hop, pod, level, clock, target),
        )
        yield target
    get_logger().journal = before


@requirement("process:drain")
async def test_a_draining_hop_finishes_its_streams_and_takes_no_new_call() -> None:
    slow, config = HeldModel(), configured()
    async with serving("model", slow.open_hop, config, CLOCK) as hop:
        channel = open_channel(config.address("model"))
        running_call = asyncio.create_task(generated(channel))
        await asyncio.wait_for(slow.began.wait(), 5)

        await hop.health.drain()
        stopping = asyncio.create_task(hop.server.stop(5))
        other = open_channel(config.address("model"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await generated(other)
        slow.go_on.set()
        events = await asyncio.wait_for(running_call, 5)
        await asyncio.wait_for(stopping, 5)
        await channel.close()
        await other.close()

    # A connection that came in the very moment of the stop was taken; its call is not.
    refused = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    assert caught.value.code() in refused
    assert events == ["text_delta", "finished"]
    assert not hop.health.ready


@requirement("process:drain")
async def test_a_stream_that_outlives_the_drain_is_cut() -> None:
    slow, config = HeldModel(), configured()
    async with serving("model", slow.open_hop, config, CLOCK) as hop:
        async with open_channel(config.address("model")) as channel:
            running_call = asyncio.create_task(generated(channel))
            await asyncio.wait_for(slow.began.wait(), 5)

            await hop.server.stop(0.05)

            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await asyncio.wait_for(running_call, 5)

    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert hop.activity.inflight == 0


@requirement("process:drain")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_the_process_and_ends_it_well(
    number: signal.Signals, log: io.BytesIO, tmp_path: Path
) -> None:
    slow, port = HeldModel(), free_port()
    file = tmp_path / "sixhop.toml"
    file.write_text(f"[model]\nport = {port}\n", encoding="utf-8")
    work = asyncio.create_task(process.run("model", slow.open_hop, HopSettings, config_path=file))
    async with open_channel(f"127.0.0.1:{port}") as channel:
        running_call = asyncio.create_task(_generated_when_up(channel))
        await asyncio.wait_for(slow.began.wait(), 5)

        os.kill(os.getpid(), number)
        await _until_draining(log)
        slow.go_on.set()
        events = await asyncio.wait_for(running_call, 5)
        code = await asyncio.wait_for(work, 5)

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (code, events) == (EXIT_OK, ["text_delta", "finished"])
    assert {line["event"] for line in lines} >= {"hop_serving", "hop_draining", "hop_stopped"}
    assert [line["cut"] for line in lines if line["event"] == "hop_stopped"] == [0]


@requirement("process:port-taken")
async def test_a_taken_port_is_named_with_the_setting_that_changes_it() -> None:
    slow, config = HeldModel(), configured()
    async with serving("model", slow.open_hop, config, CLOCK):
        with pytest.raises(PortTakenError) as caught:
            await serving("model", slow.open_hop, config, CLOCK).__aenter__()

    assert f"127.0.0.1:{config.port('model')} is taken" in str(caught.value)
    assert "SIXHOP_MODEL__PORT" in str(caught.value)


@requirement("process:refuses-to-start")
async def test_a_process_that_cannot_have_its_port_ends_with_a_code_of_its_own(
    log: io.BytesIO, tmp_path: Path
) -> None:
    slow, config = HeldModel(), configured()
    file = tmp_path / "sixhop.toml"
    file.write_text(f"[model]\nport = {config.port('model')}\n", encoding="utf-8")
    async with serving("model", slow.open_hop, config, CLOCK):
        code = await process.run("model", slow.open_hop, HopSettings, config_path=file)

    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if b"refused" in line]
    assert code == EXIT_CONFIG
    assert "is taken" in line["problem"]


@requirement("process:refuses-to-start")
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("[model]\nprot = 1\n", "did you mean port?"),
        ("[deadline]\nshare = 0.9\n", "[deadline] share = 0.9"),
    ],
)
@pytest.mark.parametrize("check_only", [True, False])
async def test_a_configuration_that_cannot_be_read_is_refused_before_anything_starts(
    settings: str, problem: str, check_only: bool, log: io.BytesIO, tmp_path: Path
) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text(settings, encoding="utf-8")

    code = await process.run(
        "model", HeldModel().open_hop, HopSettings, config_path=file, check_only=check_only
    )

    (line,) = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (code, line["event"]) == (EXIT_CONFIG, "refused_to_start")
    assert problem in line["problem"]


@requirement("process:refuses-to-start")
@pytest.mark.parametrize(
    ("check_only", "expected"),
    [(True, (EXIT_VIOLATED, "check_found")), (False, (EXIT_CONFIG, "refused_to_start"))],
)
async def test_a_configuration_that_cannot_hold_is_refused_before_anything_starts(
    check_only: bool, expected: tuple[int, str], log: io.BytesIO, tmp_path: Path
) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("[calls.model]\nstep_timeout_s = 25\n", encoding="utf-8")

    code = await process.run(
        "model", HeldModel().open_hop, HopSettings, config_path=file, check_only=check_only
    )

    (line,) = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (code, line["event"]) == expected
    assert "does not fit into calls.tool.step_timeout_s" in line["problem"]


@requirement("process:refuses-to-start")
async def test_what_a_room_finds_is_told_with_its_severity(log: io.BytesIO, tmp_path: Path) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("", encoding="utf-8")
    found = [Finding(rule="r", severity=Severity.WARNING, text="one wonders")]

    code = await process.run(
        "model",
        HeldModel().open_hop,
        HopSettings,
        config_path=file,
        check_only=True,
        examine=lambda config: found,
    )

    (line,) = [json.loads(line) for line in log.getvalue().splitlines()]
    assert code == EXIT_OK
    assert (line["rule"], line["severity"], line["problem"]) == ("r", "warning", "one wonders")


@requirement("process:refuses-to-start")
async def test_a_configuration_that_holds_passes_its_check_and_starts_nothing(
    log: io.BytesIO, tmp_path: Path
) -> None:
    file = tmp_path / "sixhop.toml"
    file.write_text("", encoding="utf-8")

    code = await process.run(
        "model", HeldModel().open_hop, HopSettings, config_path=file, check_only=True
    )

    assert (code, log.getvalue()) == (EXIT_OK, b"")


@requirement("health:names")
async def test_a_hop_answers_whether_it_lives_before_it_is_ready() -> None:
    @asynccontextmanager
    async def not_ready(hop: Hop) -> AsyncIterator[None]:
        hop.services.append("sixhop.model.v1.ModelService")
        hop.health.detail = "waiting for the engine"
        yield

    config = configured()
    async with serving("model", not_ready, config, CLOCK) as hop:
        async with open_channel(config.address("model")) as channel:
            before = await _health(channel)
            snapshot = await RuntimeServiceStub(channel).GetSnapshot(
                runtime_pb2.GetSnapshotRequest()
            )

            await hop.health.set_ready()
            after = await _health(channel)
            await hop.health.set_not_ready("the engine is gone")
            again = await _health(channel)
            await hop.health.drain()
            await hop.health.set_ready()
            drained = await _health(channel)
            ready = hop.health.ready

    waiting = {"liveness": SERVING, "readiness": NOT_SERVING, "": NOT_SERVING}
    waiting["sixhop.model.v1.ModelService"] = NOT_SERVING
    assert before == again == waiting
    assert set(after.values()) == {SERVING}
    assert drained == waiting, "who drains lives"
    assert not ready, "who drains is not ready, whatever it learns meanwhile"
    assert (snapshot.ready, snapshot.detail) == (False, "waiting for the engine")


@requirement("health:names")
async def test_a_watcher_hears_when_a_hop_is_ready_and_when_it_drains() -> None:
    async with running() as suite:
        hop = suite.hops["model"]
        async with open_channel(suite.config.address("model")) as channel:
            request = health_pb2.HealthCheckRequest(service="readiness")
            stub: Any = HealthStub(channel)
            watching = stub.Watch(request, timeout=10.0)
            first = await watching.read()
            await hop.health.drain()
            second = await watching.read()
            watching.cancel()

    assert (first.status, second.status) == (SERVING, NOT_SERVING)


@requirement("health:names")
async def test_a_watcher_that_does_not_read_holds_nobody_up() -> None:
    async with running() as suite:
        health: Any = suite.hops["model"].health
        blocked = asyncio.Condition()
        async with blocked:
            health._servicer._server_watchers["readiness"] = blocked
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("services.runtime.health.SET_TIMEOUT_S", 0.05)

                await asyncio.wait_for(health.drain(), 5)

    assert not health.ready


@requirement("health:snapshot")
async def test_a_snapshot_counts_what_is_in_flight_and_nothing_afterwards() -> None:
    slow, config = HeldModel(), configured()
    async with serving("model", slow.open_hop, config, CLOCK):
        async with open_channel(config.address("model")) as channel:
            stub = RuntimeServiceStub(channel)
            before = await stub.GetSnapshot(runtime_pb2.GetSnapshotRequest())
            running_call = asyncio.create_task(generated(channel))
            await asyncio.wait_for(slow.began.wait(), 5)
            during = await stub.GetSnapshot(runtime_pb2.GetSnapshotRequest())
            slow.go_on.set()
            await running_call
            after = await stub.GetSnapshot(runtime_pb2.GetSnapshotRequest())

    assert (before.inflight_count, before.call_count) == (0, 0)
    assert during.inflight_count == 1
    assert (after.inflight_count, after.call_count, after.error_count) == (0, 1, 0)
    assert after.p50_latency.ToTimedelta().total_seconds() > 0
    assert (after.hop, after.ready, after.resident_byte_count > 0) == ("model", True, True)


async def _health(channel: grpc.aio.Channel) -> dict[str, int]:
    stub: Any = HealthStub(channel)
    found: dict[str, int] = {}
    for name in ("liveness", "readiness", "", "sixhop.model.v1.ModelService"):
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
        found[name] = answer.status
    return found


async def _generated_when_up(channel: grpc.aio.Channel) -> list[str | None]:
    await asyncio.wait_for(channel.channel_ready(), 5)
    return await generated(channel)


async def _until_draining(log: io.BytesIO) -> None:
    async with asyncio.timeout(5):
        while b"hop_draining" not in log.getvalue():
            await CLOCK.sleep(0.01)
