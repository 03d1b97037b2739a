"""Tests that what is taken away is missed, and by whom."""

from pathlib import Path

import pytest

from services.runtime.checks.finding import Severity
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import checked

V, W = Severity.VIOLATION, Severity.WARNING
OPEN = """\
kind: Namespace
metadata: {name: a}
---
kind: Deployment
metadata: {name: tool-core, namespace: a}
spec:
  template:
    metadata: {labels: {app: tool}}
    spec: {containers: [{name: app, command: [python, -m, services.tool]}]}
---
kind: Deployment
metadata: {name: tool-data, namespace: a}
spec:
  template:
    metadata: {labels: {app: data}}
    spec: {containers: [{name: app, command: [python, -m, services.tool]}]}
---
kind: Service
metadata: {name: tool, namespace: a}
spec: {ports: [{name: grpc, port: 7403}]}
---
kind: Service
metadata: {name: tool-data, namespace: a}
spec: {ports: [{name: grpc, port: 7403}]}
---
kind: Service
metadata: {name: model, namespace: a}
spec: {ports: [{name: grpc, port: 7404}]}
"""
"""Two parts of a hop, one pod each, and no mesh; the model runs elsewhere."""
EJECTING = "trafficPolicy: {outlierDetection: {consecutiveGatewayErrors: 3}}"


def scaler(name: str) -> str:
    return (
        f"---\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}, namespace: a}}\n"
        f"spec: {{scaleTargetRef: {{kind: Deployment, name: {name}}}, minReplicas: 3}}\n"
    )


def budget(name: str, label: str) -> str:
    return (
        f"---\nkind: PodDisruptionBudget\nmetadata: {{name: {name}, namespace: a}}\n"
        f"spec: {{maxUnavailable: 1, selector: {{matchLabels: {{app: {label}}}}}}}\n"
    )


def ejecting(name: str, host: str) -> str:
    return (
        f"---\nkind: DestinationRule\nmetadata: {{name: {name}, namespace: a}}\n"
        f"spec: {{host: {host}, {EJECTING}}}\n"
    )


NOBODY = "---\nkind: AuthorizationPolicy\nmetadata: {name: deny, namespace: a}\nspec: {}\n"
CLOSED = """\
---
kind: NetworkPolicy
metadata: {name: default-deny, namespace: a}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
"""
OTHER = "---\nkind: NetworkPolicy\nmetadata: {name: x, namespace: a}\nspec: {podSelector: {x: y}}\n"
STRICT = """\
---
kind: PeerAuthentication
metadata: {name: strict, namespace: a}
spec: {mtls: {mode: STRICT}}
"""
VIRTUAL = """\
---
kind: VirtualService
metadata: {name: tool, namespace: a}
spec:
  hosts: [tool]
  http: [{route: [{destination: {host: tool}}], retries: {attempts: 0}}]
"""
SCALERS = (scaler("tool-core"), scaler("tool-data"))
BUDGETS = (budget("tool-core", "tool"), budget("tool-data", "data"))
RULES = (ejecting("tool", "tool.a.svc.cluster.local"), ejecting("tool-data", "tool-data"))
ELSEWHERE = VIRTUAL.replace("tool", "model")
MESH = (*RULES, NOBODY, STRICT, VIRTUAL, ELSEWHERE)
INJECTED = OPEN.replace("{name: a}", "{name: a, labels: {istio-injection: enabled}}")
WHOLE = INJECTED + "".join((*SCALERS, *BUDGETS, *MESH, CLOSED))
DNS = """\
---
kind: NetworkPolicy
metadata: {name: dns, namespace: a}
spec: {podSelector: {}, policyTypes: [Ingress, Egress], egress: [{ports: [{port: 53}]}]}
"""
MISSED = (
    "pods-ejected", "closed-by-default", "budget-holds", "pods-scaled", "pods-in-mesh",
    "mesh-repeats-nothing",
)  # fmt: skip


def missed(text: str, folder: Path) -> list[tuple[Severity, str, str]]:
    """Return what is missed; without what the values of what is there are held to."""
    return [
        (each.severity, each.rule, each.text)
        for each in checked(text, folder).findings
        if each.rule in MISSED and "5 INTERNAL in a row" not in each.text
    ]


