"""Finds out which gateway a verb speaks with."""

import re
from collections.abc import Callable

from gateway.cli.problem import RefusedError
from services.runtime.config import Config
from services.runtime.topology import GATEWAY

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")


def gateway_address(named: str, config: Callable[[], Config]) -> str:
    """Return `host:port` of the gateway that is named, else of the configuration's.

    Args:
        named: the address on the command line; empty without one.
        config: reads the configuration, if it is needed.

    Raises:
        RefusedError: what is named is no address.
    """
    if not named:
        return config().address(GATEWAY)
    if not _ADDRESS.fullmatch(named):
        raise RefusedError(f"--gateway {named}: write HOST:PORT, such as 127.0.0.1:7400")
    return named
