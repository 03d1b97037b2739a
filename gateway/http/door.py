"""Opens the HTTP door of the gateway, in the process and on the loop of the gRPC door."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from gateway.config import GatewaySettings
from gateway.http.app import make_app
from gateway.http.front import Front
from gateway.http.wire import BoundedProtocol, JournalHandler, bounded
from services.runtime.background import OWN_TASK, background
from services.runtime.config import ConfigError
from services.runtime.telemetry import HTTP_SERVING, get_logger
from services.runtime.topology import GATEWAY

START_LIMIT_S = 5.0
STOP_LIMIT_S = 2.0
BACKLOG = 2048
SEND_BUFFER_BYTES = 128 * 1024
KEEP_ALIVE_S = 75
"""How long an idle connection is kept; longer than the pools of common proxies keep theirs."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process, which drains both doors."""
        yield


@asynccontextmanager
async def http_door(front: Front) -> AsyncIterator[None]:
    """Serve HTTP while the block runs.

    Raises:
        ConfigError: the port cannot be had.
    """
    listener = _listen(front.settings, front.hop.config.port(GATEWAY))
    protocol = bounded(front.settings.http_head_timeout_s, front.settings.http_max_connections)
    config = uvicorn.Config(
        make_app(front),
        http=protocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    config.load()
    server, log = _Server(config), logging.getLogger("uvicorn")
    log.handlers, log.propagate = [JournalHandler(logging.WARNING)], False

    async def drain(within_s: float) -> None:
        # Those who look would look for ever.
        front.lookout.end()
        # Whoever comes from here on is told to go elsewhere, until the whole process has drained:
        # a port that is shut says nothing, to a balancer that has not heard yet least of all.
        protocol.closed = True
        for connection in list(server.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.end_after_answer()
        if answering := set(server.server_state.tasks):
            _, late = await asyncio.wait(answering, timeout=within_s)
            for task in late:
                task.cancel()
            if late:
                # They tell it to those who wait for them.
                await asyncio.wait(late, timeout=STOP_LIMIT_S)

    async with background(front.keep.run()):
        serving = asyncio.create_task(server.serve([listener]), name=f"{OWN_TASK}http door")
        front.hop.draining.append(drain)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                while not server.started:
                    await front.hop.clock.sleep(0.005)
            host, port = listener.getsockname()[:2]
            get_logger().info(HTTP_SERVING, address=f"{host}:{port}")
            yield
        finally:
            await drain(0)
            server.should_exit = True
            await asyncio.wait({serving}, timeout=STOP_LIMIT_S)
            serving.cancel()
            await asyncio.wait({serving}, timeout=STOP_LIMIT_S)


def _listen(settings: GatewaySettings, grpc_port: int) -> socket.socket:
    host, port = settings.http_address(grpc_port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"{host}:{port} is taken; set SIXHOP_GATEWAY__HTTP_PORT to a free port, or to 0 for "
            f"any ({error.strerror})"
        ) from None
    # Every connection has it from here: the kernel would keep megabytes for a client that is slow.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener
