"""Holds what is written of manifests to following from the configuration and the call graph."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from gateway.manifests.rendering.render import differences, rendered, write
from services.runtime.config import Config
from services.runtime.topology import EDGES, GATEWAY, LLM
from tests.requirements import requirement
from tests.unit.gateway.manifests.made import K8S, Object, configured, named, objects


@requirement("cluster:generated")
def test_the_files_that_ship_are_those_that_are_written() -> None:
    assert differences(rendered(configured(), K8S), K8S) == ""


# The network and the mesh.


def allowed_by_mesh(config: Config) -> Iterator[tuple[str, str, str, str]]:
    """Yield who may call whom, at which port and by which path."""
    for policy in objects("components/istio/generated/access.yaml", config):
        for rule in policy["spec"].get("rules", ()):
            callee = policy["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"]
            (source,) = rule["from"]
            (principal,) = source["source"]["principals"]
            caller = principal.removeprefix("cluster.local/ns/sixhop/sa/")
            for each in rule["to"]:
                operation = each["operation"]
                for path in operation.get("paths", ("*",)):
                    yield caller, callee, operation["ports"][0], path


@requirement("cluster:edges")
def test_the_mesh_lets_through_what_the_call_graph_names_and_nothing_else() -> None:
    rooms = {
        "routing": "/sixhop.routing.v1.RoutingService/*",
        "domain": "/sixhop.domain.v1.DomainService/*",
        "tool": "/sixhop.tool.v1.ToolService/*",
        "model": "/sixhop.model.v1.ModelService/*",
        "model-backup": "/sixhop.model.v1.ModelService/*",
    }
    edges = [(edge.caller, edge.callee) for edge in EDGES if edge.callee != LLM]
    calls = {(a.replace("_", "-"), b.replace("_", "-")) for a, b in edges}
    wanted = {(caller, callee, rooms[callee]) for caller, callee in calls}
    # Operators' orders come by the gateway, and routing's board asks the replicas.
    wanted |= {(GATEWAY, callee, "/sixhop.runtime.v1.RuntimeService/*") for callee in rooms}
    wanted.add(("routing", "domain", "/sixhop.runtime.v1.RuntimeService/GetSnapshot"))

    allowed = set(allowed_by_mesh(configured()))

    inside = {(caller, callee, path) for caller, callee, _, path in allowed if callee != GATEWAY}
    assert inside == wanted
    ports = {callee: port for _, callee, port, _ in allowed if callee != GATEWAY}
    assert ports == {
        "routing": "7401",
        "domain": "7402",
        "tool": "7403",
        "model": "7404",
        "model-backup": "7405",
    }


@requirement("cluster:edges")
def test_nobody_is_let_in_by_default() -> None:
    config = configured()
    access = objects("components/istio/generated/access.yaml", config)
    network = objects("base/generated/network.yaml", config)

    assert named("deny-all", access) == {}
    assert named("default-deny", network) == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }


@requirement("cluster:edges")
def test_clients_reach_no_order_of_operators() -> None:
    config = configured()
    policy = named("gateway-from-edge", objects("components/istio/generated/access.yaml", config))

    (rule,) = policy["rules"]
    grpc, http = (each["operation"] for each in rule["to"])
    assert not any("RuntimeService" in path for path in grpc["paths"])
    assert {"/v1/admin", "/v1/admin/*"} <= set(http["notPaths"])


def names(peers: list[Object], where: str) -> set[str]:
    """Return the hops that a rule of the network names."""
    return {
        peer["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
        for each in peers
        for peer in each.get(where, ())
        if "podSelector" in peer and "namespaceSelector" not in peer
    }


@requirement("cluster:edges")
def test_both_sides_of_the_network_name_the_same_edges() -> None:
    policies = objects("base/generated/network.yaml", configured())
    hops = {p["metadata"]["name"]: p["spec"] for p in policies if "-deny" not in str(p)}
    del hops["dns"]

    into = {
        (caller, callee)
        for callee, spec in hops.items()
        for caller in names(spec["ingress"], "from")
    }
    out_of = {
        (caller, callee) for caller, spec in hops.items() for callee in names(spec["egress"], "to")
    }

    edges = [(edge.caller, edge.callee) for edge in EDGES if edge.callee != LLM]
    graph = {(a.replace("_", "-"), b.replace("_", "-")) for a, b in edges}
    asks = {(GATEWAY, callee) for callee in hops if callee != GATEWAY}
    assert into == out_of == graph | asks


# Numbers.


@requirement("cluster:generated")
@pytest.mark.parametrize(
    ("file", "name", "variable", "value", "old", "new"),
    [
        ("routes", "tool", "CALLS__TOOL__STEP_TIMEOUT_S", "7", "timeout: 20s", "timeout: 7s"),
        ("routes", "tool", "TOOL__PORT", "9000", "number: 7403", "number: 9000"),
        ("destinations", "tool", "BULKHEAD__DATA__PERMITS", "52", "Requests: 165", "Requests: 190"),
        ("destinations", "model", "BULKHEAD__CORE__PERMITS", "16", "Requests: 80", "Requests: 20"),
        ("access", "tool-calls-from-domain", "TOOL__PORT", "9000", "- '7403'", "- '9000'"),
    ],
)
def test_a_number_of_the_mesh_follows_from_the_configuration(
    file: str, name: str, variable: str, value: str, old: str, new: str
) -> None:
    path = f"components/istio/generated/{file}.yaml"
    before = yaml.safe_dump(named(name, objects(path, configured())))
    after = yaml.safe_dump(named(name, objects(path, configured(**{variable: value}))))

    assert (old in before, new in before) == (True, False)
    assert (old in after, new in after) == (False, True)


def pod_of(hop: str, config: Config) -> tuple[Object, Object]:
    """Return the patch of a hop's pods, and of the container in it."""
    pod = objects(f"base/{hop}/generated.yaml", config)[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


@requirement("cluster:generated")
def test_a_pod_has_the_time_that_its_hop_takes_to_drain() -> None:
    pod, container = pod_of("tool", configured(TOOL__DRAIN_TIMEOUT_S="200"))

    assert pod["terminationGracePeriodSeconds"] == 5 + 200 + 5
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}


