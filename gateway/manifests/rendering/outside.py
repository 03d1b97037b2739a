"""Tells whom hops call that is not of the suite: providers of models, and issuers of tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    def namespace(self) -> str:
        """Return the namespace of a service of this cluster; empty for what is outside of it."""
        words = self.host.removesuffix(f".{TRUST_DOMAIN}").split(".")
        return words[1] if len(words) == 3 and f".{words[2]}" == _SERVICE else ""

    @property
    def known_as(self) -> str:
        """Return how a proxy knows it: a service by its whole name."""
        if not self.namespace:
            return f"./{self.host}"
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
    port = parts.port or _USUAL_PORTS.get(parts.scheme, 0)
    return Place(parts.hostname, port, parts.scheme == "https")


def service_entries(config: Config) -> Iterator[Body]:
    """Yield what is outside of the cluster, by its port, so that the mesh lets it be called."""
    found = {place for hop in PROCESSES for place in places(hop, config) if not place.namespace}
    for port, encrypted in sorted({(place.port, place.encrypted) for place in found}):
        # Hops speak TLS themselves, with keys that the mesh never sees.
        protocol = "TLS" if encrypted else "HTTP"
        here = (each for each in found if (each.port, each.encrypted) == (port, encrypted))
        name = f"outside-{protocol.lower()}-{port}"
        yield described("networking.istio.io/v1", "ServiceEntry", name) | {
            "spec": {
                "hosts": sorted(each.host for each in here),
                "location": "MESH_EXTERNAL",
                "resolution": "DNS",
                "exportTo": ["."],
                "ports": [{"number": port, "name": protocol.lower(), "protocol": protocol}],
            }
        }
