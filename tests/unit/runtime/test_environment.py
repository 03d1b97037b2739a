"""Holds the environment to saying what it means, or to being refused."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from services.runtime.config import (
    RUNTIME_SECTIONS,
    ConfigError,
    HopSettings,
    load_config,
)
from services.runtime.environment import PLAIN_LOOP_VARIABLE
from services.runtime.policy_settings import PolicySettings
from services.runtime.topology import HOPS
from tests.requirements import requirement


def refused(**environ: str) -> str:
    """Return why an environment is refused."""
    with pytest.raises(ConfigError) as caught:
        load_config(Path("/dev/null"), environ)
    return str(caught.value)


def keys(kind: Any) -> Iterator[tuple[str, ...]]:
    """Yield the settings of a section, each with the table that it is in."""
    if is_dataclass(kind):
        known: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    else:
        known = {name: field.annotation for name, field in kind.model_fields.items()}
    for name, inner in known.items():
        table = isinstance(inner, type) and (is_dataclass(inner) or hasattr(inner, "model_fields"))
        yield from ((name, *rest) for rest in (keys(inner) if table else [()]))


def paths() -> Iterator[tuple[str, ...]]:
    """Yield every setting of the runtime, of the policies and of all hops."""
    kinds: dict[str, Any] = {field.name: field.type for field in fields(PolicySettings)}
    kinds |= RUNTIME_SECTIONS
    kinds |= dict.fromkeys(HOPS, HopSettings)
    for section, kind in kinds.items():
        yield from ((section, *path) for path in keys(kind))


@requirement("config:no-variable-is-ignored")
def test_a_setting_with_single_underscores_is_refused_with_what_is_meant() -> None:
    found = list(paths())

    assert len(found) > 60
    for path in found:
        wrong, right = (f"SIXHOP_{line.join(path).upper()}" for line in ("_", "__"))
        assert refused(**{wrong: "1"}) == f"{wrong} is not a setting; did you mean {right}?"


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("RETRI_MAX_ATTEMPTS", "did you mean SIXHOP_RETRY__MAX_ATTEMPTS?"),
        ("CONFIGG", "did you mean SIXHOP_CONFIG?"),
        ("PLAINLOOP", "did you mean SIXHOP_PLAIN_LOOP?"),
        ("FOO", "a setting is written SIXHOP_SECTION__KEY, with two underscores"),
        ("RETRY", "the sections are deadline, calls, "),
        ("", "a setting is written SIXHOP_SECTION__KEY"),
        # A number is none of Kubernetes' addresses.
        ("TOOL_PORT", "did you mean SIXHOP_TOOL__PORT?"),
        ("TOOL_SERVICE_HOST", "did you mean SIXHOP_TOOL__SERVICE_HOST?"),
    ],
)
def test_what_means_nothing_is_refused_with_the_nearest(variable: str, hint: str) -> None:
    assert hint in refused(**{f"SIXHOP_{variable}": "7403"})


def test_what_kubernetes_tells_of_a_service_is_no_setting() -> None:
    address = "tcp://10.0.0.7:7403"
    environ = {
        "SIXHOP_TOOL_SERVICE_HOST": "10.0.0.7",
        "SIXHOP_TOOL_SERVICE_PORT": "7403",
        "SIXHOP_TOOL_SERVICE_PORT_GRPC": "7403",
        "SIXHOP_TOOL_PORT": address,
        "SIXHOP_TOOL_PORT_7403_TCP": address,
        "SIXHOP_TOOL_PORT_7403_TCP_PROTO": "tcp",
        "SIXHOP_TOOL_PORT_7403_TCP_PORT": "7403",
        "SIXHOP_TOOL_PORT_7403_TCP_ADDR": "10.0.0.7",
    }

    assert load_config(Path("/dev/null"), environ).raw == {}


def test_what_is_no_setting_and_is_used_is_let_pass() -> None:
    environ = {"SIXHOP_CONFIG": "/dev/null", PLAIN_LOOP_VARIABLE: "1"}

    assert load_config(None, environ).raw == {}


def test_a_list_that_is_no_json_is_refused_with_how_to_write_it() -> None:
    told = refused(SIXHOP_RETRY__RETRY_ON="[NO_ANSWER]")

    assert told.startswith("SIXHOP_RETRY__RETRY_ON looks like JSON and is none: ")
    assert told.endswith('write ["a", "b"], or a,b')