@requirement("cluster:generated")
def test_a_pod_has_the_time_of_its_longest_run_even_when_it_drains_for_less() -> None:
    pod, _ = pod_of("gateway", configured(GATEWAY__DRAIN_TIMEOUT_S="1"))

    assert pod["terminationGracePeriodSeconds"] == 5 + 120 + 5


@requirement("cluster:generated")
def test_ports_and_probes_are_where_the_hop_listens() -> None:
    _, container = pod_of("gateway", configured(GATEWAY__PORT="9001", GATEWAY__HTTP_PORT="9002"))

    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (ports["grpc"], ports["http"]) == (9001, 9002)
    asked = {name: container[f"{name}Probe"]["grpc"] for name in ("startup", "readiness")}
    assert asked == {
        # A hop whose dependencies are away is not started again.
        "startup": {"port": 9001, "service": "liveness"},
        "readiness": {"port": 9001, "service": "readiness"},
    }


@requirement("cluster:generated")
@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, "102"),
        ({"LIMIT__MAX_INFLIGHT": "100"}, "40"),
        ({"LIMIT__ALGORITHM": "gradient", "LIMIT__GRADIENT__INITIAL_LIMIT": "50"}, "20"),
    ],
)
def test_pods_are_added_before_any_call_is_refused(
    variables: Mapping[str, str], count: str
) -> None:
    patch = objects("base/domain/generated.yaml", configured(**variables))[1]

    cpu, inflight = patch["spec"]["metrics"]
    assert cpu["containerResource"]["container"] == "app"
    assert inflight["pods"]["metric"] == {"name": "sixhop_inflight_calls"}
    assert inflight["pods"]["target"]["averageValue"] == count


def test_over_http_a_gateway_is_not_ejected_for_what_is_behind_it() -> None:
    config = configured()
    policy = named("gateway", objects("components/istio/generated/destinations.yaml", config))

    (over_http,) = policy["trafficPolicy"]["portLevelSettings"]
    assert over_http["port"] == {"number": 7480}
    outlier = over_http["outlierDetection"]
    assert (outlier["consecutiveGatewayErrors"], outlier["consecutive5xxErrors"]) == (0, 0)
    assert policy["trafficPolicy"]["outlierDetection"]["consecutiveGatewayErrors"] == 3


