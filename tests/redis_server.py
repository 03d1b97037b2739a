"""Starts a real Redis for tests, which can be frozen, killed and started again."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.processes import SHARED, STOP_TIMEOUT_S

START_TIMEOUT_S = 20.0
POLL_S = 0.02


class RedisServer:
    """Is one Redis on a port of its own that keeps nothing on disk."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ("--save", "")) -> None:
        """Take where its log goes, and what else it is told."""
        binary = shutil.which("redis-server")
        if binary is None:
            pytest.fail(
                "there is no redis-server; install the package of that name (Debian: "
                "apt-get install redis-server), the tests of shared boards need a real one"
            )
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._log = folder / "redis.log"
        self._command = [
            binary,
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--appendonly", "no", "--dir", str(folder)),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        SHARED.add(self._process.pid)
        until = time.monotonic() + START_TIMEOUT_S
        while not self._listens():
            if time.monotonic() > until or self._process.poll() is not None:
                pytest.fail(f"redis-server does not start: {self._log.read_text()[-1000:]}")
            time.sleep(POLL_S)

    def kill(self) -> None:
        """End it at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
            SHARED.discard(process.pid)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Freeze it while the block runs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running_redis(folder: Path, arguments: Sequence[str] = ("--save", "")) -> Iterator[RedisServer]:
    """Run a Redis while the block runs."""
    server = RedisServer(folder, arguments)
    try:
        server.start()
        yield server
    finally:
        server.kill()
