"""Measures what an outage of the first model costs, at its full length."""

import argparse
import asyncio
import json
import secrets
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from benchmarks.processes import ChainError, Processes, free_ports
from benchmarks.targets import Target
from services.runtime.topology import DEPLOYMENTS, GATEWAY, HOPS, LLM, MODEL, MODEL_BACKUP
from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub
from sixhop.type.v1 import run_pb2

START_TIMEOUT_S = 60.0
DEADLINE_S = 30.0
INTERVAL_S = 2.0
POLL_S = 0.2
FIRST, SECOND = "sim-large", "sim-small"
OUTAGE_FAULTS = ("silent", "503")

ANSWERED_TARGET = Target("questions answered in an outage", 100, at_least=True)
ATTEMPTS_TARGET = Target("attempts at the first model once its breaker is open", 10, at_least=False)
BACK_TARGET = Target("back on the first model after its recovery", 35, at_least=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Tells how one question went; lengths in seconds."""

    ok: bool
    model: str
    length_s: float
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Tells what one outage cost."""

    answered_percent: float
    attempts: int
    """At the first model, from the moment that its breaker was open until it was well."""
    back_s: float
    """From its recovery to its first answer."""
    slowest_s: float


class Simulator:
    """Steers one simulated provider."""

    def __init__(self, port: int) -> None:
        """Take the port on which it is steered."""
        self._base = f"http://127.0.0.1:{port}"

    def fault(self, *rules: str) -> None:
        """Meet every request from now on with these rules; none is well."""
        self._post("/sim/faults", {"rules": list(rules)})

    def log(self) -> list[dict[str, Any]]:
        """Return what came."""
        with urllib.request.urlopen(f"{self._base}/sim/log", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["requests"]
        return found

    def _post(self, path: str, body: Any) -> None:
        request = urllib.request.Request(
            self._base + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()


@dataclass(frozen=True, slots=True)
class Suite:
    """Is the running suite with both of its providers."""

    gateway: GatewayServiceStub
    model: RuntimeServiceStub
    """Tells what the model hop sees of the first provider."""
    first: Simulator

    async def ask(self) -> Asked:
        """Ask one question."""
        run_id = secrets.token_hex(8)
        began = time.monotonic()
        request = gateway_pb2.AskRequest(
            question=run_pb2.Question(text="Why is the sky blue?"), agent="chat"
        )
        metadata = (("x-sixhop-run-id", run_id),)
        try:
            answer = await self.gateway.Ask(request, timeout=DEADLINE_S, metadata=metadata)
        except grpc.aio.AioRpcError:
            model = ""
        else:
            model = answer.model
        length_s = time.monotonic() - began
        return Asked(ok=bool(model), model=model, length_s=length_s, run_id=run_id)

    async def outage(self, fault: str, length_s: float) -> Outage:
        """Take the first model away for a while, under a question every two seconds."""
        self.first.fault(fault)
        until = time.monotonic() + length_s
        asked: list[asyncio.Task[Asked]] = []
        opened_at: int | None = None
        while time.monotonic() < until:
            asked.append(asyncio.create_task(self.ask()))
            await asyncio.sleep(INTERVAL_S)
            if opened_at is None and await self._opened():
                opened_at = len(self.first.log())
        arrived = len(self.first.log())
        attempts = arrived - (arrived if opened_at is None else opened_at)
        self.first.fault()
        recovered = time.monotonic()
        while True:
            asked.append(asyncio.create_task(self.ask()))
            await asyncio.sleep(INTERVAL_S)
            back = [each for each in asked if each.done() and each.result().model == FIRST]
            if back or time.monotonic() > recovered + 2 * BACK_TARGET.limit:
                break
        back_s = time.monotonic() - recovered
        runs = await asyncio.gather(*asked)
        return Outage(
            answered_percent=100 * sum(run.ok for run in runs) / len(runs),
            attempts=attempts,
            back_s=back_s,
            slowest_s=max(run.length_s for run in runs),
        )

    async def _opened(self) -> bool:
        seen = await self.model.GetSnapshot(runtime_pb2.GetSnapshotRequest(), timeout=5.0)
        states = {each.key: each.breaker_state for each in seen.dependencies}
        return states.get(LLM) == runtime_pb2.BREAKER_STATE_OPEN


def start(processes: Processes) -> tuple[dict[str, str], Simulator]:
    """Start both providers and every hop; return where the hops are, and the first provider."""
    names = (*HOPS, *DEPLOYMENTS)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    sims: dict[str, tuple[int, int]] = {}
    for name, model in ((MODEL, FIRST), (MODEL_BACKUP, SECOND)):
        port, control = free_ports(2)
        settings = {"PORT": port, "CONTROL_PORT": control, "MODELS": model, "SEED": 7}
        environ = {f"SIXHOP_SIM__{key}": str(value) for key, value in settings.items()}
        processes.start(f"sim-{name}", ["-m", "services.model.sim"], environ)
        sims[name] = (port, control)
    environ = {f"SIXHOP_{name.upper()}__PORT": str(port) for name, port in ports.items()}
    for name, model in ((MODEL, FIRST), (MODEL_BACKUP, SECOND)):
        section = f"SIXHOP_{name.upper()}__"
        environ |= {
            f"{section}BASE_URL": f"http://127.0.0.1:{sims[name][0]}/v1",
            f"{section}MODEL": model,
            f"{section}API_KEY": "none",
        }
    for name in reversed(names):
        hop = DEPLOYMENTS.get(name, name)
        arguments = ["-m", hop if hop == GATEWAY else f"services.{hop}"]
        arguments += [f"--as={name}"] if name in DEPLOYMENTS else []
        processes.start(name, arguments, environ)
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    return addresses, Simulator(sims[MODEL][1])


async def measure(length_s: float, faults: Sequence[str]) -> list[tuple[bool, str]]:
    """Measure everything; return each promise with whether it is kept."""
    found: list[tuple[bool, str]] = []
    with Processes() as processes:
        addresses, first = start(processes)
        async with (
            grpc.aio.insecure_channel(addresses[GATEWAY]) as channel,
            grpc.aio.insecure_channel(addresses[MODEL]) as model,
        ):
            suite = Suite(GatewayServiceStub(channel), RuntimeServiceStub(model), first)
            await _until_all_serve(processes)
            if not (await suite.ask()).ok:
                raise ChainError("the suite serves and does not answer")
            for fault in faults:
                outage = await suite.outage(fault, length_s)
                print(f"{fault}: {outage}")
                found.append(ANSWERED_TARGET.judge(outage.answered_percent, " %"))
                found.append(ATTEMPTS_TARGET.judge(outage.attempts, ""))
                found.append(BACK_TARGET.judge(outage.back_s, " s"))
    return found


async def _until_all_serve(processes: Processes) -> None:
    # Not by asking: what is asked too early would teach breakers that their callees are sick.
    until = time.monotonic() + START_TIMEOUT_S
    for name in (*HOPS, *DEPLOYMENTS):
        while not all(word in processes.output(name) for word in ("hop_ready", "hop_serving")):
            if time.monotonic() > until:
                raise ChainError(f"{name} does not serve: {processes.complaints()}")
            await asyncio.sleep(POLL_S)


def main() -> int:
    """Measure and judge; return 0 when every promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=float, default=60.0, help="seconds of each outage")
    parser.add_argument("--fault", action="append", help="how the first model is away")
    options = parser.parse_args()
    faults = options.fault or OUTAGE_FAULTS
    found = asyncio.run(measure(options.length, faults))
    for _, line in found:
        print(line)
    return 0 if all(kept for kept, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
