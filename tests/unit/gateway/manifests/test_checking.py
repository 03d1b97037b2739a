"""Tests that each thing that is wrong in manifests is found, and nothing else."""

from pathlib import Path

import pytest

from gateway.manifests.checking import RULES
from services.runtime.checks.finding import Severity
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import (
    SUITE,
    assert_found_alone,
    broken,
    checked,
    rules_found,
)
from tests.unit.gateway.manifests.test_objects import CASES as OBJECT_CASES

V, W = Severity.VIOLATION, Severity.WARNING
ROUTING = "    - route: [{destination: {host: routing}}]\n"
QUIET_MESH = (
    "---\nkind: IstioOperator\nmetadata: {name: mesh}\n"
    "spec: {meshConfig: {defaultHttpRetryPolicy: {attempts: 0}}}\n"
)
GATEWAY_ROUTE = """\
      retries: {attempts: 0}
---
apiVersion: v1
kind: Service
metadata: {name: gateway}
spec: {ports: [{name: grpc, port: 7400}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: gateway}
spec:
  hosts: [gateway]
  http:
    - route: [{destination: {host: gateway}}]
      timeout: 120s
"""
LEVEL = "{name: SIXHOP_LOG__LEVEL, value: warning}"
CASES = [
    # Routes.
    (V, "stream-not-cut", (ROUTING, ROUTING + "      timeout: 15s\n"), "15 s cuts the stream of"),
    (V, "stream-not-cut", (ROUTING, ROUTING + "      timeout: 114s\n"), "may run for 115.0 s"),
    (
        V,
        "stream-not-cut",
        ("retries: {attempts: 0}\n---\napiVersion: networking.istio.io/v1\nkind: VirtualService",
         "retries: {attempts: 1, retryOn: connect-failure, perTryTimeout: 25s}\n---\n"
         "apiVersion: networking.istio.io/v1\nkind: VirtualService"),
        "perTryTimeout 25 s cuts the stream of /sixhop.routing.v1.RoutingService/Route",
    ),
    (V, "route-above-ladder", ("timeout: 21s", "timeout: 19s"), "19 s is less than the 19.9 s"),
    (V, "route-above-ladder", ("perTryTimeout: 20s", "perTryTimeout: 8s"), "perTryTimeout 8 s"),
    (
        V,
        "route-below-caller",
        (ROUTING, ROUTING + "      timeout: 120s\n" + GATEWAY_ROUTE),
        "timeout 120 s of /sixhop.routing.v1.RoutingService/Route is not below the 120 s of",
    ),
    (V, "route-length", ("timeout: 21s", "timeout: 0s"), "is refused by the cluster"),
    (V, "route-length", ("timeout: 21s", "timeout: 21"), "21 is no length like 30s"),
    (V, "mesh-repeats-nothing", ('"connect-failure,refused-stream"', "5xx"), "1 retries on 5xx"),
    (
        V,
        "mesh-repeats-nothing",
        ('attempts: 1, retryOn: "connect-failure,refused-stream", perTryTimeout: 20s',
         "attempts: 3"),
        "a call comes to 4.4 attempts, and 1.2 are allowed",
    ),
    (
        V,
        "mesh-repeats-nothing",
        ("    - route: [{destination: {host: tool.sixhop.svc.cluster.local}}]\n"
         "      retries: {attempts: 0}\n",
         "    - route: [{destination: {host: tool.sixhop.svc.cluster.local}}]\n"),
        "route 2: retries are left out",
    ),
    (
        V,
        "mesh-repeats-nothing",
        ("hosts: [routing]\n  http:\n" + ROUTING, "hosts: [routing]\n  http:\n    - route: []\n"),
        "no VirtualService leads to routing",
    ),
    # Pools.
    (V, "pool-holds-bulkhead", ("http2MaxRequests: 64", "http2MaxRequests: 63"), "64 permits"),
    (V, "stream-not-cut", ("idleTimeout: 1h", "maxConnectionDuration: 60s"), "60 s cuts runs"),
    (W, "pool-multiplexes", ("idleTimeout: 30s", "maxRequestsPerConnection: 1"), "leave it out"),
    (V, "connect-fits", ("connectTimeout: 250ms", "connectTimeout: 5s"), "connectTimeout 5 s"),
    (V, "connect-fits", ("connectTimeout: 250ms, ", ""), "connectTimeout is left out: 10 s"),
    (V, "idle-holds-heartbeats", ("idleTimeout: 1h", "idleTimeout: 2s"), "tcp.idleTimeout 2 s"),
    (V, "idle-holds-heartbeats", ("idleTimeout: 30s", "idleTimeout: 2s"), "http.idleTimeout 2 s"),
    (V, "pods-ejected", ("kind: DestinationRule", "kind: Later"), "no DestinationRule is for it"),
    (V, "pods-ejected", ("host: routing\n", "host: x.example.com\n"), "no DestinationRule is for"),
    (V, "pods-ejected", ("      consecutiveGatewayErrors: 3\n", ""), "set it to 3"),
    (W, "pods-ejected", ("      consecutive5xxErrors: 10\n", ""), "5 INTERNAL in a row"),
    (W, "pods-ejected", ("consecutive5xxErrors: 10", "consecutive5xxErrors: 1"), "1 INTERNAL in"),
    (
        V,
        "pods-ejected",
        ("consecutive5xxErrors: 10", "consecutive5xxErrors: 10\n      "
         "splitExternalLocalOriginErrors: true"),
        "a pod that hangs is never ejected",
    ),
    (V, "small-pool-ejects", ("maxEjectionPercent: 34", "maxEjectionPercent: 33"), "of 3 pods"),
    (V, "small-pool-ejects", ("      maxEjectionPercent: 34\n", ""), "maxEjectionPercent 10 of 3"),
    (V, "small-pool-ejects", ("minReplicas: 3", "minReplicas: 2"), "set it to 50 or more"),
    (W, "small-pool-ejects", ("maxEjectionPercent: 34", "maxEjectionPercent: 100"), "all pods"),
    # Pods.
    (V, "grace-holds-runs", ("Seconds: 126", "Seconds: 124"), "run 115.0 s + 5 s; set it to 125"),
    (V, "grace-holds-runs", ("      terminationGracePeriodSeconds: 126\n", ""), "Seconds 30 is"),
    (V, "grace-holds-runs", ("seconds: 5}", "seconds: 9}"), "preStop 9 s"),
    (W, "pods-leave-first", ("          lifecycle: {preStop: {sleep: {seconds: 5}}}\n", ""), "5"),
    (V, "drain-holds-runs", ("    drain_timeout_s = 116\n", ""), "drain_timeout_s 5 s cuts runs"),
    (V, "probes-by-name", ("service: readiness", "service: ready"), "asks for 'ready'"),
    (V, "probes-by-name", ("service: liveness", "service: readiness"), "would be killed"),
    (V, "probes-by-name", (", service: liveness", ""), "names no service"),
    (V, "probes-by-name", ("7401, service: readiness", "grpc, service: readiness"), "no name"),
    (W, "probes-by-name", ("grpc: {port: 7401, service: liveness}", "exec: {}"), "by gRPC"),
    (
        V,
        "probes-by-name",
        ("          readinessProbe: {grpc: {port: 7401, service: readiness}}\n", ""),
        "without a readinessProbe",
    ),
    (
        W,
        "probes-by-name",
        ("          livenessProbe: {grpc: {port: 7401, service: liveness}}\n", ""),
        "without a livenessProbe",
    ),
    (V, "pods-listen", ('host = "0.0.0.0"', 'host = "127.0.0.1"'), "it listens at '127.0.0.1'"),
    (V, "pods-listen", ('    host = "0.0.0.0"\n', ""), "set SIXHOP_ROUTING__HOST to 0.0.0.0"),
    (V, "pods-listen", ('host = "0.0.0.0"', 'host = "routing"'), "it listens at 'routing'"),
    (V, "pods-listen", ('host = "0.0.0.0"', 'host = "::1"'), "it listens at '::1'"),
    (V, "pods-listen", (LEVEL, "{name: SIXHOP_ROUTING__HOST, value: localhost}"), "'localhost'"),
    # Doors.
    (V, "target-port-there", ("targetPort: grpc", "targetPort: metrics"), "leads to 9090 of"),
    (V, "target-port-there", ("targetPort: grpc", "targetPort: 9090"), "answers it at 7401"),
    (
        V,
        "target-port-there",
        ("port: 7401, appProtocol: grpc, targetPort: grpc",
         "port: 80, appProtocol: grpc, targetPort: metrics"),
        "port 80 leads to 9090",
    ),
    (V, "grpc-named", (", appProtocol: grpc", ""), "port 7401 does not say that it is gRPC"),
    (V, "grpc-named", ("appProtocol: grpc", "appProtocol: http"), "set appProtocol: grpc"),
    (V, "idle-holds-heartbeats", ("stream_idle_timeout: 300s", "stream_idle_timeout: 1s"), "1 s"),
    (V, "idle-holds-heartbeats", ('proxy-read-timeout: "60"', 'proxy-read-timeout: "2"'), "2 s"),
    # Settings.
    (
        V,
        "settings-readable",
        ("{name: SIXHOP_LOG__LEVEL, value: warning}", "{name: SIXHOP_LOG__LEVL, value: warning}"),
        "[log] levl (SIXHOP_LOG__LEVL) is not a setting; did you mean level?",
    ),
    (
        V,
        "settings-readable",
        ("{name: SIXHOP_LOG__LEVEL, value: warning}", "{name: SIXHOP_LOG_LEVEL, value: warning}"),
        "SIXHOP_LOG_LEVEL is not a setting; did you mean SIXHOP_LOG__LEVEL?",
    ),
    (
        V,
        "settings-readable",
        ("{name: SIXHOP_MODEL__API_KEY, valueFrom", "{name: SIXHOP_MODEL_API_KEY, valueFrom"),
        "did you mean SIXHOP_MODEL__API_KEY?",
    ),
]  # fmt: skip


