"""Tests that what the cluster refuses, or takes and never uses, is found in manifests."""

from pathlib import Path

import pytest

from services.runtime.checks.finding import Severity
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import (
    SUITE,
    assert_found_alone,
    broken,
    checked,
    examined,
    rules_found,
)

V, W = Severity.VIOLATION, Severity.WARNING
OWN = "  selector: {matchLabels: {app: routing}}\n  template"
POD = "labels: {app: routing, part-of: sixhop}"
MOST = "  maxUnavailable: 1\n"
ROUTE = "    - route: [{destination: {host: routing}}]\n"
ATTEMPTS = 'attempts: 1, retryOn: "connect-failure,refused-stream"'
PROBE = "readinessProbe: {grpc: {port: 7401, service: readiness}}"
SPREAD = "labelSelector: {matchLabels: {app: routing}}"
STRICT = "metadata: {name: strict}\n"
STRICT_AGAIN = f"---\napiVersion: security.istio.io/v1beta1\nkind: PeerAuthentication\n{STRICT}"
METRICS = "name: metrics, containerPort"
PRE_STOP = "preStop: {sleep: {seconds: 5}"
PERCENT = "maxEjectionPercent: 34"
CASES = [
    # Selectors.
    (V, "pods-selected", (OWN, OWN.replace("routing", "other")), "does not select its own pods"),
    (V, "pods-selected", (SPREAD, SPREAD.replace("routing", "x")), "they spread nothing"),
    (V, "pods-selected", (SPREAD, "minDomains: 1"), "spread nothing"),
    (
        V,
        "pods-selected",
        ("selector: {app: routing}\n", "selector: {app: routin}\n"),
        "every call to it is refused",
    ),
    (V, "pods-selected", ("values: [routing]", "values: [other]"), "which no pod here has"),
    (V, "target-port-there", ("targetPort: grpc", "targetPort: gprc"), "leads to 'gprc'"),
    (
        V,
        "target-port-there",
        ("{name: metrics, port: 9090}", "{name: metrics, port: 9091}"),
        "it opens grpc (7401), metrics (9090)",
    ),
    # Hosts.
    (
        V,
        "hosts-there",
        ("  host: routing\n", "  host: routin.sixhop.svc.cluster.local\n"),
        "no Service here is called",
    ),
    (
        V,
        "hosts-there",
        ("hosts: [tool]", "hosts: [tol]"),
        "is called tol, so nothing holds what it says; there are",
    ),
    (
        V,
        "hosts-there",
        (ROUTE, ROUTE.replace("host: routing", "host: routing, subset: v2")),
        "the subset 'v2'",
    ),
    (
        V,
        "hosts-there",
        (ROUTE, ROUTE.replace("host: routing", "host: routing, port: {number: 7402}")),
        "port 7402 of routing, which has 7401, 9090",
    ),
    (
        V,
        "accounts-there",
        ("serviceAccountName: routing", "serviceAccountName: rooting"),
        "no pod of it would start",
    ),
    # Scaling.
    (
        V,
        "scaler-scales",
        ("kind: Deployment, name: routing}", "kind: StatefulSet, name: routing}"),
        "name one of Deployment routing",
    ),
    (
        V,
        "scaler-scales",
        ("name: cpu, container: app", "name: cpu, container: main"),
        "has istio-proxy, app",
    ),
    (V, "scaler-scales", ("requests: {cpu: 250m, ", "requests: {"), "share of the cpu"),
    (V, "scaler-scales", ("maxReplicas: 9", "maxReplicas: 2"), "minReplicas 3 is above"),
    (W, "scaler-scales", (OWN, "  replicas: 3\n" + OWN), "undoes what"),
    (V, "budget-holds", (MOST, MOST + "  minAvailable: 1\n"), "has both"),
    (V, "budget-holds", (MOST, "  minAvailable: 3\n"), "no node can be drained"),
    (V, "budget-holds", (MOST, "  minAvailable: 90%\n"), "of the 3 pods"),
    (V, "budget-holds", (MOST, "  maxUnavailable: 0\n"), "no node can be drained"),
    (W, "budget-holds", (MOST, "  maxUnavailable: 70%\n"), "all 3 pods"),
    (
        W,
        "memory-kept",
        ("memory: 0.5Gi", "memory: 1Gi"),
        "requests 512Mi of memory and may take 1Gi",
    ),
    (W, "memory-kept", (", limits: {memory: 0.5Gi}", ""), "only one of a request and a limit"),
    # Values.
    (
        V,
        "values-taken",
        ("imagePullPolicy: IfNotPresent", "imagePullPolicy: ifNotPresent"),
        "say Always or IfNotPresent or Never",
    ),
    (V, "values-taken", ("ScheduleAnyway", "ScheduleAnyWay"), "whenUnsatisfiable"),
    (V, "values-taken", ("type: Utilization", "type: Utilisation"), "type 'Utilisation'"),
    (V, "values-taken", ("operator: In,", "operator: in,"), "operator 'in'"),
    (V, "values-taken", ("cpu: 250m", "cpu: 250mm"), "requests cpu '250mm' is no quantity"),
    (V, "values-taken", ("memory: 0.5Gi", "memory: 0.5GB"), "limits memory '0.5GB'"),
    (V, "values-taken", ("cpu: 250m, memory: 512Mi", "cpu: 250m, memory: 1Gi"), "above its limit"),
    (
        V,
        "values-taken",
        (PROBE, PROBE[:-1] + ", tcpSocket: {port: 7401}}"),
        "has grpc and tcpSocket",
    ),
    (
        V,
        "values-taken",
        ("service: liveness}", "service: liveness}, successThreshold: 2"),
        "takes 1 there",
    ),
    (
        V,
        "values-taken",
        (PRE_STOP, PRE_STOP + ", exec: {command: [x]}"),
        "preStop has exec and sleep",
    ),
    (
        V,
        "values-taken",
        (PERCENT, PERCENT + "\n      minHealthPercent: 101"),
        "minHealthPercent 101",
    ),
    (
        V,
        "values-taken",
        (PERCENT, PERCENT + "\n      consecutiveLocalOriginFailures: 3"),
        "leave it out",
    ),
    (V, "values-taken", (ATTEMPTS, ATTEMPTS.replace("1", "-1")), "attempts -1"),
    (
        V,
        "values-taken",
        (ATTEMPTS, ATTEMPTS.replace("1", "0")),
        "retryOn and perTryTimeout beside attempts: 0",
    ),
    (V, "values-taken", (ROUTE, ROUTE.replace("}}]", "}, weight: -1}]")), "a weight is less"),
    # Names.
    (
        V,
        "names-taken",
        (METRICS, "name: the-port-of-numbers, containerPort"),
        "has 19 characters, and the cluster takes 15",
    ),
    (V, "names-taken", (METRICS, "name: '9090', containerPort"), "is refused by the cluster"),
    (V, "names-taken", (METRICS, "name: grpc, containerPort"), "port 'grpc' stands twice"),
    (V, "names-taken", ("name: metrics, port", "port"), "each needs a name"),
    (V, "names-taken", ("metadata: {name: strict}", "metadata: {name: Strict}"), "in lower case"),
    (V, "names-taken", ("part-of: sixhop}", "part-of: six hop}"), "label part-of 'six hop'"),
    (V, "names-taken", ("part-of: sixhop}", "part-of: 6}"), "not text; quote it"),
    (V, "names-taken", ("- name: istio-proxy", "- name: app"), "container 'app' stands twice"),
    (V, "objects-once", (STRICT, STRICT + STRICT_AGAIN), "it stands at"),
]


