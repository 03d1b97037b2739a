"""Tests that the pods are in the mesh whose rules are written for them."""

from functools import partial
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import texts_found

MESHED = """\
apiVersion: v1
kind: Namespace
metadata: {name: a, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: routing, namespace: a}
spec:
  template:
    metadata: {labels: {app: routing}}
    spec: {containers: [{name: app, command: [python, -m, services.routing]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: routing, namespace: a}
spec: {host: routing, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny-all, namespace: a}
spec: {}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: a}
spec: {mtls: {mode: STRICT}}
"""
INJECTED = "labels: {istio-injection: enabled}"
POD = "labels: {app: routing}"
OTHERS = """\
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: others, namespace: a}
spec: {selector: {matchLabels: {app: APP}}, mtls: {mode: PERMISSIVE}}
"""
found = partial(texts_found, "pods-in-mesh")
"""Returns what the rule finds; others say that these have no probes."""


@requirement("check:manifests")
@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        (INJECTED, "labels: {istio.io/rev: stable}"),
        (INJECTED, "labels: {istio.io/dataplane-mode: ambient}"),
        # Who does not say has a namespace that somebody else made.
        ("kind: Namespace\nmetadata: {name: a, labels: {istio-injection: enabled}}", "kind: Other"),
        (", trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}", ""),
        ("name: default, namespace: a", "name: default, namespace: istio-system"),
        ("kind: AuthorizationPolicy", "kind: Other"),
        (
            "---\napiVersion: networking",
            OTHERS.replace("APP", "tool") + "---\napiVersion: networking",
        ),
    ],
)
def test_pods_that_are_in_the_mesh_are_fine(change: tuple[str, str], tmp_path: Path) -> None:
    assert found(MESHED.replace(*change, 1), tmp_path) == []


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((INJECTED, "labels: {}"), "nothing puts its pods into the mesh"),
        ((INJECTED, "labels: {istio-injection: disabled}"), "the label istio-injection: enabled"),
        ((POD, 'labels: {app: routing, sidecar.istio.io/inject: "false"}'), "nothing puts its"),
        (("ISTIO_MUTUAL", "DISABLE"), "with tls.mode DISABLE calls come from nobody"),
        (("STRICT", "PERMISSIVE"), "may call it in the clear"),
        (("kind: PeerAuthentication", "kind: Other"), "may call it in the clear"),
        (("name: default, namespace: a", "name: default, namespace: b"), "in the clear"),
        (
            ("---\napiVersion: net", OTHERS.replace("APP", "routing") + "---\napiVersion: net"),
            "may call it in the clear",
        ),
    ],
)
def test_pods_that_are_not_are_told(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    assert MESHED.count(change[0]) == 1

    (text,) = found(MESHED.replace(*change), tmp_path)

    assert words in text


def test_a_pod_may_be_put_in_by_itself(tmp_path: Path) -> None:
    outside = MESHED.replace(INJECTED, "labels: {}")

    assert found(outside.replace(POD, 'labels: {sidecar.istio.io/inject: "true"}'), tmp_path) == []


def test_without_a_mesh_nobody_has_to_be_in_it(tmp_path: Path) -> None:
    without = MESHED.replace(INJECTED, "labels: {}").partition("---\napiVersion: networking")[0]

    assert found(without, tmp_path) == []
