"""Finds out whether the replicas that are configured fit the suite that is started here."""

from collections.abc import Iterable
from ipaddress import ip_address

from services.runtime.config import PREFIX, Config
from services.runtime.topology import DOMAIN


def replica_problems(config: Config, others: Iterable[str]) -> list[str]:
    """Return what keeps the domain hop that is started here from ever being called.

    In doubt there is none: what a name stands for, only a resolver knows.

    Args:
        config: the configuration.
        others: the other processes that are started here.

    Raises:
        ConfigError: the list, a host or a port does not fit.
    """
    own, listed = config.address(DOMAIN), config.replicas(DOMAIN)
    shown = f"[{DOMAIN}] replicas = {', '.join(listed)} ({PREFIX}{DOMAIN.upper()}__REPLICAS)"
    problems = [
        f"{shown} names {config.address(other)}, where {other} is to listen; take that out"
        for other in others
        if config.address(other) in listed
    ]
    if not any(_may_reach(address, own) for address in listed):
        problems.append(
            f"{shown} leaves out {own}, the {DOMAIN} hop that `sixhop up` starts, and nobody would "
            f"call it; add {own} to the list, or set {PREFIX}{DOMAIN.upper()}__PORT (port in "
            f"[{DOMAIN}]) to the port of one in it"
        )
    return problems


def _may_reach(called: str, listening: str) -> bool:
    """Return whether who calls one address may find there who listens on the other."""
    host, _, port = called.rpartition(":")
    own, _, own_port = listening.rpartition(":")
    if int(port) != int(own_port):
        return False
    try:
        own_ip = ip_address(own.strip("[]"))
        return own_ip.is_unspecified or own_ip == ip_address(host.strip("[]"))
    except ValueError:  # a name
        return True
