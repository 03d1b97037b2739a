"""Shows who comes in at the gateway, and what each tenant may do."""

from collections.abc import Mapping
from typing import Any

from gateway.access.entrance import entrance_problem
from gateway.access.key_file import keys_path
from gateway.config import GatewaySettings
from services.runtime.config import Config, ConfigError
from services.runtime.tenants import UNLIMITED
from services.runtime.topology import GATEWAY


def access_document(config: Config) -> dict[str, Any]:
    """Return it for programs; what is not limited is left out."""
    return {"who": who_comes_in(config), "tenants": _limits(config)}


def access_lines(config: Config) -> list[str]:
    """Return it for people, one line each."""
    lines = [f"who comes in: {who_comes_in(config)}"]
    for name, limits in _limits(config).items():
        told = ", ".join(f"{key} {_text(value)}" for key, value in limits.items())
        lines.append(f"tenant {name}: {told}")
    return lines


def who_comes_in(config: Config) -> str:
    """Return who may come in as the configuration says, and as the files here do."""
    try:
        settings = config.section(GATEWAY, GatewaySettings)
    except ConfigError:
        return "unknown: the gateway's section cannot be read"
    asked = []
    path = keys_path(settings.keys_file, config.source)
    if settings.keys_file is not None or path.exists():
        asked.append(f"keys of {path}")
    if settings.jwt.enabled:
        asked.append(f"tokens of {settings.jwt.issuer}")
    if asked:
        also = ", and whoever shows nothing" if settings.open else ""
        return f"{' and '.join(asked)}{also}"
    if entrance_problem(config, settings):
        return "nobody: the gateway would not start"
    return "everybody" if settings.open else "everybody on this machine"


def _limits(config: Config) -> Mapping[str, dict[str, Any]]:
    """Return what each table limits, by the tenant's name."""
    found = {}
    for name, settings in config.tenants.settings().items():
        limits = {
            key: sorted(value) if isinstance(value, frozenset) else value
            for key, value in settings.items()
            if value != getattr(UNLIMITED, key)
        }
        if limits:
            found[name] = limits
    return found


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
