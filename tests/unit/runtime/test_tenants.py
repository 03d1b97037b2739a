"""Holds the tables of tenants to what they say."""

from pathlib import Path
from typing import Any

import pytest

from services.runtime.call import Criticality
from services.runtime.config import ConfigError, load_config
from services.runtime.config_text import shared_text
from services.runtime.tenants import read_tenants
from tests.requirements import requirement

TEXT = """
[tenants.default]
requests_per_minute = 60
agents = ["chat", "orders"]
[tenants.acme]
requests_per_minute = 600
tools = []
"""


def written(folder: Path, text: str) -> Path:
    """Return a configuration with a text."""
    path = folder / "sixhop.toml"
    path.write_text(text, encoding="utf-8")
    return path


@requirement("tenants:tables")
def test_a_tenant_has_the_defaults_that_it_does_not_set(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)

    tenants = load_config(path, {"SIXHOP_TENANTS__ACME__TOKENS_PER_MINUTE": "9"}).tenants

    acme = tenants.of("acme")
    assert (acme.requests_per_minute, acme.tokens_per_minute) == (600, 9)
    assert (acme.agents, acme.tools) == (frozenset({"chat", "orders"}), frozenset())
    assert acme.max_criticality == Criticality.CRITICAL_PLUS.name
    stranger = tenants.of("nobody-has-written-of-it")
    assert stranger is tenants.of("") is tenants.default
    assert (stranger.requests_per_minute, stranger.tools) == (60, None)


@requirement("tenants:tables")
@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"acme": {"tokens_per_minute": 0}}, r"SIXHOP_TENANTS__ACME__TOKENS_PER_MINUTE.* 1 or"),
        ({"acme": {"max_criticality": "HIGH"}}, "write one of SHEDDABLE, .*CRITICAL_PLUS"),
        ({"acme": {"agents": 3}}, "write a list"),
        ({"acme": {"max_deadline_s": float("nan")}}, "write a number above 0"),
        ({"acme": {"request_per_minute": 1}}, "did you mean requests_per_minute"),
        ({"requests_per_minute": 1}, r"\[tenants\.default\]"),
        ({"a b": {}}, "no name for a tenant"),
        ({"default": {"agent": "x"}}, "did you mean agents"),
    ],
)
def test_a_wrong_table_is_refused_with_what_to_write(table: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_tenants(table)


@requirement("tenants:tables")
def test_what_is_printed_is_read_back_as_it_was(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, TEXT), {})

    again = load_config(written(tmp_path, shared_text(config)), {})

    assert again.tenants == config.tenants
    assert "[tenants.acme]" in shared_text(config)
