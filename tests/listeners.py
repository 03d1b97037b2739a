"""Listens on ports as no server should."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_listener() -> Iterator[int]:
    """Listen where the queue is full: the next connection hangs. Yields the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        try:
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()
