"""Holds folders, protos and ports to the call graph."""

import pytest

from services.runtime.topology import DEFAULT_PORTS, DEPLOYMENTS, EDGES, GATEWAY, HOPS, LLM
from tests.architecture.sources import PROTOS, ROOT
from tests.requirements import requirement

SHARED_FOLDERS = {"runtime"}
SHARED_PROTOS = {"runtime", "type"}


@requirement("architecture:topology-is-folders")
def test_every_hop_is_a_folder_and_every_folder_a_hop() -> None:
    rooms = {
        path.parent.name
        for path in (ROOT / "services").glob("*/__init__.py")
        if path.parent.name not in SHARED_FOLDERS
    }

    assert set(HOPS) == {GATEWAY} | rooms


@requirement("architecture:topology-is-folders")
@pytest.mark.parametrize("hop", HOPS)
def test_every_hop_is_a_process_of_its_own(hop: str) -> None:
    folder = ROOT / hop if hop == GATEWAY else ROOT / "services" / hop

    assert (folder / "__main__.py").is_file()


@requirement("architecture:topology-is-folders", "architecture:proto-packages")
def test_every_hop_has_its_proto() -> None:
    packages = {path.parent.parent.name for path in PROTOS.glob("sixhop/*/v1/*.proto")}

    assert packages == set(HOPS) | SHARED_PROTOS


@requirement("architecture:topology-is-folders")
def test_every_edge_joins_two_hops_or_a_hop_and_the_provider() -> None:
    names = {edge.caller for edge in EDGES} | {edge.callee for edge in EDGES}

    assert names == {*HOPS, *DEPLOYMENTS, LLM}


@requirement("architecture:topology-is-folders")
def test_every_other_deployment_runs_the_code_of_a_hop() -> None:
    assert set(DEPLOYMENTS.values()) <= set(HOPS)
    assert not set(DEPLOYMENTS) & set(HOPS)


def test_no_two_hops_share_a_port() -> None:
    assert set(DEFAULT_PORTS) == {*HOPS, *DEPLOYMENTS, LLM}
    assert len(set(DEFAULT_PORTS.values())) == len(DEFAULT_PORTS)
