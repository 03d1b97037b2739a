"""Holds manifests to the configuration that they run."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.manifests.absent import absent_findings
from gateway.manifests.access import access_findings
from gateway.manifests.attached import attached_findings
from gateway.manifests.callees import callee_findings
from gateway.manifests.cluster import Cluster, ignored
from gateway.manifests.documents import Reading
from gateway.manifests.doors import door_findings
from gateway.manifests.edge import edge_findings
from gateway.manifests.embedded import embedded_in, several
from gateway.manifests.hosts import host_findings
from gateway.manifests.meshed import mesh_findings
from gateway.manifests.names import (
    account_findings,
    duplicate_findings,
    name_findings,
    namespace_findings,
)
from gateway.manifests.patches import patch_findings
from gateway.manifests.pod_configs import Pod, config_findings
from gateway.manifests.pods import pod_findings
from gateway.manifests.pools import pool_findings
from gateway.manifests.routes import route_findings
from gateway.manifests.scaling import scaling_findings
from gateway.manifests.selectors import selector_findings
from gateway.manifests.values import value_findings
from services.runtime.checks.finding import Finding, Severity
from services.runtime.checks.tree import Tree, read_tree
from services.runtime.config import Config

RULES = {
    "stream-not-cut": "no proxy cuts a stream while its run may last",
    "route-above-ladder": "every route waits for an answer as long as its caller",
    "route-length": "every length of a route is one",
    "route-below-caller": "the mesh ends an inner call before the one around it",
    "mesh-repeats-nothing": "the mesh repeats nothing that has arrived",
    "pool-holds-bulkhead": "every pool holds what the bulkheads let pass",
    "pool-multiplexes": "calls share connections",
    "connect-fits": "a pod that cannot be reached is known before the wait for it is over",
    "idle-holds-heartbeats": "three heartbeats come within every limit on silence",
    "pods-ejected": "a pod that fails is ejected",
    "small-pool-ejects": "of a small pool one pod may be ejected, and not all",
    "grace-holds-runs": "a pod has the time to finish its runs",
    "drain-holds-runs": "a hop finishes its runs when it is told to stop",
    "pods-leave-first": "a pod leaves before it refuses",
    "pods-listen": "every pod listens where its callers come to",
    "probes-by-name": "every probe asks for what it means",
    "grpc-named": "every port says that it is gRPC",
    "pods-selected": "every selector selects what it is meant for",
    "target-port-there": "every port of a service leads to one of its pods",
    "hosts-there": "every rule of the mesh is for a host that is there",
    "routes-attached": "every route from outside hangs on a listener that takes it",
    "edge-keeps-orders": "nobody outside comes to what is for operators",
    "edge-right-door": "every route from outside comes to the door that speaks as it does",
    "pods-in-mesh": "the pods are in the mesh whose rules are written",
    "callees-there": "every hop finds those that it calls",
    "accounts-there": "every pod runs as an account that is there",
    "mesh-is-call-graph": "the mesh lets through the edges of the call graph, and no other call",
    "network-is-call-graph": "the network connects the edges of the call graph, and no other pods",
    "closed-by-default": "whoever is not spoken of may not call",
    "pods-scaled": "every hop grows with its load, as the others do",
    "scaler-scales": "every scaler scales what is there",
    "budget-holds": "pods leave one by one, and can leave",
    "memory-kept": "a pod keeps the memory that it was promised",
    "values-taken": "the cluster takes every value",
    "names-taken": "the cluster takes every name",
    "objects-once": "every object stands once",
    "namespaces-said": "every object says where it lies, or none does",
    "patches-hit": "every patch of a kustomization changes something",
    "settings-readable": "what the manifests configure can be read",
    "configuration-read": "every pod reads the configuration that is meant for it",
    "settings-accepted": "every hop would start with the settings of its pod",
    "one-configuration": "there is one configuration",
    "manifests-whole": "what is checked is what will be applied",
}
"""What is looked at, by the name of the rule, and what holds when nothing is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestReport:
    """Tells what was found in manifests."""

    file_count: int
    document_count: int
    hops: tuple[str, ...]
    """The hops that the manifests run, each named once."""
    ignored: dict[str, int]
    """Objects that nobody looks at, by kind."""
    unreadable: tuple[str, ...]
    findings: tuple[Finding, ...]


def check_manifests(
    reading: Reading, cluster: Cluster, pods: tuple[Pod, ...], config: Config
) -> ManifestReport:
    """Return what is found in manifests.

    Args:
        reading: the manifests.
        cluster: the same, sorted.
        pods: what runs there.
        config: what they are compared with.

    Raises:
        ConfigError: the section of a policy cannot be read.
    """
    found = tuple(dict.fromkeys(_findings(reading, cluster, pods, read_tree(config))))
    return ManifestReport(
        file_count=reading.file_count,
        document_count=len(reading.documents),
        hops=tuple(dict.fromkeys(workload.hop for workload in cluster.workloads)),
        ignored=ignored(reading.documents),
        unreadable=reading.unreadable,
        findings=found,
    )


def _findings(
    reading: Reading, cluster: Cluster, pods: tuple[Pod, ...], tree: Tree
) -> Iterator[Finding]:
    if reading.kustomized:
        yield Finding(
            rule="manifests-whole",
            severity=Severity.WARNING,
            text=(
                "the folder holds kustomizations, and what they make differs from their files; "
                "check that: kubectl kustomize FOLDER | sixhop check --k8s -"
            ),
        )
    if not cluster.workloads and not reading.unreadable:
        yield Finding(
            rule="manifests-whole",
            severity=Severity.VIOLATION,
            text=(
                "no object here runs a hop of the suite, so nothing has been checked; name the "
                "folder that holds them, or see what the command before has written"
            ),
        )
    yield from config_findings(pods, reading.documents)
    yield from several(embedded_in(reading.documents))
    yield from route_findings(cluster, tree)
    yield from pool_findings(cluster, tree)
    yield from pod_findings(pods)
    yield from door_findings(cluster, tree.config)
    yield from edge_findings(cluster, tree.config)
    yield from name_findings(cluster)
    yield from value_findings(cluster)
    # What the files of a kustomization say of each other holds once it has put them together.
    if reading.kustomized:
        yield from patch_findings(reading.documents)
    else:
        yield from _together(reading, cluster, pods, tree.config)


def _together(
    reading: Reading, cluster: Cluster, pods: tuple[Pod, ...], config: Config
) -> Iterator[Finding]:
    yield from duplicate_findings(reading.documents)
    yield from namespace_findings(reading.documents)
    yield from selector_findings(cluster)
    yield from account_findings(cluster)
    yield from host_findings(cluster)
    yield from callee_findings(cluster, pods)
    yield from attached_findings(cluster)
    yield from mesh_findings(cluster, config)
    yield from absent_findings(cluster)
    yield from scaling_findings(cluster)
    yield from access_findings(cluster, config)
