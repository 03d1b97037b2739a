"""Asks every hop how it does: the verb `health`."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from gateway.cli.console import open_console, until_reader_leaves, write_json
from gateway.cli.dependencies import InForce
from gateway.cli.health_view import show
from gateway.cli.hop_health import (
    ASK_TIMEOUT_S,
    SERVING,
    UNREACHABLE,
    HopHealth,
    heard,
    is_replica,
    to_document,
    unheard,
)
from gateway.cli.parts import local_models
from gateway.cli.probe import health_check, llm_serves
from gateway.cli.problem import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from gateway.cli.whereabouts import find_hops
from services.runtime.client import open_channel
from services.runtime.config import Config
from services.runtime.health import READINESS
from services.runtime.topology import LLM
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub


async def health(
    environ: Mapping[str, str], *, config_path: Path | None = None, as_json: bool = False
) -> int:
    """Show how every hop does.

    Returns:
        0 when all serve, 1 when one does not, 2 when the configuration is broken: then those are
        asked whose address is known all the same, and what is wrong with it is shown.
    """
    found = find_hops(environ, config_path)
    hops = await ask_hops(found.hops, found.in_force)
    llm = await _ask_llm(found.config) if uses_local_model(found.config, hops) else None
    ok = all(hop.serves for hop in hops)
    with until_reader_leaves():
        if as_json:
            write_json(sys.stdout, _document(ok, found.problem, hops, llm))
        else:
            shown = [*hops, *([llm] if llm else [])]
            show(open_console(sys.stdout), shown, found.problem)
    if found.problem:
        return EXIT_USAGE
    return EXIT_OK if ok else EXIT_FAILED


async def ask_hops(places: Sequence[tuple[str, str]], in_force: InForce) -> list[HopHealth]:
    """Return how each process does, in their order.

    Args:
        places: the hops, each with where to ask; one with replicas several times.
        in_force: tells the step timeout of a callee.
    """
    hops = await asyncio.gather(*(ask_hop(hop, address, in_force) for hop, address in places))
    return [replace(hop, replica=is_replica(hop.hop, places)) for hop in hops]


async def ask_hop(hop: str, address: str, in_force: InForce) -> HopHealth:
    """Return how a hop does; one that does not answer in time is silent.

    Args:
        hop: the hop that should be there.
        address: where to ask.
        in_force: tells the step timeout of a callee.
    """
    async with open_channel(address) as channel:
        stub = RuntimeServiceStub(channel)
        check = health_check(channel)
        try:
            readiness, snapshot = await asyncio.gather(
                check(health_pb2.HealthCheckRequest(service=READINESS), timeout=ASK_TIMEOUT_S),
                stub.GetSnapshot(runtime_pb2.GetSnapshotRequest(), timeout=ASK_TIMEOUT_S),
            )
        except grpc.aio.AioRpcError as error:
            return unheard(hop, address, error)
    serves = readiness.status == health_pb2.HealthCheckResponse.SERVING
    return heard(hop, address, snapshot, in_force, serves=serves)


def uses_local_model(config: Config, hops: Sequence[HopHealth]) -> bool:
    """Return whether the suite means the local model; what runs knows better than our settings."""
    told = [hop.provider for hop in hops if hop.provider]
    return config.address(LLM) in told if told else bool(local_models(config))


async def _ask_llm(config: Config) -> HopHealth:
    """Return how the local model does."""
    address = config.address(LLM)
    if await llm_serves(address):
        return HopHealth(hop=LLM, address=address, state=SERVING, detail="the local model")
    detail = "no local model runs; answers use templates instead of prose"
    return HopHealth(hop=LLM, address=address, state=UNREACHABLE, detail=detail)


def _document(
    ok: bool, problem: str, hops: list[HopHealth], llm: HopHealth | None
) -> dict[str, Any]:
    return {
        "ok": ok and not problem,
        "problem": problem,
        "hops": [to_document(hop) for hop in hops],
        "llm": None if llm is None else {"address": llm.address, "state": llm.state},
    }
