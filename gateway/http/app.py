"""Lists what the HTTP door serves."""

from collections.abc import Mapping, Sequence

from gateway.http.assets import PAGE_PATHS
from gateway.http.chat import CHAT
from gateway.http.front import Front
from gateway.http.health import HEALTH, LIVEZ, READYZ
from gateway.http.metrics import METRICS
from gateway.http.models import GET_MODEL, LIST_MODELS
from gateway.http.openapi import serve_document
from gateway.http.operation import Operation, Serve
from gateway.http.orders import ORDER_OPERATIONS
from gateway.http.paths import Paths
from gateway.http.reception import Reception
from gateway.http.responses import RESPONSES
from gateway.http.runs import RUN_OPERATIONS
from gateway.http.state import STATE_OPERATIONS

OPERATIONS: Sequence[Operation] = (
    CHAT,
    RESPONSES,
    LIST_MODELS,
    GET_MODEL,
    *RUN_OPERATIONS,
    *STATE_OPERATIONS,
    *ORDER_OPERATIONS,
    HEALTH,
    METRICS,
    LIVEZ,
    READYZ,
)
"""Every endpoint for programs; to add one is to write its `Operation` beside the function that
serves it, and to name it here: that opens it and puts it into `/openapi.json`.

Its answers are TypedDicts, so that mypy holds the code to what the document says, and its body is
a pydantic model. Errors are raised: before `Front.arrive` they are logged and told from here, after
it the policies log them. Pages for people are no endpoints: they are `PAGES`."""
PAGES: Mapping[str, Serve] = PAGE_PATHS
"""What browsers show, by its path; in no document."""


def make_app(front: Front) -> Reception:
    """Return the application behind the door."""
    return Reception(front, Paths((*OPERATIONS, serve_document(OPERATIONS)), PAGES))
