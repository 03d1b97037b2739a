"""Holds what is written of those outside of the suite to where they are."""

import pytest

from services.runtime.config import Config
from tests.requirements import requirement
from tests.unit.gateway.manifests.made import Object, configured, named, objects


@requirement("cluster:edges")
def test_a_proxy_knows_whom_its_hop_calls() -> None:
    found = objects("components/istio/generated/egress.yaml", configured())

    (egress,) = named("tool", found)["egress"]
    (of_a_model,) = named("model", found)["egress"]
    assert egress["hosts"] == [
        "./model.sixhop.svc.cluster.local",
        "./model-backup.sixhop.svc.cluster.local",
    ]
    assert of_a_model["hosts"] == ["./llm.example.com"]
    assert named("outside-tls-443", found)["hosts"] == ["llm-backup.example.com", "llm.example.com"]


def test_a_model_that_is_shipped_is_nobody_outside() -> None:
    config = configured(MODEL__BASE_URL="embedded", MODEL_BACKUP__BASE_URL="")
    found = objects("components/istio/generated/egress.yaml", config)

    assert named("model", found)["egress"] == [{"hosts": ["~/*"]}]
    assert "ServiceEntry" not in {each["kind"] for each in found}


def egress_of(hop: str, config: Config) -> Object:
    """Return the last place that the network lets a hop reach."""
    policy = named(hop, objects("base/generated/network.yaml", config))
    last: Object = policy["egress"][-1]
    return last


@requirement("cluster:edges")
def test_a_model_of_the_same_cluster_is_reached_where_it_is() -> None:
    config = configured(MODEL__BASE_URL="http://vllm.models.svc:8000/v1")
    found = objects("components/istio/generated/egress.yaml", config)

    assert named("model", found)["egress"] == [{"hosts": ["models/vllm.models.svc.cluster.local"]}]
    assert "vllm" not in str([each for each in found if each["kind"] == "ServiceEntry"])
    label = {"kubernetes.io/metadata.name": "models"}
    assert egress_of("model", config) == {
        "to": [{"namespaceSelector": {"matchLabels": label}}],
        "ports": [{"protocol": "TCP", "port": 8000}],
    }


@requirement("cluster:edges")
@pytest.mark.parametrize(
    ("url", "address", "block", "words", "port"),
    [
        ("http://10.1.2.3:8000/v1", "10.1.2.3", "10.1.2.3/32", "10-1-2-3", 8000),
        ("https://203.0.113.7/v1", "203.0.113.7", "203.0.113.7/32", "203-0-113-7", 443),
        (
            *("http://[fd00::7]:8000/v1", "fd00::7", "fd00::7/128"),
            *("fd00-0000-0000-0000-0000-0000-0000-0007", 8000),
        ),
    ],
)
def test_an_address_is_reached_where_it_is_and_nothing_beside_it(
    url: str, address: str, block: str, words: str, port: int
) -> None:
    config = configured(MODEL__BASE_URL=url)
    found = objects("components/istio/generated/egress.yaml", config)
    entry = f"address-{words}-{port}"

    assert egress_of("model", config) == {
        "to": [{"ipBlock": {"cidr": block}}],
        "ports": [{"protocol": "TCP", "port": port}],
    }
    assert named("model", found)["egress"] == [{"hosts": [f"./{entry}.outside"]}]
    rule = named(entry, found)
    assert (rule["hosts"], rule["addresses"]) == ([f"{entry}.outside"], [address])
    assert rule["endpoints"] == [{"address": address}]
    assert rule["ports"] == [{"number": port, "name": "tcp", "protocol": "TCP"}]
    assert named("outside-tls-443", found)["hosts"] == ["llm-backup.example.com"]


def test_a_model_in_the_same_pod_is_nobody_outside() -> None:
    config = configured(MODEL__BASE_URL="http://127.0.0.1:8000/v1")
    found = objects("components/istio/generated/egress.yaml", config)

    assert named("model", found)["egress"] == [{"hosts": ["~/*"]}]
    assert "127.0.0.1" not in str(objects("base/generated/network.yaml", config))


@requirement("cluster:edges")
def test_whoever_signs_tokens_is_reached_by_the_gateway_alone() -> None:
    config = configured(
        GATEWAY__JWT__JWKS_URL="https://login.example.com:8443/keys",
        GATEWAY__JWT__ISSUER="https://login.example.com/",
        GATEWAY__JWT__AUDIENCE="sixhop",
    )
    found = objects("components/istio/generated/egress.yaml", config)

    assert "./login.example.com" in named("gateway", found)["egress"][0]["hosts"]
    assert "login" not in str(named("routing", found))
    assert named("outside-tls-8443", found)["hosts"] == ["login.example.com"]
    assert egress_of("gateway", config)["ports"] == [{"protocol": "TCP", "port": 8443}]
