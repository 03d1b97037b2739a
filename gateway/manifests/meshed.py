"""Holds pods to being in the mesh whose rules are written for them."""

from collections.abc import Iterator, Mapping

from gateway.manifests.authorization import ROOT_NAMESPACE
from gateway.manifests.cluster import (
    AMBIENT,
    INJECT,
    NAMESPACE_INJECT,
    REVISION,
    Cluster,
    Workload,
)
from gateway.manifests.documents import Document, table
from gateway.manifests.hops import hop_of
from gateway.manifests.labels import labels_of, namespace_of, pod_labels, selects
from services.runtime.checks.finding import Finding, violation
from services.runtime.config import Config

_MUTUAL = ("ISTIO_MUTUAL", "MUTUAL")


def mesh_findings(cluster: Cluster, config: Config) -> Iterator[Finding]:
    """Yield what keeps the rules of a mesh from the pods that they are for."""
    if not cluster.in_mesh:
        return
    namespaces = {each.name: each for each in cluster.of_kind("Namespace")}
    for workload in cluster.workloads:
        yield from _inside(workload, namespaces)
        yield from _known(workload, cluster, config)
    for rule in cluster.of_kind("DestinationRule"):
        mode = rule.at("spec", "trafficPolicy", "tls", "mode")
        if hop_of(str(rule.at("spec", "host"))) is not None and mode not in (None, *_MUTUAL):
            yield violation(
                "pods-in-mesh",
                f"{rule.where}: with tls.mode {mode} calls come from nobody, and are refused where "
                "only the mesh's own are taken; leave tls out",
            )


def _inside(workload: Workload, namespaces: Mapping[str, Document]) -> Iterator[Finding]:
    document = workload.document
    namespace = namespaces.get(namespace_of(document))
    own = {**labels_of(document.body, "spec", "template")}
    around = labels_of(namespace.body) if namespace is not None else {}
    put_in = own.get(INJECT) == "true" or REVISION in own
    named = around.get(NAMESPACE_INJECT) == "enabled" or REVISION in around
    ambient = "ambient" in (own.get(AMBIENT), around.get(AMBIENT))
    if own.get(INJECT) == "false" or (namespace and not (put_in or named or ambient)):
        yield violation(
            "pods-in-mesh",
            f"{document.where}: nothing puts its pods into the mesh, so no rule of the mesh holds "
            f"for them; give namespace {namespace_of(document)} the label "
            f"{NAMESPACE_INJECT}: enabled",
        )


def _known(workload: Workload, cluster: Cluster, config: Config) -> Iterator[Finding]:
    """Look for what makes callers show who they are: policies go by it."""
    document = workload.document
    holding = [
        each
        for each in cluster.of_kind("PeerAuthentication")
        if namespace_of(each) in (namespace_of(document), ROOT_NAMESPACE)
        and (
            each.at("spec", "selector") is None
            or selects(each.at("spec", "selector"), pod_labels(document))
        )
    ]
    # The one with the most to say about the pods is the one that holds.
    holding.sort(
        key=lambda each: (namespace_of(each) != ROOT_NAMESPACE, bool(each.at("spec", "selector")))
    )
    if not holding or _mode(holding[-1], config.port(workload.hop)) != "STRICT":
        yield violation(
            "pods-in-mesh",
            f"{document.where}: who is not of the mesh may call it in the clear; add a "
            "PeerAuthentication with mtls.mode: STRICT",
        )


def _mode(document: Document, port: int) -> object:
    """Return what holds at a port: what is said of it, or else of all."""
    ports = {
        str(number): mode for number, mode in table(document.body, "spec", "portLevelMtls").items()
    }
    return table(ports, str(port)).get("mode", document.at("spec", "mtls", "mode"))
