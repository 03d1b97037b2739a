"""Holds the addresses of Redis to being refused where they are read, without their passwords."""

from pathlib import Path

import pytest

from gateway.config import GatewaySettings
from services.routing.config import RoutingSettings
from services.runtime.config import ConfigError, load_config
from services.runtime.sections import Section
from tests.requirements import requirement

PLACES: dict[str, tuple[str, type[Section]]] = {
    "ROUTING__BOARD__REDIS_URL": ("routing", RoutingSettings),
    "GATEWAY__RUNS__REDIS_URL": ("gateway", GatewaySettings),
    "GATEWAY__QUOTA_REDIS_URL": ("gateway", GatewaySettings),
}


def read(variable: str, url: str) -> Section:
    """Return the section in which a variable names a Redis."""
    name, kind = PLACES[variable]
    config = load_config(Path("/dev/null"), {f"SIXHOP_{variable}": url})
    return config.section(name, kind)


@requirement("config:wrong-values-are-told-in-full")
@pytest.mark.parametrize("variable", PLACES)
@pytest.mark.parametrize(
    "url",
    [
        "http://:sesame@host",
        "localhost:6379",
        "redis://:sesame@host:99999/0",
        "redis://:sesame/42@host:6379/0",
        "redis://:sesame@[::1/0",
    ],
)
def test_what_is_no_address_of_a_redis_is_refused_and_not_shown(variable: str, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(variable, url)

    told = str(caught.value)
    assert f"redis_url = … (SIXHOP_{variable}): " in told
    assert "such as redis://host:6379/0" in told
    assert "sesame" not in told


@pytest.mark.parametrize("variable", PLACES)
@pytest.mark.parametrize(
    "url", ["", "redis://host:6379/0", "rediss://user:pass@host/1", "unix:///run/redis.sock"]
)
def test_every_address_of_a_redis_is_taken(variable: str, url: str) -> None:
    assert read(variable, url)
