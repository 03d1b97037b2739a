"""Translates the objects of Istio as istiod does, for the fields that our manifests use.

What istiod makes of each field was read in its source and is written down in docs/istio.md. A field
that is not known here is refused: a manifest must not gain one that no test has tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.manifests.lengths import seconds

Object = Mapping[str, Any]
Config = dict[str, Any]

WITHOUT_LIMIT = 2**32 - 1
"""What Istio sets where nothing is said; Envoy's own would be 3 retries and 1024 requests."""
DEFAULT_CONNECT_S = 10.0
DEFAULT_RETRIES = 2
DEFAULT_RETRY_ON = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
HOST_TRIES = 5
"""How often another host is looked for before a retry goes to one that was tried."""
POLICY = ("loadBalancer", "connectionPool", "outlierDetection", "tls")
PROTOCOL = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


class UntranslatedError(Exception):
    """Says which field of a manifest is not translated."""


def known(table: Any, names: Sequence[str], where: str) -> Object:
    """Return a table that has no other keys than these; an absent one is empty.

    Raises:
        UntranslatedError: it has another key, or is no table.
    """
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise UntranslatedError(f"{where} is no table")
    strange = sorted(set(table) - set(names))
    if strange:
        raise UntranslatedError(
            f"{where} says {', '.join(strange)}, which nothing here translates; teach it, or no "
            "test knows what the mesh does with it"
        )
    return table


def duration(text: Any, where: str) -> str:
    """Return a length as Envoy reads it: `250ms` is `0.250000s`.

    Raises:
        UntranslatedError: it is no length.
    """
    length_s = seconds(text)
    if length_s is None:
        raise UntranslatedError(f"{where}: {text!r} is no length")
    return f"{length_s:.6f}s"


def cluster(name: str, rule: Object | None, port: int) -> Config:
    """Return the outbound cluster that a DestinationRule makes of a service, without endpoints.

    Args:
        name: what the cluster is called.
        rule: the DestinationRule; None leaves everything to Istio's defaults.
        port: of the service.
    """
    where = f"DestinationRule {name}"
    spec = known((rule or {}).get("spec"), ("host", "trafficPolicy"), where)
    policy = known(spec.get("trafficPolicy"), (*POLICY, "portLevelSettings"), where)
    for own in policy.get("portLevelSettings") or ():
        # What is said for a port takes the place of all that is said for the service.
        if own["port"]["number"] == port:
            policy = known(own, (*POLICY, "port"), where)
    tls = known(policy.get("tls"), ("mode",), f"{where} tls")
    if tls.get("mode", "ISTIO_MUTUAL") != "ISTIO_MUTUAL":
        raise UntranslatedError(f"{where}: tls {tls['mode']}")
    pool = known(policy.get("connectionPool"), ("tcp", "http"), f"{where} connectionPool")
    tcp = known(
        pool.get("tcp"),
        ("maxConnections", "connectTimeout", "tcpKeepalive"),
        f"{where} connectionPool.tcp",
    )
    http = known(
        pool.get("http"),
        (
            "http1MaxPendingRequests",
            "http2MaxRequests",
            "maxRetries",
            "idleTimeout",
            "maxRequestsPerConnection",
            "maxConcurrentStreams",
            "h2UpgradePolicy",
        ),
        f"{where} connectionPool.http",
    )
    outlier = policy.get("outlierDetection")
    made: Config = {
        "name": name,
        "type": "EDS",
        "connect_timeout": duration(tcp.get("connectTimeout", f"{DEFAULT_CONNECT_S}s"), where),
        **_balancing(policy.get("loadBalancer"), where),
        "circuit_breakers": {"thresholds": [_breakers(tcp, http)]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": _protocol(http, where)
        },
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
    }
    if tcp.get("tcpKeepalive") is not None:
        made["upstream_connection_options"] = {"tcp_keepalive": _keepalive(tcp, where)}
    if outlier is not None:
        made["outlier_detection"], least = _outliers(outlier, where)
        made["common_lb_config"]["healthy_panic_threshold"]["value"] = least
    return made


