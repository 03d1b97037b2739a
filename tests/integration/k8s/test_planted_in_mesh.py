"""Plants one error of each kind into the mesh and the edge of production, and sees who notices it.

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
    Change,
    Planted,
    both,
    error,
    hold_to_who_notices,
    put,
    renamed,
)
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

ISTIO = (DEFINITIONS, MODELS)
POOL = "spec/trafficPolicy/connectionPool"
OUTLIER = "spec/trafficPolicy/outlierDetection"
RETRIES = "spec/http/0/retries"


def rule(change: Change, *caught_by: str, words: str) -> object:
    return error("DestinationRule", "routing", change, *caught_by, words=words)


def route(change: Change, *caught_by: str, words: str) -> object:
    return error("VirtualService", "routing", change, *caught_by, words=words)


ERRORS = [
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
    error(
        "PeerAuthentication",
        "default",
        put("spec/mtls/mode", "strict"),
        *ISTIO,
        CHECK,
        words="STRICT",
    ),
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
    rule(put("spec/trafficPolicy/tls", {"mode": "DISABLE"}), CHECK, words="come from nobody"),
    error(
        "PeerAuthentication",
        "default",
        put("spec/mtls/mode", "PERMISSIVE"),
        CHECK,
        words="may call it in the clear",
    ),
    error(
        "Namespace",
        "sixhop",
        put("metadata/labels", {}),
        CHECK,
        words="nothing puts its pods into the mesh",
    ),
    # The edge.
    error(
        "GRPCRoute",
        "gateway",
        put("spec/parentRefs/0/name", "egde"),
        CHECK,
        words="its parent egde in sixhop-edge is not here",
    ),
    error(
        "HTTPRoute",
        "gateway",
        put("spec/hostnames/0", "www.example.org"),
        CHECK,
        words="so it leads nowhere",
    ),
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


@pytest.mark.parametrize("planted", ERRORS)
def test_every_planted_error_is_noticed_by_those_who_can(planted: Planted, tmp_path: Path) -> None:
    hold_to_who_notices(planted, tmp_path)
