"""Writes what of pods, their services and their scaling follows from the configuration."""

import math
from collections.abc import Iterator

from gateway.config import GatewaySettings
from gateway.manifests.hops import longest_s
from gateway.manifests.pods import LIVENESS, READINESS, SLACK_S
from gateway.manifests.rendering.names import (
    CONTAINER,
    GRPC,
    HTTP,
    METRICS,
    POOL_LABEL,
    PROCESSES,
    Body,
    described,
    object_name,
    patch_of,
)
from gateway.sizes import CPU_RATIO, inflight_target
from services.runtime.checks.tree import Tree
from services.runtime.config import PREFIX, Config
from services.runtime.metrics_door import PATH as METRICS_PATH
from services.runtime.telemetry import METRIC_INFLIGHT
from services.runtime.topology import GATEWAY

PRE_STOP_S = 5
"""How long a pod serves on after it was told to leave: until all callers know."""
START_S = 60
"""How long a hop may take until it works; the embedding's weights are read from a cold disk."""


def hop_patches(hop: str, tree: Tree) -> list[Body]:
    """Return the patches of a hop's deployment and of its scaling."""
    name = object_name(hop)
    return [
        patch_of("apps/v1", "Deployment", name) | {"spec": {"template": _template(hop, tree)}},
        patch_of("autoscaling/v2", "HorizontalPodAutoscaler", name)
        | {"spec": {"metrics": list(_metrics(tree))}},
    ]


def http_port(config: Config) -> int:
    """Return where the gateway serves HTTP."""
    settings = config.section(GATEWAY, GatewaySettings)
    return settings.http_address(config.port(GATEWAY))[1]


def ports(hop: str, config: Config) -> dict[str, int]:
    """Return the ports of a hop that others call, by their names."""
    found = {GRPC: config.port(hop)}
    if hop == GATEWAY:
        found[HTTP] = http_port(config)
    return found


def metrics_port(hop: str, config: Config) -> int:
    """Return where a hop tells its state; 0 is nowhere.

    The gateway tells more at its HTTP port, where clients are let in as well.
    """
    return http_port(config) if hop == GATEWAY else config.hop(hop).metrics_port


def services(config: Config) -> list[Body]:
    """Return a service for each hop."""
    return [pool_service(object_name(hop), hop, config) for hop in PROCESSES]


def pool_service(name: str, hop: str, config: Config) -> Body:
    """Return the service of one deployment of a hop: others of the same hop have their own."""
    return described("v1", "Service", name) | {
        "spec": {
            "type": "ClusterIP",
            "selector": {POOL_LABEL: name},
            "ports": [
                {"name": each, "port": number, "targetPort": each, "appProtocol": each}
                for each, number in ports(hop, config).items()
            ],
        }
    }


def accounts() -> list[Body]:
    """Return an account for each hop; it is what callers are known by, and may nothing else."""
    return [
        described("v1", "ServiceAccount", object_name(hop))
        | {"automountServiceAccountToken": False}
        for hop in PROCESSES
    ]


def _template(hop: str, tree: Tree) -> Body:
    number = metrics_port(hop, tree.config)
    if not number:
        return {"spec": _pod(hop, tree)}
    asked = {"scrape": "true", "port": str(number), "path": METRICS_PATH}
    annotations = {f"prometheus.io/{name}": text for name, text in asked.items()}
    return {"metadata": {"annotations": annotations}, "spec": _pod(hop, tree)}


def _pod(hop: str, tree: Tree) -> Body:
    config = tree.config
    runs_s = max(config.hop(hop).drain_timeout_s, longest_s(hop, config))
    return {
        "terminationGracePeriodSeconds": math.ceil(PRE_STOP_S + runs_s + SLACK_S),
        "containers": [
            {
                "name": CONTAINER,
                "env": [{"name": f"{PREFIX}{hop.upper()}__HOST", "value": "0.0.0.0"}],
                "ports": [
                    {"name": name, "containerPort": number}
                    for name, number in _open_ports(hop, config).items()
                ],
                "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_S}}},
                **_probes(config.port(hop)),
            }
        ],
    }


def _open_ports(hop: str, config: Config) -> dict[str, int]:
    found, number = ports(hop, config), metrics_port(hop, config)
    return found | ({METRICS: number} if number and number not in found.values() else {})


def _probes(port: int) -> Body:
    ready, alive = ({"port": port, "service": name} for name in (READINESS, LIVENESS))
    return {
        # Alive, not ready: routing is not ready before it knows the agents, and that is no reason
        # to start it again.
        "startupProbe": {"grpc": alive, "periodSeconds": 2, "failureThreshold": START_S // 2},
        # A pod that hangs is out after six seconds, and back after one answer.
        "readinessProbe": {
            "grpc": ready,
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 2,
        },
        # A process that is only busy comes back: ended is what has hung for a minute.
        "livenessProbe": {
            "grpc": alive,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
    }


def _metrics(tree: Tree) -> Iterator[Body]:
    yield {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": CONTAINER,
            # Of a core, whatever the pod asks for.
            "target": {"type": "AverageValue", "averageValue": f"{round(1000 * CPU_RATIO)}m"},
        },
    }
    target = inflight_target(tree)
    if not target:
        return
    yield {
        "type": "Pods",
        "pods": {
            "metric": {"name": METRIC_INFLIGHT},
            "target": {"type": "AverageValue", "averageValue": str(target)},
        },
    }