def _balancing(table: Any, where: str) -> Config:
    balancer = known(table, ("simple", "warmup", "warmupDurationSecs"), f"{where} loadBalancer")
    simple = balancer.get("simple", "LEAST_REQUEST")
    if simple not in ("LEAST_REQUEST", "ROUND_ROBIN", "RANDOM"):
        raise UntranslatedError(f"{where}: loadBalancer.simple {simple}")
    made: Config = {"lb_policy": simple}
    warmup = known(
        balancer.get("warmup"), ("duration", "minimumPercent", "aggression"), f"{where} warmup"
    )
    length = warmup.get("duration", balancer.get("warmupDurationSecs"))
    if length is not None:
        slow: Config = {
            "slow_start_window": duration(length, where),
            "min_weight_percent": {"value": warmup.get("minimumPercent", 10)},
        }
        if "aggression" in warmup:
            slow["aggression"] = {
                "default_value": float(warmup["aggression"]),
                "runtime_key": "sixhop.unused",
            }
        kind = {"LEAST_REQUEST": "least_request", "ROUND_ROBIN": "round_robin"}.get(simple)
        if kind is None:
            raise UntranslatedError(f"{where}: warmup with {simple}")
        made[f"{kind}_lb_config"] = {"slow_start_config": slow}
    return made


def _breakers(tcp: Object, http: Object) -> Config:
    return {
        "max_connections": tcp.get("maxConnections", WITHOUT_LIMIT),
        "max_pending_requests": http.get("http1MaxPendingRequests", WITHOUT_LIMIT),
        "max_requests": http.get("http2MaxRequests", WITHOUT_LIMIT),
        "max_retries": http.get("maxRetries", WITHOUT_LIMIT),
        "track_remaining": True,
    }


def _protocol(http: Object, where: str) -> Config:
    http2: Config = {}
    if "maxConcurrentStreams" in http:
        http2["max_concurrent_streams"] = http["maxConcurrentStreams"]
    common: Config = {}
    if "idleTimeout" in http:
        common["idle_timeout"] = duration(http["idleTimeout"], where)
    if http.get("maxRequestsPerConnection"):
        common["max_requests_per_connection"] = http["maxRequestsPerConnection"]
    made: Config = {
        "@type": PROTOCOL,
        "explicit_http_config": {"http2_protocol_options": http2},
    }
    return {**made, "common_http_protocol_options": common} if common else made


def _keepalive(tcp: Object, where: str) -> Config:
    said = known(tcp["tcpKeepalive"], ("probes", "time", "interval"), f"{where} tcpKeepalive")
    made: Config = {}
    if "probes" in said:
        made["keepalive_probes"] = said["probes"]
    for name in ("time", "interval"):
        if name in said:
            made[f"keepalive_{name}"] = int(float(duration(said[name], where)[:-1]))
    return made


def _outliers(table: Any, where: str) -> tuple[Config, float]:
    said = known(
        table,
        (
            "consecutiveGatewayErrors",
            "consecutive5xxErrors",
            "interval",
            "baseEjectionTime",
            "maxEjectionPercent",
            "minHealthPercent",
            "splitExternalLocalOriginErrors",
        ),
        f"{where} outlierDetection",
    )
    # Success rates are switched off, whatever is said.
    made: Config = {"enforcing_success_rate": 0}
    for name, key in (
        ("consecutiveGatewayErrors", "gateway_failure"),
        ("consecutive5xxErrors", "5xx"),
    ):
        if name in said:
            count = said[name]
            made[f"consecutive_{key}"] = count
            made[f"enforcing_consecutive_{key}"] = 100 if count > 0 else 0
    for name, key in (("interval", "interval"), ("baseEjectionTime", "base_ejection_time")):
        if name in said:
            made[key] = duration(said[name], where)
    if "maxEjectionPercent" in said:
        made["max_ejection_percent"] = said["maxEjectionPercent"]
    if said.get("splitExternalLocalOriginErrors"):
        made["split_external_local_origin_errors"] = True
    return made, float(said.get("minHealthPercent", 0))


