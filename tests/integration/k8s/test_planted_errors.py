"""Plants one error of each kind into the production overlay, and sees who notices it.

The table says of each error all who notice, so it is also the list of what each of them misses.
"""

from pathlib import Path

import pytest

from tests.integration.k8s.planting import (
    CHECK,
    DEFINITIONS,
    GATEWAY_API,
    GONE,
    MODELS,
    SCHEMAS,
    Change,
    Planted,
    both,
    definitions,
    planted,
    production,
    put,
    renamed,
    told,
)
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

ISTIO = (DEFINITIONS, MODELS)
CONTAINER = "spec/template/spec/containers/0"
POOL = "spec/trafficPolicy/connectionPool"
OUTLIER = "spec/trafficPolicy/outlierDetection"
RETRIES = "spec/http/0/retries"


def error(
    kind: str, name: str, change: Change, *caught_by: str, words: str, id: str | None = None
) -> object:
    """Return one row of the table."""
    row = Planted(kind, name, change, frozenset(caught_by), words)
    return pytest.param(row, id=id or f"{kind}: {words}")


def pod(change: Change, *caught_by: str, words: str) -> object:
    return error("Deployment", "routing", change, *caught_by, words=words)


def rule(change: Change, *caught_by: str, words: str) -> object:
    return error("DestinationRule", "routing", change, *caught_by, words=words)


def route(change: Change, *caught_by: str, words: str) -> object:
    return error("VirtualService", "routing", change, *caught_by, words=words)