@requirement("check:manifests")
@pytest.mark.parametrize(("severity", "rule", "change", "words"), CASES)
def test_one_wrong_line_is_found_and_told(
    severity: Severity, rule: str, change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    assert_found_alone(severity, rule, change, words, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        ("targetPort: grpc", "targetPort: 7401"),
        (MOST, "  maxUnavailable: 50%\n"),
        (MOST, "  minAvailable: 2\n"),
        ("memory: 0.5Gi", "memory: 536870912"),
        ("requests: {cpu: 250m", "requests: {cpu: .25"),
        ("operator: In, values: [routing]", "operator: Exists"),
        ("operator: In, values: [routing]", "operator: NotIn, values: [tool]"),
        (ROUTE, ROUTE.replace("host: routing", "host: routing, port: {number: 7401}")),
        ("serviceAccountName: routing\n", "serviceAccountName: default\n"),
        # What another chart installs is not here.
    ],
)  # fmt: skip
def test_what_is_as_good_is_not_found(change: tuple[str, str], tmp_path: Path) -> None:
    assert rules_found(broken(*change), tmp_path) == set()


def test_a_container_may_listen_without_declaring_it(tmp_path: Path) -> None:
    declared = "ports: [{name: grpc, containerPort: 7401}, {name: metrics, containerPort: 9090}]"
    silent = broken(declared, "tty: true")

    assert rules_found(silent, tmp_path) == {"target-port-there"}
    assert rules_found(silent.replace("targetPort: grpc", "targetPort: 7401"), tmp_path) == set()


def test_what_a_kustomization_puts_together_is_not_judged_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [suite.yaml]\n", encoding="utf-8")
    apart = SUITE.replace("kind: ServiceAccount", "kind: Other").replace(
        "  selector: {app:", "  x: {app:"
    )

    assert "accounts-there" in rules_found(apart, tmp_path)
    whole = examined(tmp_path, tmp_path)
    assert {finding.rule for finding in whole.findings} == {"manifests-whole"}


def test_an_object_that_would_lie_elsewhere_is_told(tmp_path: Path) -> None:
    elsewhere = SUITE.replace("metadata: {name: sixhop}", "metadata: {name: sixhop, namespace: a}")

    report = checked(elsewhere, tmp_path)

    assert {finding.rule for finding in report.findings} == {"namespaces-said"}
    assert len(report.findings) == report.document_count - 1
    assert "ConfigMap sixhop is in a" in report.findings[0].text


def test_what_others_install_elsewhere_has_pods_that_are_not_here(tmp_path: Path) -> None:
    here = (
        SUITE + STRICT_AGAIN.replace("strict", "more") + "spec: {selector: {matchLabels: {a: b}}}"
    )
    there = here.replace("metadata: {name: more}", "metadata: {name: more, namespace: a}")

    assert rules_found(here, tmp_path) == {"pods-selected"}
    assert rules_found(there, tmp_path) == {"namespaces-said"}
