"""Measures how much memory idle hops hold, and how long `sixhop up` takes to serve."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.processes import Processes, free_ports, resident_mib
from benchmarks.targets import Target
from services.runtime.topology import HOPS, ROUTING

START_TIMEOUT_S = 60.0
IDLE_S = 1.0
"""How long a suite that has just started may come to rest."""
READY_TARGET = Target("sixhop up ready, without the local model", 10.0, at_least=False)
MAX_RESIDENT_MIB = {hop: 140.0 if hop == ROUTING else 70.0 for hop in HOPS}
"""Routing holds an embedding model."""


class StartError(Exception):
    """Says that the suite did not start, and what it said instead."""


def measure() -> tuple[float, dict[str, float]]:
    """Start the suite once; return how long that took, and the resident MiB by hop.

    Raises:
        StartError: it does not start.
    """
    ports = free_ports(len(HOPS))
    settings = {
        f"SIXHOP_{hop.upper()}__PORT": str(port) for hop, port in zip(HOPS, ports, strict=True)
    }
    with Processes() as processes:
        settings["XDG_STATE_HOME"] = processes.folder
        processes.start("up", ["-m", "gateway.cli", "up", "--no-llm", "--json"], settings)
        until = time.monotonic() + START_TIMEOUT_S
        while not (events := _events(processes.output("up"))) or events[-1]["event"] != "ready":
            if time.monotonic() > until or processes.complaints():
                raise StartError(f"the suite did not start:\n{processes.output('up')}")
            time.sleep(0.05)
        time.sleep(IDLE_S)
        pids = {event["name"]: event["pid"] for event in events if event["event"] == "serving"}
        return float(events[-1]["after_s"]), {hop: resident_mib(pids[hop]) for hop in HOPS}


def _events(output: str) -> list[dict[str, Any]]:
    lines = output.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


def verdicts(ready_s: float, resident: dict[str, float]) -> Sequence[tuple[bool, str]]:
    """Return each promise with whether it is kept."""
    held = [
        Target(f"{hop} idle", MAX_RESIDENT_MIB[hop], at_least=False).judge(mib, " MiB")
        for hop, mib in resident.items()
    ]
    return [READY_TARGET.judge(ready_s, " s"), *held]


def main() -> int:
    """Measure as the command line says; return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead")
    arguments = parser.parse_args()
    try:
        ready_s, resident = measure()
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    judged = verdicts(ready_s, resident)
    if arguments.json:
        found = {"ready_s": ready_s, "resident_mib": resident}
        print(json.dumps({**found, "verdicts": [line for _, line in judged]}, ensure_ascii=False))
    else:
        print("\n".join(line for _, line in judged))
    return 0 if all(kept for kept, _ in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
