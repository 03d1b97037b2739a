"""Finds out where the hops are, even while the configuration is broken."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.addresses import addresses
from gateway.cli.dependencies import InForce, step_timeouts
from gateway.cli.parts import read_config
from gateway.cli.problem import RefusedError
from services.runtime.config import (
    CONFIG_VARIABLE,
    PREFIX,
    Config,
    ConfigError,
    load_config,
    read_raw,
)
from services.runtime.topology import DEPLOYMENTS, HOPS, LLM

NOTHING = Path(os.devnull)
"""A file that says nothing; it keeps the one in this folder from being read."""
_PLACES = {
    f"{PREFIX}{hop.upper()}__{key.upper()}": (hop, key)
    for hop in (*HOPS, *DEPLOYMENTS, LLM)
    # Without its address a second deployment is not there at all.
    for key in ("host", "port", "replicas", *(("base_url",) if hop in DEPLOYMENTS else ()))
}
"""The variables that say where the hops are, each with its section and its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Says where the hops are, as far as it can be known."""

    config: Config
    """The configuration; only its addresses are sound while it is broken."""
    hops: tuple[tuple[str, str], ...]
    """Each hop with its `host:port`, from the client inwards; one with replicas several times."""
    in_force: InForce
    """Tells the step timeout of a callee; it knows none while the configuration is broken."""
    problem: str = ""
    """What is wrong with the configuration; empty while nothing is."""


def find_hops(environ: Mapping[str, str], path: Path | None) -> Whereabouts:
    """Return where the hops are.

    What cannot be read, or is wrong, is left out: then the environment tells, and what it does not
    say is where a hop listens that was told nothing.

    Args:
        environ: the environment of this process.
        path: the configuration file; None looks where every hop looks.
    """
    try:
        config = read_config(environ, path)
        return Whereabouts(config=config, hops=addresses(config), in_force=step_timeouts(config))
    except (RefusedError, ConfigError) as error:
        config = _sound_part(environ, path)
        return Whereabouts(
            config=config, hops=addresses(config), in_force=_unknown, problem=str(error)
        )


def _sound_part(environ: Mapping[str, str], path: Path | None) -> Config:
    """Return a configuration of the addresses alone that fit."""
    named = {key: value for key, value in environ.items() if key == CONFIG_VARIABLE}
    try:
        raw, _ = read_raw(path, named)
    except ConfigError:
        raw = {}
    said = {
        variable: _text(raw[hop][key])
        for variable, (hop, key) in _PLACES.items()
        if isinstance(raw.get(hop), dict) and key in raw[hop]
    }
    said |= {variable: value for variable, value in environ.items() if variable in _PLACES}
    return load_config(NOTHING, {name: said[name] for name in said if _fits(name, said[name])})


def _fits(variable: str, value: str) -> bool:
    hop, _ = _PLACES[variable]
    try:
        config = load_config(NOTHING, {variable: value})
        config.address(hop)
        config.replicas(hop)
    except ConfigError:
        return False
    return True


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _unknown(key: str, wanted_s: float | None, least_s: float | None) -> float | None:
    return None
