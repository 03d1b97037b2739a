"""Tests that a process which was stopped for a while is not taken for one whose loop lags."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.runtime.client import open_channel
from services.runtime.fitness import INTERVAL_S
from tests.ports import free_port
from tests.processes import Child
from tests.requirements import requirement
from tests.waiting import until

STOPPED_S = 4.0
"""Long against what a busy machine keeps a process waiting for a CPU."""


@pytest.fixture
def port() -> int:
    """Return a free port."""
    return free_port()


@pytest.fixture
def hop(tmp_path: Path, port: int) -> Iterator[Child]:
    """Start a model hop with the engine on; nobody asks it for anything."""
    environment = {
        "SIXHOP_ENGINE__ENABLED": "true",
        "SIXHOP_MODEL__PORT": str(port),
        "SIXHOP_MODEL__BASE_URL": "http://127.0.0.1:9/v1",
        "SIXHOP_MODEL__MODEL": "none",
    }
    child = Child("model", ["-m", "services.model"], environment, tmp_path)
    child.start()
    try:
        yield child
    finally:
        child.end()


def heard(hop: Child, event: str) -> list[dict[str, Any]]:
    """Return the lines of one kind that a process has logged."""
    return [line for line in hop.events() if line["event"] == event]


@requirement("fitness:thawed-is-not-lagging")
async def test_a_process_that_was_stopped_knows_it_and_stays_ready(hop: Child, port: int) -> None:
    await until(lambda: bool(heard(hop, "hop_ready")), timeout_s=30.0)

    hop.send(signal.SIGSTOP)
    await asyncio.sleep(STOPPED_S)
    hop.send(signal.SIGCONT)
    await until(lambda: bool(heard(hop, "hop_thawed")), timeout_s=20.0)

    async with open_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = HealthStub(channel)
        state = await stub.Check(health_pb2.HealthCheckRequest(service="readiness"), timeout=10.0)
    assert state.status == health_pb2.HealthCheckResponse.SERVING
    assert heard(hop, "hop_thawed")[0]["stood_s"] >= STOPPED_S - 2 * INTERVAL_S
    assert heard(hop, "hop_not_ready") == []