def test_manifests_as_they_should_be_are_fine(tmp_path: Path) -> None:
    report = checked(SUITE, tmp_path)

    assert report.findings == ()
    assert report.hops == ("routing",)
    assert (report.file_count, report.document_count) == (1, 16)
    assert report.ignored == {}


@requirement("check:manifests")
@pytest.mark.parametrize(("severity", "rule", "change", "words"), CASES)
def test_one_wrong_line_is_found_and_told(
    severity: Severity, rule: str, change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    assert_found_alone(severity, rule, change, words, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        (ROUTING, ROUTING + "      timeout: 120s\n"),
        ("appProtocol: grpc", "appProtocol: kubernetes.io/h2c"),
        ("name: main, port: 7401, appProtocol: grpc", "name: grpc-main, port: 7401"),
        ('host = "0.0.0.0"', 'host = "::"'),
        (LEVEL, "{name: SIXHOP_ROUTING__HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"),
        ("port: 7401, appProtocol: grpc, targetPort", "port: 80, appProtocol: grpc, targetPort"),
        ("service: readiness", "service: sixhop.routing.v1.RoutingService"),
        ("sleep: {seconds: 5}", 'exec: {command: [sh, -c, "sleep 5"]}'),
        ("stream_idle_timeout: 300s", "stream_idle_timeout: 0s"),
    ],
)
def test_what_is_as_good_is_not_found(change: tuple[str, str], tmp_path: Path) -> None:
    assert rules_found(broken(*change), tmp_path) == set()


