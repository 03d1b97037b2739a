"""Holds what the pods call to hosts that are there, and that their proxies know."""

from collections.abc import Iterable, Iterator

from gateway.manifests.cluster import Cluster
from gateway.manifests.documents import Document, at, items, texts
from gateway.manifests.hosts import is_inside, service_of
from gateway.manifests.labels import contains, namespace_of, pod_labels
from gateway.manifests.pod_configs import Pod
from services.runtime.checks.finding import Finding, violation
from services.runtime.config import Config
from services.runtime.topology import DOMAIN, EDGES

_LOCAL = ("127.0.0.1", "localhost", "::1")
_DOMAIN_OF_CLUSTER = "svc.cluster.local"


def callee_findings(cluster: Cluster, pods: Iterable[Pod]) -> Iterator[Finding]:
    """Yield the callees that a pod would not reach where its configuration says they are.

    Only hops that run here are looked for: others may be anywhere.
    """
    for pod in pods:
        caller = pod.settings.workload.document
        callees = {each.hop for each in cluster.workloads if each.document is not caller}
        for edge in EDGES:
            if pod.config is None or edge.caller != pod.hop or edge.callee not in callees:
                continue
            for address in _addresses(edge.callee, pod.config):
                yield from _there(pod, edge.callee, address, cluster)


def _addresses(hop: str, config: Config) -> tuple[str, ...]:
    if not config.runs(hop):
        return ()
    return config.replicas(hop) if hop == DOMAIN else (config.address(hop),)


def _there(pod: Pod, hop: str, address: str, cluster: Cluster) -> Iterator[Finding]:
    host, _, port = address.rpartition(":")
    caller = pod.settings.workload.document
    if host in _LOCAL:
        yield violation(
            "callees-there",
            f"{pod.where}: it calls {hop} at {address}, which is its own pod; set {hop}.host to "
            "the name of its Service",
        )
        return
    service = service_of(caller, host, cluster)
    if service is None:
        if is_inside(host) and any(True for _ in cluster.of_kind("Service")):
            yield violation(
                "callees-there",
                f"{pod.where}: it calls {hop} at {address}, and no Service here is called "
                f"{host}; set {hop}.host to the name of its Service",
            )
        return
    ports = [str(each.get("port")) for each in items(service.at("spec"), "ports")]
    if port not in ports:
        yield violation(
            "callees-there",
            f"{pod.where}: it calls {hop} at {address}, and {service.where} has "
            f"{', '.join(ports)}; give both one port",
        )
    yield from _known(pod, hop, service, cluster)


def _known(pod: Pod, hop: str, service: Document, cluster: Cluster) -> Iterator[Finding]:
    caller = pod.settings.workload.document
    sidecar = _sidecar(caller, cluster)
    if sidecar is None:
        return
    name = f"{service.name}.{namespace_of(service) or 'default'}.{_DOMAIN_OF_CLUSTER}"
    egress = items(sidecar.at("spec"), "egress")
    hosts = [host for each in egress for host in texts(each, "hosts")]
    if egress and not any(_takes(host, name, service, sidecar) for host in hosts):
        yield violation(
            "callees-there",
            f"{sidecar.where}: the proxies of {caller.name} do not know {name}, where it calls "
            f"{hop}; add ./{name} to egress.hosts",
        )


def _sidecar(caller: Document, cluster: Cluster) -> Document | None:
    """Return what the proxies of a workload are told: its own, or what holds for the namespace."""
    there = [
        each
        for each in cluster.of_kind("Sidecar")
        if namespace_of(each) == namespace_of(caller)
        and contains(pod_labels(caller), at(each.at("spec"), "workloadSelector", "labels") or {})
    ]
    return max(there, key=lambda each: bool(each.at("spec", "workloadSelector")), default=None)


def _takes(host: str, name: str, service: Document, sidecar: Document) -> bool:
    namespace, _, pattern = host.partition("/")
    there = namespace_of(service)
    if namespace not in ("*", there) and not (namespace == "." and there == namespace_of(sidecar)):
        return False
    return pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:]))
