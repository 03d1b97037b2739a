"""Holds what every endpoint of the HTTP door works with."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

from starlette.requests import Request
from starlette.responses import Response

from gateway.config import GatewaySettings
from gateway.desk import Desk
from gateway.hops import HopTold, hops_told
from gateway.http.arriving import arrival_of, credential_of, headers_of
from gateway.http.failing import Failure, failure_of
from gateway.http.operation import JSON
from gateway.http.sse import KeepAlive
from gateway.http.telling import RunTold
from gateway.runs.places import Places
from gateway.runs.reading import RunReader
from gateway.runs.starting import RunStarter
from gateway.state.lookout import Lookout
from services.runtime.call import Inbound
from services.runtime.errors import SixhopError
from services.runtime.identity import REQUEST_ID_KEY
from services.runtime.process import Hop
from services.runtime.telemetry import tell_refused
from services.runtime.tenants import UNLIMITED, TenantLimits

FRONT = "front"
"""Where a request keeps what its door opens onto."""
_INBOUND = "inbound"
"""Where it keeps the call that it has become."""
_BUDGET = "{hop};given={given_ms};used={used_ms};left={left_ms}"
_MECHANISM = itemgetter("mechanism")
_plain = partial(re.compile(r"[^\x20-\x7e]").sub, "?")
"""Returns a text as headers can carry it: providers name their models as they like."""
KNOWN_WITHIN_S = 3.0
"""How long it may take to find out who sends a body, before it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Is what the door opens onto."""

    hop: Hop
    settings: GatewaySettings
    desk: Desk
    keep: KeepAlive
    starter: RunStarter
    """Owns the runs that nobody waits for at a connection."""
    reader: RunReader
    """Finds the recent runs."""
    lookout: Lookout
    """Knows how every process of the suite does."""
    readers: Places
    """Counts the streams of runs' events that are being read."""

    def arrive(self, request: Request, method: str, *, streaming: bool) -> Inbound:
        """Begin a call to the suite; from here on the policies tell and log how it ends.

        Whatever can be refused without them has to be refused before.

        Args:
            request: what came in.
            method: the RPC that a gRPC client would have called.
            streaming: whether it is answered by a stream.

        Raises:
            InvalidArgumentError: a header is not understood, or there are several credentials.
        """
        arrival = arrival_of(headers_of(request), credential_of(request))
        inbound = self.desk.arrive(method, arrival, streaming=streaming)
        request.scope["state"][_INBOUND] = inbound
        return inbound

    async def limits_of(self, request: Request) -> TenantLimits:
        """Return what the sender of a request may do, without letting it in.

        Raises:
            SixhopError: nobody knows who it is.
        """
        tenancy = self.hop.tenancy
        if tenancy is None:
            return UNLIMITED
        return await tenancy.identification.limits_of(credential_of(request), KNOWN_WITHIN_S)

    def failure(self, inbound: Inbound, error: SixhopError) -> Failure:
        """Return what a client is told of an error that ended its call."""
        remaining_s = inbound.deadline - self.hop.clock.now()
        failure = failure_of(
            error,
            remaining_s=remaining_s if math.isfinite(remaining_s) else 0.0,
            wait_s=inbound.wait_s,
            run_id=inbound.identity.run_id,
            request_id=inbound.identity.request_id,
        )
        told = {
            **names_of(inbound),
            **budget_of(hops_told(inbound.reports)),
            **failure.headers,
        }
        return replace(failure, headers=told)


def front_of(request: Request) -> Front:
    """Return what the door opens onto."""
    front = request.scope["state"][FRONT]
    if not isinstance(front, Front):
        raise TypeError("the application was made without its front")
    return front


def inbound_of(request: Request) -> Inbound | None:
    """Return the call that a request has become; None before it has."""
    inbound = request.scope["state"].get(_INBOUND)
    return inbound if isinstance(inbound, Inbound) else None


def failed(failure: Failure, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a whole answer."""
    return Response(
        failure.content(),
        failure.status,
        {**(headers or {}), **failure.headers},
        media_type=JSON,
    )


def refused(request: Request, error: SixhopError) -> Response:
    """Log the error of a request that became no call, and return it as a whole answer."""
    name, path = headers_of(request)[REQUEST_ID_KEY], request.scope["path"]
    tell_refused(error, method=f"{request.method} {path[:200]}", request_id=name)
    return failed(failure_of(error, request_id=name))


def names_of(inbound: Inbound) -> dict[str, str]:
    """Return the headers that name a request and its run."""
    return {"x-request-id": inbound.identity.request_id, "x-sixhop-run-id": inbound.identity.run_id}


def answer_headers(told: RunTold, inbound: Inbound) -> dict[str, str]:
    """Return the headers of a whole answer that tells this."""
    return {
        **names_of(inbound),
        **budget_of(told["hops"]),
        "x-sixhop-agent": _plain(told["agent"]),
        "x-sixhop-model": _plain(told["model"]),
        "x-sixhop-degraded": _plain(",".join(map(_MECHANISM, told["degraded"]))),
    }


def budget_of(hops: Sequence[HopTold]) -> dict[str, str]:
    """Return the header that tells what each hop was given and used, milliseconds."""
    return {"x-sixhop-hops": ", ".join(map(_BUDGET.format_map, hops))} if hops else {}
