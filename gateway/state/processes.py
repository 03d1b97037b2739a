"""Finds the processes of the suite, and asks each how it does.

The gateway calls `sixhop.runtime.v1.RuntimeService` of every hop, and nothing else of hops but
routing. These calls are no edge of the call graph: no run travels along them, and no policy guards
them (decision 27).
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from functools import partial
from typing import cast

import grpc

from gateway.addresses import addresses
from gateway.backoff import Backoff, BackoffConfig
from gateway.state.lookout import Lookout, Process, UnheardError
from gateway.state.view import NOT_SERVING, SILENT, UNREACHABLE
from services.runtime.client import open_channel
from services.runtime.durations import to_duration
from services.runtime.process import Hop
from services.runtime.status import DETAILS_KEY, error_info
from services.runtime.topology import GATEWAY
from sixhop.runtime.v1 import runtime_pb2
from sixhop.runtime.v1.runtime_pb2_grpc import RuntimeServiceStub

INTERVAL_S = 1.0
"""How often a process tells its state without a change: latencies move by themselves."""
OWN_INTERVAL_S = 0.25
"""How often this process looks at itself; that costs it a fraction of a millisecond."""
ANSWER_TIMEOUT_S = 1.5
"""How long after that it may take; one that needs longer is in no good state."""
BACKOFF = BackoffConfig(initial_s=0.5, max_s=5.0)
"""Somebody is looking, so a hop that comes back is to be seen soon."""


def make_lookout(hop: Hop) -> Lookout:
    """Return what watches the suite of a gateway; the gateway itself is looked at directly."""
    found = addresses(hop.config)
    hops = [name for name, _ in found]
    processes = [
        Process(
            hop=name,
            address=address,
            states=partial(_own, hop) if name == GATEWAY else partial(_others, address),
            replica=hops.count(name) > 1,
        )
        for name, address in found
    ]
    # Only when replicas of the gateway ask again differs by it.
    chance = random.Random()
    return Lookout(processes, hop.clock, lambda: Backoff(BACKOFF, chance))


async def _own(hop: Hop) -> AsyncGenerator[runtime_pb2.GetSnapshotResponse, None]:
    """Yield the states of this process until it drains."""
    while not hop.health.draining:
        yield hop.runtime.snapshot()
        await hop.clock.sleep(OWN_INTERVAL_S)


async def _others(address: str) -> AsyncGenerator[runtime_pb2.GetSnapshotResponse, None]:
    """Yield the states of another process.

    Raises:
        UnheardError: it does not answer, or not any more.
    """
    request = runtime_pb2.WatchSnapshotsRequest(max_interval_duration=to_duration(INTERVAL_S))
    async with open_channel(address) as channel:
        call = RuntimeServiceStub(channel).WatchSnapshots(request)
        try:
            while True:
                async with asyncio.timeout(INTERVAL_S + ANSWER_TIMEOUT_S):
                    response = await call.read()
                if response is grpc.aio.EOF:
                    return
                yield cast(runtime_pb2.WatchSnapshotsResponse, response).snapshot
        except grpc.aio.AioRpcError as error:
            raise _unheard(error) from None
        except TimeoutError:
            detail = f"no answer within {ANSWER_TIMEOUT_S:g} s; it is stopped, stuck or busy"
            raise UnheardError(SILENT, detail) from None
        finally:
            call.cancel()


def _unheard(error: grpc.aio.AioRpcError) -> UnheardError:
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return UnheardError(UNREACHABLE, "nobody listens there")
    metadata = error.trailing_metadata()
    details = metadata.get(DETAILS_KEY) if metadata is not None else None
    if isinstance(details, bytes) and error_info(details) is not None:
        # A hop of ours that does not want to tell, and says why.
        return UnheardError(SILENT, (error.details() or "")[:200])
    return UnheardError(NOT_SERVING, f"no hop of sixhop: {error.code().name}")
