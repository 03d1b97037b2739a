"""Tests that hops are found wherever they can be, however broken their configuration is."""

from pathlib import Path

import pytest

from gateway.cli.whereabouts import Whereabouts, find_hops
from services.runtime.topology import HOPS

DEFAULTS = {hop: f"127.0.0.1:{7400 + number}" for number, hop in enumerate(HOPS)}


def found(folder: Path, text: str, **environ: str) -> Whereabouts:
    """Return what is found with this file and these variables."""
    file = folder / "own.toml"
    file.write_text(text, encoding="utf-8")
    return find_hops({f"SIXHOP_{name}": value for name, value in environ.items()}, file)


def test_a_good_configuration_says_where_the_hops_are(tmp_path: Path) -> None:
    where = found(tmp_path, "[tool]\nport = 7999\n")

    assert dict(where.hops) == DEFAULTS | {"tool": "127.0.0.1:7999"}
    assert (where.problem, where.in_force("tool", None, None)) == ("", 20.0)


def test_every_replica_is_somewhere(tmp_path: Path) -> None:
    where = found(tmp_path, "", DOMAIN__REPLICAS="[::1]:7402,10.0.0.1:7402")

    domains = [address for hop, address in where.hops if hop == "domain"]
    assert domains == ["[::1]:7402", "10.0.0.1:7402"]
    assert [hop for hop, _ in where.hops] == ["gateway", "routing", "domain", *HOPS[2:]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool]\nport = 7999\n[modell]\n", "did you mean model"),
        ("[tool]\nport = 7999\n[calls.tool]\nstep_timeout_s = 1\n", "does not fit"),
        ("[tool]\nport = 7999\n[adaptive]\nenabled = 'perhaps'\n", "adaptive"),
        ("[tool]\nport = 7999\n[log]\nlevel = 'loud'\n", "[log] level"),
        ("[tool]\nport = 7999\n[domain]\nreplicas = ['nowhere']\n", "[domain] replicas"),
        ("[tool]\nport = 7999\n[model]\nport = 99999\n", "[model] port"),
        ("gateway = 3\n[tool]\nport = 7999\n", "gateway"),
    ],
)
def test_what_a_broken_file_says_of_addresses_counts_as_far_as_it_fits(
    tmp_path: Path, text: str, problem: str
) -> None:
    where = found(tmp_path, text)

    assert dict(where.hops) == DEFAULTS | {"tool": "127.0.0.1:7999"}
    assert problem in where.problem
    assert where.in_force("tool", 1.0, None) is None


@pytest.mark.parametrize("text", ["not toml", "[tool]\nport = 7999\nport = 7998\n"])
def test_where_a_file_says_nothing_the_environment_and_the_defaults_do(
    tmp_path: Path, text: str
) -> None:
    where = found(
        tmp_path, text, TOOL__PORT="7555", DOMAIN__REPLICAS="a:1, b:2", GATEWAY__HOST="[::1]"
    )

    assert [address for _, address in where.hops] == [
        "[::1]:7400",
        "127.0.0.1:7401",
        "a:1",
        "b:2",
        "127.0.0.1:7555",
        "127.0.0.1:7404",
    ]
    assert "own.toml cannot be read" in where.problem


def test_a_variable_that_cannot_be_read_spoils_no_other(tmp_path: Path) -> None:
    where = found(tmp_path, "", TOOL__PORT="7555", DOMAIN__REPLICAS="[a:1", MODEL__PORT="many")

    assert dict(where.hops) == DEFAULTS | {"tool": "127.0.0.1:7555"}
    assert "SIXHOP_DOMAIN__REPLICAS looks like JSON" in where.problem


def test_a_file_that_is_not_there_is_a_problem_and_keeps_no_hop_from_being_found(
    tmp_path: Path,
) -> None:
    where = find_hops({"SIXHOP_CONFIG": str(tmp_path / "gone.toml")}, None)

    assert dict(where.hops) == DEFAULTS
    assert "gone.toml does not exist" in where.problem
