"""Plants one error of each kind into the pods of production, and sees who notices it.

The table says of each error all who notice, so it is also the list of what each of them misses.
"""

from pathlib import Path

import pytest

from tests.integration.k8s.planting import (
    CHECK,
    GONE,
    SCHEMAS,
    Change,
    Planted,
    both,
    error,
    hold_to_who_notices,
    production,
    put,
    renamed,
    told,
)
from tests.requirements import requirement

pytestmark = requirement("cluster:validated")

CONTAINER = "spec/template/spec/containers/0"


def pod(change: Change, *caught_by: str, words: str) -> object:
    return error("Deployment", "routing", change, *caught_by, words=words)


ERRORS = [
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


def test_what_we_ship_is_fine(tmp_path: Path) -> None:
    documents = production()

    assert len(documents) > 80
    assert told(documents, documents, tmp_path) == {}


@pytest.mark.parametrize("planted", ERRORS)
def test_every_planted_error_is_noticed_by_those_who_can(planted: Planted, tmp_path: Path) -> None:
    hold_to_who_notices(planted, tmp_path)
