"""Holds pods to being in the mesh whose rules are written for them."""

from collections.abc import Iterator, Mapping

from gateway.manifests.cluster import Cluster, Workload
from gateway.manifests.documents import Document, at
from gateway.manifests.hops import hop_of
from gateway.manifests.labels import labels_of, namespace_of, pod_labels, selects
from services.runtime.checks.finding import Finding, violation, warning

_INJECT, _REVISION, _AMBIENT = "sidecar.istio.io/inject", "istio.io/rev", "istio.io/dataplane-mode"
_NAMESPACE_INJECT = "istio-injection"
_ROOT = "istio-system"
_MUTUAL = ("ISTIO_MUTUAL", "MUTUAL")


def mesh_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what keeps the rules of a mesh from the pods that they are for."""
    if not cluster.in_mesh:
        return
    namespaces = {each.name: each for each in cluster.of_kind("Namespace")}
    for workload in cluster.workloads:
        yield from _inside(workload, namespaces)
        if any(True for _ in cluster.of_kind("AuthorizationPolicy")):
            yield from _known(workload, cluster)
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
    put_in = own.get(_INJECT) == "true" or _REVISION in own
    named = around.get(_NAMESPACE_INJECT) == "enabled" or _REVISION in around
    ambient = "ambient" in (own.get(_AMBIENT), around.get(_AMBIENT))
    if own.get(_INJECT) == "false" or (namespace and not (put_in or named or ambient)):
        yield violation(
            "pods-in-mesh",
            f"{document.where}: nothing puts its pods into the mesh, so no rule of the mesh holds "
            f"for them; give namespace {namespace_of(document)} the label "
            f"{_NAMESPACE_INJECT}: enabled",
        )


def _known(workload: Workload, cluster: Cluster) -> Iterator[Finding]:
    """Look for what makes callers show who they are: policies go by it."""
    document = workload.document
    holding = [
        each
        for each in cluster.of_kind("PeerAuthentication")
        if namespace_of(each) in (namespace_of(document), _ROOT)
        and (
            each.at("spec", "selector") is None
            or selects(each.at("spec", "selector"), pod_labels(document))
        )
    ]
    # The one with the most to say about the pods is the one that holds.
    holding.sort(key=lambda each: (namespace_of(each) != _ROOT, bool(each.at("spec", "selector"))))
    if not holding or at(holding[-1].body, "spec", "mtls", "mode") != "STRICT":
        yield warning(
            "pods-in-mesh",
            f"{document.where}: who is not of the mesh may call it in the clear; add a "
            "PeerAuthentication with mtls.mode: STRICT",
        )
