"""Reads the body of a request, within its limits."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json
from starlette.requests import Request

from gateway.allowance import TOO_LARGE
from gateway.http.arriving import headers_of
from gateway.http.failing import NOT_TAKEN, TOO_SLOW
from gateway.http.front import Front
from gateway.http.leaving import ClientLeftError
from gateway.http.operation import JSON
from services.runtime.errors import InvalidArgumentError, SixhopError

ModelT = TypeVar("ModelT", bound=BaseModel)

BODY_COMES = "body_comes"
"""Where a connection leaves, in the state of a request, what tells whether more is to come."""
STRANGER_BYTES = 64 * 1024
"""How much is read of a body before anybody knows who sends it."""
_UNKNOWN, _MISSING = "extra_forbidden", "missing"


async def read_json(front: Front, request: Request, kind: type[ModelT]) -> ModelT:
    """Return the body as what it is meant to be.

    Raises:
        InvalidArgumentError: it is too large, too slow, no JSON, or a field of it is wrong; names
            the field as in `messages[0].content`.
        SixhopError: it is large, and nobody knows who sends it.
        ClientLeftError: the client went away while it was sending.
    """
    _require_json(headers_of(request))
    within_s = front.settings.http_body_timeout_s
    max_bytes, stranger = await _limit(request, front)
    comes: Callable[[], bool] | None = request.scope["state"].get(BODY_COMES)
    try:
        if comes is None or comes():
            async with asyncio.timeout(within_s):
                content = await _read(request, max_bytes, stranger)
        else:
            # Most bodies come with their heads, and need no timer.
            content = await _read(request, max_bytes, stranger)
    except TimeoutError:
        raise InvalidArgumentError(
            "body",
            f"did not come within {within_s:g} s; send it faster",
            cause=TOO_SLOW,
        ) from None
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise wrong_field(error, content) from None


def _require_json(headers: Mapping[str, str]) -> None:
    # Pages of others may send anything else to a door on this machine without being asked.
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        raise InvalidArgumentError("content-type", f"must be {JSON}", cause=NOT_TAKEN)
    if headers.get("content-encoding", "identity") != "identity":
        raise InvalidArgumentError(
            "content-encoding",
            "compressed bodies are not taken; send it as it is",
            cause=NOT_TAKEN,
        )


async def _limit(request: Request, front: Front) -> tuple[int, SixhopError | None]:
    """Return how much may come, before any of it is taken, and the error of who is a stranger.

    Of a stranger so much is taken as small requests have: the policies refuse it then, and log it.
    """
    try:
        limits = await front.limits_of(request)
    except SixhopError as error:
        return STRANGER_BYTES, error
    most = front.settings.max_body_bytes
    return min(most, limits.max_body_bytes or most), None


async def _read(request: Request, max_bytes: int, stranger: SixhopError | None) -> bytes:
    content = bytearray()
    comes = True
    while comes:
        # Not request.stream(), whose generator costs more than what it does.
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientLeftError
        content += message.get("body", b"")
        if len(content) > max_bytes:
            raise stranger or InvalidArgumentError(
                "body", f"is larger than {max_bytes:,} bytes; send less", cause=TOO_LARGE
            )
        comes = message.get("more_body", False)
    return bytes(content)


def wrong_field(error: ValidationError, content: bytes) -> InvalidArgumentError:
    """Return the refusal of a body that is not what it is meant to be; names the first field."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return InvalidArgumentError("body", f"is no JSON: {found[0]['msg']}")
    document = from_json(content)
    # Where a value may be one of several kinds, each of them complains: the one that came furthest
    # is meant.
    places = [_place(each, document) for each in found]
    deepest = max(places, key=len)
    problems = dict.fromkeys(
        _problem(each) for each, place in zip(found, places, strict=True) if place == deepest
    )
    return InvalidArgumentError(_written(deepest), "; or ".join(problems))


def _problem(found: ErrorDetails) -> str:
    if found["type"] == _UNKNOWN:
        return "is not known here; leave it out"
    return found["msg"]


def _place(found: ErrorDetails, document: Any) -> list[int | str]:
    """Return where a field is in the document; kinds of a field are parts of a location as well."""
    place: list[int | str] = []
    for part in found["loc"]:
        try:
            document = document[part]
        except (KeyError, TypeError, IndexError):
            continue
        place.append(part)
    return [*place, found["loc"][-1]] if found["type"] == _MISSING else place


def _written(place: Sequence[int | str]) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
