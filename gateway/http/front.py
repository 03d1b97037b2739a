"""Holds what every endpoint of the HTTP door works with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from gateway.config import GatewaySettings
from gateway.desk import Desk
from gateway.http.chat_answer import hop_reports
from gateway.http.failing import Failure, failure_of
from gateway.http.sse import KeepAlive
from gateway.runs.reading import RunReader
from gateway.runs.starting import RunStarter
from services.runtime.call import Inbound
from services.runtime.errors import SixhopError
from services.runtime.process import Hop


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
    readers: set[object] = field(default_factory=set)
    """Has one of each stream of a run's events that is being read."""

    def failure(self, inbound: Inbound, error: SixhopError) -> Failure:
        """Return what a client is told of an error that ended its call."""
        return failure_of(
            error,
            remaining_s=inbound.deadline - self.hop.clock.now(),
            wait_s=inbound.wait_s,
            run_id=inbound.identity.run_id,
            request_id=inbound.identity.request_id,
        )


def front_of(request: Request) -> Front:
    """Return what the door opens onto."""
    front = request.app.state.front
    if not isinstance(front, Front):
        raise TypeError("the application was made without its front")
    return front


def failed(failure: Failure, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a whole answer."""
    return Response(
        failure.content(),
        failure.status,
        {**(headers or {}), **failure.headers},
        media_type="application/json",
    )


def names_of(inbound: Inbound) -> dict[str, str]:
    """Return the headers that name a request and its run."""
    return {"x-request-id": inbound.identity.request_id, "x-sixhop-run-id": inbound.identity.run_id}


def budget_of(inbound: Inbound) -> dict[str, str]:
    """Return the header that tells what each hop was given and used, milliseconds."""
    told = [
        f"{each.hop};given={each.given_s * 1000:.0f};used={each.used_s * 1000:.0f}"
        f";left={each.left_s * 1000:.0f}"
        for each in hop_reports(inbound)
    ]
    return {"x-sixhop-hops": ", ".join(told)} if told else {}
