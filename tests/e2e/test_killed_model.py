"""Kills a model hop in the middle of an attempt, beside a second one that would take the next."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from services.runtime.topology import HOPS, MODEL, MODEL_BACKUP
from tests.e2e.balancing import balancing
from tests.e2e.client import Client, Ended, open_client
from tests.e2e.conftest import QUIET
from tests.e2e.fault_outcomes import MAX_ATTEMPTS
from tests.e2e.simulators import (
    BACKUP_MODEL,
    PRIMARY_MODEL,
    Simulated,
    provider_settings,
    simulated,
)
from tests.e2e.suite import START_TIMEOUT_S, WAIT_S, eventually, running_suite, wait_until
from tests.ports import free_port
from tests.processes import Child
from tests.requirements import requirement

QUESTION = "What now?"
DEADLINE_S = 30.0
SETTINGS = {**QUIET, "SIXHOP_ADAPTIVE__ENABLED": "false"}


@contextmanager
def model_hops(folder: Path, primary: Simulated, ports: list[int]) -> Iterator[list[Child]]:
    """Run so many model hops with one provider while the block runs."""
    children = [
        Child(
            f"model-{port}",
            ["-m", "services.model"],
            {
                **SETTINGS,
                **provider_settings(MODEL, primary),
                "SIXHOP_MODEL__PORT": str(port),
                # Who knows of a backup does not wait for a provider that asks for patience.
                "SIXHOP_MODEL_BACKUP__BASE_URL": "http://127.0.0.1:9/v1",
                "SIXHOP_MODEL_BACKUP__MODEL": BACKUP_MODEL,
            },
            folder,
        )
        for port in ports
    ]
    try:
        for child in children:
            child.start()
        for child in children:
            wait_until(
                lambda child=child: "hop_serving" in {line["event"] for line in child.events()},  # type: ignore[misc]
                START_TIMEOUT_S,
                f"{child.name} serves",
            )
        yield children
    finally:
        for child in children:
            child.end()


@requirement("faults:few-attempts", "failover:before-content")
async def test_a_model_hop_that_dies_in_its_second_attempt_leads_to_no_third(
    tmp_path: Path,
) -> None:
    door, ports = free_port(), [free_port(), free_port()]
    others = [hop for hop in HOPS if hop != MODEL]
    with (
        simulated(tmp_path, PRIMARY_MODEL, 1) as primary,
        simulated(tmp_path, BACKUP_MODEL, 2) as backup,
        model_hops(tmp_path, primary, ports) as hops,
        running_suite(
            tmp_path,
            (*others, MODEL_BACKUP),
            **SETTINGS,
            **provider_settings(MODEL, primary),
            **provider_settings(MODEL_BACKUP, backup),
            SIXHOP_MODEL__PORT=str(door),
        ) as suite,
    ):
        async with balancing(door, ports), open_client(suite) as client:
            await client.tools_known()
            primary.ask("POST", "/sim/faults", {"queue": ["503", "silent"]})
            run = await _killed(client, primary, hops[0])
            first, second = primary.requests(run.run_id), backup.requests(run.run_id)

    assert len(first) == MAX_ATTEMPTS, first
    assert len(second) == 1
    assert (run.code, run.text) == (grpc.StatusCode.OK, backup.whole(QUESTION)), run
    assert [each.mechanism for each in run.degradations] == ["backup"]


async def _killed(client: Client, primary: Simulated, hop: Child) -> Ended:
    """Ask, and kill a model hop once it has asked its provider twice."""
    running = client.run(QUESTION, agent="chat", deadline_s=DEADLINE_S)
    run_id = running.seen.run_id
    await eventually(
        lambda: primary.requests(run_id)[MAX_ATTEMPTS - 1 :], WAIT_S, "the provider is asked twice"
    )
    hop.send(signal.SIGKILL)
    return await running.end()
