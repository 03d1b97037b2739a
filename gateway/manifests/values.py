"""Holds values to what the cluster takes: the API server and the mesh refuse what no schema does.

The published schemas of Kubernetes have neither the words that a field may hold nor the form of a
quantity, and the limits here of Istio are those of its webhook.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.manifests.cluster import WORKLOAD_KINDS, Cluster
from gateway.manifests.documents import Document, at, items
from services.runtime.checks.finding import Finding, violation, warning

_WORDS: Mapping[str, frozenset[str]] = {
    key: frozenset(words.split())
    for key, words in {
        "imagePullPolicy": "Always IfNotPresent Never",
        "terminationMessagePolicy": "File FallbackToLogsOnError",
        "dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
        "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
        "podManagementPolicy": "OrderedReady Parallel",
        "unhealthyPodEvictionPolicy": "AlwaysAllow IfHealthyBudget",
        "sessionAffinity": "ClientIP None",
        "internalTrafficPolicy": "Cluster Local",
        "externalTrafficPolicy": "Cluster Local",
        "policyTypes": "Ingress Egress",
        "protocol": "TCP UDP SCTP",
        "selectPolicy": "Max Min Disabled",
        "seccompProfile.type": "RuntimeDefault Localhost Unconfined",
        "strategy.type": "RollingUpdate Recreate",
        "updateStrategy.type": "RollingUpdate OnDelete",
        "target.type": "Utilization Value AverageValue",
        "metrics.type": "ContainerResource External Object Pods Resource",
        "matchExpressions.operator": "In NotIn Exists DoesNotExist",
    }.items()
}
"""What a field may say, by its name, or by the one around it and its own."""
_QUANTITY = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?"
)
_QUANTITIES = frozenset({"requests", "limits", "averageValue", "sizeLimit", "divisor"})
_FACTORS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_PERCENTS = ("maxEjectionPercent", "minHealthPercent")
_CONDITIONS = frozenset(
    "5xx gateway-error reset reset-before-request connect-failure envoy-ratelimited retriable-4xx "
    "refused-stream retriable-status-codes retriable-headers http3-post-connect-failure cancelled "
    "deadline-exceeded internal resource-exhausted unavailable".split()
)
"""On what the mesh knows how to repeat."""
_GATEWAY_API = "gateway.networking.k8s.io"
"""Has schemas of its own that say all of this."""
_PROBES = ("readinessProbe", "livenessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "sleep", "tcpSocket")


def value_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield the values that would be refused, and memory that is not kept."""
    for document in cluster.documents:
        if document.kind == "VirtualService":
            yield from _repeats(document)
        elif document.kind == "DestinationRule":
            yield from _shares(document, document.at("spec"))
        elif _of_kubernetes(document):
            yield from _fields(document, document.at("spec"), "spec")
    for document in cluster.of_kind(*WORKLOAD_KINDS):
        spec = document.at("spec", "template", "spec")
        for container in (*items(spec, "containers"), *items(spec, "initContainers")):
            yield from _handlers(document, container)
            yield from _memory(document, container)


def quantity(text: Any) -> float | None:
    """Return what a quantity such as `250m`, `1.5` or `512Mi` comes to; None when it is none."""
    found = _QUANTITY.fullmatch(str(text)) if not isinstance(text, bool) else None
    if found is None:
        return None
    suffix = found.group(3) or ""
    factor = _FACTORS.get(suffix)
    if factor is None:
        return float(str(text))
    return float(str(text).removesuffix(suffix)) * factor


def _of_kubernetes(document: Document) -> bool:
    group = str(document.at("apiVersion") or "").rpartition("/")[0]
    return "." not in group or (group.endswith(".k8s.io") and group != _GATEWAY_API)


def _fields(document: Document, body: Any, parent: str) -> Iterator[Finding]:
    """Look at every field at any depth; lists are known by the name of the field that has them."""
    if isinstance(body, list):
        for each in body:
            yield from _fields(document, each, parent)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            said = value if isinstance(value, list) else [value]
            words = _WORDS.get(f"{parent}.{key}") or _WORDS.get(str(key))
            if words is not None:
                yield from _wrong_words(document, str(key), said, words)
            if key in _QUANTITIES:
                yield from _wrong_quantities(document, str(key), value)
            yield from _fields(document, value, str(key))