OF_PODS = [
    # What schemas see.
    pod(renamed(f"{CONTAINER}/ports", "prots"), SCHEMAS, CHECK, words="'prots' was unexpected"),
    pod(put("spec/replicas", "3"), SCHEMAS, CHECK, words="'3' is not of type 'integer'"),
    pod(put("spec/selector", GONE), SCHEMAS, words="'selector' is a required property"),
    pod(put("apiVersion", "apps/v1beta2"), SCHEMAS, words="knows no Deployment of 'apps/v1beta2'"),
    pod(
        put(f"{CONTAINER}/readinessProbe/grpc/port", "grpc"),
        SCHEMAS,
        CHECK,
        words="a number and no name",
    ),
    # What only the API server sees.
    pod(
        put(f"{CONTAINER}/imagePullPolicy", "Sometimes"), CHECK, words="imagePullPolicy 'Sometimes'"
    ),
    pod(put(f"{CONTAINER}/resources/requests/cpu", "half"), CHECK, words="is no quantity"),
    pod(
        put(f"{CONTAINER}/livenessProbe/exec", {"command": ["true"]}),
        CHECK,
        words="has exec and grpc",
    ),
    pod(
        put(f"{CONTAINER}/ports/1/name", "prometheus-metrics"), CHECK, words="the cluster takes 15"
    ),
    pod(put(f"{CONTAINER}/name", "App"), CHECK, words="container 'App' is refused"),
    pod(
        put("spec/template/metadata/labels/app.kubernetes.io~1name", "x y"),
        CHECK,
        words="'x y' is refused",
    ),
    # What nobody sees until it does not work.
    pod(
        put("spec/selector/matchLabels", {"app": "other"}),
        CHECK,
        words="does not select its own pods",
    ),
    pod(
        put("spec/template/spec/serviceAccountName", "rooting"),
        CHECK,
        words="no pod of it would start",
    ),
    pod(put(f"{CONTAINER}/resources/limits/memory", "1Gi"), CHECK, words="set both to one value"),
    pod(put(f"{CONTAINER}/readinessProbe/grpc/service", "ready"), CHECK, words="asks for 'ready'"),
    pod(
        put("spec/template/spec/terminationGracePeriodSeconds", 30),
        CHECK,
        words="is less than preStop",
    ),
    pod(
        put(f"{CONTAINER}/env/0", {"name": "SIXHOP_LOG__LEVL", "value": "info"}),
        CHECK,
        words="did you mean level?",
    ),
    error(
        "Service", "routing", put("spec/ports/0/targetPort", "http"), CHECK, words="leads to 'http'"
    ),
    error(
        "Service",
        "routing",
        put("spec/selector", {"a": "b"}),
        CHECK,
        words="every call to it is refused",
    ),
    error(
        "Service",
        "routing",
        both(put("spec/ports/0/appProtocol", GONE), put("spec/ports/0/name", "main")),
        CHECK,
        words="does not say that it is gRPC",
    ),
    error(
        "ServiceAccount",
        "tool",
        put("metadata/name", "toool"),
        CHECK,
        words="runs as ServiceAccount tool",
    ),
    error("ServiceAccount", "tool", put("metadata/name", "routing"), CHECK, words="it stands at"),
    error(
        "ServiceAccount",
        "tool",
        put("metadata/namespace", GONE),
        CHECK,
        words="it names no namespace",
    ),
    # What scales and evicts.
    error(
        "HorizontalPodAutoscaler",
        "routing",
        put("spec/maxReplicas", GONE),
        SCHEMAS,
        words="'maxReplicas' is a required",
    ),
    error(
        "HorizontalPodAutoscaler",
        "routing",
        put("spec/metrics/0/containerResource/container", "main"),
        CHECK,
        words="it would never scale",
    ),
    error(
        "HorizontalPodAutoscaler",
        "routing",
        put("spec/scaleTargetRef/name", "router"),
        CHECK,
        words="which is not here",
    ),
    error(
        "HorizontalPodAutoscaler",
        "routing",
        put("spec/minReplicas", 13),
        CHECK,
        words="is above maxReplicas",
    ),
    error(
        "PodDisruptionBudget",
        "routing",
        put("spec/minAvailable", 1),
        CHECK,
        words="both minAvailable and",
    ),
    error(
        "PodDisruptionBudget",
        "routing",
        put("spec/maxUnavailable", 0),
        CHECK,
        words="no node can be drained",
    ),
    # Who may reach whom.
    error(
        "NetworkPolicy",
        "routing",
        put("spec/ingress/0/from/0/podSelector/matchLabels", {"app.kubernetes.io/name": "tool"}),
        CHECK,
        words="no ingress of a NetworkPolicy lets gateway in",
    ),
    error(
        "NetworkPolicy",
        "routing",
        put("spec/ingress/0/from/0/podSelector", {}),
        CHECK,
        words="any pod of sixhop may come in",
    ),
    error(
        "NetworkPolicy",
        "routing",
        put("spec/policyTypes", ["ingress"]),
        CHECK,
        words="policyTypes 'ingress'",
    ),
    error(
        "NetworkPolicy", "dns", put("spec/egress", []), CHECK, words="leads to the names of hosts"
    ),
]
OF_THE_MESH = [
    # What schemas see.
    rule(renamed(f"{OUTLIER}/interval", "intervall"), *ISTIO, words="intervall"),
    rule(put(f"{OUTLIER}/maxEjectionPercent", "50"), *ISTIO, words="'50'"),
    rule(put(f"{OUTLIER}/consecutiveGatewayErrors", -1), *ISTIO, words="0"),
    rule(put("spec/host", GONE), *ISTIO, words="host"),
    rule(
        both(put("spec/outlierDetection", {}), put(OUTLIER, GONE)),
        *ISTIO,
        CHECK,
        words="outlierDetection",
    ),
    rule(
        put("spec/trafficPolicy/loadBalancer/simple", "LEAST_CONNECTION"),
        *ISTIO,
        words="LEAST_CONN",
    ),
    rule(
        put("spec/trafficPolicy/loadBalancer/consistentHash", {"useSourceIp": True}),
        DEFINITIONS,
        words="valid under each of",
    ),
    rule(
        put("apiVersion", "networking.istio.io/v2"), *ISTIO, words="Istio knows no DestinationRule"
    ),
    rule(put(f"{OUTLIER}/baseEjectionTime", "30sec"), DEFINITIONS, words="30sec"),
    rule(
        put(f"{OUTLIER}/interval", "0s"),
        DEFINITIONS,
        words="must be a valid duration greater than 1ms",
    ),
    route(put("spec/http/1/timeout", "0s"), DEFINITIONS, CHECK, words="is refused by the cluster"),
    route(renamed(f"{RETRIES}/retryOn", "retryon"), *ISTIO, CHECK, words="retryon"),
    error(
        "Telemetry",
        "default",
        put("spec/tracing/0/randomSamplingPercentage", 101),
        *ISTIO,
        words="100",
    ),
    error("PeerAuthentication", "default", put("spec/mtls/mode", "strict"), *ISTIO, words="STRICT"),
    error(
        "ServiceEntry",
        "outside-tls-443",
        put("spec/ports/0/number", 70000),
        DEFINITIONS,
        words="65535",
        id="ServiceEntry: a port above all",
    ),
    # What only the webhook of Istio sees.
    rule(put(f"{OUTLIER}/maxEjectionPercent", 120), CHECK, words="is not between 0 and 100"),
    rule(put(f"{OUTLIER}/consecutiveLocalOriginFailures", 3), CHECK, words="means nothing without"),
    route(put(f"{RETRIES}/attempts", -1), CHECK, words="is less than none"),
    route(
        put(f"{RETRIES}/retryOn", "gateway-eror"), CHECK, words="is no condition that Envoy knows"
    ),
    route(put(f"{RETRIES}/attempts", 0), CHECK, words="beside attempts: 0"),
    # What nobody sees until it does not work.
    rule(put(f"{OUTLIER}/maxEjectionPercent", 33), CHECK, words="none is ever ejected"),
    rule(put(f"{OUTLIER}/consecutiveGatewayErrors", GONE), CHECK, words="set it to 3"),
    rule(
        put(f"{OUTLIER}/splitExternalLocalOriginErrors", True),
        CHECK,
        words="a pod that hangs is never ejected",
    ),
    rule(put(f"{POOL}/tcp/connectTimeout", "10s"), CHECK, words="is never counted as failed"),
    rule(put(f"{POOL}/http/http2MaxRequests", 8), CHECK, words="permits that one caller has"),
    rule(put("spec/host", "router"), CHECK, words="no Service here is called router"),
    route(put("spec/http/0/timeout", "60s"), CHECK, words="cuts the stream of"),
    route(put("spec/http/1/timeout", "1s"), CHECK, words="that callers wait for"),
    route(put(f"{RETRIES}/retryOn", "5xx"), CHECK, words="1 retries on 5xx"),
    route(put(RETRIES, GONE), CHECK, words="retries are left out"),
    route(
        put("spec/http/0/route/0/destination/port/number", 7402),
        CHECK,
        words="leads to port 7402 of routing",
    ),
    route(put("spec/http/0/route/0/destination/subset", "v2"), CHECK, words="the subset 'v2'"),
    error(
        "AuthorizationPolicy",
        "domain-calls-from-routing",
        put("spec/rules/0/from/0/source/principals/0", "cluster.local/ns/sixhop/sa/rooting"),
        CHECK,
        words="lets routing call",
    ),
    error(
        "AuthorizationPolicy",
        "domain-calls-from-routing",
        put("spec/rules/0/from/0/source/principals/1", "cluster.local/ns/sixhop/sa/gateway"),
        CHECK,
        words="lets gateway call",
    ),
    error(
        "AuthorizationPolicy",
        "domain-calls-from-routing",
        put("spec/rules/0/from", GONE),
        CHECK,
        words="anybody may call",
    ),
    error(
        "AuthorizationPolicy",
        "domain-calls-from-routing",
        put("spec/selector/matchLabels", {"app": "domain"}),
        CHECK,
        words="it says nothing to anybody",
    ),
    error(
        "AuthorizationPolicy",
        "domain-calls-from-routing",
        put("spec/action", "Allow"),
        *ISTIO,
        CHECK,
        words="ALLOW",
    ),
    error(
        "Sidecar",
        "routing",
        put("spec/egress/0/hosts/0", "./domian.sixhop.svc.cluster.local"),
        CHECK,
        words="the proxies of routing do not know domain.sixhop.svc.cluster.local",
    ),
    # The edge.
    error(
        "Gateway",
        "edge",
        put("spec/listeners/0/protocol", "https"),
        GATEWAY_API,
        words="Input should be",
    ),
    error(
        "Gateway",
        "edge",
        renamed("spec/listeners/0/hostname", "host"),
        GATEWAY_API,
        words="Extra inputs",
    ),
    error(
        "Gateway", "edge", put("spec/listeners/0/port", "443"), GATEWAY_API, words="valid integer"
    ),
    error(
        "GRPCRoute",
        "gateway",
        put("spec/rules/0/timeouts", {"request": "5s"}),
        GATEWAY_API,
        words="Extra inputs",
    ),
    error(
        "GRPCRoute",
        "gateway",
        put("spec/rules/0/backendRefs/0/port", 7401),
        CHECK,
        words="leads to port 7401 of gateway",
    ),
    error(
        "HTTPRoute",
        "gateway",
        put("spec/rules/0/backendRefs/0/name", "gatewya"),
        CHECK,
        words="no Service here is called gatewya",
    ),
]


def test_what_we_ship_is_fine(tmp_path: Path) -> None:
    documents = production()

    assert len(documents) > 80
    assert told(documents, documents, tmp_path) == {}


@pytest.mark.parametrize("planted_error", [*OF_PODS, *OF_THE_MESH])
def test_every_planted_error_is_noticed_by_those_who_can(
    planted_error: Planted, tmp_path: Path
) -> None:
    documents, changed = planted(planted_error)

    noticed = told(documents, [changed], tmp_path)

    unasked = {DEFINITIONS} if definitions() is None else set()
    assert set(noticed) == planted_error.caught_by - unasked
    # Where nobody has laid Istio's definitions, some errors wait for the cluster.
    if noticed:
        assert any(planted_error.words in text for texts in noticed.values() for text in texts)
