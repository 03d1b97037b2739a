"""Keeps ports for the servers of tests."""

import os
import random
import socket
from collections import deque
from contextlib import suppress

PORTS = range(20_000, 32_000)
"""Below those that systems give to connections: one could take a port before its server does."""
MAX_KEPT = 256
"""So many are kept at a time, for a process may have only so many sockets; the oldest go first."""

_kept: deque[int] = deque()
"""Their descriptors, which the end of this process closes without a word."""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, and keep them for a server that reuses addresses.

    A port is kept by a socket that is bound to it and does not listen: whoever connects is refused,
    a server that reuses addresses, as all of ours do, can listen there, end and come back, and
    nobody else who looks for a free port is given it, in this process or another.
    """
    # By a chance of its own: tests share the seed of others.
    candidates = iter(random.SystemRandom().sample(PORTS, len(PORTS)))
    found: list[int] = []
    while len(found) < count:
        with suppress(OSError):
            found.append(_keep(next(candidates)))
    while len(_kept) > MAX_KEPT:
        os.close(_kept.popleft())
    return found


def free_port() -> int:
    """Return one such port."""
    return free_ports(1)[0]


def _keep(port: int) -> int:
    keeper = socket.socket()
    try:
        keeper.bind(("127.0.0.1", port))
    except OSError:
        keeper.close()
        raise
    # Only now: before, it would have shared the port with another one who keeps it. Servers reuse
    # addresses by the one or the other.
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    _kept.append(keeper.detach())
    return port