def _wrong_words(
    document: Document, key: str, said: list[Any], words: frozenset[str]
) -> Iterator[Finding]:
    for each in said:
        if isinstance(each, str) and each not in words:
            yield violation(
                "values-taken",
                f"{document.where}: {key} {each!r} is refused by the cluster; say "
                f"{' or '.join(sorted(words))}",
            )


def _wrong_quantities(document: Document, key: str, value: Any) -> Iterator[Finding]:
    found = value.items() if isinstance(value, Mapping) else [(key, value)]
    for name, each in found:
        if not isinstance(each, Mapping | list) and quantity(each) is None:
            yield violation(
                "values-taken",
                f"{document.where}: {key} {name} {each!r} is no quantity; write it like 250m, 2 "
                "or 512Mi",
            )


def _handlers(document: Document, container: Mapping[str, Any]) -> Iterator[Finding]:
    lifecycle = container.get("lifecycle")
    named = [(name, container.get(name)) for name in _PROBES]
    named += [(name, at(lifecycle, name)) for name in ("preStop", "postStart")]
    for name, body in named:
        if not isinstance(body, Mapping):
            continue
        handlers = [handler for handler in _HANDLERS if handler in body]
        if len(handlers) != 1:
            yield violation(
                "values-taken",
                f"{document.where}: {name} has {' and '.join(handlers) or 'no handler'}, and the "
                f"cluster takes one of {', '.join(_HANDLERS)}",
            )
        if name in _PROBES[1:] and body.get("successThreshold", 1) != 1:
            yield violation(
                "values-taken",
                f"{document.where}: {name} has successThreshold {body['successThreshold']}, and "
                "the cluster takes 1 there; leave it out",
            )


def _memory(document: Document, container: Mapping[str, Any]) -> Iterator[Finding]:
    resources = container.get("resources")
    for name in ("cpu", "memory"):
        asked, most = (at(resources, part, name) for part in ("requests", "limits"))
        asked_n, most_n = quantity(asked), quantity(most)
        where = f"{document.where}: container {container.get('name')}"
        if asked_n is not None and most_n is not None and asked_n > most_n:
            yield violation(
                "values-taken",
                f"{where} requests {asked} of {name}, which is above its limit {most}; lower it",
            )
        elif name == "memory" and (asked is None) != (most is None):
            yield warning(
                "memory-kept",
                f"{where} has only one of a request and a limit of memory; set both to one value",
            )
        elif name == "memory" and None not in (asked_n, most_n) and asked_n != most_n:
            yield warning(
                "memory-kept",
                f"{where} requests {asked} of memory and may take {most}, so a full node kills "
                "it; set both to one value",
            )


def _shares(document: Document, body: Any) -> Iterator[Finding]:
    if isinstance(body, list):
        for each in body:
            yield from _shares(document, each)
    elif isinstance(body, Mapping):
        for key, value in body.items():
            if key in _PERCENTS and isinstance(value, int) and not 0 <= value <= 100:
                yield violation(
                    "values-taken", f"{document.where}: {key} {value} is not between 0 and 100"
                )
            yield from _shares(document, value)
        if "consecutiveLocalOriginFailures" in body and not body.get(
            "splitExternalLocalOriginErrors"
        ):
            yield violation(
                "values-taken",
                f"{document.where}: consecutiveLocalOriginFailures means nothing without "
                "splitExternalLocalOriginErrors, and is refused; leave it out",
            )


def _repeats(document: Document) -> Iterator[Finding]:
    for number, route in enumerate(items(document.at("spec"), "http"), 1):
        where = f"{document.where}, route {number}"
        retries = at(route, "retries")
        attempts = at(retries, "attempts")
        if isinstance(attempts, int) and attempts < 0:
            yield violation("values-taken", f"{where}: attempts {attempts} is less than none")
        beside = [key for key in ("retryOn", "perTryTimeout") if at(retries, key) is not None]
        if attempts == 0 and beside:
            yield violation(
                "values-taken",
                f"{where}: {' and '.join(beside)} beside attempts: 0 is refused; leave it out",
            )
        for word in str(at(retries, "retryOn") or "").split(","):
            word = word.strip()
            if word and word not in _CONDITIONS and not word.isdigit():
                yield violation(
                    "values-taken", f"{where}: retryOn {word!r} is no condition that Envoy knows"
                )
        weights = [each.get("weight") for each in items(route, "route")]
        if any(isinstance(each, int) and each < 0 for each in weights):
            yield violation("values-taken", f"{where}: a weight is less than none")
