"""Tests that a pod's callees are looked for where its configuration says they are."""

from functools import partial
from pathlib import Path

import pytest

from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import texts_found

TWO_HOPS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sixhop, namespace: a}
data:
  sixhop.toml: |
    [domain]
    host = "domain"
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: routing, namespace: a}
spec:
  template:
    metadata: {labels: {app: routing}}
    spec:
      volumes: [{name: settings, configMap: {name: sixhop}}]
      containers:
        - name: app
          command: [python, -m, services.routing, /etc/sixhop/sixhop.toml]
          volumeMounts: [{name: settings, mountPath: /etc/sixhop}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: domain, namespace: a}
spec: {template: {spec: {containers: [{name: app, command: [python, -m, services.domain]}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: domain, namespace: a}
spec: {ports: [{name: grpc, port: 7402}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: routing, namespace: a}
spec:
  workloadSelector: {labels: {app: routing}}
  egress: [{hosts: [./domain.a.svc.cluster.local]}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: others, namespace: a}
spec: {egress: [{hosts: [istio-system/*]}]}
"""
HOSTS = "hosts: [./domain"
found = partial(texts_found, "callees-there")
"""Returns what the rule finds; others say that these have no probes."""


@requirement("check:call-graph")
@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ('host = "domain"', 'host = "domain.a.svc.cluster.local"'),
        ('host = "domain"', 'host = "elsewhere.example.com"'),
        ('host = "domain"', 'replicas = ["domain:7402"]'),
        (HOSTS, "hosts: [a/domain"),
        (HOSTS, '"hosts": ["*/*", x/y'),
        (HOSTS, '"hosts": ["./*.svc.cluster.local", x/y'),
        # Without a word about it everything is known.
        ("  egress: [{hosts: [./domain.a.svc.cluster.local]}]\n", ""),
    ],
)
def test_a_callee_that_is_found_is_fine(change: tuple[str, str], tmp_path: Path) -> None:
    assert found(TWO_HOPS.replace(*change), tmp_path) == []


@requirement("check:call-graph")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('host = "domain"', 'host = "domains"'), "no Service here is called domains"),
        (('host = "domain"', 'host = "127.0.0.1"'), "which is its own pod"),
        (('host = "domain"', 'replicas = ["domain:7402", "other:7402"]'), "called other"),
        (('host = "domain"', 'host = "domain"\n    port = 7409'), "has 7402; give both one port"),
        ((HOSTS, "hosts: [b/domain"), "do not know domain.a.svc.cluster.local"),
        ((HOSTS, "hosts: [./domains"), "add ./domain.a.svc.cluster.local to egress.hosts"),
        (("labels: {app: routing}}\n  e", "labels: {app: x}}\n  e"), "Sidecar others: the proxies"),
    ],
)
def test_a_callee_that_is_not_found_is_told(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    texts = found(TWO_HOPS.replace(*change), tmp_path)

    assert len(texts) == 1
    assert words in texts[0]
