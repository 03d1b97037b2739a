"""Holds the translation of Istio's objects to what istiod makes of them."""

from typing import Any

import pytest

from tests.e2e.mesh.access import require_mutual_tls, role_filter
from tests.e2e.mesh.translation import (
    DEFAULT_RETRY_ON,
    UntranslatedError,
    cluster,
    routes,
)
from tests.requirements import requirement

pytestmark = requirement("mesh:translated-or-refused")
LARGEST = 4294967295
TOOLS = "/sixhop.tool.v1.ToolService/"


def rule(**policy: Any) -> dict[str, Any]:
    """Return a DestinationRule."""
    return {"metadata": {"name": "tool"}, "spec": {"host": "tool", "trafficPolicy": policy}}


def service(*http: dict[str, Any]) -> dict[str, Any]:
    """Return a VirtualService."""
    return {"metadata": {"name": "tool"}, "spec": {"hosts": ["tool"], "http": list(http)}}


TO_TOOL = [{"destination": {"host": "tool", "port": {"number": 7403}}}]


def test_without_a_rule_a_service_has_the_defaults_of_istio() -> None:
    made = cluster("outbound|7403||tool", None, 7403)

    assert made["connect_timeout"] == "10.000000s"
    assert made["lb_policy"] == "LEAST_REQUEST"
    assert "outlier_detection" not in made
    (breakers,) = made["circuit_breakers"]["thresholds"]
    assert {breakers[f"max_{each}"] for each in ("connections", "requests", "retries")} == {LARGEST}


def test_what_a_rule_says_of_sick_pods_is_enforced() -> None:
    made = cluster(
        "tool",
        rule(
            outlierDetection={
                "consecutiveGatewayErrors": 3,
                "consecutive5xxErrors": 0,
                "interval": "5s",
                "baseEjectionTime": "30s",
                "maxEjectionPercent": 50,
                "minHealthPercent": 20,
            }
        ),
        7403,
    )

    assert made["outlier_detection"] == {
        "enforcing_success_rate": 0,
        "consecutive_gateway_failure": 3,
        "enforcing_consecutive_gateway_failure": 100,
        "consecutive_5xx": 0,
        "enforcing_consecutive_5xx": 0,
        "interval": "5.000000s",
        "base_ejection_time": "30.000000s",
        "max_ejection_percent": 50,
    }
    assert made["common_lb_config"] == {"healthy_panic_threshold": {"value": 20.0}}


def test_what_a_rule_says_of_a_port_takes_the_place_of_all_else() -> None:
    both = rule(
        connectionPool={"tcp": {"connectTimeout": "250ms"}},
        outlierDetection={"consecutiveGatewayErrors": 3},
        portLevelSettings=[
            {"port": {"number": 7480}, "connectionPool": {"http": {"http2MaxRequests": 7}}}
        ],
    )

    grpc, http = cluster("grpc", both, 7400), cluster("http", both, 7480)

    assert (grpc["connect_timeout"], http["connect_timeout"]) == ("0.250000s", "10.000000s")
    assert ("outlier_detection" in grpc, "outlier_detection" in http) == (True, False)
    assert http["circuit_breakers"]["thresholds"][0]["max_requests"] == 7


def test_a_timeout_of_a_route_is_a_default_deadline_and_a_cap() -> None:
    limited, unlimited = routes(
        service(
            {
                "match": [{"uri": {"exact": "/a/B"}, "port": 7403}],
                "timeout": "1m30s",
                "route": TO_TOOL,
            },
            {"route": TO_TOOL},
        ),
        "tool",
        7403,
    )

    assert limited["match"] == {"path": "/a/B"}
    assert limited["route"]["timeout"] == limited["route"]["max_grpc_timeout"] == "90.000000s"
    assert unlimited["match"] == {"prefix": "/"}
    assert unlimited["route"]["timeout"] == unlimited["route"]["max_grpc_timeout"] == "0s"
    assert unlimited["route"]["cluster"] == "outbound|7403||tool"


def test_a_route_of_another_port_is_left_out() -> None:
    both = service({"match": [{"port": 7480}], "route": TO_TOOL}, {"route": TO_TOOL})

    assert len(routes(both, "tool", 7403)) == 1
    assert len(routes(both, "tool", 7480)) == 2


def test_headers_are_conditions() -> None:
    (made,) = routes(
        service(
            {
                "match": [
                    {"headers": {"x-a": {"exact": "1"}, "x-b": {}}, "withoutHeaders": {"x-c": {}}}
                ],
                "route": TO_TOOL,
            }
        ),
        "tool",
        7403,
    )

    assert made["match"]["headers"] == [
        {"name": "x-a", "string_match": {"exact": "1"}},
        {"name": "x-b", "present_match": True},
        {"name": "x-c", "present_match": True, "invert_match": True},
    ]


