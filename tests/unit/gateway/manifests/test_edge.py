"""Tests that a route from outside leads clients, and nobody else, to the right door."""

from pathlib import Path

import pytest

from services.runtime.checks.finding import Severity
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import checked

ROUTES = """\
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: edge}]
  rules:
    - matches:
        - {path: {type: PathPrefix, value: /v1/chat/completions}}
        - {path: {type: PathPrefix, value: /v1/runs}}
        - {path: {type: Exact, value: /}}
      backendRefs: [{name: gateway, port: 7480}]
---
kind: GRPCRoute
metadata: {name: calls}
spec:
  parentRefs: [{name: edge}]
  rules:
    - matches: [{method: {service: sixhop.gateway.v1.GatewayService}}]
      backendRefs: [{name: gateway, port: 7400}]
"""
RULES = {"edge-keeps-orders", "edge-right-door", "stream-not-cut", "mesh-repeats-nothing"}
LAST = "{type: Exact, value: /}"
WEB = "      backendRefs: [{name: gateway, port: 7480}]\n"
SERVICE = "{service: sixhop.gateway.v1.GatewayService}"


def found(text: str, folder: Path) -> list[tuple[str, Severity, str]]:
    return [
        (each.rule, each.severity, each.text)
        for each in checked(text, folder).findings
        if each.rule in RULES or each.rule == "route-length"
    ]


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (LAST, "{type: PathPrefix, value: /v1/adm}"),
        (LAST, "{type: PathPrefix, value: /metric}"),
        (LAST, "{type: RegularExpression, value: /v1/(state|models)}"),
        (SERVICE, "{type: RegularExpression, service: sixhop.gateway.*}"),
        (WEB, "      timeouts: {request: 120s, backendRequest: 0s}\n" + WEB),
        (WEB, "      retry: {attempts: 0}\n" + WEB),
        # Within the mesh the policies of the hops say who may.
        ("parentRefs: [{name: edge}]\n  rules:\n    - matches: [{method: " + SERVICE + "}]\n",
         "parentRefs: [{kind: Service, name: gateway}]\n  rules:\n    -\n"),
        # gRPC may come by paths as well.
        ("- {path: {type: PathPrefix, value: /v1/chat/completions}}\n"
         "        - {path: {type: PathPrefix, value: /v1/runs}}\n"
         "        - {path: {type: Exact, value: /}}\n" + WEB,
         "- {path: {type: PathPrefix, value: /sixhop.gateway.v1.GatewayService}}\n"
         + WEB.replace("7480", "7400")),
    ],
)  # fmt: skip
def test_routes_for_clients_are_fine(old: str, new: str, tmp_path: Path) -> None:
    assert not old or ROUTES.count(old) == 1

    assert found(ROUTES.replace(old, new) if old else ROUTES, tmp_path) == []


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("old", "new", "rule", "words"),
    [
        (LAST, "{type: PathPrefix, value: /v1}", "edge-keeps-orders", "lets /v1/admin in"),
        (LAST, "{type: PathPrefix, value: /}", "edge-keeps-orders", "lets /v1/admin in"),
        (LAST, "{value: /v1/admin/}", "edge-keeps-orders", "lets /v1/admin in"),
        (LAST, "{type: Exact, value: /v1/admin/shed}", "edge-keeps-orders", "/v1/admin/shed in"),
        (LAST, "{type: Exact, value: /metrics}", "edge-keeps-orders", "lets /metrics in"),
        (LAST, "{type: RegularExpression, value: /.*}", "edge-keeps-orders", "/v1/admin in"),
        (SERVICE, "{service: sixhop.runtime.v1.RuntimeService}", "edge-keeps-orders", "Runtime"),
        (SERVICE, "{type: RegularExpression, service: sixhop.*}", "edge-keeps-orders", "Runtime"),
        (f"matches: [{{method: {SERVICE}}}]", "name: all", "edge-keeps-orders", "RuntimeService"),
        (WEB, WEB.replace("7480", "7400"), "edge-right-door", "HTTP to port 7400"),
        ("port: 7400", "port: 7480", "edge-right-door", "gRPC to port 7480"),
        (WEB, "      timeouts: {request: 60s}\n" + WEB, "stream-not-cut",
         "timeouts.request 60 s cuts the stream of /v1/chat/completions, which may run for 120.0"),
        (WEB, "      timeouts: {backendRequest: 60s}\n" + WEB, "stream-not-cut", "backendRequest"),
        (WEB, "      timeouts: {request: 60}\n" + WEB, "route-length", "60 is no length"),
        (WEB, "      retry: {codes: [503]}\n" + WEB, "mesh-repeats-nothing", "paid for twice"),
        (WEB, "      retry: {attempts: 1}\n" + WEB, "mesh-repeats-nothing", "leave it out"),
    ],
)  # fmt: skip
def test_a_route_that_lets_in_cuts_or_misses_is_told(
    old: str, new: str, rule: str, words: str, tmp_path: Path
) -> None:
    assert ROUTES.count(old) == 1

    ((told, severity, text),) = found(ROUTES.replace(old, new), tmp_path)

    assert (told, severity) == (rule, Severity.VIOLATION)
    assert words in text
