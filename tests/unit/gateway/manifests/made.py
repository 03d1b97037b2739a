"""Makes what is written of manifests, for tests to look at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.manifests.rendering import render
from gateway.manifests.rendering.render import SETTINGS
from services.runtime.config import Config, load_config

K8S = Path(__file__).resolve().parents[4] / "k8s"
Object = Mapping[str, Any]


def configured(**variables: str) -> Config:
    """Return the configuration that ships, with some settings over it."""
    return load_config(K8S / SETTINGS, {f"SIXHOP_{name}": text for name, text in variables.items()})


def objects(file: str, config: Config, folder: Path = K8S) -> list[Object]:
    """Return the objects of one file."""
    return list(render.objects(config, folder)[Path(file)])


def named(name: str, found: list[Object]) -> Object:
    """Return the specification of the object of a name."""
    (one,) = (each for each in found if each["metadata"]["name"] == name)
    specification: Object = one["spec"]
    return specification
