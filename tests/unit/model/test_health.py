"""Finds the port of the page that tells how the model hop is."""

import pytest

from services.model.config import ModelSettings
from services.model.health import health_port
from services.runtime.topology import DEFAULT_PORTS
from tests.requirements import requirement


@requirement("health:page")
@pytest.mark.parametrize(
    ("deployment", "port", "setting", "found"),
    [
        ("model", 7404, None, 7414),
        ("model_backup", 7405, None, 7415),
        ("model", 50123, None, 0),
        ("model", 50123, 9000, 9000),
        ("model", 7404, 0, 0),
    ],
)
def test_the_page_is_where_it_is_said_to_be_or_beside_a_usual_port(
    deployment: str, port: int, setting: int | None, found: int
) -> None:
    assert health_port(ModelSettings(health_port=setting), deployment, port) == found


def test_no_usual_page_meets_a_usual_hop() -> None:
    usual = [health_port(ModelSettings(), name, DEFAULT_PORTS[name]) for name in DEFAULT_PORTS]

    assert not set(usual[4:6]) & set(DEFAULT_PORTS.values())
