"""Holds objects to names that the cluster takes, each once, and to accounts that are there."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, items
from gateway.manifests.labels import namespace_of
from services.runtime.checks.finding import Finding, violation

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_PORT = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
MAX_LABEL, MAX_SUBDOMAIN, MAX_PORT = 63, 253, 15
"""How many characters the cluster takes."""
_SHORT_KINDS = frozenset({"Service", "Namespace"})
"""Their names become parts of a host name."""
_FREE_KINDS = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
"""Their names may hold colons."""
_ANYWHERE = frozenset(
    "ClusterRole ClusterRoleBinding CustomResourceDefinition GatewayClass IngressClass "
    "Kustomization MeshConfig Namespace PersistentVolume PriorityClass StorageClass "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding".split()
)
"""Lie in no namespace."""
_DEFAULT_ACCOUNT = "default"


def name_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield what is wrong with names, and what is named and not there."""
    for document in cluster.documents:
        yield from _own_name(document)
        yield from _labels(document)
    for document in cluster.of_kind("Service"):
        ports = items(document.at("spec"), "ports")
        yield from _unique(document, "port", ports)
        if len(ports) > 1 and any(not port.get("name") for port in ports):
            yield violation(
                "names-taken",
                f"{document.where}: of several ports each needs a name, and one has none",
            )
        for port in ports:
            yield from _name(document, "port", port.get("name"), _LABEL, MAX_LABEL)
    for document in cluster.of_kind(*WORKLOAD_KINDS):
        yield from _containers(document)


def account_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the pods that run as nobody."""
    for document in cluster.of_kind(*WORKLOAD_KINDS):
        yield from _account(document, cluster)


def duplicate_findings(documents: Iterable[Document]) -> Iterator[Finding]:
    """Yield the objects that stand twice: which of them the cluster would keep is an accident."""
    seen: dict[tuple[str, ...], Document] = {}
    for document in documents:
        group = str(document.at("apiVersion") or "").rpartition("/")[0]
        key = (group, document.kind, namespace_of(document), document.name)
        first = seen.setdefault(key, document)
        if first is not document:
            yield violation(
                "objects-once",
                f"{document.where}: it stands at {first.file}:{first.line} as well, and the later "
                "one would replace it; take one out, or make it a patch",
            )


def namespace_findings(documents: Iterable[Document]) -> Iterator[Finding]:
    """Yield the objects that name no namespace beside others that do: they would lie elsewhere."""
    inside = [each for each in documents if each.kind not in _ANYWHERE]
    named = [each for each in inside if namespace_of(each)]
    for document in inside if named else ():
        if not namespace_of(document):
            yield violation(
                "namespaces-said",
                f"{document.where}: it names no namespace, and {named[0].kind} {named[0].name} is "
                f"in {namespace_of(named[0])}, so it would be applied to another; name one",
            )


def _own_name(document: Document) -> Iterator[Finding]:
    if document.kind in _FREE_KINDS or document.at("metadata", "name") is None:
        return
    short = document.kind in _SHORT_KINDS
    pattern, most = (_LABEL, MAX_LABEL) if short else (_SUBDOMAIN, MAX_SUBDOMAIN)
    yield from _name(document, "name", document.name, pattern, most)


def _labels(document: Document) -> Iterator[Finding]:
    places: list[Any] = [
        document.at("metadata", "labels"),
        document.at("spec", "template", "metadata", "labels"),
    ]
    for labels in places:
        for key, value in labels.items() if isinstance(labels, Mapping) else ():
            said = f"label {key}"
            if not isinstance(value, str):
                yield violation(
                    "names-taken", f"{document.where}: {said} is {value!r}, not text; quote it"
                )
            else:
                yield from _name(document, said, value, _VALUE, MAX_LABEL)


def _containers(document: Document) -> Iterator[Finding]:
    spec = document.at("spec", "template", "spec")
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    yield from _unique(document, "container", containers)
    for container in containers:
        yield from _name(document, "container", container.get("name"), _LABEL, MAX_LABEL)
        ports = items(container, "ports")
        yield from _unique(document, "port", ports)
        for port in ports:
            yield from _name(document, "port", port.get("name"), _PORT, MAX_PORT)


def _account(document: Document, cluster: Cluster) -> Iterator[Finding]:
    name = account_of(document)
    there = [
        each
        for each in cluster.of_kind("ServiceAccount")
        if each.name == name and namespace_of(each) == namespace_of(document)
    ]
    if name != _DEFAULT_ACCOUNT and not there:
        yield violation(
            "accounts-there",
            f"{document.where}: it runs as ServiceAccount {name}, which is not here, so no pod of "
            "it would start; add the account, or name one that is there",
        )


def account_of(maker: Document) -> str:
    """Return the ServiceAccount of the pods of a workload."""
    return str(maker.at("spec", "template", "spec", "serviceAccountName") or _DEFAULT_ACCOUNT)


def _name(
    document: Document, what: str, name: Any, pattern: re.Pattern[str], most: int
) -> Iterator[Finding]:
    if name is None:
        return
    text = str(name)
    if len(text) > most:
        yield violation(
            "names-taken",
            f"{document.where}: {what} {text!r} has {len(text)} characters, and the cluster takes "
            f"{most}; shorten it",
        )
    elif not pattern.fullmatch(text):
        yield violation(
            "names-taken",
            f"{document.where}: {what} {text!r} is refused by the cluster; use letters"
            f"{'' if pattern is _VALUE else ' in lower case'}, digits and dashes, and end with a "
            "letter or a digit",
        )


def _unique(document: Document, what: str, named: list[Mapping[str, Any]]) -> Iterator[Finding]:
    names = [each.get("name") for each in named if each.get("name") is not None]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield violation(
            "names-taken", f"{document.where}: {what} {name!r} stands twice; rename one"
        )