def test_without_the_engine_there_is_no_bulkhead_to_hold(tmp_path: Path) -> None:
    text = broken("http2MaxRequests: 64", "http2MaxRequests: 8")

    assert rules_found(text, tmp_path) == {"pool-holds-bulkhead"}
    assert rules_found(text, tmp_path, ENGINE__ENABLED="false") == set()


def test_a_mesh_that_repeats_nothing_need_not_be_told_by_every_route(tmp_path: Path) -> None:
    silent = broken(
        "      retries: {attempts: 0}\n---\napiVersion: networking.istio.io/v1\nkind: Dest",
        "---\napiVersion: networking.istio.io/v1\nkind: Dest",
    )

    assert rules_found(silent, tmp_path) == {"mesh-repeats-nothing"}
    assert rules_found(silent + QUIET_MESH, tmp_path) == set()


def test_a_shorter_longest_deadline_needs_shorter_graces(tmp_path: Path) -> None:
    text = broken("Seconds: 126", "Seconds: 70").replace(
        "[engine]", "[deadline]\n    max_deadline_s = 60\n    [engine]"
    )

    assert rules_found(text, tmp_path) == set()


def test_a_stream_that_a_header_routes_elsewhere_may_still_take_the_next_route(
    tmp_path: Path,
) -> None:
    canary = (
        "    - match: [{headers: {x: {exact: canary}}}]\n"
        "      route: [{destination: {host: routing}}]\n"
        "      retries: {attempts: 0}\n"
    )
    text = broken(ROUTING, canary + ROUTING + "      timeout: 15s\n")

    (finding,) = checked(text, tmp_path).findings

    assert finding.rule == "stream-not-cut"
    assert "route 2" in finding.text