# Parts of hops.


@requirement("cluster:generated")
def test_a_folder_more_is_a_part_more(tmp_path: Path) -> None:
    for name in ("tool-core", "tool-external", "domain-orders", "model-large", "generated"):
        (tmp_path / "components/split" / name).mkdir(parents=True)
    config, split = configured(), "components/split/generated"

    services = objects(f"{split}/services.yaml", config, tmp_path)
    rules = objects(f"{split}/destinations.yaml", config, tmp_path)
    patches = objects(f"{split}/patches.yaml", config, tmp_path)

    parts = ["domain-orders", "tool-core", "tool-external"]
    assert [each["metadata"]["name"] for each in services] == parts
    assert [each["spec"]["selector"] for each in services] == [
        {"sixhop.io/pool": part} for part in parts
    ]
    pools = {each["metadata"]["name"]: each["spec"]["trafficPolicy"] for each in rules}
    # What one caller has for that group, and a quarter more.
    assert pools["tool-external"]["connectionPool"]["http"]["http2MaxRequests"] == 10
    changed = [(each["kind"], each["metadata"]["name"]) for each in patches]
    assert changed == [
        ("VirtualService", "domain"),
        ("VirtualService", "tool"),
        ("Service", "tool"),
        ("Sidecar", "gateway"),
        ("Sidecar", "routing"),
        ("Sidecar", "domain"),
    ]


def ways(patches: list[Object], hop: str) -> list[tuple[str, str, str, str | None]]:
    """Return the routes of a hop: what they take, for which part, where to, and how long."""
    (spec,) = (
        each["spec"]
        for each in patches
        if (each["kind"], each["metadata"]["name"]) == ("VirtualService", hop)
    )
    found = []
    for route in spec["http"]:
        match: Object = (route.get("match") or [{}])[0]
        ((_, value),) = match.get("headers", {"": {"exact": ""}}).items()
        (there,) = route["route"]
        path = match.get("uri", {}).get("exact", "*").rpartition("/")[2]
        found.append((path, value["exact"], there["destination"]["host"], route.get("timeout")))
    return found


@requirement("cluster:generated")
def test_a_call_goes_to_the_part_that_it_names_and_every_other_to_the_rest() -> None:
    patches = objects("components/split/generated/patches.yaml", configured())

    assert ways(patches, "tool") == [
        ("ExecuteTool", "auxiliary", "tool-auxiliary", "20s"),
        ("ExecuteTool", "data", "tool-data", "20s"),
        ("ExecuteTool", "external", "tool-external", "20s"),
        ("WatchSnapshots", "", "tool-core", None),
        ("*", "", "tool-core", "20s"),
    ]
    assert ways(patches, "domain") == [
        ("RunAgent", "reports", "domain-reports", None),
        ("RunAgent", "research", "domain-research", None),
        ("RunAgent", "", "domain", None),
        ("*", "", "domain", "5s"),
    ]


# Files.


def test_files_are_written_once_and_what_is_left_over_goes(tmp_path: Path) -> None:
    first = rendered(configured(), K8S)

    assert sorted(write(first, tmp_path)) == sorted(first)
    assert write(first, tmp_path) == []
    gone = Path("components/split/generated/services.yaml")
    fewer = {path: text for path, text in first.items() if path != gone}
    assert write(fewer, tmp_path) == [gone]
    assert not (tmp_path / gone).exists()


@pytest.mark.parametrize("kept", [True, False])
def test_a_file_that_was_edited_by_hand_differs(tmp_path: Path, kept: bool) -> None:
    files = rendered(configured(), K8S)
    write(files, tmp_path)
    edited = tmp_path / "components/istio/generated/routes.yaml"
    head, _, body = edited.read_text(encoding="utf-8").partition("\n")
    text = body.replace("timeout: 20s", "timeout: 60s")
    edited.write_text(f"{head}\n{text}" if kept else text, encoding="utf-8")

    found = differences(files, tmp_path)

    assert "-  - timeout: 60s" in found or "-    timeout: 60s" in found
    assert str(edited) in found
