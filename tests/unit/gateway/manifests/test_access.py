"""Tests that who may call whom is compared with the call graph, in the mesh and in the network."""

from pathlib import Path

import pytest

from services.runtime.topology import DEFAULT_PORTS, DOMAIN, EDGES, GATEWAY, HOPS, ROUTING, TOOL
from tests.requirements import requirement
from tests.unit.gateway.manifests.breaking import texts_found

LOOKS = "/sixhop.runtime.v1.RuntimeService/*"
DENY_ALL = """---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny-all, namespace: sixhop}
spec: {}
"""
DNS = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: dns, namespace: sixhop}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  egress: [{ports: [{port: 53, protocol: UDP}]}]
"""


def pods(hop: str) -> str:
    return f"""---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {hop}, namespace: sixhop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {hop}, namespace: sixhop}}
spec:
  template:
    metadata: {{labels: {{app: {hop}}}}}
    spec:
      serviceAccountName: {hop}
      containers: [{{name: app, ports: [{{name: grpc, containerPort: {DEFAULT_PORTS[hop]}}}]}}]
"""


def allowed(caller: str, callee: str, paths: str = "") -> str:
    paths = paths or f"/sixhop.{callee}.v1.{callee.title()}Service/*"
    return f"""---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: {callee}-from-{caller}-{len(paths)}, namespace: sixhop}}
spec:
  selector: {{matchLabels: {{app: {callee}}}}}
  rules:
    - from: [{{source: {{principals: [cluster.local/ns/sixhop/sa/{caller}]}}}}]
      to: [{{operation: {{ports: ["{DEFAULT_PORTS[callee]}"], paths: [{paths}]}}}}]
"""


def connected(caller: str, callee: str) -> str:
    port = f"ports: [{{port: {DEFAULT_PORTS[callee]}}}]"
    return f"""---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {callee}-from-{caller}, namespace: sixhop}}
spec:
  podSelector: {{matchLabels: {{app: {callee}}}}}
  ingress: [{{from: [{{podSelector: {{matchLabels: {{app: {caller}}}}}}}], {port}}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {caller}-to-{callee}, namespace: sixhop}}
spec:
  podSelector: {{matchLabels: {{app: {caller}}}}}
  policyTypes: [Egress]
  egress: [{{to: [{{podSelector: {{matchLabels: {{app: {callee}}}}}}}], {port}}}]
