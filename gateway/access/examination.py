"""Finds what is wrong with who may come in at the gateway."""

from urllib.parse import urlsplit

from gateway.access.entrance import entrance_problem
from gateway.config import GatewaySettings
from services.runtime.checks.finding import Finding, violation, warning
from services.runtime.config import Config
from services.runtime.orders import is_loopback
from services.runtime.topology import GATEWAY

RULE = "entrance"


def examine(config: Config) -> list[Finding]:
    """Return what is found in the gateway's section.

    Raises:
        ConfigError: it cannot be read.
    """
    settings = config.section(GATEWAY, GatewaySettings)
    found = []
    problem = entrance_problem(config, settings)
    if problem:
        found.append(violation(RULE, problem))
    url = urlsplit(settings.jwt.jwks_url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        found.append(
            warning(
                RULE,
                f"gateway.jwt.jwks_url {settings.jwt.jwks_url} is not encrypted: whoever changes "
                "what comes from there can let anybody in; use https, unless a mesh encrypts it",
            )
        )
    return found
