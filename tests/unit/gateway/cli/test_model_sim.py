"""Shows what the verb `model-sim` tells the simulator that it starts."""

import json
from pathlib import Path

import pytest

from gateway.cli.model_sim import SimOptions, sim_environ
from gateway.cli.problem import RefusedError


def test_every_option_becomes_a_setting_of_the_simulator(tmp_path: Path) -> None:
    options = SimOptions(
        host="::1",
        port=7500,
        seed=7,
        script=tmp_path / "outage.toml",
        faults=["503?p=0.2", "stall"],
        settings=["ttft_median_s=0.5", "answer=a=b"],
    )

    environ = sim_environ({"PATH": "/bin"}, options)

    assert environ == {
        "PATH": "/bin",
        "SIXHOP_SIM__HOST": "::1",
        "SIXHOP_SIM__PORT": "7500",
        "SIXHOP_SIM__SEED": "7",
        "SIXHOP_SIM__SCRIPT": str(tmp_path / "outage.toml"),
        "SIXHOP_SIM__FAULTS": json.dumps(["503?p=0.2", "stall"]),
        "SIXHOP_SIM__TTFT_MEDIAN_S": "0.5",
        "SIXHOP_SIM__ANSWER": "a=b",
    }


def test_what_is_not_said_leaves_the_configuration_alone() -> None:
    given = {"SIXHOP_SIM__PORT": "7500"}

    assert sim_environ(given, SimOptions()) == given


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(RefusedError, match="name=value"):
        sim_environ({}, SimOptions(settings=["ttft_median_s"]))
