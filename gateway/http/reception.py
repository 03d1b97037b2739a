"""Names every request that comes in, and puts the name on every answer."""

import secrets
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.runtime.identity import REQUEST_ID_KEY, RUN_ID_KEY, names_run, well_formed
from services.runtime.telemetry import tell_defect

_KEY = REQUEST_ID_KEY.encode()
_RUN_KEY = RUN_ID_KEY.encode()


class Reception:
    """Stands around the whole application, so that its refusals and defects have a name too.

    A name that came is kept where it is well formed. Without one the run's counts, or one is made;
    it is added to the headers as if it had come, for the run as well: one name for both is a
    header less on the way.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Take the application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lead one request in and its answer out."""
        name = _name(scope).encode()

        # No coroutine of its own: streams pass here with every event.
        def name_answer(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                if not any(key == _KEY for key, _ in headers):
                    message["headers"] = [*headers, (_KEY, name)]
            return send(message)

        try:
            await self.app(scope, receive, name_answer)
        except Exception as error:  # it has been answered, as far as it can be; only we must know
            tell_defect(error)


def _name(scope: Scope) -> str:
    # The first of several counts.
    headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
    came = headers.get(_KEY, b"").decode("latin-1")
    if well_formed(came):
        return came
    run_id = headers.get(_RUN_KEY, b"").decode("latin-1")
    made = run_id if names_run(run_id) else secrets.token_hex(16)
    others = [pair for pair in scope["headers"] if pair[0] not in (_KEY, _RUN_KEY)]
    scope["headers"] = [*others, (_KEY, made.encode()), (_RUN_KEY, made.encode())]
    return made
