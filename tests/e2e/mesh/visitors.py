"""Calls every hop as every workload, each through a sidecar with the certificate of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product

from tests.e2e.mesh.house import House
from tests.e2e.mesh.sidecars import LOOPBACK, Proxy, Sidecar
from tests.ports import free_ports

EDGE, STRANGER = "edge", "stranger"
"""Callers that are no hops: whoever lets clients in, and another workload of the mesh."""
STRANGER_ACCOUNT = "cluster.local/ns/elsewhere/sa/stranger"


@contextmanager
def visiting(house: House) -> Iterator[Mapping[tuple[str, str], str]]:
    """Yield the address at which each caller finds each hop, while the block runs."""
    accounts = {hop: service.pool.account for hop, service in house.services.items()}
    accounts |= {EDGE: house.edge_account, STRANGER: STRANGER_ACCOUNT}
    files = {caller: house.certificates(account) for caller, account in accounts.items()}
    admin, *ports = free_ports(1 + len(accounts) * len(house.services))
    places = dict(zip(product(accounts, house.services), ports, strict=True))
    sidecar = Sidecar("visitors", files[STRANGER], admin)
    for (caller, callee), port in places.items():
        there = house.services[callee].destinations[-1]
        name = f"{caller} to {callee}"
        route = {"cluster": name, "timeout": "0s", "max_grpc_timeout": "0s"}
        sidecar.send(name, port, [{"match": {"prefix": "/"}, "route": route}])
        sidecar.know(
            {**there.cluster, "name": name},
            house.endpoints_file(there.pool.name),
            there.pool.account,
            files[caller],
        )
    proxy = Proxy(sidecar, house.folder)
    try:
        proxy.start()
        proxy.wait_live()
        yield {pair: f"{LOOPBACK}:{port}" for pair, port in places.items()}
    finally:
        proxy.end()