@requirement("check:manifests")
@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        # One pod of each and no mesh: nobody has asked for more.
        OPEN,
        OPEN + CLOSED,
        WHOLE + DNS,
        WHOLE.replace("{name: deny, namespace: a", "{name: deny, namespace: istio-system"),
        WHOLE.replace("{podSelector: {}, p", "{podSelector: {matchLabels: {}}, p"),
        # One budget may be for both.
        WHOLE.replace(BUDGETS[0], "").replace("{matchLabels: {app: data}}", "{}"),
    ],
)  # fmt: skip
def test_what_is_whole_misses_nothing(text: str, tmp_path: Path) -> None:
    assert missed(text, tmp_path) == []


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("taken", "severity", "rule", "words"),
    [
        (RULES[0], V, "pods-ejected", "Service tool: no DestinationRule is for it"),
        (RULES[1], V, "pods-ejected", "Service tool-data: no DestinationRule is for it"),
        (NOBODY, V, "closed-by-default", "Namespace a: there is no AuthorizationPolicy"),
        (STRICT, V, "pods-in-mesh", "mtls.mode: STRICT"),
        (VIRTUAL, V, "mesh-repeats-nothing", "Service tool: no VirtualService leads to tool"),
        (BUDGETS[1], V, "budget-holds", "Deployment tool-data: no PodDisruptionBudget is for its"),
    ],
)
def test_each_that_is_taken_away_is_missed(
    taken: str, severity: Severity, rule: str, words: str, tmp_path: Path
) -> None:
    assert WHOLE.count(taken) == 1

    found = missed(WHOLE.replace(taken, ""), tmp_path)

    assert {(severity, rule)} == {each[:2] for each in found}
    assert any(words in text for _, _, text in found)


@requirement("check:manifests")
def test_all_of_a_mesh_that_is_taken_away_at_once_is_missed(tmp_path: Path) -> None:
    found = missed(INJECTED + CLOSED, tmp_path)

    assert {severity for severity, _, _ in found} == {V}
    assert {rule for _, rule, _ in found} == {
        "pods-ejected",
        "closed-by-default",
        "pods-in-mesh",
        "mesh-repeats-nothing",
    }


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("spec: {}\n", "spec: {rules: [{}]}\n", "refuses what none of them names"),
        ("spec: {}\n", "spec: {action: DENY}\n", "refuses what none of them names"),
        ("spec: {}\n", "spec: {selector: {matchLabels: {app: tool}}}\n", "none of them names"),
        (
            "{name: deny, namespace: a",
            "{name: deny, namespace: b",
            "there is no AuthorizationPolicy",
        ),
        (CLOSED, OTHER, "is for all pods and Ingress"),
        (CLOSED, OTHER, "is for all pods and Egress"),
        (", policyTypes: [Ingress, Egress]", "", "is for all pods and Egress"),
        ("[Ingress, Egress]}", "[Ingress, Egress], egress: [{}]}", "all pods and Egress"),
        ("[Ingress, Egress]}", "[Ingress, Egress], ingress: [{}]}", "all pods and Ingress"),
        ("host: tool-data", "host: outside.example.com", "tool-data: no DestinationRule is for it"),
        (EJECTING + "}\n" + NOBODY, "x: {}}\n" + NOBODY, "without outlierDetection"),
        ("mode: STRICT", "mode: PERMISSIVE", "may call it in the clear"),
        ("mode: STRICT", "mode: DISABLE", "may call it in the clear"),
        ("{mtls:", "{portLevelMtls: {7403: {mode: DISABLE}}, mtls:", "may call it in the clear"),
    ],
)
def test_what_does_not_hold_is_as_good_as_away(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    assert WHOLE.count(old) == 1

    found = missed(WHOLE.replace(old, new), tmp_path)

    assert {severity for severity, _, _ in found} == {V}
    assert any(words in text for _, _, text in found)


def test_another_port_than_the_hops_may_be_in_the_clear(tmp_path: Path) -> None:
    scraped = WHOLE.replace("{mtls:", "{portLevelMtls: {9090: {mode: PERMISSIVE}}, mtls:")

    assert missed(scraped, tmp_path) == []


@requirement("check:manifests")
@pytest.mark.parametrize(
    ("new", "words"),
    [("", "Namespace a: there is no NetworkPolicy"), (DNS, "dns: it alone closes Egress")],
)
def test_a_network_that_the_mesh_or_another_rule_closes_is_a_warning(
    new: str, words: str, tmp_path: Path
) -> None:
    ((severity, rule, text),) = missed(WHOLE.replace(CLOSED, new), tmp_path)

    assert (severity, rule) == (W, "closed-by-default")
    assert words in text


@requirement("check:manifests")
def test_one_that_does_not_grow_as_the_others_do_is_told(tmp_path: Path) -> None:
    ((severity, rule, text),) = missed(OPEN + SCALERS[0] + BUDGETS[0], tmp_path)

    assert (severity, rule) == (W, "pods-scaled")
    assert "Deployment tool-data: no HorizontalPodAutoscaler is for it" in text


@requirement("check:manifests")
def test_a_budget_for_one_pod_is_told_to_keep_none(tmp_path: Path) -> None:
    found = missed(OPEN + BUDGETS[0], tmp_path)

    assert [(severity, rule) for severity, rule, _ in found] == [(W, "budget-holds")]
    assert "has one pod at least" in found[0][2]
