"""Holds pods to enough time to finish, and probes to asking what the hops answer."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from gateway.manifests.cluster import Workload
from gateway.manifests.documents import at
from gateway.manifests.hops import longest_s, service_names
from gateway.manifests.pod_configs import Pod
from services.runtime.checks.finding import Finding, violation, warning
from services.runtime.config import PREFIX, Config, ConfigError

LIVENESS, READINESS = "liveness", "readiness"
"""The names under which every hop answers `grpc.health.v1`."""
SLACK_S = 5.0
"""What a process needs to end after its last call."""
DEFAULT_GRACE_S = 30
_SLEEP = re.compile(r"\bsleep\s+(\d+)")


def pod_findings(pods: Iterable[Pod]) -> Iterator[Finding]:
    """Yield what is wrong with the pods of the hops; those that cannot be read are passed over."""
    for pod in pods:
        if pod.config is None:
            continue
        workload = pod.settings.workload
        try:
            yield from _listening(pod, pod.config)
            yield from _grace(workload, pod.config)
            yield from _probes(workload, pod.config)
        except ConfigError as error:
            yield violation("settings-readable", f"{pod.where}: {error}")


def _listening(pod: Pod, config: Config) -> Iterator[Finding]:
    """Look where the hop of a pod listens: its kubelet and its callers come from outside of it."""
    variable = f"{PREFIX}{pod.hop.upper()}__HOST"
    host = config.hop(pod.hop).host
    # A pod may take its own address, which nobody knows here.
    if variable not in pod.settings.unknown and not _is_outside(host):
        yield violation(
            "pods-listen",
            f"{pod.where}: it listens at {host!r}, where nobody outside of the pod reaches it, or "
            f"nothing of its own is; set {variable} to 0.0.0.0",
        )


def _is_outside(host: str) -> bool:
    try:
        return not ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _grace(workload: Workload, config: Config) -> Iterator[Finding]:
    where = workload.document.where
    grace_s = at(workload.pod, "terminationGracePeriodSeconds")
    grace_s = grace_s if isinstance(grace_s, int) else DEFAULT_GRACE_S
    before_s = _pre_stop_s(workload.container)
    longest = longest_s(workload.hop, config)
    needed_s = before_s + longest + SLACK_S
    if grace_s < needed_s:
        yield violation(
            "grace-holds-runs",
            f"{where}: terminationGracePeriodSeconds {grace_s} is less than preStop {before_s:g} s "
            f"+ the longest run {longest:.1f} s + {SLACK_S:g} s; set it to "
            f"{math.ceil(needed_s)} or lower deadline.max_deadline_s",
        )
    drain_s = config.hop(workload.hop).drain_timeout_s
    if drain_s < longest:
        yield violation(
            "drain-holds-runs",
            f"{where}: {workload.hop}.drain_timeout_s {drain_s:g} s cuts runs at every rollout, "
            f"which may last {longest:.1f} s; set SIXHOP_{workload.hop.upper()}__DRAIN_TIMEOUT_S "
            f"to {math.ceil(longest)}",
        )
    if before_s == 0:
        yield warning(
            "pods-leave-first",
            f"{where}: without a preStop the pod refuses calls before its callers know that it "
            "leaves; add lifecycle.preStop.sleep.seconds: 5",
        )


def _pre_stop_s(container: Mapping[str, Any]) -> float:
    stop = at(container, "lifecycle", "preStop")
    slept = at(stop, "sleep", "seconds")
    if isinstance(slept, int):
        return float(slept)
    command = at(stop, "exec", "command")
    if isinstance(command, list):
        found = _SLEEP.search(" ".join(map(str, command)))
        return float(found.group(1)) if found else 0.0
    return 0.0


def _probes(workload: Workload, config: Config) -> Iterator[Finding]:
    allowed = {
        "readinessProbe": {READINESS, *service_names(workload.hop)},
        "livenessProbe": {LIVENESS},
        "startupProbe": {READINESS, LIVENESS, *service_names(workload.hop)},
    }
    for name, services in allowed.items():
        probe = workload.container.get(name)
        if isinstance(probe, Mapping):
            yield from _probe(workload, name, probe, services, config)
        elif name == "readinessProbe":
            yield violation(
                "probes-by-name",
                f"{workload.document.where}: without a readinessProbe calls come before the hop "
                f"can work; add grpc: {{port: {config.port(workload.hop)}, service: {READINESS}}}",
            )
        elif name == "livenessProbe":
            yield warning(
                "probes-by-name",
                f"{workload.document.where}: without a livenessProbe a process that hangs stays; "
                f"add grpc: {{port: {config.port(workload.hop)}, service: {LIVENESS}}}",
            )


def _probe(
    workload: Workload,
    name: str,
    probe: Mapping[str, Any],
    services: set[str],
    config: Config,
) -> Iterator[Finding]:
    where, wanted = workload.document.where, config.port(workload.hop)
    asked = probe.get("grpc")
    if not isinstance(asked, Mapping):
        yield warning(
            "probes-by-name",
            f"{where}: {name} does not ask by gRPC, which alone tells {READINESS} from "
            f"{LIVENESS}; use grpc: {{port: {wanted}, service: {sorted(services)[0]}}}",
        )
        return
    if str(asked.get("service")) not in services:
        said = asked.get("service")
        what = f"asks for {said!r}" if said else "names no service"
        yield violation(
            "probes-by-name",
            f"{where}: {name} {what}, and must ask for {' or '.join(sorted(services))}"
            + ("; a hop that drains would be killed" if name == "livenessProbe" else ""),
        )
    if asked.get("port") != wanted:
        yield violation(
            "probes-by-name",
            f"{where}: {name} asks at port {asked.get('port')!r}, and {workload.hop} listens on "
            f"{wanted}; a gRPC probe takes a number and no name",
        )
