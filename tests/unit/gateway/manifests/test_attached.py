"""Tests that a route from outside is held to a listener that takes it."""

from functools import partial
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import checked, texts_found

EDGE = """\
apiVersion: v1
kind: Namespace
metadata: {name: hops, labels: {team: x}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec:
  listeners:
    - name: plain
      hostname: plain.example.com
      allowedRoutes: {namespaces: {from: All}}
    - name: main
      hostname: "*.example.com"
      allowedRoutes:
        kinds: [{kind: GRPCRoute}]
        namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: hops}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: ours, namespace: hops}
spec:
  parentRefs: [{name: edge, namespace: edge, sectionName: main}]
  hostnames: [grpc.example.com]
"""
SELECTOR = "{kubernetes.io/metadata.name: hops}"
found = partial(texts_found, "routes-attached")


@requirement("check:manifests")
@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        (", sectionName: main", ""),
        (SELECTOR, "{team: x}"),
        ("  hostnames: [grpc.example.com]\n", ""),
        ("[grpc.example.com]", '["*.example.com"]'),
        ("[grpc.example.com]", '["*.eu.example.com"]'),
        ('"*.example.com"', "grpc.example.com"),
        ("[grpc.example.com]", "[other.org, grpc.example.com]"),
        ("kind: GRPCRoute\nmetadata", "kind: HTTPRoute\nmetadata"),
    ],
)
def test_a_route_that_some_listener_takes_is_fine(change: tuple[str, str], tmp_path: Path) -> None:
    text = EDGE.replace(*change)
    if "HTTPRoute" in text:  # Only the other listener takes those.
        text = text.replace("main}]", "plain}]").replace("[grpc.ex", "[plain.ex")

    assert found(text, tmp_path) == []


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[{name: edge", "[{name: egde"), "its parent egde in edge is not here"),
        (("edge, sectionName", "hops, sectionName"), "edge in hops is not here"),
        (("sectionName: main", "sectionName: mian"), "none is called mian"),
        ((SELECTOR, "{team: y}"), "main takes no route of hops"),
        (("from: Selector", "from: Same"), "main takes those of its own namespace"),
        (("kinds: [{kind: GRPCRoute}]", "kinds: [{kind: HTTPRoute}]"), "main takes HTTPRoute"),
        (("[grpc.example.com]", "[grpc.example.org]"), "main is for *.example.com"),
        (("[grpc.example.com]", "[example.com]"), "main is for *.example.com"),
    ],
)
def test_a_route_that_none_takes_is_told(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    assert EDGE.count(change[0]) == 1

    (text,) = found(EDGE.replace(*change), tmp_path)

    assert words in text


SCALER = """\
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: edge, namespace: edge}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: edge-istio}
  minReplicas: 2
  maxReplicas: 6
"""


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("change", "is_found"),
    [
        (("", ""), False),
        (("name: edge-istio", "name: edge-envoy"), True),
        (("kind: Deployment", "kind: StatefulSet"), True),
        (("namespace: edge}\nspec:\n  scale", "namespace: hops}\nspec:\n  scale"), True),
    ],
)
def test_pods_that_the_mesh_makes_for_a_gateway_can_be_scaled(
    change: tuple[str, str], is_found: bool, tmp_path: Path
) -> None:
    edge = EDGE.replace("spec:\n  listeners", "spec:\n  gatewayClassName: istio\n  listeners")
    text = (edge + SCALER).replace(*change, 1)

    rules = {each.rule for each in checked(text, tmp_path).findings}

    assert ("scaler-scales" in rules) == is_found
