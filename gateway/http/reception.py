"""Takes in every request: names it, has it served, and turns what is raised into an answer."""

import os

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.http.arriving import HEADERS, headers_of
from gateway.http.failing import failure_of
from gateway.http.front import FRONT, Front, failed, front_of, inbound_of, refused
from gateway.http.leaving import ClientLeftError
from gateway.http.paths import Paths
from gateway.http.sse import EventStream
from services.runtime.errors import SelfBugError, SixhopError
from services.runtime.identity import REQUEST_ID_KEY, RUN_ID_KEY, names_run, well_formed
from services.runtime.telemetry import tell_defect

_KEY = REQUEST_ID_KEY.encode()


class Reception:
    """Is the ASGI application: stands around all endpoints, so that refusals have a name too.

    A name that came is kept where it is well formed. Without one the run's counts, or one is made;
    it is taken as if it had come, for the run as well: one name for both is a header less on the
    way.
    """

    def __init__(self, front: Front, paths: Paths) -> None:
        """Take what the door opens onto, and all that is served."""
        self.paths = paths
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lead one request in and its answer out."""
        name = _name(scope)
        scope["state"][FRONT] = self._front
        request = Request(scope, receive)
        try:
            answer = await self.paths.find(scope)(request)
        except Exception as error:  # whatever it is, the client has to be told
            answer = _told(request, error)
        if _KEY not in dict(answer.raw_headers):
            answer.raw_headers.append((_KEY, name.encode()))
        try:
            await answer(scope, receive, send)
        except Exception as error:  # as a rule in its midst, where only we can be told
            tell_defect(error)
            if isinstance(answer, EventStream) and not answer.started:
                await _defect(request, error)(scope, receive, send)


def _name(scope: Scope) -> str:
    """Return the name of a request, and leave its headers as they are to be read.

    Their names are in small letters; of several that are the same, the first counts.
    """
    headers: dict[str, str] = {
        name.decode("latin-1"): text.decode("latin-1") for name, text in reversed(scope["headers"])
    }
    name = headers.get(REQUEST_ID_KEY)
    if name is None or not well_formed(name):
        name = headers.get(RUN_ID_KEY)
        if name is None or not names_run(name):
            name = os.urandom(16).hex()
        headers[REQUEST_ID_KEY] = headers[RUN_ID_KEY] = name
    scope["state"][HEADERS] = headers
    return name


def _told(request: Request, error: Exception) -> Response:
    """Return what is answered to a request that was not served."""
    if isinstance(error, ClientLeftError):
        # Nobody reads it; it is what nginx writes for clients that are gone.
        return Response(status_code=499)
    try:
        if isinstance(error, SixhopError):
            inbound = inbound_of(request)
            if inbound is None:
                return refused(request, error)
            return failed(front_of(request).failure(inbound, error))
    except Exception as defect:  # of the telling, which is told as one of the serving is
        error = defect
    tell_defect(error)
    return _defect(request, error)


def _defect(request: Request, error: Exception) -> Response:
    """Return what is answered where we have failed."""
    request_id = headers_of(request)[REQUEST_ID_KEY]
    named = {REQUEST_ID_KEY: request_id}
    return failed(failure_of(SelfBugError(type(error).__name__), request_id=request_id), named)
