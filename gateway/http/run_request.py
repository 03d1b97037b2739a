"""Reads requests for runs, and for lists of them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict
from starlette.datastructures import QueryParams

from gateway.http.arriving import ENVOY_TIMEOUT_HEADER
from gateway.http.chat_fields import Language, SessionName, SourceFile
from gateway.http.chat_messages import AssistantMessage, UserMessage
from gateway.runs.record import Status
from gateway.runs.wanted import Wanted
from services.runtime.errors import InvalidArgumentError
from sixhop.gateway.v1 import gateway_pb2
from sixhop.type.v1 import run_pb2

MAX_LIMIT = 200
LAST_EVENT_ID = "last-event-id"
_DELIVERIES = {
    "restartable": run_pb2.DELIVERY_RESTARTABLE,
    "buffered": run_pb2.DELIVERY_BUFFERED,
    "live": run_pb2.DELIVERY_LIVE,
}
MAX_EVENT_ID = 10**18 - 1
CURSOR = r"^([0-9]{1,15})-([!-~]{1,128})$"
"""What `next` of a list looks like."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_CURSOR = re.compile(CURSOR)


Spoken = Annotated[UserMessage | AssistantMessage, Field(discriminator="role")]
"""Is one message of what was said before the question."""
_EXAMPLE: JsonDict = {"question": "Which category had the highest revenue last quarter?"}


class RunStart(BaseModel):
    """Asks for a run that goes on by itself."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [_EXAMPLE]}
    )
    question: str
    agent: str = ""
    language: Language = ""
    session_id: SessionName = ""
    history: list[Spoken] = Field(default_factory=list)
    sources: list[SourceFile] = Field(default_factory=list)
    delivery: Literal["restartable", "buffered", "live"] = "restartable"

    def run_request(self) -> gateway_pb2.RunRequest:
        """Return the run that is asked for.

        Raises:
            InvalidArgumentError: a field holds what no run can be given.
        """
        question = run_pb2.Question(
            text=self.question,
            language=self.language,
            session_id=self.session_id,
            history=[each.message(f"history[{place}]") for place, each in enumerate(self.history)],
            sources=[each.source(f"sources[{place}]") for place, each in enumerate(self.sources)],
        )
        return gateway_pb2.RunRequest(
            question=question, agent=self.agent, delivery=_DELIVERIES[self.delivery]
        )


def without_proxy_timeout(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers without the word of a proxy: what it gives the request ends with the 202."""
    return {name: text for name, text in headers.items() if name != ENVOY_TIMEOUT_HEADER}


def last_seen(headers: Mapping[str, str], query: QueryParams) -> int:
    """Return the number of the last event that a reader has; 0 without any.

    Raises:
        InvalidArgumentError: it is no number.
    """
    seen = 0
    # A browser's own word, when it comes again, is newer than what its address says.
    for name, text in (("after", query.get("after")), (LAST_EVENT_ID, headers.get(LAST_EVENT_ID))):
        if text is not None:
            if not _NUMBER.fullmatch(text):
                raise InvalidArgumentError(name, "must be the id of an event, such as 12")
            seen = int(text)
    return seen


def wanted_of(query: QueryParams, tenant: str) -> Wanted:
    """Return which runs are asked for.

    Raises:
        InvalidArgumentError: a parameter is not understood.
    """
    status = query.get("status")
    if status is not None and status not in set(Status):
        raise InvalidArgumentError("status", f"must be one of {', '.join(Status)}")
    limit = query.get("limit", "50")
    if not _NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MAX_LIMIT:
        raise InvalidArgumentError("limit", f"must be a number from 1 to {MAX_LIMIT}")
    return Wanted(
        tenant=tenant,
        status=status or "",
        agent=query.get("agent", ""),
        before=_cursor(query.get("before")),
        limit=int(limit),
    )


def _cursor(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    matched = _CURSOR.fullmatch(text)
    if matched is None:
        raise InvalidArgumentError("before", "must be the `next` of an earlier list")
    return int(matched[1]), matched[2]