def test_a_route_behind_one_that_takes_everything_is_never_taken(tmp_path: Path) -> None:
    behind = "    - route: [{destination: {host: routing}}]\n      timeout: 1s\n"
    text = broken(
        ROUTING + "      retries: {attempts: 0}\n",
        ROUTING + "      retries: {attempts: 0}\n" + behind + "      retries: {attempts: 0}\n",
    )

    assert rules_found(text, tmp_path) == set()


def test_a_route_of_the_gateway_api_is_held_to_the_same(tmp_path: Path) -> None:
    route = (
        "---\nkind: Service\nmetadata: {name: gateway}\nspec: {ports: [{name: grpc, port: 7400}]}\n"
        "---\nkind: HTTPRoute\nmetadata: {name: edge}\nspec:\n  rules:\n"
        "    - matches: [{path: {type: PathPrefix, value: /sixhop.gateway.v1}}]\n"
        "      timeouts: {request: 60s}\n      backendRefs: [{name: gateway}]\n"
    )

    findings = checked(SUITE + route + QUIET_MESH, tmp_path).findings

    assert {finding.rule for finding in findings} == {"stream-not-cut", "route-above-ladder"}
    assert all("120.0 s" in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("host", "most"), [("tool-auxiliary", 8), ("tool-data", 32), ("tool", 112), ("domain-x", 64)]
)
def test_the_pool_of_a_part_holds_what_callers_let_pass_to_that_part(
    host: str, most: int, tmp_path: Path
) -> None:
    def rule(count: int) -> str:
        text = SUITE[SUITE.index("kind: DestinationRule") :].split("---")[0]
        text = text.replace("host: routing\n", f"host: {host}\n")
        return "---\n" + text.replace("http2MaxRequests: 64", f"http2MaxRequests: {count}")

    assert "pool-holds-bulkhead" not in rules_found(SUITE + rule(most), tmp_path)
    assert "pool-holds-bulkhead" in rules_found(SUITE + rule(most - 1), tmp_path)


def test_two_configurations_are_a_warning(tmp_path: Path) -> None:
    other = "---\nkind: ConfigMap\nmetadata: {name: b}\ndata: {sixhop.toml: ''}\n"

    (finding,) = checked(SUITE + other, tmp_path).findings

    assert (finding.rule, finding.severity) == ("one-configuration", W)


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("text", "ignored"), [("", {}), ("x\n---\n- 1\n", {}), ("kind: Job\n", {"Job": 1})]
)
def test_that_nothing_of_the_suite_is_there_is_no_success(
    text: str, ignored: dict[str, int], tmp_path: Path
) -> None:
    report = checked(text, tmp_path)

    assert [(each.rule, each.severity) for each in report.findings] == [("manifests-whole", V)]
    assert report.ignored == ignored


def test_every_rule_is_broken_by_some_test() -> None:
    elsewhere = {
        "one-configuration",
        "manifests-whole",
        "configuration-read",
        "settings-accepted",
        "mesh-is-call-graph",
        "network-is-call-graph",
        "callees-there",
        "pods-in-mesh",
        "routes-attached",
        "namespaces-said",
        "patches-hit",
        "closed-by-default",
        "edge-keeps-orders",
        "edge-right-door",
        "pods-scaled",
    }

    assert {rule for _, rule, _, _ in (*CASES, *OBJECT_CASES)} | elsewhere == set(RULES)
