"""Is one pod: a process of a hop, configured as its manifests say, with its sidecar."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.runtime.topology import DEPLOYMENTS, DOMAIN, GATEWAY, HOPS, TOOL
from tests.e2e.mesh.leaf import ARRIVALS, MOOD
from tests.e2e.mesh.sidecars import LOOPBACK, Proxy
from tests.e2e.suite import KEY
from tests.processes import Child

HERE = Path(__file__).parent
OPERATOR = "the-key-of-the-operator"
OWN = {DOMAIN: "agents", TOOL: "tools"}
"""What pods of a hop get a copy of, in a folder of their own, so that a test can make one sick."""


@dataclass(slots=True)
class Pod:
    """Is one process of a hop with its sidecar; ports are of this machine."""

    name: str
    hop: str
    app_port: int
    """Where the application listens; only its sidecar and the kubelet know."""
    port: int
    """Where its sidecar takes calls for it."""
    outbound: Mapping[str, int]
    """Where it calls each dependency."""
    folder: Path
    child: Child
    proxy: Proxy

    def feel(self, **mood: Any) -> None:
        """Make a pod sick: how long its work takes (`length_s`), whether it fails (`fails`)."""
        path = self.folder / MOOD
        if mood:
            new = path.with_suffix(".new")
            new.write_text(json.dumps(mood))
            new.replace(path)
        else:
            path.unlink(missing_ok=True)

    @property
    def arrival_count(self) -> int:
        """Return how many executions a tool has begun."""
        log = self.folder / ARRIVALS
        return log.stat().st_size if log.exists() else 0


def fill(folder: Path, hop: str) -> None:
    """Give a pod its copy of what is to run there."""
    if hop in OWN:
        shutil.copytree(HERE / OWN[hop], folder, ignore=shutil.ignore_patterns("__pycache__"))


def command(hop: str) -> list[str]:
    """Return what starts a process of a hop."""
    if hop in DEPLOYMENTS:
        return ["-m", f"services.{DEPLOYMENTS[hop]}", f"--as={hop}"]
    return ["-m", "gateway" if hop == GATEWAY else f"services.{hop}"]


def environment(
    pod_name: str, hop: str, folder: Path, config: Path, provider: int
) -> dict[str, str]:
    """Return what a pod is told besides its configuration, and what differs on this machine.

    Args:
        pod_name: its name.
        hop: its hop.
        folder: its own files.
        config: the configuration that the overlay ships.
        provider: the port of the provider.
    """
    found = {
        "POD_NAME": pod_name,
        "SIXHOP_CONFIG": str(config),
        **{f"SIXHOP_{each.upper()}__HOST": LOOPBACK for each in (*HOPS, *DEPLOYMENTS)},
        # Pods have an address each, and processes here share one.
        **{f"SIXHOP_{each.upper()}__METRICS_PORT": "0" for each in (*HOPS, *DEPLOYMENTS)},
        "SIXHOP_GATEWAY__HTTP_PORT": "0",
        "SIXHOP_GATEWAY__KEYS_FILE": "",
        "SIXHOP_GATEWAY__OPEN": "true",
        "SIXHOP_LOG__CALLS": "all",
        "SIXHOP_OPERATOR__KEY": OPERATOR,
    }
    for each in ("MODEL", "MODEL_BACKUP"):
        found |= {
            f"SIXHOP_{each}__BASE_URL": f"http://{LOOPBACK}:{provider}/v1",
            f"SIXHOP_{each}__API_KEY": KEY,
            f"SIXHOP_{each}__MODEL": "scripted",
        }
    if hop in OWN:
        found[f"SIXHOP_{hop.upper()}__{OWN[hop].upper()[:-1]}_DIRS"] = json.dumps([str(folder)])
    return found
