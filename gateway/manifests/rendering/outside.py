"""Tells whom hops call that is not of the suite: providers of models, and issuers of tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from gateway.config import GatewaySettings
from gateway.manifests.rendering.names import PROCESSES, TRUST_DOMAIN, Body, described
from services.runtime.config import EMBEDDED, Config
from services.runtime.topology import EDGES, GATEWAY, LLM

_USUAL_PORTS = {"https": 443, "http": 80}
_SERVICE = ".svc"


@dataclass(frozen=True, slots=True)
class Place:
    """Is where somebody outside of the suite is."""

    host: str
    port: int
    encrypted: bool
    """Whether a hop speaks TLS with it by itself."""

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Return the address that is written instead of a name; None for a name."""
        return _address(self.host)

    @property
    def block(self) -> str:
        """Return the block of addresses that is exactly its own; empty for a name."""
        return "" if self.address is None else str(ip_network(self.address))

    @property
    def entry(self) -> str:
        """Return the name by which the mesh lists it: an address is none."""
        if self.address is None:
            return self.host
        words = self.address.exploded.replace(".", "-").replace(":", "-")
        return f"address-{words}-{self.port}.outside"

    @property
    def namespace(self) -> str:
        """Return the namespace of a service of this cluster; empty for what is outside of it."""
        words = self.host.removesuffix(f".{TRUST_DOMAIN}").split(".")
        return words[1] if len(words) == 3 and f".{words[2]}" == _SERVICE else ""

    @property
    def known_as(self) -> str:
        """Return how a proxy knows it: a service by its whole name."""
        if not self.namespace:
            return f"./{self.entry}"
        return f"{self.namespace}/{self.host.removesuffix(f'.{TRUST_DOMAIN}')}.{TRUST_DOMAIN}"


def places(hop: str, config: Config) -> list[Place]:
    """Return whom a hop calls outside of the suite; nobody for a model that is shipped.

    Raises:
        ConfigError: the section of the gateway cannot be read.
    """
    if hop == GATEWAY:
        urls = [config.section(GATEWAY, GatewaySettings).jwt.jwks_url]
    else:
        asks = any(edge.caller == hop and edge.callee == LLM for edge in EDGES)
        urls = [str(config.raw.get(hop, {}).get("base_url", ""))] if asks else []
    return [place for url in urls if (place := _place(url))]


def _place(url: str) -> Place | None:
    parts = urlsplit(url)
    if url == EMBEDDED or not parts.hostname:
        return None
    address = _address(parts.hostname)
    if address is not None and address.is_loopback:
        return None  # It is in the same pod.
    port = parts.port or _USUAL_PORTS.get(parts.scheme, 0)
    return Place(parts.hostname, port, parts.scheme == "https")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def service_entries(config: Config) -> Iterator[Body]:
    """Yield what is outside of the cluster, so that the mesh lets it be called.

    Names by their port, and addresses each alone: a proxy knows them by where a connection goes.
    """
    outside = {place for hop in PROCESSES for place in places(hop, config) if not place.namespace}
    addresses = {(place.entry, place.host, place.port) for place in outside if place.address}
    for entry, host, port in sorted(addresses):
        yield _service_entry(entry.partition(".")[0]) | {
            "spec": {
                "hosts": [entry],
                "addresses": [host],
                "location": "MESH_EXTERNAL",
                "resolution": "STATIC",
                "exportTo": ["."],
                "endpoints": [{"address": host}],
                # Its bytes pass as they are: in TLS without a name nothing says whom they are for.
                "ports": [{"number": port, "name": "tcp", "protocol": "TCP"}],
            }
        }
    found = {place for place in outside if not place.address}
    for port, encrypted in sorted({(place.port, place.encrypted) for place in found}):
        # Hops speak TLS themselves, with keys that the mesh never sees.
        protocol = "TLS" if encrypted else "HTTP"
        here = (each for each in found if (each.port, each.encrypted) == (port, encrypted))
        name = f"outside-{protocol.lower()}-{port}"
        yield _service_entry(name) | {
            "spec": {
                "hosts": sorted(each.host for each in here),
                "location": "MESH_EXTERNAL",
                "resolution": "DNS",
                "exportTo": ["."],
                "ports": [{"number": port, "name": protocol.lower(), "protocol": protocol}],
            }
        }


def _service_entry(name: str) -> Body:
    return described("networking.istio.io/v1", "ServiceEntry", name)