@pytest.mark.parametrize(
    ("said", "count", "conditions"),
    [
        (None, 2, DEFAULT_RETRY_ON),
        ({"attempts": 1, "retryOn": "connect-failure"}, 1, "connect-failure"),
        ({"attempts": 1}, 1, DEFAULT_RETRY_ON),
    ],
)
def test_retries_go_to_other_pods(said: Any, count: int, conditions: str) -> None:
    (made,) = routes(service({"route": TO_TOOL, "retries": said}), "tool", 7403)

    policy = made["route"]["retry_policy"]
    assert (policy["num_retries"], policy["retry_on"]) == (count, conditions)
    assert policy["retry_host_predicate"][0]["name"].endswith("previous_hosts")
    assert policy["host_selection_retry_max_attempts"] == 5


def test_no_retries_are_none() -> None:
    (made,) = routes(service({"route": TO_TOOL, "retries": {"attempts": 0}}), "tool", 7403)

    assert "retry_policy" not in made["route"]


@pytest.mark.parametrize(
    "policy",
    [
        {"outlierDetection": {"consecutiveErrors": 3}},
        {"loadBalancer": {"consistentHash": {"useSourceIp": True}}},
        {"connectionPool": {"http": {"maxReqs": 1}}},
        {"tls": {"mode": "DISABLE"}},
        {"proxyProtocol": {}},
    ],
)
def test_what_nobody_has_taught_it_is_refused(policy: dict[str, Any]) -> None:
    with pytest.raises(UntranslatedError):
        cluster("tool", rule(**policy), 7403)


@pytest.mark.parametrize(
    "http",
    [
        {"route": TO_TOOL, "fault": {"abort": {}}},
        {"route": TO_TOOL, "timeout": "5"},
        {"route": TO_TOOL, "retries": {"attempts": 1, "backoff": "1s"}},
        {"route": TO_TOOL, "match": [{"uri": {"exact": "/"}, "ignoreUriCase": True}]},
    ],
)
def test_a_route_that_nobody_has_taught_it_is_refused(http: dict[str, Any]) -> None:
    with pytest.raises(UntranslatedError):
        routes(service(http), "tool", 7403)


def policy(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return an AuthorizationPolicy."""
    return {"metadata": {"name": name}, "spec": spec}


DENY_ALL = policy("deny-all", {})
TOOL_FROM_DOMAIN = policy(
    "tool-from-domain",
    {
        "selector": {"matchLabels": {"app": "tool"}},
        "action": "ALLOW",
        "rules": [
            {
                "from": [{"source": {"principals": ["cluster.local/ns/sixhop/sa/domain"]}}],
                "to": [
                    {
                        "operation": {
                            "ports": ["7403"],
                            "paths": [f"{TOOLS}*"],
                            "notPaths": [f"{TOOLS}Secret"],
                        }
                    }
                ],
            }
        ],
    },
)


def test_an_empty_policy_lets_nobody_in() -> None:
    made = role_filter([DENY_ALL], {"app": "model"}, {"7404": 20004})

    assert made is not None
    assert made["typed_config"]["rules"] == {"action": "ALLOW", "policies": {}}


def test_without_a_policy_everybody_may_call() -> None:
    assert role_filter([TOOL_FROM_DOMAIN], {"app": "model"}, {"7404": 20004}) is None


def test_a_policy_names_who_where_and_what() -> None:
    made = role_filter([DENY_ALL, TOOL_FROM_DOMAIN], {"app": "tool", "x": "y"}, {"7403": 20003})

    assert made is not None
    assert made["typed_config"]["rules"]["policies"] == {
        "policy[tool-from-domain]-rule[0]": {
            "principals": [
                {
                    "and_ids": {
                        "ids": [
                            {
                                "or_ids": {
                                    "ids": [
                                        {
                                            "authenticated": {
                                                "principal_name": {
                                                    "exact": "spiffe://cluster.local/ns/sixhop"
                                                    "/sa/domain"
                                                }
                                            }
                                        }
                                    ]
                                }
                            }
                        ]
                    }
                }
            ],
            "permissions": [
                {
                    "and_rules": {
                        "rules": [
                            {"or_rules": {"rules": [{"destination_port": 20003}]}},
                            {"or_rules": {"rules": [path("prefix", TOOLS)]}},
                            {
                                "not_rule": {
                                    "or_rules": {"rules": [path("exact", f"{TOOLS}Secret")]}
                                }
                            },
                        ]
                    }
                }
            ],
        }
    }


def path(kind: str, text: str) -> dict[str, Any]:
    """Return the condition on a path."""
    return {"url_path": {"path": {kind: text}}}


@pytest.mark.parametrize(
    "spec",
    [
        {"action": "DENY"},
        {"rules": [{"when": [{"key": "request.headers[x]"}]}]},
        {"rules": [{"from": [{"source": {"ipBlocks": ["10.0.0.0/8"]}}]}]},
        {"rules": [{"to": [{"operation": {"hosts": ["a"]}}]}]},
        {"targetRefs": []},
    ],
)
def test_a_policy_that_nobody_has_taught_it_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(UntranslatedError):
        role_filter([policy("new", spec)], {"app": "tool"}, {})


@pytest.mark.parametrize("spec", [{}, {"mtls": {"mode": "PERMISSIVE"}}, {"portLevelMtls": {}}])
def test_mutual_tls_that_is_not_strict_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(UntranslatedError):
        require_mutual_tls([policy("default", spec)])
    with pytest.raises(UntranslatedError):
        require_mutual_tls([])