def routes(service: Object | None, host: str, port: int) -> list[Config]:
    """Return the routes of a port of a service that a VirtualService makes, in their order.

    Args:
        service: the VirtualService; None leaves everything to Istio's defaults.
        host: the service.
        port: of the service; what is for other ports is left out.
    """
    if service is None:
        goal = {"cluster": cluster_name(host, port)}
        return [_route({"prefix": "/"}, goal, None, None, "the default route")]
    where = f"VirtualService {service['metadata']['name']}"
    spec = known(service.get("spec"), ("hosts", "http"), where)
    return [
        made
        for number, http in enumerate(spec.get("http") or (), 1)
        for made in _http(http, port, f"{where}, route {number}")
    ]


def cluster_name(host: str, port: int) -> str:
    """Return what the cluster of a port of a service is called."""
    return f"outbound|{port}||{host}"


def _http(http: Any, port: int, where: str) -> Iterator[Config]:
    said = known(http, ("name", "match", "route", "timeout", "retries"), where)
    for match in said.get("match") or [{}]:
        if match.get("port", port) == port:
            goal = _goal(said.get("route") or (), port, where)
            yield _route(
                _match(match, where), goal, said.get("timeout"), said.get("retries"), where
            )


def _goal(places: Sequence[Any], port: int, where: str) -> Config:
    weighted = []
    for place in places:
        said = known(place, ("destination", "weight"), f"{where} route")
        goal = known(said.get("destination"), ("host", "port"), f"{where} destination")
        named = known(goal.get("port"), ("number",), f"{where} port").get("number", port)
        name = cluster_name(str(goal["host"]).split(".", 1)[0], named)
        weighted.append({"name": name, "weight": said.get("weight", 1)})
    if len(weighted) == 1:
        return {"cluster": weighted[0]["name"]}
    return {"weighted_clusters": {"clusters": weighted}}


def _match(match: Any, where: str) -> Config:
    said = known(match, ("name", "uri", "headers", "withoutHeaders", "port"), f"{where} match")
    made: Config = {"prefix": "/"}
    if "uri" in said:
        uri = known(said["uri"], ("exact", "prefix", "regex"), f"{where} uri")
        ((kind, value),) = uri.items()
        made = {
            "exact": {"path": value},
            "prefix": {"prefix": value},
            "regex": {"safe_regex": {"regex": value}},
        }[kind]
    conditions = [
        *(_header(name, text, where) for name, text in (said.get("headers") or {}).items()),
        *(
            {**_header(name, text, where), "invert_match": True}
            for name, text in (said.get("withoutHeaders") or {}).items()
        ),
    ]
    return {**made, "headers": conditions} if conditions else made


def _header(name: str, text: Any, where: str) -> Config:
    said = known(text, ("exact", "prefix", "regex"), f"{where} header {name}")
    if not said:
        return {"name": name, "present_match": True}
    ((kind, value),) = said.items()
    matcher = {"safe_regex": {"regex": value}} if kind == "regex" else {kind: value}
    return {"name": name, "string_match": matcher}


def _route(match: Config, goal: Config, timeout: Any, retries: Any, where: str) -> Config:
    # None is no limit of its own, and the deadline that travels is one all the same.
    limit = "0s" if timeout is None else duration(timeout, where)
    action: Config = {**goal, "timeout": limit, "max_grpc_timeout": limit}
    policy = _retries(retries, where)
    if policy is not None:
        action["retry_policy"] = policy
    return {"match": match, "route": action}


def _retries(table: Any, where: str) -> Config | None:
    said = known(table, ("attempts", "retryOn", "perTryTimeout"), f"{where} retries")
    attempts = said.get("attempts", DEFAULT_RETRIES)
    if attempts == 0:
        return None
    made: Config = {
        "num_retries": attempts,
        "retry_on": said.get("retryOn") or DEFAULT_RETRY_ON,
        "retry_host_predicate": [
            {
                "name": "envoy.retry_host_predicates.previous_hosts",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts"
                    ".v3.PreviousHostsPredicate"
                },
            }
        ],
        "host_selection_retry_max_attempts": HOST_TRIES,
    }
    if "perTryTimeout" in said:
        made["per_try_timeout"] = duration(said["perTryTimeout"], where)
    return made
