"""Tells what a selector selects, as the cluster does."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, at, items, table, texts

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Every namespace has it, with its name as the value."""


def namespace_of(document: Document) -> str:
    """Return the namespace of an object; empty when it names none."""
    return str(document.at("metadata", "namespace") or "")


def labels_of(body: Any, *keys: str) -> Mapping[str, str]:
    """Return the labels under these keys; none when there are no such labels."""
    found = at(body, *keys, "metadata", "labels")
    return found if isinstance(found, Mapping) else {}


def pod_labels(workload: Document) -> Mapping[str, str]:
    """Return the labels of the pods that a workload makes."""
    return labels_of(workload.body, "spec", "template")


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Return whether a selector (`matchLabels`, `matchExpressions`) takes what has these labels.

    An empty selector takes everything; no selector at all takes nothing.
    """
    if not isinstance(selector, Mapping):
        return False
    return contains(labels, table(selector, "matchLabels")) and all(
        _meets(labels, each) for each in items(selector, "matchExpressions")
    )


def contains(labels: Mapping[str, str], wanted: Any) -> bool:
    """Return whether all the wanted labels are there."""
    return isinstance(wanted, Mapping) and all(
        labels.get(key) == value for key, value in wanted.items()
    )


def _meets(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    key, values = str(expression.get("key")), texts(expression, "values")
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return True  # An operator that the cluster refuses is told where values are.


def namespace_labels(name: str, namespaces: Iterable[Document]) -> dict[str, str]:
    """Return the labels of a namespace: its name, and what is written, where that is here."""
    found = next((each for each in namespaces if each.name == name), None)
    labels = {} if found is None else labels_of(found.body)
    return {**labels, NAMESPACE_LABEL: name}


def pod_makers(cluster: Cluster, namespace: str) -> Iterator[Document]:
    """Yield what makes pods in a namespace: hops and all else."""
    for document in cluster.of_kind(*WORKLOAD_KINDS):
        if namespace_of(document) == namespace:
            yield document
