"""Holds calls to the edges of the topology."""

import pytest

from services.runtime.topology import (
    DEFAULT_PORTS,
    DEPLOYMENTS,
    EDGES,
    HOPS,
    LLM,
    MODEL,
    MODEL_BACKUP,
    Edge,
    UnknownEdgeError,
    hops_behind,
    require_edge,
)


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.caller}-{edge.callee}")
def test_an_edge_of_the_topology_may_be_called(edge: Edge) -> None:
    assert require_edge(edge.caller, edge.callee) is edge


@pytest.mark.parametrize(
    ("caller", "callee", "allowed"),
    [
        ("gateway", "domain", "routing"),
        ("tool", "domain", "model, model_backup"),
        ("domain", "llm", "tool, model, model_backup"),
        ("llm", "model", "nobody"),
    ],
)
def test_any_other_call_is_refused_with_those_that_are_allowed(
    caller: str, callee: str, allowed: str
) -> None:
    with pytest.raises(UnknownEdgeError) as caught:
        require_edge(caller, callee)

    assert str(caught.value).endswith(f"lets it call {allowed}")


def test_calls_go_inwards_only() -> None:
    order = [*HOPS, *DEPLOYMENTS, LLM]

    assert all(order.index(edge.caller) < order.index(edge.callee) for edge in EDGES)


def test_every_hop_has_its_own_port() -> None:
    assert set(DEFAULT_PORTS) == {*HOPS, *DEPLOYMENTS, LLM}
    assert len(set(DEFAULT_PORTS.values())) == len(DEFAULT_PORTS)


def test_the_longest_path_tells_how_many_hops_are_behind_one() -> None:
    assert [hops_behind(hop) for hop in (*HOPS, LLM)] == [5, 4, 3, 2, 1, 0]
    assert hops_behind(MODEL_BACKUP) == 1


def test_whoever_calls_a_hop_may_call_its_other_deployments_and_they_call_what_it_calls() -> None:
    def around(name: str) -> tuple[set[str], set[str]]:
        callers = {edge.caller for edge in EDGES if edge.callee == name}
        return callers, {edge.callee for edge in EDGES if edge.caller == name}

    assert around(MODEL_BACKUP) == around(MODEL)
