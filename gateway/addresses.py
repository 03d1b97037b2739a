"""Lists where the processes of the suite are."""

from services.runtime.config import Config
from services.runtime.topology import DOMAIN


def addresses(config: Config) -> tuple[tuple[str, str], ...]:
    """Return each hop with its `host:port`; one with replicas once for each of them.

    Raises:
        ConfigError: a host, a port or the list of the replicas does not fit.
    """
    found: list[tuple[str, str]] = []
    for hop in config.processes:
        places = config.replicas(hop) if hop == DOMAIN else (config.address(hop),)
        found += [(hop, address) for address in places]
    return tuple(found)