"""


INNER = [(edge.caller, edge.callee) for edge in EDGES if {edge.caller, edge.callee} <= set(HOPS)]
PODS = "".join(pods(hop) for hop in HOPS)
MESH = [
    *(allowed(caller, callee) for caller, callee in INNER),
    *(allowed(GATEWAY, hop, LOOKS) for hop in HOPS if hop != GATEWAY),
    allowed(ROUTING, DOMAIN, "/sixhop.runtime.v1.RuntimeService/GetSnapshot"),
    allowed("edge", GATEWAY),
]
NETWORK = [
    DNS,
    *(connected(caller, callee) for caller, callee in INNER),
    *(connected(GATEWAY, hop) for hop in HOPS if hop not in (GATEWAY, ROUTING)),
]


def mesh_found(policies: str, folder: Path) -> list[str]:
    return texts_found("mesh-is-call-graph", PODS + policies, folder)


def network_found(policies: str, folder: Path) -> list[str]:
    return texts_found("network-is-call-graph", PODS + policies, folder)


@requirement("check:call-graph")
def test_policies_that_are_the_call_graph_are_fine(tmp_path: Path) -> None:
    assert mesh_found(DENY_ALL + "".join(MESH), tmp_path) == []
    assert network_found("".join(NETWORK), tmp_path) == []
    # Whoever has no policies has not said who may.
    assert mesh_found("", tmp_path) == network_found("", tmp_path) == []


@requirement("check:call-graph")
@pytest.mark.parametrize("number", range(len(MESH) - 1))
def test_every_edge_of_the_call_graph_must_be_let_through_the_mesh(
    number: int, tmp_path: Path
) -> None:
    (text,) = mesh_found(DENY_ALL + "".join(MESH[:number] + MESH[number + 1 :]), tmp_path)

    assert "no AuthorizationPolicy lets" in text


@requirement("check:call-graph")
@pytest.mark.parametrize("number", range(1, len(NETWORK)))
def test_every_edge_of_the_call_graph_must_be_connected(number: int, tmp_path: Path) -> None:
    inwards, outwards = network_found("".join(NETWORK[:number] + NETWORK[number + 1 :]), tmp_path)

    assert "no ingress" in inwards
    assert "no egress" in outwards


@requirement("check:call-graph")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (allowed(GATEWAY, TOOL), "lets gateway call /sixhop.tool.v1.ToolService/ExecuteTool"),
        (allowed(TOOL, ROUTING), "lets tool call /sixhop.routing.v1.RoutingService/ListAgents"),
        (allowed(ROUTING, TOOL, LOOKS), "lets routing call /sixhop.runtime.v1.RuntimeService/"),
        (allowed(DOMAIN, GATEWAY), "lets domain call /sixhop.gateway.v1.GatewayService/"),
        (
            allowed(GATEWAY, TOOL).replace("cluster.local/ns/sixhop/sa/gateway", '"*"'),
            "an AuthorizationPolicy lets gateway call",
        ),
        (
            allowed(GATEWAY, TOOL).replace("principals: [cluster", "notPrincipals: [x.cluster"),
            "anybody may call /sixhop.tool.v1.ToolService/ExecuteTool",
        ),
        (
            DENY_ALL.replace("deny-all", "open").replace("spec: {}", "spec: {rules: [{}]}"),
            "anybody may call",
        ),
    ],
)
def test_a_call_that_is_no_edge_must_not_be_let_through(
    more: str, words: str, tmp_path: Path
) -> None:
    assert any(words in text for text in mesh_found(DENY_ALL + "".join(MESH) + more, tmp_path))


@requirement("check:call-graph")
def test_policies_that_lie_elsewhere_hold_for_nobody(tmp_path: Path) -> None:
    elsewhere = (DENY_ALL + "".join(MESH)).replace("namespace: sixhop", "namespace: other")

    texts = mesh_found(elsewhere, tmp_path)

    assert len(texts) == len(HOPS) - 1
    assert all("anybody may call" in text for text in texts)


@requirement("check:call-graph")
def test_what_is_denied_is_refused_whoever_allows_it(tmp_path: Path) -> None:
    deny = allowed(ROUTING, DOMAIN).replace("spec:", "spec:\n  action: DENY").replace("-from", "-x")

    (text,) = mesh_found(DENY_ALL + "".join(MESH) + deny, tmp_path)

    assert "lets routing call /sixhop.domain.v1.DomainService/" in text


@requirement("check:call-graph")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("", connected(TOOL, ROUTING)), "let tool to routing at port 7401"),
        ((DNS, DNS.replace("UDP", "TCP")), "no egress of a NetworkPolicy leads to the names"),
        (
            (DNS, DNS.replace("egress:", "ingress: [{from: [{podSelector: {}}]}]\n  egress:")),
            "any pod of sixhop may come in at port 7404",
        ),
    ],
)
def test_pods_that_have_nothing_to_say_must_not_be_connected(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    text = "".join(NETWORK).replace(*change) if change[0] else "".join(NETWORK) + change[1]

    assert any(words in each for each in network_found(text, tmp_path))


@requirement("check:call-graph")
def test_a_pod_of_the_mesh_must_reach_its_control_plane(tmp_path: Path) -> None:
    mesh = "---\nkind: DestinationRule\nmetadata: {name: x}\nspec: {host: x}\n"

    texts = network_found("".join(NETWORK) + mesh, tmp_path)

    assert len(texts) == len(HOPS)
    assert all("allow port 15012 of TCP" in text for text in texts)


@requirement("check:call-graph")
def test_ports_may_be_named_and_namespaces_chosen(tmp_path: Path) -> None:
    named = "".join(NETWORK).replace("port: 7403", "port: grpc")
    chosen = named.replace(
        "from: [{podSelector",
        "from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: sixhop}}, "
        "podSelector",
    )
    wrong = chosen.replace("name: sixhop}}, pod", "name: other}}, pod")

    assert network_found(named, tmp_path) == network_found(chosen, tmp_path) == []
    assert all("no ingress" in text for text in network_found(wrong, tmp_path))


def outwards(peer: str) -> str:
    return f"""---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: model-out, namespace: sixhop}}
spec:
  podSelector: {{matchLabels: {{app: model}}}}
  policyTypes: [Egress]
  egress: [{{to: [{peer}], ports: [{{port: 8000}}]}}]
"""


@requirement("check:call-graph")
@pytest.mark.parametrize(
    ("peer", "is_open"),
    [
        ("{ipBlock: {cidr: 10.1.2.3/32}}", True),
        ("{ipBlock: {cidr: 10.0.0.0/8, except: [10.2.0.0/16]}}", True),
        ("{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 192.168.0.0/16]}}", False),
        ("{ipBlock: {cidr: 10.1.2.4/32}}", False),
        ("{ipBlock: {cidr: '::/0'}}", False),
        ("{podSelector: {}}", False),
    ],
)
def test_an_address_of_a_provider_is_reached(peer: str, is_open: bool, tmp_path: Path) -> None:
    text = PODS + "".join(NETWORK) + outwards(peer)

    def told(url: str) -> list[str]:
        return texts_found("network-is-call-graph", text, tmp_path, MODEL__BASE_URL=url)

    assert told("http://llm.internal:8000/v1") == told("http://127.0.0.1:8001/v1") == []
    shut = told("http://10.1.2.3:8000/v1")
    assert [("10.1.2.3" in text, "allow ipBlock 10.1.2.3/32" in text) for text in shut] == (
        [] if is_open else [(True, True)]
    )
    assert len(told("http://10.1.2.3:8001/v1")) == 1
