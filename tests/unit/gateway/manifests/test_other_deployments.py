"""Holds the checks of manifests to knowing a second deployment of a hop."""

from pathlib import Path

from gateway.manifests.hops import hop_of, longest_s, methods
from services.runtime.topology import MODEL, MODEL_BACKUP
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import SUITE, checked
from tests.unit.runtime.checks.configuring import configured

BACKUP = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: model-backup}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 126
      volumes: [{name: settings, configMap: {name: sixhop}}]
      containers:
        - name: app
          command: [python, -m, services.model, --as=model_backup]
          volumeMounts: [{name: settings, mountPath: /etc/sixhop}]
          env:
            - {name: SIXHOP_CONFIG, value: /etc/sixhop/sixhop.toml}
            - {name: SIXHOP_MODEL_BACKUP__HOST, value: "::"}
            - {name: SIXHOP_MODEL_BACKUP__DRAIN_TIMEOUT_S, value: "116"}
          lifecycle: {preStop: {sleep: {seconds: 5}}}
          readinessProbe: {grpc: {port: PORT, service: readiness}}
          livenessProbe: {grpc: {port: PORT, service: liveness}}
---
apiVersion: v1
kind: Service
metadata: {name: model-backup}
spec: {ports: [{name: grpc, port: PORT}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: model-backup}
spec:
  hosts: [model-backup]
  http:
    - route: [{destination: {host: model-backup}}]
      retries: {attempts: 0}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: model-backup}
spec:
  host: model-backup
  trafficPolicy: {outlierDetection: {consecutiveGatewayErrors: 3, consecutive5xxErrors: 10}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: model-backup}
spec: {scaleTargetRef: {kind: Deployment, name: model-backup}, minReplicas: 1, maxReplicas: 2}
"""


@requirement("failover:deployment")
def test_a_second_deployment_is_held_to_its_own_port(tmp_path: Path) -> None:
    right = checked(SUITE + BACKUP.replace("PORT", "7405"), tmp_path)
    wrong = checked(SUITE + BACKUP.replace("PORT", "7404"), tmp_path)

    assert right.findings == ()
    assert right.hops == ("routing", "model_backup")
    assert {finding.rule for finding in wrong.findings} == {"probes-by-name"}
    assert all("model_backup listens on 7405" in finding.text for finding in wrong.findings)


def test_a_second_deployment_serves_what_its_hop_does_for_as_long() -> None:
    served = {method.path for method in methods(MODEL)}
    configuration = configured(MODEL_BACKUP__BASE_URL="http://small:8000/v1")

    assert {method.path for method in methods(MODEL_BACKUP)} == served
    assert longest_s(MODEL_BACKUP, configuration) == longest_s(MODEL, configuration)
    assert longest_s(MODEL_BACKUP, configured()) == longest_s(MODEL, configured())
    assert hop_of("sixhop-model-backup.sixhop.svc.cluster.local") == MODEL_BACKUP
